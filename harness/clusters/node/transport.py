"""
Answers that come endlessly slowly: every wait for them is counted, whatever they are.

A service may send a byte a second, in its headers, in a refusal, or ``100 Continue`` for ever.  The
limit is where bytes come in, so that no reader above it can forget one.
"""

import socket
import time

from typing import Any

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
    """A connection that is waited for *each_s* at a time, and as `limit_s` says in all."""

    each_s = 60.0
    waited_s = 0.0
    received_bytes = 0

    def recv_into(self, *arguments: Any) -> int:
        """Receive as a socket does; `TooSlowError` where the whole takes too long."""
        most_s = limit_s(self.received_bytes, float("inf"))
        self._require_time(most_s)
        started_s = time.monotonic()
        self.settimeout(max(min(self.each_s, most_s - self.waited_s), 0.001))
        try:
            size = super().recv_into(*arguments)
        except socket.timeout:
            self.waited_s += time.monotonic() - started_s
            self._require_time(most_s)
            raise
        self.waited_s += time.monotonic() - started_s
        self.received_bytes += size
        return size

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
