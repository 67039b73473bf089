"""The trace tables of a trial, made from what its jobs left among its raw logs."""

from __future__ import annotations

import re

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import PurePosixPath

from harness.base.errors import DataError, ParseError
from harness.base.hadoop.site import SPANS_FILE, UNITS_FILE
from harness.base.records.tasks import TaskSpans, UnitTimes
from harness.base.records.trace import JobTrace
from harness.base.records.trial import TrialRecord
from harness.core.store import RawLogs, Run
from harness.core.store.trials import TrialFolder
from harness.observe.parsing.clocks import clock_notes
from harness.observe.parsing.history import read_history
from harness.observe.parsing.ltrace import MOST_UNITS_BYTES, read_ltrace, read_units

_CHUNK = 1 << 16
_HISTORY = re.compile(r"job-([0-9]{1,6})-history\.jhist")


class Recordings:
    """
    What the tracer left in the containers' folders of a trial, read again each time.

    One that cannot be read is left out: `unreadable` has the reasons, by file, once it was read.
    """

    def __init__(self, raw: RawLogs) -> None:
        self._raw = raw
        self._files = [name for name in raw.names() if PurePosixPath(name).name == SPANS_FILE]
        self.unreadable: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._files)

    def tasks(self) -> Iterator[TaskSpans]:
        """Read the recording of each attempt."""
        for name in self._files:
            if (task := self._read_task(name)) is not None:
                yield task

    def units(self) -> Iterator[UnitTimes]:
        """Read the times of units of each attempt that has them."""
        for recording in self._files:
            units_file = str(PurePosixPath(recording).with_name(UNITS_FILE))
            if units_file in self._raw.names() and (task := self._read_task(recording)) is not None:
                try:
                    with self._raw.open(units_file) as file:
                        records, seconds = read_units(file.read(MOST_UNITS_BYTES + 1), units_file)
                except ParseError as error:
                    self.unreadable[units_file] = error.what
                else:
                    yield UnitTimes(task.attempt_id, records, tuple(seconds.tolist()))

    def _read_task(self, recording: str) -> TaskSpans | None:
        try:
            with self._raw.open(recording) as file:
                return read_ltrace(iter(partial(file.read, _CHUNK), b""), recording)
        except ParseError as error:
            self.unreadable[recording] = error.what
            return None


def store_trial(
    run: Run, folder: TrialFolder, record: TrialRecord, traces: Sequence[JobTrace]
) -> list[str]:
    """Commit the *folder* of a trial that counts, and make its tables; return what is missing."""
    folder.commit(record)
    return write_trace(run, record, traces)


def write_trace(run: Run, record: TrialRecord, traces: Sequence[JobTrace]) -> list[str]:
    """Make the trace tables of a trial; return what is missing, unreadable, or of a wrong clock."""
    recordings = Recordings(run.raw(record.trial.id))
    run.write_trace(record.trial.id, traces, recordings if len(recordings) else None)
    complaints = [f"{name} cannot be read: {what}" for name, what in recordings.unreadable.items()]
    complaints += clock_notes(chain.from_iterable(trace.clocks for trace in traces))
    succeeded_tasks = 0
    for trace in traces:
        succeeded_tasks += sum(attempt.state == "succeeded" for attempt in trace.attempts)
    if record.trial.cell.tracing.mode in ("spans", "units") and len(recordings) < succeeded_tasks:
        missing = succeeded_tasks - len(recordings)
        complaints.append(f"{missing} of {succeeded_tasks} tasks left no recording")
    return complaints


def remake_trace(run: Run, record: TrialRecord) -> bool:
    """Make a trial's trace tables from its raw logs; `False`: no history, or none to be read."""
    run.require_published("raw")  # without the recordings, spans would be lost
    trial_id = record.trial.id
    traces = list[JobTrace]()
    raw = run.raw(trial_id)
    histories = [history for name in raw.names() if (history := _HISTORY.fullmatch(name))]
    try:
        for history in sorted(histories, key=lambda history: int(history[1])):
            with raw.open(history[0]) as lines:
                source = f"trials/{trial_id}/raw/{history[0]}.gz"
                traces.append(read_history(lines, source))
    except ParseError:
        if record.state == "done":
            raise
        traces = []
    if record.state == "done" and not traces:
        what = f"trial {trial_id} has no history"
        fix = "its logs were removed: move the trial's folder away and run it again"
        raise DataError(what, where=str(run.trial_dir(trial_id)), fix=fix)
    write_trace(run, record, traces)
    return bool(traces)


def remake_all_traces(run: Run) -> None:
    """Make the traces of all trials anew."""
    for record in run.trials().values():
        remake_trace(run, record)


def remake_missing_traces(run: Run) -> None:
    """Make the traces of trials after which the run was killed."""
    for record in run.trials().values():
        if not run.has_trace(record.trial.id):
            remake_trace(run, record)
