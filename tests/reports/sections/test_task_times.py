"""Where the time of a task went: seconds of its parts."""

import pytest

from harness.base.records.tasks import (
    MapTimes,
    RecordLoop,
    ReduceTimes,
    SegmentTimes,
    Span,
    SpillTimes,
    TaskSpans,
)
from harness.base.records.trace import TaskAttempt
from harness.core.reports.sections.task_times import bars, task_parts

LOOP = RecordLoop(0, 0.0, 0.0, 0.0, 0.0, 0, 0, 0.0, 0, 0.0, 0, ())
LAST = SpillTimes(106.0, 106.5, last=True, sort_s=0.25, combine_s=0.0, write_s=0.25)


def attempt(kind="map", name="m0", host="worker1", duration_s=10.0):
    """An attempt that was launched at 100."""
    return TaskAttempt(name, "t", kind, "succeeded", 100.0, 100.0 + duration_s, host)


def of_map(**changes):
    """A map of ten seconds of which 6.5 lie in its loop; the spill thread kept it waiting."""
    fields = {
        "attempt_id": "m0", "source": "spans", "host": "worker1", "records": 10, "spills": (LAST,),
        "start_up_s": 2.0, "alone_s": 2.0, "spilling_s": 1.0, "read_s": 0.5, "collect_s": 0.5,
        "blocked_s": 1.0, "flush_s": 1.0, "merge_s": 1.0, "end_s": 0.5, "sampled": ("collect_s",),
    }  # fmt: skip
    return MapTimes(**{**fields, **changes})


def of_reduce(**changes):
    """A reduce whose copies took one second, half of it by two fetchers at once."""
    copies = tuple(
        SegmentTimes(f"m{n}", "worker1", 9, 9, "memory", start, end, connect_s=0.0)
        for n, (start, end) in enumerate([(103.0, 103.75), (103.25, 104.0)])
    )
    fields = {
        "attempt_id": "r0", "source": "spans", "host": "worker1", "records": 10,
        "segments": copies, "merges": (), "start_up_s": 2.0, "shuffle_s": 2.5, "waited_s": 0.75,
        "stalled_s": 0.25, "read_s": 1.0, "function_s": 1.0, "write_s": 0.5, "loop_s": 2.75,
        "commit_s": 0.25, "end_s": 1.0, "sampled": ("function_s", "write_s"),
    }  # fmt: skip
    return ReduceTimes(**{**fields, **changes})


def recording(born=100.5, main=101.5):
    """A recording of which only the start is of interest."""
    span = Span("main", "main", main, 8.0, None, -1)
    return TaskSpans("m0", "closed", main, born, 0.0, 0, 5, LOOP, (span,))


class TestMap:
    def test_parts_are_the_whole_of_the_attempt(self):
        """
        Every second is in one part, what is not known in the last.
        """
        parts = task_parts(of_map(), attempt(), recording())

        assert parts.seconds == {
            "launch": 0.5, "jvm": 1.0, "init": 0.5,
            "read": 0.5, "map_function": 2.0, "collect": 0.5, "blocked": 1.0,
            "wait_spill": 0.5, "spill_sort": 0.25, "spill_write": 0.25,
            "merge": 1.0, "end": 0.5, "other": 1.5,
        }  # fmt: skip
        assert sum(parts.seconds.values()) == attempt().duration_s

    def test_what_rests_on_a_sample_is_named(self):
        """
        Collecting is sampled, so the map function is what is left of an exact sum: an estimate.
        """
        assert task_parts(of_map(), attempt()).estimated == {"collect", "map_function"}

    def test_logs_tell_sums(self):
        """
        What a log cannot tell apart is one part.
        """
        spill = SpillTimes(106.0, 106.5, last=True)
        times = of_map(source="logs", read_s=None, collect_s=None, spills=(spill,),
                      sampled=("spilling_s", "blocked_s"))  # fmt: skip
        parts = task_parts(times, attempt())

        assert parts.seconds == {
            "start": 2.0, "map_loop": 3.0, "blocked": 1.0, "wait_spill": 0.5, "spill": 0.5,
            "merge": 1.0, "end": 0.5, "other": 1.5,
        }  # fmt: skip
        assert parts.estimated == {"map_loop", "blocked"}

    def test_nobody_knows_how_long_it_was_blocked(self):
        """
        Then the loop and standing still are one part, and nothing is left over.
        """
        times = of_map(source="logs", read_s=None, collect_s=None, spilling_s=None, blocked_s=None)
        parts = task_parts(times, attempt())

        assert parts.seconds["map_loop_blocked"] == pytest.approx(5.5)
        assert "other" not in parts.seconds

    def test_a_process_older_than_its_launch(self):
        """
        Two clocks may contradict by some milliseconds: no part is negative.
        """
        parts = task_parts(of_map(), attempt(), recording(born=99.5))

        assert (parts.seconds["jvm"], parts.seconds.get("launch")) == (1.5, None)


class TestReduce:
    def test_parts_are_the_whole_of_the_attempt(self):
        """
        A second in which two fetchers copied counts once; a stall only while none did.
        """
        parts = task_parts(of_reduce(), attempt("reduce", "r0"))

        assert parts.seconds == {
            "start": 2.0, "wait": 0.75, "stall": 0.25, "copy": 1.0, "last_merges": 0.5,
            "read_merge": 1.0, "reduce_function": 1.0, "output": 0.5,
            "commit": 0.25, "end": 0.75, "other": 2.0,
        }  # fmt: skip
        assert parts.estimated == {"reduce_function", "output"}

    def test_logs_tell_the_loop_as_one(self):
        """
        Reading, reducing and writing leave no line.
        """
        times = of_reduce(source="logs", read_s=None, function_s=None, write_s=None)
        parts = task_parts(times, attempt("reduce", "r0"))

        assert parts.seconds["reduce_loop"] == 2.75
        assert not {"read_merge", "reduce_function", "output"} & set(parts.seconds)


class TestBars:
    def test_are_means_of_all_nodes_and_of_each(self):
        """
        Nodes stand in the order in which people count.
        """
        tasks = [
            task_parts(of_map(merge_s=merge, host=host), attempt(host=host))
            for host, merge in (("worker10", 1.0), ("worker2", 2.0), ("worker2", 4.0))
        ]

        assert [(b.host, b.tasks, b.seconds["merge"]) for b in bars(tasks)] == [
            ("", 3, pytest.approx(7 / 3)), ("worker2", 2, 3.0), ("worker10", 1, 1.0)
        ]  # fmt: skip

    def test_one_node_needs_no_bar_of_its_own(self):
        """
        It would repeat that of all nodes.
        """
        assert [b.host for b in bars([task_parts(of_map(), attempt())])] == [""]

    def test_sums_of_logs_do_not_stand_beside_parts_of_spans(self):
        """
        Where some tasks were recorded, the bar is theirs; of the other kind logs tell.
        """
        tasks = [
            task_parts(of_map(), attempt()),
            task_parts(of_map(source="logs", read_s=None), attempt(name="m1")),
            task_parts(of_reduce(source="logs"), attempt("reduce", "r0")),
        ]

        assert [(b.kind, b.source, b.tasks) for b in bars(tasks)] == [
            ("map", "spans", 1), ("reduce", "logs", 1)
        ]  # fmt: skip
