"""
What the tracer recorded, brought to the shape that logs give too.

The main thread's time is cut at the begins and ends of its spans, so nothing of a task is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from harness.records.spans import RecordLoop, Span, TaskSpans
from harness.records.task_times import MapTimes, MergeTimes, ReduceTimes, SegmentTimes, SpillTimes
from harness.records.trace import TaskAttempt

Interval = tuple[float, float]


def map_inside(task: TaskSpans, attempt: TaskAttempt) -> MapTimes:
    """Say what happened inside the map *attempt*, as *task* recorded it."""
    loop, middle, merge = task.loop, _first(task, "map_loop"), task.named("merge")
    loop_end = middle.finish_s if middle else None
    merge_start = merge[0].start_s if merge else None
    return MapTimes(
        attempt_id=attempt.attempt_id,
        source="spans",
        host=attempt.host,
        records=loop.records,
        spills=tuple(_spill(task, place) for place in _places(task, "spill")),
        start_up_s=middle.start_s - attempt.start_s if middle else None,
        alone_s=loop.function_s + loop.read_s - loop.spilling_read_s,
        alone_records=loop.records - loop.overlapped,
        spilling_s=loop.spilling_s + loop.spilling_read_s,
        spilling_records=loop.overlapped,
        loop_s=middle.wall_s if middle else None,
        read_s=loop.read_s,
        collect_s=loop.output_s if loop.outputs else None,
        blocked_s=loop.blocked_s,
        flush_s=merge_start - loop_end if merge_start and loop_end else None,
        merge_s=sum(span.wall_s for span in merge) if merge else None,
        end_s=attempt.finish_s - merge[-1].finish_s if merge else None,
        cpu_s=_cpu_s(task),
        sampled=_sampled(loop, {"read_s": ("read_s",), "output_s": ("collect_s",)}),
    )


def reduce_inside(task: TaskSpans, attempt: TaskAttempt) -> ReduceTimes:
    """Say what happened inside the reduce *attempt*, as *task* recorded it."""
    shuffle, reducer = _first(task, "shuffle"), _first(task, "run_reducer")
    loop = _first(task, "reduce_loop")
    waits = [_interval(span) for span in task.named("wait_memory")]
    visits = [_interval(span) for span in task.named("visit")]
    # After the last copy the shuffle waits for merges, which have their own spans.
    copying = shuffle and (shuffle.start_s, max((v[1] for v in visits), default=shuffle.finish_s))
    return ReduceTimes(
        attempt_id=attempt.attempt_id,
        source="spans",
        host=attempt.host,
        records=task.loop.records,
        segments=tuple(segments(task)),
        merges=tuple(_merge(span) for span in task.named(*_MERGES)),
        start_up_s=shuffle.start_s - attempt.start_s if shuffle else None,
        shuffle_s=shuffle.wall_s if shuffle else None,
        waited_s=_length(copying) - covered(visits + waits, copying) if copying else None,
        stalled_s=covered(waits, _interval(shuffle)) if shuffle else None,
        read_s=task.loop.read_s,
        function_s=_function_s(task.loop),
        write_s=task.loop.output_s + sum(s.wall_s for s in task.named("writer_close")),
        loop_s=loop.wall_s if loop else None,
        commit_s=sum(span.wall_s for span in task.named("commit")),
        end_s=attempt.finish_s - reducer.finish_s if reducer else None,
        cpu_s=_cpu_s(task),
        sampled=_sampled(
            task.loop, {"read_s": ("read_s", "function_s"), "output_s": ("function_s", "write_s")}
        ),
    )


def _sampled(loop: RecordLoop, told: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Names of what rests on the loop's estimates, each once."""
    return tuple(dict.fromkeys(n for name in loop.sampled for n in told.get(name, ())))


def covered(intervals: Iterable[Interval], within: Interval) -> float:
    """Seconds of *within* that one or more of *intervals* cover."""
    total, reached = 0.0, within[0]
    for start, finish in sorted(intervals):
        begin, end = max(start, reached), min(finish, within[1])
        if end > begin:
            total, reached = total + end - begin, end
    return total


_MERGES: dict[str, Literal["memory", "disk", "final"]] = {
    "memory_merge": "memory",
    "disk_merge": "disk",
    "final_merge": "final",
}


def _first(task: TaskSpans, name: str) -> Span | None:
    return next(iter(task.named(name)), None)


def _places(task: TaskSpans, name: str) -> Sequence[int]:
    return [place for place, span in enumerate(task.spans) if span.name == name]


def _interval(span: Span) -> Interval:
    return span.start_s, span.finish_s


def _length(interval: Interval) -> float:
    return interval[1] - interval[0]


def _spill(task: TaskSpans, place: int) -> SpillTimes:
    span = task.spans[place]
    parts = [inner for inner in task.spans if inner.parent == place]
    sort_s = sum(inner.wall_s for inner in parts if inner.name == "sort")
    combine_s = sum(inner.wall_s for inner in parts if inner.name == "combine")
    untold = span.amount, None, 0, None, 0
    records, file_bytes, _, overlapped, _ = span.details if len(span.details) == 5 else untold
    return SpillTimes(
        start_s=span.start_s,
        finish_s=span.finish_s,
        last=span.thread != "SpillThread",
        records=records,
        file_bytes=file_bytes,
        overlapped=overlapped if span.thread == "SpillThread" else 0,
        sort_s=sort_s,
        combine_s=combine_s,
        write_s=max(span.wall_s - sort_s - combine_s, 0.0),
    )


def segments(task: TaskSpans) -> Iterable[SegmentTimes]:
    """Every map output that the reduce *task* copied."""
    connects = {span.parent: span.wall_s for span in task.named("connect")}
    for place in _places(task, "segment"):
        span = task.spans[place]
        visit = _around(task, place, "visit")
        untold = span.amount, span.amount, 0
        sent, raw, disk = span.details[:3] if len(span.details) > 2 else untold
        yield SegmentTimes(
            map_attempt=span.text,
            host=_host(task.spans[visit].text) if visit >= 0 else "",
            sent_bytes=sent,
            raw_bytes=raw,
            to="disk" if disk else "memory",
            start_s=span.start_s,
            finish_s=span.finish_s,
            # A visit connects once, for all that it brings.
            connect_s=connects.pop(visit, 0.0),
        )


def _host(address: str) -> str:
    """Without its port."""
    return address.rpartition(":")[0] or address


def _around(task: TaskSpans, place: int, name: str) -> int:
    """Place of the span *name* around the one at *place*, -1 where there is none."""
    while place >= 0 and task.spans[place].name != name:
        place = task.spans[place].parent
    return place


def _merge(span: Span) -> MergeTimes:
    return MergeTimes(
        kind=_MERGES[span.name],
        start_s=span.start_s,
        finish_s=span.finish_s,
        segments=span.amount or None,
    )


def _function_s(loop: RecordLoop) -> float:
    return max(loop.function_s - loop.output_s, 0.0)


def _cpu_s(task: TaskSpans) -> float | None:
    """CPU time of all threads, as far as spans tell."""
    told = [span.cpu_s for span in task.spans if span.parent < 0 and span.cpu_s is not None]
    return sum(told) if told else None
