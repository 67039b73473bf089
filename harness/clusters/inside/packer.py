"""
Send the plain files of a folder to standard output: compressed, hashed, and resumed.

    python -I -S packer.py < REQUEST      (one JSON object)

    {"folder": PATH, "depth": N, "wanted": PATTERN, "done": [NAME, ...], "begun": {NAME: BYTES}}

Answered in frames, a letter, four bytes of length (big-endian), and so many bytes:

    F   {"name", "from"}: a file begins, at the offset *from* (what is *begun* is not sent again)
    R   a piece of it;  C: a piece of it, compressed by zlib
    E   its end: the SHA-256 of all of it, in hexadecimal digits
    H   nothing: we live, and read what is not sent again
    Z   the end: {"files": N}

A file is sent up to the size that it had when it was opened: a log may grow.  Links, pipes and
devices are left out.  What cannot be read ends the file early: its hash is that of what was sent.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import sys
import zlib

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

CHUNK = 2**19
LEVEL = 1  # a link of 1 Gbit/s is slower than this level, a higher level is not
AHEAD = 4


def main() -> None:
    """Answer the request on standard input."""
    request = json.load(sys.stdin)
    out, files = sys.stdout.buffer, 0
    done, begun, wanted = set(request["done"]), request["begun"], re.compile(request["wanted"])
    with ThreadPoolExecutor(AHEAD) as pool:
        for name, path in walk(request["folder"], "", request["depth"]):
            if name not in done and wanted.fullmatch(name):
                files += send(out, pool, name, path, begun.get(name, 0))
    frame(out, b"Z", json.dumps({"files": files}).encode())
    out.flush()


def walk(folder: str, prefix: str, depth: int) -> Iterator[tuple[str, str]]:
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


def send(out: Any, pool: ThreadPoolExecutor, name: str, path: str, begun: int) -> int:
    """Send one file; 0 where there is none to send."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return 0
    with os.fdopen(handle, "rb", buffering=0) as file:
        facts = os.fstat(handle)
        if not stat.S_ISREG(facts.st_mode):
            return 0
        digest, left = hashlib.sha256(), facts.st_size
        start = min(begun, left)
        frame(out, b"F", json.dumps({"name": name, "from": start}).encode())
        for piece in pieces(file, start):
            digest.update(piece)
            frame(out, b"H", b"")
        waiting: deque[Future[tuple[bytes, bytes]]] = deque()
        for piece in pieces(file, left - start):
            waiting.append(pool.submit(squeezed, piece))
            digest.update(piece)
            if len(waiting) > AHEAD:
                frame(out, *waiting.popleft().result())
        for future in waiting:
            frame(out, *future.result())
        frame(out, b"E", digest.hexdigest().encode())
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


def squeezed(piece: bytes) -> tuple[bytes, bytes]:
    """The frame of a piece: compressed, where that is worth it."""
    small = zlib.compress(piece, LEVEL)
    return (b"C", small) if len(small) < 0.9 * len(piece) else (b"R", piece)


def frame(out: Any, kind: bytes, content: bytes) -> None:
    """Write a frame."""
    out.write(kind + len(content).to_bytes(4, "big"))
    out.write(content)


if __name__ == "__main__":
    try:
        main()
    except BrokenPipeError:
        sys.stderr.close()  # the reader has gone
        raise SystemExit(1) from None
