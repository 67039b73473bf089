"""
Tests for `harness.scoring.papers.spn_gc` and its claims.
"""

import json

from pathlib import Path

import numpy as np
import pytest

from hypothesis import given, settings
from hypothesis import strategies as st

from harness.scoring.papers import Verdict, spn_gc, spn_gc_claims

VECTORS = Path(__file__).parents[2] / "validation" / "vectors" / "spn_gc_net.json"


class TestLongest:
    @settings(max_examples=20)
    @given(st.integers(1, 200))
    def test_of_single_delays_is_the_harmonic_number(self, branches):
        """
        1 + 1/2 + ... + 1/n.
        """
        harmonic = sum(1 / k for k in range(1, branches + 1))

        assert spn_gc.longest(branches, 1) == pytest.approx(harmonic, rel=1e-6)

    @settings(max_examples=10)
    @given(st.integers(1, 20))
    def test_of_one_branch_is_its_mean(self, stages):
        """
        However many stages it has.
        """
        assert spn_gc.longest(1, stages) == pytest.approx(1, rel=1e-6)

    @settings(max_examples=15)
    @given(st.integers(2, 50), st.integers(1, 10))
    def test_grows_with_branches_and_falls_with_stages(self, branches, stages):
        """
        More branches have a longer longest; more stages even each branch out.
        """
        here = spn_gc.longest(branches, stages)

        assert spn_gc.longest(branches + 1, stages) > here > spn_gc.longest(branches, stages + 1)

    def test_agrees_with_simulation(self):
        """
        Four branches of five stages, 10^5 times: within five standard errors.
        """
        drawn = np.random.default_rng(7).gamma(5, 1 / 5, size=(100_000, 4)).max(axis=1)

        error = drawn.std() / np.sqrt(len(drawn))
        assert spn_gc.longest(4, 5) == pytest.approx(drawn.mean(), abs=5 * error)


class TestTables:
    @pytest.mark.parametrize(
        "case", json.loads(VECTORS.read_text())["cases"], ids=lambda c: c["name"]
    )
    def test_counts_are_those_of_the_net(self, case):
        """
        (1) and (2) count the places and transitions of the nets derived from the text.
        """
        given, expected = case["input"], case["expected"]

        got = spn_gc.counts(given["num_maps"], given["num_reduces"])

        assert got == (expected["places"], expected["transitions"])

    def test_borrowed_descriptions(self):
        """
        Two rows of Table I say what another row says.
        """
        assert spn_gc.borrowed() == {
            "parallel_copies": "sort.factor",
            "shuffle.buffer.percent": "sort.mb",
        }

    def test_settings_without_use(self):
        """
        Three settings of Table I are in no equation, and none of Table II's notations.
        """
        assert spn_gc.unused() == ["M_ref", "Max_map", "parallel_copies"]

    def test_symbols_are_tabled_or_marked(self):
        """
        A symbol of the equations stands in a table or is marked; none is both.
        """
        tabled = {s.symbol for s in spn_gc.settings()} | {n for _, n in spn_gc.notations()}
        marked = set(spn_gc.untabled())

        assert tabled & marked == set()
        assert tabled | marked >= set(spn_gc.equations())

    def test_defaults(self):
        """
        80 MB of the buffer, 5 % of them for 16 bytes a record; 1024 MB x 0.7 x 0.66.
        """
        values = [value for _, _, value, _ in spn_gc.defaults()]

        assert values == pytest.approx([4, 76, 262_144, 320, 473.088, 256])


def test_two_ways_of_estimating_differ():
    """
    The sum of the phases' means is not the mean of the simulated times.
    """
    (found,) = [c for c in spn_gc_claims.claims() if "2000 simulations" in c.text]

    assert found.verdict is Verdict.CONTRADICTED
    assert ["1.49" in found.figures[0], "2.08" in found.figures[1]] == [True, True]
