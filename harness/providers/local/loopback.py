"""
A cluster on the loopback address alone, for machines that let nobody make namespaces.

All nodes are this machine and differ by their ports.  Jobs run as they do elsewhere; what is lost
is in `LOSSES`.
"""

from __future__ import annotations

import os
import random
import socket
import subprocess

from contextlib import ExitStack
from functools import cache
from pathlib import Path

from harness.errors import MachineError
from harness.hadoop.layout import BLOCK_PORTS
from harness.providers.local import namespace

VARIABLE = "HARNESS_LOCAL_NETWORK"
LOSSES = (
    "all nodes share one address: every read counts as local, and locality means nothing",
    "no byte crosses a network: shuffle and replication cost less than between machines",
    "a node's network cannot be limited",
    "shuffle and application masters listen on all addresses of this machine while it is up",
    "after kill -9 of both holding processes, tasks of a running job last until the next command",
)
# Below what the kernel gives to connections (net.ipv4.ip_local_port_range), above most services.
_LOWEST, _HIGHEST = 20_000, 32_000
_TRIES = 50


def reason() -> str:
    """
    Why a cluster on this machine must do without namespaces; empty: it need not.

    ``HARNESS_LOCAL_NETWORK=ports`` asks for it.
    """
    if os.environ.get(VARIABLE) == "ports":
        return f"{VARIABLE}=ports"
    return _refusal()


@cache
def _refusal() -> str:
    """Why the kernel makes none for this user; empty where it does, or where tools are missing."""
    if namespace.find_tool("unshare") is None:
        return ""
    try:
        done = subprocess.run(
            namespace.make_argv(["true"], as_root=os.geteuid() == 0), check=False,
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30,
            errors="replace", env={"PATH": namespace.search_path(), "LC_ALL": "C"},
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return ""  # the start itself will say what is wrong
    error = namespace.refusal(done.stderr) if done.returncode else None
    return f"{error.what} ({error.fix})" if error else ""


def free_ports(members: int) -> int:
    """
    First of a block of ports, `BLOCK_PORTS` for each of so many *members*, on which nobody listens.

    `MachineError` where there is none.  Nothing keeps others from taking one of them meanwhile.
    """
    size = members * BLOCK_PORTS
    for _ in range(_TRIES):
        first = random.randrange(_LOWEST, max(_LOWEST + 1, _HIGHEST - size))  # noqa: S311 - any will do
        if _all_free(range(first, first + size)):
            return first
    raise MachineError(
        f"no {size} ports in a row are free between {_LOWEST} and {_HIGHEST}",
        where="loopback address",
        fix="lower cluster.workers, or end what listens there (ss -ltn)",
    )


def _all_free(ports: range) -> bool:
    with ExitStack() as stack:
        for port in ports:
            listener = stack.enter_context(socket.socket())
            try:
                listener.bind(("127.0.0.1", port))
            except OSError:
                return False
    return True


def below(pid: int) -> set[int]:
    """Processes that *pid* has started, and theirs."""
    children: dict[int, set[int]] = {}
    for entry in Path("/proc").iterdir():
        try:
            stat = (entry / "stat").read_text(errors="replace") if entry.name.isdigit() else ""
        except OSError:
            continue
        if stat:
            children.setdefault(int(stat.rpartition(")")[2].split()[1]), set()).add(int(entry.name))
    found, waiting = set[int](), [pid]
    while waiting:
        more = children.get(waiting.pop(), set()) - found
        found |= more
        waiting += more
    return found
