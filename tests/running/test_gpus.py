"""
Tests for `harness.running.gpus`: a run's manifest, and nodes whose driver's tool is a shim.
"""

from types import SimpleNamespace

import pytest

from harness.clusters.host import LocalHost
from harness.records.trial import ClusterSpec, NodeSpec
from harness.running import gpus as module
from harness.running.gpus import ENTRY, keep_gpus

LINE = "0, NVIDIA L4, 23034, 550.54.15, 4, 4, 16, 8"
L4 = {
    "name": "NVIDIA L4", "memory_bytes": 23034 * 2**20, "driver": "550.54.15",
    "pcie_generation_max": 4, "pcie_generation": 4, "pcie_width_max": 16, "pcie_width": 8,
}  # fmt: skip
NONE = {"devices": [], "library": ""}


def node(folder, name, listing=None):
    """
    A host whose `nvidia-smi` lists that, or that has none.
    """
    programs = folder / name
    programs.mkdir()
    if listing is not None:
        tool = programs / "nvidia-smi"
        tool.write_text(f"#!/bin/sh\n[ $1 != nvlink ] && echo '{listing}'\n")
        tool.chmod(0o755)

    def enter(argv):
        return ["/usr/bin/env", f"PATH={programs}", argv[0], *argv[1:]]

    return LocalHost(name, "127.0.0.1", str(folder), enter, {"PATH": str(programs)})


@pytest.fixture
def keep(run):
    """
    A function that keeps the GPUs of a cluster of such hosts, each of which offers *gpus*.
    """

    def kept(*workers, gpus=1, watched=()):
        spec = ClusterSpec(workers=max(1, len(workers)), node=NodeSpec(gpus=gpus))
        hosts = (SimpleNamespace(name="master"), *workers)
        return keep_gpus(run, spec, SimpleNamespace(hosts=hosts, watched=watched))

    return kept


def test_each_worker_is_asked_through_its_own_door(keep, run, tmp_path):
    """
    One that does not have what it offers is named; what another cluster had is kept.
    """
    run.manifest({ENTRY: {"worker9": NONE}})
    said = keep(node(tmp_path, "worker1", LINE), node(tmp_path, "worker2"))
    found = run.manifest()[ENTRY]

    assert found["worker1"] == {"devices": [L4], "library": ""}
    assert found["worker2"]["devices"] == []
    assert found["worker9"] == NONE
    (only,) = said
    assert only.startswith("the GPUs of worker2 may not work: 1 offered, none found (")


def test_a_node_that_offers_more_than_it_has_is_named(keep, tmp_path):
    """
    Without words of the driver's tool there are none to tell.
    """
    assert keep(node(tmp_path, "worker1", LINE), gpus=2) == [
        "the GPUs of worker1 may not work: 2 offered, 1 found"
    ]


def test_this_machine_is_described_once(keep, run, monkeypatch, tmp_path):
    """
    Where all nodes are on it; what it lacks was said before the cluster was started.
    """
    monkeypatch.setattr(module, "here", node(tmp_path, "here", LINE).run)
    workers = [SimpleNamespace(name=name) for name in ("worker1", "worker2")]

    assert keep(*workers, gpus=2, watched=None) == []
    assert run.manifest()[ENTRY] == {"machine": {"devices": [L4], "library": ""}}


@pytest.mark.parametrize(("gpus", "workers"), [(0, 1), (1, 0)], ids=["none offered", "no doors"])
def test_nobody_is_asked(keep, run, gpus, workers):
    """
    Where nodes are to have none, or have no door.
    """
    assert keep(*[SimpleNamespace(name="worker1")] * workers, gpus=gpus) == []
    assert ENTRY not in run.manifest()
