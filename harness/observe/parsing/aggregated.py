"""
Logs of many containers in one file: what YARN gathers from a node, and what ``yarn logs`` prints.

    text      ``yarn logs -applicationId ID > FILE``, of Hadoop 2 and 3
    TFile     the default of ``yarn.log-aggregation.file-formats``: a file of compressed blocks
              (BCFile) with entries, each a container and, as name, length and bytes, its logs
    IFile     compressed logs one behind the other, and behind them their index, as Java writes
              objects (`java_objects`)

Of the logs only ``syslog`` and ``syslog.shuffle`` are given, with what they have rolled into.
"""

from __future__ import annotations

import re
import struct
import zlib

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from io import BytesIO
from typing import BinaryIO, NamedTuple

from harness.base.errors import ParseError
from harness.base.text import excerpt
from harness.observe.parsing.java_objects import JavaObject, read_object

_TFILE_MAGIC = bytes.fromhex("d111d36891b5d7b639df414092bae150")
_TFILE_TAIL = struct.Struct(">q4x16s")  # where its index starts, its version, its magic again
_SEPARATORS = (32, 36)  # bytes at both ends of an IFile: a hash, or before Hadoop 3.3 a UUID
_MOST_INDEX_BYTES = 2**23  # 20,000 containers of a node
_LONGEST_TEXT = 2**16
_LONGEST_LINE = 2**20
_MOST_LOG_BYTES = 2**30
_PIECE_BYTES = 2**16
_HEAD_BYTES = 4096

_CONTAINER = re.compile(rb"container_[0-9e_]{1,80}")
_WANTED = re.compile(rb"syslog(\.shuffle)?(\.[1-9]\d{0,3})?")
_HEADER = re.compile(rb"Container: (container_[0-9e_]{1,80}) on .*", re.DOTALL)
_LOG_TYPE = re.compile(rb"LogType: ?(\S{1,200})\s*")
_CONTENTS = re.compile(rb"Log ?Contents:\s*")
_END_OF_LOG = b"End of LogType:"
_HEADER_LINE = re.compile(rb"^Container: container_[0-9e_]{1,80} on ", re.MULTILINE)
_BROKEN = (ValueError, EOFError, LookupError, struct.error, zlib.error)


class Piece(NamedTuple):
    """Some bytes of the log *name* of a container; those of one log follow each other."""

    container: str
    name: str
    data: bytes


Reader = Callable[[BinaryIO, str], Iterator[Piece]]


def reader_of(file: BinaryIO) -> Reader | None:
    """What reads *file*, which can be sought in, by its first and its last bytes."""
    head = file.read(_HEAD_BYTES)
    if head.startswith(_TFILE_MAGIC):
        return read_tfile
    if _HEADER_LINE.search(head):
        return read_text
    for size in _SEPARATORS:
        with suppress(OSError, ValueError):
            end = file.seek(-size, 2)
            if end > size and file.read(size) == head[:size]:
                return read_ifile
    return None


def read_text(file: BinaryIO, source: str) -> Iterator[Piece]:
    """
    Logs in what ``yarn logs`` has printed, by its lines; `ParseError`: it names no container.

    What stands before the first of them (other output of the command) is skipped.
    """
    container = ""
    wanted_name = ""  # of the log whose lines follow
    is_content = False
    for line in iter(partial(file.readline, _LONGEST_LINE), b""):
        if header := _HEADER.fullmatch(line):
            container = header[1].decode()
            is_content = False
        elif is_content and line.startswith(_END_OF_LOG):
            is_content = False
        elif log_type := _LOG_TYPE.fullmatch(line):
            is_content = False
            wanted_name = log_type[1].decode() if _WANTED.fullmatch(log_type[1]) else ""
        elif not is_content and container and _CONTENTS.fullmatch(line):
            is_content = True
        elif is_content and wanted_name:
            yield Piece(container, wanted_name, line)
    if not container:
        fix = "give what yarn logs -applicationId ID has printed"
        raise ParseError("no log of a container", source=source, fix=fix)


def read_tfile(file: BinaryIO, source: str) -> Iterator[Piece]:
    """Logs in a file as YARN's nodes write it; `ParseError` where it is cut, or another file."""
    yield from _checked(_tfile_pieces(file), source)


def read_ifile(file: BinaryIO, source: str) -> Iterator[Piece]:
    """Logs in a file with an index, as YARN's nodes may write it; `ParseError` as for others."""
    yield from _checked(_ifile_pieces(file), source)


def _checked(pieces: Iterator[Piece], source: str) -> Iterator[Piece]:
    """Yield *pieces*; damage is `ParseError`, and so is a log beyond any bound."""
    log_bytes = 0
    last_key = ("", "")
    try:
        for piece in pieces:
            key = (piece.container, piece.name)
            log_bytes = len(piece.data) + (log_bytes if key == last_key else 0)
            if log_bytes > _MOST_LOG_BYTES:
                raise ValueError(f"a log of more than {_MOST_LOG_BYTES} bytes")
            last_key = key
            yield piece
    except _BROKEN as error:
        what = f"a damaged file of aggregated logs: {excerpt(error)}"
        raise ParseError(what, source=source, fix="copy it again") from error


class _Region(NamedTuple):
    """Where a block lies in its file: *stored* bytes, which unpack to *whole* ones."""

    start: int
    stored: int
    whole: int


class _Block:
    """A block of a file, unpacked as it is read; `EOFError` where it ends too early."""

    def __init__(self, file: BinaryIO, region: _Region, codec: str) -> None:
        if codec not in ("none", "gz"):
            raise ValueError(f"compressed by {excerpt(codec)}, which is not read here")
        if min(region) < 0 or region.start + region.stored > file.seek(0, 2):
            raise ValueError("a block outside of the file")
        file.seek(region.start)
        self._file = file
        self._stored_bytes = region.stored
        self._left_bytes = region.whole
        self._inflate = zlib.decompressobj() if codec == "gz" else None
        self._unread = b""

    @property
    def is_over(self) -> bool:
        """Whether all of it was read."""
        return self._left_bytes <= 0

    def read(self, size: int) -> bytes:
        """The next *size* bytes."""
        if not 0 <= size <= self._left_bytes:
            raise EOFError("a block ends too early")
        taken = b""
        while len(taken) < size:
            if not self._unread:
                self._unread = self._more()
            part = self._unread[: size - len(taken)]
            self._unread = self._unread[len(part) :]
            taken += part
        self._left_bytes -= size
        return taken

    def _more(self) -> bytes:
        """Some more bytes, unpacked."""
        if self._inflate is not None and self._inflate.unconsumed_tail:
            stored = self._inflate.unconsumed_tail
        else:
            stored = self._file.read(min(_PIECE_BYTES, self._stored_bytes))
            self._stored_bytes -= len(stored)
        data = stored
        if self._inflate is not None:
            data = self._inflate.decompress(stored, _PIECE_BYTES)
        if not stored:
            raise EOFError("the file ends too early")
        return data


class _Value:
    """The value of an entry: chunks, each behind its length, of which the last is positive."""

    def __init__(self, block: _Block) -> None:
        self._block = block
        self._chunk_bytes = 0
        self._is_last = False

    def is_over(self) -> bool:
        """Whether all chunks were read."""
        while not self._chunk_bytes and not self._is_last:
            size = _whole(self._block)
            self._is_last = size >= 0
            self._chunk_bytes = abs(size)
        return not self._chunk_bytes

    def skip(self) -> None:
        """Pass over all of it."""
        while not self.is_over():
            for _ in self.pieces(self._chunk_bytes):
                pass

    def pieces(self, size: int) -> Iterator[bytes]:
        """The next *size* bytes, in pieces."""
        while size:
            if self.is_over():
                raise EOFError("a log ends too early")
            piece_bytes = min(size, self._chunk_bytes, _PIECE_BYTES)
            self._chunk_bytes -= piece_bytes
            size -= piece_bytes
            yield self._block.read(piece_bytes)

    def text(self) -> bytes:
        """The next text, as Java's `writeUTF` writes it."""
        (size,) = struct.unpack(">H", b"".join(self.pieces(2)))
        return b"".join(self.pieces(size))


def _tfile_pieces(file: BinaryIO) -> Iterator[Piece]:
    """Logs by the blocks of data that the file's index names."""
    end = file.seek(-_TFILE_TAIL.size, 2)
    index_start, magic = _TFILE_TAIL.unpack(file.read(_TFILE_TAIL.size))
    if magic != _TFILE_MAGIC or not 0 < index_start < end:
        raise ValueError("it has no end")
    size = min(end - index_start, _MOST_INDEX_BYTES)
    index = _Block(file, _Region(index_start, size, size), "none")
    parts = {}
    for _ in range(_whole(index)):
        name = _text(index)
        codec = _text(index)
        parts[name] = _region(index), codec
    region, codec = parts[b"data:BCFile.index"]
    if region.whole > _MOST_INDEX_BYTES:
        raise ValueError("an index of more bytes than any has")
    packed_list = _Block(file, region, codec.decode())
    block_list = BytesIO(packed_list.read(region.whole))
    blocks = _Block(block_list, _Region(0, region.whole, region.whole), "none")
    data_codec = _text(blocks).decode()
    for _ in range(_whole(blocks)):
        yield from _entries(_Block(file, _region(blocks), data_codec))


def _entries(block: _Block) -> Iterator[Piece]:
    """Logs of the containers whose entries are in *block*; others are of the whole application."""
    while not block.is_over:
        container = _text(block)[2:]  # behind its length
        value = _Value(block)
        if not _CONTAINER.fullmatch(container):
            value.skip()
        while not value.is_over():
            name = value.text()
            is_wanted = _WANTED.fullmatch(name) is not None
            for data in value.pieces(_log_bytes(value.text())):
                if is_wanted:
                    yield Piece(container.decode(), name.decode(), data)


def _log_bytes(text: bytes) -> int:
    """Length of a log, which is written as text."""
    if not text.isdigit() or len(text) > 18:
        raise ValueError(f"'{excerpt(text)}' is not a length")
    return int(text)


def _region(block: _Block) -> _Region:
    return _Region(_whole(block), _whole(block), _whole(block))


def _text(block: _Block) -> bytes:
    size = _whole(block)
    if size > _LONGEST_TEXT:
        raise ValueError(f"a name of {size} bytes")
    return block.read(size)


def _whole(block: _Block) -> int:
    """A whole number as a TFile has it: the smaller, the fewer bytes."""
    first = int.from_bytes(block.read(1), signed=True)
    if first >= -32:
        return first
    group = (first + 128) // 8
    if group == 0:
        return int.from_bytes(block.read(first + 129), signed=True)
    # Some bits of the first byte are the highest ones, within the range that its group has.
    extra_bytes = 1 if group >= 7 else 2 if group >= 3 else 3
    high = first + {1: 52, 2: 88, 3: 112}[extra_bytes]
    return (high << 8 * extra_bytes) | int.from_bytes(block.read(extra_bytes))


def _ifile_pieces(file: BinaryIO) -> Iterator[Piece]:
    """Logs by the index at the end of the file."""
    index = _ifile_index(file)
    codec = _text_of(index, "compressName")
    for cycle in _objects(index.fields.get("logMetas")):
        for listed in _objects(cycle.fields.get("logMetas")):  # of each container
            for log in _objects(listed):
                yield from _indexed_log(file, log, codec)


def _ifile_index(file: BinaryIO) -> JavaObject:
    head = file.read(max(_SEPARATORS))
    for size in _SEPARATORS:
        end = file.seek(-size - 4, 2)
        (index_bytes,) = struct.unpack(">i", file.read(4))
        if file.read(size) == head[:size] and 0 < index_bytes <= min(end, _MOST_INDEX_BYTES):
            file.seek(end - index_bytes)
            index = read_object(file.read(index_bytes))
            if isinstance(index, JavaObject):
                return index
    raise ValueError("it has no index at its end")


def _objects(listed: object) -> list[JavaObject]:
    """What a list holds, or a map has as values; their sizes and keys are no objects."""
    if not isinstance(listed, JavaObject):
        raise ValueError("its index has other things in it")
    return [content for content in listed.more if isinstance(content, JavaObject)]


def _text_of(described: JavaObject, name: str) -> str:
    text = described.fields.get(name)
    if not isinstance(text, str):
        raise ValueError(f"its index has no {name}")
    return text


def _indexed_log(file: BinaryIO, log: JavaObject, codec: str) -> Iterator[Piece]:
    """One log, where the index says that it is."""
    container = _text_of(log, "containerId")
    name = _text_of(log, "fileName")
    sizes = [log.fields.get(name) for name in ("startIndex", "fileCompressedSize", "fileSize")]
    if not _CONTAINER.fullmatch(container.encode()) or not _WANTED.fullmatch(name.encode()):
        return
    if set(map(type, sizes)) != {int}:
        raise ValueError("its index has no places")
    region = _Region(*sizes)  # type: ignore[arg-type]
    block = _Block(file, region, codec)
    left_bytes = region.whole
    while left_bytes:
        data = block.read(min(_PIECE_BYTES, left_bytes))
        left_bytes -= len(data)
        yield Piece(container, name, data)
