"""
What making a cluster's namespaces needs of the machine, and what a cluster without them does.

Such a one is on the loopback address alone: all nodes are this machine and differ by their ports.
"""

from __future__ import annotations

import os
import random
import shutil
import socket

from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import cache
from pathlib import Path

from harness.base.errors import MachineError
from harness.base.hadoop.daemons import BLOCK_PORTS
from harness.clusters.survey import here

_REFUSALS = ("unshare failed", "write failed", "mount /proc failed", "cannot open /proc/self")
# setting of the kernel -> the value that refuses namespaces, and one that allows them
_SETTINGS = {
    "kernel.unprivileged_userns_clone": ("0", "1"),
    "kernel.apparmor_restrict_unprivileged_userns": ("1", "0"),
    "user.max_user_namespaces": ("0", "10000"),
    "user.max_net_namespaces": ("0", "10000"),
}
TOOLS = {
    "unshare": "util-linux", "nsenter": "util-linux", "setpriv": "util-linux", "mount": "mount",
    "ip": "iproute2",
}  # fmt: skip

VARIABLE = "HARNESS_LOCAL_NETWORK"
LOOPBACK_LIMITATIONS = (
    "all nodes share one address: every read counts as local, and locality means nothing",
    "no byte crosses a network: shuffle and replication cost less than between machines",
    "a node's network cannot be limited",
    "JVMs ask the kernel whose each connection is, which takes some milliseconds",
    "after kill -9 of both supervisors, tasks of a running job last until the next command",
)
# Below what the kernel gives to connections (net.ipv4.ip_local_port_range), above most services.
_LOWEST = 20_000
_HIGHEST = 32_000
_TRIES = 50


def require_tools(tools: Mapping[str, str] = TOOLS, where: str = "PATH") -> None:
    """`MachineError` naming all of *tools* that are missing, and the packages that bring them."""
    missing = [tool_name for tool_name in tools if find_tool(tool_name) is None]
    if missing:
        packages = sorted({tools[tool_name] for tool_name in missing})
        raise MachineError(
            f"missing commands: {', '.join(missing)}",
            where=where,
            fix=f"apt-get install -y {' '.join(packages)}",
        )


def find_tool(tool_name: str) -> str | None:
    """Where a command is: an ordinary user's PATH may lack the folders of ``ip``."""
    return shutil.which(tool_name, path=search_path())


def search_path() -> str:
    """PATH with the system folders behind it."""
    return os.environ.get("PATH", "") + ":/usr/sbin:/usr/bin:/sbin:/bin"


def make_argv(argv: Sequence[str]) -> list[str]:
    """*argv* as first process of new network, mount and process namespaces."""
    spaces = ["-nmu"] if os.geteuid() == 0 else ["-Urnmu"]
    option_words = ["--propagation", "private", "--fork", "--pid", "--kill-child", "--mount-proc"]
    return ["unshare", *spaces, *option_words, *argv]


def refusal_error(stderr: str) -> MachineError | None:
    """The error for a kernel that lets this user make no namespaces; `None` for other messages."""
    if not any(f"unshare: {refusal}" in stderr for refusal in _REFUSALS):
        return None
    for setting_name, (closed, opened) in _SETTINGS.items():
        with suppress(OSError):
            if Path("/proc/sys", *setting_name.split(".")).read_text().strip() == closed:
                return MachineError(
                    f"this kernel refuses namespaces: {setting_name} = {closed}",
                    where=stderr,
                    fix=f"sudo sysctl -w {setting_name}={opened}",
                )
    return MachineError(
        "this machine refuses namespaces",
        where=stderr,
        fix="run as root, or in a container with --privileged",
    )


def loopback_reason() -> str:
    """Why a cluster here must do without namespaces; empty where it need not."""
    if os.environ.get(VARIABLE) == "ports":
        return f"{VARIABLE}=ports"
    return kernel_refusal()


@cache
def kernel_refusal() -> str:
    """Why the kernel makes none for this user; empty where it does, or where tools are missing."""
    if find_tool("unshare") is None:
        return ""
    completed = here(make_argv(["true"]), {"PATH": search_path(), "LC_ALL": "C"})
    # what else it reports, the start itself will report
    error = refusal_error(completed.err) if completed.status else None
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
