"""
A results folder and clusters in memory, on which a plan can be run.
"""

import pytest

from harness import clusters as clusters_package
from harness.clusters.local import namespace
from harness.clusters.monitor import watch
from harness.core.experiment.model import Experiment, WorkloadAxes
from harness.core.run import execute, jobs, trial
from harness.core.run.execute import Execution
from harness.core.store import Store
from tests.run.fakes import VERSIONS, Clusters, FakeProbe, QuickClock, RecordingConsole


@pytest.fixture(autouse=True)
def short_waits(monkeypatch):
    """
    Clients in memory end at once, or never: their seconds are not waited for.
    """
    clock = QuickClock()
    for user in (jobs, trial):
        monkeypatch.setattr(user, "time", clock)


@pytest.fixture(autouse=True)
def namespaces(monkeypatch):
    """
    The kernel is not asked whether it makes them.
    """
    monkeypatch.setattr(namespace, "kernel_refusal", lambda: "")


@pytest.fixture
def clusters(monkeypatch):
    """
    Stands for the local provider, with a speed probe beside it.
    """
    made = Clusters()

    def probe(*, log):
        made.probe = FakeProbe(log=log)
        return made.probe

    for user in (execute, clusters_package):
        monkeypatch.setattr(user, "PROVIDERS", {"local": made}, raising=False)
    monkeypatch.setattr(watch, "SpeedProbe", probe)
    return made


@pytest.fixture
def run(tmp_path):
    """
    A new run.
    """
    workload = WorkloadAxes(name="terasort", input_bytes=(6_000_000,))
    experiment = Experiment(name="small", question="q", workloads=(workload,))
    return Store(tmp_path / "results").open_run(experiment, "text")


@pytest.fixture
def execution(run, clusters):
    """
    Makes the execution of a test: no warm-up, and what is reported is kept.
    """
    assert clusters.running == 0

    def build(**rest):
        given = {"console": RecordingConsole(), "versions": VERSIONS, **rest}
        return Execution(run=run, home=None, **{"limit_s": 10.0, "warmup": 0, **given})

    return build
