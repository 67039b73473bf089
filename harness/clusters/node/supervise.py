"""
Supervisors: they start daemons, reap them, and end them all with themselves.

    node.pyz supervise PLAN              of a node

The plan is a JSON file: ``daemons`` (each with key, argv, env, cwd, log, at_once, and where it
has a web service, web: address and port), and the paths of

    control             a named pipe that takes lines ``start KEY``; it is made here
    daemons_folder      in it the file KEY holds the process id of a daemon
    deaths              gets a line of JSON for each daemon that ended: key, status (negative: the
                        signal), and ``oom`` where the kernel's memory killer was at work here;
                        or for one that hangs: key, and ``unanswered_s``, the seconds in which it
                        has not answered (`answers`)

and, where they are to be other than `None`,

    account             ``uid`` and ``gid`` that daemons run under; we ourselves keep ours
    lease_s             seconds after which we end all by ourselves, unless a line ``renew SECONDS``
                        to *control* has come: they count from then on
    clear               the lease's end also removes what was brought here
                        (`harness.clusters.node.clear`)

The same lines go to standard output: a reader of a container's log learns of a death at once.

    node.pyz supervise-cluster PLAN      of a local cluster, all of whose nodes are here

makes the cluster's network first, which is also in the plan.  It is PID 1 of a new mount, network
and process namespace.  Everything of the cluster is its descendant; the kernel ends them all with
it.

A plan that is ``flat`` makes no namespaces: all nodes are this machine.  Then there are two
processes, the supervisor and its parent, a guard: orphans of the cluster become children of one of
the two, and whichever of them is killed, the other one ends all that is left.

The supervisor of a cluster reads ``go`` from standard input first: if its starter dies before it
has written down which process it started, the pipe closes instead, and nothing happens.  Then one
line of JSON goes to standard output: the file descriptors of the nodes' namespaces, through which
commands are run on nodes.  Process ids in ``daemons_folder`` are those in the namespace.
"""

import json
import os
import signal
import subprocess
import sys
import time

from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

from . import peers
from .account import open_ways
from .answers import UNANSWERED_S, Questions, connect
from .processes import (
    adopt_orphans,
    call_libc,
    catch_signals,
    die_with_parent,
    drop_to,
    end_descendants,
)

END_SIGNALS = (signal.SIGTERM, signal.SIGINT)
# versions 2 and 1 of control groups, as a container sees its own
MEMORY_EVENTS = ("/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control")
_CLONE_NEWUTS = 0x04000000
_CLONE_NEWNET = 0x40000000
_BRIDGE = "cluster"


def main(arguments: List[str]) -> None:
    """Supervise the daemons of the plan file until a signal ends it."""
    plan = json.loads(Path(arguments[0]).read_text())
    # what daemons leave behind becomes ours: containers, tasks of a NodeManager that has died
    adopt_orphans()
    wake_pipe = catch_signals(signal.SIGCHLD, *END_SIGNALS)
    with suppress(FileExistsError):
        os.mkfifo(plan["control"], 0o600)
    if plan.get("account"):  # commands of the harness run under it, too
        os.chown(plan["control"], plan["account"]["uid"], plan["account"]["gid"])
    control_pipe = os.open(plan["control"], os.O_RDWR | os.O_CLOEXEC)
    has_expired = Supervisor(plan).serve(wake_pipe, control_pipe, until=END_SIGNALS)
    # no data of a measured cluster is worth a slow end
    end_descendants()
    if has_expired and plan.get("clear"):
        import_module(f"{__package__}.clear").clear(plan)


class Supervisor:
    """The daemons of a plan: which run, which have ended."""

    # whether standard output, and the control group's memory events, are those of the node
    is_of_one_node = True

    def __init__(self, plan: Dict[str, Any]) -> None:
        self.plan = plan
        self.daemons: Dict[str, Any] = {daemon["key"]: daemon for daemon in plan["daemons"]}
        self.running: Dict[int, str] = {}
        self.questions = Questions(self.connect)
        self.renew(plan.get("lease_s") or float("inf"))

    def connect(self, daemon_key: str) -> Any:
        """A connection to the web service of a daemon, from its own node, as its account."""
        address, port = self.daemons[daemon_key]["web"]
        return connect(address, port, self.plan.get("account"))

    def renew(self, seconds: float) -> None:
        """Let the lease end so many seconds from now, by a clock that nobody can set."""
        self.lease_end_s = time.monotonic() + seconds

    def spawn(self, daemon: Dict[str, Any]) -> int:
        """Start one daemon in a session of its own; its process id, or `OSError`."""
        account = self.plan.get("account")
        with Path(daemon["log"]).open("ab") as log_file:
            process = subprocess.Popen(
                daemon["argv"],
                env=daemon["env"],
                cwd=daemon["cwd"],
                stdin=subprocess.DEVNULL,
                stdout=log_file,
                stderr=log_file,
                start_new_session=True,
                preexec_fn=(lambda: drop_to(account)) if account else None,  # noqa: PLW1509 - no threads
            )
        process.returncode = 0  # it is `reap` that waits for it
        return process.pid

    def serve(self, wake_pipe: int, control_pipe: int, until: Tuple[int, ...] = ()) -> bool:
        """
        Start daemons and reap them until one of the signals *until*, or (`True`) the lease's end.

        *wake_pipe* is the descriptor of `catch_signals`, *control_pipe* that of the named pipe.
        """
        for daemon_key, daemon in self.daemons.items():
            if daemon["at_once"]:
                self.start(daemon_key)
        while True:
            left_s = self.lease_end_s - time.monotonic()
            ready = self.questions.wait([wake_pipe, control_pipe], max(0.0, left_s))
            if wake_pipe in ready:
                if set(os.read(wake_pipe, 4096)) & set(until):
                    return False
                self.reap()
            if control_pipe in ready:
                for line in os.read(control_pipe, 65536).decode(errors="replace").splitlines():
                    self.obey(line)
            self.report_hanging()
            if time.monotonic() >= self.lease_end_s:
                return True

    def report_hanging(self) -> None:
        """Begin a round of questions if it is time; report daemons that have missed too many."""
        watched = [key for key in self.running.values() if "web" in self.daemons[key]]
        for daemon_key in self.questions.begin_round(watched):
            self.report({"key": daemon_key, "unanswered_s": UNANSWERED_S})

    def obey(self, line: str) -> None:
        """Do what a line of the control pipe says; a line that we do not understand is ignored."""
        verb, _, argument = line.partition(" ")
        stopped = self.daemons.keys() - set(self.running.values())
        if verb == "start" and argument in stopped:
            self.start(argument)
        elif verb == "renew" and argument.isdecimal():
            self.renew(int(argument))

    def start(self, daemon_key: str) -> None:
        """Start one daemon; one that cannot be started has died, with the reason in its log."""
        daemon = self.daemons[daemon_key]
        try:
            process_id = self.spawn(daemon)
        except OSError as error:
            with Path(daemon["log"]).open("a") as log_file:
                log_file.write(f"{error}\n")
            self.report({"key": daemon_key, "status": 127})
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
                death: Dict[str, Any] = {"key": daemon_key, "status": code}
                if self.is_of_one_node and code == -signal.SIGKILL and memory_kills():
                    death["oom"] = True
                self.report(death)

    def report(self, death: Dict[str, Any]) -> None:
        """Write a line about a daemon that has ended or hangs, to the file and to our readers."""
        with Path(self.plan["deaths"]).open("a") as deaths:
            deaths.write(json.dumps(death) + "\n")
        if self.is_of_one_node:
            print(json.dumps(death), flush=True)


def memory_kills() -> int:
    """How many processes of our control group the kernel has killed for their memory."""
    for events in MEMORY_EVENTS:
        with suppress(OSError):
            for line in Path(events).read_text().splitlines():
                name, _, count = line.partition(" ")
                if name == "oom_kill":
                    return int(count)
    return 0


def main_cluster(arguments: List[str]) -> None:
    """Supervise the cluster of the plan file until it is killed, or its lease ends."""
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
            _mount_disk(node_plan["disk"], plan["account"])
    cover_etc(plan["etc"])
    if plan["account"]:
        open_ways(plan["needed"], plan["account"])
    control_pipe = os.open(plan["control"], os.O_RDWR | os.O_CLOEXEC)
    print(json.dumps(namespaces), flush=True)
    ClusterSupervisor(plan, namespaces).serve(wake_pipe, control_pipe)


def _guard(plan: Dict[str, Any]) -> None:
    """Fork the supervisor of a cluster without namespaces, and end what it leaves."""
    _adopt_orphans_until_sigterm()
    guard = os.getpid()
    supervisor = os.fork()
    try:
        if supervisor == 0:
            _adopt_orphans_until_sigterm()
            die_with_parent(guard, signal.SIGTERM)
            wake_pipe = catch_signals(signal.SIGCHLD)
            control_pipe = os.open(plan["control"], os.O_RDWR | os.O_CLOEXEC)
            folders = [daemon["env"].get("HADOOP_CONF_DIR") for daemon in plan["daemons"]]
            peers.start(dict.fromkeys(filter(None, folders)), plan.get("account"))
            print("[]", flush=True)
            ClusterSupervisor(plan, []).serve(wake_pipe, control_pipe)
            return  # its lease has ended
        os.close(1)  # our starter waits for the supervisor's line, or for the end of the pipe
        os.waitpid(supervisor, 0)
    finally:
        end_descendants()


def _adopt_orphans_until_sigterm() -> None:
    """Adopt orphans; SIGTERM ends us by `SystemExit`."""
    adopt_orphans()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())  # which runs `finally`


class ClusterSupervisor(Supervisor):
    """The daemons of all nodes; *namespaces* are the nodes' descriptors, none of a flat cluster."""

    is_of_one_node = False  # its starter has closed the pipe that was its standard output

    def __init__(self, plan: Dict[str, Any], namespaces: List[Dict[str, int]]) -> None:
        super().__init__(plan)
        self.namespaces = namespaces
        self.home_namespaces = _open_namespaces()

    def connect(self, daemon_key: str) -> Any:
        """A connection to the web service of a daemon, made within the network of its node."""
        if not self.namespaces:
            return super().connect(daemon_key)
        node = self.daemons[daemon_key]["node"]
        call_libc("setns", self.namespaces[node]["net"], _CLONE_NEWNET)
        try:
            return super().connect(daemon_key)
        finally:
            call_libc("setns", self.home_namespaces["net"], _CLONE_NEWNET)

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
        os.setsid()
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        null_descriptor = os.open(os.devnull, os.O_RDONLY)
        log_descriptor = os.open(daemon["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        for source, target in ((null_descriptor, 0), (log_descriptor, 1), (log_descriptor, 2)):
            os.dup2(source, target)
        supervisor = os.getppid()
        drop_to(self.plan.get("account"))
        # after the change of account, which makes the kernel forget this request
        if not self.namespaces:
            die_with_parent(supervisor, signal.SIGKILL)
        os.chdir(daemon["cwd"])
        os.execve(daemon["argv"][0], daemon["argv"], daemon["env"])  # noqa: S606 - no shell is meant


def _make_node(node_plan: Dict[str, Any], home_namespaces: Dict[str, int]) -> Dict[str, int]:
    """Make the namespaces of a node, linked to the bridge; descriptors that keep them alive."""
    call_libc("unshare", _CLONE_NEWNET | _CLONE_NEWUTS)
    namespaces = _open_namespaces()
    link_name = node_plan["link"]
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


def _mount_disk(disk: Dict[str, Any], account: Optional[Dict[str, int]]) -> None:
    """Mount the disk that a node has of its own, and lay its parts over the node's folders."""
    mount_point = Path(disk["at"])
    mount_point.mkdir()
    _run("mount", "-t", "ext4", "-o", disk["options"], disk["device"], str(mount_point))
    for part_name, covered in disk["over"].items():
        for folder in (mount_point / part_name, Path(covered)):
            folder.mkdir(mode=0o700, exist_ok=True)
            if account:
                os.chown(str(folder), account["uid"], account["gid"])
        _run("mount", "--bind", str(mount_point / part_name), covered)


def cover_etc(folder: str) -> None:
    """Put the files of *folder* in the place of the machine's, in our namespace alone."""
    file_names = os.listdir(folder)
    if all(Path("/etc", file_name).exists() for file_name in file_names):
        for file_name in file_names:
            _run("mount", "--bind", f"{folder}/{file_name}", f"/etc/{file_name}")
    else:  # a bare machine lacks a file that could be covered: the folder is laid over its own
        _run("mount", "-t", "overlay", "overlay", "-o", "lowerdir=.:/etc", "/etc", cwd=folder)


def _open_namespaces() -> Dict[str, int]:
    """Descriptors of the network and the host name's namespace that we are in."""
    return {kind: os.open(f"/proc/self/ns/{kind}", os.O_RDONLY) for kind in ("net", "uts")}


def _run(*argv: str, cwd: str = "/") -> None:
    """Run a command that must succeed; its output goes to our log."""
    subprocess.run(argv, check=True, stdin=subprocess.DEVNULL, stdout=sys.stderr, cwd=cwd)
