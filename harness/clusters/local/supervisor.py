"""
The processes of a local cluster, seen from outside: started, recorded, found, ended.

All of them descend from the supervisor; with namespaces it is their PID 1, below an `unshare`.
"""

from __future__ import annotations

import json
import re
import select
import subprocess
import sys

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from harness.base.errors import ClusterError
from harness.clusters.host import last_lines
from harness.clusters.local import limits, namespace
from harness.clusters.node.processes import descendants_of, parents
from harness.clusters.state import (
    Process,
    StateFile,
    agent_file,
    cluster_folder,
    own_processes,
    stray_processes,
)

_NETWORK_LIMIT_S = 60.0

# Supervisors that this process started: it must collect them when they end.
_started: list[subprocess.Popen[bytes]] = []


class ClusterState(StateFile):
    """
    The state of a local cluster: its first processes, and how commands get to its nodes.

    *outer* is the process that ends all others with itself, *inner* is the supervisor (`None` while
    the cluster is being made); *namespaces* are descriptors of *inner*, by node, of the nodes'
    namespaces; *user_namespace* says that an ordinary user made them.  *first_port* is that of a
    cluster without namespaces, 0 for one with them.  *account*: see `Cluster`.
    """

    home: str
    user_namespace: bool
    outer: Process
    inner: Process | None = None
    namespaces: tuple[dict[str, int], ...] = ()
    first_port: int = 0
    account: dict[str, int] | None = None

    def alive(self) -> bool:
        """Whether the cluster's first processes still run."""
        return self.outer.alive() and (self.inner is None or self.inner.alive())

    def supervisor(self) -> Process:
        """The supervisor; `ClusterError` when it has ended."""
        if self.inner is None or not self.inner.alive():
            raise ClusterError(
                f"cluster {self.name!r} is not running",
                where="its supervisor has ended",
                fix="harness cluster down; harness cluster up",
            )
        return self.inner

    def node_argv(self, node: int | None, argv: Sequence[str]) -> list[str]:
        """*argv* on a node, or where their links meet; it is killed with ``nsenter``, outside."""
        process_id = self.supervisor().pid
        if node is None:
            net = "ns/net"
            uts = "ns/uts"
        else:
            net, uts = (f"fd/{self.namespaces[node][kind]}" for kind in ("net", "uts"))
        user = [f"--user=/proc/{process_id}/ns/user", "--preserve-credentials"]
        return [
            "nsenter",
            *(user if self.user_namespace else []),
            f"--mount=/proc/{process_id}/ns/mnt",
            f"--pid=/proc/{process_id}/ns/pid",
            f"--net=/proc/{process_id}/{net}",
            f"--uts=/proc/{process_id}/{uts}",
            "--",
            "setpriv",
            "--pdeathsig",
            "KILL",
            "--",
            *argv,
        ]

    def processes(self) -> dict[int, int]:
        """Process id on this machine -> in the cluster, of all that belong to the cluster."""
        first = self.supervisor().pid
        if self.first_port:
            return {process_id: process_id for process_id in descendants_of(first)}
        space = Path(f"/proc/{first}/ns/pid")
        processes = {}
        for process_id in parents():
            with suppress(OSError):  # it has ended, or is another user's
                if Path(f"/proc/{process_id}/ns/pid").readlink() == space.readlink():
                    status = Path(f"/proc/{process_id}/status").read_text()
                    if inner_id := re.search(r"^NSpid:.*?(\d+)$", status, re.MULTILINE):
                        processes[process_id] = int(inner_id[1])
        return processes

    def end_processes(self) -> None:
        """End every process of the cluster: all others end with the first one."""
        if self.first_port:  # it ends the others itself, and then it ends
            self.outer.end()
        for process in (self.inner, self.outer):
            if process is not None:
                process.kill()


def start(name: str, make_state: Callable[..., ClusterState], *, flat: bool) -> ClusterState:
    """
    Start the supervisor of a cluster whose files lie in its folder, and write its state down.

    *make_state* gives the state of an *outer* process.  `ClusterError`, or `MachineError` where the
    kernel refuses namespaces, with the process's own message.
    """
    folder = cluster_folder(name)
    plan = str(folder / "plan.json")
    argv = [sys.executable, "-I", "-S", str(agent_file()), "supervise-cluster", plan]
    with (folder / "supervisor.log").open("wb") as log:
        process = subprocess.Popen(
            argv if flat else namespace.make_argv(argv),
            start_new_session=True,
            cwd="/",
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            bufsize=0,
            env={"PATH": namespace.search_path()},
        )
    _started.append(process)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        with process.stdin as stdin, process.stdout as stdout:
            state = make_state(outer=Process.of(process.pid))
            state.save()
            # it goes on, now that it is recorded, and answers with descriptors of its namespaces
            with suppress(BrokenPipeError):  # it has ended: then there is no answer either
                stdin.write(b"go\n")
            ready, _, _ = select.select([stdout], [], [], _NETWORK_LIMIT_S)
            answer_line = stdout.readline() if ready else b""
        if not answer_line:
            raise ProcessLookupError(process.pid)
        state.namespaces = tuple(json.loads(answer_line))
        state.inner = _only_child(process.pid)
    except ProcessLookupError:
        output = last_lines(folder / "supervisor.log", 8)
        raise namespace.refusal_error(output) or ClusterError(
            f"the cluster's network was not made: {output or 'no message'}",
            where=f"local cluster {name!r}",
            fix="the last lines above name the command that failed",
        ) from None
    state.save()
    return state


def _only_child(process_id: int) -> Process:
    """The process that *process_id* has started; `ProcessLookupError` where it has ended."""
    for child_id, parent_id in parents().items():
        if parent_id == process_id:
            return Process.of(child_id)
    raise ProcessLookupError(process_id)


def end(name: str) -> None:
    """End the processes of a cluster, and remove their limits; its folder stays."""
    folder = cluster_folder(name)
    limits.lift(folder)
    state = ClusterState.load(name)
    if state is not None:
        state.end_processes()
    else:
        for process in own_processes("cmdline", f"{folder}/plan.json"):
            process.kill()
    if state is None or state.first_port:
        while left := stray_processes(folder):
            for process in left:
                process.kill()
    _started[:] = [process for process in _started if process.poll() is None]
    limits.release(folder)
