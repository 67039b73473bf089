"""Real logs of containers (``data/README.md``), with the attempts that wrote them."""

import gzip
import re

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from harness.base.records.tasks import ShuffleLog, TaskLog
from harness.base.records.trace import TASK_COUNTER, JobTrace, TaskAttempt
from harness.observe.parsing.history import read_history
from harness.observe.parsing.task_log import read_shuffle_log, read_task_log

CONTAINERS = Path(__file__).parent / "data" / "containers"
JOBS = ("disk", "passes", "stalled", "uneven")


@dataclass(frozen=True)
class RecordedTask:
    """An attempt, what its history says of it, and what its logs do."""

    attempt: TaskAttempt
    log: TaskLog
    shuffle: ShuffleLog | None

    def counter(self, name):
        """Value of one of Hadoop's task counters."""
        return self.attempt.counters[f"{TASK_COUNTER}.{name}"]


def text(job, name):
    """Lines of a recorded log."""
    return gzip.decompress((CONTAINERS / job / f"{name}.gz").read_bytes()).splitlines(keepends=True)


@cache
def history(job) -> JobTrace:
    """History of a recorded job."""
    return read_history(text(job, "history.jhist"), job)


@cache
def reported(job) -> tuple[RecordedTask, ...]:
    """The attempts of a recorded job whose logs are here."""
    logs = {p.name.removesuffix(".gz") for p in (CONTAINERS / job).iterdir()}
    result = []
    for attempt in history(job).attempts:
        short = re.search(r"[mr]_\d+_\d+$", attempt.attempt_id)[0]
        if f"{short}.syslog" in logs:
            result.append(RecordedTask(attempt, *_logs(job, short, logs)))
    return tuple(result)


def _logs(job, short, logs):
    shuffle = f"{short}.syslog.shuffle"
    return (
        read_task_log(text(job, f"{short}.syslog"), short),
        read_shuffle_log(text(job, shuffle), shuffle) if shuffle in logs else None,
    )


def every(kind, *jobs):
    """All recorded attempts of *kind*, for parametrized tests."""
    return [t for job in jobs or JOBS for t in reported(job) if t.attempt.kind == kind]


def named(task):
    """Name of a case."""
    return task.attempt.attempt_id[-16:] if isinstance(task, RecordedTask) else None
