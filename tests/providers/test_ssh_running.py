"""
Tests for the commands of `harness.clusters.ssh.host`: what a host sends before and after the mark.
"""

import io
import threading

import paramiko
import pytest

from harness.base.errors import ClusterError
from harness.clusters import host as hosts
from harness.clusters.host import run_to_end
from harness.clusters.ssh.host import MARK, SshRunning


class Channel:
    """
    A channel that has brought everything, with the command's status.
    """

    def __init__(self, output, errors, status=0, *, active=True):
        self.streams = io.BytesIO(output), io.BytesIO(errors)
        self.recv, self.recv_stderr = (stream.read for stream in self.streams)
        self.exit_status = status
        self.active = active
        self.status_event = threading.Event()
        self.status_event.set()
        self.sent = b""
        self.open = True

    def recv_stderr_ready(self):
        return self.streams[1].tell() < len(self.streams[1].getvalue())

    def exit_status_ready(self):
        return True

    def send(self, piece):
        self.sent += piece
        return len(piece)

    def get_transport(self):
        return self

    def is_active(self):
        return self.active

    def set_combine_stderr(self, _):
        pass

    def shutdown_write(self):
        pass

    def close(self):
        self.open = False


def started(group=b"4711", output=b"first", **options):
    """
    A command whose mark has *group*, between noise and what it writes.
    """
    stream = b"welcome\n" + MARK + group + b"\n"
    return SshRunning(Channel(stream + output, stream + b"errors", **options), "worker1", None)


@pytest.mark.parametrize("error", [paramiko.SSHException("no keys"), EOFError("gone")])
def test_a_connection_that_fails_is_an_error_of_the_host(error):
    """
    When its output is read it is named; what writes to it sees a pipe that is broken.
    """
    running = started(output=b"")
    running.with_pipes()

    def fail(_):
        raise error

    running._channel.send = fail
    running.stdout.raw._receive = fail

    with pytest.raises(ClusterError, match=f"the connection was lost while a command ran: {error}"):
        running.stdout.read(1)
    running.stdin.write(b"x")
    with pytest.raises(BrokenPipeError):
        running.stdin.flush()


def test_what_stands_before_the_mark_is_noise():
    """
    What stands behind it is the command's, of both streams.
    """
    completed = run_to_end("worker1", started().with_pipes(), ["x"], 1, b"input")

    assert (completed.out, completed.err, completed.status) == ("first", "errors", 0)


@pytest.mark.parametrize(
    "group", [b"", b"abc", b"-1", b"0", b"1 2", b"9" * 30, "²".encode(), b"+5"]
)
def test_mark_without_a_process_group_is_an_error(group):
    """
    No process of that number is ever killed.
    """
    with pytest.raises(ClusterError, match=r"the host runs no command(.|\n)*worker1"):
        started(group)


@pytest.mark.parametrize(
    ("output", "errors", "reason"),
    [(b"go \x1b away", b"", r"go \\x1b away"), (b"", b"no shell", "no shell"),
     (b"", b"", "no answer"), (b"x" * 2**17, b"", "x{300}")],
)  # fmt: skip
def test_host_that_starts_no_command_is_quoted(output, errors, reason):
    """
    The error gives what came instead of the mark, safe to print and short.
    """
    channel = Channel(output, errors)

    with pytest.raises(ClusterError, match=f"runs no command: {reason}"):
        SshRunning(channel, "worker1", None)
    assert not channel.open


def test_too_much_output_is_an_error(monkeypatch):
    """
    Nothing beyond the limit is kept.
    """
    monkeypatch.setattr(hosts, "MOST_OUTPUT", 4)
    with pytest.raises(ClusterError, match="has written more than 4 bytes"):
        run_to_end("worker1", started().with_pipes(), ["x"], 1, b"")


def test_log_that_grows_too_long_is_cut(tmp_path):
    """
    The log says so.
    """
    command = started(output=b"0123456789").into(tmp_path / "log", 8)
    command.wait(1)

    log = (tmp_path / "log").read_bytes()
    assert log == b"01234567\n-- harness: too much output, the command was stopped\n"


@pytest.mark.parametrize(("status", "expected"), [(0, 0), (3, 3), (137, -9), (255, 255)])
def test_status_is_that_of_a_process(status, expected):
    """
    A signal's number is below zero.
    """
    assert started(status=status).wait(1) == expected


def test_lost_connection_is_an_error_and_not_a_status():
    """
    A command without a status is over when the connection stands, and lost when it does not.
    """
    assert started(status=-1).wait(1) == -9
    with pytest.raises(ClusterError, match="connection was lost"):
        started(status=-1, active=False).wait(1)
