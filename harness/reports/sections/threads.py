"""
What each thread of a task did and when: pieces that follow one another.

Spans lie within one another, so they are painted: outer ones first, what is more exact over them.
Which tasks are drawn is decided here, too: a page has room for some.
"""

from __future__ import annotations

import heapq
import re

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from harness.records.tasks import (
    MapTimes,
    MergeTimes,
    ReduceTimes,
    SegmentTimes,
    Span,
    SpillTimes,
    TaskSpans,
)
from harness.records.trace import AttemptState, JobTrace, TaskAttempt
from harness.reports.data import JobTaskTimes, ReportData
from harness.reports.document import Figure, Figures, Section, table
from harness.reports.drawing import WIDE, Canvas, time_axis
from harness.reports.sections.task_times import KINDS, PARTS
from harness.reports.wording import listing, number, one_line, seconds

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
_MOST_FETCHERS = 5  # with a track each; more share one
_STEPS = 600  # pieces narrower than this part of the axis become one with their neighbours
_ENDED: dict[AttemptState, str] = {"failed": "failed", "killed": "was killed"}
_MERGES = {"memory_merge": "merges in memory", "disk_merge": "merges on disk"}
_SPILL = {"spill": "spill_write", "sort": "spill_sort", "combine": "spill_combine",
          "spill_single": "spill_write"}  # fmt: skip
_COPY = {"visit": "connect", "segment": "copy"}
_SOURCES = {"spans": "recorded by the tracer", "logs": "as the tasks' own logs show"}


class Piece(NamedTuple):
    """*part* was under way from *start* to *end*, in seconds since the epoch."""

    start: float
    end: float
    part: str

    def since(self, origin_s: float) -> tuple[float, float]:
        """Start and end in seconds since *origin_s*."""
        return self.start - origin_s, self.end - origin_s


class Track(NamedTuple):
    """What one thread (or one kind of thread) did; the first of a task is its main thread."""

    name: str
    pieces: list[Piece]


class ShownTask(NamedTuple):
    """A task with its tracks, and why it is shown."""

    why: str
    attempt: TaskAttempt
    tracks: Sequence[Track]


def section(results: ReportData) -> Section:
    """One figure for each timeline's job of which anything is known."""
    figures = [
        threads_figure(place, workload, traced_job, known_times)
        for place, ((_, traced_job), (workload, known_times)) in enumerate(
            zip(results.timelines, results.timeline_task_times, strict=True)
        )
    ]
    shown = Figures([figure for figure in figures if figure])
    return Section("threads", "Threads of tasks", [shown])


def shown_tasks(traced_job: JobTrace, known_times: JobTaskTimes) -> list[ShownTask]:
    """The median and the slowest task of each kind, and the first that failed or was killed."""
    chosen = list(typical_attempts(traced_job))
    for why, attempts in unfinished_attempts(traced_job):
        recorded = [each for each in attempts if each.attempt_id in known_times.recordings]
        chosen += [(why, attempt) for attempt in recorded[:1]]
    shown = []
    for why, attempt in chosen:
        name = attempt.attempt_id
        log_times, recording = known_times.from_logs.get(name), known_times.recordings.get(name)
        if of_attempt := tracks(attempt, log_times, recording):
            shown.append(ShownTask(why, attempt, of_attempt))
    return shown


def threads_figure(
    place: int, workload: str, traced_job: JobTrace, known_times: JobTaskTimes
) -> Figure | None:
    """Threads of the tasks of one job that are shown; `None` without any."""
    shown = shown_tasks(traced_job, known_times)
    if not shown:
        return None
    heights = [0.62 + 0.27 * len(task.tracks) for task in shown]

    def draw(canvas: Canvas) -> None:
        _draw_tasks(canvas, shown, heights)

    rows, parts = [], set[str]()
    for _, attempt, of_attempt in shown:
        for track in of_attempt:
            total_s = sums(track.pieces)
            pieces = Counter(piece.part for piece in track.pieces)
            parts |= total_s.keys()
            rows += [
                (attempt.attempt_id, track.name, DRAWN[part], str(pieces[part]), number(part_s))
                for part, part_s in total_s.items()
            ]
    sources = dict.fromkeys(
        _SOURCES["spans" if task.attempt.attempt_id in known_times.recordings else "logs"]
        for task in shown
    )
    caption = (
        f"{workload}: what the threads of a task did and when, {listing(list(sources))}. Rows of"
        " one task run at the same time: a spill below the record loop overlaps it"
    )
    if "blocked" in parts:
        caption += (
            ", and where the loop turns to \u201cblocked\u201d it stands still until the spill"
            " has made room"
        )
    caption += "."
    columns = ("Attempt", "Thread", "What", "Pieces", "Seconds")
    what = f"{workload}: what the threads of these tasks did"
    data = table(what, columns, "cllrr", rows, folded=True)
    title, height = f"{workload}: threads of tasks over time", 0.75 + sum(heights)
    return Figure(f"threads{place}", title, WIDE, height, caption, data, draw)


def sums(pieces: Iterable[Piece]) -> dict[str, float]:
    """Seconds of each part of *pieces*."""
    total_s: dict[str, float] = {}
    for piece in pieces:
        total_s[piece.part] = total_s.get(piece.part, 0.0) + piece.end - piece.start
    return total_s


def _draw_tasks(canvas: Canvas, shown: Sequence[ShownTask], heights: Sequence[float]) -> None:
    """Draw a panel for each task, and in it a row for each of its threads."""
    panels = canvas.figure.subplots(len(shown), 1, squeeze=False, height_ratios=heights)
    longest_s: dict[str, float] = {}  # tasks of one kind have one scale
    for _, attempt, of_attempt in shown:
        took_s = max(track.pieces[-1].end for track in of_attempt if track.pieces)
        took_s -= attempt.start_s
        longest_s[attempt.kind] = max(took_s, longest_s.get(attempt.kind, 0.0))
    for thread_axes, (why, attempt, of_attempt) in zip(panels.flat, shown, strict=True):
        scale_s = longest_s[attempt.kind]
        for row, track in enumerate(of_attempt):
            for piece in thinned(track.pieces, scale_s / _STEPS):
                start_s, end_s = piece.since(attempt.start_s)
                tooltip = f"{track.name}: {DRAWN[piece.part]} {seconds(end_s - start_s)}"
                canvas.bar(thread_axes, row, (start_s, end_s), piece.part, height=0.8, edge=0.3,
                           tooltip=f"{tooltip}, from {seconds(start_s)}")  # fmt: skip
        thread_axes.set_yticks(range(len(of_attempt)), [track.name for track in of_attempt])
        thread_axes.set_ylim(len(of_attempt) - 0.4, -0.6)
        time_axis(thread_axes, scale_s)
        where = f"{one_line(attempt.attempt_id, 44)} on {one_line(attempt.host, 24)}"
        title = f"{why}: {where}, {seconds(attempt.duration_s, 0.05)}"
        thread_axes.set_title(one_line(title, int(11 * canvas.figure.get_figwidth())), fontsize=8.5)
    panels[-1, 0].set_xlabel("seconds since the task was launched")
    canvas.texture_legend(DRAWN, columns=4)


def typical_attempts(traced_job: JobTrace) -> Iterator[tuple[str, TaskAttempt]]:
    """Of each kind the attempt that took the median time and the slowest, with what it is."""
    for kind in KINDS:
        ordered = [*traced_job.succeeded(kind)]
        ordered.sort(key=lambda attempt: (attempt.duration_s, attempt.attempt_id))
        if len(ordered) == 1:
            yield f"the only {kind}", ordered[0]
        elif ordered:
            middle = ordered[(len(ordered) - 1) // 2]
            yield f"the median of {len(ordered)} {kind}s", middle
            if ordered[-1] is not middle:
                yield f"the slowest {kind}", ordered[-1]


def unfinished_attempts(traced_job: JobTrace) -> Iterator[tuple[str, list[TaskAttempt]]]:
    """Of each kind the attempts that failed and those that were killed, the earliest first."""
    for kind in KINDS:
        for state, text in _ENDED.items():
            of_kind = (attempt for attempt in traced_job.attempts if attempt.kind == kind)
            if chosen := [attempt for attempt in of_kind if attempt.state == state]:
                chosen.sort(key=lambda attempt: (attempt.start_s, attempt.attempt_id))
                yield f"a {kind} that {text}", chosen


def is_detailed(traced_job: JobTrace) -> bool:
    """Whether the timeline of *job* has room for the parts of every task, and could show them."""
    if not 0 < len(traced_job.attempts) <= _MOST_DETAILED:
        return False
    typical_s = median(attempt.duration_s for attempt in traced_job.attempts)
    return typical_s * _LONGEST_JOB >= traced_job.job_s


def drawn_attempts(traced_job: JobTrace) -> frozenset[str]:
    """Ids of the attempts whose parts are drawn."""
    shown = list(traced_job.attempts)
    if not is_detailed(traced_job):
        shown = [attempt for _, attempt in typical_attempts(traced_job)]
        shown += [first for _, (first, *_) in unfinished_attempts(traced_job)]
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
    short: list[Piece] = []

    def join_short() -> None:
        if short:
            total_s = sums(short)
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
        yield _piece(work_span, "map_loop")
        yield from _spans(task, {"flush": "wait_spill"})
        yield from _spans(task, {"blocked": "blocked", **_SPILL}, thread="main")
        # The merge combines, too; that is not a spill.
        yield from _spans(task, {"merge": "merge", "commit": "commit"})
    if attempt.kind == "reduce":
        if shuffle is not None:
            visits = [span.finish_s for span in task.named("visit")]
            last_copy = min(max(visits, default=shuffle.finish_s), shuffle.finish_s)
            yield _piece(shuffle, "wait")
            yield from _spans(task, {"wait_memory": "stall"})
            yield from _spans(task, {"visit": "copy"})
            yield Piece(last_copy, shuffle.finish_s, "last_merges")
        reduce_parts = {"run_reducer": "reduce_loop", "writer_close": "output", "commit": "commit"}
        yield from _spans(task, reduce_parts)


def _other_tracks(task: TaskSpans) -> Iterator[Track]:
    """Threads beside the main one, inner spans painted over outer ones."""

    def track(name: str, spans: Iterable[Span], parts: dict[str, str]) -> Track:
        layers = sorted(spans, key=lambda span: list(parts).index(span.name))
        return Track(name, paint(_piece(span, parts[span.name]) for span in layers))

    def by_number(thread: str) -> tuple[int, str]:
        digits = re.search(r"[0-9]{1,9}\Z", thread)
        return (int(digits[0]) if digits else 0), thread

    if spills := [span for span in task.named(*_SPILL) if span.thread != "main"]:
        yield track("spill thread", spills, _SPILL)
    copies = task.named(*_COPY)
    fetchers = sorted({span.thread for span in copies}, key=by_number)
    if len(fetchers) <= _MOST_FETCHERS:
        for place, fetcher in enumerate(fetchers, start=1):
            own = (span for span in copies if span.thread == fetcher)
            yield track(f"fetcher {place}", own, _COPY)
    else:
        yield track(f"{len(fetchers)} fetchers", copies, _COPY)
    for name, text in _MERGES.items():
        if merges := task.named(name):
            yield track(text, merges, {name: name})


def _log_tracks(attempt: TaskAttempt, log_times: MapTimes | ReduceTimes) -> list[Track]:
    """Tracks of a task of which there is only the log."""
    beside: dict[str, list[Piece]] = {}
    if isinstance(log_times, MapTimes):
        layers = []
        if log_times.start_up_s is not None and log_times.end_s is not None:
            tail_s = (log_times.merge_s or 0.0) + log_times.end_s + (log_times.flush_s or 0.0)
            loop_start, reached = attempt.start_s + log_times.start_up_s, attempt.finish_s - tail_s
            layers.append(Piece(attempt.start_s, loop_start, "start"))
            layers.append(Piece(loop_start, reached, "map_loop"))
            for length_s, part in ((log_times.flush_s, "wait_spill"), (log_times.merge_s, "merge")):
                if length_s is None:  # what follows has no known place
                    break
                layers.append(Piece(reached, reached + length_s, part))
                reached += length_s
            layers.append(Piece(attempt.finish_s - log_times.end_s, attempt.finish_s, "end"))
        layers += [_piece(spill, "spill") for spill in log_times.spills if spill.last]
        spills = [_piece(spill, "spill") for spill in log_times.spills if not spill.last]
        beside["spill thread"] = spills
    else:
        if log_times.start_up_s is None or log_times.shuffle_s is None or log_times.end_s is None:
            return []
        start = attempt.start_s + log_times.start_up_s
        merged, done = start + log_times.shuffle_s, attempt.finish_s - log_times.end_s
        last_copy = max((segment.finish_s for segment in log_times.segments), default=merged)
        copies = [_piece(segment, "copy") for segment in log_times.segments]
        layers = [
            Piece(attempt.start_s, start, "start"),
            Piece(start, merged, "wait"),
            *copies,
            Piece(min(last_copy, merged), merged, "last_merges"),
            Piece(merged, done, "reduce_loop"),
            Piece(done, attempt.finish_s, "end"),
        ]
        beside["fetchers"] = copies
        for name, text in _MERGES.items():
            merges = [merge for merge in log_times.merges if f"{merge.kind}_merge" == name]
            beside[text] = [_piece(merge, name) for merge in merges]
    others = [Track(name, paint(pieces)) for name, pieces in beside.items() if pieces]
    return [Track("main thread", paint(layers)), *others]
