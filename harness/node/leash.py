"""
Run a command that ends when whoever asked for it goes away.

    python -I -S leash.py STREAMS COMMAND ARGUMENT...

STREAMS is ``two``; ``one`` has the command's errors come as its output, each in its turn.

Standard input comes in pieces: four bytes that say how many follow (big-endian), then these.  The
first piece is empty and means: begin.  Further ones are the command's standard input, and another
empty one is its end.  Where our own input ends, the other side is gone, and the command is killed
with its whole process group: an end of input and a lost connection are told apart.

The status is the command's; 128 and the signal's number for one that a signal has ended.  126 and
127 say, as in a shell, that the command cannot be run or is not there.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time

CHUNK = 2**16
LINGER_S = 0.2


class GoneError(Exception):
    """The other side has closed the connection."""


def main() -> None:
    """Wait for the first piece, run the command, end as it does."""
    streams, *argv = sys.argv[1:]
    wake = _catch_children()
    reading, writing = os.pipe()
    feed = Feed(writing)
    try:
        while not feed.begun:
            feed.take()
        # a session of its own: its children are killed with it, and we are not
        command = subprocess.Popen(
            argv, stdin=reading, start_new_session=True,
            stderr=subprocess.STDOUT if streams == "one" else None,
        )  # fmt: skip
    except GoneError:  # killed before it began
        raise SystemExit(128 + signal.SIGKILL) from None
    except OSError as error:
        sys.stderr.write(f"{argv[0]}: {error.strerror}\n")
        raise SystemExit(127 if isinstance(error, FileNotFoundError) else 126) from None
    os.close(reading)
    status = lead(command, feed, wake)
    if not feed.ended:
        linger(LINGER_S)
    raise SystemExit(status if status >= 0 else 128 - status)


def lead(command: subprocess.Popen[bytes], feed: Feed, wake: int) -> int:
    """Hand the input on until the command has ended; kill it where the other side is gone."""
    try:
        while (status := command.poll()) is None:
            _once(feed, wake)
    except GoneError:
        os.killpg(command.pid, signal.SIGKILL)
        return command.wait()
    return status


def _once(feed: Feed, wake: int) -> None:
    """Hand on what there is; then wait for more, or for an end."""
    feed.give()
    poll = select.poll()
    poll.register(wake, select.POLLIN)
    # what the command has not taken yet waits here, and the other side waits with it
    poll.register(0, 0 if feed.waiting else select.POLLIN)
    if feed.waiting:
        poll.register(feed.target, select.POLLOUT)
    events = dict(poll.poll())
    if wake in events:
        os.read(wake, CHUNK)
    if events.get(0, 0) & (select.POLLHUP | select.POLLERR):
        raise GoneError
    if 0 in events:
        feed.take()


def linger(seconds: float) -> None:
    """
    Read on for a moment: the command has ended in the midst of its input.

    A connection that is closed with bytes unread is reset, and what the command said last would be
    lost with it.
    """
    deadline = time.monotonic() + seconds
    while (left := deadline - time.monotonic()) > 0:
        if select.select([0], [], [], left)[0] and not os.read(0, CHUNK):
            return


class Feed:
    """The command's input: pieces that are not whole yet, and what *target* has not taken."""

    def __init__(self, target: int) -> None:
        self.target, self.raw, self.waiting = target, bytearray(), bytearray()
        self.begun = self.ended = self.closed = False
        os.set_blocking(target, False)

    def take(self) -> None:
        """Read once from our own input."""
        got = os.read(0, CHUNK)
        if not got:
            raise GoneError
        self.raw += got
        while len(self.raw) >= 4:
            end = 4 + int.from_bytes(self.raw[:4], "big")
            if len(self.raw) < end:
                return
            self._piece(self.raw[4:end])
            del self.raw[:end]

    def _piece(self, content: bytearray) -> None:
        if content:
            self.waiting += content
        elif self.begun:
            self.ended = True
        else:
            self.begun = True

    def give(self) -> None:
        """Hand on what the command takes; close its input behind the last piece."""
        try:
            while self.waiting and not self.closed:
                del self.waiting[: os.write(self.target, self.waiting)]
            over = self.ended
        except BlockingIOError:
            return
        except BrokenPipeError:  # it wants no more
            over = True
        if over and not self.closed:
            os.close(self.target)
            self.closed = True
        if self.closed:
            self.waiting.clear()


def _catch_children() -> int:
    """Descriptor that becomes readable when a child has ended."""
    reading, writing = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    return reading


if __name__ == "__main__":
    main()
