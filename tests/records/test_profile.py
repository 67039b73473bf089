"""
Tests for `harness.base.records.profile`.
"""

import pytest

from harness.base.records.profile import SpeedCorrection


@pytest.mark.parametrize(("coefficient", "expected_s"), [(0.0, 10.0), (1.0, 20.0), (0.5, 200**0.5)])
def test_a_trial_of_a_fast_moment_takes_longer_at_reference_speed(coefficient, expected_s):
    """
    At twice the reference rate, by as much as the coefficient says; not at all where it is zero.
    """
    speed = SpeedCorrection(reference_rate=50.0, coefficient=coefficient, gain=0.1, count=3)

    assert speed.at_reference(10.0, 100.0) == pytest.approx(expected_s)
