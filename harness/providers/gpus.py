"""
GPUs that a node really has, asked through its own door.

The driver's tool describes them.  Where it is missing, device files count if the driver's library
is there: a task cannot use a device without it.
"""

from __future__ import annotations

import re
import subprocess

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from harness.errors import ClusterError
from harness.providers.host import Completed, Host, printable
from harness.providers.versions import short
from harness.units import MIB

LIBRARY = "libcuda.so.1"
_LIMIT_S = 20.0
_MOST_DEVICES, _MOST_LINKS, _MOST_OUTPUT, _MOST_WORDS = 64, 64, 2**16, 300
_DEVICE = re.compile(r"^/dev/(nvidia\d+)$", re.MULTILINE)
_LIBRARY = re.compile(rf"^\s*{re.escape(LIBRARY)} .*=> (/\S+)$", re.MULTILINE)
# a name may hold commas, so it stands between fields that do not
_ASKED = (
    "index", "name", "memory.total", "driver_version", "pcie.link.gen.max",
    "pcie.link.gen.current", "pcie.link.width.max", "pcie.link.width.current",
)  # fmt: skip
_LINKS_OF = re.compile(r"GPU (\d{1,4}):")
_LINK = re.compile(r"\s+Link \d{1,4}: (\d{1,6}(?:\.\d{1,6})?) GB/s\s*")

Run = Callable[[Sequence[str]], Completed]


@dataclass(frozen=True, slots=True)
class Gpu:
    """
    One device; what the driver does not tell is `None`.

    A PCIe link has a generation and a number of lanes (width): the most that device and machine can
    have together, and what was there when the driver was asked; an idle device has less.
    *nvlink_gb_per_s* is the rate of each NVLink that is up, one way, as the driver tells it.
    """

    name: str
    memory_bytes: int | None = None
    driver: str | None = None
    pcie_generation_max: int | None = None
    pcie_generation: int | None = None
    pcie_width_max: int | None = None
    pcie_width: int | None = None
    nvlink_gb_per_s: tuple[float, ...] | None = None


@dataclass(frozen=True, slots=True)
class Devices:
    """
    GPUs of one node, and the file of the driver's library (empty: it is not there).

    *said* is what the driver's tool answered where it failed, or told of a device that is lost.
    """

    gpus: tuple[Gpu, ...]
    driver: str
    said: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the devices."""
        return tuple(gpu.name for gpu in self.gpus)

    def described(self) -> dict[str, Any]:
        """The same as plain values; what is not known is left out."""
        facts: dict[str, Any] = {
            "devices": [
                {key: value for key, value in asdict(gpu).items() if value is not None}
                for gpu in self.gpus
            ],
            "library": self.driver,
        }
        return facts | ({"message": self.said} if self.said else {})


def find_devices(run: Run) -> Devices:
    """
    Look for GPUs with *run*, which runs a command on the node.

    A command that is missing or hangs tells nothing; it is no error.
    """
    driver = driver_file(_asked(run, ["ldconfig", "-p"]).out)
    query = f"--query-gpu={','.join(_ASKED)}"
    tool = _asked(run, ["nvidia-smi", query, "--format=csv,noheader,nounits"])
    if tool.status == 0:
        return _told(run, tool.out, driver)
    files = _asked(run, ["find", "/dev", "-maxdepth", "1", "-name", "nvidia[0-9]*"])
    names = sorted(_DEVICE.findall(files.out))[:_MOST_DEVICES] if driver else ()
    return Devices(tuple(Gpu(name) for name in names), driver, words(tool.out or tool.err))


def find_on(host: Host) -> Devices:
    """Look for GPUs of *host* through its door; one that does not answer has none, and says why."""
    return find_devices(lambda argv: host.run(argv, _LIMIT_S))


def words(text: str) -> str:
    """The first line of what a program says, short and safe to print."""
    return printable(text).strip().partition("\n")[0][:_MOST_WORDS]


def driver_file(listing: str) -> str:
    """Path of the driver's library in what ``ldconfig -p`` lists, empty where it is not there."""
    match = _LIBRARY.search(listing)
    return printable(match[1]) if match else ""


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


def _told(run: Run, listing: str, driver: str) -> Devices:
    """What the driver's tool tells of devices; a line that tells of none is kept as words."""
    lines = [line for line in listing[:_MOST_OUTPUT].splitlines() if line.strip()]
    read = [_device(line) for line in lines[:_MOST_DEVICES]]
    found = dict(filter(None, read))
    strange = next((line for line, one in zip(lines, read, strict=False) if one is None), "")
    links = _links(_asked(run, ["nvidia-smi", "nvlink", "--status"])) if found else {}
    gpus = (replace(gpu, nvlink_gb_per_s=links.get(at)) for at, gpu in found.items())
    return Devices(tuple(gpus), driver, words(strange))


def _device(line: str) -> tuple[int, Gpu] | None:
    """Number and description of a device; nothing where the line is not as it was asked for."""
    fields = line.split(",")
    index, name = _number(fields[0]), short(",".join(fields[1 : 2 - len(_ASKED)]))
    if len(fields) < len(_ASKED) or index is None or not name:
        return None
    memory, driver, *link = fields[2 - len(_ASKED) :]
    mib, version = _number(memory), short(driver)
    most, now, width_most, width = map(_number, link)
    gpu = Gpu(
        name,
        memory_bytes=None if mib is None else mib * MIB,
        driver=version if re.match(r"[0-9]", version) else None,
        pcie_generation_max=most,
        pcie_generation=now,
        pcie_width_max=width_most,
        pcie_width=width,
    )
    return index, gpu


def _number(text: str) -> int | None:
    """A whole number; nothing for ``[N/A]``, ``[Not Supported]`` and all else."""
    return int(text) if re.fullmatch(r" *[0-9]{1,9} *", text) else None


def _links(done: Completed) -> dict[int, tuple[float, ...]]:
    """Rates of the NVLinks that are up, by the device's number."""
    found: dict[int, tuple[float, ...]] = {}
    device = None
    for line in done.out[:_MOST_OUTPUT].splitlines() if done.status == 0 else ():
        if head := _LINKS_OF.match(line):
            device = int(head[1])
        elif device is not None and (link := _LINK.fullmatch(line)):
            found[device] = (*found.get(device, ()), float(link[1]))[:_MOST_LINKS]
    return found


def _asked(run: Run, argv: Sequence[str]) -> Completed:
    try:
        return run(argv)
    except ClusterError as error:  # it hangs, as a driver that lost its device does
        return Completed(tuple(argv), 127, "", error.what)
    except OSError as error:  # a door without a shell behind it: there is no such command
        return Completed(tuple(argv), 127, "", str(error))
