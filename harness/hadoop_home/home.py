"""
The Hadoop home: one folder with every jar of a cluster, resolved by Maven, verified by checksums.

    home/lib/*.jar       191 jars, exactly those of workloads/hadoop-home/SHA256SUMS
    home/path.jar        a manifest that names them all: short command lines, one order
    home/etc/webapps/    empty folders that the published hadoop-hdfs jar lacks
    home/name/           an empty formatted name space, copied into each new cluster
    home/classes-*.jsa   class-data archives, one per JDK build
    home/lib-trace/, path-trace.jar, tasks-*.jsa    for traced tasks (see `instrumented`)

`harness.hadoop_home.setup` makes all of it; `HadoopHome.find` only looks, and verifies.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import zipfile

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.errors import MachineError
from harness.hadoop_home.checksums import file_digest, read_json, read_sums, sums_digest, verify
from harness.hadoop_home.java import Java, find_java
from harness.records.trial import Versions
from harness.workloads.base import GPU, JOBS

_WORKLOADS = Path(__file__).resolve().parents[2] / "workloads"
SOURCE = _WORKLOADS / "hadoop-home"
CLASS_LIST, TASK_LIST = SOURCE / "classes.lst", SOURCE / "tasks.lst"
TRACER = _WORKLOADS / "ltrace" / "target" / "harness-ltrace.jar"
JARS = {JOBS: _WORKLOADS / "jobs" / "target" / JOBS, GPU: _WORKLOADS / "gpu" / "target" / GPU}
INSTRUMENTED = "lib-trace/ltrace-woven.jar"
JAR_TIME = 1_767_225_600  # 2026-01-01: equal jars get equal times, which the archive records
_EXAMPLES = "lib/hadoop-mapreduce-examples-"
_PLAIN = re.compile(r"[A-Za-z0-9._/+@=,-]+")


@dataclass(frozen=True, slots=True)
class HadoopHome:
    """A verified home, and the Java that runs it."""

    path: Path
    java: Java
    sums: dict[str, str]

    @classmethod
    def find(cls, home_folder: Path | None = None) -> HadoopHome:
        """Locate and verify the home; `MachineError` naming the jar that is wrong or missing."""
        java = find_java()
        home_folder = home_folder or home_path()
        sums = read_sums(sums_file(home_folder))
        verify(home_folder, sums)
        return cls(home_folder, java, sums)

    @property
    def path_jar(self) -> Path:
        """The jar whose manifest names all others."""
        return self.path / "path.jar"

    @property
    def archive(self) -> Path | None:
        """The class-data archive that fits this JDK and these jars, or `None`."""
        candidate = self.archive_file("classes")
        return candidate if candidate.is_file() else None

    @property
    def tasks_archive(self) -> Path | None:
        """The class-data archive of traced tasks, or `None`."""
        candidate = self.archive_file("tasks")
        return candidate if self.trace_path_jar and candidate.is_file() else None

    def archive_file(self, jar_name: str) -> Path:
        """
        Where the archive of that name (``classes``, ``tasks``) lies.

        The hash in it covers all that an archive depends on: the JDK build, the jars and where
        they lie; for tasks the instrumented classes as well.
        """
        facts = [self.java.version, str(self.java.home), str(self.path), sorted(self.sums.items())]
        facts += [instrumented_digest(self)] if jar_name == "tasks" else []
        key = hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]
        return self.path / f"{jar_name}-{key}.jsa"

    @property
    def trace_path_jar(self) -> Path | None:
        """
        The jar whose manifest names all others after the instrumented classes.

        `None` where these were not made of these jars by this tracer.
        """
        candidate = self.path / "path-trace.jar"
        return candidate if instrumented_digest(self) and candidate.is_file() else None

    def require_formatted(self) -> Path:
        """The formatted name space to copy; `MachineError` where there is none."""
        if self.formatted is None:
            raise MachineError(
                "the Hadoop home has no formatted name space that this user can read",
                where=f"{self.path}/name",
                fix="make setup",
            )
        return self.formatted

    @property
    def formatted(self) -> Path | None:
        """An empty formatted name space to copy, or `None`."""
        folder = self.path / "name"
        return folder if os.access(folder / "current" / "VERSION", os.R_OK) else None

    def versions(self) -> Versions:
        """What an outcome depends on: Hadoop, Java, and the jars that are neither."""
        common = next(
            jar_name for jar_name in self.sums if re.match(r"lib/hadoop-common-\d", jar_name)
        )
        examples = self.examples_jar().name
        jars = {"hadoop-home": sums_digest(self.sums), examples: self.sums[f"lib/{examples}"]}
        jars |= {jar_name: file_digest(jar) for jar_name, jar in built_jars().items()}
        if digest := instrumented_digest(self):
            jars[Path(INSTRUMENTED).name] = digest
        return Versions(
            hadoop=common.removeprefix("lib/hadoop-common-").removesuffix(".jar"),
            java=self.java.version,
            jars=jars,
        )

    def examples_jar(self) -> Path:
        """Hadoop's own example programs."""
        return self.path / next(
            jar_name for jar_name in self.sums if jar_name.startswith(_EXAMPLES)
        )


def home_path() -> Path:
    """Folder of the home: ``HARNESS_HADOOP_HOME``, or the one beside its pom."""
    home_folder = Path(os.environ.get("HARNESS_HADOOP_HOME") or SOURCE / "home").absolute()
    if not _PLAIN.fullmatch(str(home_folder)):
        raise MachineError(
            f"the path '{home_folder}' has characters that Hadoop's start scripts cannot handle",
            where="HARNESS_HADOOP_HOME" if "HARNESS_HADOOP_HOME" in os.environ else "hadoop home",
            fix="HARNESS_HADOOP_HOME=/a/path/of/letters/and/digits make setup",
        )
    return home_folder


def sums_file(home_folder: Path) -> Path:
    """The committed checksum file, or the copy in a home that left its checkout."""
    committed = SOURCE / "SHA256SUMS"
    return committed if committed.is_file() else home_folder / "SHA256SUMS"


def instrumented_digest(hadoop_home: HadoopHome) -> str:
    """
    SHA-256 of the jar of instrumented classes; empty where it is missing or outdated.

    It is compared with what made it: Hadoop's jars, and our tracer, where that lies beside the
    home.
    """
    made = read_json(hadoop_home.path / "lib-trace" / "woven.json") or {}
    instrumented_jar = hadoop_home.path / INSTRUMENTED
    if not instrumented_jar.is_file():
        return ""
    digest = file_digest(instrumented_jar)
    tracer = file_digest(TRACER) if TRACER.is_file() else made.get("tracer")
    fits = made == {"hadoop": sums_digest(hadoop_home.sums), "tracer": tracer, "woven": digest}
    return digest if fits else ""


def path_jar_bytes(jars: list[str], first: Sequence[str] = ()) -> bytes:
    """
    A jar of one manifest whose class path is *first*, then *jars*, sorted; the same each time.

    A manifest's lines hold 72 bytes; a blank continues the line before.
    """
    line = "Class-Path: " + " ".join([*first, *sorted(jars)])
    pieces = [line[:72], *(" " + line[start : start + 71] for start in range(72, len(line), 71))]
    manifest = "Manifest-Version: 1.0\r\n" + "\r\n".join(pieces) + "\r\n\r\n"
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as jar:
        jar.writestr(zipfile.ZipInfo("META-INF/MANIFEST.MF"), manifest)
    return buffer.getvalue()


def job_jar(name: str) -> Path:
    """Path of one of our job jars, by its name in `JARS`; `MachineError` where it is not built."""
    if not JARS[name].is_file():
        raise MachineError(f"the jar {name} is missing", where=str(JARS[name]), fix="make setup")
    return JARS[name]


def built_jars() -> dict[str, Path]:
    """Our job jars that are built, by name."""
    return {jar_name: path for jar_name, path in JARS.items() if path.is_file()}
