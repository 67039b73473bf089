"""
A cluster on the loopback address alone, for machines that let nobody make namespaces.

All nodes are this machine and differ by their ports.  Jobs run as they do elsewhere; what such a
cluster cannot show is in `LIMITATIONS`.
"""

from __future__ import annotations

import os
import random
import socket
import subprocess

from contextlib import ExitStack
from functools import cache

from harness.errors import MachineError
from harness.hadoop.layout import BLOCK_PORTS
from harness.providers.local import namespace

VARIABLE = "HARNESS_LOCAL_NETWORK"
LIMITATIONS = (
    "all nodes share one address: every read counts as local, and locality means nothing",
    "no byte crosses a network: shuffle and replication cost less than between machines",
    "a node's network cannot be limited",
    "shuffle and application masters listen on all addresses of this machine while it is up",
    "after kill -9 of both supervisors, tasks of a running job last until the next command",
)
# Below what the kernel gives to connections (net.ipv4.ip_local_port_range), above most services.
_LOWEST, _HIGHEST = 20_000, 32_000
_TRIES = 50


def reason() -> str:
    """
    Why a cluster on this machine must do without namespaces; empty where it need not.

    ``HARNESS_LOCAL_NETWORK=ports`` requests it.
    """
    if os.environ.get(VARIABLE) == "ports":
        return f"{VARIABLE}=ports"
    return kernel_refusal()


@cache
def kernel_refusal() -> str:
    """Why the kernel makes none for this user; empty where it does, or where tools are missing."""
    if namespace.find_tool("unshare") is None:
        return ""
    try:
        process = subprocess.run(
            namespace.make_argv(["true"], as_root=os.geteuid() == 0), check=False,
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30,
            errors="replace", env={"PATH": namespace.search_path(), "LC_ALL": "C"},
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return ""  # the start itself will report it
    error = namespace.refusal_error(process.stderr) if process.returncode else None
    return f"{error.what} ({error.fix})" if error else ""


def free_ports(members: int) -> int:
    """
    First of a block of ports, `BLOCK_PORTS` for each of so many *members*, on which nobody listens.

    `MachineError` where there is none.  Nothing keeps others from taking one of them meanwhile.
    """
    port_count = members * BLOCK_PORTS
    for _ in range(_TRIES):
        first_port = random.randrange(_LOWEST, max(_LOWEST + 1, _HIGHEST - port_count))  # noqa: S311 - any will do
        with ExitStack() as stack:
            try:
                for port in range(first_port, first_port + port_count):
                    stack.enter_context(socket.socket()).bind(("127.0.0.1", port))
            except OSError:
                continue
            return first_port
    raise MachineError(
        f"no {port_count} ports in a row are free between {_LOWEST} and {_HIGHEST}",
        where="loopback address",
        fix="lower cluster.workers, or end what listens there (ss -ltn)",
    )
