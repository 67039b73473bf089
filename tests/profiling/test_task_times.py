"""Recorded spans in the shape that logs give too."""

import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.base.errors import DataError
from harness.base.records.tasks import RecordLoop, Span, TaskSpans
from harness.base.records.trace import TaskAttempt
from harness.observe.profiling.task_times import (
    covered_s,
    recorded_map_times,
    recorded_reduce_times,
    recorded_times,
)


def loop(**values):
    """Sums of a record loop, zero where nothing is said."""
    names = ("records", "read_s", "function_s", "spilling_s", "spilling_read_s", "overlapped")
    names += ("outputs", "output_s", "output_samples", "blocked_s", "blocked")
    return RecordLoop(**{**dict.fromkeys(names, 0), "histogram": (), **values})


def task(*spans, **sums):
    """One task's recording."""
    name = "attempt_1_0001_m_000000_0"
    return TaskSpans(name, "closed", 100.0, 99.5, 0.004, 0, 5, loop(**sums), spans)


def span(name, start_s, wall_s, parent=-1, thread="main", **more):
    """A span of so many seconds."""
    return Span(name, thread, start_s, wall_s, wall_s / 2, parent, **more)


def attempt(kind, finish_s):
    """An attempt that was launched at 98 s."""
    name = f"attempt_1_0001_{kind[0]}_000000_0"
    return TaskAttempt(name, "task_1", kind, "succeeded", 98.0, finish_s, "worker1")


@pytest.mark.parametrize("start_s", [94.9, 113.1, -32400.0])
def test_a_span_at_which_the_attempt_did_not_run(start_s):
    """
    Clocks that contradict by more than three seconds are an error, which names span and node.
    """
    recording = task(span("main", 100, 9.5), span("map_loop", start_s, 1))

    message = r"map_loop starts .* s into .*\n.* spans of attempt_1_.* on worker1, span 1\n"
    with pytest.raises(DataError, match=message):
        recorded_times(recording, attempt("map", 110.0))


class TestMap:
    def test_time_is_cut_at_the_spans(self):
        """
        Launch to record loop, loop, flush, merge, end: together the attempt's whole time.
        """
        task_times = recorded_map_times(
            task(
                span("main", 100, 9.5),
                span("map_loop", 101, 5, 0),
                span("flush", 106.5, 2, 0),
                span("merge", 107.5, 1, 2),
            ),
            attempt("map", 110.0),
        )

        assert (
            task_times.start_up_s,
            task_times.flush_s,
            task_times.merge_s,
            task_times.end_s,
        ) == (3, 1.5, 1, 1.5)
        assert (
            task_times.start_up_s + 5 + task_times.flush_s + task_times.merge_s + task_times.end_s
            == 12
        )

    def test_reading_counts_to_mapping_alone_and_while_a_spill_runs(self):
        """
        MR. Prophet's cost of a call holds reading and collecting.
        """
        task_times = recorded_map_times(
            task(records=10, read_s=3, function_s=4, spilling_s=2, spilling_read_s=1, overlapped=4),
            attempt("map", 110.0),
        )

        assert (task_times.alone_s, task_times.alone_records) == (6, 6)
        assert (task_times.spilling_s, task_times.spilling_records) == (3, 4)

    def test_a_spill_is_sorting_combining_and_the_rest(self):
        """
        The parts are those within it; the one on the main thread overlaps with nothing.
        """
        task_times = recorded_map_times(
            task(
                span("main", 100, 20),
                span("spill", 101, 3, thread="SpillThread", details=(50, 900, 0, 7, 0)),
                span("sort", 101, 1, 1, thread="SpillThread"),
                span("combine", 102, 0.5, 1, thread="SpillThread"),
                span("combine", 102.5, 0.5, 1, thread="SpillThread"),
                span("flush", 110, 5, 0),
                span("spill", 110, 2, 5, details=(20, 300, 1, 9, 0)),
                span("sort", 110, 0.5, 6),
            ),
            attempt("map", 125.0),
        )

        reported = [
            (s.last, s.records, s.file_bytes, s.overlapped, s.sort_s, s.combine_s, s.write_s)
            for s in task_times.spills
        ]
        assert reported == [(False, 50, 900, 7, 1, 1, 1), (True, 20, 300, 0, 0.5, 0, 1.5)]


class TestReduce:
    def test_segments_know_their_host_and_share_a_connection(self):
        """
        A visit to a host connects once and brings several outputs.
        """
        task_times = recorded_reduce_times(
            task(
                span("shuffle", 100, 5),
                span("visit", 101, 3, thread="fetcher#1", text="worker2:13562"),
                span("connect", 101, 0.5, 1, thread="fetcher#1"),
                span(
                    "segment", 102, 1, 1, thread="fetcher#1", text="m0", details=(10, 30, 0, 0, 0)
                ),
                span(
                    "segment", 103, 1, 1, thread="fetcher#1", text="m1", details=(11, 31, 1, 0, 0)
                ),
            ),
            attempt("reduce", 120.0),
        )

        reported = [
            (s.map_attempt, s.host, s.sent_bytes, s.to, s.connect_s) for s in task_times.segments
        ]
        assert reported == [
            ("m0", "worker2", 10, "memory", 0.5),
            ("m1", "worker2", 11, "disk", 0.0),
        ]

    def test_waiting_is_what_no_copy_and_no_stall_covers(self):
        """
        Copies of several threads overlap; a thread without memory waits, and does not idle; what
        comes after the last copy is merging.
        """
        task_times = recorded_reduce_times(
            task(
                span("shuffle", 100, 10),
                span("visit", 101, 3, thread="fetcher#1"),
                span("visit", 102, 3, thread="fetcher#2"),
                span("wait_memory", 105, 1, thread="fetcher#1"),
                span("visit", 106, 2, thread="fetcher#1"),
            ),
            attempt("reduce", 120.0),
        )

        assert (task_times.waited_s, task_times.stalled_s) == (1, 1)

    def test_function_and_write_divide_the_loop(self):
        """
        Writing is taken out of the function's time; closing the writer is writing.
        """
        task_times = recorded_reduce_times(
            task(span("writer_close", 110, 2), read_s=3, function_s=4, output_s=1, outputs=7),
            attempt("reduce", 120.0),
        )

        assert (task_times.read_s, task_times.function_s, task_times.write_s) == (3, 3, 3)


interval = st.tuples(st.integers(0, 50), st.integers(0, 20)).map(lambda p: (p[0], p[0] + p[1]))


@given(st.lists(interval, max_size=12), interval)
def test_covered_is_the_length_of_the_union(intervals, within):
    """
    Counted second by second, it is the same.
    """
    seconds = {n for start, finish in intervals for n in range(start, finish)}
    expected = len(seconds & set(range(*within)))
    assert covered_s(intervals, within) == pytest.approx(expected)
