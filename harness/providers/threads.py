"""
Thread dumps: what every JVM of a cluster does, for a job that does not end.

A JVM writes its dump to its standard output when it gets SIGQUIT, as long as it still answers
anything at all.  No other process is started, and nothing is attached: a stuck machine has enough
to do.  A JVM whose standard output is no file cannot be asked.
"""

from __future__ import annotations

import os
import re
import signal
import stat
import time

from collections.abc import Iterable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

LIMIT_S = 3.0
_LAST_LINE = b"JNI global refs"
_MOST_BYTES = 4 * 2**20
_CONTAINER = re.compile(r"/(container_[0-9e_]+)/")


def jvms(pids: Iterable[int], daemons: Mapping[int, str]) -> dict[str, int]:
    """
    JVMs among *pids*, by a name that is good for a file.

    A name is that of *daemons*, or the container's id, or ``client``; a number tells apart what
    would be called the same.
    """
    found: dict[str, int] = {}
    for pid in sorted(pids):
        if _link(pid, "exe").rpartition("/")[2] != "java":
            continue
        container = _CONTAINER.search(_link(pid, "fd/1"))
        name = daemons.get(pid) or (container[1] if container else "client")
        same = sum(each == name or each.startswith(f"{name}-") for each in found)
        found[f"{name}-{same + 1}" if same else name] = pid
    return found


def dump(asked: Mapping[str, int], into: Path, limit_s: float = LIMIT_S) -> list[Path]:
    """
    Have the JVMs *asked* (name -> process id) tell their threads, each in ``into/<name>.txt``.

    Returns after *limit_s* seconds at the latest.  Who has said nothing by then has no file.
    """
    with ExitStack() as stack:
        waiting = []
        for name, pid in asked.items():
            with suppress(OSError):  # it has ended meanwhile
                if output := _output(pid, stack):
                    waiting.append(_Asked(name, output, output.seek(0, os.SEEK_END)))
                    os.kill(pid, signal.SIGQUIT)
        deadline = time.monotonic() + limit_s
        while not all(_LAST_LINE in each.said() for each in waiting):
            if time.monotonic() > deadline:
                break
            time.sleep(0.05)
        time.sleep(0.1)  # deadlocks and the heap come behind the last thread
        return [each.write(into) for each in waiting if each.said()]


@dataclass(frozen=True, slots=True)
class _Asked:
    """A JVM that was asked, its standard output, and where in it the answer begins."""

    name: str
    output: BinaryIO
    start: int

    def said(self) -> bytes:
        self.output.seek(self.start)
        return self.output.read(_MOST_BYTES)

    def write(self, into: Path) -> Path:
        into.mkdir(parents=True, exist_ok=True)
        target = into / f"{self.name}.txt"
        target.write_bytes(self.said())
        return target


def _output(pid: int, stack: ExitStack) -> BinaryIO | None:
    """Standard output of a process, opened for reading; `None` where it is no file."""
    path = Path(f"/proc/{pid}/fd/1")
    if not stat.S_ISREG(path.stat().st_mode):
        return None
    return stack.enter_context(path.open("rb"))


def _link(pid: int, name: str) -> str:
    try:
        return str(Path(f"/proc/{pid}/{name}").readlink())
    except OSError:
        return ""
