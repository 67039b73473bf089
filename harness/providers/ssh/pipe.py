"""
What a channel of SSH has brought and nobody has read yet: kept as it came, not moved about.

The library's own pipe copies each byte three times, and wakes its reader for every packet.  Where a
gigabyte of logs comes from each of many hosts, that is half of what receiving it costs.
"""

from __future__ import annotations

from collections import deque

from paramiko.buffered_pipe import BufferedPipe


class Pieces:
    """
    Bytes in the pieces in which they came.

    >>> kept = Pieces()
    >>> kept.add(b"abc"), kept.add(b"def"), kept.first(4)
    (None, None, b'abcd')
    >>> del kept[:4]
    >>> len(kept), kept.first(None)
    (2, b'ef')
    """

    def __init__(self) -> None:
        self._pieces: deque[bytes] = deque()
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def add(self, piece: bytes) -> None:
        """Put *piece* behind the others."""
        self._pieces.append(piece)
        self._size += len(piece)

    def first(self, size: int | None) -> bytes:
        """The first *size* bytes, or all; no copy where they are one piece."""
        if size is None or size >= self._size:
            return b"".join(self._pieces)
        taken: list[bytes] = []
        for piece in self._pieces:
            if size <= 0:
                break
            taken.append(piece[:size])
            size -= len(piece)
        return b"".join(taken)

    def __delitem__(self, part: slice) -> None:
        """Forget the bytes before the end of *part*."""
        left = self._size if part.stop is None else min(part.stop, self._size)
        self._size -= left
        while left:
            piece = self._pieces.popleft()
            if len(piece) > left:
                self._pieces.appendleft(piece[left:])
            left -= min(left, len(piece))

    @property
    def next(self) -> bytes:
        """The piece that came first; nothing where there is none."""
        return self._pieces[0] if self._pieces else b""


class Pipe(BufferedPipe):  # type: ignore[misc]
    """The pipe of a channel; its reader may say how much is worth waking for."""

    def __init__(self) -> None:
        super().__init__()
        self._buffer, self._least = Pieces(), 1

    def _buffer_frombytes(self, data: bytes) -> None:
        self._buffer.add(data)

    def _buffer_tobytes(self, limit: int | None = None) -> bytes:
        return self._buffer.first(limit)

    def feed(self, data: bytes) -> None:
        """Take what has come."""
        with self._lock:
            if self._event is not None and not self._buffer:
                self._event.set()
            self._buffer.add(data)
            if len(self._buffer) >= self._least:
                self._cv.notify_all()

    def await_bytes(self, least: int) -> None:
        """Return when *least* bytes are there, or no more will come."""
        with self._lock:
            self._least = least
            try:
                self._cv.wait_for(lambda: len(self._buffer) >= least or self._closed)
            finally:
                self._least = 1

    def peek(self) -> bytes:
        """What could be read next, at least a byte; nothing at the end."""
        self.await_bytes(1)
        with self._lock:
            return self._buffer.next
