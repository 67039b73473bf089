"""Every model's error in every cell, beside the noise: the figure of the first screen."""

from __future__ import annotations

import textwrap

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from harness.base.documents.document import Figure, Section, Table, Value, signed_tone, table
from harness.base.documents.drawing import BAND, INK, MUTED, WIDE, Canvas, grid, marker
from harness.base.documents.wording import (
    QUANTITIES,
    UNKNOWN,
    floor_percent,
    number,
    one_line,
    percent,
)
from harness.base.records.score import Score, Speed
from harness.core.reports.answer import ANSWERED
from harness.core.reports.data import ReportData, noise_s

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_NAMED = 12  # cells with their labels below them: of more, their workloads
_ROOM = 58.0  # points for labels below an inch of the figure
_WIDTH = 0.62  # of a letter, by its size
_FAR = 1.5  # relative error beyond which the axis is logarithmic outside of ± 50 %


def section(results: ReportData) -> Section:
    """Errors of what the verdict is on, which the first screen draws; on demand all others."""
    quantities = dict.fromkeys((results.answered, *QUANTITIES))
    return Section(
        id="cells",
        title="Errors per cell",
        blocks=[error_table(results, quantity) for quantity in quantities],
        missing="No cell has both a prediction and a measurement.",
    )


def errors_figure(results: ReportData) -> Figure | None:
    """Signed errors of the times that the verdict is on, a column per cell, a mark per model."""
    by_cell: dict[str, list[Score]] = {}
    for cell_score in results.scores(results.answered, results.speed):
        by_cell.setdefault(cell_score.cell, []).append(cell_score)
    if not by_cell:
        return None
    time = ANSWERED[results.answered]

    def draw(canvas: Canvas) -> None:
        error_axes = canvas.figure.add_subplot()
        draw_noise(results, canvas, error_axes, by_cell)
        for model in results.scored_models:
            draw_errors(results, canvas, error_axes, by_cell, model)
        error_axes.axhline(0, color=INK, linewidth=0.9, zorder=1)
        if max(max(score.signed_error for score in scores) for scores in by_cell.values()) > _FAR:
            error_axes.set_yscale("symlog", linthresh=50)
        error_axes.yaxis.set_major_formatter(lambda share, _: f"{share:+g} %" if share else "0")
        error_axes.set(xlim=(-0.5, len(by_cell) - 0.5), ylabel="too short  ←  error  →  too long")
        grid(error_axes, "y")
        name_cells(results, error_axes, list(by_cell), canvas.figure.get_figwidth())
        canvas.figure.legend(loc="outside upper left", ncols=6)

    caption = (
        f"Relative error of every model's {time} (marks) in every cell (columns,"
        " smaller inputs first). The grey band is the noise of each cell: a mark inside it says"
        " nothing about the model."
    )
    title = f"Errors of the {time}, of every model in every cell"
    return Figure("errors", title, WIDE, 3.6, caption, error_table(results, results.answered), draw)


def draw_noise(
    results: ReportData, canvas: Canvas, error_axes: Axes, by_cell: Mapping[str, Sequence[Score]]
) -> None:
    """Draw the noise of each cell as a band around 0, as wide as its column."""
    floors = [scores[0].floor or 0.0 for scores in by_cell.values()]
    bars = error_axes.bar(
        range(len(floors)),
        [200 * floor for floor in floors],
        width=1,
        color=BAND,
        bottom=[-100 * floor for floor in floors],
        label="noise" if any(floors) else None,
    )
    for (cell, scores), bar in zip(by_cell.items(), bars, strict=True):
        first = scores[0]
        noise = f"{results.label(cell)}: noise ±{floor_percent(first.floor)}"
        canvas.mark(bar, f"{noise} of {first.trials} repeats, {first.range}")


def draw_errors(
    results: ReportData,
    canvas: Canvas,
    error_axes: Axes,
    by_cell: Mapping[str, Sequence[Score]],
    model: str,
) -> None:
    """Draw the errors of one model, a mark in the column of each cell."""
    models = results.scored_models
    # Marks of one cell stand a little apart, so that equal errors do not hide another.
    shift = (models.index(model) - (len(models) - 1) / 2) * min(0.12, 0.7 / len(models))
    points = []
    for column, (cell, scores) in enumerate(by_cell.items()):
        for score in scores:
            if score.model == model:
                error = percent(score.signed_error, score.floor, signed=True)
                tooltip = f"{model}, {results.label(cell)}: {error}"
                points.append((column + shift, 100 * score.signed_error, tooltip))
    look = results.models.index(model)
    style = marker(look, look)
    canvas.points(error_axes, points, **style, label=one_line(model, 28))


def name_cells(results: ReportData, error_axes: Axes, cells: Sequence[str], width: float) -> None:
    """Write labels below the columns, or names of workloads below many; *width* is in inches."""
    workloads = [results.workload_of(cell) for cell in cells]
    starts = [workloads.index(workload) for workload in dict.fromkeys(workloads)]
    for start in starts[1:]:
        error_axes.axvline(start - 0.5, color=MUTED, linewidth=0.6)
    if len(cells) > _MOST_NAMED:
        ends = [*starts[1:], len(cells)]
        middles = [(start + end - 1) / 2 for start, end in zip(starts, ends, strict=True)]
        error_axes.set_xticks(middles, [one_line(workloads[start], 24) for start in starts])
        return
    names = [one_line(results.label(cell), 60).replace("=", "= ") for cell in cells]
    room = _ROOM * width / len(cells)
    longest = max(len(word) for word in " ".join(names).split())
    size = min(8.0, max(5.5, room / (_WIDTH * longest)))
    lines = [textwrap.fill(name, max(8, int(room / (_WIDTH * size)))) for name in names]
    error_axes.set_xticks(range(len(cells)), lines, fontsize=size)


def error_table(results: ReportData, quantity: str) -> Table:
    """Every error of one quantity; at reference speed, too, where it differs."""
    by_cell: dict[tuple[str, Speed], dict[str, Score]] = {}
    for speed in results.speeds():
        for score in results.scores(quantity, speed):
            if speed in results.speeds(results.workload_of(score.cell)):
                by_cell.setdefault((score.cell, speed), {})[score.model] = score
    table_rows: list[tuple[str | Value, ...]] = []
    places = results.cell_places(cell for cell, _ in by_cell)
    for cell, speed in sorted(by_cell, key=lambda key: (places[key[0]], key[1])):
        by_model = by_cell[cell, speed]
        errors = [error_value(by_model.get(model)) for model in results.scored_models]
        first = next(iter(by_model.values()))
        row = (results.label(cell), speed, first.range, str(first.trials))
        measured = number(first.measured_s, noise_s(first))
        table_rows.append((*row, measured, floor_percent(first.floor), *errors))
    name = ANSWERED.get(quantity, QUANTITIES[quantity])
    return table(
        f"{name}: error, and in brackets as a multiple of the noise",
        ("Cell", "Speed", "Range", "Repeats", "Measured, s", "Noise", *results.scored_models),
        "lllrrr" + "r" * len(results.scored_models),
        table_rows,
        folded=quantity != results.answered,
    )


def error_value(score: Score | None) -> Value:
    """A signed error, and how many times the noise it is, where that is known."""
    if score is None:
        return Value(UNKNOWN)
    text = percent(score.signed_error, score.floor, signed=True)
    if score.floor:
        text += f" ({number(score.relative_error / score.floor, 0.3)}x)"
    return Value(text, signed_tone(score.signed_error, score.floor))
