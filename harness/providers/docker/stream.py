"""
The connection of a command that runs in a container: one socket for three streams.

What the engine sends comes in frames (eight bytes: the stream's number, its length) and is told
apart here; what the command is to read goes the other way in pieces, as
`harness.node.wrapper` wants it.  All is done by one thread per command, so that a
connection with TLS is used by nobody else; a reader that is slow makes the sender wait.
"""

from __future__ import annotations

import os
import select
import socket
import ssl
import threading

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol

STDOUT, STDERR = 1, 2
_CHUNK = 2**16
_QUEUE = 2**20  # bytes that may wait on their way in either direction
_HEADER = 8
_WAITS = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class Sink(Protocol):
    """Where a stream of the command goes."""

    waiting: bytearray

    def descriptor(self) -> int | None:
        """What to wait for while bytes wait; `None`: nothing, it takes all at once."""
        ...

    def drain(self) -> None:
        """Write what goes."""
        ...

    def close(self) -> None:
        """End the stream."""
        ...


class FileSink:
    """A pipe or a file; it is closed with the stream.  A reader that is gone loses the rest."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor, self.waiting, self._gone = descriptor, bytearray(), False
        os.set_blocking(descriptor, False)

    def descriptor(self) -> int:
        """The file to wait for."""
        return self._descriptor

    def drain(self) -> None:
        """Write what goes; `OSError` for a full disk."""
        try:
            while self.waiting and not self._gone:
                del self.waiting[: os.write(self._descriptor, self.waiting)]
        except BlockingIOError:
            return
        except BrokenPipeError:
            self._gone = True
        if self._gone:
            self.waiting.clear()

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)


class MemorySink:
    """Bytes to be looked at in the end, *limit* of them at most: more is an `OverflowError`."""

    def __init__(self, limit: int) -> None:
        self._limit, self.waiting, self.content = limit, bytearray(), bytearray()

    def descriptor(self) -> None:
        """Nothing is to be waited for."""

    def drain(self) -> None:
        """Take all."""
        self.content += self.waiting
        self.waiting.clear()
        if len(self.content) > self._limit:
            raise OverflowError(f"more than {self._limit} bytes of output")

    def close(self) -> None:
        """Nothing is open."""


class Pump(threading.Thread):
    """
    Carries the streams of one command until its end or until `stop`.

    *feed* is the reading end of a pipe whose content becomes the command's input, or the bytes
    themselves.  What is *holding* the connection is closed with it.  *error* says in the end why
    it stopped before the command did: a full disk, too much output.
    """

    def __init__(
        self,
        connection: socket.socket,
        sinks: Mapping[int, Sink],
        feed: int | bytes,
        *,
        holding: Sequence[Any] = (),
    ) -> None:
        super().__init__(daemon=True, name="docker-exec")
        self._holding = holding
        self._connection, self._sinks = connection, dict(sinks)
        self._distinct = list({id(s): s for s in sinks.values()}.values())
        self._raw, self._unsent = bytearray(), bytearray(_piece(b""))  # begin
        self._feed = feed if isinstance(feed, int) else None
        if isinstance(feed, bytes):
            self._unsent += (_piece(feed) if feed else b"") + _piece(b"")
        self._open = True
        self.error: Exception | None = None
        self._wake = os.eventfd(0, os.EFD_CLOEXEC)
        self._guard = threading.Lock()
        connection.settimeout(0.0)

    def stop(self) -> None:
        """Close the connection, whatever is still on its way: the command is killed by that."""
        with self._guard:
            if self._wake >= 0:
                os.eventfd_write(self._wake, 1)

    def run(self) -> None:
        """Carry, then close everything."""
        try:
            while self._open or any(s.waiting for s in self._distinct):
                if not self._once():
                    break
        except (OSError, OverflowError) as error:
            self.error = error
        finally:
            self._close()

    def _once(self) -> bool:
        """Wait for something to do, and do it; `False`: we are to stop."""
        reads = self._open and all(len(s.waiting) < _QUEUE for s in self._distinct)
        buffered = reads and _pending(self._connection)
        ready = dict(self._poll(reads=reads).poll(0 if buffered else None))
        if self._wake in ready:
            return False
        for sink in self._distinct:
            sink.drain()
        if self._feed is not None and self._feed in ready:
            self._take()
        if self._open and self._unsent:
            self._send()
        if reads and (buffered or self._connection.fileno() in ready):
            self._receive()
        return True

    def _poll(self, *, reads: bool) -> select.poll:
        poll = select.poll()
        poll.register(self._wake, select.POLLIN)
        events = (select.POLLIN if reads else 0) | (select.POLLOUT if self._unsent else 0)
        if self._open and events:
            poll.register(self._connection, events)
        if self._feed is not None and len(self._unsent) < _QUEUE:
            poll.register(self._feed, select.POLLIN)
        for sink in self._distinct:
            descriptor = sink.descriptor()
            if sink.waiting and descriptor is not None:
                poll.register(descriptor, select.POLLOUT)
        return poll

    def _take(self) -> None:
        """Read input for the command."""
        assert self._feed is not None
        content = os.read(self._feed, _CHUNK)
        self._unsent += _piece(content)  # the end of the input is an empty piece, too
        if not content:
            self._close_feed()

    def _send(self) -> None:
        try:
            while self._unsent:
                del self._unsent[: self._connection.send(bytes(self._unsent[:_CHUNK]))]
        except _WAITS:
            return
        except (BrokenPipeError, ConnectionResetError):  # the command has ended: its output counts
            self._unsent.clear()
            self._close_feed()

    def _receive(self) -> None:
        try:
            got = self._connection.recv(_CHUNK)
        except _WAITS:
            return
        except ConnectionResetError:  # it ended with input unread; its status says whether well
            got = b""
        if not got:
            self._open = False
            self._close_feed()
            return
        self._raw += got
        while len(self._raw) >= _HEADER:
            stream, end = self._raw[0], _HEADER + int.from_bytes(self._raw[4:_HEADER], "big")
            if len(self._raw) < end:
                break
            if stream in self._sinks:
                self._sinks[stream].waiting += self._raw[_HEADER:end]
                self._sinks[stream].drain()
            del self._raw[:end]

    def _close_feed(self) -> None:
        if self._feed is not None:
            os.close(self._feed)
            self._feed = None

    def _close(self) -> None:
        """Close all that is ours; the thread ends here."""
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        for each in (*self._holding, self._connection):
            with suppress(OSError, ValueError):
                each.close()
        self._close_feed()
        for sink in self._distinct:
            sink.close()
        with self._guard:
            os.close(self._wake)
            self._wake = -1


def _piece(content: bytes) -> bytes:
    return len(content).to_bytes(4, "big") + content


def _pending(connection: socket.socket) -> bool:
    """Whether bytes are decrypted already, for which no poll would wake us."""
    return isinstance(connection, ssl.SSLSocket) and connection.pending() > 0
