"""
Make a class-data archive with the Java that will use it.

    node.pyz archive HOME JAVA NAME JAR KEY     prints ``made`` or ``none``

HOME/NAME.jsa is made of the classes in HOME/lists/NAME.lst, read from HOME/JAR, for the Java in the
folder JAVA.  HOME/NAME-KEY says afterwards that it was tried; such files of other keys are removed.
With a Java that makes no archive there is none: all starts without it, slower.
"""

import os
import re
import subprocess
import sys

from contextlib import suppress
from pathlib import Path
from typing import Iterable, List

from .facts import java_version


def main(arguments: List[str]) -> None:
    """Make one archive on this host."""
    folder, java, name, jar, key = arguments
    home, archive = Path(folder), Path(folder, f"{name}.jsa")
    lists, version = home / "lists", java_version(java)
    made = make_archive(Path(java), version, archive, lists=lists, name=name, jar=home / jar)
    if not made:
        with suppress(FileNotFoundError):
            archive.unlink()  # one that another Java made
    for tried in home.glob(f"{name}-*"):
        tried.unlink()
    (home / f"{name}-{key}").touch()
    sys.stdout.write("made\n" if made else "none\n")


def make_archive(
    java: Path, version: str, archive: Path, *, lists: Path, name: str, jar: Path
) -> bool:
    """
    Write *archive* in one step, of the classes in ``lists/<name>.lst``; `False` if Java makes none.

    Lambdas are listed in the form of one version of the JVM: without them if they are refused.
    """
    part = archive.with_name(f"part-{os.getpid()}.jsa")
    classes = list_lines(lists / f"{name}.lst")
    lambdas = lambdas_of(lambdas_file(lists, version), classes)
    try:
        for lines in (classes + lambdas, classes):
            listed = part.with_suffix(".lst")
            listed.write_text("".join(f"{line}\n" for line in lines))
            dump = subprocess.run(
                [
                    f"{java}/bin/java", "-Xshare:dump", f"-XX:SharedClassListFile={listed}",
                    f"-XX:SharedArchiveFile={part}", "-XX:+UseSerialGC", "-cp", str(jar),
                ],
                check=False, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )  # fmt: skip
            if dump.returncode == 0 and part.is_file():
                part.replace(archive)
                return True
        return False
    finally:
        for file in (part, part.with_suffix(".lst")):
            with suppress(FileNotFoundError):
                file.unlink()


def lambdas_file(lists: Path, version: str) -> Path:
    """The list of lambdas for a JVM of that *version*; it may not exist."""
    major = re.match("[0-9]*", version)
    return lists / f"lambdas-{major.group() if major else ''}.lst"


def lambdas_of(lambdas: Path, classes: Iterable[str]) -> List[str]:
    """Lines of the file with the lambdas of *classes*: those of others would load their classes."""
    wanted = set(classes)
    return [
        line
        for line in list_lines(lambdas)
        if not line.startswith("@lambda-proxy ") or line.split(" ")[1] in wanted
    ]


def list_lines(file: Path) -> List[str]:
    """Lines of a file, none where there is no file."""
    return file.read_text().splitlines() if file.is_file() else []
