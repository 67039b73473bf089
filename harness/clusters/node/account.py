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
    if facts.st_uid == account["uid"]:
        shift = 6
    elif facts.st_gid == account["gid"]:
        shift = 3
    else:
        shift = 0
    needed_bit = stat.S_IXOTH if stat.S_ISDIR(facts.st_mode) else stat.S_IROTH
    return bool(facts.st_mode >> shift & needed_bit)


def closed_folder(path: str, account: Dict[str, int]) -> Optional[str]:
    """The topmost folder on the way to *path*, or that itself, which is closed to the account."""
    from_top = [*reversed(Path(path).parents), Path(path)]
    return next((str(folder) for folder in from_top if not is_open(str(folder), account)), None)


def open_ways(paths: Iterable[str], account: Dict[str, int]) -> None:
    """
    In our mount namespace, let the account reach *paths*, and nothing beside them.

    An empty folder is laid over each closed one, and in it the paths appear where they were.
    """
    wanted = set(paths)
    # also where links lead: both ways are gone
    wanted.update([os.path.realpath(path) for path in wanted])
    handles = {path: os.open(path, os.O_PATH) for path in sorted(wanted)}
    closed = {path: closed_folder(path, account) for path in handles}
    for folder in set(filter(None, closed.values())):
        call_libc("mount", b"tmpfs", folder.encode(), b"tmpfs", 0, b"mode=755,size=1m")
    for path, handle in handles.items():
        if closed[path]:
            _bind(handle, path)
        os.close(handle)


def _bind(handle: int, path: str) -> None:
    """Show the file or folder of *handle* at *path*, which is made where there is none."""
    source = f"/proc/self/fd/{handle}"
    if os.path.isdir(source):
        os.makedirs(path, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if not os.path.exists(path):
            os.mknod(path)
    call_libc("mount", source.encode(), path.encode(), None, _MS_BIND | _MS_REC, None)
