"""
What traced tasks run: Hadoop's classes with the tracer's hooks, woven when the home is made.

    home/lib-trace/ltrace-woven.jar   the classes that have hooks, and the recorder
    home/lib-trace/woven.json         what made it, to tell when it is outdated
    home/path-trace.jar               a manifest that names it before all jars of ``lib``
    home/tasks-*.jsa                  the class-data archive of such tasks

Daemons, clients and application masters keep Hadoop's own classes.
"""

from __future__ import annotations

import json
import os
import subprocess

from pathlib import Path

from harness.errors import MachineError
from harness.hadoop_home import home as homes
from harness.hadoop_home.archive import ensure_tasks_archive
from harness.hadoop_home.checksums import file_digest, sums_digest
from harness.hadoop_home.home import WOVEN, HadoopHome, path_jar_bytes, say


def ensure_woven(home: HadoopHome) -> None:
    """Weave unless it was done, of these jars by this tracer; then the archive of traced tasks."""
    if home.trace_path_jar is None:
        if not homes.TRACER.is_file():
            say(f"no tracer ({homes.TRACER} is not built): tasks cannot be traced")
            return
        say("the tracer's hooks in the classes of tasks")
        _weave(home)
    ensure_tasks_archive(home)


def missing_hooks(home: HadoopHome) -> list[str]:
    """Hooks that the jars of *home* have no place for, by name; `MachineError` without a tracer."""
    if not homes.TRACER.is_file():
        raise MachineError("the tracer is not built", where=str(homes.TRACER), fix="make setup")
    done = _weaver(home, "--check", home.path / "lib")
    lines = done.stdout.splitlines()
    if done.returncode not in (0, 1) or bool(done.returncode) != bool(lines):
        raise _failed(home, done.stderr)
    return [line.removeprefix("missing: ") for line in lines]


def _weave(home: HadoopHome) -> None:
    """Make the jar and what names it; an outdated one stays until the new one is there."""
    woven = home.path / WOVEN
    woven.parent.mkdir(exist_ok=True)
    part = woven.with_suffix(".part")
    done = _weaver(home, home.path / "lib", part)
    if done.returncode != 0:
        raise _failed(home, done.stderr)
    made = {
        "hadoop": sums_digest(home.sums),
        "tracer": file_digest(homes.TRACER),
        "woven": file_digest(part),
    }
    _put(part, woven)
    jar = part.with_name("path.part")
    jar.write_bytes(path_jar_bytes(list(home.sums), first=[WOVEN]))
    _put(jar, home.path / "path-trace.jar")
    (woven.parent / "woven.json").write_text(json.dumps(made))


def _put(part: Path, file: Path) -> None:
    """The archive notes the times of jars: equal jars get equal times."""
    os.utime(part, (homes.JAR_TIME, homes.JAR_TIME))
    part.replace(file)


def _weaver(home: HadoopHome, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [
            home.java.launcher, "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC",
            "-jar", str(homes.TRACER), *map(str, arguments),
        ],
        check=False, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
    )  # fmt: skip


def _failed(home: HadoopHome, said: str) -> MachineError:
    last = "\n".join(said.splitlines()[-20:])
    return MachineError(
        f"the tracer's hooks do not fit these jars:\n{last}",
        where=f"{home.path}/lib",
        fix="the tracer knows Hadoop 3.5; with other jars, run experiments with trace: off",
    )
