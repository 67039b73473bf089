"""
Answers that come endlessly slowly: every wait for them is counted, whatever they are.

A service may send a byte a second, in its headers, in a refusal, or ``100 Continue`` for ever.  The
limit is where bytes come in, so that no reader above it can forget one.
"""

import socket
import time

from functools import partial
from typing import Any, Callable

# It lacks what HTTP/1.1 asks for: refused before any servlet, and without a line in a log.
REFUSED_REQUEST = b"GET / HTTP/1.1\r\n\r\n"
LOOK_LIMIT_S = 3.0
START_S = 120.0
LEAST_RATE = 2**16  # seconds for a stream's start; bytes per second from then on
MOST_S = 3600.0


def limit_s(received_bytes: int, most_s: float = MOST_S) -> float:
    """
    How long a stream may be waited for, in all, of which so many bytes have come.

    >>> limit_s(0), limit_s(2**20), limit_s(2**40)
    (120.0, 136.0, 3600.0)
    """
    return min(most_s, START_S + received_bytes / LEAST_RATE)


class TooSlowError(socket.timeout):
    """What was asked for comes, and too slowly."""


class PatientSocket(socket.socket):
    """
    A connection that is waited for *each_s* at a time, and as `limit_s` says in all.

    After *look_s* of a silence it is asked whether who answers is *still_there* at all.
    """

    each_s = 60.0
    look_s = 60.0
    still_there: Callable[[], bool] = staticmethod(lambda: True)
    waited_s = 0.0
    received_bytes = 0

    def recv_into(self, *arguments: Any) -> int:
        """Receive as a socket does; `TooSlowError` where the whole takes too long."""
        size = self._await(partial(super().recv_into, *arguments), self.most_s)
        self.received_bytes += size
        return size

    def sendall(self, data: Any, *flags: Any) -> None:
        """Send as a socket does; each piece that is taken ends a silence."""
        left = memoryview(data).cast("B")
        while len(left):
            left = left[self._await(partial(super().send, left, *flags), float("inf")) :]

    @property
    def most_s(self) -> float:
        """How long may be waited in all, for what has come."""
        return limit_s(self.received_bytes, float("inf"))

    def _await(self, move: Callable[[], int], most_s: float) -> int:
        """Bytes that a *move* of some takes, once it can; `socket.timeout` where it cannot."""
        silence_end_s = time.monotonic() + self.each_s
        while True:
            self._require_time(most_s)
            started_s = time.monotonic()
            left_s = min(silence_end_s - started_s, most_s - self.waited_s)
            self.settimeout(max(min(self.look_s, left_s), 0.001))
            try:
                return move()
            except socket.timeout:
                if time.monotonic() >= silence_end_s or not self.still_there():
                    raise
            finally:
                self.waited_s += time.monotonic() - started_s

    def _require_time(self, most_s: float) -> None:
        if self.waited_s >= most_s:
            size = self.received_bytes
            raise TooSlowError(
                f"{size} B have come in {self.waited_s:.3g} s, beyond the limit of {most_s:.3g} s"
            )


def patient(connected: socket.socket, each_s: float) -> PatientSocket:
    """Give the same connection with limited waits, in the place of *connected*."""
    limited = PatientSocket(
        connected.family, connected.type, connected.proto, fileno=connected.detach()
    )
    limited.each_s = each_s
    limited.settimeout(each_s)
    return limited


def answers(address: str) -> bool:
    """Whether the daemon at ``host:port`` answers anything within `LOOK_LIMIT_S`, a refusal too."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), LOOK_LIMIT_S) as connection:
            connection.sendall(REFUSED_REQUEST)
            return bool(connection.recv(1))
    except OSError:
        return False
