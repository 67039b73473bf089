"""Profile and cell to prediction; one module or package per model."""

from harness.models.base import Model
from harness.models.spn_gc.model import SpnGc
from harness.models.whatif.model import WhatIf

MODELS: dict[str, Model] = {
    model.name: model
    for model in (
        WhatIf("whatif", "paper", "Herodotou's 94 equations (CS-2011-05), as published"),
        WhatIf("whatif-mr2", "mr2", "the same equations with the mechanisms of Hadoop 3"),
        SpnGc("spn-gc", "paper", "a stochastic Petri net for jobs on GPUs, as published"),
        SpnGc("spn-gc-mr2", "mr2", "the same net with the mechanisms of Hadoop 3"),
    )
}

__all__ = ["MODELS", "Model"]
