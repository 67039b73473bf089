"""
Let memory forget the files of folders, so that what is read next comes from the disk.

    python -I -S forget.py FOLDER...

What still waits to be written is written first.  Files that go meanwhile are left out.
"""

from __future__ import annotations

import os
import sys

from contextlib import suppress
from pathlib import Path


def main() -> None:
    """Go through the folders of the command line."""
    for folder in sys.argv[1:]:
        for here, _, names in os.walk(folder):
            for name in names:
                with suppress(OSError):
                    forget(Path(here, name))


def forget(file: Path) -> None:
    """Write what waits, and let go what memory holds of one file."""
    handle = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        os.fdatasync(handle)
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(handle)


if __name__ == "__main__":
    main()
