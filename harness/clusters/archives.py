"""
Archives for nodes and from them, in the form of tar: what comes is read with suspicion.

What a host or a container sends is foreign: no archive overwrites a file that is not its own, fills
the disk, or fills memory.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import tarfile
import time

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from harness.base.errors import ClusterError
from harness.base.hadoop.fence import SECRET
from harness.base.text import printable
from harness.base.units import format_bytes
from harness.clusters.hadoop_home.home import JAR_TIME
from harness.clusters.node.transport import MOST_S, limit_s

CHUNK_BYTES = 2**18
MOST_HEADER_BYTES = 2**20  # of one member: long names and extended headers are read into memory
_LEAST_FREE_BYTES = 2**28
MOST_FILES = 200_000
MOST_BYTES = 2**36  # of one archive
_WORD = r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}"  # which stays in its folder on any system
_PLAIN_NAME = re.compile(f"{_WORD}(/{_WORD})*")

Entries = Mapping[str, Path | bytes | None]  # name -> file of this machine, content, or a folder


class RefusedArchiveError(ClusterError):
    """What comes is not what it must be: to repeat the request would not help."""


def in_time(pieces: Iterable[bytes], where: str, most_s: float = MOST_S) -> Iterator[bytes]:
    """
    The *pieces* as they come; `RefusedArchiveError` where they come too slowly, each in time.

    The limit of the time of waiting grows with the bytes that have come, to *most_s* seconds.
    """
    iterator = iter(pieces)
    waited_s = 0.0
    size = 0
    while True:
        started_s = time.monotonic()
        piece = next(iterator, b"")
        waited_s += time.monotonic() - started_s
        if not piece:
            return
        size += len(piece)
        if waited_s > limit_s(size, most_s):
            size_text = format_bytes(size)
            limit_text = f"{limit_s(size, most_s):.3g} s"
            raise RefusedArchiveError(
                f"{size_text} have come in {waited_s:.3g} s, beyond the limit of {limit_text}",
                where=where,
                fix="see what slows the host or its network down; then repeat",
            )
        yield piece


def pack(entries: Entries, target: IO[bytes], owner: int = 0) -> None:
    """
    Write an archive of *entries*, all of user *owner*, to *target*: equal content, equal bytes.

    A file that has become shorter meanwhile is an `OSError`.
    """
    with tarfile.open(fileobj=target, mode="w") as archive:
        for name, content in entries.items():
            entry = tarfile.TarInfo(name)
            entry.uid = entry.gid = owner
            entry.mtime = JAR_TIME
            entry.mode = 0o644
            if content is None:
                entry.type = tarfile.DIRTYPE
                entry.mode = 0o755
                archive.addfile(entry)
            elif isinstance(content, bytes):
                entry.size = len(content)
                entry.mode = 0o600 if name.endswith(f"/{SECRET}") else entry.mode
                archive.addfile(entry, io.BytesIO(content))
            else:
                with content.open("rb") as stream:
                    status = os.fstat(stream.fileno())
                    entry.size = status.st_size
                    entry.mode = 0o755 if status.st_mode & 0o100 else 0o644
                    archive.addfile(entry, stream)


def unpack(pieces: Iterable[bytes], wanted: re.Pattern[str], into: Path, where: str) -> list[Path]:
    """
    Write the wanted files of an archive that comes in *pieces* below *into*; their paths, in order.

    A plain file is wanted when its whole name matches; the pattern's first group is its name here.
    *pieces* is closed at the end, where it can be; files that arrived whole before an error stay.
    `ClusterError` for an archive that is broken or cut off; `RefusedArchiveError` for one of more
    than `MOST_BYTES`, or `MOST_FILES`, or with a name twice.
    An archive that ends between two files looks whole: whoever brings the pieces has to notice it.
    """
    reader = PiecesReader(pieces)
    written = dict[Path, None]()
    total_bytes = 0
    try:
        with tarfile.open(fileobj=reader, mode="r|", bufsize=CHUNK_BYTES) as archive:
            for count, member in enumerate(archive, start=1):
                total_bytes += member.size
                if count > MOST_FILES:
                    raise _refused_error(f"more than {MOST_FILES} files", where)
                if member.size < 0 or total_bytes > MOST_BYTES:
                    raise _refused_error(f"more than {MOST_BYTES} bytes", where)
                reader.allowance = member.size + MOST_HEADER_BYTES
                name = _wanted_name(member, wanted)
                if name is None:
                    continue
                target = into / name
                if target in written:
                    raise _refused_error(f"the file {name} twice", where)
                try:
                    _save(archive.extractfile(member), member.size, target)
                except (FileExistsError, NotADirectoryError, IsADirectoryError) as error:
                    what = f"{name}, as a file and as a folder"
                    raise _refused_error(what, where) from error
                written[target] = None
    except (tarfile.TarError, EOFError, ValueError, RecursionError) as error:
        raise ClusterError(
            f"the archive is broken: {printable(str(error))[:200]}",
            where=where,
            fix="repeat; if it stays so, look at the node",
        ) from error
    finally:
        close: Callable[[], None] = getattr(pieces, "close", lambda: None)
        with suppress(Exception):  # the rest is not wanted, however it would have ended
            close()
    return list(written)


def _wanted_name(member: tarfile.TarInfo, wanted: re.Pattern[str]) -> str | None:
    """The name here of a plain file that is wanted; `None` for any other member."""
    match = wanted.fullmatch(member.name)
    is_plain = member.isreg() and not member.issparse()
    return match[1] if match and is_plain and _PLAIN_NAME.fullmatch(match[1]) else None


def _save(stream: IO[bytes] | None, size: int, target: Path) -> None:
    """Write the content of a file to *target*; `RefusedArchiveError` before the disk is full."""
    assert stream is not None
    target.parent.mkdir(parents=True, exist_ok=True)
    if shutil.disk_usage(target.parent).free - size < _LEAST_FREE_BYTES:
        raise RefusedArchiveError(
            f"no room for a file of {size} bytes",
            where=str(target.parent),
            fix="free some space on this machine's disk",
        )
    try:
        with target.open("wb") as copy:
            shutil.copyfileobj(stream, copy, CHUNK_BYTES)
    except BaseException:
        target.unlink(missing_ok=True)  # half a log would pass for a whole one
        raise


def _refused_error(what: str, where: str) -> RefusedArchiveError:
    return RefusedArchiveError(
        f"the node sends {printable(what)}",
        where=where,
        fix="check the node and its disk: its programs do not work properly",
    )


class PiecesReader(io.RawIOBase):
    """
    Pieces as a file; *allowance* is how many bytes may still be read for the current member.

    Without it `tarfile` would read a header of any size into memory.
    """

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self.allowance = MOST_HEADER_BYTES
        self._pieces = iter(pieces)
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        """Always `True`: pieces can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill *buffer* with a part of a piece; a header without an end is an error."""
        while not self._rest:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._rest = memoryview(piece)
        size = min(len(buffer), len(self._rest))
        self.allowance -= size
        if self.allowance < 0:
            raise tarfile.ReadError("a header without an end")
        buffer[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size
