"""
The exec wrapper: a command that is killed when its caller goes away; and one in control groups.

    node.pyz exec STREAMS COMMAND ARGUMENT...

STREAMS is ``two``; with ``one`` the command's errors go to its output, in order.

Standard input comes in pieces: four bytes with their length (big-endian), then so many bytes.  The
first piece is empty and starts the command.  Further ones are the command's standard input, and
another empty one is its end.  Where our own input ends, the caller is gone, and the command is
killed with its whole process group: this distinguishes an end of input from a lost connection.

The status is the command's; 128 and the signal's number for one that a signal has ended.  126 and
127 mean, as in a shell, that the command cannot be run or does not exist.

    node.pyz join GROUP... -- COMMAND ARGUMENT...      (GROUP: a file cgroup.procs)

becomes the command, in these control groups.

    node.pyz become UID GID COMMAND ARGUMENT...

becomes the command, under this account.
"""

import os
import select
import signal
import subprocess
import sys
import time

from typing import Any, List

from .processes import call_libc, catch_signals, drop_to

_CHUNK = 2**16
_LINGER_S = 0.2
_PR_SET_PDEATHSIG = 1
_PR_GET_PDEATHSIG = 2


class CallerGoneError(Exception):
    """The caller has closed the connection."""


def join_groups(arguments: List[str]) -> None:
    """Join the control groups, and become the command."""
    separator = arguments.index("--")
    groups = arguments[:separator]
    command_argv = arguments[separator + 1 :]
    for group in groups:
        with open(group, "w") as processes:
            processes.write("0")
    os.execvp(command_argv[0], command_argv)  # noqa: S606 - no shell is meant


def become(arguments: List[str]) -> None:
    """Become the command under an account; the signal at our parent's end stays what it was."""
    import ctypes

    number = ctypes.c_int()
    parent = os.getppid()
    call_libc("prctl", _PR_GET_PDEATHSIG, ctypes.byref(number), 0, 0, 0)
    drop_to({"uid": int(arguments[0]), "gid": int(arguments[1])})  # which forgets the signal
    call_libc("prctl", _PR_SET_PDEATHSIG, number.value, 0, 0, 0)
    if os.getppid() != parent:
        raise ProcessLookupError(parent)
    os.chdir("/")  # where we are may be closed to it
    os.execvp(arguments[2], arguments[2:])  # noqa: S606 - no shell is meant


def main(arguments: List[str]) -> None:
    """Wait for the first piece, run the command, end as it does."""
    streams = arguments[0]
    command_argv = arguments[1:]
    wake_pipe = catch_signals(signal.SIGCHLD)
    reading, writing = os.pipe()
    command_input = CommandInput(writing)
    try:
        while not command_input.started:
            command_input.receive()
        # a session of its own: its children are killed with it, and we are not
        command = subprocess.Popen(
            command_argv,
            stdin=reading,
            start_new_session=True,
            stderr=subprocess.STDOUT if streams == "one" else None,
        )
    except CallerGoneError:  # killed before it started
        raise SystemExit(128 + signal.SIGKILL) from None
    except OSError as error:
        sys.stderr.write(f"{command_argv[0]}: {error.strerror}\n")
        raise SystemExit(127 if isinstance(error, FileNotFoundError) else 126) from None
    os.close(reading)
    status = _await_end(command, command_input, wake_pipe)
    if not command_input.ended:
        _drain_input()
    raise SystemExit(status if status >= 0 else 128 - status)


def _drain_input() -> None:
    """
    Read on for a moment, until our input ends.

    A connection that is closed with bytes unread is reset, and the command's last output would be
    lost with it.
    """
    deadline = time.monotonic() + _LINGER_S
    while time.monotonic() < deadline:
        left_s = max(0.0, deadline - time.monotonic())
        if select.select([0], [], [], left_s)[0] and not os.read(0, _CHUNK):
            return


def _await_end(command: Any, command_input: "CommandInput", wake_pipe: int) -> int:
    """Pass the input on until the command ends, or the caller goes; the status."""
    try:
        while command.poll() is None:
            command_input.pass_on()
            poll_object = select.poll()
            poll_object.register(wake_pipe, select.POLLIN)
            # while the command has not taken its input, the caller waits as well
            poll_object.register(0, 0 if command_input.waiting else select.POLLIN)
            if command_input.waiting:
                poll_object.register(command_input.target, select.POLLOUT)
            events = dict(poll_object.poll())
            if wake_pipe in events:
                os.read(wake_pipe, _CHUNK)
            if events.get(0, 0) & (select.POLLHUP | select.POLLERR):
                raise CallerGoneError
            if 0 in events:
                command_input.receive()
    except CallerGoneError:
        os.killpg(command.pid, signal.SIGKILL)
    status: int = command.wait()
    return status


class CommandInput:
    """The command's input: an incomplete piece (*raw*), and what *target* has not taken."""

    def __init__(self, target: int) -> None:
        self.target = target
        self.raw = bytearray()
        self.waiting = bytearray()
        self.started = self.ended = self.closed = False
        os.set_blocking(target, False)

    def receive(self) -> None:
        """Read once from our own input."""
        received = os.read(0, _CHUNK)
        if not received:
            raise CallerGoneError
        self.raw += received
        while len(self.raw) >= 4:
            piece_end = 4 + int.from_bytes(self.raw[:4], "big")
            if len(self.raw) < piece_end:
                return
            self.waiting += self.raw[4:piece_end]
            if piece_end == 4 and self.started:
                self.ended = True
            self.started = True
            del self.raw[:piece_end]

    def pass_on(self) -> None:
        """Write what the command takes; close its input after the last piece."""
        try:
            while self.waiting and not self.closed:
                del self.waiting[: os.write(self.target, self.waiting)]
            over = self.ended
        except BlockingIOError:
            return
        except BrokenPipeError:  # it reads no more
            over = True
        if over and not self.closed:
            os.close(self.target)
            self.closed = True
        if self.closed:
            self.waiting.clear()
