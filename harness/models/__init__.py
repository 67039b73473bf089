"""
Profile and cell to prediction; one module or package per model, and one line in `MODELS`.

`EVALUATORS` answer the test vectors of all models, of vet, which measures and does not predict, and
of the scheduler that models share.
"""

from harness.models.base import Model
from harness.models.ernest import Ernest
from harness.models.nearest import Nearest
from harness.models.prophet.model import Prophet
from harness.models.ptc.model import PTC
from harness.models.scheduler import EVALUATORS as SCHEDULER_EVALUATORS
from harness.models.spn_gc.model import SpnGc
from harness.models.vectors import Evaluator
from harness.models.vet.assessment import EVALUATORS as VET_EVALUATORS
from harness.models.whatif.model import WhatIf

MODELS: dict[str, Model] = {
    model.name: model
    for model in (
        WhatIf("whatif", "paper", "Herodotou's 94 equations (CS-2011-05), as published"),
        WhatIf("whatif-mr2", "mr2", "the same equations with the mechanisms of Hadoop 3"),
        Prophet(),
        PTC("ptc-wave", "wave", "MRTuner's producer-transporter-consumer, from wave to wave"),
        PTC("ptc-closed", "closed", "MRTuner's producer-transporter-consumer, closed form"),
        SpnGc("spn-gc", "paper", "a stochastic Petri net for jobs on GPUs, as published"),
        SpnGc("spn-gc-mr2", "mr2", "the same net with the mechanisms of Hadoop 3"),
        Ernest(),
        Nearest(),
    )
}

EVALUATORS: tuple[Evaluator, ...] = (
    *dict.fromkeys(evaluator for model in MODELS.values() for evaluator in model.evaluators),
    *VET_EVALUATORS,
    *SCHEDULER_EVALUATORS,
)

__all__ = ["EVALUATORS", "MODELS", "Model"]
