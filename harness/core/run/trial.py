"""
One trial on a running cluster: submit, wait, collect every log, prove the output right.

The order of the last steps is chosen for speed: while the application master lingers after its
job, the output is checked; the next trial starts when its container is gone.
"""

from __future__ import annotations

import re
import shutil
import time

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from harness.base.errors import ClusterError, HarnessError, JobError, ParseError
from harness.base.hadoop.properties import SEAL
from harness.base.hadoop.secrets import SECRETS
from harness.base.records.trace import JobTrace
from harness.base.records.trial import Trial, TrialState
from harness.base.text import first_line
from harness.base.units import format_bytes
from harness.clusters.base import Cluster
from harness.clusters.masters import RefusedError, describe_endings
from harness.clusters.workloads.base import Workload, unbalanced
from harness.clusters.workloads.resolved import ResolvedCell
from harness.core.run.jobs import (
    Inputs,
    JobId,
    JobRunner,
    ReadyInput,
    StoppedError,
    TimeLimitError,
    fetch_history,
    job_ids,
)

THREADS = "threads"
# What HDFS and tasks say where no disk has room: never that a disk is full.
_NO_ROOM = re.compile(r"minReplication nodes|All datanodes .{0,300} ba|No space left on device")
_HISTORY_WAIT_S = 30.0
_EVIDENCE_WAIT_S = 3.0  # all containers are gone: what is not there will not come
_IDLE_LIMIT_S = 60.0


@dataclass
class Outcome:
    """
    How a trial ended: its state and reason, its jobs, where its time went.

    *disk_bytes* went through limited disks meanwhile.  *is_interrupted*: the user ended it;
    *is_cluster_lost*: no other trial may run there.
    """

    state: TrialState = "done"
    reason: str = ""
    job_ids: list[JobId] = field(default_factory=list)
    traces: list[JobTrace] = field(default_factory=list)
    input_bytes: int | None = None
    num_splits: int | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    disk_bytes: dict[str, dict[str, int]] = field(default_factory=dict)
    is_cluster_lost: bool = False
    is_interrupted: bool = False


@dataclass
class TrialRunner:
    """
    Runs trials on one cluster; *inputs* are shared by them, *on_tick* may end a job early.

    *seal* is the SHA-256 of the sealed predictions that were there before, for the jobs to name.
    """

    cluster: Cluster
    inputs: Inputs
    block_bytes: int
    limit_s: float
    on_tick: Callable[[], None] = lambda: None
    seal: str = ""
    note: Callable[[str], None] = lambda _: None
    say: Callable[[str], None] = lambda _: None

    def run(self, trial: Trial, cell: ResolvedCell, raw_folder: Path) -> Outcome:
        """Run *trial* of *cell*, its evidence into *raw_folder*; what goes wrong is its outcome."""
        outcome = Outcome()
        try:
            self._measure(trial, cell, raw_folder, outcome)
        except HarnessError as error:
            outcome.state = "failed"
            outcome.reason = error.what
            outcome.is_interrupted = isinstance(error, StoppedError)
            # Of a job that did not end, something may still run.  What the file system refuses
            # leaves the cluster as it was; every other error of a cluster makes it unfit.
            is_running = isinstance(error, StoppedError | TimeLimitError)
            is_unfit = isinstance(error, ClusterError) and not isinstance(error, RefusedError)
            outcome.is_cluster_lost = is_running or is_unfit
            if isinstance(error, TimeLimitError):
                outcome.state = "timed_out"
                outcome.reason += f" ({self.limit_s:g} s)"
                if dumps := len(list((raw_folder / THREADS).glob("*.txt"))):
                    outcome.reason += f"; thread dumps of {dumps} JVMs are in raw/{THREADS}"
            if _NO_ROOM.search(outcome.reason):
                outcome.reason += " (the disks of the nodes may be full)"
            if is_unfit:  # what its logs tell takes longer to fetch than a user wants to wait
                self.say(f"{SECRETS.clean(outcome.reason)}: saving the logs")
            self._save_evidence(raw_folder, outcome)
        outcome.reason = SECRETS.clean(outcome.reason)  # it may quote a log
        return outcome

    def _measure(
        self, trial: Trial, cell: ResolvedCell, raw_folder: Path, outcome: Outcome
    ) -> None:
        """Run the jobs of *trial*, prove them right and collect their logs, with a lap for each."""
        cluster = self.cluster
        workload_spec = cell.spec
        workload = cell.workload
        lap_start_s = time.monotonic()
        subject = f"{workload_spec.name} {format_bytes(workload_spec.input_bytes)}"

        def end_lap(name: str, next_step: str) -> None:
            nonlocal lap_start_s
            self.note(f"{subject}: {next_step}")
            current_s = time.monotonic()
            outcome.seconds[name] = current_s - lap_start_s
            lap_start_s = current_s

        def save_thread_dumps() -> None:
            with suppress(HarnessError, OSError):  # a stuck job is ended whatever becomes of them
                cluster.dump_threads(raw_folder / THREADS)

        self.inputs.jobs.on_limit = save_thread_dumps
        self.inputs.jobs.note = lambda text: self.note(f"input of {subject}: {text}")
        ready_input = self.inputs.ensure(workload, workload_spec, self.block_bytes)
        outcome.input_bytes = ready_input.plan.bytes
        outcome.num_splits = len(ready_input.plan.files)
        output = f"{cluster.root}/output/{trial.id}"
        cluster.hdfs.delete(output)
        cluster.drop_page_cache()
        bytes_before = cluster.disk_bytes()
        end_lap("prepare_s", "starting the job")

        deadline = time.monotonic() + self.limit_s
        jobs = JobRunner(cluster, self.limit_s, deadline, self.on_tick, save_thread_dumps)
        jobs.note = lambda text: self.note(f"{subject}: {text}")
        properties = dict(cell.configuration)
        properties |= cluster.trace_properties(trial.cell.tracing, properties)
        properties |= {SEAL: self.seal} if self.seal else {}
        for number, command in enumerate(workload.submit(workload_spec, ready_input.uri, output)):
            outcome.job_ids += jobs.run(command, properties, raw_folder / f"client-{number}.log")
        end_lap("client_s", "checking the output")

        for node, bytes_after in cluster.disk_bytes().items():
            before = bytes_before.get(node, {})
            outcome.disk_bytes[node] = {
                direction: size - before.get(direction, 0)
                for direction, size in bytes_after.items()
            }
        for number, job in enumerate(outcome.job_ids):
            outcome.traces.append(fetch_history(cluster, job, raw_folder, number, _HISTORY_WAIT_S))
        self._verify(cell, output, ready_input, outcome)
        cluster.hdfs.delete(output)
        end_lap("verify_s", "waiting until its containers are gone")

        cluster.await_idle(timeout_s=_IDLE_LIMIT_S, ended=outcome.job_ids)
        end_lap("am_exit_s", "collecting logs")

        self._collect_containers(outcome.job_ids, raw_folder)
        jobs.check_alive()
        if unreachable := cluster.missing_daemons():
            what = f"{', '.join(unreachable)} was lost during the trial"
            fix = "look at its node's network; the next trial gets a new cluster"
            raise ClusterError(what, where="cluster", fix=fix)
        end_lap("logs_s", "storing what was collected")

    def _verify(
        self, cell: ResolvedCell, output: str, ready_input: ReadyInput, outcome: Outcome
    ) -> None:
        """Raise `JobError` for jobs other than planned, and for jobs that did something wrong."""
        workload = cell.workload
        verify_number(cell, len(outcome.job_ids))
        for trace in outcome.traces:
            verify_counters(workload, trace, ready_input.sample.get("records"))
        hdfs = self.cluster.hdfs
        folder = workload.outputs(cell.spec, output)
        parts = sorted(
            f"{folder}/{name}"
            for name, _, is_folder in hdfs.list(folder)
            if name.startswith("part-") and not is_folder
        )
        files = ((path.rpartition("/")[2], chunks) for path, chunks in hdfs.open_many(parts))
        verdict = workload.verdict(cell.spec, files, ready_input.sample)
        if verdict:
            raise JobError(f"wrong output of {cell.spec.name}: {verdict}")

    def _collect_containers(self, jobs: Iterable[str], raw_folder: Path) -> None:
        for job_id in jobs:
            application = job_id.replace("job_", "application_", 1)
            self.cluster.container_logs(application, raw_folder / "containers")

    def _save_evidence(self, raw_folder: Path, outcome: Outcome) -> None:
        """Save what a failed trial left, as far as the cluster still gives it, and name causes."""
        clients = sorted(raw_folder.glob("client-*.log"))
        if not clients:  # it ended before its own jobs: what made its input is of interest
            for client_log in self.inputs.logs.glob("generate-*.log"):
                shutil.copy(client_log, raw_folder)
        outcome.job_ids = []
        for client_log in clients:
            outcome.job_ids += job_ids(client_log)
        try:
            self._name_causes(outcome)
            self._collect_evidence(raw_folder, outcome)
        except (HarnessError, OSError) as error:
            outcome.reason += f" (evidence is incomplete: {str(error).splitlines()[0]})"
            # A job that was refused has no history, and the cluster is none the worse for it.
            outcome.is_cluster_lost |= isinstance(error, ClusterError)

    def _name_causes(self, outcome: Outcome) -> None:
        """Add to the reason what happened to daemons: without one no other trial may run there."""
        dead = self.cluster.dead_daemons()
        unnamed = {daemon: end for daemon, end in dead.items() if daemon not in outcome.reason}
        if unnamed:
            outcome.reason += f" ({describe_endings(unnamed)})"
            outcome.is_cluster_lost = True
        elif not outcome.is_cluster_lost and (unreachable := self.cluster.missing_daemons()):
            outcome.reason += f" ({', '.join(unreachable)} was lost)"
            outcome.is_cluster_lost = True
        if killed := self.cluster.out_of_memory():
            outcome.reason += f" ({'; '.join(killed)})"

    def _collect_evidence(self, raw_folder: Path, outcome: Outcome) -> None:
        """Collect logs and histories of the jobs; make room again where the cluster goes on."""
        jobs_with_history: Sequence[JobId] = outcome.job_ids
        if not outcome.is_cluster_lost:
            self.cluster.await_idle(timeout_s=_IDLE_LIMIT_S)
        elif self.cluster.dead_daemons():
            jobs_with_history = []
        else:  # where all daemons live, of several jobs only the last may still run
            jobs_with_history = outcome.job_ids[:-1]
        self._collect_containers(outcome.job_ids, raw_folder)
        if not outcome.is_cluster_lost:
            # A file system that refuses this would fail the next trial as well.
            self.inputs.remove_partial()
            self.cluster.hdfs.delete(f"{self.cluster.root}/output")
            self.cluster.hdfs.make(f"{self.cluster.root}/output")
        self._fetch_histories(jobs_with_history, raw_folder, outcome)

    def _fetch_histories(self, jobs: Sequence[JobId], raw_folder: Path, outcome: Outcome) -> None:
        """Fetch the histories of *jobs* that are not there; raise the first error behind all."""
        fetched = {trace.job_id for trace in outcome.traces}
        missing: list[HarnessError] = []
        for number, job_id in enumerate(jobs):
            if job_id in fetched:
                continue
            try:
                trace = fetch_history(self.cluster, job_id, raw_folder, number, _EVIDENCE_WAIT_S)
                outcome.traces.append(trace)
            except (JobError, ParseError) as error:  # those of other jobs may be there
                missing.append(error)
        if missing:
            raise missing[0]


def verify_number(cell: ResolvedCell, job_count: int) -> None:
    """Raise `JobError` where not as many jobs ran as a trial of *cell* has."""
    planned = cell.planned_jobs
    if not job_count:
        raise JobError("the client's log names no job", fix="read client-0.log of the trial")
    if planned is not None and job_count != planned:
        raise JobError(f"{job_count} jobs ran, and a trial of {cell.spec.name} has {planned}")


def verify_counters(workload: Workload, trace: JobTrace, input_records: int | None) -> None:
    """Raise `JobError` for a job that failed, repeated a task, or whose counters do not add up."""
    if trace.state != "SUCCEEDED":
        raise JobError(f"{trace.job_id} ended as {trace.state}: {trace.diagnostics[:300]}")
    # The job repeated them and is done: its time is not that of its work alone.
    failed = [attempt for attempt in trace.attempts if attempt.state == "failed"]
    if failed:
        first = failed[0]
        more = f" (and {len(failed) - 1} more)" if len(failed) > 1 else ""
        raise JobError(
            f"{first.attempt_id} on {first.host}{more} failed and was repeated, so the"
            f" job took longer than its work: {first_line(first.error, 'no message')}"
        )
    combines = workload.uses_combiner
    complaint = unbalanced(trace, uses_combiner=combines, input_records=input_records)
    if complaint:
        raise JobError(f"the counters of {trace.job_id} do not add up: {complaint}")
