"""Tasks and their phases: measured beside what each model predicts, and the error of each."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean, median

from harness.reports.answer import error_noise
from harness.reports.data import ReportData
from harness.reports.document import Figure, Figures, Section, Table, Value, signed_tone, table
from harness.reports.drawing import WIDE, Canvas, row_axes
from harness.reports.sections.scores import SPEEDS
from harness.reports.wording import (
    QUANTITIES,
    UNKNOWN,
    count,
    floor_percent,
    number,
    one_line,
    percent,
    seconds,
)

# What people call the phases of a task and the states of an attempt, by their textures.
PHASE_NAMES = {
    "map": "map",
    "map_tail": "last spill, merge",
    "shuffle": "shuffle",
    "sort": "sort (merge)",
    "reduce": "reduce",
    "failed": "failed attempt",
    "killed": "killed attempt",
}
# Texture of each phase that is scored.
PHASE_TEXTURES = {
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


def section(results: ReportData) -> Section:
    """Mean seconds of each phase per task, and errors at job, task and phase level."""
    figures = []
    for place, workload in enumerate(results.workloads()):
        means, cells = phase_means(results, workload)
        if means:
            figures.append(_figure(place, workload, means, cells))
    return Section(
        id="phases",
        title="Tasks and phases",
        blocks=[
            Figures(figures, "Errors of phases can cancel in their sum."),
            *(_error_table(results, workload) for workload in results.workloads()),
        ],
        missing="No task or phase has been scored.",
    )


def phase_means(
    results: ReportData, workload: str
) -> tuple[Mapping[str, Mapping[str, float]], int]:
    """
    Mean seconds of each phase, `measured` and by model, over the cells that all models answer.

    The second value counts those cells; without any the first is empty.
    """
    chosen = [
        score
        for score in results.book.scores
        if score.quantity in PHASE_TEXTURES
        and score.speed == "raw"
        and results.workload_of(score.cell) == workload
    ]
    cells: dict[str, set[str]] = {}
    for score in chosen:
        cells.setdefault(score.model, set()).add(score.cell)
    common = set.intersection(*cells.values()) if cells else set()
    if not common:
        return {}, 0
    answering = [model for model in results.models() if model in cells]
    means: dict[str, dict[str, float]] = {}
    for source in ("measured", *answering):
        model = answering[0] if source == "measured" else source
        values: dict[str, list[float]] = {quantity: [] for quantity in PHASE_TEXTURES}
        for score in chosen:
            if score.model == model and score.cell in common:
                time_s = score.measured_s if source == "measured" else score.predicted_s
                values[score.quantity].append(time_s)
        means[source] = {quantity: fmean(times) for quantity, times in values.items() if times}
    return means, len(common)


def _figure(
    place: int, workload: str, means: Mapping[str, Mapping[str, float]], cells: int
) -> Figure:
    stacks = [
        (kind, source, [phase for phase in phases if phase in of])
        for kind, phases in _KINDS.items()
        for source, of in means.items()
        if any(phase in of for phase in phases)
    ]

    def draw(canvas: Canvas) -> None:
        axes = canvas.figure.add_subplot()
        names, row, before, longest = [], -1.0, stacks[0][0], 0.0
        for kind, source, phases in stacks:
            row += 1.5 if kind != before else 1.0
            before, start = kind, 0.0
            for phase in phases:
                end = start + means[source][phase]
                texture = PHASE_TEXTURES[phase]
                tooltip = f"{source}, {PHASE_NAMES[texture]}: {seconds(end - start)}"
                canvas.bar(axes, row, (start, end), texture, tooltip=tooltip)
                start = end
            axes.annotate(number(start), (start, row), (4, 0), textcoords="offset points",
                          va="center", fontsize=8.5)  # fmt: skip
            names.append((row, f"{kind}, {one_line(source, 26)}"))
            longest = max(longest, start)
        row_axes(axes, names, longest * 1.1, "seconds per task")
        canvas.texture_legend(PHASE_NAMES)

    rows = [
        (source, PHASE_NAMES[PHASE_TEXTURES[phase]], number(mean_s))
        for source, of in means.items()
        for phase, mean_s in of.items()
    ]
    kinds = len({kind for kind, _, _ in stacks})
    columns = ("Source", "Phase", "Mean, s")
    return Figure(
        name=f"phases{place}",
        title=f"{workload}: mean seconds per task and phase, measured and predicted",
        width=WIDE,
        height=1.0 + 0.3 * len(stacks) + 0.2 * kinds,
        caption=f"{workload}: mean seconds per task and phase over {count(cells, 'cell')}, as"
        " measured and as predicted.",
        data=table(f"{workload}: data of the figure", columns, "llr", rows, folded=True),
        draw=draw,
    )


def _error_table(results: ReportData, workload: str) -> Table:
    """Errors at job, task and phase level of one workload, at both speeds."""
    models = results.scored_models()
    rows: list[tuple[str | Value, ...]] = []
    for quantity, name in QUANTITIES.items():
        for speed in SPEEDS:
            measured = {score.cell: score for score in results.scores(quantity, speed, workload)}
            if not measured:
                continue
            mean_s = fmean(score.measured_s for score in measured.values())
            floors = [score.floor for score in measured.values() if score.floor is not None]
            floor = median(floors) if floors else None
            errors: list[str | Value] = []
            for model in models:
                summary = results.summary(model, speed, workload, quantity)
                if summary is None:
                    errors.append(UNKNOWN)
                    continue
                noise, signed = error_noise(summary), summary.value("signed_error") or 0.0
                text = f"{percent(summary.value('mape'), noise)}"
                text += f" ({percent(signed, noise, signed=True)})"
                errors.append(Value(text, signed_tone(signed, summary.value("noise_floor"))))
            noise_s = mean_s * floor if floor else None
            rows.append((name, speed, number(mean_s, noise_s), floor_percent(floor), *errors))
    return table(
        f"{workload}: mean error by level, and in brackets with its sign",
        ("Quantity", "Speed", "Measured, s", "Noise floor", *models),
        "llrr" + "r" * len(models),
        rows,
        note="Makespan: first task start to last task end. Map, main: start, read, map function,"
        " spills; tail: last spill and merge. Reduce, rest: reduce function and write.",
    )
