"""What each thread of a typical and of the slowest task did and when."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

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


def section(data: ReportData) -> Section | None:
    """One figure for each timeline's job of which anything is known."""
    figures = [
        threads_figure(place, job, *of_workload)
        for place, ((_, job), of_workload) in enumerate(
            zip(data.timelines, data.timeline_task_times(), strict=True)
        )
    ]
    shown = [figure for figure in figures if figure is not None]
    return Section("threads", "Threads of tasks", [Figures(shown)]) if shown else None


def threads_figure(place: int, job: JobTrace, name: str, times: JobTaskTimes) -> Figure | None:
    """Threads of the median, the slowest and the first unfinished tasks; `None` without any."""
    chosen = list(typical_attempts(job))
    for why, attempts in unfinished_attempts(job):
        chosen += [(why, each) for each in attempts if each.attempt_id in times.recordings][:1]
    shown = [
        ShownTask(why, attempt, attempt_tracks)
        for why, attempt in chosen
        if (
            attempt_tracks := tracks(
                attempt,
                times.from_logs.get(attempt.attempt_id),
                times.recordings.get(attempt.attempt_id),
            )
        )
    ]
    if not shown:
        return None
    heights = [0.62 + 0.27 * len(task.tracks) for task in shown]
    parts = {piece.part for task in shown for track in task.tracks for piece in track.pieces}

    def draw(canvas: Canvas) -> None:
        from matplotlib.ticker import FuncFormatter, MaxNLocator

        panels = canvas.figure.subplots(len(shown), 1, squeeze=False, height_ratios=heights)[:, 0]
        for axes, task in zip(panels, shown, strict=True):
            # Tasks of one kind have one scale.
            longest_s = max(
                track.pieces[-1].end - other.attempt.start_s
                for other in shown
                if other.attempt.kind == task.attempt.kind
                for track in other.tracks
                if track.pieces
            )
            for row, track in enumerate(task.tracks):
                for piece in thinned(track.pieces, longest_s / _STEPS):
                    start_s = piece.start - task.attempt.start_s
                    end_s = piece.end - task.attempt.start_s
                    tip = f"{track.name}: {DRAWN[piece.part]} {seconds(end_s - start_s)}"
                    tip += f", from {seconds(start_s)}"
                    times_s = (start_s, end_s)
                    canvas.bar(axes, row, times_s, piece.part, tip=tip, height=0.8, edge=0.3)
            axes.set_yticks(range(len(task.tracks)), [track.name for track in task.tracks])
            axes.set_ylim(len(task.tracks) - 0.4, -0.6)
            axes.set_xlim(0, longest_s * 1.01)
            axes.xaxis.set_major_locator(MaxNLocator(10))
            axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            axes.spines["left"].set_visible(False)
            where = f"{one_line(task.attempt.attempt_id, 44)} on {one_line(task.attempt.host, 24)}"
            took = seconds(task.attempt.duration_s, 0.05)
            axes.set_title(f"{task.why}: {where}, {took}", fontsize=8.5)
            grid(axes, "x")
        panels[-1].set_xlabel("seconds since the task was launched")
        canvas.texture_legend({part: DRAWN[part] for part in DRAWN if part in parts}, columns=4)

    rows = []
    for task in shown:
        for track in task.tracks:
            sums: dict[str, tuple[int, float]] = {}
            for piece in track.pieces:
                pieces, total_s = sums.get(piece.part, (0, 0.0))
                sums[piece.part] = pieces + 1, total_s + piece.end - piece.start
            attempt_id = task.attempt.attempt_id
            for part, (pieces, total_s) in sums.items():
                rows.append((attempt_id, track.name, DRAWN[part], str(pieces), number(total_s)))
    sources = dict.fromkeys(
        _SOURCES["spans" if task.attempt.attempt_id in times.recordings else "logs"]
        for task in shown
    )
    caption = (
        f"{name}: what the threads of a task did and when, {listing(list(sources))}. Rows of one"
        " task run at the same time: a spill below the record loop overlaps it"
    )
    if "blocked" in parts:
        caption += (
            ", and where the loop turns to \u201cblocked\u201d it stands still until the spill has"
            " made room"
        )
    columns = ("Attempt", "Thread", "What", "Pieces", "Seconds")
    title = f"{name}: what the threads of these tasks did"
    return Figure(
        name=f"threads{place}",
        title=f"{name}: threads of tasks over time",
        width=WIDE,
        height=0.75 + sum(heights),
        caption=f"{caption}.{_loop_shares(shown, times)}",
        data=table(title, columns, "cllrr", rows, folded=True),
        draw=draw,
    )


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
