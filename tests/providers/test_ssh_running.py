"""
Tests for `harness.providers.ssh.running`: hosts whose shell is not what they say.
"""

import pytest

from harness.errors import ClusterError
from harness.providers.ssh.running import BEGIN, SshRunning


class Channel:
    """
    A channel that has brought all it will.
    """

    closed = eof_received = True

    def __init__(self, out, errors):
        self.left = [out, errors]

    def recv_ready(self):
        return bool(self.left[0])

    def recv_stderr_ready(self):
        return bool(self.left[1])

    def recv(self, size):
        return self.take(0, size)

    def recv_stderr(self, size):
        return self.take(1, size)

    def take(self, index, size):
        taken, self.left[index] = self.left[index][:size], self.left[index][size:]
        return taken

    def close(self):
        pass


def begun(mark):
    """
    A command whose mark is *mark*, between noise and what it writes.
    """
    stream = b"welcome\n" + BEGIN + mark + b"\nfirst"
    return SshRunning(Channel(stream, stream), "there", lambda _: None)


def test_what_stands_before_the_mark_is_noise():
    """
    What stands behind it is the command's.
    """
    running = begun(b"4711")

    assert (running.read, running.read_errors) == (b"first", b"first")


@pytest.mark.parametrize("mark", [b"", b"abc", b"-1", b"0", b"1 2", b"9" * 30, "²".encode(), b"+5"])
def test_a_mark_without_a_process_is_an_error(mark):
    """
    It is the host's, with its words; no process of that number is ever killed.
    """
    with pytest.raises(ClusterError, match="the host runs no command: welcome"):
        begun(mark)
