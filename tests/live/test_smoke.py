"""
The ready-made experiment `experiments/smoke.yaml` on every provider: from nothing to a report with
scores, and nothing left behind.
"""

import subprocess

from contextlib import contextmanager

import pytest

from harness.clusters.docker.engine import Engine
from harness.core.evaluate.laws import broken_laws
from harness.core.store import Store
from tests.live import engine as engines
from tests.live.bare_hosts import lacking, trusted_hosts
from tests.live.foreign import client_environment, foreign_cluster, state_of
from tests.live.runs import PROJECT, clusters, command, processes, settings

pytestmark = [pytest.mark.live, pytest.mark.long]
SMOKE = PROJECT / "experiments" / "smoke.yaml"
WORKERS = 2
TRIALS = 3
LIMIT_S = 1200
MODELS = {"whatif", "whatif-mr2"}
# What the report of one provider says, and no other.
SAID = {"ansible": "only made on hosts that keep Hadoop"}


@contextmanager
def local(folder, monkeypatch):
    """
    Nothing is asked for.
    """
    del folder, monkeypatch
    yield {}, []


@contextmanager
def docker(folder, monkeypatch):
    """
    An engine, which has nothing of ours in the end.
    """
    del folder, monkeypatch
    with engines.ready() as (address, _):
        yield {"DOCKER_HOST": address}, []
        there = Engine.connect({"DOCKER_HOST": address}).client
        assert there.containers.list(all=True, filters={"label": "mapreduce-harness.cluster"}) == []
        there.close()


@contextmanager
def ansible(folder, monkeypatch):
    """
    Three hosts that are trusted, and as they were in the end.
    """
    del monkeypatch
    if lacking():
        pytest.skip(lacking())
    with trusted_hosts(1 + WORKERS, settings(folder), size="12g") as place:
        before = [host.written() for host in place.hosts]
        addresses = ", ".join(host.address for host in place.hosts)
        yield {}, [f"cluster.hosts=[{addresses}]", f"cluster.ssh.key={place.key}"]
        assert [host.written() for host in place.hosts] == before


@contextmanager
def existing(folder, monkeypatch):
    """
    A cluster that was there before, and is there after it.
    """
    with foreign_cluster(monkeypatch, WORKERS) as cluster:
        before = state_of(cluster)
        yield client_environment(cluster), []
        assert state_of(cluster) == before


@pytest.mark.parametrize("provider", [local, docker, ansible, existing])
def test_smoke(provider, tmp_path, monkeypatch):
    """
    All trials are done and traced, every model has its scores, the machines' speed is known
    where the provider has a way to them, and the records keep the laws between them.
    """
    name = provider.__name__
    results = tmp_path / "results"
    with provider(tmp_path, monkeypatch) as (more, overrides):
        environment = settings(tmp_path) | more
        options = []
        for override in (f"cluster.provider={name}", *overrides):
            options += ["--set", override]
        argv = command("all", results, *options, experiment=SMOKE)
        done = subprocess.run(
            argv, env=environment, cwd=PROJECT, timeout=LIMIT_S, text=True, check=False,
            stdout=subprocess.PIPE,
        )  # fmt: skip
        (run,) = Store(results).runs("smoke")
        reasons = [r.reason for r in run.trials().values() if r.state != "done"]
        assert (done.returncode, reasons) == (0, [])
        assert clusters(environment) == []
        assert processes(environment) == []

    sampled = [any("speed" in n for n in run.raw(trial).names()) for trial in run.trials()]
    assert all(run.has_trace(trial) for trial in run.trials())
    assert sampled == [name != "existing"] * TRIALS
    assert {row.model for row in run.read_scores().summaries} == MODELS
    assert broken_laws(run) == []
    report = (run.path / "report.html").read_text()
    assert report.startswith("<!DOCTYPE html>")
    assert SAID.get(name, "") in report
