"""
Tests for `harness.providers.docker.stream`: three streams over one socket.
"""

import os
import socket
import threading

from pathlib import Path

import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.providers.docker.stream import STDERR, STDOUT, FileSink, MemorySink, Pump

LIMIT = 2**22


def frame(stream, content):
    """
    What an engine sends for one piece of output.
    """
    return bytes([stream, 0, 0, 0]) + len(content).to_bytes(4, "big") + content


def pieces(sent):
    """
    The pieces that were sent to a command, in order.
    """
    found = []
    while sent:
        size = int.from_bytes(sent[:4], "big")
        found.append(sent[4 : 4 + size])
        sent = sent[4 + size :]
    return found


def carried(said, feed=b"", *, limit=LIMIT, split=2**16):
    """
    A command that says *said* and ends: its two streams, what it was sent, what went wrong.
    """
    ours, theirs = socket.socketpair()
    sinks = {STDOUT: MemorySink(limit), STDERR: MemorySink(limit)}
    pump = Pump(ours, sinks, feed)
    pump.start()
    for start in range(0, len(said), split):
        theirs.sendall(said[start : start + split])
    theirs.shutdown(socket.SHUT_WR)
    sent = b""
    while got := theirs.recv(2**16):
        sent += got
    theirs.close()
    pump.join(timeout=30)
    return bytes(sinks[STDOUT].content), bytes(sinks[STDERR].content), sent, pump.error


class TestPump:
    @given(
        st.lists(st.tuples(st.sampled_from([STDOUT, STDERR]), st.binary(max_size=40)), max_size=8),
        st.integers(1, 50),
    )
    def test_streams_are_told_apart(self, frames, split):
        """
        Whatever is sent in whichever cuts, each stream comes out whole and in order.
        """
        said = b"".join(frame(*f) for f in frames)

        out, err, _, error = carried(said, split=split)

        assert out == b"".join(content for stream, content in frames if stream == STDOUT)
        assert err == b"".join(content for stream, content in frames if stream == STDERR)
        assert error is None

    @pytest.mark.parametrize("feed", [b"", b"some input"])
    def test_input_begins_and_ends_with_empty_pieces(self, feed):
        """
        A command is told to begin, then gets its input, then is told its end.
        """
        *_, sent, _ = carried(frame(STDOUT, b"x"), feed)

        assert pieces(sent) == [b"", *([feed] if feed else []), b""]

    def test_input_comes_from_a_pipe(self):
        """
        What is written to the pipe arrives, then its end.
        """
        ours, theirs = socket.socketpair()
        reading, writing = os.pipe()
        pump = Pump(ours, {STDOUT: MemorySink(LIMIT)}, reading)
        pump.start()
        content = bytes(range(256)) * 2000

        with os.fdopen(writing, "wb") as stdin:
            stdin.write(content)
        sent = b""
        while not sent.endswith(bytes(4)) or len(sent) < len(content):
            sent += theirs.recv(2**16)
        theirs.close()
        pump.join(timeout=30)

        assert b"".join(pieces(sent)) == content

    def test_a_slow_reader_makes_the_sender_wait(self):
        """
        Nobody reads: little more than the queue is taken in, and all arrives in the end.
        """
        ours, theirs = socket.socketpair()
        reading, writing = os.pipe()
        pump = Pump(ours, {STDOUT: FileSink(writing)}, b"")
        pump.start()
        said = frame(STDOUT, bytes(30_000)) * 200
        theirs.recv(100)  # what begins a command: unread, it would make the end a reset
        sender = threading.Thread(target=lambda: (theirs.sendall(said), theirs.close()))
        sender.start()

        sender.join(timeout=0.3)
        waited = sender.is_alive()
        with os.fdopen(reading, "rb") as stdout:
            size = len(stdout.read())
        sender.join(timeout=30)
        pump.join(timeout=30)

        assert (waited, size, pump.error) == (True, 200 * 30_000, None)

    def test_a_reader_that_left_stops_nobody(self):
        """
        The end of a pipe that is closed loses its stream; the other one arrives.
        """
        ours, theirs = socket.socketpair()
        reading, writing = os.pipe()
        os.close(reading)
        other = MemorySink(LIMIT)
        pump = Pump(ours, {STDOUT: FileSink(writing), STDERR: other}, b"")
        pump.start()

        theirs.sendall(frame(STDOUT, bytes(100)) * 100 + frame(STDERR, b"said"))
        theirs.close()
        pump.join(timeout=30)

        assert (bytes(other.content), pump.error) == (b"said", None)

    def test_stopping_closes_the_connection(self):
        """
        The other side sees the end, which kills a command there; stopping twice is fine.
        """
        ours, theirs = socket.socketpair()
        pump = Pump(ours, {STDOUT: MemorySink(LIMIT)}, os.pipe()[0])
        pump.start()

        pump.stop()
        pump.join(timeout=30)
        pump.stop()

        assert pieces(theirs.recv(100)) in ([], [b""])
        assert theirs.recv(100) == b""
        theirs.close()

    def test_endless_output_ends(self):
        """
        A stream that is kept in memory has a limit.
        """
        out, *_, error = carried(frame(STDOUT, bytes(1000)) * 20, limit=5000)

        assert isinstance(error, OverflowError)
        assert len(out) <= 6000

    def test_a_full_disk_is_told(self):
        """
        Output for which there is no room ends the command, with the system's words.
        """
        full = Path("/dev/full")
        if not full.exists():
            pytest.skip("no /dev/full here")
        ours, theirs = socket.socketpair()
        pump = Pump(ours, {STDOUT: FileSink(os.open(full, os.O_WRONLY))}, b"")
        pump.start()

        theirs.sendall(frame(STDOUT, b"x"))
        pump.join(timeout=30)
        theirs.close()

        assert "No space left" in str(pump.error)
