"""What the containers' own logs tell of a trial's tasks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from harness.parsing.shuffle_log import read_shuffle_log
from harness.parsing.task_log import read_task_log
from harness.profiling.log_times import logged_map_times, logged_reduce_times
from harness.records.logs import TaskLog
from harness.records.task_times import MapTimes, ReduceTimes
from harness.records.trace import JobTrace, TaskAttempt
from harness.store import RawLogs

TASK_LOG, SHUFFLE_LOG = "syslog", "syslog.shuffle"


class ContainerLogs:
    """
    Logs of the tasks of one job.

    An uberized job has none of its own: all its attempts ran in its application master, whose log
    mixes them.
    """

    def __init__(self, raw: RawLogs, trace: JobTrace) -> None:
        """Read the logs that *raw* has of the attempts of *trace*."""
        self._raw = raw
        self._folders = dict(_folders(raw.names())) if not trace.uberized else {}
        self._attempts = [a for a in trace.attempts if a.container_id in self._folders]
        self.tasks = {a.attempt_id: self._task(a) for a in self._attempts}

    def inside(self, *, compressed: bool) -> Iterator[MapTimes | ReduceTimes]:
        """What happened inside each attempt with a log; *compressed*: map outputs are."""
        for attempt in self._attempts:
            log = self.tasks[attempt.attempt_id]
            if attempt.kind == "map":
                yield logged_map_times(log, attempt, is_compressed=compressed)
            else:
                yield self._reduce(log, attempt)

    def _task(self, attempt: TaskAttempt) -> TaskLog:
        name = f"{self._folders[attempt.container_id]}/{TASK_LOG}"
        with self._raw.open(name) as lines:
            return read_task_log(lines, name)

    def _reduce(self, log: TaskLog, attempt: TaskAttempt) -> ReduceTimes:
        """Hadoop writes the shuffle into a log of its own, unless told not to."""
        folder = self._folders[attempt.container_id]
        own = f"{folder}/{SHUFFLE_LOG}"
        name = own if own in self._raw.names() else f"{folder}/{TASK_LOG}"
        with self._raw.open(name) as lines:
            return logged_reduce_times(log, read_shuffle_log(lines, name), attempt)


def _folders(names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Container -> folder of its logs."""
    for name in names:
        folder, _, last = name.rpartition("/")
        if last == TASK_LOG and folder:
            yield folder.rpartition("/")[2], folder
