"""
Makes the Hadoop home: jars, name space, instrumented classes, class-data archives.

    python -m harness.hadoop_home.setup      (what is there already is not made again)

A class-data archive (class-data sharing) is made from the committed list of class names; it fits
one JDK build and one folder of jars, and a JVM that cannot use it starts without.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.errors import HarnessError, MachineError
from harness.hadoop import daemons, site
from harness.hadoop.layout import Layout, make_members
from harness.hadoop_home import home as homes
from harness.hadoop_home.checksums import read_sums, verify, write_whole, wrong_jars
from harness.hadoop_home.home import JAR_TIME, HadoopHome, home_path, path_jar_bytes, sums_file
from harness.hadoop_home.instrumented import instrument
from harness.hadoop_home.java import find_java
from harness.node.archive import make_archive


def ensure() -> HadoopHome:
    """Make whatever the home lacks, with a line on stderr for each part of it."""
    java, path = find_java(), home_path()
    sums = read_sums(sums_file(path))
    path.mkdir(parents=True, exist_ok=True)
    with _one_at_a_time(path):
        try:
            verify(path, sums)
        except MachineError:
            _resolve_jars(path, sums)
        home = HadoopHome(path, java, sums)
        ensure_formatted(home)
        ensure_archive(home, "classes", home.path_jar)
        ensure_instrumented(home)
    return home


def report(text: str) -> None:
    """A line of progress on stderr."""
    sys.stderr.write(f"hadoop home: {text}\n")
    sys.stderr.flush()


@contextmanager
def _one_at_a_time(home: Path) -> Iterator[None]:
    """Let a second invocation wait for the first; everything is made then."""
    with (home / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            report("another setup is at work, waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _resolve_jars(home: Path, sums: dict[str, str]) -> None:
    """Fetch the jars beside the old ones, compare, and put them in place by a rename."""
    fresh = home / "fresh"
    shutil.rmtree(fresh, ignore_errors=True)
    report(f"{len(sums)} jars from Maven (100 MB the first time)")
    _copy_dependencies(fresh / "lib")
    if problems := wrong_jars(fresh, sums):
        raise MachineError(
            "; ".join(problems[:5]),
            where=f"jars that Maven resolved for {homes.SOURCE / 'pom.xml'}",
            fix="delete these artifacts from the local Maven repository, and repeat: make setup",
        )
    for jar in (fresh / "lib").iterdir():
        os.utime(jar, (JAR_TIME, JAR_TIME))
    shutil.rmtree(home / "lib", ignore_errors=True)
    (fresh / "lib").rename(home / "lib")
    fresh.rmdir()
    for folder in ("hdfs", "datanode", "secondary", "static"):
        (home / "etc" / "webapps" / folder).mkdir(parents=True, exist_ok=True)
    if sums_file(home).parent != home:
        write_whole(home / "SHA256SUMS", sums_file(home).read_bytes())
    write_whole(home / "path.jar", path_jar_bytes(list(sums)))
    os.utime(home / "path.jar", (JAR_TIME, JAR_TIME))
    verify(home, sums)


def _copy_dependencies(target: Path) -> None:
    """Let Maven copy the jars: from its local repository alone when that is enough."""
    if shutil.which("mvn") is None:
        raise MachineError("no Maven on this machine", where="PATH", fix="apt-get install -y maven")
    pom = str(homes.SOURCE / "pom.xml")
    command = [
        "mvn", "-B", "-ntp", "-q", "-f", pom,
        "dependency:copy-dependencies", f"-DoutputDirectory={target}",
    ]  # fmt: skip
    output = ""
    for argv in ([*command, "-o"], command):
        shutil.rmtree(target, ignore_errors=True)
        process = subprocess.run(
            argv, check=False, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            errors="replace",
        )  # fmt: skip
        if process.returncode == 0:
            return
        output = process.stdout + process.stderr
    errors = [line for line in output.splitlines() if "ERROR" in line][:3]
    raise MachineError(
        "Maven cannot resolve Hadoop's jars: " + " ".join(errors or ["no message"]),
        where=pom,
        fix=" ".join(command),
    )


def ensure_formatted(home: HadoopHome) -> None:
    """Format an empty name space, which every new cluster copies."""
    if home.formatted is not None:
        return
    report("empty name space")
    work = home.path / f"format-{os.getpid()}"
    try:
        layout = Layout(make_members(1), str(work), str(home.path))
        conf, data = Path(layout.conf(layout.master)), Path(layout.data(layout.master))
        conf.mkdir(parents=True)
        (data / "jtmp").mkdir(parents=True)
        core = {"fs.defaultFS": "hdfs://localhost:8020", "hadoop.tmp.dir": f"{data}/scratch"}
        (conf / "core-site.xml").write_text(site.render_xml(core))
        hdfs = {"dfs.namenode.name.dir": f"file://{data}/name"}
        (conf / "hdfs-site.xml").write_text(site.render_xml(hdfs))
        (conf / "log4j.properties").write_text(site.LOG4J)
        process = subprocess.run(
            daemons.format_argv(home.java.launcher, layout),
            check=False, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            errors="replace", cwd=work,
            env=daemons.environment(os.environ, str(home.java.home), layout, layout.master),
        )  # fmt: skip
        if process.returncode != 0:
            lines = "\n".join(process.stderr.splitlines()[-10:])
            what = f"the name space cannot be formatted:\n{lines}"
            raise MachineError(what, where=str(home.path))
        # Hadoop keeps its folders to their owner; a home may serve several users
        for path in (data / "name", *(data / "name").rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)
        shutil.rmtree(home.path / "name", ignore_errors=True)
        (data / "name").rename(home.path / "name")
    finally:
        shutil.rmtree(work, ignore_errors=True)


def ensure_instrumented(home: HadoopHome) -> None:
    """Instrument the classes of tasks unless it was done, of these jars by this tracer."""
    if home.trace_path_jar is None:
        if not homes.TRACER.is_file():
            report(f"no tracer ({homes.TRACER} is not built): tasks cannot be traced")
            return
        report("the tracer's hooks in the classes of tasks")
        instrument(home)
    if home.trace_path_jar is not None:
        ensure_archive(home, "tasks", home.trace_path_jar)


def ensure_archive(home: HadoopHome, name: str, jar: Path) -> None:
    """Make the class-data archive of that name unless it is there; those of other JDKs go."""
    archive = home.archive_file(name)
    if archive.is_file() or not (homes.SOURCE / f"{name}.lst").is_file():
        return
    report(f"class-data archive of {name} (about half a minute, once per JDK)")
    java, lists = home.java, homes.SOURCE
    if not make_archive(java.home, java.version, archive, lists=lists, name=name, jar=jar):
        report(f"this JDK makes no archive of {name}; they start without it, slower")
        return
    for other in home.path.glob(f"{name}-*.jsa"):
        if other != archive:
            other.unlink()


def main() -> None:
    """Entry of ``python -m harness.hadoop_home.setup``."""
    try:
        home = ensure()
    except HarnessError as error:
        sys.stderr.write(f"{error}\n")
        raise SystemExit(error.exit_status) from None
    report(f"ready: Hadoop {home.versions().hadoop} in {home.path}")


if __name__ == "__main__":
    main()
