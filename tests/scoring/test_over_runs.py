"""
Tests for `harness.scoring.over_runs`: how far models are off over several runs of an experiment.
"""

import math

import pytest

from harness.base.records.score import Ranking
from harness.scoring.over_runs import best_over_runs, model_over_runs, models_over_runs


def ranking(**errors):
    """
    The ranking of one run with these errors.
    """
    return Ranking(
        quantity="job_s", speed="raw", cells=6,
        models=tuple(errors), errors=tuple(errors.values()),
    )  # fmt: skip


class TestModels:
    def test_the_interval_is_students(self):
        """
        Of 10, 14 and 12 %: 12, and 4.303 standard errors of 1.155 to either side.
        """
        row = model_over_runs("a", [0.10, 0.14, 0.12])
        half = 4.302653 * 0.02 / math.sqrt(3)

        assert (row.model, row.errors, row.mean) == ("a", (0.10, 0.14, 0.12), pytest.approx(0.12))
        assert row.interval == pytest.approx((0.12 - half, 0.12 + half), rel=1e-6)

    def test_no_error_is_below_0(self):
        """
        However much runs differ.
        """
        low, high = model_over_runs("a", [0.01, 0.01, 0.4]).interval

        assert low == 0.0
        assert high > 0.4

    def test_the_smallest_mean_comes_first_then_the_name(self):
        """
        Of the models that stand in all runs, each by its own errors.
        """
        rows = models_over_runs([
            ranking(a=0.1, c=0.2, b=0.2, x=0.01), ranking(b=0.3, c=0.3, a=0.4),
        ])  # fmt: skip

        assert [(row.model, row.errors) for row in rows] == [
            ("a", (0.1, 0.4)), ("b", (0.2, 0.3)), ("c", (0.2, 0.3)),
        ]  # fmt: skip
        assert [row.interval for row in rows] == [None] * 3

    def test_without_runs_there_is_no_model(self):
        """
        Nor where runs share none.
        """
        assert models_over_runs([]) == models_over_runs([ranking(a=0.1), ranking(b=0.1)]) == []


class TestSentence:
    def test_of_one_model_over_two_runs(self):
        """
        It has no interval, and says what one takes.
        """
        assert best_over_runs(models_over_runs([ranking(a=0.1), ranking(a=0.3)])) == (
            "a is off by 20.0 % on average; an interval over runs takes 3 of them."
        )

    def test_of_several_models_over_three_runs(self):
        """
        The first of them, with its interval.
        """
        runs = [ranking(b=0.5, a=error) for error in (0.10, 0.14, 0.12)]

        assert best_over_runs(models_over_runs(runs)) == (
            "of 2 models a errs least: off by 12.0 % on average,"
            " between 7.0 % and 17.0 % over such runs (95 %)."
        )
