"""
The Hadoop home: one folder with every jar of a cluster, resolved by Maven, verified by checksums.

    home/lib/*.jar       122 jars, exactly those of workloads/hadoop-home/SHA256SUMS
    home/path.jar        a manifest that names them all: short command lines, one order
    home/fence.jar       what keeps others out of a cluster (workloads/fence)
    home/etc/webapps/    empty folders that the published hadoop-hdfs jar lacks
    home/name/           an empty formatted name space, copied into each new cluster
    home/classes-*.jsa   class-data archives, one per JDK build
    home/lib-trace/      Hadoop's classes with the tracer's hooks, and what made them
    home/path-trace.jar, tasks-*.jsa    for traced tasks
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import shutil
import zipfile

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.base.errors import MachineError
from harness.base.installed import by_form, setup_fix
from harness.base.records.trial import Versions
from harness.clusters.node.facts import java_version
from harness.clusters.workloads.base import GPU, JOBS

WORKLOADS = Path(__file__).resolve().parents[3] / "workloads"
SOURCE = WORKLOADS / "hadoop-home"
MAVEN = WORKLOADS.parent / "scripts" / "mvn"  # refuses jars that are not listed
CLASS_LIST = SOURCE / "classes.lst"
TASK_LIST = SOURCE / "tasks.lst"
FENCE = WORKLOADS / "fence" / "target" / "harness-fence.jar"
TRACER = WORKLOADS / "ltrace" / "target" / "harness-ltrace.jar"
JARS = {JOBS: WORKLOADS / "jobs" / "target" / JOBS, GPU: WORKLOADS / "gpu" / "target" / GPU}
INSTRUMENTED = "lib-trace/ltrace-instrumented.jar"
JAR_TIME = 1_767_225_600  # 2026-01-01: equal jars get equal times, which the archive records
_COMMON = re.compile(r"lib/hadoop-common-(\d.*)\.jar")
_PLAIN = re.compile(r"[A-Za-z0-9._/+@=,-]+")
SETUP = setup_fix()

OLDEST = 17
_INSTALL_FIX = (
    "apt-get install -y openjdk-17-jdk-headless"
    "  (elsewhere: install a JDK 17 and set JAVA_HOME to its folder)"
)
# What was chosen by hand is not repaired by a package.
_CHOICE_FIX = "unset JAVA_HOME, or set it to the folder of a JDK 17 or newer"


@dataclass(frozen=True, slots=True)
class Java:
    """A JDK: its folder, and its full version (a class-data archive fits one build only)."""

    home: Path
    version: str

    @property
    def launcher(self) -> str:
        """Path of the `java` command."""
        return str(self.home / "bin" / "java")


def find_java(environment: Mapping[str, str] = os.environ) -> Java:
    """Locate the JDK of ``JAVA_HOME`` or of ``PATH``; `MachineError` unless it is 17 or newer."""
    if chosen := environment.get("JAVA_HOME"):
        java_home = Path(chosen)
        source = f"JAVA_HOME={chosen}"
        fix_command = _CHOICE_FIX
    else:
        launcher = shutil.which("java", path=environment.get("PATH"))
        fix_command = _INSTALL_FIX
        if launcher is None:
            what = "no java on this machine"
            raise MachineError(what, where="JAVA_HOME and PATH", fix=fix_command)
        java_home = Path(launcher).resolve().parent.parent
        source = f"{launcher} on PATH"
    if not (java_home / "bin" / "java").is_file():
        raise MachineError(f"no java in {java_home}/bin", where=source, fix=fix_command)
    if not (java_home / "bin" / "javac").is_file():
        what = f"{java_home} is a Java runtime without javac"
        raise MachineError(what, where=source, fix=fix_command)
    version = java_version(str(java_home))
    major = re.match(r"(\d+)", version.removeprefix("1."))
    if major is None or int(major[1]) < OLDEST:
        what = f"Java {version or '(no version)'} is too old: Hadoop 3.5 needs {OLDEST} or newer"
        raise MachineError(what, where=source, fix=fix_command)
    return Java(java_home, version)


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
        if not (home_folder / "fence.jar").is_file():
            what = "the Hadoop home has no fence.jar: nobody could be kept out of its clusters"
            raise MachineError(what, where=str(home_folder), fix=SETUP)
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
        """Where the archive ``classes`` or ``tasks`` lies: its name hashes what it depends on."""
        facts = [self.java.version, str(self.java.home), str(self.path), sorted(self.sums.items())]
        facts += [instrumented_digest(self)] if jar_name == "tasks" else []
        key = hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]
        return self.path / f"{jar_name}-{key}.jsa"

    @property
    def trace_path_jar(self) -> Path | None:
        """The jar that names all others after instrumented classes, if these are up to date."""
        candidate = self.path / "path-trace.jar"
        return candidate if instrumented_digest(self) and candidate.is_file() else None

    def require_formatted(self) -> Path:
        """The formatted name space to copy; `MachineError` where there is none."""
        if self.formatted is None:
            what = "the Hadoop home has no formatted name space that this user can read"
            raise MachineError(what, where=f"{self.path}/name", fix=SETUP)
        return self.formatted

    @property
    def formatted(self) -> Path | None:
        """An empty formatted name space to copy, or `None`."""
        folder = self.path / "name"
        return folder if os.access(folder / "current" / "VERSION", os.R_OK) else None

    def versions(self) -> Versions:
        """What an outcome depends on: Hadoop, Java, and the jars that are neither."""
        hadoop = next(filter(None, (re.match(_COMMON, jar_name) for jar_name in self.sums)))[1]
        examples = self.examples_jar().name
        jars = {"hadoop-home": sums_digest(self.sums), examples: self.sums[f"lib/{examples}"]}
        jars |= {jar_name: file_digest(jar) for jar_name, jar in JARS.items() if jar.is_file()}
        if digest := instrumented_digest(self):
            jars[Path(INSTRUMENTED).name] = digest
        return Versions(hadoop=hadoop, java=self.java.version, jars=jars)

    def examples_jar(self) -> Path:
        """Hadoop's own example programs."""
        prefix = "lib/hadoop-mapreduce-examples-"
        return self.path / next(name for name in self.sums if name.startswith(prefix))


def home_path() -> Path:
    """Folder of the home: ``HARNESS_HADOOP_HOME``, or the one beside its pom."""
    home_folder = Path(os.environ.get("HARNESS_HADOOP_HOME") or SOURCE / "home").absolute()
    if not _PLAIN.fullmatch(str(home_folder)):
        raise MachineError(
            f"the path '{home_folder}' has characters that Hadoop's start scripts cannot handle",
            where="HARNESS_HADOOP_HOME" if "HARNESS_HADOOP_HOME" in os.environ else "hadoop home",
            fix=by_form(
                "HARNESS_HADOOP_HOME=/a/path/of/letters/and/digits make setup",
                "set HARNESS_HADOOP_HOME to a path of letters and digits",
            ),
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
    origin = read_json(hadoop_home.path / "lib-trace" / "instrumented.json") or {}
    instrumented_jar = hadoop_home.path / INSTRUMENTED
    if not instrumented_jar.is_file():
        return ""
    digest = file_digest(instrumented_jar)
    tracer = file_digest(TRACER) if TRACER.is_file() else origin.get("tracer")
    jars = sums_digest(hadoop_home.sums)
    is_up_to_date = origin == {"hadoop": jars, "tracer": tracer, "instrumented": digest}
    return digest if is_up_to_date else ""


def path_jar_bytes(jars: list[str], first: Sequence[str] = ()) -> bytes:
    """A jar of one manifest with the class path *first*, then *jars* in order: always the same."""
    line = "Class-Path: " + " ".join([*first, *sorted(jars)])
    # A manifest's lines hold 72 bytes; a blank continues the line before.
    pieces = [line[:72], *(" " + line[start : start + 71] for start in range(72, len(line), 71))]
    manifest = "Manifest-Version: 1.0\r\n" + "\r\n".join(pieces) + "\r\n\r\n"
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as jar:
        jar.writestr(zipfile.ZipInfo("META-INF/MANIFEST.MF"), manifest)
    return buffer.getvalue()


def job_jar(name: str) -> Path:
    """Path of one of our job jars, by its name in `JARS`; `MachineError` where it is not built."""
    if not JARS[name].is_file():
        raise MachineError(f"the jar {name} is missing", where=str(JARS[name]), fix=SETUP)
    return JARS[name]


def read_sums(file: Path) -> dict[str, str]:
    """Jar (``lib/x.jar``) -> SHA-256, as *file* lists them."""
    try:
        lines = file.read_text().splitlines()
    except OSError as error:
        raise MachineError("no Hadoop home", where=str(file), fix=SETUP) from error
    matches = [re.fullmatch(r"([0-9a-f]{64})  (lib/[A-Za-z0-9._+-]+\.jar)", line) for line in lines]
    if not matches or None in matches:
        fix = by_form(f"git checkout {file}", SETUP)
        raise MachineError("not a list of checksums", where=str(file), fix=fix)
    return {match[2]: match[1] for match in matches if match}


def verify(home_folder: Path, checksums: dict[str, str]) -> None:
    """
    Compare every jar with its checksum, unless sizes and times are as they were the last time.

    `MachineError` names what is wrong.
    """
    if not (home_folder / "path.jar").is_file():
        where = str(home_folder)
        if os.environ.get("HARNESS_HADOOP_HOME"):  # which may be mistyped
            where += " (HARNESS_HADOOP_HOME"
            where += by_form("; unset, the folder of the checkout is used)", ")")
        raise MachineError("no Hadoop home", where=where, fix=SETUP)
    jars = {jar.name: jar.stat() for jar in (home_folder / "lib").glob("*.jar")}
    stamp = {
        "sums": sums_digest(checksums),
        "jars": {
            jar_name: [facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns]
            for jar_name, facts in sorted(jars.items())
        },
    }
    if read_json(home_folder / "verified.json") == stamp:
        return
    if problems := wrong_jars(home_folder, checksums):
        raise MachineError("; ".join(problems[:5]), where=f"{home_folder}/lib", fix=SETUP)
    with suppress(OSError):  # another user's home is verified again next time
        write_whole(home_folder / "verified.json", json.dumps(stamp).encode())


def wrong_jars(home_folder: Path, checksums: dict[str, str]) -> list[str]:
    """What is missing, changed or foreign in ``lib``."""
    present = {f"lib/{jar.name}" for jar in (home_folder / "lib").glob("*.jar")}
    missing = [f"{jar_name} is missing" for jar_name in sorted(checksums.keys() - present)]
    foreign = [f"{jar} does not belong here" for jar in sorted(present - checksums.keys())]
    changed = [
        f"{jar_name} has another checksum"
        for jar_name in sorted(checksums.keys() & present)
        if file_digest(home_folder / jar_name) != checksums[jar_name]
    ]
    return missing + changed + foreign


def file_digest(file: Path) -> str:
    """SHA-256 of a file."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def sums_digest(checksums: dict[str, str]) -> str:
    """One hash for all the jars of Hadoop."""
    return hashlib.sha256(json.dumps(sorted(checksums.items())).encode()).hexdigest()


def read_json(file: Path) -> Any:
    """Content of *file*, `None` where it cannot be read."""
    try:
        return json.loads(file.read_text())
    except (OSError, ValueError):
        return None


def write_whole(file: Path, content: bytes) -> None:
    """Write *file* in one step: readers see all of it, or what was there before."""
    partial_file = file.with_name(f"{file.name}.{os.getpid()}")
    partial_file.write_bytes(content)
    partial_file.replace(file)
