"""
What was observed of one job and of the machine meanwhile.

Times are seconds since the epoch.  A counter's key is its group's whole name, a dot and its own
name: ``org.apache.hadoop.mapreduce.TaskCounter.MAP_INPUT_RECORDS``.
"""

from __future__ import annotations

import re

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from operator import attrgetter
from typing import Annotated, Literal

from pydantic import Field

from harness.base.records.trial import Moment

# Hadoop's groups of counters.
TASK_COUNTER = "org.apache.hadoop.mapreduce.TaskCounter"
JOB_COUNTER = "org.apache.hadoop.mapreduce.JobCounter"
FILE_SYSTEM_COUNTER = "org.apache.hadoop.mapreduce.FileSystemCounter"
FILE_INPUT_COUNTER = "org.apache.hadoop.mapreduce.lib.input.FileInputFormatCounter"
FILE_OUTPUT_COUNTER = "org.apache.hadoop.mapreduce.lib.output.FileOutputFormatCounter"

BYTES_READ = f"{FILE_INPUT_COUNTER}.BYTES_READ"
_SPLIT_BYTES = f"{TASK_COUNTER}.SPLIT_RAW_BYTES"
_RECORDS_READ = f"{TASK_COUNTER}.MAP_INPUT_RECORDS"
_FILE_SYSTEM_READ = re.compile(rf"{re.escape(FILE_SYSTEM_COUNTER)}\.(?!FILE_)\w+_BYTES_READ")
_MOST_SPLIT_BYTES = 1024  # of the description of one map's split, where no counter has it

TaskCount = Annotated[int, Field(ge=0, lt=2**31)]  # Hadoop's own type
TaskKind = Literal["map", "reduce"]
AttemptState = Literal["succeeded", "failed", "killed"]

MOST_CLOCK_S = 1.0  # by which the clock of a host may differ from ours
# Clocks of two hosts then differ by twice as much; a task writes its last line a moment after its
# master has seen its end.  Zones differ by a quarter of an hour at least.
_WINDOW_S = 3 * MOST_CLOCK_S

CUDA = "cuda"
CPU = "cpu"
# The group of the GPU jobs' own counters, and which counts the work of each kind of device.
DEVICE_COUNTER = "mapreduce.harness.gpu.Device"
_DEVICE_COUNTERS = {CPU: f"{DEVICE_COUNTER}.DEVICE_CPU", CUDA: f"{DEVICE_COUNTER}.DEVICE_CUDA"}


def bytes_read(counters: Mapping[str, int], num_maps: int = 1) -> int | None:
    """
    Stored bytes that *num_maps* maps with these *counters* read; `None`: no counter says.

    Hadoop counts what its file input formats read.  That is 0 for splits that are no part of one
    file (Hive, Pig, combined or several inputs): then it is what the maps read of file systems,
    the local one apart, less the descriptions of their splits.  Maps that make their records, or
    fetch them elsewhere, read 0.

    >>> files = f"{FILE_SYSTEM_COUNTER}.HDFS_BYTES_READ"
    >>> bytes_read({BYTES_READ: 0, files: 5135, _SPLIT_BYTES: 135, _RECORDS_READ: 50})
    5000
    >>> bytes_read({BYTES_READ: 0, files: 158, _RECORDS_READ: 100_000}, num_maps=2)
    0
    """
    by_format = counters.get(BYTES_READ)
    if by_format:
        return by_format
    counts = [count for name, count in counters.items() if _FILE_SYSTEM_READ.fullmatch(name)]
    if not counts:
        return by_format
    left_bytes = max(0, sum(counts) - counters.get(_SPLIT_BYTES, 0))
    records = counters.get(_RECORDS_READ, 0)
    # Real records take a byte at least, and a split of a real file has more than one.
    is_made = records > left_bytes or records <= num_maps
    return 0 if is_made and left_bytes <= num_maps * _MOST_SPLIT_BYTES else left_bytes


@dataclass(frozen=True, slots=True)
class TaskAttempt:
    """
    One attempt of a map or reduce task, from the job history.

    `start_s` is when the container was launched (clock of the application master), before the JVM
    exists.  `map_finish_s` ends the map function (before the last spill and the merge), `None` for
    reduces and where Hadoop does not say it; `shuffle_finish_s` and `sort_finish_s` are `None` for
    maps.
    """

    attempt_id: str
    task_id: str
    kind: TaskKind
    state: AttemptState
    start_s: float
    finish_s: float
    host: str
    map_finish_s: float | None = None
    shuffle_finish_s: float | None = None
    sort_finish_s: float | None = None
    container_id: str = ""
    locality: str = ""
    error: str = ""
    counters: Mapping[str, int] = field(default_factory=dict)

    @property
    def duration_s(self) -> float:
        """Seconds from launch to the end that the application master saw."""
        return self.finish_s - self.start_s

    @property
    def window(self) -> tuple[float, float]:
        """The first and the last moment that what its JVM wrote can name, by any host's clock."""
        return self.start_s - _WINDOW_S, self.finish_s + _WINDOW_S

    @property
    def input_bytes(self) -> int:
        """Stored bytes that a map read; 0 where it read none, or no counter says."""
        return bytes_read(self.counters) or 0

    def count(self, counter: str, absent: int = 0) -> int:
        """Value of a counter: one of Hadoop's of tasks, or of another group before its last dot."""
        return self.counters.get(counter if "." in counter else f"{TASK_COUNTER}.{counter}", absent)


@dataclass(frozen=True, slots=True)
class NodeClock:
    """
    What a job shows of a node whose clock is off: by how much it is ahead of that of the master.

    *tasks* are the attempts that it reported moments of.  These were *moved* by *ahead_s*, where
    they tell it to a second; else `ahead_s` is the least that they show, and they do not count.
    """

    host: str
    ahead_s: float
    tasks: int
    moved: bool


@dataclass(frozen=True, slots=True)
class JobTrace:
    """
    One MapReduce job: its times, its attempts, its counters.

    `submit_s` to `finish_s` is the measured job time.  `state` is Hadoop's word (SUCCEEDED,
    FAILED, KILLED, ERROR).  An uberized job ran all its attempts inside its application master, one
    after the other: they have its container.  `clocks` are the nodes whose clock is off, as the
    history was read; they are not stored.
    """

    job_id: str
    name: str
    user: str
    state: str
    submit_s: Moment
    launch_s: Moment
    finish_s: Moment
    num_maps: TaskCount
    num_reduces: TaskCount
    attempts: tuple[TaskAttempt, ...]
    counters: Mapping[str, int] = field(default_factory=dict)
    map_counters: Mapping[str, int] = field(default_factory=dict)
    reduce_counters: Mapping[str, int] = field(default_factory=dict)
    diagnostics: str = ""
    uberized: bool = False
    clocks: tuple[NodeClock, ...] = field(default=(), compare=False)

    @property
    def job_s(self) -> float:
        """Measured job time: submission to the end of the job."""
        return self.finish_s - self.submit_s

    @property
    def input_bytes(self) -> int:
        """Stored bytes that its maps read; 0 where they read none, or no counter says."""
        counters = self.map_counters or self.task_counters("map") or self.counters
        return bytes_read(counters, self.num_maps) or 0

    def task_counters(self, kind: TaskKind) -> Mapping[str, int]:
        """Counters of the tasks of *kind* that succeeded, summed; of one done twice, the last."""
        sums = Counter[str]()
        for attempt in {attempt.task_id: attempt for attempt in self.succeeded(kind)}.values():
            sums.update(attempt.counters)
        return sums

    def succeeded(self, kind: TaskKind) -> tuple[TaskAttempt, ...]:
        """Successful attempts of *kind*, in the order of their start."""
        chosen = [
            attempt
            for attempt in self.attempts
            if (attempt.kind, attempt.state) == (kind, "succeeded")
        ]
        return tuple(sorted(chosen, key=lambda attempt: (attempt.start_s, attempt.attempt_id)))


def joined(jobs: Sequence[JobTrace]) -> JobTrace:
    """
    *jobs* of one trial, which ran one after the other, as one; of a single job, that job itself.

    Its time is from the first one's submission to the last one's end, so it holds what passed
    between them.  Counters and tasks are sums, the state is that of the first that did not succeed.
    """
    first, *later_jobs = jobs
    if not later_jobs:
        return first
    last = later_jobs[-1]
    ended = next((job for job in jobs if job.state != "SUCCEEDED"), first)
    return replace(
        first,
        job_id=f"{first.job_id} to {last.job_id}",
        state=ended.state,
        diagnostics=ended.diagnostics,
        finish_s=last.finish_s,
        num_maps=sum(job.num_maps for job in jobs),
        num_reduces=sum(job.num_reduces for job in jobs),
        attempts=tuple(chain.from_iterable(job.attempts for job in jobs)),
        counters=_summed(jobs, attrgetter("counters")),
        map_counters=_summed(jobs, attrgetter("map_counters")),
        reduce_counters=_summed(jobs, attrgetter("reduce_counters")),
        uberized=any(job.uberized for job in jobs),
    )


def _summed(
    jobs: Sequence[JobTrace], counters_of: Callable[[JobTrace], Mapping[str, int]]
) -> dict[str, int]:
    sums: dict[str, int] = {}
    for job in jobs:
        for name, count in counters_of(job).items():
            sums[name] = sums.get(name, 0) + count
    return sums


@dataclass(frozen=True, slots=True)
class SpeedSample:
    """Speed probe: units of fixed work done, and the CPU seconds they took, on one thread."""

    at_s: float
    thread: int
    units: int
    cpu_s: float


@dataclass(frozen=True, slots=True)
class MachineSample:
    """
    The machine at one moment: shares of all cores since the sample before, and its memory.

    `busy`, `steal` and `iowait` are shares of 1; `runnable` counts processes ready to run;
    `memory_pressure` is the share of time in which some task waited for memory, or `None` where
    the kernel does not report it.  `own` is the share that went to our own processes, and `kernel`
    that of the kernel's own threads; `None` where nobody looked.  `swapped_bytes` went to the swap
    space and came from there.
    """

    at_s: float
    busy: float
    steal: float
    iowait: float
    runnable: int
    available_bytes: int
    memory_pressure: float | None = None
    own: float | None = None
    kernel: float | None = None
    swapped_bytes: int = 0


def devices(tasks: Iterable[Mapping[str, int]]) -> tuple[str, ...]:
    """
    Kinds of device that *tasks*, each given by its counters, have used: none, one, or both.

    >>> devices([{f"{DEVICE_COUNTER}.DEVICE_CPU": 1}, {"Other.DEVICE_CUDA": 9}])
    ('cpu',)
    """
    used: set[str] = set()
    for counters in tasks:
        used.update(name for name, count in counters.items() if count > 0)
    return tuple(sorted(kind for kind, counter in _DEVICE_COUNTERS.items() if counter in used))
