"""Waterfalls and Chrome's trace events of recordings made by hand."""

import dataclasses
import json

from harness.base.records.tasks import RecordLoop, Span, TaskSpans
from harness.base.records.trace import JobTrace, TaskAttempt
from harness.observe.waterfall import chrome_events, render_task, render_tasks, rows

NAME = "attempt_1_0001_m_000000_0"


def span(name, start_s, wall_s, parent=-1, thread="main", **more):
    """A span of so many seconds, half of them on the processor."""
    return Span(name, thread, start_s, wall_s, wall_s / 2, parent, **more)


def recording(*spans, name=NAME, state="closed", lost=0):
    """A recording of a map with 1000 records."""
    loop = RecordLoop(1000, 1.0, 2.0, 0.5, 0.1, 200, 9000, 0.7, 140, 0.0, 0, ())
    return TaskSpans(name, state, 100.0, 99.0, 0.004, lost, 5, loop, spans)


def job(*attempts):
    """A job with these attempts."""
    return JobTrace("job_1_0001", "sort", "me", "SUCCEEDED", 95.0, 96.0, 120.0, 1, 0, attempts)


MAP = TaskAttempt(NAME, "task_1_0001_m_000000", "map", "succeeded", 98.0, 111.0, "worker1")
SPANS = (
    span("main", 100, 10),
    span("map_loop", 101, 5, 0),
    span("spill", 102, 1, thread="SpillThread"),
    span("sort", 102, 0.5, 2, thread="SpillThread"),
    span("spill", 104, 1, thread="SpillThread"),
    span("sort", 104, 0.5, 4, thread="SpillThread"),
)


class TestRows:
    def test_spans_of_one_kind_are_one_row(self):
        """
        Two spills are one row with two intervals; sorting stands below it.
        """
        shown = [(r.threads, r.depth, r.name, r.count, r.wall_s) for r in rows(recording(*SPANS))]

        assert shown == [
            ("main", 0, "start the JVM", 1, 1),
            ("main", 0, "process", 1, 10),
            ("main", 1, "map loop", 1, 5),
            ("main", 2, "read", 1000, 1.0),
            ("main", 2, "map, no spill running", 800, 2.0),
            ("main", 2, "map while spilling", 200, 0.5),
            ("main", 2, "of both: collect", 9000, 0.7),
            ("SpillThread", 0, "spill", 2, 2),
            ("SpillThread", 1, "sort", 2, 1),
        ]

    def test_the_history_adds_what_lies_outside_the_jvm(self):
        """
        Launch before it, the acknowledgement behind it: together the attempt's whole time.
        """
        shown = rows(recording(span("main", 100, 10)), MAP)

        assert [r.name for r in shown] == [
            "launch the container",
            "start the JVM",
            "process",
            "until the end was seen",
        ]
        assert sum(r.wall_s for r in shown) == MAP.duration_s

    def test_threads_of_a_pool_are_one(self):
        """
        Five fetchers copy; what each did is rarely asked.
        """
        copies = [span("visit", 100 + n, 1, thread=f"fetcher#{n}") for n in range(5)]
        (row,) = [r for r in rows(recording(*copies)) if r.name == "visit a host"]

        assert (row.threads, row.count) == ("fetcher (x5)", 5)


class TestWaterfall:
    def test_bars_stand_where_the_spans_do(self):
        """
        Ten seconds on twenty columns: the map loop from the second second on.
        """
        drawn = render_task(recording(span("main", 99, 10), span("map_loop", 101, 5, 0)), None, 0)

        (line,) = [line for line in drawn.splitlines() if "map loop" in line]
        assert line.split("|")[1] == "    " + "█" * 10 + "      "

    def test_says_what_is_estimated_unfinished_and_lost(self):
        """
        A figure that is less sure than others says so.
        """
        spans = span("main", 100, 5, open=True), span("map_loop", 101, 4, 0)
        drawn = render_task(recording(*spans, state="given up", lost=3), None)

        assert "~700 ms" in drawn
        assert drawn.splitlines()[-4:] == [
            "~ estimated from 140 calls that were timed",
            "> was not over when the JVM ended",
            "recording was stopped: no space on the disk",
            "3 spans did not fit into the file",
        ]

    def test_a_killed_attempt_says_so_and_how_far_it_came(self):
        """
        What was under way is marked where the recording ends, not where the end was seen.
        """
        spans = span("main", 100, 5, open=True), span("map_loop", 101, 4, 0, open=True)
        killed = dataclasses.replace(MAP, state="killed", finish_s=108.0)
        drawn = render_task(recording(*spans, state="open"), killed, width=110)
        lines = drawn.splitlines()
        loop = next(line for line in lines if line.startswith("    map loop"))
        seen = next(line for line in lines if "until it was seen as killed" in line)

        assert lines[0] == f"{NAME}: map on worker1, 10.0 s, killed"
        first = next(n for n, c in enumerate(seen) if c in "\u2591\u2592\u2593\u2588")
        assert first - loop.index(">") in (0, 1)
        assert "10.0 s, killed" in render_tasks(job(killed), [recording(*spans, state="open")])

    def test_text_of_a_workload_stays_in_its_line(self):
        """
        Names come from outside.
        """
        drawn = render_task(recording(span("a\nb", 100, 5)), None)

        assert "a b" in drawn

    def test_a_job_lists_its_recorded_attempts(self):
        """
        Longest first, with the parts that took longest.
        """
        drawn = render_tasks(job(MAP), [recording(*SPANS)])

        assert drawn.splitlines()[0] == "job_1_0001: 1 attempts, 1 recorded"
        assert (
            drawn.splitlines()[-1].split()
            == (
                f"{NAME} worker1 13.0 s map, no spill running 2.0 s, launch the container 1.0 s,"
                " start the JVM 1.0 s"
            ).split()
        )


def perfetto_drops(events):
    """
    Names of the spans that Perfetto drops, by the rules of its trace processor's import.

    It knows a thread by its number alone, whatever the process, takes 0 for an idle core, and has
    one stack per thread: a span ends before the one around it, or it is dropped.  Asserts that each
    number is that of one process.
    """
    processes, stacks, dropped = {}, {}, []
    complete = [e for e in events if e["ph"] == "X"]
    for event in sorted(complete, key=lambda e: (round(e["ts"] * 1000), -round(e["dur"] * 1000))):
        assert event["pid"] > 0
        assert event["tid"] > 0
        assert processes.setdefault(event["tid"], event["pid"]) == event["pid"]
        start, stack = round(event["ts"] * 1000), stacks.setdefault(event["tid"], [])
        end = start + round(event["dur"] * 1000)
        while stack and stack[-1] <= start:
            stack.pop()
        if end < start or (stack and end > stack[-1]):
            dropped.append(event["name"])
        else:
            stack.append(end)
    return dropped


class TestChromeEvents:
    def test_perfetto_drops_no_span(self):
        """
        Of two attempts with threads of the same names that ran at the same time, with moments since
        the epoch, which are rounded: a child may seem to end after the span around it.
        """
        epoch_s = 1.7e9
        other = NAME.replace("m_000000", "m_000001")
        attempts = [
            dataclasses.replace(MAP, attempt_id=a, start_s=epoch_s + 98, finish_s=epoch_s + 111)
            for a in (NAME, other)
        ]
        spans = (
            span("main", epoch_s + 100, 10),
            *(span("copy", epoch_s + 100 + n / 3, 1 / 3 + 1e-7, 0) for n in range(30)),
            *(span("sort", epoch_s + 100 + n / 3, 1 / 3 + 2e-7, n + 1) for n in range(30)),
            span("spill", epoch_s + 102, 1, thread="SpillThread"),
        )
        traced = dataclasses.replace(job(*attempts), submit_s=epoch_s + 95, finish_s=epoch_s + 120)
        recordings = [recording(*spans, name=a) for a in (NAME, other)]

        events = list(chrome_events(traced, recordings))

        assert perfetto_drops(events) == []
        assert sum(e["ph"] == "X" for e in events) == 3 + 2 * len(spans)
        same_threads = [{**e, "tid": 1, "pid": 1} for e in events]
        assert perfetto_drops(same_threads) != []  # the check above would notice

    def test_every_span_is_a_complete_event(self):
        """
        Microseconds since the submission, a process per attempt, a thread per thread.
        """
        events = list(chrome_events(job(MAP), [recording(*SPANS)]))
        (loop,) = [e for e in events if e["name"] == "map_loop"]

        assert json.loads(json.dumps(loop)) == {
            "name": "map_loop",
            "ph": "X",
            "ts": 6e6,
            "dur": 5e6,
            "pid": 2,
            "tid": 3,
            "args": {"cpu_ms": 2500.0},
        }
        assert sum(e["ph"] == "X" for e in events) == 2 + len(SPANS)

    def test_threads_and_processes_have_names(self):
        """
        Perfetto shows them beside the bars.
        """
        events = chrome_events(job(MAP), [recording(*SPANS)])
        names = [e["args"]["name"] for e in events if e["name"].endswith("_name")]

        assert names == [
            "job_1_0001 sort",
            "task_1_0001_m_000000 on worker1",
            "main",
            "SpillThread",
        ]

    def test_recordings_of_another_job_are_left_out(self):
        """
        An attempt that the history does not know has no place.
        """
        events = chrome_events(job(), [recording(*SPANS)])

        assert [e["name"] for e in events] == ["process_name", "job"]
