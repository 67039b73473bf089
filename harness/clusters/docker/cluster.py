"""
Docker provider: a container per node, on their own network, on the engine of ``DOCKER_HOST``.

All that a cluster has bears its labels, by which any process takes it down; the image stays.  No
port is published and no folder of this machine is mounted: everything goes through the engine.
"""

from __future__ import annotations

from contextlib import closing, suppress
from functools import cached_property
from pathlib import Path

from harness.base.errors import HarnessError, MachineError
from harness.base.hadoop import daemons
from harness.base.hadoop.daemons import Layout
from harness.base.records.trial import ClusterSpec, Hardware
from harness.base.units import format_bytes
from harness.clusters import state as states
from harness.clusters.base import Cluster
from harness.clusters.collect import Source, collect
from harness.clusters.docker import host as hosts
from harness.clusters.docker import image as images
from harness.clusters.docker import nodes
from harness.clusters.docker.engine import DeathLog, Engine, EngineError
from harness.clusters.docker.host import DockerHost
from harness.clusters.hadoop_home.home import HadoopHome
from harness.clusters.host import LOG, LOOK_S, Host, at_once
from harness.clusters.survey import Finding, find_devices, here

_DOCTOR_LIMIT_S = 3.0


class DockerState(states.StateFile):
    """The state of a cluster in containers: its engine, its subnet (empty: nothing is made yet)."""

    engine: dict[str, str]
    subnet: str = ""


class DockerCluster(Cluster):
    """Hadoop in containers; use it as a context manager."""

    provider = "docker"
    own_need = "docker"
    needs = (*Cluster.needs, own_need)
    libraries = ("docker",)
    description = "a container per node, on the Docker engine of DOCKER_HOST"
    state_class = DockerState
    _state: DockerState | None
    health_sees_all = False
    limitable = frozenset(Hardware.model_fields)
    extra_fields = frozenset({"exposed"})

    def __init__(self, name: str, spec: ClusterSpec, home: HadoopHome) -> None:
        """Describe a cluster; the engine is not asked for anything yet."""
        super().__init__(name, spec, home)
        self._maker: nodes.NodeMaker | None = None
        self._death_log: DeathLog | None = None
        self._memory_kills = dict[str, int]()

    @classmethod
    def _end(cls, name: str) -> None:
        """Remove all of the cluster from its engine."""
        state = DockerState.load(name)
        if state is None:  # nothing was made on an engine yet
            return
        try:
            engine = Engine.connect(state.engine)
        except MachineError as error:
            folder = states.cluster_folder(name)
            raise MachineError(
                error.what,
                where=error.where,
                fix=f"{error.fix}; if that engine is gone for good: rm -r {folder}",
            ) from error
        with closing(engine.client):
            engine.reap(name)

    @staticmethod
    def doctor_check() -> Finding:
        """Whether an engine answers, and which one."""
        try:
            engine = Engine.connect(limit_s=_DOCTOR_LIMIT_S)
        except HarnessError as error:
            return Finding("docker", "note", f"{error.what} ({error.where})", error.fix)
        engine.client.close()
        return Finding("docker", "ok", f"Docker {engine.version} at {engine.address}")

    @staticmethod
    def gpus_per_node(workers: int) -> int:
        """GPUs of each of so many workers: the devices of the engine's machine, shared evenly."""
        engine = Engine.connect()
        is_known = nodes.offers_gpus(engine) and engine.is_near
        return len(find_devices(here).gpus) // workers if is_known else 0

    def is_up(self) -> bool:
        """Whether the containers of the cluster run: one that has ended is removed."""
        if self._state is None or not self._state.subnet:
            return False
        containers = self._engine.containers(self.name)
        running = [container for container in containers if container.status == "running"]
        return len(running) >= len(self.layout.members)

    @classmethod
    def reach(cls, spec: ClusterSpec) -> str:
        """Who can reach what of the requested cluster."""
        return (
            "only those who may use the Docker engine, or write raw packets in its machine's"
            " network, reach it: its own has no way in, and the machine no address on it"
        )

    @classmethod
    def require_limits(cls, spec: ClusterSpec) -> None:
        """`MachineError` that names what of *spec* the engine cannot give, if one answers."""
        nodes.require_memory(spec)
        engine = Engine.connect()
        with closing(engine.client):
            nodes.require(engine, spec)

    def down(self) -> None:
        """Remove every container, network, volume and file of this cluster; safe to call twice."""
        try:
            super().down()
        finally:
            if self._death_log is not None:
                self._death_log.close()
            if engine := vars(self).pop("_engine", None):
                engine.client.close()
            self._death_log = None

    def _start(self) -> None:
        self.require_limits(self.spec)
        engine = self._engine = Engine.connect()
        image = images.ensure(engine, self.home)
        with self._claiming():
            nodes.require_unused(engine, self.name)  # before there is a state that we would remove
            # written down before anything is made, so that any process can remove it
            state = DockerState(name=self.name, spec=self.spec, engine=dict(engine.settings))
            state.save()
            self._state = state
            engine.reap(self.name)  # what a cluster of that name without a state folder left
            state.subnet = nodes.make_network(engine, self.name)
            state.save()
            self._maker = nodes.NodeMaker(
                engine, self.name, image, self.spec, self.layout, self.home
            )
            at_once(self._maker.make, self.layout.members)

    def _limit_nodes(self) -> None:
        assert self._maker is not None
        by_name = {host.name: host for host in self.hosts}
        with nodes.DockerLimiter(self._maker, by_name) as limiter:
            self._adjust(limiter.set)

    @cached_property
    def _engine(self) -> Engine:
        """The engine on which the cluster was started, whatever ``DOCKER_HOST`` is by now."""
        if self._state is None:
            raise self.not_up_error()
        return Engine.connect(self._state.engine)

    @property
    def layout(self) -> Layout:
        """Where the nodes find Hadoop, their configuration and their data."""
        if self._state is None or not self._state.subnet:
            raise self.not_up_error()
        return nodes.make_layout(self.spec.workers, self._state.subnet)

    @property
    def hosts(self) -> tuple[DockerHost, ...]:
        """The nodes, master first."""
        layout = self.layout
        return tuple(
            DockerHost(
                member.name,
                member.address,
                layout.data(member),
                nodes.name_of(self.name, member.name),
                self._engine,
                nodes.environment(layout, member),
            )
            for member in layout.members
        )

    def java_on(self, host: Host) -> str:
        """The ``java`` command of the image."""
        return nodes.JAVA_COMMAND

    @property
    def tasks_archive(self) -> str | None:
        """The class-data archive of traced tasks in the image."""
        return nodes.TASKS_ARCHIVE if self.home.trace_path_jar else None

    @property
    def exec_prefix(self) -> str:
        """The engine alone leads to a node, on its own machine, too."""
        return f"docker exec {nodes.name_of(self.name, self.layout.master.name)}"

    def agent_path(self, host: Host) -> str:
        """The node agent is in every node from its start."""
        return hosts.AGENT

    def dead_daemons(self) -> dict[str, str]:
        """Daemons that have ended or hang, and which, as the engine reports them."""
        if self._death_log is None:
            containers = {host.name: host.container for host in self.hosts}
            self._death_log = DeathLog(self._engine, containers)
        deaths = self._death_log.deaths()
        ended = self._death_log.ended_nodes()
        dead = dict[str, str]()
        for daemon in daemons.daemons(self.layout):
            how = deaths.get(daemon.key, "")
            if how or daemon.member.name in ended:
                dead[daemon.name] = how if "answered" in how else "died"
        return dead

    def out_of_memory(self) -> list[str]:
        """Sentences on the nodes that ran out of memory since the last call, with their limits."""
        sentences = []
        counts = at_once(hosts.memory_kills, self.hosts)
        for host, kills in zip(self.hosts, counts, strict=True):
            new_kills = kills - self._memory_kills.get(host.name, 0)
            self._memory_kills[host.name] = kills
            if new_kills > 0:
                is_master = host.name == self.layout.master.name
                limit = None if is_master else self.spec.hardware(host.name).memory_bytes
                processes = "a process" if new_kills == 1 else f"{new_kills} processes"
                room = ": its machine ran out of memory"
                if limit is not None:
                    room = f", which may use {format_bytes(limit)} of memory (cluster.node.memory)"
                sentences.append(f"the kernel killed {processes} of {host.name}{room}")
        return sentences

    def daemon_logs(self, lines: int = 20) -> dict[str, str]:
        """Last lines of every daemon's log, and how it ended; or the error of a lost engine."""
        logs = super().daemon_logs(lines)
        with suppress(EngineError):
            deaths = self._death_log.deaths() if self._death_log is not None else {}
            for daemon in daemons.daemons(self.layout):
                if how := deaths.get(daemon.key):
                    ending = f"[{daemon.name} {how}]"
                    logs[daemon.name] = f"{logs[daemon.name]}\n{ending}".lstrip()
        return logs

    def dump_threads(self, into: Path) -> list[Path]:
        """Have every JVM of the nodes dump its threads; one file each in the folder *into*."""

        def dump(host: Host) -> None:
            host.run(self.agent(host, "dump", hosts.PIDS, f"{host.folder}/threads"), LOOK_S)

        at_once(dump, self.hosts)
        sources = [Source(host, f"{host.folder}/threads", into) for host in self.hosts]
        return collect(sources, lambda host: self.agent(host, "pack"), rf"{LOG.pattern}\.txt")
