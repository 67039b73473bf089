"""
The machines that measure: what they are, how they were used during a trial, who disturbed them.

What this one reports comes from Linux's ``/proc`` and ``/sys``; *root* is another folder in tests.
Its samples are ``speed.txt`` and ``machine.jsonl`` among a trial's raw files; those of a machine
that was sampled through a node have the node's name in theirs: ``speed-worker1.txt``.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import shutil
import threading
import time

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import IO, Any, Self

from harness.base.errors import MachineError
from harness.base.records.trace import MachineSample, SpeedSample
from harness.base.records.trial import MachineLoad
from harness.base.units import MIB, format_rate
from harness.clusters.node import sample as node_sample
from harness.clusters.node.sample import Reading
from harness.observe.parsing.lines import read_machine

# When a trial is marked as disturbed: means over the trial.  With all cores busy a job gets what
# others leave: its bias exceeds 2 % from so much on, as `bench/bench_neighbour.py` has measured.
MOST_OTHERS = 0.03  # share of the cores' time of processes that are not ours, nor the kernel's
MOST_STEAL = 0.05  # share of the cores' time that other virtual machines took
MOST_SWAP_BPS = MIB  # bytes that went to the swap space and came from there
# Far above what slewing (500 parts in a million at most) does in minutes; 1 % of a ten-second job.
MOST_SHIFT_S = 0.1

PROBE_LOG = "speed.txt"
PROBE_LOGS = re.compile(r"speed(-[^/]+)?\.txt")  # what a container left is in a folder
MACHINE_LOG = "machine.jsonl"
# Samples of a machine from where others of our processes are seen.
VIEW_LOG = "processes.jsonl"
THIS_MACHINE = "this machine"
SAMPLE_S = 1.0  # a sample of the speed probe sums over the second that ends at its time


def find_disturbance(loads: Mapping[str, MachineLoad]) -> str:
    """
    Name the rules by which a trial was disturbed, with machines and numbers; empty: by none.

    What our own processes do to each other is no disturbance, and unknown load of others is none.
    """
    rules = []
    for machine, load in loads.items():
        if load.others is not None and load.others > MOST_OTHERS:
            rule = f"others used {load.others:.1%} of the processors, above {MOST_OTHERS:.0%}"
        elif load.steal > MOST_STEAL:
            rule = f"steal {load.steal:.1%} of the time, above {MOST_STEAL:.0%}"
        elif load.swap_bytes_per_s > MOST_SWAP_BPS:
            rule = f"swapping {format_rate(load.swap_bytes_per_s)}"
            rule += f", above {format_rate(MOST_SWAP_BPS)}"
        else:
            continue
        rules.append(f"{machine}: {rule}")
    return "; ".join(rules)


def machine_load(
    samples: Sequence[MachineSample], *views: Sequence[MachineSample]
) -> MachineLoad | None:
    """
    How the machine of *samples* was used; `None` without samples.

    *views* are samples of the same machine from where others of our processes are seen; what others
    used is unknown where one of them is without samples.
    """
    if not samples:
        return None
    busy = mean_share(samples, "busy") or 0.0
    own_shares = [mean_share(view, "own") for view in (samples, *views)]
    others_share = None
    if None not in own_shares:
        kernel_share = mean_share(samples, "kernel") or 0.0
        others_share = max(busy - kernel_share - sum(share or 0.0 for share in own_shares), 0.0)
    elapsed_s = max(samples[-1].at_s - samples[0].at_s, SAMPLE_S)
    return MachineLoad(
        busy=busy,
        steal=mean_share(samples, "steal") or 0.0,
        others=others_share,
        swap_bytes_per_s=sum(sample.swapped_bytes for sample in samples[1:]) / elapsed_s,
    )


def mean_share(samples: Sequence[MachineSample], name: str) -> float | None:
    """
    Mean over time of a share in *samples*, where it is known; `None`: it is known in none.

    The last sample is taken when a trial ends, and may be about a hundredth of a second.
    """
    ends_s = [sample.at_s for sample in samples]
    spans_s = [SAMPLE_S, *(max(end_s - start_s, 0.0) for start_s, end_s in pairwise(ends_s))]
    shares = [getattr(sample, name) for sample in samples]
    known = [pair for pair in zip(shares, spans_s, strict=False) if pair[0] is not None]
    return fmean(*zip(*known, strict=True)) if known else None


def read_samples(file: Path) -> list[MachineSample]:
    """The samples in *file*; none where it does not exist."""
    if not file.exists():
        return []
    with file.open("rb") as lines:
        return list(read_machine(lines, file.name))


def read_counters(root: Path = Path("/proc")) -> Reading:
    """
    Take one reading; raises `MachineError` where the kernel does not give one.

    Our processes are this one and all that it has started: clusters of this machine, clients.
    """
    try:
        return node_sample.read_counters(root, os.getpid())
    except OSError as error:
        what = f"the machine cannot be sampled: {error.strerror}"
        fix = "run the harness on Linux, with /proc mounted"
        raise MachineError(what, where=str(error.filename), fix=fix) from error


class MachineSampler:
    """
    Writes a `MachineSample` to *path*, as a line of JSON, each *interval_s* of a ``with`` block.

    The last sample is taken when the block ends, so that even a short block has one.
    """

    def __init__(self, path: Path, interval_s: float = 1.0, root: Path = Path("/proc")) -> None:
        self.path = path
        self.interval_s = interval_s
        self.root = root
        self._ended = threading.Event()
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._sample, name="machine sampler", daemon=True)
        self._file: IO[str]

    def __enter__(self) -> Self:
        self._last = read_counters(self.root)
        self._file = self.path.open("w", encoding="ascii")
        self._thread.start()
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._ended.set()
        self._thread.join()
        self._file.close()
        if self._failure is not None and error is None:
            raise self._failure

    def _sample(self) -> None:
        try:
            has_ended = False
            while not has_ended:
                has_ended = self._ended.wait(self.interval_s)
                reading = read_counters(self.root)
                if (sample := node_sample.between(self._last, reading)) is not None:
                    self._last = reading
                    self._file.write(json.dumps(sample) + "\n")
                    self._file.flush()
        except (OSError, MachineError) as failure:
            self._failure = failure  # raised in the thread that waits for us


class Stopwatch:
    """
    A stopwatch beside the wall clock, from its making on.

    Hadoop writes times of the wall clock into its histories.  When somebody sets that clock, the
    times of a job are wrong; the monotonic clock, which is never set, shows it.
    """

    def __init__(self, wall: Callable[[], float] = time.time) -> None:
        """Start: `at_s` is now by *wall*, in epoch seconds; durations are monotonic."""
        self._wall = wall
        self._start_s = time.monotonic()
        self._offset_s = self._measure_offset()
        self.at_s = self._start_s + self._offset_s

    @property
    def elapsed_s(self) -> float:
        """Seconds since it was made, whatever the wall clock did."""
        return time.monotonic() - self._start_s

    def find_shift(self) -> str:
        """How far the wall clock was set meanwhile, as the reason of a failure; else empty."""
        shift_s = self._measure_offset() - self._offset_s
        if abs(shift_s) <= MOST_SHIFT_S:
            return ""
        direction = "forward (or the machine slept)" if shift_s > 0 else "back"
        return f"the machine's clock was set {abs(shift_s):.1f} s {direction} during the trial"

    def _measure_offset(self) -> float:
        """Wall clock minus monotonic clock; the one of three that was interrupted least."""
        offsets = []
        for _ in range(3):
            before = time.monotonic()
            wall_s = self._wall()
            after = time.monotonic()
            offsets.append((after - before, wall_s - after))
        return min(offsets)[1]


def machine_facts(disk_path: Path = Path()) -> dict[str, Any]:
    """
    What this machine is, for the manifest of a run; facts that it does not report are left out.

    *disk_path* is on the file system to describe: that of the results, by default the current
    folder.  Sizes are bytes, `load` is the mean number of runnable threads over the last minute.
    """
    disk_path = disk_path.resolve()
    disk_usage = shutil.disk_usage(disk_path)
    file_systems = {}  # by mount point, later mounts last
    for line in read_or_empty("/proc/self/mounts").splitlines():
        _, mount_point, kind, *_ = line.split(" ")
        mount_point = re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), mount_point)
        if disk_path.is_relative_to(mount_point):
            file_systems[mount_point] = kind
    disk_facts: dict[str, Any] = {"total_bytes": disk_usage.total, "free_bytes": disk_usage.free}
    if file_systems:
        disk_facts["file_system"] = file_systems[max(file_systems, key=len)]
    memory_lines = read_or_empty("/proc/meminfo")
    memory_sizes = {
        fact_name: int(kib) * 1024
        for fact_name, kib in re.findall(r"^(\w+): +(\d+) kB", memory_lines, re.MULTILINE)
    }
    machine_id = read_or_empty("/etc/machine-id").strip()
    facts = {
        "id": machine_id and hashlib.sha256(f"mapreduce-harness {machine_id}".encode()).hexdigest(),
        "cpu": _search("/proc/cpuinfo", r"model name\s*: (.*)"),
        "cores": os.cpu_count(),
        "cores_usable": len(os.sched_getaffinity(0)),
        "virtual": _search("/proc/cpuinfo", r"^flags\s*:.*\b(hypervisor)\b") is not None,
        "governor": _search("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", r"(.+)"),
        "memory_bytes": memory_sizes.get("MemTotal"),
        "swap_bytes": memory_sizes.get("SwapTotal"),
        "kernel": platform.release(),
        "architecture": platform.machine(),
        "os": _search("/etc/os-release", r'^PRETTY_NAME="?([^"\n]*)'),
        "load": round(os.getloadavg()[0], 2),
        "disk": disk_facts,
    }
    return {name: value for name, value in facts.items() if value not in (None, "")}


def _search(path: str, pattern: str) -> str | None:
    """First group of *pattern* in the file at *path*."""
    match = re.search(pattern, read_or_empty(path), re.MULTILINE)
    return match[1].strip() if match else None


def read_or_empty(path: str) -> str:
    """Text of the file at *path*; empty where it cannot be read."""
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def named_after(log: str, node: str) -> str:
    """
    Name of the file for the machine of *node*.

    >>> named_after("speed.txt", "worker1")
    'speed-worker1.txt'
    """
    stem, _, ending = log.partition(".")
    return f"{stem}-{node}.{ending}"


def mean_rate(samples: Iterable[SpeedSample], start_s: float, end_s: float) -> float | None:
    """Units of work per CPU second of samples whose middle is between two moments, or `None`."""
    units = 0
    cpu_s = 0.0
    for sample in samples:
        if start_s <= sample.at_s - SAMPLE_S / 2 <= end_s:
            units += sample.units
            cpu_s += sample.cpu_s
    return units / cpu_s if cpu_s > 0 else None


def copy_tail(source: Path, start: int, target: Path) -> None:
    """Copy what was written to *source* since it had *start* bytes, from the next whole line on."""
    with source.open("rb") as stream, target.open("wb") as copy:
        stream.seek(max(0, start - 1))
        if start:
            stream.readline()
        shutil.copyfileobj(stream, copy)
