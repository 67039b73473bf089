"""Laws of profiles: what models were given follows from this run's own trials."""

from __future__ import annotations

from collections.abc import Iterator

from harness.base.records.profile import Profile
from harness.base.text import excerpt
from harness.core.evaluate.laws.measured import Measured

RESTORE = "restore it from a copy of the run"


def profiles_of_trials(measured: Measured) -> Iterator[str]:
    """A profile is no older than its trials, and has draws only where it is of another machine."""
    if measured.experiment.predict.source:
        return  # it is another run's
    run = measured.run
    for path in sorted(run.opener.glob("profiles/*.json")):
        profile = run.opener.read_record(Profile, path, RESTORE)
        name = excerpt(profile.workload, 60)
        versions = [
            record.schema_version
            for trial, record in measured.records.items()
            if trial in profile.trials
        ]
        written = max(versions, default=0)
        if profile.schema_version < written:
            yield (
                f"the profile of {name} has schema_version {profile.schema_version}, and a trial"
                f" that it rests on {written}"
            )
        if profile.draws:
            yield f"the profile of {name} has draws for another machine, and is of no other"
