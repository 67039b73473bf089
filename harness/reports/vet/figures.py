"""
Ordered unit times of a typical task beside its ideal, as in figure 4 of the paper.

Where the longest units are far above the others, times stand on a logarithmic axis; where the
change point lies among the last few, so do the units, counted from the longest.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness.records.vet import SUBPHASES, JobVet, VetCurve
from harness.reports.data import ReportData, label
from harness.reports.plots.canvas import INK, MUTED, SERIES, Canvas, Figure, grid
from harness.reports.tables import Table, table
from harness.reports.vet.choice import by_repeat
from harness.reports.vet.tables import ratio
from harness.reports.vet.texts import MOST_FIGURES
from harness.reports.wording import number, one_line, seconds

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WIDTH, _HEIGHT = 9.4, 3.2
_FAR = 30.0  # longest over median unit
_LAST = 0.05  # share of the units after the change point
_MOST_POINTS = 40  # of a kind in the table


def vet_figures(data: ReportData) -> list[Figure]:
    """A figure per job, the first repeats first; not more than a page can hold."""
    drawn = [job for job in by_repeat(data) if job.curves]
    return [_figure(data, n, job) for n, job in enumerate(drawn[:MOST_FIGURES])]


def _figure(data: ReportData, place: int, job: JobVet) -> Figure:
    name = f"{label(data, job.cell)}, repeat {job.repetition}"
    title = f"{name}: ordered unit times of the task with the median vet, and its ideal"
    canvas = Canvas(f"vet{place}", title, _WIDTH, _HEIGHT)
    every = canvas.figure.subplots(1, len(job.curves), squeeze=False)[0]
    for axes, curve in zip(every, job.curves, strict=True):
        _draw(canvas, axes, curve)
    canvas.figure.legend(*every[0].get_legend_handles_labels(), loc="outside upper left", ncols=3)
    return Figure(canvas.svg(), _caption(name, job.curves), _data(name, job.curves))


def _draw(canvas: Canvas, axes: Axes, curve: VetCurve) -> None:
    task = curve.task
    assert task.change_point is not None
    late = task.n - task.change_point < _LAST * task.n
    x = [task.n + 1 - p if late else p for p in curve.place]
    at = task.n + 1 - task.change_point if late else task.change_point
    after = [n for n, p in enumerate(curve.place) if p >= task.change_point]
    (drawn,) = axes.plot(x, curve.observed_s, color=SERIES[0], linewidth=1.6, label="observed")
    canvas.tip(drawn, f"{curve.attempt_id}: {task.n} units, {seconds(task.profiled_real_s)}")
    ideal = [curve.ideal_s[n] for n in after]
    axes.plot(
        [x[n] for n in after], ideal, color=SERIES[1], linewidth=1.6, linestyle=(0, (4, 2)),
        label="ideal",
    )  # fmt: skip
    axes.axvline(at, color=INK, linewidth=0.8, linestyle=(0, (1, 2)), label="change point")
    _scales(axes, curve, late=late)
    axes.set_title(f"{SUBPHASES[curve.kind]}: vet {ratio(task.vet)}")
    grid(axes, "both")


def _scales(axes: Axes, curve: VetCurve, *, late: bool) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator

    positive = sorted(s for s in (*curve.observed_s, *curve.ideal_s) if s > 0)
    middle = curve.observed_s[sum(2 * p < curve.task.n for p in curve.place)]
    if positive and middle > 0 and max(curve.observed_s) > _FAR * middle:
        axes.set_yscale("log", nonpositive="mask")
        axes.yaxis.set_minor_locator(NullLocator())
    if late:
        axes.set_xscale("log")
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_xlim(curve.task.n * 1.1, 0.9)
        axes.set_xlabel("unit, counted from the longest")
    else:
        axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        axes.set_xlabel("unit, the shortest first")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:.0f}"))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{1e3 * v:g}"))
    axes.set_ylabel("time of a unit, ms", color=INK)
    axes.tick_params(colors=MUTED, labelcolor=INK)


def _caption(name: str, curves: Sequence[VetCurve]) -> str:
    said = (
        f"{SUBPHASES[c.kind]} {seconds(c.task.profiled_real_s)} observed,"
        f" {seconds(c.task.estimated_ideal_s)} ideal, vet {ratio(c.task.vet)}"
        for c in curves
    )
    return f"{name}: {'; '.join(said)}. The task with the median vet of each kind."


def _data(name: str, curves: Sequence[VetCurve]) -> Table:
    rows = [
        (
            one_line(c.attempt_id),
            str(c.place[n]),
            number(1e3 * c.observed_s[n]),
            number(1e3 * c.ideal_s[n]),
        )
        for c in curves
        for n in _some(len(c.place))
    ]
    columns = ("Attempt", "Unit", "Observed, ms", "Ideal, ms")
    return table(f"{name}: some of the ordered units", columns, "crrr", rows)


def _some(points: int) -> range:
    """Places of the table, the last one among them."""
    step = -(-points // _MOST_POINTS)
    return range((points - 1) % step, points, step)
