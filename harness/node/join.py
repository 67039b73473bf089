"""
Run a command as a process of a node: in the node's control groups.

    python -I -S join.py GROUP... -- COMMAND ARGUMENT...      (GROUP: a file cgroup.procs)
"""

from __future__ import annotations

import os
import sys

from pathlib import Path


def main() -> None:
    """Join, and turn into the command."""
    place = sys.argv.index("--")
    groups, argv = sys.argv[1:place], sys.argv[place + 1 :]
    for group in groups:
        Path(group).write_text("0")
    os.execvp(argv[0], argv)  # noqa: S606 - no shell is meant


if __name__ == "__main__":
    main()
