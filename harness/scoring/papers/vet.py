"""
vet's tables: the ratio of the printed means beside the printed mean of ratios.

    [Kim] W.-C. Kim, C. Baek, D. Lee. "Measuring the Optimality of Hadoop Optimization":
    Tables 1-4.

vet_job is the mean over tasks of PR/EI; only mean and standard deviation of PR and of EI are
printed.  Those bound it: ``docs/models/vet.md``, section 6, V09.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from harness.scoring.papers.printed import number, printed
from harness.scoring.papers.records import Check, Column, Outcome, PaperTable

FILES = {"2": "vet_table2_varying_map_slots", "3": "vet_table3_starfish_optimised"}
_TITLES = {"2": "1 to 4 map slots", "3": "jobs tuned by Starfish"}
SLIPS = {
    "V09": "vet_job lies outside what mean and deviation of PR and EI allow: one of them is wrong",
    "V11": "shown as HDD against SSD, but the map slots differ too (6 and 2): compare with Job5",
    "V12": "headed '# map' and '# reduce': these are slots of a node, not tasks",
}


@dataclass(frozen=True, slots=True)
class Row:
    """A printed row of Table 2 or 3: means and standard deviations over tasks, in seconds."""

    job: str
    map_slots: float
    pr_mean_s: float
    pr_std_s: float
    ei_mean_s: float
    ei_std_s: float
    vet_job: float

    @property
    def ratio_of_means(self) -> float:
        """Mean PR / mean EI; vet_job is the mean of the tasks' ratios."""
        return self.pr_mean_s / self.ei_mean_s

    @property
    def bound(self) -> tuple[float, float]:
        """
        Least and largest mean of PR/EI, to second order, for any correlation of PR and EI.

        E[PR/EI] = (mean PR/mean EI) (1 + v(EI)^2 - r v(PR) v(EI)), with v the coefficients of
        variation and the correlation r from 1 to -1.
        """
        own = (self.ei_std_s / self.ei_mean_s) ** 2
        mixed = self.pr_std_s / self.pr_mean_s * self.ei_std_s / self.ei_mean_s
        return self.ratio_of_means * (1 + own - mixed), self.ratio_of_means * (1 + own + mixed)


@cache
def rows(table: str) -> tuple[Row, ...]:
    """Rows of Table *table* (``2`` or ``3``)."""
    name = FILES[table]
    return tuple(
        Row(
            job=cells["job"],
            map_slots=number(cells["map_slots"], name),
            pr_mean_s=number(cells["pr_mean_s"], name),
            pr_std_s=number(cells["pr_std_s"], name),
            ei_mean_s=number(cells["ei_mean_s"], name),
            ei_std_s=number(cells["ei_std_s"], name),
            vet_job=number(cells["printed_vet_job"], name),
        )
        for cells in printed(name)
    )


def check(row: Row) -> Check:
    """Compare the printed vet_job of *row* with the bound that its means and deviations give."""
    low, high = row.bound
    inside = low <= row.vet_job <= high
    outcome = Outcome.PLAUSIBLE if inside else Outcome.DIFFERS
    slip = "" if inside else "V09"
    return Check(row.job, f"{row.vet_job:.3f}", row.ratio_of_means, outcome, slip)


def table(number_: str) -> PaperTable:
    """Table 2 or 3 with the ratio of means and the bound."""
    checks = tuple(check(row) for row in rows(number_))
    return PaperTable(
        name=f"vet-{number_}",
        paper="vet",
        title=f"vet, Table {number_}: read-map time (PR), its ideal (EI) and vet_job;"
        f" {_TITLES[number_]}",
        columns=_COLUMNS,
        rows=tuple(_cells(r, c) for r, c in zip(rows(number_), checks, strict=True)),
        slips={c.slip: SLIPS[c.slip] for c in checks if c.slip},
        checks=checks,
        note="a mean of ratios need not be the ratio of means; may be: for any correlation of"
        " PR and EI, to second order",
    )


_COLUMNS = (
    Column("job", "job"),
    Column("map_slots", "map\nslots", 0),
    Column("pr_mean_s", "PR s\nmean", 3),
    Column("pr_std_s", "\nstd", 3),
    Column("ei_mean_s", "EI s\nmean", 3),
    Column("ei_std_s", "\nstd", 3),
    Column("printed_vet_job", "vet_job\nprinted", 3),
    Column("ratio_of_means", "mean PR/\nmean EI", 3),
    Column("printed_over_ratio", "printed/\nthat", 2),
    Column("possible_low", "may be\nfrom", 2),
    Column("possible_high", "\nto", 2),
    Column("slip", "slip"),
)


def _cells(row: Row, checked: Check) -> tuple[str | float | None, ...]:
    return (
        row.job,
        row.map_slots,
        row.pr_mean_s,
        row.pr_std_s,
        row.ei_mean_s,
        row.ei_std_s,
        row.vet_job,
        row.ratio_of_means,
        row.vet_job / row.ratio_of_means,
        *row.bound,
        checked.slip,
    )


@cache
def configurations() -> tuple[tuple[str, str, float, float], ...]:
    """Table 1: job, cluster, map and reduce slots of a node."""
    name = "vet_table1_configurations"
    return tuple(
        (
            cells["job"],
            cells["cluster"],
            number(cells["map_slots"], name),
            number(cells["reduce_slots"], name),
        )
        for cells in printed(name)
    )


def _table1() -> PaperTable:
    return PaperTable(
        name="vet-1",
        paper="vet",
        title="vet, Table 1: configurations (C2H: hard disk, C2S: solid state)",
        columns=(
            Column("job", "job"),
            Column("cluster", "cluster"),
            Column("map_slots", "# map\n(V12)", 0),
            Column("reduce_slots", "# reduce\n(V12)", 0),
            Column("slip", "slip"),
        ),
        rows=tuple((*row, "V11" if row[0] in ("Job6", "Job7") else "") for row in configurations()),
        slips={mark: SLIPS[mark] for mark in ("V11", "V12")},
        note="nothing in it can be recomputed",
    )


def _table4() -> PaperTable:
    columns = ("type", "distance_from", "distance_to")
    return PaperTable(
        name="vet-4",
        paper="vet",
        title="vet, Table 4: kinds of measures of an optimisation",
        columns=(
            Column("type", "kind"),
            Column("distance_from", "distance from"),
            Column("distance_to", "to"),
            Column("slip", "slip"),
        ),
        rows=tuple(
            (*(cells[column] for column in columns), "") for cells in printed("vet_table4_measures")
        ),
        slips={},
        note="words only, shortened: nothing in it can be recomputed",
    )


def tables() -> list[PaperTable]:
    """All tables of the paper."""
    return [_table1(), *(table(number_) for number_ in FILES), _table4()]
