"""
Run a command as the user nobody (or that of AS_USER), who may read the folders it is told, wherever
they lie.

    python as_nobody.py FOLDER... -- COMMAND...      (as root, in a mount namespace of its own)

A folder below one that others may not enter (a home of mode 700) is shown through an empty folder
that covers the closed one, in this mount namespace only.
"""

import os
import subprocess
import sys

from pathlib import Path


def main():
    """
    Show the folders, then become the command.
    """
    cut = sys.argv.index("--")
    folders, command = [Path(a).resolve() for a in sys.argv[1:cut]], sys.argv[cut + 1 :]
    closed = {}
    for folder in folders:
        if barrier := first_closed(folder):
            closed.setdefault(barrier, set()).add(folder)
    for barrier, behind in closed.items():
        show(barrier, behind)
    os.chdir("/")
    number = os.environ.get("AS_USER", "65534")
    nobody = ["setpriv", "--reuid", number, "--regid", number, "--clear-groups", "--"]
    os.execvp(nobody[0], [*nobody, *command])


def first_closed(folder):
    """
    The topmost folder on the way to *folder* that others cannot enter.
    """
    way = [*reversed(folder.parents), folder]
    return next((p for p in way if not p.stat().st_mode & 0o001), None)


def show(barrier, behind):
    """
    Cover *gate* by an empty folder that shows what is *behind* it.
    """
    kept = {folder: os.open(folder, os.O_RDONLY) for folder in sorted(behind)}
    mount("-t", "tmpfs", "-o", "mode=755", "tmpfs", barrier)
    for folder, handle in kept.items():
        folder.mkdir(parents=True, exist_ok=True)
        mount("--no-canonicalize", "--bind", f"/proc/{os.getpid()}/fd/{handle}", folder)


def mount(*arguments):
    """
    One mount, in this namespace.
    """
    subprocess.run(["mount", *map(str, arguments)], check=True)


if __name__ == "__main__":
    main()
