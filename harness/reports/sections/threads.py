"""What each thread of a typical and of the slowest task did and when."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from harness.records.trace import JobTrace, TaskAttempt
from harness.reports.data import JobTaskTimes, ReportData
from harness.reports.document import Figure, Figures, Section, table
from harness.reports.drawing import WIDE, Canvas, time_axis
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
        threads_figure(place, workload, job, known_times)
        for place, ((_, job), (workload, known_times)) in enumerate(
            zip(results.timelines, results.timeline_task_times(), strict=True)
        )
    ]
    tasks_shown = [figure for figure in figures if figure is not None]
    return Section("threads", "Threads of tasks", [Figures(tasks_shown)]) if tasks_shown else None


def shown_tasks(job: JobTrace, known_times: JobTaskTimes) -> list[ShownTask]:
    """The median and the slowest task of each kind, and the first that failed or was killed."""
    chosen = list(typical_attempts(job))
    for why, attempts in unfinished_attempts(job):
        chosen += [(why, each) for each in attempts if each.attempt_id in known_times.recordings][
            :1
        ]
    tasks_shown = []
    for why, attempt in chosen:
        recording = known_times.recordings.get(attempt.attempt_id)
        attempt_tracks = tracks(attempt, known_times.from_logs.get(attempt.attempt_id), recording)
        if attempt_tracks:
            tasks_shown.append(ShownTask(why, attempt, attempt_tracks))
    return tasks_shown


def threads_figure(
    place: int, workload: str, job: JobTrace, known_times: JobTaskTimes
) -> Figure | None:
    """Threads of the tasks of one job that are shown; `None` without any."""
    tasks_shown = shown_tasks(job, known_times)
    if not tasks_shown:
        return None
    heights = [0.62 + 0.27 * len(drawn_task.tracks) for drawn_task in tasks_shown]

    def draw(canvas: Canvas) -> None:
        panels = canvas.figure.subplots(len(tasks_shown), 1, squeeze=False, height_ratios=heights)[
            :, 0
        ]
        longest_s: dict[str, float] = {}  # tasks of one kind have one scale
        for _, attempt, attempt_tracks in tasks_shown:
            ends = [
                thread_track.pieces[-1].end
                for thread_track in attempt_tracks
                if thread_track.pieces
            ]
            took_s = max(ends) - attempt.start_s
            longest_s[attempt.kind] = max(took_s, longest_s.get(attempt.kind, 0.0))
        for thread_axes, drawn_task in zip(panels, tasks_shown, strict=True):
            _draw_task(canvas, thread_axes, drawn_task, longest_s[drawn_task.attempt.kind])
        panels[-1].set_xlabel("seconds since the task was launched")
        canvas.texture_legend(DRAWN, columns=4)

    rows, parts = [], set[str]()
    for _, attempt, attempt_tracks in tasks_shown:
        for thread_track in attempt_tracks:
            sums: dict[str, tuple[int, float]] = {}
            for piece in thread_track.pieces:
                pieces, total_s = sums.get(piece.part, (0, 0.0))
                sums[piece.part] = pieces + 1, total_s + piece.end - piece.start
            parts |= sums.keys()
            for part, (pieces, total_s) in sums.items():
                numbers = (str(pieces), number(total_s))
                rows.append((attempt.attempt_id, thread_track.name, DRAWN[part], *numbers))
    sources = dict.fromkeys(
        _SOURCES["spans" if drawn_task.attempt.attempt_id in known_times.recordings else "logs"]
        for drawn_task in tasks_shown
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
    caption += f".{_loop_shares(tasks_shown, known_times)}"
    columns = ("Attempt", "Thread", "What", "Pieces", "Seconds")
    what = f"{workload}: what the threads of these tasks did"
    pieces_table = table(what, columns, "cllrr", rows, folded=True)
    title, height = f"{workload}: threads of tasks over time", 0.75 + sum(heights)
    return Figure(f"threads{place}", title, WIDE, height, caption, pieces_table, draw)


def _draw_task(canvas: Canvas, thread_axes: Axes, drawn_task: ShownTask, longest_s: float) -> None:
    """Draw a row for each thread of a task."""
    attempt = drawn_task.attempt
    for row, thread_track in enumerate(drawn_task.tracks):
        for piece in thinned(thread_track.pieces, longest_s / _STEPS):
            start_s, end_s = piece.start - attempt.start_s, piece.end - attempt.start_s
            tooltip = f"{thread_track.name}: {DRAWN[piece.part]} {seconds(end_s - start_s)}"
            tooltip += f", from {seconds(start_s)}"
            look: dict[str, Any] = {"tooltip": tooltip, "height": 0.8, "edge": 0.3}
            canvas.bar(thread_axes, row, (start_s, end_s), piece.part, **look)
    thread_axes.set_yticks(
        range(len(drawn_task.tracks)), [thread_track.name for thread_track in drawn_task.tracks]
    )
    thread_axes.set_ylim(len(drawn_task.tracks) - 0.4, -0.6)
    time_axis(thread_axes, longest_s)
    where = f"{one_line(attempt.attempt_id, 44)} on {one_line(attempt.host, 24)}"
    took = seconds(attempt.duration_s, 0.05)
    thread_axes.set_title(f"{drawn_task.why}: {where}, {took}", fontsize=8.5)


def _loop_shares(tasks_shown: Sequence[ShownTask], known_times: JobTaskTimes) -> str:
    by_attempt = {parts.attempt_id: parts for parts in known_times.parts}
    sentences = []
    for kind, names in _LOOP_PARTS.items():
        first = next(
            (drawn_task.attempt for drawn_task in tasks_shown if drawn_task.attempt.kind == kind),
            None,
        )
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
