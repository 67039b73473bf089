"""
Tests for `harness.models.sim.petri`: what a valid net is.
"""

import pytest

from harness.base.errors import ModelError
from harness.models.sim.petri import Net, Transition


@pytest.mark.parametrize("mean", [-1.0, float("nan"), float("inf")])
def test_a_mean_that_is_no_time_is_refused(mean):
    """
    The error names the transition.
    """
    with pytest.raises(ModelError, match=f"'t' has mean {mean}"):
        Net(("a",), (Transition("t", mean),), (("a", "t", 1),), ())
