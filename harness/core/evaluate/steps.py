"""
The steps from stored trials to scores: profiles, sealed predictions, scores; each stores its own.

Nothing here needs Hadoop: every number can be made again from the run's files on any machine.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import chain

from harness.base.errors import DataError, EvidenceError, HarnessError
from harness.base.records.draw import Draw
from harness.base.records.prediction import Prediction
from harness.base.records.profile import Profile, Statistic
from harness.base.records.question import Asked, Question
from harness.base.records.score import ScoreBook
from harness.base.records.trial import Trial
from harness.base.stats.resampling import FEWEST_REFITS
from harness.base.stats.sequential import LOOK_ERROR
from harness.base.text import excerpt
from harness.clusters.monitor.rates import rate_statistics
from harness.core.evaluate.drawn import draw_cells
from harness.core.evaluate.drift import drift_of
from harness.core.evaluate.laws import broken_laws
from harness.core.evaluate.measurements import measure_profiling, measure_trials
from harness.core.evaluate.predict import predict_cells
from harness.core.evaluate.provenance import asked_model, blind_refusals
from harness.core.evaluate.stored import StoredTrials
from harness.core.store import Run
from harness.observe.profiling import fit_profile, fit_speed
from harness.observe.profiling.jobs import Observation
from harness.scoring import score
from harness.scoring.comparisons import FAMILY_ERROR
from harness.scoring.tallies import PlannedTrial

PlanOfDraw = Callable[[Draw], Sequence[Trial]]

MOST_REPEATS = 12  # of a profile, where no cell has more trials
MOST_REFITS = 20  # of a profile: their number bounds what predictions cost


def profile_run(trials: StoredTrials) -> dict[str, Profile]:
    """Fit one profile per workload on the profiling trials, and store them."""
    observations = defaultdict[str, list[Observation]](list)
    for record in trials.done.values():
        if record.trial.profiling:
            observations[record.trial.cell.workload.name] += trials.observe(record)
    if not observations and trials.experiment.predict.source:
        what = f"its profiles are those of run {excerpt(trials.experiment.predict.source)}"
        fix = "harness predict FILE takes them over, and --from RUN those of another"
        raise DataError(what, where=str(trials.run.path), fix=fix)
    if not observations:
        what = "no profiling trial has succeeded"
        fix = "run the experiment first (harness run); after it, read why its trials failed"
        failed = [
            record
            for record in trials.records.values()
            if record.trial.profiling and record.state != "done"
        ]
        if failed:
            what += f": {failed[0].trial.id} {failed[0].state}, {excerpt(failed[0].reason, 200)}"
        raise DataError(what, where=str(trials.run.path), fix=fix)
    profiles = fit_profiles(observations, rate_statistics(trials.run.read_manifest().rates))
    for profile in profiles.values():
        trials.run.write_profile(profile)
    return profiles


def fit_profiles(
    observations: Mapping[str, Sequence[Observation]], rates: Mapping[str, Statistic]
) -> dict[str, Profile]:
    """Fit a profile, with refits and repeats, to *observations* of each workload on a machine."""
    # One machine, one reference speed: all workloads share it.
    speed = fit_speed([*chain(*observations.values())])
    profiles = {}
    for workload, observed in observations.items():
        fit = partial(fit_profile, workload, speed=speed, machine=rates)
        update = {"refits": fit_refits(observed, fit), "repeats": fit_repeats(observed, fit)}
        profiles[workload] = fit(observed).model_copy(update=update)
    return profiles


def fit_refits(
    observed: Sequence[Observation], fit: Callable[[Sequence[Observation]], Profile]
) -> tuple[Profile, ...]:
    """
    Profiles by *fit*, each without one profiling cell, or a few where there are many.

    Below four cells there is none: nothing could be concluded from them.
    """
    cells = sorted({observation.trial.cell.id for observation in observed})
    if len(cells) < FEWEST_REFITS:
        return ()
    refits = []
    for place in range(min(len(cells), MOST_REFITS)):
        left_out = set(cells[place::MOST_REFITS])
        kept = [
            observation for observation in observed if observation.trial.cell.id not in left_out
        ]
        with suppress(HarnessError):  # it has no answer then
            refits.append(fit(kept))
    return tuple(refits)


def fit_repeats(
    observed: Sequence[Observation], fit: Callable[[Sequence[Observation]], Profile]
) -> tuple[Profile, ...]:
    """
    Profiles by *fit*, each without one trial of some cells, which have others.

    None where a cell ran once: how far the profile varies is not known then.
    """
    by_cell = defaultdict[str, dict[str, None]](dict)
    # In the order in which they ran: names of cells and trials change when a run is published.
    for observation in sorted(observed, key=lambda observation: observation.trace.submit_s):
        by_cell[observation.trial.cell.id][observation.trial.id] = None
    repeats = []
    for left_out in trials_left_out([[*ids] for ids in by_cell.values()]):
        kept = [observation for observation in observed if observation.trial.id not in left_out]
        try:
            repeats.append(fit(kept))
        except HarnessError:
            return ()
    return tuple(repeats)


def trials_left_out(trials_by_cell: Sequence[Sequence[str]]) -> list[set[str]]:
    """
    Which trials each repeat of a profile lacks: each trial is in one set, and no cell twice.

    >>> [sorted(chosen) for chosen in trials_left_out([["a", "b"], ["c", "d"]])]
    [['a'], ['c'], ['b'], ['d']]
    """
    most_trials = max(map(len, trials_by_cell), default=0)
    if not most_trials or min(map(len, trials_by_cell)) < 2:
        return []
    parts = min(len(trials_by_cell), max(1, MOST_REPEATS // most_trials))
    chosen = [
        {ids[number] for ids in trials_by_cell[part::parts] if number < len(ids)}
        for number in range(most_trials)
        for part in range(parts)
    ]
    return [ids for ids in chosen if ids]


def with_drawn_cells(
    trials: StoredTrials, profiles: Mapping[str, Profile], plan_of: PlanOfDraw | None
) -> StoredTrials:
    """
    Draw the cells of a drawn design, and give *trials* with the plan that *plan_of* makes of them.

    Without *plan_of* they are as they are; `DataError` where cells are still to be drawn.
    """
    run = trials.run
    if plan_of is not None:
        draw = draw_cells(trials.experiment, profiles, str(run.path))
        run.write_draw(draw)
        trials = replace(trials, plan=plan_of(draw))
        run.write_plan(trials.plan)
    elif trials.experiment.is_drawn and run.measured.read_draw() is None:
        what = "its cells are drawn when it goes on, and none are yet"
        raise DataError(what, where=str(run.path), fix="measure it: harness run FILE")
    return trials


def predict_run(trials: StoredTrials, plan_of: PlanOfDraw | None = None) -> list[Prediction]:
    """
    Have every model predict every scored cell, store the predictions and seal them.

    Of a drawn design the cells are drawn first, where *plan_of* gives the plan with their trials.
    """
    run = trials.run
    profiles = run.read_profiles()
    if not profiles:
        raise DataError("there is no profile", where=str(run.path), fix="harness profile FILE")
    trials = with_drawn_cells(trials, profiles, plan_of)
    # Cells that feed profiles are never scored, and no model is asked about controls.
    controls = trials.experiment.nightly.controls
    scored = {
        trial.cell.id: None
        for trial in trials.plan
        if trial.is_scored and trial.cell.workload.name not in controls
    }
    cells = [trials.resolved[cell_id] for cell_id in scored]
    hashes = run.profile_hashes()
    predictions: list[Prediction] = []
    for model_name in trials.experiment.predict.models:
        model, code = asked_model(trials.experiment, model_name)
        by_model = []
        for prediction in predict_cells(model, cells, profiles, trials.resolved):
            workload = trials.cells[prediction.cell].workload.name
            origin = {"code": code, "profile": hashes.get(workload, "")}
            by_model.append(prediction.model_copy(update=origin))
        run.write_predictions(model_name, by_model)
        predictions += by_model
    run.seal.add(trials.experiment.question, run.read_manifest().not_before)
    run.note_in_ledger()
    return predictions


def score_run(
    trials: StoredTrials, stored: ScoreBook | None = None, *, strict: bool = False
) -> ScoreBook:
    """
    Compare the sealed predictions with the measured cells, and store the scores.

    Measurements and drift of *stored* scores count as they are, the others are made from traces.
    *strict*: `EvidenceError` refuses a run that is not blind, or that breaks a law.
    """
    run = trials.run
    run.seal.check()
    run.check_evidence(with_scores=False)
    refusals = blind_refusals(run, trials.done.values()) if strict else []
    if refusals:
        what = f"the run is not blind: {refusals[0]}"
        fix = "measure it with predict: {order: blind}, or score it without --strict"
        raise EvidenceError(what, where=str(run.path), fix=fix)
    if strict and (broken := broken_laws(run.measured)):
        what = "\n  ".join(["the run contradicts itself:", *map(str, broken)])
        fix = "find out why: it is a fault, or a change"
        raise EvidenceError(what, where=str(run.path), fix=fix)
    error = LOOK_ERROR if trials.experiment.is_until_decided else FAMILY_ERROR
    given = trials.published_measurements()
    if stored is not None:
        given = (*stored.measurements, *stored.profiling)
    question, asked = asked_question(trials)
    measurements = measure_trials(trials, given)
    score_book = score(
        trials.predictions,
        measurements,
        error=error,
        planned=planned_to_score(trials),
        question=question,
        asked=asked,
        earlier=[*earlier_predictions(run)] if asked == "explored" else (),
        drift=drift_of(trials, run.read_profiles()) if stored is None else stored.drift,
        profiling=measure_profiling(trials, measurements, given),
    )
    run.write_scores(score_book)
    return score_book


def asked_question(trials: StoredTrials) -> tuple[Question, Asked]:
    """
    What is asked of the run, and when it was: sealed before it was measured, or not.

    `EvidenceError`: it is another question than the one that was sealed.
    """
    question = trials.experiment.question.as_record()
    run = trials.run
    if run.measured is not run:
        return question, "explored"
    sealed = run.seal.question()
    if sealed is None:
        return question, "afterwards"
    if sealed != question.asks:
        what = f"the question was changed after the seal: it was '{sealed.as_words()}'"
        fix = "ask the new one beside it: harness predict RUN --question '...'"
        raise EvidenceError(what, where=str(run.seal.path), fix=fix)
    if question.anyway:
        return question, "explored"
    return question, "sealed" if trials.experiment.predict.is_blind else "afterwards"


def earlier_predictions(run: Run) -> Iterator[Prediction]:
    """What had been asked of the trials of the analysis *run* before it was, by other analyses."""
    measured = run.measured
    for earlier_run in (measured, *measured.analyses()):
        if earlier_run.id == run.id:
            return
        for predictions in earlier_run.read_predictions().values():
            for prediction in predictions:
                name = f"{prediction.model} of {earlier_run.id}"
                yield prediction.model_copy(update={"model": name})


def planned_to_score(trials: StoredTrials) -> list[PlannedTrial]:
    """The trials of the plan that feed no profile, each with what became of it."""
    records = trials.records
    controls = trials.experiment.nightly.controls
    planned = []
    for trial in trials.plan:
        if not trial.is_scored:
            continue
        workload = trial.cell.workload.name
        record = records.get(trial.id)
        state = "" if record is None else record.state
        is_asked = workload not in controls
        planned.append(PlannedTrial(trial.id, trial.cell.id, workload, state, is_asked))
    return planned
