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

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from harness.errors import MachineError
from harness.hadoop_home.home import (
    CLASS_LIST,
    JAR_TIME,
    TASK_LIST,
    HadoopHome,
    Java,
    file_digest,
    instrumented_digest,
    sums_digest,
)
from harness.node import NAME, agent_bytes
from harness.node import archive as class_data
from harness.providers.state import agent_file, clusters_folder

_FORMAT = 1
_LEFT_OUT = ("src.zip", "jmods", "man", "demo", "include", "docs")


def home_digest(home: HadoopHome) -> str:
    """What names a Hadoop home on hosts."""
    lists = [(member_name, file_digest(source_path)) for source_path, member_name in _class_lists()]
    # hosts run one verb of the agent that is beside Hadoop: other changes bring no jars again
    lists.append((NAME, file_digest(Path(class_data.__file__))))
    return _short_digest([sums_digest(home.sums), instrumented_digest(home), lists, _FORMAT])


def home_bundle(home: HadoopHome) -> Path:
    """The Hadoop home as one archive: jars, the folders of web applications, lists of classes."""
    file_names = [*sorted(home.sums), "path.jar", "etc"]
    if home.trace_path_jar is not None:
        file_names += ["lib-trace", "path-trace.jar"]

    def members() -> Iterator[tuple[Path, str]]:
        yield agent_file(), NAME
        yield from _class_lists()
        yield from _tree(home.path, file_names, "")

    return _bundle(f"hadoop-{home_digest(home)}.tar", members)


def java_digest(java: Java) -> str:
    """What names a Java on hosts."""
    return _short_digest([java.version, os.uname().machine, _FORMAT])


def java_bundle(java: Java) -> Path:
    """This machine's Java as one archive with the folder ``java-DIGEST``, links followed."""
    folder_name = f"java-{java_digest(java)}"
    file_names = sorted(entry.name for entry in java.home.iterdir() if entry.name not in _LEFT_OUT)
    return _bundle(f"{folder_name}.tar", lambda: _tree(java.home, file_names, f"{folder_name}/"))


def write_node_bundle(
    target: Path, files: Mapping[str, bytes], folders: Iterable[str], name_space: Path | None
) -> str:
    """
    Write what a node needs to *target*, as base64; its digest.

    The last member is named after it: ``made-DIGEST``.  *files* and *folders* are relative to the
    cluster's folder; *name_space* is an empty formatted one, for the master.
    """
    content = dict(files)
    content[NAME] = agent_bytes()
    if name_space is not None:
        for path in sorted(name_space.rglob("*")):
            if path.is_file():
                member_name = f"nodes/master/name/{path.relative_to(name_space)}"
                content[member_name] = path.read_bytes()
    digests = sorted((name, hashlib.sha256(data).hexdigest()) for name, data in content.items())
    digest = _short_digest([digests, sorted(folders)])
    content[f"made-{digest}"] = b""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for folder_name in sorted(folders):
            member = tarfile.TarInfo(folder_name)
            member.type = tarfile.DIRTYPE
            archive.addfile(_anonymous(member))
        for member_name, content_bytes in content.items():
            member = tarfile.TarInfo(member_name)
            member.size = len(content_bytes)
            archive.addfile(_anonymous(member), io.BytesIO(content_bytes))
    target.write_bytes(base64.encodebytes(packed.getvalue()))
    return digest


def _short_digest(facts: object) -> str:
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:12]


def _class_lists() -> list[tuple[Path, str]]:
    """The lists that class-data archives are made of, with their names in the bundle."""
    named = {"classes.lst": CLASS_LIST, "tasks.lst": TASK_LIST}
    named |= {file.name: file for file in sorted(CLASS_LIST.parent.glob("lambdas-*.lst"))}
    return [(file, f"lists/{member_name}") for member_name, file in named.items() if file.is_file()]


def _bundle(name: str, members: Callable[[], Iterable[tuple[Path, str]]]) -> Path:
    """The archive of that name, kept from one start to the next; written in one step."""
    bundles_folder = clusters_folder().parent / "archives"
    bundles_folder.mkdir(mode=0o700, exist_ok=True)
    bundle = bundles_folder / name
    if bundle.is_file():
        return bundle
    partial_file = bundle.with_name(f"{name}.{os.getpid()}")
    try:
        with tarfile.open(partial_file, "w", dereference=True) as archive:
            for source_path, inner_name in members():
                archive.add(source_path, inner_name, recursive=False, filter=_anonymous)
        partial_file.replace(bundle)
    except OSError as error:
        raise MachineError(
            f"the archive {name} cannot be made: {error.strerror}",
            where=str(error.filename or bundles_folder),
            fix="free some space, or let this user read it",
        ) from error
    finally:
        partial_file.unlink(missing_ok=True)
    return bundle


def _tree(root: Path, names: Iterable[str], prefix: str) -> Iterator[tuple[Path, str]]:
    """All below *names* with its name in the archive, and ``complete`` at the end."""
    for member_name in names:
        yield root / member_name, prefix + member_name
        for here, folders, files in os.walk(root / member_name, followlinks=True):
            folders.sort()
            for below in sorted([*folders, *files]):
                source_path = Path(here, below)
                if source_path.exists():  # a link of a packager may lead nowhere
                    yield source_path, prefix + str(source_path.relative_to(root))
    yield Path(os.devnull), f"{prefix}complete"


def _anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """*member* without what is this machine's; a device stands for an empty file."""
    if member.ischr():
        member.type, member.size = tarfile.REGTYPE, 0
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mtime = JAR_TIME
    member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
    return member
