"""`results/` on disk: the only code that knows the names of its files (docs/results.md)."""

from __future__ import annotations

import calendar
import hashlib
import json
import re
import time

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path

from harness.base.errors import DataError, HarnessError, SpecError
from harness.base.hadoop.secrets import DIGEST
from harness.base.records.manifest import Manifest
from harness.base.records.trial import SCHEMA_VERSION, Trial, Versions, digest, trial_id
from harness.base.text import excerpt
from harness.core.experiment.model import Experiment
from harness.core.store.evidence import CHAIN, Chain
from harness.core.store.packed import is_bundle, opened
from harness.core.store.published import bundle_of
from harness.core.store.readings import (
    READINGS,
    identity,
    is_own,
    place_of,
    read_source,
    reading_folder,
    run_of_reading,
    write_source,
)
from harness.core.store.run import EXPERIMENT, Run, measured_part
from harness.core.store.seal import ANALYSES, PLAN
from harness.core.store.sums import SUMS
from harness.core.store.trials import RawLogs, TrialFolder
from harness.observe.storage.files import (
    check_name,
    exclusive_lock,
    folders,
    is_name,
    is_path,
    json_bytes,
    os_error_as_machine_error,
    remove_tree,
    rename_durably,
    sync_tree,
)
from harness.observe.storage.opener import MANIFEST, Opener

__all__ = ["RawLogs", "Run", "Store", "TrialFolder", "check_name", "os_error_as_machine_error"]

_STAMP = "%Y%m%dT%H%M%SZ"
_TICK_S = 2**-16
RUN_NAME = re.compile(r"[0-9]{8}T[0-9]{6}Z-[0-9a-f]{4}")
_MOST_NAMED = 6


class Store:
    """All results under one folder."""

    def __init__(self, results_dir: Path, *, clock: Callable[[], float] = time.time) -> None:
        """Keep results under *results_dir*, which need not exist; *clock* gives epoch seconds."""
        self.results_dir = results_dir
        self._clock = clock

    def open_run(
        self,
        experiment: Experiment,
        text: str,
        *,
        new: bool = False,
        versions: Versions | None = None,
    ) -> Run:
        """
        Continue the newest unfinished run of *experiment*, or open one (always where *new*).

        Only a run that measures the same, by the same *versions* where given, is continued.  *text*
        is the experiment file as given.  Two callers at once get the same run; `Run.lock` then
        refuses the second.
        """
        experiment_dir = self.folder(experiment.name)
        scratch = experiment_dir / ".new"
        with exclusive_lock(experiment_dir / ".lock", f"experiment {experiment.name}", wait=True):
            remove_tree(scratch)
            if not new:
                for run in reversed(self.fitting(experiment)):
                    if not run.finished and (versions is None or _is_planned_by(run, versions)):
                        return run
            earlier = self.runs(experiment.name)
            target = experiment_dir / _new_name(self._clock(), earlier)
            manifest = Manifest(
                run=target.name,
                created_s=round(self._clock(), 3),
                experiment_id=digest(measured_part(experiment)),
                experiment=experiment.model_dump(mode="json"),
            )
            with os_error_as_machine_error(target):
                scratch.mkdir()
                data = json_bytes(manifest.document())
                (scratch / MANIFEST).write_bytes(data)
                (scratch / EXPERIMENT).write_bytes(text.encode())
                sha256 = hashlib.sha256(data).hexdigest()
                Chain(Opener(scratch)).append(MANIFEST, sha256, starts=True)
                sync_tree(scratch)
                rename_durably(scratch, target)
        unfinished = [run for run in earlier if not run.finished]
        if new or not unfinished:
            return Run(target)
        what = _difference(unfinished[-1], experiment, manifest)
        return Run(target, f"{what} from that of the unfinished run {unfinished[-1].id}: new run")

    def fitting(self, experiment: Experiment) -> tuple[Run, ...]:
        """Runs that measured the same as *experiment* does, whatever it asks; oldest first."""
        return tuple(run for run in self.runs(experiment.name) if run.fits(experiment))

    def latest(self, experiment_name: str) -> Run:
        """Give the newest run of an experiment that has a trial; without any, the newest."""
        runs = self.runs(experiment_name)
        if not runs:
            raise DataError(
                f"no run of experiment {experiment_name}",
                where=str(self.folder(experiment_name)),
                fix="start one with 'harness run FILE', or name the folder with --results-dir",
            )
        return next((run for run in reversed(runs) if run.trial_ids()), runs[-1])

    def find(self, text: str) -> Run:
        """
        Give the run or analysis *text*: its folder, its id or the first characters of that.

        The name or the folder of an experiment is its newest run with a trial, a bundle, packed or
        not, its only run.  `DataError` names what there is where none fits, or several do.
        """
        if not text or not is_path(text):
            raise self._missing_error(text)
        found = self._at_path(text)
        if found is not None:
            return found
        matching = self._named(text)
        if len(matching) > 1:
            what = f"'{excerpt(text)}' are the first characters of {len(matching)} runs"
            fix = "write more of the id"
            raise DataError(f"{what}: {_paths(matching)}", where=str(self.results_dir), fix=fix)
        if not matching:
            raise self._missing_error(text)
        return matching[0]

    def _named(self, text: str) -> list[Run]:
        """Own runs whose ids begin with *text*; else that of the bundle *text*, or of bundles."""
        matching = _with_id(text, [*self.all_runs(), *self.imports()])
        if matching:
            return matching
        named_bundles = [place for place in self.bundles() if place.name == text]
        if len(named_bundles) == 1:
            return [self.find(str(named_bundles[0]))]
        return _with_id(text, self.bundled_runs())

    def _at_path(self, text: str) -> Run | None:
        """Give the run that *text* names by a folder or a packed bundle, if it does."""
        path = opened(Path(text))
        if (path / MANIFEST).is_file():
            return self._run_at(path, Path(text))
        if (path / SUMS).is_file():
            bundled_path = _only_run(path, text)
            return self._run_at(bundled_path, Path(text, *bundled_path.parts[-2:]))
        for folder in (path, self.results_dir / text):
            names = [entry.name for entry in folders(folder)]
            if any(map(RUN_NAME.fullmatch, names)) and is_name(folder.resolve().name):
                store = Store(folder.resolve().parent)
                return self._run_at(store.latest(folder.resolve().name).path)
        return None

    def _run_at(self, path: Path, place: Path | None = None) -> Run:
        """
        Open the run or analysis at *path*, which the user finds at *place*.

        Of one that stays as it is, what is made of it will be kept below this folder of results.
        """
        run = Run(path)
        measured = run.measured
        if not measured.is_foreign and not is_own(measured.path):
            measured.output = reading_folder(self.results_dir, measured.path)
            measured.place = place or path
        if run is not measured and not is_own(run.path):
            run.output = measured.output / ANALYSES / run.id
        return run

    def _missing_error(self, text: str) -> DataError:
        """Error about *text*, which names no run, with what may have been meant."""
        path = Path(text)
        runs = self.all_runs()
        if text and is_path(text) and path.is_dir():
            what = f"this folder holds no run: it has no {MANIFEST}, or is only half copied"
            fix = "harness runs --results-dir FOLDER lists them"
            if runs:
                fix = f"name one of {_paths(runs)}"
            return DataError(what, where=str(path.absolute()), fix=fix)
        choices = "there is none: harness run FILE makes one"
        if runs:
            choices = f"there are {_paths(runs)}"
        return DataError(
            f"no run is called '{excerpt(text)}'",
            where=str(self.results_dir.absolute()),
            fix=f"{choices}; harness runs --results-dir FOLDER lists those of another folder",
        )

    def runs(self, experiment_name: str) -> tuple[Run, ...]:
        """All runs of an experiment, oldest first."""
        paths = folders(self.folder(experiment_name))
        return tuple(self._run_at(path) for path in paths if _is_measured(path))

    def imports(self) -> tuple[Run, ...]:
        """Runs with names of their users' own: those that were imported; by their names."""
        paths = list[Path]()
        for folder in self._parts():
            paths += [folder, *folders(folder)]
        return tuple(
            self._run_at(path)
            for path in paths
            if is_name(path.name) and not _is_measured(path) and (path / MANIFEST).is_file()
        )

    def bundles(self) -> tuple[Path, ...]:
        """Bundles below this folder, packed or not; of a packed one the folder that it lies in."""
        paths = list[Path]()
        for folder in self._parts():
            paths += [folder] if is_bundle(folder) else folders(folder)
        return tuple(path for path in paths if is_bundle(path))

    def bundled_runs(self, bundle: Path | None = None) -> list[Run]:
        """
        Runs of *bundle*, or of all bundles below this folder; one that is unsound has none.

        Of all, so are those that lie elsewhere, where something was made of them here.
        """
        runs = list[Run]()
        for place in self.bundles() if bundle is None else [bundle]:
            with suppress(HarnessError):
                for path in folders(opened(place) / "runs"):
                    runs.append(self._run_at(path, place / "runs" / path.name))
        if bundle is None:
            outputs = {run.output for run in runs}
            runs += [run for run in self.read_elsewhere() if run.output not in outputs]
        return runs

    def read_elsewhere(self) -> Iterator[Run]:
        """Other people's runs of which something was made here, as far as they are still there."""
        for bundle_folder in folders(self.results_dir / READINGS):
            for folder in folders(bundle_folder):
                with suppress(HarnessError):
                    path = run_of_reading(folder)
                    source = read_source(folder)
                    if path is not None and source is not None:
                        run = Run(path)
                        run.output = folder
                        run.place = place_of(folder, source)
                        yield run

    def lost_readings(self) -> Iterator[tuple[Path, str]]:
        """Folders of what was made of runs that are no longer where they were, each with why."""
        for bundle_folder in folders(self.results_dir / READINGS):
            for folder in folders(bundle_folder):
                try:
                    run_of_reading(folder)
                except HarnessError as error:
                    yield folder, error.what

    def _parts(self) -> list[Path]:
        """Folders below this one that have results, but what was made of other people's."""
        return [
            folder
            for folder in folders(self.results_dir)
            if is_name(folder.name) and folder.name != READINGS
        ]

    def trial_ids(self) -> list[str]:
        """Ids of all trials that have ended, those of the newest run last."""
        runs = (*self.imports(), *self.all_runs())
        return list(dict.fromkeys(chain.from_iterable(run.trial_ids() for run in runs)))

    def find_trial(self, prefix: str) -> tuple[Run, str]:
        """
        Give the newest run with the trial of this *prefix*, and its id; `DataError`: not one.

        A trial of a bundle, or of a run elsewhere, is named by the run's path and its id behind it.
        """
        place, _, trial_prefix = prefix.rpartition("/")
        runs = (*self.imports(), *self.all_runs())
        if place:
            runs = (self.find(place.removesuffix("/trials")).measured,)
        matching: dict[str, Run] = {}
        for run in runs:
            trial_ids = [name for name in run.trial_ids() if name.startswith(trial_prefix)]
            matching |= dict.fromkeys(trial_ids, run)
        if len(matching) == 1 and trial_prefix:
            ((trial_id, run),) = matching.items()
            return run, trial_id
        if place and not matching:
            runs[0].require_published("traces")
        what = f"no trial '{excerpt(prefix)}'"
        fix = "harness plan FILE names the trials"
        if matching:
            named = ", ".join(sorted(matching)[:4])
            what = f"'{excerpt(prefix)}' matches several trials: {named}"
            fix = "write more of its id"
        raise DataError(what, where=str(self.results_dir), fix=fix)

    def all_runs(self) -> list[Run]:
        """All runs of all experiments, oldest first."""
        runs: list[Run] = []
        for folder in self._parts():
            runs += self.runs(folder.name)
        return sorted(runs, key=lambda run: run.id)

    def folder(self, experiment_name: str) -> Path:
        """Folder of the runs of an experiment."""
        return self.results_dir / check_name(experiment_name, "an experiment")


def _is_measured(path: Path) -> bool:
    """
    Whether the folder *path* is a run of an experiment: by its name, and by what it has.

    Where nights are published their folders have scores alone, and a bundle has runs of its own.
    """
    if not RUN_NAME.fullmatch(path.name) or bundle_of(path) is not None:
        return False
    return (path / MANIFEST).exists() or (path / "trials").is_dir()


def _with_id(text: str, runs: Iterable[Run]) -> list[Run]:
    """Those of *runs*, and of their analyses, whose ids begin with *text*."""
    candidates = chain.from_iterable((run, *run.analyses()) for run in runs)
    matching = [candidate for candidate in candidates if candidate.id.startswith(text)]
    # A bundle may lie here twice, packed and not: what was made of it is the same.
    return [*{(run.id, run.output): run for run in matching}.values()]


def _only_run(bundle: Path, name: str) -> Path:
    """Give the path of the run of *bundle*, which was called *name*; `SpecError`: has several."""
    paths = folders(bundle / "runs")
    if len(paths) == 1:
        return paths[0]
    where = excerpt(name, 300)
    if paths:
        names = ", ".join(f"{name}/runs/{path.name}" for path in paths[-_MOST_NAMED:])
        raise SpecError(
            f"the bundle has {len(paths)} runs", where=where, fix=f"name one of {names}"
        )
    fix = "get the bundle again: harness publish makes it"
    raise DataError("the bundle has no runs", where=where, fix=fix)


def _is_planned_by(run: Run, versions: Versions) -> bool:
    """Whether the trials of *run* were planned for these *versions*, those of this machine."""
    planned = run.read_plan() if (run.path / PLAN).is_file() else ()
    if not planned:
        return True
    first = planned[0]
    return first.id == trial_id(first.cell, first.repetition, versions)


def _difference(older: Run, experiment: Experiment, manifest: Manifest) -> str:
    """Why *experiment*, as a new run has it in its *manifest*, cannot continue the *older* run."""
    if older.fits(experiment):
        return "the Hadoop, Java or jars differ"
    without_secrets = {
        DIGEST.sub("", json.dumps(document, sort_keys=True))
        for document in (older.read_manifest().experiment, manifest.experiment)
    }
    return f"{'a secret of ' if len(without_secrets) == 1 else ''}the experiment differs"


def _paths(runs: Sequence[Run]) -> str:
    return ", ".join(str(run.path) for run in runs[-_MOST_NAMED:])


def _new_name(now_s: float, earlier: Sequence[Run]) -> str:
    """Name of a run by its time, to 1/65536 s: after all *earlier* even if the clock went back."""
    if earlier:
        stamp, _, ticks = earlier[-1].id.rpartition("-")
        started_s = calendar.timegm(time.strptime(stamp, _STAMP)) + int(ticks, 16) * _TICK_S
        now_s = max(now_s, started_s + _TICK_S)
    second, part = divmod(now_s, 1)
    return f"{time.strftime(_STAMP, time.gmtime(second))}-{int(part / _TICK_S):04x}"


@contextmanager
def new_analysis(
    run: Run, experiment: Experiment, plan: Sequence[Trial], version: str
) -> Iterator[Run]:
    """
    Give an analysis of *run* to be filled, which appears beside its others if the block ends well.

    *experiment* is what is asked, *plan* the trials of the run with their use in it, *version* that
    of the harness that asks.  Needs no lock: every analysis has a folder of its own.
    """
    measured = run.measured
    now_s = time.time()
    name = _new_name(now_s, measured.analyses())
    origin = measured.id
    if measured.is_foreign:
        write_source(measured.output, measured.path, measured.place)
        if bundle_of(measured.path) is not None:
            origin += f" of bundle {identity(measured.path)}"
    analysis = Run(measured.output / ANALYSES / f".{name}")
    changes = {"run": name, "created_s": round(now_s, 3), "analysis_of": origin}
    document = measured.read_manifest().document() | changes | {"harness": version}
    document |= {"experiment": experiment.model_dump(mode="json")}
    document |= {"schema_version": SCHEMA_VERSION}
    with os_error_as_machine_error(analysis.path):
        analysis.path.mkdir(parents=True)
    with os_error_as_machine_error(analysis.path, is_long=True):
        try:
            with analysis.lock():  # shows that it is not abandoned
                (analysis.path / CHAIN).touch()  # of its own
                data = json_bytes(Manifest.model_validate(document).document())
                (analysis.path / MANIFEST).write_bytes(data)
                analysis.write_plan(plan)
                yield analysis
                analysis.finish()
            sync_tree(analysis.path)
            rename_durably(analysis.path, analysis.path.with_name(name))
        except BaseException:
            remove_tree(analysis.path)
            raise
