"""The machines of a trial, from the samples that a real one left."""

import gzip
import json
import shutil

from pathlib import Path

import pytest

from harness.base.records.manifest import Manifest
from harness.base.records.trace import JobTrace
from harness.base.records.trial import Cell, ClusterSpec, Trial, TrialRecord, Versions, WorkloadSpec
from harness.core.evaluate.machines import sampled_machines
from harness.core.store import RawLogs
from harness.observe.parsing.ltrace import read_ltrace
from harness.observe.profiling.jobs import Machine
from harness.observe.profiling.task_times import process_cpu
from harness.observe.storage.opener import Opener

SAMPLES = Path(__file__).with_name("data") / "samples"
START_S, END_S = 1795956430.359, 1795956449.351


def manifest(**entries):
    """Manifest of a run on a machine with two cores."""
    given = {"run": "r", "created_s": 0.0, "experiment_id": "e", "experiment": {}}
    return Manifest(**given | {"machine": {"cores": 2}} | entries)


def record(workers=2):
    """A trial on so many workers."""
    cell = Cell(
        cluster=ClusterSpec(workers=workers), workload=WorkloadSpec(name="w", input_bytes=1)
    )
    return TrialRecord(
        trial=Trial(id="t", cell=cell, repetition=0), state="done", started_s=0.0, finished_s=1.0,
        versions=Versions(hadoop="3.5.0", java="17"), kernel="",
    )  # fmt: skip


def job(submit_s=START_S, finish_s=END_S):
    """A job of which only the ends matter."""
    return JobTrace("job_1", "w", "u", "SUCCEEDED", submit_s, submit_s, finish_s, 1, 1, ())


def sampled(folder, jobs, **entries):
    """What the samples in *folder* show of *jobs*."""
    raw = RawLogs(Opener(folder), folder)
    return sampled_machines(raw, manifest(**entries), record(), jobs)


def renamed(folder, **names):
    """A copy of the samples below *folder* under other names."""
    for old, new in names.items():
        name = {"machine": "machine.jsonl.gz", "speed": "speed.txt.gz"}[old]
        shutil.copy(SAMPLES / name, folder / new)
    return folder


def test_a_cluster_on_one_machine_has_used_its_processes_time():
    """
    17.5 s of the 38 that two cores had, of which 0.19 were the speed probe's: summed by hand.
    """
    machines, used_s = sampled(SAMPLES, [job()])

    assert machines == (Machine((), 2.0, 2),)
    assert used_s == (pytest.approx(17.317999, abs=1e-6),)


def test_each_job_has_its_own_time():
    """
    Two halves of a job have used what it has; one that nobody sampled has used nobody knows what.
    """
    middle_s = 1795956440.0
    jobs = [job(), job(START_S, middle_s), job(middle_s, END_S), job(0.0, 9.0)]

    _, (whole, first, second, unknown) = sampled(SAMPLES, jobs)

    # A sample of the probe counts where its middle lies.
    assert first + second == pytest.approx(whole, abs=0.02)
    assert unknown is None


def test_machines_of_nodes_have_their_names(tmp_path):
    """
    And their own cores; one that has only the master runs no tasks.
    """
    folder = renamed(tmp_path, machine="machine-worker1.jsonl.gz", speed="speed-worker1.txt.gz")
    renamed(folder, machine="machine-master.jsonl.gz")
    machines = {
        "worker1": {"nodes": ("worker1", "worker2"), "cores": 4},
        "master": {"nodes": ("master",), "cores": 2},
    }

    found, (used_s,) = sampled(folder, [job()], machines=machines)

    assert found == (Machine(("worker1", "worker2"), 4.0, 2),)
    assert used_s == pytest.approx(3 * 17.505982 - 0.187983, abs=1e-5)


def test_processes_that_are_seen_from_elsewhere_count_too(tmp_path):
    """
    As those of the harness, by the cores of the machine that it runs on.
    """
    folder = renamed(tmp_path, machine="machine-worker1.jsonl.gz", speed="speed-worker1.txt.gz")
    renamed(folder, machine="processes-worker2.jsonl.gz")
    renamed(folder, machine="processes-harness.jsonl.gz")
    machines = {"worker1": {"nodes": ("worker1", "worker2"), "cores": 4}}

    _, (used_s,) = sampled(folder, [job()], machines=machines)

    assert used_s == pytest.approx(5 * 17.505982 - 0.187983, abs=1e-5)


def test_a_trial_without_samples_shows_nothing(tmp_path):
    """
    Nor does one whose machine nobody has described.
    """
    assert sampled(tmp_path, [job()]) == ((), (None,))
    assert sampled(SAMPLES, [job()], machine={}) == ((), (None,))


def test_samples_of_whom_nobody_knows_the_processes_show_no_time(tmp_path):
    """
    Samples of older runs do not say which share was the cluster's.
    """
    with gzip.open(SAMPLES / "machine.jsonl.gz") as lines:
        older = [{**json.loads(line), "own": None} for line in lines]
    with gzip.open(tmp_path / "machine.jsonl.gz", "wt") as file:
        file.writelines(f"{json.dumps(sample)}\n" for sample in older)

    assert sampled(tmp_path, [job()]).cluster_cpu_s == (None,)


def test_a_real_recording_has_the_processor_time_of_its_process():
    """
    What Linux had counted of a map: 0.39 s until main, 3.05 s in all, 0.61 s in no thread of its.
    """
    with gzip.open(SAMPLES / "ltrace.spans.gz") as file:
        recording = read_ltrace([file.read()], "ltrace.spans")
    process = process_cpu(recording)

    assert (recording.cpu_at_main_s, recording.cpu_at_end_s) == (0.39, 3.05)
    assert (process.boot_s, process.total_s) == (0.39, 3.05)
    assert process.helpers_s == pytest.approx(0.6096, abs=1e-4)
