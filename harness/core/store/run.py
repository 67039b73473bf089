"""One run of an experiment on disk."""

from __future__ import annotations

import hashlib
import time

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from harness.base.errors import DataError, EvidenceError, HarnessError, MachineError
from harness.base.records.draw import Draw
from harness.base.records.manifest import Manifest
from harness.base.records.prediction import Prediction
from harness.base.records.profile import Profile
from harness.base.records.score import ScoreBook
from harness.base.records.tasks import TaskSpans, UnitTimes
from harness.base.records.trace import JobTrace
from harness.base.records.trial import OLDEST_READ, SCHEMA_VERSION, Record, Trial, TrialRecord
from harness.base.text import excerpt
from harness.base.units import format_bytes
from harness.core.experiment.model import Experiment
from harness.core.store import ledger
from harness.core.store.evidence import (
    CHAIN,
    DISCARDED,
    MAKE_SCORES,
    SCORES,
    Chain,
    add_tables,
    check_evidence,
    hash_folder,
    note_losses,
    write_evidence,
)
from harness.core.store.published import (
    ORIGINALS,
    RESTORE_BUNDLE,
    bundle_of,
    level_of,
    require_published,
)
from harness.core.store.readings import run_of_reading, write_source
from harness.core.store.seal import (
    ANALYSES,
    ANCHORS,
    DRAWN,
    PLAN,
    PREDICT,
    PREDICTIONS,
    PROFILES,
    RunSeal,
)
from harness.core.store.trials import RECORD, RawLogs, TrialFolder, read_trial
from harness.observe.storage import tables
from harness.observe.storage.files import (
    LEAST_FREE_BYTES,
    MAKE_ROOM,
    check_name,
    exclusive_lock,
    folders,
    free_bytes,
    is_locked,
    json_bytes,
    os_error_as_machine_error,
    remove_tree,
    rename_durably,
    sync_tree,
    write_file,
)
from harness.observe.storage.opener import MANIFEST, Opener

EXPERIMENT = "experiment.yaml"
FINISHED = "finished"
SCORES_FILE = "scores.json"
# All that a run's folder has (docs/results.md); whatever else lies there is somebody's.
_MADE_FILES = (EXPERIMENT, MANIFEST, PLAN, CHAIN, FINISHED, "lock")
_MADE_FOLDERS = (
    "incoming", "trials", *DISCARDED, PROFILES, PREDICTIONS, ANCHORS, SCORES, ANALYSES,
)  # fmt: skip
_MADE_REPORTS = ("report.html", "report.md", "report.json", "hibench.report")
MADE = frozenset((*_MADE_FILES, *_MADE_FOLDERS, *_MADE_REPORTS))

_NEW_RUN = "move this run's folder away: 'harness all FILE' then starts a new run"
_PROFILE = "restore it; or let harness predict RUN make an analysis with profiles of its own"
_RESCORE = "score again: harness score FILE"


class Run:
    """
    The results of one run; `Store` opens it.

    `id` sorts by time; `note` says why a new run was opened where an unfinished one was found.
    Whoever writes holds `lock`; readers need none, because files only appear whole.  `measured` is
    the run itself; of an analysis, which has no trials of its own, the run that it is about.

    What is made of the run is kept in `output`: its own folder, or for one that stays as it is
    another one, which `Store` chooses; the user finds such a run at `place`.
    """

    def __init__(
        self, path: Path, note: str = "", base: Path | None = None, measured: Run | None = None
    ) -> None:
        """Open the run at *path*, whose links lead into *base*; of an analysis, of *measured*."""
        self.path = path
        self.id = path.name
        self.note = note
        self.opener = Opener(path, base)
        self.output = path
        self.place = path
        self.measured: Run = self
        if measured is not None:
            self.measured = measured
        elif path.absolute().parent.name == ANALYSES:
            self.measured = _measured_by(path, base)
        self._trials = self.measured.path / "trials"
        self.seal = RunSeal(self.opener, path / "incoming")

    @property
    def is_foreign(self) -> bool:
        """Whether the run stays as it is, and what is made of it is kept elsewhere."""
        return self.output != self.path

    @property
    def _incoming(self) -> Path:
        """Folder of what is half-done."""
        return self.output / "incoming"

    def read_manifest(self) -> Manifest:
        """Read what the run says of itself; `DataError` where it is of a shape too old for that."""
        path = self.path / MANIFEST
        manifest = self.opener.read_record(Manifest, path, _NEW_RUN)
        if manifest.schema_version < OLDEST_READ:
            what = (
                "this run is older than any that is read: its schema_version is"
                f" {manifest.schema_version}, and {OLDEST_READ} to {SCHEMA_VERSION} are read"
            )
            fix = f"harness import {self.place} -o RUN makes a run of its job histories"
            raise DataError(what, where=str(path), fix=fix)
        return manifest

    def update_manifest(self, **entries: Any) -> Manifest:
        """Replace *entries* of the manifest, by the names of its fields; return all of it."""
        document = self.read_manifest().document()
        version = {"schema_version": SCHEMA_VERSION}
        manifest = Manifest.model_validate({**document, **version, **entries})
        data = json_bytes(manifest.document())
        Chain(self.opener).append(MANIFEST, hashlib.sha256(data).hexdigest())
        write_file(self.path / MANIFEST, data, self._incoming)
        return manifest

    def keep_file(self, text: str) -> None:
        """Replace the file of the experiment by *text*, which asks for the same otherwise."""
        data = text.encode()
        path = self.path / EXPERIMENT
        if not self.opener.exists(path) or self.opener.read(path, _NEW_RUN) != data:
            write_file(path, data, self._incoming)

    def experiment(self) -> Experiment:
        """Read the experiment as it was resolved when the run was opened."""
        manifest = self.read_manifest()
        path = self.path / MANIFEST
        value = manifest.experiment
        version = manifest.schema_version
        return self.opener.validate(Experiment.model_validate, value, path, _NEW_RUN, version)

    def fits(self, experiment: Experiment) -> bool:
        """Whether this run measured what *experiment* measures; not where it cannot be read."""
        with suppress(DataError):
            return measured_part(self.experiment()) == measured_part(experiment)
        return False

    def analyses(self) -> tuple[Run, ...]:
        """Analyses of this run: what was asked of it after it was measured; oldest first."""
        paths = folders(self.path / ANALYSES)
        if self.is_foreign:
            paths += folders(self.output / ANALYSES)
        whole = (path for path in paths if not path.name.startswith("."))
        return tuple(Run(path, measured=self) for path in whole if (path / MANIFEST).exists())

    @property
    def finished(self) -> bool:
        """Whether the run has come to its end."""
        return (self.path / FINISHED).exists()

    def finish(self, anchor: Callable[[str], None] | None = None) -> None:
        """
        Mark the run as ended: the next one of its experiment opens a new folder.

        The mark holds the hash of the last line of the chain, so that none can be cut off; *anchor*
        is given it before, and may add to the chain.
        """
        note_losses(self.opener)
        for name in (MANIFEST, EXPERIMENT, PLAN):
            if (self.path / name).exists():
                Chain(self.opener).append(name, self.opener.sha256(self.path / name))
        if anchor is not None and (last_line := self._last_line()):
            anchor(last_line)
        last_line = self._last_line()
        write_file(self.path / FINISHED, last_line.encode(), self._incoming)

    def _last_line(self) -> str:
        """Hash of the last line of the chain; empty where there is none."""
        return next(reversed(Chain(self.opener).lines()), "")

    @contextmanager
    def lock(self, *, measures: bool = False) -> Iterator[None]:
        """
        Be the only harness that writes here; remove what is half-done, before and after.

        Whoever *measures* leaves in the ledger of this machine how far the run has come.
        """
        self.require_own()
        with exclusive_lock(self.path / "lock", f"run {self.id}"):
            self.opener.require_plain()
            with self._emptied():
                try:
                    yield
                finally:
                    if measures:
                        self.note_in_ledger()

    def note_in_ledger(self, published: str = "") -> None:
        """
        Let this machine remember how far the run has come; nothing depends on it.

        Only for who measures or seals the run here, and where it was *published*, as a part of the
        bundle whose `SHA256SUMS` has this hash: a copy that somebody else made is not noted.
        """
        if self.measured is not self or self.is_published:
            return
        with suppress(HarnessError):  # what is wrong with the run is said by who reads it
            lines = Chain(self.opener).lines()
            if lines:
                seal = self.seal.record() if self.seal.exists() else None
                entry = ledger.Entry(
                    run=self.id,
                    folder=str(self.path.resolve()),
                    experiment=str(self.read_manifest().experiment.get("name", "")),
                    lines=len(lines),
                    line=next(reversed(lines)),
                    finished=self.finished,
                    noted_s=round(time.time(), 3),
                    sealed="" if seal is None else self.seal.sha256(),
                    sealed_s=None if seal is None else seal.sealed_s,
                    published=published,
                )
                ledger.note(entry)

    @contextmanager
    def output_lock(self) -> Iterator[None]:
        """Be the only harness that keeps something made of this run, here or elsewhere."""
        if not self.is_foreign:
            with self.lock():
                yield
            return
        measured = self.measured
        write_source(measured.output, measured.path, measured.place)
        lock = exclusive_lock(self.output / "lock", f"what is made of run {self.id}")
        with lock, self._emptied():
            yield

    @contextmanager
    def _emptied(self) -> Iterator[None]:
        """Have nothing half-done in the block's beginning, and leave nothing."""
        remove_tree(self._incoming)
        try:
            yield
        finally:
            with suppress(MachineError):  # whatever ended the block is what counts
                remove_tree(self._incoming)

    @property
    def is_published(self) -> bool:
        """Whether this is a run as a bundle has it, or a copy of one."""
        return self.opener.exists(self.path / ORIGINALS)

    @property
    def published_level(self) -> str:
        """Level of evidence at which this run was published; empty: it is as it was measured."""
        return level_of(self.measured.opener)

    def require_published(self, needed: str) -> None:
        """`DataError` where this run was published at a level below the *needed* one."""
        require_published(self.measured.opener, needed)

    def require_own(self) -> None:
        """`DataError` where this is a run of a bundle, which stays as it was published."""
        if bundle_of(self.path) is not None:
            # Who writes reads traces first: to copy a run that has none would not help.
            require_published(self.measured.opener, "traces")
            what = "this run is in a bundle, which stays as it was published"
            fix = f"copy its folder to results/EXPERIMENT/{self.id}, and name the copy"
            raise DataError(what, where=str(self.path), fix=fix)

    def require_made_here(self) -> None:
        """`DataError`: the folder has what is not the harness's; `MachineError`: it is in use."""
        names = sorted(path.name for path in self.path.iterdir())
        if unknown := [name for name in names if name not in MADE]:
            what = f"{self.path} has what the harness did not make: {excerpt(unknown[0])}"
            raise DataError(what, where=str(self.path), fix="move it elsewhere, if it is of use")
        if is_locked(self.path / "lock"):
            what = f"run {self.id} is in use by another harness"
            raise MachineError(what, where=str(self.path), fix="wait for it to end")

    def require_space(self) -> None:
        """Raise `MachineError` where the disk of this run has no room for a trial."""
        free = free_bytes(self.path)
        if free < LEAST_FREE_BYTES:
            problem = f"{format_bytes(free)} are free for results"
            problem += f", and a trial needs {format_bytes(LEAST_FREE_BYTES)}"
            raise MachineError(problem, where=str(self.path), fix=MAKE_ROOM)

    @property
    def scratch(self) -> Path:
        """A folder for what is of use only while the run is locked."""
        folder = self._incoming / "scratch"
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def write_plan(self, trials: Iterable[Trial]) -> None:
        """Write all trials of the run, in their order."""
        write_file(self.path / PLAN, _lines(trials), self._incoming)

    def read_plan(self) -> tuple[Trial, ...]:
        """All trials of the run, in their order; at the end those that were added to the plan."""
        planned = tuple(self.opener.read_lines(Trial, self.path / PLAN, _NEW_RUN))
        unplanned = set(self.trial_ids()) - {trial.id for trial in planned}
        opener = self.measured.opener
        records = [read_trial(opener, self._trials / trial_id, trial_id) for trial_id in unplanned]
        added = [record for record in records if record.trial.look]
        added.sort(key=lambda record: (record.trial.look, record.started_s))
        return (*planned, *(record.trial for record in added))

    def start_trial(self, trial: Trial) -> TrialFolder:
        """Make an empty folder for *trial*, which counts when it is committed."""
        return TrialFolder(trial, self.opener, self._incoming)

    def trials(self) -> dict[str, TrialRecord]:
        """Trials that have ended, by id, failed ones too, with their use in the plan."""
        opener = self.measured.opener
        plan = self.path / PLAN
        planned = self.opener.read_lines(Trial, plan, _NEW_RUN) if plan.exists() else ()
        trials = {trial.id: trial for trial in planned}
        records = [read_trial(opener, path, path.name) for path in folders(self._trials)]
        return {
            record.trial.id: record.model_copy(
                update={"trial": trials.get(record.trial.id, record.trial)}
            )
            for record in records
        }

    def attempts(self) -> list[TrialRecord]:
        """All attempts at trials, by their start: warm-up trials, repeated ones and those above."""
        paths = folders(self._trials)
        for kind in DISCARDED:
            paths += folders(self.path / kind)
        records = [read_trial(self.opener, path, path.name.split("-")[0]) for path in paths]
        return sorted(records, key=lambda record: record.started_s)

    def trial_ids(self) -> tuple[str, ...]:
        """Ids of the trials that have ended, without a look into them."""
        return tuple(folder.name for folder in folders(self._trials))

    def trial_dir(self, trial_id: str) -> Path:
        """Folder of a trial that has ended (`DataError` where there is none)."""
        folder = self._trials / check_name(trial_id, "a trial")
        if not folder.is_dir():
            problem = f"no trial {trial_id} in this run"
            raise DataError(problem, where=str(self._trials), fix="measure it: harness run FILE")
        return folder

    def take_in(self, source_run: Run, record: TrialRecord, trial: Trial) -> None:
        """Copy the *record* and the logs of what *source_run* measured, for the use of *trial*."""
        target = self._trials / trial.id
        folder = self._incoming / trial.id
        source = source_run.trial_dir(trial.id) / "raw"
        with os_error_as_machine_error(target):
            for file_name in source_run.opener.names(source):
                copy = folder / "raw" / file_name
                copy.parent.mkdir(parents=True, exist_ok=True)
                source_run.opener.copy(source / file_name, copy)
            document = record.model_copy(update={"trial": trial}).model_dump(mode="json")
            (folder / RECORD).write_bytes(json_bytes(document))
            write_evidence(folder, self.opener, f"trials/{trial.id}")
            sync_tree(folder)
            target.parent.mkdir(exist_ok=True)
            rename_durably(folder, target)

    def raw(self, trial_id: str) -> RawLogs:
        """Give a reader of the unedited logs of a trial."""
        return RawLogs(self.measured.opener, self.trial_dir(trial_id) / "raw")

    def write_trace(
        self, trial_id: str, traces: Sequence[JobTrace], recorded: tables.Recorded | None = None
    ) -> None:
        """Put traces of a trial's jobs, and what was *recorded*, in the place of older ones."""
        target = self.trial_dir(trial_id) / "trace"
        with self._replaced(target, f"{trial_id}.trace") as folder:
            tables.write_traces(folder, traces)
            if recorded is not None:
                tables.write_recordings(folder, recorded)
            add_tables(target.parent, folder, self.opener, self._incoming)

    def read_trace(self, trial_id: str, *, whole: bool = True) -> tuple[JobTrace, ...]:
        """Traces of the jobs of a trial, in order; attempts and counters only in *whole* ones."""
        return tables.read_traces(self.measured.opener, self._trace_dir(trial_id), whole=whole)

    def read_recordings(self, trial_id: str) -> Iterator[TaskSpans]:
        """What the tracer recorded in the tasks of a trial, one task at a time."""
        return tables.read_recordings(self.measured.opener, self._trace_dir(trial_id))

    def read_parts(self, trial_id: str, table_name: str) -> Iterator[dict[str, Any]]:
        """Columns of the table `attempts` or `spans` of a trial, by their names, part by part."""
        return tables.read_parts(self.measured.opener, self._trace_dir(trial_id), table_name)

    def read_units(self, trial_id: str) -> Iterator[UnitTimes]:
        """Seconds of every few records of the tasks of a trial, where they were asked for."""
        return tables.read_units(self.measured.opener, self._trace_dir(trial_id))

    def has_trace(self, trial_id: str) -> bool:
        """Whether the logs of this trial have been turned into a trace."""
        return (self.trial_dir(trial_id) / "trace").is_dir()

    def _trace_dir(self, trial_id: str) -> Path:
        """Folder of a trial's tables; `DataError` where they were left out of what is published."""
        folder = self.trial_dir(trial_id) / "trace"
        if not folder.is_dir():
            require_published(self.measured.opener, "traces")
        return folder

    def write_profile(self, profile: Profile) -> None:
        """Write *profile* as that of its workload."""
        file_name = f"{PROFILES}/{check_name(profile.workload, 'a workload')}.json"
        data = json_bytes(profile.model_dump(mode="json"))
        self.seal.store(file_name, data)

    def read_profiles(self) -> dict[str, Profile]:
        """Profiles by workload; `EvidenceError`: they are not as they were sealed."""
        paths = self.seal.files(PROFILES)
        profiles = {path.stem: self.opener.read_record(Profile, path, _PROFILE) for path in paths}
        if self.seal.exists():
            self.seal.check(PROFILES)
        return profiles

    def profile_hashes(self) -> dict[str, str]:
        """SHA-256 of each profile, by workload."""
        return {path.stem: self.opener.sha256(path) for path in self.seal.files(PROFILES)}

    def write_predictions(self, model: str, predictions: Iterable[Prediction]) -> None:
        """Write all that *model* predicts; `seal` makes them final."""
        file_name = f"{PREDICTIONS}/{check_name(model, 'a model')}.jsonl"
        data = _lines(predictions)
        write_file(self.path / file_name, data, self._incoming)

    def read_predictions(self) -> dict[str, tuple[Prediction, ...]]:
        """Predictions by model, in the order in which they were written."""
        paths = [path for path in self.seal.files(PREDICTIONS) if path.suffix == ".jsonl"]
        read = partial(self.opener.read_lines, Prediction, fix=PREDICT)
        return {path.stem: tuple(read(path=path)) for path in paths}

    def write_draw(self, draw: Draw) -> None:
        """Write which cells a drawn design has; `seal` makes it final."""
        data = json_bytes(draw.model_dump(mode="json"))
        write_file(self.path / DRAWN, data, self._incoming)

    def read_draw(self) -> Draw | None:
        """
        Which cells a drawn design has; `None` of another design, and before the draw.

        `EvidenceError`: it is not as it was sealed.
        """
        if not self.opener.exists(self.path / DRAWN):
            return None
        if self.seal.exists():
            self.seal.check(DRAWN)
        return self.opener.read_record(Draw, self.path / DRAWN, PREDICT)

    # Seals and evidence guard against mistakes, and show tampering to those who keep a copy.

    def check_evidence(self, *, with_scores: bool = True) -> bool:
        """Whether there is evidence; `EvidenceError` names all that is not as it was stored."""
        mark = self.opener.read(self.path / FINISHED, _NEW_RUN) if self.finished else b""
        last_line = mark.decode("ascii", "replace").strip()
        try:
            is_sound = check_evidence(self.opener, last_line, with_scores=with_scores)
        except EvidenceError as error:
            if not self.is_published:
                raise
            what = error.what.partition(f": {MAKE_SCORES}")[0]
            raise EvidenceError(what, where=error.where, fix=RESTORE_BUNDLE) from error
        if is_sound and self.measured is self and not self.is_published:
            lines = Chain(self.opener).lines()
            ledger.require_agreement(self.id, lines, self.path, finished=self.finished)
        # The scores of the run say nothing of an analysis.
        return (
            is_sound if self.measured is self else self.measured.check_evidence(with_scores=False)
        )

    def link_to(self, folder: Path, given: Sequence[str]) -> Run:
        """
        Make a run of links in *folder*, to plan, records, logs and what else is *given*.

        *given* are names of the run's files and folders; ``trace`` is that of each trial.
        """
        measured = self.measured.path.resolve()
        source = self.path.resolve()
        target = folder / measured.name
        linked = None
        linked_path = target
        if self is not self.measured:  # an analysis may lie elsewhere than the run that it is about
            linked = Run(target, base=measured)
            linked_path = target / ANALYSES / source.name
        run_names = [MANIFEST, PLAN, *(name for name in given if name != "trace")]
        trial_names = [RECORD, "raw", *(name for name in given if name == "trace")]
        paths = {linked_path / name: source / name for name in run_names}
        for trial_id in self.trial_ids():
            trial = Path("trials", trial_id)
            paths |= {target / trial / name: measured / trial / name for name in trial_names}
        for link, path in paths.items():
            with os_error_as_machine_error(folder):
                link.parent.mkdir(parents=True, exist_ok=True)
                link.symlink_to(path)
        return Run(linked_path, base=source, measured=linked)

    def write_scores(self, scores: ScoreBook) -> None:
        """Write the scores in place of older ones."""
        with self._replaced(self.output / SCORES, SCORES) as folder:
            data = json_bytes(scores.model_dump(mode="json"), indent=None)
            (folder / SCORES_FILE).write_bytes(data)
            if not self.is_foreign:
                Chain(self.opener).append(SCORES, hash_folder(folder, self.opener))

    @property
    def is_scored(self) -> bool:
        """Whether there are scores."""
        return any((folder / SCORES).exists() for folder in (self.path, self.output))

    def read_scores(self) -> ScoreBook:
        """Scores that were written last."""
        if self.is_foreign and (self.output / SCORES).exists():
            file = self.output / SCORES / SCORES_FILE
            return Opener(self.output).read_record(ScoreBook, file, _RESCORE)
        return self.read_stored_scores()

    def read_stored_scores(self) -> ScoreBook:
        """Scores that lie in the run itself, whatever was made of it since."""
        return self.opener.read_record(ScoreBook, self.path / SCORES / SCORES_FILE, _RESCORE)

    def write_report(self, file_name: str, text: str, folder: Path | None = None) -> Path:
        """Write the report *file_name* here, or into another *folder*; give its path."""
        path = (folder or self.output) / file_name
        write_file(path, text.encode(), folder or self._incoming)
        return path

    @contextmanager
    def _replaced(self, target: Path, file_name: str) -> Iterator[Path]:
        """Give an empty folder, *file_name*, which becomes *target* if the block ends well."""
        folder = self._incoming / file_name
        older = folder.with_name(f"{folder.name}.old")
        remove_tree(folder)
        with os_error_as_machine_error(folder):
            folder.mkdir(parents=True)
            yield folder
            sync_tree(folder)
            if target.exists():
                remove_tree(older)
                rename_durably(target, older)
            rename_durably(folder, target)
            remove_tree(older)


def _measured_by(analysis: Path, base: Path | None) -> Run:
    """Give the run that the *analysis* at this path is about; its links lead into *base*."""
    folder = analysis.absolute().parent.parent
    measured_path = None if base is not None else run_of_reading(folder)
    if measured_path is None:
        return Run(folder, base=base and base.parent.parent)
    measured = Run(measured_path)
    measured.output = folder
    return measured


def measured_part(experiment: Experiment) -> dict[str, Any]:
    """
    What *experiment* measures, as its document: all but its name and what is asked of the trials.

    The question, the models, and which cells feed profiles can change when all is measured.
    """
    document = experiment.model_dump(mode="json", exclude={"name", "question", "nightly"})
    document["predict"] = {"order": document["predict"]["order"]}
    return document


def _lines(records: Iterable[Record]) -> bytes:
    version = {"schema_version": SCHEMA_VERSION}
    return b"".join(
        json_bytes(version | record.model_dump(mode="json"), indent=None) for record in records
    )
