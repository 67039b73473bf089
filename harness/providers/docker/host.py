"""
A node that is a container: commands, and files as archives, through the engine alone.

A command runs on a leash (`harness.node.wrapper`): the engine cannot kill what it has
started in a container, but a command whose connection ends is ended by its leash.
"""

from __future__ import annotations

import os
import subprocess
import time

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any

from harness.errors import ClusterError
from harness.providers.docker import archive as archives
from harness.providers.docker.engine import Engine, EngineError
from harness.providers.docker.stream import STDERR, STDOUT, FileSink, MemorySink, Pump, Sink
from harness.providers.host import Completed, timed_out

AGENT = "/cluster/node.pyz"
PYTHON = ("python3", "-I", "-S")
_OUTPUT_LIMIT = 64 * 2**20
_END_LIMIT_S = 10.0
_SIGNALS = range(129, 128 + 65)


class DockerRunning:
    """A command in a container, as `harness.providers.host.Running` has it."""

    def __init__(
        self, engine: Engine, exec_id: str, pump: Pump, pipes: Sequence[IO[bytes] | None], told: str
    ) -> None:
        self.stdin, self.stdout, self.stderr = pipes
        self.returncode: int | None = None
        self._engine, self._exec_id, self._pump, self._told = engine, exec_id, pump, told
        pump.start()

    def poll(self) -> int | None:
        """Status of the command, `None` while it runs; `ClusterError` where its engine is lost."""
        return None if self._pump.is_alive() else self._ended()

    def wait(self, timeout: float | None = None) -> int:
        """Status of the command when it has ended."""
        self._pump.join(timeout)
        if self._pump.is_alive():
            raise subprocess.TimeoutExpired(self._told, timeout or 0.0)
        return self._ended()

    def kill(self) -> None:
        """End the command with all of its process group."""
        self._pump.stop()

    def _ended(self) -> int:
        """What the engine says of a command whose connection has ended."""
        if self.returncode is None:
            if self._pump.error is not None:
                endless = isinstance(self._pump.error, OverflowError)
                raise ClusterError(
                    f"what a command says cannot be kept: {self._pump.error}",
                    where=self._told,
                    fix="look at the node" if endless else "make room on this machine's disk",
                ) from self._pump.error
            self.returncode = _meaning(self._inspected())
        return self.returncode

    def _inspected(self) -> int | None:
        deadline = time.monotonic() + _END_LIMIT_S
        while True:
            with self._engine.asked(self._told):
                facts = self._engine.client.api.exec_inspect(self._exec_id)
            if not facts["Running"]:
                status: int | None = facts["ExitCode"]
                return status
            if time.monotonic() > deadline:
                raise ClusterError(
                    f"a command has not ended {_END_LIMIT_S:g} s after its connection",
                    where=self._told,
                    fix="harness cluster down; harness cluster up",
                )
            time.sleep(0.01)


def _meaning(status: int | None) -> int:
    """The engine's exit status in Popen's way; without one the whole container was killed."""
    if status is None:
        return -9
    return 128 - status if status in _SIGNALS else status


@dataclass(frozen=True, slots=True)
class DockerHost:
    """A node in a container; *environment* is that of its JVMs, *folder* its own."""

    name: str
    address: str
    folder: str
    container: str
    engine: Engine
    environment: Mapping[str, str]

    def run(
        self,
        argv: Sequence[str],
        timeout: float = 60.0,
        input: bytes | None = None,  # noqa: A002
    ) -> Completed:
        """Run a command to its end; `HostTimeoutError` when it takes longer than *timeout* s."""
        out, err = MemorySink(_OUTPUT_LIMIT), MemorySink(_OUTPUT_LIMIT)
        running = self._begin(argv, {STDOUT: out, STDERR: err}, input or b"")
        try:
            status = running.wait(timeout)
        except subprocess.TimeoutExpired as error:
            raise timed_out(self.name, argv, timeout) from error
        finally:
            running.kill()
        text = (bytes(sink.content).decode(errors="replace") for sink in (out, err))
        return Completed(tuple(argv), status, *text)

    def start(self, argv: Sequence[str], log: Path) -> DockerRunning:
        """Start a command without input whose output goes to *log*."""
        sink = FileSink(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644))
        return self._begin(argv, {STDOUT: sink, STDERR: sink}, b"")

    def open(self, argv: Sequence[str]) -> DockerRunning:
        """Start a command whose standard input, output and errors are pipes of ours."""
        feed, stdin = os.pipe()
        (stdout, out), (stderr, err) = os.pipe(), os.pipe()
        pipes = (
            os.fdopen(stdin, "wb", 2**20), os.fdopen(stdout, "rb", 2**20), os.fdopen(stderr, "rb"),
        )  # fmt: skip
        return self._begin(argv, {STDOUT: FileSink(out), STDERR: FileSink(err)}, feed, pipes)

    def _begin(
        self,
        argv: Sequence[str],
        sinks: Mapping[int, Sink],
        feed: int | bytes,
        pipes: Sequence[IO[bytes] | None] = (None, None, None),
    ) -> DockerRunning:
        """Start *argv* on a leash, its streams carried; where that fails nothing stays open."""
        told, api = f"{self.name}: {' '.join(argv)[:200]}", self.engine.client.api
        # the engine reads two streams, and the order between them is lost
        streams = "one" if sinks[STDOUT] is sinks[STDERR] else "two"
        try:
            with self.engine.asked(told):
                made = api.exec_create(
                    self.container, [*PYTHON, AGENT, "exec", streams, *argv],
                    stdin=True, environment=dict(self.environment),
                )  # fmt: skip
                held = api.exec_start(made["Id"], socket=True)
        except ClusterError as error:
            _close(sinks, feed, pipes)
            raise self._explained(error) from error
        # the client gives a file around the socket, or the socket itself; the answer holds both
        answer = [r for r in (getattr(held, "_response", None),) if r is not None]
        pump = Pump(getattr(held, "_sock", held), sinks, feed, holding=[*answer, held])
        return DockerRunning(self.engine, made["Id"], pump, pipes, told)

    def _explained(self, error: ClusterError) -> ClusterError:
        """The error of a command that was not started, with what has become of its container."""
        if isinstance(error, EngineError) and error.status == 409:
            return ClusterError(
                f"{self.name} does not run: {state_of(self.engine, self.container)}",
                where=error.where,
                fix="harness cluster down; harness cluster up",
            )
        return error

    def put(self, source: Path, target: str) -> None:
        """Copy a file of this machine to the node (relative: into its own folder)."""
        place = PurePosixPath(self.folder, target)
        with source.open("rb") as stream:
            size, mode = os.fstat(stream.fileno()).st_size, os.fstat(stream.fileno()).st_mode
            pieces = archives.packed_file(place.name, stream, size, executable=bool(mode & 0o100))
            with self.engine.asked(f"{self.name}: writing {place}"):
                self.engine.client.api.put_archive(self.container, str(place.parent), pieces)

    def get(self, source: str, target: Path) -> None:
        """Copy a file of the node (relative: of its own folder) to *target*."""
        place = str(PurePosixPath(self.folder, source))
        with self.engine.asked(f"{self.name}: reading {place}"):
            pieces, _ = self.engine.client.api.get_archive(self.container, place)
            archives.unpack_file(pieces, target, f"{self.name}: {place}")


def state_of(engine: Engine, container: str) -> str:
    """What has become of a container, for people: *out of memory* is said where it was that."""
    with engine.asked("state of a container"):
        state = engine.client.api.inspect_container(container)["State"]
    if state["OOMKilled"]:
        return "it ran out of the memory that it may use (OOMKilled)"
    if state["Running"]:
        return "it runs"
    return f"its container has ended with status {state['ExitCode']}"


def _close(sinks: Mapping[int, Sink], feed: int | bytes, pipes: Sequence[Any]) -> None:
    for sink in {id(s): s for s in sinks.values()}.values():
        sink.close()
    if isinstance(feed, int):
        os.close(feed)
    for pipe in pipes:
        if pipe is not None:
            pipe.close()
