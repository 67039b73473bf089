r"""
Task times in one shape: from what the tracer recorded, and from stock logs and the job history.

Of a recording, the main thread's time is cut at the starts and ends of its spans, so nothing of a
task is left out.

Without one, Hadoop logs start, end and size of every spill, copy and merge, and nothing of single
records.  How the map function and the spills overlap follows from the sort buffer's marks: *n*
records were collected from a spill's start to the moment its space was given back, and *room* is
what the buffer could take meanwhile.

    blocked      n reaches the room: the map function stood still until the spill's end, and for how
                 long no line says.  Spills of the same task that did not fill the room show what a
                 record costs while a spill runs; without one, the time stays unknown.
    not blocked  the map function ran all the time.  Hadoop gives space back when it next needs
                 some, so *n* counts up to there; the share up to the spill's end is taken.
    cut short    the input ended while the spill ran.  Hadoop reports to its master before it logs
                 the flush, so the time is that of a record in the spills that were not blocked.

A machine that lets the map function wait makes it fill less room, so what a record costs beside a
spill comes out too high rather than too low: 1.4 times what spans show, on a machine busy with
other work.

Everything between is the map function alone.  Sorting, combining and writing within a spill,
reading and collecting within the map function, and the same within a reduce, cannot be
distinguished.
"""

from __future__ import annotations

import math

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from harness.base.errors import DataError
from harness.base.records.tasks import (
    Interval,
    MapTimes,
    MergeTimes,
    ProcessCpu,
    RecordLoop,
    ReduceTimes,
    SegmentTimes,
    ShuffleLog,
    Span,
    SpillLog,
    SpillTimes,
    TaskLog,
    TaskSpans,
    covered_s,
)
from harness.base.records.trace import TaskAttempt

_MERGES: dict[str, Literal["memory", "disk", "final"]] = {
    "memory_merge": "memory",
    "disk_merge": "disk",
    "final_merge": "final",
}
# Room counts as filled from here on: how long the records beside a spill are is known only as a
# mean with later ones.  Of TeraSort's equal records, two or three never fit.
_LEFT_RECORDS = 8
_FILLED_SHARE = 0.95


def recorded_times(recording: TaskSpans, attempt: TaskAttempt) -> MapTimes | ReduceTimes:
    """
    Times of *attempt*, a map or a reduce, as *recording* recorded it.

    `DataError` where a span starts at a time at which the attempt did not run.
    """
    earliest_s, latest_s = attempt.window
    for place, span in enumerate(recording.spans):
        if not earliest_s <= span.start_s <= latest_s:
            what = f"{span.name} starts {span.start_s - attempt.start_s:.0f} s into an attempt of"
            what += f" {attempt.duration_s:.0f} s"
            fix = "set its node's clock right, then: harness all FILE --new"
            where = f"spans of {attempt.attempt_id} on {attempt.host}, span {place}"
            raise DataError(what, where=where, fix=fix)
    times: MapTimes | ReduceTimes
    if attempt.kind == "map":
        times = recorded_map_times(recording, attempt)
    else:
        times = recorded_reduce_times(recording, attempt)
    return replace(times, process=process_cpu(recording))


def process_cpu(recording: TaskSpans) -> ProcessCpu | None:
    """Processor seconds of the task's process; `None` where it was killed, or nobody read them."""
    boot_s = recording.cpu_at_main_s
    total_s = recording.cpu_at_end_s
    if boot_s is None or total_s is None:
        return None
    outermost_s = [span.cpu_s for span in recording.spans if span.parent < 0]
    known_s = [cpu_s for cpu_s in outermost_s if cpu_s is not None]
    helpers_s = None
    if known_s and len(known_s) == len(outermost_s):
        # The kernel counts a process in ticks of 10 ms, its threads exactly.
        helpers_s = max(0.0, total_s - boot_s - math.fsum(known_s))
    return ProcessCpu(boot_s, total_s, helpers_s)


def recorded_map_times(recording: TaskSpans, attempt: TaskAttempt) -> MapTimes:
    """Times of the map *attempt*, as *recording* recorded it."""
    record_loop = recording.loop
    loop_span = _first_span(recording, "map_loop")
    loop_end = loop_span.finish_s if loop_span else None
    merges = recording.named("merge")
    merge_start = merges[0].start_s if merges else None
    work_end = merges[-1].finish_s if merges else loop_end
    return MapTimes(
        attempt_id=attempt.attempt_id,
        source="spans",
        host=attempt.host,
        records=record_loop.records,
        spills=tuple(recorded_spills(recording)),
        start_up_s=loop_span.start_s - attempt.start_s if loop_span else None,
        alone_s=record_loop.function_s + record_loop.read_s - record_loop.spilling_read_s,
        alone_records=record_loop.records - record_loop.overlapped,
        spilling_s=record_loop.spilling_s + record_loop.spilling_read_s,
        spilling_records=record_loop.overlapped,
        loop_s=loop_span.wall_s if loop_span else None,
        read_s=record_loop.read_s,
        collect_s=record_loop.output_s if record_loop.outputs else None,
        blocked_s=record_loop.blocked_s,
        flush_s=merge_start - loop_end if merge_start and loop_end else None,
        merge_s=sum(span.wall_s for span in merges) if merges else None,
        end_s=None if work_end is None else attempt.finish_s - work_end,
        sampled=_sampled_fields(record_loop, {"read_s": ("read_s",), "output_s": ("collect_s",)}),
    )


def recorded_spills(recording: TaskSpans) -> Iterator[SpillTimes]:
    """Yield the spills of a map; what is neither sorting nor combining is writing."""
    for place, span in enumerate(recording.spans):
        if span.name != "spill":
            continue
        parts = [part for part in recording.spans if part.parent == place]
        sort_s = sum(part.wall_s for part in parts if part.name == "sort")
        combine_s = sum(part.wall_s for part in parts if part.name == "combine")
        is_last = span.thread != "SpillThread"
        records = span.amount
        file_bytes = None
        overlapped = 0
        if len(span.details) == 5:
            records, file_bytes, _, overlapped, _ = span.details
        yield SpillTimes(
            start_s=span.start_s,
            finish_s=span.finish_s,
            last=is_last,
            records=records,
            file_bytes=file_bytes,
            overlapped=0 if is_last else overlapped,
            sort_s=sort_s,
            combine_s=combine_s,
            write_s=max(span.wall_s - sort_s - combine_s, 0.0),
        )


def recorded_reduce_times(recording: TaskSpans, attempt: TaskAttempt) -> ReduceTimes:
    """Times of the reduce *attempt*, as *recording* recorded it."""
    record_loop = recording.loop
    shuffle = _first_span(recording, "shuffle")
    reducer = _first_span(recording, "run_reducer")
    loop_span = _first_span(recording, "reduce_loop")
    closing_s = sum(span.wall_s for span in recording.named("writer_close"))
    waited_s, stalled_s = _waiting(recording, shuffle) if shuffle else (None, None)
    return ReduceTimes(
        attempt_id=attempt.attempt_id,
        source="spans",
        host=attempt.host,
        records=record_loop.records,
        segments=tuple(recorded_segments(recording)),
        merges=tuple(
            MergeTimes(_MERGES[span.name], span.start_s, span.finish_s, span.amount or None)
            for span in recording.named(*_MERGES)
        ),
        start_up_s=shuffle.start_s - attempt.start_s if shuffle else None,
        shuffle_s=shuffle.wall_s if shuffle else None,
        waited_s=waited_s,
        stalled_s=stalled_s,
        read_s=record_loop.read_s,
        function_s=max(record_loop.function_s - record_loop.output_s, 0.0),
        write_s=record_loop.output_s + closing_s,
        loop_s=loop_span.wall_s if loop_span else None,
        commit_s=sum(span.wall_s for span in recording.named("commit")),
        end_s=attempt.finish_s - reducer.finish_s if reducer else None,
        sampled=_sampled_fields(
            record_loop, {"read_s": ("read_s", "function_s"), "output_s": ("function_s", "write_s")}
        ),
    )


def _waiting(recording: TaskSpans, shuffle: Span) -> tuple[float, float]:
    """Seconds of the *shuffle* in which nothing was copied for want of map outputs; of memory."""
    waits = [_interval(span) for span in recording.named("wait_memory")]
    visits = [_interval(span) for span in recording.named("visit")]
    # After the last copy the shuffle waits for merges, which have their own spans.
    copying_end = max((finish_s for _, finish_s in visits), default=shuffle.finish_s)
    busy_s = covered_s(visits + waits, (shuffle.start_s, copying_end))
    return copying_end - shuffle.start_s - busy_s, covered_s(waits, _interval(shuffle))


def recorded_segments(recording: TaskSpans) -> Iterable[SegmentTimes]:
    """Every map output that the reduce *recording* copied."""
    connects = {span.parent: span.wall_s for span in recording.named("connect")}
    for place, span in enumerate(recording.spans):
        if span.name != "segment":
            continue
        visit = place
        while visit >= 0 and recording.spans[visit].name != "visit":
            visit = recording.spans[visit].parent
        address = recording.spans[visit].text if visit >= 0 else ""
        sent_bytes = span.amount
        raw_bytes = span.amount
        is_on_disk = 0
        if len(span.details) > 2:
            sent_bytes, raw_bytes, is_on_disk = span.details[:3]
        yield SegmentTimes(
            map_attempt=span.text,
            host=address.rpartition(":")[0] or address,
            sent_bytes=sent_bytes,
            raw_bytes=raw_bytes,
            to="disk" if is_on_disk else "memory",
            start_s=span.start_s,
            finish_s=span.finish_s,
            # A visit connects once, for all that it brings.
            connect_s=connects.pop(visit, 0.0),
        )


def _first_span(recording: TaskSpans, name: str) -> Span | None:
    return next(iter(recording.named(name)), None)


def _interval(span: Span) -> Interval:
    return span.start_s, span.finish_s


def _sampled_fields(
    record_loop: RecordLoop, dependent: Mapping[str, tuple[str, ...]]
) -> tuple[str, ...]:
    """Names of the fields that rest on the loop's estimates, each once."""
    names = dict[str, None]()
    for estimate in record_loop.sampled:
        names |= dict.fromkeys(dependent.get(estimate, ()))
    return tuple(names)


@dataclass(frozen=True, slots=True)
class _Overlap:
    """The map function during one spill: seconds, records emitted, and what else it did."""

    during_s: float
    emitted: float
    state: Literal["running", "blocked", "cut"]


@dataclass(frozen=True, slots=True)
class _BesideSpills:
    """
    The map function while spills ran and while none did; `None`: nothing tells.

    *overlapped* are the input records during each spill, *spilling_records* those of all.
    *sampled* are the fields that rest on the mean of other spills.
    """

    overlapped: Sequence[int] | None = None
    alone_s: float | None = None
    spilling_records: int | None = None
    spilling_s: float | None = None
    blocked_s: float | None = None
    sampled: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        overlaps: Sequence[_Overlap],
        inputs_per_output: float,
        loop_start: float | None,
        loop_end: float | None,
    ) -> _BesideSpills:
        """What all spills together tell."""
        alone_s = None
        if loop_start is not None and loop_end is not None:
            during_s = sum(overlap.during_s for overlap in overlaps)
            alone_s = max(loop_end - loop_start - during_s, 0.0)
        states = {overlap.state for overlap in overlaps if overlap.emitted}
        emitted = sum(overlap.emitted for overlap in overlaps)
        spilling_s, blocked_s = _running_and_blocked(overlaps)
        return cls(
            overlapped=[round(overlap.emitted * inputs_per_output) for overlap in overlaps],
            alone_s=alone_s,
            spilling_records=round(emitted * inputs_per_output),
            spilling_s=spilling_s,
            blocked_s=blocked_s,
            # By the mean of other spills, where some did not run all the time.
            sampled=("spilling_s", "blocked_s") if len(states) > 1 else (),
        )


def logged_map_times(
    task_log: TaskLog, attempt: TaskAttempt, *, is_compressed: bool = False
) -> MapTimes:
    """
    Times of the map *attempt*, as its log and its counters show them.

    *is_compressed* says whether the job compresses its map output: Hadoop then counts the bytes of
    merges with more than one pass wrongly, and those are not taken.
    """
    input_records = attempt.count("MAP_INPUT_RECORDS")
    output_records = attempt.count("MAP_OUTPUT_RECORDS")
    inputs_per_output = input_records / output_records if output_records else 0.0
    loop_start = task_log.split_s if task_log.collector_s is None else task_log.collector_s
    loop_end = task_log.done_s if task_log.flush_s is None else task_log.flush_s
    merge_start = None
    if task_log.flush_s is not None:
        # The merge starts when the flush has waited for all spills.
        merge_start = max([task_log.flush_s, *(spill.finish_s for spill in task_log.spills)])
    beside = _BesideSpills()
    if (overlaps := _overlaps(task_log, loop_end)) is not None:
        beside = _BesideSpills.of(overlaps, inputs_per_output, loop_start, loop_end)
    alone_records = None
    if beside.spilling_records is not None:
        alone_records = input_records - beside.spilling_records
    spills = _spill_times(task_log, attempt, beside.overlapped, is_compressed=is_compressed)
    return MapTimes(
        attempt_id=attempt.attempt_id,
        source="logs",
        host=attempt.host,
        records=input_records,
        spills=tuple(spills),
        start_up_s=_between(attempt.start_s, loop_start),
        alone_s=beside.alone_s,
        alone_records=alone_records,
        spilling_s=beside.spilling_s,
        spilling_records=beside.spilling_records,
        blocked_s=beside.blocked_s,
        flush_s=_between(task_log.flush_s, merge_start),
        merge_s=_between(merge_start, task_log.done_s),
        end_s=_between(task_log.done_s, attempt.finish_s),
        sampled=beside.sampled,
    )


def _running_and_blocked(overlaps: Sequence[_Overlap]) -> tuple[float | None, float | None]:
    """
    Seconds beside spills in which the map function ran, and stood still; `None` where none tells.

    What a record costs beside a spill is that of those spills which did not fill the room.
    """
    running_s: float = 0
    emitted: float = 0
    unclear = []
    for overlap in overlaps:
        if overlap.state == "running":
            running_s += overlap.during_s
            emitted += overlap.emitted
        else:
            unclear.append(overlap)
    if not emitted and any(overlap.emitted for overlap in unclear):
        return None, None
    estimates_s = [
        min(overlap.emitted * running_s / (emitted or 1), overlap.during_s) for overlap in unclear
    ]
    blocked_s = sum(
        overlap.during_s - estimate_s
        for overlap, estimate_s in zip(unclear, estimates_s, strict=True)
        if overlap.state == "blocked"
    )
    return running_s + sum(estimates_s), blocked_s


def logged_reduce_times(
    task_log: TaskLog, shuffle: ShuffleLog, attempt: TaskAttempt
) -> ReduceTimes:
    """Times of the reduce *attempt*, as its two logs and its counters show them."""
    # When fetchers had no memory: each until the next memory merge has made room.
    room_s = sorted(merge.finish_s for merge in shuffle.merges if merge.kind == "memory")
    stalls: list[Interval] = []
    for full_s in shuffle.full_s:
        place = bisect_left(room_s, full_s)
        if place < len(room_s):
            stalls.append((full_s, room_s[place]))
    waited_s = None
    stalled_s = None
    if shuffle.begin_s and shuffle.copied_s:
        copying = (shuffle.begin_s, shuffle.copied_s)
        visits = [(visit.start_s, visit.finish_s) for visit in shuffle.visits]
        waited_s = copying[1] - copying[0] - covered_s([*visits, *stalls], copying)
        stalled_s = covered_s(stalls, copying)
    return ReduceTimes(
        attempt_id=attempt.attempt_id,
        source="logs",
        host=attempt.host,
        records=attempt.count("REDUCE_INPUT_RECORDS"),
        segments=tuple(logged_segments(shuffle)),
        merges=shuffle.merges,
        start_up_s=_between(attempt.start_s, shuffle.begin_s),
        shuffle_s=_between(shuffle.begin_s, shuffle.merged_s),
        waited_s=waited_s,
        stalled_s=stalled_s,
        loop_s=_between(shuffle.merged_s, task_log.done_s),
        commit_s=_between(task_log.allowed_s, task_log.saved_s or task_log.ended_s),
        end_s=_between(task_log.done_s, attempt.finish_s),
    )


def logged_segments(shuffle: ShuffleLog) -> Iterator[SegmentTimes]:
    """Yield every map output that was copied; a visit connects once, for all that it brings."""
    connected = set[int]()
    for map_copy in shuffle.copies:
        host = ""
        connect_s = None
        if map_copy.visit >= 0:
            visit = shuffle.visits[map_copy.visit]
            host = visit.host.rpartition(":")[0]
            connect_s = 0.0
            if map_copy.visit not in connected:
                connect_s = max(map_copy.start_s - visit.start_s, 0.0)
        connected.add(map_copy.visit)
        yield SegmentTimes(
            map_attempt=map_copy.map_attempt,
            host=host,
            sent_bytes=map_copy.sent_bytes,
            raw_bytes=map_copy.raw_bytes,
            to=map_copy.to,
            start_s=map_copy.start_s,
            finish_s=map_copy.finish_s,
            connect_s=connect_s,
        )


def _between(start_s: float | None, finish_s: float | None) -> float | None:
    """Seconds, `None` where an end is not known or the clocks of two nodes contradict."""
    if start_s is None or finish_s is None or finish_s < start_s:
        return None
    return finish_s - start_s


def _overlaps(task_log: TaskLog, loop_end: float | None) -> list[_Overlap] | None:
    """Each spill of the spill thread beside the map function; `None` where a line is missing."""
    beside = [spill for spill in task_log.spills if not spill.last]
    if loop_end is None or any(spill.collected is None for spill in beside):
        return None
    overlaps = []
    # Those collected during a spill are in the next one, if there is one.
    following = [*task_log.spills[1:], *task_log.spills[-1:]]
    for spill, next_spill in zip(beside, following, strict=False):
        finish = min(spill.finish_s, loop_end)
        reset = loop_end if spill.reset_s is None else min(spill.reset_s, loop_end)
        during_s = max(finish - spill.start_s, 0.0)
        until_reset_s = max(reset - spill.start_s, 0.0)
        collected = spill.collected or 0
        if _has_filled_room(spill, next_spill):
            overlaps.append(_Overlap(during_s, collected, "blocked"))
        elif reset >= loop_end:
            overlaps.append(_Overlap(during_s, collected, "cut"))
        else:
            emitted = collected * during_s / until_reset_s if until_reset_s else 0.0
            overlaps.append(_Overlap(during_s, emitted, "running"))
    return overlaps


def _has_filled_room(spill: SpillLog, next_spill: SpillLog) -> bool:
    """
    Whether what was collected during a *spill* filled the buffer, by its metadata or its bytes.

    How long these records are is their mean in *next_spill*.
    """
    if spill.room_records is None or spill.room_bytes is None:
        return False
    collected = spill.collected or 0
    fitting_records = spill.room_records - _LEFT_RECORDS
    if collected >= min(fitting_records, _FILLED_SHARE * spill.room_records):
        return True
    records = next_spill.records
    record_bytes = (next_spill.buffer_bytes or 0) / records if records else 0.0
    return collected * record_bytes >= _FILLED_SHARE * spill.room_bytes


def _spill_times(
    task_log: TaskLog,
    attempt: TaskAttempt,
    overlapped: Sequence[int] | None,
    *,
    is_compressed: bool,
) -> list[SpillTimes]:
    """
    Spills with their shares of the bytes of all spill files: by the bytes that each took.

    The files hold what the merge read (it leaves out the first key of each segment and its
    checksum, some ten bytes), or the output itself where there was one.
    """
    overlaps = iter(overlapped or ())
    all_bytes = _spilled_bytes(task_log, attempt, is_compressed=is_compressed)
    total_bytes = sum(spill.buffer_bytes or 0 for spill in task_log.spills) or 1
    times = []
    for spill in task_log.spills:
        file_bytes = None
        if all_bytes:
            file_bytes = round(all_bytes * ((spill.buffer_bytes or 0) / total_bytes))
        times.append(
            SpillTimes(
                start_s=spill.start_s,
                finish_s=spill.finish_s,
                last=spill.last,
                records=spill.records,
                buffer_bytes=spill.buffer_bytes,
                file_bytes=file_bytes,
                overlapped=0 if spill.last else next(overlaps, None),
            )
        )
    return times


def _spilled_bytes(task_log: TaskLog, attempt: TaskAttempt, *, is_compressed: bool) -> int | None:
    """Bytes of all spill files; `None` where the log does not tell, or wrongly."""
    if task_log.large_records or task_log.done_s is None:
        return None
    if len(task_log.spills) == 1:
        return attempt.count("MAP_OUTPUT_MATERIALIZED_BYTES")
    if is_compressed and task_log.merge_passes:
        return None
    return task_log.merged_bytes
