"""From the measured job time to the predicted one: what the error of each phase is worth."""

from __future__ import annotations

import math

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from harness.reports.data import ReportData, workloads
from harness.reports.decomposition import NAMES, PHASES, MeanError, mean_errors
from harness.reports.plots.canvas import BAND, INK, MUTED, Canvas, Figure, grid
from harness.reports.plots.canvas import phase_bar as bar_of_phase
from harness.reports.tables import table
from harness.reports.wording import count, number, one_line, percent, seconds

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WIDTH, _ROW, _COLUMNS = 9.4, 0.24, 3
_LEAST_ROOM = 0.02  # of the longest time


def waterfalls(data: ReportData) -> list[Figure]:
    """One figure per workload: for each model, its mean error of the job time by phase."""
    found = []
    for place, workload in enumerate(workloads(data)):
        means = mean_errors(data, workload)
        if means:
            found.append(_figure(place, workload, means))
    return found


def _figure(place: int, workload: str, means: Mapping[str, MeanError]) -> Figure:
    title = f"{workload}: from the measured job time to the predicted one"
    columns = min(_COLUMNS, len(means))
    rows = math.ceil(len(means) / columns)
    steps = [name for name in NAMES if any(name in m.parts for m in means.values())]
    height = rows * (0.75 + _ROW * (len(steps) + 2))
    canvas = Canvas(f"waterfall{place}", title, _WIDTH, height)
    panels = canvas.figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
    for axes, (model, mean) in zip(panels.flat, means.items(), strict=False):
        _panel(canvas, axes, one_line(model, 26), mean, steps)
    for axes in list(panels.flat)[len(means) :]:
        axes.set_axis_off()
    panels.flat[0].set_xlim(*_limits(means.values()))
    caption = (
        f"{workload}: mean over {count(max(m.cells for m in means.values()), 'cell')}. The error of"
        " a phase counts once per wave of its tasks; what phases do not explain is overlap and"
        " overhead. The axis does not begin at 0."
    )
    rows_of_data = [
        (model, NAMES[name], number(error_s))
        for model, mean in means.items()
        for name, error_s in mean.parts.items()
    ]
    heads = ("Model", "Phase", "Error in the job time, s")
    return Figure(
        canvas.svg(), caption, table(f"{workload}: data of the figure", heads, "llr", rows_of_data)
    )


def _panel(canvas: Canvas, axes: Axes, model: str, mean: MeanError, steps: Sequence[str]) -> None:
    _total(canvas, axes, 0, mean.measured_s, f"{model}: measured {seconds(mean.measured_s)}")
    at, reached = 1, mean.measured_s
    for name in steps:
        error_s = mean.parts.get(name, 0.0)
        low, high = sorted((reached, reached + error_s))
        if name in PHASES:
            bar = bar_of_phase(axes, at, low, high, PHASES[name])
        else:
            (bar,) = axes.barh([at], [high - low], left=low, height=0.78, facecolor=BAND,
                               edgecolor=MUTED, linewidth=0.8)  # fmt: skip
        canvas.tip(bar, f"{model}, {NAMES[name]}: {number(error_s)} s in the job time")
        axes.plot([reached, reached], [at - 1, at], color=MUTED, linewidth=0.6)
        reached += error_s
        at += 1
    axes.plot([reached, reached], [at - 1, at], color=MUTED, linewidth=0.6)
    _total(canvas, axes, at, mean.predicted_s, f"{model}: predicted {seconds(mean.predicted_s)}")
    axes.set_title(f"{model}: {percent(mean.cancelled)} cancels")
    axes.set_yticks(range(at + 1), ["measured", *(NAMES[s] for s in steps), "predicted"])
    axes.set_ylim(at + 0.6, -0.6)
    axes.set_xlabel("seconds")
    axes.label_outer()
    axes.spines["left"].set_color(INK)
    grid(axes, "x")


def _total(canvas: Canvas, axes: Axes, at: int, value: float, tip: str) -> None:
    (mark,) = axes.plot([value], [at], "D", color=INK, markersize=5)
    canvas.tip(mark, tip)


def _limits(means: Iterable[MeanError]) -> tuple[float, float]:
    """Ends of the axis: all that the panels show, and a little room."""
    reached = [
        mean.measured_s + sum(list(mean.parts.values())[:steps])
        for mean in means
        for steps in range(len(mean.parts) + 1)
    ]
    room = max(0.08 * (max(reached) - min(reached)), _LEAST_ROOM * max(reached))
    return min(reached) - room, max(reached) + room
