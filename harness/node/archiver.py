"""
Make a class-data archive on the host whose Java will use it.

    python -I -S archiver.py HOME JAVA NAME JAR KEY     prints ``made`` or ``none``

HOME/NAME.jsa is made of the classes in HOME/lists/NAME.lst, found through HOME/JAR, for the Java in
the folder JAVA.  HOME/NAME-KEY says afterwards that it was tried; marks of other keys go.  A Java
that makes no archive leaves none: all starts without it, slower.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path


def main() -> None:
    """Do what the arguments say."""
    home, java, name, jar, key = sys.argv[1:]
    made = make(Path(home), Path(java), name, jar)
    for mark in Path(home).glob(f"{name}-*"):
        mark.unlink()
    Path(home, f"{name}-{key}").touch()
    print("made" if made else "none")  # noqa: T201 - the answer


def make(home: Path, java: Path, name: str, jar: str) -> bool:
    """Put the archive in the place of an older one; `False` where the JVM does not make it."""
    archive, part = home / f"{name}.jsa", home / f"part-{os.getpid()}.jsa"
    names = lines_of(home / "lists" / f"{name}.lst")
    lambdas = lambdas_of(lines_of(home / "lists" / f"lambdas-{major(java)}.lst"), names)
    if any(dump(java, [*names, *more], home / jar, part) for more in (lambdas, [])):
        part.replace(archive)
        return True
    for file in (part, archive):  # the older one is another Java's
        with suppress(FileNotFoundError):
            file.unlink()
    return False


def lines_of(file: Path) -> list[str]:
    """Lines of a file, none where it is not there."""
    return file.read_text().splitlines() if file.is_file() else []


def lambdas_of(lines: Sequence[str], names: Sequence[str]) -> list[str]:
    """Of the *lines* with lambdas those of classes *names*: others would bring their classes."""
    wanted = set(names)
    return [n for n in lines if not n.startswith("@lambda-proxy ") or n.split(" ")[1] in wanted]


def major(java: Path) -> str:
    """Version of the Java, as lists of lambdas are named after it."""
    try:
        text = (java / "release").read_text(errors="replace")
    except OSError:
        return ""
    found = re.search(r'^JAVA_VERSION="(\d+)', text, re.MULTILINE)
    return found[1] if found else ""


def dump(java: Path, lines: Sequence[str], jar: Path, part: Path) -> bool:
    """Have the JVM write the archive of the classes in *lines* to *part*."""
    listed = part.with_suffix(".lst")
    listed.write_text("".join(f"{line}\n" for line in lines))
    try:
        done = subprocess.run(
            [
                f"{java}/bin/java", "-Xshare:dump", f"-XX:SharedClassListFile={listed}",
                f"-XX:SharedArchiveFile={part}", "-XX:+UseSerialGC", "-cp", str(jar),
            ],
            check=False, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
    finally:
        listed.unlink()
    return done.returncode == 0 and part.is_file()


if __name__ == "__main__":
    main()
