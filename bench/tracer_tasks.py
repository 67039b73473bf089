"""
What tracing costs: tasks with and without it, mixed within the same jobs.

Each task of a job reads its JVM options from a file of its own (``@FOLDER/@taskid@``), so one job
runs stock tasks, tasks that record spans and tasks that record units, drawn by chance, and whatever
slows the machine slows all of them alike.  Mode "instrumented" has the classes of traced tasks with
their recorder off: what it costs comes of bigger methods and another class-data archive.

What slows a core slows the task on it, by tens of percent and for seconds.  So each node's tasks
are tied to one core, the daemons to another, and a task is corrected by the probe of its own core.
"""

from __future__ import annotations

import fcntl
import json
import os
import random
import time

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NamedTuple

from tracer_effects import (
    MODES,
    STOCK,
    WORKLOAD_NAMES,
    Effect,
    Sample,
    effects,
    least_known,
)

from harness.base.errors import JobError
from harness.base.hadoop import site
from harness.base.hadoop.daemons import IN_PLACE, container_options
from harness.base.hadoop.site import PATH_JAR
from harness.base.records.trace import TASK_COUNTER, SpeedSample, TaskAttempt
from harness.base.records.trial import ClusterSpec, NodeSpec, WorkloadSpec
from harness.base.units import MIB
from harness.clusters.hadoop_home.home import HadoopHome, instrumented_digest
from harness.clusters.local.cluster import LocalCluster
from harness.clusters.monitor.machine import machine_facts, mean_rate
from harness.clusters.monitor.probe import SpeedProbe
from harness.clusters.state import clusters_folder
from harness.clusters.workloads import WORKLOADS
from harness.clusters.workloads.base import JobCommand
from harness.core.run import Console
from harness.observe.parsing.lines import read_speed
from harness.tracer.checks import Observed
from harness.tracer.selftest import JobBench, require_traced

# Maps of some seconds each: TeraSort's of a whole block of Hadoop's default size.
MAPS = {"wordcount": 36, "terasort": 18}
MAP_BYTES = {"wordcount": 10 * MIB, "terasort": 128 * MIB}
# A reduce of WordCount has next to nothing to do: it would measure the start of a JVM.
REDUCES = {"wordcount": 1, "terasort": 6}
MIXED_REDUCES = ("terasort",)
# A node is a core that runs one task at a time; more of them would share what cores have in common.
SPEC = ClusterSpec(
    workers=min(2, max(1, len(os.sched_getaffinity(0)) - 1)),
    node=NodeSpec(map_slots=1, reduce_slots=1),
    site={"dfs.blocksize": "128 MiB"},
)
_TASKS_OF = "nodemanager on "
_OUTPUT = "/harness/selftest/mixed"
_ATTEMPTS = 4
_LEAST_JOBS = 2
_JOB_PATH = "job.jar/job.jar:job.jar/classes/:job.jar/lib/*:./*:."
_CPU, _GC = f"{TASK_COUNTER}.CPU_MILLISECONDS", f"{TASK_COUNTER}.GC_TIME_MILLIS"


class Drawn(NamedTuple):
    """Modes of a job's tasks, by their number."""

    map: Sequence[str]
    reduce: Sequence[str]


def measure(
    cluster: LocalCluster,
    folder: Path,
    minutes: float,
    console: Console,
    modes: Sequence[str] = MODES,
) -> tuple[list[Effect], Path]:
    """
    Run jobs that mix *modes* on *cluster* for about *minutes*, two at least; what is known now.

    What earlier calls measured of the same tracer, Java and machine counts, too; the file in which
    it is kept is given back.
    """
    require_traced(cluster.home)
    file, key = overhead_file(), _key(cluster.home)
    samples = load(file, key)
    probe_log = folder / "speed.txt"
    bench = _Bench(cluster, folder, console)
    with SpeedProbe(log=probe_log), tied(cluster.daemon_pids()) as places:
        for job, drawn in _jobs(bench, minutes, samples, modes):
            new = _samples(job, drawn, _by_host(_read_probe(probe_log), places))
            samples[:] = _add(file, key, new)
    return effects(samples), file


def overhead_file() -> Path:
    """Path of the file that holds what was measured last on this machine."""
    return clusters_folder().parent / "tracer-overhead.json"


def known(home: HadoopHome) -> list[Sample]:
    """What was measured so far on this machine of the tracer and the Java of *home*."""
    return load(overhead_file(), _key(home))


def load(file: Path, key: Mapping[str, Any]) -> list[Sample]:
    """Samples in *file*, none where they were taken of something else than *key* says."""
    try:
        document = json.loads(file.read_text())
        if document["of"] == key:
            return [Sample(**each) for each in document["samples"]]
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return []


def _add(file: Path, key: Mapping[str, Any], new: Sequence[Sample]) -> list[Sample]:
    """Put *new* samples beside those in *file*, where another process may add some, too."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        samples = [*load(file, key), *new]
        document = {
            "schema_version": 1,
            "of": key,
            "measured_s": round(time.time()),
            "effects": [asdict(e) for e in effects(samples)],
            "samples": [asdict(s) for s in samples],
        }
        part = file.with_suffix(".part")
        part.write_text(json.dumps(document))
        part.replace(file)
    return samples


def _key(home: HadoopHome) -> dict[str, Any]:
    facts = machine_facts()
    return {
        "tracer": instrumented_digest(home),
        "java": home.java.version,
        "machine": {k: facts.get(k) for k in ("cpu", "cores", "kernel")},
        "map_bytes": MAP_BYTES,
        "cores": "one for each node",
        "options": " ".join(IN_PLACE),
    }


# cores


@contextmanager
def tied(daemons: Mapping[str, int]) -> Iterator[dict[str, int]]:
    """
    Tie each NodeManager of *daemons* (process ids by name) to a core, all others to the first.

    A task runs where the NodeManager that starts it runs.  Gives the place of each host's core
    among those that this process may use, which is the number of its probe; in the end all
    daemons may use all of them again.
    """
    cores = sorted(os.sched_getaffinity(0))
    own = range(1, len(cores)) if len(cores) > 1 else range(1)
    nodes = sorted(name for name in daemons if name.startswith(_TASKS_OF))
    places = {name: own[k % len(own)] for k, name in enumerate(nodes)}
    try:
        for name, pid in daemons.items():
            _pin(pid, {cores[places.get(name, 0)]})
        yield {name.removeprefix(_TASKS_OF): place for name, place in places.items()}
    finally:
        for pid in daemons.values():
            _pin(pid, set(cores))


def _pin(pid: int, cores: set[int]) -> None:
    """Tie all threads of a process, and with them all that it starts from now on."""
    with suppress(FileNotFoundError):  # it has ended
        for thread in Path(f"/proc/{pid}/task").iterdir():
            with suppress(ProcessLookupError):
                os.sched_setaffinity(int(thread.name), cores)


def _by_host(
    probed: Sequence[SpeedSample], places: Mapping[str, int]
) -> dict[str, list[SpeedSample]]:
    """Samples of the probe on each host's core."""
    return {host: [s for s in probed if s.thread == place] for host, place in places.items()}


# jobs


class _Bench(JobBench):
    """Jobs whose maps have a file each, whatever the blocks of the cluster."""

    def command(self, spec: WorkloadSpec) -> JobCommand:
        """Return the job of *spec*, whose input lies ready."""
        workload = WORKLOADS[spec.name]
        ready = self.inputs.ensure(workload, spec, MAP_BYTES[spec.name])
        self.cluster.hdfs.delete(_OUTPUT)
        (command,) = workload.submit(spec, ready.uri, _OUTPUT)
        return command


def _jobs(
    bench: JobBench, minutes: float, samples: Sequence[Sample], modes: Sequence[str]
) -> Iterable[tuple[Observed, Drawn]]:
    """Run jobs until the time is over; give each with the modes of its tasks."""
    started, longest, done = time.monotonic(), 0.0, 0
    chance = random.Random(time.time_ns())
    _warm_up(bench)
    while done < _LEAST_JOBS or 60 * minutes - (time.monotonic() - started) > longest:
        job_started, name = time.monotonic(), least_known(effects(samples))
        drawn = _draw(chance, name, modes)
        yield _mixed(bench, name, drawn), drawn
        done += 1
        longest = max(longest, time.monotonic() - job_started)
        left_s = max(60 * minutes - (time.monotonic() - started), 0.0)
        bench.console.say(f"overhead: {done} jobs, {left_s / 60:.0f} min left")


def _warm_up(bench: JobBench) -> None:
    """Make the inputs; then a job whose number tells those that follow."""
    for name in WORKLOAD_NAMES:
        bench.command(_spec(name))
    bench.run_workload(WorkloadSpec(name="wordcount", input_bytes=MIB), {})


def _spec(name: str) -> WorkloadSpec:
    return WorkloadSpec(name=name, input_bytes=MAPS[name] * MAP_BYTES[name])


def _next_job(job: str) -> str:
    """
    Give the id that the next job of the cluster will have.

    >>> _next_job("job_1700000000000_0009")
    'job_1700000000000_0010'
    """
    head, _, number = job.rpartition("_")
    return f"{head}_{int(number) + 1:04d}"


def _mixed(bench: JobBench, name: str, drawn: Drawn) -> Observed:
    """Run one job whose tasks have options of their own."""
    cluster, command = bench.cluster, bench.command(_spec(name))
    options = cluster.folder / "options"
    options.mkdir(exist_ok=True)
    _write_options(cluster, options, _next_job(bench.last_job), drawn)
    own = f"{_common(cluster)} @{options}/@taskid@"
    properties = {
        "mapreduce.map.java.opts": own,
        "mapreduce.job.reduces": str(REDUCES[name]),
        "mapreduce.job.reduce.slowstart.completedmaps": "1.0",
        "mapreduce.input.fileinputformat.split.minsize": str(MAP_BYTES[name]),
    }
    if drawn.reduce:
        properties["mapreduce.reduce.java.opts"] = own
    try:
        return bench.run(name, command, properties)
    finally:
        for file in options.iterdir():
            file.unlink()


def _write_options(cluster: LocalCluster, folder: Path, job: str, drawn: Drawn) -> None:
    """Write the argument file of every attempt that *job* may run."""
    for kind, modes in (("m", drawn.map), ("r", drawn.reduce)):
        for number, mode in enumerate(modes):
            for attempt in range(_ATTEMPTS):
                task = f"{job.replace('job', 'attempt', 1)}_{kind}_{number:06d}_{attempt}"
                (folder / task).write_text(_options(cluster, mode))


def _draw(chance: random.Random, name: str, modes: Sequence[str]) -> Drawn:
    """Draw modes for the tasks of a job of workload *name*."""
    reduces = REDUCES[name] if name in MIXED_REDUCES else 0
    return Drawn(_drawn(chance, MAPS[name], modes), _drawn(chance, reduces, modes))


def _drawn(chance: random.Random, count: int, modes: Sequence[str]) -> list[str]:
    """Modes of *count* tasks: each equally often among neighbours."""
    drawn: list[str] = []
    while len(drawn) < count:
        drawn += chance.sample(modes, len(modes))
    return drawn[:count]


def _common(cluster: LocalCluster) -> str:
    """Options of all tasks: those that YARN has to complete, and the memory."""
    layout = replace(cluster.layout, archive=None)
    memory = site.container_mb(cluster.spec.node.task_memory_bytes)
    recorder = "-Dltrace.task=@taskid@ -Dltrace.unit=5 -Dltrace.dir=<LOG_DIR>"
    return f"{container_options(layout, memory)} {recorder}"


def _options(cluster: LocalCluster, mode: str) -> str:
    """Argument file of a task: its classes, their archive, and whether the recorder is on."""
    home, layout = cluster.home, cluster.layout
    stock = mode == STOCK
    archive, jar = (home.archive, "path.jar") if stock else (home.tasks_archive, PATH_JAR)
    # No shell reads this file: folders are written out, and one node's configuration serves all.
    path = f"{home.path}/{jar}:{layout.conf(layout.workers[0])}:{_JOB_PATH}"
    lines = [
        f"-XX:SharedArchiveFile={archive}",
        *IN_PLACE,
        "-Xlog:cds=off",
        "-Xlog:cds+dynamic=off",
        "-cp",
        path,
    ]
    recorded = "off" if mode == "instrumented" else mode
    return "\n".join([*lines, f"-Dltrace={recorded}", ""])


# samples


_Probed = Mapping[str, Sequence[SpeedSample]]


def _samples(job: Observed, drawn: Drawn, probed: _Probed) -> list[Sample]:
    """Give what each task of a job whose modes were *drawn* has cost."""
    maps = [_sample(job, a, drawn.map[_number(a)], probed) for a in job.trace.succeeded("map")]
    if not drawn.reduce:
        return maps
    reduces = job.trace.succeeded("reduce")
    return [*maps, *(_sample(job, a, drawn.reduce[_number(a)], probed) for a in reduces)]


def _number(attempt: TaskAttempt) -> int:
    return int(attempt.task_id.rpartition("_")[2])


def _sample(job: Observed, attempt: TaskAttempt, mode: str, probed: _Probed) -> Sample:
    task, log = job.tasks.get(attempt.attempt_id), job.logs.get(attempt.attempt_id)
    if (task is None) != (mode in (STOCK, "instrumented")):
        raise JobError(f"{attempt.attempt_id} did not run the classes of mode {mode}")
    work_start_s = (log.split_s if attempt.kind == "map" else log.shuffle_s) if log else None
    return Sample(
        workload=job.name,
        job=job.trace.job_id,
        mode=mode,
        start_s=attempt.start_s,
        cpu_s=attempt.counters[_CPU] / 1e3,
        start_up_s=work_start_s - attempt.start_s if work_start_s else None,
        rate=mean_rate(probed.get(attempt.host, ()), attempt.start_s, attempt.finish_s),
        records=task.loop.records if task else 0,
        outputs=task.loop.outputs if task else 0,
        spans=len(task.spans) if task else 0,
        kind=attempt.kind,
        wall_s=attempt.duration_s,
        gc_s=attempt.counters.get(_GC, 0) / 1e3,
        read_s=task.loop.read_s if task else None,
        read_samples=task.loop.read_samples if task else 0,
    )


def _read_probe(log: Path) -> list[SpeedSample]:
    with log.open("rb") as lines:
        return list(read_speed(lines, log.name))
