"""The Java of this machine: a JDK 17 or newer, which Hadoop 3.5 requires."""

from __future__ import annotations

import os
import re
import shutil

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.errors import MachineError
from harness.node.facts import java_version

OLDEST = 17
_FIX = (
    "apt-get install -y openjdk-17-jdk-headless"
    "  (elsewhere: install a JDK 17 and set JAVA_HOME to its folder)"
)
# What was chosen by hand is not repaired by a package.
_FIX_CHOICE = "unset JAVA_HOME, or set it to the folder of a JDK 17 or newer"


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
        java_home, source, fix_command = Path(chosen), f"JAVA_HOME={chosen}", _FIX_CHOICE
    else:
        launcher, fix_command = shutil.which("java", path=environment.get("PATH")), _FIX
        if launcher is None:
            raise MachineError(
                "no java on this machine", where="JAVA_HOME and PATH", fix=fix_command
            )
        java_home, source = Path(launcher).resolve().parent.parent, f"{launcher} on PATH"
    if not (java_home / "bin" / "java").is_file():
        raise MachineError(f"no java in {java_home}/bin", where=source, fix=fix_command)
    if not (java_home / "bin" / "javac").is_file():
        raise MachineError(
            f"{java_home} is a Java runtime without javac", where=source, fix=fix_command
        )
    version = java_version(str(java_home))
    major = re.match(r"(\d+)", version.removeprefix("1."))
    if major is None or int(major[1]) < OLDEST:
        raise MachineError(
            f"Java {version or '(no version)'} is too old: Hadoop 3.5 needs {OLDEST} or newer",
            where=source,
            fix=fix_command,
        )
    return Java(java_home, version)
