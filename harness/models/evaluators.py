"""Who answers the cases of test vectors: each model its own, `EVALUATORS` all of them."""

from __future__ import annotations

from typing import Any

from harness.models.prophet import vectors as prophet
from harness.models.ptc import vectors as ptc
from harness.models.scheduler import schedule
from harness.models.spn_gc import vectors as spn_gc
from harness.models.vectors import Evaluator, Question, refuse_too_many
from harness.models.vet import vectors as vet
from harness.models.whatif import vectors as whatif


def _schedule(question: Question) -> dict[str, Any]:
    refuse_too_many(question.input)
    return schedule(**question.input)


EVALUATORS: tuple[Evaluator, ...] = (
    *whatif.EVALUATORS,
    *prophet.EVALUATORS,
    *vet.EVALUATORS,
    *ptc.EVALUATORS,
    *spn_gc.EVALUATORS,
    Evaluator("scheduler", frozenset({"map_times_s", "num_reduces"}), _schedule),
)
