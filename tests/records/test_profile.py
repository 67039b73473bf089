"""
Tests for `harness.base.records.profile`.
"""

import math

import pytest

from pydantic import ValidationError

from harness.base.records.profile import SpeedCorrection, Statistic


@pytest.mark.parametrize(("coefficient", "expected_s"), [(0.0, 10.0), (1.0, 20.0), (0.5, 200**0.5)])
def test_a_trial_of_a_fast_moment_takes_longer_at_reference_speed(coefficient, expected_s):
    """
    At twice the reference rate, by as much as the coefficient says; not at all where it is zero.
    """
    speed = SpeedCorrection(reference_rate=50.0, coefficient=coefficient, gain=0.1, count=3)

    assert speed.at_reference(10.0, 100.0) == pytest.approx(expected_s)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_number_that_is_not_finite_is_in_no_record(bad):
    """
    Whatever reads a file, it comes no further: no model has to refuse it.
    """
    with pytest.raises(ValidationError, match="finite"):
        Statistic(value=bad, count=1, spread=0.0, source="a job")
