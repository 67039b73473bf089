"""
The closed loop of tuning, with steps that are not measured but made.
"""

import pytest

from harness.evaluate.ask import basis_of_run
from harness.run.tune import Tuning
from tests.evaluate.test_flow import evaluation, stored  # noqa: F401 - a fixture
from tests.run.fakes import RecordingConsole

BASE_S, OTHER_S = (10.0, 10.4, 9.6), (8.0, 8.4, 7.6)


class MadeUp(Tuning):
    """
    A loop in which each proposal takes less time than the base.
    """

    def measure(self, number, cells):
        """
        Times of a step without running it.
        """
        for key in cells:
            times_s = BASE_S if key == self.basis.base.id else OTHER_S
            for repetition in range(self.repeats):
                self.times_s[key][number, repetition] = times_s[repetition]
        self.cells |= cells
        return f"run {number}"


@pytest.fixture
def loop(stored, tmp_path):  # noqa: F811
    """
    Three repeats of each cell, judged by What-If.
    """
    run = evaluation(stored)
    return MadeUp(run, basis_of_run(run, ""), "whatif-mr2", 3, tmp_path, RecordingConsole())


def test_a_loop_says_by_how_much_the_best_is_faster(loop):
    """
    By pairs of the same step and repetition; it ends where the gain is below the noise.
    """
    steps = list(loop.steps(5))
    ratio, low, high = loop.speed_up()

    assert [step.run for step in steps] == [f"run {number}" for number in range(len(steps))]
    assert (steps[0].default_s, steps[0].best_s) == pytest.approx((10.0, 8.0))
    assert loop.best() != loop.basis.base.id
    assert low < ratio < high
    assert ratio == pytest.approx((10 * 10.4 * 9.6 / (8 * 8.4 * 7.6)) ** (1 / 3))
    assert len(steps) == 5 or "expected to save" in str(vars(loop.console))


def test_one_pair_has_no_interval(loop):
    """
    The ratio alone.
    """
    loop.repeats = 1
    next(loop.steps(1))

    assert loop.speed_up() == (pytest.approx(1.25), None, None)
    assert loop.noise(loop.best()) == 0.0
