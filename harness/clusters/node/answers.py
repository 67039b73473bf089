"""
Daemons that hang: a supervisor asks each of its daemons over HTTP whether it still answers.

Any byte is an answer, a refusal too, so that no secret is needed.  The request lacks what HTTP/1.1
asks for: it is refused before any servlet, in half a millisecond, and without a line in a log.
Time is counted in rounds, not read from a clock: while the whole machine stands still, or the
supervisor waits for a processor, there is no round that a daemon could miss.
"""

import select
import socket
import time

from contextlib import suppress
from typing import Any, Callable, Dict, Iterable, List, Optional

from .processes import acting_as
from .transport import REFUSED_REQUEST

_ROUND_S = 3.75  # four of them, and one until the first question, are below 20 s
UNANSWERED_S = 15
_CONNECT_LIMIT_S = 0.5  # to a port of this machine; even one that has hung is connected at once
_ANSWER_BYTES = 2**16


class Questions:
    """Which daemons, by their keys, answer; *connect* makes a connection to one of them."""

    def __init__(self, connect: Callable[[str], Any]) -> None:
        self._connect = connect
        # of each daemon that has answered once: rounds since its last answer
        self._rounds: Dict[str, int] = {}
        self._open: Dict[Any, str] = {}
        self._round_s = time.monotonic()

    def wait(self, descriptors: List[int], limit_s: float) -> List[int]:
        """Those of *descriptors* that can be read; none after *limit_s*, or at a round's end."""
        wait_s = min(limit_s, max(0.0, self._round_s + _ROUND_S - time.monotonic()))
        readable, _, _ = select.select([*descriptors, *self._open], [], [], wait_s)
        for connection in self._open.keys() & set(readable):
            answer = b""
            with suppress(OSError):
                answer = connection.recv(_ANSWER_BYTES)
            if answer:
                self._rounds[self._open[connection]] = 0
            else:
                self._close(connection)
        return [descriptor for descriptor in descriptors if descriptor in readable]

    def begin_round(self, running: Iterable[str]) -> List[str]:
        """
        Begin a round if it is time; *running* daemons that have not answered for `UNANSWERED_S`.

        Each is named once.  A question stays open until it is answered: slow is not silent.
        """
        if time.monotonic() - self._round_s < _ROUND_S:
            return []
        running_keys = set(running)
        for connection, daemon_key in list(self._open.items()):
            if self._rounds.get(daemon_key) == 0 or daemon_key not in running_keys:
                self._close(connection)
        # one that has ended, and is started again, has to answer once before it can hang
        asked_keys = self._rounds.keys() & running_keys
        self._rounds = {daemon_key: self._rounds[daemon_key] + 1 for daemon_key in asked_keys}
        for daemon_key in running_keys.difference(self._open.values()):
            with suppress(OSError):  # nobody listens
                connection = self._connect(daemon_key)
                self._open[connection] = daemon_key
                connection.sendall(REFUSED_REQUEST)
        self._round_s = time.monotonic()
        # its question was asked at the end of the first of them
        most_rounds = 1 + round(UNANSWERED_S / _ROUND_S)
        return [key for key, rounds in self._rounds.items() if rounds == most_rounds]

    def _close(self, connection: Any) -> None:
        """Give up a question that is open."""
        del self._open[connection]
        connection.close()


def connect(address: str, port: int, account: Optional[Dict[str, int]] = None) -> Any:
    """A connection of the *account* to a port of this machine, or `OSError`."""
    with acting_as(account):  # on hosts daemons answer nobody else, root neither
        connection = socket.socket()
    try:
        connection.settimeout(_CONNECT_LIMIT_S)
        connection.connect((address, port))
    except OSError:
        connection.close()
        raise
    return connection
