"""
The supervisor of a local cluster: makes its network, then supervises the daemons of all nodes.

    node.pyz supervise-cluster PLAN      (the plan of `supervise`, and of the nodes' network)

It is PID 1 of a new mount, network and process namespace.  Everything of the cluster is its
descendant; the kernel ends them all with it.

A plan that is ``flat`` makes no namespaces: all nodes are this machine.  Then there are two
processes, the supervisor and its parent, a guard: orphans of the cluster become children of one of
the two, and whichever of them is killed, the other one ends all that is left.

The supervisor reads ``go`` from standard input first: if its starter dies before it has written
down which process it started, the pipe closes instead, and nothing happens.  Then one line of JSON
goes to standard output: the file descriptors of the nodes' namespaces, through which commands are
run on nodes.  Process ids in ``daemons_folder`` are those in the namespace.
"""

import json
import os
import signal
import subprocess
import sys

from pathlib import Path
from typing import Any, Dict, List

from .processes import adopt_orphans, call_libc, catch_signals, end_descendants
from .supervise import Supervisor

_CLONE_NEWUTS, _CLONE_NEWNET = 0x04000000, 0x40000000
_PR_SET_PDEATHSIG = 1
_BRIDGE = "cluster"


def main(arguments: List[str]) -> None:
    """Supervise the cluster of the plan file until killed."""
    plan = json.loads(Path(arguments[0]).read_text())
    if sys.stdin.readline() != "go\n":
        return
    if plan["flat"]:
        _guard(plan)
        return
    wake_pipe = catch_signals(signal.SIGCHLD)
    _run("ip", "link", "set", "lo", "up")
    _run("ip", "link", "add", _BRIDGE, "type", "bridge")
    _run("ip", "link", "set", _BRIDGE, "up")
    home_namespaces = _open_namespaces()
    namespaces = [_make_node(node_plan, home_namespaces) for node_plan in plan["nodes"]]
    for node_plan in plan["nodes"]:
        if node_plan.get("disk"):
            _mount_disk(node_plan["disk"])
    name_nodes(plan["etc"])
    control_pipe = os.open(plan["control"], os.O_RDWR | os.O_CLOEXEC)
    sys.stdout.write(json.dumps(namespaces) + "\n")
    sys.stdout.flush()
    ClusterSupervisor(plan, namespaces).serve(wake_pipe, control_pipe)


def _guard(plan: Dict[str, Any]) -> None:
    """Fork the supervisor of a cluster without namespaces, and end what it leaves."""
    _adopt_orphans_until_sigterm()
    guard = os.getpid()
    supervisor = os.fork()
    try:
        if supervisor == 0:
            _adopt_orphans_until_sigterm()
            _die_with_parent(guard, signal.SIGTERM)
            wake_pipe = catch_signals(signal.SIGCHLD)
            control_pipe = os.open(plan["control"], os.O_RDWR | os.O_CLOEXEC)
            sys.stdout.write("[]\n")
            sys.stdout.flush()
            ClusterSupervisor(plan, []).serve(wake_pipe, control_pipe)
        os.close(1)  # our starter waits for the supervisor's line, or for the end of the pipe
        os.waitpid(supervisor, 0)
    finally:
        end_descendants()


def _adopt_orphans_until_sigterm() -> None:
    adopt_orphans()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())  # which runs `finally`


class ClusterSupervisor(Supervisor):
    """The daemons of all nodes; *namespaces* are the nodes' descriptors, none of a flat cluster."""

    is_of_one_node = False  # its starter has closed the pipe that was its standard output

    def __init__(self, plan: Dict[str, Any], namespaces: List[Dict[str, int]]) -> None:
        super().__init__(plan)
        self.namespaces = namespaces

    def spawn(self, daemon: Dict[str, Any]) -> int:
        """Start one daemon on its node; its process id."""
        process_id = os.fork()
        if process_id == 0:
            try:
                self._become(daemon)
            finally:
                os._exit(127)
        return process_id

    def _become(self, daemon: Dict[str, Any]) -> None:
        """In the forked child: join the node, and turn into the daemon."""
        for group in self.plan["nodes"][daemon["node"]].get("joins", ()):
            Path(group).write_text("0")
        if self.namespaces:
            namespaces = self.namespaces[daemon["node"]]
            call_libc("setns", namespaces["net"], _CLONE_NEWNET)
            call_libc("setns", namespaces["uts"], _CLONE_NEWUTS)
        else:
            _die_with_parent(os.getppid(), signal.SIGKILL)
        os.setsid()
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        null_descriptor = os.open(os.devnull, os.O_RDONLY)
        log_descriptor = os.open(daemon["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        for source, target in ((null_descriptor, 0), (log_descriptor, 1), (log_descriptor, 2)):
            os.dup2(source, target)
        os.chdir(daemon["cwd"])
        os.execve(daemon["argv"][0], daemon["argv"], daemon["env"])  # noqa: S606 - no shell is meant


def _make_node(node_plan: Dict[str, Any], home_namespaces: Dict[str, int]) -> Dict[str, int]:
    """
    Make the namespaces of one node, with a link to the bridge in those of *home_namespaces*.

    Returned are the descriptors that keep them alive.
    """
    call_libc("unshare", _CLONE_NEWNET | _CLONE_NEWUTS)
    namespaces, link_name = _open_namespaces(), node_plan["link"]
    call_libc("sethostname", node_plan["name"].encode(), len(node_plan["name"]))
    _run("ip", "link", "set", "lo", "up")
    call_libc("setns", home_namespaces["net"], _CLONE_NEWNET)
    peer_words = ("peer", "name", "eth0", "netns", f"/proc/1/fd/{namespaces['net']}")
    _run("ip", "link", "add", link_name, "type", "veth", *peer_words)
    _run("ip", "link", "set", link_name, "master", _BRIDGE, "up")
    call_libc("setns", namespaces["net"], _CLONE_NEWNET)
    _run("ip", "addr", "add", node_plan["address"], "dev", "eth0")
    _run("ip", "link", "set", "eth0", "up")
    call_libc("setns", home_namespaces["net"], _CLONE_NEWNET)
    call_libc("setns", home_namespaces["uts"], _CLONE_NEWUTS)
    return namespaces


def _mount_disk(disk: Dict[str, Any]) -> None:
    """Mount the disk that a node has of its own, and lay its parts over the node's folders."""
    mount_point = Path(disk["at"])
    mount_point.mkdir()
    _run("mount", "-t", "ext4", "-o", disk["options"], disk["device"], str(mount_point))
    for part_name, covered in disk["over"].items():
        for folder in (mount_point / part_name, Path(covered)):
            folder.mkdir(mode=0o700, exist_ok=True)
        _run("mount", "--bind", str(mount_point / part_name), covered)


def name_nodes(folder: str) -> None:
    """Put the file ``hosts`` of *folder* in the place of the machine's, in our namespace alone."""
    if Path("/etc/hosts").exists():
        _run("mount", "--bind", f"{folder}/hosts", "/etc/hosts")
    else:  # a bare machine has no file that could be covered: the folder is laid over its own
        _run("mount", "-t", "overlay", "overlay", "-o", "lowerdir=.:/etc", "/etc", cwd=folder)


def _open_namespaces() -> Dict[str, int]:
    return {
        namespace_kind: os.open(f"/proc/self/ns/{namespace_kind}", os.O_RDONLY)
        for namespace_kind in ("net", "uts")
    }


def _run(*argv: str, cwd: str = "/") -> None:
    """Run a command that must succeed; its output goes to our log."""
    subprocess.run(argv, check=True, stdin=subprocess.DEVNULL, stdout=sys.stderr, cwd=cwd)


def _die_with_parent(parent: int, number: int) -> None:
    """Have the kernel send us signal *number* when our parent ends."""
    call_libc("prctl", _PR_SET_PDEATHSIG, number, 0, 0, 0)
    if os.getppid() != parent:
        raise ProcessLookupError(parent)
