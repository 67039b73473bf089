"""
Whom a local cluster runs as: never root, also where the harness is root.

With namespaces it is an account of its own, which the cluster's ``/etc/passwd`` alone knows (Java's
login fails for one without an entry); without them it is ``nobody``.  An ordinary user's clusters
run as that user.
"""

from __future__ import annotations

import os
import pwd
import re

from collections.abc import Sequence
from pathlib import Path

from harness.base.errors import MachineError
from harness.clusters.node.account import closed_folder, is_open

OWN = "harness"
_OWN_ID = 65_530  # outside of what distributions, systemd and subordinate ids use
_NEEDED_CAPABILITIES = {0: "CHOWN", 6: "SETGID", 7: "SETUID"}
_ENTRIES = {
    "passwd": f"{OWN}:x:{_OWN_ID}:{_OWN_ID}::/nonexistent:/usr/sbin/nologin\n",
    "group": f"{OWN}:x:{_OWN_ID}:\n",
}


def choose(*, flat: str) -> dict[str, int] | None:
    """
    The account that daemons, tasks and clients change to; `None` for an ordinary user's own.

    *flat* says why there are no namespaces; `MachineError` where no account is fit for it.
    """
    if os.geteuid() != 0 or not _has_account(_OWN_ID):
        try:
            if flat:  # else they are called root in namespaces of their own
                pwd.getpwuid(os.geteuid())
        except KeyError:
            raise MachineError(
                f"user {os.geteuid()} has no entry in /etc/passwd, which Hadoop's login needs",
                where=f"a cluster without namespaces: {flat}",
                fix="add the entry, or run where namespaces can be made: they bring their own",
            ) from None
        return None
    status = Path("/proc/self/status").read_text()
    capabilities = int(re.findall(r"^CapEff:\s*(\w+)$", status, re.MULTILINE)[0], 16)
    needed = _NEEDED_CAPABILITIES.items()
    if missing := [name for bit, name in needed if not capabilities >> bit & 1]:
        raise MachineError(
            f"root lacks the capabilities {', '.join(missing)}, and no daemon is to run as root",
            where="CapEff in /proc/self/status",
            fix="run as an ordinary user, or add the capabilities to the container",
        )
    if not flat:
        return {"uid": _OWN_ID, "gid": _OWN_ID}
    nobody = pwd.getpwnam("nobody")
    return {"uid": nobody.pw_uid, "gid": nobody.pw_gid}


def _has_account(number: int) -> bool:
    """Whether our user namespace has that id: it may know one user alone, who is called root."""
    lines = Path("/proc/self/uid_map").read_text().splitlines()
    ranges = [map(int, line.split()) for line in lines]
    return any(first <= number < first + count for first, _, count in ranges)


def require_ways(paths: Sequence[Path], account: dict[str, int], *, flat: str) -> None:
    """`MachineError` that names one of *paths* which the account cannot reach, nor be shown."""
    for path in map(str, paths):
        closed = closed_folder(path, account) if flat else None
        if not is_open(os.path.realpath(path), account):
            closed = path
        if closed:
            raise MachineError(
                f"daemons do not run as root, and their account cannot enter {closed}",
                where=path,
                fix=f"chmod a+rX {closed}, or have it elsewhere: XDG_STATE_HOME, JAVA_HOME,"
                " HARNESS_HADOOP_HOME",
            )


def add_entries(folder: Path) -> None:
    """Write the machine's ``passwd`` and ``group``, with the account of our own, into *folder*."""
    for file_name, entry in _ENTRIES.items():
        machine_file = Path("/etc", file_name)
        text = machine_file.read_text(errors="surrogateescape") if machine_file.is_file() else ""
        (folder / file_name).write_text(entry + text, errors="surrogateescape")


def hand_over(folder: Path, account: dict[str, int], parts: Sequence[str]) -> None:
    """Give *parts* of a cluster's folder to the account, which alone may also enter it."""
    os.chown(folder, -1, account["gid"])
    folder.chmod(0o710)
    for part in parts:
        for parent, _, file_names in os.walk(folder / part):
            for name in ("", *file_names):
                os.chown(Path(parent, name), account["uid"], account["gid"], follow_symlinks=False)
