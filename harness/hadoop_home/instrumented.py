"""
What traced tasks run: Hadoop's classes with the tracer's hooks, instrumented once per home.

    home/lib-trace/ltrace-woven.jar   the classes that have hooks, and the recorder
    home/lib-trace/woven.json         what made it, to notice when it is outdated
    home/path-trace.jar               a manifest that names it before all jars of ``lib``

Daemons, clients and application masters keep Hadoop's own classes.
"""

from __future__ import annotations

import json
import os
import subprocess

from pathlib import Path

from harness.errors import MachineError
from harness.hadoop_home import home as homes
from harness.hadoop_home.checksums import file_digest, sums_digest
from harness.hadoop_home.home import INSTRUMENTED, HadoopHome, path_jar_bytes


def instrument(hadoop_home: HadoopHome) -> None:
    """Make the jar and what names it; an outdated one stays until the new one is there."""
    instrumented_jar = hadoop_home.path / INSTRUMENTED
    instrumented_jar.parent.mkdir(exist_ok=True)
    partial_jar = instrumented_jar.with_suffix(".part")
    process = _run_tracer(hadoop_home, hadoop_home.path / "lib", partial_jar)
    if process.returncode != 0:
        raise _hooks_error(hadoop_home, process.stderr)
    origin_digests = {
        "hadoop": sums_digest(hadoop_home.sums),
        "tracer": file_digest(homes.TRACER),
        "woven": file_digest(partial_jar),
    }
    path_part = partial_jar.with_name("path.part")
    path_part.write_bytes(path_jar_bytes(list(hadoop_home.sums), first=[INSTRUMENTED]))
    for source, target in (
        (partial_jar, instrumented_jar),
        (path_part, hadoop_home.path / "path-trace.jar"),
    ):
        os.utime(source, (homes.JAR_TIME, homes.JAR_TIME))
        source.replace(target)
    (instrumented_jar.parent / "woven.json").write_text(json.dumps(origin_digests))


def missing_hooks(hadoop_home: HadoopHome) -> list[str]:
    """Names of hooks that the jars have no place for; `MachineError` without a tracer."""
    if not homes.TRACER.is_file():
        raise MachineError("the tracer is not built", where=str(homes.TRACER), fix="make setup")
    process = _run_tracer(hadoop_home, "--check", hadoop_home.path / "lib")
    lines = process.stdout.splitlines()
    if process.returncode not in (0, 1) or bool(process.returncode) != bool(lines):
        raise _hooks_error(hadoop_home, process.stderr)
    return [line.removeprefix("missing: ") for line in lines]


def _run_tracer(
    hadoop_home: HadoopHome, *arguments: str | Path
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [
            hadoop_home.java.launcher, "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC",
            "-jar", str(homes.TRACER), *map(str, arguments),
        ],
        check=False, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
    )  # fmt: skip


def _hooks_error(hadoop_home: HadoopHome, stderr: str) -> MachineError:
    last_lines = "\n".join(stderr.splitlines()[-20:])
    return MachineError(
        f"the tracer's hooks do not match these jars:\n{last_lines}",
        where=f"{hadoop_home.path}/lib",
        fix="the tracer knows Hadoop 3.5; with other jars, run experiments with trace: off",
    )
