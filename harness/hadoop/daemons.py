"""Command lines of Hadoop's daemons and clients: plain ``java -cp ... Main``, no scripts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.hadoop.jvm import class_data_options
from harness.hadoop.layout import Layout, Member

MAIN = {
    "namenode": "org.apache.hadoop.hdfs.server.namenode.NameNode",
    "datanode": "org.apache.hadoop.hdfs.server.datanode.DataNode",
    "resourcemanager": "org.apache.hadoop.yarn.server.resourcemanager.ResourceManager",
    "nodemanager": "org.apache.hadoop.yarn.server.nodemanager.NodeManager",
    "historyserver": "org.apache.hadoop.mapreduce.v2.hs.JobHistoryServer",
}
MASTER_KINDS = ("namenode", "resourcemanager", "historyserver")
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
_INHERITED = ("PATH", "HOME", "LANG", "TZ")
_QUICK = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData")


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
    workers = [Daemon(kind, m) for m in layout.workers for kind in WORKER_KINDS]
    first = [Daemon(kind, layout.master) for kind in ("namenode", "resourcemanager")]
    return (*first, *workers, Daemon("historyserver", layout.master))


def daemon_argv(java: str, layout: Layout, daemon: Daemon) -> list[str]:
    """Command line of *daemon*."""
    temporary = f"{layout.data(daemon.member)}/jtmp"  # Jetty unpacks web applications there
    return [
        java, *ADD_OPENS, *_QUICK,
        f"-Dproc_{daemon.kind}", "-Xmx256m", f"-Djava.io.tmpdir={temporary}",
        *class_data_options(layout, f"{layout.recording}/{daemon.key}.lst"),
        "-cp", _class_path(layout, daemon.member),
        MAIN[daemon.kind],
    ]  # fmt: skip


def format_argv(java: str, layout: Layout) -> list[str]:
    """Command line that makes the empty name space of the NameNode."""
    head = daemon_argv(java, layout, Daemon("namenode", layout.master))
    return [*head, "-format", "-nonInteractive", "-force"]


def client_argv(
    java: str, layout: Layout, main_class: str, arguments: Sequence[str], jars: Sequence[str] = ()
) -> list[str]:
    """Command line of a client on the master; *jars* are added to its class path."""
    path = ":".join([_class_path(layout, layout.master), *jars])
    return [
        java, *ADD_OPENS, *_QUICK,
        "-Xmx512m", f"-Djava.io.tmpdir={layout.data(layout.master)}/jtmp",
        *class_data_options(layout, f"{layout.recording}/client-{main_class}.lst"),
        "-cp", path, main_class, *arguments,
    ]  # fmt: skip


def environment(
    inherited: Mapping[str, str], java_home: str, layout: Layout, member: Member
) -> dict[str, str]:
    """
    Environment of a JVM on *member*.

    Little of the caller's gets in: no setting of another Hadoop, no options for JVMs, no secret.
    """
    kept = {k: v for k, v in inherited.items() if k in _INHERITED or k.startswith("LC_")}
    return kept | {
        "JAVA_HOME": java_home,
        "HADOOP_CONF_DIR": layout.conf(member),
        "HADOOP_USER_NAME": "root",
    }


def _class_path(layout: Layout, member: Member) -> str:
    # The archive fits a class path that begins with the jar it was made from.
    return f"{layout.home}/path.jar:{layout.conf(member)}:{layout.home}/etc"
