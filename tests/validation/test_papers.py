"""
The papers' printed tables: recomputed columns, claims, and the page made of them.
"""

import json
import re

import numpy as np
import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.scoring import i_accu
from tests.validation import papers

DOCS = papers.PAGE.parent
VECTORS = papers.DATA.parent / "vectors" / "spn_gc_net.json"
CHECKS = {
    "agrees_rounded": "agrees",
    "printed_N": "agrees",
    "agrees_truncated": "agrees when cut, not rounded",
    "differs_within_input_rounding": "within the rounding of the printed times",
    "differs": "differs",
}
shifts = st.floats(-0.499, 0.499)
small = st.floats(0.001, 0.2)


def prophet_row(printed="10.0", actual="100.0", prophet="105.0", whatif="115.0"):
    """
    A printed row; by default What-If errs by 15 %, Prophet by 5 %.
    """
    return {
        "job": "sort", "input_gb": "1", "actual_s": actual, "prophet_s": prophet,
        "whatif_s": whatif, "printed_i_accu_percent": printed,
    }  # fmt: skip


class TestProphet:
    @pytest.mark.parametrize("number", papers.PROPHET_TABLES)
    def test_recomputed_columns(self, number):
        """
        Indicator and errors to the three decimals of columns that others computed; the outcome.
        """
        names = ("i_accu_percent", "prophet_error_percent", "whatif_error_percent")
        for row in papers.prophet_rows(number):
            computed = i_accu(*papers.times(row)[:3])

            expected = [float(row[f"computed_{name}"]) for name in names]
            assert [computed[name] for name in names] == pytest.approx(expected, abs=5.1e-4)
            assert papers.compare_indicator(row)[0] == CHECKS[row["check"]]

    def test_jobs_are_whole_map_tasks_and_a_reduce_task(self):
        """
        Erratum P22: k x map + reduce with whole k, in 11 of 13 rows to 0.6 %; WordCount's k is 1.
        """
        job, map_task, reduce_task = (papers.prophet_rows(n) for n in ("I", "II", "III"))
        off, waves = {}, {}
        for rows in zip(job, map_task, reduce_task, strict=True):
            name = rows[0]["job"], int(rows[0]["input_gb"])
            whole_s, map_s, reduce_s = (papers.times(row)[1] for row in rows)
            waves[name] = round((whole_s - reduce_s) / map_s)
            off[name] = abs(waves[name] * map_s + reduce_s - whole_s) / whole_s

        assert {name for name, error in off.items() if error > 0.006} == {
            ("wordcount", 30), ("terasort", 100),
        }  # fmt: skip
        assert len(off) == 13
        assert {k for (name, _), k in waves.items() if name == "wordcount"} == {1}

    @given(
        st.tuples(*[st.integers(1, 40)] * 3), st.tuples(shifts, shifts, shifts), st.integers(0, 2)
    )
    def test_possible_indicators_hold_all_that_round_to_the_printed(self, whole, off, digits):
        """
        Also where the true times lie on both sides of each other.
        """
        unit = 10.0**-digits
        printed = [seconds * unit for seconds in whole]
        true = [seconds + shift * unit for seconds, shift in zip(printed, off, strict=True)]

        low, high = papers.possible_indicators(*printed, 0.5 * unit)

        assert low - 1e-6 <= i_accu(*true)["i_accu_percent"] <= high + 1e-6

    def test_possible_indicators_are_reached(self):
        """
        The largest: measured and Prophet's time as near, What-If's as far as can be.
        """
        bound = papers.possible_indicators(100.0, 105.0, 115.0, 0.5)

        assert bound == pytest.approx((100 * 9 / 100.5, 100 * 11 / 99.5))

    @pytest.mark.parametrize(
        ("row", "slip"),
        [
            (prophet_row(), ""),
            (prophet_row("9.9"), "PT2"),
            (prophet_row("9.0"), "PT5"),
            (prophet_row("N"), "PT5"),
            (prophet_row("N", prophet="95.0", whatif="105.0"), ""),
            (prophet_row("10.0", whatif="115.09"), "PT1"),
            (prophet_row("20.0", prophet="95.0"), "PT3"),
            (prophet_row("14.7", whatif="119.27"), "PT4"),
        ],
    )
    def test_slips_are_distinguished(self, row, slip):
        """
        Rounded, cut, with signs, with a digit lost, or without explanation.
        """
        assert papers.compare_indicator(row)[1] == slip


class TestVet:
    @pytest.mark.parametrize("name", papers.VET_TABLES.values())
    def test_recomputed_columns(self, name):
        """
        Mean PR / mean EI, and the printed vet_job over it.
        """
        for row in papers.rows(name):
            pr, _, ei, _, vet_job = papers.vet_numbers(row)

            expected = [row["computed_pr_mean_over_ei_mean"], row["printed_over_computed"]]
            assert [pr / ei, vet_job * ei / pr] == pytest.approx(
                list(map(float, expected)), abs=5.1e-4
            )

    def test_bounds_of_the_specification(self):
        """
        Each bound that docs/models/vet.md lists, and the two jobs outside theirs.
        """
        line = r"^\| (Job\w) \|.*\| ([\d.]+)-([\d.]+) \|$"
        listed = re.findall(line, (DOCS / "models" / "vet.md").read_text(), re.MULTILINE)
        table = [row for name in papers.VET_TABLES.values() for row in papers.rows(name)]

        bounds = {r["job"]: papers.mean_ratio_bound(*papers.vet_numbers(r)[:4]) for r in table}

        assert bounds == {
            job: pytest.approx((float(low), float(high)), abs=5.1e-3) for job, low, high in listed
        }
        impossible = [row["job"] for row in table if not papers.is_possible_vet(row)]
        assert impossible == ["Jobb", "Jobd"]

    @given(small, small, st.floats(-0.95, 0.95))
    def test_bound_holds_the_mean_ratio_of_lognormal_times(self, v_pr, v_ei, correlation):
        """
        Their mean ratio is known exactly; the bound leaves out what is of third order and higher.
        """
        exact = 5 * (1 + v_ei**2) / (1 + correlation * v_pr * v_ei)
        low, high = papers.mean_ratio_bound(10, 10 * v_pr, 2, 2 * v_ei)

        left_out = 5 * 2 * v_pr * v_ei * (v_pr + v_ei) ** 2
        assert low - left_out <= exact <= high + left_out


class TestSpnGc:
    def test_counts_are_those_of_the_net(self):
        """
        (1) and (2) count the places and transitions of the nets derived from the text.
        """
        for case in json.loads(VECTORS.read_text())["cases"]:
            sizes, expected = case["input"], case["expected"]

            counts = papers.net_counts(sizes["num_maps"], sizes["num_reduces"])

            assert counts == (expected["places"], expected["transitions"])

    @given(st.integers(1, 100))
    def test_longest_of_single_delays_is_the_harmonic_number(self, branches):
        """
        1 + 1/2 + ... + 1/n.
        """
        harmonic = sum(1 / k for k in range(1, branches + 1))

        assert papers.longest_branch(branches, 1) == pytest.approx(harmonic, rel=1e-6)

    def test_longest_agrees_with_simulation(self):
        """
        Four branches of five stages, 10^5 times: within five standard errors.
        """
        drawn = np.random.default_rng(7).gamma(5, 1 / 5, size=(100_000, 4)).max(axis=1)

        error = drawn.std() / np.sqrt(len(drawn))
        assert papers.longest_branch(4, 5) == pytest.approx(drawn.mean(), abs=5 * error)


class TestClaims:
    def test_verdicts_follow_from_the_tables(self):
        """
        Every claim that is judged is computed again: a verdict, and the very figures against it.
        """
        claims = papers.rows("claims")
        recomputed = set()
        for paper, words, figures in papers.contradictions():
            (claim,) = [c for c in claims if c["paper"] == paper and words in c["claim"]]

            recomputed.add(claim["claim"])
            assert claim["verdict"] == ("contradicted" if figures else "holds"), words
            assert not figures or claim["figures"] == "; ".join(figures)
        judged = {c["claim"] for c in claims if c["verdict"] != "cannot be checked"}
        assert recomputed == judged

    def test_identifiers_are_those_of_the_documentation(self):
        """
        An erratum has its number in the specification; a slip of a cell stands on the page.
        """
        for claim in papers.rows("claims"):
            for erratum in claim["erratum"].split():
                name = "papers.md" if erratum[1] == "T" else f"models/{claim['paper']}.md"
                assert re.search(rf"^\| {erratum} \|", (DOCS / name).read_text(), re.MULTILINE)


def test_page_is_made_from_the_tables():
    """
    `python -m tests.validation.papers` writes it anew.
    """
    text = papers.PAGE.read_text()

    assert papers.page(text) == text
