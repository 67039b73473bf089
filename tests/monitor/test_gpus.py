"""
Tests for `harness.clusters.monitor.rates`, and what `harness.core.run.rates` writes of it into a
run's manifest: nodes whose driver's tool is a shim.
"""

import json
import shutil
import subprocess

from types import SimpleNamespace

import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.base.records.trial import ClusterSpec, NodeSpec
from harness.clusters.hadoop_home.home import find_java, job_jar
from harness.clusters.host import LocalHost
from harness.clusters.monitor import rates as module
from harness.clusters.monitor.rates import GPU_RATES, read_copies
from harness.clusters.workloads.base import GPU
from harness.core.run.rates import record_gpus

LINE = "0, NVIDIA L4, 23034, 550.54.15"
L4 = {
    "name": "NVIDIA L4", "memory_bytes": 23034 * 2**20, "driver": "550.54.15",
}  # fmt: skip
NONE = {"devices": [], "library": ""}
COPIES = {"h2d_bps": [12_000_000_000, 13_000_000_000], "d2h_bps": [11_000_000_000]}
ONE = json.dumps({"kind": "cuda", "h2d_bps": [1], "d2h_bps": [1]})
CLASS = "mapreduce.harness.gpu.Rates"
MEASURED = json.dumps({"kind": "cuda", **COPIES})


def node(folder, name, listing=None, java=f"echo '{MEASURED}'"):
    """
    A host whose `nvidia-smi` lists that, or that has none; *java* is a script in its Java's place.
    """
    programs = folder / name
    programs.mkdir()
    scripts = {"nvidia-smi": f"echo '{listing}'", "java": java}
    for program, script in scripts.items():
        tool = programs / program
        if listing is not None:
            tool.write_text(f"#!/bin/sh\n{script}\n")
            tool.chmod(0o755)

    def exec_prefix(argv):
        return ["/usr/bin/env", f"PATH={programs}", argv[0], *argv[1:]]

    return LocalHost(name, "127.0.0.1", str(folder), exec_prefix, {"PATH": str(programs)})


@pytest.fixture
def keep(run):
    """
    A function that keeps the GPUs of a cluster of such hosts, each of which offers *gpus*.
    """

    def kept(*workers, gpus=1, watched=()):
        spec = ClusterSpec(workers=max(1, len(workers)), node=NodeSpec(gpus=gpus))
        hosts = (SimpleNamespace(name="master"), *workers)
        cluster = SimpleNamespace(
            hosts=hosts, watched=watched,
            host_path=lambda host, path: str(path), java_on=lambda host: "java",
        )  # fmt: skip
        return record_gpus(run, spec, cluster)

    return kept


@pytest.mark.process
def test_each_worker_describes_its_own_gpus(keep, run, tmp_path):
    """
    One that does not have what it offers is named; what another cluster had is kept.
    """
    run.update_manifest(gpus_found={"worker9": NONE})
    warnings = keep(node(tmp_path, "worker1", LINE), node(tmp_path, "worker2"))
    entries = run.read_manifest().document()["gpus_found"]

    assert entries["worker1"] == {"devices": [L4], "library": "", **COPIES}
    assert entries["worker2"].keys() == {"devices", "library", "message"}
    assert entries["worker2"]["devices"] == []
    assert entries["worker9"] == NONE
    (only,) = warnings
    assert only.startswith("the GPUs of worker2 may not work: 1 offered, none found (")


@pytest.mark.process
def test_a_node_that_offers_more_than_it_has_is_named(keep, tmp_path):
    """
    Without words of the driver's tool there are none to tell.
    """
    assert keep(node(tmp_path, "worker1", LINE), gpus=2) == [
        "the GPUs of worker1 may not work: 2 offered, 1 found"
    ]


@pytest.mark.process
def test_this_machine_is_described_once(keep, run, monkeypatch, tmp_path):
    """
    Where all nodes are on it; what it lacks was said before the cluster was started.
    """
    monkeypatch.setattr(module, "here", node(tmp_path, "here", LINE).run)
    workers = [node(tmp_path, name, LINE) for name in ("worker1", "worker2")]

    assert keep(*workers, gpus=2, watched=None) == []
    assert run.read_manifest().document()["gpus_found"] == {
        "machine": {"devices": [L4], "library": "", **COPIES}
    }


@pytest.mark.process
@pytest.mark.parametrize(
    ("java", "why"),
    [
        (
            "echo \"has no library; fix: 'make cuda'\" >&2; exit 1",
            "has no library; fix: 'make cuda'",
        ),
        (f"echo '{MEASURED}'; exit 1", "it measured no CUDA device"),
        (f"echo '{MEASURED.replace('cuda', 'cpu')}'", "it measured no CUDA device"),
        (f"echo '{'[' * 9999}'; printf '\\033[2J' >&2", "\\x1b[2J"),
    ],
    ids=["no library", "it failed", "a processor", "nonsense"],
)
def test_why_rates_are_missing(keep, run, tmp_path, java, why):
    """
    In words; the run goes on, and what is no rate of a GPU is never taken for one.
    """
    keep(node(tmp_path, "worker1", LINE, java))

    entry = run.read_manifest().document()["gpus_found"]["worker1"]

    assert entry == {"devices": [L4], "library": "", "rates_missing": why}


@pytest.mark.process
def test_rates_are_measured_once_in_a_run(keep, run, tmp_path):
    """
    Those that are missing are tried again: somebody may have built the library meanwhile.
    """
    missing = {"rates_missing": "no library"}
    run.update_manifest(gpus_found={"worker1": NONE | COPIES, "worker2": NONE | missing})
    keep(*(node(tmp_path, name, LINE, f"echo '{ONE}'") for name in ("worker1", "worker2")))
    entries = run.read_manifest().gpus_found

    assert [entries[name].d2h_bps for name in ("worker1", "worker2")] == [(11_000_000_000,), (1,)]
    assert entries["worker2"].rates_missing is None


@pytest.mark.process
@pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++")
def test_a_processor_is_no_gpu(tmp_path):
    """
    What a processor's library measures says so itself; no file is left.
    """
    java = [find_java().launcher, "-Xmx64m", f"-Duser.dir={tmp_path}", "-cp", job_jar(GPU), CLASS]
    done = subprocess.run([*java, "cpu"], capture_output=True, text=True, check=True)
    document = json.loads(done.stdout)

    assert document["kind"] == "cpu"
    assert min(document["h2d_bps"] + document["d2h_bps"]) > 1e6
    assert read_copies(done.stdout) == {}
    assert read_copies(done.stdout.replace("cpu", "cuda")) == {n: document[n] for n in GPU_RATES}
    assert list(tmp_path.iterdir()) == []


@given(st.text() | st.recursive(st.integers() | st.text(), st.lists).map(json.dumps))
def test_any_answer_is_read(text):
    """
    What is no rate is none, alone and in the place of rates.
    """
    wrapped = f'{{"kind": "cuda", "h2d_bps": [1], "d2h_bps": {text}}}'

    for copies in (read_copies(text), read_copies(wrapped)):
        assert all(type(p) is int and p > 0 for passes in copies.values() for p in passes)


@pytest.mark.parametrize(
    ("gpus", "workers"), [(0, 1), (1, 0)], ids=["none offered", "no connections"]
)
def test_no_node_is_described(keep, run, gpus, workers):
    """
    Where nodes are to have none, or have no connection.
    """
    assert keep(*[SimpleNamespace(name="worker1")] * workers, gpus=gpus) == []
    assert run.read_manifest().gpus_found == {}
