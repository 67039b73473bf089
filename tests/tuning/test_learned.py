"""
What measured settings say of a model, carried to settings near them.
"""

import numpy as np
import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.base.records.prediction import JobConfig
from harness.tuning.learned import Learned, point_of, points

RATIOS = st.lists(st.floats(-0.7, 0.7), min_size=1, max_size=6)


@given(RATIOS)
def test_a_model_is_right_where_it_was_measured_and_off_by_the_mean_far_away(ratios):
    """
    As far as the noise allows; 20 octaves away no more is known than how far off it is at all.
    """
    places = np.array([[12.0 * number, 1.0, 5.0, 0.0] for number in range(len(ratios))])
    learned = Learned(places, np.array(ratios), 1e-6)

    assert learned.factor(places) == pytest.approx(np.exp(ratios), rel=1e-3)
    mean = np.exp(np.mean(ratios))
    assert learned.factor(places[:1] - 20) == pytest.approx([mean], rel=1e-3)


def test_one_measured_setting_changes_no_choice():
    """
    All others are as far off as it is.
    """
    learned = Learned(np.zeros((1, 4)), np.array([0.5]), 0.03)

    factors = learned.factor(np.array([[0.0] * 4, [1.0, 2.0, 0.0, 2.0], [9.0] * 4]))

    assert factors == pytest.approx([np.exp(0.5)] * 3)


@given(st.floats(0.05, 0.7), st.floats(0.01, 0.5))
def test_noise_takes_from_what_is_learned(ratio, noise):
    """
    The noisier a time is, the less one setting differs from another; never more than it did.
    """
    places = np.array([[0.0] * 4, [3.0] + [0.0] * 3])
    quiet, noisy = (
        np.divide(*Learned(places, np.array([ratio, 0.0]), each).factor(places))
        for each in (1e-6, noise)
    )

    assert 1 <= noisy <= quiet * (1 + 1e-9) <= np.exp(ratio) * (1 + 1e-6)


def test_places_are_in_octaves_and_codecs_are_apart():
    """
    One job alone, and many at once.
    """
    alone = point_of(JobConfig(num_reduces=4, sort_buffer_mb=64, map_output_compressed=True), 8)
    many = points(*(np.array([value, value]) for value in (8, 0, 64, False)))

    assert alone.tolist() == [[3.0, 2.0, 6.0, 2.0]]
    assert many.tolist() == [[3.0, 0.0, 6.0, 0.0]] * 2
