"""What the tracer left in the containers' folders of a trial."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import PurePosixPath

from harness.errors import ParseError
from harness.hadoop.tracing import SPANS_FILE, UNITS_FILE
from harness.parsing.ltrace import read_ltrace, read_units
from harness.records.spans import TaskSpans, UnitTimes
from harness.records.trace import JobTrace
from harness.records.trial import TrialRecord
from harness.store import RawLogs, Run

_CHUNK = 1 << 16
_MOST_UNIT_BYTES = 1 << 28


class Recordings:
    """
    Recordings among the raw logs of a trial, read anew each time they are asked for.

    One that cannot be read is left out, for a trial is worth more than its recording; `unreadable`
    says which, once they were asked for.
    """

    def __init__(self, raw: RawLogs) -> None:
        """Find the recordings that *raw* has."""
        self._raw = raw
        self._files = [n for n in raw.names() if PurePosixPath(n).name == SPANS_FILE]
        self.unreadable: dict[str, str] = {}

    def __len__(self) -> int:
        """Count the recorded attempts."""
        return len(self._files)

    def tasks(self) -> Iterator[TaskSpans]:
        """Read the recording of each attempt."""
        for name in self._files:
            if (task := self._task(name)) is not None:
                yield task

    def units(self) -> Iterator[UnitTimes]:
        """Read the times of units of each attempt that has them."""
        for name in self._files:
            beside = str(PurePosixPath(name).with_name(UNITS_FILE))
            if beside in self._raw.names() and (task := self._task(name)) is not None:
                yield from self._units(beside, task.attempt_id)

    def _task(self, name: str) -> TaskSpans | None:
        try:
            with self._raw.open(name) as file:
                return read_ltrace(iter(partial(file.read, _CHUNK), b""), name)
        except ParseError as error:
            self.unreadable[name] = error.what
            return None

    def _units(self, name: str, attempt: str) -> Iterator[UnitTimes]:
        try:
            with self._raw.open(name) as file:
                records, seconds = read_units(file.read(_MOST_UNIT_BYTES + 1), name)
        except ParseError as error:
            self.unreadable[name] = error.what
        else:
            yield UnitTimes(attempt, records, tuple(seconds.tolist()))


def write_trace(run: Run, record: TrialRecord, traces: Sequence[JobTrace]) -> list[str]:
    """Make the trace tables of a trial; say what of the recordings is missing or unreadable."""
    recorded = Recordings(run.raw(record.trial.id))
    run.write_trace(record.trial.id, traces, recorded if len(recorded) else None)
    complaints = [f"{name} cannot be read: {what}" for name, what in recorded.unreadable.items()]
    tasks = sum(attempt.state == "succeeded" for trace in traces for attempt in trace.attempts)
    if record.trial.cell.tracing.mode in ("spans", "units") and len(recorded) < tasks:
        complaints.append(f"{tasks - len(recorded)} of {tasks} tasks left no recording")
    return complaints
