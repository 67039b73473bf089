"""
Files into containers and out of them: archives in the form of tar, read with suspicion.

What stands in a container is written by whoever runs there.  A name is used only if it is a plain
one where such a name belongs; links, devices and all else that is no file are left behind; there is
a limit to how much is read.
"""

from __future__ import annotations

import io
import shutil
import tarfile

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import IO, Any

from harness.errors import ClusterError
from harness.providers.host import printable
from harness.providers.ids import CONTAINER, LOG

USER = 10_000  # who owns what is put: the plain user of the image
_CHUNK = 2**20
_TIME = 1_767_225_600  # 2026-01-01: equal files make equal archives
_LOGS_LIMIT, _LOGS_COUNT = 16 * 2**30, 200_000


def packed(files: Mapping[str, bytes], folders: Iterable[str] = ()) -> bytes:
    """An archive of *folders* and *files* (path -> content), owned by the image's user."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for path in folders:
            archive.addfile(_info(path, 0, kind=tarfile.DIRTYPE, mode=0o755))
        for path, content in files.items():
            archive.addfile(_info(path, len(content)), io.BytesIO(content))
    return buffer.getvalue()


def packed_file(
    name: str, stream: IO[bytes], size: int, *, executable: bool = False
) -> Iterator[bytes]:
    """An archive, in pieces, of one file of *size* bytes; a file that shrinks is an `OSError`."""
    yield _info(name, size, mode=0o755 if executable else 0o644).tobuf()
    left = size
    while left:
        piece = stream.read(min(_CHUNK, left))
        if not piece:
            raise OSError(f"{name} has become shorter while it was read")
        left -= len(piece)
        yield piece
    yield bytes(-size % tarfile.BLOCKSIZE + 2 * tarfile.BLOCKSIZE)


def unpack_file(pieces: Iterable[bytes], target: Path, where: str) -> None:
    """Write the one file of an archive to *target*; `ClusterError` for what is no plain file."""
    with _opened(pieces, where) as archive:
        member = archive.next()
        if member is None or not member.isreg():
            raise ClusterError("not a plain file", where=where, fix="look at it on the node")
        if member.size > _LOGS_LIMIT:
            raise ClusterError(
                f"{member.size} bytes, more than {_LOGS_LIMIT}",
                where=where, fix="look at it on the node",
            )  # fmt: skip
        _copy(archive, member, target)


def unpack_logs(
    pieces: Iterable[bytes], application: str, into: Path, where: str, limit: int = _LOGS_LIMIT
) -> list[Path]:
    """
    Write ``application/container/file`` of an archive to ``into/container/file``; what was written.

    Whatever else the archive holds stays where it is.  `ClusterError` where it holds more than
    *limit* bytes.
    """

    def place(parts: tuple[str, ...]) -> Path | None:
        known = len(parts) == 3 and parts[0] == application and CONTAINER.fullmatch(parts[1])
        return into / parts[1] / parts[2] if known and LOG.fullmatch(parts[2]) else None

    return _unpack(pieces, place, where, limit)


def unpack_texts(pieces: Iterable[bytes], into: Path, where: str) -> list[Path]:
    """Write ``folder/name.txt`` of an archive to ``into/name.txt``; see `unpack_logs`."""

    def place(parts: tuple[str, ...]) -> Path | None:
        known = len(parts) == 2 and LOG.fullmatch(parts[1]) and parts[1].endswith(".txt")
        return into / parts[1] if known else None

    return _unpack(pieces, place, where, _LOGS_LIMIT)


def _unpack(
    pieces: Iterable[bytes],
    place: Callable[[tuple[str, ...]], Path | None],
    where: str,
    limit: int,
) -> list[Path]:
    """Write the plain files to which *place* gives a place."""
    written, count = [], 0
    with _opened(pieces, where) as archive:
        for member in archive:
            limit, count = limit - member.size, count + 1
            if limit < 0 or count > _LOGS_COUNT:
                raise ClusterError(
                    "more logs than anybody wrote on purpose",
                    where=where,
                    fix="look at the node's disk, then: harness cluster down",
                )
            target = place(PurePosixPath(member.name).parts) if member.isreg() else None
            if target is not None:
                target.parent.mkdir(parents=True, exist_ok=True)
                _copy(archive, member, target)
                written.append(target)
    return written


def last_lines(pieces: Iterable[bytes], lines: int, where: str) -> dict[str, str]:
    """Name -> last *lines* of each file of an archive, without what would move a cursor."""
    found = {}
    with _opened(pieces, where) as archive:
        for member in archive:
            stream = archive.extractfile(member) if member.isreg() else None
            if stream is not None:
                text = _end(stream, 400 * lines).decode(errors="replace")
                name = PurePosixPath(member.name).name
                found[name] = printable("\n".join(text.splitlines()[-lines:]))
    return found


def _end(stream: IO[bytes], size: int) -> bytes:
    """The last *size* bytes of a stream that can only be read forwards."""
    kept = b""
    while piece := stream.read(_CHUNK):
        kept = (kept + piece)[-size:]
    return kept


def _copy(archive: tarfile.TarFile, member: tarfile.TarInfo, target: Path) -> None:
    source = archive.extractfile(member)
    assert source is not None
    with source, target.open("wb") as out:
        shutil.copyfileobj(source, out, _CHUNK)


@contextmanager
def _opened(pieces: Iterable[bytes], where: str) -> Iterator[tarfile.TarFile]:
    """An archive that is read as it comes; what is wrong with it is a `ClusterError`."""
    try:
        with tarfile.open(fileobj=_Reader(pieces), mode="r|") as archive:
            yield archive
    except (tarfile.TarError, EOFError) as error:
        raise ClusterError(
            f"the archive of a container is broken: {printable(str(error))}",
            where=where,
            fix="repeat; the engine's log may tell more",
        ) from error
    finally:
        close: Callable[[], None] = getattr(pieces, "close", lambda: None)
        with suppress(Exception):  # the rest is not wanted, however it would have ended
            close()


class _Reader(io.RawIOBase):
    """Pieces as a file."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces, self._rest = iter(pieces), b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._rest:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._rest = piece
        size = min(len(buffer), len(self._rest))
        buffer[:size], self._rest = self._rest[:size], self._rest[size:]
        return size


def _info(path: str, size: int, *, kind: bytes = tarfile.REGTYPE, mode: int = 0o644) -> Any:
    info = tarfile.TarInfo(path)
    info.size, info.type, info.mode, info.mtime = size, kind, mode, _TIME
    info.uid = info.gid = USER
    return info
