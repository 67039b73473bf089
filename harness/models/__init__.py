"""
Profile and cell to prediction; one module or package per model, and one line in `MODELS`.

Whatever reads inputs raises `ModelError` (a ``ValueError``) for a field that is missing or outside
its range, by its name, and for an answer that is not finite.  `EVALUATORS` answer the test vectors
of all models, of vet, which measures and does not predict, and of the scheduler that models share.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import Protocol

from harness.base.errors import SpecError
from harness.base.records.prediction import Cluster, JobConfig, JobInput, Prediction
from harness.base.records.profile import Profile
from harness.base.text import did_you_mean, excerpt
from harness.models.ernest import Ernest
from harness.models.prophet.model import Prophet
from harness.models.ptc.model import PTC
from harness.models.scaling import Scaling
from harness.models.scheduler import EVALUATORS as SCHEDULER_EVALUATORS
from harness.models.spn_gc.model import SpnGc
from harness.models.vectors import Evaluator
from harness.models.vet.assessment import EVALUATORS as VET_EVALUATORS
from harness.models.whatif.model import WhatIf


class Model(Protocol):
    """
    Predicts the times of a job from a profile, a configuration, a cluster and an input.

    `description` is one line for `harness list models`.  `required` names the statistics and costs
    without which `predict` raises `MissingStatistic`; a map-only job needs fewer.  `evaluators`
    answer the test vectors of the model; models that share vectors share the tuple.  `predict`
    gives one whole job, or a body to which the frame of `harness.models.frame` is lent, and what
    was published.  It is pure: no file, no clock, no global random state; it leaves
    `Prediction.cell` to the caller.
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


MODELS: dict[str, Model] = {
    model.name: model
    for model in (
        WhatIf("whatif", "engine", "Herodotou's 94 equations (CS-2011-05), as his engine has them"),
        WhatIf("whatif-printed", "paper", "the same equations as printed: full spills, no waves"),
        WhatIf(
            "whatif-mr2",
            "mr2",
            "the same with Hadoop 3's mechanisms, and our law of combiners",
        ),
        Prophet(),
        PTC("ptc-wave", "wave", "MRTuner's producer-transporter-consumer, from wave to wave"),
        PTC("ptc-closed", "closed", "MRTuner's producer-transporter-consumer, closed form"),
        SpnGc("spn-gc", "paper", "a stochastic Petri net for jobs on GPUs, as published"),
        SpnGc("spn-gc-mr2", "mr2", "the same net with the mechanisms of Hadoop 3"),
        Ernest(),
        Scaling(),
    )
}

# Baselines, which learn whole times of profiled jobs.
_LEARNERS = (Ernest, Scaling)
# What a model was called: stored runs keep the name, and experiment files may have it.
EARLIER_NAMES = {"nearest": "scaling"}

EVALUATORS: tuple[Evaluator, ...] = (
    # Models that share vectors share their evaluators.
    *dict.fromkeys(chain.from_iterable(model.evaluators for model in MODELS.values())),
    *VET_EVALUATORS,
    *SCHEDULER_EVALUATORS,
)

__all__ = [
    "EARLIER_NAMES",
    "EVALUATORS",
    "MODELS",
    "Model",
    "find",
    "has_equations",
    "present_name",
    "require_models",
]


def present_name(name: str) -> str:
    """What the model *name* is called now, whatever it was called."""
    return EARLIER_NAMES.get(name, name)


def find(name: str) -> Model | None:
    """The harness' model of this *name*, or of an earlier one; `None`: there is none."""
    return MODELS.get(present_name(name))


def reads_settings(name: str) -> bool:
    """Whether the model of that *name* knows of settings: one fitted to whole jobs does not."""
    registered = find(name)
    return registered is None or registered.required != {"jobs"}


def has_equations(model: Model) -> bool:
    """
    Whether *model* is one of the harness that has equations, and learns no whole times.

    To these alone fixed seconds are lent: a user's own model finds them in the profile.
    """
    is_known = any(model is own_model for own_model in MODELS.values())
    return is_known and not isinstance(model, _LEARNERS)


def require_models(names: Iterable[str], where: str) -> None:
    """`SpecError` for one of *names* that is no model of the harness, and was given at *where*."""
    for name in names:
        if name not in MODELS:
            now = EARLIER_NAMES.get(name)
            fix = f"it is called {now} now" if now else did_you_mean(name, list(MODELS))
            raise SpecError(f"there is no model '{excerpt(name)}'", where=where, fix=fix)
