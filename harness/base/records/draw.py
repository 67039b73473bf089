"""The draw of a drawn design: which of many cells are measured, with which weights."""

from __future__ import annotations

import math

from harness.base.records.trial import SCHEMA_VERSION, Record, SchemaVersion


class Candidate(Record):
    """
    A cell that may be drawn.

    *predicted_s* are the job times of a trial by model, of those that have an answer;
    *disagreement* is the logarithm of the largest over the smallest of the asked ones.  *chance* is
    that of one draw, *count* how often it was drawn, *weight* its share in means over the drawn
    cells, 0 of one that was not drawn.
    """

    cell: str
    predicted_s: dict[str, float]
    disagreement: float
    chance: float
    count: int
    weight: float


class Draw(Record):
    """
    `predictions/drawn.json`: all candidates of a drawn design in the order of their ids.

    So many *draws* were made by *seed*; *models* are those whose disagreement counts.
    """

    schema_version: SchemaVersion = SCHEMA_VERSION
    seed: int
    draws: int
    models: tuple[str, ...]
    candidates: tuple[Candidate, ...]

    @property
    def weights(self) -> dict[str, float]:
        """Weights of the cells that were drawn, by id; their sum is 1."""
        return {
            candidate.cell: candidate.weight for candidate in self.candidates if candidate.count
        }

    @property
    def reasons(self) -> dict[str, str]:
        """Why trials of each cell that was drawn are run, by its id."""
        reasons = dict[str, str]()
        for candidate in self.candidates:
            if candidate.count:
                factor = math.exp(candidate.disagreement)
                drawn = f"drawn in {candidate.count} of {self.draws} draws"
                reasons[candidate.cell] = (
                    f"{drawn}: models differ there by a factor of {factor:.3g}"
                )
        return reasons
