"""
The tracer's self-test: small jobs on a real cluster, whose recordings are compared with the truth.

Five jobs: a word count whose combiner runs in several spills, a sort, one that sleeps for known
times in each of its phases and loses its first attempt to SIGKILL on the way, one with a record
that the sort buffer cannot hold, and one that is not traced though its code reports spans.
"""

from __future__ import annotations

import os
import random
import tempfile

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path

from harness.base.documents.wording import count
from harness.base.errors import MachineError
from harness.base.hadoop.site import SPANS_FILE, block_bytes
from harness.base.installed import setup_fix
from harness.base.records.trial import ClusterSpec, Tracing, WorkloadSpec
from harness.base.units import MIB
from harness.clusters.hadoop_home.home import SOURCE, HadoopHome
from harness.clusters.local.cluster import LocalCluster
from harness.clusters.workloads import WORKLOADS
from harness.clusters.workloads.base import EXAMPLES, JobCommand
from harness.clusters.workloads.terasort import ROW_BYTES
from harness.core.run import Console
from harness.core.run.jobs import Inputs, JobRunner, fetch_history
from harness.observe.parsing.ltrace import read_ltrace
from harness.observe.parsing.task_log import read_task_log
from harness.tracer import checks
from harness.tracer.checks import Check, Observed

JOBS_JAR = SOURCE.parent / "jobs" / "target" / "harness-jobs.jar"
SLEEP = "mapreduce.harness.jobs.Sleep"
SMALL = ClusterSpec(workers=2, site={"dfs.blocksize": "2 MiB"})
_LIMIT_S = 600.0
_HISTORY_S = 30.0
_CHUNK = 1 << 16
_OUTPUT = "/harness/selftest"

# Several spills of every map, which take their records from a buffer of 1 MiB.
_SPILLING = {"mapreduce.task.io.sort.mb": "1", "mapreduce.job.reduces": "2"}
_ROWS = 20_000
# The sleeps are long beside what a cold JVM takes for all else in the same phase: some 50 ms.
_MAPS = 2
_RECORDS = 60
_KILLED = 30
_SLEEPS = {
    "sleep.maps": str(_MAPS),
    "sleep.records": str(_RECORDS),
    "sleep.read": "30",
    "sleep.map": "80",
    "sleep.work": "500",
    "sleep.outputs": "1",
    "sleep.bytes": "25000",
    "sleep.keys": "16",
    "sleep.combine": "50",
    "sleep.reduce": "120",
    "sleep.kill": str(_KILLED),
    "mapreduce.task.io.sort.mb": "1",
    "mapreduce.job.reduces": "1",
}
# A record that the buffer cannot hold, between others that it can.
_LARGE = {
    "sleep.records": "3",
    "sleep.outputs": "20",
    "sleep.bytes": "25000",
    "sleep.large": "2000000",
    "mapreduce.task.io.sort.mb": "1",
    "mapreduce.job.reduces": "1",
}
_SLEEP_JOB = JobCommand(SLEEP, (f"{_OUTPUT}/sleep",))
_JOBS = 5
_Jars = Sequence[Path]
_UNTRACED = {"sleep.records": "1", "sleep.work": "1", "mapreduce.job.reduces": "0"}


@contextmanager
def cluster_for(spec: ClusterSpec, home: HadoopHome, console: Console) -> Iterator[LocalCluster]:
    """Give the cluster that is up, but none of a running experiment; else one of *spec*."""
    for cluster_name in LocalCluster.names():
        if cluster_name.startswith(("run-", "selftest-")):
            continue
        cluster = LocalCluster.attach(cluster_name)
        if cluster.is_up():
            console.say(f"cluster: {cluster_name}, which is up")
            yield cluster
            return
    console.say(f"cluster: starting {count(spec.workers, 'worker')}")
    with LocalCluster(f"selftest-{os.getpid()}", spec, home) as cluster:
        yield cluster


def require_traced(home: HadoopHome) -> None:
    """Raise `MachineError` where tasks cannot be traced, or our own jobs are not built."""
    missing = {
        "Hadoop's classes with the tracer's hooks are": home.trace_path_jar is None,
        "the class-data archive of traced tasks is": home.tasks_archive is None,
        "the jar of our own jobs is": not JOBS_JAR.is_file(),
    }
    for what, is_missing in missing.items():
        if is_missing:
            raise MachineError(f"{what} missing", where=str(home.path), fix=setup_fix())


def run_selftest(cluster: LocalCluster, console: Console) -> list[Check]:
    """Run the jobs on *cluster* and check what was recorded of them."""
    require_traced(cluster.home)
    results: list[Check] = []
    with tempfile.TemporaryDirectory() as folder:
        console.step(0, _JOBS, None, "")
        job_checks = _checks_of_jobs(JobBench(cluster, Path(folder), console))
        for number, checks_of_job in enumerate(job_checks, start=1):
            results += checks_of_job
            console.step(number, _JOBS, None, "")
    return results


def _checks_of_jobs(bench: JobBench) -> Iterator[Iterable[Check]]:
    """Run one job after the other, with the checks of each."""
    workload_spec = WorkloadSpec(name="wordcount", input_bytes=4 * MIB)
    command = bench.command(workload_spec)
    yield checks.checks(bench.run_traced(workload_spec.name, command, _SPILLING))

    # Any bytes are rows: a job that makes them would take ten seconds.
    random_rows = random.Random(5)  # noqa: S311 - the same rows each time
    for number in range(2):
        rows = random_rows.randbytes(_ROWS * ROW_BYTES)
        bench.cluster.hdfs.put(f"{_OUTPUT}/rows/{number}", [rows])
    sort = JobCommand(EXAMPLES, (f"{_OUTPUT}/rows", f"{_OUTPUT}/sorted"), program="terasort")
    yield checks.checks(bench.run_traced("terasort", sort, _SPILLING))

    slept = bench.run_traced("sleep", _SLEEP_JOB, _SLEEPS, [JOBS_JAR])
    yield [
        *checks.checks(slept),
        *checks.check_sleeps(slept),
        checks.check_killed(slept, _KILLED + 1),
        checks.check_output(slept, _MAPS * _RECORDS),
    ]

    large = bench.run_traced("large record", _SLEEP_JOB, _LARGE, [JOBS_JAR])
    yield [*checks.checks(large), checks.check_large(large)]

    yield [checks.check_untraced(bench.run("untraced", _SLEEP_JOB, _UNTRACED, [JOBS_JAR]))]


@dataclass
class JobBench:
    """Runs jobs on *cluster* and gathers, in *folder*, what they leave."""

    cluster: LocalCluster
    folder: Path
    console: Console
    jobs: int = field(init=False, default=0)

    def run_traced(
        self, name: str, command: JobCommand, properties: Mapping[str, str], jars: _Jars = ()
    ) -> Observed:
        """Run *command* with spans recorded."""
        tracing = self.cluster.trace_properties(Tracing(), properties)
        return self.run(name, command, {**properties, **tracing}, jars)

    def command(self, workload_spec: WorkloadSpec) -> JobCommand:
        """Return the job of *workload_spec*, whose input is ready."""
        workload = WORKLOADS[workload_spec.name]
        ready = self.inputs.ensure(workload, workload_spec, block_bytes(self.cluster.spec))
        self.cluster.hdfs.delete(f"{_OUTPUT}/{workload_spec.name}")
        (command,) = workload.submit(workload_spec, ready.uri, f"{_OUTPUT}/{workload_spec.name}")
        return command

    @cached_property
    def inputs(self) -> Inputs:
        """Inputs on the cluster, made when they are first wanted."""
        return Inputs(JobRunner(self.cluster, _LIMIT_S), self.folder, self.console.say)

    def run(
        self, name: str, command: JobCommand, properties: Mapping[str, str], jars: _Jars = ()
    ) -> Observed:
        """Run *command* to its end, its client with *jars*, and read what it left."""
        self.jobs += 1
        folder = self.folder / f"{self.jobs}-{name}"
        folder.mkdir()
        runner = JobRunner(self.cluster, _LIMIT_S, jars=jars)
        (job_id,) = runner.run(command, properties, folder / "client.log")
        trace = fetch_history(self.cluster, job_id, folder, 0, _HISTORY_S)
        self.cluster.await_idle(timeout_s=60.0)
        application = job_id.replace("job_", "application_", 1)
        self.cluster.container_logs(application, folder / "containers")
        self.cluster.hdfs.delete(_OUTPUT)
        recordings = {}
        task_logs = {}
        for path in sorted(folder.rglob(SPANS_FILE)):
            with path.open("rb") as file:
                task = read_ltrace(iter(partial(file.read, _CHUNK), b""), str(path))
                recordings[task.attempt_id] = task
        attempts = {attempt.container_id: attempt.attempt_id for attempt in trace.attempts}
        for path in sorted(folder.rglob("syslog")):
            if attempt := attempts.get(path.parent.name):
                with path.open("rb") as lines:
                    task_logs[attempt] = read_task_log(lines, str(path))
        return Observed(name, trace, recordings, task_logs)
