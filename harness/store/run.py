"""One run of an experiment on disk."""

from __future__ import annotations

import re

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from harness.errors import DataError, MachineError
from harness.experiment.model import Experiment
from harness.records.manifest import Manifest
from harness.records.prediction import Prediction
from harness.records.profile import Profile
from harness.records.score import ScoreBook
from harness.records.spans import TaskSpans, UnitTimes
from harness.records.task_times import SegmentTimes
from harness.records.trace import JobTrace
from harness.records.trial import Record, Trial, TrialRecord
from harness.store import recordings, seal, tables
from harness.store.files import (
    MAKE_ROOM,
    SCHEMA_VERSION,
    RawLogs,
    as_record,
    check_name,
    disk,
    free_bytes,
    inside,
    json_bytes,
    read_file,
    read_record,
    remove_tree,
    settle,
    sync_tree,
    write_file,
)
from harness.store.lock import held
from harness.store.recordings import Recorded
from harness.store.trials import TrialFolder, read_trial
from harness.units import MIB, format_bytes

MANIFEST, EXPERIMENT, PLAN, FINISHED = "manifest.json", "experiment.yaml", "plan.jsonl", "finished"

# A trial begins, and a failure counts, only where so much is free: the logs of a small trial.
LEAST_FREE_BYTES = 16 * MIB

_REPORT = re.compile(r"report\.[a-z]{1,8}|hibench\.report")
_NEW_RUN = "move this run's folder away: 'harness all FILE' then starts a new run"


class Run:
    """
    The results of one run; `Store` opens it.

    `id` sorts by time; `note` says why a new run was opened where an unfinished one was found.
    Whoever writes holds `lock`; readers need none, because files only appear whole.
    """

    def __init__(self, path: Path, note: str = "") -> None:
        """Open the run that lies at *path*."""
        self.path, self.id, self.note = path, path.name, note
        self._incoming = path / "incoming"
        self._trials = path / "trials"

    # What this run is.

    def read_manifest(self) -> Manifest:
        """Read what the run says of itself."""
        path = self.path / MANIFEST
        return read_record(Manifest, read_file(path, _NEW_RUN), path, _NEW_RUN)

    def update_manifest(self, **entries: Any) -> Manifest:
        """Replace *entries* of the manifest, by the names of its fields; return all of it."""
        known = self.read_manifest().document()
        manifest = Manifest.model_validate({**known, **entries})
        write_file(self.path / MANIFEST, json_bytes(manifest.document()), self._incoming)
        return manifest

    def manifest(self, facts: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Like `update_manifest` and `read_manifest`, which take the place of this."""
        return (self.update_manifest(**facts) if facts else self.read_manifest()).document()

    def experiment(self) -> Experiment:
        """Read the experiment as it was resolved when the run was opened."""
        value = self.read_manifest().experiment
        return as_record(Experiment, value, self.path / MANIFEST, _NEW_RUN)

    @property
    def text(self) -> str:
        """The experiment file as it was given."""
        path = self.path / EXPERIMENT
        try:
            return read_file(path, _NEW_RUN).decode()
        except UnicodeDecodeError as error:
            raise DataError(f"{EXPERIMENT} is no text", where=str(path), fix=_NEW_RUN) from error

    @property
    def finished(self) -> bool:
        """Whether the run has come to its end."""
        return (self.path / FINISHED).exists()

    def finish(self) -> None:
        """Mark the run as ended: the next one of its experiment opens a new folder."""
        write_file(self.path / FINISHED, b"", self._incoming)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Be the only harness that writes here; sweep what is half-done, before and after."""
        with held(self.path / "lock", f"run {self.id}"):
            remove_tree(self._incoming)
            try:
                yield
            finally:
                with suppress(MachineError):  # whatever ended the block is what counts
                    remove_tree(self._incoming)

    def require_space(self, least: int = LEAST_FREE_BYTES) -> None:
        """Raise `MachineError` unless *least* bytes are free where this run lies."""
        free = free_bytes(self.path)
        if free < least:
            raise MachineError(
                f"{format_bytes(free)} are free for results,"
                f" and a trial needs {format_bytes(least)}",
                where=str(self.path),
                fix=MAKE_ROOM,
            )

    @property
    def scratch(self) -> Path:
        """A folder for what is of use only while the run is locked."""
        folder = self._incoming / "scratch"
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    # The plan and its trials.

    def write_plan(self, trials: Iterable[Trial]) -> None:
        """Write all trials of the run, in their order."""
        write_file(self.path / PLAN, _lines(trials), self._incoming)

    def read_plan(self) -> tuple[Trial, ...]:
        """All trials of the run, in their order."""
        return tuple(_read_lines(Trial, self.path / PLAN, _NEW_RUN))

    def begin_trial(self, trial: Trial) -> TrialFolder:
        """Give an empty folder for *trial*, which counts when it is committed."""
        return TrialFolder(trial, self.path, self._incoming)

    def trials(self) -> dict[str, TrialRecord]:
        """Trials that have ended, by id; failed ones too."""
        return {folder.name: read_trial(folder, folder.name) for folder in _folders(self._trials)}

    def trial_ids(self) -> tuple[str, ...]:
        """Ids of the trials that have ended, without a look into them."""
        return tuple(folder.name for folder in _folders(self._trials))

    def trial_dir(self, trial_id: str) -> Path:
        """Folder of a trial that has ended (`DataError` where there is none)."""
        folder = self._trials / check_name(trial_id, "a trial")
        if not folder.is_dir():
            raise DataError(
                f"no trial {trial_id} in this run",
                where=str(self._trials),
                fix="measure it: harness run FILE",
            )
        return folder

    def raw(self, trial_id: str) -> RawLogs:
        """Give a reader of the unedited logs of a trial."""
        return RawLogs(self.trial_dir(trial_id) / "raw")

    def write_trace(
        self, trial_id: str, traces: Sequence[JobTrace], recorded: Recorded | None = None
    ) -> None:
        """
        Put the traces of a trial's jobs beside its logs, in place of older ones.

        *recorded* is what the tracer recorded in their tasks; without, there are no such tables.
        """
        target = self.trial_dir(trial_id) / "trace"
        with self._prepared(f"{trial_id}.trace") as folder:
            tables.write_traces(folder, traces)
            if recorded is not None:
                recordings.write_recordings(folder, recorded)
            self._replace(folder, target)

    def read_trace(self, trial_id: str) -> tuple[JobTrace, ...]:
        """Traces of the jobs of a trial, in order."""
        return tables.read_traces(self.trial_dir(trial_id) / "trace")

    def read_recordings(self, trial_id: str) -> Iterator[TaskSpans]:
        """What the tracer recorded in the tasks of a trial, one task at a time."""
        return recordings.read_recordings(self.trial_dir(trial_id) / "trace")

    def read_units(self, trial_id: str) -> Iterator[UnitTimes]:
        """Seconds of every few records of the tasks of a trial, where they were asked for."""
        return recordings.read_units(self.trial_dir(trial_id) / "trace")

    def read_segments(self, trial_id: str) -> Iterator[tuple[str, SegmentTimes]]:
        """Every map output that a recorded reduce copied, with the id of the reduce's attempt."""
        return recordings.read_segments(self.trial_dir(trial_id) / "trace")

    def has_trace(self, trial_id: str) -> bool:
        """Whether the logs of this trial have been turned into a trace."""
        return (self.trial_dir(trial_id) / "trace").is_dir()

    # What was concluded from them.

    def write_profile(self, profile: Profile) -> None:
        """Write the profile of its workload."""
        name = check_name(profile.workload, "a workload") + ".json"
        data = json_bytes(profile.model_dump(mode="json"))
        write_file(self.path / seal.PROFILES / name, data, self._incoming)

    def read_profiles(self) -> dict[str, Profile]:
        """Profiles by workload."""
        fix = "make it again: harness profile FILE"
        paths = sorted((self.path / seal.PROFILES).glob("*.json"))
        return {p.stem: read_record(Profile, read_file(p, fix), p, fix) for p in paths}

    def write_predictions(self, model: str, predictions: Iterable[Prediction]) -> None:
        """Write all that *model* predicts; `seal` makes them final."""
        name = check_name(model, "a model") + ".jsonl"
        write_file(self.path / seal.PREDICTIONS / name, _lines(predictions), self._incoming)

    def read_predictions(self) -> dict[str, tuple[Prediction, ...]]:
        """Predictions by model, in the order in which they were written."""
        fix = "predict again: harness predict FILE"
        found = (self.path / seal.PREDICTIONS).glob("*.jsonl")
        return {p.stem: tuple(_read_lines(Prediction, p, fix)) for p in sorted(found, key=_stem)}

    def seal(self) -> None:
        """Hash the plan, the profiles and the predictions, so that none can change unseen."""
        data = seal.sealed(self.path, self._sealed())
        if data is not None:
            write_file(self.path / seal.SEAL, data, self._incoming)

    def check_seal(self) -> None:
        """Raise `DataError` naming the file that is not as it was sealed."""
        seal.check(self.path, self._sealed())

    def _sealed(self) -> list[str]:
        return [PLAN, *seal.files(self.path)]

    def write_scores(self, book: ScoreBook) -> None:
        """Write the scores in place of older ones."""
        with self._prepared("scores") as folder:
            tables.write_scores(folder, book)
            self._replace(folder, self.path / "scores")

    def read_scores(self) -> ScoreBook:
        """Scores that were written last."""
        return tables.read_scores(self.path / "scores")

    def write_report(self, name: str, text: str) -> Path:
        """Write the report called *name* (`report.html`, `hibench.report`, ...); give its path."""
        if _REPORT.fullmatch(name) is None:
            raise ValueError(f"{name!r} is not the name of a report")
        path = self.path / name
        write_file(path, text.encode(), self._incoming)
        return path

    # How folders appear.

    @contextmanager
    def _prepared(self, name: str) -> Iterator[Path]:
        folder = inside(self._incoming, name, "a folder")
        remove_tree(folder)
        with disk(folder):
            folder.mkdir(parents=True)
            yield folder

    def _replace(self, folder: Path, target: Path) -> None:
        """Rename *folder* to *target*; the older one is derived data, and moves aside first."""
        sync_tree(folder)
        if target.exists():
            old = folder.with_name(folder.name + ".old")
            remove_tree(old)
            settle(target, old)
        settle(folder, target)
        remove_tree(folder.with_name(folder.name + ".old"))


def _stem(path: Path) -> str:
    return path.stem


def _folders(parent: Path) -> list[Path]:
    with disk(parent):
        return sorted(p for p in parent.iterdir() if p.is_dir()) if parent.exists() else []


def _lines(records: Iterable[Record]) -> bytes:
    rows: Iterable[Mapping[str, Any]] = (r.model_dump(mode="json") for r in records)
    return b"".join(
        json_bytes({"schema_version": SCHEMA_VERSION, **row}, indent=None) for row in rows
    )


def _read_lines(kind: Any, path: Path, fix: str) -> Iterator[Any]:
    for number, line in enumerate(read_file(path, fix).splitlines(), start=1):
        yield read_record(kind, line, path.with_name(f"{path.name}:{number}"), fix)
