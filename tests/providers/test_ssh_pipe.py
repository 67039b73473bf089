"""
Tests for `harness.providers.ssh.pipe` and what reads it: no byte is lost or moved.
"""

import socket
import threading

import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.providers.ssh.connection import _Door
from harness.providers.ssh.pipe import Pieces, Pipe
from harness.providers.ssh.running import _Output

PIECES = st.lists(st.binary(min_size=1, max_size=40), max_size=12)


def output(pieces, first=b""):
    """
    The stream of a command that has written *pieces* and ended.
    """
    pipe = Pipe()
    for piece in pieces:
        pipe.feed(piece)
    pipe.close()
    return _Output(pipe.read, pipe, first)


@given(PIECES, st.lists(st.integers(1, 50)))
def test_pieces_are_a_queue_of_bytes(pieces, sizes):
    """
    The first bytes, and what is left without them, are those of one long row.
    """
    kept, whole = Pieces(), b"".join(pieces)
    for piece in pieces:
        kept.add(piece)
    for size in sizes:
        assert (kept.first(size), len(kept)) == (whole[:size], len(whole))
        del kept[:size]
        whole = whole[size:]
    assert kept.first(None) == whole


@given(PIECES, st.binary(max_size=10), st.lists(st.integers(0, 60)))
def test_reads_give_what_was_asked_for(pieces, first, sizes):
    """
    So many bytes, fewer only at the end, in the order in which they came.
    """
    stream, whole = output(pieces, first), first + b"".join(pieces)
    for size in sizes:
        assert stream.read(size) == whole[:size]
        whole = whole[size:]
    assert stream.read() == whole


@given(st.lists(st.sampled_from([b"a", b"bc", b"\n", b"d\ne"]), max_size=12))
def test_lines(pieces):
    """
    Lines are found across pieces.
    """
    assert list(output(pieces)) == b"".join(pieces).splitlines(keepends=True)


def test_a_reader_waits_for_enough():
    """
    It wakes when all that it waits for is there, and not before.
    """
    pipe, woken = Pipe(), threading.Event()

    def wait():
        pipe.await_bytes(3)
        woken.set()

    waiter = threading.Thread(target=wait)
    waiter.start()
    pipe.feed(b"ab")
    early = woken.wait(0.05)
    pipe.feed(b"c")
    waiter.join(10)

    assert (early, woken.is_set()) == (False, True)


def test_a_reader_wakes_at_the_end():
    """
    What will never come is not waited for.
    """
    pipe = Pipe()
    closer = threading.Timer(0.05, pipe.close)
    closer.start()

    pipe.await_bytes(1)

    assert pipe.peek() == b""
    closer.join()


def test_closed_stream():
    """
    Nothing is read from a stream that was closed.
    """
    stream = output([b"x"])
    stream.close()

    with pytest.raises(ValueError, match="closed"):
        stream.read(1)


@given(PIECES, st.integers(1, 30))
def test_a_door_gives_what_came(pieces, size):
    """
    Reads of any size give the bytes of the connection, then its end.
    """
    ours, theirs = socket.socketpair()
    with _Door(ours) as door, theirs:
        for piece in pieces:
            theirs.sendall(piece)
        theirs.shutdown(socket.SHUT_WR)
        assert b"".join(iter(lambda: door.recv(size), b"")) == b"".join(pieces)


def test_a_door_times_out():
    """
    A limit that was set before stands.
    """
    ours, theirs = socket.socketpair()
    ours.settimeout(0.01)
    with _Door(ours) as door, theirs, pytest.raises(TimeoutError):
        door.recv(1)
