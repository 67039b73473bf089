"""
The papers' tables as they are recomputed, against the columns that others computed from them.
"""

import csv
import re

from pathlib import Path

import pytest

import harness.scoring.papers

from harness.scoring import i_accu
from harness.scoring.papers import Outcome, prophet, vet

TABLES = Path(harness.scoring.papers.__file__).parent / "tables"
ERRATA = Path(__file__).parents[2] / "docs" / "models" / "vet.md"
COLUMNS = ("i_accu_percent", "prophet_error_percent", "whatif_error_percent")
CHECKS = {
    "agrees_rounded": Outcome.AGREES,
    "printed_N": Outcome.AGREES,
    "agrees_truncated": Outcome.CUT,
    "differs_within_input_rounding": Outcome.ROUNDING,
    "differs": Outcome.DIFFERS,
}


def rows(name):
    """
    A table of the package, with the columns that the package itself does not look at.
    """
    return list(csv.DictReader((TABLES / f"{name}.csv").read_text().splitlines()))


def prophet_rows():
    """
    Every row of MR. Prophet's three tables, with the number of its table and its place there.
    """
    for number, (name, _) in prophet.FILES.items():
        for index, row in enumerate(rows(name)):
            label = f"{number}-{row['job']}-{row['input_gb']}"
            yield pytest.param(number, index, row, id=label)


def bounds():
    """
    The bounds of vet_job as the specification lists them, by job.
    """
    line = r"^\| (Job\w) \|.*\| ([\d.]+)-([\d.]+) \|$"
    found = re.findall(line, ERRATA.read_text(), re.MULTILINE)
    return {job: (float(low), float(high)) for job, low, high in found}


@pytest.mark.parametrize(("number", "index", "row"), list(prophet_rows()))
class TestProphet:
    def test_indicator_of_printed_row(self, number, index, row):
        """
        The three decimals of the computed columns come out.
        """
        got = i_accu(float(row["actual_s"]), float(row["prophet_s"]), float(row["whatif_s"]))

        expected = [float(row[f"computed_{name}"]) for name in COLUMNS]
        assert [got[name] for name in COLUMNS] == pytest.approx(expected, abs=5.1e-4)

    def test_comparison_with_printed_indicator(self, number, index, row):
        """
        A cell agrees, agrees when cut, agrees within rounding or differs, as in the column `check`.
        """
        checked = prophet.check(prophet.rows(number)[index])

        assert (checked.printed, checked.outcome) == (
            row["printed_i_accu_percent"],
            CHECKS[row["check"]],
        )


@pytest.mark.parametrize("number", list(vet.FILES))
class TestVet:
    def test_ratio_of_means(self, number):
        """
        Mean PR / mean EI, and the printed vet_job over it, to the three decimals of the columns.
        """
        got = [(r.job, r.ratio_of_means, r.vet_job / r.ratio_of_means) for r in vet.rows(number)]

        columns = ("computed_pr_mean_over_ei_mean", "printed_over_computed")
        assert got == [
            (row["job"], *(pytest.approx(float(row[c]), abs=5.1e-4) for c in columns))
            for row in rows(vet.FILES[number])
        ]

    def test_bound_of_the_mean_ratio(self, number):
        """
        The second-order bounds of the specification, and the two jobs outside them.
        """
        listed = bounds()
        for row in vet.rows(number):
            assert row.bound == pytest.approx(listed[row.job], abs=5.1e-3)
            differs = vet.check(row).outcome is Outcome.DIFFERS
            assert differs == (row.job in ("Jobb", "Jobd"))
