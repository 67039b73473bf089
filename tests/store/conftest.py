"""
Builders for the store's tests: an experiment, its trials, how they ended, what was seen of them.
"""

import pytest

from harness.base.records.prediction import Prediction
from harness.base.records.profile import Profile, SpeedCorrection, Statistic
from harness.base.records.score import ScoreBook
from harness.base.records.trace import JobTrace
from harness.base.records.trial import TrialRecord, Versions
from harness.core.experiment.grid import expand, order
from harness.core.experiment.model import Experiment, WorkloadAxes
from harness.core.store import Store

VERSIONS = Versions(hadoop="3.5.0", java="17.0.1")


class Make:
    """
    Makes records with everything that a test does not care about.
    """

    def experiment(self, name="small", **rest):
        workload = WorkloadAxes(name="wordcount", input_bytes=(2**20, 2**21))
        return Experiment(**{"name": name, "question": "q", "workloads": (workload,), **rest})

    def trials(self, **rest):
        e = self.experiment(**rest)
        return order(e, expand(e), VERSIONS)

    def record(self, trial, state="done", reason=""):
        return TrialRecord(
            trial=trial,
            state=state,
            started_s=10.0,
            finished_s=21.5,
            job_ids=("job_1_0001",),
            reason=reason,
            versions=VERSIONS,
        )

    def prediction(self, model="whatif", cell="c", job_s=12.5):
        return Prediction(
            model=model, cell=cell, job_s=job_s, phases={"map": 0.1}, dataflow={"n": 3}
        )

    def profile(self, workload="wordcount"):
        cost = Statistic(value=1e-9, count=4, spread=1e-10, source="fit", group=("b",))
        speed = SpeedCorrection(reference_rate=9.5, coefficient=0.8, gain=0.3, count=4)
        return Profile(
            workload=workload, costs={"cpu": cost}, speed=speed, ranges={"input": (1, 2)}
        )

    def commit(self, run, trial, **rest):
        """
        A trial with one log, from its beginning to its end.
        """
        folder = run.start_trial(trial)
        log = folder.raw / "containers/c_1/syslog"
        log.parent.mkdir(parents=True)
        log.write_text("a line\n" * 100)
        return folder.commit(self.record(trial, **rest))


@pytest.fixture
def make():
    """
    The builders.
    """
    return Make()


@pytest.fixture
def store(tmp_path):
    """
    An empty results folder.
    """
    return Store(tmp_path / "results")


@pytest.fixture
def run(store, make):
    """
    A new run of the small experiment.
    """
    return store.open_run(make.experiment(), "text")


@pytest.fixture
def measured(run, make):
    """
    A finished run of two trials with traces, a profile, and sealed and scored predictions.
    """
    run.write_plan(make.trials())
    for trial in make.trials()[:2]:
        make.commit(run, trial)
        run.write_trace(trial.id, [JobTrace("j", "n", "u", "SUCCEEDED", 0.0, 0.5, 3.0, 1, 0, ())])
    run.write_profile(make.profile())
    run.write_predictions("whatif", [make.prediction()])
    run.seal.add()
    run.write_scores(ScoreBook())
    run.finish()
    return run
