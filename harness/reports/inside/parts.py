"""
Where the time of a task went: seconds of each part, together the whole of it.

Only what the main thread did or waited for counts, so the parts add up; what other threads did
meanwhile (spills, copies, merges) is in the timeline.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from harness.records.spans import TaskSpans
from harness.records.task_times import MapTimes, ReduceTimes, Source
from harness.records.trace import TaskAttempt, TaskKind
from harness.reports.inside.names import PARTS
from harness.reports.wording import natural

Seconds = Mapping[str, float | None]

# Parts that rest on a field of the task's record; a source may only estimate it.
_RESTS_ON = {
    "collect_s": ("collect", "map_function"),
    "spilling_s": ("map_loop",),
    "blocked_s": ("blocked",),
    "function_s": ("reduce_function",),
    "write_s": ("output",),
}


@dataclass(frozen=True, slots=True)
class TaskParts:
    """Seconds of each part of one attempt; *estimated* names those that are no measurement."""

    attempt_id: str
    kind: TaskKind
    host: str
    source: Source
    seconds: Mapping[str, float]
    estimated: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Bar:
    """Means over *tasks* of one kind on one node, on all nodes where *host* is empty."""

    kind: TaskKind
    host: str
    tasks: int
    source: Source
    seconds: Mapping[str, float]
    estimated: frozenset[str]

    @property
    def total_s(self) -> float:
        """Mean seconds of a task."""
        return sum(self.seconds.values())


def task_parts(
    told: MapTimes | ReduceTimes, attempt: TaskAttempt, recording: TaskSpans | None = None
) -> TaskParts:
    """
    Say where the time of *attempt* went, as *told* has it.

    Its *recording*, where there is one, tells launch, JVM start and initialisation apart.  What is
    left of the attempt's time is ``other``, or the record loop where only that is not known.
    """
    inner = _map(told) if isinstance(told, MapTimes) else _reduce(told, attempt)
    parts = {**_start(told.start_up_s, attempt, recording), **inner}
    known = {name: seconds for name in PARTS if (seconds := parts.get(name)) and seconds > 0}
    rest = attempt.duration_s - sum(known.values())
    left = "map_loop_blocked" if _blocked_unknown(told) else "other"
    estimated = {part for field in told.sampled for part in _RESTS_ON.get(field, ())}
    return TaskParts(
        attempt_id=attempt.attempt_id,
        kind=attempt.kind,
        host=attempt.host,
        source=told.source,
        seconds=known | ({left: rest} if rest > 0 else {}),
        estimated=frozenset(estimated & set(known)),
    )


def _blocked_unknown(told: MapTimes | ReduceTimes) -> bool:
    """Whether the record loop is all that is not known, for nothing tells how long it stood."""
    if not isinstance(told, MapTimes) or told.spilling_s is not None:
        return False
    return None not in (told.start_up_s, told.flush_s, told.merge_s, told.end_s)


def _start(
    start_up_s: float | None, attempt: TaskAttempt, recording: TaskSpans | None
) -> dict[str, float | None]:
    mains = [] if recording is None else [s.start_s for s in recording.named("main")]
    if recording is None or not mains or start_up_s is None:
        return {"start": start_up_s}
    main = mains[0]
    before = max(main - attempt.start_s, 0.0)
    init = start_up_s - before
    born = recording.process_start_s
    if born is None:
        return {"start": before, "init": init}
    # The start of a process is known to a few hundredths of a second.
    launch = min(max(born - attempt.start_s, 0.0), before)
    return {"launch": launch, "jvm": before - launch, "init": init}


def _map(told: MapTimes) -> Seconds:
    return {
        **_map_loop(told),
        "blocked": told.blocked_s,
        **_flush(told),
        "merge": told.merge_s,
        "end": told.end_s,
    }


def _map_loop(told: MapTimes) -> Seconds:
    if told.alone_s is None or told.spilling_s is None:
        return {}
    loop = told.alone_s + told.spilling_s
    if told.read_s is None:
        return {"map_loop": loop}
    collect = told.collect_s or 0.0
    return {
        "read": told.read_s,
        "map_function": loop - told.read_s - collect,
        "collect": collect,
    }


def _flush(told: MapTimes) -> Seconds:
    last = next((s for s in told.spills if s.last), None)
    if told.flush_s is None or last is None:
        return {"wait_spill": told.flush_s}
    waited = told.flush_s - last.duration_s
    if last.sort_s is None:
        return {"wait_spill": waited, "spill": last.duration_s}
    return {
        "wait_spill": waited,
        "spill_sort": last.sort_s,
        "spill_combine": last.combine_s,
        "spill_write": last.write_s,
    }


def _reduce(told: ReduceTimes, attempt: TaskAttempt) -> Seconds:
    commit = told.commit_s or 0.0
    apart = told.read_s is not None
    return {
        **_shuffle(told, attempt),
        "read_merge": told.read_s,
        "reduce_function": told.function_s,
        "output": told.write_s,
        "reduce_loop": None if apart else told.loop_s,
        "commit": commit,
        "end": None if told.end_s is None else told.end_s - commit,
    }


def _shuffle(told: ReduceTimes, attempt: TaskAttempt) -> Seconds:
    """A fetcher without memory counts only while no other copies."""
    if told.shuffle_s is None or told.start_up_s is None:
        return {}
    begin = attempt.start_s + told.start_up_s
    end = begin + told.shuffle_s
    last = max((s.finish_s for s in told.segments), default=begin)
    window = min(max(last - begin, 0.0), told.shuffle_s)
    waited = min(told.waited_s or 0.0, window)
    copies = ((s.start_s - (s.connect_s or 0.0), s.finish_s) for s in told.segments)
    idle = window - waited - _covered(copies, begin, end)
    stalled = min(told.stalled_s or 0.0, max(idle, 0.0))
    return {
        "wait": waited,
        "stall": stalled,
        "copy": window - waited - stalled,
        "last_merges": told.shuffle_s - window,
    }


def _covered(intervals: Iterable[tuple[float, float]], begin: float, end: float) -> float:
    """Seconds from *begin* to *end* that one or more of *intervals* cover."""
    total, reached = 0.0, begin
    for start, finish in sorted(intervals):
        left, right = max(start, reached), min(finish, end)
        if right > left:
            total, reached = total + right - left, right
    return total


def bars(tasks: Sequence[TaskParts]) -> list[Bar]:
    """
    Means of *tasks* by kind, then by kind and node.

    Where any task of a kind was recorded, those that were not are left out: their sums would stand
    beside the others' parts.
    """
    found = []
    kinds: tuple[TaskKind, ...] = ("map", "reduce")
    for kind in kinds:
        mine = [t for t in tasks if t.kind == kind]
        source: Source = "spans" if any(t.source == "spans" for t in mine) else "logs"
        mine = [t for t in mine if t.source == source]
        hosts = sorted({t.host for t in mine}, key=natural)
        if mine:
            found.append(_bar("", mine))
        if len(hosts) > 1:
            found += [_bar(host, [t for t in mine if t.host == host]) for host in hosts]
    return found


def _bar(host: str, tasks: Sequence[TaskParts]) -> Bar:
    means = {name: fmean(t.seconds.get(name, 0.0) for t in tasks) for name in PARTS}
    return Bar(
        kind=tasks[0].kind,
        host=host,
        tasks=len(tasks),
        source=tasks[0].source,
        seconds={name: mean for name, mean in means.items() if mean > 0},
        estimated=frozenset(name for t in tasks for name in t.estimated),
    )
