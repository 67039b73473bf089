"""One protocol for all detectors of shifts: the first alarm counts, and an early one is false."""

import numpy as np

from bench_nightly import CASES, MOVED, NIGHTS, Detector, online, outcome, row, series, wilson


def above(limit):
    """A detector that alarms once a night has exceeded *limit*."""
    return Detector("above", online(lambda seconds: bool(seconds.max() > limit)))


def test_a_shift_is_found_in_the_night_in_which_it_shows():
    """
    What moves by ten times the noise is seen in its first night, and nothing where none moved.
    """
    case = CASES[0]._replace(draw=lambda _: np.zeros((NIGHTS, 1)), shifts={"large": 0.3})

    outcomes = [outcome(above(limit), case, 0) for limit in (110, 99, 1000)]

    assert [(each.quiet, each.shifted["large"]) for each in outcomes] == [
        (None, MOVED), (8, 8), (None, None),
    ]  # fmt: skip


def test_an_early_alarm_is_false_and_finds_nothing():
    """
    One in the night before the shift is early; of the others only those in time count.
    """
    shares = row([MOVED - 1, MOVED, MOVED + 2, MOVED + 3, MOVED + 29, None])

    assert [each.split()[0] for each in shares] == ["16.7", "33.3", "50", "50", "66.7"]


def test_shifted_series_have_the_noise_of_quiet_ones():
    """
    So that what a detector sees differs by the shift alone.
    """
    for case in CASES:
        for shift in case.shifts.values():
            moved = np.log(series(case, 3, shift) / series(case, 3))
            assert np.allclose(moved[: MOVED - 1], 0)
            assert np.allclose(moved[MOVED - 1 :], shift)


def test_intervals_of_shares():
    """
    Wilson's, of none and of half of a hundred.
    """
    assert [wilson(0, 100), wilson(50, 100)] == ["0 (0 to 4)", "50 (40 to 60)"]
