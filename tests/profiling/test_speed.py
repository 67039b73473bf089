"""The correction to reference speed."""

from dataclasses import replace

import numpy as np
import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.profiling import fit_speed
from tests.profiling.jobs import observation
from tests.strategies import SEEDS

CELLS = [observation(maps=2), observation(maps=6), observation(150_000)]


def trials(rates, times):
    """Repeats of three cells, with rates and with job times multiplied."""
    jobs = []
    for k, (rate, factor) in enumerate(zip(rates, times, strict=True)):
        job = CELLS[k % 3]
        finish = job.trace.submit_s + job.trace.job_s * factor
        jobs.append(replace(job, rate=rate, trace=replace(job.trace, finish_s=finish)))
    return jobs


RATES = st.lists(st.floats(50, 150), min_size=6, max_size=12).filter(
    lambda r: len(r) % 3 == 0 and all(np.ptp(r[k::3]) > 5 for k in range(3))
)


class TestCoefficient:
    """What the fit finds."""

    @given(RATES, st.floats(0.2, 1.4))
    def test_times_that_follow_the_speed(self, rates, power):
        """
        Times that are a power of the speed give that power, and all of their spread is gained.
        """
        jobs = trials(rates, [(100 / r) ** power for r in rates])

        speed = fit_speed(jobs)

        assert speed.reference_rate == np.median(rates)
        assert speed.coefficient == pytest.approx(power, rel=1e-6)
        assert speed.gain == pytest.approx(1, abs=1e-6)
        for job in jobs:
            same = CELLS[jobs.index(job) % 3].trace.job_s * (100 / speed.reference_rate) ** power
            assert speed.at_reference(job.trace.job_s, job.rate) == pytest.approx(same)

    @given(RATES, st.floats(0.2, 1.4))
    def test_faster_clock_and_slower_job(self, rates, power):
        """
        Times that run against the speed are no reason to correct.
        """
        speed = fit_speed(trials(rates, [(r / 100) ** power for r in rates]))

        assert (speed.coefficient, speed.gain) == (0.0, 0.0)
        assert "no gain" in speed.note

    @given(SEEDS)
    def test_correction_never_harms(self, seed):
        """
        Where times have nothing to do with the speed, the correction is off or gains by chance.
        """
        rng = np.random.default_rng(seed)
        jobs = trials(rng.uniform(99, 101, 9), 1 + rng.normal(0, 0.04, 9))

        speed = fit_speed(jobs)

        assert 0 <= speed.coefficient <= 3
        assert (speed.coefficient > 0) == (speed.gain > 0)

    def test_limit(self):
        """
        A time that seems to follow the fourth power is corrected with 3 at most.
        """
        rates = [80.0, 90.0, 100.0, 110.0, 120.0, 130.0]

        assert fit_speed(trials(rates, [(100 / r) ** 4 for r in rates])).coefficient == 3


class TestTooLittle:
    """Observations that show no correction."""

    def test_no_probe(self):
        """
        Without rates times are left as measured, and the note says why.
        """
        speed = fit_speed([replace(job, rate=None) for job in CELLS])

        assert (speed.coefficient, speed.count) == (0.0, 0)
        assert "no trial has a speed probe" in speed.note
        assert speed.at_reference(7.0, 1.0) == 7.0

    def test_no_repeats(self):
        """
        Cells that were measured once say nothing, but the reference rate is known.
        """
        speed = fit_speed(trials([90.0, 100.0, 120.0], [1.0, 1.0, 1.0]))

        assert (speed.reference_rate, speed.coefficient) == (100.0, 0.0)
        assert "too few" in speed.note
