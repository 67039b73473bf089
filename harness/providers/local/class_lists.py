"""
Writes the committed lists of classes, from which class-data archives are made.

    python -m harness.providers.local.class_lists      when versions in the Hadoop home's pom change

A local cluster runs every daemon, clients, and jobs with maps and reduces; each JVM lists the
classes that it loads.
"""

from __future__ import annotations

import os
import re
import signal
import sys
import time

from collections.abc import Iterable, Sequence

from harness.errors import ClusterError, HarnessError, MachineError
from harness.hadoop import site
from harness.hadoop_home.home import CLASS_LIST, SOURCE, TASK_LIST, HadoopHome, write_whole
from harness.hadoop_home.setup import report
from harness.node.archive import lambdas_file
from harness.providers.local.cluster import LocalCluster
from harness.records.trial import ClusterSpec

# Classes made at run time have other names each time, or cannot be found by name at all.
_MADE_AT_RUN_TIME = re.compile(
    r"[^\w$/]|\$\$Lambda|LambdaForm|/Generated|\$Proxy\d|\$\$(FastClass|Enhancer)|\$\$\w+ByGuice"
)
_RECORDER = "mapreduce/harness/ltrace/record/"
_JOBS = (
    ("wordcount", "/text", "/counts"),
    ("teragen", "-Dmapreduce.job.maps=2", "2000", "/rows"),
    ("terasort", "-Dmapreduce.job.reduces=1", "/rows", "/sorted"),
)
_TRACED_JOBS = (
    ("wordcount", "-Dmapreduce.task.io.sort.mb=1", "/text", "/counts-traced"),
    ("terasort", "-Dmapreduce.job.reduces=1", "/rows", "/sorted-traced"),
)


def record_classes(home: HadoopHome) -> None:
    """Run the cluster and write the lists."""
    if home.trace_path_jar is None:
        what = "no instrumented classes to list"
        raise MachineError(what, where=str(home.path), fix="make setup")
    with LocalCluster("class-list", ClusterSpec(workers=1), home, recording=True) as cluster:
        cluster.hdfs.put("/text/words", [b"to be or not to be\n" * 1000])
        for arguments in _JOBS:
            _run_example(cluster, arguments)
        for path in ("info", "nodes", "apps", "metrics"):
            cluster.http_json(f"/ws/v1/cluster/{path}")
        cluster.http_json("/ws/v1/history/info", service="jhs")
        traced = site.task_properties("units", cluster.layout, cluster.spec, {})
        options = [f"-D{name}={value}" for name, value in traced.items()]
        for program, *rest in _TRACED_JOBS:
            _run_example(cluster, [program, *options, *rest])
        # a killed JVM would not write the end of its list
        for process_id in cluster.daemon_pids().values():
            os.kill(process_id, signal.SIGTERM)
        deadline = time.monotonic() + 120
        while cluster.daemon_pids() and time.monotonic() < deadline:
            time.sleep(0.2)
        lists = [file.read_text().splitlines() for file in cluster.folder.rglob("*.lst")]
    task_lists = [lines for lines in lists if any(line.startswith(_RECORDER) for line in lines)]
    plain = [line for lines in lists if lines not in task_lists for line in lines]
    tasks = [class_line for class_lines in task_lists for class_line in class_lines]
    report(f"{len(class_names(plain))} classes of {len(lists)} JVMs")
    report(f"{len(class_names(tasks))} classes of {len(task_lists)} traced tasks")
    for file, class_lines in (
        (CLASS_LIST, class_names(plain)),
        (TASK_LIST, class_names(tasks)),
        (lambdas_file(SOURCE, home.java.version), lambda_lines([*plain, *tasks])),
    ):
        write_whole(file, "".join(f"{class_line}\n" for class_line in class_lines).encode())


def _run_example(cluster: LocalCluster, arguments: Sequence[str]) -> None:
    """Run one of Hadoop's examples to its end."""
    log_file = cluster.folder / f"client{arguments[-1].replace('/', '-')}.log"
    example = "org.apache.hadoop.examples.ExampleDriver"
    status = cluster.client(example, arguments, log=log_file).wait(timeout=600)
    if status != 0:
        raise ClusterError(f"{arguments[0]} ended with {status}", where=log_file.read_text())
    cluster.await_idle(120)


def class_names(class_lines: Iterable[str]) -> list[str]:
    """Names of the classes in a JVM's class list that can be loaded by name."""
    names = {
        class_line.split(" ")[0]
        for class_line in class_lines
        if class_line[:1] not in "#@" and " source: " not in class_line
    }
    return sorted(name for name in names if name and not _MADE_AT_RUN_TIME.search(name))


def lambda_lines(class_lines: Iterable[str]) -> list[str]:
    """Lines of a class list that name lambdas; their form is that of one version of the JVM."""
    return sorted({class_line for class_line in class_lines if class_line.startswith("@lambda-")})


if __name__ == "__main__":
    try:
        record_classes(HadoopHome.find())
    except HarnessError as error:
        sys.stderr.write(f"{error}\n")
        raise SystemExit(error.exit_status) from None
