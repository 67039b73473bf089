"""
The nouns: a printed table with what follows from it beside it, a slip, a claim.

Identifiers of slips are those of the errata lists in ``docs/models``; those of slips in single
cells, which those lists do not name, are PT.. (MR. Prophet) and ST.. (SPN-GC).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

Value = str | float | None


class Outcome(StrEnum):
    """How a printed cell compares with what follows from the other cells of its row."""

    AGREES = "agrees"
    CUT = "agrees when cut, not rounded"
    ROUNDING = "within the rounding of the printed times"
    PLAUSIBLE = "within the bound"
    DIFFERS = "differs"


class Verdict(StrEnum):
    """What the printed tables say to a claim."""

    HOLDS = "holds"
    CONTRADICTED = "contradicted"
    UNCHECKABLE = "cannot be checked"


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its key in JSON, its heading, and its digits where it holds numbers."""

    key: str
    heading: str
    digits: int | None = None


@dataclass(frozen=True, slots=True)
class Check:
    """A printed cell, what follows from its row, how they compare, and the slip ('' for none)."""

    row: str
    printed: str
    recomputed: float
    outcome: Outcome
    slip: str = ""


@dataclass(frozen=True, slots=True)
class PaperTable:
    """
    A table of a paper, or one of ours over several of them.

    The last column of `rows` names the slips of a row; `slips` explains each in a line, those of
    the headings too.
    """

    name: str
    paper: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Value, ...], ...]
    slips: Mapping[str, str]
    checks: tuple[Check, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class Claim:
    """
    What a paper says of its results, and what its own tables say to that.

    `figures` are the ones that contradict it, or those that it rests on, or why it cannot be
    checked; `erratum` is its number in ``docs/models``, '' where it has none.
    """

    paper: str
    where: str
    text: str
    verdict: Verdict
    figures: tuple[str, ...]
    erratum: str = ""


@dataclass(frozen=True, slots=True)
class Summary:
    """How many cells were recomputed and how they compare; slips; claims by verdict."""

    recomputed: int
    outcomes: Mapping[Outcome, int]
    slips: Mapping[str, int]
    verdicts: Mapping[Verdict, int]


def judged(
    paper: str,
    where: str,
    text: str,
    *,
    against: Sequence[str],
    support: str = "",
    erratum: str = "",
) -> Claim:
    """Judge a claim: it holds where nothing stands *against* it; *support* is then shown."""
    verdict = Verdict.CONTRADICTED if against else Verdict.HOLDS
    return Claim(paper, where, text, verdict, tuple(against) or (support,), erratum)


def unchecked(paper: str, where: str, text: str, why: str, *, erratum: str = "") -> Claim:
    """Keep a claim that the printed data cannot decide."""
    return Claim(paper, where, text, Verdict.UNCHECKABLE, (why,), erratum)


def marks(table: PaperTable) -> list[str]:
    """Every slip of *table*, once for each row that has it, or once where it is in the head."""
    found = [mark for row in table.rows for mark in str(row[-1] or "").split()]
    return [*found, *(mark for mark in table.slips if mark not in found)]


def summarise(tables: Iterable[PaperTable], claims: Iterable[Claim]) -> Summary:
    """Count over *tables* and *claims*; kinds that do not occur are counted as 0."""
    shown = list(tables)
    outcomes = Counter(check.outcome for table in shown for check in table.checks)
    verdicts = Counter(claim.verdict for claim in claims)
    return Summary(
        recomputed=outcomes.total(),
        outcomes={kind: outcomes[kind] for kind in Outcome},
        slips=dict(Counter(mark for table in shown for mark in marks(table))),
        verdicts={kind: verdicts[kind] for kind in Verdict},
    )
