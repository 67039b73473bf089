"""
What a home holds to make starts fast: a class-data archive, and a formatted name space.

The archive (class-data sharing) is made from the committed list of class names; it fits one JDK
build and one folder of jars, and a JVM that cannot use it starts without.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import time

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from harness.errors import ClusterError, MachineError
from harness.hadoop import daemons, site, tracing
from harness.hadoop.layout import Layout, make_members
from harness.hadoop_home.home import SOURCE, HadoopHome, say
from harness.records.trial import ClusterSpec

if TYPE_CHECKING:
    from harness.providers.local.cluster import LocalCluster

CLASS_LIST = SOURCE / "classes.lst"
TASK_LIST = SOURCE / "tasks.lst"
# Classes made at run time have other names each time, or cannot be found by name at all.
_MADE_AT_RUN_TIME = re.compile(
    r"[^\w$/]|\$\$Lambda|LambdaForm|/Generated|\$Proxy\d|\$\$(FastClass|Enhancer)|\$\$\w+ByGuice"
)


def ensure_archive(home: HadoopHome) -> None:
    """Dump the archive unless it is there; older ones, of another JDK, go."""
    if home.archive is not None or not CLASS_LIST.is_file():
        return
    say("class-data archive (about half a minute, once per JDK)")
    if not _make(home, "classes", home.archive_key(), CLASS_LIST, home.path_jar):
        say("this JDK makes no archive; everything starts without it, slower")


def ensure_tasks_archive(home: HadoopHome) -> None:
    """The same for traced tasks, which load other classes, from another jar, and fewer of them."""
    jar = home.trace_path_jar
    if jar is None or home.tasks_archive is not None or not TASK_LIST.is_file():
        return
    say("class-data archive of traced tasks")
    if not _make(home, "tasks", home.tasks_key(), TASK_LIST, jar):
        say("this JDK makes no archive of traced tasks; they start slower")


def _make(home: HadoopHome, name: str, key: str, classes: Path, jar: Path) -> bool:
    """Dump an archive in the place of all others of that name; `False` where the JVM does not."""
    part = home.path / f"part-{os.getpid()}.jsa"
    names = classes.read_text().splitlines()
    if not any(_dump(home, [*names, *more], part, jar) for more in (_lambdas(home, names), [])):
        part.unlink(missing_ok=True)
        return False
    for old in home.path.glob(f"{name}-*.jsa"):
        old.unlink()
    part.replace(home.path / f"{name}-{key}.jsa")
    return True


def _lambdas(home: HadoopHome, names: Iterable[str]) -> list[str]:
    return lambdas_of(_lambda_list(home), names)


def lambdas_of(file: Path, names: Iterable[str]) -> list[str]:
    """Lines of *file* with the lambdas of classes *names*: others' would bring their classes."""
    wanted = set(names)
    lines = file.read_text().splitlines() if file.is_file() else []
    return [n for n in lines if not n.startswith("@lambda-proxy ") or n.split(" ")[1] in wanted]


def _dump(home: HadoopHome, lines: Iterable[str], archive: Path, jar: Path) -> bool:
    """Make *archive* of the classes in *lines*; `False` where the JVM does not."""
    whole = archive.with_suffix(".lst")
    _write_lines(whole, lines)
    done = subprocess.run(
        [
            home.java.launcher, "-Xshare:dump", f"-XX:SharedClassListFile={whole}",
            f"-XX:SharedArchiveFile={archive}", "-XX:+UseSerialGC", "-cp", str(jar),
        ],
        check=False, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
    )  # fmt: skip
    whole.unlink()
    return done.returncode == 0 and archive.is_file()


def ensure_formatted(home: HadoopHome) -> None:
    """Format an empty name space, which every new cluster copies."""
    if home.formatted is not None:
        return
    say("empty name space")
    work = home.path / f"format-{os.getpid()}"
    try:
        layout = Layout(make_members(1), str(work), str(home.path))
        _format(home, layout, work)
        _let_others_read(Path(layout.data(layout.master)) / "name")
        shutil.rmtree(home.path / "name", ignore_errors=True)
        (Path(layout.data(layout.master)) / "name").rename(home.path / "name")
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _format(home: HadoopHome, layout: Layout, work: Path) -> None:
    conf = Path(layout.conf(layout.master))
    conf.mkdir(parents=True)
    (Path(layout.data(layout.master)) / "jtmp").mkdir(parents=True)
    data = layout.data(layout.master)
    core = {"fs.defaultFS": "hdfs://localhost:8020", "hadoop.tmp.dir": f"{data}/scratch"}
    (conf / "core-site.xml").write_text(site.render_xml(core))
    hdfs = {"dfs.namenode.name.dir": f"file://{data}/name"}
    (conf / "hdfs-site.xml").write_text(site.render_xml(hdfs))
    (conf / "log4j.properties").write_text(site.LOG4J)
    done = subprocess.run(
        daemons.format_argv(home.java.launcher, layout),
        check=False, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
        cwd=work,
        env=daemons.environment(os.environ, str(home.java.home), layout, layout.master),
    )  # fmt: skip
    if done.returncode != 0:
        last = "\n".join(done.stderr.splitlines()[-10:])
        raise MachineError(f"the name space cannot be formatted:\n{last}", where=str(home.path))


def _let_others_read(folder: Path) -> None:
    """Hadoop keeps its folders to their owner; a home may serve several users."""
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)


def record_classes(home: HadoopHome) -> None:
    """
    Write the class list anew: run every daemon, clients, and jobs with maps and reduces.

    Called by ``python -m harness.hadoop_home.home classes`` when versions in the pom change.
    """
    from harness.providers.local.cluster import LocalCluster

    with LocalCluster("class-list", ClusterSpec(workers=1), home, recording=True) as cluster:
        cluster.hdfs.put("/text/words", [b"to be or not to be\n" * 1000])
        for arguments in _JOBS:
            _run(cluster, arguments)
        for path in ("info", "nodes", "apps", "metrics"):
            cluster.http_json(f"/ws/v1/cluster/{path}")
        cluster.http_json("/ws/v1/history/info", service="jhs")
        _run_traced(cluster)
        _end_gently(cluster)
        lists = [file.read_text().splitlines() for file in cluster.folder.rglob("*.lst")]
    traced = [lines for lines in lists if any(line.startswith(_RECORDER) for line in lines)]
    stock = [line for lines in lists if lines not in traced for line in lines]
    tasks = [line for lines in traced for line in lines]
    say(f"{len(class_names(stock))} classes of {len(lists)} JVMs")
    say(f"{len(class_names(tasks))} classes of {len(traced)} traced tasks")
    _write_lines(CLASS_LIST, class_names(stock))
    _write_lines(TASK_LIST, class_names(tasks))
    _write_lines(_lambda_list(home), lambda_lines([*stock, *tasks]))


def _run(cluster: LocalCluster, arguments: Sequence[str]) -> None:
    """Run one of Hadoop's examples to its end."""
    log = cluster.folder / f"client{arguments[-1].replace('/', '-')}.log"
    example = "org.apache.hadoop.examples.ExampleDriver"
    status = cluster.client(example, arguments, log=log).wait(timeout=600)
    if status != 0:
        raise ClusterError(f"{arguments[0]} ended with {status}", where=log.read_text())
    cluster.await_idle(120)


def _run_traced(cluster: LocalCluster) -> None:
    """Run jobs again whose tasks have the tracer's hooks, where there are any."""
    if cluster.home.trace_path_jar is None:
        raise MachineError("no woven classes to list", where=str(cluster.home.path), fix=_SETUP)
    traced = tracing.task_properties("units", cluster.files.layout, cluster.spec, {})
    options = [f"-D{name}={value}" for name, value in traced.items()]
    for program, *rest in _TRACED_JOBS:
        _run(cluster, [program, *options, *rest])


_JOBS = (
    ("wordcount", "/text", "/counts"),
    ("teragen", "-Dmapreduce.job.maps=2", "2000", "/rows"),
    ("terasort", "-Dmapreduce.job.reduces=1", "/rows", "/sorted"),
)
_TRACED_JOBS = (
    ("wordcount", "-Dmapreduce.task.io.sort.mb=1", "/text", "/counts-traced"),
    ("terasort", "-Dmapreduce.job.reduces=1", "/rows", "/sorted-traced"),
)
_RECORDER = "mapreduce/harness/ltrace/record/"
_SETUP = "make setup"


def class_names(lines: Iterable[str]) -> list[str]:
    """Names of the classes that a class list of the JVM holds and that can be loaded by name."""
    names = {
        line.split(" ")[0] for line in lines if line[:1] not in "#@" and " source: " not in line
    }
    return sorted(name for name in names if name and not _MADE_AT_RUN_TIME.search(name))


def lambda_lines(lines: Iterable[str]) -> list[str]:
    """Lines of a class list that name lambdas; their form is that of one version of the JVM."""
    return sorted({line for line in lines if line.startswith("@lambda-")})


def _lambda_list(home: HadoopHome) -> Path:
    return lambda_file(re.split("[^0-9]", home.java.version)[0])


def lambda_file(major: str) -> Path:
    """Lambdas in the manner of the JVM of that version; the file may not be there."""
    return SOURCE / f"lambdas-{major}.lst"


def _write_lines(file: Path, lines: Iterable[str]) -> None:
    part = file.with_suffix(".part")
    part.write_text("".join(f"{line}\n" for line in lines))
    part.replace(file)


def _end_gently(cluster: LocalCluster) -> None:
    """Let the daemons end themselves: a killed JVM keeps the end of its list to itself."""
    for pid in cluster.daemon_pids().values():
        os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + 120
    while cluster.daemon_pids() and time.monotonic() < deadline:
        time.sleep(0.2)
