"""
The tracer on jobs of every interface, through its agent, and in a task that runs out of memory.
"""

import random

import pytest

from harness.cli.console.talk import Progress
from harness.clusters.hadoop_home.home import TRACER, HadoopHome
from harness.clusters.workloads.base import EXAMPLES, JobCommand
from harness.tracer.checks import checks
from harness.tracer.selftest import JOBS_JAR, SLEEP, SMALL, JobBench, cluster_for
from tests.live.runs import settings

pytestmark = [pytest.mark.live, pytest.mark.long]

WORK = "/harness/selftest"
SPILLING = {"mapreduce.task.io.sort.mb": "1", "mapreduce.job.reduces": "1"}
TERAGEN = JobCommand(EXAMPLES, ("3000", f"{WORK}/rows"), program="teragen")
OLD_COPY = JobCommand("mapreduce.harness.jobs.OldCopy", (f"{WORK}/text", f"{WORK}/copy"))
WORD_COUNT = JobCommand(EXAMPLES, (f"{WORK}/text", f"{WORK}/counts"), program="wordcount")
HOARDED = 2


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """
    A cluster of this module's own.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", settings(tmp_path_factory.mktemp("c"))["XDG_STATE_HOME"])
        with cluster_for(SMALL, HadoopHome.find(), Progress("jobs")) as observed:
            yield observed


@pytest.fixture
def bench(cluster, tmp_path):
    """
    Runs jobs on it; their text is there.
    """
    words = random.Random(3).choices(["to", "be", "or", "not"], k=200_000)
    lines = "\n".join(" ".join(words[at : at + 10]) for at in range(0, len(words), 10))
    cluster.hdfs.put(f"{WORK}/text/words", [lines.encode()])
    return JobBench(cluster, tmp_path, Progress("jobs"))


def wrong(job):
    """
    Checks of the self-test that fail.
    """
    return [check for check in checks(job) if not check.ok]


@pytest.mark.parametrize(
    ("name", "command", "properties"),
    [
        ("new interface, no reduces", TERAGEN, {"mapreduce.job.maps": "1"}),
        ("old interface", OLD_COPY, SPILLING),
        ("old interface, no reduces", OLD_COPY, {"mapreduce.job.reduces": "0"}),
    ],
)
def test_every_interface_is_traced(bench, name, command, properties):
    """
    Readers, collectors, writers and loops of both interfaces have spans, and counts as Hadoop's.
    """
    assert wrong(bench.run_traced(name, command, properties, [JOBS_JAR])) == []


def test_an_agent_records_the_same(bench):
    """
    A job on stock jars, with the agent in its tasks' options, passes all checks of a traced one.
    """
    site = bench.cluster.site_properties()
    agent = f"-javaagent:{TRACER} -Dltrace=spans -Dltrace.task=@taskid@ -Dltrace.dir=<LOG_DIR>"
    options = {
        name: f"{site[name]} {agent}"
        for name in ("mapreduce.map.java.opts", "mapreduce.reduce.java.opts")
    }
    job = bench.run("agent", WORD_COUNT, {**SPILLING, **options})

    assert (len(job.tasks), wrong(job)) == (2, [])


def test_out_of_memory(bench):
    """
    A map that runs out of memory leaves a recording up to there; the job goes on as without.
    """
    properties = {"sleep.records": "4", "sleep.hoard": str(HOARDED), "mapreduce.job.reduces": "1"}
    job = bench.run_traced("hoard", JobCommand(SLEEP, (f"{WORK}/sleep",)), properties, [JOBS_JAR])
    (failed,) = [a for a in job.trace.attempts if a.state == "failed"]
    task = job.tasks[failed.attempt_id]

    assert job.trace.state == "SUCCEEDED"
    assert wrong(job) == []
    assert (task.loop.records, len(task.named("map_loop")), task.lost) == (HOARDED + 1, 1, 0)
