"""
Every workload at its smallest size on a cluster of several workers, generators, and bad input.
"""

import hashlib
import shutil
import subprocess

import pytest

from ruamel.yaml import YAML

from harness.base.errors import JobError
from harness.base.records.trial import ClusterSpec, WorkloadSpec
from harness.clusters.hadoop_home.home import HadoopHome
from harness.clusters.local.cluster import LocalCluster
from harness.clusters.workloads import WORKLOADS
from harness.clusters.workloads.base import JOBS, JobCommand
from harness.core.run.jobs import JobRunner
from harness.core.store import Store
from tests.live.runs import command, settings
from tests.workloads.generators import printed

pytestmark = pytest.mark.live

MINUTE_S = 60.0
MIB = 2**20
# Smallest sizes of each workload, with arguments.
QUICK = [{"name": "pagerank", "iterations": 2}]
if shutil.which("g++"):  # else the jar has no library
    QUICK.append({"name": "gpu-kmeans", "device": "cpu", "iterations": 1})
LONG = [
    {"name": "sleep"},
    {"name": "sort", "hibench": "true"},
    {"name": "sort"},
    {"name": "wordcount"},
    {"name": "wordcount", "text": "random"},
    {"name": "wordcount", "hibench": "true"},
    {"name": "terasort"},
    {"name": "shuffle"},
    {"name": "dfsio"},
    {"name": "dfsio", "mode": "write"},
    {"name": "pagerank"},
    {"name": "pagerank", "hibench": "true"},
    {"name": "kmeans", "dimensions": 3},
    {"name": "sleep", "read_ms": 0.5, "map_ms": 0.25, "reduce_ms": 20, "maps": 3, "outputs": 3},
]


def experiment(folder, workloads):
    """
    A file that asks for these workloads, each at `tiny`; on three workers where they are many.
    """
    requested = {
        "schema": 1,
        "name": "tiny",
        "question": "Does every workload pass its check?",
        "cluster": {
            "provider": "local",
            "workers": 2 if workloads is QUICK else 3,
            "node": {"map_slots": 1, "reduce_slots": 1, "task_memory": "512 MiB"},
            "site": {"dfs.blocksize": "8 MiB"},
        },
        "workloads": [{"input": "tiny", **each} for each in workloads],
        "configuration": {"mapreduce.job.reduces": 2, "mapreduce.task.io.sort.mb": 16},
        "repeat": 1,
        "warmup": 0,
        "seed": 7,
        "trial_limit": "3 min",
    }
    file = folder / "tiny.yaml"
    with file.open("w") as out:
        YAML(typ="safe").dump(requested, out)
    return file


def outcomes(folder, workloads):
    """
    For each trial of a run of these workloads: its name and state, and whether it was as quick as
    it must be where nothing else disturbs the machine.
    """
    results, file = folder / "results", experiment(folder, workloads)
    argv = command("run", results, experiment=file)
    done = subprocess.run(argv, capture_output=True, text=True, env=settings(folder), check=False)
    assert done.returncode == 0, done.stderr
    records = Store(results).latest("tiny").trials().values()
    return [
        (
            r.trial.cell.workload.name,
            r.state,
            bool(r.disturbed) or r.finished_s - r.started_s < MINUTE_S,
        )
        for r in records
    ]


@pytest.mark.long
@pytest.mark.parametrize("workloads", [QUICK, LONG], ids=["quick", "long"])
def test_tiny_passes_within_a_minute(tmp_path, workloads):
    """
    The input is made, the job runs, its output is right, and all of it takes a minute at most.
    """
    expected = [(each["name"], "done", True) for each in workloads]

    assert sorted(outcomes(tmp_path, workloads)) == sorted(expected)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """
    A cluster of this module's own, with small blocks.
    """
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("c")
        patch.setenv("XDG_STATE_HOME", settings(folder)["XDG_STATE_HOME"])
        spec = ClusterSpec(workers=2, site={"dfs.blocksize": str(4 * MIB)})
        with LocalCluster("workloads", spec, HadoopHome.find()) as observed:
            yield observed


@pytest.fixture
def run(cluster, tmp_path):
    """
    Runs a command to its end.
    """
    runner = JobRunner(cluster, 180.0)
    number = iter(range(100))

    def ran(requested, **properties):
        log = tmp_path / f"{next(number)}.log"
        options = {name.replace("_", "."): str(value) for name, value in properties.items()}
        return runner.run(requested, options, log)

    return ran


def parts(cluster, folder):
    """
    Files of an output or input that hold data.
    """
    names = (name for name, _, _ in cluster.hdfs.list(folder) if name.startswith("part-"))
    return [(name, b"".join(cluster.hdfs.open(f"{folder}/{name}"))) for name in names]


@pytest.mark.long
@pytest.mark.parametrize("kind", ["zipf", "random"])
def test_bytes_do_not_depend_on_the_maps(cluster, run, kind):
    """
    Written by three maps or by nine, an input is as large as asked to the byte, its files are as
    planned, and its bytes are those that one process prints.
    """
    spec = WorkloadSpec(name="wordcount", input_bytes=9_000_001, seed=5, parameters={"text": kind})
    workload = WORKLOADS["wordcount"]

    for block in (4 * MIB, MIB):
        uri = f"/made/{kind}-{block}"
        requested = workload.generate(spec, block, uri)
        run(requested)
        observed = parts(cluster, uri)
        plan = workload.plan_input(spec, block)
        content, records, _, seed, _ = requested.arguments
        whole = printed(
            content, seed=seed, count=int(records), properties={"pages.bytes": 9_000_001}
        )
        assert [(n, len(data)) for n, data in observed] == [(f.name, f.bytes) for f in plan.files]
        assert (
            hashlib.sha256(b"".join(data for _, data in observed)).digest()
            == hashlib.sha256(whole).digest()
        )


@pytest.mark.long
def test_a_record_larger_than_the_sort_buffer(cluster, run):
    """
    Hadoop spills it alone, and the output is right.
    """
    spec = WorkloadSpec(name="shuffle", input_bytes=8 * MIB, seed=1, parameters={"record": 2 * MIB})
    workload = WORKLOADS["shuffle"]
    run(workload.generate(spec, 4 * MIB, "/made/large"))
    (job,) = workload.submit(spec, "/made/large", "/out/large")

    run(job, mapreduce_task_io_sort_mb=1, mapreduce_job_reduces=2)

    sample = workload.sample(spec, ((n, [data]) for n, data in parts(cluster, "/made/large")))
    outputs = ((n, [data]) for n, data in parts(cluster, "/out/large"))
    verdict = workload.verdict(spec, outputs, sample)
    assert verdict == ""


@pytest.mark.long
@pytest.mark.parametrize(
    ("job", "output"),
    [
        ("Sort", b""),
        ("Shuffle", b"0\t0\t0000000000000000\n"),
        ("Dfsio", b"part-m-00000\t00000000\t0\t"),
        ("Sleep", b""),
    ],
)
def test_an_empty_input_has_an_empty_output(cluster, run, job, output):
    """
    A file without a byte is read by a map that finds no record; nothing fails or hangs.
    """
    cluster.hdfs.put("/made/empty/part-m-00000", [b""])

    folder = f"/out/empty-{job}"
    main = f"mapreduce.harness.jobs.{job}"
    run(JobCommand(main, ("/made/empty", folder), properties={"dfsio.mode": "read"}, jar=JOBS))

    written = dict(parts(cluster, folder))
    written.pop("part-slept", None)
    assert b"".join(written.values()).startswith(output)
    assert bool(output) == any(written.values())


@pytest.mark.long
def test_half_a_record_is_refused(cluster, run):
    """
    A file that was cut short is named before its job is submitted.
    """
    cluster.hdfs.put("/made/cut/part-m-00000", [bytes(250)])
    job = JobCommand("mapreduce.harness.jobs.Shuffle", ("/made/cut", "/out/cut"), jar=JOBS)

    with pytest.raises(
        JobError, match="cut/part-m-00000 has 250 bytes, which is not a whole number of records"
    ):
        run(job, shuffle_record=200)


@pytest.mark.long
def test_what_a_task_said_is_the_reason(cluster, run):
    """
    A job that fails ends with the error of its first failed attempt.
    """
    cluster.hdfs.put("/made/shares/part-m-00000", [b"no share at all\n"])
    properties = {"dfsio.mode": "write", "mapreduce.map.maxattempts": "1"}
    paths = ("/made/shares", "/out/shares")
    job = JobCommand("mapreduce.harness.jobs.Dfsio", paths, properties=properties, jar=JOBS)

    with pytest.raises(JobError, match=r"attempt_\S+: .*NumberFormatException.*\"no\""):
        run(job)


@pytest.mark.parametrize(
    ("job", "options", "says"),
    [
        ("Sort", {"sort_form": "upside down"}, "sort.form is upside down"),
        ("Dfsio", {"dfsio_mode": "both"}, "dfsio.mode is both"),
    ],
)
@pytest.mark.long
def test_a_wrong_argument_is_refused_by_the_client(run, job, options, says):
    """
    Before anything is submitted.
    """
    with pytest.raises(JobError, match=says):
        run(JobCommand(f"mapreduce.harness.jobs.{job}", ("/a", "/b"), jar=JOBS), **options)
