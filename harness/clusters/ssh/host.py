"""
A host that is reached by SSH, and the commands on it: started by a few lines of shell.

The one place where an argument vector becomes a line for a shell, quoted: SSH carries nothing else.
The lines write a mark to both streams before the command starts: what stands before it is noise of
a login shell.  The mark has the number of the process group, through which all of it is killed.  A
command that goes on after its connection was lost is killed by a watcher beside it, within 2 s.
"""

from __future__ import annotations

import io
import math
import re
import shlex
import subprocess
import threading

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from harness.base.errors import ClusterError
from harness.base.text import excerpt
from harness.clusters.host import Completed, Host, run_to_end
from harness.clusters.ssh.connection import CHANNEL_S, Connection, deadline

if TYPE_CHECKING:
    import paramiko

MOST_LOG = 2**30  # bytes that `start` copies
_KILL_S = 10.0
_GRACE_S = 10.0
MARK = b"-- harness: process group "
_GROUP = re.compile(rb"[1-9][0-9]{0,9}")
_MOST_NOISE = 2**16
_PIPE_PIECE = 2**17

# $1 is the mark.  The watcher has no stream open: the command's end is the channel's end.
_WRITE_MARKS = """printf '%s%s\\n' "$1" $$; printf '%s%s\\n' "$1" $$ >&2; shift\n"""
_WATCH = """(while kill -0 $$ && kill -0 $PPID; do sleep 2; done; kill -0 $PPID || kill -KILL -$$) \
<&- >&- 2>&- &\n"""
_COMMAND = '"$@"\nexit $?'
WATCHED = _WRITE_MARKS + _WATCH + _COMMAND
# For a command that ends itself in any case (`timeout`).
UNWATCHED = _WRITE_MARKS + _COMMAND
# By the shell itself: the program `kill` of procps 4.0.2 reads the group -123 as -1, all processes.
KILL_GROUP = _WRITE_MARKS + 'kill -s KILL -- "-$1"'


@dataclass(frozen=True, slots=True)
class SshHost(Host):
    """
    A node of a cluster, one `Connection` away; its *folder* is an absolute path there.

    Root's connection runs all commands under *account*, which has a group of its own name; files
    are copied by such commands, too.  Without it they run as who connects.
    """

    connection: Connection
    environment: Mapping[str, str] = field(default_factory=dict)
    account: str = ""

    @property
    def where(self) -> str:
        """The host, for errors."""
        return f"{self.name} ({self.connection.where})"

    def run(self, argv: Sequence[str], timeout: float = 60.0, stdin: bytes = b"") -> Completed:
        """Run a command to its end; `HostTimeoutError` when it takes longer than *timeout* s."""
        limit = ["timeout", "--foreground", "-s", "KILL", f"{math.ceil(timeout + _GRACE_S)}"]
        running = self._start(UNWATCHED, [*limit, *self._in_environment(argv)]).with_pipes()
        return run_to_end(self.name, running, argv, timeout, stdin)

    def start(self, argv: Sequence[str], log: Path) -> SshRunning:
        """Start a command without input whose output goes to *log*, a file of this machine."""
        return self._start(WATCHED, self._in_environment(argv)).into(log, MOST_LOG)

    def open(self, argv: Sequence[str]) -> SshRunning:
        """Start a command whose standard input, output and errors are pipes of ours."""
        return self._start(WATCHED, self._in_environment(argv)).with_pipes()

    def _in_environment(self, argv: Sequence[str]) -> list[str]:
        command = ["env", *(f"{name}={value}" for name, value in self.environment.items()), *argv]
        if self.account:
            groups = ["--regid", self.account, "--clear-groups"]
            command = ["setpriv", "--reuid", self.account, *groups, *command]
        return command

    def _start(self, script: str, words: Sequence[str]) -> SshRunning:
        """Start one of the scripts above with its *words*."""
        command = ["sh", "-c", script, "sh", MARK.decode(), *words]
        channel = self.connection.open_channel()
        remedy = "see whether the host is up: ssh to it"
        with self.connection.errors_as("runs no command", remedy, self.where), deadline(channel):
            channel.exec_command(f"exec {shlex.join(command)}")
        return SshRunning(channel, self.where, self._kill_group)

    def _kill_group(self, group: int) -> None:
        with suppress(subprocess.TimeoutExpired):
            self._start(KILL_GROUP, [str(group)]).wait(_KILL_S)


class SshRunning:
    """
    A command that was started on a host (`harness.clusters.host.Running`).

    `ClusterError` from `poll` and `wait` when the connection was lost before the command had ended.
    """

    def __init__(
        self, channel: paramiko.Channel, where: str, kill_group: Callable[[int], None]
    ) -> None:
        """*channel* has been given the command; *kill_group* ends a process group of the host."""
        self.returncode: int | None = None
        self.stdin: IO[bytes] | None = None
        self.stdout: IO[bytes] | None = None
        self.stderr: IO[bytes] | None = None
        self._channel = channel
        self._where = where
        self._kill_group = kill_group
        self._killed = False
        self._copying: threading.Thread | None = None
        with deadline(channel):
            group = self._read_mark(channel.recv)
            self._read_mark(channel.recv_stderr)
        if not _GROUP.fullmatch(group):  # no other number is ever given to `kill`
            raise self._no_command_error(group)
        self._group = int(group)

    def _read_mark(self, receive: Callable[[int], bytes]) -> bytes:
        """The process group that the mark names; nothing behind the mark's line is read."""
        received = bytearray()
        while (start := received.find(MARK)) < 0 or not received.endswith(b"\n"):
            byte = receive(1)
            if not byte or len(received) > _MOST_NOISE:
                raise self._no_command_error(bytes(received))
            received += byte
        return bytes(received[start + len(MARK) : -1])

    def _no_command_error(self, output: bytes) -> ClusterError:
        while not output.strip() and self._channel.recv_stderr_ready():
            output = self._channel.recv_stderr(_PIPE_PIECE)
        self._channel.close()
        return ClusterError(
            f"the host runs no command: {excerpt(output[-400:], 400) or 'no answer'}",
            where=self._where,
            fix="see the account's shell: ssh to the host and type sh -c true",
        )

    def with_pipes(self) -> SshRunning:
        """This, with its streams as pipes."""
        channel = self._channel
        where = self._where
        self.stdin = io.BufferedWriter(_Input(channel), _PIPE_PIECE)
        self.stdout = io.BufferedReader(_Output(channel.recv, where), _PIPE_PIECE)
        self.stderr = io.BufferedReader(_Output(channel.recv_stderr, where), _PIPE_PIECE)
        return self

    def into(self, log: Path, most_bytes: int) -> SshRunning:
        """This, with all that it writes copied to *log*; killed when that is too much."""
        stream = log.open("ab", buffering=0)
        self._channel.set_combine_stderr(True)
        self._channel.shutdown_write()

        def copy() -> None:
            remaining_bytes = most_bytes
            with stream:
                while content := self._channel.recv(_PIPE_PIECE):
                    stream.write(content[:remaining_bytes])
                    remaining_bytes -= len(content)
                    if remaining_bytes < 0:
                        stream.write(b"\n-- harness: too much output, the command was stopped\n")
                        self.kill()
                        return

        self._copying = threading.Thread(target=copy, daemon=True, name=f"log of {self._where}")
        self._copying.start()
        return self

    def poll(self) -> int | None:
        """Status, `None` while it runs."""
        if self.returncode is None and self._channel.exit_status_ready():
            self._conclude()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Status at the end; `subprocess.TimeoutExpired` after *timeout* seconds."""
        if self.returncode is None:
            if not self._channel.status_event.wait(timeout):
                raise subprocess.TimeoutExpired(self._where, timeout or 0.0)
            self._conclude()
        assert self.returncode is not None
        return self.returncode

    def kill(self) -> None:
        """End the command with its process group; one that has ended is fine."""
        with suppress(ClusterError):  # lost: then its watcher ends it
            if self.poll() is None:
                self._killed = True
                self._kill_group(self._group)
        self._channel.close()

    def _conclude(self) -> None:
        """Learn the status of a command that has ended; `ClusterError` where it is not known."""
        exit_status = self._channel.exit_status
        transport = self._channel.get_transport()
        if exit_status >= 0:
            # a shell's number for a signal, given as `subprocess` gives it
            self.returncode = 128 - exit_status if 128 < exit_status <= 192 else exit_status
        elif self._killed or (transport is not None and transport.is_active()):
            self.returncode = -9
        else:
            raise _lost_error(self._where)
        if self._copying is not None and self._copying is not threading.current_thread():
            self._copying.join(CHANNEL_S)


def _lost_error(where: str, reason: str = "") -> ClusterError:
    what = f"the connection was lost while a command ran{f': {reason}' if reason else ''}"
    fix = "see whether the host is up and its network works; then repeat"
    return ClusterError(what, where=where, fix=fix)


class _Output(io.RawIOBase):
    """What a command writes, as a stream; `ClusterError` where the connection fails."""

    def __init__(self, receive: Callable[[int], bytes], where: str) -> None:
        self._receive = receive
        self._where = where

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        import paramiko

        try:
            piece = self._receive(len(buffer))
        except (paramiko.SSHException, OSError, EOFError) as error:
            raise _lost_error(self._where, excerpt(error, 200)) from error
        buffer[: len(piece)] = piece
        return len(piece)


class _Input(io.RawIOBase):
    """What a command reads, as a stream that fails as a pipe does."""

    def __init__(self, channel: paramiko.Channel) -> None:
        self._channel = channel

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        import paramiko

        try:
            return int(self._channel.send(bytes(data)))
        except (paramiko.SSHException, OSError, EOFError) as error:
            raise BrokenPipeError(str(error)) from error

    def close(self) -> None:
        if not self.closed:
            with suppress(OSError, EOFError):
                self._channel.shutdown_write()
        super().close()
