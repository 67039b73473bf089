"""Profile and cell to prediction; one module or package per model."""

from harness.models.base import Model
from harness.models.whatif.model import WhatIf

MODELS: dict[str, Model] = {
    model.name: model for model in (WhatIf("whatif", "paper"), WhatIf("whatif-mr2", "mr2"))
}

__all__ = ["MODELS", "Model"]
