"""
Docker provider: a container per node, on their own network, on the engine of ``DOCKER_HOST``.

Needs: an engine that answers, near or far, and its permission; the image is built there when it is
missing (`harness.providers.docker.image`).  Leaves behind: the image.  All that a cluster has bears
its labels, by which any process takes it down.  No port is published, no folder of this machine
is mounted: everything goes through the engine.
"""

from __future__ import annotations

import json

from collections.abc import Mapping
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Self

from harness.errors import ClusterError, MachineError
from harness.hadoop import daemons
from harness.hadoop.layout import Layout, Member
from harness.hadoop_home.home import HadoopHome
from harness.node.build import agent_bytes
from harness.providers import state as states
from harness.providers.base import Cluster
from harness.providers.docker import archive as archives
from harness.providers.docker import container as containers
from harness.providers.docker import image as images
from harness.providers.docker import limits, logs
from harness.providers.docker import plan as plans
from harness.providers.docker.engine import Engine, EngineError, together
from harness.providers.docker.host import AGENT, DockerHost
from harness.providers.docker.memory import kills_of, said
from harness.providers.docker.watch import Watch
from harness.providers.gpus import find_devices, here
from harness.providers.host import Host
from harness.providers.ids import application_name
from harness.providers.interrupts import Postponed
from harness.providers.limits.correct import asked_of, correct
from harness.providers.limits.gauge import Gauge
from harness.records.hardware import LIMITS, Limit
from harness.records.trial import ClusterSpec, Hardware

_STATE = "docker.json"


class DockerCluster(Cluster):
    """Hadoop in containers; use it as a context manager."""

    provider = "docker"
    needs = (*Cluster.needs, "docker")
    description = "a container per node, on the Docker engine of DOCKER_HOST"
    waiter_sees_all = False
    limitable = frozenset(Hardware.model_fields)

    def __init__(self, name: str, spec: ClusterSpec, home: HadoopHome) -> None:
        """Describe a cluster; nothing is asked of the engine yet."""
        super().__init__(name, spec, home)
        self._state: dict[str, Any] | None = None
        self._watch: Watch | None = None
        self._kills = dict[str, int]()

    @classmethod
    def attach(cls, name: str) -> Self:
        """The cluster of that name, started by whichever process."""
        state = _load(states.cluster_folder(name))
        spec = (
            ClusterSpec.model_validate(state["spec"]) if state else ClusterSpec(provider="docker")
        )
        cluster = cls(name, spec, HadoopHome.find())
        cluster._state = state if state and state["subnet"] else None
        return cluster

    @staticmethod
    def remove(name: str) -> bool:
        """Take a cluster down and remove all of it; `False`: there was none.  Safe to repeat."""
        folder = states.cluster_folder(name)
        with states.exclusive():
            return _remove(folder, name)

    @staticmethod
    def gpus_per_node(workers: int) -> int:
        """GPUs of each of so many workers: the devices of the engine's machine, shared evenly."""
        engine = Engine.connect()
        if not containers.offers_gpus(engine):
            return 0
        return len(find_devices(here).names) // workers if engine.near else 0

    def is_up(self) -> bool:
        """Whether the containers of the cluster run."""
        if self._state is None:
            return False
        found = self._engine.containers(self.name)
        return bool(found) and all(c.status == "running" for c in found)

    # life

    @classmethod
    def require_limits(cls, spec: ClusterSpec) -> None:
        """`MachineError` that names what of *spec* the engine cannot give, if one answers."""
        containers.require_memory(spec)
        asked = {dial for dials in asked_of(spec).values() for dial in dials}
        engine = Engine.connect()
        try:
            containers.require(engine, spec)
            limits.require(engine, asked)
        finally:
            engine.client.close()

    @property
    def limits(self) -> dict[str, dict[str, Limit]]:
        """What each dial of each limited node was asked to be, and what it is."""
        file = self._limits  # it is not there while the nodes are still measured
        return LIMITS.validate_json(file.read_text()) if file.is_file() else {}

    @property
    def _limits(self) -> Path:
        return self.folder / "limits.json"

    def down(self) -> None:
        """Remove every container, network, volume and file of this cluster; safe to call twice."""
        try:
            super().down()
        finally:
            if self._watch is not None:
                self._watch.close()
            if "_engine" in vars(self):
                self._engine.client.close()
                del self._engine
            self._state = self._watch = None

    def _start(self) -> None:
        self.require_limits(self.spec)
        engine = self._engine = Engine.connect()
        image = images.ensure(engine, self.home)
        with states.claiming(self.name, self.provider):
            left = type(self).attach(self.name)
            if left.is_up():
                raise ClusterError(
                    f"cluster {self.name!r} is up already",
                    where=self.where,
                    fix=f"harness cluster down --name {self.name}, or choose another name",
                )
            _remove(self.folder, self.name)
            states.make_folder(self.folder, self.provider)
            try:
                place = self._make(engine, image)
            except BaseException:
                _remove(self.folder, self.name)
                raise
        if self.spec.limited:
            try:
                self._limit_nodes(place)
            except BaseException:
                self.down()
                raise

    def _make(self, engine: Engine, image: str) -> containers.Place:
        """Make the network and the nodes; who they are is written down before they are made."""
        self._save(engine, subnet="")
        engine.reap(self.name)  # what an older state folder's cluster of that name has left
        subnet = containers.make_network(engine, self.name)
        self._save(engine, subnet)
        place = containers.Place(engine, self.name, image, self.spec, self.layout)
        together([partial(place.make, m, self._given(m), {}) for m in self.layout.members])
        return place

    def _limit_nodes(self, place: containers.Place) -> None:
        """Make the nodes what they are asked to be, while nothing runs on them; then start all."""
        hosts = {host.name: host for host in self.hosts}
        members = {member.name: member for member in self.layout.members}
        asked = asked_of(self.spec)
        device = limits.device_of(hosts, asked)

        def remake(node: str, dials: Mapping[str, float]) -> None:
            place.away(members[node])
            place.make(members[node], self._given(members[node]), dials, device)

        gauge = Gauge(self.hosts, lambda host: self.agent(host, "load"))
        labels = self._engine.labels(self.name)
        with limits.Helpers(self._engine, place.image, labels) as helpers:
            limiter = limits.DockerLimiter(self._engine, hosts, gauge, remake, helpers)
            found = correct(asked, limiter, where=self.where)
        self._limits.write_bytes(LIMITS.dump_json(found, indent=1, exclude_none=True))
        for host in self.hosts:
            keys = [
                d.key
                for d in plans.daemons_of(self.layout, members[host.name])
                if plans.is_first(d)
            ]
            lines = "".join(f"start {key}\n" for key in keys)
            host.run(["tee", plans.CONTROL], input=lines.encode())

    def _given(self, member: Member) -> bytes:
        """The archive of all that a node gets before its start."""
        agent = {Path(AGENT).name: agent_bytes()}
        files = plans.files(self.spec, self.layout, member, agent)
        folders = plans.folders(self.layout, member)
        if member == self.layout.master:  # formatting a name space anew would take a second or two
            current = f"{self.layout.data(member)}/name/current".removeprefix(f"{plans.BASE}/")
            folders += [current.removesuffix("/current"), current]
            files |= {f"{current}/{p.name}": p.read_bytes() for p in self._name_space()}
        return archives.packed(files, folders)

    def _name_space(self) -> list[Path]:
        """Files of an empty formatted name space."""
        if self.home.formatted is None:
            raise MachineError(
                "the Hadoop home has no formatted name space that this user can read",
                where=f"{self.home.path}/name",
                fix="make setup",
            )
        return sorted((self.home.formatted / "current").iterdir())

    def _save(self, engine: Engine, subnet: str) -> None:
        self._state = {
            "spec": self.spec.model_dump(mode="json"),
            "engine": dict(engine.settings),
            "subnet": subnet,
        }
        part = self.folder / "docker.part"
        part.write_text(json.dumps(self._state, indent=1))
        part.replace(self.folder / _STATE)

    # doors

    @cached_property
    def _engine(self) -> Engine:
        """The engine on which the cluster was started, whatever ``DOCKER_HOST`` says by now."""
        if self._state is None:
            raise self.not_up()
        return Engine.connect(self._state["engine"])

    @property
    def layout(self) -> Layout:
        """Where the nodes find Hadoop, their configuration and their data."""
        if self._state is None:
            raise self.not_up()
        return plans.layout(self.spec.workers, self._state["subnet"])

    @property
    def hosts(self) -> tuple[DockerHost, ...]:
        """The nodes, master first."""
        where = self.layout
        return tuple(
            DockerHost(
                m.name, m.address, where.data(m), containers.name_of(self.name, m.name),
                self._engine, plans.environment(where, m),
            )
            for m in where.members
        )  # fmt: skip

    @property
    def java(self) -> str:
        """The ``java`` command of the image."""
        return plans.LAUNCHER

    @property
    def tasks_archive(self) -> str | None:
        """The class-data archive of traced tasks in the image."""
        return images.TASKS_ARCHIVE if self.home.trace_path_jar else None

    @property
    def way_in(self) -> str:
        """Nothing where the engine is here: its machine is part of every network on it."""
        master = containers.name_of(self.name, self.layout.master.name)
        return "" if self._engine.near else f"docker exec {master}"

    def agent_path(self, host: Host) -> str:
        """The node agent is in every node from its start."""
        del host
        return AGENT

    def _supervision(self) -> dict[str, Any]:
        return {
            "deaths": plans.DEATHS,
            "control": plans.CONTROL,
            "start": daemons.Daemon("historyserver", self.layout.master).key,
        }

    # evidence

    def _dead_keys(self) -> list[str]:
        if self._watch is None:
            self._watch = Watch(self._engine, {h.name: h.container for h in self.hosts})
        dead, ended = self._watch.deaths(), self._watch.ended()
        known = daemons.daemons(self.layout)
        return [d.key for d in known if d.key in dead or d.member.name in ended]

    def dead_daemons(self) -> list[str]:
        """Daemons that have ended (``datanode on worker2``): the engine has told of them."""
        names = {d.key: d.name for d in daemons.daemons(self.layout)}
        return [names[key] for key in self._dead_keys()]

    def out_of_memory(self) -> list[str]:
        """Nodes that ran out of memory since this was last asked, each with its limit."""
        found = []
        hosts = self.hosts
        for host, kills in zip(hosts, together([partial(kills_of, h) for h in hosts]), strict=True):
            more, self._kills[host.name] = kills - self._kills.get(host.name, 0), kills
            if more > 0:
                limited = host.name != self.layout.master.name
                limit = self.spec.hardware(host.name).memory_bytes if limited else None
                found.append(said(host.name, more, limit))
        return found

    def daemon_logs(self, lines: int = 20) -> dict[str, str]:
        """
        The last lines of every daemon's log, and what became of those that have ended.

        With the engine gone each says so: a trial that failed of it is to be kept.
        """
        try:
            return self._daemon_logs(lines)
        except EngineError as error:
            return {d.name: f"[{error.what}]" for d in daemons.daemons(self.layout)}

    def _daemon_logs(self, lines: int) -> dict[str, str]:
        hosts = self.hosts
        tails = together([partial(logs.tails_of, host, lines) for host in hosts])
        by_node = {host.name: found for host, found in zip(hosts, tails, strict=True)}
        deaths = self._watch.deaths() if self._watch is not None else {}
        return {
            d.name: logs.with_death(by_node[d.member.name].get(f"{d.key}.log", ""), d, deaths)
            for d in daemons.daemons(self.layout)
        }

    def thread_dumps(self, into: Path) -> list[Path]:
        """
        Have every JVM of the nodes say what its threads do; one file each in the folder *into*.

        A client's output is carried, and no file: it has none.
        """
        tasks = [partial(logs.dumps_of, host, into) for host in self.hosts]
        return [path for paths in together(tasks) for path in paths]

    def container_logs(self, application_id: str, into: Path) -> list[Path]:
        """Copy an application's logs of all nodes to ``into/<node>/<container>/<file>``."""
        application = application_name(application_id)
        workers = self.hosts[1:]
        tasks = [partial(logs.logs_of, host, application, into / host.name) for host in workers]
        return [path for paths in together(tasks) for path in paths]


def _load(folder: Path) -> dict[str, Any] | None:
    """The state in *folder*; `None` where there is none, or none that can be read."""
    try:
        state: Any = json.loads((folder / _STATE).read_text())
    except (OSError, ValueError):
        return None
    return state if isinstance(state, dict) and {"spec", "engine", "subnet"} <= set(state) else None


def _remove(folder: Path, name: str) -> bool:
    """Remove what the engine and we have of the cluster; `False`: there was none."""
    if not folder.exists():
        return False
    state = _load(folder)
    with Postponed():
        if state is not None:  # without it nothing was asked of an engine yet
            engine = _engine_of(state, folder)
            try:
                engine.reap(name)
            finally:
                engine.client.close()
        states.remove_tree(folder)
    return True


def _engine_of(state: Mapping[str, Any], folder: Path) -> Engine:
    """The engine that has the cluster; the error tells what to do where it is gone for good."""
    try:
        return Engine.connect(state["engine"])
    except MachineError as error:
        raise MachineError(
            error.what,
            where=error.where,
            fix=f"{error.fix}; if that engine is gone for good: rm -r {folder}",
        ) from error
