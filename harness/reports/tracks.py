"""
What each thread of a task did and when: pieces that follow one another.

Spans lie within one another, so they are painted: outer ones first, what is more exact over them.
Which tasks are drawn is decided here, too: a page has room for some.
"""

from __future__ import annotations

import heapq
import re

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from harness.records.spans import Span, TaskSpans
from harness.records.task_times import MapTimes, ReduceTimes
from harness.records.trace import AttemptState, JobTrace, TaskAttempt
from harness.reports.task_parts import KINDS, PARTS

# What people call the parts where they are drawn over time: a loop is one piece, whatever is known
# of what is in it.
DRAWN: dict[str, str] = {
    **PARTS,
    "map_loop": "record loop",
    "wait": "nothing to copy, or no memory for it",
    "reduce_loop": "reduce loop",
    "output": "closing the output",
}
# A job of more attempts than this shows its slots by the history alone, and a few tasks in detail.
_MOST_DETAILED = 150
# Of a job that takes so many times as long as its tasks, their parts would be too small to be seen.
_LONGEST_JOB = 30
# So many fetchers have a track each; more share one.
_MOST_FETCHERS = 5
_ENDED: dict[AttemptState, str] = {"failed": "failed", "killed": "was killed"}
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


def typical_attempts(job: JobTrace) -> Iterator[tuple[str, TaskAttempt]]:
    """Of each kind the attempt that took the median time and the slowest, with what it is."""
    for kind in KINDS:
        ordered = sorted(job.succeeded(kind), key=lambda each: (each.duration_s, each.attempt_id))
        if not ordered:
            continue
        middle = ordered[(len(ordered) - 1) // 2]
        if len(ordered) == 1:
            yield f"the only {kind}", middle
            continue
        yield f"the median of {len(ordered)} {kind}s", middle
        if ordered[-1] is not middle:
            yield f"the slowest {kind}", ordered[-1]


def unfinished_attempts(job: JobTrace) -> Iterator[tuple[str, list[TaskAttempt]]]:
    """Of each kind the attempts that failed and those that were killed, the earliest first."""
    for kind in KINDS:
        for state, text in _ENDED.items():
            chosen = [each for each in job.attempts if (each.kind, each.state) == (kind, state)]
            if chosen:
                chosen.sort(key=lambda attempt: (attempt.start_s, attempt.attempt_id))
                yield f"a {kind} that {text}", chosen


def is_detailed(job: JobTrace) -> bool:
    """Whether the timeline of *job* has room for the parts of every task, and could show them."""
    if not 0 < len(job.attempts) <= _MOST_DETAILED:
        return False
    typical_s = median(attempt.duration_s for attempt in job.attempts)
    return typical_s * _LONGEST_JOB >= job.job_s


def drawn_attempts(job: JobTrace) -> frozenset[str]:
    """Ids of the attempts whose parts are drawn."""
    if is_detailed(job):
        return frozenset(attempt.attempt_id for attempt in job.attempts)
    shown = [attempt for _, attempt in typical_attempts(job)]
    shown += [first for _, (first, *_) in unfinished_attempts(job)]
    return frozenset(attempt.attempt_id for attempt in shown)


def tracks(
    attempt: TaskAttempt, log_times: MapTimes | ReduceTimes | None, recording: TaskSpans | None
) -> list[Track]:
    """
    Tracks of *attempt* from its *recording*, else from the *log_times* in its log; else none.

    Those of an attempt that failed or was killed end with what was recorded last.
    """
    if recording is not None and recording.spans:
        main = Track("main thread", paint(_main_layers(attempt, recording)))
        return [main, *_other_tracks(recording)]
    return [] if log_times is None else _log_tracks(attempt, log_times)


def paint(layers: Iterable[Piece]) -> list[Piece]:
    """
    Pieces side by side, of *layers* that may overlap: a later layer hides earlier ones.

    >>> [tuple(piece) for piece in paint([Piece(0, 9, "a"), Piece(2, 3, "b")])]
    [(0, 2, 'a'), (2, 3, 'b'), (3, 9, 'a')]
    """
    numbered = [(p.start, -order, p) for order, p in enumerate(layers) if p.end > p.start]
    edges = sorted({edge for _, _, piece in numbered for edge in piece[:2]})
    coming = sorted(numbered, reverse=True)
    open_layers: list[tuple[int, float, str]] = []  # a heap, the latest layer on top
    painted: list[Piece] = []
    for left, right in pairwise(edges):
        while coming and coming[-1][0] <= left:
            _, order, piece = coming.pop()
            heapq.heappush(open_layers, (order, piece.end, piece.part))
        while open_layers and open_layers[0][1] <= left:
            heapq.heappop(open_layers)
        if not open_layers:
            continue
        part = open_layers[0][2]
        if painted and painted[-1].part == part and painted[-1].end == left:
            left = painted.pop().start  # noqa: PLW2901 - the same piece goes on
        painted.append(Piece(left, right, part))
    return painted


def thinned(pieces: Sequence[Piece], step: float) -> list[Piece]:
    """
    At most about two pieces for each *step* seconds: short neighbours become one.

    It has the part that took most of its time.
    """
    kept: list[Piece] = []
    short_pieces: list[Piece] = []

    def join_small() -> None:
        if short_pieces:
            took_s: dict[str, float] = {}
            for each in short_pieces:
                took_s[each.part] = took_s.get(each.part, 0.0) + each.end - each.start
            kept.append(
                Piece(
                    short_pieces[0].start,
                    short_pieces[-1].end,
                    max(took_s, key=lambda p: took_s[p]),
                )
            )
            short_pieces.clear()

    for piece in pieces:
        if short_pieces and (
            piece.start - short_pieces[-1].end >= step
            or short_pieces[-1].end - short_pieces[0].start >= step
        ):
            join_small()
        if piece.end - piece.start >= step:
            join_small()
            kept.append(piece)
        else:
            short_pieces.append(piece)
    join_small()
    return kept


def _spans(task: TaskSpans, parts: dict[str, str], thread: str = "") -> Iterator[Piece]:
    """Spans of the names in *parts*, outer ones first."""
    for span in task.named(*parts):
        if thread in ("", span.thread):
            yield Piece(span.start_s, span.finish_s, parts[span.name])


def _main_layers(attempt: TaskAttempt, task: TaskSpans) -> Iterator[Piece]:
    """What a recorded task's main thread did: outer pieces first, the more exact over them."""
    main_start, last_end = task.spans[0].start_s, max(span.finish_s for span in task.spans)
    first_span = {span.name: span for span in reversed(task.spans)}
    process_start = min(
        max(task.process_start_s or attempt.start_s, attempt.start_s), main_start
    )  # two clocks may contradict by some milliseconds
    yield Piece(attempt.start_s, process_start, "launch")
    yield Piece(process_start, main_start, "jvm")
    shuffle = first_span.get("shuffle") if attempt.kind == "reduce" else None
    work_span = first_span.get("map_loop" if attempt.kind == "map" else "run_reducer")
    first = shuffle or work_span
    yield Piece(main_start, first.start_s if first else last_end, "init")
    if work_span is not None and not work_span.open:
        seen = attempt.finish_s if attempt.state == "succeeded" else last_end
        yield Piece(work_span.finish_s, max(seen, work_span.finish_s), "end")
    if attempt.kind == "map" and work_span is not None:
        yield Piece(work_span.start_s, work_span.finish_s, "map_loop")
        yield from _spans(task, {"flush": "wait_spill"})
        yield from _spans(task, {"blocked": "blocked", **_SPILL}, thread="main")
        # The merge combines, too; that is not a spill.
        yield from _spans(task, {"merge": "merge", "commit": "commit"})
    if attempt.kind == "reduce":
        if shuffle is not None:
            visits = [span.finish_s for span in task.named("visit")]
            last_copy = min(max(visits, default=shuffle.finish_s), shuffle.finish_s)
            yield Piece(shuffle.start_s, shuffle.finish_s, "wait")
            yield from _spans(task, {"wait_memory": "stall"})
            yield from _spans(task, {"visit": "copy"})
            yield Piece(last_copy, shuffle.finish_s, "last_merges")
        yield from _spans(
            task, {"run_reducer": "reduce_loop", "writer_close": "output", "commit": "commit"}
        )


def _other_tracks(task: TaskSpans) -> Iterator[Track]:
    """Threads beside the main one, inner spans painted over outer ones."""

    def track(name: str, spans: Sequence[Span], parts: dict[str, str]) -> Track:
        order = list(parts)
        layers = sorted(spans, key=lambda span: order.index(span.name))
        return Track(
            name,
            paint(
                Piece(each_span.start_s, each_span.finish_s, parts[each_span.name])
                for each_span in layers
            ),
        )

    def by_number(thread: str) -> tuple[int, str]:
        digits = re.search(r"[0-9]{1,9}\Z", thread)
        return (int(digits[0]) if digits else 0), thread

    spills = [span for span in task.named(*_SPILL) if span.thread != "main"]
    if spills:
        yield track("spill thread", spills, _SPILL)
    copies = task.named(*_COPY)
    fetchers = sorted({span.thread for span in copies}, key=by_number)
    if len(fetchers) <= _MOST_FETCHERS:
        for number, fetcher in enumerate(fetchers, start=1):
            own = [span for span in copies if span.thread == fetcher]
            yield track(f"fetcher {number}", own, _COPY)
    else:
        yield track(f"{len(fetchers)} fetchers", copies, _COPY)
    for name, text in _MERGES.items():
        if merges := task.named(name):
            yield track(text, merges, {name: name})


def _log_tracks(attempt: TaskAttempt, log_times: MapTimes | ReduceTimes) -> list[Track]:
    """Tracks of a task of which there is only the log."""
    if isinstance(log_times, MapTimes):
        layers = []
        if log_times.start_up_s is not None and log_times.end_s is not None:
            tail_s = (log_times.merge_s or 0.0) + log_times.end_s + (log_times.flush_s or 0.0)
            loop_start, reached = attempt.start_s + log_times.start_up_s, attempt.finish_s - tail_s
            layers = [
                Piece(attempt.start_s, loop_start, "start"),
                Piece(loop_start, reached, "map_loop"),
            ]
            for length_s, part in ((log_times.flush_s, "wait_spill"), (log_times.merge_s, "merge")):
                if length_s is None:  # what follows has no known place
                    break
                layers.append(Piece(reached, reached + length_s, part))
                reached += length_s
            layers.append(Piece(attempt.finish_s - log_times.end_s, attempt.finish_s, "end"))
        layers += [
            Piece(spill.start_s, spill.finish_s, "spill")
            for spill in log_times.spills
            if spill.last
        ]
        beside = [
            Piece(spill.start_s, spill.finish_s, "spill")
            for spill in log_times.spills
            if not spill.last
        ]
        main = Track("main thread", paint(layers))
        return [main, *([Track("spill thread", paint(beside))] if beside else [])]
    if log_times.start_up_s is None or log_times.shuffle_s is None or log_times.end_s is None:
        return []
    start = attempt.start_s + log_times.start_up_s
    merged, done = start + log_times.shuffle_s, attempt.finish_s - log_times.end_s
    last_copy = max((segment.finish_s for segment in log_times.segments), default=merged)
    copies = [Piece(segment.start_s, segment.finish_s, "copy") for segment in log_times.segments]
    layers = [
        Piece(attempt.start_s, start, "start"),
        Piece(start, merged, "wait"),
        *copies,
        Piece(min(last_copy, merged), merged, "last_merges"),
        Piece(merged, done, "reduce_loop"),
        Piece(done, attempt.finish_s, "end"),
    ]
    made = [Track("main thread", paint(layers))]
    made += [Track("fetchers", paint(copies))] if copies else []
    for name, text in _MERGES.items():
        merges = [
            Piece(merge.start_s, merge.finish_s, name)
            for merge in log_times.merges
            if f"{merge.kind}_merge" == name
        ]
        made += [Track(text, paint(merges))] if merges else []
    return made
