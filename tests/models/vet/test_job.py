"""
Tests for `harness.models.vet.equations`: vet of a job, and how jobs are compared.
"""

import math

import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.base.errors import ModelError
from harness.models.vet.equations import ks_two_sample, pearson, vet_job, vet_task

numbers = st.floats(-1e6, 1e6)
STEP = [1.0] * 20 + [3.0, 8.0, 30.0]
TAIL = [1.0] * 15 + [2.0, 2.1, 60.0]


class TestVetJob:
    def test_is_the_mean_of_the_tasks(self):
        """
        The mean of ratios, and beside it the ratio of means, quartiles and deviations.
        """
        a, b = vet_task(STEP), vet_task(TAIL)

        result = vet_job([STEP, TAIL])

        assert result.vet_tasks == (a.vet, b.vet)
        assert result.vet_job == result.vet_median == pytest.approx((a.vet + b.vet) / 2)
        assert result.vet_quartile_1 == pytest.approx(
            min(a.vet, b.vet) * 0.75 + max(a.vet, b.vet) * 0.25
        )
        assert result.pr_mean_s == pytest.approx((a.profiled_real_s + b.profiled_real_s) / 2)
        assert result.pr_std_s == pytest.approx(
            abs(a.profiled_real_s - b.profiled_real_s) / math.sqrt(2)
        )
        assert result.ratio_of_means == pytest.approx(result.pr_mean_s / result.ei_mean_s)

    def test_skips_tasks_without_a_vet(self):
        """
        Too few units, or an ideal of nothing: in their place stands `None`, and they are counted.
        """
        result = vet_job([STEP, [1.0], [0.0] * 9], [5.0, 1.0, 1.0])

        assert result.vet_tasks[1:] == (None, None)
        assert (result.tasks_used, result.tasks_skipped) == (1, 2)
        assert (result.pr_std_s, result.pearson_vet_vs_task_seconds) == (None, None)

    @pytest.mark.parametrize("tasks", [[], [[1.0]]])
    def test_without_a_usable_task_is_none(self, tasks):
        """
        A job of no tasks has no vet, rather than a vet of 0 or 1.
        """
        result = vet_job(tasks)

        assert (result.vet_job, result.vet_median, result.pr_mean_s, result.ratio_of_means) == (
            None,
        ) * 4
        assert result.tasks_skipped == len(tasks)

    @pytest.mark.parametrize(
        ("arguments", "complaint"),
        [
            ({"tasks": None}, "tasks = None"),
            ({"tasks": "units"}, "tasks = 'units'"),
            ({"tasks": [[1.0, -1.0]]}, r"unit_seconds\[1\]"),
            ({"tasks": [STEP], "task_seconds": [1.0, 2.0]}, "task_seconds has 2 times for 1 task"),
            ({"tasks": [STEP], "task_seconds": [math.nan]}, r"task_seconds\[0\]"),
            ({"tasks": [STEP], "task_seconds": [-1.0]}, r"task_seconds\[0\]"),
            ({"tasks": [STEP], "task_seconds": 3.0}, "task_seconds = 3.0"),
            ({"tasks": [STEP], "omega": 1}, "omega = 1"),
        ],
    )
    def test_refuses(self, arguments, complaint):
        """
        What is no list of tasks, or of their times, names its field.
        """
        with pytest.raises(ModelError, match=complaint):
            vet_job(**arguments)


class TestPearson:
    @given(st.lists(numbers, min_size=3, max_size=20), st.floats(1e-3, 1e3), numbers)
    def test_of_a_line_is_one(self, values, slope, start):
        """
        Where one side is the other in another unit; nothing where it never differs.
        """
        other = [slope * v + start for v in values]

        result = pearson(values, other)

        if max(values) - min(values) > 1e-3:
            assert result == pytest.approx(1, abs=1e-4)
        assert result is None or -1 <= result <= 1

    def test_needs_three_pairs_that_differ(self):
        """
        Two points are always on a line.
        """
        assert pearson([1, 2], [1, 2]) is None
        assert pearson([1, 2, 3], [0.1, 0.1, 0.1]) is None
        assert pearson([1, 2, 3], [3, 2, 1]) == pytest.approx(-1)
        assert pearson([1e-200, 2e-200, 4e-200], [1, 2, 4]) == pytest.approx(1)


class TestKs:
    def test_is_exact_for_small_samples(self):
        """
        Of three against three, all apart: 2 of the 20 orders are as extreme.
        """
        result = ks_two_sample([1, 2, 3], [4, 5, 6])

        assert (result.statistic, result.p_value) == (1, pytest.approx(0.1))

    @given(st.lists(numbers, min_size=1, max_size=12), st.lists(numbers, min_size=1, max_size=12))
    def test_statistic_is_the_largest_distance(self, a, b):
        """
        Of the two empirical distributions, at any of their points; symmetric, like its p.
        """
        share = [
            abs(sum(v <= x for v in a) / len(a) - sum(v <= x for v in b) / len(b)) for x in a + b
        ]

        result, turned = ks_two_sample(a, b), ks_two_sample(b, a)

        assert result.statistic == pytest.approx(max(share))
        assert turned.p_value == pytest.approx(result.p_value)
        assert 0 <= result.p_value <= 1

    @pytest.mark.parametrize("bad", [[], [math.nan], None, [True], ["1"]])
    def test_refuses_what_is_no_sample(self, bad):
        """
        It names the side.
        """
        with pytest.raises(ModelError, match="sample_b"):
            ks_two_sample([1.0], bad)
