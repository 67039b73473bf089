"""The contract of a model: what it needs, and one pure function."""

from __future__ import annotations

from typing import Protocol

from harness.records.prediction import Cluster, JobConfig, JobInput, Prediction
from harness.records.profile import Profile


class Model(Protocol):
    """
    Predicts the times of a job from a profile, a configuration, a cluster and an input.

    `required` names the statistics and costs without which `predict` raises `MissingStatistic`.
    `predict` is pure: no file, no clock, no global random state; it leaves `Prediction.cell`
    empty, which the caller fills in.
    """

    name: str
    required: frozenset[str]

    def predict(
        self, profile: Profile, configuration: JobConfig, cluster: Cluster, job_input: JobInput
    ) -> Prediction:
        """Times for one cell."""
        ...
