"""Tasks and their phases: measured and predicted seconds, errors, and what an error is worth."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean, median

from harness.base.documents.document import (
    Figure,
    Figures,
    Section,
    Table,
    Value,
    signed_tone,
    table,
)
from harness.base.documents.drawing import WIDE, Stack, stacked
from harness.base.documents.wording import (
    JOB_TIMES,
    QUANTITIES,
    UNKNOWN,
    count,
    floor_percent,
    number,
    one_line,
    percent,
    seconds,
)
from harness.base.records.score import Decomposition, Score, Summary
from harness.base.records.statistics import TASK_PARTS, TaskPart
from harness.core.reports.answer import error_noise
from harness.core.reports.data import ReportData

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
# Phases that are scored, with their textures, by the kind of task.
_KINDS = {
    "map task": {"map_main_s": "map", "map_tail_s": "map_tail"},
    "reduce task": {"shuffle_s": "shuffle", "sort_s": "sort", "reduce_rest_s": "reduce"},
}
PHASE_TEXTURES = _KINDS["map task"] | _KINDS["reduce task"]
_STEP_NAMES = {
    **{phase: PHASE_NAMES[texture] for phase, texture in PHASE_TEXTURES.items()},
    "rest_s": "overlap and waiting",
}


def section(results: ReportData) -> Section:
    """Mean seconds of each phase per task, and errors at job, task and phase level."""
    figures = [phases_figure(results, *item) for item in enumerate(results.workloads)]
    return Section(
        id="phases",
        title="Tasks and phases",
        blocks=[
            Figures(
                [figure for figure in figures if figure], "Errors of phases can cancel in sums."
            ),
            *(level_table(results, workload) for workload in results.workloads),
            *(equation_table(results, workload) for workload in results.workloads),
        ],
        missing="No task or phase has been scored.",
    )


def decomposition_section(results: ReportData) -> Section:
    """From the measured body to the predicted one: a figure per workload, a bar per model."""
    decompositions = results.score_book.decompositions
    figures = [steps_figure(results, *item) for item in enumerate(results.workloads)]
    return Section(
        id="decomposition",
        title="Where the error of a job comes from",
        blocks=[Figures([figure for figure in figures if figure])],
        missing="No error of a body could be broken down by phases.",
        values=lambda: {
            "decompositions": [
                {"label": results.label(decomposition.cell), **vars(decomposition)}
                for decomposition in decompositions
            ]
        },
    )


def phase_means(
    results: ReportData, workload: str
) -> tuple[Mapping[str, Mapping[str, float]], int]:
    """
    Mean seconds of each phase, `measured` and by model, over the cells that all models answer.

    The second value counts those cells; without any the first is empty.
    """
    scores_by_model = _scores_by_model(results, workload)
    cells = [{score.cell for score in scores} for scores in scores_by_model.values()]
    common = set.intersection(*cells) if cells else set()
    if not common:
        return {}, 0
    means = dict[str, Mapping[str, float]]()
    for model in results.models:
        scores = [score for score in scores_by_model.get(model, ()) if score.cell in common]
        if scores:
            # What was measured is the same beside every model.
            means.setdefault("measured", _means_by_phase(scores, "measured_s"))
            means[model] = _means_by_phase(scores, "predicted_s")
    return means, len(common)


def _scores_by_model(results: ReportData, workload: str) -> dict[str, list[Score]]:
    """Scores of all phases of one workload, by model, at the speed at which models are compared."""
    scores_by_model = defaultdict[str, list[Score]](list)
    for phase in PHASE_TEXTURES:
        for score in results.scores(phase, results.speed, workload):
            scores_by_model[score.model].append(score)
    return scores_by_model


def _means_by_phase(scores: Iterable[Score], field: str) -> dict[str, float]:
    """Mean seconds of each phase, by a field of its scores."""
    seconds_by_phase = defaultdict[str, list[float]](list)
    for score in scores:
        seconds_by_phase[score.quantity].append(getattr(score, field))
    return {phase: fmean(times_s) for phase, times_s in seconds_by_phase.items()}


def phases_figure(results: ReportData, place: int, workload: str) -> Figure | None:
    """Stacked mean seconds of each phase, as measured and by model; `None` without any."""
    mean_seconds, cells = phase_means(results, workload)
    stacks = []
    table_rows = []
    for task_kind, phases in _KINDS.items():
        for source, means in mean_seconds.items():
            pieces = []
            for phase, texture in phases.items():
                if phase in means:
                    tooltip = f"{source}, {PHASE_NAMES[texture]}: {seconds(means[phase])}"
                    pieces.append((texture, means[phase], tooltip))
                    table_rows.append((source, PHASE_NAMES[texture], number(means[phase])))
            if pieces:
                stacks.append(Stack(task_kind, f"{task_kind}, {one_line(source, 26)}", pieces))
    if not stacks:
        return None
    title = f"{workload}: mean seconds per task and phase, measured and predicted"
    caption = (
        f"{workload}: mean seconds per task and phase over {count(cells, 'cell')}, as measured"
        " and as predicted."
    )
    columns = ("Source", "Phase", "Mean, s")
    data = table(f"{workload}: data of the figure", columns, "llr", table_rows, folded=True)
    height, draw = stacked(stacks, "seconds per task", PHASE_NAMES)
    return Figure(f"phases{place}", title, WIDE, height, caption, data, draw)


def level_table(results: ReportData, workload: str) -> Table:
    """Errors at job, task and phase level of one workload, at both speeds."""
    models = results.scored_models
    table_rows: list[tuple[str | Value, ...]] = []
    for quantity, name in QUANTITIES.items():
        if quantity in JOB_TIMES:  # which are in the table of scores
            continue
        for speed in results.speeds(workload):
            scores = results.scores(quantity, speed, workload)
            if scores:
                summaries = [results.summary(model, speed, workload, quantity) for model in models]
                errors = [_error_value(summary) for summary in summaries]
                table_rows.append((name, speed, *_measured_cells(scores), *errors))
    return table(
        f"{workload}: mean error by level, and in brackets with its sign",
        ("Quantity", "Speed", "Measured, s", "Noise floor", *models),
        "llrr" + "r" * len(models),
        table_rows,
        note="Makespan: first task start to last task end. Tasks"
        " and phases are without start and end of their JVMs. Map, main: read, map function,"
        " spills; tail: last spill and merge. Reduce, rest: reduce function and write.",
    )


def _measured_cells(scores: Iterable[Score]) -> tuple[str, str]:
    """Mean measured seconds of the scored cells, and their median noise floor."""
    by_cell = {score.cell: score for score in scores}
    mean_s = fmean(score.measured_s for score in by_cell.values())
    floors = [score.floor for score in by_cell.values() if score.floor is not None]
    floor = median(floors) if floors else None
    return number(mean_s, mean_s * floor if floor else None), floor_percent(floor)


def _error_value(summary: Summary | None) -> str | Value:
    """Mean error of a model, and in brackets with its sign."""
    if summary is None:
        return UNKNOWN
    noise = error_noise(summary)
    signed = summary.value("signed_error") or 0.0
    text = f"{percent(summary.value('mape'), noise)} ({percent(signed, noise, signed=True)})"
    return Value(text, signed_tone(signed, summary.value("noise_floor")))


def equation_table(results: ReportData, workload: str) -> Table:
    """What single equations say of a task beside what recordings show, mean seconds over cells."""
    table_rows: list[tuple[str | Value, ...]] = []
    for model in results.scored_models:
        for part in TASK_PARTS.values():
            if not part.equation:
                continue
            scores = [
                score
                for score in results.scores(part.name, results.speed, workload)
                if score.model == model
            ]
            if scores:
                table_rows.append(_equation_row(model, part, scores))
    return table(
        f"{workload}: equations against spans, seconds per task",
        ("Model", "Part", "Equation", "Cells", "Predicted, s", "Measured, s", "Mean error"),
        "lllrrrr",
        table_rows,
        note="Of tasks that were recorded. Waiting is in no part: for maps, for memory, blocked.",
        folded=True,
    )


def _equation_row(model: str, part: TaskPart, scores: Sequence[Score]) -> tuple[str | Value, ...]:
    """What one equation says of a part of a task, over the cells of *scores*."""
    equation = part.equation
    if model == "prophet" and part.prophets:
        equation = part.prophets
    error = fmean(score.signed_error for score in scores)
    return (
        model,
        part.name.removesuffix("_s").replace("_", " "),
        equation,
        str(len(scores)),
        number(fmean(score.predicted_s for score in scores), 0.001),
        number(fmean(score.measured_s for score in scores), 0.001),
        Value(percent(error, signed=True), signed_tone(error, None)),
    )


def steps_figure(results: ReportData, place: int, workload: str) -> Figure | None:
    """From the measured to the predicted mean body: the mean errors of the phases, by model."""
    by_model = defaultdict[str, list[Decomposition]](list)
    decomposed = set[str]()
    for decomposition in results.score_book.decompositions:
        if (
            decomposition.speed == results.speed
            and results.workload_of(decomposition.cell) == workload
        ):
            by_model[decomposition.model].append(decomposition)
            decomposed |= decomposition.parts.keys()
    names = {phase: name for phase, name in _STEP_NAMES.items() if phase in decomposed}
    stacks = []
    table_rows = []
    cells = 0
    for model in results.models:
        if chosen := by_model.get(model):
            stacks.append(_steps(model, names, chosen))
            table_rows.append(_steps_row(model, names, chosen))
            cells = max(cells, len(chosen))
    if not stacks:
        return None
    data = table(
        f"{workload}: where the error of the body comes from (means over cells, s)",
        ("Model", "Cells", "Measured", *names.values(), "Predicted", "Cancels"),
        "l" + "r" * (len(names) + 4),
        table_rows,
        note="What cancels is the share of these errors that the body does not show.",
    )
    caption = (
        f"{workload}: mean over {count(cells, 'cell')}. The error of a phase counts once per wave"
        " of its tasks; what phases do not explain is overlap and waiting. Beside a model stands"
        " the measured body, beside its bars by how much the predicted one is longer: what lies on"
        " both sides of 0 cancels."
    )
    title = f"{workload}: from the measured body to the predicted one"
    label = "predicted too short  ←   seconds of the body   →  too long"
    height, draw = stacked(stacks, label, PHASE_NAMES | {"other": _STEP_NAMES["rest_s"]})
    return Figure(f"waterfall{place}", title, WIDE, height, caption, data, draw)


def _mean_steps(phases: Iterable[str], chosen: Sequence[Decomposition]) -> dict[str, float]:
    """Mean error of each of *phases* that some cell shows, in seconds of the body."""
    means_s = {}
    for phase in phases:
        if any(phase in decomposition.parts for decomposition in chosen):
            means_s[phase] = fmean(decomposition.parts.get(phase, 0.0) for decomposition in chosen)
    return means_s


def _mean_measured(chosen: Sequence[Decomposition]) -> str:
    return number(fmean(decomposition.measured_s for decomposition in chosen))


def _steps(model: str, names: Mapping[str, str], chosen: Sequence[Decomposition]) -> Stack:
    """The bar of one model: a piece for the mean error of each phase."""
    pieces = []
    for phase, mean_s in _mean_steps(names, chosen).items():
        tooltip = f"{model}, {names[phase]}: {number(mean_s)} s in the body"
        pieces.append((PHASE_TEXTURES.get(phase, "other"), mean_s, tooltip))
    return Stack("", f"{one_line(model, 26)}, {_mean_measured(chosen)} s", pieces)


def _steps_row(
    model: str, names: Mapping[str, str], chosen: Sequence[Decomposition]
) -> tuple[str, ...]:
    """The same as a row of a table, between the measured and the predicted mean body."""
    texts = {phase: f"{mean_s:+.1f}" for phase, mean_s in _mean_steps(names, chosen).items()}
    steps = [texts.get(phase, "") for phase in names]
    predicted = number(fmean(decomposition.predicted_s for decomposition in chosen))
    cancelled = percent(fmean(decomposition.cancelled for decomposition in chosen))
    return model, str(len(chosen)), _mean_measured(chosen), *steps, predicted, cancelled
