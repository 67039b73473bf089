"""Signals, orphans and descendants: what supervisors and the exec wrapper need of processes."""

import os
import signal
import time

from contextlib import contextmanager, suppress
from typing import Any, Dict, Iterator, List, Optional

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_PAUSE_S = 0.01


def catch_signals(*numbers: int) -> int:
    """Descriptor from which the number of each of these signals can be read, a byte each."""
    reading, writing = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    signal.set_wakeup_fd(writing)
    for number in numbers:
        signal.signal(number, lambda *_: None)
    return reading


def adopt_orphans() -> None:
    """Become the parent of every process below us that loses its own parent."""
    call_libc("prctl", _PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def call_libc(name: str, *arguments: Any) -> None:
    """Call a function of the C library that returns 0, or raise `OSError`."""
    import ctypes

    if getattr(ctypes.CDLL(None, use_errno=True), name)(*arguments) != 0:
        raise OSError(ctypes.get_errno(), name)


def die_with_parent(parent: int, number: int) -> None:
    """Have the kernel send us signal *number* when our parent ends."""
    call_libc("prctl", _PR_SET_PDEATHSIG, number, 0, 0, 0)
    if os.getppid() != parent:
        raise ProcessLookupError(parent)


def drop_to(account: Optional[Dict[str, int]]) -> None:
    """Run under the plain account with this ``uid`` and ``gid`` from now on; `None`: as before."""
    if account:
        os.setgroups([])
        os.setgid(account["gid"])
        os.setuid(account["uid"])


@contextmanager
def acting_as(account: Optional[Dict[str, int]]) -> Iterator[None]:
    """Make sockets that are those of the *account*; `None`: as before.  Read no file meanwhile."""
    if account:
        os.seteuid(account["uid"])
    try:
        yield
    finally:
        if account:
            os.seteuid(0)


def end_descendants() -> None:
    """Kill every process below us, and those that they leave, until there are none."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        descendants = descendants_of(os.getpid())
        if not descendants:
            return
        for process_id in descendants:
            with suppress(ProcessLookupError):
                os.kill(process_id, signal.SIGKILL)
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        time.sleep(_PAUSE_S)


def parents() -> Dict[int, int]:
    """Id of every process, also of ended ones that nobody has collected -> that of its parent."""
    parent_of = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with suppress(OSError), open(f"/proc/{entry}/stat", errors="replace") as stat_file:
                parent_of[int(entry)] = int(stat_file.read().rpartition(")")[2].split()[1])
    return parent_of


def descendants_of(root: int) -> List[int]:
    """Ids of the processes below *root*."""
    children: Dict[int, List[int]] = {}
    for process_id, parent in parents().items():
        children.setdefault(parent, []).append(process_id)
    descendants: List[int] = []
    waiting = [root]
    while waiting:
        below = children.pop(waiting.pop(), [])
        descendants += below
        waiting += below
    return descendants
