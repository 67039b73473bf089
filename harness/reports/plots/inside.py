"""Inside the tasks of a job: what each thread did and when, and where the time went."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from harness.records.trace import JobTrace, TaskAttempt
from harness.reports.data import JobInside
from harness.reports.inside import Bar, bars, lost, typical
from harness.reports.inside.names import DRAWN, PARTS
from harness.reports.inside.tables import parts_table, tracks_table
from harness.reports.inside.tracks import Track, thinned, tracks
from harness.reports.plots.canvas import INK, MUTED, Canvas, Figure, grid, legend_of_parts, part_bar
from harness.reports.wording import count, listing, number, one_line, percent, seconds

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WIDTH = 9.4
_STEPS = 600  # pieces narrower than this part of the axis become one with their neighbours
_MOST_HOSTS = 20


class _Shown(NamedTuple):
    """A task with its tracks, and why it is shown."""

    why: str
    attempt: TaskAttempt
    found: Sequence[Track]


def task_tracks(place: int, job: JobTrace, name: str, inside: JobInside) -> Figure | None:
    """What each thread of a typical and of the slowest task did; `None` where nothing tells."""
    shown = [_Shown(why, a, _tracks(a, inside)) for why, a in typical(job)]
    shown = [s for s in (*shown, *_lost(job, inside)) if s.found]
    if not shown:
        return None
    heights = [0.62 + 0.27 * len(s.found) for s in shown]
    canvas = Canvas(f"threads{place}", f"{name}: threads of tasks over time", _WIDTH,
                    0.75 + sum(heights))  # fmt: skip
    places = canvas.figure.subplots(len(shown), 1, squeeze=False, height_ratios=heights)[:, 0]
    for axes, task in zip(places, shown, strict=True):
        _threads(canvas, axes, task, _longest(shown, task.attempt.kind))
    places[-1].set_xlabel("seconds since the task was launched")
    seen = {p.part for s in shown for t in s.found for p in t.pieces}
    legend_of_parts(canvas, seen, DRAWN)
    return Figure(canvas.svg(), _tracks_caption(name, shown, inside), tracks_table(name, shown))


def _lost(job: JobTrace, inside: JobInside) -> Iterator[_Shown]:
    """The first of each kind that failed, and that was killed, and was recorded."""
    for why, attempts in lost(job):
        first = next((a for a in attempts if a.attempt_id in inside.recordings), None)
        if first is not None:
            yield _Shown(why, first, _tracks(first, inside))


def _tracks(attempt: TaskAttempt, inside: JobInside) -> list[Track]:
    name = attempt.attempt_id
    return tracks(attempt, inside.told.get(name), inside.recordings.get(name))


def _longest(shown: Sequence[_Shown], kind: str) -> float:
    """Tasks of one kind have one scale."""
    ends = [
        piece.end - s.attempt.start_s
        for s in shown
        if s.attempt.kind == kind
        for track in s.found
        for piece in track.pieces
    ]
    return max(ends, default=1.0)


def _threads(canvas: Canvas, axes: Axes, task: _Shown, longest: float) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    begin = task.attempt.start_s
    for row, track in enumerate(task.found):
        for piece in thinned(track.pieces, longest / _STEPS):
            span = piece.start - begin, piece.end - begin
            bar = part_bar(axes, row, span, piece.part, 0.8)
            canvas.tip(bar, f"{track.name}: {DRAWN[piece.part]} {seconds(span[1] - span[0])},"
                            f" from {seconds(span[0])}")  # fmt: skip
    axes.set_yticks(range(len(task.found)), [t.name for t in task.found])
    axes.set_ylim(len(task.found) - 0.4, -0.6)
    axes.set_xlim(0, longest * 1.01)
    axes.xaxis.set_major_locator(MaxNLocator(10))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:g}"))
    axes.spines["left"].set_visible(False)
    a = task.attempt
    axes.set_title(
        f"{task.why}: {one_line(a.attempt_id, 44)} on {one_line(a.host, 24)},"
        f" {seconds(a.duration_s, 0.05)}",
        fontsize=8.5,
    )
    grid(axes, "x")


def _tracks_caption(name: str, shown: Sequence[_Shown], inside: JobInside) -> str:
    sources = {
        "spans" if s.attempt.attempt_id in inside.recordings else "logs": None for s in shown
    }
    source = {
        "spans": "recorded by the tracer",
        "logs": "as the tasks' own logs tell",
    }
    return (
        f"{name}: what the threads of a task did and when, {listing([source[s] for s in sources])}."
        " Rows of one task run at the same time: a spill below the record loop overlaps it"
        f"{_blocked(shown)}.{_within_the_loop(shown, inside)}"
    )


def _blocked(shown: Sequence[_Shown]) -> str:
    if not any(p.part == "blocked" for s in shown for t in s.found for p in t.pieces):
        return ""
    return (
        ", and where the loop turns to \u201cblocked\u201d it stands still until the spill has made"
        " room"
    )


def _within_the_loop(shown: Sequence[_Shown], inside: JobInside) -> str:
    """Reading, mapping and collecting alternate per record: no drawing can show them in time."""
    found = []
    parts = {p.attempt_id: p for p in inside.parts}
    names = (("read", "map_function", "collect"), ("read_merge", "reduce_function", "output"))
    for kind, three in zip(("map", "reduce"), names, strict=True):
        mine = next((s for s in shown if s.attempt.kind == kind), None)
        told = parts.get(mine.attempt.attempt_id) if mine else None
        total = sum(told.seconds.get(n, 0.0) for n in three) if told else 0.0
        if told and total:
            shares = [f"{PARTS[n]} {percent(told.seconds.get(n, 0.0) / total)}" for n in three]
            estimated = " (split by sampling)" if set(three) & told.estimated else ""
            found.append(
                f" Of the record loop of the first {kind} shown: {listing(shares)}{estimated}."
            )
    return "".join(found)


def time_bars(place: int, name: str, inside: JobInside) -> Figure | None:
    """Mean seconds of each part of a task, stacked: all nodes, then each."""
    every = bars(inside.parts)
    drawn = _some_hosts(every)
    if not drawn:
        return None
    kinds = len({b.kind for b in drawn})
    canvas = Canvas(f"parts{place}", f"{name}: mean seconds of the parts of a task", _WIDTH,
                    1.35 + 0.32 * len(drawn) + 0.2 * kinds)  # fmt: skip
    axes = canvas.figure.add_subplot()
    rows, at, before = [], 0.0, drawn[0].kind
    for bar in drawn:
        at += 0.5 if bar.kind != before else 0.0
        before = bar.kind
        _stack(canvas, axes, at, bar)
        rows.append((at, f"{bar.kind} tasks, {one_line(bar.host, 24) or 'all nodes'}"))
        at += 1
    _frame(axes, rows, max(b.total_s for b in drawn))
    legend_of_parts(canvas, {part for b in drawn for part in b.seconds}, PARTS)
    return Figure(canvas.svg(), _bars_caption(name, every, drawn), parts_table(name, every))


def _some_hosts(every: Sequence[Bar]) -> list[Bar]:
    """Bars of all nodes together, and of each kind's first nodes."""
    drawn: list[Bar] = []
    for bar in every:
        hosts = sum(b.kind == bar.kind and bool(b.host) for b in drawn)
        if not bar.host or hosts < _MOST_HOSTS:
            drawn.append(bar)
    return drawn


def _stack(canvas: Canvas, axes: Axes, at: float, bar: Bar) -> None:
    start = 0.0
    for part, value in bar.seconds.items():
        drawn = part_bar(axes, at, (start, start + value), part, 0.78)
        mark = " (estimated)" if part in bar.estimated else ""
        share = percent(value / bar.total_s)
        canvas.tip(drawn, f"{PARTS[part]}: {seconds(value)}, {share}{mark}")
        start += value
    axes.annotate(number(start), (start, at), (4, 0), textcoords="offset points", va="center",
                  fontsize=8.5)  # fmt: skip


def _frame(axes: Axes, rows: Sequence[tuple[float, str]], longest: float) -> None:
    from matplotlib.ticker import FuncFormatter

    axes.set_yticks([at for at, _ in rows], [name for _, name in rows])
    axes.set_ylim(rows[-1][0] + 0.6, -0.6)
    axes.set_xlim(0, longest * 1.08)
    axes.set_xlabel("mean seconds per task")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:g}"))
    axes.spines["left"].set_color(INK)
    axes.tick_params(colors=MUTED, labelcolor=INK)
    grid(axes, "x")


def _bars_caption(name: str, every: Sequence[Bar], drawn: Sequence[Bar]) -> str:
    whole = [b for b in every if not b.host]
    told = {"spans": "recorded", "logs": "told by logs"}
    over = listing([f"{count(b.tasks, f'{b.kind} task')} ({told[b.source]})" for b in whole])
    estimated = [PARTS[p] for p in PARTS if any(p in b.estimated for b in whole)]
    marks = f" Estimated from samples: {listing(estimated)}." if estimated else ""
    hidden = len(every) - len(drawn)
    more = f" {count(hidden, 'more bar')} of single nodes in the table." if hidden else ""
    return (
        f"{name}: where the time of a task of one job went, means over {over}. What other threads"
        f" did at the same time is not in the bars.{marks}{more}"
    )
