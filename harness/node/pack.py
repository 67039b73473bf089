"""
Send the plain files of a folder to standard output, as a tar.

    node.pyz pack FOLDER WANTED

The names are those below the folder; only files whose whole name matches the pattern WANTED are
sent, up to the size that they had when they were opened: a log may grow.  Links, pipes and devices
are left out, and so is a folder that is not there.
"""

import os
import re
import stat
import sys
import tarfile

from typing import List


def main(arguments: List[str]) -> None:
    """Send all files, in the order of their names."""
    folder, wanted = arguments[0], re.compile(arguments[1])
    try:
        with tarfile.open(fileobj=sys.stdout.buffer, mode="w|") as archive:
            for here, folders, names in os.walk(folder):
                folders.sort()
                for path in (os.path.join(here, name) for name in sorted(names)):
                    if wanted.fullmatch(os.path.relpath(path, folder)):
                        _add(archive, path, os.path.relpath(path, folder))
        sys.stdout.flush()
    except BrokenPipeError:
        sys.stderr.close()  # the reader has gone
        raise SystemExit(1) from None


def _add(archive: tarfile.TarFile, path: str, name: str) -> None:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return  # a link, or gone meanwhile
    with os.fdopen(handle, "rb") as file:
        status = os.fstat(handle)
        if stat.S_ISREG(status.st_mode):
            member = tarfile.TarInfo(name)
            member.size = status.st_size
            archive.addfile(member, file)
