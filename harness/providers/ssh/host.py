"""
A host that is reached by SSH.

The one place where an argument vector becomes a line for a shell, quoted: SSH carries nothing else.
"""

from __future__ import annotations

import math
import re
import shlex
import stat
import subprocess

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from harness.errors import ClusterError
from harness.providers.host import Completed, Host, timeout_error
from harness.providers.ssh.connection import Connection, deadline
from harness.providers.ssh.running import KILL_GROUP, MARK, UNWATCHED, WATCHED, SshRunning

MOST_OUTPUT = 2**26  # bytes that `run` keeps
MOST_LOG = 2**30  # bytes that `start` copies
MOST_FILE = 2**34  # bytes that `get` copies
_PIECE = 2**20
_KILL_S = 10.0
_GRACE_S = 10.0


@dataclass(frozen=True, slots=True)
class SshHost(Host):
    """A node of a cluster, one `Connection` away; its *folder* is an absolute path there."""

    connection: Connection
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def where(self) -> str:
        """The host, for errors."""
        return f"{self.name} ({self.connection.where})"

    def run(self, argv: Sequence[str], timeout: float = 60.0, stdin: bytes = b"") -> Completed:
        """Run a command to its end; one that writes more than `MOST_OUTPUT` is stopped."""
        limit = ["timeout", "--foreground", "-s", "KILL", f"{math.ceil(timeout + _GRACE_S)}"]
        running = self._start(UNWATCHED, [*limit, *self._in_environment(argv)])
        completed = running.communicate(stdin, timeout, MOST_OUTPUT)
        if completed is None:
            raise timeout_error(self.name, argv, timeout)
        output, errors = (stream.decode(errors="replace") for stream in completed[:2])
        return Completed(tuple(argv), completed[2], output, errors)

    def start(self, argv: Sequence[str], log: Path) -> SshRunning:
        """Start a command without input whose output goes to *log*, a file of this machine."""
        return self._start(WATCHED, self._in_environment(argv)).into(log, MOST_LOG)

    def open(self, argv: Sequence[str]) -> SshRunning:
        """Start a command whose standard input, output and errors are pipes of ours."""
        return self._start(WATCHED, self._in_environment(argv)).with_pipes()

    def put(self, source: Path, target: str) -> None:
        """Copy a file of this machine to *target* on the host (relative: to its own folder)."""
        remote_path = target if target.startswith("/") else f"{self.folder}/{target}"
        remedy = "check the path, its owner and the free space on its disk"
        with self.connection.open_files() as files:
            try:
                with self.connection.errors_as(f"cannot write {remote_path}", remedy, self.where):
                    files.put(str(source), remote_path)
            except ClusterError as error:  # SFTP has no word for a full disk
                free_kib = ""
                with suppress(ClusterError, IndexError):
                    df_output = self.run(["df", "-Pk", remote_path.rpartition("/")[0] or "/"], 10)
                    free_kib = df_output.out.splitlines()[-1].split()[3]
                if re.fullmatch(r"\d{1,3}", free_kib, re.ASCII):
                    what = f"{error.what}; the disk is full ({free_kib} KiB free)"
                    raise ClusterError(what, where=error.where, fix=error.fix) from error
                raise

    def get(self, source: str, target: Path) -> None:
        """Copy a file of the host (relative: of its own folder) to *target*; no folder, no pipe."""
        remote_path = source if source.startswith("/") else f"{self.folder}/{source}"
        remedy = "check the path and its owner"
        with (
            self.connection.open_files() as files,
            self.connection.errors_as(f"cannot read {remote_path}", remedy, self.where),
        ):
            attributes = files.stat(remote_path)
            if not stat.S_ISREG(attributes.st_mode):
                raise OSError(f"{remote_path} is not a plain file")
            if attributes.st_size > MOST_FILE:
                size = attributes.st_size
                raise OSError(f"{remote_path} has {size} bytes, more than {MOST_FILE}")
            with files.open(remote_path, "rb") as file, target.open("wb") as copy:
                file.prefetch(attributes.st_size)
                remaining_bytes = attributes.st_size  # what the host sends beyond it is not taken
                while remaining_bytes > 0 and (content := file.read(min(remaining_bytes, _PIECE))):
                    copy.write(content)
                    remaining_bytes -= len(content)

    def _in_environment(self, argv: Sequence[str]) -> list[str]:
        return ["env", *(f"{name}={value}" for name, value in self.environment.items()), *argv]

    def _start(self, script: str, words: Sequence[str]) -> SshRunning:
        """Start a script of `harness.providers.ssh.running` with its *words*."""
        command = ["sh", "-c", script, "sh", MARK.decode(), *words]
        channel = self.connection.open_channel()
        remedy = "see whether the host is up: ssh to it"
        with self.connection.errors_as("runs no command", remedy, self.where), deadline(channel):
            channel.exec_command(f"exec {shlex.join(command)}")
        return SshRunning(channel, self.where, self._kill_group)

    def _kill_group(self, group: int) -> None:
        with suppress(subprocess.TimeoutExpired):
            self._start(KILL_GROUP, [str(group)]).wait(_KILL_S)
