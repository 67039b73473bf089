"""Times of done trials, as models are scored on them: raw and at reference speed."""

from __future__ import annotations

from collections import ChainMap, Counter
from collections.abc import Iterable, Mapping
from itertools import chain

from harness.base.errors import DataError
from harness.base.records.profile import Profile
from harness.base.records.score import Measurement
from harness.base.records.trial import TrialRecord
from harness.core.evaluate.drift import drift_of
from harness.core.evaluate.observations import observe
from harness.core.evaluate.predict import profiled_range
from harness.core.evaluate.stored import StoredTrials
from harness.observe.profiling.body import copies_of
from harness.observe.profiling.frame import jvm_ends
from harness.observe.profiling.measured import measured
from harness.observe.profiling.phases import part_means


def measure_trials(
    trials: StoredTrials, stored: Iterable[Measurement] = (), *, profiling: bool = False
) -> list[Measurement]:
    """Measured times of each scored trial, with *profiling* of all; *stored* ones as they are."""
    profiles = trials.run.read_profiles()
    stored_by_trial = {measurement.trial: measurement for measurement in stored}
    # Stored times are without the drift already, and what shows it may not be there.
    found = None if stored_by_trial else drift_of(trials, profiles)
    ratio = 1.0 if found is None else found.ratio
    measurements = []
    for trial_id, record in trials.done.items():
        if not (record.trial.is_scored or profiling):
            continue
        measurement = stored_by_trial.get(trial_id)
        if measurement is None:
            measurement = measure_trial(trials, record, profiles)
            if record.trial.is_scored:
                measurement = without_drift(measurement, ratio)
                measurement = with_weight(measurement, trials)
        measurements.append(measurement)
    return measurements


def measure_profiling(
    trials: StoredTrials, scored: Iterable[Measurement], stored: Iterable[Measurement] = ()
) -> list[Measurement]:
    """
    Measured times of the profiling trials by whose repeats the noise of *scored* ones is known.

    They are those of the workloads of which no scored cell was repeated; *stored* ones as they are.
    Bundles without traces that were made before these were stored have none.
    """
    profiles = trials.run.read_profiles()
    stored_by_trial = {measurement.trial: measurement for measurement in stored}
    workloads = measured_once(scored)
    records = [
        record
        for record in trials.done.values()
        if record.trial.profiling and record.trial.cell.workload.name in workloads
    ]
    if not trials.has_traces:
        trial_ids = [record.trial.id for record in records]
        return [stored_by_trial[key] for key in trial_ids if key in stored_by_trial]
    return [
        stored_by_trial.get(record.trial.id) or measure_trial(trials, record, profiles)
        for record in records
    ]


def measured_once(scored: Iterable[Measurement]) -> set[str]:
    """Workloads of which no cell has two of the *scored* measurements."""
    numbers = Counter((measurement.workload, measurement.cell) for measurement in scored)
    repeated = {workload for (workload, _), number in numbers.items() if number > 1}
    return {workload for workload, _ in numbers} - repeated


def with_weight(measurement: Measurement, trials: StoredTrials) -> Measurement:
    """*measurement* with the weight of its cell, if cells were drawn; `DataError`: it was not."""
    if trials.draw is None:
        return measurement
    weight = trials.draw.weights.get(measurement.cell)
    if weight is None:
        what = f"cell {measurement.cell} was not drawn, and stands for no other"
        fix = "ask with the profile_on of the run: scored are the cells that were drawn"
        raise DataError(what, where=str(trials.run.path), fix=fix)
    return measurement.model_copy(update={"weight": weight})


def without_drift(measurement: Measurement, ratio: float) -> Measurement:
    """*measurement* whose times at reference speed are as if the machine had been as before."""
    reference_s = {name: time_s / ratio for name, time_s in measurement.reference_s.items()}
    return measurement.model_copy(update={"reference_s": reference_s})


def measure_trial(
    trials: StoredTrials, record: TrialRecord, profiles: Mapping[str, Profile]
) -> Measurement:
    """Make the measurement of one trial from its traces."""
    cell = trials.resolved_of(record)
    workload = cell.spec.name
    jobs = trials.jobs(record)
    probe_rate = trials.rate(record)
    profile = profiles.get(workload)
    speed = profile.speed if profile is not None else None
    # A fitted part is an assumption of the profile: nothing that is measured rests on it.
    profile_frame = {
        name: statistic
        for name, statistic in (profile.frame if profile is not None else {}).items()
        if not statistic.assumed
    }
    observations = observe(trials.run, record, cell, jobs, probe_rate)
    known_ends = [jvm_ends(observation, profile_frame, speed) for observation in observations]
    ends, borrowed = zip(*known_ends, strict=True)
    copies = dict(ChainMap(*map(copies_of, observations)))
    raw_s = measured(jobs, dict(ChainMap(*ends)), copies) | part_means(observations)
    reference_s = raw_s
    if speed is not None and probe_rate:
        reference_s = {
            name: speed.at_reference(time_s, probe_rate) for name, time_s in raw_s.items()
        }
    return Measurement(
        cell=cell.id,
        workload=workload,
        trial=record.trial.id,
        input=f"{workload} {cell.spec.input_bytes}",
        raw_s=raw_s,
        reference_s=reference_s,
        jobs_s=tuple(job.job_s for job in jobs),
        range=profiled_range(cell, profile),
        disturbed=record.disturbed,
        # A job's id has the moment at which the cluster's master started.
        start="".join(record.job_ids[:1]).removeprefix("job_").partition("_")[0],
        of_profile=tuple(dict.fromkeys(chain.from_iterable(borrowed))),
    )
