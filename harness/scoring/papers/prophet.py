"""
MR. Prophet's three tables: the accuracy indicator of every row from its own times.

    [Lv] Z. Lv, H. Sun, X. Wang, X. Liu. "MR. Prophet: Predicting the Performance of MapReduce
    Applications by Considering Phase Parallelism": Eq. (6), Tables I-III.

A printed time stands for all times that are rounded to it: `possible` is what Eq. (6) can give
over all of them.  ``docs/models/prophet.md``, section 7.
"""

from __future__ import annotations

import math

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from itertools import product

from harness.scoring.accuracy import i_accu
from harness.scoring.papers.printed import number, printed
from harness.scoring.papers.records import Check, Column, Outcome, PaperTable

FILES = {
    "I": ("prophet_table1_job", "job"),
    "II": ("prophet_table2_map_task", "map task"),
    "III": ("prophet_table3_reduce_task", "reduce task"),
}
SLIPS = {
    "PT1": "the indicator was cut to one digit; the others are rounded",
    "PT2": "right for some times that are rounded to the printed ones, not for those themselves",
    "PT3": "is (What-If - Prophet) / measured, which is (6) only where both are above the measured",
    "PT4": "has the digits of the recomputed value less one: a digit was lost",
    "PT5": "no rounding of the times gives it, and no slip of the pen explains it",
    "PT6": "the job is shorter than one of its map tasks and one of its reduce tasks in a row",
}
_STEP = 0.1  # percent, of the printed indicators
_NOISE = 1e-9


@dataclass(frozen=True, slots=True)
class Row:
    """A printed row: times in seconds, the indicator in percent as text."""

    job: str
    input_gb: str
    actual_s: float
    prophet_s: float
    whatif_s: float
    indicator: str
    half_s: float  # half a unit of the last printed digit of the times

    @property
    def name(self) -> str:
        """How claims call the row."""
        return f"{self.job} {self.input_gb} GB"

    @property
    def errors(self) -> dict[str, float]:
        """Eq. (6) and its two parts, in percent."""
        return i_accu(self.actual_s, self.prophet_s, self.whatif_s)

    @property
    def i_accu(self) -> float:
        """Eq. (6) in percent; exactly 0 where only the noise of floats is left."""
        value = self.errors["i_accu_percent"]
        return 0.0 if abs(value) < _NOISE else value

    @property
    def accuracy(self) -> float:
        """What the paper calls accuracy of Prophet: 100 % less its relative error."""
        return 100 - self.errors["prophet_error_percent"]


@cache
def rows(table: str) -> tuple[Row, ...]:
    """Rows of Table *table* (``I``, ``II`` or ``III``)."""
    name = FILES[table][0]
    return tuple(_row(cells, name) for cells in printed(name))


def _row(cells: dict[str, str], name: str) -> Row:
    actual, prophet, whatif = (cells[f"{which}_s"] for which in ("actual", "prophet", "whatif"))
    digits = max(len(text.partition(".")[2]) for text in (actual, prophet, whatif))
    return Row(
        job=cells["job"],
        input_gb=cells["input_gb"],
        actual_s=number(actual, name),
        prophet_s=number(prophet, name),
        whatif_s=number(whatif, name),
        indicator=cells["printed_i_accu_percent"],
        half_s=0.5 * 10.0**-digits,
    )


def possible(row: Row) -> tuple[float, float]:
    """
    Least and largest Eq. (6), in percent, over all times that are rounded to those of *row*.

    Between the places where a prediction equals the measured time the indicator is monotone in
    each of the three, so that the ends and these places are all that need be looked at.
    """
    models = [t + d for t in (row.prophet_s, row.whatif_s) for d in (-row.half_s, row.half_s)]
    ends = [row.actual_s - row.half_s, row.actual_s + row.half_s]
    values = [
        i_accu(actual, prophet, whatif)["i_accu_percent"]
        for actual in [*ends, *_inside(models, row.actual_s, row.half_s)]
        for prophet, whatif in product(
            _nearest_and_ends(row.prophet_s, row.half_s, actual),
            _nearest_and_ends(row.whatif_s, row.half_s, actual),
        )
    ]
    return min(values), max(values)


def _inside(values: Iterable[float], middle: float, half: float) -> list[float]:
    return [value for value in values if abs(value - middle) < half]


def _nearest_and_ends(middle: float, half: float, actual: float) -> list[float]:
    return [middle - half, middle + half, min(max(actual, middle - half), middle + half)]


def check(row: Row) -> Check:
    """Compare the printed indicator of *row* with Eq. (6); the paper prints N where it is <= 0."""
    outcome = _outcome(row)
    slip = {Outcome.CUT: "PT1", Outcome.ROUNDING: "PT2"}.get(outcome, "")
    if outcome is Outcome.DIFFERS:
        slip = _explanation(row)
    return Check(row.name, row.indicator, row.i_accu, outcome, slip)


def _outcome(row: Row) -> Outcome:
    if row.indicator == "N":
        return Outcome.AGREES if row.i_accu <= 0 else Outcome.DIFFERS
    value = number(row.indicator, "prophet")
    if abs(value - row.i_accu) <= _STEP / 2 + _NOISE:
        return Outcome.AGREES
    if 0 <= row.i_accu - value < _STEP - _NOISE:
        return Outcome.CUT
    low, high = possible(row)
    within = low - _STEP / 2 <= value <= high + _STEP / 2
    return Outcome.ROUNDING if within else Outcome.DIFFERS


def _explanation(row: Row) -> str:
    signed = 100 * (row.whatif_s - row.prophet_s) / row.actual_s
    if f"{math.floor(signed / _STEP) * _STEP:.1f}" == row.indicator:
        return "PT3"
    right = f"{row.i_accu:.2f}"
    if row.indicator in {right[:i] + right[i + 1 :] for i in range(len(right))}:
        return "PT4"
    return "PT5"


def table(number_: str) -> PaperTable:
    """Table *number_* of the paper with Eq. (6) computed anew."""
    what = FILES[number_][1]
    checks = tuple(check(row) for row in rows(number_))
    return PaperTable(
        name=f"prophet-{len(number_)}",
        paper="prophet",
        title=f"MR. Prophet, Table {number_}: time of a {what}, and the accuracy indicator",
        columns=_columns(digits=0 if number_ == "I" else 1),
        rows=tuple(_cells(r, c) for r, c in zip(rows(number_), checks, strict=True)),
        slips={c.slip: SLIPS[c.slip] for c in checks if c.slip},
        checks=checks,
        note="may be: over all times that are rounded to the printed ones; N: (6) is not above 0",
    )


def _columns(digits: int) -> tuple[Column, ...]:
    return (
        Column("job", "job"),
        Column("input_gb", "GB", 0),
        Column("actual_s", "measured\ns", digits),
        Column("prophet_s", "Prophet\ns", digits),
        Column("whatif_s", "What-If\ns", digits),
        Column("prophet_error_percent", "Prophet\nerror %", 1),
        Column("whatif_error_percent", "What-If\nerror %", 1),
        Column("printed_i_accu_percent", "I_accu %\nprinted", 1),
        Column("i_accu_percent", "\nanew", 2),
        Column("possible_low_percent", "may be\nfrom", 2),
        Column("possible_high_percent", "\nto", 2),
        Column("slip", "slip"),
    )


def _cells(row: Row, checked: Check) -> tuple[str | float | None, ...]:
    errors = row.errors
    return (
        row.job,
        float(row.input_gb),
        row.actual_s,
        row.prophet_s,
        row.whatif_s,
        errors["prophet_error_percent"],
        errors["whatif_error_percent"],
        row.indicator if row.indicator == "N" else float(row.indicator),
        row.i_accu,
        *possible(row),
        checked.slip,
    )


# Do the three tables fit each other?


@dataclass(frozen=True, slots=True)
class Rest:
    """Seconds of a job beyond one map task and one reduce task; `uncertain_s` is from rounding."""

    name: str
    actual_s: float
    prophet_s: float
    whatif_s: float
    uncertain_s: float

    @property
    def too_short(self) -> tuple[str, ...]:
        """Whose job is shorter than one map task and one reduce task in a row."""
        named = (
            ("measured", self.actual_s),
            ("Prophet", self.prophet_s),
            ("What-If", self.whatif_s),
        )
        return tuple(who for who, rest in named if rest < -self.uncertain_s - _NOISE)


def rests() -> list[Rest]:
    """Time of a job (Table I) less a map task (Table II) and a reduce task (Table III)."""
    joined = zip(rows("I"), rows("II"), rows("III"), strict=True)
    return [
        Rest(
            job.name,
            job.actual_s - m.actual_s - r.actual_s,
            job.prophet_s - m.prophet_s - r.prophet_s,
            job.whatif_s - m.whatif_s - r.whatif_s,
            job.half_s + m.half_s + r.half_s,
        )
        for job, m, r in joined
    ]


def sums() -> PaperTable:
    """Our table over the paper's three: what a job takes beyond one task of each kind."""
    found = rests()
    return PaperTable(
        name="prophet-sums",
        paper="prophet",
        title="MR. Prophet, Tables I-III beside each other: job less one map and one reduce task",
        columns=(
            Column("row", "row"),
            Column("actual_s", "measured\ns", 1),
            Column("prophet_s", "Prophet\ns", 1),
            Column("whatif_s", "What-If\ns", 1),
            Column("too_short", "below 0 beyond rounding"),
            Column("slip", "slip"),
        ),
        rows=tuple(
            (r.name, r.actual_s, r.prophet_s, r.whatif_s, ", ".join(r.too_short), _mark(r))
            for r in found
        ),
        slips={"PT6": SLIPS["PT6"]} if any(r.too_short for r in found) else {},
        note="the paper has no such table; a rest may be rounded by 0.6 s",
    )


def _mark(rest: Rest) -> str:
    return "PT6" if rest.too_short else ""


def tables() -> list[PaperTable]:
    """All tables on MR. Prophet."""
    return [*(table(number_) for number_ in FILES), sums()]
