"""
A small real load on this node, and what it achieved; and the page cache dropped.

    node.pyz load cores PROCESSES SECONDS        {"cores": 0.5}
    node.pyz load disk FOLDER RATE               {"disk_write", "disk_read"}
    node.pyz load buffered FOLDER RATE           {"buffered_write"}
    node.pyz load serve ADDRESS                  {"port": 1234}, until its input ends
    node.pyz load network ADDRESS PORT RATE      {"network_out", "network_in"}
    node.pyz drop-cache FOLDER...

The answer of a load is one line of JSON; rates are bytes per second.  RATE is what is expected: it
decides how much is written and sent, so that a load takes a few seconds.  Clocks start after the
first moments, as bursts do not count.

After ``drop-cache`` the files of the folders are read from the disk again.  What still waits to be
written is written first; files that are removed meanwhile are left out.
"""

import json
import os
import select
import socket
import sys
import threading
import time

from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Dict, Iterator, List, Tuple

SECONDS = 2.0
_WARM_UP_S = 0.4
_LEAST_PIECE = 64 * 1024
_MOST_PIECE = 16 * 2**20
_MOST_FILE = 2**30
_MOST_BUFFERED = 256 * 2**20
_WINDOW_S = 0.5
_WINDOWS = 30
_SUSTAINED_S = 4.0
_LIMIT_S = 120.0


def main(arguments: List[str]) -> None:
    """Run one load."""
    load = arguments[0]
    parameters = arguments[1:]
    if load == "serve":
        serve(parameters[0])
    elif load == "cores":
        print(json.dumps(measure_cores(int(parameters[0]), float(parameters[1]))))
    elif load == "network":
        rates = measure_network(parameters[0], int(parameters[1]), float(parameters[2]))
        print(json.dumps(rates))
    else:
        measure = {"disk": measure_disk, "buffered": measure_buffered}[load]
        print(json.dumps(measure(parameters[0], float(parameters[1]))))


def measure_cores(processes: int, seconds: float) -> Dict[str, float]:
    """Seconds of processor time that so many busy processes get per second."""
    reading, writing = os.pipe()
    start = time.monotonic() + 0.1
    for _ in range(processes):
        if os.fork() == 0:
            while time.monotonic() < start:
                pass
            before = time.process_time()
            while time.monotonic() < start + seconds:
                pass
            os.write(writing, f"{time.process_time() - before}\n".encode())
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as lines:
        return {"cores": sum(float(line) for line in lines) / seconds}


def measure_disk(folder: str, rate: float) -> Dict[str, float]:
    """Rates of a file in *folder*: each piece written to the disk, and read past the page cache."""
    piece_size = piece_bytes(rate)
    with _temporary_file(folder) as handle:
        content = os.urandom(piece_size)
        written = Meter()
        while written.total < _MOST_FILE:
            os.write(handle, content)
            os.fdatasync(handle)
            written.count(piece_size)
            if written.warm and written.last - written.warm >= SECONDS:
                break
        # from the disk: its pages leave the cache first, none is read ahead
        os.fsync(handle)
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_RANDOM)
        os.lseek(handle, 0, os.SEEK_SET)
        read = Meter()
        for piece in iter(lambda: os.read(handle, piece_size), b""):
            read.count(len(piece))
        return {"disk_write": written.rate(), "disk_read": read.rate()}


def measure_buffered(folder: str, rate: float) -> Dict[str, float]:
    """
    Rate of a file in *folder* that is written through the page cache.

    Memory takes up the first of it.  Once the rate of a window is near the one expected, what
    follows is measured for longer: the kernel stops writers for tenths of a second, so that windows
    differ by a half.  Where much was written and no window was near, it is the rate of the last.
    """
    content = os.urandom(piece_bytes(rate))
    total = 0
    window_rate = 0.0
    with _temporary_file(folder) as handle:
        for _ in range(_WINDOWS):
            written, seconds = _write_for(_WINDOW_S, handle, content, _MOST_BUFFERED - total)
            total += written
            window_rate = written / seconds
            if window_rate < 1.2 * rate:
                written, seconds = _write_for(_SUSTAINED_S, handle, content, _MOST_FILE - total)
                return {"buffered_write": written / seconds}
            if total >= _MOST_BUFFERED:
                break
    return {"buffered_write": window_rate}


def _write_for(wanted_s: float, handle: int, content: bytes, most_bytes: int) -> Tuple[int, float]:
    """Write *content* again and again, for so long or so much; bytes written, seconds it took."""
    started = time.monotonic()
    seconds = 0.0
    written = 0
    while seconds < wanted_s and written < most_bytes:
        os.write(handle, content)
        written += len(content)
        seconds = time.monotonic() - started
    return written, seconds


@contextmanager
def _temporary_file(folder: str) -> Iterator[int]:
    """Descriptor of a new file in *folder*, which is removed in the end."""
    path = Path(folder) / f".load-{os.getpid()}"
    handle = os.open(str(path), os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        yield handle
    finally:
        os.close(handle)
        path.unlink()


def piece_bytes(rate: float) -> int:
    """Bytes to write at once: about a tenth of a second's, a multiple of 4 KiB."""
    return min(_MOST_PIECE, max(_LEAST_PIECE, round(rate / 10 / 4096) * 4096))


class Meter:
    """Bytes per second from the end of the warm-up on."""

    def __init__(self) -> None:
        self.first = time.monotonic()
        self.warm = 0.0
        self.last = 0.0
        self.total = self.measured = 0

    def count(self, size: int) -> None:
        """Note that *size* more bytes have passed."""
        self.last = time.monotonic()
        self.total += size
        if self.warm:
            self.measured += size
        elif self.last - self.first >= _WARM_UP_S:
            self.warm = self.last

    def rate(self) -> float:
        """The rate after the warm-up; of all, where it took no longer."""
        if self.measured and self.last > self.warm:
            return self.measured / (self.last - self.warm)
        return self.total / max(self.last - self.first, 1e-9)


def serve(address: str) -> None:
    """Take what others send, send what they request, until our input ends."""
    with socket.socket() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind((address, 0))
        server.listen(128)
        print(json.dumps({"port": server.getsockname()[1]}), flush=True)
        while True:
            ready, _, _ = select.select([server, sys.stdin], [], [])
            if sys.stdin in ready:
                return
            connection, _ = server.accept()
            threading.Thread(target=_serve_peer, args=(connection,), daemon=True).start()


def _serve_peer(connection: socket.socket) -> None:
    """One connection: a line says whether we take or send."""
    with connection:
        connection.settimeout(_LIMIT_S)
        verb, _, rate = _read_line(connection).partition(" ")
        if verb == "take":
            connection.sendall(f"{_take(connection)}\n".encode())
        else:
            _send(connection, float(rate))


def measure_network(address: str, port: int, rate: float) -> Dict[str, float]:
    """Rates of what is sent to the server and taken from it, one after the other."""
    with socket.create_connection((address, port), timeout=_LIMIT_S) as connection:
        connection.sendall(b"take 0\n")
        _send(connection, rate)
        sent_rate = float(_read_line(connection))
    with socket.create_connection((address, port), timeout=_LIMIT_S) as connection:
        connection.sendall(f"send {rate}\n".encode())
        return {"network_out": sent_rate, "network_in": _take(connection)}


def _send(connection: socket.socket, rate: float) -> None:
    """Send for a while; little may wait in the kernel, or it would take long to pass."""
    buffered = min(2**22, max(2**15, round(rate / 8)))
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, buffered)
    content = bytes(2**16)
    end = time.monotonic() + _WARM_UP_S + SECONDS
    while time.monotonic() < end:
        connection.sendall(content[: max(4096, buffered // 4)])
    connection.shutdown(socket.SHUT_WR)


def _take(connection: socket.socket) -> float:
    """Bytes per second that arrive, from a moment after the first; 0 where too few do."""
    content = connection.recv(2**20)
    meter = Meter()
    while content:
        meter.count(len(content))
        content = connection.recv(2**20)
    return meter.rate() if meter.measured else 0.0


def _read_line(connection: socket.socket) -> str:
    """One short line, byte by byte: what follows it is read by others."""
    line = byte = connection.recv(1)
    while byte not in (b"", b"\n") and len(line) < 64:
        byte = connection.recv(1)
        line += byte
    return line.decode().strip()


def drop_cache(folders: List[str]) -> None:
    """Drop the pages of all files in *folders* from the page cache."""
    for top in folders:
        for folder, _, names in os.walk(top):
            for name in names:
                with suppress(OSError):
                    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
                    handle = os.open(os.path.join(folder, name), flags)
                    try:
                        os.fdatasync(handle)
                        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
                    finally:
                        os.close(handle)
