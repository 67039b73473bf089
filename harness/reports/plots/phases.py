"""Where the time of a task goes: measured beside what each model says, phase by phase."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING

from harness.records.score import Score
from harness.reports.data import ReportData, models, workload_of, workloads
from harness.reports.plots.canvas import (
    INK,
    PHASE_NAMES,
    Canvas,
    Figure,
    grid,
    phase_bar,
    phase_legend,
)
from harness.reports.tables import table
from harness.reports.wording import count, number, one_line, seconds

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WIDTH = 9.4
_NAMES = {
    "map_main_s": "map",
    "map_tail_s": "map_tail",
    "shuffle_s": "shuffle",
    "sort_s": "sort",
    "reduce_rest_s": "reduce",
}
_KINDS = {
    "map task": ("map_main_s", "map_tail_s"),
    "reduce task": ("shuffle_s", "sort_s", "reduce_rest_s"),
}
Means = Mapping[str, Mapping[str, float]]


def phase_bars(data: ReportData) -> list[Figure]:
    """One figure per workload with scored phases: stacked means per task, in seconds."""
    found = []
    for place, workload in enumerate(workloads(data)):
        means, cells = phase_means(data, workload)
        if means:
            found.append(_figure(place, workload, means, cells))
    return found


def phase_means(data: ReportData, workload: str) -> tuple[Means, int]:
    """
    Mean seconds of each phase, `measured` and by model, over the cells that all models answer.

    The second value counts those cells; without any the first is empty.
    """
    chosen = [
        s
        for s in data.book.scores
        if s.quantity in _NAMES and s.speed == "raw" and workload_of(data, s.cell) == workload
    ]
    answering = [m for m in models(data) if any(s.model == m for s in chosen)]
    cells = [{s.cell for s in chosen if s.model == m} for m in answering]
    common = set.intersection(*cells) if cells else set()
    kept = [s for s in chosen if s.cell in common]
    if not kept:
        return {}, 0
    means = {"measured": _means([s for s in kept if s.model == answering[0]], predicted=False)}
    for model in answering:
        means[model] = _means([s for s in kept if s.model == model], predicted=True)
    return means, len(common)


def _means(chosen: Sequence[Score], *, predicted: bool) -> dict[str, float]:
    values: dict[str, list[float]] = {name: [] for name in _NAMES}
    for s in chosen:
        values[s.quantity].append(s.predicted_s if predicted else s.measured_s)
    return {name: fmean(found) for name, found in values.items() if found}


def _figure(place: int, workload: str, means: Means, cells: int) -> Figure:
    title = f"{workload}: mean seconds per task and phase, measured and predicted"
    bars = [
        (kind, who, parts)
        for kind, parts in _KINDS.items()
        for who in means
        if any(p in means[who] for p in parts)
    ]
    kinds = len({kind for kind, _, _ in bars})
    canvas = Canvas(f"phases{place}", title, _WIDTH, 1.0 + 0.3 * len(bars) + 0.2 * kinds)
    axes = canvas.figure.add_subplot()
    rows, at, before = [], 0.0, bars[0][0]
    for kind, who, parts in bars:
        at += 0.5 if kind != before else 0.0
        before = kind
        _bar(canvas, axes, at, who, [(p, means[who][p]) for p in parts if p in means[who]])
        rows.append((at, f"{kind}, {one_line(who, 26)}"))
        at += 1
    _frame(axes, rows)
    phase_legend(canvas, {_NAMES[p] for who in means for p in means[who]})
    caption = (
        f"{workload}: mean seconds per task and phase over {count(cells, 'cell')}, as measured and"
        " as predicted."
    )
    data_rows = [(who, _NAME_OF[p], number(v)) for who in means for p, v in means[who].items()]
    columns = ("Source", "Phase", "Mean, s")
    return Figure(
        canvas.svg(), caption, table(f"{workload}: data of the figure", columns, "llr", data_rows)
    )


_NAME_OF = {quantity: PHASE_NAMES[name] for quantity, name in _NAMES.items()}


def _bar(
    canvas: Canvas, axes: Axes, at: float, who: str, parts: Sequence[tuple[str, float]]
) -> None:
    start = 0.0
    for quantity, value in parts:
        bar = phase_bar(axes, at, start, start + value, _NAMES[quantity])
        canvas.tip(bar, f"{who}, {_NAME_OF[quantity]}: {seconds(value)}")
        start += value
    axes.annotate(number(start), (start, at), (4, 0), textcoords="offset points", va="center",
                  fontsize=8.5)  # fmt: skip


def _frame(axes: Axes, rows: Sequence[tuple[float, str]]) -> None:
    from matplotlib.ticker import FuncFormatter

    axes.set_yticks([at for at, _ in rows], [name for _, name in rows])
    axes.set_ylim(rows[-1][0] + 0.6, -0.6)
    axes.margins(x=0.1)
    axes.set_xlim(left=0)
    axes.set_xlabel("seconds per task")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:g}"))
    axes.spines["left"].set_color(INK)
    grid(axes, "x")
