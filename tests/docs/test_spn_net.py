"""The page on the net of SPN-GC: its pictures and its table are those of the code."""

import json
import re

from pathlib import Path

import pytest

from harness.models.sim.petri import to_mermaid
from harness.models.sim.phasetype import maximum
from harness.models.spn_gc.net import timed_net
from harness.models.spn_gc.phases import PHASES, spn_phases

PROJECT = Path(__file__).parents[2]
PAGE = PROJECT / "docs" / "models" / "spn-gc-net.md"


def worked_example():
    """
    Phases 3 to 7 of `small_one_reduce`, the paper's rules.
    """
    vectors = PROJECT / "tests" / "validation" / "vectors" / "spn_gc_phases.json"
    case = json.loads(vectors.read_text())["cases"][0]
    phases = spn_phases(case["input"], "paper")
    return [phases[name] for name in PHASES[2:7]]


def test_table_is_computed():
    """
    Every factor: the expected maximum over the mean of one task, two decimals.
    """
    rows = re.findall(r"^\| ([\d,]+) \| ([\d. |]+) \|$", PAGE.read_text(), re.MULTILINE)
    shapes = ([1.0], [1.0] * 2, [1.0] * 5, worked_example())

    expected = [
        f"{maximum(s, int(n.replace(',', ''))).mean / sum(s):.2f}" for n, _ in rows for s in shapes
    ]

    assert len(rows) == 7
    assert [cell for _, row in rows for cell in row.split(" | ")] == expected


@pytest.mark.parametrize("variant", ["shared_read", "shared_shuffle"])
def test_charts_are_what_the_command_prints(variant):
    """
    Printed again, they are the same to the character.
    """
    net = timed_net(dict.fromkeys(PHASES, 1.0), 3, 2, variant)

    assert f"```mermaid\n{to_mermaid(net)}```" in PAGE.read_text()
