"""Tasks and their phases: measured beside what each model predicts, and the error of each."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean, median

from harness.reports.answer import error_noise
from harness.reports.data import ReportData
from harness.reports.document import Figure, Figures, Section, Table, Value, signed_tone, table
from harness.reports.drawing import WIDE, Canvas, Stack, draw_stacks
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
        mean_seconds, cells = phase_means(results, workload)
        if mean_seconds:
            figures.append(phases_figure(place, workload, mean_seconds, cells))
    return Section(
        id="phases",
        title="Tasks and phases",
        blocks=[
            Figures(figures, "Errors of phases can cancel in their sum."),
            *(level_table(results, workload) for workload in results.workloads()),
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
        phase_score
        for phase_score in results.score_book.scores
        if phase_score.quantity in PHASE_TEXTURES
        and phase_score.speed == "raw"
        and results.workload_of(phase_score.cell) == workload
    ]
    cells: dict[str, set[str]] = {}
    for phase_score in chosen:
        cells.setdefault(phase_score.model, set()).add(phase_score.cell)
    common = set.intersection(*cells.values()) if cells else set()
    if not common:
        return {}, 0
    answering = [model for model in results.models() if model in cells]
    mean_seconds: dict[str, dict[str, float]] = {}
    for source in ("measured", *answering):
        model = answering[0] if source == "measured" else source
        values: dict[str, list[float]] = {quantity: [] for quantity in PHASE_TEXTURES}
        for phase_score in chosen:
            if phase_score.model == model and phase_score.cell in common:
                time_s = phase_score.measured_s if source == "measured" else phase_score.predicted_s
                values[phase_score.quantity].append(time_s)
        mean_seconds[source] = {
            quantity: fmean(times) for quantity, times in values.items() if times
        }
    return mean_seconds, len(common)


def phases_figure(
    place: int, workload: str, mean_seconds: Mapping[str, Mapping[str, float]], cells: int
) -> Figure:
    """Stacked mean seconds of each phase, as measured and by model."""
    stacks, rows = [], []
    for task_kind, phases in _KINDS.items():
        for source, means in mean_seconds.items():
            pieces = []
            for phase in phases:
                if phase in means:
                    texture = PHASE_TEXTURES[phase]
                    tooltip = f"{source}, {PHASE_NAMES[texture]}: {seconds(means[phase])}"
                    pieces.append((texture, means[phase], tooltip))
                    rows.append((source, PHASE_NAMES[texture], number(means[phase])))
            if pieces:
                stacks.append(Stack(task_kind, f"{task_kind}, {one_line(source, 26)}", pieces))

    def draw(canvas: Canvas) -> None:
        draw_stacks(canvas, stacks, "seconds per task")
        canvas.texture_legend(PHASE_NAMES)

    title = f"{workload}: mean seconds per task and phase, measured and predicted"
    caption = (
        f"{workload}: mean seconds per task and phase over {count(cells, 'cell')}, as measured"
    )
    columns = ("Source", "Phase", "Mean, s")
    data = table(f"{workload}: data of the figure", columns, "llr", rows, folded=True)
    height = 1.0 + 0.3 * len(stacks) + 0.2 * len({stack.group for stack in stacks})
    name = f"phases{place}"
    return Figure(name, title, WIDE, height, f"{caption} and as predicted.", data, draw)


def level_table(results: ReportData, workload: str) -> Table:
    """Errors at job, task and phase level of one workload, at both speeds."""
    models = results.scored_models()
    rows: list[tuple[str | Value, ...]] = []
    for quantity, name in QUANTITIES.items():
        for speed in SPEEDS:
            measured = {
                phase_score.cell: phase_score
                for phase_score in results.scores(quantity, speed, workload)
            }
            if not measured:
                continue
            mean_s = fmean(phase_score.measured_s for phase_score in measured.values())
            floors = [
                phase_score.floor
                for phase_score in measured.values()
                if phase_score.floor is not None
            ]
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
