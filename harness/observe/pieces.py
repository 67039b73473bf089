"""
What a task did and when: pieces that follow one another, of its main thread and of the others.

Spans lie within one another, so they are painted: outer ones first, what is more exact over them.
"""

from __future__ import annotations

import heapq

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, pairwise
from operator import attrgetter
from statistics import median
from typing import NamedTuple

from harness.base.records.tasks import (
    MapTimes,
    MergeTimes,
    ReduceTimes,
    SegmentTimes,
    Span,
    SpillTimes,
    TaskSpans,
)
from harness.base.records.trace import JobTrace, TaskAttempt

# A job of more attempts than this shows its slots by the history alone.
_MOST_DETAILED = 150
# Of a job that takes so many times as long as its tasks, their parts would be too small to be seen.
_LONGEST_JOB = 30
_SPILL = {
    "spill": "spill_write",
    "sort": "spill_sort",
    "combine": "spill_combine",
    "spill_single": "spill_write",
}
_BESIDE = {**_SPILL, "memory_merge": "memory_merge", "disk_merge": "disk_merge"}


class Piece(NamedTuple):
    """*part* was under way from *start* to *end*, in seconds since the epoch."""

    start: float
    end: float
    part: str

    def since(self, origin_s: float) -> tuple[float, float]:
        """Start and end in seconds since *origin_s*."""
        return self.start - origin_s, self.end - origin_s


class TaskPieces(NamedTuple):
    """What the main thread of a task did, and beside it the threads that spill and merge."""

    main: list[Piece]
    beside: list[Piece]


def is_detailed(traced_job: JobTrace) -> bool:
    """Whether the timeline of the job has room for the parts of every task, and could show them."""
    if not 0 < len(traced_job.attempts) <= _MOST_DETAILED:
        return False
    typical_s = median(attempt.duration_s for attempt in traced_job.attempts)
    return typical_s * _LONGEST_JOB >= traced_job.job_s


def recorded_pieces(attempt: TaskAttempt, recording: TaskSpans) -> TaskPieces:
    """
    Pieces of *attempt* from its *recording*, which has spans.

    Those of an attempt that failed or was killed end with what was recorded last.
    """
    outside_main = (span for span in recording.named(*_BESIDE) if span.thread != "main")
    beside = paint(_piece(span, _BESIDE[span.name]) for span in outside_main)
    return TaskPieces(paint(_main_layers(attempt, recording)), beside)


def logged_pieces(attempt: TaskAttempt, log_times: MapTimes | ReduceTimes) -> TaskPieces:
    """Pieces of *attempt*, of which there is only the log; none of a reduce with gaps in it."""
    if isinstance(log_times, MapTimes):
        return _logged_map(attempt, log_times)
    return _logged_reduce(attempt, log_times)


def paint(layers: Iterable[Piece]) -> list[Piece]:
    """
    Pieces side by side, of *layers* that may overlap: a later layer hides earlier ones.

    >>> [tuple(piece) for piece in paint([Piece(0, 9, "a"), Piece(2, 3, "b")])]
    [(0, 2, 'a'), (2, 3, 'b'), (3, 9, 'a')]
    """
    visible = [piece for piece in layers if piece.end > piece.start]
    edges = set(chain.from_iterable((piece.start, piece.end) for piece in visible))
    numbered = ((piece.start, -order, piece) for order, piece in enumerate(visible))
    coming = sorted(numbered, reverse=True)
    open_layers: list[tuple[int, float, str]] = []  # a heap, the latest layer on top
    painted: list[Piece] = []
    for left, right in pairwise(sorted(edges)):
        while coming and coming[-1][0] <= left:
            _, order, piece = coming.pop()
            heapq.heappush(open_layers, (order, piece.end, piece.part))
        while open_layers and open_layers[0][1] <= left:
            heapq.heappop(open_layers)
        if not open_layers:
            continue
        join_or_append(painted, Piece(left, right, open_layers[0][2]))
    return painted


def join_or_append(painted: list[Piece], piece: Piece) -> None:
    """Put *piece* behind those that are *painted*; where the last one's part goes on, into it."""
    if painted and painted[-1].part == piece.part and painted[-1].end == piece.start:
        piece = piece._replace(start=painted.pop().start)
    painted.append(piece)


def thinned(pieces: Sequence[Piece], step: float) -> list[Piece]:
    """
    At most about two pieces for each *step* seconds: short neighbours become one.

    It has the part that took most of its time.
    """
    kept: list[Piece] = []
    short: list[Piece] = []

    def join_short() -> None:
        if short:
            total_s = defaultdict[str, float](float)
            for short_piece in short:
                total_s[short_piece.part] += short_piece.end - short_piece.start
            part = max(total_s, key=lambda part: total_s[part])
            kept.append(Piece(short[0].start, short[-1].end, part))
            short.clear()

    for piece in pieces:
        if short and max(piece.start - short[-1].end, short[-1].end - short[0].start) >= step:
            join_short()
        if piece.end - piece.start >= step:
            join_short()
            kept.append(piece)
        else:
            short.append(piece)
    join_short()
    return kept


def _piece(timed: Span | SpillTimes | SegmentTimes | MergeTimes, part: str) -> Piece:
    return Piece(timed.start_s, timed.finish_s, part)


def _spans(task: TaskSpans, parts: dict[str, str], thread: str = "") -> Iterator[Piece]:
    """Spans of the names in *parts*, outer ones first."""
    for span in task.named(*parts):
        if thread in ("", span.thread):
            yield _piece(span, parts[span.name])


def _main_layers(attempt: TaskAttempt, task: TaskSpans) -> Iterator[Piece]:
    """What a recorded task's main thread did: outer pieces first, the more exact over them."""
    main_start = task.spans[0].start_s
    last_end = max(map(attrgetter("finish_s"), task.spans))
    first_span = {span.name: span for span in reversed(task.spans)}
    # Two clocks may contradict by some milliseconds.
    process_start = max(task.process_start_s or attempt.start_s, attempt.start_s)
    process_start = min(process_start, main_start)
    yield Piece(attempt.start_s, process_start, "launch")
    yield Piece(process_start, main_start, "jvm")
    shuffle = first_span.get("shuffle") if attempt.kind == "reduce" else None
    work_span = first_span.get("map_loop" if attempt.kind == "map" else "run_reducer")
    first = shuffle or work_span
    yield Piece(main_start, first.start_s if first else last_end, "init")
    if work_span is not None and not work_span.open:
        yield Piece(work_span.finish_s, max(seen_until(attempt, task), work_span.finish_s), "end")
    if attempt.kind == "reduce":
        yield from reduce_layers(task, shuffle)
    elif work_span is not None:
        yield _piece(work_span, "map_loop")
        yield from _spans(task, {"flush": "wait_spill"})
        yield from _spans(task, {"blocked": "blocked", **_SPILL}, thread="main")
        # The merge combines, too; that is not a spill.
        yield from _spans(task, {"merge": "merge", "commit": "commit"})


def seen_until(attempt: TaskAttempt, task: TaskSpans) -> float:
    """When an attempt was over; of one that did not end well, when its last span was."""
    if attempt.state == "succeeded":
        return attempt.finish_s
    return max(span.finish_s for span in task.spans)


def reduce_layers(task: TaskSpans, shuffle: Span | None) -> Iterator[Piece]:
    """Copies and waiting within the shuffle, then what reads, reduces and writes."""
    if shuffle is not None:
        visits = [span.finish_s for span in task.named("visit")]
        last_copy = min(max(visits, default=shuffle.finish_s), shuffle.finish_s)
        yield _piece(shuffle, "wait")
        yield from _spans(task, {"wait_memory": "stall"})
        yield from _spans(task, {"visit": "copy"})
        yield Piece(last_copy, shuffle.finish_s, "last_merges")
    reduce_parts = {"run_reducer": "reduce_loop", "writer_close": "output", "commit": "commit"}
    yield from _spans(task, reduce_parts)


def _logged_map(attempt: TaskAttempt, log_times: MapTimes) -> TaskPieces:
    layers = [*logged_loop(attempt, log_times)]
    layers += [_piece(spill, "spill") for spill in log_times.spills if spill.last]
    beside = (_piece(spill, "spill") for spill in log_times.spills if not spill.last)
    return TaskPieces(paint(layers), paint(beside))


def logged_loop(attempt: TaskAttempt, log_times: MapTimes) -> Iterator[Piece]:
    """From the start of a map to its end, as far as its log gives the lengths of the parts."""
    if log_times.start_up_s is None or log_times.end_s is None:
        return
    tail_s = (log_times.merge_s or 0.0) + log_times.end_s + (log_times.flush_s or 0.0)
    loop_start = attempt.start_s + log_times.start_up_s
    reached = attempt.finish_s - tail_s
    yield Piece(attempt.start_s, loop_start, "start")
    yield Piece(loop_start, reached, "map_loop")
    for length_s, part in ((log_times.flush_s, "wait_spill"), (log_times.merge_s, "merge")):
        if length_s is None:  # what follows has no known place
            break
        yield Piece(reached, reached + length_s, part)
        reached += length_s
    yield Piece(attempt.finish_s - log_times.end_s, attempt.finish_s, "end")


def _logged_reduce(attempt: TaskAttempt, log_times: ReduceTimes) -> TaskPieces:
    if log_times.start_up_s is None or log_times.shuffle_s is None or log_times.end_s is None:
        return TaskPieces([], [])
    start = attempt.start_s + log_times.start_up_s
    merged = start + log_times.shuffle_s
    done = attempt.finish_s - log_times.end_s
    last_copy = max((segment.finish_s for segment in log_times.segments), default=merged)
    layers = [
        Piece(attempt.start_s, start, "start"),
        Piece(start, merged, "wait"),
        *(_piece(segment, "copy") for segment in log_times.segments),
        Piece(min(last_copy, merged), merged, "last_merges"),
        Piece(merged, done, "reduce_loop"),
        Piece(done, attempt.finish_s, "end"),
    ]
    merges = (merge for merge in log_times.merges if merge.kind != "final")
    beside = (_piece(merge, f"{merge.kind}_merge") for merge in merges)
    return TaskPieces(paint(layers), paint(beside))
