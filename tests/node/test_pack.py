"""
Whether the packer compresses: decided by the way, on a clock that only work moves.
"""

import pytest

from harness.node import pack

MIB = 2**20
PIECE = bytes(pack.CHUNK)


class Clock:
    """
    Seconds, moved by hand.
    """

    now = 0.0

    def monotonic(self):
        return self.now


class Worker:
    """
    A pool whose work takes as long as it takes one worker.
    """

    def __init__(self, clock, rate):
        self.clock, self.rate = clock, rate

    def submit(self, _work, piece):
        return Squeezed(self, piece)


class Squeezed:
    """
    A piece that becomes a seventh of it.
    """

    def __init__(self, worker, piece):
        self.worker, self.piece = worker, piece

    def result(self):
        self.worker.clock.now += len(self.piece) / self.worker.rate
        return b"C", self.piece[: len(self.piece) // 7]


def sent(monkeypatch, link, squeezing, mib=256, buffered=2 * MIB):
    """
    Pieces that went compressed and others, and seconds: over a link and with a worker of these
    rates (bytes in a second), with so many bytes on the way that nobody waits for.
    """
    clock, counts, waiting = Clock(), {b"C": 0, b"R": 0}, [0.0]
    monkeypatch.setattr(pack, "time", clock)

    def write(_out, parts):
        size = sum(map(len, parts))
        counts[parts[0][:1]] += 1
        waiting[0] = max(waiting[0], clock.now) + size / link
        clock.now = max(clock.now, waiting[0] - buffered / link)
        return size

    monkeypatch.setattr(pack.os, "writev", write)
    way = pack.Way(1, Worker(clock, squeezing))
    for _ in range(mib * MIB // pack.CHUNK):
        way.piece(PIECE)
    way.flush()
    return counts[b"C"], counts[b"R"], waiting[0]


@pytest.mark.parametrize(
    ("link", "most"), [(10**6, 0.2), (10**7, 0.2), (5 * 10**7, 0.6)], ids=["8", "80", "400"]
)
def test_slow_link_compresses(monkeypatch, link, most):
    """
    In a part of the time that it would take otherwise; that is tried, and again more seldom.
    """
    small, plain, seconds = sent(monkeypatch, link, 15 * 10**7)

    assert small > 2 * plain
    assert seconds < most * 256 * MIB / link


@pytest.mark.parametrize("link", [2 * 10**8, 10**9])
def test_fast_link_does_not(monkeypatch, link):
    """
    It would wait for the compressor.
    """
    small, plain, _ = sent(monkeypatch, link, 15 * 10**7)

    assert small < 0.1 * plain


def test_link_that_becomes_slow_is_noticed(monkeypatch):
    """
    Pieces that take longer than they would compressed are compressed again.
    """
    clock, kinds = Clock(), []
    monkeypatch.setattr(pack, "time", clock)
    link = 10**9

    def write(_out, parts):
        kinds.append(parts[0][:1])
        clock.now += sum(map(len, parts)) / link
        return sum(map(len, parts))

    monkeypatch.setattr(pack.os, "writev", write)
    way = pack.Way(1, Worker(clock, 15 * 10**7))
    for number in range(400):
        link = 10**9 if number < 200 else 10**6
        way.piece(PIECE)

    assert (kinds[190], kinds[-1]) == (b"R", b"C")
