"""
What tracing costs: tasks with and without it, mixed within the same jobs.

Each map of a job reads its JVM options from a file of its own (``@FOLDER/@taskid@``), so one job
runs stock tasks, tasks that record spans and tasks that record units, drawn by chance, and whatever
slows the machine slows all of them alike.
"""

from __future__ import annotations

import json
import random
import time

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from harness.clusters.home import HadoopHome, woven_digest
from harness.clusters.local import LocalCluster
from harness.clusters.state import clusters_folder
from harness.errors import JobError
from harness.hadoop import site
from harness.hadoop.tracing import PATH_JAR
from harness.parsing.speed_probe import read_speed
from harness.records.trace import SpeedSample, TaskAttempt
from harness.records.trial import ClusterSpec, WorkloadSpec
from harness.running.machine import machine_facts
from harness.running.probe import SpeedProbe, rate
from harness.running.selftest import JobBench, require_traced
from harness.running.selftest_checks import Observed
from harness.running.selftest_effects import (
    MODES,
    WORKLOAD_NAMES,
    Effect,
    Sample,
    effects,
    least_known,
)
from harness.running.talk import Talk
from harness.units import MIB

MAPS = 36
SPEC = ClusterSpec(workers=3, site={"dfs.blocksize": "16 MiB"})
_ATTEMPTS = 4
_LEAST_JOBS = 2
_JOB_PATH = "job.jar/job.jar:job.jar/classes/:job.jar/lib/*:./*:."
_CPU = "TaskCounter.CPU_MILLISECONDS"


def measure(
    cluster: LocalCluster, folder: Path, minutes: float, talk: Talk
) -> tuple[list[Effect], Path]:
    """
    Run mixed jobs on *cluster* for about *minutes*, two jobs at least; what is known now.

    What earlier calls measured of the same tracer, Java and machine counts, too; the file in which
    it is kept is given back.
    """
    require_traced(cluster.home)
    file, key = overhead_file(), _key(cluster.home)
    samples = load(file, key)
    probe_log = folder / "speed.txt"
    bench = JobBench(cluster, folder, talk)
    with SpeedProbe(log=probe_log):
        for found, drawn in _jobs(bench, minutes, talk, samples):
            samples += _samples(found, drawn, _read_probe(probe_log))
            _save(file, key, samples)
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


def _save(file: Path, key: Mapping[str, Any], samples: Sequence[Sample]) -> None:
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


def _key(home: HadoopHome) -> dict[str, Any]:
    facts = machine_facts()
    return {
        "tracer": woven_digest(home),
        "java": home.java.version,
        "machine": {k: facts.get(k) for k in ("cpu", "cores", "kernel")},
    }


# jobs


def _jobs(
    bench: JobBench, minutes: float, talk: Talk, samples: Sequence[Sample]
) -> Iterable[tuple[Observed, Sequence[str]]]:
    """Run jobs until the time is over; give each with the modes of its maps."""
    begun, longest, done = time.monotonic(), 0.0, 0
    chance = random.Random(time.time_ns())  # noqa: S311 - nobody is to be kept from guessing it
    _warm_up(bench)
    while done < _LEAST_JOBS or 60 * minutes - (time.monotonic() - begun) > longest:
        job_begun, drawn = time.monotonic(), _drawn(chance)
        yield _mixed(bench, least_known(effects(samples)), drawn), drawn
        done += 1
        longest = max(longest, time.monotonic() - job_begun)
        left_s = max(60 * minutes - (time.monotonic() - begun), 0.0)
        talk.say(f"overhead: {done} jobs of {MAPS} maps, {left_s / 60:.0f} min left")


def _warm_up(bench: JobBench) -> None:
    """Make the inputs; then a job whose number tells those that follow."""
    for name in WORKLOAD_NAMES:
        bench.command(_spec(bench, name))
    bench.workload(WorkloadSpec(name="wordcount", input_bytes=MIB), {})


def _spec(bench: JobBench, name: str) -> WorkloadSpec:
    return WorkloadSpec(name=name, input_bytes=MAPS * site.block_bytes(bench.cluster.spec))


def _next_job(job: str) -> str:
    """
    Give the id that the next job of the cluster will have.

    >>> _next_job("job_1700000000000_0009")
    'job_1700000000000_0010'
    """
    head, _, number = job.rpartition("_")
    return f"{head}_{int(number) + 1:04d}"


def _mixed(bench: JobBench, name: str, drawn: Sequence[str]) -> Observed:
    """Run one job whose maps have options of their own."""
    cluster, command = bench.cluster, bench.command(_spec(bench, name))
    job = _next_job(bench.last_job)
    options = cluster.folder / "options"
    options.mkdir(exist_ok=True)
    for number, mode in enumerate(drawn):
        for attempt in range(_ATTEMPTS):
            task = f"{job.replace('job', 'attempt', 1)}_m_{number:06d}_{attempt}"
            (options / task).write_text(_options(cluster, mode))
    properties = {
        "mapreduce.map.java.opts": f"{_common(cluster)} @{options}/@taskid@",
        "mapreduce.job.reduces": str(cluster.spec.workers),
        "mapreduce.job.reduce.slowstart.completedmaps": "1.0",
    }
    try:
        return bench.observed(name, command, properties)
    finally:
        for file in options.iterdir():
            file.unlink()


def _drawn(chance: random.Random) -> list[str]:
    """Modes of the maps of a job: each equally often among neighbours."""
    drawn: list[str] = []
    while len(drawn) < MAPS:
        drawn += chance.sample(MODES, len(MODES))
    return drawn


def _common(cluster: LocalCluster) -> str:
    """Options of all maps: those that YARN has to complete, and the memory."""
    layout = replace(cluster.files.layout, archive=None)
    memory = site.container_mb(cluster.spec.node.task_memory_bytes)
    told = "-Dltrace.task=@taskid@ -Dltrace.unit=5 -Dltrace.dir=<LOG_DIR>"
    return f"{site.container_options(layout, memory)} {told}"


def _options(cluster: LocalCluster, mode: str) -> str:
    """Argument file of a map: its classes, their archive, and whether the recorder is on."""
    home, layout = cluster.home, cluster.files.layout
    stock = mode == "off"
    archive, jar = (home.archive, "path.jar") if stock else (home.tasks_archive, PATH_JAR)
    # No shell reads this file: folders are written out, and one node's configuration serves all.
    path = f"{home.path}/{jar}:{layout.conf(layout.workers[0])}:{_JOB_PATH}"
    lines = [
        f"-XX:SharedArchiveFile={archive}",
        "-Xlog:cds=off",
        "-Xlog:cds+dynamic=off",
        "-cp",
        path,
    ]
    return "\n".join([*lines, f"-Dltrace={mode}", ""])


# samples


def _samples(job: Observed, drawn: Sequence[str], probed: Sequence[SpeedSample]) -> list[Sample]:
    """Give what each map of a job whose modes were *drawn* has cost."""
    return [_sample(job, a, drawn[_number(a)], probed) for a in job.trace.succeeded("map")]


def _number(attempt: TaskAttempt) -> int:
    return int(attempt.task_id.rpartition("_")[2])


def _sample(
    job: Observed, attempt: TaskAttempt, mode: str, probed: Sequence[SpeedSample]
) -> Sample:
    task, log = job.tasks.get(attempt.attempt_id), job.logs.get(attempt.attempt_id)
    if (task is None) != (mode == "off"):
        raise JobError(f"{attempt.attempt_id} did not run the classes of mode {mode}")
    split_s = log.split_s if log else None
    return Sample(
        workload=job.name,
        job=job.trace.job_id,
        mode=mode,
        start_s=attempt.start_s,
        cpu_s=attempt.counters[_CPU] / 1e3,
        start_up_s=split_s - attempt.start_s if split_s else None,
        rate=rate(probed, attempt.start_s, attempt.finish_s),
        records=task.loop.records if task else 0,
        outputs=task.loop.outputs if task else 0,
        spans=len(task.spans) if task else 0,
    )


def _read_probe(log: Path) -> list[SpeedSample]:
    with log.open("rb") as lines:
        return list(read_speed(lines, log.name))
