"""The contract of a model: what it needs, and one pure function."""

from __future__ import annotations

from typing import Protocol

from harness.models.vectors import Evaluator
from harness.records.prediction import Cluster, JobConfig, JobInput, Prediction
from harness.records.profile import Profile


class Model(Protocol):
    """
    Predicts the times of a job from a profile, a configuration, a cluster and an input.

    `description` is one line for `harness list models`.  `required` names the statistics and costs
    without which `predict` raises `MissingStatistic`.  `evaluators` answer the test vectors of the
    model; models that share vectors share the tuple.  `predict` is pure: no file, no clock, no
    global random state; it leaves `Prediction.cell` empty, which the caller fills in.
    """

    name: str
    description: str
    required: frozenset[str]
    evaluators: tuple[Evaluator, ...]

    def predict(
        self, profile: Profile, configuration: JobConfig, cluster: Cluster, job_input: JobInput
    ) -> Prediction:
        """Times for one cell."""
        ...
