"""A host: one node of a cluster, with one door."""

from __future__ import annotations

import os
import re
import shutil
import subprocess

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from harness.errors import ClusterError


@dataclass(frozen=True, slots=True)
class Completed:
    """A command that has ended: its status (negative: the signal), what it wrote."""

    argv: tuple[str, ...]
    status: int
    out: str
    err: str


class Host(Protocol):
    """What every provider's nodes can do; argument vectors, never shell strings."""

    name: str
    address: str

    def run(self, argv: Sequence[str], timeout: float = 60.0) -> Completed:
        """Run a command to its end; `ClusterError` when it takes longer than *timeout* seconds."""
        ...

    def start(self, argv: Sequence[str], log: Path) -> subprocess.Popen[bytes]:
        """Start a command whose output goes to *log*, a file of this machine."""
        ...

    def put(self, source: Path, target: str) -> None:
        """Copy a file of this machine to *target* on the host (relative: to its own folder)."""
        ...

    def get(self, source: str, target: Path) -> None:
        """Copy a file of the host to *target* on this machine."""
        ...


@dataclass(frozen=True, slots=True)
class LocalHost:
    """A node that is a set of namespaces here; it sees this machine's files."""

    name: str
    address: str
    folder: Path
    enter: Callable[[Sequence[str]], list[str]]
    environment: dict[str, str]

    def run(self, argv: Sequence[str], timeout: float = 60.0) -> Completed:
        """Run a command to its end; `ClusterError` when it takes longer than *timeout* seconds."""
        try:
            done = subprocess.run(
                self.enter(argv), check=False, env=self.environment, stdin=subprocess.DEVNULL,
                capture_output=True, timeout=timeout, text=True, errors="replace",
            )  # fmt: skip
        except subprocess.TimeoutExpired as error:
            raise ClusterError(
                f"{argv[0]} has not ended after {timeout:g} s",
                where=f"{self.name}: {' '.join(argv)[:200]}",
                fix=f"look at the node's daemons: harness cluster logs {self.name}",
            ) from error
        return Completed(tuple(argv), done.returncode, done.stdout, done.stderr)

    def start(self, argv: Sequence[str], log: Path) -> subprocess.Popen[bytes]:
        """Start a command, in a process group of its own, whose output goes to *log*."""
        with log.open("ab") as stream:
            return subprocess.Popen(
                self.enter(argv), env=self.environment, stdin=subprocess.DEVNULL,
                stdout=stream, stderr=stream, process_group=0,
            )  # fmt: skip

    def put(self, source: Path, target: str) -> None:
        """Copy a file to the node (relative: into its own folder)."""
        shutil.copyfile(source, self.folder / target)

    def get(self, source: str, target: Path) -> None:
        """Copy a file of the node."""
        shutil.copyfile(self.folder / source, target)


def last_lines(file: Path, lines: int = 20) -> str:
    """The end of a log, without characters that would move a terminal's cursor."""
    try:
        with file.open("rb") as stream:
            stream.seek(max(0, stream.seek(0, os.SEEK_END) - 400 * lines))
            text = stream.read().decode(errors="replace")
    except OSError:
        return ""
    return printable("\n".join(text.splitlines()[-lines:]))


def printable(text: str) -> str:
    """*text* with control characters other than line ends and tabs replaced."""
    return re.sub(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", "\ufffd", text)
