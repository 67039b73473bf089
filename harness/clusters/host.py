"""A host, one node of a cluster, which is foreign: ids, outputs and waits are bounded here."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import threading
import time

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Protocol, TypeVar

from harness.base.errors import ClusterError
from harness.base.text import excerpt, printable

# Ids that a cluster gives become parts of paths and addresses, so no other text may.
CONTAINER = re.compile(r"container_[0-9e_]{1,80}", re.ASCII)
LOG = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,120}", re.ASCII)
_APPLICATION = re.compile(r"application_\d{1,20}_\d{1,10}", re.ASCII)
_BYTES_PER_LINE = 400  # of a log whose last lines are shown
MOST_OUTPUT = 2**26  # bytes of each stream of a command that is run to its end
_MOST_AT_ONCE = 32
LOOK_S = 20.0  # of a command that reads a little
TRANSFER_S = 120.0  # of a file that is put

_T = TypeVar("_T")
_R = TypeVar("_R")


@dataclass(frozen=True, slots=True)
class Completed:
    """A command that has ended: its status (negative: the signal), what it wrote."""

    argv: tuple[str, ...]
    status: int
    out: str
    err: str


class HostTimeoutError(ClusterError):
    """A command on a host took longer than it may."""


class Running(Protocol):
    """
    A command that was started on a host, as `subprocess.Popen` is one.

    Its streams are `None` where it was started with a log; *returncode* is its status as the last
    `poll` or `wait` found it (negative: the signal).
    """

    stdin: IO[bytes] | None
    stdout: IO[bytes] | None
    stderr: IO[bytes] | None
    returncode: int | None

    def poll(self) -> int | None:
        """Status of the command, `None` while it runs."""

    def wait(self, timeout: float | None = None) -> int:
        """Status of the command when it has ended; `subprocess.TimeoutExpired` after *timeout*."""

    def kill(self) -> None:
        """End it by SIGKILL, there too, with its process group; one that has ended is fine."""


@dataclass(frozen=True, slots=True)
class Host(ABC):
    """
    A node: its *name* in the cluster, its *address* as its neighbours know it, its own *folder*.

    Daemons write in that folder, and relative targets lie there.  Commands are argument vectors,
    never shell strings; they run with the environment of the node's JVMs, in process groups that a
    Ctrl-C on our terminal does not reach.  `ClusterError` where the host cannot be reached.
    """

    name: str
    address: str
    folder: str

    def run(self, argv: Sequence[str], timeout: float = 60.0, stdin: bytes = b"") -> Completed:
        """Run a command to its end; `HostTimeoutError` when it takes longer than *timeout* s."""
        return run_to_end(self.name, self.open(argv), argv, timeout, stdin)

    @abstractmethod
    def start(self, argv: Sequence[str], log: Path) -> Running:
        """Start a command without input whose output goes to *log*, a file of this machine."""

    @abstractmethod
    def open(self, argv: Sequence[str]) -> Running:
        """Start a command whose standard input, output and errors are pipes of ours."""

    @property
    def where(self) -> str:
        """The host, for errors."""
        return self.name

    def put(self, source: Path, target: str) -> None:
        """Copy a file of this machine to *target* on the host (relative: to its own folder)."""
        path = str(PurePosixPath(self.folder, target))
        argv = ["sh", "-c", 'cat > "$1"', "put", path]
        completed = self.run(argv, TRANSFER_S, source.read_bytes())
        if completed.status:
            lines = completed.err.strip().splitlines() or ["no reason"]
            raise ClusterError(
                f"the host cannot write {excerpt(path, 400)}: {excerpt(lines[-1], 300)}",
                where=self.where,
                fix="check the path, its owner and the free space on its disk",
            )


class Group(subprocess.Popen[bytes]):
    """A process of this machine that leads a group of its own; it is killed with all of it."""

    def kill(self) -> None:
        """End the whole group."""
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
            self.wait()


@dataclass(frozen=True, slots=True)
class LocalHost(Host):
    """
    A node that sees our files.

    *wrap* makes of a command one that runs on the node; it raises `ClusterError` without the node.
    """

    wrap: Callable[[Sequence[str]], list[str]]
    environment: Mapping[str, str]

    def start(self, argv: Sequence[str], log: Path) -> Group:
        """Start a command whose output goes to *log*."""
        with log.open("ab") as stream:
            return Group(
                self.wrap(argv),
                env=self.environment,
                process_group=0,
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=stream,
            )

    def open(self, argv: Sequence[str]) -> Group:
        """Start a command whose standard input, output and errors are pipes of ours."""
        return Group(
            self.wrap(argv),
            env=self.environment,
            process_group=0,
            bufsize=2**20,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )


@contextmanager
def time_limit(limit_s: float, end: Callable[[], None]) -> Iterator[None]:
    """Call *end* when the block takes longer than *limit_s*: some waits have no limit at all."""
    timer = threading.Timer(limit_s, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


class IdleTimeout:
    """
    Kills a command when one wait for it takes too long; time between waits does not count.

    `waiting` is put around each step that reads from the command or writes to it.  *killed* says
    afterwards that it came to that.
    """

    def __init__(self, command: Running, limit_s: float) -> None:
        self.killed = False
        self._command = command
        self._limit_s = limit_s

    def waiting(self) -> AbstractContextManager[None]:
        """Count the time of the block as one wait."""
        return time_limit(self._limit_s, self._kill)

    def _kill(self) -> None:
        self.killed = True
        self._command.kill()


def at_once(
    work: Callable[[_T], _R], items: Sequence[_T], *, most_threads: int = _MOST_AT_ONCE
) -> list[_R]:
    """
    The results of *work* on all *items*, in their order; threads do so many of them at once.

    All are tried.  Where several end with a `ClusterError`, one error has the reasons of all.
    """
    with ThreadPoolExecutor(min(most_threads, max(1, len(items)))) as pool:
        futures = [pool.submit(work, item) for item in items]
    raised = [future.exception() for future in futures]
    errors = [error for error in raised if isinstance(error, ClusterError)]
    if len(errors) > 1:
        raise ClusterError(
            "; ".join(f"{error.what} ({error.where})" for error in errors),
            where=f"{len(errors)} hosts of {len(items)}",
            fix="; ".join(dict.fromkeys(error.fix for error in errors)),
        )
    return [future.result() for future in futures]


def end_command(command: Running) -> None:
    """Kill a command, close its pipes, and wait for its end."""
    try:
        command.kill()
    finally:
        _close_pipes(command)
    command.wait()


def _close_pipes(command: Running) -> None:
    for pipe in (command.stdin, command.stdout, command.stderr):
        if pipe is not None:
            with suppress(BrokenPipeError):  # what was still to be written has no reader any more
                pipe.close()


def run_to_end(
    host_name: str, command: Running, argv: Sequence[str], timeout: float, stdin: bytes
) -> Completed:
    """
    What *command*, which was opened for *argv*, writes and ends with; it is over afterwards.

    `HostTimeoutError` when it takes more than *timeout* seconds; `ClusterError` for one that writes
    more than `MOST_OUTPUT`.
    """
    pipe = command.stdin
    outputs = (command.stdout, command.stderr)
    end = time.monotonic() + timeout
    where = f"{host_name}: {printable(' '.join(argv))[:200]}"

    def send() -> None:
        assert pipe is not None
        with suppress(BrokenPipeError), pipe:  # it may read nothing
            pipe.write(stdin)

    def read(stream: IO[bytes] | None) -> bytes:
        assert stream is not None
        content = stream.read(MOST_OUTPUT + 1)
        if len(content) > MOST_OUTPUT:
            stream.close()  # what carries both streams would wait for us
            raise ClusterError(
                f"the command has written more than {MOST_OUTPUT} bytes, and was stopped",
                where=where,
                fix="check the host's programs: they do not work properly",
            )
        return content

    try:
        with ThreadPoolExecutor(3) as pool:
            try:
                pool.submit(send)
                reading = [pool.submit(read, stream) for stream in outputs]
                finished, pending = wait_for(reading, timeout, FIRST_EXCEPTION)
                for future in finished:
                    future.result()
                if pending:
                    raise subprocess.TimeoutExpired(argv, timeout)
                status = command.wait(max(1.0, end - time.monotonic()))
            except subprocess.TimeoutExpired as error:
                raise HostTimeoutError(
                    f"{argv[0]} has not ended after {timeout:g} s",
                    where=where,
                    fix="look at the node's daemons: harness cluster logs",
                ) from error
            finally:
                command.kill()  # threads that still wait end with it
    finally:
        _close_pipes(command)
    contents = [future.result() for future in reading]
    return Completed(tuple(argv), status, *(text.decode(errors="replace") for text in contents))


def application_name(text: str) -> str:
    """*text*, if it is the id of an application."""
    if not _APPLICATION.fullmatch(text):
        raise ClusterError(
            f"{text!r} is not the id of an application",
            where="logs of a job's containers",
            fix="an id looks like application_1700000000000_0001",
        )
    return text


def last_lines(file: Path, lines: int = 20) -> str:
    """The end of a log, without characters that would move a terminal's cursor."""
    try:
        with file.open("rb") as stream:
            stream.seek(max(0, stream.seek(0, os.SEEK_END) - _BYTES_PER_LINE * lines))
            text = stream.read().decode(errors="replace")
    except OSError:
        return ""
    return printable("\n".join(text.splitlines()[-lines:]))


def log_tail(host: Host, log: str, lines: int) -> str:
    """The last *lines* of a log on *host*, safe to print; or why it cannot be read."""
    try:
        argv = ["tail", "-c", str(_BYTES_PER_LINE * lines), log]
        output = host.run(argv, LOOK_S).out
    except ClusterError as error:
        output = error.what
    return printable("\n".join(output.splitlines()[-lines:]))


def system_reason(error: BaseException) -> str:
    """The system's own reason below a library's error; the library's where there is none."""
    cause: BaseException | None = error
    reason: object = error
    while cause is not None:
        if isinstance(cause, OSError) and (cause.strerror or type(cause) is TimeoutError):
            reason = cause.strerror or cause
        cause = cause.__cause__ or cause.__context__
    return str(reason) or type(error).__name__
