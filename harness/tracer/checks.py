"""
What a self-test of the tracer asks of the recordings of a job.

Each check compares what was recorded with what is known without the recorder: from the job's
history, its counters and its logs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from harness.profiling.spans import covered, segments
from harness.records.logs import TaskLog
from harness.records.spans import TaskSpans
from harness.records.trace import TASK_COUNTER, JobTrace, TaskAttempt

LEAST_GAP_S, GAP_SHARE = 0.05, 0.01
SLEEP_SHARE = 0.02
_SLEPT = "Sleep$Slept."
WORK = "pretended work"  # what the job Sleep calls its span


@dataclass(frozen=True, slots=True)
class Check:
    """One check of one job: what was expected and what was found, for people."""

    job: str
    name: str
    expected: str
    found: str
    ok: bool


class Observed(NamedTuple):
    """A job of the self-test; recordings and logs by the attempt's id."""

    name: str
    trace: JobTrace
    tasks: Mapping[str, TaskSpans]
    logs: Mapping[str, TaskLog]

    @property
    def reduces(self) -> bool:
        """Whether its maps sort their output, for reduces."""
        return self.trace.num_reduces > 0

    @property
    def succeeded(self) -> list[TaskAttempt]:
        """Its successful attempts."""
        return [*self.trace.succeeded("map"), *self.trace.succeeded("reduce")]


def checks(job: Observed) -> Iterator[Check]:
    """Yield the checks that every traced job must pass."""
    yield check_whole(job)
    yield check_cover(job)
    yield check_parts(job)
    yield from check_counts(job)
    if job.reduces:
        yield check_spills(job)
        yield check_origins(job)


def check_whole(job: Observed) -> Check:
    """Every successful attempt has a recording that its JVM closed, without a span lost."""
    bad = [a.attempt_id for a in job.succeeded if not _is_whole(job.tasks.get(a.attempt_id))]
    count = len(job.succeeded)
    return Check(
        job.name,
        "recordings",
        f"{count}, closed, nothing lost",
        f"{count - len(bad)}{_of(bad)}",
        count > 0 and not bad,
    )


def check_cover(job: Observed) -> Check:
    """Launch, start of the JVM and main cover each attempt's time by the history."""
    gaps = [(uncovered_s(t, a), a) for t, a in _pairs(job)]
    gap_s, attempt = max(gaps, key=lambda g: g[0] / allowed_s(g[1]), default=(0.0, None))
    if attempt is None:
        return Check(job.name, _COVER, _MISS, "no recording", ok=False)
    found = f"{gap_s * 1e3:.0f} ms of {attempt.duration_s:.2f} s missing at most"
    return Check(job.name, _COVER, _MISS, found, gap_s <= allowed_s(attempt))


_COVER, _MISS = "main thread covers each attempt", "all but 1 % or 50 ms"


def allowed_s(attempt: TaskAttempt) -> float:
    """Seconds of an attempt that the pieces of its main thread may miss."""
    return max(GAP_SHARE * attempt.duration_s, LEAST_GAP_S)


def uncovered_s(task: TaskSpans, attempt: TaskAttempt) -> float:
    """Seconds of *attempt* in no piece of its main thread, and seconds by which these overlap."""
    main = next(iter(task.named("main")), None)
    if main is None:
        return attempt.duration_s
    born = task.process_start_s or main.start_s
    pieces = [(attempt.start_s, born), (born, main.start_s), (main.start_s, main.finish_s)]
    overlap = sum(max(0.0, start - finish) for start, finish in pieces)
    whole = attempt.start_s, attempt.finish_s
    return attempt.duration_s - covered(pieces, whole) + overlap


_PROCESS = {"main", "configuration", "metrics", "login", "get_task", "configure_task", "shut_down"}
_PROCESS |= {"local_folders", "job_file", "file_system", "task", "initialize", "done"}
_MAP = _PROCESS | {"run_mapper", "split", "reader_open", "map_loop", "reader_close"}
_SORTING = _MAP | {"collector_open", "flush", "merge"}
_DIRECT = _MAP | {"writer_open", "collector_close", "commit"}
_REDUCE = _PROCESS | {"shuffle_open", "shuffle", "events", "visit", "connect", "segment"}
_REDUCE |= {"close_merges", "final_merge", "run_reducer", "writer_open", "reduce_loop"}
_REDUCE |= {"writer_close", "commit"}


def check_parts(job: Observed) -> Check:
    """Every part that a task of its kind has is there, whatever the interface of its job."""
    parts = {"map": _SORTING if job.reduces else _DIRECT, "reduce": _REDUCE}
    lacking = {a.attempt_id: parts[a.kind] - {s.name for s in t.spans} for t, a in _pairs(job)}
    bad = [f"{', '.join(sorted(lacks))} in {a}" for a, lacks in lacking.items() if lacks]
    wanted = " and ".join(
        f"{len(parts[k])} of a {k}" for k in sorted({a.kind for _, a in _pairs(job)})
    )
    found = f"{len(lacking) - len(bad)} attempts have all{_of(bad)}"
    return Check(job.name, "parts", wanted, found, bool(lacking) and not bad)


def _sorted(task: TaskSpans) -> int:
    """Records that were sorted, and those too large for the buffer, which need not be."""
    return sum(s.amount for s in task.named("sort", "spill_single"))


def _written(task: TaskSpans) -> int:
    """Bytes of a map's output: of its merge, or of its only spill, which is not merged."""
    merged = sum(s.details[1] for s in task.named("merge") if s.details)
    return merged or sum(s.details[1] for s in task.named("spill", "spill_single") if s.details)


_Count = Callable[[TaskSpans], int]
_COUNTS: dict[str, list[tuple[str, str, _Count]]] = {
    "map": [
        ("records read", "MAP_INPUT_RECORDS", lambda t: t.loop.records),
        ("collect calls", "MAP_OUTPUT_RECORDS", lambda t: t.loop.outputs),
        ("records sorted", "MAP_OUTPUT_RECORDS", _sorted),
        ("bytes of outputs", "MAP_OUTPUT_MATERIALIZED_BYTES", _written),
    ],
    "reduce": [
        ("records read", "REDUCE_INPUT_RECORDS", lambda t: t.loop.records),
        ("write calls", "REDUCE_OUTPUT_RECORDS", lambda t: t.loop.outputs),
        ("segments copied", "SHUFFLED_MAPS", lambda t: len(t.named("segment"))),
        ("bytes copied", "REDUCE_SHUFFLE_BYTES", lambda t: sum(s.sent_bytes for s in segments(t))),
    ],
}


def check_counts(job: Observed) -> Iterator[Check]:
    """Yield one check for each count of spans that Hadoop counts, too; equal in every attempt."""
    told = _COUNTS if job.reduces else {"map": _COUNTS["map"][:2]}
    for kind, counts in told.items():
        pairs = [(t, a) for t, a in _pairs(job) if a.kind == kind]
        for name, counter, count in counts:
            both = [(a.counters.get(f"{TASK_COUNTER}.{counter}", 0), count(t), a) for t, a in pairs]
            yield _equal(job.name, f"{kind}: {name}", f"{counter} ", both)


def check_spills(job: Observed) -> Check:
    """As many spills as lines in the logs that tell of their end."""
    told = [
        (len(job.logs[a.attempt_id].spills), len(t.named("spill")), a)
        for t, a in _pairs(job)
        if a.kind == "map" and a.attempt_id in job.logs
    ]
    return _equal(job.name, "map: spills", "'Finished spill' in logs ", told)


def check_origins(job: Observed) -> Check:
    """Every copied segment names its map and the host that it came from."""
    hosts = {a.attempt_id: a.host for a in job.trace.succeeded("map")}
    copied = [s for t, a in _pairs(job) if a.kind == "reduce" for s in segments(t)]
    bad = [
        f"{s.map_attempt or 'no map'} of {s.host or 'no host'}"
        for s in copied
        if s.map_attempt not in hosts or s.host != hosts[s.map_attempt]
    ]
    found = f"{len(copied) - len(bad)}{_of(bad)}"
    wanted = f"{len(copied)} of {len(hosts)} maps, by host"
    return Check(job.name, "reduce: origins of segments", wanted, found, bool(copied) and not bad)


def check_large(job: Observed) -> Check:
    """As many spills of one record as lines in the logs that tell of one too large."""
    told = [
        (job.logs[a.attempt_id].large_records, len(t.named("spill_single")), a)
        for t, a in _pairs(job)
        if a.kind == "map" and a.attempt_id in job.logs
    ]
    check = _equal(job.name, "map: spills of one record", "'Record too large' in logs ", told)
    return replace(check, ok=check.ok and any(found for _, found, _ in told))


def check_untraced(job: Observed) -> Check:
    """A job whose code reports spans runs as well where nothing records them."""
    found = f"{job.trace.state}, {len(job.tasks)} recordings"
    return Check(
        job.name,
        "reports spans, recorder off",
        "SUCCEEDED, 0 recordings",
        found,
        job.trace.state == "SUCCEEDED" and not job.tasks,
    )


def _equal(job: str, name: str, what: str, told: list[tuple[int, int, TaskAttempt]]) -> Check:
    """Of each attempt: what is expected, what was found."""
    bad = [f"{got} for {wanted} in {a.attempt_id}" for wanted, got, a in told if wanted != got]
    expected, found = sum(t[0] for t in told), sum(t[1] for t in told)
    return Check(job, name, f"{what}{expected:,}", f"{found:,}{_of(bad)}", bool(told) and not bad)


def check_sleeps(job: Observed) -> Iterator[Check]:
    """
    Yield, for each phase in which the job Sleep slept, whether the time is found there.

    What was really slept is what the job's own counters say, attempt by attempt.
    """
    for kind, phase, counter, found in _SLEEPS:
        pairs = [(t, a) for t, a in _pairs(job) if a.kind == kind]
        told = [(a.counters.get(_SLEPT + counter, 0) / 1e9, found(t)) for t, a in pairs]
        slept = [(wanted, got) for wanted, got in told if wanted > 0]
        worst = max((abs(got / wanted - 1) for wanted, got in slept), default=1.0)
        total, seen = sum(wanted for wanted, _ in slept), sum(got for _, got in slept)
        yield Check(
            job.name,
            f"{kind}: slept in {phase}",
            f"{total:.3f} s within 2 %",
            f"{seen:.3f} s, {worst:.2%} off at most" if slept else "nothing slept",
            worst <= SLEEP_SHARE,
        )


_SLEEPS: list[tuple[str, str, str, Callable[[TaskSpans], float]]] = [
    ("map", "reader", "READ_NS", lambda t: t.loop.read_s),
    ("map", "map function", "MAP_NS", lambda t: t.loop.function_s + t.loop.spilling_s),
    ("map", "span of its own", "WORK_NS", lambda t: sum(s.wall_s for s in t.named(WORK))),
    ("map", "combiner", "COMBINE_NS", lambda t: sum(s.wall_s for s in t.named("combine"))),
    ("reduce", "reduce function", "REDUCE_NS", lambda t: t.loop.function_s),
]


def check_killed(job: Observed, record: int) -> Check:
    """
    An attempt that SIGKILL ended before its *record* left a recording that is read.

    Sums of a slow loop are kept once a second, so the last records may be missing.
    """
    failed = [a for a in job.trace.attempts if a.state == "failed"]
    tasks = [job.tasks[a.attempt_id] for a in failed if a.attempt_id in job.tasks]
    records = [t.loop.records for t in tasks]
    loops = [s for t in tasks for s in t.named("map_loop") if s.open]
    good = len(tasks) == len(failed) == 1 and tasks[0].state == "open" and len(loops) == 1
    said = f"{len(tasks)} of {len(failed)} recorded, {len(loops)} open, {sum(records)} records"
    return Check(
        job.name,
        "killed attempt's recording",
        f"open within the loop, at most {record} records",
        said,
        good and 0 < records[0] <= record,
    )


def check_output(job: Observed, records: int) -> Check:
    """The job is done, and its successful maps have read all of its *records*."""
    got = job.trace.counters.get(f"{TASK_COUNTER}.MAP_INPUT_RECORDS", 0)
    return Check(
        job.name,
        "job in spite of the kill",
        f"SUCCEEDED, {records} records read",
        f"{job.trace.state}, {got} records read",
        job.trace.state == "SUCCEEDED" and got == records,
    )


def _pairs(job: Observed) -> Iterable[tuple[TaskSpans, TaskAttempt]]:
    return [(job.tasks[a.attempt_id], a) for a in job.succeeded if a.attempt_id in job.tasks]


def _is_whole(task: TaskSpans | None) -> bool:
    return task is not None and task.state == "closed" and task.lost == 0


def _of(bad: list[str]) -> str:
    return (
        f"; wrong: {bad[0]}" + (f" and {len(bad) - 1} more" if len(bad) > 1 else "") if bad else ""
    )
