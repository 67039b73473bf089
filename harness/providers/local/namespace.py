"""Command lines that make and enter a cluster's namespaces, and what they need of the machine."""

from __future__ import annotations

import os
import shutil

from collections.abc import Sequence
from pathlib import Path

from harness.errors import ClusterError, MachineError
from harness.providers.state import ClusterState, Process

_REFUSALS = ("unshare failed", "write failed", "mount /proc failed", "cannot open /proc/self")
TOOLS = {
    "unshare": "util-linux", "nsenter": "util-linux", "setpriv": "util-linux", "mount": "mount",
    "ip": "iproute2",
}  # fmt: skip


def require_tools() -> None:
    """`MachineError` naming every command that is missing, and the packages that bring them."""
    missing = [tool for tool in TOOLS if find_tool(tool) is None]
    if missing:
        packages = sorted({TOOLS[tool] for tool in missing})
        raise MachineError(
            f"missing commands: {', '.join(missing)}",
            where="PATH",
            fix=f"apt-get install -y {' '.join(packages)}",
        )


def find_tool(tool: str) -> str | None:
    """Where a command is: an ordinary user's PATH may lack the folders of ``ip``."""
    return shutil.which(tool, path=search_path())


def search_path() -> str:
    """PATH with the system folders behind it."""
    return os.environ.get("PATH", "") + ":/usr/sbin:/usr/bin:/sbin:/bin"


def make_argv(argv: Sequence[str], *, as_root: bool) -> list[str]:
    """*argv* as first process of new network, mount and process namespaces."""
    spaces = ["-nmu"] if as_root else ["-Urnmu"]
    rest = ["--propagation", "private", "--fork", "--pid", "--kill-child", "--mount-proc"]
    return ["unshare", *spaces, *rest, *argv]


def enter_argv(state: ClusterState, node: int | None, argv: Sequence[str]) -> list[str]:
    """
    *argv* on node number *node* of a running cluster; without a node, where their links meet.

    ``nsenter`` stays outside and waits; when it is killed, the command inside is killed too.
    """
    first = entrance(state)
    doors = {} if node is None else state.doors[node]
    net, uts = (f"fd/{doors[kind]}" if doors else f"ns/{kind}" for kind in ("net", "uts"))
    user = [f"--user=/proc/{first.pid}/ns/user", "--preserve-credentials"]
    return [
        "nsenter", *(user if state.user_namespace else []),
        f"--mount=/proc/{first.pid}/ns/mnt", f"--pid=/proc/{first.pid}/ns/pid",
        f"--net=/proc/{first.pid}/{net}", f"--uts=/proc/{first.pid}/{uts}",
        "--", "setpriv", "--pdeathsig", "KILL", "--", *argv,
    ]  # fmt: skip


def entrance(state: ClusterState) -> Process:
    """The first process inside; `ClusterError` when it has ended."""
    if state.inner is None or not state.inner.alive():
        raise ClusterError(
            f"cluster {state.name!r} is not running",
            where="its first process has ended",
            fix="harness cluster down; harness cluster up",
        )
    return state.inner


def refusal(said: str) -> MachineError | None:
    """The error for a kernel that lets this user make no namespaces; `None` for other words."""
    if not any(f"unshare: {what}" in said for what in _REFUSALS):
        return None
    settings = {
        "/proc/sys/kernel/unprivileged_userns_clone": ("0", "1"),
        "/proc/sys/kernel/apparmor_restrict_unprivileged_userns": ("1", "0"),
        "/proc/sys/user/max_user_namespaces": ("0", "10000"),
        "/proc/sys/user/max_net_namespaces": ("0", "10000"),
    }
    for file, (closed, opened) in settings.items():
        if _content(file) == closed:
            name = file.removeprefix("/proc/sys/").replace("/", ".")
            return MachineError(
                f"this kernel refuses namespaces: {name} = {closed}",
                where=said,
                fix=f"sudo sysctl -w {name}={opened}",
            )
    return MachineError(
        "this machine refuses namespaces",
        where=said,
        fix="run as root, or in a container with --privileged",
    )


def _content(file: str) -> str:
    try:
        return Path(file).read_text().strip()
    except OSError:
        return ""
