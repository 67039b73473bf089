"""
Nodes of a cluster in containers: what they are given, how they are made, and what limits them.

A node's folder is laid out as that of a local cluster (`harness.clusters.local.cluster`).  A
container whose supervisor has ended, at the latest at the end of its lease, is removed by the
engine itself, with its volume: whether we are there or not.
"""

from __future__ import annotations

import io
import ipaddress
import json
import platform
import re
import secrets

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from harness.base.errors import ClusterError, MachineError, SpecError
from harness.base.hadoop import daemons, site
from harness.base.hadoop.daemons import Layout, Member, make_members
from harness.base.records.trial import (
    CORES,
    DISK_READ,
    DISK_WRITE,
    NETWORK_IN,
    NETWORK_OUT,
    ClusterSpec,
)
from harness.base.text import excerpt
from harness.base.units import MIB, format_bytes
from harness.clusters import archives
from harness.clusters.adjust import Rates, requested_names
from harness.clusters.docker.engine import LABEL, Engine, EngineError, owner
from harness.clusters.docker.host import AGENT, AGENT_COMMAND, BASE, LOGS, PIDS, USER, DockerHost
from harness.clusters.hadoop_home.home import HadoopHome
from harness.clusters.kernel import LEAST_QUOTA_US, PERIOD_US, shape_argv
from harness.clusters.node import agent_bytes

HOME = "/opt/hadoop"
JAVA = "/opt/java"
JAVA_COMMAND = f"{JAVA}/bin/java"
TASKS_ARCHIVE = f"{HOME}/tasks.jsa"
# of the block kept for benchmarks (RFC 2544); namespaces of the local provider use its lower part
POOL = ipaddress.ip_network("198.18.64.0/18")
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_TRIES = 8
_DAEMONS_BYTES = 640 * MIB  # of a DataNode and a NodeManager, idle
_LINK = re.compile(r"^(\d+): ([\w.-]+)[@:]", re.MULTILINE)


def free_subnets(used: Iterable[str]) -> list[str]:
    """
    Networks of 253 nodes that overlap none of those *used*, in order.

    >>> free_subnets(["198.18.64.0/23", "172.17.0.0/16", "fd00::/64"])[0]
    '198.18.66.0/24'
    """
    taken = [network for network in map(ipaddress.ip_network, used) if network.version == 4]
    return [
        str(subnet)
        for subnet in POOL.subnets(new_prefix=24)
        if not any(subnet.overlaps(network) for network in taken)
    ]


def make_layout(workers: int, subnet: str) -> Layout:
    """
    Master and *workers* with addresses of *subnet*, whose first the engine keeps for a gateway.

    >>> [f"{node.name} {node.address}" for node in make_layout(2, "198.18.64.0/24").members]
    ['master 198.18.64.2', 'worker1 198.18.64.3', 'worker2 198.18.64.4']
    """
    first = ipaddress.ip_network(subnet).network_address + 2
    members = tuple(
        Member(member.name, str(first + number))
        for number, member in enumerate(make_members(workers))
    )
    return Layout(members, BASE, HOME, f"{HOME}/classes.jsa")


def environment(layout: Layout, member: Member) -> dict[str, str]:
    """Environment of all that runs on *member*."""
    plain = {"PATH": _PATH, "LANG": "C.UTF-8", "HOME": BASE}
    return daemons.environment(plain, JAVA, layout, member)


def files(spec: ClusterSpec, layout: Layout, member: Member, secret: str) -> dict[str, bytes]:
    """Content of each file that *member* of the cluster with *secret* is given, by its path."""
    conf = layout.conf(member)
    conf_files = site.site_files(spec, layout, member)
    texts = {f"{conf}/{name}": text for name, text in site.conf_texts(conf_files, secret).items()}
    plan = daemons.supervisor_plan(
        layout,
        [member],
        JAVA_COMMAND,
        lambda member: environment(layout, member),
        at_once=not spec.limited,  # else they start when the limits are set
    )
    texts[f"{BASE}/plan.json"] = json.dumps(plan, indent=1)
    return {path: text.encode() for path, text in texts.items()}


def archive(
    spec: ClusterSpec, layout: Layout, member: Member, home: HadoopHome, secret: str
) -> bytes:
    """The archive of all that a node is given before its start."""
    data = layout.data(member)
    folders = [f"{BASE}/nodes", data, f"{data}/jtmp", f"{BASE}/conf", layout.conf(member)]
    entries: dict[str, Path | bytes | None] = dict.fromkeys([*folders, LOGS, PIDS])
    entries |= {**files(spec, layout, member, secret), AGENT: agent_bytes()}
    if member == layout.master:  # to format a new name space would take a second or two
        entries |= dict.fromkeys([f"{data}/name", f"{data}/name/current"])
        for source_file in sorted((home.require_formatted() / "current").iterdir()):
            entries[f"{data}/name/current/{source_file.name}"] = source_file
    packed = io.BytesIO()
    inner = {path.removeprefix(f"{BASE}/"): content for path, content in entries.items()}
    archives.pack(inner, packed, owner=USER)
    return packed.getvalue()


@dataclass(frozen=True, slots=True)
class NodeMaker:
    """Makes and removes the nodes of one cluster."""

    engine: Engine
    cluster: str
    image: str
    spec: ClusterSpec
    layout: Layout
    home: HadoopHome
    secret: str = field(default_factory=lambda: secrets.token_hex(32))

    def make(self, member: Member, rates: Rates | None = None, device: str = "") -> None:
        """Make a node with limits *rates* (of the disk *device*), give it its files, start it."""
        client = self.engine.client.api
        container_name = name_of(self.cluster, member.name)
        endpoint = client.create_endpoint_config(ipv4_address=member.address, aliases=[member.name])
        network = {network_name(self.cluster): endpoint}
        with self.engine.translate_errors(f"container {container_name}"):
            options = {**self.host_config(member), **host_options(rates or {}, device)}
            container = client.create_container(
                self.image,
                name=container_name,
                hostname=member.name,
                labels={
                    **self.engine.labels(self.cluster),
                    f"{LABEL}.node": member.name,
                    f"{LABEL}.host": platform.node(),
                },
                host_config=client.create_host_config(**options),
                networking_config=client.create_networking_config(network),
            )["Id"]
            files = archive(self.spec, self.layout, member, self.home, self.secret)
            client.put_archive(container, BASE, files)
            client.start(container)

    def remake(self, node_name: str, rates: Rates, device: str) -> None:
        """Make a node anew, once the engine has removed it."""
        container_name = name_of(self.cluster, node_name)
        client = self.engine.client.api
        try:
            with self.engine.translate_errors(f"container {container_name}"):
                client.kill(container_name)
                client.wait(container_name, condition="removed")
        except EngineError as error:
            if error.status != 404:
                raise
        member = next(member for member in self.layout.members if member.name == node_name)
        self.make(member, rates, device)

    def host_config(self, member: Member) -> dict[str, Any]:
        """What the container of *member* gets of its machine: as little as possible."""
        from docker.types import DeviceRequest, DriverConfig, LogConfig, Mount

        volume = Mount(  # without a name, so that it goes with its container
            BASE,
            None,
            type="volume",
            labels=self.engine.labels(self.cluster),
            driver_config=DriverConfig("local"),
        )
        host_config: dict[str, Any] = {
            "network_mode": network_name(self.cluster),
            # both ways, and without the engine's resolver, whose answers bear the network's name
            "extra_hosts": {member.name: member.address for member in self.layout.members},
            "mounts": [volume],
            "auto_remove": True,
            "log_config": LogConfig(type="json-file", config={"max-size": "4m", "max-file": "2"}),
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
    """Name of a node's container."""
    return f"{network_name(cluster)}-{node}"


def make_network(engine: Engine, cluster: str) -> str:
    """
    Make the network of a cluster, without a way in or out; its subnet.

    Its bridge has no address: the engine's machine, else a member of every network on it, has no
    route to the nodes, for none of its users and for nobody behind it.
    """
    from docker.types import IPAMConfig, IPAMPool

    with engine.translate_errors("networks"):
        networks = engine.client.api.networks()
    pools: list[dict[str, Any]] = []
    for network in networks:
        pools += (network.get("IPAM") or {}).get("Config") or ()
    used_subnets = [str(pool["Subnet"]) for pool in pools if pool.get("Subnet")]
    for subnet in free_subnets(used_subnets)[:_TRIES]:
        try:
            with engine.translate_errors(f"network of cluster {cluster!r}"):
                engine.client.networks.create(
                    network_name(cluster),
                    driver="bridge",
                    internal=True,
                    check_duplicate=True,
                    options={"com.docker.network.bridge.inhibit_ipv4": "true"},
                    labels=engine.labels(cluster),
                    ipam=IPAMConfig(pool_configs=[IPAMPool(subnet=subnet)]),
                )
        except EngineError as error:  # networks of the machine itself are not in the engine's list
            if "overlap" not in error.what:
                raise
        else:
            return subnet
    raise ClusterError(
        f"no free network within {POOL}",
        where=f"Docker engine at {engine.address}",
        fix="docker network prune removes those that nobody uses; "
        "harness cluster down --all takes down your own clusters",
    )


def require_unused(engine: Engine, cluster: str) -> None:
    """`ClusterError` where nodes of this name run that were started from another state folder."""
    running = [
        container for container in engine.containers(cluster) if container.status == "running"
    ]
    if running:
        filters = [f"--filter label={key}={text}" for key, text in engine.labels(cluster).items()]
        raise ClusterError(
            f"cluster {cluster!r} runs on this engine, and was started elsewhere, on"
            f" {excerpt(running[0].labels.get(f'{LABEL}.host', 'an unknown host'), 80)}",
            where=f"Docker engine at {engine.address}",
            fix="choose another name; or, if nobody uses it any more, wait for its lease to end,"
            f" or: docker rm -f $(docker ps -aq {' '.join(filters)})",
        )


def require(engine: Engine, spec: ClusterSpec) -> None:
    """`MachineError` for what the engine cannot hold, before anything is made."""
    controls = requested_names(spec)
    rootless = engine.facts.get("CgroupDriver") == "none"
    has_limits = not rootless and engine.facts.get("CpuCfsQuota", True)
    # whether it lacks something; what, in which place of the experiment file, and what to do
    table = (
        (
            engine.facts.get("OSType", "linux") != "linux",
            "runs no Linux containers",
            "cluster.provider",
            "switch it to Linux containers, or set DOCKER_HOST to another engine",
        ),
        (
            _memory_of(spec) and not engine.facts.get("MemoryLimit", True),
            "cannot limit the memory of nodes: it has no control group for it",
            "cluster.node.memory, cluster.nodes",
            "leave out cluster.node.memory, or use a rootful engine",
        ),
        (
            spec.node.gpus and not offers_gpus(engine),
            "cannot give GPUs to containers: it has no NVIDIA runtime",
            f"cluster.node.gpus = {spec.node.gpus}",
            (
                "install the NVIDIA container toolkit on the engine's machine, then: sudo"
                " nvidia-ctk runtime configure --runtime=docker && sudo systemctl restart docker"
            ),
        ),
        (
            controls & {CORES, DISK_READ, DISK_WRITE} and not has_limits,
            "cannot limit nodes: it has no control groups" + " (it is rootless)" * rootless,
            "cluster.node, cluster.nodes",
            "leave out cluster.node.cores and cluster.node.disk, or use a rootful engine",
        ),
    )
    for is_lacking, what, place, remedy in table:
        if is_lacking:
            where = f"{place}, {engine.address}"
            raise MachineError(f"the Docker engine {what}", where=where, fix=remedy)


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
    Sets the limits of *hosts*, by their names, which *maker* has made.

    ``tc`` runs in helper containers that share a node's network (or that of the engine's machine,
    where the other end of its link is); they are removed when its block ends.  The engine takes a
    disk's rate only when it makes a container: a new rate is a new container.
    """

    maker: NodeMaker
    hosts: Mapping[str, DockerHost]
    _device: str = ""  # the disk on which the engine keeps its volumes
    _current: dict[str, Rates] = field(default_factory=dict)
    _helpers: dict[str, str] = field(default_factory=dict)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for helper in self._helpers.values():
            with self.maker.engine.translate_errors("removing a helper"):
                self.maker.engine.client.api.remove_container(helper, force=True, v=True)
        self._helpers.clear()

    def set(self, settings: Mapping[str, Rates]) -> None:
        """Set limits of nodes; others stay as they are."""
        engine = self.maker.engine
        for node_name, rates in settings.items():
            before = self._current.get(node_name, {})
            changed = {control for control, rate in rates.items() if before.get(control) != rate}
            merged = {**before, **rates}
            self._current[node_name] = merged
            if changed & {DISK_READ, DISK_WRITE}:
                self._device = self._device or self._disk_device(self.hosts[node_name])
                self.maker.remake(node_name, merged, self._device)
                # a container that was made anew has its processors' share, but a new link
                changed = set(merged) - {CORES, DISK_READ, DISK_WRITE}
            if CORES in changed:
                container = self.hosts[node_name].container
                with engine.translate_errors(f"processors of {node_name}"):
                    engine.client.api.update_container(container, **cpu_quota(rates[CORES]))
            if changed & {NETWORK_OUT, NETWORK_IN}:
                self._shape_link(node_name, merged)

    def _disk_device(self, host: DockerHost) -> str:
        device = host.run([*AGENT_COMMAND, "facts", "device", host.folder]).out.strip()
        if not device:
            raise MachineError(
                "the disk of nodes cannot be limited: the engine's data is not on a block device",
                where=f"cluster.node.disk, {host.name}: {host.folder}",
                fix="leave out cluster.node.disk, or give the engine a disk (data-root)",
            )
        return device

    def _shape_link(self, node_name: str, rates: Rates) -> None:
        """Limit both ends of a node's link: its own, and the one on the engine's machine."""
        host = self.hosts[node_name]
        self._run(host.container, shape_argv("eth0", rates[NETWORK_OUT]), node_name)
        peer_index = host.run(["cat", "/sys/class/net/eth0/iflink"]).out.strip()
        links = dict(_LINK.findall(self._run("", ["ip", "-o", "link"], node_name)))
        if peer_index not in links:
            raise ClusterError(
                f"the other end of the link of {node_name} is not on the engine's machine",
                where=f"Docker engine at {self.maker.engine.address}",
                fix="leave out cluster.node.network: this engine hides its machine's network",
            )
        self._run("", shape_argv(links[peer_index], rates[NETWORK_IN]), node_name)

    def _run(self, container: str, argv: Sequence[str], node_name: str) -> str:
        """Run *argv* in the network of *container* (empty: the machine's); what it wrote."""
        engine = self.maker.engine
        client = engine.client.api
        with engine.translate_errors(f"network of {node_name}"):
            if container not in self._helpers:
                helper = client.create_container(
                    self.maker.image,
                    ["sleep", "infinity"],
                    user="0",
                    labels={**engine.labels(self.maker.cluster), f"{LABEL}.node": "helper"},
                    host_config=client.create_host_config(
                        network_mode=f"container:{container}" if container else "host",
                        cap_drop=["ALL"],
                        cap_add=["NET_ADMIN"],
                        security_opt=["no-new-privileges"],
                    ),
                )["Id"]
                self._helpers[container] = helper
                client.start(helper)
            command = client.exec_create(self._helpers[container], list(argv), user="0")["Id"]
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
