"""
The machine that measures: what it is, how it was used during a trial, whether others disturbed it.

Everything comes from Linux's ``/proc`` and ``/sys``; *root* is another folder in tests.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import threading

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import fmean
from types import TracebackType
from typing import IO, Any, Self

from harness.errors import MachineError
from harness.node import sample
from harness.node.sample import Reading
from harness.records.trace import MachineSample
from harness.units import MIB

# When a trial is marked as disturbed.  Fixed before anything is measured; a marked trial is kept.
MOST_STEAL = 0.05  # mean share of the cores' time that other virtual machines took
MOST_MEMORY_PRESSURE = 0.10  # mean share of time in which some task waited for memory
LEAST_MEMORY = 256 * MIB  # available at any moment: below it the kernel drops caches and swaps
MOST_RUNNABLE = 2.0  # mean runnable threads per core: our containers are no more than the cores


def disturbed(samples: Sequence[MachineSample], cores: int | None = None) -> str:
    """
    Name the rule by which a trial was disturbed, with its numbers, or return nothing.

    Load cannot be told apart by its owner: an experiment that itself runs more containers than
    cores is marked by the last rule, rightly, since its tasks wait for each other.
    """
    if not samples:
        return ""
    steal = fmean(s.steal for s in samples)
    if steal > MOST_STEAL:
        return f"steal {steal:.1%} of the time, above {MOST_STEAL:.0%}"
    pressure = fmean(s.memory_pressure or 0.0 for s in samples)
    if pressure > MOST_MEMORY_PRESSURE:
        return f"memory pressure {pressure:.1%} of the time, above {MOST_MEMORY_PRESSURE:.0%}"
    available = min(s.available_bytes for s in samples)
    if available < LEAST_MEMORY:
        return f"{available / MIB:.0f} MiB of memory available, below {LEAST_MEMORY / MIB:.0f} MiB"
    runnable = fmean(s.runnable for s in samples) / (cores or os.cpu_count() or 1)
    if runnable > MOST_RUNNABLE:
        return f"{runnable:.1f} runnable threads per core, above {MOST_RUNNABLE:g}"
    return ""


def read_counters(root: Path = Path("/proc")) -> Reading:
    """Take one reading; raises `MachineError` where the kernel does not tell."""
    try:
        return sample.read_counters(root)
    except OSError as error:
        raise MachineError(
            f"the machine cannot be sampled: {error.strerror}",
            where=str(error.filename),
            fix="run the harness on Linux, with /proc mounted",
        ) from error


def between(before: Reading, after: Reading) -> MachineSample | None:
    """Shares of the time between two readings, or `None` where no tick lies between them."""
    shares = sample.between(before, after)
    return None if shares is None else MachineSample(**shares)


class MachineSampler:
    """
    Writes a `MachineSample` to *path*, as a line of JSON, each *interval_s* of a ``with`` block.

    The last sample is taken when the block ends, so that even a short block has one.
    """

    def __init__(self, path: Path, interval_s: float = 0.5, root: Path = Path("/proc")) -> None:
        self.path, self.interval_s, self.root = path, interval_s, root
        self._ended = threading.Event()
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._guarded, name="machine sampler", daemon=True)
        self._file: IO[str]

    def __enter__(self) -> Self:
        self._last = read_counters(self.root)
        self._file = self.path.open("w", encoding="ascii")
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ended.set()
        self._thread.join()
        self._file.close()
        if self._failure is not None and error is None:
            raise self._failure

    def _guarded(self) -> None:
        try:
            self._sample()
        except (OSError, MachineError) as failure:
            self._failure = failure  # raised in the thread that waits for us

    def _sample(self) -> None:
        while True:
            ended = self._ended.wait(self.interval_s)
            now = read_counters(self.root)
            sample = between(self._last, now)
            if sample is not None:
                self._last = now
                self._file.write(json.dumps(asdict(sample)) + "\n")
                self._file.flush()
            if ended:
                return


def machine_facts(disk: Path = Path()) -> dict[str, Any]:
    """
    What this machine is, for the manifest of a run; facts that it does not tell are left out.

    *disk* is a path on the file system to describe: that of the results, by default the current
    folder.  Sizes are bytes, `load` is the mean number of runnable threads over the last minute.
    """
    facts = {
        "cpu": _match("/proc/cpuinfo", r"model name\s*: (.*)"),
        "cores": os.cpu_count(),
        "cores_usable": len(os.sched_getaffinity(0)),
        "virtual": _match("/proc/cpuinfo", r"^flags\s*:.*\bhypervisor\b") is not None,
        "governor": _match("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", r"(.+)"),
        "memory_bytes": _kib("/proc/meminfo", "MemTotal"),
        "swap_bytes": _kib("/proc/meminfo", "SwapTotal"),
        "kernel": platform.release(),
        "architecture": platform.machine(),
        "os": _match("/etc/os-release", r'^PRETTY_NAME="?([^"\n]*)'),
        "load": round(os.getloadavg()[0], 2),
        "disk": _disk(disk.resolve()),
    }
    return {name: value for name, value in facts.items() if value is not None}


def _disk(path: Path) -> dict[str, Any]:
    """File system below *path*: its type, and bytes in all and free."""
    usage = shutil.disk_usage(path)
    kinds = {point: kind for point, kind in _mounts() if path.is_relative_to(point)}
    facts: dict[str, Any] = {"total_bytes": usage.total, "free_bytes": usage.free}
    if kinds:
        facts["file_system"] = kinds[max(kinds, key=len)]
    return facts


def _mounts() -> Iterator[tuple[str, str]]:
    """Mount points and the types of their file systems, later mounts last."""
    for line in _text("/proc/self/mounts").splitlines():
        _, point, kind, *_ = line.split(" ")
        yield re.sub(r"\\([0-7]{3})", lambda m: chr(int(m[1], 8)), point), kind


def _kib(path: str, name: str) -> int | None:
    kib = _match(path, rf"^{name}: +(\d+) kB")
    return None if kib is None else 1024 * int(kib)


def _match(path: str, pattern: str) -> str | None:
    """First group of *pattern* in the file at *path*, or the whole match where it has none."""
    match = re.search(pattern, _text(path), re.MULTILINE)
    return match[match.re.groups].strip() if match else None


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
