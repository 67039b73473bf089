"""
The first process of a node: starts its daemons, buries its dead, ends them all with itself.

    python -I -S keeper.py PLAN

The plan is JSON: ``daemons`` (each with key, argv, env, cwd, log, at_once), and the paths of

    control     a pipe by name, made here, that takes lines ``start KEY``
    daemons     the folder in which KEY holds the process id of a daemon
    deaths      gets a line of JSON for each daemon that ended: key, status (negative: the signal),
                and oom where the kernel's memory killer was at work here

The same lines go to standard output: who reads a container's log learns of a death at once.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import subprocess
import sys

from contextlib import suppress
from pathlib import Path
from typing import Any

PR_SET_CHILD_SUBREAPER = 36
# versions 2 and 1 of control groups, as a container sees its own
MEMORY_EVENTS = ("/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control")


def main() -> None:
    """Keep the daemons of the plan file until told to end."""
    keeper = Keeper(json.loads(Path(sys.argv[1]).read_text()))
    # what daemons leave behind becomes ours: a container's, or a fallen NodeManager's tasks
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    keeper.keep()


class Keeper:
    """The daemons of the plan: which run, which have ended."""

    def __init__(self, plan: dict[str, Any]) -> None:
        self.plan = plan
        self.daemons = {d["key"]: d for d in plan["daemons"]}
        self.running: dict[int, str] = {}

    def keep(self) -> None:
        """Start what is to be started at once, then serve until SIGTERM."""
        wake = _catch(signal.SIGCHLD, signal.SIGTERM, signal.SIGINT)
        control = self._control()
        for key, daemon in self.daemons.items():
            if daemon["at_once"]:
                self.start(key)
        while True:
            ready, _, _ = select.select([wake, control], [], [])
            if wake in ready:
                if set(os.read(wake, 4096)) & {signal.SIGTERM, signal.SIGINT}:
                    self.end()
                    return
                self.bury()
            if control in ready:
                for line in os.read(control, 65536).decode(errors="replace").splitlines():
                    verb, _, key = line.partition(" ")
                    if verb == "start" and key in self.daemons and key not in self.running.values():
                        self.start(key)

    def _control(self) -> int:
        with suppress(FileExistsError):
            os.mkfifo(self.plan["control"], 0o600)
        return os.open(self.plan["control"], os.O_RDWR | os.O_CLOEXEC)

    def start(self, key: str) -> None:
        """Start one daemon; one that cannot be started has died, with its reason in its log."""
        daemon = self.daemons[key]
        with Path(daemon["log"]).open("ab") as log:
            try:
                process = subprocess.Popen(
                    daemon["argv"], env=daemon["env"], cwd=daemon["cwd"], stdout=log, stderr=log,
                    stdin=subprocess.DEVNULL, start_new_session=True,
                )  # fmt: skip
            except OSError as error:
                log.write(f"{error}\n".encode())
                self.died(key, 127)
                return
        process.returncode = 0  # it is `bury` that waits for it
        self.running[process.pid] = key
        self._pid_file(key).write_text(str(process.pid))

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

    def died(self, key: str, status: int) -> None:
        """Report a death."""
        told: dict[str, Any] = {"key": key, "status": status}
        if status == -signal.SIGKILL and memory_kills():
            told["oom"] = True
        line = json.dumps(told) + "\n"
        with Path(self.plan["deaths"]).open("a") as deaths:
            deaths.write(line)
        sys.stdout.write(line)
        sys.stdout.flush()

    def end(self) -> None:
        """Kill all that hangs on us: no data of a measured cluster is worth a slow end."""
        while pids := descendants(os.getpid()):
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            with suppress(ChildProcessError):
                while os.waitpid(-1, 0):
                    pass

    def _pid_file(self, key: str) -> Path:
        return Path(self.plan["daemons_folder"]) / key


def memory_kills() -> int:
    """How many processes of our control group the kernel has killed for their memory."""
    for file in MEMORY_EVENTS:
        with suppress(OSError):
            for line in Path(file).read_text().splitlines():
                name, _, count = line.partition(" ")
                if name == "oom_kill":
                    return int(count)
    return 0


def descendants(ancestor: int) -> list[int]:
    """Numbers of all living processes below *ancestor*."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                fields = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()
                if fields[0] not in "ZX":
                    parents[int(entry.name)] = int(fields[1])
    found, known = [], {ancestor}
    while more := [pid for pid, parent in parents.items() if parent in known and pid not in known]:
        known.update(more)
        found += more
    return found


def _catch(*signals: int) -> int:
    """Descriptor that holds the number of each of *signals* that has come, a byte each."""
    reading, writing = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    for number in signals:
        signal.signal(number, lambda *_: None)
    return reading


if __name__ == "__main__":
    main()
