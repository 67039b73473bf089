"""What a task did and when."""

import dataclasses

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from harness.base.records.tasks import MapTimes, ReduceTimes, SegmentTimes, SpillTimes
from harness.base.records.trace import TaskAttempt
from harness.observe.parsing.ltrace import read_ltrace
from harness.observe.pieces import Piece, logged_pieces, paint, recorded_pieces, thinned
from tests.hostile.recorded import recording

LAYERS = st.lists(
    st.tuples(st.integers(0, 60), st.integers(0, 20), st.sampled_from("abc")), max_size=25
)
MAP = TaskAttempt("m0", "t", "map", "succeeded", 100.0, 110.0, "worker1")
REDUCE = TaskAttempt("r0", "t", "reduce", "succeeded", 100.0, 110.0, "worker1")


def layered(drawn):
    """Pieces of layers that may overlap."""
    return [Piece(float(start), float(start + length), part) for start, length, part in drawn]


def seen(layers, moment):
    """What the last layer at this moment is, found without cleverness."""
    return next((p.part for p in reversed(layers) if p.start <= moment < p.end), None)


class TestPaint:
    @given(LAYERS)
    def test_the_last_layer_is_seen(self, drawn):
        """
        At every moment, of any layers.
        """
        layers = layered(drawn)
        painted = paint(layers)

        moments = [n + 0.5 for n in range(85)]
        assert [seen(painted, m) for m in moments] == [seen(layers, m) for m in moments]

    @given(LAYERS)
    def test_pieces_follow_one_another(self, drawn):
        """
        None overlaps the next, and neighbours that touch differ.
        """
        painted = paint(layered(drawn))

        for piece, after in pairwise(painted):
            assert piece.start < piece.end <= after.start
            assert piece.end < after.start or piece.part != after.part


class TestThinned:
    @given(LAYERS, st.sampled_from([1.0, 3.0, 10.0]))
    def test_keeps_what_is_long_and_bounds_the_rest(self, drawn, step):
        """
        Pieces of a step or more stay; there are at most two for each step, and some.
        """
        painted = paint(layered(drawn))
        thin = thinned(painted, step)

        assert [p for p in painted if p.end - p.start >= step and p not in thin] == []
        assert len(thin) <= 2 * 80 / step + 2
        assert all(a.end <= b.start for a, b in pairwise(thin))

    def test_short_neighbours_become_what_took_most(self):
        """
        A hundred pieces of a hundredth of a second are one.
        """
        pieces = [Piece(n / 100, n / 100 + 0.01, "b" if n % 3 else "a") for n in range(100)]

        assert [p.part for p in thinned(pieces, 10.0)] == ["b"]


class TestRecorded:
    def test_a_spill_lies_beside_the_loop_that_it_overlaps(self, traced, recorded):
        """
        The main thread is cut where it was blocked; the spill thread stands beside it.
        """
        (attempt, *_) = traced().succeeded("map")
        main, spills = recorded_pieces(attempt, recorded(attempt))

        assert [p.part for p in main] == [
            "launch", "jvm", "init", "map_loop", "blocked", "map_loop", "blocked", "map_loop",
            "wait_spill", "spill_sort", "spill_write", "merge", "end",
        ]  # fmt: skip
        assert [p.part for p in spills] == ["spill_sort", "spill_write"] * 2
        assert main[0].start == attempt.start_s
        assert main[-1].end == attempt.finish_s

    def test_copies_and_merges_of_a_reduce(self, traced, recorded):
        """
        The main thread says when anything was copied, what is beside it only merges.
        """
        (attempt, *_) = traced().succeeded("reduce")
        main, beside = recorded_pieces(attempt, recorded(attempt))

        assert [p.part for p in main] == [
            "launch", "jvm", "init", "wait", "copy", "last_merges", "reduce_loop", "end",
            "commit", "end",
        ]  # fmt: skip
        assert [p.part for p in beside] == ["memory_merge"]

    def test_a_killed_task_goes_as_far_as_it_came(self, traced, recorded):
        """
        A recording that ends in the loop draws no end.
        """
        (attempt, *_) = traced().succeeded("map")
        task = recorded(attempt)
        spans = tuple(s._replace(open=True) for s in task.spans if s.name in {"main", "map_loop"})
        main, beside = recorded_pieces(attempt, dataclasses.replace(task, spans=spans))

        assert [p.part for p in main] == ["launch", "jvm", "init", "map_loop"]
        assert beside == []

    def test_a_real_task_that_was_killed(self):
        """
        Spills up to the kill; what was under way ends at the last moment that the file tells of.
        """
        task = read_ltrace([recording("killed.ltrace.spans")], "ltrace.spans")
        main_span, last = task.spans[0], max(s.finish_s for s in task.spans)
        attempt = dataclasses.replace(
            MAP, state="killed", start_s=main_span.start_s - 1, finish_s=last + 2
        )
        main, spills = recorded_pieces(attempt, task)

        assert (task.state, main_span.open) == ("open", True)
        assert [p.part for p in main[:4]] == ["launch", "jvm", "init", "map_loop"]
        assert {p.part for p in main[4:]} <= {"map_loop", "blocked"}
        assert {p.part for p in spills} == {"spill_sort", "spill_combine", "spill_write"}
        assert max(p.end for p in (*main, *spills)) == last

    def test_a_failed_task_ends_with_its_recording(self, traced, recorded):
        """
        What its master took to hear of the failure is no part of the task.
        """
        (attempt, *_) = traced().succeeded("map")
        task = recorded(attempt)
        failed = dataclasses.replace(attempt, state="failed", finish_s=attempt.finish_s + 9)
        main, _ = recorded_pieces(failed, task)

        assert main[-1].end == max(s.finish_s for s in task.spans)


class TestTold:
    def test_logs_of_a_map(self):
        """
        The last spill stands in the main thread, the others beside it.
        """
        spills = SpillTimes(104.0, 105.0, last=False), SpillTimes(107.0, 107.5, last=True)
        times = MapTimes("m0", "logs", "worker1", 10, spills, start_up_s=3.0, flush_s=1.0,
                         merge_s=1.5, end_s=1.0)  # fmt: skip

        assert logged_pieces(MAP, times) == (
            [
                (100, 103, "start"), (103, 106.5, "map_loop"), (106.5, 107, "wait_spill"),
                (107, 107.5, "spill"), (107.5, 109, "merge"), (109, 110, "end"),
            ],
            [(104, 105, "spill")],
        )  # fmt: skip

    def test_logs_of_a_reduce(self):
        """
        Between copies nothing is told, so it waited.
        """
        copies = (SegmentTimes("m0", "worker1", 9, 9, "memory", 104.0, 105.0),)
        times = ReduceTimes("r0", "logs", "worker1", 10, copies, (), start_up_s=3.0, shuffle_s=3.0,
                            end_s=1.0)  # fmt: skip
        main, beside = logged_pieces(REDUCE, times)

        assert main == [
            (100, 103, "start"), (103, 104, "wait"), (104, 105, "copy"), (105, 106, "last_merges"),
            (106, 109, "reduce_loop"), (109, 110, "end"),
        ]  # fmt: skip
        assert beside == []
