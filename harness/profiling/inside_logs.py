r"""
What stock logs and the job history tell of the inside of a task.

Hadoop logs begin, end and size of every spill, copy and merge, and nothing of single records.  How
the map function and the spills overlap follows from the sort buffer's marks: *n* records were
collected from a spill's start to the moment its space was given back, and *room* is what the
buffer could take meanwhile.

    blocked      n reaches the room: the map function stood still until the spill's end, and for how
                 long no line says.  Spills of the same task that did not fill the room tell what a
                 record costs while a spill runs; without one, the time stays unknown.
    not blocked  the map function ran all the time.  Hadoop gives space back when it next needs
                 some, so *n* counts up to there; the share up to the spill's end is taken.
    cut short    the input ended while the spill ran.  Hadoop reports to its master before it logs
                 the flush, so the time is that of a record in the spills that were not blocked.

A machine that lets the map function wait makes it fill less room, so what a record costs beside a
spill comes out too high rather than too low: 1.4 times what spans say, on a machine busy with other
work.

Everything between is the map function alone.  Sorting, combining and writing within a spill,
reading and collecting within the map function, and the same within a reduce, cannot be told apart.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from harness.profiling.spans import covered
from harness.records.logs import ShuffleLog, SpillLog, TaskLog
from harness.records.task_times import MapTimes, MergeTimes, ReduceTimes, SegmentTimes, SpillTimes
from harness.records.trace import TASK_COUNTER, TaskAttempt

# Room counts as filled from here on: how long the records beside a spill are is known only as a
# mean with later ones.  Of TeraSort's equal records, two or three never fit.
_LEFT_RECORDS = 8
_FILLED_SHARE = 0.95


@dataclass(frozen=True, slots=True)
class _Overlap:
    """The map function during one spill: seconds, records emitted, and what else it did."""

    during_s: float
    emitted: float
    state: Literal["running", "blocked", "cut"]


def map_from_logs(log: TaskLog, attempt: TaskAttempt, *, compressed: bool = False) -> MapTimes:
    """
    Say what happened inside the map *attempt*, as its log and its counters tell.

    *compressed* says whether the job compresses its map output: Hadoop then counts the bytes of
    merges with more than one pass wrongly, and those are not taken.
    """
    records = _counter(attempt, "MAP_INPUT_RECORDS")
    begin = log.split_s if log.collector_s is None else log.collector_s
    loop_end = log.done_s if log.flush_s is None else log.flush_s
    merge = _merge_start(log)
    overlaps = _overlaps(log, loop_end)
    spilling_s, spilling_records, blocked_s = _while_spilling(overlaps, _inputs(attempt))
    during = sum(o.during_s for o in overlaps or ())
    beside = None if overlaps is None else [round(o.emitted * _inputs(attempt)) for o in overlaps]
    complete = overlaps is not None and begin is not None and loop_end is not None
    return MapTimes(
        attempt_id=attempt.attempt_id,
        source="logs",
        host=attempt.host,
        records=records,
        spills=tuple(_spills(log, _file_bytes(log, attempt, compressed=compressed), beside)),
        start_up_s=_between(attempt.start_s, begin),
        alone_s=max((loop_end or 0) - (begin or 0) - during, 0.0) if complete else None,
        alone_records=None if spilling_records is None else records - spilling_records,
        spilling_s=spilling_s,
        spilling_records=spilling_records,
        blocked_s=blocked_s,
        flush_s=_between(log.flush_s, merge),
        merge_s=_between(merge, log.done_s),
        end_s=_between(log.done_s, attempt.finish_s),
        cpu_s=_cpu_s(attempt),
        sampled=_estimates(overlaps or ()),
    )


def reduce_from_logs(log: TaskLog, shuffle: ShuffleLog, attempt: TaskAttempt) -> ReduceTimes:
    """Say what happened inside the reduce *attempt*, as its two logs and its counters tell."""
    begin = shuffle.begin_s
    stalls = _stalls(shuffle)
    visits = [(v.start_s, v.finish_s) for v in shuffle.visits]
    copying = (begin, shuffle.copied_s) if begin and shuffle.copied_s else None
    return ReduceTimes(
        attempt_id=attempt.attempt_id,
        source="logs",
        host=attempt.host,
        records=_counter(attempt, "REDUCE_INPUT_RECORDS"),
        segments=tuple(_segments(shuffle)),
        merges=tuple(
            MergeTimes(m.kind, m.start_s, m.finish_s, m.segments, m.bytes) for m in shuffle.merges
        ),
        start_up_s=_between(attempt.start_s, begin),
        shuffle_s=_between(begin, shuffle.merged_s),
        waited_s=(
            copying[1] - copying[0] - covered([*visits, *stalls], copying) if copying else None
        ),
        stalled_s=covered(stalls, copying) if copying else None,
        loop_s=_between(shuffle.merged_s, log.done_s),
        commit_s=_between(log.allowed_s, log.saved_s or log.ended_s),
        end_s=_between(log.done_s, attempt.finish_s),
        cpu_s=_cpu_s(attempt),
    )


def _counter(attempt: TaskAttempt, name: str) -> int:
    return attempt.counters.get(f"{TASK_COUNTER}.{name}", 0)


def _cpu_s(attempt: TaskAttempt) -> float | None:
    """CPU time of the whole JVM."""
    used = _counter(attempt, "CPU_MILLISECONDS")
    return used / 1e3 if used else None


def _inputs(attempt: TaskAttempt) -> float:
    """Input records of a map for each that it emits."""
    emitted = _counter(attempt, "MAP_OUTPUT_RECORDS")
    return _counter(attempt, "MAP_INPUT_RECORDS") / emitted if emitted else 0.0


def _between(start: float | None, finish: float | None) -> float | None:
    """Seconds, `None` where an end is not known or the clocks of two nodes contradict."""
    if start is None or finish is None or finish < start:
        return None
    return finish - start


def _merge_start(log: TaskLog) -> float | None:
    """The merge begins when the flush has waited for all spills."""
    if log.flush_s is None:
        return None
    return max([log.flush_s, *(s.finish_s for s in log.spills)])


def _overlaps(log: TaskLog, loop_end: float | None) -> list[_Overlap] | None:
    """Each spill of the spill thread beside the map function; `None` where a line is missing."""
    behind = [s for s in log.spills if not s.last]
    if loop_end is None or any(s.collected is None for s in behind):
        return None
    widths = [_width(s) for s in log.spills[1:]]
    widths += [_width(s) for s in log.spills[len(widths) :]]
    return [_overlap(s, width, loop_end) for s, width in zip(behind, widths, strict=False)]


def _width(spill: SpillLog) -> float:
    """Mean bytes of a record in the buffer."""
    return (spill.buffer_bytes or 0) / spill.records if spill.records else 0.0


def _overlap(spill: SpillLog, width: float, loop_end: float) -> _Overlap:
    """*width* is that of the records collected meanwhile: they are in the next spill."""
    finish = min(spill.finish_s, loop_end)
    reset = loop_end if spill.reset_s is None else min(spill.reset_s, loop_end)
    during, until_reset = max(finish - spill.start_s, 0.0), max(reset - spill.start_s, 0.0)
    collected = spill.collected or 0
    if _filled(spill, collected, width):
        return _Overlap(during, collected, "blocked")
    if reset >= loop_end:
        return _Overlap(during, collected, "cut")
    return _Overlap(during, collected * during / until_reset if until_reset else 0.0, "running")


def _filled(spill: SpillLog, collected: int, width: float) -> bool:
    """Whether the buffer had no room left: by its metadata, or by keys and values."""
    if spill.room_records is None or spill.room_bytes is None:
        return False
    most = min(spill.room_records - _LEFT_RECORDS, _FILLED_SHARE * spill.room_records)
    return collected >= most or collected * width >= _FILLED_SHARE * spill.room_bytes


def _while_spilling(
    overlaps: Sequence[_Overlap] | None, inputs: float
) -> tuple[float | None, int | None, float | None]:
    """Seconds and input records of the map function while spills ran, and seconds blocked."""
    if overlaps is None:
        return None, None, None
    records = round(sum(o.emitted for o in overlaps) * inputs)
    running = [o for o in overlaps if o.state == "running"]
    told_s, told = sum(o.during_s for o in running), sum(o.emitted for o in running)
    others = [(o, o.emitted) for o in overlaps if o.state != "running"]
    if not told and any(emitted for _, emitted in others):
        return None, records, None
    guessed = [(o, min(n * told_s / told if told else 0.0, o.during_s)) for o, n in others]
    blocked = sum(o.during_s - seconds for o, seconds in guessed if o.state == "blocked")
    return told_s + sum(seconds for _, seconds in guessed), records, blocked


def _estimates(overlaps: Sequence[_Overlap]) -> tuple[str, ...]:
    """What rests on a mean of other spills."""
    states = {o.state for o in overlaps if o.emitted}
    return ("spilling_s", "blocked_s") if len(states) > 1 else ()


def _spills(
    log: TaskLog, written: int | None, overlapped: Sequence[int] | None
) -> Iterator[SpillTimes]:
    """Spills with their shares of what was *written*: by the bytes that each took."""
    beside = iter(overlapped or ())
    total = sum(s.buffer_bytes or 0 for s in log.spills)
    for spill in log.spills:
        share = (spill.buffer_bytes or 0) / total if total else 0.0
        yield SpillTimes(
            start_s=spill.start_s,
            finish_s=spill.finish_s,
            last=spill.last,
            records=spill.records,
            buffer_bytes=spill.buffer_bytes,
            file_bytes=None if written is None else round(written * share),
            overlapped=0 if spill.last else next(beside, None),
        )


def _file_bytes(log: TaskLog, attempt: TaskAttempt, *, compressed: bool) -> int | None:
    """
    Bytes of all spill files: what the merge read, or the output itself where there was one.

    The merge leaves out the first key of each segment and its checksum, some ten bytes.
    """
    if log.large_records or not log.spills or log.done_s is None:
        return None
    if len(log.spills) == 1:
        return _counter(attempt, "MAP_OUTPUT_MATERIALIZED_BYTES") or None
    if compressed and log.merge_passes:
        return None
    return log.merged_bytes or None


def _segments(shuffle: ShuffleLog) -> Iterator[SegmentTimes]:
    seen: set[int] = set()
    for copy in shuffle.copies:
        visit = shuffle.visits[copy.visit] if copy.visit >= 0 else None
        # A visit connects once, for all that it brings.
        connect = 0.0 if visit is None or copy.visit in seen else copy.start_s - visit.start_s
        seen.add(copy.visit)
        yield SegmentTimes(
            map_attempt=copy.map_attempt,
            host=visit.host.rpartition(":")[0] if visit else "",
            sent_bytes=copy.sent_bytes,
            raw_bytes=copy.raw_bytes,
            to=copy.to,
            start_s=copy.start_s,
            finish_s=copy.finish_s,
            connect_s=max(connect, 0.0) if visit else None,
        )


def _stalls(shuffle: ShuffleLog) -> list[tuple[float, float]]:
    """A fetcher without memory goes on when the next memory merge has made room."""
    ends = sorted(m.finish_s for m in shuffle.merges if m.kind == "memory")
    found = ((at, bisect_left(ends, at)) for at in shuffle.full_s)
    return [(at, ends[place]) for at, place in found if place < len(ends)]
