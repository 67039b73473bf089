"""
A node that is a container: commands, files as archives, and what it leaves, by the engine alone.

An engine cannot kill what it has started in a container.  So each command runs within an exec
wrapper (`harness.clusters.node.wrapper`), which ends it when the connection to it ends.
"""

from __future__ import annotations

import io
import os
import re
import select
import signal
import socket
import ssl
import subprocess
import threading
import time

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import IO, Any

from harness.base.errors import ClusterError
from harness.clusters.docker.engine import Engine, EngineError
from harness.clusters.host import Host
from harness.clusters.node.supervise import MEMORY_EVENTS

BASE = "/cluster"  # all that a node is given and writes lies in it
LOGS = f"{BASE}/logs"
PIDS = f"{BASE}/daemons"
AGENT = f"{BASE}/node.pyz"
AGENT_COMMAND = ("python3", "-I", "-S", AGENT)
USER = 65_525  # the plain user of the image, who owns what nodes are given
STDOUT = 1
STDERR = 2  # streams in the engine's frames
_CHUNK = 2**16
_BUFFER = 2**20
_FRAME_HEADER = 8  # bytes: the stream's number, three zeros, the length of what follows
_NOT_READY = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)
_END_LIMIT_S = 10.0
_KILL_LIMIT_S = 1.0
_SIGNALS = range(129, 128 + 65)
_KILLS = re.compile(r"^oom_kill (\d{1,18})$", re.MULTILINE)


class Connection:
    """A connection of the engine that one thread reads and another writes."""

    def __init__(self, connection: socket.socket, *owners: Any) -> None:
        """*owners* are what the client has made around the socket; they are closed with it."""
        self._socket = connection
        self._owners = owners
        self._guard = threading.Lock()  # a connection with TLS bears one thread at a time
        connection.settimeout(0.0)

    def frames(self) -> Iterator[tuple[int, bytes]]:
        """Pieces of the command's streams, each with its stream's number, until both end."""
        # not by `docker.utils.socket`, which waits for ever for what TLS has decrypted already
        waiting = bytearray()
        stream = missing = 0  # of the frame that is being read
        while True:
            try:
                piece = self._retry(partial(self._socket.recv, _CHUNK), select.POLLIN)
            except ConnectionResetError:  # it ended with input unread; its status is what counts
                return
            if not piece:
                return
            waiting += piece
            while (missing and waiting) or len(waiting) >= _FRAME_HEADER:
                if missing:
                    content = bytes(waiting[:missing])
                    del waiting[: len(content)]
                    missing -= len(content)
                    yield stream, content
                else:
                    stream = waiting[0]
                    missing = int.from_bytes(waiting[4:_FRAME_HEADER], "big")
                    del waiting[:_FRAME_HEADER]

    def send(self, content: bytes) -> None:
        """Send all of *content*; `OSError` where the other side is gone."""
        remaining = memoryview(content)
        while remaining:
            sent = self._retry(partial(self._socket.send, remaining[:_CHUNK]), select.POLLOUT)
            remaining = remaining[sent:]

    def shut_down(self) -> None:
        """End it in both directions, whatever is on its way: the exec wrapper kills its command."""
        with self._guard, suppress(OSError):
            # not that of a socket with TLS, which would read encrypted bytes as plain ones then
            socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def close(self) -> None:
        """Shut it down and let it go."""
        self.shut_down()
        for resource in (*self._owners, self._socket):
            with suppress(OSError, ValueError):
                resource.close()

    def _retry(self, action: Callable[[], Any], event: int) -> Any:
        """The result of *action* once the socket is ready for it."""
        while True:
            with self._guard, suppress(*_NOT_READY):
                return action()
            poll = select.poll()
            poll.register(self._socket, event)
            poll.poll()


class DockerRunning:
    """A command in a container (`harness.clusters.host.Running`); threads carry its streams."""

    def __init__(
        self,
        engine: Engine,
        exec_id: str,
        connection: Connection,
        *,
        outputs: Mapping[int, Any],
        source: Any,
        label: str,
        pipes: Sequence[IO[bytes] | None] = (None, None, None),
    ) -> None:
        """*outputs* (by stream) and *source* are closed in the end."""
        self.stdin, self.stdout, self.stderr = pipes
        self.returncode: int | None = None
        self._engine = engine
        self._exec_id = exec_id
        self._label = label
        self._connection = connection
        self._outputs = dict(outputs)
        self._source = source
        self._is_killed = False
        self._error: Exception | None = None
        self._reader = threading.Thread(target=self._read, daemon=True, name=f"read {label}")
        self._writer = threading.Thread(target=self._write, daemon=True, name=f"write {label}")
        self._reader.start()
        self._writer.start()

    def poll(self) -> int | None:
        """Status of the command, `None` while it runs; `ClusterError` where its engine is lost."""
        try:
            return self.wait(0.0)
        except subprocess.TimeoutExpired:
            return None

    def wait(self, timeout: float | None = None) -> int:
        """Status of the command when it has ended and all its output has arrived."""
        if self.returncode is None:
            # once it is killed, the thread may hang at a pipe that nobody reads any more
            self._reader.join(_KILL_LIMIT_S if self._is_killed else timeout)
            if self._reader.is_alive() and not self._is_killed:
                raise subprocess.TimeoutExpired(self._label, timeout or 0.0)
            self.returncode = self._status()
        return self.returncode

    def kill(self) -> None:
        """End the command with all of its process group: its wrapper does, without a connection."""
        self._is_killed = True
        self._connection.shut_down()

    def _status(self) -> int:
        """Status of a command whose connection has ended, in the manner of `subprocess`."""
        if (error := self._error) is not None:
            raise ClusterError(
                f"the output of a command cannot be kept: {error}",
                where=self._label,
                fix="free some space on this machine's disk",
            ) from error
        deadline = time.monotonic() + _END_LIMIT_S
        while True:
            with self._engine.translate_errors(self._label):
                facts = self._engine.client.api.exec_inspect(self._exec_id)
            if not facts["Running"]:
                break
            if time.monotonic() > deadline:
                raise ClusterError(
                    f"a command has not ended {_END_LIMIT_S:g} s after its connection",
                    where=self._label,
                    fix="harness cluster down; harness cluster up",
                )
            time.sleep(0.01)
        status: int | None = facts["ExitCode"]
        if status is None:  # the whole container was killed
            return -signal.SIGKILL
        return 128 - status if status in _SIGNALS else status

    def _read(self) -> None:
        outputs = dict(self._outputs)
        try:
            for stream, content in self._connection.frames():
                remaining = memoryview(content)
                try:
                    while remaining and stream in outputs:
                        remaining = remaining[outputs[stream].write(remaining) :]
                except BrokenPipeError:  # nobody reads this stream any more; the other one counts
                    del outputs[stream]
        except OSError as error:
            self._error = None if self._is_killed else error
        finally:
            self._connection.close()
            for output in set(self._outputs.values()):
                output.close()

    def _write(self) -> None:
        # where the command has ended, or closed its input, its status shows whether that is well
        with suppress(OSError, ValueError), self._source:
            pieces = chain([b""], iter(lambda: self._source.read(_CHUNK), b""), [b""])
            for content in pieces:  # as the exec wrapper reads them
                self._connection.send(len(content).to_bytes(4, "big") + content)


@dataclass(frozen=True, slots=True)
class DockerHost(Host):
    """A node in a container; *environment* is that of its JVMs."""

    container: str
    engine: Engine
    environment: Mapping[str, str]

    def start(self, argv: Sequence[str], log: Path) -> DockerRunning:
        """Start a command without input whose output goes to *log*."""
        stream = log.open("ab", buffering=0)
        return self._start(argv, {STDOUT: stream, STDERR: stream}, io.BytesIO())

    def open(self, argv: Sequence[str]) -> DockerRunning:
        """Start a command whose standard input, output and errors are pipes of ours."""
        source, stdin = os.pipe()
        stdout, output = os.pipe()
        stderr, errors = os.pipe()
        pipes = [os.fdopen(stdin, "wb", _BUFFER)]
        pipes += [os.fdopen(stdout, "rb", _BUFFER), os.fdopen(stderr, "rb")]
        outputs = {STDOUT: os.fdopen(output, "wb", 0), STDERR: os.fdopen(errors, "wb", 0)}
        return self._start(argv, outputs, os.fdopen(source, "rb", 0), pipes)

    def _start(
        self,
        argv: Sequence[str],
        outputs: Mapping[int, Any],
        source: Any,
        pipes: Sequence[IO[bytes] | None] = (None, None, None),
    ) -> DockerRunning:
        """Start *argv* with its streams carried; where that fails nothing stays open."""
        command_label = f"{self.name}: {' '.join(argv)[:200]}"
        client = self.engine.client.api
        # the engine reads two streams, and the order between them is lost
        streams = "one" if outputs[STDOUT] is outputs[STDERR] else "two"
        try:
            with self.engine.translate_errors(command_label):
                command = client.exec_create(
                    self.container,
                    [*AGENT_COMMAND, "exec", streams, *argv],
                    stdin=True,
                    environment=dict(self.environment),
                )
                answer = client.exec_start(command["Id"], socket=True)
        except ClusterError as error:
            for resource in (*outputs.values(), source, *pipes):
                if resource is not None:
                    resource.close()
            if isinstance(error, EngineError) and error.status in (404, 409):
                raise ClusterError(
                    f"{self.name} does not run: {state_of(self.engine, self.container)}",
                    where=error.where,
                    fix="harness cluster down; harness cluster up",
                ) from error
            raise
        # the client gives a file around the socket, or the socket itself; the answer holds both
        response = getattr(answer, "_response", None)
        owners = [answer] if response is None else [response, answer]
        connection = Connection(getattr(answer, "_sock", answer), *owners)
        return DockerRunning(
            self.engine,
            command["Id"],
            connection,
            outputs=outputs,
            source=source,
            label=command_label,
            pipes=pipes,
        )


def state_of(engine: Engine, container: str) -> str:
    """What has become of a container, for people; *out of memory* where that ended it."""
    try:
        with engine.translate_errors("state of a container"):
            state = engine.client.api.inspect_container(container)["State"]
    except EngineError as error:
        if error.status == 404:
            return "its container has ended, and is removed"
        raise
    if state["OOMKilled"]:
        return "it ran out of the memory that it may use (OOMKilled)"
    if state["Running"]:
        return "it runs"
    return f"its container has ended with status {state['ExitCode']}"


def memory_kills(host: DockerHost) -> int:
    """How many processes of a node the kernel has killed for want of memory, since its start."""
    try:
        events = host.run(["cat", *MEMORY_EVENTS]).out  # one of the files is there
    except ClusterError:  # its first process may have been the one; the count is gone with it
        return int("OOMKilled" in state_of(host.engine, host.container))
    return sum(map(int, _KILLS.findall(events)))
