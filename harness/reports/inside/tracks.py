"""
What each thread of a task did and when: pieces that follow one another.

Spans lie within one another, so they are painted: outer ones first, what is more exact over them.
"""

from __future__ import annotations

import heapq
import math
import re

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from harness.records.spans import Span, TaskSpans
from harness.records.task_times import MapTimes, ReduceTimes
from harness.records.trace import TaskAttempt

# So many fetchers have a track each; more share one.
_MOST_FETCHERS = 5
_MERGES = {"memory_merge": "merges in memory", "disk_merge": "merges on disk"}
_SPILL = {"spill": "spill_write", "sort": "spill_sort", "combine": "spill_combine",
          "spill_single": "spill_write"}  # fmt: skip
_COPY = {"visit": "connect", "segment": "copy"}


class Piece(NamedTuple):
    """*part* was under way from *start* to *end*, in seconds since the epoch."""

    start: float
    end: float
    part: str


class Track(NamedTuple):
    """What one thread (or one kind of thread) did; the first of a task is its main thread."""

    name: str
    pieces: list[Piece]


def tracks(
    attempt: TaskAttempt, told: MapTimes | ReduceTimes | None, recording: TaskSpans | None
) -> list[Track]:
    """
    Tracks of *attempt* from its *recording*, else from what its log *told*; else none.

    Those of an attempt that failed or was killed end with what was recorded last.
    """
    if recording is not None and recording.spans:
        main = _map_main if attempt.kind == "map" else _reduce_main
        layers = [*_before(attempt, recording), *main(attempt, recording)]
        return [Track("main thread", paint(layers)), *_others(recording)]
    if isinstance(told, MapTimes):
        return _map_told(attempt, told)
    if isinstance(told, ReduceTimes):
        return _reduce_told(attempt, told)
    return []


def paint(layers: Iterable[Piece]) -> list[Piece]:
    """
    Pieces side by side, of *layers* that may overlap: a later layer hides earlier ones.

    >>> [tuple(p) for p in paint([Piece(0, 9, "a"), Piece(2, 3, "b")])]
    [(0, 2, 'a'), (2, 3, 'b'), (3, 9, 'a')]
    """
    numbered = [(p.start, -n, p) for n, p in enumerate(layers) if p.end > p.start]
    edges = sorted({edge for _, _, p in numbered for edge in p[:2]})
    coming = sorted(numbered, reverse=True)
    heap: list[tuple[int, float, str]] = []
    found: list[Piece] = []
    for left, right in pairwise(edges):
        while coming and coming[-1][0] <= left:
            _, order, piece = coming.pop()
            heapq.heappush(heap, (order, piece.end, piece.part))
        while heap and heap[0][1] <= left:
            heapq.heappop(heap)
        if not heap:
            continue
        part = heap[0][2]
        if found and found[-1].part == part and found[-1].end == left:
            left = found.pop().start  # noqa: PLW2901 - the same piece goes on
        found.append(Piece(left, right, part))
    return found


def thinned(pieces: Sequence[Piece], step: float) -> list[Piece]:
    """
    At most about two pieces for each *step* seconds: short neighbours become one.

    It has the part that took most of its time.
    """
    found: list[Piece] = []
    small: list[Piece] = []
    for piece in pieces:
        if small and (
            piece.start - small[-1].end >= step or small[-1].end - small[0].start >= step
        ):
            found.append(_joined(small))
            small = []
        if piece.end - piece.start >= step:
            found += [_joined(small)] if small else []
            found.append(piece)
            small = []
        else:
            small.append(piece)
    return [*found, _joined(small)] if small else found


def _joined(small: Sequence[Piece]) -> Piece:
    took: dict[str, float] = {}
    for piece in small:
        took[piece.part] = took.get(piece.part, 0.0) + piece.end - piece.start
    return Piece(small[0].start, small[-1].end, max(took, key=lambda part: took[part]))


# Recorded tasks.


def _first(task: TaskSpans, *names: str) -> Span | None:
    return next(iter(task.named(*names)), None)


def _before(attempt: TaskAttempt, task: TaskSpans) -> Iterator[Piece]:
    main = task.spans[0].start_s
    born = min(max(task.process_start_s or attempt.start_s, attempt.start_s), main)
    yield Piece(attempt.start_s, born, "launch")
    yield Piece(born, main, "jvm")


def _map_main(attempt: TaskAttempt, task: TaskSpans) -> Iterator[Piece]:
    loop = _first(task, "map_loop")
    yield from _around(attempt, task, loop, loop)
    if loop is None:
        return
    yield Piece(loop.start_s, loop.finish_s, "map_loop")
    yield from _spans(task, {"flush": "wait_spill"})
    yield from _spans(task, {"blocked": "blocked", **_SPILL}, thread="main")
    # The merge combines, too; that is no spill.
    yield from _spans(task, {"merge": "merge", "commit": "commit"})


def _reduce_main(attempt: TaskAttempt, task: TaskSpans) -> Iterator[Piece]:
    shuffle, reducer = _first(task, "shuffle"), _first(task, "run_reducer")
    yield from _around(attempt, task, shuffle or reducer, reducer)
    if shuffle is not None:
        visits = task.named("visit")
        last = max((v.finish_s for v in visits), default=shuffle.finish_s)
        yield Piece(shuffle.start_s, shuffle.finish_s, "wait")
        yield from _spans(task, {"wait_memory": "stall"})
        yield from _spans(task, {"visit": "copy"})
        yield Piece(min(last, shuffle.finish_s), shuffle.finish_s, "last_merges")
    yield from _spans(
        task, {"run_reducer": "reduce_loop", "writer_close": "output", "commit": "commit"}
    )


def _around(
    attempt: TaskAttempt, task: TaskSpans, work: Span | None, last: Span | None
) -> Iterator[Piece]:
    """What lies before the first and behind the last piece of work."""
    end = max(s.finish_s for s in task.spans)
    yield Piece(task.spans[0].start_s, work.start_s if work else end, "init")
    if last is not None and not last.open:
        seen = attempt.finish_s if attempt.state == "succeeded" else end
        yield Piece(last.finish_s, max(seen, last.finish_s), "end")


def _spans(task: TaskSpans, parts: dict[str, str], thread: str = "") -> Iterator[Piece]:
    """Spans of the names in *parts*, outer ones first."""
    for span in task.named(*parts):
        if thread in ("", span.thread):
            yield Piece(span.start_s, span.finish_s, parts[span.name])


def _others(task: TaskSpans) -> Iterator[Track]:
    spills = [s for s in task.named(*_SPILL) if s.thread != "main"]
    if spills:
        yield Track("spill thread", _painted(spills, _SPILL))
    copies = task.named(*_COPY)
    fetchers = sorted({s.thread for s in copies}, key=_by_number)
    if len(fetchers) <= _MOST_FETCHERS:
        for number, fetcher in enumerate(fetchers, start=1):
            mine = [s for s in copies if s.thread == fetcher]
            yield Track(f"fetcher {number}", _painted(mine, _COPY))
    else:
        yield Track(f"{len(fetchers)} fetchers", _painted(copies, _COPY))
    for name, text in _MERGES.items():
        if found := task.named(name):
            yield Track(text, _painted(found, {name: name}))


def _painted(spans: Sequence[Span], parts: dict[str, str]) -> list[Piece]:
    """Inner spans over outer ones, whatever thread they are of."""
    order = list(parts)
    layers = sorted(spans, key=lambda s: order.index(s.name))
    return paint(Piece(s.start_s, s.finish_s, parts[s.name]) for s in layers)


def _by_number(thread: str) -> tuple[int, str]:
    digits = re.search(r"[0-9]{1,9}\Z", thread)
    return (int(digits[0]) if digits else 0), thread


# Tasks of which only logs tell.


def _chain(begin: float, *parts: tuple[float | None, str]) -> Iterator[Piece]:
    """One after the other, as far as their lengths are known."""
    for seconds, part in parts:
        if seconds is None:
            return
        yield Piece(begin, begin + seconds, part)
        begin += seconds


def _map_told(attempt: TaskAttempt, told: MapTimes) -> list[Track]:
    last = next((s for s in told.spills if s.last), None)
    flush = (told.merge_s or 0.0) + (told.end_s or 0.0) + (told.flush_s or 0.0)
    layers = []
    if told.start_up_s is not None and told.end_s is not None:
        loop_end = attempt.finish_s - flush
        layers = [
            *_chain(
                attempt.start_s,
                (told.start_up_s, "start"),
                (loop_end - attempt.start_s - told.start_up_s, "map_loop"),
                (told.flush_s, "wait_spill"),
                (told.merge_s, "merge"),
            ),
            Piece(attempt.finish_s - told.end_s, attempt.finish_s, "end"),
        ]
    if last is not None:
        layers.append(Piece(last.start_s, last.finish_s, "spill"))
    behind = [Piece(s.start_s, s.finish_s, "spill") for s in told.spills if not s.last]
    main = Track("main thread", paint(layers))
    return [main, *([Track("spill thread", paint(behind))] if behind else [])]


def _reduce_told(attempt: TaskAttempt, told: ReduceTimes) -> list[Track]:
    if told.start_up_s is None or told.shuffle_s is None or told.end_s is None:
        return []
    begin = attempt.start_s + told.start_up_s
    merged, done = begin + told.shuffle_s, attempt.finish_s - told.end_s
    last = max((s.finish_s for s in told.segments), default=merged)
    layers = [
        Piece(attempt.start_s, begin, "start"),
        Piece(begin, merged, "wait"),
        *(Piece(s.start_s, s.finish_s, "copy") for s in told.segments),
        Piece(min(last, merged), merged, "last_merges"),
        Piece(merged, done, "reduce_loop"),
        Piece(done, attempt.finish_s, "end"),
    ]
    found = [Track("main thread", paint(layers))]
    copies = [Piece(s.start_s, s.finish_s, "copy") for s in told.segments]
    if copies:
        found.append(Track("fetchers", paint(copies)))
    for name, text in _MERGES.items():
        mine = [
            Piece(m.start_s, m.finish_s, name) for m in told.merges if f"{m.kind}_merge" == name
        ]
        if mine:
            found.append(Track(text, paint(mine)))
    return found


def extent(found: Sequence[Track]) -> float:
    """Seconds from the first to the last moment of *found*."""
    moments = [edge for track in found for piece in track.pieces for edge in piece[:2]]
    return max(moments) - min(moments) if moments else math.nan
