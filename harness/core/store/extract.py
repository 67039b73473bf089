"""
A foreign archive of results, written as files and folders of our own, or refused as a whole.

It is refused for any member that is no plain file or folder, or whose name is none that the harness
gives, and for more files or bytes than results have.
"""

from __future__ import annotations

import gzip
import shutil
import tarfile
import zlib

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import IO, Any, NamedTuple

from harness.base.errors import DataError, MachineError
from harness.base.text import excerpt
from harness.base.units import format_bytes
from harness.clusters.archives import CHUNK_BYTES, MOST_HEADER_BYTES, PiecesReader
from harness.observe.storage.files import LEAST_FREE_BYTES, free_bytes, is_name

MOST_MEMBERS = 250_000
MOST_BYTES = 2**38  # six times what a run of 500 trials has, or more
MOST_RATIO = 100  # of these bytes to the archive's: a run's are 1 to 3, and logs pack twentyfold
_SMALL_BYTES = 2**30  # what any archive may unpack to
_MOST_PARTS = 16  # of a name
_BROKEN = (tarfile.TarError, zlib.error, EOFError, ValueError)


def extract(archive: Path, target: Path) -> None:
    """Write all members of *archive* below *target*, as files and folders of our own."""
    target.mkdir()
    extraction = _Extraction(archive, target)
    try:
        for member, content in _members(archive):
            extraction.write(member, content)
    except (*_BROKEN, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # this machine's, not the archive's
        what = f"it is broken, or not a tar file ({excerpt(error)})"
        raise extraction.refusal(what) from error


class _Entry(NamedTuple):
    """A file or folder of an archive, by its path there."""

    path: str
    is_folder: bool


class _Extraction:
    """Writes members of *archive* below *target*, and refuses those that no run has."""

    def __init__(self, archive: Path, target: Path) -> None:
        self._archive = archive
        self._target = target
        packed_bytes = archive.stat().st_size
        self._most_bytes = min(MOST_BYTES, max(_SMALL_BYTES, MOST_RATIO * packed_bytes))
        self._room_bytes = self._most_bytes
        self._free_bytes = free_bytes(target) - LEAST_FREE_BYTES
        # By their paths in lower case, for file systems that do not distinguish cases.
        self._entries = dict[str, _Entry]()

    def refusal(self, what: str) -> DataError:
        """Error about the archive."""
        return DataError(f"the archive is refused: {what}", where=str(self._archive))

    def write(self, member: tarfile.TarInfo, content: IO[bytes] | None) -> None:
        """Write *member*, of a file with its *content*; `DataError`: the archive is unsound."""
        shown = f"'{excerpt(member.name)}'"
        parts = [part for part in member.name.split("/") if part not in ("", ".")]
        is_safe = not member.name.startswith("/") and all(map(is_name, parts))
        is_safe &= bool(parts) or member.isdir()  # a file called `.` has no place
        if not is_safe or len(parts) > _MOST_PARTS:
            raise self.refusal(f"{shown} is not a name of results")
        if not member.isdir() and content is None:
            raise self.refusal(f"{shown} is a link, a device or the like")
        if not self._add_entries(parts, is_folder=member.isdir()):
            raise self.refusal(f"{shown} is there twice, perhaps in another case or kind")
        self._take_room(member.size)
        path = self._target.joinpath(*parts)
        if content is None:
            path.mkdir(parents=True, exist_ok=True)
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("xb") as copy:
            shutil.copyfileobj(content, copy, CHUNK_BYTES)
        if path.stat().st_size != member.size:
            raise self.refusal(f"{shown} is cut off")

    def _add_entries(self, parts: Sequence[str], *, is_folder: bool) -> bool:
        """Add an entry and the folders around it; whether nothing else has their names."""
        for depth in range(1, len(parts) + 1):
            entry = _Entry("/".join(parts[:depth]), is_folder or depth < len(parts))
            earlier = self._entries.setdefault(entry.path.lower(), entry)
            is_same_folder = entry.is_folder and earlier == entry
            if earlier is not entry and not is_same_folder:
                return False
        return True

    def _take_room(self, size_bytes: int) -> None:
        """
        Count one member more.

        `DataError` where there are too many; `MachineError`: the disk would be full.
        """
        self._room_bytes -= max(size_bytes, 0)
        self._free_bytes -= max(size_bytes, 0)
        if len(self._entries) > MOST_MEMBERS or self._room_bytes < 0 or size_bytes < 0:
            limits = f"{MOST_MEMBERS} files and {format_bytes(self._most_bytes)}"
            raise self.refusal(f"it has more than {limits}, the most for its size")
        if self._free_bytes < 0:
            free = format_bytes(free_bytes(self._target))
            what = f"no space left for what {self._archive.name} holds ({free} free)"
            fix = (
                "free some space there, or name another folder: --results-dir for runs,"
                " XDG_CACHE_HOME for bundles"
            )
            raise MachineError(what, where=str(self._target), fix=fix)


def _members(archive: Path) -> Iterator[tuple[tarfile.TarInfo, IO[bytes] | None]]:
    """Each member of a tar file, which gzip or zstd may have compressed; with a file's content."""
    with archive.open("rb") as stream:
        start = stream.read(4)
        stream.seek(0)
        unpacked: Any = stream
        if start[:2] == b"\x1f\x8b":
            unpacked = gzip.GzipFile(fileobj=stream)
        elif start == b"\x28\xb5\x2f\xfd":
            import pyarrow as arrow

            unpacked = arrow.CompressedInputStream(stream, "zstd")
        reader = PiecesReader(iter(partial(unpacked.read, CHUNK_BYTES), b""))
        with tarfile.open(fileobj=reader, mode="r|", bufsize=CHUNK_BYTES) as tar:
            members: list[Any] = tar.members  # type: ignore[attr-defined]
            for member in tar:
                members.clear()  # of which it keeps all
                reader.allowance = member.size + MOST_HEADER_BYTES
                is_plain = member.type in (tarfile.REGTYPE, tarfile.AREGTYPE)
                has_content = is_plain and not member.issparse()
                yield member, tar.extractfile(member) if has_content else None


def folder_with(name: str, scratch: Path) -> Path | None:
    """The folder below *scratch* that has a file *name*, and may lie alone within folders."""
    folder = scratch
    while not (folder / name).exists():
        inner = list(folder.iterdir())
        if len(inner) != 1 or not inner[0].is_dir():
            return None
        folder = inner[0]
    return folder
