"""One trial on disk: filled outside `trials/`, and there in one step or not at all."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Literal

from harness.errors import DataError
from harness.records.trial import Trial, TrialRecord
from harness.store.files import (
    check_name,
    compress_tree,
    disk,
    inside,
    json_bytes,
    read_file,
    read_record,
    remove_tree,
    settle,
    sync_tree,
)

RECORD = "trial.json"
_RERUN = "remove this trial's folder: the next run measures it again"


class TrialFolder:
    """
    A trial while it runs; logs are put under `raw` until it is committed or discarded.

    Nothing here counts before `commit`: a killed run leaves a folder that the next one sweeps.
    """

    def __init__(self, trial: Trial, run: Path, incoming: Path) -> None:
        """Make an empty folder for *trial* in *incoming*; it will belong to *run*."""
        self.trial, self._run = trial, run
        self._folder = incoming / check_name(trial.id, "a trial")
        remove_tree(self._folder)
        self.raw = self._folder / "raw"
        with disk(self.raw):
            self.raw.mkdir(parents=True)

    def file(self, name: str) -> Path:
        """Path under `raw` for a log called *name*, checked part by part; its folder exists."""
        path = inside(self.raw, name, "a log")
        with disk(path):
            path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def commit(self, record: TrialRecord) -> Path:
        """
        Put the trial under `trials/`, logs compressed; return its folder there.

        A trial that was failed before gives way, and lies under `retried/` from then on; one that
        was done is never replaced (`DataError`).
        """
        target = self._run / "trials" / self.trial.id
        if target.exists():
            self._give_way(target)
        self._close(record)
        with disk(target):
            target.parent.mkdir(exist_ok=True)
            settle(self._folder, target)
        return target

    def discard(self, kind: Literal["retried", "warmup"], record: TrialRecord) -> Path:
        """Put the trial, with its logs, where it is never counted; return its folder there."""
        target = _free(self._run / kind, self.trial.id)
        self._close(record)
        with disk(target):
            settle(self._folder, target)
        return target

    def _give_way(self, target: Path) -> None:
        if read_trial(target, self.trial.id).state == "done":
            raise DataError(
                f"trial {self.trial.id} is done already",
                where=str(target),
                fix="a done trial is never measured again in the same run: open a new run",
            )
        with disk(target):
            settle(target, _free(self._run / "retried", self.trial.id))

    def _close(self, record: TrialRecord) -> None:
        if record.trial.id != self.trial.id:
            raise ValueError(f"the record of {record.trial.id} for trial {self.trial.id}")
        with disk(self._folder):
            compress_tree(self.raw)
            (self._folder / RECORD).write_bytes(json_bytes(record.model_dump(mode="json")))
            sync_tree(self._folder)


def read_trial(folder: Path, trial_id: str) -> TrialRecord:
    """Read the record of *trial_id* in *folder*."""
    path = folder / RECORD
    record = read_record(TrialRecord, read_file(path, _RERUN), path, _RERUN)
    if record.trial.id != trial_id:
        raise DataError(
            f"{RECORD} speaks of trial {record.trial.id[:80]!r}", where=str(path), fix=_RERUN
        )
    return record


def _free(parent: Path, name: str) -> Path:
    with disk(parent):
        parent.mkdir(exist_ok=True)
    return next(p for n in count(1) if not (p := parent / f"{name}-{n}").exists())
