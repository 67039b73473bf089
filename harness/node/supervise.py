"""
The supervisor of a node: starts its daemons, reaps them, and ends them all with itself.

    node.pyz supervise PLAN

The plan is a JSON file: ``daemons`` (each with key, argv, env, cwd, log, at_once), and the paths of

    control             a named pipe that takes lines ``start KEY``; it is made here
    daemons_folder      in it the file KEY holds the process id of a daemon
    deaths              gets a line of JSON for each daemon that ended: key, status (negative: the
                        signal), and ``oom`` where the kernel's memory killer was at work here

The same lines go to standard output: a reader of a container's log learns of a death at once.
"""

import json
import os
import select
import signal
import subprocess
import sys

from contextlib import suppress
from pathlib import Path
from typing import Any, Dict, List, Tuple

from .processes import adopt_orphans, catch_signals, end_descendants

END_SIGNALS = (signal.SIGTERM, signal.SIGINT)
# versions 2 and 1 of control groups, as a container sees its own
MEMORY_EVENTS = ("/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control")


def main(arguments: List[str]) -> None:
    """Supervise the daemons of the plan file until a signal ends it."""
    plan = json.loads(Path(arguments[0]).read_text())
    # what daemons leave behind becomes ours: containers, tasks of a NodeManager that has died
    adopt_orphans()
    wake_pipe = catch_signals(signal.SIGCHLD, *END_SIGNALS)
    with suppress(FileExistsError):
        os.mkfifo(plan["control"], 0o600)
    control_pipe = os.open(plan["control"], os.O_RDWR | os.O_CLOEXEC)
    Supervisor(plan).serve(wake_pipe, control_pipe, until=END_SIGNALS)
    # no data of a measured cluster is worth a slow end
    end_descendants()


class Supervisor:
    """The daemons of a plan: which run, which have ended."""

    # whether standard output, and the control group's memory events, are those of the node
    is_of_one_node = True

    def __init__(self, plan: Dict[str, Any]) -> None:
        self.plan = plan
        self.daemons: Dict[str, Any] = {daemon["key"]: daemon for daemon in plan["daemons"]}
        self.running: Dict[int, str] = {}

    def spawn(self, daemon: Dict[str, Any]) -> int:
        """Start one daemon in a session of its own; its process id, or `OSError`."""
        with Path(daemon["log"]).open("ab") as log_file:
            process = subprocess.Popen(
                daemon["argv"], env=daemon["env"], cwd=daemon["cwd"],
                stdin=subprocess.DEVNULL, stdout=log_file, stderr=log_file, start_new_session=True,
            )  # fmt: skip
        process.returncode = 0  # it is `reap` that waits for it
        return process.pid

    def serve(self, wake_pipe: int, control_pipe: int, until: Tuple[int, ...] = ()) -> None:
        """
        Start the daemons that start at once, then reap and start; one of the signals *until* ends.

        *wake_pipe* is the descriptor of `catch_signals`, *control_pipe* that of the named pipe.
        """
        for daemon_key, daemon in self.daemons.items():
            if daemon["at_once"]:
                self.start(daemon_key)
        while True:
            ready, _, _ = select.select([wake_pipe, control_pipe], [], [])
            if wake_pipe in ready:
                if set(os.read(wake_pipe, 4096)) & set(until):
                    return
                self.reap()
            if control_pipe in ready:
                for line in os.read(control_pipe, 65536).decode(errors="replace").splitlines():
                    verb, _, daemon_key = line.partition(" ")
                    stopped = self.daemons.keys() - set(self.running.values())
                    if verb == "start" and daemon_key in stopped:
                        self.start(daemon_key)

    def start(self, daemon_key: str) -> None:
        """Start one daemon; one that cannot be started has died, with the reason in its log."""
        daemon = self.daemons[daemon_key]
        try:
            process_id = self.spawn(daemon)
        except OSError as error:
            with Path(daemon["log"]).open("a") as log_file:
                log_file.write(f"{error}\n")
            self.report_death(daemon_key, 127)
            return
        self.running[process_id] = daemon_key
        pid_file = Path(self.plan["daemons_folder"]) / daemon_key
        partial_file = pid_file.with_name(f".{daemon_key}")  # so a reader sees a whole number
        partial_file.write_text(str(process_id))
        partial_file.replace(pid_file)

    def reap(self) -> None:
        """Collect every ended child: daemons are reported, orphans of others just go."""
        while True:
            try:
                process_id, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if process_id == 0:
                return
            daemon_key = self.running.pop(process_id, None)
            if daemon_key is not None:
                with suppress(FileNotFoundError):
                    (Path(self.plan["daemons_folder"]) / daemon_key).unlink()
                signaled = os.WIFSIGNALED(status)
                code = -os.WTERMSIG(status) if signaled else os.WEXITSTATUS(status)
                self.report_death(daemon_key, code)

    def report_death(self, daemon_key: str, status: int) -> None:
        """Write a line about a daemon that has ended, to the file and to our readers."""
        death: Dict[str, Any] = {"key": daemon_key, "status": status}
        if self.is_of_one_node and status == -signal.SIGKILL and memory_kills():
            death["oom"] = True
        line = json.dumps(death) + "\n"
        with Path(self.plan["deaths"]).open("a") as deaths:
            deaths.write(line)
        if self.is_of_one_node:
            sys.stdout.write(line)
            sys.stdout.flush()


def memory_kills() -> int:
    """How many processes of our control group the kernel has killed for their memory."""
    for events in MEMORY_EVENTS:
        with suppress(OSError):
            for line in Path(events).read_text().splitlines():
                name, _, count = line.partition(" ")
                if name == "oom_kill":
                    return int(count)
    return 0
