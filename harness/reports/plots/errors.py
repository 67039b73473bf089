"""Signed error of every cell and model beside the noise floor of the cell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness.records.score import Score, Speed
from harness.reports.data import ReportData, label, models, scored_models, scores, workloads
from harness.reports.plots.canvas import BAND, INK, MUTED, Canvas, Figure, grid, marker
from harness.reports.tables import Table, Value, signed_tone, table
from harness.reports.wording import UNKNOWN, floor_percent, number, one_line, percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WIDTH = 9.4
_MOST_ROWS = 40


def errors_per_cell(data: ReportData) -> list[Figure]:
    """One figure per workload: rows are cells, one mark per model, the noise floor as a bar."""
    found = []
    for place, workload in enumerate(workloads(data)):
        chosen = scores(data, "job_s", "raw", workload=workload)
        if chosen:
            found.append(_figure(data, place, workload, chosen))
    return found


def _figure(data: ReportData, place: int, workload: str, chosen: Sequence[Score]) -> Figure:
    cells = _worst(chosen)
    title = f"{workload}: error of the predicted job time in each cell"
    canvas = Canvas(f"errors{place}", title, _WIDTH, 1.15 + 0.3 * len(cells))
    axes = canvas.figure.add_subplot()
    for row, cell in enumerate(cells):
        mine = [s for s in chosen if s.cell == cell]
        _floor(canvas, axes, row, mine[0])
        for s in mine:
            _mark(data, canvas, axes, s, row=row, place=place)
    _frame(data, axes, cells, chosen)
    _legend(data, canvas, axes, place, chosen)
    shown = (
        ""
        if len(cells) == len({s.cell for s in chosen})
        else (f" The {len(cells)} cells with the largest errors; all of them are in the table.")
    )
    caption = (
        f"{workload}: marks are errors, grey bars the noise floor of each cell (± the spread of"
        f" its repeats). A mark inside the bar says nothing about the model.{shown}"
    )
    return Figure(canvas.svg(), caption, error_table(data, workload))


def _worst(chosen: Sequence[Score]) -> list[str]:
    cells = list(dict.fromkeys(s.cell for s in chosen))
    if len(cells) <= _MOST_ROWS:
        return cells
    worst = {c: max(s.relative_error for s in chosen if s.cell == c) for c in cells}
    kept = set(sorted(cells, key=lambda c: -worst[c])[:_MOST_ROWS])
    return [c for c in cells if c in kept]


def _floor(canvas: Canvas, axes: Axes, row: int, s: Score) -> None:
    if s.floor:
        (bar,) = axes.barh(
            [row],
            [200 * s.floor],
            left=-100 * s.floor,
            height=0.72,
            facecolor=BAND,
            edgecolor=MUTED,
            linewidth=0.6,
        )
        canvas.tip(bar, f"noise floor ±{floor_percent(s.floor)} over {s.trials} trials")


def _mark(data: ReportData, canvas: Canvas, axes: Axes, s: Score, *, row: int, place: int) -> None:
    # Marks of one cell stand a little apart, so that equal errors do not hide each other.
    scored = scored_models(data)
    offset = (scored.index(s.model) - (len(scored) - 1) / 2) * min(0.22, 0.6 / len(scored))
    look = marker(place, models(data).index(s.model))
    (drawn,) = axes.plot([100 * s.signed_error], [row + offset], **look, zorder=3)
    error = percent(s.signed_error, s.floor, signed=True)
    canvas.tip(drawn, f"{s.model}, {label(data, s.cell)}: {error}")


def _frame(data: ReportData, axes: Axes, cells: Sequence[str], chosen: Sequence[Score]) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    where = {s.cell: "" if s.range == "inside" else f"  ({s.range})" for s in chosen}
    names = [f"{one_line(label(data, c), 44)}{where[c]}" for c in cells]
    axes.set_yticks(range(len(cells)), names)
    axes.set_ylim(len(cells) - 0.4, -0.6)
    axes.axvline(0, color=INK, linewidth=0.9, zorder=1)
    axes.margins(x=0.08)
    axes.xaxis.set_major_locator(MaxNLocator(9, steps=[1, 2, 5, 10]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:+g} %" if v else "0"))
    axes.set_xlabel("predicted too short  ←   error of the job time   →  predicted too long")
    axes.spines["left"].set_visible(False)
    axes.tick_params(colors=MUTED, labelcolor=INK)
    grid(axes, "x")


def _legend(
    data: ReportData, canvas: Canvas, axes: Axes, place: int, chosen: Sequence[Score]
) -> None:
    for which, model in enumerate(models(data)):
        if any(s.model == model for s in chosen):
            axes.plot([], [], **marker(place, which), label=one_line(model, 28))
    if any(s.floor for s in chosen):
        axes.barh([0], [0], facecolor=BAND, edgecolor=MUTED, linewidth=0.6, label="noise floor")
    canvas.figure.legend(loc="outside upper left", ncols=4)


def error_table(data: ReportData, workload: str) -> Table:
    """Every score of the job time of one workload, both speeds, beside its noise floor."""
    names = scored_models(data)
    rows = [row for speed in ("raw", "reference") for row in _rows(data, workload, speed, names)]
    columns = ("Cell", "Speed", "Range", "Trials", "Measured, s", "Noise floor")
    return table(
        f"{workload}: error of the predicted job time, and in brackets as a multiple of the"
        " noise floor",
        (*columns, *names),
        "lllrrr" + "r" * len(names),
        rows,
    )


def _rows(
    data: ReportData, workload: str, speed: Speed, names: Sequence[str]
) -> list[tuple[str | Value, ...]]:
    chosen = scores(data, "job_s", speed, workload=workload)
    rows: list[tuple[str | Value, ...]] = []
    for cell in dict.fromkeys(s.cell for s in chosen):
        mine = {s.model: s for s in chosen if s.cell == cell}
        s = next(iter(mine.values()))
        noise = s.measured_s * s.floor if s.floor else None
        rows.append(
            (
                label(data, cell),
                speed,
                s.range,
                str(s.trials),
                number(s.measured_s, noise),
                floor_percent(s.floor),
                *(_error(mine.get(m)) for m in names),
            )
        )
    return rows


def _error(s: Score | None) -> Value:
    if s is None:
        return Value(UNKNOWN)
    text = percent(s.signed_error, s.floor, signed=True)
    times = f" ({number(s.relative_error / s.floor, 0.3)}x)" if s.floor else ""
    return Value(text + times, signed_tone(s.signed_error, s.floor))
