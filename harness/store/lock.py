"""
One harness at a time on one run.

The kernel drops the lock when its process ends, however it ends, so there are no stale locks.
The text in the file only tells a second harness whom it waits for.
"""

from __future__ import annotations

import fcntl
import json
import os

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from harness.errors import MachineError
from harness.store.files import disk


@contextmanager
def held(path: Path, what: str, *, wait: bool = False) -> Iterator[None]:
    """
    Hold the lock file *path*; *what* says in the error what is in use.

    Raises `MachineError` naming the holder where another process has it and *wait* is false.
    """
    with disk(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("a+")
    with file:
        with disk(path):
            try:
                fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            except BlockingIOError as error:
                raise _in_use(file, path, what) from error
            _sign(file)
        yield


def _sign(file: IO[str]) -> None:
    file.truncate(0)
    now = datetime.now(UTC).isoformat(timespec="seconds")
    file.write(json.dumps({"pid": os.getpid(), "since": now}) + "\n")
    file.flush()


def _in_use(file: IO[str], path: Path, what: str) -> MachineError:
    file.seek(0)
    try:
        holder = json.loads(file.read(1000))
        pid, since = int(holder["pid"]), str(holder["since"])
        if pid <= 1:  # the fix below must be safe to follow
            raise ValueError("no process of a harness")
    # The holder has not signed yet, or somebody else wrote there.
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return MachineError(
            f"{what} is in use by another harness", where=str(path), fix="wait for it to end"
        )
    return MachineError(
        f"{what} is in use by process {pid} since {since!r:.40}",
        where=str(path),
        # SIGINT would do nothing to one that a shell script has put in the background
        fix=f"wait for it to end, or end it: kill {pid}  (what is finished is kept)",
    )
