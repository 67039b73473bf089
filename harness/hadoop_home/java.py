"""The Java of this machine: a JDK 17 or newer, as Hadoop 3.5 asks."""

from __future__ import annotations

import os
import re
import shutil

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.errors import MachineError

OLDEST = 17
_FIX = (
    "apt-get install -y openjdk-17-jdk-headless"
    "  (elsewhere: install a JDK 17 and set JAVA_HOME to its folder)"
)
# What was chosen by hand is not cured by a package.
_FIX_CHOICE = "unset JAVA_HOME, or set it to the folder of a JDK 17 or newer"


@dataclass(frozen=True, slots=True)
class Java:
    """A JDK: its folder, and its full version (the class-data archive fits one build only)."""

    home: Path
    version: str

    @property
    def launcher(self) -> str:
        """Path of the `java` command."""
        return str(self.home / "bin" / "java")


def find_java(environment: Mapping[str, str] = os.environ) -> Java:
    """Locate the JDK of ``JAVA_HOME`` or of ``PATH``; `MachineError` unless it is 17 or newer."""
    home, source = _home(environment)
    fix = _FIX_CHOICE if environment.get("JAVA_HOME") else _FIX
    if not (home / "bin" / "java").is_file():
        raise MachineError(f"no java in {home}/bin", where=source, fix=fix)
    if not (home / "bin" / "javac").is_file():
        raise MachineError(f"{home} is a Java runtime without javac", where=source, fix=fix)
    version = _version(home)
    major = re.match(r"(\d+)", version.removeprefix("1."))
    if major is None or int(major[1]) < OLDEST:
        raise MachineError(
            f"Java {version or '(no version)'} is too old: Hadoop 3.5 needs {OLDEST} or newer",
            where=source,
            fix=fix,
        )
    return Java(home, version)


def _home(environment: Mapping[str, str]) -> tuple[Path, str]:
    if set_home := environment.get("JAVA_HOME"):
        return Path(set_home), f"JAVA_HOME={set_home}"
    launcher = shutil.which("java", path=environment.get("PATH"))
    if launcher is None:
        raise MachineError("no java on this machine", where="JAVA_HOME and PATH", fix=_FIX)
    return Path(launcher).resolve().parent.parent, f"{launcher} on PATH"


def _version(home: Path) -> str:
    """Version that the JDK's own `release` file states, without starting a JVM."""
    try:
        text = (home / "release").read_text()
    except OSError:
        return ""
    facts: dict[str, str] = dict(re.findall(r'^(\w+)="(.*)"$', text, re.MULTILINE))
    return facts.get("JAVA_RUNTIME_VERSION") or facts.get("JAVA_VERSION", "")
