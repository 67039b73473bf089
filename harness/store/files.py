"""
How results reach the disk: whole, or not at all.

A file is written under another name, synced, renamed, and its folder is synced; a reader, or a
machine that loses power, sees the old content or the new one.  A disk that cannot take a file is
`MachineError`, content that does not read like ours is `DataError`; both name the path.
"""

from __future__ import annotations

import errno
import gzip
import hashlib
import io
import json
import os
import re
import shutil
import zlib

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, TypeVar, cast

from pydantic import ValidationError

from harness.errors import DataError, MachineError
from harness.records.jsontext import read_json
from harness.records.trial import Record
from harness.units import format_bytes

SCHEMA_VERSION = 1

# Host, container, workload and file names become parts of paths: no separator, no leading dot.
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@+=-]{0,149}", re.ASCII)

MAKE_ROOM = "free some space there, and start the same command again: it goes on where it was"
_FIX = {
    errno.ENOSPC: MAKE_ROOM,
    errno.EDQUOT: MAKE_ROOM,
    errno.ENOMEM: "end other programs, or lower cluster.workers; then start the same command again",
    errno.EROFS: "choose a folder that can be written with --results-dir",
    errno.EACCES: "give yourself the right to write there, or choose another with --results-dir",
    errno.EPERM: "give yourself the right to write there, or choose another with --results-dir",
    errno.ENOTDIR: "a file stands where a folder is needed: move it, or use --results-dir",
}

# What a machine lacks; whatever else the operating system says of a file is more likely a bug.
_LACKS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.ENOMEM, errno.EIO})

# No line of a log is longer: a history's longest is a hundredth of it.
_LONGEST_LINE = 16 * 2**20

# No file of results is larger: a plan of 100 000 trials has a fifth of it.  A sparse file of
# terabytes is a few bytes in an archive.
_MOST_BYTES = 2**30

R = TypeVar("R", bound=Record)
T = TypeVar("T")


def is_name(name: str) -> bool:
    """Whether *name* is safe as one part of a path."""
    return _NAME.fullmatch(name) is not None


def check_name(name: str, what: str) -> str:
    """
    Return *name* if it is safe as one part of a path; *what* says in the error what it names.

    >>> check_name("container_1_0001_01_000001", "a container")
    'container_1_0001_01_000001'
    """
    if not is_name(name):
        raise DataError(
            f"{name[:80]!r} cannot name {what} in the results",
            where="harness.store",
            fix="use letters, digits and _ . @ + = -, beginning with a letter, digit or _",
        )
    return name


def inside(folder: Path, name: str, what: str) -> Path:
    """Path of *name*, whose parts are separated by ``/``, under *folder* and never outside it."""
    return folder.joinpath(*(check_name(part, what) for part in name.split("/")))


@contextmanager
def disk(path: Path) -> Iterator[None]:
    """Turn what the operating system refuses inside into `MachineError` with a fix."""
    try:
        yield
    except OSError as error:
        where = Path(error.filename) if isinstance(error.filename, str) else path
        raise MachineError(
            (error.strerror or str(error)).lower() + _room(error, where),
            where=str(where),
            fix=_FIX.get(error.errno or 0, "check this disk, or use another with --results-dir"),
        ) from error


@contextmanager
def machine(path: Path) -> Iterator[None]:
    """
    Turn a full or broken disk, or memory that is used up, into `MachineError` as `disk` does.

    For whole stretches of work: any other `OSError` is left to be reported as a bug.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in _LACKS:
            raise
        with disk(path):
            raise


def free_bytes(path: Path) -> int:
    """Bytes that this user may still write where *path* lies, or would lie."""
    there = next(p for p in (path, *path.absolute().parents) if p.exists())
    with disk(there):
        return shutil.disk_usage(there).free


def _room(error: OSError, path: Path) -> str:
    if error.errno != errno.ENOSPC:
        return ""
    return f" ({format_bytes(free_bytes(path))} free)"


def sync_folder(folder: Path) -> None:
    """Make renames inside *folder* survive a loss of power."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_tree(folder: Path) -> None:
    """Sync every file and folder under *folder*, and itself."""
    for root, _, names in os.walk(folder):
        for name in names:
            with Path(root, name).open("rb") as file:
                os.fsync(file.fileno())
        sync_folder(Path(root))


def settle(source: Path, target: Path) -> None:
    """Rename the synced *source* to *target*, durably: the one step that makes it count."""
    source.rename(target)
    sync_folder(target.parent)


def write_file(path: Path, data: bytes, scratch: Path) -> None:
    """Put *data* at *path* in one step; *scratch* is a folder on the same file system."""
    with disk(path):
        scratch.mkdir(parents=True, exist_ok=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = scratch / f"{path.name}.{os.getpid()}"
        try:
            with temporary.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            settle(temporary, path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


def remove_tree(folder: Path) -> None:
    """Remove *folder* and all below it; nothing happens where it does not exist."""
    if folder.exists():
        with disk(folder):
            shutil.rmtree(folder)


def read_file(path: Path, fix: str, *, most_bytes: int = _MOST_BYTES) -> bytes:
    """Bytes of a file of results; a missing one, or a larger one, is `DataError` with *fix*."""
    try:
        with disk(path), path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            data = file.read() if size <= most_bytes else b""
    except MachineError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            raise DataError(f"{path.name} is missing", where=str(path), fix=fix) from error
        raise
    if size > most_bytes:
        raise DataError(
            f"{path.name} has more than {format_bytes(most_bytes)}", where=str(path), fix=fix
        )
    return data


def sha256(path: Path) -> str:
    """SHA-256 of a file, in hex."""
    with disk(path), path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def json_bytes(value: Mapping[str, Any], *, indent: int | None = 2) -> bytes:
    """*value* as JSON with sorted keys, ended by a newline: equal values give equal bytes."""
    return (json.dumps(value, indent=indent, sort_keys=True, allow_nan=False) + "\n").encode()


def parse_json(data: bytes, path: Path, fix: str) -> dict[str, Any]:
    """Return the JSON object in *data*, of a schema version that this harness knows."""
    try:
        value = read_json(data)
    except ValueError as error:
        raise DataError(f"{path.name} is not JSON: {error}", where=str(path), fix=fix) from error
    if not isinstance(value, dict):
        raise DataError(f"{path.name} is not a JSON object", where=str(path), fix=fix)
    check_version(value.get("schema_version"), path)
    return value


def check_version(version: object, path: Path) -> None:
    """Refuse a file of a later harness, or one that does not say its version."""
    if isinstance(version, int) and not isinstance(version, bool) and version >= 1:
        if version <= SCHEMA_VERSION:
            return
        raise DataError(
            f"schema_version {version} is newer than {SCHEMA_VERSION}, the last one known here",
            where=str(path),
            fix="use the harness that wrote it or a later one (git pull; make setup),"
            " or another folder with --results-dir",
        )
    raise DataError(
        f"schema_version {repr(version)[:80]} is not a version",
        where=str(path),
        fix="this file was not written by the harness: restore it, or remove it",
    )


def read_record(kind: type[R], data: bytes, path: Path, fix: str) -> R:
    """Return the record of *kind* in *data*; *path* stands in the error."""
    value = parse_json(data, path, fix)
    if "schema_version" not in kind.model_fields:
        del value["schema_version"]
    return as_record(kind, value, path, fix)


def as_record(kind: type[R], value: Mapping[str, Any], path: Path, fix: str) -> R:
    """Validate *value*; the first thing that is wrong with it becomes `DataError`."""
    return validated(kind.model_validate, value, path, fix)


def validated(validate: Callable[[Any], T], value: Any, path: Path, fix: str) -> T:
    """Answer of pydantic's *validate*, or `DataError` that names the first wrong field."""
    try:
        return validate(value)
    except ValidationError as error:
        first = error.errors()[0]
        # Keys of a mapping stand among the fields: they are data.
        field = ascii(".".join(str(part) for part in first["loc"]))[1:-1][:200]
        raise DataError(
            f"{field or error.title}: {first['msg'].lower()[:200]}", where=str(path), fix=fix
        ) from error


def compress_tree(folder: Path) -> None:
    """
    Gzip every file under *folder* in place, as ``<name>.gz``.

    Whatever is neither a file nor a folder is removed: a link that a task left among its logs
    must not lead a reader out of the results.
    """
    for root, folders, names in os.walk(folder):
        # In reverse, `a.gz` has become `a.gz.gz` before `a` becomes `a.gz`.
        for name in sorted([*folders, *names], reverse=True):
            path = Path(root, name)
            if path.is_symlink() or not (path.is_dir() or path.is_file()):
                path.unlink()
            elif path.is_file():
                _compress(path)


def _compress(path: Path) -> None:
    target = path.with_name(path.name + ".gz")
    with (
        path.open("rb") as plain,
        target.open("xb") as file,
        gzip.GzipFile("", "wb", 6, file, mtime=0) as packed,
    ):
        shutil.copyfileobj(plain, packed)
    path.unlink()


class RawLogs:
    """The unedited logs of one trial, read back decompressed."""

    def __init__(self, folder: Path) -> None:
        """Read under *folder*."""
        self._folder = folder

    def names(self) -> tuple[str, ...]:
        """Names of all logs, sorted; folders are separated by ``/``."""
        return self._names

    @cached_property
    def _names(self) -> tuple[str, ...]:
        found = (p for p in self._folder.rglob("*.gz") if p.is_file() and not p.is_symlink())
        return tuple(
            sorted(p.relative_to(self._folder).as_posix().removesuffix(".gz") for p in found)
        )

    def open(self, name: str) -> BinaryIO:
        """Bytes of the log *name*; damage shows as `DataError` while reading."""
        if name not in self.names():
            raise DataError(
                f"no log {name[:150]!r} in this trial",
                where=str(self._folder),
                fix="list the folder; names are relative to it, without .gz",
            )
        path = self._folder / f"{name}.gz"
        with disk(path):
            return cast("BinaryIO", _Log(path))


class _Log(io.BufferedReader):
    """A log of lines: a few megabytes can unpack to a line that no memory holds."""

    def __init__(self, path: Path) -> None:
        self._path = path
        super().__init__(_Unpacked(path))

    def readline(self, size: int | None = -1, /) -> bytes:
        most = _LONGEST_LINE + 1 if size is None or size < 0 else size
        line = super().readline(most)
        if len(line) > _LONGEST_LINE:
            raise DataError(
                f"a line of more than {_LONGEST_LINE} bytes is no line of a log",
                where=str(self._path),
                fix="remove this trial's folder: the next run measures it again",
            )
        return line


class _Unpacked(io.RawIOBase):
    """A gzip file whose damage is our error, with its path."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._packed = gzip.GzipFile(path, "rb")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            return self._packed.readinto(buffer)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise DataError(
                f"the compressed log is damaged: {error}",
                where=str(self._path),
                fix="remove this trial's folder: the next run measures it again",
            ) from error

    def close(self) -> None:
        self._packed.close()
        super().close()
