"""
Tests for Ernest: its four features, and what profiled jobs do not distinguish.
"""

import math
import re

import numpy as np
import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.base.errors import MissingStatistic, ModelError
from harness.models.ernest import COEFFICIENTS, FEATURES, Ernest, features, fit, independent_columns
from tests.models.profiled import MIB, cell_inputs, job, profile
from tests.strategies import SEEDS

ERNEST = Ernest()
TRUE = (12.0, 2e-7, 3.0, 0.25)
GRID = [(mib, slots) for mib in (32, 64, 256) for slots in (1, 2, 4, 8)]
coefficients = st.tuples(
    st.floats(0, 100), st.floats(1e-9, 1e-5), st.floats(0, 30), st.floats(0, 10)
)


def seconds(theta, mib, slots, splits=64):
    """
    [Ven16], section 3.1, the obvious way.
    """
    machines = min(slots, splits)
    return (
        theta[0]
        + theta[1] * mib * MIB / machines
        + theta[2] * math.log(machines)
        + theta[3] * machines
    )


def measured(theta, cells=GRID, noise=None):
    """
    A profile of jobs that keep to *theta*.
    """
    off = noise or (lambda: 0.0)
    return profile(
        *(
            job(seconds(theta, m, s) * (1 + off()), mib=m, slots=s, splits=64, trial=f"{m}-{s}")
            for m, s in cells
        )
    )


def predict(known, **fields):
    """
    Answer from a profile.
    """
    return ERNEST.predict(known, *cell_inputs(**{"splits": 64, **fields}))


class TestFit:
    @given(coefficients, st.integers(1, 4096), st.integers(1, 64))
    def test_finds_the_law_again(self, theta, mib, slots):
        """
        A grid of inputs and slots determines all four terms, and so any other cell.
        """
        prediction = predict(measured(theta), mib=mib, slots=slots)

        scale = seconds(theta, 256, 1) + seconds(theta, mib, slots)
        assert prediction.body_s == pytest.approx(seconds(theta, mib, slots), abs=1e-9 * scale)
        assert math.fsum(prediction.phases.values()) == prediction.body_s

    def test_names_its_coefficients(self):
        """
        Seconds, per byte, per log machine, per machine.
        """
        flow = predict(measured(TRUE)).dataflow

        assert [flow[n] for n in COEFFICIENTS] == pytest.approx(TRUE)
        assert flow["fit_residual_s"] == pytest.approx(0, abs=1e-9)

    @given(SEEDS)
    def test_is_the_best_of_all_non_negative_fits(self, seed):
        """
        Each coefficient's slope is 0, or points below 0 where it is at bound.
        """
        rng = np.random.default_rng(seed)
        design = rng.uniform(0, 1, size=(12, 4)) * 10.0 ** rng.integers(-6, 6, size=4)
        times = rng.uniform(0, 100, size=12)

        fitted = fit(design, times)
        slope = design.T @ (design @ fitted - times) / np.linalg.norm(design, axis=0)

        assert (fitted >= 0).all()
        assert (slope >= -1e-8 * np.linalg.norm(times)).all()
        assert np.abs(slope[fitted > 0]).max(initial=0) < 1e-8 * np.linalg.norm(times)

    @given(coefficients, st.floats(0.01, 100))
    def test_units_cancel(self, theta, factor):
        """
        Times in another unit give the answer in that unit.
        """
        scaled = measured([t * factor for t in theta])

        scale = 1e-9 * factor * seconds(theta, 256, 1)
        assert predict(scaled).body_s == pytest.approx(
            factor * predict(measured(theta)).body_s, rel=1e-9, abs=scale
        )

    def test_configuration_is_no_feature(self):
        """
        It is a black box: more reduces change nothing.
        """
        known = measured(TRUE)

        assert predict(known, num_reduces=1).body_s == predict(known, num_reduces=32).body_s

    def test_noise_is_averaged(self):
        """
        Ten repeats of 5 % noise leave less than 5 % of error.
        """
        rng = np.random.default_rng(7)

        prediction = predict(
            measured(TRUE, GRID * 10, lambda: rng.normal(0, 0.05)), mib=512, slots=4
        )

        assert prediction.body_s == pytest.approx(seconds(TRUE, 512, 4), rel=0.05)


class TestLeftOut:
    def test_one_number_of_slots(self):
        """
        Both terms of machines are constants then: they are left out, with a warning.
        """
        prediction = predict(measured(TRUE, [(m, 2) for m in (32, 64, 128)]), mib=512, slots=2)

        assert prediction.body_s == pytest.approx(seconds(TRUE, 512, 2))
        assert "log(machines), machines: left out" in prediction.warnings[0]
        assert (prediction.phases["log_machines_s"], prediction.phases["machines_s"]) == (0, 0)

    def test_two_numbers_of_slots(self):
        """
        Two points make one line: machines itself is left out.
        """
        warnings = predict(measured(TRUE, [(m, s) for m in (32, 64) for s in (2, 4)])).warnings

        assert [w.split(":")[0] for w in warnings] == ["machines"]

    def test_all_told(self):
        """
        Four numbers of slots determine everything, without a warning.
        """
        assert predict(measured(TRUE)).warnings == ()

    def test_at_bound(self):
        """
        Times that fall with the slots beyond the shared work have no positive term for slots.
        """
        jobs = [job(200 - 9 * s + m / s, mib=m, slots=s, splits=64) for m, s in GRID]

        assert predict(profile(*jobs)).warnings == (
            "log(machines), machines: at bound, coefficient 0",
        )

    def test_zero_column(self):
        """
        One slot has no logarithm.
        """
        design = np.array([features(b, 1) for b in (1.0, 2.0, 3.0)])

        assert [FEATURES[k] for k in independent_columns(design)] == ["1", "scale/machines"]

    @given(SEEDS)
    def test_what_is_kept_has_full_rank(self, seed):
        """
        Columns with copies and sums among them.
        """
        rng = np.random.default_rng(seed)
        free = rng.uniform(0, 1, size=(9, 3))
        design = np.column_stack([free[:, 0], 3 * free[:, 0], free[:, 1], free @ [1, 2, 0], free])

        assert independent_columns(design) == [0, 2, 6]

    @pytest.mark.parametrize(
        "jobs",
        [
            [job()],
            [job(trial="a"), job(70.0, trial="b")],
            [job(mib=32, splits=1), job(mib=64, splits=2)],
            [job(mib=32, splits=1), job(mib=64, splits=2, input_bytes=64 * MIB - 100)],
        ],
        ids=["one job", "repeats of one", "as many slots as splits", "nearly so"],
    )
    def test_one_share_for_each_slot(self, jobs):
        """
        One ratio of input to slots does not distinguish work from fixed time: all counts as work,
        so that twice the share takes twice as long, and a warning names the ratio.
        """
        single, double = (predict(profile(*jobs), mib=mib, slots=1, splits=1) for mib in (100, 200))

        assert double.body_s == pytest.approx(2 * single.body_s)
        assert single.phases["fixed_s"] == 0
        assert re.match(r"1: left out, .* have (16|32) to (16|32) MiB", single.warnings[0])


def test_whole_jobs_are_fitted_where_no_body_is_known():
    """
    The job is what it would be with bodies as long as the jobs.
    """
    known = measured(TRUE)
    bodiless = tuple(entry.model_copy(update={"body_s": None}) for entry in known.jobs)

    answer = predict(known.model_copy(update={"jobs": bodiless}))

    assert (answer.body_s, answer.job_s) == (None, answer.published_s)
    assert answer.job_s == pytest.approx(predict(known).body_s)
    assert predict(known).job_s is None  # the frame is lent to its body


class TestRefuses:
    def test_a_profile_without_jobs(self):
        """
        What an older harness profiled.
        """
        with pytest.raises(MissingStatistic) as refused:
            predict(profile())

        assert refused.value.names == ("jobs",)

    @pytest.mark.parametrize("bad", [-1.0])
    def test_a_time_that_is_none(self, bad):
        """
        A profile may have been damaged.
        """
        with pytest.raises(ModelError, match="body_s"):
            predict(profile(job(bad), job(mib=128)))

    def test_no_input(self):
        """
        Nothing that could be read.
        """
        with pytest.raises(ModelError, match="input_bytes"):
            predict(measured(TRUE), mib=0)
