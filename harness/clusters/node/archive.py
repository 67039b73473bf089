"""
Make a class-data archive with the Java that will use it.

    node.pyz archive HOME JAVA NAME JAR KEY     prints ``made`` or ``none``

HOME/NAME.jsa is made of the classes in HOME/lists/NAME.lst, read from HOME/JAR, for the Java in the
folder JAVA.  HOME/NAME-KEY says afterwards that it was tried; such files of other keys are removed.
With a Java that cannot make one there is none: all starts without it, slower.
"""

import os
import re
import subprocess

from contextlib import suppress
from pathlib import Path
from typing import Iterable, List

from .facts import java_version


def main(arguments: List[str]) -> None:
    """Make one archive on this host."""
    folder, java_home, archive_name, class_path, key = arguments
    home = Path(folder)
    archive = Path(folder, f"{archive_name}.jsa")
    class_list = home / "lists" / f"{archive_name}.lst"
    version = java_version(java_home)
    is_made = make_archive(Path(java_home), version, archive, class_list, home / class_path)
    if not is_made:
        with suppress(FileNotFoundError):
            archive.unlink()  # one that another Java made
    for tried in home.glob(f"{archive_name}-*"):
        tried.unlink()
    (home / f"{archive_name}-{key}").touch()
    print("made" if is_made else "none")


def make_archive(
    java_home: Path, version: str, archive: Path, class_list: Path, class_path: Path
) -> bool:
    """
    Write *archive*, of the classes in *class_list*, in one step; `False` where Java makes none.

    Lambdas are listed in the form of one version of the JVM: without them if they are refused.
    """
    partial_archive = archive.with_name(f"part-{os.getpid()}.jsa")
    classes = list_lines(class_list)
    lambdas = lambdas_of(lambdas_file(class_list.parent, version), classes)
    try:
        for lines in (classes + lambdas, classes):
            listed = partial_archive.with_suffix(".lst")
            listed.write_text("".join(f"{list_line}\n" for list_line in lines))
            process = subprocess.run(
                [
                    f"{java_home}/bin/java",
                    "-Xshare:dump",
                    f"-XX:SharedClassListFile={listed}",
                    f"-XX:SharedArchiveFile={partial_archive}",
                    "-XX:+UseSerialGC",
                    "-cp",
                    str(class_path),
                ],
                check=False,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            if process.returncode == 0 and partial_archive.is_file():
                partial_archive.replace(archive)
                return True
        return False
    finally:
        for list_file in (partial_archive, partial_archive.with_suffix(".lst")):
            with suppress(FileNotFoundError):
                list_file.unlink()


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


def list_lines(list_file: Path) -> List[str]:
    """Lines of a file, none where there is no file."""
    return list_file.read_text().splitlines() if list_file.is_file() else []
