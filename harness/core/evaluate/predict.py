"""
Predictions of cells, with refits and intervals.

A model predicts one whole job, or its body; then it is lent the frame, which is the same for all
such models and counts as part of what they predict.  To a body that equations gave, the fixed
seconds of tasks are added before.  The trial's time is as many times that as the
trial has jobs.  Where these are of several kinds no model is asked.
"""

from __future__ import annotations

import math

from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any, NamedTuple

from harness.base.errors import HarnessError, MissingStatistic
from harness.base.records.prediction import Prediction
from harness.base.records.profile import Profile, ProfiledJob, Statistic
from harness.base.records.question import Range
from harness.base.records.ranges import axis_numbers, range_of
from harness.base.records.regimes import regimes_of
from harness.base.stats.resampling import drawn_interval, prediction_interval
from harness.clusters.workloads.resolved import ResolvedCell
from harness.core.evaluate.later_jobs import asked_jobs, mean_job
from harness.core.evaluate.resolved import unknown_name_error
from harness.models import Model, find, has_equations
from harness.models.fixed import with_fixed
from harness.models.frame import frame_s, inputs_of_profiled
from harness.observe.profiling.fit import JOBS_PER_TRIAL
from harness.scoring.score import predicted_times

if TYPE_CHECKING:
    from harness.base.stats.resampling import Numbers

INTERVAL_OF = ("body_s", "job_s")
INTERVAL_LEVELS = (0.8, 0.9)
# What was sealed by earlier profiles is made again as it was: without the in-sample miss.  One that
# was moved to another machine has none either: its jobs never ran there.
_IN_SAMPLE_FROM = 12
JOBS = "jobs."  # before the names of times of jobs, where they stand beside statistics


class Miss(NamedTuple):
    """By how much the *refit* of this number misses the cell without which it was fitted."""

    refit: int
    logarithms: Numbers  # measured less predicted, for each of `INTERVAL_OF`; NaN: no answer


def predict_cell(
    model: str | Model,
    cell: ResolvedCell,
    profiles: Mapping[str, Profile],
    body: Prediction | None = None,
) -> Prediction:
    """
    Prediction of *model* for *cell*: its body, and its job, for which it may be lent the frame.

    Not applicable where the profile lacks what the model needs; a body without a frame is no job.
    *body* is what the model says of one job of the cell, where that is known.
    """
    name = model if isinstance(model, str) else model.name
    workload = cell.spec.name
    try:
        profile = profiles.get(workload)
        if profile is None:
            raise MissingStatistic(f"profile of {workload}", model=name, workload=workload)
        predictor = find_model(model)
        if not cell.workload.jobs_alike:
            raise MissingStatistic("jobs of one kind", model=name, workload=workload)
        if body is None:
            body = predictor.predict(profile, *cell.model_inputs)
        body = _mean_body(body, predictor, cell, profile)
        body = body.model_copy(update={"model": name})  # an earlier one, where a run has that
        if body.body_s is None and body.job_s is None:
            return body.model_copy(update={"cell": cell.id})
        return of_all_jobs(body, cell, profile)
    except MissingStatistic as error:
        missing = error.names
    except HarnessError as error:
        missing = (error.what,)
    return Prediction(model=name, cell=cell.id, not_applicable=missing)


def _mean_body(
    first: Prediction, predictor: Model, cell: ResolvedCell, profile: Profile
) -> Prediction:
    """One of all jobs of *cell*, of which *first* is the first one, without its frame."""
    jobs, warnings = asked_jobs(cell, profile)
    answers = [first, *(predictor.predict(profile, *asked.inputs) for asked in jobs[1:])]
    if has_equations(predictor):
        pairs = zip(answers, jobs, strict=True)
        answers = [with_fixed(body, profile, asked.inputs) for body, asked in pairs]
    one_job = mean_job(answers, jobs)
    return one_job.model_copy(update={"warnings": (*one_job.warnings, *warnings)})


def find_model(model: str | Model) -> Model:
    """Give the *model*, or the one of that name; `DataError`: there is none."""
    if not isinstance(model, str):
        return model
    found = find(model)
    if found is None:
        raise unknown_name_error("model", model)
    return found


def of_all_jobs(prediction: Prediction, cell: ResolvedCell, profile: Profile) -> Prediction:
    """
    *prediction* of one job with the times of all jobs of a trial.

    To a whole job that the model gives nothing is added; a body alone is lent the frame.
    """
    planned = cell.planned_jobs
    if planned is None and JOBS_PER_TRIAL not in profile.statistics:
        raise MissingStatistic(JOBS_PER_TRIAL, model=prediction.model, workload=profile.workload)
    # Trials that take as many jobs as they need take as many as the profiling trials did.
    job_count = float(planned or profile.statistics[JOBS_PER_TRIAL].value)
    changes: dict[str, Any] = {"cell": cell.id, "jobs": job_count}
    each_job_s = prediction.job_s
    if each_job_s is None:
        jobs, _ = asked_jobs(cell, profile)
        try:
            frames = [frame_s(profile.frame, *asked.inputs) for asked in jobs]
        except MissingStatistic as error:
            changes["not_applicable"] = error.names
            return prediction.model_copy(update=changes)
        pairs = zip(jobs, frames, strict=True)
        around_s = math.fsum(asked.share * seconds for asked, (seconds, _) in pairs)
        warnings = dict.fromkeys(text for _, texts in frames for text in texts)
        each_job_s = (prediction.body_s or 0.0) + around_s
        outside_s = profile.frame["job_start_s"].value + profile.frame["job_end_s"].value
        changes |= {
            "frame_s": around_s,
            "makespan_s": job_count * (each_job_s - outside_s),
            "warnings": (*prediction.warnings, *warnings),
        }
    changes["job_s"] = job_count * each_job_s
    changes["each_job_s"] = None if planned == 1 else each_job_s
    return prediction.model_copy(update=changes)


def predict_cells(
    model: str | Model,
    cells: Iterable[ResolvedCell],
    profiles: Mapping[str, Profile],
    profiled: Mapping[str, ResolvedCell],
) -> Iterator[Prediction]:
    """
    Yield the prediction of *model* for each of *cells*, with its refits and intervals.

    Residuals are those of logarithms, the factor between predicted and measured times: times of
    jobs vary over a decade and their errors with them, and no interval reaches 0.  Measured times
    of profiling cells are those that the profile keeps, at reference speed; *profiled* has the
    cells by their ids, but those of another run.
    """
    misses = {
        name: [*profiled_misses(model, profile, profiled)] for name, profile in profiles.items()
    }
    in_sample = {
        name: in_sample_miss(model, profile, profiled)
        for name, profile in profiles.items()
        if profile.schema_version >= _IN_SAMPLE_FROM and not profile.draws
    }
    for cell in cells:
        prediction = predict_cell(model, cell, profiles)
        if prediction.body_s is None and prediction.job_s is None:
            yield prediction
        else:
            workload = cell.spec.name
            profile = profiles[workload]
            update = spread_of(model, cell, profile, misses[workload])
            update["repeats_s"] = repeats_of(model, cell, profile)
            update["in_sample_miss"] = in_sample.get(workload)
            yield prediction.model_copy(update=update)


def spread_of(
    model: str | Model, cell: ResolvedCell, profile: Profile, misses: Sequence[Miss]
) -> dict[str, Any]:
    """What *model* says of *cell* by each refit of *profile*, and the intervals, as fields."""
    import numpy as np

    workload = cell.spec.name
    by_refit = [predict_cell(model, cell, {workload: refit}) for refit in profile.refits]
    logarithms = [_log_times(prediction) for prediction in by_refit]
    # Cells whose miss is not known make intervals wider: they count as missed by any factor.
    unknown_count = len({job.cell for job in profile.jobs}) - len(misses)
    unknown = [(math.nan, math.nan)] * unknown_count
    drawn = drawn_times(model, cell, profile, misses) if profile.draws else None
    refits = {}
    intervals = {}
    for column, quantity in enumerate(INTERVAL_OF):
        refits[quantity] = tuple(
            predicted_times(prediction)[quantity][1] for prediction in by_refit
        )
        if drawn is not None:
            intervals[quantity] = {
                _level_name(level): drawn_interval(drawn[:, column], level)
                for level in INTERVAL_LEVELS
            }
            continue
        pairs = [(logarithms[miss.refit][column], miss.logarithms[column]) for miss in misses]
        centres, residuals = np.reshape(pairs + unknown, (-1, 2)).T
        intervals[quantity] = {
            _level_name(level): prediction_interval(centres, residuals, level)
            for level in INTERVAL_LEVELS
        }
    return {"refits": refits, "intervals": intervals}


def repeats_of(
    model: str | Model, cell: ResolvedCell, profile: Profile
) -> tuple[float | None, ...]:
    """Job times that *model* says of *cell* by each repeat of *profile*."""
    by_repeat = (predict_cell(model, cell, {cell.spec.name: repeat}) for repeat in profile.repeats)
    return tuple(predicted_times(prediction)["job_s"][1] for prediction in by_repeat)


def _level_name(level: float) -> str:
    return f"{100 * level:.0f}"


def drawn_times(
    model: str | Model, cell: ResolvedCell, profile: Profile, misses: Sequence[Miss]
) -> Numbers:
    """
    Logarithms of times for each draw of a *profile* of another machine.

    Its costs are those drawn for that machine, and what the model misses is what it misses here:
    each miss stands in one draw as it is and in the next with the other sign.
    """
    import numpy as np

    workload = cell.spec.name
    drawn: Numbers = np.array(
        [
            _log_times(predict_cell(model, cell, {workload: scaled(profile, times)}))
            for times in profile.draws
        ]
    )
    numbers = np.arange(len(drawn))
    for column in range(len(INTERVAL_OF)):  # a model may give one of them alone
        missed = np.array([miss.logarithms[column] for miss in misses])
        errors = missed[np.isfinite(missed)]
        if errors.size:
            drawn[:, column] += errors[numbers // 2 % errors.size] * (2 * (numbers % 2) - 1)
    return drawn


def _log_times(prediction: Prediction) -> Numbers:
    """Logarithms of a trial's times, NaN where there is none."""
    import numpy as np

    times_s = predicted_times(prediction)
    logs: Numbers = np.log([times_s[quantity][1] or math.nan for quantity in INTERVAL_OF])
    return logs


def profiled_misses(
    model: str | Model, profile: Profile, profiled: Mapping[str, ResolvedCell]
) -> Iterator[Miss]:
    """Yield for each profiling cell the place of the refit without it, and what that misses."""
    all_cells = {job.cell for job in profile.jobs}
    for place, refit in enumerate(profile.refits):
        for cell_id in sorted(all_cells - {job.cell for job in refit.jobs}):
            jobs = [job for job in profile.jobs if job.cell == cell_id]
            yield Miss(place, miss_of_cell(model, refit, jobs, profiled))


def in_sample_miss(
    model: str | Model, profile: Profile, profiled: Mapping[str, ResolvedCell]
) -> float | None:
    """
    By how much *model* misses the jobs that *profile* was fitted to: as a share of their seconds.

    Predicted less measured job times of all profiled cells, over the measured ones, at reference
    speed: short jobs, in which a model may be far off, weigh as much as they take.  `None` where it
    has no answer to any.  No scored trial has a part in it: it is blind.
    """
    predicted_s = list[float]()
    measured_s = list[float]()
    for cell_id in sorted({job.cell for job in profile.jobs}):
        jobs = [job for job in profile.jobs if job.cell == cell_id]
        _, log_s = miss_of_cell(model, profile, jobs, profiled).tolist()
        if math.isfinite(log_s):
            mean_s = _sum_s(jobs, "job_s") / len({job.trial for job in jobs})
            measured_s.append(mean_s)
            predicted_s.append(mean_s * math.exp(-log_s))
    return math.fsum(predicted_s) / math.fsum(measured_s) - 1 if measured_s else None


def miss_of_cell(
    model: str | Model,
    profile: Profile,
    jobs: Sequence[ProfiledJob],
    profiled: Mapping[str, ResolvedCell],
) -> Numbers:
    """By how much *model* with *profile* misses profiled *jobs* of one cell: as `miss_of_jobs`."""
    import numpy as np

    cell_id = jobs[0].cell
    if cell_id not in profiled:  # of another run
        return miss_of_jobs(model, profile, jobs)
    sums_s = [_sum_s(jobs, quantity) for quantity in INTERVAL_OF]
    measured = np.log(sums_s) - math.log(len({job.trial for job in jobs}))
    prediction = predict_cell(model, profiled[cell_id], {profile.workload: profile})
    missed: Numbers = measured - _log_times(prediction)
    return missed


def _sum_s(jobs: Iterable[ProfiledJob], quantity: str) -> float:
    """Sum of the *quantity* of *jobs*; NaN where one of them has none."""
    return sum(getattr(job, quantity) or math.nan for job in jobs)


def miss_of_jobs(model: str | Model, refit: Profile, jobs: Sequence[ProfiledJob]) -> Numbers:
    """By how much *model* misses profiled *jobs* of one cell: logarithms, NaN: it has no answer."""
    import numpy as np

    # Later jobs of a trial may have read something else.
    inputs_by_number = {job.number: inputs_of_profiled(job) for job in jobs}
    try:
        predictor = find_model(model)
        bodies_s = []
        jobs_s = []
        for inputs in inputs_by_number.values():
            answer = predictor.predict(refit, *inputs)
            if has_equations(predictor):
                answer = with_fixed(answer, refit, inputs)
            body_s = answer.body_s or math.nan
            job_s = answer.job_s
            if job_s is None:
                job_s = body_s + frame_s(refit.frame, *inputs)[0]
            bodies_s.append(body_s)
            jobs_s.append(job_s or math.nan)
        predicted_s = [fmean(bodies_s), fmean(jobs_s)]
    except HarnessError:
        predicted_s = [math.nan, math.nan]
    measured_s = [_sum_s(jobs, quantity) / len(jobs) for quantity in INTERVAL_OF]
    missed: Numbers = np.log(measured_s) - np.log(predicted_s)
    return missed


def scaled(profile: Profile, times: Mapping[str, float]) -> Profile:
    """*profile* with each time as many times as long as *times* has it, by name, jobs by `JOBS`."""
    times_of_jobs = {
        name.removeprefix(JOBS): factor for name, factor in times.items() if name.startswith(JOBS)
    }
    return profile.model_copy(
        update={
            "statistics": scaled_statistics(profile.statistics, times),
            "costs": scaled_statistics(profile.costs, times),
            "frame": scaled_statistics(profile.frame, times),
            "jobs": tuple(scaled_job(job, times_of_jobs) for job in profile.jobs),
        }
    )


def scaled_statistics(
    statistics: Mapping[str, Statistic], times: Mapping[str, float]
) -> dict[str, Statistic]:
    """*statistics* with each as many times as large as *times* has it, by name."""
    changed = dict(statistics)
    for name in statistics.keys() & times.keys():
        factor = times[name]
        old = statistics[name]
        nodes = {node: factor * value for node, value in old.nodes.items()}
        update = {"value": factor * old.value, "spread": factor * old.spread, "nodes": nodes}
        changed[name] = old.model_copy(update=update)
    return changed


def scaled_job(job: ProfiledJob, times: Mapping[str, float]) -> ProfiledJob:
    """*job* with those of its *times* longer that it has."""
    update = {}
    for name, factor in times.items():
        value = getattr(job, name)
        if value is not None:
            update[name] = factor * value
    return job.model_copy(update=update)


def profiled_range(cell: ResolvedCell, profile: Profile | None) -> Range:
    """Where *cell* is in the range that was profiled: outside, too, in a regime that was not."""
    if profile is None:
        return "outside"
    profiled = profiled_regimes(profile)
    inputs = cell.model_inputs
    if profiled and not regimes_of(*inputs) <= profiled:
        return "outside"
    return range_of(axis_numbers(cell.cell, inputs[2]), profile.ranges)


def profiled_regimes(profile: Profile) -> frozenset[str]:
    """Regimes of the jobs of *profile*, the first of each trial; an older one has no jobs."""
    first_jobs = [job for job in profile.jobs if job.number == 0]
    return frozenset().union(*(regimes_of(*inputs_of_profiled(job)) for job in first_jobs))
