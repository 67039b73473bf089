"""
Hardware made on purpose in containers: the engine limits processors and disks, ``tc`` the network.

All goes through the engine, so it may be far.  ``tc`` runs in helpers that share a node's network
(or that of the engine's machine, where the other end of a node's link is) and have the right to
change networks and no other; they are gone when all is set.  A disk's rate is given to a container
when it is made: a new rate is a new container on the same volume, before anything runs in it.
"""

from __future__ import annotations

import re

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from harness.errors import ClusterError, MachineError
from harness.providers.docker.engine import LABEL, Engine
from harness.providers.docker.host import AGENT, PYTHON, DockerHost
from harness.providers.host import printable
from harness.providers.limits.cgroups import PERIOD_US
from harness.providers.limits.correct import Dials
from harness.providers.limits.gauge import Gauge
from harness.providers.limits.shaping import shape_argv
from harness.records.hardware import CORES, DISK_READ, DISK_WRITE, NETWORK_IN, NETWORK_OUT

_LEAST_QUOTA_US = 1000
_LINK = re.compile(r"^(\d+): ([\w.-]+)[@:]", re.MULTILINE)


def require(engine: Engine, asked: set[str]) -> None:
    """`MachineError` where the engine has no control groups for what is *asked*."""
    facts = engine.facts
    without = facts.get("CgroupDriver") == "none"
    if asked & {CORES, DISK_READ, DISK_WRITE} and (without or not facts.get("CpuCfsQuota", True)):
        raise MachineError(
            "the Docker engine cannot limit nodes: it has no control groups"
            + (" (it runs without root's rights)" if without else ""),
            where=f"cluster.node, cluster.nodes, {engine.address}",
            fix="leave out cluster.node.cores and cluster.node.disk, or use an engine of root's",
        )


def device_of(hosts: Mapping[str, DockerHost], asked: Mapping[str, Dials]) -> str:
    """The disk on which the engine keeps its volumes; empty where none is to be limited."""
    limited = [node for node, dials in asked.items() if DISK_READ in dials]
    if not limited:
        return ""
    host = hosts[limited[0]]
    device = host.run([*PYTHON, AGENT, "facts", "device", host.folder]).out.strip()
    if not device:
        raise MachineError(
            "the disk of nodes cannot be limited: the engine keeps its data on no block device",
            where=f"cluster.node.disk, {host.name}: {host.folder}",
            fix="leave out cluster.node.disk, or give the engine a disk (data-root)",
        )
    return device


def at_making(dials: Mapping[str, float], device: str) -> dict[str, Any]:
    """What the engine is told of a container's processors and its disk *device*."""
    found: dict[str, Any] = {}
    if CORES in dials:
        found |= _quota(dials[CORES])
    for dial, name in ((DISK_READ, "device_read_bps"), (DISK_WRITE, "device_write_bps")):
        if dial in dials:
            found[name] = [{"Path": device, "Rate": round(dials[dial])}]
    return found


def _quota(cores: float) -> dict[str, int]:
    return {
        "cpu_period": PERIOD_US,
        "cpu_quota": max(_LEAST_QUOTA_US, round(cores * PERIOD_US)),
    }


@dataclass
class DockerLimiter:
    """
    Sets and measures the dials of *hosts*; see `harness.providers.limits.correct.Limiter`.

    *remake* makes a node anew with the dials that it is told; *known* are those that nodes have.
    """

    engine: Engine
    hosts: Mapping[str, DockerHost]
    gauge: Gauge
    remake: Callable[[str, Dials], None]
    helpers: Helpers
    known: dict[str, Dials] = field(default_factory=dict)

    def set(self, settings: Mapping[str, Dials]) -> None:
        """Set dials of nodes."""
        for node, dials in settings.items():
            before = self.known.get(node, {})
            changed = {dial for dial, value in dials.items() if before.get(dial) != value}
            self.known[node] = {**before, **dials}
            if changed & {DISK_READ, DISK_WRITE}:
                self.remake(node, self.known[node])
                changed = set(self.known[node]) - {CORES, DISK_READ, DISK_WRITE}
            if CORES in changed:
                self._give_cores(node, dials[CORES])
            if changed & {NETWORK_OUT, NETWORK_IN}:
                self._shape(node, self.known[node])

    def measure(self, field: str, asked: Mapping[str, Dials]) -> dict[str, Dials]:
        """Measure the dials of *field* on all nodes of *asked* at once."""
        return self.gauge.measure(field, asked)

    def unwaited(self, asked: Mapping[str, Dials]) -> dict[str, float]:
        """Measure what the disks of the nodes of *asked* take while nobody waits for them."""
        return self.gauge.unwaited(asked)

    def _give_cores(self, node: str, cores: float) -> None:
        with self.engine.asked(f"processors of {node}"):
            self.engine.client.api.update_container(self.hosts[node].container, **_quota(cores))

    def _shape(self, node: str, dials: Dials) -> None:
        host = self.hosts[node]
        self.helpers.run(host.container, shape_argv("eth0", dials[NETWORK_OUT]), node)
        peer = host.run(["cat", "/sys/class/net/eth0/iflink"]).out.strip()
        links = dict(_LINK.findall(self.helpers.run("", ["ip", "-o", "link"], node)))
        if peer not in links:
            raise ClusterError(
                f"the other end of the link of {node} is not on the engine's machine",
                where=f"Docker engine at {self.engine.address}",
                fix="leave out cluster.node.network: this engine hides its machine's network",
            )
        self.helpers.run("", shape_argv(links[peer], dials[NETWORK_IN]), node)


@dataclass
class Helpers:
    """Containers of *image* that may change the network of another one, or of the machine."""

    engine: Engine
    image: str
    labels: Mapping[str, str]
    _made: dict[str, str] = field(default_factory=dict)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for made in self._made.values():
            with self.engine.asked("removing a helper"):
                self.engine.client.api.remove_container(made, force=True, v=True)
        self._made.clear()

    def run(self, container: str, argv: Sequence[str], node: str) -> str:
        """Run *argv* in the network of *container* (empty: the machine's); what it wrote."""
        api = self.engine.client.api
        with self.engine.asked(f"network of {node}"):
            if container not in self._made:
                self._made[container] = self._make(container)
            made = api.exec_create(self._made[container], list(argv), user="0")
            out, err = api.exec_start(made["Id"], demux=True)
            status = api.exec_inspect(made["Id"])["ExitCode"]
        if status != 0:
            said = printable((err or out or b"").decode(errors="replace")).strip()[:300]
            raise ClusterError(
                f"the network of {node} cannot be limited: {said}",
                where=" ".join(argv),
                fix="the engine's kernel may lack it: modprobe sch_tbf, or leave the limit out",
            )
        return (out or b"").decode(errors="replace")

    def _make(self, container: str) -> str:
        api = self.engine.client.api
        made: str = api.create_container(
            self.image, ["sleep", "infinity"], user="0",
            labels={**self.labels, f"{LABEL}.node": "helper"},
            host_config=api.create_host_config(
                network_mode=f"container:{container}" if container else "host",
                cap_drop=["ALL"], cap_add=["NET_ADMIN"], security_opt=["no-new-privileges"],
            ),
        )["Id"]  # fmt: skip
        api.start(made)
        return made
