"""
GPUs that a node really has, as its own commands report them.

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
from harness.providers.host import Completed, Host
from harness.text import excerpt
from harness.units import MIB

LIBRARY = "libcuda.so.1"
_LIMIT_S = 20.0
_MOST_DEVICES, _MOST_LINKS, _MOST_OUTPUT, _MOST_MESSAGE, _MOST_NAME = 64, 64, 2**16, 300, 80
_DEVICE = re.compile(r"^/dev/(nvidia\d+)$", re.MULTILINE)
_LIBRARY = re.compile(rf"^\s*{re.escape(LIBRARY)} .*=> (/\S+)$", re.MULTILINE)
# a name may hold commas, so it stands between fields that do not
_FIELDS = (
    "index", "name", "memory.total", "driver_version", "pcie.link.gen.max",
    "pcie.link.gen.current", "pcie.link.width.max", "pcie.link.width.current",
)  # fmt: skip
_LINKS_OF = re.compile(r"GPU (\d{1,4}):")
_LINK = re.compile(r"\s+Link \d{1,4}: (\d{1,6}(?:\.\d{1,6})?) GB/s\s*")

Run = Callable[[Sequence[str]], Completed]


@dataclass(frozen=True, slots=True)
class Gpu:
    """
    One device; what the driver does not report is `None`.

    A PCIe link has a generation and a number of lanes (width): the most that device and machine can
    have together, and what there was when the driver was queried; an idle device has less.
    *nvlink_gb_per_s* is the rate of each NVLink that is up, one way, as the driver reports it.
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

    *message* is the answer of the driver's tool where it failed, or about a device that is lost.
    """

    gpus: tuple[Gpu, ...]
    driver: str
    message: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the devices."""
        return tuple(device_facts.name for device_facts in self.gpus)

    def described(self) -> dict[str, Any]:
        """The same as plain values; what is not known is left out."""
        facts: dict[str, Any] = {
            "devices": [
                {key: value for key, value in asdict(device).items() if value is not None}
                for device in self.gpus
            ],
            "library": self.driver,
        }
        return facts | ({"message": self.message} if self.message else {})


def find_on(host: Host) -> Devices:
    """GPUs of *host*; one that does not answer has none, and a message why."""
    return find_devices(lambda argv: host.run(argv, _LIMIT_S))


def find_devices(run: Run) -> Devices:
    """
    GPUs of the node on which *run* runs commands.

    A command that is missing or hangs reports nothing; it is not an error.
    """
    driver = driver_file(_output_of(run, ["ldconfig", "-p"]).out)
    query = f"--query-gpu={','.join(_FIELDS)}"
    answer = _output_of(run, ["nvidia-smi", query, "--format=csv,noheader,nounits"])
    if answer.status != 0:
        files = _output_of(run, ["find", "/dev", "-maxdepth", "1", "-name", "nvidia[0-9]*"])
        names = sorted(_DEVICE.findall(files.out))[:_MOST_DEVICES] if driver else ()
        return Devices(tuple(map(Gpu, names)), driver, first_line(answer.out or answer.err))
    lines = [line for line in answer.out[:_MOST_OUTPUT].splitlines() if line.strip()]
    described = [(line, _device(line)) for line in lines[:_MOST_DEVICES]]
    gpus = dict(device for _, device in described if device)
    other = next((line for line, device in described if device is None), "")
    links = _link_rates(_output_of(run, ["nvidia-smi", "nvlink", "--status"])) if gpus else {}
    linked = (replace(device, nvlink_gb_per_s=links.get(index)) for index, device in gpus.items())
    return Devices(tuple(linked), driver, first_line(other))


def _device(output_line: str) -> tuple[int, Gpu] | None:
    """Number and description of a device; `None` for any other line."""
    fields = output_line.split(",")
    index = _number(fields[0])
    name = excerpt(",".join(fields[1 : 2 - len(_FIELDS)]), _MOST_NAME)
    if len(fields) < len(_FIELDS) or index is None or not name:
        return None
    memory, driver, *link_fields = fields[2 - len(_FIELDS) :]
    memory_mib, version = _number(memory), excerpt(driver, _MOST_NAME)
    memory_bytes = None if memory_mib is None else memory_mib * MIB
    driver_version = version if re.match(r"[0-9]", version) else None
    generation_max, generation, width_max, width = map(_number, link_fields)
    links = (generation_max, generation, width_max, width)
    return index, Gpu(name, memory_bytes, driver_version, *links)


def _number(text: str) -> int | None:
    """A whole number; `None` for ``[N/A]``, ``[Not Supported]`` and all else."""
    return int(text) if re.fullmatch(r" *[0-9]{1,9} *", text) else None


def _link_rates(completed: Completed) -> dict[int, tuple[float, ...]]:
    """Rates of the NVLinks that are up, by the device's number."""
    rates: dict[int, tuple[float, ...]] = {}
    device = None
    for output_line in completed.out[:_MOST_OUTPUT].splitlines() if completed.status == 0 else ():
        if head := _LINKS_OF.match(output_line):
            device = int(head[1])
        elif device is not None and (link_fields := _LINK.fullmatch(output_line)):
            rates[device] = (*rates.get(device, ()), float(link_fields[1]))[:_MOST_LINKS]
    return rates


def _output_of(run: Run, argv: Sequence[str]) -> Completed:
    try:
        return run(argv)
    except (ClusterError, OSError) as error:  # it hangs (a lost device), or there is no command
        reason = error.what if isinstance(error, ClusterError) else str(error)
        return Completed(tuple(argv), 127, "", reason)


def here(argv: Sequence[str]) -> Completed:
    """Run a command on this machine; a missing one has status 127, as in a shell."""
    try:
        process = subprocess.run(
            argv, check=False, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            errors="replace", timeout=_LIMIT_S,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return Completed(tuple(argv), 127, "", str(error))
    return Completed(tuple(argv), process.returncode, process.stdout, process.stderr)


def driver_file(listing: str) -> str:
    """Path of the driver's library in the output of ``ldconfig -p``, empty where it is missing."""
    match = _LIBRARY.search(listing)
    return excerpt(match[1], _MOST_MESSAGE) if match else ""


def first_line(text: str) -> str:
    """The first line of a program's output, short and safe to print."""
    return excerpt(text.strip().partition("\n")[0], _MOST_MESSAGE)
