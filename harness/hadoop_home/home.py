"""
The Hadoop home: one folder with every jar of a cluster, resolved by Maven, proved by checksums.

    home/lib/*.jar       191 jars, exactly those of workloads/hadoop-home/SHA256SUMS
    home/path.jar        a manifest that names them all: short command lines, one order
    home/etc/webapps/    empty folders that the published hadoop-hdfs jar lacks
    home/name/           an empty formatted name space, copied into each new cluster
    home/classes-*.jsa   class-data archives, one per JDK build (`harness.hadoop_home.archive`)
    home/lib-trace/, path-trace.jar, tasks-*.jsa    what traced tasks run (see `instrumented`)

``python -m harness.hadoop_home.home`` makes all of it, as often as it is called; `HadoopHome.find`
only looks, and verifies.
"""

from __future__ import annotations

import fcntl
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from harness.errors import MachineError
from harness.hadoop_home.checksums import (
    file_digest,
    read_json,
    read_sums,
    sums_digest,
    verify,
    write_whole,
    wrong_jars,
)
from harness.hadoop_home.jars import built_jars
from harness.hadoop_home.java import Java, find_java
from harness.records.trial import Versions

SOURCE = Path(__file__).resolve().parents[2] / "workloads" / "hadoop-home"
TRACER = SOURCE.parent / "ltrace" / "target" / "harness-ltrace.jar"
WOVEN = "lib-trace/ltrace-woven.jar"
EXAMPLES = "hadoop-mapreduce-examples-"
JAR_TIME = 1_767_225_600  # 2026-01-01: equal jars get equal times, which the archive records
_PLAIN = re.compile(r"[A-Za-z0-9._/+@=,-]+")


@dataclass(frozen=True, slots=True)
class HadoopHome:
    """A verified home, and the Java that runs it."""

    path: Path
    java: Java
    sums: dict[str, str]

    @classmethod
    def find(cls, path: Path | None = None) -> HadoopHome:
        """Locate and verify the home; `MachineError` naming the jar that is wrong or missing."""
        java = find_java()
        path = path or home_path()
        sums = read_sums(sums_file(path))
        verify(path, sums)
        return cls(path, java, sums)

    @property
    def path_jar(self) -> Path:
        """The jar whose manifest names all others."""
        return self.path / "path.jar"

    @property
    def archive(self) -> Path | None:
        """The class-data archive that fits this JDK and these jars, or `None`."""
        file = self.path / f"classes-{self.archive_key()}.jsa"
        return file if file.is_file() else None

    @property
    def trace_path_jar(self) -> Path | None:
        """
        The jar whose manifest names all others behind the classes with the tracer's hooks.

        `None` where these were not made of these jars by this tracer.
        """
        file = self.path / "path-trace.jar"
        return file if woven_digest(self) and file.is_file() else None

    @property
    def tasks_archive(self) -> Path | None:
        """The class-data archive of traced tasks, or `None`."""
        file = self.path / f"tasks-{self.tasks_key()}.jsa"
        return file if self.trace_path_jar and file.is_file() else None

    @property
    def formatted(self) -> Path | None:
        """An empty formatted name space to copy, or `None`."""
        folder = self.path / "name"
        return folder if os.access(folder / "current" / "VERSION", os.R_OK) else None

    def archive_key(self) -> str:
        """Hash of all that an archive depends on: the JDK build, the jars and where they lie."""
        return self._key()

    def tasks_key(self) -> str:
        """The same of the archive of traced tasks."""
        return self._key(woven_digest(self))

    def _key(self, *more: str) -> str:
        facts = [self.java.version, str(self.java.home), str(self.path), sorted(self.sums.items())]
        return hashlib.sha256(json.dumps([*facts, *more]).encode()).hexdigest()[:16]

    def versions(self) -> Versions:
        """What an outcome depends on: Hadoop, Java, and the jars that are neither."""
        common = next(n for n in self.sums if re.match(r"lib/hadoop-common-\d", n))
        examples = next(n for n in self.sums if n.startswith(f"lib/{EXAMPLES}"))
        jars = {"hadoop-home": sums_digest(self.sums), Path(examples).name: self.sums[examples]}
        jars |= {name: file_digest(jar) for name, jar in built_jars().items()}
        if woven_digest(self):
            jars["ltrace-woven.jar"] = woven_digest(self)
        return Versions(
            hadoop=common.removeprefix("lib/hadoop-common-").removesuffix(".jar"),
            java=self.java.version,
            jars=jars,
        )

    def examples_jar(self) -> Path:
        """Hadoop's own example programs."""
        return self.path / next(n for n in self.sums if n.startswith(f"lib/{EXAMPLES}"))


def home_path() -> Path:
    """Folder of the home: ``HARNESS_HADOOP_HOME``, or the one beside its pom."""
    path = Path(os.environ.get("HARNESS_HADOOP_HOME") or SOURCE / "home").absolute()
    if not _PLAIN.fullmatch(str(path)):
        raise MachineError(
            f"the path {str(path)!r} holds characters that Hadoop's start scripts cannot carry",
            where="HARNESS_HADOOP_HOME" if "HARNESS_HADOOP_HOME" in os.environ else "hadoop home",
            fix="HARNESS_HADOOP_HOME=/a/path/of/letters/and/digits make setup",
        )
    return path


def woven_digest(home: HadoopHome) -> str:
    """
    SHA-256 of the jar of classes with the tracer's hooks; empty where it is missing or outdated.

    It is compared with what made it: Hadoop's jars, and our own, where that lies beside the home.
    """
    made = read_json(home.path / "lib-trace" / "woven.json") or {}
    tracer = file_digest(TRACER) if TRACER.is_file() else made.get("tracer")
    woven = home.path / WOVEN
    fits = woven.is_file() and made == {
        "hadoop": sums_digest(home.sums), "tracer": tracer, "woven": file_digest(woven),
    }  # fmt: skip
    return str(made["woven"]) if fits else ""


def path_jar_bytes(jars: list[str], first: Sequence[str] = ()) -> bytes:
    """
    A jar of one manifest whose class path is *first*, then *jars*, sorted; the same each time.

    A manifest's lines hold 72 bytes; a blank continues the line before.
    """
    line = "Class-Path: " + " ".join([*first, *sorted(jars)])
    pieces = [line[:72], *(" " + line[i : i + 71] for i in range(72, len(line), 71))]
    manifest = "Manifest-Version: 1.0\r\n" + "\r\n".join(pieces) + "\r\n\r\n"
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as jar:
        jar.writestr(zipfile.ZipInfo("META-INF/MANIFEST.MF"), manifest)
    return buffer.getvalue()


def sums_file(home: Path) -> Path:
    """The committed checksum file, or the copy in a home that left its checkout."""
    committed = SOURCE / "SHA256SUMS"
    return committed if committed.is_file() else home / "SHA256SUMS"


def ensure() -> HadoopHome:
    """Make whatever the home lacks: jars, name space, woven classes, archives; say so on stderr."""
    from harness.hadoop_home.archive import ensure_archive, ensure_formatted
    from harness.hadoop_home.instrumented import ensure_woven

    java, home = find_java(), home_path()
    sums = read_sums(sums_file(home))
    home.mkdir(parents=True, exist_ok=True)
    with _one_at_a_time(home):
        if not _complete(home, sums):
            _resolve(home, sums)
        found = HadoopHome(home, java, sums)
        ensure_formatted(found)
        ensure_archive(found)
        ensure_woven(found)
    return found


def say(text: str) -> None:
    """A line for people who wait."""
    sys.stderr.write(f"hadoop home: {text}\n")
    sys.stderr.flush()


def _complete(home: Path, sums: dict[str, str]) -> bool:
    try:
        verify(home, sums)
    except MachineError:
        return False
    return True


def _resolve(home: Path, sums: dict[str, str]) -> None:
    """Fetch the jars beside the old ones, compare, and put them in place by a rename."""
    fresh = home / "fresh"
    shutil.rmtree(fresh, ignore_errors=True)
    say(f"{len(sums)} jars from Maven (100 MB the first time)")
    _copy_dependencies(fresh / "lib")
    problems = wrong_jars(fresh, sums)
    if problems:
        raise MachineError(
            "; ".join(problems[:5]),
            where=f"jars that Maven resolved for {SOURCE / 'pom.xml'}",
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
    command = [
        "mvn", "-B", "-ntp", "-q", "-f", str(SOURCE / "pom.xml"),
        "dependency:copy-dependencies", f"-DoutputDirectory={target}",
    ]  # fmt: skip
    tries = ([*command, "-o"], command)
    for argv in tries:
        shutil.rmtree(target, ignore_errors=True)
        done = subprocess.run(
            argv, check=False, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            errors="replace",
        )  # fmt: skip
        if done.returncode == 0:
            return
    last = [line for line in (done.stdout + done.stderr).splitlines() if "ERROR" in line][:3]
    raise MachineError(
        "Maven cannot resolve Hadoop's jars: " + " ".join(last or ["no message"]),
        where=str(SOURCE / "pom.xml"),
        fix=" ".join(command),
    )


@contextmanager
def _one_at_a_time(home: Path) -> Iterator[None]:
    """Let a second invocation wait for the first; it then finds everything made."""
    with (home / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another setup is at work, waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def main(arguments: list[str]) -> None:
    """Entry of ``python -m harness.hadoop_home.home``."""
    from harness.errors import HarnessError
    from harness.hadoop_home.archive import record_classes

    try:
        found = ensure()
        if arguments == ["classes"]:
            record_classes(found)
    except HarnessError as error:
        sys.stderr.write(f"{error}\n")
        raise SystemExit(error.exit_status) from None
    say(f"ready: Hadoop {found.versions().hadoop} in {found.path}")


if __name__ == "__main__":
    main(sys.argv[1:])
