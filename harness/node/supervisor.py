"""
What the first processes of nodes have in common: daemons that are kept, buried, and ended.

`keeper` starts them on a host or in a container, `holder` in the namespaces of a local cluster.
The plan is JSON: ``daemons`` (each with key, argv, env, cwd, log, at_once), and the paths of

    control             a pipe by name that takes lines ``start KEY``
    daemons_folder      in it KEY holds the process id of a daemon
    deaths              gets a line of JSON for each daemon that ended: key, status (negative: the
                        signal)
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import time

from abc import ABC, abstractmethod
from contextlib import suppress
from pathlib import Path
from typing import Any

PR_SET_CHILD_SUBREAPER = 36
PAUSE_S = 0.01


class Supervisor(ABC):
    """The daemons of the plan: which run, which have ended."""

    def __init__(self, plan: dict[str, Any]) -> None:
        self.plan = plan
        self.daemons = {d["key"]: d for d in plan["daemons"]}
        self.running: dict[int, str] = {}

    @abstractmethod
    def spawn(self, daemon: dict[str, Any]) -> int:
        """Start one daemon; its process id.  `OSError` where it cannot be started."""

    def keep(self, wake: int, control: int, until: tuple[int, ...] = ()) -> None:
        """Start what is to be started at once, then serve; one of the signals *until* ends it."""
        for key, daemon in self.daemons.items():
            if daemon["at_once"]:
                self.start(key)
        while True:
            ready, _, _ = select.select([wake, control], [], [])
            if wake in ready:
                if set(os.read(wake, 4096)) & set(until):
                    return
                self.bury()
            if control in ready:
                for line in os.read(control, 65536).decode(errors="replace").splitlines():
                    verb, _, key = line.partition(" ")
                    if verb == "start" and key in self.daemons and key not in self.running.values():
                        self.start(key)

    def start(self, key: str) -> None:
        """Start one daemon; one that cannot be started has died, with its reason in its log."""
        daemon = self.daemons[key]
        try:
            pid = self.spawn(daemon)
        except OSError as error:
            with Path(daemon["log"]).open("a") as log:
                log.write(f"{error}\n")
            self.died(key, 127)
            return
        self.running[pid] = key
        file = self._pid_file(key)
        part = file.with_name(f".{key}")
        part.write_text(str(pid))
        part.replace(file)

    def bury(self) -> None:
        """Collect every ended child: daemons are reported, orphans of others just go."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            key = self.running.pop(pid, None)
            if key is not None:
                self._pid_file(key).unlink(missing_ok=True)
                self.died(key, os.waitstatus_to_exitcode(status))

    def died(self, key: str, status: int) -> str:
        """Report a death; the line."""
        line = json.dumps({"key": key, "status": status, **self.cause(status)}) + "\n"
        with Path(self.plan["deaths"]).open("a") as deaths:
            deaths.write(line)
        return line

    def cause(self, status: int) -> dict[str, Any]:
        """What else is known of a death."""
        del status
        return {}

    def _pid_file(self, key: str) -> Path:
        return Path(self.plan["daemons_folder"]) / key


def catch(*signals: int) -> int:
    """Descriptor that holds the number of each of *signals* that has come, a byte each."""
    reading, writing = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    for number in signals:
        signal.signal(number, lambda *_: None)
    return reading


def adopt_orphans() -> None:
    """Become the parent of whatever below us loses its own."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "PR_SET_CHILD_SUBREAPER")


def end_descendants() -> None:
    """Kill every process below us, and those that they leave, until there are none."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while below := descendants(os.getpid()):
        for pid in below:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        time.sleep(PAUSE_S)


def descendants(root: int) -> list[int]:
    """Processes below *root*, ended ones that nobody has collected among them."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                fields = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()
                children.setdefault(int(fields[1]), []).append(int(entry.name))
    found, waiting = [], [root]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += below
    return found
