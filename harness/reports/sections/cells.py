"""Signed error of every cell and model beside the noise floor of the cell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness.records.score import Score
from harness.reports.answer import SPEEDS
from harness.reports.data import ReportData, noise_s
from harness.reports.document import Figure, Figures, Section, Table, Value, signed_tone, table
from harness.reports.drawing import BAND, INK, MUTED, WIDE, Canvas, grid, marker
from harness.reports.wording import TIMES, UNKNOWN, floor_percent, number, one_line, percent

_MOST_DRAWN = 40
_FLOOR: dict[str, Any] = {"facecolor": BAND, "edgecolor": MUTED, "linewidth": 0.6}
_LEAD = (
    "The noise floor of a cell is the coefficient of variation of its repeats."
    " Smaller errors say nothing about a model."
)


def section(results: ReportData) -> Section:
    """One figure per workload: rows are cells, one mark per model, the noise floor as a bar."""
    figures = [
        cells_figure(results, place, workload, chosen)
        for place, workload in enumerate(results.workloads)
        if (chosen := results.scores(results.answered, "raw", workload))
    ]
    return Section(
        id="cells",
        title="Errors per cell",
        blocks=[Figures(figures, _LEAD)],
        missing="No cell has both a prediction and a measurement.",
    )


def cells_figure(results: ReportData, place: int, workload: str, chosen: Sequence[Score]) -> Figure:
    """Errors of one workload's cells; of too many those with the largest errors are drawn."""
    by_cell: dict[str, list[Score]] = {}
    for cell_score in chosen:
        by_cell.setdefault(cell_score.cell, []).append(cell_score)
    worst = {cell: max(each.relative_error for each in by_cell[cell]) for cell in by_cell}
    drawn = set(sorted(by_cell, key=lambda cell: -worst[cell])[:_MOST_DRAWN])
    cells = [cell for cell in by_cell if cell in drawn]
    scored, models, time = results.scored_models, results.models, TIMES[results.answered]

    def draw(canvas: Canvas) -> None:
        from matplotlib.ticker import MaxNLocator

        error_axes = canvas.figure.add_subplot()
        names = []
        for row, cell in enumerate(cells):
            first = by_cell[cell][0]
            cell_range = "" if first.range == "inside" else f"  ({first.range})"
            names.append(one_line(results.label(cell), 44) + cell_range)
            if first.floor:
                width = 200 * first.floor
                (bar,) = error_axes.barh([row], [width], left=-width / 2, height=0.72, **_FLOOR)
                floor = floor_percent(first.floor)
                canvas.mark(bar, f"noise floor ±{floor} over {first.trials} trials")
        error_axes.set_yticks(range(len(cells)), names)
        error_axes.set_ylim(len(cells) - 0.4, -0.6)
        for aside, model in enumerate(scored):
            # Marks of one cell stand a little apart, so that equal errors do not hide another.
            shift = (aside - (len(scored) - 1) / 2) * min(0.22, 0.6 / len(scored))
            points = []
            for row, cell in enumerate(cells):
                for each in (each for each in by_cell[cell] if each.model == model):
                    error = percent(each.signed_error, each.floor, signed=True)
                    tooltip = f"{model}, {results.label(cell)}: {error}"
                    points.append((100 * each.signed_error, row + shift, tooltip))
            style = marker(place, models.index(model))
            canvas.points(error_axes, points, **style, zorder=3, label=one_line(model, 28))
        if any(cell_score.floor for cell_score in chosen):
            error_axes.barh([0], [0], label="noise floor", **_FLOOR)
        error_axes.axvline(0, color=INK, linewidth=0.9, zorder=1)
        error_axes.margins(x=0.08)
        error_axes.xaxis.set_major_locator(MaxNLocator(9, steps=[1, 2, 5, 10]))
        error_axes.xaxis.set_major_formatter(lambda share, _: f"{share:+g} %" if share else "0")
        label = f"predicted too short  ←   error of the {time}   →  predicted too long"
        error_axes.set_xlabel(label)
        error_axes.spines["left"].set_visible(False)
        grid(error_axes, "x")
        canvas.figure.legend(loc="outside upper left", ncols=4)

    caption = (
        f"{workload}: marks are errors, grey bars the noise floor of each cell (± the spread of"
        " its repeats). A mark inside the bar says nothing about the model."
    )
    if len(cells) < len(by_cell):
        caption += f" The {len(cells)} cells with the largest errors; all of them are in the table."
    title = f"{workload}: error of the predicted {time} in each cell"
    errors, height = error_table(results, workload), 1.15 + 0.3 * len(cells)
    return Figure(f"errors{place}", title, WIDE, height, caption, errors, draw)


def error_table(results: ReportData, workload: str) -> Table:
    """Every score that is drawn of one workload, both speeds, beside its noise floor."""
    models = results.scored_models
    rows: list[tuple[str | Value, ...]] = []
    for speed in SPEEDS:
        by_cell: dict[str, dict[str, Score]] = {}
        for cell_score in results.scores(results.answered, speed, workload):
            by_cell.setdefault(cell_score.cell, {})[cell_score.model] = cell_score
        for cell, by_model in by_cell.items():
            first = next(iter(by_model.values()))
            errors = [Value(UNKNOWN)] * len(models)
            for model, cell_score in by_model.items():
                text = percent(cell_score.signed_error, cell_score.floor, signed=True)
                if cell_score.floor:
                    text += f" ({number(cell_score.relative_error / cell_score.floor, 0.3)}x)"
                tone = signed_tone(cell_score.signed_error, cell_score.floor)
                errors[models.index(model)] = Value(text, tone)
            measured = number(first.measured_s, noise_s(first))
            head = (results.label(cell), speed, first.range, str(first.trials), measured)
            rows.append((*head, floor_percent(first.floor), *errors))
    return table(
        f"{workload}: error of the predicted {TIMES[results.answered]}, and in brackets as a"
        " multiple of the noise floor",
        ("Cell", "Speed", "Range", "Trials", "Measured, s", "Noise floor", *models),
        "lllrrr" + "r" * len(models),
        rows,
    )
