"""A cluster as data: its nodes, their folders and ports, the command lines of its processes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

USER = "hadoop"  # whose clusters are, as Hadoop's daemons know it
# Hadoop's own ports; a member's own block has them in this order.
MASTER_PORTS = {
    "namenode": 8020, "namenode_http": 9870, "scheduler": 8030, "tracker": 8031,
    "resourcemanager": 8032, "resourcemanager_admin": 8033, "resourcemanager_http": 8088,
    "historyserver": 10020, "historyserver_http": 19888, "historyserver_admin": 10033,
}  # fmt: skip
WORKER_PORTS = {
    "datanode": 9866, "datanode_http": 9864, "datanode_ipc": 9867, "nodemanager": 8041,
    "localizer": 8040, "nodemanager_http": 8042, "shuffle": 13562,
}  # fmt: skip
BLOCK_PORTS = 10  # of one member

MAIN = {
    "namenode": "org.apache.hadoop.hdfs.server.namenode.NameNode",
    "datanode": "org.apache.hadoop.hdfs.server.datanode.DataNode",
    "resourcemanager": "org.apache.hadoop.yarn.server.resourcemanager.ResourceManager",
    "nodemanager": "org.apache.hadoop.yarn.server.nodemanager.NodeManager",
    "historyserver": "org.apache.hadoop.mapreduce.v2.hs.JobHistoryServer",
}
WORKER_KINDS = ("datanode", "nodemanager")

# Hadoop reaches into these packages of the JDK; its own start scripts open the same ones.
_OPENED = (
    "java.io", "java.lang", "java.lang.reflect", "java.math", "java.net", "java.text", "java.util",
    "java.util.concurrent", "java.util.zip", "sun.security.util", "sun.security.x509",
)  # fmt: skip
ADD_OPENS = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED),
)
# Our own provider of channels, which stands on the JDK's.
_ACCEPT_OWN = (
    "--add-exports=java.base/sun.nio.ch=ALL-UNNAMED",
    "-Djava.nio.channels.spi.SelectorProvider=mapreduce.harness.fence.OwnPeers",
)
HEAP_SHARE = 0.8  # of a container's memory; the rest is the JVM's own
ONE_COMPILER = "-XX:TieredStopAtLevel=1"
START_LEASE_S = 600  # of supervisors that have just begun: nobody renews it while others start
_QUICK = ("-XX:+UseSerialGC", ONE_COMPILER, "-XX:-UsePerfData")
# At its own address an archive is mapped and shared; elsewhere each JVM copies and rewrites all of
# it: 0.09 s and 90 MiB.  Diagnostic options of JDK 17 and later, which by default go elsewhere.
IN_PLACE = ("-XX:+UnlockDiagnosticVMOptions", "-XX:ArchiveRelocationMode=0")
_JOB_CLASS_PATH = "job.jar/job.jar:job.jar/classes/:job.jar/lib/*:$PWD/*:$PWD"
_INHERITED = ("PATH", "HOME", "LANG")
# Logs have local time without a zone; the environment is for JVMs whose options a user has set.
_ZONE = "-Duser.timezone=UTC"


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
        """Name of the host on which the node is."""
        return "localhost" if self.first_port else self.name

    def port(self, service: str) -> int:
        """
        Port of one of its services.

        >>> Member("worker1", "127.0.0.1", first_port=20010).port("datanode_http")
        20011
        """
        ports = MASTER_PORTS if service in MASTER_PORTS else WORKER_PORTS
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

    @property
    def fence_jar(self) -> str:
        """The jar with what keeps others out (`harness.base.hadoop.fence`)."""
        return f"{self.home}/fence.jar"

    @property
    def accept_options(self) -> tuple[str, ...]:
        """JVM options of what listens, where the nodes share the addresses of their machine."""
        return _ACCEPT_OWN if self.master.first_port else ()

    def secret(self, member: Member) -> str:
        """File with the cluster's secret on *member*."""
        return f"{self.conf(member)}/secret"

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
    Master and *workers* on the loopback address, each with `BLOCK_PORTS` ports of its own.

    The block of the master begins with *first_port*.

    >>> [f"{node.name} {node.host}:{node.first_port}" for node in make_flat_members(1, 20000)]
    ['master localhost:20000', 'worker1 localhost:20010']
    """
    return tuple(
        Member(member.name, "127.0.0.1", first_port + index * BLOCK_PORTS)
        for index, member in enumerate(make_members(workers))
    )


@dataclass(frozen=True, slots=True)
class Daemon:
    """One daemon of a cluster: what it is, and on which node."""

    kind: str
    member: Member

    @property
    def name(self) -> str:
        """For people: ``datanode on worker2``."""
        return f"{self.kind} on {self.member.name}"

    @property
    def key(self) -> str:
        """For file names: ``datanode-worker2``."""
        return f"{self.kind}-{self.member.name}"


def daemons(layout: Layout) -> tuple[Daemon, ...]:
    """All daemons, in the order in which they are best started."""
    started = [Daemon(kind, layout.master) for kind in ("namenode", "resourcemanager")]
    for worker in layout.workers:
        started += [Daemon(kind, worker) for kind in WORKER_KINDS]
    return (*started, Daemon("historyserver", layout.master))


def daemon_argv(java: str, layout: Layout, daemon: Daemon) -> list[str]:
    """Command line of *daemon*."""
    temporary = f"{layout.data(daemon.member)}/jtmp"  # Jetty unpacks web applications there
    return [
        java,
        *ADD_OPENS,
        *_QUICK,
        _ZONE,
        f"-Dproc_{daemon.kind}",
        "-Xmx256m",
        f"-Djava.io.tmpdir={temporary}",
        *layout.accept_options,
        *_class_data_options(layout, f"{layout.recording}/{daemon.key}.lst"),
        "-cp",
        _class_path(layout, daemon.member),
        MAIN[daemon.kind],
    ]


def daemon_options(layout: Layout) -> dict[str, str]:
    """JVM options of each kind of daemon, without the paths in them."""
    options = {}
    for daemon in daemons(layout):
        words = [word for word in daemon_argv("", layout, daemon) if word.startswith("-X")]
        options[daemon.kind] = " ".join(word.partition("=/")[0] for word in words)
    return options


def supervisor_plan(
    layout: Layout,
    members: Collection[Member],
    java: str,
    environment: Callable[[Member], dict[str, str]],
    *,
    at_once: bool,
) -> dict[str, Any]:
    """
    What the supervisor of *members* starts, and its own files (`harness.clusters.node.supervise`).

    *at_once*: it starts the daemons itself, but for the history server, which would sleep 10 s
    between its looks at HDFS: the health check has that started in time.
    """
    return {
        "control": f"{layout.base}/control",
        "deaths": f"{layout.base}/deaths",
        "daemons_folder": f"{layout.base}/daemons",
        "lease_s": START_LEASE_S,
        "daemons": [
            {
                "key": daemon.key,
                "argv": daemon_argv(java, layout, daemon),
                "env": environment(daemon.member),
                "cwd": layout.data(daemon.member),
                "log": f"{layout.base}/logs/{daemon.key}.log",
                "at_once": at_once and daemon.kind != "historyserver",
                "web": [daemon.member.address, daemon.member.port(f"{daemon.kind}_http")],
            }
            for daemon in daemons(layout)
            if daemon.member in members
        ],
    }


def client_argv(
    java: str, layout: Layout, main_class: str, arguments: Sequence[str], jars: Sequence[str] = ()
) -> list[str]:
    """Command line of a client on the master; *jars* are added to its class path."""
    return [
        java,
        *ADD_OPENS,
        *_QUICK,
        _ZONE,
        "-Xmx512m",
        f"-Djava.io.tmpdir={layout.data(layout.master)}/jtmp",
        *_class_data_options(layout, f"{layout.recording}/client-{main_class}.lst"),
        "-cp",
        ":".join([_class_path(layout, layout.master), *jars]),
        main_class,
        *arguments,
    ]


def container_options(layout: Layout, memory_mb: int, path_jar: str = "path.jar") -> str:
    """
    JVM options of a task or application master in a container of *memory_mb* MiB.

    *path_jar* of the home names its jars; the archive must have been made with it.  YARN puts its
    log folder in the place of ``<LOG_DIR>``.
    """
    options = [
        f"-Xmx{int(memory_mb * HEAP_SHARE)}m",
        *_QUICK,
        _ZONE,
        "-Xlog:gc:<LOG_DIR>/gc.log",
        *_class_data_options(layout, "<LOG_DIR>/classes.lst"),
    ]
    if layout.archive or layout.recording:
        # The container's own class path begins with folders, which an archive does not allow.
        first = f"{layout.home}/{path_jar}:$HADOOP_CONF_DIR:{layout.fence_jar}"
        options += ["-cp", f"{first}:{_JOB_CLASS_PATH}"]
    return " ".join(options)


def environment(
    inherited: Mapping[str, str], java_home: str, layout: Layout, member: Member
) -> dict[str, str]:
    """Environment of a JVM on *member*: no setting of another Hadoop, no options, no secret."""
    kept = (name for name in inherited if name in _INHERITED or name.startswith("LC_"))
    return {
        **{name: inherited[name] for name in kept},
        "TZ": "UTC",
        "JAVA_HOME": java_home,
        "HADOOP_CONF_DIR": layout.conf(member),
        "HADOOP_USER_NAME": USER,
    }


def _class_data_options(layout: Layout, recorded: str) -> list[str]:
    """Options that use the class-data archive, or list the loaded classes in *recorded*."""
    if layout.recording:
        return ["-Xshare:auto", f"-XX:DumpLoadedClassList={recorded}"]
    if not layout.archive:
        return ["-Xshare:auto"]
    archive = f"-XX:SharedArchiveFile={layout.archive}"
    return [archive, *IN_PLACE, "-Xshare:auto", "-Xlog:cds=off", "-Xlog:cds+dynamic=off"]


def _class_path(layout: Layout, member: Member) -> str:
    # The archive fits a class path that begins with the jar it was made from.
    folders = f"{layout.conf(member)}:{layout.home}/etc"
    return f"{layout.home}/path.jar:{folders}:{layout.fence_jar}"
