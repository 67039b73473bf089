"""Checksums of a Hadoop home's jars: read, compared, remembered."""

from __future__ import annotations

import hashlib
import json
import os
import re

from contextlib import suppress
from pathlib import Path
from typing import Any

from harness.errors import MachineError

SETUP = "make setup"


def read_sums(file: Path) -> dict[str, str]:
    """Jar (``lib/x.jar``) -> SHA-256, as *file* lists them."""
    try:
        lines = file.read_text().splitlines()
    except OSError as error:
        raise MachineError("no Hadoop home", where=str(file), fix=SETUP) from error
    matches = [re.fullmatch(r"([0-9a-f]{64})  (lib/[A-Za-z0-9._+-]+\.jar)", line) for line in lines]
    if not matches or None in matches:
        raise MachineError("not a list of checksums", where=str(file), fix=f"git checkout {file}")
    return {match[2]: match[1] for match in matches if match}


def verify(home_folder: Path, checksums: dict[str, str]) -> None:
    """Compare every jar with its checksum; sizes and times alone where nothing has changed."""
    if not (home_folder / "path.jar").is_file():
        where = str(home_folder)
        if os.environ.get("HARNESS_HADOOP_HOME"):  # which may be mistyped
            where += " (HARNESS_HADOOP_HOME; unset, the folder of the checkout is used)"
        raise MachineError("no Hadoop home", where=where, fix=SETUP)
    jars = {}
    if (home_folder / "lib").is_dir():
        with os.scandir(home_folder / "lib") as entries:
            jars = {each.name: each.stat() for each in entries if each.name.endswith(".jar")}
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
    foreign = [
        f"{jar_name} does not belong here" for jar_name in sorted(present - checksums.keys())
    ]
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
