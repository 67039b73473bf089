"""Options of the JVMs of a cluster: heaps, the compiler, class-data archives."""

from __future__ import annotations

from harness.hadoop.layout import Layout

HEAP_SHARE = 0.8  # of a container's memory; the rest is the JVM's own
ONE_COMPILER = "-XX:TieredStopAtLevel=1"
# At its own address an archive is mapped and shared; elsewhere each JVM copies and rewrites all of
# it: 0.09 s and 90 MiB.  Diagnostic options of JDK 17 and later, which by default go elsewhere.
IN_PLACE = ("-XX:+UnlockDiagnosticVMOptions", "-XX:ArchiveRelocationMode=0")
_JOB_CLASS_PATH = "job.jar/job.jar:job.jar/classes/:job.jar/lib/*:$PWD/*:$PWD"


def heap_mb(container: int) -> int:
    """Maximal heap in MiB of a JVM in a container of *container* MiB."""
    return int(container * HEAP_SHARE)


def container_options(layout: Layout, memory_mb: int, path_jar: str = "path.jar") -> str:
    """
    JVM options of a task or application master in a container of *memory_mb* MiB.

    *path_jar* of the home names its jars; the archive must have been made with it.

    YARN puts its log folder in the place of ``<LOG_DIR>``.  The class path of the container begins
    with folders, which the class-data archive does not allow: ``-cp`` takes its place.
    """
    options = [
        f"-Xmx{heap_mb(memory_mb)}m",
        "-XX:+UseSerialGC",
        ONE_COMPILER,
        "-XX:-UsePerfData",
        "-Xlog:gc:<LOG_DIR>/gc.log",
        *class_data_options(layout, "<LOG_DIR>/classes.lst"),
    ]
    if layout.archive or layout.recording:
        options += [
            "-cp",
            f"{layout.home}/{path_jar}:$HADOOP_CONF_DIR:{_JOB_CLASS_PATH}",
        ]
    return " ".join(options)


def class_data_options(layout: Layout, recorded: str) -> list[str]:
    """Options that use the class-data archive, or list the loaded classes in *recorded*."""
    if layout.recording:
        return ["-Xshare:auto", f"-XX:DumpLoadedClassList={recorded}"]
    if layout.archive:
        return [
            f"-XX:SharedArchiveFile={layout.archive}",
            *IN_PLACE,
            "-Xshare:auto",
            "-Xlog:cds=off",
            "-Xlog:cds+dynamic=off",
        ]
    return ["-Xshare:auto"]
