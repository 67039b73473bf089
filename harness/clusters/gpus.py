"""
GPUs that a node really has, asked through its own door.

The driver's tool lists them.  Where it is missing, device files count if the driver's library is
there: a task cannot use a device without it.
"""

from __future__ import annotations

import re
import subprocess

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from harness.clusters.host import Completed, printable
from harness.errors import ClusterError

LIBRARY = "libcuda.so.1"
_LIMIT_S = 20.0
_LISTED = re.compile(r"^GPU \d+: (.+?)(?: \(UUID: .*\))?$", re.MULTILINE)
_DEVICE = re.compile(r"^/dev/(nvidia\d+)$", re.MULTILINE)
_LIBRARY = re.compile(rf"^\s*{re.escape(LIBRARY)} .*=> (/\S+)$", re.MULTILINE)

Run = Callable[[Sequence[str]], Completed]


@dataclass(frozen=True, slots=True)
class Devices:
    """
    GPUs of one node by their names, and the file of the driver's library (empty: it is not there).

    *said* is what the driver's tool answered where it failed.
    """

    names: tuple[str, ...]
    driver: str
    said: str = ""


def find_devices(run: Run) -> Devices:
    """
    Look for GPUs with *run*, which runs a command on the node.

    A command that is missing or hangs tells nothing; it is no error.
    """
    driver = driver_file(_asked(run, ["ldconfig", "-p"]).out)
    tool = _asked(run, ["nvidia-smi", "-L"])
    if tool.status == 0:
        return Devices(tuple(printable(n) for n in _LISTED.findall(tool.out)), driver)
    files = _asked(run, ["find", "/dev", "-maxdepth", "1", "-name", "nvidia[0-9]*"])
    names = sorted(_DEVICE.findall(files.out)) if driver else ()
    said = printable((tool.out or tool.err).strip().partition("\n")[0])
    return Devices(tuple(names), driver, said)


def driver_file(listing: str) -> str:
    """Path of the driver's library in what ``ldconfig -p`` lists, empty where it is not there."""
    match = _LIBRARY.search(listing)
    return match[1] if match else ""


def here(argv: Sequence[str]) -> Completed:
    """Run a command on this machine; a missing one has status 127, as in a shell."""
    try:
        done = subprocess.run(
            argv, check=False, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            errors="replace", timeout=_LIMIT_S,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return Completed(tuple(argv), 127, "", str(error))
    return Completed(tuple(argv), done.returncode, done.stdout, done.stderr)


def _asked(run: Run, argv: Sequence[str]) -> Completed:
    try:
        return run(argv)
    except ClusterError as error:  # it hangs, as a driver that lost its device does
        return Completed(tuple(argv), 127, "", error.what)
