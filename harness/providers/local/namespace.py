"""What making a cluster's namespaces needs of the machine, and the command that makes them."""

from __future__ import annotations

import os
import shutil

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from harness.errors import MachineError

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


def require_tools() -> None:
    """`MachineError` naming every command that is missing, and the packages that bring them."""
    missing = [tool_name for tool_name in TOOLS if find_tool(tool_name) is None]
    if missing:
        packages = sorted({TOOLS[tool_name] for tool_name in missing})
        raise MachineError(
            f"missing commands: {', '.join(missing)}",
            where="PATH",
            fix=f"apt-get install -y {' '.join(packages)}",
        )


def find_tool(tool_name: str) -> str | None:
    """Where a command is: an ordinary user's PATH may lack the folders of ``ip``."""
    return shutil.which(tool_name, path=search_path())


def search_path() -> str:
    """PATH with the system folders behind it."""
    return os.environ.get("PATH", "") + ":/usr/sbin:/usr/bin:/sbin:/bin"


def make_argv(argv: Sequence[str], *, as_root: bool) -> list[str]:
    """*argv* as first process of new network, mount and process namespaces."""
    spaces = ["-nmu"] if as_root else ["-Urnmu"]
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
