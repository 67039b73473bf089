"""
One trial on a running cluster: submit, wait, collect every log, prove the output right.

The order of the last steps is chosen for speed: while the application master lingers after its
job, the output is checked; the next trial starts when its container is gone.
"""

from __future__ import annotations

import shutil
import time

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Protocol

from harness.errors import ClusterError, HarnessError, JobError, ParseError
from harness.evaluate.cells import configured
from harness.providers.hdfs import Hdfs, RefusedError
from harness.providers.host import Host
from harness.records.hardware import Limit
from harness.records.trace import JobTrace, TaskAttempt
from harness.records.trial import Tracing, Trial, TrialState, WorkloadSpec
from harness.run.history import fetch_history
from harness.run.inputs import Inputs, ReadyInput
from harness.run.jobs import JobCluster, JobRunner, StoppedError, TimeLimitError, job_ids
from harness.run.versions import RanOn
from harness.workloads import WORKLOADS
from harness.workloads.base import File, Workload
from harness.workloads.counters import unbalanced

THREADS = "threads"
_HISTORY_WAIT_S = 30.0
_EVIDENCE_WAIT_S = 3.0  # all containers are gone: what is not there will not come

DiskBytes = dict[str, dict[str, int]]


class TrialCluster(JobCluster, Protocol):
    """What a trial asks of a cluster."""

    hdfs: Hdfs

    @property
    def hosts(self) -> Sequence[Host]:
        """The nodes, master first."""
        ...

    @property
    def limits(self) -> Mapping[str, Mapping[str, Limit]]:
        """Limits of each limited node by their names: requested and measured."""
        ...

    @property
    def losses(self) -> Sequence[str]:
        """What measurements on this cluster cannot show."""
        ...

    def ran_on(self) -> Mapping[str, RanOn]:
        """Return the versions that tasks run with, by the worker's name."""
        ...

    @property
    def watched(self) -> Sequence[Host] | None:
        """Hosts, master first, whose machines are watched; `None`: they are on this machine."""
        ...

    def java_on(self, host: Host) -> str:
        """Return the ``java`` command of *host*."""
        ...

    def agent(self, host: Host, verb: str, *arguments: str) -> list[str]:
        """Return the command line that runs one verb of the node agent on *host*."""
        ...

    def host_path(self, host: Host, path: Path) -> str:
        """Return where *host* has this machine's file *path*; it is brought there if need be."""
        ...

    def forget(self) -> Sequence[str]:
        """Let nodes with limited disks read blocks from there next, not from memory."""
        ...

    def disk_bytes(self) -> DiskBytes:
        """Bytes ``read`` and ``written`` by each limited disk so far, by the node's name."""
        ...

    def silent_daemons(self) -> Sequence[str]:
        """Return the daemons that the masters hear no more."""
        ...

    def await_idle(self, timeout_s: float) -> None:
        """Return when no application holds a container."""
        ...

    def container_logs(self, application_id: str, into: Path) -> list[Path]:
        """Copy the logs of all containers of an application below *into*."""
        ...

    def out_of_memory(self) -> Sequence[str]:
        """Where the kernel ended processes for want of memory since this was last asked; a text."""
        ...

    def daemon_logs(self, lines: int = 20) -> dict[str, str]:
        """Return the last lines of each daemon's log, by its name."""
        ...

    def thread_dumps(self, into: Path) -> list[Path]:
        """Write what the threads of each JVM do into the folder *into*; takes a few seconds."""
        ...

    def history_folders(self, job: str) -> Sequence[str]:
        """Return the folders below which the history of *job* lies when it has ended."""
        ...

    def site_properties(self) -> dict[str, str]:
        """Return the cluster-wide properties that a client sees."""
        ...

    @property
    def root(self) -> str:
        """Folder of HDFS below which all lies that experiments write."""
        ...

    def trace_properties(
        self, tracing: Tracing, configuration: Mapping[str, str]
    ) -> dict[str, str]:
        """Return what is added to a job's own properties so that its tasks are traced."""
        ...


@dataclass
class Outcome:
    """
    How a trial ended: its state and reason, its jobs, where its time went.

    *disk_bytes* went through limited disks meanwhile.  *interrupted* says that the user ended it;
    *cluster_lost* that no other trial may run there.
    """

    state: TrialState = "done"
    reason: str = ""
    job_ids: list[str] = field(default_factory=list)
    traces: list[JobTrace] = field(default_factory=list)
    input_bytes: int | None = None
    num_splits: int | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    disk_bytes: DiskBytes = field(default_factory=dict)
    cluster_lost: bool = False
    interrupted: bool = False


@dataclass
class TrialRunner:
    """Runs trials on one cluster; *inputs* are shared by them, *on_tick* may end a job early."""

    cluster: TrialCluster
    inputs: Inputs
    block_bytes: int
    limit_s: float
    on_tick: Callable[[], None] = lambda: None

    @property
    def _outputs(self) -> str:
        return f"{self.cluster.root}/output"

    def run(self, trial: Trial, raw: Path) -> Outcome:
        """Run *trial* with its evidence in the folder *raw*; whatever goes wrong is its outcome."""
        outcome = Outcome()
        try:
            self._measure(trial, raw, outcome)
        except TimeLimitError as error:
            reason = f"{error.what} ({self.limit_s:g} s){_dumps(raw)}"
            outcome.state, outcome.reason, outcome.cluster_lost = "timed_out", reason, True
        except StoppedError as error:
            outcome.state, outcome.reason, outcome.cluster_lost = "failed", error.what, True
            outcome.interrupted = True
        except RefusedError as error:
            outcome.state, outcome.reason = "failed", error.what
        except ClusterError as error:
            outcome.state, outcome.reason, outcome.cluster_lost = "failed", error.what, True
        except HarnessError as error:
            outcome.state, outcome.reason = "failed", error.what
        if outcome.state != "done":
            self._keep_evidence(raw, outcome)
        return outcome

    def _measure(self, trial: Trial, raw: Path, outcome: Outcome) -> None:
        spec, workload = trial.cell.workload, WORKLOADS[trial.cell.workload.name]
        clock = _Clock(outcome.seconds)
        dump = partial(self._dump_threads, raw / THREADS)
        self.inputs.jobs.on_limit = dump
        ready = self.inputs.ensure(workload, spec, self.block_bytes)
        outcome.input_bytes, outcome.num_splits = ready.plan.bytes, len(ready.plan.files)
        output = f"{self._outputs}/{trial.id}"
        self.cluster.hdfs.delete(output)
        self.cluster.forget()
        before = self.cluster.disk_bytes()
        clock.lap("prepare_s")
        jobs = JobRunner(
            self.cluster,
            self.limit_s,
            deadline=time.monotonic() + self.limit_s,
            on_tick=self.on_tick,
            on_limit=dump,
        )
        given = configured(trial.cell)
        properties = {**given, **self.cluster.trace_properties(trial.cell.tracing, given)}
        for number, command in enumerate(workload.submit(spec, ready.uri, output)):
            log = raw / f"client-{number}.log"
            outcome.job_ids += jobs.run(command, properties, log)
        clock.lap("client_s")
        outcome.disk_bytes = _passed(before, self.cluster.disk_bytes())
        _check_count(workload, spec, outcome.job_ids)
        self._collect_history(raw, outcome)
        self._verify(workload, spec, output, ready, outcome)
        self.cluster.hdfs.delete(output)
        clock.lap("verify_s")
        self.cluster.await_idle(timeout_s=60.0)
        clock.lap("am_exit_s")
        self._collect_containers(raw, outcome.job_ids)
        jobs.check_alive()
        if silent := self.cluster.silent_daemons():
            raise ClusterError(
                f"{', '.join(silent)} was lost during the trial",
                where="cluster",
                fix="look at its node's network; the next trial gets a new cluster",
            )
        clock.lap("logs_s")

    def _verify(
        self,
        workload: Workload,
        spec: WorkloadSpec,
        output: str,
        ready: ReadyInput,
        outcome: Outcome,
    ) -> None:
        for trace in outcome.traces:
            if trace.state != "SUCCEEDED":
                raise JobError(f"{trace.job_id} ended as {trace.state}: {trace.diagnostics[:300]}")
            if failed := [a for a in trace.attempts if a.state == "failed"]:
                raise JobError(_made_up_for(failed))
            if wrong := unbalanced(
                trace,
                uses_combiner=workload.uses_combiner,
                input_records=ready.sample.get("records"),
            ):
                raise JobError(f"the counters of {trace.job_id} do not add up: {wrong}")
        verdict = workload.verdict(spec, self._parts(workload.outputs(spec, output)), ready.sample)
        if not verdict.right:
            raise JobError(f"wrong output of {spec.name}: {verdict.reason}")

    def _parts(self, folder: str) -> Iterator[File]:
        entries = sorted(self.cluster.hdfs.list(folder))
        names = [n for n, _, is_folder in entries if n.startswith("part-") and not is_folder]
        for path, pieces in self.cluster.hdfs.open_many([f"{folder}/{n}" for n in names]):
            yield path.removeprefix(f"{folder}/"), pieces

    def _collect_history(self, raw: Path, outcome: Outcome) -> None:
        for number, job in enumerate(outcome.job_ids):
            outcome.traces.append(fetch_history(self.cluster, job, raw, number, _HISTORY_WAIT_S))

    def _save_history(self, raw: Path, outcome: Outcome, jobs: Sequence[str]) -> None:
        """Save what there is of the histories of a failed trial; raise for the first that lacks."""
        lacking, known = list[HarnessError](), {trace.job_id for trace in outcome.traces}
        for number, job in enumerate(jobs):
            if job in known:
                continue
            try:
                trace = fetch_history(self.cluster, job, raw, number, _EVIDENCE_WAIT_S)
            except (JobError, ParseError) as error:
                lacking.append(error)
            else:
                outcome.traces.append(trace)
        if lacking:
            raise lacking[0]

    def _collect_containers(self, raw: Path, job_ids: Sequence[str]) -> None:
        for job in job_ids:
            application = job.replace("job_", "application_", 1)
            self.cluster.container_logs(application, raw / "containers")

    def _keep_evidence(self, raw: Path, outcome: Outcome) -> None:
        """Save what a failed trial left, as far as the cluster still gives it."""
        clients = sorted(raw.glob("client-*.log"))
        if not clients:  # it ended before its own jobs: what made its input is of interest
            for log in self.inputs.logs.glob("generate-*.log"):
                shutil.copy(log, raw)
        outcome.job_ids = [job for log in clients for job in job_ids(log)]
        try:
            self._blame_the_dead(outcome)
            if not outcome.cluster_lost:
                self.cluster.await_idle(timeout_s=60.0)
            self._collect_containers(raw, outcome.job_ids)
            if not outcome.cluster_lost:
                self._make_room()
                self._save_history(raw, outcome, outcome.job_ids)
            elif not self.cluster.dead_daemons():  # of several jobs only the last may still run
                self._save_history(raw, outcome, outcome.job_ids[:-1])
        except (HarnessError, OSError) as error:
            outcome.reason += f" (evidence is incomplete: {str(error).splitlines()[0]})"
            # A job that was refused has no history, and the cluster is none the worse for it.
            outcome.cluster_lost |= isinstance(error, ClusterError)

    def _make_room(self) -> None:
        """Remove what a failed trial wrote; a file system that refuses is lost for the next one."""
        self.inputs.sweep()
        self.cluster.hdfs.delete(self._outputs)
        self.cluster.hdfs.make(self._outputs)

    def _dump_threads(self, into: Path) -> None:
        """Save what every JVM does; a job that is stuck is ended whatever comes of it."""
        with suppress(HarnessError, OSError):
            self.cluster.thread_dumps(into)

    def _blame_the_dead(self, outcome: Outcome) -> None:
        """
        Name daemons that have died or were lost, and nodes that ran out of memory.

        Whatever failed first, no other trial may run where a daemon lacks.
        """
        dead = [name for name in self.cluster.dead_daemons() if name not in outcome.reason]
        if dead:
            outcome.reason += f" ({', '.join(dead)} died)"
            outcome.cluster_lost = True
        elif not outcome.cluster_lost and (silent := self.cluster.silent_daemons()):
            outcome.reason += f" ({', '.join(silent)} was lost)"
            outcome.cluster_lost = True
        if told := self.cluster.out_of_memory():
            outcome.reason += f" ({'; '.join(told)})"


def _passed(before: DiskBytes, after: DiskBytes) -> DiskBytes:
    """Bytes that went through each disk in between."""
    return {
        node: {verb: value - before.get(node, {}).get(verb, 0) for verb, value in now.items()}
        for node, now in after.items()
    }


def _check_count(workload: Workload, spec: WorkloadSpec, ran: Sequence[str]) -> None:
    """Raise `JobError` where the clients' logs do not name as many jobs as a trial has."""
    planned = workload.jobs(spec)
    if not ran:
        raise JobError("the client's log names no job", fix="read client-0.log of the trial")
    if planned is not None and len(ran) != planned:
        raise JobError(f"{len(ran)} jobs ran, and a trial of {spec.name} has {planned}")


def _dumps(raw: Path) -> str:
    """Where the thread dumps are, for a reason; nothing where there are none."""
    count = len(list((raw / THREADS).glob("*.txt")))
    return f"; thread dumps of {count} JVMs are in raw/{THREADS}" if count else ""


def _made_up_for(failed: Sequence[TaskAttempt]) -> str:
    """Reason of a job that is done in spite of *failed* attempts: its time is not its work's."""
    first = failed[0]
    said = next((line.strip() for line in first.error.splitlines() if line.strip()), "no message")
    others = f" (and {len(failed) - 1} more)" if len(failed) > 1 else ""
    return (
        f"{first.attempt_id} on {first.host}{others} failed and was made up for,"
        f" so the job took longer than its work: {said[:200]}"
    )


class _Clock:
    """Seconds between laps, by name."""

    def __init__(self, seconds: dict[str, float]) -> None:
        self.seconds, self.last = seconds, time.monotonic()

    def lap(self, name: str) -> None:
        now = time.monotonic()
        self.seconds[name], self.last = now - self.last, now
