"""One Hadoop job at a time: its client, under a time limit, on a cluster that must live."""

from __future__ import annotations

import re
import time

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from harness.errors import ClusterError, JobError
from harness.hadoop_home.home import job_jar
from harness.providers.host import Running
from harness.workloads.base import JobCommand

_POLL_S = 0.05
_HEALTH_S = 1.0
# What YarnClientImpl and Job say once a job is accepted; a job may be named before, and refused.
_JOB = re.compile(rb"(?:Submitted application application|Running job: job)_(\d{1,20}_\d{1,10})\b")


class TimeLimitError(JobError):
    """A job ran out of its time."""


class StoppedError(JobError):
    """The user wants no more: the job was given up."""


class JobCluster(Protocol):
    """What running a job asks of a cluster."""

    def client(
        self, main_class: str, args: Sequence[str], *, log: Path, jars: Sequence[Path] = ()
    ) -> Running:
        """Start a client JVM on the gateway, its output into *log*; *jars* join its class path."""
        ...

    def dead_daemons(self) -> list[str]:
        """Name the daemons that should run and do not."""
        ...


@dataclass
class JobRunner:
    """
    Runs clients on *cluster*, each until *deadline* (monotonic seconds) at the latest.

    *on_tick* is called while a client runs; what it raises ends the client.  *on_limit* is called
    when a client has reached its limit, before it is ended.
    """

    cluster: JobCluster
    limit_s: float
    deadline: float = float("inf")
    on_tick: Callable[[], None] = lambda: None
    on_limit: Callable[[], None] = lambda: None

    def run(self, command: JobCommand, properties: Mapping[str, str], log: Path) -> tuple[str, ...]:
        """
        Run *command* to its end and return the ids of its jobs, in the order of submission.

        Raises `JobError` when the client fails, `TimeLimitError` at the time limit, `ClusterError`
        when a daemon of the cluster has died (seen within a second), and `MachineError` where the
        command's jar is not built.
        """
        deadline = min(self.deadline, time.monotonic() + self.limit_s)
        jars = [job_jar(command.jar)] if command.jar else []
        argv = command.argv(properties)
        client = self.cluster.client(command.main_class, argv, log=log, jars=jars)
        try:
            status = self._wait(client, deadline)
        finally:
            _end(client)
        if status != 0:
            self.check_alive()  # a client often fails because of a daemon: then that is the reason
            raise JobError(
                f"the client ended with status {status}{_told(job_ids(log))}: {last_line(log)}",
                where=log.name,
                fix="read that log and the container logs beside it",
            )
        return job_ids(log)

    def _wait(self, client: Running, deadline: float) -> int:
        looked = time.monotonic()
        while (status := client.poll()) is None:
            now = time.monotonic()
            if now > deadline:
                self.on_limit()
                raise TimeLimitError(
                    "the job did not end within its time limit",
                    where="job client",
                    fix="raise trial_limit, or read the container logs of the trial",
                )
            if now - looked > _HEALTH_S:
                looked = now
                self.check_alive()
            self.on_tick()
            time.sleep(_POLL_S)
        return status

    def check_alive(self) -> None:
        """Raise `ClusterError` when a daemon has died."""
        if dead := self.cluster.dead_daemons():
            raise ClusterError(
                f"{', '.join(dead)} died during the job",
                where="cluster",
                fix="read the daemon's log, kept with the trial",
            )


# What the client says of a job whose application has failed, with the reason behind it.
_ENDED = " failed with state "


def job_ids(log: Path) -> tuple[str, ...]:
    """Ids of the jobs that a client's log says were submitted, each once, in their order."""
    found = _JOB.findall(log.read_bytes())
    return tuple(dict.fromkeys(f"job_{number.decode()}" for number in found))


def _told(jobs: Sequence[str]) -> str:
    """How far a client came that had several jobs."""
    return f" after it had submitted job {len(jobs)}, {jobs[-1]}" if len(jobs) > 1 else ""


def last_line(log: Path, width: int = 300) -> str:
    """The last error in *log*, or why its job failed, or what it said last; no stack frames."""
    lines = log.read_bytes()[-65536:].decode("utf-8", "replace").splitlines()
    telling = [s for s in lines if s.strip() and not s.lstrip().startswith(("at ", "..."))]
    errors = [s for s in telling if "Exception" in s or "rror" in s]
    ends = [s.rpartition("Job: ")[2] for s in telling if _ENDED in s]
    return (errors or ends or telling or ["it said nothing"])[-1].strip()[:width]


def _end(client: Running) -> None:
    """End a client that still runs, with its JVM on the gateway."""
    if client.poll() is None:
        client.kill()
        client.wait()
