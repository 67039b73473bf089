"""
The block device beneath a folder, as its machine names it: one line, empty where there is none.

    python -I -S device.py FOLDER

A partition's disk stands for it: the kernel limits whole disks alone.
"""

from __future__ import annotations

import os
import sys

from pathlib import Path


def main() -> None:
    """Answer."""
    number = Path(sys.argv[1]).stat().st_dev
    sys.stdout.write(device(Path("/sys/dev/block"), os.major(number), os.minor(number)) + "\n")


def device(blocks: Path, major: int, minor: int) -> str:
    """Path of the device with that number, from the kernel's list *blocks*."""
    place = (blocks / f"{major}:{minor}").resolve()
    if not place.is_dir():
        return ""
    if (place / "partition").exists():
        place = place.parent
    return f"/dev/{place.name.replace('!', '/')}"


if __name__ == "__main__":
    main()
