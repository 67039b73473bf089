"""
Task times from what the tracer recorded, in the shape that logs give too.

The main thread's time is cut at the starts and ends of its spans, so nothing of a task is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from harness.records.spans import RecordLoop, Span, TaskSpans
from harness.records.task_times import (
    Interval,
    MapTimes,
    MergeTimes,
    ReduceTimes,
    SegmentTimes,
    SpillTimes,
    covered_s,
)
from harness.records.trace import TaskAttempt

_MERGES: dict[str, Literal["memory", "disk", "final"]] = {
    "memory_merge": "memory",
    "disk_merge": "disk",
    "final_merge": "final",
}


def recorded_times(recording: TaskSpans, attempt: TaskAttempt) -> MapTimes | ReduceTimes:
    """Times of *attempt*, a map or a reduce, as *recording* recorded it."""
    if attempt.kind == "map":
        return recorded_map_times(recording, attempt)
    return recorded_reduce_times(recording, attempt)


def recorded_map_times(recording: TaskSpans, attempt: TaskAttempt) -> MapTimes:
    """Times of the map *attempt*, as *recording* recorded it."""
    record_loop, merges = recording.loop, recording.named("merge")
    loop_span = _first_span(recording, "map_loop")
    loop_end = loop_span.finish_s if loop_span else None
    merge_start = merges[0].start_s if merges else None
    spills = []
    for place, span in enumerate(recording.spans):
        if span.name != "spill":
            continue
        parts = [inner for inner in recording.spans if inner.parent == place]
        sort_s = sum(part.wall_s for part in parts if part.name == "sort")
        combine_s = sum(part.wall_s for part in parts if part.name == "combine")
        is_last = span.thread != "SpillThread"
        records, file_bytes, overlapped = span.amount, None, 0
        if len(span.details) == 5:
            records, file_bytes, _, overlapped, _ = span.details
        spills.append(
            SpillTimes(
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
        )
    return MapTimes(
        attempt_id=attempt.attempt_id,
        source="spans",
        host=attempt.host,
        records=record_loop.records,
        spills=tuple(spills),
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
        end_s=attempt.finish_s - merges[-1].finish_s if merges else None,
        cpu_s=_cpu_s(recording),
        sampled=_sampled_fields(record_loop, {"read_s": ("read_s",), "output_s": ("collect_s",)}),
    )


def recorded_reduce_times(recording: TaskSpans, attempt: TaskAttempt) -> ReduceTimes:
    """Times of the reduce *attempt*, as *recording* recorded it."""
    shuffle, reducer = _first_span(recording, "shuffle"), _first_span(recording, "run_reducer")
    record_loop, loop_span = recording.loop, _first_span(recording, "reduce_loop")
    waits = [_interval(span) for span in recording.named("wait_memory")]
    visits = [_interval(span) for span in recording.named("visit")]
    waited_s = None
    if shuffle:
        # After the last copy the shuffle waits for merges, which have their own spans.
        copying_end = max((finish_s for _, finish_s in visits), default=shuffle.finish_s)
        busy_s = covered_s(visits + waits, (shuffle.start_s, copying_end))
        waited_s = copying_end - shuffle.start_s - busy_s
    return ReduceTimes(
        attempt_id=attempt.attempt_id,
        source="spans",
        host=attempt.host,
        records=record_loop.records,
        segments=tuple(recorded_segments(recording)),
        merges=tuple(
            MergeTimes(
                _MERGES[span.name],
                span.start_s,
                span.finish_s,
                span.amount or None,
            )
            for span in recording.named(*_MERGES)
        ),
        start_up_s=shuffle.start_s - attempt.start_s if shuffle else None,
        shuffle_s=shuffle.wall_s if shuffle else None,
        waited_s=waited_s,
        stalled_s=covered_s(waits, _interval(shuffle)) if shuffle else None,
        read_s=record_loop.read_s,
        function_s=max(record_loop.function_s - record_loop.output_s, 0.0),
        write_s=record_loop.output_s + sum(span.wall_s for span in recording.named("writer_close")),
        loop_s=loop_span.wall_s if loop_span else None,
        commit_s=sum(span.wall_s for span in recording.named("commit")),
        end_s=attempt.finish_s - reducer.finish_s if reducer else None,
        cpu_s=_cpu_s(recording),
        sampled=_sampled_fields(
            record_loop, {"read_s": ("read_s", "function_s"), "output_s": ("function_s", "write_s")}
        ),
    )


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
        sent_bytes, raw_bytes, is_on_disk = span.amount, span.amount, 0
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


def _cpu_s(recording: TaskSpans) -> float | None:
    """CPU time of all threads, as far as spans show it."""
    known = [span.cpu_s for span in recording.spans if span.parent < 0 and span.cpu_s is not None]
    return sum(known) if known else None


def _sampled_fields(
    record_loop: RecordLoop, dependent: Mapping[str, tuple[str, ...]]
) -> tuple[str, ...]:
    """Names of the fields that rest on the loop's estimates, each once."""
    names = (name for estimate in record_loop.sampled for name in dependent.get(estimate, ()))
    return tuple(dict.fromkeys(names))
