"""
Tests for `harness.core.evaluate.drift`: what sentinels say of the machine.
"""

from types import SimpleNamespace

import pytest

from harness.base.records.prediction import JobConfig
from harness.base.records.profile import Profile, ProfiledJob, SpeedCorrection
from harness.base.records.score import Drift, Measurement, ScoreBook
from harness.base.records.trial import (
    Cell,
    ClusterSpec,
    Trial,
    TrialRecord,
    WorkloadSpec,
)
from harness.core.evaluate.drift import drift_of
from harness.core.evaluate.measurements import measure_trials, without_drift
from harness.core.reports.answer import drifted
from tests.run.fakes import VERSIONS


class Trials:
    """
    Done trials with times of their jobs, in the place of a run.
    """

    has_traces = True
    experiment = SimpleNamespace(predict=SimpleNamespace(source=""))

    def __init__(self, *rows, rates=None):
        self.done, self._times, self._rates = {}, {}, rates or {}
        for number, (use, mib, *times) in enumerate(rows):
            workload = WorkloadSpec(name="terasort", input_bytes=mib * 2**20)
            trial = Trial.of(
                Cell(cluster=ClusterSpec(), workload=workload), number, VERSIONS,
                profiling=use == "profile", sentinel=use == "sentinel",
            )  # fmt: skip
            self.done[trial.id] = TrialRecord(
                trial=trial, state="done", started_s=0.0, finished_s=1.0, versions=VERSIONS
            )
            self._times[trial.id] = (use, times)

    def jobs(self, record):
        return [SimpleNamespace(job_s=job_s) for job_s in self._times[record.trial.id][1]]

    def rate(self, record):
        return self._rates.get(self._times[record.trial.id][0])


ROWS = (
    ("profile", 16, 10.0), ("profile", 16, 10.4), ("profile", 32, 20.0), ("profile", 32, 20.6),
    ("score", 24, 99.0), ("sentinel", 16, 11.2), ("score", 24, 99.0), ("sentinel", 32, 22.5),
)  # fmt: skip


def test_sentinels_say_how_much_longer_jobs_take():
    """
    A tenth, by two sentinels; scored trials say nothing of it.
    """
    found = drift_of(Trials(*ROWS), {})

    assert found.ratio == pytest.approx(1.104, abs=0.003)
    assert found.low < found.ratio < found.high
    assert (found.sentinels, found.cells) == (2, 2)


def test_several_jobs_of_a_trial_add_up():
    """
    As everywhere.
    """
    rows = [("profile", 16, 4.0, 6.0), ("profile", 16, 5.0, 5.0), ("sentinel", 16, 6.0, 6.0)]

    assert drift_of(Trials(*rows), {}).ratio == pytest.approx(1.2)


def test_what_the_probe_saw_is_no_drift():
    """
    Times are at reference speed by the profile, where that is adopted.
    """
    speed = SpeedCorrection(reference_rate=100.0, coefficient=1.0, gain=0.5, count=9, note="")
    profile = Profile(workload="terasort", speed=speed)
    trials = Trials(*ROWS, rates={"profile": 100.0, "sentinel": 100 / 1.104})

    assert drift_of(trials, {"terasort": profile}).ratio == pytest.approx(1.0, abs=0.003)
    assert drift_of(trials, {}).ratio == pytest.approx(1.104, abs=0.003)


def test_profiles_of_another_run_hold_what_it_measured():
    """
    By cell; the jobs of one trial add up, and a cell that nobody measured here says nothing.
    """
    trials = Trials(("sentinel", 16, 6.0, 6.0), ("score", 24, 99.0))
    trials.experiment = SimpleNamespace(predict=SimpleNamespace(source="another"))
    (cell,) = {one.trial.cell.id for one in trials.done.values() if one.trial.sentinel}
    jobs = [("a", cell, 4.0), ("a", cell, 6.0), ("b", cell, 5.0), ("b", cell, 5.0), ("c", "o", 7.0)]
    lent = Profile(workload="terasort", jobs=[profiled_job(*job) for job in jobs])

    found = drift_of(trials, {"terasort": lent})

    assert found.ratio == pytest.approx(1.2)
    assert (found.sentinels, found.cells) == (1, 1)


def profiled_job(trial, cell, job_s):
    """
    A job of a trial, by which a profile was fitted.
    """
    return ProfiledJob(
        trial=trial, cell=cell, input_bytes=1, num_splits=1, num_nodes=1, map_slots=1,
        reduce_slots=1, configuration=JobConfig(), job_s=job_s,
    )  # fmt: skip


@pytest.mark.parametrize("count", [0, 1, 4, 5])
def test_without_a_sentinel_nothing_is_known(count):
    """
    Nor is a number made of nothing.
    """
    assert drift_of(Trials(*ROWS[:count]), {}) is None


def test_a_run_without_traces_says_what_was_published():
    """
    Its jobs are not there; without a sentinel it says nothing.
    """
    trials = Trials(*ROWS)
    trials.has_traces = False
    book = ScoreBook(drift=FOUND)
    measured = SimpleNamespace(read_stored_scores=lambda: book)
    trials.run = SimpleNamespace(measured=measured)

    assert drift_of(trials, {}) == FOUND
    trials.done = {key: one for key, one in trials.done.items() if not one.trial.sentinel}
    assert drift_of(trials, {}) is None


def test_times_at_reference_speed_are_without_it():
    """
    Raw times stay as they were measured.
    """
    measured = Measurement(
        cell="c", workload="w", trial="t", raw_s={"job_s": 11.0}, reference_s={"job_s": 11.0}
    )
    without = without_drift(measured, 1.1)

    assert without.raw_s == {"job_s": 11.0}
    assert without.reference_s == {"job_s": pytest.approx(10.0)}


def test_stored_times_are_without_it_already():
    """
    They stay, and the jobs that show it are not read: a bundle may not have them.
    """
    trials = Trials(*ROWS)
    trials.run = SimpleNamespace(read_profiles=dict)
    trials.jobs = None
    stored = [
        Measurement(
            cell="c", workload="w", trial=key, raw_s={"job_s": 9.0}, reference_s={"job_s": 8.0}
        )
        for key, record in trials.done.items()
        if record.trial.is_scored
    ]

    assert measure_trials(trials, stored) == stored


FOUND = Drift(ratio=1.104, low=1.08, high=1.13, sentinels=2, cells=2)
SAID = (
    "Drift +10 % (+8 % to +13 %): by 2 sentinels, 2 profiling cells measured again among the scored"
    " trials, these ran so much longer than those of the profiles. What is said of models is"
    " without it, and holds at both of its ends."
)
LOST = "Drift is not known: no sentinel is done."
UNKNOWN = "Drift is not known: nothing shows how much they vary."


@pytest.mark.parametrize(
    ("drift", "uses", "state", "said"),
    [
        (None, "score", "done", []),
        (None, "sentinel", "done", [UNKNOWN]),
        (None, "sentinel", "failed", [LOST]),
        (FOUND, "sentinel", "done", [SAID]),
    ],
)
def test_a_report_says_how_much_of_all_errors_it_is(drift, uses, state, said):
    """
    And that it is not known, where sentinels were planned.
    """
    record = SimpleNamespace(trial=SimpleNamespace(use=uses), state=state)
    results = SimpleNamespace(score_book=SimpleNamespace(drift=drift), trials=[record])

    assert [*drifted(results)] == said
