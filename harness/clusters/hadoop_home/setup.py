"""
Makes the Hadoop home: jars, name space, instrumented classes, class-data archives.

``python -m harness.clusters.hadoop_home`` calls `ensure`: what is there already is not made again.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.base.errors import MachineError
from harness.base.hadoop import daemons, site
from harness.base.hadoop.daemons import Daemon, Layout, make_members
from harness.clusters.hadoop_home import home as homes
from harness.clusters.hadoop_home.home import (
    INSTRUMENTED,
    JAR_TIME,
    HadoopHome,
    file_digest,
    find_java,
    home_path,
    path_jar_bytes,
    read_sums,
    sums_digest,
    sums_file,
    verify,
    write_whole,
    wrong_jars,
)
from harness.clusters.node.archive import make_archive

# By its whole name: a prefix makes Maven look into plugins that no pom of ours names.
_DEPENDENCY_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.11.0"


def ensure() -> HadoopHome:
    """Make whatever the home lacks, with a line on stderr for each part of it."""
    java = find_java()
    home_folder = home_path()
    checksums = read_sums(sums_file(home_folder))
    home_folder.mkdir(parents=True, exist_ok=True)
    with one_at_a_time(home_folder / "lock", report, "another setup is running, waiting for it"):
        try:
            verify(home_folder, checksums)
        except MachineError:
            _resolve_jars(home_folder, checksums)
        hadoop_home = HadoopHome(home_folder, java, checksums)
        if homes.FENCE.is_file():  # a home that has left its checkout keeps the one that it has
            write_whole(home_folder / "fence.jar", homes.FENCE.read_bytes())
        ensure_formatted(hadoop_home)
        ensure_archive(hadoop_home, "classes", hadoop_home.path_jar)
        ensure_instrumented(hadoop_home)
    return hadoop_home


def report(text: str) -> None:
    """A line of progress on stderr."""
    sys.stderr.write(f"hadoop home: {text}\n")


@contextmanager
def one_at_a_time(lock_file: Path, say: Callable[[str], None], why: str) -> Iterator[None]:
    """Keep other invocations out of the block; one that has to wait calls *say* with *why*."""
    with lock_file.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(why)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _resolve_jars(hadoop_home: Path, checksums: dict[str, str]) -> None:
    """Have Maven fetch the jars beside the old ones, compare, and put them in place by a rename."""
    fresh_folder = hadoop_home / "fresh"
    report(f"{len(checksums)} jars from Maven (100 MB the first time)")
    if shutil.which("mvn") is None:
        raise MachineError("no Maven on this machine", where="PATH", fix="apt-get install -y maven")
    _copy_jars(fresh_folder)
    if problems := wrong_jars(fresh_folder, checksums):
        raise MachineError(
            "; ".join(problems[:5]),
            where=f"jars that Maven resolved for {homes.SOURCE / 'pom.xml'}",
            fix=f"delete these artifacts of the local Maven repository, then again: {homes.SETUP}",
        )
    for jar in (fresh_folder / "lib").iterdir():
        os.utime(jar, (JAR_TIME, JAR_TIME))
    shutil.rmtree(hadoop_home / "lib", ignore_errors=True)
    (fresh_folder / "lib").rename(hadoop_home / "lib")
    fresh_folder.rmdir()
    for folder in ("hdfs", "datanode", "secondary", "static"):
        (hadoop_home / "etc" / "webapps" / folder).mkdir(parents=True, exist_ok=True)
    if sums_file(hadoop_home).parent != hadoop_home:
        write_whole(hadoop_home / "SHA256SUMS", sums_file(hadoop_home).read_bytes())
    write_whole(hadoop_home / "path.jar", path_jar_bytes(list(checksums)))
    os.utime(hadoop_home / "path.jar", (JAR_TIME, JAR_TIME))
    verify(hadoop_home, checksums)


def _copy_jars(fresh_folder: Path) -> None:
    """Have Maven copy Hadoop's jars into ``lib`` of *fresh_folder*, which begins empty."""
    pom_file = str(homes.SOURCE / "pom.xml")
    command = [
        str(homes.MAVEN),
        "-B",
        "-ntp",
        "-q",
        "-f",
        pom_file,
        f"{_DEPENDENCY_PLUGIN}:copy-dependencies",
        f"-DoutputDirectory={fresh_folder / 'lib'}",
    ]
    for argv in ([*command, "-o"], command):  # from its local repository, when that is enough
        shutil.rmtree(fresh_folder, ignore_errors=True)
        process = subprocess.run(
            argv,
            check=False,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
        )
        if process.returncode == 0:
            break
    else:
        lines = (process.stdout + process.stderr).splitlines()
        errors = [line for line in lines if "ERROR" in line][:3] or ["no message"]
        what = f"Maven cannot resolve Hadoop's jars: {' '.join(errors)}"
        raise MachineError(what, where=pom_file, fix=" ".join(command))


def ensure_formatted(hadoop_home: HadoopHome) -> None:
    """Format an empty name space, which every new cluster copies."""
    if hadoop_home.formatted is not None:
        return
    report("empty name space")
    work_folder = hadoop_home.path / f"format-{os.getpid()}"
    try:
        layout = Layout(make_members(1), str(work_folder), str(hadoop_home.path))
        conf_folder = Path(layout.conf(layout.master))
        data_folder = Path(layout.data(layout.master))
        conf_folder.mkdir(parents=True)
        (data_folder / "jtmp").mkdir(parents=True)
        core_site = {"fs.defaultFS": "hdfs://localhost:8020"}
        core_site["hadoop.tmp.dir"] = f"{data_folder}/scratch"
        hdfs_site = {"dfs.namenode.name.dir": f"file://{data_folder}/name"}
        sites = {"core-site.xml": core_site, "hdfs-site.xml": hdfs_site}
        for file_name, text in site.conf_texts(sites).items():
            (conf_folder / file_name).write_text(text)
        namenode = Daemon("namenode", layout.master)
        argv = daemons.daemon_argv(hadoop_home.java.launcher, layout, namenode)
        process = subprocess.run(
            [*argv, "-format", "-nonInteractive", "-force"],
            check=False,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            cwd=work_folder,
            env=daemons.environment(os.environ, str(hadoop_home.java.home), layout, layout.master),
        )
        if process.returncode != 0:
            lines = "\n".join(process.stderr.splitlines()[-10:])
            what = f"the name space cannot be formatted:\n{lines}"
            raise MachineError(what, where=str(hadoop_home.path))
        # Hadoop keeps its folders to their owner; a home may serve several users
        for name_space_path in (data_folder / "name", *(data_folder / "name").rglob("*")):
            name_space_path.chmod(0o755 if name_space_path.is_dir() else 0o644)
        shutil.rmtree(hadoop_home.path / "name", ignore_errors=True)
        (data_folder / "name").rename(hadoop_home.path / "name")
    finally:
        shutil.rmtree(work_folder, ignore_errors=True)


def ensure_instrumented(hadoop_home: HadoopHome) -> None:
    """Instrument the classes of tasks unless it was done, of these jars by this tracer."""
    if hadoop_home.trace_path_jar is None:
        if not homes.TRACER.is_file():
            report(f"no tracer ({homes.TRACER} is not built): tasks cannot be traced")
            return
        report("the tracer's hooks in the classes of tasks")
        instrumented_jar = hadoop_home.path / INSTRUMENTED
        instrumented_jar.parent.mkdir(exist_ok=True)
        partial_jar = instrumented_jar.with_suffix(".part")  # until then an outdated one stays
        process = _run_tracer(hadoop_home, hadoop_home.path / "lib", partial_jar)
        if process.returncode != 0:
            raise _hooks_error(hadoop_home, process.stderr)
        origin_digests = {
            "hadoop": sums_digest(hadoop_home.sums),
            "tracer": file_digest(homes.TRACER),
            "instrumented": file_digest(partial_jar),
        }
        path_part = partial_jar.with_name("path.part")
        path_part.write_bytes(path_jar_bytes(list(hadoop_home.sums), first=[INSTRUMENTED]))
        trace_path_jar = hadoop_home.path / "path-trace.jar"
        for source, target in ((partial_jar, instrumented_jar), (path_part, trace_path_jar)):
            os.utime(source, (JAR_TIME, JAR_TIME))
            source.replace(target)
        (instrumented_jar.parent / "instrumented.json").write_text(json.dumps(origin_digests))
        for archive in hadoop_home.path.glob("tasks-*.jsa"):
            archive.unlink()  # a JVM refuses the archive of a jar that was made again
    if hadoop_home.trace_path_jar is not None:
        ensure_archive(hadoop_home, "tasks", hadoop_home.trace_path_jar)


def missing_hooks(hadoop_home: HadoopHome) -> list[str]:
    """Names of hooks that the jars have no place for; `MachineError` without a tracer."""
    if not homes.TRACER.is_file():
        raise MachineError("the tracer is not built", where=str(homes.TRACER), fix=homes.SETUP)
    process = _run_tracer(hadoop_home, "--check", hadoop_home.path / "lib")
    lines = process.stdout.splitlines()
    if process.returncode not in (0, 1) or bool(process.returncode) != bool(lines):
        raise _hooks_error(hadoop_home, process.stderr)
    return [line.removeprefix("missing: ") for line in lines]


def _run_tracer(home: HadoopHome, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [
            home.java.launcher,
            "-XX:TieredStopAtLevel=1",
            "-XX:+UseSerialGC",
            "-jar",
            str(homes.TRACER),
            *map(str, arguments),
        ],
        check=False,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
    )


def _hooks_error(hadoop_home: HadoopHome, stderr: str) -> MachineError:
    last_lines = "\n".join(stderr.splitlines()[-20:])
    return MachineError(
        f"the tracer's hooks do not match these jars:\n{last_lines}",
        where=f"{hadoop_home.path}/lib",
        fix="the tracer knows Hadoop 3.5; with other jars, run experiments with trace: off",
    )


def ensure_archive(hadoop_home: HadoopHome, archive_name: str, jar: Path) -> None:
    """Make the class-data archive of that name unless it is there; those of other JDKs go."""
    archive = hadoop_home.archive_file(archive_name)
    class_list = homes.SOURCE / f"{archive_name}.lst"
    if archive.is_file() or not class_list.is_file():
        return
    report(f"class-data archive of {archive_name} (about half a minute, once per JDK)")
    java = hadoop_home.java
    if not make_archive(java.home, java.version, archive, class_list, jar):
        what = f"this JDK cannot make the class-data archive of {archive_name}"
        report(f"{what}: JVMs start without it, some seconds slower")
        return
    for path in hadoop_home.path.glob(f"{archive_name}-*.jsa"):
        if path != archive:
            path.unlink()
