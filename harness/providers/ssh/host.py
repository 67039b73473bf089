"""
A host that is reached by SSH.

The one place where an argument vector becomes a line for a shell, quoted: SSH carries nothing else.
"""

from __future__ import annotations

import math
import shlex
import stat

from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.errors import ClusterError
from harness.providers.host import Completed, printable, timed_out
from harness.providers.ssh.connection import Connection, deadline
from harness.providers.ssh.running import BEGIN, BRIEF, WATCHED, SshRunning

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_OUTPUT = 2**26  # bytes that `run` keeps
MOST_LOG = 2**30  # bytes that `start` copies
MOST_FILE = 2**34  # bytes that `get` copies
_PIECE = 2**20
_KILL_S = 10.0
_GRACE_S = 10.0


@dataclass(frozen=True, slots=True)
class SshHost:
    """
    A node of a cluster, one `Connection` away (`harness.providers.host.Host`).

    *address* is what its neighbours know it by; *folder* its own folder, an absolute path there.
    """

    name: str
    address: str
    folder: str
    connection: Connection
    environment: Mapping[str, str] = field(default_factory=dict)

    def run(
        self,
        argv: Sequence[str],
        timeout: float = 60.0,
        input: bytes | None = None,  # noqa: A002
    ) -> Completed:
        """
        Run a command to its end; `HostTimeoutError` when it takes longer than *timeout* seconds.

        What it writes is bounded (`MOST_OUTPUT`); a command that writes more is stopped.
        """
        limit = ["timeout", "--foreground", "-s", "KILL", f"{math.ceil(timeout + _GRACE_S)}"]
        running = self._begin(BRIEF, [*limit, *self._in_environment(argv)])
        try:
            done = running.communicate(input or b"", timeout, MOST_OUTPUT)
        finally:
            running.kill()
        if done is None:
            raise timed_out(self.name, argv, timeout)
        out, err = (stream.decode(errors="replace") for stream in done[:2])
        return Completed(tuple(argv), done[2], out, err)

    def start(self, argv: Sequence[str], log: Path) -> SshRunning:
        """Start a command without input whose output goes to *log*, a file of this machine."""
        running = self._begin(WATCHED, self._in_environment(argv))
        return running.into(log, MOST_LOG)

    def open(self, argv: Sequence[str]) -> SshRunning:
        """Start a command whose standard input, output and errors are pipes of ours."""
        return self._begin(WATCHED, self._in_environment(argv)).with_pipes()

    def put(self, source: Path, target: str) -> None:
        """Copy a file of this machine to *target* on the host (relative: to its own folder)."""
        path = self._path(target)
        with self._files(f"write {path}") as files:
            files.put(str(source), path)

    def get(self, source: str, target: Path) -> None:
        """Copy a file of the host (relative: of its own folder) to *target*; no folder, no pipe."""
        path = self._path(source)
        with self._files(f"read {path}") as files:
            facts = files.stat(path)
            if not stat.S_ISREG(facts.st_mode):
                raise OSError(f"{path} is no plain file")
            if facts.st_size > MOST_FILE:
                raise OSError(f"{path} has {facts.st_size} bytes, more than {MOST_FILE}")
            with files.open(path, "rb") as file, target.open("wb") as copy:
                file.prefetch(facts.st_size)
                left = facts.st_size  # what the host sends beyond it is not taken
                while left > 0 and (piece := file.read(min(left, _PIECE))):
                    copy.write(piece)
                    left -= len(piece)

    def _path(self, path: str) -> str:
        return path if path.startswith("/") else f"{self.folder}/{path}"

    def _in_environment(self, argv: Sequence[str]) -> list[str]:
        return ["env", *(f"{name}={value}" for name, value in self.environment.items()), *argv]

    def _begin(self, script: str, argv: Sequence[str]) -> SshRunning:
        line = "exec " + shlex.join(["sh", "-c", script, "sh", BEGIN.decode(), *argv])
        channel = self.connection.session()
        where = f"{self.name} ({self.connection.where})"
        try:
            with deadline(channel):
                channel.exec_command(line)
        except (OSError, EOFError, _ssh_error()) as error:
            channel.close()
            raise ClusterError(
                f"the host runs no command: {printable(str(error) or 'no answer')}",
                where=where,
                fix="see whether the host is up: ssh to it",
            ) from error
        return SshRunning(channel, where, self._kill_group)

    def _kill_group(self, group: int) -> None:
        killer = self._begin(BRIEF, ["kill", "-KILL", f"-{group}"])
        killer.communicate(b"", _KILL_S, MOST_OUTPUT)

    @contextmanager
    def _files(self, what: str) -> Iterator[Any]:
        """A transfer of files; what fails in it is told with host, path and free space."""
        files = self.connection.files()
        files.get_channel().settimeout(120)
        try:
            yield files
        except (OSError, EOFError, _ssh_error()) as error:
            raise ClusterError(
                f"cannot {what}: {printable(str(error) or type(error).__name__)}{self._full(what)}",
                where=f"{self.name} ({self.connection.where})",
                fix="look at the path, its owner and the room on its disk",
            ) from error
        finally:
            files.close()

    def _full(self, what: str) -> str:
        """What is left on the disk, where it is little; SFTP has no word for a full disk."""
        verb, _, path = what.partition(" ")
        if verb != "write":
            return ""
        try:
            done = self.run(["df", "-Pk", path.rpartition("/")[0] or "/"], 10)
            fields = done.out.splitlines()[-1].split()
            free = int(fields[3]) * 1024
        except (ClusterError, IndexError, ValueError):
            return ""
        return f"; the disk is full ({free} bytes free)" if free < 2**20 else ""


def _ssh_error() -> type[Exception]:
    import paramiko

    error: type[Exception] = paramiko.SSHException
    return error
