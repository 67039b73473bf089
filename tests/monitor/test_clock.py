"""
Tests for `harness.monitor.clock`.
"""

import time

import pytest

from harness.monitor.clock import MOST_SHIFT_S, Watch


class Clock:
    """
    A wall clock that can be set.
    """

    def __init__(self):
        self.shift_s = 0.0

    def __call__(self):
        return time.time() + self.shift_s


def test_begins_by_the_wall_clock():
    """
    When it was made is told in seconds since the epoch.
    """
    assert Watch().at_s == pytest.approx(time.time(), abs=1.0)


@pytest.mark.parametrize("shift_s", [-3600.0, 3600.0])
def test_duration_does_not_follow_the_wall_clock(shift_s):
    """
    However the clock is set, no time is negative and none an hour too long.
    """
    wall = Clock()
    watch = Watch(wall)

    wall.shift_s = shift_s

    assert 0.0 <= watch.elapsed_s < 5.0


@pytest.mark.parametrize(
    ("shift_s", "told"),
    [
        (0.0, ""),
        (MOST_SHIFT_S / 2, ""),
        (-3600.0, "the machine's clock was set 3600.0 s back during the trial"),
        (
            7.5,
            "the machine's clock was set 7.5 s forward (or the machine slept) during the trial",
        ),
    ],
)
def test_complains_of_a_clock_that_was_set(shift_s, told):
    """
    By how much and which way; slewing is no setting.
    """
    wall = Clock()
    watch = Watch(wall)

    wall.shift_s = shift_s

    assert watch.complaint() == told
