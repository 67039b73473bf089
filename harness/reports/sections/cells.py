"""Every model's error in every cell, beside the noise: the figure of the first screen."""

from __future__ import annotations

import textwrap

from harness.records.score import Score, Speed
from harness.reports.answer import ANSWERED
from harness.reports.data import ReportData, noise_s
from harness.reports.document import Figure, Section, Table, Value, signed_tone, table
from harness.reports.drawing import BAND, INK, MUTED, WIDE, Canvas, grid, marker
from harness.reports.wording import QUANTITIES, UNKNOWN, floor_percent, number, one_line, percent

_MOST_NAMED = 12  # cells with their labels below them: of more, their workloads
_ROOM = 58.0  # points for labels below an inch of the figure
_WIDTH = 0.62  # of a letter, by its size
_FAR = 1.5  # relative error beyond which the axis is logarithmic outside of ± 50 %


def section(results: ReportData) -> Section:
    """Errors of what the verdict is on, which the first screen draws; on demand all others."""
    others = [quantity for quantity in QUANTITIES if quantity != results.answered]
    return Section(
        id="cells",
        title="Errors per cell",
        blocks=[error_table(results, quantity) for quantity in (results.answered, *others)],
        missing="No cell has both a prediction and a measurement.",
    )


def errors_figure(results: ReportData) -> Figure | None:
    """Signed errors of the times that the verdict is on, a column per cell, a mark per model."""
    by_cell: dict[str, list[Score]] = {}
    for cell_score in results.scores(results.answered, "raw"):
        by_cell.setdefault(cell_score.cell, []).append(cell_score)
    if not by_cell:
        return None
    cells = list(by_cell)
    models = results.scored_models
    time = ANSWERED[results.answered]

    def draw(canvas: Canvas) -> None:
        error_axes = canvas.figure.add_subplot()
        floors = [by_cell[cell][0].floor or 0.0 for cell in cells]
        bars = error_axes.bar(
            range(len(cells)),
            [200 * floor for floor in floors],
            width=1,
            color=BAND,
            bottom=[-100 * floor for floor in floors],
            label="noise" if any(floors) else None,
        )
        for cell, bar in zip(cells, bars, strict=True):
            first = by_cell[cell][0]
            noise = f"{results.label(cell)}: noise ±{floor_percent(first.floor)}"
            canvas.mark(bar, f"{noise} of {first.trials} repeats, {first.range}")
        for aside, model in enumerate(models):
            # Marks of one cell stand a little apart, so that equal errors do not hide another.
            shift = (aside - (len(models) - 1) / 2) * min(0.12, 0.7 / len(models))
            points = []
            for column, cell in enumerate(cells):
                for each in (each for each in by_cell[cell] if each.model == model):
                    error = percent(each.signed_error, each.floor, signed=True)
                    tooltip = f"{model}, {results.label(cell)}: {error}"
                    points.append((column + shift, 100 * each.signed_error, tooltip))
            place = results.models.index(model)
            canvas.points(error_axes, points, **marker(place, place), label=one_line(model, 28))
        error_axes.axhline(0, color=INK, linewidth=0.9, zorder=1)
        if max(each.signed_error for several in by_cell.values() for each in several) > _FAR:
            error_axes.set_yscale("symlog", linthresh=50)
        error_axes.yaxis.set_major_formatter(lambda share, _: f"{share:+g} %" if share else "0")
        error_axes.set(xlim=(-0.5, len(cells) - 0.5), ylabel="too short  ←  error  →  too long")
        grid(error_axes, "y")
        workloads = [results.workload_of(cell) for cell in cells]
        starts = [place for place in range(len(cells)) if workloads[place] not in workloads[:place]]
        for start in starts[1:]:
            error_axes.axvline(start - 0.5, color=MUTED, linewidth=0.6)
        if len(cells) > _MOST_NAMED:
            ends = [*starts[1:], len(cells)]
            middles = [(start + end - 1) / 2 for start, end in zip(starts, ends, strict=True)]
            error_axes.set_xticks(middles, [one_line(workloads[start], 24) for start in starts])
        else:
            names = [one_line(results.label(cell), 60).replace("=", "= ") for cell in cells]
            room = _ROOM * canvas.figure.get_figwidth() / len(cells)
            longest = max(len(word) for name in names for word in name.split())
            size = min(8.0, max(5.5, room / (_WIDTH * longest)))
            lines = [textwrap.fill(name, max(8, int(room / (_WIDTH * size)))) for name in names]
            error_axes.set_xticks(range(len(cells)), lines, fontsize=size)
        canvas.figure.legend(loc="outside upper left", ncols=6)

    caption = (
        f"Relative error of every model's {time} (marks) in every cell (columns,"
        " smaller inputs first). The grey band is the noise of each cell: a mark inside it says"
        " nothing about the model."
    )
    title = f"Errors of the {time}, of every model in every cell"
    return Figure("errors", title, WIDE, 3.6, caption, error_table(results, results.answered), draw)


def error_table(results: ReportData, quantity: str) -> Table:
    """Every error of one quantity; at reference speed, too, where it differs."""
    models = results.scored_models
    by_cell: dict[tuple[str, Speed], dict[str, Score]] = {}
    for speed in results.speeds():
        for score in results.scores(quantity, speed):
            if speed in results.speeds(results.workload_of(score.cell)):
                by_cell.setdefault((score.cell, speed), {})[score.model] = score
    table_rows: list[tuple[str | Value, ...]] = []
    places = results.cell_places(cell for cell, _ in by_cell)
    for cell, speed in sorted(by_cell, key=lambda key: (places[key[0]], key[1])):
        by_model = by_cell[cell, speed]
        errors = []
        for model in models:
            text = UNKNOWN
            tone = ""
            if scored := by_model.get(model):
                text = percent(scored.signed_error, scored.floor, signed=True)
                tone = signed_tone(scored.signed_error, scored.floor)
                if scored.floor:
                    text += f" ({number(scored.relative_error / scored.floor, 0.3)}x)"
            errors.append(Value(text, tone))
        first = next(iter(by_model.values()))
        row = (results.label(cell), speed, first.range, str(first.trials))
        measured = number(first.measured_s, noise_s(first))
        table_rows.append((*row, measured, floor_percent(first.floor), *errors))
    name = ANSWERED.get(quantity, QUANTITIES[quantity])
    return table(
        f"{name}: error, and in brackets as a multiple of the noise",
        ("Cell", "Speed", "Range", "Repeats", "Measured, s", "Noise", *models),
        "lllrrr" + "r" * len(models),
        table_rows,
        folded=quantity != results.answered,
    )
