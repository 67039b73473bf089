"""
What is known of nodes in containers: which daemons have ended and why, and what the logs hold.

Logs and dumps are read as archives through the engine, so that they outlive the processes.
"""

from __future__ import annotations

import re
import threading

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from harness.errors import ClusterError
from harness.hadoop.daemons import Daemon
from harness.node.supervise import MEMORY_EVENTS
from harness.providers import archives
from harness.providers.docker import plan
from harness.providers.docker.engine import Engine, EngineError
from harness.providers.docker.host import DockerHost, state_of
from harness.providers.host import CONTAINER, LOG, from_json
from harness.text import printable
from harness.units import format_bytes

_DUMP_LIMIT_S = 20.0
_JOIN_LIMIT_S = 5.0
_RETRY_S = 1.0
_CHUNK, _LINE_BYTES = 2**20, 400
_LIMITS = archives.Limits(bytes=2**34)
_KILLS = re.compile(r"^oom_kill (\d{1,18})$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Death:
    """A daemon, by its key, that has ended: its status; whether it ran out of memory."""

    key: str
    status: int
    oom: bool = False


class DeathLog:
    """
    Daemons and nodes that have ended in *containers* (node -> name of its container).

    One thread per node follows its container's log, in which the node's supervisor writes a line
    of JSON for each daemon that ends; the end of the log is the end of the node.  So nothing runs
    in the containers for it, and the engine has nothing to do while all is well.
    """

    def __init__(self, engine: Engine, containers: Mapping[str, str]) -> None:
        """Read what has happened so far, then follow."""
        self._engine, self._guard = engine, threading.Lock()
        self._deaths: dict[str, Death] = {}
        self._ended: set[str] = set()
        self._error: EngineError | None = None
        self._closed = threading.Event()
        for container in containers.values():
            with engine.translate_errors(f"log of {container}"):
                self._read(engine.client.api.logs(container, stdout=True, stderr=False))
        self._threads = [
            threading.Thread(target=self._follow, args=pair, daemon=True, name="docker-deaths")
            for pair in containers.items()
        ]
        for thread in self._threads:
            thread.start()

    def deaths(self) -> dict[str, Death]:
        """Daemons that have ended, by their keys; `EngineError` where the engine was lost."""
        with self._guard:
            if self._error is not None:
                raise self._error
            return dict(self._deaths)

    def ended_nodes(self) -> set[str]:
        """Nodes that have ended."""
        with self._guard:
            return set(self._ended)

    def close(self) -> None:
        """Wait for the threads; the logs of removed containers have ended."""
        self._closed.set()
        for thread in self._threads:
            thread.join(_JOIN_LIMIT_S)

    def _follow(self, node_name: str, container: str) -> None:
        """Read the log of one node until the node ends, again where the connection is lost."""
        client = self._engine.client.api
        while not self._closed.is_set():
            with suppress(EngineError), self._engine.translate_errors(container):
                rest = b""
                log = client.logs(container, stdout=True, stderr=False, stream=True, follow=True)
                for piece in log:
                    lines, _, rest = (rest + piece).rpartition(b"\n")
                    self._read(lines)
            if self._closed.is_set():
                return
            try:
                with self._engine.translate_errors(f"state of {node_name}"):
                    is_running = client.inspect_container(container)["State"]["Running"]
            except EngineError as error:
                is_running = False
                if error.status != 404:
                    with self._guard:
                        self._error = error
                    return
            if not is_running:
                with self._guard:
                    self._ended.add(node_name)
                return
            self._closed.wait(_RETRY_S)

    def _read(self, lines: bytes) -> None:
        """Take the supervisor's lines; any other text is skipped."""
        for line in lines.splitlines():
            with suppress(ValueError, KeyError, TypeError, AttributeError):
                fields: Any = from_json(line)
                death = Death(str(fields["key"]), int(fields["status"]), bool(fields.get("oom")))
                with self._guard:
                    self._deaths[death.key] = death


def memory_kills(host: DockerHost) -> int:
    """How many processes of a node the kernel has killed for want of memory, since its start."""
    try:
        events = host.run(["cat", *MEMORY_EVENTS]).out  # one of the files is there
    except ClusterError:  # its first process may have been the one; the count is gone with it
        return int("OOMKilled" in state_of(host.engine, host.container))
    return sum(map(int, _KILLS.findall(events)))


def describe_kills(node_name: str, kills: int, limit_bytes: int | None) -> str:
    """
    A sentence on a node in which the kernel has killed so many processes.

    >>> describe_kills("worker1", 2, 3 * 2**30)
    'the kernel killed 2 processes of worker1, which may use 3 GiB of memory (cluster.node.memory)'
    """
    processes = "a process" if kills == 1 else f"{kills} processes"
    if limit_bytes is None:
        return f"the kernel killed {processes} of {node_name}: its machine ran out of memory"
    return (
        f"the kernel killed {processes} of {node_name}, which may use"
        f" {format_bytes(limit_bytes)} of memory (cluster.node.memory)"
    )


def log_tails(host: DockerHost, lines: int) -> dict[str, str]:
    """The last *lines* of each log of one node's daemons, by file name; safe to print."""
    engine, tails = host.engine, dict[str, str]()
    try:
        with engine.translate_errors(f"logs of {host.name}"):
            pieces, _ = engine.client.api.get_archive(host.container, plan.LOGS)
            with archives.plain_files(pieces, host.name, _LIMITS) as files:
                for file in files:
                    last_bytes = b""
                    while piece := file.stream.read(_CHUNK):
                        last_bytes = (last_bytes + piece)[-_LINE_BYTES * lines :]
                    last_lines = last_bytes.decode(errors="replace").splitlines()[-lines:]
                    tails[PurePosixPath(file.name).name] = printable("\n".join(last_lines))
        state = state_of(engine, host.container)
    except EngineError as error:
        if error.status == 404:
            return {}
        raise
    if state != "it runs":
        return {log: f"{text}\n[{host.name}: {state}]".lstrip() for log, text in tails.items()}
    return tails


def describe_death(log_text: str, daemon: Daemon, death: Death | None) -> str:
    """The end of a daemon's log, *text*, and how the daemon has ended, if it has."""
    if death is None:
        return log_text
    how = f"signal {-death.status}" if death.status < 0 else f"status {death.status}"
    why = ": its node ran out of the memory that it may use (OOMKilled)" if death.oom else ""
    return f"{log_text}\n[{daemon.name} has ended with {how}{why}]".lstrip()


def copy_container_logs(host: DockerHost, application: str, into: Path) -> list[Path]:
    """Copy logs of an application's containers to ``into/container/file``; none where none ran."""
    folder = f"{host.folder}/userlogs/{application}"
    wanted = re.compile(f"{re.escape(application)}/({CONTAINER.pattern}/{LOG.pattern})", re.ASCII)
    try:
        with host.engine.translate_errors(f"container logs of {host.name}"):
            pieces, _ = host.engine.client.api.get_archive(host.container, folder)
            return archives.unpack(pieces, wanted, into, f"{host.name}: {folder}", _LIMITS)
    except EngineError as error:
        if error.status == 404:
            return []
        raise


def copy_thread_dumps(host: DockerHost, into: Path) -> list[Path]:
    """Have the JVMs of one node dump their threads, and copy that to *into*."""
    folder = f"{host.folder}/threads"
    argv = [*plan.AGENT_COMMAND, "dump", plan.PIDS, folder]
    if host.run(argv, _DUMP_LIMIT_S).status != 0:
        return []
    wanted = re.compile(r"threads/([A-Za-z0-9][A-Za-z0-9._-]{0,199}\.txt)", re.ASCII)
    with host.engine.translate_errors(f"thread dumps of {host.name}"):
        pieces, _ = host.engine.client.api.get_archive(host.container, folder)
        return archives.unpack(pieces, wanted, into, f"{host.name}: {folder}", _LIMITS)
