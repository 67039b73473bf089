"""What papers claim of their models, as questions that a run can answer (docs/papers.md)."""

from __future__ import annotations

from harness.base.records.question import Question

# By the paper: its claims, each with the place where the paper makes it.
CLAIMS: dict[str, tuple[Question, ...]] = {
    "prophet": (
        Question(
            title="Prophet is nearer than What-If (Tables I to III)", nearer=("prophet", "whatif")
        ),
    ),
}


def models_by_paper() -> dict[str, tuple[str, ...]]:
    """The models that the claims of each paper name."""
    return {
        paper: tuple(dict.fromkeys(model for claim in claims for model in claim.models))
        for paper, claims in CLAIMS.items()
    }
