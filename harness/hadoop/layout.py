"""
Nodes of a cluster and where its folders are on them, as data.

A *member* is a node as its neighbours see it; the first is the master (NameNode, ResourceManager,
JobHistoryServer), the others are workers (DataNode, NodeManager).  Members use Hadoop's default
ports, so an address decides which daemon is meant; where all have one address, each has a block of
ports of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

# Hadoop's own ports; a member's own block has them in this order.
MASTER_PORTS = {
    "namenode": 8020, "namenode_http": 9870, "scheduler": 8030, "tracker": 8031,
    "resourcemanager": 8032, "resourcemanager_admin": 8033, "resourcemanager_http": 8088,
    "historyserver": 10020, "historyserver_http": 19888, "historyserver_admin": 10033,
}  # fmt: skip
_WORKER_PORTS = {
    "datanode": 9866, "datanode_http": 9864, "datanode_ipc": 9867, "nodemanager": 8041,
    "localizer": 8040, "nodemanager_http": 8042, "shuffle": 13562,
}  # fmt: skip
BLOCK_PORTS = 10  # of one member


@dataclass(frozen=True, slots=True)
class Member:
    """
    A node: its name and its address.

    *first_port* is that of its own block of ports, on a host that it shares with all others; 0:
    it has Hadoop's ports, and its name is that of its host.
    """

    name: str
    address: str
    first_port: int = 0

    @property
    def host(self) -> str:
        """Name of its host."""
        return "localhost" if self.first_port else self.name

    def port(self, service: str) -> int:
        """
        Port of one of its services.

        >>> Member("master", "198.18.0.1").port("namenode")
        8020
        >>> Member("worker1", "127.0.0.1", first_port=20010).port("datanode_http")
        20011
        """
        ports = MASTER_PORTS if service in MASTER_PORTS else _WORKER_PORTS
        if self.first_port:
            return self.first_port + list(ports).index(service)
        return ports[service]

    def at(self, service: str) -> str:
        """
        Host and port of one of its services.

        >>> Member("worker1", "198.18.0.2").at("datanode")
        'worker1:9866'
        """
        return f"{self.host}:{self.port(service)}"


@dataclass(frozen=True, slots=True)
class Layout:
    """
    Where a cluster lies: its members (master first) and the folders that its nodes see.

    *base* holds a node's data under ``nodes/<name>``, its configuration under ``conf/<name>``;
    *home* is the Hadoop home; *archive* the class-data archive, or `None` to start without.
    *recording* makes every JVM list the classes it loads into that folder instead.
    """

    members: tuple[Member, ...]
    base: str
    home: str
    archive: str | None = None
    recording: str | None = None

    @property
    def master(self) -> Member:
        """The node of the NameNode, the ResourceManager and the history server."""
        return self.members[0]

    @property
    def workers(self) -> tuple[Member, ...]:
        """The nodes of DataNodes and NodeManagers."""
        return self.members[1:]

    def data(self, member: Member) -> str:
        """Folder of all that *member* writes."""
        return f"{self.base}/nodes/{member.name}"

    def conf(self, member: Member) -> str:
        """Configuration folder of *member*."""
        return f"{self.base}/conf/{member.name}"


def make_members(workers: int) -> tuple[Member, ...]:
    """
    Master and *workers*, with addresses of 198.18.0.0/15, the block kept for benchmarks (RFC 2544).

    >>> [f"{member.name} {member.address}" for member in make_members(2)]
    ['master 198.18.0.1', 'worker1 198.18.0.2', 'worker2 198.18.0.3']
    """
    names = ["master", *(f"worker{number}" for number in range(1, workers + 1))]
    return tuple(
        Member(name, f"198.18.{index // 250}.{index % 250 + 1}") for index, name in enumerate(names)
    )


def make_flat_members(workers: int, first_port: int) -> tuple[Member, ...]:
    """
    The same on the loopback address, each with `BLOCK_PORTS` ports from *first_port* on.

    >>> [f"{each.name} {each.host}:{each.first_port}" for each in make_flat_members(1, 20000)]
    ['master localhost:20000', 'worker1 localhost:20010']
    """
    return tuple(
        Member(member.name, "127.0.0.1", first_port + index * BLOCK_PORTS)
        for index, member in enumerate(make_members(workers))
    )
