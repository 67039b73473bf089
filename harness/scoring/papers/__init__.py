"""
The papers' own tables, computed anew from what they print, and what they say to the papers' claims.

    [Lv]   MR. Prophet         ``docs/models/prophet.md``, sections 7 and 8
    [Kim]  vet                 ``docs/models/vet.md``, section 6
    [Hung] SPN-GC              ``docs/models/spn-gc.md``, sections 2 and 6

`tables` and `claims` give everything; the printed tables are CSV files of this package.  A table
says of each cell that follows from others of its row what follows, and marks the slips.
"""

from __future__ import annotations

from harness.scoring.papers import (
    prophet,
    prophet_claims,
    spn_gc,
    spn_gc_claims,
    vet,
    vet_claims,
)
from harness.scoring.papers.records import (
    Check,
    Claim,
    Column,
    Outcome,
    PaperTable,
    Summary,
    Verdict,
    marks,
    summarise,
)

PAPERS = {"prophet": "MR. Prophet", "vet": "vet", "spn-gc": "SPN-GC"}


def tables() -> list[PaperTable]:
    """Every table, paper by paper; ``DataError`` where the printed ones cannot be read."""
    return [*prophet.tables(), *vet.tables(), *spn_gc.tables()]


def claims() -> list[Claim]:
    """Every claim of the papers that is judged, paper by paper."""
    return [*prophet_claims.claims(), *vet_claims.claims(), *spn_gc_claims.claims()]


__all__ = [
    "PAPERS",
    "Check",
    "Claim",
    "Column",
    "Outcome",
    "PaperTable",
    "Summary",
    "Verdict",
    "claims",
    "marks",
    "summarise",
    "tables",
]
