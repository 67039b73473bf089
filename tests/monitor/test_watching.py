"""
Tests for `harness.monitor.watching`: which machines are sampled, and where the samples come to lie.
"""

import json
import os
import sys

from types import SimpleNamespace

import pytest

from harness.monitor import watching as module
from harness.monitor.watching import watching
from harness.providers.host import LocalHost
from tests.node_agent import node_agent
from tests.run.fakes import FakeProbe

BUSY = {
    "at_s": 1.0, "busy": 0.5, "steal": 0.5, "iowait": 0, "runnable": 1, "available_bytes": 2**40,
    "memory_pressure": None,
}  # fmt: skip
# What a machine tells once it has been asked.
NODE = """
import json, sys
print(json.dumps({"machine": sys.argv[1], "cores": 2}), flush=True)
kind = input()
print("failed of memory" if kind == "speed" and sys.argv[1] == "broken" else "load " + sys.argv[2])
if kind == "speed": print("speed 1000 0 10 5000000")
sys.stdout.flush()
sys.stdin.read()
"""


@pytest.fixture
def cluster(tmp_path):
    """
    A function that makes a cluster whose hosts lie on these machines, master first.
    """

    def make(*machines):
        def host(number, machine):
            argv = [sys.executable, "-c", NODE, machine, json.dumps(BUSY)]
            name = f"worker{number}" if number else "master"
            return LocalHost(name, "127.0.0.1", str(tmp_path), lambda _: argv, dict(os.environ))

        return SimpleNamespace(
            watched=tuple(host(n, m) for n, m in enumerate(machines)),
            host_path=lambda host, path: str(path),
            agent=lambda host, *arguments: node_agent(*arguments),
        )

    return make


@pytest.fixture
def folders(tmp_path):
    """
    A folder for the run, and one for the trial.
    """
    made = tmp_path / "scratch", tmp_path / "raw"
    for folder in made:
        folder.mkdir()
    return made


def watched(cluster, folders, trial=lambda watch: None):
    """
    What one trial leaves: names of files with how many bytes, marks, what was said and lacked.
    """
    scratch, raw = folders
    said, lacking = [], []
    with watching(cluster, scratch, said.append, lacking.append) as watch:
        with watch.during(raw):
            trial(watch)
        mark = watch.disturbed(raw)
    return {p.name: p.stat().st_size for p in raw.iterdir()}, mark, said, lacking


def more(watch):
    """
    A trial during which each machine tells something.
    """
    for machine in watch.machines:
        with machine.load.open("a") as load, machine.speed.open("a") as speed:
            load.write(json.dumps(BUSY) + "\n")
            speed.write("2000 0 10 5000000\n")


def test_a_file_for_each_machine(cluster, folders):
    """
    Named after its first node; a machine without tasks has no speed.
    """
    files, _, said, lacking = watched(cluster("a", "b", "c", "b"), folders, more)

    assert sorted(files) == [
        "machine-master.jsonl", "machine-worker1.jsonl", "machine-worker2.jsonl",
        "speed-worker1.txt", "speed-worker2.txt",
    ]  # fmt: skip
    assert (said, lacking) == ([], [])


def test_machines_are_described(cluster, folders):
    """
    By the names that their samples bear: which nodes are on each, and its cores.
    """
    with watching(cluster("a", "b", "a"), folders[0], print, print) as watch:
        told = watch.told

    assert told == {
        "master": {"nodes": ["master", "worker2"], "cores": 2},
        "worker1": {"nodes": ["worker1"], "cores": 2},
    }


def test_a_trial_has_what_came_during_it(cluster, folders):
    """
    Not what was told before it began.
    """
    files, _, _, _ = watched(cluster("a", "a"), folders, more)

    assert files["speed-master.txt"] == len("2000 0 10 5000000\n")


def test_marks_name_the_machine(cluster, folders):
    """
    By the rules that hold for this machine, with the cores of that one.
    """
    _, mark, _, _ = watched(cluster("a", "b"), folders, more)

    assert mark == (
        "master: steal 50.0% of the time, above 5%; worker1: steal 50.0% of the time, above 5%"
    )


def test_what_cannot_be_measured_is_told(cluster, folders):
    """
    With its nodes; the others are measured.
    """
    files, _, _, lacking = watched(cluster("a", "b", "broken", "broken"), folders)

    assert lacking == ["speed and load of worker2, worker3 are not measured: of memory"]
    assert "speed-worker1.txt" in files
    assert "speed-worker2.txt" not in files


def test_what_has_ended_is_started_again(cluster, folders):
    """
    Before the next trial, with a word about it.
    """
    scratch, raw = folders
    said = []
    with watching(cluster("a", "b"), scratch, said.append, said.append) as watch:
        _, worker = watch.machines
        worker._process.kill()
        worker._reader.join()
        with watch.during(raw):
            assert worker.failure == ""

    assert said == ["the watching of worker1 has ended (it has ended): starting it again"]


def test_nodes_without_doors_have_no_samples(cluster, folders):
    """
    What this machine does says nothing of them.
    """
    assert watched(cluster(), folders) == ({}, "", [], [])


def test_nodes_on_this_machine_are_sampled_from_here(folders, monkeypatch):
    """
    Outside of the nodes and their limits.
    """
    monkeypatch.setattr(module, "SpeedProbe", FakeProbe)
    files, _, _, _ = watched(SimpleNamespace(watched=None), folders)

    assert sorted(files) == ["machine.jsonl", "speed.txt"]
