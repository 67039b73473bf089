"""
Limits of containers: the engine limits processors and disks, ``tc`` limits the network.

All goes through the engine, so it may be far.  ``tc`` runs in helper containers that share a node's
network (or that of the engine's machine, where the other end of a node's link is) and may change
networks and nothing else; they are removed when all is set.  The engine takes a disk's rate only
when it makes a container: a new rate is a new container on the same volume, before anything runs.
"""

from __future__ import annotations

import re

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from harness.errors import ClusterError, MachineError
from harness.providers.calibrate import Rates
from harness.providers.docker.engine import LABEL, Engine
from harness.providers.docker.host import DockerHost
from harness.providers.docker.plan import AGENT_COMMAND
from harness.providers.kernel import LEAST_QUOTA_US, PERIOD_US, shape_argv
from harness.records.hardware import CORES, DISK_READ, DISK_WRITE, NETWORK_IN, NETWORK_OUT
from harness.text import excerpt

_LINK = re.compile(r"^(\d+): ([\w.-]+)[@:]", re.MULTILINE)


def require(engine: Engine, names: set[str]) -> None:
    """`MachineError` where the engine has no control groups for the limits of these *names*."""
    rootless = engine.facts.get("CgroupDriver") == "none"
    if names & {CORES, DISK_READ, DISK_WRITE} and (
        rootless or not engine.facts.get("CpuCfsQuota", True)
    ):
        raise MachineError(
            "the Docker engine cannot limit nodes: it has no control groups"
            + (" (it is rootless)" if rootless else ""),
            where=f"cluster.node, cluster.nodes, {engine.address}",
            fix="leave out cluster.node.cores and cluster.node.disk, or use a rootful engine",
        )


def device_of(hosts: Mapping[str, DockerHost], requested: Mapping[str, Rates]) -> str:
    """The disk on which the engine keeps its volumes; empty where none is to be limited."""
    limited = [node_name for node_name, rates in requested.items() if DISK_READ in rates]
    if not limited:
        return ""
    host = hosts[limited[0]]
    device = host.run([*AGENT_COMMAND, "facts", "device", host.folder]).out.strip()
    if not device:
        raise MachineError(
            "the disk of nodes cannot be limited: the engine's data is not on a block device",
            where=f"cluster.node.disk, {host.name}: {host.folder}",
            fix="leave out cluster.node.disk, or give the engine a disk (data-root)",
        )
    return device


def cpu_quota(cores: float) -> dict[str, int]:
    """Options of a container that has a share of the processors."""
    quota_us = max(LEAST_QUOTA_US, round(cores * PERIOD_US))
    return {"cpu_period": PERIOD_US, "cpu_quota": quota_us}


def host_options(rates: Mapping[str, float], device: str) -> dict[str, Any]:
    """Options with which a container is made that has limits of processors and disk *device*."""
    options: dict[str, Any] = cpu_quota(rates[CORES]) if CORES in rates else {}
    for control, option in ((DISK_READ, "device_read_bps"), (DISK_WRITE, "device_write_bps")):
        if control in rates:
            options[option] = [{"Path": device, "Rate": round(rates[control])}]
    return options


@dataclass
class DockerLimiter:
    """
    Sets the limits of *hosts*; *remake* makes a node anew with limits of processors and disk.

    *current* are the limits that nodes have.
    """

    engine: Engine
    hosts: Mapping[str, DockerHost]
    remake: Callable[[str, Rates], None]
    helpers: Helpers
    current: dict[str, Rates] = field(default_factory=dict)

    def set(self, settings: Mapping[str, Rates]) -> None:
        """Set limits of nodes; others stay as they are."""
        for node_name, rates in settings.items():
            before = self.current.get(node_name, {})
            changed = {control for control, rate in rates.items() if before.get(control) != rate}
            every = self.current[node_name] = {**before, **rates}
            if changed & {DISK_READ, DISK_WRITE}:
                self.remake(node_name, every)
                # a container that was made anew has its processors' share, but a new link
                changed = set(every) - {CORES, DISK_READ, DISK_WRITE}
            if CORES in changed:
                container = self.hosts[node_name].container
                with self.engine.translate_errors(f"processors of {node_name}"):
                    self.engine.client.api.update_container(container, **cpu_quota(rates[CORES]))
            if changed & {NETWORK_OUT, NETWORK_IN}:
                self._shape_link(node_name, every)

    def _shape_link(self, node_name: str, rates: Rates) -> None:
        """Limit both ends of a node's link: its own, and the one on the engine's machine."""
        host = self.hosts[node_name]
        self.helpers.run(host.container, shape_argv("eth0", rates[NETWORK_OUT]), node_name)
        peer_index = host.run(["cat", "/sys/class/net/eth0/iflink"]).out.strip()
        links = dict(_LINK.findall(self.helpers.run("", ["ip", "-o", "link"], node_name)))
        if peer_index not in links:
            raise ClusterError(
                f"the other end of the link of {node_name} is not on the engine's machine",
                where=f"Docker engine at {self.engine.address}",
                fix="leave out cluster.node.network: this engine hides its machine's network",
            )
        self.helpers.run("", shape_argv(links[peer_index], rates[NETWORK_IN]), node_name)


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
        for helper in self._made.values():
            with self.engine.translate_errors("removing a helper"):
                self.engine.client.api.remove_container(helper, force=True, v=True)
        self._made.clear()

    def run(self, container: str, argv: Sequence[str], node_name: str) -> str:
        """Run *argv* in the network of *container* (empty: the machine's); what it wrote."""
        client = self.engine.client.api
        with self.engine.translate_errors(f"network of {node_name}"):
            if container not in self._made:
                helper = client.create_container(
                    self.image, ["sleep", "infinity"], user="0",
                    labels={**self.labels, f"{LABEL}.node": "helper"},
                    host_config=client.create_host_config(
                        network_mode=f"container:{container}" if container else "host",
                        cap_drop=["ALL"], cap_add=["NET_ADMIN"],
                        security_opt=["no-new-privileges"],
                    ),
                )["Id"]  # fmt: skip
                self._made[container] = helper
                client.start(helper)
            command = client.exec_create(self._made[container], list(argv), user="0")["Id"]
            stdout, stderr = client.exec_start(command, demux=True)
            status = client.exec_inspect(command)["ExitCode"]
        if status != 0:
            message = excerpt(stderr or stdout or b"", 300)
            raise ClusterError(
                f"the network of {node_name} cannot be limited: {message}",
                where=" ".join(argv),
                fix="the engine's kernel may lack it: modprobe sch_tbf, or leave the limit out",
            )
        return (stdout or b"").decode(errors="replace")
