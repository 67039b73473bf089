"""
Tests for `harness.providers.docker.host`: three streams of a command over one socket.
"""

import io
import os
import socket
import threading

from pathlib import Path
from types import SimpleNamespace

import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.providers.docker.host import (
    STDERR,
    STDOUT,
    Connection,
    DockerRunning,
    Output,
    Streams,
)

LIMIT_S = 30.0


def frame(stream, content):
    """
    What an engine sends for one piece of output.
    """
    return bytes([stream, 0, 0, 0]) + len(content).to_bytes(4, "big") + content


def pieces(sent):
    """
    The pieces of input that were sent to a command, in order.
    """
    contents = []
    while sent:
        size = int.from_bytes(sent[:4], "big")
        contents.append(sent[4 : 4 + size])
        sent = sent[4 + size :]
    return contents


def received(engine_end):
    """
    All that the harness sends until it closes the connection.
    """
    content = b""
    while piece := engine_end.recv(2**16):
        content += piece
    return content


def carry(outputs, source=b""):
    """
    The streams of a command, and the engine's end of their connection.
    """
    harness_end, engine_end = socket.socketpair()
    source = io.BytesIO(source) if isinstance(source, bytes) else source
    return Streams(Connection(harness_end), outputs, source), engine_end


def carried(frames, source=b"", *, limit=2**22, split=2**16):
    """
    Output, errors and input of a command that sends *frames* and ends, and the streams' error.
    """
    outputs = {STDOUT: Output(limit), STDERR: Output(limit)}
    streams, engine_end = carry(outputs, source)
    with engine_end:
        for start in range(0, len(frames), split):
            engine_end.sendall(frames[start : start + split])
        engine_end.shutdown(socket.SHUT_WR)
        sent = received(engine_end)
    assert streams.join(LIMIT_S)
    return outputs[STDOUT].getvalue(), outputs[STDERR].getvalue(), sent, streams.error


class TestStreams:
    @given(
        st.lists(st.tuples(st.sampled_from([STDOUT, STDERR]), st.binary(max_size=40)), max_size=8),
        st.integers(1, 50),
    )
    def test_output_and_errors_are_kept_apart(self, frames, split):
        """
        However the bytes are cut on their way, each stream arrives whole and in order.
        """
        out, err, _, error = carried(b"".join(frame(*each) for each in frames), split=split)

        assert out == b"".join(content for stream, content in frames if stream == STDOUT)
        assert err == b"".join(content for stream, content in frames if stream == STDERR)
        assert error is None

    @given(st.binary(max_size=200_000))
    def test_input_starts_and_ends_with_empty_pieces(self, content):
        """
        The exec wrapper is told to start, gets the input, and is told its end.
        """
        harness_end, engine_end = socket.socketpair()
        streams = Streams(Connection(harness_end), {STDOUT: Output()}, io.BytesIO(content))
        with engine_end:
            sent = b""
            while len(sent) < len(content) + 8 or not sent.endswith(bytes(4)):
                sent += engine_end.recv(2**16)
        assert streams.join(LIMIT_S)

        start, *inputs, end = pieces(sent)
        assert (start, b"".join(inputs), end) == (b"", content, b"")

    def test_input_comes_from_a_pipe(self):
        """
        What is written to the pipe arrives, then its end.
        """
        reading, writing = os.pipe()
        streams, engine_end = carry({STDOUT: Output()}, os.fdopen(reading, "rb", 0))
        content = bytes(range(256)) * 2000
        stdin = os.fdopen(writing, "wb")
        writer = threading.Thread(target=lambda: (stdin.write(content), stdin.close()))
        writer.start()
        with engine_end:
            sent = b""
            while len(sent) < len(content) or not sent.endswith(bytes(4)):
                sent += engine_end.recv(2**16)
        writer.join(LIMIT_S)

        assert streams.join(LIMIT_S)
        assert b"".join(pieces(sent)) == content

    def test_a_slow_reader_makes_the_sender_wait(self):
        """
        While nobody reads little is taken in, and all arrives in the end.
        """
        reading, writing = os.pipe()
        streams, engine_end = carry({STDOUT: os.fdopen(writing, "wb", 0)})
        frames = frame(STDOUT, bytes(30_000)) * 200
        engine_end.recv(100)  # the command's input: unread, it would make the end a reset
        sender = threading.Thread(target=lambda: (engine_end.sendall(frames), engine_end.close()))
        sender.start()

        sender.join(timeout=0.3)
        waited = sender.is_alive()
        with os.fdopen(reading, "rb") as stdout:
            size = len(stdout.read())
        sender.join(LIMIT_S)

        assert streams.join(LIMIT_S)
        assert (waited, size, streams.error) == (True, 200 * 30_000, None)

    def test_a_reader_that_left_does_not_stop_the_other_stream(self):
        """
        What is sent into a closed pipe is lost; the other stream arrives.
        """
        reading, writing = os.pipe()
        os.close(reading)
        errors = Output()
        streams, engine_end = carry({STDOUT: os.fdopen(writing, "wb", 0), STDERR: errors})

        engine_end.sendall(frame(STDOUT, bytes(100)) * 100 + frame(STDERR, b"message"))
        engine_end.close()

        assert streams.join(LIMIT_S)
        assert (errors.getvalue(), streams.error) == (b"message", None)

    def test_stop_closes_the_connection(self):
        """
        The other side sees the end, which kills a command there; stopping twice is fine.
        """
        reading, writing = os.pipe()
        streams, engine_end = carry({STDOUT: Output()}, os.fdopen(reading, "rb", 0))

        streams.stop()
        assert streams.join(LIMIT_S)
        streams.stop()

        assert pieces(received(engine_end)) in ([], [b""])
        engine_end.close()
        os.close(writing)

    def test_stop_does_not_wait_for_a_full_pipe(self):
        """
        A command whose output nobody reads can be killed, and waited for.
        """
        reading, writing = os.pipe()
        streams, engine_end = carry({STDOUT: os.fdopen(writing, "wb", 0)})
        engine_end.settimeout(0.0)
        try:
            while True:
                engine_end.send(frame(STDOUT, bytes(30_000)))
        except BlockingIOError:
            streams.stop()

        assert streams.join(LIMIT_S)
        os.close(reading)
        engine_end.close()

    def test_output_in_memory_has_a_limit(self):
        """
        A command that never stops writing ends with an error.
        """
        out, *_, error = carried_until_error(frame(STDOUT, bytes(1000)) * 20, limit=5000)

        assert isinstance(error, OverflowError)
        assert len(out) <= 5000

    def test_a_full_disk_is_an_error(self):
        """
        Output for which there is no room ends the command, with the system's reason.
        """
        full = Path("/dev/full")
        if not full.exists():
            pytest.skip("no /dev/full here")
        streams, engine_end = carry({STDOUT: full.open("wb", 0)})

        engine_end.sendall(frame(STDOUT, b"x"))

        assert streams.join(LIMIT_S)
        engine_end.close()
        assert "No space left" in str(streams.error)


def carried_until_error(frames, limit):
    """
    As `carried`, for output that the harness refuses on its way.
    """
    outputs = {STDOUT: Output(limit)}
    streams, engine_end = carry(outputs)
    with engine_end:
        engine_end.sendall(frames)
        assert streams.join(LIMIT_S)
    return outputs[STDOUT].getvalue(), streams.error


@pytest.mark.parametrize(
    ("exit_code", "status"), [(0, 0), (7, 7), (128 + 15, -15), (None, -9)], ids=str
)
def test_a_status_is_that_of_a_popen(exit_code, status):
    """
    Signals are negative; a command without a status went with its container.
    """
    api = SimpleNamespace(exec_inspect=lambda _: {"Running": False, "ExitCode": exit_code})
    engine = SimpleNamespace(
        client=SimpleNamespace(api=api), translate_errors=lambda label: threading.Lock()
    )
    streams, engine_end = carry({STDOUT: Output()})
    engine_end.close()
    running = DockerRunning(engine, "id", streams, "worker1: true", (None, None, None))

    assert running.wait(LIMIT_S) == status
    assert (running.poll(), running.returncode) == (status, status)
