"""The correction to reference speed."""

from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.observe.profiling import fit_speed
from tests.profiling.jobs import observation
from tests.strategies import SEEDS

CELLS = [observation(maps=2), observation(maps=6), observation(150_000)]


def trials(rates, times):
    """Repeats of three cells, with rates and with job times multiplied."""
    jobs = []
    for k, (rate, factor) in enumerate(zip(rates, times, strict=True)):
        job = CELLS[k % 3]
        finish = job.trace.submit_s + job.trace.job_s * factor
        trial = job.trial.model_copy(update={"id": f"trial {k}"})
        trace = replace(job.trace, finish_s=finish)
        jobs.append(replace(job, trial=trial, rate=rate, trace=trace))
    return jobs


# Rates so far apart that no other order of them does as well.
RATES = st.lists(st.integers(50, 150), min_size=9, max_size=12).filter(
    lambda r: len(r) % 3 == 0 and all(np.diff(sorted(r[k::3])).min() > 2 for k in range(3))
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
        rates = [80.0, 90.0, 100.0, 110.0, 120.0, 130.0, 85.0, 95.0, 105.0]

        assert fit_speed(trials(rates, [(100 / r) ** 4 for r in rates])).coefficient == 3


def drawn(seed, *, cells, repeats, follows=0.0):
    """
    Rates and times of so many repeated cells, both with a spread of 3 %.
    """
    rng = np.random.default_rng(seed)
    slowness = rng.normal(0, 0.03, cells * repeats)
    log_s = follows * slowness + rng.normal(0, 0.03, cells * repeats)
    return trials(100 * np.exp(-slowness), np.exp(log_s))


@pytest.mark.process
class TestPermutations:
    """The correction is used where rates that mean nothing would hardly do as well."""

    @pytest.mark.parametrize("repeats", [3, 5])
    def test_does_no_harm_where_speed_means_nothing(self, repeats):
        """
        It is on in 5 % of the runs at most, and trials that were not in the fit spread as before.
        """
        fits = [fit_speed(drawn(seed, cells=3, repeats=repeats)) for seed in range(250)]
        spreads = []
        for seed, speed in enumerate(fits):
            jobs = drawn(1000 + seed, cells=3, repeats=repeats)
            times = [(job.trace.job_s, job.rate, job.trial.cell.id) for job in jobs]
            for correct in (lambda t, _: t, speed.at_reference):
                logs = defaultdict(list)
                for seconds, rate, cell in times:
                    logs[cell].append(np.log(correct(seconds, rate)))
                spreads.append(np.sqrt(np.mean([np.var(one, ddof=1) for one in logs.values()])))

        raw, corrected = np.mean(spreads[::2]), np.mean(spreads[1::2])
        assert sum(speed.coefficient > 0 for speed in fits) <= 0.05 * 250 + 2 * np.sqrt(12)
        assert corrected <= 1.01 * raw

    def test_is_used_where_times_follow_the_speed(self):
        """
        As far as the rates spread: half of the spread gone is seen in five repeats of three cells.
        """
        fits = [fit_speed(drawn(seed, cells=3, repeats=5, follows=1.7)) for seed in range(100)]

        assert sum(speed.coefficient > 0 for speed in fits) >= 95

    def test_too_few_trials_to_tell(self):
        """
        Of two repeats of two cells each fourth order does as well: that is said, and nothing done.
        """
        jobs = trials([80.0, 90.0, 0.0, 120.0, 110.0], [1.25, 1.11, 1.0, 0.83, 0.91])
        speed = fit_speed([job for job in jobs if job.rate])

        assert speed.coefficient == 0
        assert "of the cases, more than 5%: times are left as measured" in speed.note

    def test_jobs_of_a_trial_stay_together(self):
        """
        Ten jobs of each trial, all as slow as it was, are no ten repeats.
        """
        rates, times = [80.0, 90.0, 100.0], [1.25, 1.11, 1.0]
        jobs = [
            replace(job, number=number)
            for job in trials([rate for rate in rates for _ in range(3)], np.repeat(times, 3))[::3]
            for number in range(10)
        ]
        speed = fit_speed(jobs)

        assert (speed.coefficient, speed.count) == (0.0, 30)


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
