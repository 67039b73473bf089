"""
Archives that are unpacked on hosts: Hadoop, Java, and what one node of one cluster needs.

One file each, because a copy costs Ansible several round trips.  The last member is an empty file,
``complete``: what was cut off while it was unpacked is unpacked again.  Equal content gives equal
bytes: owners, times and order are ours.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import tarfile

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from harness.errors import MachineError
from harness.hadoop_home.archive import CLASS_LIST, TASK_LIST
from harness.hadoop_home.checksums import file_digest, sums_digest
from harness.hadoop_home.home import JAR_TIME, HadoopHome, woven_digest
from harness.hadoop_home.java import Java
from harness.node import archive as class_data
from harness.node.build import agent_bytes
from harness.providers.state import agent_file, clusters_folder

AGENT = "node.pyz"
_LEFT_OUT = ("src.zip", "jmods", "man", "demo", "include", "docs")


def home_digest(home: HadoopHome) -> str:
    """What names a Hadoop home on hosts."""
    # of the agent there the host runs one verb alone: other changes bring no jars again
    lists = [(inside, file_digest(Path(path))) for path, inside in _lists() if inside != AGENT]
    lists.append((AGENT, file_digest(Path(class_data.__file__))))
    facts = [sums_digest(home.sums), woven_digest(home), lists, _FORMAT]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:12]


def home_archive(home: HadoopHome) -> Path:
    """The Hadoop home as one archive: jars, the folders of web applications, lists of classes."""
    names = [*sorted(home.sums), "path.jar", "etc"]
    if home.trace_path_jar is not None:
        names += ["lib-trace", "path-trace.jar"]
    return _made(f"hadoop-{home_digest(home)}.tar", lambda: _home_members(home, names))


def _home_members(home: HadoopHome, names: Iterable[str]) -> Iterator[tuple[str, str]]:
    yield from _lists()
    yield from _tree(home.path, names, "")


def _lists() -> list[tuple[str, str]]:
    """Path and name inside of what class-data archives are made with."""
    listed = {"classes.lst": CLASS_LIST, "tasks.lst": TASK_LIST}
    listed |= {file.name: file for file in sorted(CLASS_LIST.parent.glob("lambdas-*.lst"))}
    found = [(str(file), f"lists/{name}") for name, file in listed.items() if file.is_file()]
    return [(str(agent_file()), AGENT), *found]


def java_digest(java: Java) -> str:
    """What names a Java on hosts."""
    facts = [java.version, os.uname().machine, _FORMAT]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:12]


def java_archive(java: Java) -> Path:
    """This machine's Java as one archive with the folder ``java-DIGEST``, links followed."""
    digest = java_digest(java)
    names = sorted(p.name for p in java.home.iterdir() if p.name not in _LEFT_OUT)
    return _made(f"java-{digest}.tar", lambda: _tree(java.home, names, f"java-{digest}/"))


def node_archive(
    target: Path, files: Mapping[str, bytes], folders: Iterable[str], name_space: Path | None
) -> str:
    """
    Write what a node needs to *target*, as base64; its digest.

    The last member is named after it: ``made-DIGEST``.

    *files* and *folders* are relative to the cluster's folder; *name_space* is an empty formatted
    one, for the master.
    """
    content = dict(files)
    content[AGENT] = agent_bytes()
    if name_space is not None:
        content |= {
            f"nodes/master/name/{p.relative_to(name_space)}": p.read_bytes()
            for p in sorted(name_space.rglob("*"))
            if p.is_file()
        }
    listed = sorted((name, hashlib.sha256(data).hexdigest()) for name, data in content.items())
    digest = hashlib.sha256(json.dumps([listed, sorted(folders)]).encode()).hexdigest()[:12]
    content[f"made-{digest}"] = b""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for folder in sorted(folders):
            archive.addfile(_plain(tarfile.TarInfo(folder), folder=True))
        for name, data in content.items():
            member = _plain(tarfile.TarInfo(name))
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    target.write_bytes(base64.encodebytes(packed.getvalue()))
    return digest


_FORMAT = 1


def _made(name: str, members: object) -> Path:
    """The archive of that name, kept from one start to the next; written in one step."""
    folder = clusters_folder().parent / "archives"
    folder.mkdir(mode=0o700, exist_ok=True)
    file = folder / name
    if not file.is_file():
        assert callable(members)
        part = file.with_name(f"{name}.{os.getpid()}")
        try:
            with tarfile.open(part, "w", dereference=True) as archive:
                for path, inside in members():
                    archive.add(path, inside, recursive=False, filter=_plain)
            part.replace(file)
        except OSError as error:
            raise MachineError(
                f"the archive {name} cannot be made: {error.strerror}",
                where=str(error.filename or folder),
                fix="make room, or let this user read it",
            ) from error
        finally:
            part.unlink(missing_ok=True)
    return file


def _tree(root: Path, names: Iterable[str], prefix: str) -> Iterator[tuple[str, str]]:
    """Path and name inside of all below *names*, and of the mark of completeness at the end."""
    for name in names:
        yield str(root / name), prefix + name
        for here, folders, files in os.walk(root / name, followlinks=True):
            folders.sort()
            for below in sorted([*folders, *files]):
                path = Path(here, below)
                if path.exists():  # a link of a packager may lead nowhere
                    yield str(path), prefix + str(path.relative_to(root))
    yield os.devnull, f"{prefix}complete"


def _plain(member: tarfile.TarInfo, *, folder: bool = False) -> tarfile.TarInfo:
    """*member* without what is this machine's; a device stands for an empty file."""
    if member.ischr():
        member.type = tarfile.REGTYPE
        member.size = 0
    if folder:
        member.type = tarfile.DIRTYPE
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mtime = JAR_TIME
    executable = member.isdir() or member.mode & 0o100
    member.mode = 0o755 if executable else 0o644
    return member
