"""
What a self-test of the tracer requires of the recordings of a job.

Each check compares what was recorded with what is known without the recorder: from the job's
history, its counters and its logs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

from harness.base.records.tasks import SegmentTimes, TaskLog, TaskSpans, covered_s
from harness.base.records.trace import TASK_COUNTER, JobTrace, TaskAttempt
from harness.observe.profiling.task_times import recorded_segments

# Seconds of an attempt that its main thread may leave uncovered: the larger of the two.
LEAST_GAP_S = 0.05
GAP_SHARE = 0.01
SLEEP_SHARE = 0.02
WORK = "pretended work"  # what the job Sleep calls its span
SLEPT_COUNTER = "mapreduce.harness.jobs.Sleep$Slept"  # the group of its counters

_PROCESS = {"main", "configuration", "metrics", "login", "get_task", "configure_task", "shut_down"}
_PROCESS |= {"local_folders", "job_file", "file_system", "task", "initialize", "done"}
_MAP = _PROCESS | {"run_mapper", "split", "reader_open", "map_loop", "reader_close"}
_SORTING = _MAP | {"collector_open", "flush", "merge"}
_DIRECT = _MAP | {"writer_open", "collector_close", "commit"}
_REDUCE = _PROCESS | {"shuffle_open", "shuffle", "events", "visit", "connect", "segment"}
_REDUCE |= {"close_merges", "final_merge", "run_reducer", "writer_open", "reduce_loop"}
_REDUCE |= {"writer_close", "commit"}


# What the recorder counts, too: (name, Hadoop's counter, count in a recording).
_SPILLS = ("spill", "spill_single")
_Count = Callable[[TaskSpans], int]
_LOOP_COUNTS: list[tuple[str, str, _Count]] = [
    ("records read", "MAP_INPUT_RECORDS", lambda task: task.loop.records),
    ("collect calls", "MAP_OUTPUT_RECORDS", lambda task: task.loop.outputs),
]
_COUNTS: dict[str, list[tuple[str, str, _Count]]] = {
    "map": [
        *_LOOP_COUNTS,
        (  # a record too large for the buffer is spilled alone and need not be sorted
            "records sorted",
            "MAP_OUTPUT_RECORDS",
            lambda task: sum(span.amount for span in task.named("sort", "spill_single")),
        ),
        (  # of its merge, or of its only spill, which is not merged
            "bytes of outputs",
            "MAP_OUTPUT_MATERIALIZED_BYTES",
            lambda task: _second_details(task, "merge") or _second_details(task, *_SPILLS),
        ),
    ],
    "reduce": [
        ("records read", "REDUCE_INPUT_RECORDS", lambda task: task.loop.records),
        ("write calls", "REDUCE_OUTPUT_RECORDS", lambda task: task.loop.outputs),
        ("segments copied", "SHUFFLED_MAPS", lambda task: len(task.named("segment"))),
        (
            "bytes copied",
            "REDUCE_SHUFFLE_BYTES",
            lambda task: sum(segment.sent_bytes for segment in recorded_segments(task)),
        ),
    ],
}
# Where the job Sleep sleeps: (kind, phase, its own counter, seconds of that phase in a recording).
_SLEEPS: list[tuple[str, str, str, Callable[[TaskSpans], float]]] = [
    ("map", "reader", "READ_NS", lambda task: task.loop.read_s),
    ("map", "map function", "MAP_NS", lambda task: task.loop.function_s + task.loop.spilling_s),
    ("map", "span of its own", "WORK_NS", lambda task: _wall_s(task, WORK)),
    ("map", "combiner", "COMBINE_NS", lambda task: _wall_s(task, "combine")),
    ("reduce", "reduce function", "REDUCE_NS", lambda task: task.loop.function_s),
]


@dataclass(frozen=True, slots=True)
class Check:
    """One check of one job: what was expected and what was observed, for people."""

    job: str
    name: str
    expected: str
    observed: str
    ok: bool


class Observed(NamedTuple):
    """A job of the self-test; recordings and logs by the attempt's id."""

    name: str
    trace: JobTrace
    tasks: Mapping[str, TaskSpans]
    logs: Mapping[str, TaskLog]

    @property
    def has_reduces(self) -> bool:
        """Whether its maps sort their output, for reduces."""
        return self.trace.num_reduces > 0

    @property
    def succeeded(self) -> list[TaskAttempt]:
        """Its successful attempts."""
        return [*self.trace.succeeded("map"), *self.trace.succeeded("reduce")]

    def recorded(self, *kinds: str) -> list[tuple[TaskSpans, TaskAttempt]]:
        """Recordings with their successful attempts, of *kinds*."""
        return [
            (self.tasks[attempt.attempt_id], attempt)
            for attempt in self.succeeded
            if attempt.kind in kinds and attempt.attempt_id in self.tasks
        ]


def checks(observed_job: Observed) -> Iterator[Check]:
    """Yield the checks that every traced job must pass."""
    yield check_whole(observed_job)
    yield check_cover(observed_job)
    yield check_parts(observed_job)
    yield from check_counts(observed_job)
    if observed_job.has_reduces:
        yield check_spills(observed_job)
        yield check_origins(observed_job)


def check_whole(observed_job: Observed) -> Check:
    """Every successful attempt has a recording that its JVM closed, without a span lost."""
    tasks = observed_job.tasks.values()
    whole = {task.attempt_id for task in tasks if task.state == "closed" and not task.lost}
    attempt_ids = [attempt.attempt_id for attempt in observed_job.succeeded]
    violations = [attempt_id for attempt_id in attempt_ids if attempt_id not in whole]
    attempt_count = len(attempt_ids)
    return Check(
        observed_job.name,
        "recordings",
        f"{attempt_count}, closed, nothing lost",
        f"{attempt_count - len(violations)}{_listed(violations)}",
        attempt_count > 0 and not violations,
    )


def check_cover(observed_job: Observed) -> Check:
    """Launch, start of the JVM and main cover each attempt's time by the history."""
    name = "main thread covers each attempt"
    expected = "all but 1 % or 50 ms"
    worst_share = 0.0  # relative to what is allowed
    observed = "no recording"
    for recording, attempt in observed_job.recorded("map", "reduce"):
        uncovered_s = attempt.duration_s
        if main_span := next(iter(recording.named("main")), None):
            process_s = recording.process_start_s or main_span.start_s
            moments = attempt.start_s, process_s, main_span.start_s, main_span.finish_s
            pieces = list(pairwise(moments))
            # Pieces that run backwards overlap their neighbours: that time counts as uncovered.
            overlap_s = sum(max(0.0, start_s - finish_s) for start_s, finish_s in pieces)
            uncovered_s += overlap_s - covered_s(pieces, (attempt.start_s, attempt.finish_s))
        share = uncovered_s / max(GAP_SHARE * attempt.duration_s, LEAST_GAP_S)
        if share >= worst_share or observed == "no recording":
            worst_share = share
            observed = f"{uncovered_s * 1e3:.0f} ms of {attempt.duration_s:.2f} s missing at most"
    is_covered = observed != "no recording" and worst_share <= 1
    return Check(observed_job.name, name, expected, observed, is_covered)


def check_parts(observed_job: Observed) -> Check:
    """Every part that a task of its kind has is there, whatever the interface of its job."""
    parts = {"map": _SORTING if observed_job.has_reduces else _DIRECT, "reduce": _REDUCE}
    compared = observed_job.recorded("map", "reduce")
    violations = []
    for recording, attempt in compared:
        if missing := parts[attempt.kind] - {span.name for span in recording.spans}:
            violations.append(f"{', '.join(sorted(missing))} in {attempt.attempt_id}")
    kinds = sorted({attempt.kind for _, attempt in compared})
    return Check(
        observed_job.name,
        "parts",
        " and ".join(f"{len(parts[kind])} of a {kind}" for kind in kinds),
        f"{len(compared) - len(violations)} attempts have all{_listed(violations)}",
        bool(compared) and not violations,
    )


def check_counts(observed_job: Observed) -> Iterator[Check]:
    """Yield one check for each count of spans that Hadoop counts, too; equal in every attempt."""
    for kind, counts in (_COUNTS if observed_job.has_reduces else {"map": _LOOP_COUNTS}).items():
        for name, counter, count in counts:
            compared = [
                (attempt.count(counter), count(recording), attempt)
                for recording, attempt in observed_job.recorded(kind)
            ]
            yield _equality_check(observed_job.name, f"{kind}: {name}", counter, compared)


def check_spills(observed_job: Observed) -> Check:
    """As many spills as lines in the logs that report the end of one."""
    compared = _counts_in_logs(observed_job, "spill", lambda log: len(log.spills))
    return _equality_check(observed_job.name, "map: spills", "'Finished spill' in logs", compared)


def check_origins(observed_job: Observed) -> Check:
    """Every copied segment names its map and the host that it came from."""
    hosts = {attempt.attempt_id: attempt.host for attempt in observed_job.trace.succeeded("map")}
    copied: list[SegmentTimes] = []
    for recording, _ in observed_job.recorded("reduce"):
        copied += recorded_segments(recording)
    violations = [
        f"{segment.map_attempt or 'no map'} of {segment.host or 'no host'}"
        for segment in copied
        if not segment.host or segment.host != hosts.get(segment.map_attempt)
    ]
    return Check(
        observed_job.name,
        "reduce: origins of segments",
        f"{len(copied)} of {len(hosts)} maps, by host",
        f"{len(copied) - len(violations)}{_listed(violations)}",
        bool(copied) and not violations,
    )


def check_large(observed_job: Observed) -> Check:
    """As many spills of one record as lines in the logs that report one too large."""
    compared = _counts_in_logs(observed_job, "spill_single", lambda log: log.large_records)
    what = "'Record too large' in logs"
    check = _equality_check(observed_job.name, "map: spills of one record", what, compared)
    return replace(check, ok=check.ok and any(recorded for _, recorded, _ in compared))


def check_untraced(observed_job: Observed) -> Check:
    """A job whose code reports spans runs as well where nothing records them."""
    return Check(
        observed_job.name,
        "reports spans, recorder off",
        "SUCCEEDED, 0 recordings",
        f"{observed_job.trace.state}, {len(observed_job.tasks)} recordings",
        observed_job.trace.state == "SUCCEEDED" and not observed_job.tasks,
    )


def check_sleeps(observed_job: Observed) -> Iterator[Check]:
    """Yield, by phase, whether what the job Sleep slept by its own counters is recorded there."""
    for kind, phase, counter, recorded_s in _SLEEPS:
        compared = [
            (attempt.count(f"{SLEPT_COUNTER}.{counter}") / 1e9, recorded_s(recording))
            for recording, attempt in observed_job.recorded(kind)
        ]
        compared = [(slept_s, seconds) for slept_s, seconds in compared if slept_s > 0]
        errors = [abs(seconds / slept_s - 1) for slept_s, seconds in compared]
        worst_error = max(errors, default=1.0)
        total_s = sum(seconds for _, seconds in compared)
        yield Check(
            observed_job.name,
            f"{kind}: slept in {phase}",
            f"{sum(slept_s for slept_s, _ in compared):.3f} s within 2 %",
            f"{total_s:.3f} s, error {worst_error:.2%} at most" if compared else "nothing slept",
            worst_error <= SLEEP_SHARE,
        )


def check_killed(observed_job: Observed, record: int) -> Check:
    """
    An attempt that SIGKILL ended before its *record* left a recording that can be read.

    Sums of a slow loop are kept once a second, so the last records may be missing.
    """
    tasks = observed_job.tasks
    attempts = observed_job.trace.attempts
    failed = [attempt.attempt_id for attempt in attempts if attempt.state == "failed"]
    recordings = [tasks[attempt_id] for attempt_id in failed if attempt_id in tasks]
    records = sum(recording.loop.records for recording in recordings)
    loops = 0
    for recording in recordings:
        loops += sum(span.open for span in recording.named("map_loop"))
    is_alone = len(recordings) == len(failed) == loops == 1
    return Check(
        observed_job.name,
        "killed attempt's recording",
        f"open within the loop, at most {record} records",
        f"{len(recordings)} of {len(failed)} recorded, {loops} open, {records} records",
        is_alone and recordings[0].state == "open" and 0 < records <= record,
    )


def check_output(observed_job: Observed, records: int) -> Check:
    """The job succeeded, and its successful maps have read all of its *records*."""
    read = observed_job.trace.counters.get(f"{TASK_COUNTER}.MAP_INPUT_RECORDS", 0)
    return Check(
        observed_job.name,
        "job in spite of the kill",
        f"SUCCEEDED, {records} records read",
        f"{observed_job.trace.state}, {read} records read",
        observed_job.trace.state == "SUCCEEDED" and read == records,
    )


def _counts_in_logs(
    observed_job: Observed, span: str, count: Callable[[TaskLog], int]
) -> list[tuple[int, int, TaskAttempt]]:
    return [
        (count(log), len(recording.named(span)), attempt)
        for recording, attempt in observed_job.recorded("map")
        if (log := observed_job.logs.get(attempt.attempt_id))
    ]


def _equality_check(
    job_name: str, name: str, what: str, compared: Sequence[tuple[int, int, TaskAttempt]]
) -> Check:
    """Compare, attempt by attempt, the count that is expected with the recorded one."""
    violations = [
        f"{recorded} for {expected} in {attempt.attempt_id}"
        for expected, recorded, attempt in compared
        if expected != recorded
    ]
    return Check(
        job_name,
        name,
        f"{what} {sum(expected for expected, _, _ in compared):,}",
        f"{sum(recorded for _, recorded, _ in compared):,}{_listed(violations)}",
        bool(compared) and not violations,
    )


def _second_details(task: TaskSpans, *names: str) -> int:
    return sum(span.details[1] for span in task.named(*names) if span.details)


def _wall_s(task: TaskSpans, name: str) -> float:
    return sum(span.wall_s for span in task.named(name))


def _listed(violations: Sequence[str]) -> str:
    """What is wrong, after what is right: the first one and how many more."""
    more = f" and {len(violations) - 1} more" if len(violations) > 1 else ""
    return f"; wrong: {violations[0]}{more}" if violations else ""
