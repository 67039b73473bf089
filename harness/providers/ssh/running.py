"""
Commands on hosts that are reached by SSH: started by a few lines of shell, ended with their group.

The lines write a mark to both streams before the command begins: what stands before it is noise of
a login shell.  The mark holds the number of the process group, through which all of it is killed.
A command that goes on after its connection was lost is killed by a watcher beside it, within 2 s.
"""

from __future__ import annotations

import contextlib
import io
import re
import select
import subprocess
import threading
import time

from collections.abc import Callable
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from harness.errors import ClusterError
from harness.providers.host import printable
from harness.providers.ssh.connection import CHANNEL_S

if TYPE_CHECKING:
    import paramiko

BEGIN = b"-- harness: begins as "
_GROUP = re.compile(rb"[1-9][0-9]{0,9}")
_MOST_NOISE = 2**16
_PIECE = 2**17
_MOMENT_S = 0.005
_ENOUGH = 2**18  # worth waking for, and far less than a channel's window

# $1 is the mark.  The watcher holds no stream open: the command's end is the channel's end.
WATCHED = """
printf '%s%s\\n' "$1" $$; printf '%s%s\\n' "$1" $$ >&2; shift
(while kill -0 $$ && kill -0 $PPID; do sleep 2; done; kill -0 $PPID || kill -KILL -$$) \
<&- >&- 2>&- &
"$@"
exit $?"""
# What is over soon needs no watcher: `timeout` ends it where nobody else can.
BRIEF = """
printf '%s%s\\n' "$1" $$; printf '%s%s\\n' "$1" $$ >&2; shift
"$@"
exit $?"""


class SshRunning:
    """
    A command that was started on a host (`harness.providers.host.Running`).

    `ClusterError` from `poll` and `wait` when the connection was lost before the command had ended.
    """

    def __init__(
        self, channel: paramiko.Channel, where: str, kill_group: Callable[[int], None]
    ) -> None:
        """*channel* has been told the command; *kill_group* ends a process group of the host."""
        self.returncode: int | None = None
        self.stdin: IO[bytes] | None = None
        self.stdout: IO[bytes] | None = None
        self.stderr: IO[bytes] | None = None
        self._channel, self._where, self._kill_group = channel, where, kill_group
        self._killed = False
        self._copying: threading.Thread | None = None
        self._group, self.read, self.read_errors = self._begin()

    def with_pipes(self) -> SshRunning:
        """This, with its streams as pipes."""
        self.stdin = io.BufferedWriter(_Input(self._channel), _PIECE)
        channel = self._channel
        output = _Output(channel.recv, channel.in_buffer, self.read)
        errors = _Output(channel.recv_stderr, channel.in_stderr_buffer, self.read_errors)
        self.stdout, self.stderr = cast("IO[bytes]", output), cast("IO[bytes]", errors)
        return self

    def into(self, log: Path, most_bytes: int) -> SshRunning:
        """This, with all that it writes copied to *log*; killed when that is too much."""
        stream = log.open("ab")
        first = self.read + self.read_errors
        stream.write(first)
        self._channel.set_combine_stderr(True)
        self._channel.shutdown_write()
        self._copying = threading.Thread(
            target=self._copy,
            args=(stream, most_bytes - len(first)),
            daemon=True,
            name=f"log of {self._where}",
        )
        self._copying.start()
        return self

    def communicate(
        self, given: bytes, timeout: float, most_bytes: int
    ) -> tuple[bytes, bytes, int] | None:
        """Output, errors and status at the end; `None` when it takes more than *timeout* s."""
        sender = threading.Thread(target=self._send, args=(given,), daemon=True)
        sender.start()
        kept = [bytearray(self.read), bytearray(self.read_errors)]
        end = time.monotonic() + timeout
        while not self._ended():
            if time.monotonic() > end:
                return None
            self._receive(kept, min(1.0, max(0.0, end - time.monotonic())))
            if len(kept[0]) + len(kept[1]) > most_bytes:
                raise ClusterError(
                    f"the command has written more than {most_bytes} bytes, and was stopped",
                    where=self._where,
                    fix="see what the host's programs are: they do not do what they should",
                )
        status = self.wait(max(0.0, end - time.monotonic()) + 1)
        return bytes(kept[0]), bytes(kept[1]), status

    def poll(self) -> int | None:
        """Status, `None` while it runs."""
        if self.returncode is None and self._channel.exit_status_ready():
            self._conclude()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Status at the end; `subprocess.TimeoutExpired` after *timeout* seconds."""
        if self.returncode is None:
            if not self._channel.status_event.wait(timeout):
                raise subprocess.TimeoutExpired(self._where, timeout or 0.0)
            self._conclude()
        assert self.returncode is not None
        return self.returncode

    def kill(self) -> None:
        """End the command with its process group; one that has ended is fine."""
        with contextlib.suppress(ClusterError):  # lost: then its watcher ends it
            if self.poll() is None:
                self._killed = True
                self._kill_group(self._group)
        self._channel.close()

    def _conclude(self) -> None:
        status, transport = self._channel.exit_status, self._channel.get_transport()
        if status >= 0:
            self.returncode = 128 - status if 128 < status <= 192 else status
        elif self._killed or (transport is not None and transport.is_active()):
            self.returncode = -9
        else:
            raise ClusterError(
                "the connection was lost while a command ran",
                where=self._where,
                fix="see whether the host is up and its network whole; then repeat",
            )
        if self._copying is not None:
            self._copying.join(CHANNEL_S)

    def _begin(self) -> tuple[int, bytes, bytes]:
        """The process group, and what was read behind the marks."""
        kept, end = [bytearray(), bytearray()], time.monotonic() + CHANNEL_S
        while noisy := [stream for stream in kept if not _marked(stream)]:
            late = time.monotonic() > end
            if late or self._ended() or max(map(len, noisy)) > _MOST_NOISE:
                raise self._no_command(b"".join(kept))
            if _marked(kept[0]) and self._channel.recv_ready():
                self._receive_errors(kept)  # a command may write faster than we read
            else:
                self._receive(kept, 0.5)
        parts = [bytes(stream).partition(BEGIN)[2].partition(b"\n") for stream in kept]
        if not _GROUP.fullmatch(parts[0][0]):
            raise self._no_command(b"".join(kept))
        return int(parts[0][0]), parts[0][2], parts[1][2]

    def _no_command(self, said: bytes) -> ClusterError:
        self._channel.close()
        words = printable(said[-400:].decode(errors="replace")).strip()
        return ClusterError(
            f"the host runs no command: {words or 'no answer'}",
            where=self._where,
            fix="see the account's shell: ssh to the host and type sh -c true",
        )

    def _receive_errors(self, kept: list[bytearray]) -> None:
        """Read what there is of errors alone, or wait a moment."""
        if self._channel.recv_stderr_ready():
            kept[1] += self._channel.recv_stderr(_PIECE)
        else:
            time.sleep(_MOMENT_S)

    def _receive(self, kept: list[bytearray], timeout: float) -> None:
        """Read what there is, or wait for it."""
        channel = self._channel
        if channel.recv_ready():
            kept[0] += channel.recv(_PIECE)
        elif channel.recv_stderr_ready():
            kept[1] += channel.recv_stderr(_PIECE)
        else:
            select.select([channel], [], [], timeout)
            # at the end of the streams the channel is always ready, and the status still to come
            if channel.eof_received and not (channel.recv_ready() or channel.recv_stderr_ready()):
                channel.status_event.wait(timeout)

    def _ended(self) -> bool:
        channel = self._channel
        more = channel.recv_ready() or channel.recv_stderr_ready()
        over = channel.closed or (channel.eof_received and channel.exit_status_ready())
        return over and not more

    def _send(self, given: bytes) -> None:
        with contextlib.suppress(OSError, EOFError):  # it has ended, or reads no more
            self._channel.sendall(given)
            self._channel.shutdown_write()

    def _copy(self, stream: IO[bytes], most_bytes: int) -> None:
        left = most_bytes
        with stream:
            while piece := self._channel.recv(_PIECE):
                stream.write(piece[: max(0, left)])
                stream.flush()
                left -= len(piece)
                if left < 0:
                    stream.write(b"\n-- harness: too much output, the command was stopped\n")
                    self._killed = True
                    with contextlib.suppress(ClusterError):
                        self._kill_group(self._group)
                    self._channel.close()
                    return


class _Output(io.BufferedIOBase):
    """What a command writes, as a stream; its large reads copy nothing but to join packets."""

    def __init__(self, receive: Callable[[int], bytes], pipe: Any, first: bytes) -> None:
        """*receive* takes from *pipe*; *first* was read before."""
        self._receive, self._pipe, self._first = receive, pipe, first

    def readable(self) -> bool:
        return True

    def peek(self, size: int = 0, /) -> bytes:
        """What comes next, for `readline`."""
        del size
        return self._first or self._pipe.peek()

    def read(self, size: int | None = -1, /) -> bytes:
        if self.closed:
            raise ValueError("read of a closed stream")
        if size is None or size < 0:
            return b"".join(iter(lambda: self.read(_PIECE), b""))
        taken, self._first = self._first[:size], self._first[size:]
        pieces, left = [taken] if taken else [], size - len(taken)
        while left > 0:
            self._pipe.await_bytes(min(left, _ENOUGH))
            piece = self._receive(left)
            if not piece:
                break
            pieces.append(piece)
            left -= len(piece)
        return b"".join(pieces)


class _Input(io.RawIOBase):
    """What a command reads, as a stream."""

    def __init__(self, channel: paramiko.Channel) -> None:
        self._channel = channel

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        try:
            return int(self._channel.send(bytes(data)))
        except (OSError, EOFError) as error:
            raise BrokenPipeError(str(error)) from error

    def close(self) -> None:
        if not self.closed:
            with contextlib.suppress(OSError, EOFError):
                self._channel.shutdown_write()
        super().close()


def _marked(stream: bytearray) -> bool:
    begin = stream.find(BEGIN)
    return begin >= 0 and stream.find(b"\n", begin) >= 0
