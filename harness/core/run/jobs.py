"""
One Hadoop job at a time: its client, under a time limit, the history that it leaves, its input.

Inputs are made once per content and checked to be the size asked for.  One appears under its
content key by one rename, so a half-written one is never read.
"""

from __future__ import annotations

import re
import time

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NewType

from harness.base.documents.wording import count
from harness.base.errors import ClusterError, HarnessError, JobError
from harness.base.hadoop.daemons import ONE_COMPILER
from harness.base.hadoop.secrets import DIGEST, SECRETS
from harness.base.hadoop.site import render_xml
from harness.base.records.trace import JobTrace
from harness.base.records.trial import WorkloadSpec
from harness.base.units import format_bytes
from harness.clusters.base import Cluster
from harness.clusters.hadoop_home.home import job_jar
from harness.clusters.host import Running
from harness.clusters.masters import Hdfs, describe_endings
from harness.clusters.workloads.base import (
    INPUT_TOLERANCE,
    SMALL_INPUT_BYTES,
    InputPlan,
    JobCommand,
    Workload,
)
from harness.observe.parsing.history import read_history

MOST_BYTES = 2**32  # of a job's history: a task takes some KiB of it
MAP_OPTIONS = "mapreduce.map.java.opts"
# Without a job, by our generator's client; another one's job runs inside its application master,
# file by file: containers take longer than that.
_SMALL = {
    "generate.here": "true",
    "mapreduce.job.ubertask.enable": "true",
    "mapreduce.job.ubertask.maxmaps": "100",
    "mapreduce.job.ubertask.maxbytes": str(2 * SMALL_INPUT_BYTES),
}
_ALL_COMPILERS = "-XX:TieredStopAtLevel=4"
_POLL_S = 0.05
_HEALTH_S = 1.0
# What YarnClientImpl and Job log once a job is accepted; a job may be named before, and refused.
_JOB = re.compile(rb"(?:Submitted application application|Running job: job)_(\d{1,20}_\d{1,10})\b")
_SPLITS = re.compile(r"number of splits:(\d{1,10})\b")
_STACK_FRAME = re.compile(r"\s*(at |\.\.\.|$)")
_SHARES = re.compile(r" map (\d{1,3})% reduce (\d{1,3})%")


JobId = NewType("JobId", str)  # as a client's log has it


class TimeLimitError(JobError):
    """A job ran out of its time."""


class StoppedError(JobError):
    """The user interrupted the job."""


@dataclass
class JobRunner:
    """
    Runs clients on *cluster*, each until *deadline* (monotonic seconds) at the latest.

    *on_tick* is called while a client runs; what it raises ends the client.  *on_limit* is called
    when a client has reached its limit, before it is ended.  *note* is told how far a job is.
    *jars* join the class path of all.
    """

    cluster: Cluster
    limit_s: float
    deadline: float = float("inf")
    on_tick: Callable[[], None] = lambda: None
    on_limit: Callable[[], None] = lambda: None
    jars: Sequence[Path] = ()
    note: Callable[[str], None] = lambda _: None

    def run(
        self, command: JobCommand, properties: Mapping[str, str], log: Path
    ) -> tuple[JobId, ...]:
        """
        Run *command* to its end and return the ids of its jobs, in the order of submission.

        Raises `JobError` when the client fails, `TimeLimitError` at the time limit, `ClusterError`
        when a daemon of the cluster has died (seen within a second) or hangs (within 20 s), and
        `MachineError` where the command's jar is not built.
        """
        deadline = min(self.deadline, time.monotonic() + self.limit_s)
        jars = [*self.jars, *([job_jar(command.jar)] if command.jar else [])]
        hidden = {name: text for name, text in properties.items() if DIGEST.search(text)}
        conf = self.cluster.put_secret(render_xml(hidden)) if hidden else ""
        shown = {name: text for name, text in properties.items() if name not in hidden}
        argv = command.argv(shown, conf)
        client = self.cluster.client(command.main_class, argv, log=log, jars=jars)
        try:
            status = self._wait(client, deadline, lambda: job_progress(log, properties))
        finally:
            if client.poll() is None:
                client.kill()  # with its JVM on the gateway
                client.wait()
        submitted = job_ids(log)
        if status != 0:
            self.check_alive()  # a client often fails because of a daemon: then that is the reason
            progress = ""
            if len(submitted) > 1:
                progress = f" after it had submitted job {len(submitted)}, {submitted[-1]}"
            what = f"the client ended with status {status}{progress}: {last_line(log)}"
            fix = "read that log and the container logs beside it"
            raise JobError(what, where=log.name, fix=fix)
        return submitted

    def _wait(self, client: Running, deadline: float, describe_progress: Callable[[], str]) -> int:
        """Wait for the *client*, and return its status; a cluster that is unfit ends the wait."""
        checked_s = time.monotonic()
        while (status := client.poll()) is None:
            current_s = time.monotonic()
            if current_s > deadline:
                self.on_limit()
                what = "the job did not end within its time limit"
                fix = "raise trial_limit, or read the container logs of the trial"
                raise TimeLimitError(what, where="job client", fix=fix)
            if current_s - checked_s > _HEALTH_S:
                checked_s = current_s
                self.check_alive()
                self.note(describe_progress())
            self.on_tick()
            time.sleep(_POLL_S)
        return status

    def check_alive(self) -> None:
        """Raise `ClusterError` when a daemon has died or hangs."""
        if dead := self.cluster.dead_daemons():
            what = f"{describe_endings(dead)} during the trial"
            fix = "read the daemon's log, kept with the trial"
            raise ClusterError(what, where="cluster", fix=fix)


def job_ids(log: Path) -> tuple[JobId, ...]:
    """Ids of the jobs that a client's log reports as submitted, each once, in their order."""
    numbers = _JOB.findall(log.read_bytes())
    return tuple(dict.fromkeys(JobId(f"job_{number.decode()}") for number in numbers))


def job_progress(log: Path, properties: Mapping[str, str]) -> str:
    """
    How far the last job of a client is, by the client's own *log*: nothing else is asked.

    The shares are of the work of all maps and all reduces: half of a task counts as a half.
    """
    splits = _SPLITS.split(log.read_bytes().decode("utf-8", "replace"))  # number, rest, ...
    jobs = len(job_ids(log))
    reduces = properties.get("mapreduce.job.reduces", "1")
    if not jobs or len(splits) < 3:
        return "starting the job's client"
    maps_done, reduces_done = (_SHARES.findall(splits[-1]) or [("0", "0")])[-1]
    number = f"job {jobs}, " if jobs > 1 else ""
    return f"{number}{maps_done} % of {splits[-2]} maps, {reduces_done} % of {reduces} reduces"


def last_line(log: Path, width: int = 300) -> str:
    """The last error in *log*, or why its job failed, or its last line; no stack frames."""
    text = log.read_bytes()[-65536:].decode("utf-8", "replace")
    log_lines = [line for line in text.splitlines() if not _STACK_FRAME.match(line)]
    errors = [line for line in log_lines if "Exception" in line or "rror" in line]
    # The client's line about an application that has failed, with the reason behind it.
    ends = [line.rpartition("Job: ")[2] for line in log_lines if " failed with state " in line]
    return (errors or ends or log_lines or ["its log is empty"])[-1].strip()[:width]


def fetch_history(cluster: Cluster, job: JobId, raw: Path, number: int, wait_s: float) -> JobTrace:
    """History of *job*, the *number*-th of its trial, copied to *raw*; `JobError`: not in time."""
    history = raw / f"job-{number}-history.jhist"
    configuration = raw / f"job-{number}-conf.xml"
    deadline = time.monotonic() + wait_s
    while not _copy_history(cluster, job, history, configuration):
        if time.monotonic() > deadline:
            what = f"no history of {job} after {wait_s:g} s"
            fix = "read the application master's syslog among the trial's container logs"
            raise JobError(what, where=" and ".join(cluster.history_folders(job)), fix=fix)
        time.sleep(0.1)
    configuration.write_bytes(SECRETS.clean_conf(configuration.read_bytes()))
    with history.open("rb") as lines:
        return read_history(lines, history.name)


def _copy_history(cluster: Cluster, job: str, history: Path, configuration: Path) -> bool:
    """Copy history and configuration of *job*; whether both were there."""
    for folder in cluster.history_folders(job):
        # Of several attempts of an application master the last has the whole history.
        paths = list(find_files(cluster.hdfs, folder, job))[::-1]
        sources = {
            target: next((path for path in paths if path.endswith(ending)), "")
            for target, ending in ((history, ".jhist"), (configuration, "_conf.xml"))
        }
        if all(sources.values()):
            try:
                opened = cluster.hdfs.open_many(list(sources.values()))
                for target, (_, chunks) in zip(sources, opened, strict=True):
                    _write_chunks(target, chunks)
            except ClusterError:  # the history server moved them between the look and the copy
                return False
            return True
    return False


def find_files(hdfs: Hdfs, root: str, word: str, depth: int = 6) -> Iterator[str]:
    """Paths of the files below *root* whose names contain *word*; no folder, no files."""
    try:
        entries = hdfs.list(root)
    except HarnessError:
        return
    for name, _, is_folder in entries:
        if is_folder and depth:
            yield from find_files(hdfs, f"{root}/{name}", word, depth - 1)
        elif not is_folder and word in name:
            yield f"{root}/{name}"


def _write_chunks(path: Path, chunks: Iterator[bytes]) -> None:
    with path.open("wb") as target:
        for chunk in SECRETS.filter(chunks):
            if target.tell() + len(chunk) > MOST_BYTES:
                what = f"the history of a job is larger than {format_bytes(MOST_BYTES)}"
                fix = "check the cluster's master: no job writes that much"
                raise JobError(what, where=path.name, fix=fix)
            target.write(chunk)


@dataclass(frozen=True, slots=True)
class ReadyInput:
    """An input in the file system: where it is, its files, and what the verdict needs."""

    uri: str
    plan: InputPlan
    sample: Mapping[str, Any]


@dataclass
class Inputs:
    """The inputs of the cluster of *jobs*, which makes them with its logs in *logs*."""

    jobs: JobRunner
    logs: Path
    say: Callable[[str], None]
    ready: dict[str, ReadyInput] = field(default_factory=dict)
    partial: str = ""

    def ensure(
        self, workload: Workload, workload_spec: WorkloadSpec, block_bytes: int
    ) -> ReadyInput:
        """Make the input of *workload_spec* unless it is there; `JobError`: its size is wrong."""
        input_plan = workload.plan_input(workload_spec, block_bytes)
        if input_plan.key in self.ready:
            return self.ready[input_plan.key]
        cluster = self.jobs.cluster
        hdfs = self.jobs.cluster.hdfs
        what = f"{workload_spec.name} {workload_spec.input_bytes} bytes"
        self.say(f"input: {what} in {count(len(input_plan.files), 'file')}")
        target = f"{cluster.root}/input/{input_plan.key}"
        self.partial = f"{cluster.root}/input/.partial-{input_plan.key}-{time.time_ns()}"
        hdfs.delete(target)
        command = workload.generate(workload_spec, block_bytes, self.partial)
        properties = generator_properties(cluster.site_properties())
        if input_plan.bytes <= SMALL_INPUT_BYTES:
            properties |= _SMALL
        ended = self.jobs.run(command, properties, self.logs / f"generate-{input_plan.key}.log")
        # Compared with the plan, not with what was asked: some jobs read less than they move.
        entries = hdfs.list(self.partial)
        sizes = {name: size for name, size, is_folder in entries if not is_folder}
        total_bytes = sum(sizes.get(file.name, 0) for file in input_plan.files)
        if abs(total_bytes - input_plan.bytes) > INPUT_TOLERANCE * input_plan.bytes:
            raise JobError(
                f"input of {workload_spec.name} has {total_bytes} bytes, and its plan has"
                f" {input_plan.bytes}",
                where=self.partial,
                fix="read the generator's log, kept with the trial",
            )
        opened = hdfs.open_many([f"{self.partial}/{file.name}" for file in input_plan.files])
        files = ((path.rpartition("/")[2], chunks) for path, chunks in opened)
        sample = workload.sample(workload_spec, files)
        hdfs.rename(self.partial, target)
        self.partial = ""
        # The trial after a generator's job must not share the cluster with its application master.
        cluster.await_idle(timeout_s=60.0, ended=ended)
        self.ready[input_plan.key] = ReadyInput(target, input_plan, sample)
        return self.ready[input_plan.key]

    def remove_partial(self) -> None:
        """Remove what a generator left half-made: a full file system has room again."""
        if self.partial:
            self.jobs.cluster.hdfs.delete(self.partial)
            self.partial = ""


def generator_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """
    Properties of jobs that make inputs, on a cluster whose clients see *properties*.

    They run long enough for the optimising compiler, which our tasks leave out; nobody measures
    them.

    >>> generator_properties({"mapreduce.map.java.opts": "-Xmx409m -XX:TieredStopAtLevel=1"})
    {'mapreduce.map.java.opts': '-Xmx409m -XX:TieredStopAtLevel=1 -XX:TieredStopAtLevel=4'}
    """
    options = properties.get(MAP_OPTIONS, "")
    return {MAP_OPTIONS: f"{options} {_ALL_COMPILERS}"} if ONE_COMPILER in options else {}
