"""
A small real load on the node that this runs on, and what it achieved: one line of JSON.

    python -I -S gauge.py cores PROCESSES SECONDS        {"cores": 0.5}
    python -I -S gauge.py disk FOLDER RATE               {"disk_write", "disk_read"}
    python -I -S gauge.py unwaited FOLDER RATE           {"unwaited"}
    python -I -S gauge.py serve ADDRESS                  {"port": 1234}, until its input ends
    python -I -S gauge.py network ADDRESS PORT RATE      {"network_out", "network_in"}

Rates are bytes per second.  RATE is what is expected: it tells how much to write and to send, so
that a load takes a few seconds.  Clocks start when the first of it has passed, as bursts do not
count.
"""

from __future__ import annotations

import json
import os
import select
import socket
import sys
import threading
import time

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SECONDS = 2.0
_WARM_S = 0.4
_LEAST_PIECE, _MOST_PIECE, _MOST_FILE = 64 * 1024, 16 * 2**20, 2**30
_MOST_UNWAITED, _MOMENT_S, _MOMENTS = 256 * 2**20, 0.5, 30
_LIMIT_S = 120.0


def main() -> None:
    """Do what the command line says."""
    what, *rest = sys.argv[1:]
    if what == "cores":
        tell({"cores": cores(int(rest[0]), float(rest[1]))})
    elif what == "disk":
        tell(disk(rest[0], float(rest[1])))
    elif what == "unwaited":
        tell(unwaited(rest[0], float(rest[1])))
    elif what == "serve":
        serve(rest[0])
    elif what == "network":
        tell(network(rest[0], int(rest[1]), float(rest[2])))
    else:
        sys.exit(f"gauge.py: no load is called {what}")


def tell(answer: dict[str, float]) -> None:
    """Write an answer."""
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def cores(processes: int, seconds: float) -> float:
    """Processor time that so many processes get per second of time."""
    reading, writing = os.pipe()
    start = time.monotonic() + 0.1
    for _ in range(processes):
        if os.fork() == 0:
            os.write(writing, f"{_spin(start, seconds)}\n".encode())
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as lines:
        return sum(float(line) for line in lines) / seconds


def _spin(start: float, seconds: float) -> float:
    while time.monotonic() < start:
        pass
    before = time.process_time()
    while time.monotonic() < start + seconds:
        pass
    return time.process_time() - before


def disk(folder: str, rate: float) -> dict[str, float]:
    """Rates of a file in *folder*: written, each piece waited for, and read past the memory."""
    piece = _piece(rate)
    with _file(folder) as handle:
        return {"disk_write": _write(handle, piece), "disk_read": _read(handle, piece)}


def unwaited(folder: str, rate: float) -> dict[str, float]:
    """
    Rate of a file in *folder* that is written while nobody waits for the disk.

    Memory takes up the first of it: the rate is that of the last of several moments, once it is
    near the one expected; or when much was written and it never was.
    """
    piece, total = _piece(rate), 0
    data = os.urandom(piece)
    with _file(folder) as handle:
        for _ in range(_MOMENTS):
            begun, done = time.monotonic(), 0
            while time.monotonic() < begun + _MOMENT_S and total + done < _MOST_UNWAITED:
                os.write(handle, data)
                done += piece
            total += done
            found = done / (time.monotonic() - begun)
            if found < 1.2 * rate or total >= _MOST_UNWAITED:
                break
    return {"unwaited": found}


@contextmanager
def _file(folder: str) -> Iterator[int]:
    """A new file of our own, which goes again."""
    path = Path(folder) / f".gauge-{os.getpid()}"
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        yield handle
    finally:
        os.close(handle)
        path.unlink()


def _piece(rate: float) -> int:
    """What is written at once: about a tenth of a second's."""
    return min(_MOST_PIECE, max(_LEAST_PIECE, round(rate / 10 / 4096) * 4096))


def _write(handle: int, piece: int) -> float:
    """Write for a while, each piece waited for."""
    data, begun, done, total = os.urandom(piece), time.monotonic(), 0, 0
    started = None
    while total < _MOST_FILE:
        os.write(handle, data)
        os.fdatasync(handle)
        now, total = time.monotonic(), total + piece
        if started is None:
            if now - begun >= _WARM_S:
                started = now
            continue
        done += piece
        if now - started >= SECONDS:
            break
    return done / (now - (started or begun)) if done else total / (now - begun)


def _read(handle: int, piece: int) -> float:
    """Read the file from the disk: its pages in memory are let go first, none is read ahead."""
    os.fsync(handle)
    os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
    os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_RANDOM)
    os.lseek(handle, 0, os.SEEK_SET)
    begun, total, done, started = time.monotonic(), 0, 0, None
    while got := len(os.read(handle, piece)):
        now, total = time.monotonic(), total + got
        if started is not None:
            done += got
        elif now - begun >= _WARM_S:
            started = now
    return done / (now - started) if done and started else total / (now - begun)


def serve(address: str) -> None:
    """Take what others send, send what others ask for, until our input ends."""
    with socket.create_server((address, 0)) as server:
        tell({"port": server.getsockname()[1]})
        while True:
            ready, _, _ = select.select([server, sys.stdin], [], [])
            if sys.stdin in ready:
                return
            peer, _ = server.accept()
            threading.Thread(target=_answer, args=(peer,), daemon=True).start()


def _answer(peer: socket.socket) -> None:
    """One connection: a line says what is wanted."""
    with peer:
        peer.settimeout(_LIMIT_S)
        verb, _, rate = _line(peer).partition(" ")
        if verb == "take":
            peer.sendall(f"{_take(peer)}\n".encode())
        else:
            _send(peer, float(rate))


def network(address: str, port: int, rate: float) -> dict[str, float]:
    """Rates of what is sent to the server and taken from it, one after the other."""
    with socket.create_connection((address, port), timeout=_LIMIT_S) as peer:
        peer.sendall(b"take 0\n")
        _send(peer, rate)
        sent = float(_line(peer))
    with socket.create_connection((address, port), timeout=_LIMIT_S) as peer:
        peer.sendall(f"send {rate}\n".encode())
        return {"network_out": sent, "network_in": _take(peer)}


def _send(peer: socket.socket, rate: float) -> None:
    """Send for a while; little may wait in the kernel, or it would take long to pass."""
    waiting = min(2**22, max(2**15, round(rate / 8)))
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, waiting)
    data, end = bytes(2**16), time.monotonic() + _WARM_S + SECONDS
    while time.monotonic() < end:
        peer.sendall(data[: max(4096, waiting // 4)])
    peer.shutdown(socket.SHUT_WR)


def _take(peer: socket.socket) -> float:
    """Bytes per second that arrive, from a moment after the first."""
    begun, started, now, done = None, None, 0.0, 0
    while got := len(peer.recv(2**20)):
        now = time.monotonic()
        begun = now if begun is None else begun
        if started is not None:
            done += got
        elif now - begun >= _WARM_S:
            started = now
    return done / (now - started) if started is not None and now > started else 0.0


def _line(peer: socket.socket) -> str:
    """One short line, byte by byte: what comes behind it is not ours to take."""
    line = b""
    while not line.endswith(b"\n") and len(line) < 64:
        byte = peer.recv(1)
        if not byte:
            break
        line += byte
    return line.decode().strip()


if __name__ == "__main__":
    main()
