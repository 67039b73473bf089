"""
Send the plain files of a folder to standard output: checked, resumed, compressed where that pays.

    node.pyz pack < REQUEST      (one JSON object)

    {"folder": PATH, "depth": N, "wanted": PATTERN, "done": [NAME, ...], "begun": {NAME: BYTES}}

Answered in frames, a letter, four bytes of length (big-endian), and so many bytes:

    F   {"name", "from"}: a file begins, at the offset *from* (what is *begun* is not sent again)
    R   a piece of it;  C: a piece of it, compressed by zlib
    E   its end: the CRC-32 of all of it, in eight hexadecimal digits
    H   nothing: we live, and read what is not sent again
    Z   the end: {"files": N}

A file is sent up to the size that it had when it was opened: a log may grow.  Links, pipes and
devices are left out.  What cannot be read ends the file early: its checksum is that of what was
sent.
"""

import json
import os
import re
import stat
import sys
import time
import zlib

from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Deque, Iterator, Tuple

CHUNK = 2**19
LEVEL = 1  # a link of 1 Gbit/s is slower than this level, a higher level is not
WINDOW = 2**22  # bytes after which the manner of sending is judged first
MOST, LONG_S = 2**24, 1.0  # the same of pieces that are not compressed
WORTH = 0.5  # below that part of its rate compressing is taken up again
AHEAD = 4


def main(_arguments: Any) -> None:
    """Answer the request on standard input."""
    try:
        answer()
    except BrokenPipeError:
        sys.stderr.close()  # the reader has gone
        raise SystemExit(1) from None


def answer() -> None:
    """Send all frames."""
    request = json.load(sys.stdin)
    files, done, begun = 0, set(request["done"]), request["begun"]
    wanted = re.compile(request["wanted"])
    with ThreadPoolExecutor(AHEAD) as pool:
        way = Way(sys.stdout.fileno(), pool)
        for name, path in walk(request["folder"], "", request["depth"]):
            if name not in done and wanted.fullmatch(name):
                files += send(way, name, path, begun.get(name, 0))
    way.frame(b"Z", json.dumps({"files": files}).encode())


class Way:
    """
    Where the frames go; it knows whether compressing pays.

    Compressed pieces come first.  When more time goes by in compressing than in writing, the way is
    faster than that: pieces go as they are, as long as this brings more bytes in a second.
    """

    def __init__(self, out: int, pool: ThreadPoolExecutor) -> None:
        self.out, self.pool = out, pool
        self.squeezing, self.squeezed_rate, self.patience = True, 0.0, WINDOW
        self.waiting: Deque[Future[Tuple[bytes, bytes]]] = deque()
        self.restart()

    def restart(self) -> None:
        """Measure from now on."""
        self.sent, self.blocked_s, self.began = 0, 0.0, time.monotonic()

    def piece(self, piece: bytes) -> None:
        """Send a piece of a file, now or soon."""
        if self.squeezing:
            self.waiting.append(self.pool.submit(squeezed, piece))
            if len(self.waiting) > AHEAD:
                self.frame(*self.waiting.popleft().result())
        else:
            self.frame(b"R", piece)
        self.sent += len(piece)
        seconds = time.monotonic() - self.began
        enough = self.sent >= (self.patience if self.squeezing else MOST)
        if enough or (seconds > LONG_S and not self.squeezing):
            self.judge(seconds)

    def judge(self, seconds: float) -> None:
        """Go on as before, or in the other manner."""
        rate = self.sent / max(seconds, 1e-6)
        if self.squeezing:
            self.squeezed_rate = rate
            if self.blocked_s < seconds / 2:
                self.flush()
                self.squeezing = False
        elif rate < WORTH * self.squeezed_rate:
            self.squeezing = True
            self.patience *= 4
        self.restart()

    def flush(self) -> None:
        """Send what waits."""
        while self.waiting:
            self.frame(*self.waiting.popleft().result())

    def frame(self, kind: bytes, content: bytes) -> None:
        """Write a frame, in as few steps as the way takes."""
        begin = time.monotonic()
        head = kind + len(content).to_bytes(4, "big")
        written, whole = os.writev(self.out, [head, content]), len(head) + len(content)
        while written < whole:
            if written < len(head):
                written += os.write(self.out, head[written:])
            else:
                written += os.write(self.out, memoryview(content)[written - len(head) :])
        self.blocked_s += time.monotonic() - begin


def walk(folder: str, prefix: str, depth: int) -> Iterator[Tuple[str, str]]:
    """Name below the folder, and path, of each plain file, in the order of names."""
    try:
        with os.scandir(folder) as entries:
            found = sorted(entries, key=lambda e: e.name)
    except OSError:
        return
    for entry in found:
        name = f"{prefix}{entry.name}"
        if entry.is_file(follow_symlinks=False):
            yield name, entry.path
        elif entry.is_dir(follow_symlinks=False) and depth > 1:
            yield from walk(entry.path, f"{name}/", depth - 1)


def send(way: Way, name: str, path: str, begun: int) -> int:
    """Send one file; 0 where there is none to send."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return 0
    with os.fdopen(handle, "rb", buffering=0) as file:
        facts = os.fstat(handle)
        if not stat.S_ISREG(facts.st_mode):
            return 0
        checksum, left = 0, facts.st_size
        start = min(begun, left)
        way.frame(b"F", json.dumps({"name": name, "from": start}).encode())
        if start > 0:
            for piece in pieces(file, start):
                checksum = zlib.crc32(piece, checksum)
                way.frame(b"H", b"")
            way.restart()
        for piece in pieces(file, left - start):
            way.piece(piece)
            checksum = zlib.crc32(piece, checksum)
        way.flush()
        way.frame(b"E", f"{checksum:08x}".encode())
    return 1


def pieces(file: Any, left: int) -> Iterator[bytes]:
    """The next *left* bytes of a file, fewer where it ends or fails before."""
    while left > 0:
        try:
            piece = file.read(min(CHUNK, left))
        except OSError:
            return
        if not piece:
            return
        left -= len(piece)
        yield piece


def squeezed(piece: bytes) -> Tuple[bytes, bytes]:
    """The frame of a piece: compressed, where that is worth it."""
    small = zlib.compress(piece, LEVEL)
    return (b"C", small) if len(small) < 0.9 * len(piece) else (b"R", piece)
