"""
The GPU workloads on a real cluster, computed by processors: the same jobs, copies and checks.
"""

import shutil

import pytest

from harness.base.records.trace import DEVICE_COUNTER
from harness.core.store import Store
from tests.live.runs import command, output, settings

pytestmark = [
    pytest.mark.live,
    pytest.mark.long,
    pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++"),
]

EXPERIMENT = """
schema: 1
name: gpu
question: Does a GPU workload run on processors?
cluster:
  provider: local
  workers: 2
  node: {{map_slots: 1, reduce_slots: 1, task_memory: 512 MiB}}
  site: {{dfs.blocksize: 4 MiB}}
workloads:
  - {{name: {name}, input: [{sizes}], device: cpu{more}}}
configuration:
  mapreduce.job.reduces: 2
  mapreduce.job.running.map.limit: 2
  mapreduce.job.reduce.slowstart.completedmaps: 1.0
repeat: 1
warmup: 0
trial_limit: 4 min
predict: {{models: [ernest], profile_on: {{input: [{first}]}}}}
"""


def check(tmp_path, name, sizes, more=""):
    """
    Run a trial for each size: all are done, and every map says that a processor did the work.
    """
    file = tmp_path / "gpu.yaml"
    texts = [f"{size} B" for size in sizes]
    sizes_text = ", ".join(texts)
    file.write_text(EXPERIMENT.format(name=name, sizes=sizes_text, first=texts[0], more=more))
    output(settings(tmp_path), *command("run", tmp_path / "results", experiment=file))
    run = Store(tmp_path / "results").latest("gpu")
    trials = list(run.trials().values())

    assert [(t.state, t.reason) for t in trials] == [("done", "")] * len(sizes)
    for trace in (each for t in trials for each in run.read_trace(t.trial.id)):
        assert trace.counters[f"{DEVICE_COUNTER}.DEVICE_CPU"] == trace.num_maps
        assert f"{DEVICE_COUNTER}.DEVICE_CUDA" not in trace.counters
    return trials


def test_kmeans_runs_a_job_for_each_iteration(tmp_path):
    """
    At a tiny size: its trials have several jobs, and centres that the proof confirms.
    """
    trials = check(tmp_path, "gpu-kmeans", [240_000, 480_000], ", iterations: 2")

    assert {len(t.job_ids) for t in trials} == {2}


@pytest.mark.parametrize("name", ["gpu-sbs", "gpu-matmul"])
def test_one_job(tmp_path, name):
    """
    At the size called tiny, and half of it.
    """
    sizes = {"gpu-sbs": [10_368_000, 20_736_000], "gpu-matmul": [8 << 20, 16 << 20]}[name]

    assert {len(t.job_ids) for t in check(tmp_path, name, sizes)} == {1}
