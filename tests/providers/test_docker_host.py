"""
Tests for `harness.clusters.docker.host`: three streams of a command over one socket.
"""

import io
import os
import socket
import threading

from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.base.errors import ClusterError
from harness.clusters.docker.host import STDERR, STDOUT, Connection, DockerRunning

LIMIT_S = 30.0


class Output(io.BytesIO):
    """
    Output that can be looked at when it was closed.
    """

    def close(self):
        pass


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


def engine(exit_code=0):
    """
    An engine whose commands have ended with *exit_code*.
    """
    api = SimpleNamespace(exec_inspect=lambda _: {"Running": False, "ExitCode": exit_code})
    return SimpleNamespace(
        client=SimpleNamespace(api=api), translate_errors=lambda label: nullcontext()
    )


def start(outputs, source=b"", exit_code=0):
    """
    A command, and the engine's end of its connection.
    """
    harness_end, engine_end = socket.socketpair()
    source = io.BytesIO(source) if isinstance(source, bytes) else source
    connection = Connection(harness_end)
    running = DockerRunning(
        engine(exit_code), "id", connection, outputs=outputs, source=source, label="worker1: true"
    )
    return running, engine_end


def carried(frames, split):
    """
    Output and errors of a command that sends *frames* and ends.
    """
    outputs = {STDOUT: Output(), STDERR: Output()}
    running, engine_end = start(outputs)
    with engine_end:
        for first in range(0, len(frames), split):
            engine_end.sendall(frames[first : first + split])
        engine_end.shutdown(socket.SHUT_WR)
        received(engine_end)
    assert running.wait(LIMIT_S) == 0
    return outputs[STDOUT].getvalue(), outputs[STDERR].getvalue()


class TestRunning:
    @given(
        st.lists(st.tuples(st.sampled_from([STDOUT, STDERR]), st.binary(max_size=40)), max_size=8),
        st.integers(1, 50),
    )
    def test_output_and_errors_are_kept_apart(self, frames, split):
        """
        However the bytes are cut on their way, each stream arrives whole and in order.
        """
        out, err = carried(b"".join(frame(*stream_piece) for stream_piece in frames), split)

        assert out == b"".join(content for stream, content in frames if stream == STDOUT)
        assert err == b"".join(content for stream, content in frames if stream == STDERR)

    @given(st.binary(max_size=200_000))
    def test_input_starts_and_ends_with_empty_pieces(self, content):
        """
        An empty piece starts the command, another one ends its input.
        """
        running, engine_end = start({STDOUT: Output()}, content)
        with engine_end:
            sent = b""
            while len(sent) < len(content) + 8 or not sent.endswith(bytes(4)):
                sent += engine_end.recv(2**16)
        assert running.wait(LIMIT_S) == 0

        first, *inputs, last = pieces(sent)
        assert (first, b"".join(inputs), last) == (b"", content, b"")

    def test_input_comes_from_a_pipe(self):
        """
        What is written to the pipe arrives, then its end.
        """
        reading, writing = os.pipe()
        running, engine_end = start({STDOUT: Output()}, os.fdopen(reading, "rb", 0))
        content = bytes(range(256)) * 2000
        stdin = os.fdopen(writing, "wb")
        writer = threading.Thread(target=lambda: (stdin.write(content), stdin.close()))
        writer.start()
        with engine_end:
            sent = b""
            while len(sent) < len(content) or not sent.endswith(bytes(4)):
                sent += engine_end.recv(2**16)
        writer.join(LIMIT_S)

        assert running.wait(LIMIT_S) == 0
        assert b"".join(pieces(sent)) == content

    @pytest.mark.process
    def test_a_slow_reader_makes_the_sender_wait(self):
        """
        While nobody reads little is taken in, and all arrives in the end.
        """
        reading, writing = os.pipe()
        running, engine_end = start({STDOUT: os.fdopen(writing, "wb", 0)})
        frames = frame(STDOUT, bytes(30_000)) * 200
        engine_end.recv(100)  # the command's input: unread, it would make the end a reset
        sender = threading.Thread(target=lambda: (engine_end.sendall(frames), engine_end.close()))
        sender.start()

        sender.join(timeout=0.3)
        waited = sender.is_alive()
        with os.fdopen(reading, "rb") as stdout:
            size = len(stdout.read())
        sender.join(LIMIT_S)

        assert running.wait(LIMIT_S) == 0
        assert (waited, size) == (True, 200 * 30_000)

    def test_a_reader_that_left_does_not_stop_the_other_stream(self):
        """
        What is sent into a closed pipe is lost; the other stream arrives.
        """
        reading, writing = os.pipe()
        os.close(reading)
        errors = Output()
        running, engine_end = start({STDOUT: os.fdopen(writing, "wb", 0), STDERR: errors})

        engine_end.sendall(frame(STDOUT, bytes(100)) * 100 + frame(STDERR, b"message"))
        engine_end.close()

        assert running.wait(LIMIT_S) == 0
        assert errors.getvalue() == b"message"

    def test_kill_closes_the_connection(self):
        """
        The other side sees the end, which kills a command there; killing twice is fine.
        """
        reading, writing = os.pipe()
        running, engine_end = start({STDOUT: Output()}, os.fdopen(reading, "rb", 0))

        running.kill()
        running.wait(LIMIT_S)
        running.kill()

        assert pieces(received(engine_end)) in ([], [b""])
        engine_end.close()
        os.close(writing)

    @pytest.mark.process
    def test_kill_does_not_wait_for_a_full_pipe(self):
        """
        A command whose output nobody reads can be killed, and waited for.
        """
        reading, writing = os.pipe()
        running, engine_end = start({STDOUT: os.fdopen(writing, "wb", 0)})
        engine_end.settimeout(0.0)
        try:
            while True:
                engine_end.send(frame(STDOUT, bytes(30_000)))
        except BlockingIOError:
            running.kill()

        assert running.wait(LIMIT_S) == 0
        os.close(reading)
        engine_end.close()

    def test_a_full_disk_is_an_error(self):
        """
        Output for which there is no room ends the command, with the system's reason.
        """
        full = Path("/dev/full")
        if not full.exists():
            pytest.skip("no /dev/full here")
        running, engine_end = start({STDOUT: full.open("wb", 0)})

        engine_end.sendall(frame(STDOUT, b"x"))

        with pytest.raises(ClusterError, match="No space left"):
            running.wait(LIMIT_S)
        engine_end.close()


@pytest.mark.parametrize(
    ("exit_code", "status"), [(0, 0), (7, 7), (128 + 15, -15), (None, -9)], ids=str
)
def test_a_status_is_that_of_a_popen(exit_code, status):
    """
    Signals are negative; a command without a status went with its container.
    """
    running, engine_end = start({STDOUT: Output()}, exit_code=exit_code)
    engine_end.close()

    assert running.wait(LIMIT_S) == status
    assert (running.poll(), running.returncode) == (status, status)
