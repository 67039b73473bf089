"""
The watchdog: it removes a cluster that nobody answers for any more.

    node.pyz watch FOLDER COMMAND ARGUMENT...

FOLDER is that of the cluster, COMMAND removes the cluster, and is what we become to do so: when
standard input ends, which is a pipe to us from the harness that made the cluster; a harness that is
killed says nothing before.  A line from it may come first: ``end`` (the cluster is removed) ends us
too, and after ``free`` the cluster is nobody's: it is removed when its lease has ended.  The file
``lease`` in FOLDER has the lease's length in seconds, and its time of change is when it began.
"""

import os
import time

from pathlib import Path
from typing import List

_PAUSE_S = 60.0


def main(arguments: List[str]) -> None:
    """Wait until the cluster is to be removed, then become the command that does it."""
    folder = Path(arguments[0])
    command_argv = arguments[1:]
    word = os.read(0, 64)
    if word == b"end\n":
        return
    left_s = lease_left_s(folder, time.time()) if word else 0.0
    while left_s > 0:
        time.sleep(min(left_s, _PAUSE_S))
        try:
            left_s = lease_left_s(folder, time.time())
        except FileNotFoundError:
            return  # it was removed
    os.execv(command_argv[0], command_argv)  # noqa: S606 - no shell is meant


def lease_left_s(folder: Path, now_s: float) -> float:
    """Seconds until the lease of the cluster in *folder* ends; `FileNotFoundError`: it has none."""
    file = folder / "lease"
    return float(file.read_text()) + file.stat().st_mtime - now_s
