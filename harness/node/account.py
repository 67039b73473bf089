"""Ways for a plain account: what it needs may lie below a folder that it cannot enter."""

import os
import stat

from pathlib import Path
from typing import Dict, Iterable, Optional

from .processes import call_libc

_MS_BIND = 4096
_MS_REC = 16384


def is_open(path: str, account: Dict[str, int]) -> bool:
    """Whether the account may enter the folder, or read the file, by its mode."""
    facts = os.stat(path)
    shift = 6 if facts.st_uid == account["uid"] else 3 if facts.st_gid == account["gid"] else 0
    return bool(facts.st_mode >> shift & (1 if stat.S_ISDIR(facts.st_mode) else 4))


def closed_folder(path: str, account: Dict[str, int]) -> Optional[str]:
    """The topmost folder on the way to *path*, or that itself, which is closed to the account."""
    way = [*reversed(Path(path).parents), Path(path)]
    return next((str(folder) for folder in way if not is_open(str(folder), account)), None)


def open_ways(paths: Iterable[str], account: Dict[str, int]) -> None:
    """
    In our mount namespace, let the account reach *paths*, and nothing beside them.

    An empty folder is laid over each closed one, and in it the paths appear where they were.
    """
    # also where links lead: both ways are gone
    named = sorted({name for path in paths for name in (path, os.path.realpath(path))})
    opened = {path: os.open(path, os.O_PATH) for path in named}
    closed = {path: closed_folder(path, account) for path in named}
    for folder in set(filter(None, closed.values())):
        call_libc("mount", b"tmpfs", folder.encode(), b"tmpfs", 0, b"mode=755,size=1m")
    for path, handle in opened.items():
        if closed[path]:
            is_folder = os.path.isdir(f"/proc/self/fd/{handle}")
            os.makedirs(path if is_folder else os.path.dirname(path), exist_ok=True)
            if not is_folder and not os.path.exists(path):
                os.mknod(path)
            source = f"/proc/self/fd/{handle}".encode()
            call_libc("mount", source, path.encode(), None, _MS_BIND | _MS_REC, None)
        os.close(handle)
