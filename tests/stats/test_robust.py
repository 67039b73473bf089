"""Robust non-negative least squares."""

import numpy as np
import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.base.stats.robust import nnls_robust
from tests.strategies import SEEDS, designs


def costs(design, rng):
    """Coefficients whose columns all matter, one of them 0."""
    result = rng.uniform(0.5, 2, design.shape[1]) / np.linalg.norm(design, axis=0)
    result[0] = 0.0
    return result


class TestCoefficients:
    """What the fit finds."""

    @given(designs(), SEEDS)
    def test_without_noise(self, design, seed):
        """
        Exact data give the coefficients back.
        """
        true = costs(design, np.random.default_rng(seed))

        fit = nnls_robust(design, design @ true)

        lengths = np.linalg.norm(design, axis=0)
        assert fit.coefficients * lengths == pytest.approx(true * lengths, abs=1e-7)

    @given(designs(), SEEDS)
    def test_outliers(self, design, seed):
        """
        A twentieth of the rows may be anything.
        """
        rng = np.random.default_rng(seed)
        true = costs(design, rng)
        target = design @ true
        wrong = rng.choice(len(target), len(target) // 20, replace=False)
        target[wrong] += 20 * target.max()

        fit = nnls_robust(design, target)

        lengths = np.linalg.norm(design, axis=0)
        assert fit.coefficients * lengths == pytest.approx(true * lengths, abs=1e-3)

    def test_the_bulk_is_found_among_many_outliers(self):
        """
        A third of the rows is far too long, all to one side: the first steps have to find the rest.
        """
        rng = np.random.default_rng(0)
        design = rng.uniform(0, 1, size=(60, 3))
        true = np.array([1.0, 2.0, 3.0])
        target = design @ true
        target[:20] += rng.uniform(2, 20, 20)

        assert nnls_robust(design, target).coefficients == pytest.approx(true, abs=1e-3)

    def test_an_outlier_is_one_where_most_rows_are_zero(self):
        """
        Half of all values are 0, and so is the median by which they are scaled.
        """
        design = np.array([[n, 0.0] for n in range(1, 7)] + [[0.0, 1.0]] * 8)
        target = 2 * design[:, 0]
        target[1] = 40

        assert nnls_robust(design, target).coefficients == pytest.approx([2, 0], abs=1e-3)

    def test_beats_plain_least_squares(self):
        """
        With noise and outliers of 20 the error is a tenth of that of scipy's nnls.
        """
        from scipy.optimize import nnls

        rng = np.random.default_rng(8)
        design = rng.uniform(0, 1, size=(500, 12))
        true = rng.uniform(0, 2, size=12)
        target = design @ true + rng.normal(0, 0.05, size=500)
        target[:25] += 20

        robust = np.abs(nnls_robust(design, target).coefficients - true).max()
        plain = np.abs(nnls(design, target)[0] - true).max()

        assert robust < 0.1 * plain

    @given(designs(), SEEDS, st.floats(1e-9, 1e9))
    def test_units_cancel(self, design, seed, unit):
        """
        In other units of the target the coefficients are the same in those units.
        """
        rng = np.random.default_rng(seed)
        target = design @ costs(design, rng) + rng.uniform(0, 0.1, len(design))

        fit, other = nnls_robust(design, target), nnls_robust(design, target * unit)

        lengths = np.linalg.norm(design, axis=0)
        assert other.coefficients / unit * lengths == pytest.approx(
            fit.coefficients * lengths, abs=1e-5
        )

    def test_weights(self):
        """
        A row of weight 0 is not there, and one of weight 2 pulls harder.
        """
        design = np.ones((3, 1))
        target = np.array([1.0, 1.2, 9.0])

        even = nnls_robust(design, target, weights=np.array([1.0, 1.0, 0.0]))
        uneven = nnls_robust(design, target, weights=np.array([1.0, 2.0, 0.0]))

        assert even.coefficients[0] == pytest.approx(1.1, abs=1e-3)
        assert uneven.coefficients[0] > 1.12

    def test_unseen_column(self):
        """
        A column of zeros gets 0, and an error that says that nothing is known.
        """
        design = np.array([[1.0, 0.0], [2.0, 0.0], [3.0, 0.0]])

        fit = nnls_robust(design, np.array([1.0, 2.0, 3.1]))

        assert fit.coefficients[1] == 0.0
        assert fit.error(np.array([0.0, 1.0])) == float("inf")
        assert fit.error(np.array([1.0, 0.0])) < 0.1


class TestErrors:
    """Standard errors."""

    def test_agree_with_repetition(self):
        """
        The standard error is the spread of the coefficients over many data sets.
        """
        rng = np.random.default_rng(5)
        design = rng.uniform(0.5, 1.5, size=(120, 2)) * [1.0, 1e-6]
        true = np.array([3.0, 2e6])
        fits = [nnls_robust(design, design @ true + rng.normal(0, 0.1, 120)) for _ in range(150)]

        for k in range(2):
            spread = np.std([f.coefficients[k] for f in fits])
            reported = np.mean([f.error(np.eye(2)[k]) for f in fits])
            assert reported == pytest.approx(spread, rel=0.2)

    def test_of_one_coefficient_by_hand(self):
        """
        Tukey's psi adds up to 0, and the error is Huber's sandwich: the root of the sum of psi^2 x
        n / (n - 1) over the sum of psi'.  The scale is the median residual without the smallest;
        what lies 4.685 scales off does not count.
        """
        target = np.array([9.0, 10.0, 10.5, 11.0, 10.0, 12.0, 14.0, 30.0])
        fit = nnls_robust(np.ones((8, 1)), target)

        residuals = target - fit.coefficients[0]
        scale = np.median(np.sort(np.abs(residuals))[1:]) / 0.67449
        square = np.minimum(1, (residuals / (4.685 * scale)) ** 2)
        psi = residuals * (1 - square) ** 2
        assert psi.sum() == pytest.approx(0, abs=1e-4)
        slopes = np.where(square < 1, (1 - square) * (1 - 5 * square), 0)
        expected = np.sqrt((psi**2).sum() * 8 / 7) / slopes.sum()
        assert fit.error(np.ones(1)) == pytest.approx(expected, rel=1e-4)

    def test_what_a_constraint_alone_decides_is_hardly_known(self):
        """
        Two equal columns of together 2: their sum is known as one column's coefficient is, their
        difference to within what both explain, in whatever unit the constraint is.
        """
        rng = np.random.default_rng(1)
        column = rng.uniform(0.5, 1.5, size=(60, 1))
        target = 2 * column[:, 0] + rng.normal(0, 0.05, 60)
        alone = nnls_robust(column, target)

        fit = nnls_robust(np.hstack([column, column]), target, constraints=np.array([[1.0, -1.0]]))

        assert fit.coefficients == pytest.approx([1, 1], abs=0.01)
        assert fit.error(np.ones(2)) == pytest.approx(alone.error(np.ones(1)), rel=1e-6)
        assert fit.error(np.array([1.0, -1.0])) == pytest.approx(2 * np.sqrt(2), rel=0.01)

    def test_without_a_row_to_spare(self):
        """
        As many rows as coefficients leave nothing to judge the error by.
        """
        fit = nnls_robust(np.eye(2), np.array([1.0, 2.0]))

        assert fit.error(np.array([1.0, 0.0])) == float("inf")

    def test_one_row_to_spare_is_enough(self):
        """
        For an error that is a number; of no coefficient at all there is none.
        """
        fit = nnls_robust(np.ones((2, 1)), np.array([1.0, 1.2]))

        assert 0 < fit.error(np.ones(1)) < 1
        assert fit.error(np.zeros(1)) == 0
