"""Trials that are added while a plan is measured: until a verdict, or of the fastest cells."""

from __future__ import annotations

from collections import Counter, defaultdict
from statistics import fmean

from harness.base.records.trial import Trial, Versions
from harness.base.stats.sequential import LOOKS
from harness.core.evaluate.flow import Evaluation
from harness.core.experiment.grid import is_profiling
from harness.core.experiment.sentinels import with_sentinels
from harness.core.run import Console
from harness.scoring.repeats import next_repeats


def until_decided(evaluation: Evaluation, versions: Versions, console: Console) -> list[Trial]:
    """Trials of the next look at the data: none where it has a verdict or no time is left."""
    look = _next_look(evaluation)
    times_s = scored_times(evaluation)
    cells = list[str]()
    reason = "no scored trial was done"
    if times_s:
        cells, reason = next_repeats(evaluation.score(), evaluation.measurements())
    spent_s = sum(map(sum, times_s.values()))
    numbers = Counter(trial.cell.id for trial in evaluation.plan)
    trials: list[Trial] = []
    for cell_id in cells if look < LOOKS else ():
        spent_s += fmean(times_s[cell_id])
        if spent_s > evaluation.experiment.budget_s:
            break
        cell = evaluation.cells[cell_id]
        trials.append(Trial.of(cell, numbers[cell_id], versions, look=look, reason=reason))
        numbers[cell_id] += 1
    if not trials:
        spent = f"{LOOKS} looks are" if look >= LOOKS else "the budget is"
        ended = f"{spent} spent; {reason}" if cells else reason
        console.say(f"no more trials: {ended}")
        evaluation.run.update_manifest(repeats_ended=ended)
    trials.sort(key=lambda trial: trial.cell.cluster.id)  # each cluster starts once
    return _among_sentinels(trials, evaluation, versions)


def more_of_fastest(evaluation: Evaluation, versions: Versions) -> list[Trial]:
    """What the fastest cells of each input lack of their repeats: none at the end."""
    experiment = evaluation.experiment
    look = _next_look(evaluation)
    times_s: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for measurement in evaluation.measurements():
        times_s[measurement.input][measurement.cell].append(measurement.raw_s["job_s"])
    numbers = Counter(trial.cell.id for trial in evaluation.plan)
    reason = f"of its input it is one of the {experiment.fastest} fastest cells"
    trials = list[Trial]()
    for by_cell in times_s.values():
        mean_s = {cell_id: fmean(cell_times_s) for cell_id, cell_times_s in by_cell.items()}
        for cell_id in sorted(mean_s, key=mean_s.__getitem__)[: experiment.fastest]:
            cell = evaluation.cells[cell_id]
            for number in range(numbers[cell_id], experiment.repeat):
                trials.append(Trial.of(cell, number, versions, look=look, reason=reason))
    trials.sort(key=lambda trial: (trial.cell.cluster.id, trial.repetition, trial.id))
    return _among_sentinels(trials, evaluation, versions)


def scored_times(evaluation: Evaluation) -> dict[str, list[float]]:
    """Seconds that the scored trials took which are done, by the id of their cell."""
    times_s: dict[str, list[float]] = defaultdict(list)
    for record in evaluation.done.values():
        if record.trial.is_scored:
            times_s[record.trial.cell.id].append(record.finished_s - record.started_s)
    return times_s


def _among_sentinels(
    trials: list[Trial], evaluation: Evaluation, versions: Versions
) -> list[Trial]:
    """*trials* to be added, with sentinels among them where the experiment has some."""
    experiment = evaluation.experiment
    if not (experiment.sentinels and experiment.predict.is_blind):
        return trials
    cells = evaluation.cells.values()
    feeding = [cell for cell in cells if is_profiling(cell, experiment.predict)]
    return [*with_sentinels(trials, feeding, experiment, versions, evaluation.plan)]


def _next_look(evaluation: Evaluation) -> int:
    return 1 + max(trial.look for trial in evaluation.plan)
