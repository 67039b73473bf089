"""
The accuracy indicator against the columns computed from the printed tables.
"""

import csv

from pathlib import Path

import pytest

from harness.scoring import i_accu

TABLES = sorted((Path(__file__).parent / "tables").glob("prophet_*.csv"))
COLUMNS = ("i_accu_percent", "prophet_error_percent", "whatif_error_percent")


def rows():
    """
    Every row of the three tables.
    """
    for table in TABLES:
        for row in csv.DictReader(table.read_text().splitlines()):
            yield pytest.param(row, id=f"{table.stem}-{row['job']}-{row['input_gb']}")


@pytest.mark.parametrize("row", list(rows()))
def test_indicator_of_printed_row(row):
    """
    The three decimals of the computed columns come out.
    """
    got = i_accu(float(row["actual_s"]), float(row["prophet_s"]), float(row["whatif_s"]))

    expected = [float(row[f"computed_{name}"]) for name in COLUMNS]
    assert [got[name] for name in COLUMNS] == pytest.approx(expected, abs=5.1e-4)
