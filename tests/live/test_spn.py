"""
SPN-GC on jobs whose maps compute on a device, from an experiment file to a report.

The device is the processor, so that it runs everywhere.
"""

import shutil

import pytest

from harness.core.store import Store
from tests.live.runs import clusters, command, output, settings

pytestmark = [
    pytest.mark.live,
    pytest.mark.long,
    pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++"),
]

EXPERIMENT = """\
schema: 1
name: device
question: Is SPN-GC judged on the jobs that it is about, and on no others?
cluster:
  workers: 2
  site: {dfs.blocksize: 1 MiB}
workloads:
  - {name: gpu-kmeans, input: [1 MiB, 2 MiB], device: cpu, iterations: 1}
  - {name: gpu-sbs, input: [1036800 B, 2073600 B], device: cpu}
  - {name: wordcount, input: [1 MiB, 2 MiB]}
configuration:
  mapreduce.job.reduces: 1
  mapreduce.job.running.map.limit: 2
  mapreduce.job.reduce.slowstart.completedmaps: 1.0
repeat: 1
warmup: 0
trial_limit: 4 min
predict:
  models: [spn-gc, spn-gc-mr2]
  profile_on: {input: [1 MiB, 1036800 B]}
"""


def test_spn_gc_is_scored_on_jobs_of_a_device(tmp_path):
    """
    Both rule sets predict and are scored where maps compute on a device, and name what they lack
    elsewhere; trials and report say that the device was the processor.
    """
    environment, results = settings(tmp_path), tmp_path / "results"
    file = tmp_path / "device.yaml"
    file.write_text(EXPERIMENT)

    output(environment, *command("all", results, experiment=file))

    run = Store(results).latest("device")
    records = run.trials().values()
    cells = {r.trial.cell.id: r.trial.cell.workload.name for r in records}
    answers = [p for own in run.read_predictions().values() for p in own]
    scored = {(s.model, cells[s.cell]) for s in run.read_scores().scores if s.quantity == "job_s"}
    lacking = {p.model: p.not_applicable for p in answers if p.job_s is None}
    devices = {(r.trial.cell.workload.name, r.device) for r in records}
    assert {r.state for r in records} == {"done"}
    assert devices == {("gpu-kmeans", "cpu"), ("gpu-sbs", "cpu"), ("wordcount", "")}
    assert scored == {(m, w) for m in ("spn-gc", "spn-gc-mr2") for w in ("gpu-kmeans", "gpu-sbs")}
    assert lacking.keys() == {"spn-gc", "spn-gc-mr2"}
    assert all({"map_gpu_s", "gpu_h2d_bps"} <= set(names) for names in lacking.values())
    assert "nothing in them was measured on a GPU" in (run.path / "report.md").read_text()
    assert clusters(environment) == []
