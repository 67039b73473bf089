"""What each thread of a typical and of the slowest task did and when."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from harness.records.trace import JobTrace, TaskAttempt
from harness.reports.data import JobTaskTimes, ReportData
from harness.reports.document import Figure, Figures, Section, table
from harness.reports.drawing import WIDE, Canvas, grid
from harness.reports.task_parts import PARTS
from harness.reports.tracks import (
    DRAWN,
    Track,
    thinned,
    tracks,
    typical_attempts,
    unfinished_attempts,
)
from harness.reports.wording import listing, number, one_line, percent, seconds

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_STEPS = 600  # pieces narrower than this part of the axis become one with their neighbours
_SOURCES = {"spans": "recorded by the tracer", "logs": "as the tasks' own logs show"}
# The parts of a record loop alternate per record: no drawing can show them in time.
_LOOP_PARTS = {
    "map": ("read", "map_function", "collect"),
    "reduce": ("read_merge", "reduce_function", "output"),
}


class ShownTask(NamedTuple):
    """A task with its tracks, and why it is shown."""

    why: str
    attempt: TaskAttempt
    tracks: Sequence[Track]


def section(results: ReportData) -> Section | None:
    """One figure for each timeline's job of which anything is known."""
    figures = [
        threads_figure(place, workload, job, times)
        for place, ((_, job), (workload, times)) in enumerate(
            zip(results.timelines, results.timeline_task_times(), strict=True)
        )
    ]
    shown = [figure for figure in figures if figure is not None]
    return Section("threads", "Threads of tasks", [Figures(shown)]) if shown else None


def shown_tasks(job: JobTrace, times: JobTaskTimes) -> list[ShownTask]:
    """The median and the slowest task of each kind, and the first that failed or was killed."""
    chosen = list(typical_attempts(job))
    for why, attempts in unfinished_attempts(job):
        chosen += [(why, each) for each in attempts if each.attempt_id in times.recordings][:1]
    shown = []
    for why, attempt in chosen:
        recording = times.recordings.get(attempt.attempt_id)
        attempt_tracks = tracks(attempt, times.from_logs.get(attempt.attempt_id), recording)
        if attempt_tracks:
            shown.append(ShownTask(why, attempt, attempt_tracks))
    return shown


def threads_figure(place: int, workload: str, job: JobTrace, times: JobTaskTimes) -> Figure | None:
    """Threads of the tasks of one job that are shown; `None` without any."""
    shown = shown_tasks(job, times)
    if not shown:
        return None
    heights = [0.62 + 0.27 * len(task.tracks) for task in shown]

    def draw(canvas: Canvas) -> None:
        panels = canvas.figure.subplots(len(shown), 1, squeeze=False, height_ratios=heights)[:, 0]
        longest_s: dict[str, float] = {}  # tasks of one kind have one scale
        for _, attempt, attempt_tracks in shown:
            ends = [track.pieces[-1].end for track in attempt_tracks if track.pieces]
            took_s = max(ends) - attempt.start_s
            longest_s[attempt.kind] = max(took_s, longest_s.get(attempt.kind, 0.0))
        for axes, task in zip(panels, shown, strict=True):
            _draw_task(canvas, axes, task, longest_s[task.attempt.kind])
        panels[-1].set_xlabel("seconds since the task was launched")
        canvas.texture_legend(DRAWN, columns=4)

    rows, parts = [], set[str]()
    for _, attempt, attempt_tracks in shown:
        for track in attempt_tracks:
            sums: dict[str, tuple[int, float]] = {}
            for piece in track.pieces:
                pieces, total_s = sums.get(piece.part, (0, 0.0))
                sums[piece.part] = pieces + 1, total_s + piece.end - piece.start
            parts |= sums.keys()
            for part, (pieces, total_s) in sums.items():
                numbers = (str(pieces), number(total_s))
                rows.append((attempt.attempt_id, track.name, DRAWN[part], *numbers))
    sources = dict.fromkeys(
        _SOURCES["spans" if task.attempt.attempt_id in times.recordings else "logs"]
        for task in shown
    )
    caption = (
        f"{workload}: what the threads of a task did and when, {listing(list(sources))}. Rows of"
        " one task run at the same time: a spill below the record loop overlaps it"
    )
    if "blocked" in parts:
        caption += (
            ", and where the loop turns to \u201cblocked\u201d it stands still until the spill"
        )
        caption += " has made room"
    caption += f".{_loop_shares(shown, times)}"
    columns = ("Attempt", "Thread", "What", "Pieces", "Seconds")
    what = f"{workload}: what the threads of these tasks did"
    pieces_table = table(what, columns, "cllrr", rows, folded=True)
    title, height = f"{workload}: threads of tasks over time", 0.75 + sum(heights)
    return Figure(f"threads{place}", title, WIDE, height, caption, pieces_table, draw)


def _draw_task(canvas: Canvas, axes: Axes, task: ShownTask, longest_s: float) -> None:
    """Draw a row for each thread of a task."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    attempt = task.attempt
    for row, track in enumerate(task.tracks):
        for piece in thinned(track.pieces, longest_s / _STEPS):
            start_s, end_s = piece.start - attempt.start_s, piece.end - attempt.start_s
            tooltip = f"{track.name}: {DRAWN[piece.part]} {seconds(end_s - start_s)}"
            tooltip += f", from {seconds(start_s)}"
            look: dict[str, Any] = {"tooltip": tooltip, "height": 0.8, "edge": 0.3}
            canvas.bar(axes, row, (start_s, end_s), piece.part, **look)
    axes.set_yticks(range(len(task.tracks)), [track.name for track in task.tracks])
    axes.set_ylim(len(task.tracks) - 0.4, -0.6)
    axes.set_xlim(0, longest_s * 1.01)
    axes.xaxis.set_major_locator(MaxNLocator(10))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.spines["left"].set_visible(False)
    where = f"{one_line(attempt.attempt_id, 44)} on {one_line(attempt.host, 24)}"
    took = seconds(attempt.duration_s, 0.05)
    axes.set_title(f"{task.why}: {where}, {took}", fontsize=8.5)
    grid(axes, "x")


def _loop_shares(shown: Sequence[ShownTask], times: JobTaskTimes) -> str:
    by_attempt = {parts.attempt_id: parts for parts in times.parts}
    sentences = []
    for kind, names in _LOOP_PARTS.items():
        first = next((task.attempt for task in shown if task.attempt.kind == kind), None)
        parts = by_attempt.get(first.attempt_id) if first else None
        total_s = sum(parts.seconds.get(name, 0.0) for name in names) if parts else 0.0
        if parts and total_s:
            shares = [
                f"{PARTS[name]} {percent(parts.seconds.get(name, 0.0) / total_s)}" for name in names
            ]
            estimated = " (split by sampling)" if set(names) & parts.estimated else ""
            sentences.append(
                f" Of the record loop of the first {kind} shown: {listing(shares)}{estimated}."
            )
    return "".join(sentences)
