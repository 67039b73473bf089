"""
Tests for `harness.models.fixed`: what is lent to bodies of models that have equations.
"""

import pytest

from harness.base.records.prediction import Prediction
from harness.base.records.profile import FIXED
from harness.models import MODELS, has_equations
from harness.models.fixed import with_fixed
from tests.models.profiled import cell_inputs, profile, stat

# Each has its own digit, so that a sum shows how often each counts.
SECONDS = {name: stat(10.0**place) for place, name in enumerate(FIXED)}
BODY = Prediction(
    model="m", body_s=5.0, map_task_s=2.0, reduce_task_s=3.0, published_s=7.0,
    estimates={"other_s": 6.0}, measurable={"map_main_s": 1.0, "shuffle_s": 1.0},
    parts={"copy_s": 1.0},
)  # fmt: skip


def lent(prediction=BODY, **cell):
    """
    The prediction with all fixed seconds, of 8 maps on 3 slots and 4 reduces unless said otherwise.
    """
    asked = {"splits": 8, "slots": 3, "num_reduces": 4, "reduce_slowstart": 1.0} | cell
    return with_fixed(prediction, profile(statistics=SECONDS), cell_inputs(**asked))


class TestWithFixed:
    def test_each_wave_takes_them(self):
        """
        Three waves of maps, two of reduces, whose first opens beside maps where it starts early.
        """
        assert lent().body_s == 5.0 + 22233.0
        assert lent(reduce_slowstart=0.05).body_s == 5.0 + 22133.0
        assert lent(num_reduces=0).body_s == 5.0 + 33.0

    def test_each_task_and_phase_has_its_own(self):
        """
        Single equations and what was published stay those of the paper.
        """
        answer = lent()

        assert (answer.map_task_s, answer.reduce_task_s) == (2.0 + 11.0, 3.0 + 11100.0)
        assert answer.measurable == {"map_main_s": 2.0, "shuffle_s": 101.0}
        assert answer.estimates == {"other_s": answer.body_s + 1.0}
        assert (answer.parts, answer.published_s) == (BODY.parts, BODY.published_s)

    def test_an_older_profile_adds_nothing(self):
        """
        Nor does any to a whole job that has no body.
        """
        whole = Prediction(model="m", job_s=9.0)

        assert with_fixed(BODY, profile(), cell_inputs()) is BODY
        assert lent(whole) is whole


def test_baselines_have_learnt_them():
    """
    All others of the harness have equations; a model of a user's own finds them in the profile.
    """
    without = {name for name, model in MODELS.items() if not has_equations(model)}

    assert without == {"ernest", "scaling"}
    assert not has_equations(type("Mine", (), {"name": "whatif", "required": frozenset()})())


@pytest.mark.parametrize("name", FIXED)
def test_a_time_below_0_is_none(name):
    """
    It is refused by its name.
    """
    bad = profile(statistics={name: stat(-1.0)})

    with pytest.raises(ValueError, match=name):
        with_fixed(BODY, bad, cell_inputs())
