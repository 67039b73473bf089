"""Containers and networks of a cluster: what is asked of the engine, and what it cannot give."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness.errors import ClusterError, MachineError, SpecError
from harness.hadoop import site
from harness.hadoop.layout import Layout, Member
from harness.providers.docker import plan as plans
from harness.providers.docker.engine import LABEL, Engine, EngineError, owner
from harness.providers.docker.limits import at_making
from harness.records.trial import ClusterSpec
from harness.units import MIB, format_bytes

_TRIES = 8
_DAEMONS_BYTES = 640 * MIB  # of a DataNode and a NodeManager, idle
_LOG = {"type": "json-file", "config": {"max-size": "4m", "max-file": "2"}}


@dataclass(frozen=True, slots=True)
class Place:
    """Where nodes are made, and of what."""

    engine: Engine
    cluster: str
    image: str
    spec: ClusterSpec
    layout: Layout

    def make(
        self, member: Member, given: bytes, dials: Mapping[str, float], device: str = ""
    ) -> None:
        """
        Make a node, give it its files, start it.

        *dials* are its limits; *device* is the engine's disk, where that is limited.
        """
        api, name = self.engine.client.api, name_of(self.cluster, member.name)
        with self.engine.asked(f"container {name}"):
            made = api.create_container(
                self.image, name=name, hostname=member.name, labels=self._labels(member),
                host_config=api.create_host_config(
                    **self._host(member, name), **at_making(dials, device)
                ),
                networking_config=api.create_networking_config({
                    network_name(self.cluster): api.create_endpoint_config(
                        ipv4_address=member.address, aliases=[member.name]
                    )
                }),
            )  # fmt: skip
            api.put_archive(made["Id"], plans.BASE, given)
            api.start(made["Id"])

    def away(self, member: Member) -> None:
        """Remove a node, but for its volume."""
        name = name_of(self.cluster, member.name)
        with self.engine.asked(f"container {name}"):
            self.engine.client.api.remove_container(name, force=True)

    def _labels(self, member: Member) -> dict[str, str]:
        return {**self.engine.labels(self.cluster), f"{LABEL}.node": member.name}

    def _host(self, member: Member, name: str) -> dict[str, Any]:
        """What a container gets of its machine."""
        from docker.types import DriverConfig, LogConfig, Mount

        labels = self.engine.labels(self.cluster)
        return {
            "network_mode": network_name(self.cluster),
            # both ways, and without the engine's resolver, whose answers bear the network's name
            "extra_hosts": {m.name: m.address for m in self.layout.members},
            "mounts": [
                Mount(
                    plans.BASE,
                    name,
                    type="volume",
                    labels=labels,
                    driver_config=DriverConfig("local"),
                )
            ],
            "log_config": LogConfig(**_LOG),
            "cap_drop": ["ALL"],
            "security_opt": ["no-new-privileges"],
            "device_requests": self._gpus(member),
            **self._memory(member),
        }

    def _memory(self, member: Member) -> dict[str, int]:
        """The memory of a worker, without swap: what does not fit is ended."""
        size = self.spec.hardware(member.name).memory_bytes
        if size is None or member == self.layout.master:
            return {}
        return {"mem_limit": size, "memswap_limit": size}

    def _gpus(self, member: Member) -> list[Any]:
        """The devices of a worker: nodes of one machine do not share any."""
        from docker.types import DeviceRequest

        count = self.spec.node.gpus
        if not count or member == self.layout.master:
            return []
        number = self.layout.workers.index(member)
        devices = [str(n) for n in range(number * count, (number + 1) * count)]
        return [DeviceRequest(driver="nvidia", device_ids=devices, capabilities=[["gpu"]])]


def network_name(cluster: str) -> str:
    """Name of a cluster's network; on an engine that others use, too, it must be ours alone."""
    return f"harness-{owner()}-{cluster}"


def name_of(cluster: str, node: str) -> str:
    """Name of a node's container and of its volume."""
    return f"{network_name(cluster)}-{node}"


def make_network(engine: Engine, cluster: str) -> str:
    """Make the network of a cluster, without a way out; answers its subnet."""
    from docker.types import IPAMConfig, IPAMPool

    for subnet in plans.subnets(_taken(engine))[:_TRIES]:
        try:
            with engine.asked(f"network of cluster {cluster!r}"):
                engine.client.networks.create(
                    network_name(cluster), driver="bridge", internal=True, check_duplicate=True,
                    labels=engine.labels(cluster),
                    ipam=IPAMConfig(pool_configs=[IPAMPool(subnet=subnet)]),
                )  # fmt: skip
        except EngineError as error:
            if "overlap" not in error.what:
                raise
        else:
            return subnet
    raise ClusterError(
        f"no free network within {plans.POOL}",
        where=f"Docker engine at {engine.address}",
        fix="docker network prune removes those that nobody uses; "
        "harness cluster down --all takes down your own clusters",
    )


def _taken(engine: Engine) -> list[str]:
    """Subnets of all networks that the engine has."""
    with engine.asked("networks"):
        networks = engine.client.api.networks()
    pools = [p for n in networks for p in (n.get("IPAM") or {}).get("Config") or ()]
    return [str(p["Subnet"]) for p in pools if p.get("Subnet")]


def require(engine: Engine, spec: ClusterSpec) -> None:
    """`MachineError` for what the engine cannot hold, before anything is made."""
    if engine.facts.get("OSType", "linux") != "linux":
        raise MachineError(
            "the Docker engine runs no Linux containers",
            where=engine.address,
            fix="switch it to Linux containers, or set DOCKER_HOST to another engine",
        )
    if _memory_of(spec) and not engine.facts.get("MemoryLimit", True):
        raise MachineError(
            "the Docker engine cannot limit the memory of nodes: it has no control group for it",
            where=f"cluster.node.memory, cluster.nodes, {engine.address}",
            fix="leave out cluster.node.memory, or use an engine of root's",
        )
    if spec.node.gpus and not offers_gpus(engine):
        raise MachineError(
            "the Docker engine cannot give GPUs to containers: it has no NVIDIA runtime",
            where=f"cluster.node.gpus = {spec.node.gpus}, {engine.address}",
            fix="install the NVIDIA container toolkit on the engine's machine, then: "
            "sudo nvidia-ctk runtime configure --runtime=docker && sudo systemctl restart docker",
        )


def require_memory(spec: ClusterSpec) -> None:
    """`SpecError` for a worker that cannot hold what it offers to tasks, and its daemons."""
    least = site.node_memory_mb(spec.node) * MIB + _DAEMONS_BYTES
    for worker, size in _memory_of(spec).items():
        if size < least:
            raise SpecError(
                f"{worker} has {format_bytes(size)} of memory, and its tasks and daemons"
                f" need {format_bytes(least)}",
                where="cluster.node.memory, cluster.nodes",
                fix=f"write {format_bytes(least)} or more, or fewer slots, or less task_memory",
            )


def _memory_of(spec: ClusterSpec) -> dict[str, int]:
    """Bytes of memory of each worker that has a limit."""
    workers = [f"worker{number}" for number in range(1, spec.workers + 1)]
    sizes = {worker: spec.hardware(worker).memory_bytes for worker in workers}
    return {worker: size for worker, size in sizes.items() if size is not None}


def offers_gpus(engine: Engine) -> bool:
    """Whether the engine has the NVIDIA runtime."""
    return "nvidia" in (engine.facts.get("Runtimes") or {})
