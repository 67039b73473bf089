"""
Speed and load of the machine of this node, line by line until standard input ends.

    node.pyz sample SECONDS PROBE_ARGUMENT...

First comes one object of JSON: *machine*, which is the same for all nodes on one machine, its
*cores*, and *view*, which is the same for nodes that see the same processes as theirs.  Then a word
on standard input says what is wanted: ``load``, or ``speed`` for both.

    load {"at_s": ..., "busy": ..., ...}    each SECONDS, the machine since the sample before
    speed 1795293000123 0 10 9876543        whatever the speed probe prints
    failed ...                              why there is no speed probe, or no longer

The probe is a JVM of this node (JAVA_HOME) with these arguments and, as its last one, the number of
its threads: one per core, each pinned to its own.
"""

import json
import os
import platform
import re
import select
import subprocess
import tempfile
import time

from contextlib import suppress
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_NAMES_LIMIT_S = 5.0
_STOP_LIMIT_S = 5.0
_INPUT = 0
_ROOT = 0  # whose the kernel's threads are
_KERNEL_THREAD = 0x00200000  # PF_KTHREAD, among the flags of a process
_CHUNK = 2**16
_MOST_LINE = 1024
_MOST_ERROR = 300
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Reading(NamedTuple):
    """Counters of the kernel at one moment; CPU in clock ticks over all cores."""

    at_s: float
    total: int
    idle: int
    iowait: int
    steal: int
    runnable: int
    available_bytes: int
    waited_us: Optional[int]  # in which some task waited for memory, since the machine's start
    swapped_pages: int  # in and out, since the machine's start
    processes: Mapping[int, Tuple[int, int, int]]  # ours, as `read_processes` gives them
    kernel_threads: Mapping[int, int]  # ticks by id


def read_counters(root: Path = Path("/proc"), tree: int = 0) -> Reading:
    """Take one reading, quickly: it happens once a second; `OSError` without such files."""
    at_s = time.time()
    stat = (root / "stat").read_bytes()
    memory = (root / "meminfo").read_bytes()
    pressure = paging = b""
    # a kernel may be built or started without pressure accounting, a container without paging
    with suppress(OSError):
        paging = (root / "vmstat").read_bytes()
        pressure = (root / "pressure" / "memory").read_bytes()
    # user nice system idle iowait irq softirq steal; the guest times behind are parts of user
    tick_counts = [int(word) for word in stat[: stat.index(b"\n")].split()[1:9]]
    tick_counts += [0] * (8 - len(tick_counts))
    processes, kernel_threads = read_processes(root, tree)
    return Reading(
        at_s=at_s,
        total=sum(tick_counts),
        idle=tick_counts[3],
        iowait=tick_counts[4],
        steal=tick_counts[7],
        runnable=_number(rb"procs_running (\d+)", stat) or 0,
        available_bytes=1024 * (_number(rb"MemAvailable: +(\d+) kB", memory) or 0),
        waited_us=_number(rb"some .*total=(\d+)", pressure),
        swapped_pages=sum(map(int, re.findall(rb"^pswp(?:in|out) (\d+)", paging, re.MULTILINE))),
        processes=processes,
        kernel_threads=kernel_threads,
    )


def read_processes(root: Path, tree: int) -> Tuple[Dict[int, Tuple[int, int, int]], Dict[int, int]]:
    """
    Our processes and the kernel's threads, by their ids.

    Of each of ours: the parent's id, ticks of CPU time, those of its ended children.  Ours are
    *tree* and all below it, or all of our user's where it is 0.  Of each thread its ticks: they
    work for whoever reads, writes and sends, and for the machine itself.
    """
    processes: Dict[int, Tuple[int, int, int]] = {}
    kernel_threads: Dict[int, int] = {}
    user = os.geteuid()
    for entry in filter(str.isdigit, os.listdir(str(root))):
        folder = f"{root}/{entry}"
        with suppress(OSError):  # it has ended
            owner = user if tree else os.stat(folder).st_uid
            if owner not in (user, _ROOT):  # a host may have thousands of others
                continue
            flags, *process = read_process(folder)
            if flags & _KERNEL_THREAD:
                kernel_threads[int(entry)] = process[1]
            elif owner == user:
                processes[int(entry)] = process[0], process[1], process[2]
    return below(processes, tree) if tree else processes, kernel_threads


def read_process(folder: str) -> Tuple[int, int, int, int]:
    """Flags of a process, its parent's id, ticks of CPU time, and those of its ended children."""
    with open(f"{folder}/stat", "rb") as stat_file:
        words = stat_file.read().rpartition(b")")[2].split()
    ticks = [int(word) for word in words[11:15]]
    return int(words[6]), int(words[1]), sum(ticks[:2]), sum(ticks[2:])


def below(
    processes: Mapping[int, Tuple[int, int, int]], tree: int
) -> Dict[int, Tuple[int, int, int]]:
    """Those of *processes* that are *tree*, or descend from it."""

    def is_below(process_id: int) -> bool:
        """Whether a process is *tree*, or descends from it."""
        while process_id in processes and process_id != tree:
            process_id = processes[process_id][0]
        return process_id == tree

    return {entry: process for entry, process in processes.items() if is_below(entry)}


def own_ticks(before: Reading, after: Reading) -> int:
    """
    Ticks of our processes between two readings.

    When a process ends, the kernel adds its ticks to those of its parent's ended children, unless
    the parent ignores its children.  Ticks of it that were counted while it ran are not counted
    again: those that it used since then are, and all those of a process that was never seen.
    """
    inherited: Dict[int, int] = {}  # ticks counted before, which a process may have got since
    for process_id in before.processes.keys() - after.processes.keys():
        heir = process_id
        while heir in before.processes and heir not in after.processes:
            heir = before.processes[heir][0]
        inherited[heir] = inherited.get(heir, 0) + sum(before.processes[process_id][1:])
    total = 0
    for process_id, (_, ticks, child_ticks) in after.processes.items():
        _, ticks_before, child_ticks_before = before.processes.get(process_id, (0, 0, 0))
        total += max(0, ticks - ticks_before)
        total += max(0, child_ticks - child_ticks_before - inherited.get(process_id, 0))
    return total


def kernel_ticks(before: Reading, after: Reading) -> int:
    """Ticks of the kernel's threads between two readings, but for those that have ended since."""
    return sum(
        max(0, ticks - before.kernel_threads.get(thread, 0))
        for thread, ticks in after.kernel_threads.items()
    )


def _number(pattern: bytes, text: bytes) -> Optional[int]:
    """The number that *pattern* selects in *text*."""
    match = re.search(pattern, text)
    return int(match.group(1)) if match else None


def between(before: Reading, after: Reading) -> Optional[Dict[str, Any]]:
    """A `MachineSample` of two readings; `None` where no tick lies between them."""
    total_ticks = after.total - before.total
    if total_ticks <= 0:
        return None
    # The kernel's idle and iowait may run backwards by a few ticks.
    idle, iowait, steal = (
        min(max(getattr(after, name) - getattr(before, name), 0) / total_ticks, 1.0)
        for name in ("idle", "iowait", "steal")
    )
    busy = max(1.0 - idle - iowait - steal, 0.0)
    # A parent may get a child's time a moment late, and with it what was counted before.
    own_share = min(own_ticks(before, after) / total_ticks, busy)
    pressure = None
    if before.waited_us is not None and after.waited_us is not None:
        elapsed_us = max(1e6 * (after.at_s - before.at_s), 1.0)
        pressure = min(max(after.waited_us - before.waited_us, 0) / elapsed_us, 1.0)
    return {
        "at_s": after.at_s,
        "busy": busy,
        "steal": steal,
        "iowait": iowait,
        "runnable": after.runnable,
        "available_bytes": after.available_bytes,
        "memory_pressure": pressure,
        "own": own_share,
        "kernel": min(kernel_ticks(before, after) / total_ticks, busy - own_share),
        "swapped_bytes": max(after.swapped_pages - before.swapped_pages, 0) * _PAGE,
    }


def pin_threads(pid: int, cores: Sequence[int]) -> Iterator[str]:
    """Give each thread of the probe that has its name a core of its own; the names of these."""
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):  # other threads come and go
            thread_name = (task / "comm").read_text().strip()
            if thread_name.startswith("probe-"):
                core = cores[int(thread_name[len("probe-") :]) % len(cores)]
                os.sched_setaffinity(int(task.name), {core})
                yield thread_name


class Probe:
    """The speed probe of this machine; its *threads* are pinned to the cores that we may use."""

    def __init__(self, java: str, arguments: Sequence[str], threads: int, output: Any) -> None:
        """Start it, its samples into *output*; `OSError` where there is no such JVM."""
        self._threads = threads
        self._pinned: Set[str] = set()
        self._pending = b""
        self._pin_until = 0.0
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - `end` closes it
        try:
            self.jvm = subprocess.Popen(
                [java, *arguments, str(threads)],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=self._errors,
                bufsize=0,
            )
        except OSError:
            self._errors.close()
            raise

    def fileno(self) -> int:
        """What to wait for."""
        assert self.jvm.stdout is not None
        return self.jvm.stdout.fileno()

    def lines(self) -> Optional[List[bytes]]:
        """The whole lines that are there to be read; `None` when it has ended."""
        received = os.read(self.fileno(), _CHUNK)
        *whole, self._pending = (self._pending + received).split(b"\n")
        return whole if received and len(self._pending) < _MOST_LINE else None

    def pin(self) -> bool:
        """
        Pin its threads; whether there is no more to do.

        A thread gets its name, by which it is found, when it first runs, a moment later perhaps.
        """
        self._pin_until = self._pin_until or time.monotonic() + _NAMES_LIMIT_S
        if len(self._pinned) < self._threads and time.monotonic() < self._pin_until:
            with suppress(OSError):  # it has ended, or this node may not: it measures all the same
                self._pinned |= set(pin_threads(self.jvm.pid, sorted(os.sched_getaffinity(0))))
            return len(self._pinned) == self._threads
        return True

    def error(self) -> str:
        """The first line that it wrote to its standard error, or nothing."""
        self._errors.seek(0)
        lines = self._errors.read(_CHUNK).decode("utf-8", "replace").split("\n")
        return next((ascii(line.strip())[:_MOST_ERROR] for line in lines if line.strip()), "")

    def end(self) -> None:
        """End it by the end of its input; kill it where that does not help."""
        for pipe in (self.jvm.stdin, self.jvm.stdout):
            if pipe is not None:
                pipe.close()
        try:
            self.jvm.wait(_STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            self.jvm.kill()
            self.jvm.wait()
        self._errors.close()


def identity() -> Dict[str, str]:
    """The *machine* and the *view* of the processes on it that are ours."""
    machine = platform.node()
    with suppress(OSError):
        machine = _BOOT_ID.read_text().strip()  # a kernel is started only once
    return {"machine": machine, "view": f"{os.readlink('/proc/self/ns/pid')} {os.geteuid()}"}


def main(arguments: List[str]) -> None:
    """Identify this machine, and sample it as requested."""
    interval_s = float(arguments[0])
    probe_arguments = arguments[1:]
    with suppress(BrokenPipeError):
        print(json.dumps({**identity(), "cores": os.cpu_count() or 1}), flush=True)
        wanted = os.read(_INPUT, _CHUNK).strip()
        if wanted == b"load":
            write_samples(interval_s, None)
        elif wanted == b"speed":
            java = str(Path(os.environ.get("JAVA_HOME", ""), "bin", "java"))
            threads = len(os.sched_getaffinity(0))
            try:
                probe = Probe(java, probe_arguments, threads, subprocess.PIPE)
            except OSError as error:
                print(f"failed {error.filename}: {error.strerror}", flush=True)
                return
            try:
                write_samples(interval_s, probe)
            finally:
                probe.end()


def write_samples(interval_s: float, probe: Optional[Probe]) -> None:
    """Write samples until standard input ends, or the probe does."""
    last_reading = read_counters()
    next_sample_s = time.monotonic() + interval_s
    sources: List[Any] = [_INPUT, probe] if probe else [_INPUT]
    while True:
        ready = select.select(sources, [], [], max(0.0, next_sample_s - time.monotonic()))[0]
        if _INPUT in ready and not os.read(_INPUT, _CHUNK):
            return
        if probe is not None and probe in ready:
            if not print_speed(probe):
                return
            probe.pin()
        if time.monotonic() >= next_sample_s:
            next_sample_s = time.monotonic() + interval_s
            reading = read_counters()
            sample = between(last_reading, reading)
            if sample is not None:
                last_reading = reading
                print(f"load {json.dumps(sample)}", flush=True)


def print_speed(probe: Probe) -> bool:
    """Print what the probe has to say; `False`, and that it has ended, where it has."""
    lines = probe.lines()
    if lines is None:
        print(f"failed the speed probe has ended {probe.error()}", flush=True)
        return False
    for output_line in lines:
        print(f"speed {output_line.decode('ascii', 'replace')}", flush=True)
    return True
