"""
Undo all that the harness has brought to a host, whatever of it is there; safe to repeat.

    node.pyz clear PLAN                     prints ``cleared`` where there was something
    python3 -I -S -c SOURCE clear - < PLAN  the same, also where the agent is no more, or not yet

This file imports nothing of the agent, as its text is what runs then.  The plan needs these fields:

    cluster, folder    its name, and its folder on this host
    base               our folder on this host, of all clusters
    owner              whose it is; empty: whoever's.  What is another's is left alone
    unit               the service of systemd that runs the supervisor, or empty
    user               the account of its processes where root prepared the host, or empty
    keep               whether Hadoop, Java and the account stay
"""

import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
import time

from contextlib import suppress
from pathlib import Path
from typing import Any, Dict, List, Optional, Set

_LIMIT_S = 30.0
_PAUSE_S = 0.02
_TRIES = 5
_TRY_PAUSE_S = 2.0
_HOSTS = Path("/etc/hosts")
_UNITS = Path("/etc/systemd/system")


def main(arguments: List[str]) -> None:
    """Clear this host of the cluster of a plan file."""
    plan = json.loads(sys.stdin.read() if arguments == ["-"] else Path(arguments[0]).read_text())
    if plan["unit"] and _is_owned(plan):
        _succeeds("systemctl", "stop", plan["unit"])
    if clear(plan):
        print("cleared")


def _is_owned(plan: Dict[str, Any]) -> bool:
    """Whether the cluster's folder, if there is one, is the owner's whose plan it is."""
    try:
        owner = Path(plan["folder"], "owner").read_text(errors="replace").strip()
    except OSError:
        return True
    return plan["owner"] in ("", owner)


def clear(plan: Dict[str, Any]) -> bool:
    """
    End the processes of the plan's cluster, and remove what is there of it; whether there was.

    A supervisor may call it at its own end: its own process, and those above it, are left.
    """
    if not _is_owned(plan):
        return False
    folder = Path(plan["folder"])
    base = Path(plan["base"])
    clusters = {path.name for path in (base / "clusters").glob("*")}
    is_last = not clusters - {folder.name}
    user_id = None
    # of the account that we made: another user's processes may be anything
    if is_last and plan["user"] == "mapreduce-harness":
        with suppress(KeyError):
            user_id = pwd.getpwnam(plan["user"]).pw_uid
    was_there = folder.exists()
    was_there |= _end_processes(plan["folder"], user_id)
    if os.geteuid() == 0:
        was_there |= _undo_as_root(plan)
    _remove(folder)
    if is_last and not plan["keep"] and base.exists():
        if (base / "account-made").exists():
            _succeeds("userdel", plan["user"])
            _succeeds("groupdel", plan["user"])  # it may have gone with the user
        _remove(base)
        was_there = True
    return was_there


def _end_processes(folder: str, user_id: Optional[int]) -> bool:
    """Kill what `_processes` finds until it finds nothing; whether there was a process."""
    deadline = time.monotonic() + _LIMIT_S
    processes = _processes(folder, user_id)
    was_running = bool(processes)
    while processes:
        if time.monotonic() > deadline:
            raise SystemExit(f"processes {sorted(processes)} do not end")
        for process_id in processes:
            with suppress(ProcessLookupError):
                os.kill(process_id, signal.SIGKILL)
        time.sleep(_PAUSE_S)
        processes = _processes(folder, user_id)
    return was_running


def _processes(folder: str, user_id: Optional[int]) -> Set[int]:
    """Processes that name the folder or are that user's, without ourselves and those above us."""
    parent_of: Dict[int, int] = {}
    processes = set()
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()
            parent_of[int(entry.name)] = int(words[1])
            user = entry.stat().st_uid
            command_line = (entry / "cmdline").read_bytes()
            names_it = f"{folder}/".encode() in command_line and os.geteuid() in (0, user)
            if words[0] not in "ZX" and (names_it or user == user_id):
                processes.add(int(entry.name))
    process_id = os.getpid()
    while process_id:
        processes.discard(process_id)
        process_id = parent_of.get(process_id, 0)
    return processes


def _undo_as_root(plan: Dict[str, Any]) -> bool:
    """Remove packet filter, names and unit; whether there was one of them."""
    marked = f"mapreduce-harness {plan['cluster']}\n"
    was_there = _succeeds("nft", "delete", "table", "inet", f"mapreduce-harness-{plan['cluster']}")
    names = _HOSTS.read_text(errors="surrogateescape")
    names_before, begin, behind_begin = names.partition(f"# BEGIN {marked}")  # as Ansible marks it
    _, end, names_after = behind_begin.partition(f"# END {marked}")
    if begin and end:
        # a container's file of names cannot be replaced, only written
        _HOSTS.write_text(names_before + names_after, errors="surrogateescape")
        was_there = True
    if plan["unit"] and (_UNITS / plan["unit"]).exists():
        (_UNITS / plan["unit"]).unlink()
        _succeeds("systemctl", "daemon-reload")
        was_there = True
    return was_there


def _succeeds(name: str, *arguments: str) -> bool:
    """Whether one of root's tools is there, and ends with status 0."""
    program = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin") or ""
    null = subprocess.DEVNULL
    return bool(program) and not subprocess.call([program, *arguments], stdout=null, stderr=null)


def _remove(folder: Path) -> None:
    """Remove a folder; a start that was cut off may still write into it for a moment."""
    for _ in range(_TRIES):
        shutil.rmtree(str(folder), ignore_errors=True)
        if not folder.exists():
            return
        time.sleep(_TRY_PAUSE_S)
    raise SystemExit(f"{folder} cannot be removed")


if __name__ == "__main__":  # the text itself
    main(sys.argv[2:])
