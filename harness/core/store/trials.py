"""One trial on disk: filled outside `trials/`, and there in one step or not at all."""

from __future__ import annotations

import gzip
import io
import os
import zlib

from functools import partial
from itertools import count
from pathlib import Path
from typing import BinaryIO, cast

from harness.base.errors import DataError
from harness.base.hadoop.secrets import SECRETS
from harness.base.records.trial import Trial, TrialRecord
from harness.base.text import excerpt
from harness.core.store.evidence import Discarded, note_move, write_evidence
from harness.observe.storage.files import (
    check_name,
    json_bytes,
    os_error_as_machine_error,
    remove_tree,
    rename_durably,
    sync_tree,
)
from harness.observe.storage.opener import Opener

RECORD = "trial.json"
_RERUN = (
    "restore it from a copy, or move the trial's folder out of the run:"
    " harness run FILE measures it again"
)

# No line of a log is longer: a history's longest is a hundredth of it.  A task may write what it
# likes, and a few megabytes can unpack to a line that no memory holds.
_LONGEST_LINE = 16 * 2**20
_MOST_LOG_BYTES = 2**32  # unpacked
_PIECE = 2**20


class TrialFolder:
    """
    A trial while it runs; logs are put under `raw` until it is committed or discarded.

    Nothing here counts before `commit`: a killed run leaves a folder that the next one removes.
    """

    def __init__(self, trial: Trial, opener: Opener, incoming: Path) -> None:
        """Make an empty folder for *trial* in *incoming*; it will belong to the run of *opener*."""
        self.trial = trial
        self._opener = opener
        self._run = opener.root
        self._folder = incoming / check_name(trial.id, "a trial")
        remove_tree(self._folder)
        self.raw = self._folder / "raw"
        with os_error_as_machine_error(self.raw):
            self.raw.mkdir(parents=True)

    def commit(self, record: TrialRecord) -> Path:
        """
        Put the trial under `trials/`, logs compressed; return its folder there.

        One that failed before moves to `retried/`; one that was done is not replaced (`DataError`).
        """
        target = self._run / "trials" / self.trial.id
        if target.exists():
            if read_trial(self._opener, target, self.trial.id).state == "done":
                raise DataError(
                    f"trial {self.trial.id} is done already",
                    where=str(target),
                    fix="a done trial is never measured again in the same run: open a new run",
                )
            retried = self._free_folder("retried")
            with os_error_as_machine_error(target):
                note_move(target, self._opener, f"retried/{retried.name}")
                rename_durably(target, retried)
        self._close(record)
        with os_error_as_machine_error(target):
            write_evidence(self._folder, self._opener, f"trials/{self.trial.id}")
            target.parent.mkdir(exist_ok=True)
            rename_durably(self._folder, target)
        return target

    def discard(self, kind: Discarded, record: TrialRecord) -> Path:
        """Put the trial, with its logs, where it is never counted; return its folder there."""
        self._close(record)
        target = self._free_folder(kind)
        with os_error_as_machine_error(target):
            write_evidence(self._folder, self._opener, f"{kind}/{target.name}")
            rename_durably(self._folder, target)
        return target

    def _close(self, record: TrialRecord) -> None:
        with os_error_as_machine_error(self._folder):
            compress_tree(self.raw)
            (self._folder / RECORD).write_bytes(json_bytes(record.model_dump(mode="json")))
            sync_tree(self._folder)

    def _free_folder(self, kind: str) -> Path:
        """A folder of *kind* for one more attempt of this trial; it does not exist yet."""
        parent = self._run / kind
        with os_error_as_machine_error(parent):
            parent.mkdir(exist_ok=True)
        folders = (parent / f"{self.trial.id}-{number}" for number in count(1))
        return next(folder for folder in folders if not folder.exists())


def read_trial(opener: Opener, folder: Path, trial_id: str) -> TrialRecord:
    """Read the record of *trial_id* in *folder*."""
    log_path = folder / RECORD
    record = opener.read_record(TrialRecord, log_path, _RERUN)
    if record.trial.id != trial_id:
        problem = f"{RECORD} is the record of trial '{excerpt(record.trial.id)}'"
        raise DataError(problem, where=str(log_path), fix=_RERUN)
    return record


def compress_tree(folder: Path) -> None:
    """
    Gzip every file under *folder* in place, as ``<name>.gz``, without the secrets in it.

    Whatever is neither a file nor a folder is removed: a link that a task left among its logs
    must not lead a reader out of the results.
    """
    for root, folders, names in os.walk(folder):
        # In reverse, `a.gz` has become `a.gz.gz` before `a` becomes `a.gz`.
        for log_name in sorted([*folders, *names], reverse=True):
            log_path = Path(root, log_name)
            if log_path.is_symlink() or not (log_path.is_dir() or log_path.is_file()):
                log_path.unlink()
            elif log_path.is_file():
                with (
                    log_path.open("rb") as plain,
                    log_path.with_name(f"{log_name}.gz").open("xb") as packed_file,
                    gzip.GzipFile("", "wb", 6, packed_file, mtime=0) as packed,
                ):
                    packed.writelines(SECRETS.filter(iter(partial(plain.read, _PIECE), b"")))
                log_path.unlink()


class RawLogs:
    """The unedited logs of one trial, read back decompressed."""

    def __init__(self, opener: Opener, folder: Path) -> None:
        """Read under *folder*, of which no more logs are expected."""
        self._opener = opener
        self._folder = folder
        packed = [name for name in opener.names(folder) if name.endswith(".gz")]
        self._names = tuple(sorted(name.removesuffix(".gz") for name in packed))

    def names(self) -> tuple[str, ...]:
        """Names of all logs, sorted; folders are separated by ``/``."""
        return self._names

    def open(self, log_name: str) -> BinaryIO:
        """Bytes of the log *log_name*; damage shows as `DataError` while reading."""
        if log_name not in self._names:
            raise DataError(
                f"no log '{excerpt(log_name)}' in this trial",
                where=str(self._folder),
                fix="list the folder; names are relative to it, without .gz",
            )
        log_path = self._folder / f"{log_name}.gz"
        return cast("BinaryIO", _Log(log_path, self._opener.open(log_path, _RERUN)))


class _Log(io.BufferedReader):
    """A log of lines of bounded length."""

    def __init__(self, log_path: Path, stream: io.FileIO) -> None:
        self._path = log_path
        super().__init__(cast("io.RawIOBase", _Decompressed(log_path, stream)))

    def readline(self, size: int | None = -1, /) -> bytes:
        # One byte more than a line may have shows that one is longer.
        has_limit = size is not None and size >= 0
        line = super().readline(size if has_limit else _LONGEST_LINE + 1)
        if len(line) > _LONGEST_LINE:
            problem = f"a line of more than {_LONGEST_LINE} bytes is not a line of a log"
            raise DataError(problem, where=str(self._path), fix=_RERUN)
        return line


class _Decompressed(gzip.GzipFile):
    """A gzip file whose damage, or size beyond that of any log, is `DataError`, with its path."""

    def __init__(self, log_path: Path, stream: io.FileIO) -> None:
        super().__init__(str(log_path), "rb", fileobj=stream)
        self.myfileobj = stream  # to be closed with this one
        self._left_bytes = _MOST_LOG_BYTES

    def read(self, size: int | None = -1) -> bytes:
        try:
            data = super().read(size)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            problem = f"the compressed log is damaged: {error}"
            raise DataError(problem, where=str(self.name), fix=_RERUN) from error
        self._left_bytes -= len(data)
        if self._left_bytes < 0:
            problem = f"the log unpacks to more than {_MOST_LOG_BYTES} bytes"
            raise DataError(problem, where=str(self.name), fix=_RERUN)
        return data
