"""Command lines and JVM options of Hadoop's processes: plain ``java -cp ... Main``, no scripts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

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
HEAP_SHARE = 0.8  # of a container's memory; the rest is the JVM's own
ONE_COMPILER = "-XX:TieredStopAtLevel=1"
_QUICK = ("-XX:+UseSerialGC", ONE_COMPILER, "-XX:-UsePerfData")
# At its own address an archive is mapped and shared; elsewhere each JVM copies and rewrites all of
# it: 0.09 s and 90 MiB.  Diagnostic options of JDK 17 and later, which by default go elsewhere.
IN_PLACE = ("-XX:+UnlockDiagnosticVMOptions", "-XX:ArchiveRelocationMode=0")
_JOB_CLASS_PATH = "job.jar/job.jar:job.jar/classes/:job.jar/lib/*:$PWD/*:$PWD"
_INHERITED = ("PATH", "HOME", "LANG", "TZ")


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
    workers = [Daemon(kind, worker) for worker in layout.workers for kind in WORKER_KINDS]
    first = [Daemon(kind, layout.master) for kind in ("namenode", "resourcemanager")]
    return (*first, *workers, Daemon("historyserver", layout.master))


def daemon_argv(java: str, layout: Layout, daemon: Daemon) -> list[str]:
    """Command line of *daemon*."""
    temporary = f"{layout.data(daemon.member)}/jtmp"  # Jetty unpacks web applications there
    return [
        java, *ADD_OPENS, *_QUICK,
        f"-Dproc_{daemon.kind}", "-Xmx256m", f"-Djava.io.tmpdir={temporary}",
        *_class_data_options(layout, f"{layout.recording}/{daemon.key}.lst"),
        "-cp", _class_path(layout, daemon.member),
        MAIN[daemon.kind],
    ]  # fmt: skip


def format_argv(java: str, layout: Layout) -> list[str]:
    """Command line that makes the empty name space of the NameNode."""
    namenode = daemon_argv(java, layout, Daemon("namenode", layout.master))
    return [*namenode, "-format", "-nonInteractive", "-force"]


def client_argv(
    java: str, layout: Layout, main_class: str, arguments: Sequence[str], jars: Sequence[str] = ()
) -> list[str]:
    """Command line of a client on the master; *jars* are added to its class path."""
    return [
        java, *ADD_OPENS, *_QUICK,
        "-Xmx512m", f"-Djava.io.tmpdir={layout.data(layout.master)}/jtmp",
        *_class_data_options(layout, f"{layout.recording}/client-{main_class}.lst"),
        "-cp", ":".join([_class_path(layout, layout.master), *jars]), main_class, *arguments,
    ]  # fmt: skip


def container_options(layout: Layout, memory_mb: int, path_jar: str = "path.jar") -> str:
    """
    JVM options of a task or application master in a container of *memory_mb* MiB.

    *path_jar* of the home names its jars; the archive must have been made with it.  YARN puts its
    log folder in the place of ``<LOG_DIR>``.
    """
    options = [
        f"-Xmx{int(memory_mb * HEAP_SHARE)}m",
        *_QUICK,
        "-Xlog:gc:<LOG_DIR>/gc.log",
        *_class_data_options(layout, "<LOG_DIR>/classes.lst"),
    ]
    if layout.archive or layout.recording:
        # The container's own class path begins with folders, which an archive does not allow.
        options += ["-cp", f"{layout.home}/{path_jar}:$HADOOP_CONF_DIR:{_JOB_CLASS_PATH}"]
    return " ".join(options)


def environment(
    inherited: Mapping[str, str], java_home: str, layout: Layout, member: Member
) -> dict[str, str]:
    """
    Environment of a JVM on *member*.

    Little of the caller's gets in: no setting of another Hadoop, no options for JVMs, no secret.
    """
    return {
        **{
            name: value
            for name, value in inherited.items()
            if name in _INHERITED or name.startswith("LC_")
        },
        "JAVA_HOME": java_home,
        "HADOOP_CONF_DIR": layout.conf(member),
        "HADOOP_USER_NAME": "root",
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
    return f"{layout.home}/path.jar:{layout.conf(member)}:{layout.home}/etc"
