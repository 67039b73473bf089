"""
The first process of a local cluster: makes its network, starts its daemons, buries its dead.

    python -I -S holder.py PLAN      (as PID 1 of a new mount, network and process namespace)

Everything of the cluster is a descendant of this process; the kernel ends them all with it.

A plan that is ``flat`` makes no namespaces: all nodes are this machine.  Then the process is a
guard, and the one that starts the daemons is its child: orphans of the cluster become children of
one of the two, and whichever of them is ended, the other one ends all that is left.

It reads ``go`` from standard input first: a starter that died before it could write down whom it
had started closes the pipe instead, and nothing happens.  Then one line of JSON goes to standard
output: the file descriptors of the nodes' namespaces, through which others enter.  From then on it
is a `supervisor` of the daemons of all nodes; their process ids are those inside.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or __package__:
    from harness.node import supervisor
else:  # a program: isolated Python does not look beside it
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(Path(__file__).parent))
    import supervisor

CLONE_NEWUTS, CLONE_NEWNET = 0x04000000, 0x40000000
PR_SET_PDEATHSIG = 1
BRIDGE = "cluster"

_libc = ctypes.CDLL(None, use_errno=True)


def main() -> None:
    """Hold the cluster of the plan file until killed."""
    plan = json.loads(Path(sys.argv[1]).read_text())
    if sys.stdin.readline() != "go\n":
        return
    if plan["flat"]:
        guard(plan)
        return
    wake = supervisor.catch(signal.SIGCHLD)
    ours = _make_bridge()
    doors = [_make_node(node, ours) for node in plan["nodes"]]
    for node in plan["nodes"]:
        _mount_disk(node.get("disk"))
    _name_nodes(plan["etc"])
    control = os.open(plan["control"], os.O_RDWR | os.O_CLOEXEC)
    sys.stdout.write(json.dumps(doors) + "\n")
    sys.stdout.flush()
    Keeper(plan, doors).keep(wake, control)


def guard(plan: dict[str, Any]) -> None:
    """Hold a cluster without namespaces: one process that keeps it, and ourselves to watch it."""
    _adopt_orphans()
    ours = os.getpid()
    keeper = os.fork()
    try:
        if keeper == 0:
            _adopt_orphans()
            _follow_parent(ours, signal.SIGTERM)
            wake = supervisor.catch(signal.SIGCHLD)
            control = os.open(plan["control"], os.O_RDWR | os.O_CLOEXEC)
            sys.stdout.write("[]\n")
            sys.stdout.flush()
            Keeper(plan, []).keep(wake, control)
        os.close(1)  # who started us waits for the keeper's line, or for the end of the pipe
        os.waitpid(keeper, 0)
    finally:
        supervisor.end_descendants()


class Keeper(supervisor.Supervisor):
    """The daemons of all nodes."""

    def __init__(self, plan: dict[str, Any], doors: list[dict[str, int]]) -> None:
        super().__init__(plan)
        self.doors = doors

    def spawn(self, daemon: dict[str, Any]) -> int:
        """Start one daemon on its node; its process id."""
        pid = os.fork()
        if pid == 0:
            node = daemon["node"]
            _become(daemon, self.doors[node] if self.doors else {}, self.plan["nodes"][node])
        return pid


def _become(daemon: dict[str, Any], doors: dict[str, int], node: dict[str, Any]) -> None:
    """In the forked child: enter the node, and turn into the daemon."""
    try:
        for group in node.get("joins", ()):
            Path(group).write_text("0")
        if doors:
            _enter(doors["net"], CLONE_NEWNET)
            _enter(doors["uts"], CLONE_NEWUTS)
        else:
            _follow_parent(os.getppid(), signal.SIGKILL)
        os.setsid()
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        null = os.open(os.devnull, os.O_RDONLY)
        log = os.open(daemon["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        for source, target in ((null, 0), (log, 1), (log, 2)):
            os.dup2(source, target)
        os.chdir(daemon["cwd"])
        os.execve(daemon["argv"][0], daemon["argv"], daemon["env"])  # noqa: S606 - no shell is meant
    finally:
        os._exit(127)


def _make_bridge() -> dict[str, int]:
    """Join for all nodes in the cluster's own network; answers our own namespaces."""
    _run("ip", "link", "set", "lo", "up")
    _run("ip", "link", "add", BRIDGE, "type", "bridge")
    _run("ip", "link", "set", BRIDGE, "up")
    return _namespaces()


def _make_node(node: dict[str, Any], ours: dict[str, int]) -> dict[str, int]:
    """Namespaces of one node, joined to the bridge; answers descriptors that keep them alive."""
    _unshare(CLONE_NEWNET | CLONE_NEWUTS)
    doors, link = _namespaces(), node["link"]
    if _libc.sethostname(node["name"].encode(), len(node["name"])) != 0:
        raise OSError(ctypes.get_errno(), "sethostname")
    _run("ip", "link", "set", "lo", "up")
    _enter(ours["net"], CLONE_NEWNET)
    there = f"/proc/1/fd/{doors['net']}"
    _run("ip", "link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", there)
    _run("ip", "link", "set", link, "master", BRIDGE, "up")
    _enter(doors["net"], CLONE_NEWNET)
    _run("ip", "addr", "add", node["address"], "dev", "eth0")
    _run("ip", "link", "set", "eth0", "up")
    _enter(ours["net"], CLONE_NEWNET)
    _enter(ours["uts"], CLONE_NEWUTS)
    return doors


def _mount_disk(disk: dict[str, Any] | None) -> None:
    """Mount the disk that a node has of its own, and lay its parts over the node's folders."""
    if disk is None:
        return
    top = Path(disk["at"])
    top.mkdir()
    _run("mount", "-t", "ext4", "-o", disk["options"], disk["device"], str(top))
    for part, over in disk["over"].items():
        for folder in (top / part, Path(over)):
            folder.mkdir(mode=0o700, exist_ok=True)
        _run("mount", "--bind", str(top / part), over)


def _name_nodes(folder: str) -> None:
    """Put the file ``hosts`` of *folder* in the place of the machine's, for us alone."""
    if Path("/etc/hosts").exists():
        _run("mount", "--bind", f"{folder}/hosts", "/etc/hosts")
    else:  # a bare machine has none that could be covered: the folder is laid over its own
        _run("mount", "-t", "overlay", "overlay", "-o", "lowerdir=.:/etc", "/etc", cwd=folder)


def _namespaces() -> dict[str, int]:
    return {kind: os.open(f"/proc/self/ns/{kind}", os.O_RDONLY) for kind in ("net", "uts")}


def _enter(descriptor: int, kind: int) -> None:
    if _libc.setns(descriptor, kind) != 0:
        raise OSError(ctypes.get_errno(), "setns")


def _unshare(kinds: int) -> None:
    if _libc.unshare(kinds) != 0:
        raise OSError(ctypes.get_errno(), "unshare")


def _run(*argv: str, cwd: str = "/") -> None:
    """Run a command that must succeed; what it says goes to our log."""
    subprocess.run(argv, check=True, stdin=subprocess.DEVNULL, stdout=sys.stderr, cwd=cwd)


def _adopt_orphans() -> None:
    """Become the parent of whatever below us loses its own; a SIGTERM runs our clean-up."""
    supervisor.adopt_orphans()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())


def _follow_parent(parent: int, number: int) -> None:
    """Have the kernel send us a signal when our parent ends."""
    if _libc.prctl(PR_SET_PDEATHSIG, number, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "PR_SET_PDEATHSIG")
    if os.getppid() != parent:
        raise ProcessLookupError(parent)


if __name__ == "__main__":
    main()
