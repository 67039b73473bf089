"""
Local provider: every node of the cluster in its own namespaces, on this machine.

All of a cluster depends on one process outside; the kernel ends everything with it, network and
mounts included.  Where nobody may make namespaces, all nodes are this machine
(`namespace.loopback_reason`).  The folder of a cluster has

    conf/<node>/   nodes/<node>/   configuration and data of each node
    etc/hosts      names of the nodes, put in the place of the machine's
    logs/          one log per daemon, by its key (``datanode-worker2.log``)
    daemons/       process ids, as seen in the cluster;  deaths: daemons that have ended
    plan.json      what the supervisor starts (`harness.clusters.node.supervise`);  control: its
                   pipe
    limits.json    limits of nodes, as measured;  <node>.disk: the disk that one has of its own
    state.json     the cluster's first processes (`harness.clusters.local.supervisor`)
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import sys

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from io import FileIO
from pathlib import Path
from typing import Any, Self

from harness.base.errors import ClusterError
from harness.base.hadoop import daemons, site
from harness.base.hadoop.daemons import Layout, Member, make_flat_members, make_members
from harness.base.records.trial import ClusterSpec, Hardware
from harness.clusters import state as states
from harness.clusters.base import Cluster
from harness.clusters.hadoop_home.home import WORKLOADS, HadoopHome, file_digest
from harness.clusters.host import (
    CONTAINER,
    LOG,
    Completed,
    Host,
    LocalHost,
    application_name,
    at_once,
    last_lines,
)
from harness.clusters.lease import Controls
from harness.clusters.local import account, limits, namespace, supervisor
from harness.clusters.local.supervisor import ClusterState
from harness.clusters.node.account import closed_folder
from harness.clusters.node.evidence import dump_threads, find_jvms
from harness.clusters.node.health import read_deaths
from harness.clusters.survey import find_devices, here


class LocalCluster(Cluster):
    """Hadoop in namespaces of this machine; use it as a context manager."""

    provider = "local"
    needs = (*Cluster.needs, "memory", "commands", "namespaces")
    on_this_machine = True
    description = "all nodes on this machine, a network namespace each; for root and other users"
    limitable = frozenset(Hardware.model_fields) - {"memory_bytes"}
    state_class = ClusterState
    _state: ClusterState | None

    def __init__(
        self, name: str, spec: ClusterSpec, home: HadoopHome, *, recording: bool = False
    ) -> None:
        """*recording* lets every JVM list its classes, for the class-data archive."""
        super().__init__(name, spec, home)
        self.recording = recording
        self.first_port = 0  # of a cluster without namespaces
        # read by `harness.clusters.node.health` and by the supervisor, whose pipe *control* is
        self.deaths = self.folder / "deaths"
        self.control = self.folder / "control"
        self._refusal = ""  # why it has no namespaces

    @classmethod
    def attach(cls, name: str) -> Self:
        """The cluster of that name, started by whichever process."""
        state = ClusterState.load(name)
        if state is None:
            return cls(name, ClusterSpec(), HadoopHome.find())
        cluster = cls(name, state.spec, HadoopHome.find(Path(state.home)))
        cluster.first_port = state.first_port
        cluster.account = state.account
        cluster._state = state
        return cluster

    @classmethod
    def _end(cls, name: str) -> None:
        """End the cluster's processes, and remove their limits."""
        supervisor.end(name)

    @staticmethod
    def gpus_per_node(workers: int) -> int:
        """GPUs of each of so many workers: nodes on one machine share its devices evenly."""
        return len(find_devices(here).gpus) // workers

    def is_up(self) -> bool:
        """Whether the supervisor runs, so that commands can be run on nodes."""
        return self._state is not None and self._state.alive() and self._state.inner is not None

    @classmethod
    def look(cls, spec: ClusterSpec) -> str:
        """An empty text; `MachineError` where there is no account for daemons to run under."""
        account.choose(flat=namespace.loopback_reason())
        return super().look(spec)

    @classmethod
    def require_limits(cls, spec: ClusterSpec) -> None:
        """`MachineError` that names what of *spec* cannot be limited here, for this user."""
        if spec.limited:
            limits.require(spec, states.clusters_folder(), flat=namespace.loopback_reason())

    @classmethod
    def reach(cls, spec: ClusterSpec) -> str:
        """Who can reach what of the requested cluster."""
        if not namespace.loopback_reason():
            return "only this user and root reach it: its network is a namespace of its own"
        return "only this user, root and the daemons' own account reach it, on this machine alone"

    def _start(self) -> None:
        self._refusal = namespace.loopback_reason()
        if not self._refusal:
            namespace.require_tools()
        self.require_limits(self.spec)
        self.account = account.choose(flat=self._refusal)
        if self.account:
            own_folders = [states.clusters_folder()] if self._refusal else []
            needed = [*self._needed, *own_folders]
            account.require_ways(needed, self.account, flat=self._refusal)
        with self._claiming():
            member_count = 1 + self.spec.workers
            self.first_port = namespace.free_ports(member_count) if self._refusal else 0
            self._write_files()
            if self.account:
                account.add_entries(self.folder / "etc")
                parts = ("conf", "nodes", "logs", "classes")
                account.hand_over(self.folder, self.account, parts)
            make_state = partial(
                ClusterState,
                name=self.name,
                spec=self.spec,
                home=str(self.home.path),
                user_namespace=os.geteuid() != 0,
                first_port=self.first_port,
                account=self.account,
            )
            self._state = supervisor.start(self.name, make_state, flat=bool(self.first_port))

    def _write_files(self) -> None:
        """Make all that the nodes are given in the cluster's folder, their disks included."""
        layout = self.layout
        secret = secrets.token_hex(32)
        for entry_name in ("logs", "daemons", "classes", "etc"):
            (self.folder / entry_name).mkdir()
        for member in layout.members:
            conf_folder = Path(layout.conf(member))
            conf_folder.mkdir(parents=True)
            conf_files = site.site_files(self.spec, layout, member)
            Path(layout.secret(member)).touch(0o600)
            for file_name, text in site.conf_texts(conf_files, secret).items():
                (conf_folder / file_name).write_text(text)
            Path(layout.data(member), "jtmp").mkdir(parents=True)
        names = "".join(f"{member.address} {member.name}\n" for member in layout.members)
        (self.folder / "etc" / "hosts").write_text(f"127.0.0.1 localhost\n{names}")
        os.mkfifo(self.control, 0o600)
        # a name space formatted beforehand: formatting one anew would take a second or two
        name_space = self.home.require_formatted()
        shutil.copytree(name_space, Path(layout.data(layout.master), "name"))
        data = {member.name: layout.data(member) for member in layout.members}
        plan = self.plan(limits.make(self.folder, self.spec, data))
        (self.folder / "plan.json").write_text(json.dumps(plan, indent=1))

    def plan(self, hardware: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
        """What the supervisor makes and starts; *hardware* limits workers, by their names."""
        layout = self.layout
        plan = daemons.supervisor_plan(
            layout,
            layout.members,
            self.home.java.launcher,
            self._environment,
            at_once=not self.spec.limited,  # a limited node is measured before all else
        )
        for planned, daemon in zip(plan["daemons"], daemons.daemons(layout), strict=True):
            planned["node"] = layout.members.index(daemon.member)
        return {
            **plan,
            "flat": bool(self.first_port),
            "nodes": [
                {
                    "name": member.name,
                    "address": f"{member.address}/15",
                    "link": f"node{number}",
                    **hardware.get(member.name, {}),
                }
                for number, member in enumerate(layout.members)
            ],
            "etc": str(self.folder / "etc"),
            "account": self.account,
            "needed": [
                *map(str, (*self._needed, self.folder, states.agent_file())),
                sys.prefix,
                sys.base_prefix,
            ],
        }

    @property
    def _needed(self) -> list[Path]:
        """Files and folders of this machine that daemons, tasks and clients read."""
        paths = (self.home.java.home, self.home.path, self.home.path_jar, WORKLOADS)
        return [path for path in paths if path.exists()]

    def controls(self) -> Controls:
        """What opens the pipe of the one supervisor; `ClusterError` where it has ended."""

        def open_control() -> FileIO:
            try:  # without a supervisor the pipe would wait for ever
                return FileIO(os.open(self.control, os.O_WRONLY | os.O_NONBLOCK), "wb")
            except OSError as error:
                raise ClusterError(
                    "the cluster's supervisor has ended",
                    where=self.where,
                    fix="read supervisor.log in the cluster's folder, then start the cluster again",
                ) from error

        return {"": open_control}

    def _limit_nodes(self) -> None:
        numbers = {member.name: number for number, member in enumerate(self.layout.members)}

        def tc(node: str, argv: Sequence[str]) -> Completed:
            wrapped = self._running.node_argv(numbers[node] if node else None, argv)
            environment = {"PATH": namespace.search_path()}
            return LocalHost(node, "", "", lambda _: wrapped, environment).run(argv)

        bridge_links = {node_name: f"node{number}" for node_name, number in numbers.items()}
        set_limits = partial(limits.set_limits, self.folder, tc, bridge_links)
        self._adjust(set_limits, limits.PARTS[0])

    def drop_page_cache(self) -> list[str]:
        """Drop the page cache of nodes with limited disks, so that they read from these; names."""
        limited_nodes = self.disk_bytes()
        part = limits.PARTS[0]
        hosts = [host for host in self.hosts if host.name in limited_nodes]
        at_once(
            lambda host: host.run(self.agent(host, "drop-cache", f"{host.folder}/{part}")), hosts
        )
        return list(limited_nodes)

    def disk_bytes(self) -> dict[str, dict[str, int]]:
        """Bytes ``read`` and ``written`` by each limited disk since its cluster was started."""
        return limits.disk_bytes(self.folder) if self.spec.limited else {}

    @property
    def _running(self) -> ClusterState:
        if self._state is None:
            raise self.not_up_error()
        return self._state

    @property
    def limitations(self) -> tuple[str, ...]:
        """Why the cluster has no namespaces, and what it cannot show without them."""
        if not self.first_port:
            return ()
        reason = f"no namespaces: {self._refusal or 'as it was started'}"
        return (reason, *namespace.LOOPBACK_LIMITATIONS)

    def _wrapper(self, node: int) -> Callable[[Sequence[str]], list[str]]:
        """Makes commands run on node number *node*: in its namespaces and control groups."""
        if self.first_port:
            return lambda argv: list(argv) if self._running.supervisor() else []
        groups = limits.group_files(self.folder, self.spec, self.layout.members[node].name)
        agent = [sys.executable, "-I", "-S", str(states.agent_file())]
        join = [*agent, "join", *groups, "--"] if groups else []
        return lambda argv: self._running.node_argv(node, [*join, *argv])

    @property
    def hosts(self) -> tuple[Host, ...]:
        """The nodes, master first."""
        return tuple(
            LocalHost(
                member.name,
                member.address,
                self.layout.data(member),
                self._wrapper(number),
                self._environment(member),
            )
            for number, member in enumerate(self.layout.members)
        )

    @property
    def layout(self) -> Layout:
        """Nodes and folders, which this machine sees, too."""
        workers = self.spec.workers
        first = self.first_port
        archive = self.home.archive
        return Layout(
            make_flat_members(workers, first) if first else make_members(workers),
            str(self.folder),
            str(self.home.path),
            str(archive) if archive else None,
            str(self.folder / "classes") if self.recording else None,
        )

    def _environment(self, member: Member) -> dict[str, str]:
        """Environment of a JVM on *member*."""
        inherited = {**os.environ, "PATH": namespace.search_path()}
        return daemons.environment(inherited, str(self.home.java.home), self.layout, member)

    def host_path(self, host: Host, path: Path) -> str:
        """Where a node has this machine's file *path*: in a copy that its account can reach."""
        needed = (*self._needed, states.agent_file())
        has_way = any(path.is_relative_to(folder) for folder in needed)
        if self.account is None or has_way or not closed_folder(str(path), self.account):
            return super().host_path(host, path)
        copy = self.folder / f"copied-{file_digest(path)[:12]}-{path.name}"
        if not copy.exists():
            shutil.copyfile(path, copy)
            copy.chmod(0o644)
        return str(copy)

    def python_on(self, host: Host) -> str:
        """The interpreter that runs us."""
        return sys.executable

    @property
    def tasks_archive(self) -> str | None:
        """The class-data archive of traced tasks, or `None`."""
        archive = self.home.tasks_archive
        return str(archive) if archive else None

    @property
    def exec_prefix(self) -> str:
        """Command that runs another one within the network of the cluster."""
        if self.first_port:
            return ""
        as_other = "" if os.geteuid() == 0 else " -U --preserve-credentials"
        return f"nsenter -t {min(self.daemon_pids().values())}{as_other} -n"

    def dead_daemons(self) -> dict[str, str]:
        """Daemons that have ended or hang, and which: a look at files, no process."""
        names = {daemon.key: daemon.name for daemon in daemons.daemons(self.layout)}
        if not self._running.alive():
            return dict.fromkeys(names.values(), "died")
        return {names[key]: ending for key, ending in read_deaths(str(self.deaths))}

    def daemon_pids(self) -> dict[str, int]:
        """Process id on this machine of each running daemon (``datanode on worker2``)."""
        outer = {inner: outer for outer, inner in self._running.processes().items()}
        process_ids = {}
        for daemon in daemons.daemons(self.layout):
            with suppress(FileNotFoundError, KeyError):  # it has ended
                inner = int((self.folder / "daemons" / daemon.key).read_text())
                process_ids[daemon.name] = outer[inner]
        return process_ids

    def daemon_logs(self, lines: int = 20) -> dict[str, str]:
        """The last lines of every daemon's log, by its name (``datanode on worker2``)."""
        return {
            daemon.name: last_lines(self.folder / "logs" / f"{daemon.key}.log", lines)
            for daemon in daemons.daemons(self.layout)
        }

    def dump_threads(self, into: Path) -> list[Path]:
        """Have every JVM dump its threads, one file each in *into*; takes three seconds at most."""
        names = {number: name.replace(" on ", "-") for name, number in self.daemon_pids().items()}
        return dump_threads(find_jvms(self._running.processes(), names), into)

    def container_logs(self, application_id: str, into: Path) -> list[Path]:
        """Copy an application's logs to ``into/<node>/<container>/<file>``: real files alone."""
        application = application_name(application_id)
        copies = []
        for member in self.layout.workers:
            logs = Path(self.layout.data(member), "userlogs", application)
            for log_file in sorted(logs.glob("*/*")):
                container = log_file.parent
                log_name = log_file.name
                is_log = CONTAINER.fullmatch(container.name) and LOG.fullmatch(log_name)
                has_links = container.is_symlink() or log_file.is_symlink()
                if is_log and not has_links and log_file.is_file():
                    target = into / member.name / container.name / log_name
                    target.parent.mkdir(parents=True, exist_ok=True)
                    copies.append(shutil.copyfile(log_file, target))
        return copies
