"""
Local provider: every node of the cluster in its own namespaces, on this machine.

Needs: Linux with namespaces (an ordinary user's too, where the kernel allows it), iproute2, a JDK
and a Hadoop home.  Leaves behind: nothing.  All of a cluster hangs on one process outside; the
kernel ends everything with it, network and mounts included.  Nothing listens on this machine's own
addresses.

Where nobody may make namespaces, all nodes are this machine (`harness.providers.local.loopback`).
"""

from __future__ import annotations

import dataclasses
import os
import sys

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Self

from harness.errors import ClusterError
from harness.hadoop import daemons
from harness.hadoop.layout import Layout
from harness.hadoop_home.home import HadoopHome
from harness.node import dump
from harness.providers import state as states
from harness.providers.base import Cluster
from harness.providers.gpus import find_devices, here
from harness.providers.host import Completed, Host, LocalHost
from harness.providers.limits.calibrate import CalibrationLoad, calibrate, requested_by_worker
from harness.providers.local import holders, loopback, namespace
from harness.providers.local import limits as nodes
from harness.providers.local.files import ClusterFiles
from harness.providers.state import ClusterState
from harness.records.hardware import LIMITS, Limit
from harness.records.trial import ClusterSpec, Hardware


class LocalCluster(Cluster):
    """Hadoop in namespaces of this machine; use it as a context manager."""

    provider = "local"
    needs = (*Cluster.needs, "memory", "commands", "namespaces")
    on_this_machine = True
    description = "all nodes on this machine, a network namespace each; for root and other users"
    limitable = frozenset(Hardware.model_fields) - {"memory_bytes"}

    def __init__(
        self, name: str, spec: ClusterSpec, home: HadoopHome, *, recording: bool = False
    ) -> None:
        """*recording* lets every JVM list its classes, for the class-data archive."""
        super().__init__(name, spec, home)
        self.files = ClusterFiles(self.folder, spec, home, recording)
        self._state: ClusterState | None = None
        self._refused = ""

    @classmethod
    def attach(cls, name: str) -> Self:
        """The cluster of that name, started by whichever process."""
        state = ClusterState.load(states.cluster_folder(name))
        if state is None:
            return cls(name, ClusterSpec(), HadoopHome.find())
        spec = ClusterSpec.model_validate(state.spec)
        cluster = cls(name, spec, HadoopHome.find(Path(state.home)))
        cluster.files = dataclasses.replace(cluster.files, first_port=state.first_port)
        cluster._state = state
        return cluster

    @staticmethod
    def remove(name: str) -> bool:
        """Take a cluster down and remove all of it; `False`: there was none.  Safe to repeat."""
        folder = states.cluster_folder(name)
        with states.exclusive():
            return holders.remove(folder)

    @staticmethod
    def gpus_per_node(workers: int) -> int:
        """GPUs of each of so many workers: nodes on one machine share its devices evenly."""
        return len(find_devices(here).names) // workers

    def is_up(self) -> bool:
        """Whether the cluster's first process runs and can be entered."""
        return self._state is not None and self._state.alive() and self._state.inner is not None

    # life

    def down(self) -> None:
        """End every process and remove every file of this cluster; safe to call twice."""
        super().down()
        self._state = None

    @classmethod
    def require_limits(cls, spec: ClusterSpec) -> None:
        """`MachineError` that names what of *spec* cannot be limited here, for this user."""
        if spec.limited:
            nodes.require(spec, states.clusters_folder(), flat=loopback.reason())

    @property
    def limits(self) -> dict[str, dict[str, Limit]]:
        """Limits of each limited node by their names: requested and measured."""
        file = self.files.limits  # it is not there while the nodes are still measured
        return LIMITS.validate_json(file.read_text()) if file.is_file() else {}

    def _start(self) -> None:
        self._refused = loopback.reason()
        if not self._refused:
            namespace.require_tools()
        self.require_limits(self.spec)
        self._claim()
        if self.spec.limited:
            try:
                self._limit_nodes()
            except BaseException:
                self.down()
                raise

    def _limit_nodes(self) -> None:
        """Make the nodes what they are asked to be, while nothing runs on them; then start all."""
        numbers = {m.name: number for number, m in enumerate(self.layout.members)}
        load = CalibrationLoad(
            self.hosts,
            lambda host: self.agent(host, "load"),
            disk=nodes.PARTS[0],
        )
        links = {name: self.files.link(number) for name, number in numbers.items()}
        limiter = nodes.NodeLimiter(self.folder, self._tc(numbers), links)
        requested = requested_by_worker(self.spec)
        found = calibrate(requested, limiter.set, load, where=self.where)
        self.files.limits.write_bytes(LIMITS.dump_json(found, indent=1, exclude_none=True))
        at_once = (d.key for d in self.files.all_daemons if d.kind != "historyserver")
        self._tell_holder("".join(f"start {key}\n" for key in at_once))

    def _tell_holder(self, lines: str) -> None:
        """Write to the first process inside; without one the pipe would wait for ever."""
        try:
            pipe = os.open(self.files.control, os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:
            raise ClusterError(
                "the cluster's first process has ended",
                where=self.where,
                fix="read supervisor.log in the cluster's folder, then start the cluster again",
            ) from error
        with os.fdopen(pipe, "w") as control:
            control.write(lines)

    def forget(self) -> list[str]:
        """Let nodes with limited disks read blocks from there next, not from memory; who does."""
        disks = self.disk_bytes()
        hosts = [host for host in self.hosts if host.name in disks]

        def drop_cache(host: Host) -> None:
            host.run(self.agent(host, "drop-cache", f"{host.folder}/{nodes.PARTS[0]}"))

        with ThreadPoolExecutor(max(1, len(hosts))) as pool:
            list(pool.map(drop_cache, hosts))
        return list(disks)

    def disk_bytes(self) -> dict[str, dict[str, int]]:
        """Bytes ``read`` and ``written`` by each limited disk since its cluster was started."""
        return nodes.disk_bytes(self.folder) if self.spec.limited else {}

    def _tc(self, numbers: Mapping[str, int]) -> nodes.Tc:
        """Runs a command in the network of a node, or, without a name, where their links meet."""

        def run(node: str, argv: Sequence[str]) -> Completed:
            entered = namespace.enter_argv(self._known, numbers[node] if node else None, argv)
            return LocalHost(node, "", "", lambda _: entered, holders.environment()).run(argv)

        return run

    def _claim(self) -> None:
        """Take the name, write the files, start the first process: all or nothing."""
        with states.claiming(self.name, self.provider):
            state = ClusterState.load(self.folder)
            if state is not None and state.alive():
                raise ClusterError(
                    f"cluster {self.name!r} is up already",
                    where=str(self.folder),
                    fix=f"harness cluster down --name {self.name}, or choose another name",
                )
            holders.remove(self.folder)
            first = loopback.free_ports(1 + self.spec.workers) if self._refused else 0
            self.files = dataclasses.replace(self.files, first_port=first)
            try:
                self.files.write()
                data = {m.name: self.layout.data(m) for m in self.layout.members}
                self.files.write_plan(nodes.make(self.folder, self.spec, data))
                self._state = holders.start(
                    self.folder, self.name, self.spec, self.home.path, first
                )
            except BaseException:
                holders.remove(self.folder)
                raise

    # doors

    @property
    def _known(self) -> ClusterState:
        if self._state is None:
            raise self.not_up()
        return self._state

    @property
    def _flat(self) -> bool:
        """Whether it is one without namespaces."""
        return bool(self.files.first_port)

    @property
    def losses(self) -> tuple[str, ...]:
        """What a cluster without namespaces cannot show, behind the reason for being one."""
        if not self._flat:
            return ()
        return (f"no namespaces: {self._refused or 'as it was started'}", *loopback.LOSSES)

    def _enter(self, node: int) -> Callable[[Sequence[str]], list[str]]:
        """Make commands of node number *node*: in its namespaces, and in its control groups."""
        if self._flat:
            return lambda argv: list(argv) if namespace.entrance(self._known) else []
        joins = nodes.joins(self.folder, self.spec, self.layout.members[node].name)
        join = (
            [self.python, "-I", "-S", str(states.agent_file()), "join", *joins, "--"]
            if joins
            else []
        )
        return lambda argv: namespace.enter_argv(self._known, node, [*join, *argv])

    @property
    def hosts(self) -> tuple[Host, ...]:
        """The nodes, master first."""
        layout = self.files.layout
        return tuple(
            LocalHost(m.name, m.address, layout.data(m), self._enter(n), self.files.environment(m))
            for n, m in enumerate(layout.members)
        )

    @property
    def layout(self) -> Layout:
        """Nodes and folders, which this machine sees, too."""
        return self.files.layout

    @property
    def java(self) -> str:
        """The ``java`` command of this machine."""
        return self.home.java.launcher

    @property
    def python(self) -> str:
        """The interpreter that runs us."""
        return sys.executable

    @property
    def tasks_archive(self) -> str | None:
        """The class-data archive of traced tasks, or `None`."""
        archive = self.home.tasks_archive
        return str(archive) if archive else None

    @property
    def way_in(self) -> str:
        """Command that runs another one within the network of the cluster."""
        if self._flat:
            return ""
        as_other = "" if os.geteuid() == 0 else " -U --preserve-credentials"
        return f"nsenter -t {min(self.daemon_pids().values())}{as_other} -n"

    def host_path(self, host: Host, path: Path) -> str:
        """The same path: nodes see this machine's files."""
        del host
        return str(path)

    def _supervision(self) -> dict[str, Any]:
        """Where the first process inside tells of deaths and is told to start more."""
        return {
            "deaths": str(self.files.deaths),
            "control": str(self.files.control),
            "start": daemons.Daemon("historyserver", self.layout.master).key,
        }

    # evidence

    def dead_daemons(self) -> list[str]:
        """Daemons that have ended (``datanode on worker2``): no process is started to ask."""
        if not self._known.alive():
            return [d.name for d in self.files.all_daemons]
        return self.files.dead()

    def daemon_pids(self) -> dict[str, int]:
        """Process id on this machine of each running daemon (``datanode on worker2``)."""
        outside = {inside: outside for outside, inside in self._processes().items()}
        return {n: outside[i] for n, i in self.files.pids_inside().items() if i in outside}

    def _processes(self) -> dict[int, int]:
        """Process id outside -> inside, of all that belong to the cluster."""
        first = namespace.entrance(self._known)
        if self._flat:
            return {pid: pid for pid in loopback.below(first.pid)}
        return states.namespace_processes(first)

    def daemon_logs(self, lines: int = 20) -> dict[str, str]:
        """The last lines of every daemon's log, by its name (``datanode on worker2``)."""
        return self.files.tails(lines)

    def thread_dumps(self, into: Path) -> list[Path]:
        """
        Have every JVM of the cluster say what its threads do; one file each in the folder *into*.

        Takes three seconds at most; a JVM that does not answer has no file.
        """
        known = {pid: name.replace(" on ", "-") for name, pid in self.daemon_pids().items()}
        return dump.dump_threads(dump.find_jvms(self._processes(), known), into)

    def container_logs(self, application_id: str, into: Path) -> list[Path]:
        """Copy an application's logs of all nodes to ``into/<node>/<container>/<file>``."""
        return self.files.container_logs(application_id, into)
