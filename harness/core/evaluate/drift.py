"""What sentinels say of a run: by which factor its scored trials ran slower than its profiles'."""

from __future__ import annotations

import math

from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import chain

from harness.base.records.profile import Profile
from harness.base.records.score import Drift
from harness.base.records.trial import TrialRecord
from harness.base.stats.drift import ratio_of
from harness.core.evaluate.stored import StoredTrials


def drift_of(trials: StoredTrials, profiles: Mapping[str, Profile]) -> Drift | None:
    """
    The drift of the done *trials*, by the job times of cells that were measured at both times.

    Times are at reference speed by the *profiles*, where that is adopted: the ratio is what the
    speed probe did not see.  Profiles of another run hold what that measured.  Of a run that was
    published without its traces it is what was published.  `None` where no sentinel is done, or
    where too few trials show a spread.
    """
    has_sentinels = any(record.trial.use == "sentinel" for record in trials.done.values())
    if not has_sentinels:
        return None
    if not trials.has_traces:
        return trials.run.measured.read_stored_scores().drift
    before_s = defaultdict[str, list[float]](list)
    later_s = defaultdict[str, list[float]](list)
    if trials.experiment.predict.source:
        before_s |= lent_times(profiles.values())
    for record in trials.done.values():
        if record.trial.use == "score":
            continue
        times_s = before_s if record.trial.use == "profile" else later_s
        times_s[record.trial.cell.id].append(reference_job_s(trials, record, profiles))
    found = ratio_of(before_s, later_s)
    if found is None:
        return None
    return Drift(
        ratio=found.value,
        low=found.low,
        high=found.high,
        sentinels=found.later_count,
        cells=sum(bool(times) for times in later_s.values()),
    )


def lent_times(profiles: Iterable[Profile]) -> dict[str, list[float]]:
    """Times at reference speed of the trials that fed *profiles*, by cell: sums of their jobs."""
    job_times_s = defaultdict[tuple[str, str], list[float]](list)
    for job in chain.from_iterable(profile.jobs for profile in profiles):
        job_times_s[job.cell, job.trial].append(job.job_s)
    times_s = defaultdict[str, list[float]](list)
    for (cell_id, _), seconds in sorted(job_times_s.items()):
        times_s[cell_id].append(math.fsum(seconds))
    return times_s


def reference_job_s(
    trials: StoredTrials, record: TrialRecord, profiles: Mapping[str, Profile]
) -> float:
    """Time of the jobs of a trial, at reference speed where its profile adopts one."""
    job_s = math.fsum(job.job_s for job in trials.jobs(record))
    profile = profiles.get(record.trial.cell.workload.name)
    rate = trials.rate(record)
    if profile is None or profile.speed is None or not rate:
        return job_s
    return profile.speed.at_reference(job_s, rate)
