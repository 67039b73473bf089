"""Containers and networks of a cluster: how they are made, and what an engine cannot give."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness.errors import ClusterError, MachineError, SpecError
from harness.hadoop import site
from harness.hadoop.daemons import Layout, Member
from harness.providers.docker import plan
from harness.providers.docker.engine import LABEL, Engine, EngineError, owner
from harness.providers.docker.limits import host_options
from harness.records.trial import ClusterSpec
from harness.units import MIB, format_bytes

_TRIES = 8
_DAEMONS_BYTES = 640 * MIB  # of a DataNode and a NodeManager, idle
_LOG = {"type": "json-file", "config": {"max-size": "4m", "max-file": "2"}}


@dataclass(frozen=True, slots=True)
class NodeMaker:
    """Makes and removes the nodes of one cluster."""

    engine: Engine
    cluster: str
    image: str
    spec: ClusterSpec
    layout: Layout

    def make(
        self, member: Member, files: bytes, rates: Mapping[str, float], device: str = ""
    ) -> None:
        """Make a node with limits *rates* (of the disk *device*), give it *files*, start it."""
        client, container_name = self.engine.client.api, name_of(self.cluster, member.name)
        network = {
            network_name(self.cluster): client.create_endpoint_config(
                ipv4_address=member.address, aliases=[member.name]
            )
        }
        with self.engine.translate_errors(f"container {container_name}"):
            options = {**self.host_config(member), **host_options(rates, device)}
            container = client.create_container(
                self.image, name=container_name, hostname=member.name,
                labels={**self.engine.labels(self.cluster), f"{LABEL}.node": member.name},
                host_config=client.create_host_config(**options),
                networking_config=client.create_networking_config(network),
            )["Id"]  # fmt: skip
            client.put_archive(container, plan.BASE, files)
            client.start(container)

    def remove(self, member: Member) -> None:
        """Remove a node, but for its volume."""
        container_name = name_of(self.cluster, member.name)
        with self.engine.translate_errors(f"container {container_name}"):
            self.engine.client.api.remove_container(container_name, force=True)

    def host_config(self, member: Member) -> dict[str, Any]:
        """What the container of *member* gets of its machine: as little as possible."""
        from docker.types import DeviceRequest, DriverConfig, LogConfig, Mount

        volume = Mount(
            plan.BASE, name_of(self.cluster, member.name), type="volume",
            labels=self.engine.labels(self.cluster), driver_config=DriverConfig("local"),
        )  # fmt: skip
        host_config: dict[str, Any] = {
            "network_mode": network_name(self.cluster),
            # both ways, and without the engine's resolver, whose answers bear the network's name
            "extra_hosts": {other.name: other.address for other in self.layout.members},
            "mounts": [volume],
            "log_config": LogConfig(**_LOG),
            "cap_drop": ["ALL"],
            "security_opt": ["no-new-privileges"],
            "device_requests": [],
        }
        if member == self.layout.master:
            return host_config
        if gpu_count := self.spec.node.gpus:  # nodes of one machine do not share any
            first = self.layout.workers.index(member) * gpu_count
            numbers = [str(number) for number in range(first, first + gpu_count)]
            request = DeviceRequest(driver="nvidia", device_ids=numbers, capabilities=[["gpu"]])
            host_config["device_requests"] = [request]
        memory_bytes = self.spec.hardware(member.name).memory_bytes
        if memory_bytes is not None:  # without swap: a process that does not fit is killed
            host_config |= {"mem_limit": memory_bytes, "memswap_limit": memory_bytes}
        return host_config


def network_name(cluster: str) -> str:
    """Name of a cluster's network; others may use the engine, too, so it names its owner."""
    return f"harness-{owner()}-{cluster}"


def name_of(cluster: str, node: str) -> str:
    """Name of a node's container and of its volume."""
    return f"{network_name(cluster)}-{node}"


def make_network(engine: Engine, cluster: str) -> str:
    """Make the network of a cluster, without a way out; its subnet."""
    from docker.types import IPAMConfig, IPAMPool

    with engine.translate_errors("networks"):
        networks = engine.client.api.networks()
    pools = [pool for entry in networks for pool in (entry.get("IPAM") or {}).get("Config") or ()]
    used_subnets = [str(pool["Subnet"]) for pool in pools if pool.get("Subnet")]
    for subnet in plan.free_subnets(used_subnets)[:_TRIES]:
        try:
            with engine.translate_errors(f"network of cluster {cluster!r}"):
                engine.client.networks.create(
                    network_name(cluster), driver="bridge", internal=True, check_duplicate=True,
                    labels=engine.labels(cluster),
                    ipam=IPAMConfig(pool_configs=[IPAMPool(subnet=subnet)]),
                )  # fmt: skip
        except EngineError as error:  # networks of the machine itself are not in the engine's list
            if "overlap" not in error.what:
                raise
        else:
            return subnet
    raise ClusterError(
        f"no free network within {plan.POOL}",
        where=f"Docker engine at {engine.address}",
        fix="docker network prune removes those that nobody uses; "
        "harness cluster down --all takes down your own clusters",
    )


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
            fix="leave out cluster.node.memory, or use a rootful engine",
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
    for worker, memory_bytes in _memory_of(spec).items():
        if memory_bytes < least:
            raise SpecError(
                f"{worker} has {format_bytes(memory_bytes)} of memory, and its tasks and daemons"
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
