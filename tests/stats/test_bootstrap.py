"""Bootstrap intervals."""

import math

import numpy as np
import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.stats.bootstrap import mean_interval, paired_difference

VALUES = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30)


class TestMeanInterval:
    """The interval of one mean."""

    @given(VALUES, st.integers(0, 99))
    def test_holds_the_mean_and_repeats_itself(self, values, seed):
        """
        The interval holds the sample mean, and the same seed gives the same interval.
        """
        low, high = mean_interval(values, seed=seed, resamples=50)

        assert low <= np.mean(values) <= high
        assert (low, high) == mean_interval(values, seed=seed, resamples=50)

    def test_is_as_wide_as_theory_says(self):
        """
        For many normal values the interval is the mean +- 1.96 standard errors.
        """
        values = np.random.default_rng(3).normal(10, 2, size=400)

        low, high = mean_interval(list(values), seed=1, resamples=4000)

        assert high - low == pytest.approx(2 * 1.96 * values.std() / math.sqrt(400), rel=0.1)

    def test_more_confidence_is_wider(self):
        """
        A higher level gives an interval around the lower one's.
        """
        values = [1.0, 2.0, 5.0, 9.0]

        low, high = mean_interval(values, seed=1, level=0.5)
        wide_low, wide_high = mean_interval(values, seed=1, level=0.99)

        assert wide_low < low < high < wide_high

    def test_blocks_do_not_matter(self, monkeypatch):
        """
        Resampling in small blocks gives as many means as in one.
        """
        monkeypatch.setattr("harness.stats.bootstrap._BLOCK", 7)

        assert mean_interval([1.0, 3.0], seed=1, resamples=500)[1] == 3.0

    @pytest.mark.parametrize(
        ("values", "options"),
        [([], {}), ([math.nan], {}), ([1.0], {"level": 1.0}), ([1.0], {"resamples": 0})],
    )
    def test_refuses_what_has_no_interval(self, values, options):
        """
        No values, no numbers, no level and no resamples are errors, never an interval.
        """
        with pytest.raises(ValueError):
            mean_interval(values, seed=1, **options)


class TestPairedDifference:
    """The interval of a mean difference."""

    def test_what_pairs_share_cancels(self):
        """
        A constant difference has no spread, however far the pairs lie apart.
        """
        first = [1.0, 50.0, 900.0]

        result = paired_difference([v + 2 for v in first], first, seed=1)

        assert result == (2.0, 2.0, 2.0)

    def test_pairs_need_partners(self):
        """
        Rows of unequal length are refused.
        """
        with pytest.raises(ValueError, match="do not make pairs"):
            paired_difference([1.0], [1.0, 2.0], seed=1)
