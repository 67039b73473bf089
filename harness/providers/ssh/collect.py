"""
Logs of many hosts, brought here at once: compressed where it pays, resumed after a cut, verified.

SSH proves that bytes arrive as they were sent; the checksum (CRC-32, of the whole file on both
sides) is against what was resumed at a wrong place, or written anew on the host in between.

A host is not believed.  It sends names, lengths and bytes in frames (`harness.node`,
``packer.py``): a name that is not a plain relative one ends the collection, no link or device can
be said in frames, and pieces, files and bytes are counted against limits before they are written.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import time
import zlib

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from harness.errors import ClusterError, DataError
from harness.providers.host import Host, Running, from_json, printable
from harness.providers.silence import Silence

_WORD = r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}"
_PLAIN = f"{_WORD}(/{_WORD})*"
_MOST_FRAME = 2**20
_MOST_SAID = 4096  # bytes of a frame that is no piece
_TRIES = 4  # in a row that bring nothing
_PAUSE_S = 0.5
_LAST_WORDS_S = 1.0  # for a packer that has ended its stream to say why
_LEAST_FREE = 2**28
_CHECKSUM = re.compile(r"[0-9a-f]{8}")


@dataclass(frozen=True, slots=True)
class Limits:
    """What one host may send, and how long it may say nothing."""

    files: int = 100_000
    bytes: int = 2**36
    silence_s: float = 60.0


@dataclass(frozen=True, slots=True)
class Source:
    """A folder of a host, and the folder of this machine that takes its files."""

    host: Host
    folder: str
    into: Path


class _CutError(Exception):
    """The stream ended before its end."""


def collect(
    sources: Sequence[Source],
    packer: Callable[[Host], list[str]],
    *,
    wanted: str = r"[^.].*",
    depth: int = 2,
    limits: Limits = Limits(),
) -> list[Path]:
    """
    The files of all *sources*, each host beside the others; their paths here, in order.

    *packer* gives the command line of ``packer.py`` on a host; *wanted* is the pattern of the names
    (relative, such as ``container_1/syslog``) that are asked for.  Names that are not plain ones
    are left on the host.  `ClusterError` for a host that cannot be read to its end; `DataError` for
    one that sends what it should not, or a disk that is nearly full.
    """
    with ThreadPoolExecutor(max(1, len(sources)), thread_name_prefix="collect") as pool:
        fetches = [_Fetch(source, re.compile(wanted), depth, limits) for source in sources]
        futures = [pool.submit(fetch.all, packer(fetch.source.host)) for fetch in fetches]
        try:
            return [path for future in futures for path in future.result()]
        except BaseException:
            for fetch in fetches:
                fetch.stop()
            raise


def plain_name(name: str) -> bool:
    """
    Whether *name* is relative and made of plain words: it stays in its folder on any system.

    >>> plain_name("container_1/syslog"), plain_name("../x"), plain_name("a//b"), plain_name("/x")
    (True, False, False, False)
    """
    return re.fullmatch(_PLAIN, name) is not None


@dataclass
class _Fetch:
    """The files of one host: which are here, and which one is on its way."""

    source: Source
    wanted: re.Pattern[str]
    depth: int
    limits: Limits
    done: dict[str, Path] = field(default_factory=dict)
    got: int = 0  # bytes written, of all tries
    running: Running | None = None
    stopped: bool = False
    current: _Part | None = None

    def all(self, argv: Sequence[str]) -> list[Path]:
        """Fetch everything, again after each cut, until tries in a row have brought nothing."""
        left, best = _TRIES, (-1, -1)
        self.source.into.mkdir(parents=True, exist_ok=True)
        try:
            while True:
                try:
                    self._once(argv)
                    return [self.done[name] for name in sorted(self.done)]
                except (_CutError, ClusterError) as error:
                    now = len(self.done), self.current.size if self.current else 0
                    left, best = (left - 1 if now <= best else _TRIES), max(now, best)
                    if left == 0 or self.stopped:
                        raise self._given_up(error) from error
                    time.sleep(_PAUSE_S)
        finally:
            if self.current is not None:
                self.current.drop()

    def stop(self) -> None:
        """Give up, from another thread."""
        self.stopped = True
        if self.running is not None:
            self.running.kill()

    def _given_up(self, error: Exception) -> Exception:
        if isinstance(error, ClusterError):
            return error
        return ClusterError(
            f"the logs of {self.source.host.name} end early: {error}",
            where=f"{self.source.host.name}: {printable(self.source.folder)}",
            fix="see whether the host is up and has Python 3.9 or newer; then repeat",
        )

    def _once(self, argv: Sequence[str]) -> None:
        """One stream, from what is here already."""
        part = self.current
        request = {
            "folder": self.source.folder,
            "depth": self.depth,
            "wanted": f"(?=({_PLAIN})$){self.wanted.pattern}",
            "done": [*self.done],
            "begun": {part.name: part.size} if part else {},
        }
        running = self.running = self.source.host.open(argv)
        assert running.stdin is not None
        assert running.stdout is not None
        try:
            with suppress(BrokenPipeError), running.stdin as stdin:
                stdin.write(json.dumps(request).encode())
            with Silence(running, self.limits.silence_s) as silence:
                self._read(running.stdout, silence)
        except _CutError as cut:
            raise _CutError(f"{cut}{_said(running)}") from cut
        finally:
            _close(running)

    def _read(self, stream: IO[bytes], silence: Silence) -> None:
        while True:
            with silence.waited():
                kind, content = _frame(stream)
            if kind == b"Z":
                return
            if kind == b"F":
                self._begin(content)
            elif kind in (b"R", b"C"):
                self._piece(content if kind == b"R" else self._expanded(content))
            elif kind == b"E":
                self._end(content)
            elif kind != b"H":
                raise self._lie(f"a frame of kind {kind!r}")

    def _begin(self, content: bytes) -> None:
        try:
            said: dict[str, Any] = from_json(content)
            name, start = said["name"], said["from"]
        except (ValueError, KeyError, TypeError):
            raise self._lie("a file without a name") from None
        asked = isinstance(name, str) and plain_name(name) and self.wanted.fullmatch(name)
        if not asked or name.count("/") >= self.depth:
            raise self._lie(f"the name {name!r:.200}")
        known = self.current is not None and self.current.name == name
        if name in self.done or (self.current is not None and not known):
            raise self._lie(f"the file {name} in the midst of another, or twice")
        if len(self.done) >= self.limits.files:
            raise self._lie(f"more than {self.limits.files} files")
        if self.current is None:
            self.current = _Part(name, self.source.into)
        if not isinstance(start, int) or not 0 <= start <= self.current.size:
            raise self._lie(f"a file from byte {str(start)[:40]!r} on")
        if start != self.current.size:  # it has become shorter: a log was begun anew
            self.current.cut(start)

    def _piece(self, piece: bytes) -> None:
        if self.current is None:
            raise self._lie("a piece of no file")
        self.got += len(piece)
        if self.got > self.limits.bytes:
            raise self._lie(f"more than {self.limits.bytes} bytes")
        self.current.add(piece)

    def _expanded(self, content: bytes) -> bytes:
        expander = zlib.decompressobj()
        try:
            piece = expander.decompress(content, _MOST_FRAME)
        except zlib.error:
            raise self._lie("what is not compressed") from None
        if not expander.eof:
            raise self._lie("a piece that grows beyond its limit")
        return piece

    def _end(self, content: bytes) -> None:
        part = self.current
        if part is None:
            raise self._lie("the end of no file")
        self.current = None
        if not _CHECKSUM.fullmatch(content.decode(errors="replace")):
            part.drop()
            raise self._lie("a file without its checksum")
        if content.decode() != part.checksum:
            part.drop()
            raise _CutError(f"{part.name} arrived damaged")
        try:
            self.done[part.name] = part.keep()
        except (FileExistsError, NotADirectoryError, IsADirectoryError):
            part.drop()
            raise self._lie(f"{part.name}, as a file and as a folder") from None

    def _lie(self, what: str) -> DataError:
        return DataError(
            f"{self.source.host.name} sends {printable(what)}",
            where=f"logs of {self.source.host.name}: {printable(self.source.folder)}",
            fix="look at the host: its programs do not do what they should",
        )


class _Part:
    """A file on its way: kept beside the others under a name that no file of a host can have."""

    def __init__(self, name: str, folder: Path) -> None:
        """*name* is where it will lie in *folder*."""
        self.name, self._target = name, folder / name
        self._path = folder / ".part"
        flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        self._file = os.fdopen(os.open(self._path, flags, 0o644), "r+b", buffering=0)
        self._checksum, self.size, self._checked = 0, 0, 0

    def add(self, piece: bytes) -> None:
        """Write a piece; `DataError` before the disk is full."""
        self._checksum = zlib.crc32(piece, self._checksum)
        self.size += len(piece)
        if self.size - self._checked > 2**24:
            self._checked = self.size
            if shutil.disk_usage(self._path.parent).free < _LEAST_FREE:
                raise DataError(
                    "the disk is nearly full", where=str(self._path.parent), fix="make room"
                )
        self._file.write(piece)

    def cut(self, size: int) -> None:
        """Keep the first *size* bytes."""
        self._file.truncate(size)
        self._file.seek(0)
        self._checksum = 0
        while piece := self._file.read(_MOST_FRAME):
            self._checksum = zlib.crc32(piece, self._checksum)
        self.size = size

    @property
    def checksum(self) -> str:
        """CRC-32 of what has come."""
        return f"{self._checksum:08x}"

    def keep(self) -> Path:
        """Put it where it belongs."""
        self._file.close()
        self._target.parent.mkdir(parents=True, exist_ok=True)
        self._path.replace(self._target)
        return self._target

    def drop(self) -> None:
        """Forget it."""
        self._file.close()
        self._path.unlink(missing_ok=True)


def _frame(stream: IO[bytes]) -> tuple[bytes, bytes]:
    head = _exactly(stream, 5)
    kind, size = head[:1], int.from_bytes(head[1:], "big")
    most = _MOST_FRAME if kind in (b"R", b"C") else _MOST_SAID
    if size > most:
        raise DataError(
            f"a frame of {size} bytes where {most} is the most",
            where="logs of a host",
            fix="look at the host: its programs do not do what they should",
        )
    return kind, _exactly(stream, size)


def _exactly(stream: IO[bytes], size: int) -> bytes:
    try:
        content = stream.read(size)
    except (OSError, EOFError) as error:
        raise _CutError(printable(str(error))) from error
    if len(content) < size:
        raise _CutError("the stream was cut")
    return content


def _said(running: Running) -> str:
    """What the packer said of its end, for errors."""
    with suppress(subprocess.TimeoutExpired, ClusterError):
        running.wait(_LAST_WORDS_S)
    running.kill()
    assert running.stderr is not None
    with suppress(OSError, EOFError, ValueError):
        lines = running.stderr.read(_MOST_SAID).decode(errors="replace").strip().splitlines()
        return f": {printable(lines[-1])}" if lines else ""
    return ""


def _close(running: Running) -> None:
    """Have the packer end, and its pipes closed."""
    running.kill()
    for pipe in (running.stdin, running.stdout, running.stderr):
        if pipe is not None:
            with suppress(OSError):
                pipe.close()
    with suppress(subprocess.TimeoutExpired, ClusterError):
        running.wait(5)
