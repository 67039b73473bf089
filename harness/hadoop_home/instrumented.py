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


def instrument(home: HadoopHome) -> None:
    """Make the jar and what names it; an outdated one stays until the new one is there."""
    jar = home.path / INSTRUMENTED
    jar.parent.mkdir(exist_ok=True)
    part = jar.with_suffix(".part")
    process = _run_tracer(home, home.path / "lib", part)
    if process.returncode != 0:
        raise _hooks_error(home, process.stderr)
    made = {
        "hadoop": sums_digest(home.sums),
        "tracer": file_digest(homes.TRACER),
        "woven": file_digest(part),
    }
    path_part = part.with_name("path.part")
    path_part.write_bytes(path_jar_bytes(list(home.sums), first=[INSTRUMENTED]))
    for source, target in ((part, jar), (path_part, home.path / "path-trace.jar")):
        os.utime(source, (homes.JAR_TIME, homes.JAR_TIME))
        source.replace(target)
    (jar.parent / "woven.json").write_text(json.dumps(made))


def missing_hooks(home: HadoopHome) -> list[str]:
    """Hooks that the jars of *home* have no place for, by name; `MachineError` without a tracer."""
    if not homes.TRACER.is_file():
        raise MachineError("the tracer is not built", where=str(homes.TRACER), fix="make setup")
    process = _run_tracer(home, "--check", home.path / "lib")
    lines = process.stdout.splitlines()
    if process.returncode not in (0, 1) or bool(process.returncode) != bool(lines):
        raise _hooks_error(home, process.stderr)
    return [line.removeprefix("missing: ") for line in lines]


def _run_tracer(home: HadoopHome, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [
            home.java.launcher, "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC",
            "-jar", str(homes.TRACER), *map(str, arguments),
        ],
        check=False, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
    )  # fmt: skip


def _hooks_error(home: HadoopHome, stderr: str) -> MachineError:
    last_lines = "\n".join(stderr.splitlines()[-20:])
    return MachineError(
        f"the tracer's hooks do not fit these jars:\n{last_lines}",
        where=f"{home.path}/lib",
        fix="the tracer knows Hadoop 3.5; with other jars, run experiments with trace: off",
    )
