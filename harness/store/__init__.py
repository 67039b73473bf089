"""
`results/` on disk: the only code that knows the names of its files.

    results/<experiment>/<run>/
        manifest.json experiment.yaml plan.jsonl lock finished
        trials/<id>/trial.json raw/ trace/     appear by one rename each
        warmup/ retried/                       kept, never counted; an interrupted trial too
        incoming/                              half-done; removed when the run is locked, and after
        profiles/<workload>.json predictions/<model>.jsonl predictions/sealed.json
        scores/*.parquet report.html report.json
"""

from __future__ import annotations

import calendar
import re
import time

from collections.abc import Callable, Iterator
from pathlib import Path

from harness.errors import DataError
from harness.experiment.model import Experiment
from harness.records.manifest import Manifest
from harness.records.trial import digest
from harness.store.files import (
    check_name,
    exclusive_lock,
    full_disk_as_machine_error,
    is_name,
    json_bytes,
    os_error_as_machine_error,
    remove_tree,
    rename_durably,
    sync_tree,
)
from harness.store.run import EXPERIMENT, MANIFEST, Run
from harness.store.trials import RawLogs, TrialFolder
from harness.text import excerpt

__all__ = ["RawLogs", "Run", "Store", "TrialFolder", "check_name", "full_disk_as_machine_error"]

_STAMP, _TICK_S = "%Y%m%dT%H%M%SZ", 2**-16
_RUN = re.compile(r"[0-9]{8}T[0-9]{6}Z-[0-9a-f]{4}")


class Store:
    """All results under one folder."""

    def __init__(self, results_dir: Path, *, clock: Callable[[], float] = time.time) -> None:
        """Keep results under *results_dir*, which need not exist; *clock* gives epoch seconds."""
        self.results_dir, self._clock = results_dir, clock

    def open_run(self, experiment: Experiment, text: str, *, new: bool = False) -> Run:
        """
        Continue the newest unfinished run of *experiment*, or open one (always where *new*).

        Only a run with the same resolved content is continued.  *text* is the experiment file as
        given.  Two callers at once get the same run; `Run.lock` then refuses the second.
        """
        parent = self._folder(experiment.name)
        with exclusive_lock(parent / ".lock", f"experiment {experiment.name}", wait=True):
            remove_tree(parent / ".new")
            return (None if new else self.unfinished(experiment)) or self._create(
                parent, experiment, text, "" if new else self._note(experiment.name)
            )

    def unfinished(self, experiment: Experiment) -> Run | None:
        """Give the newest unfinished run with the resolved content of *experiment*, if any."""
        for run in reversed(self.runs(experiment.name)):
            if not run.finished and run.read_manifest().experiment_id == _identity(experiment):
                return run
        return None

    def latest(self, experiment_name: str) -> Run:
        """Give the newest run of an experiment, finished or not."""
        runs = self.runs(experiment_name)
        if not runs:
            raise DataError(
                f"no run of experiment {experiment_name}",
                where=str(self._folder(experiment_name)),
                fix="start one with 'harness run FILE', or name the folder with --results-dir",
            )
        return runs[-1]

    def runs(self, experiment_name: str) -> tuple[Run, ...]:
        """All runs of an experiment, oldest first."""
        parent = self._folder(experiment_name)
        with os_error_as_machine_error(parent):
            names = [path.name for path in parent.iterdir()] if parent.is_dir() else []
        return tuple(Run(parent / name) for name in sorted(names) if _RUN.fullmatch(name))

    def trial_ids(self) -> list[str]:
        """Ids of all trials that have ended, those of the newest run last."""
        runs = sorted(self._all_runs(), key=lambda run: run.id)
        return list(dict.fromkeys(trial for run in runs for trial in run.trial_ids()))

    def find_trial(self, prefix: str) -> tuple[Run, str]:
        """
        Give the trial whose id has this prefix, and its run: the newest one where several have it.

        `DataError` where there is none, or several.
        """
        matching = {
            trial: run
            for run in sorted(self._all_runs(), key=lambda run: run.id)
            for trial in run.trial_ids()
            if trial.startswith(prefix)
        }
        if len(matching) == 1 and prefix:
            ((trial, run),) = matching.items()
            return run, trial
        several = f"'{excerpt(prefix)}' begins several trials: {', '.join(sorted(matching)[:4])}"
        raise DataError(
            several if matching else f"no trial '{excerpt(prefix)}'",
            where=str(self.results_dir),
            fix="write more of its id" if matching else "harness plan FILE names the trials",
        )

    def _all_runs(self) -> Iterator[Run]:
        with os_error_as_machine_error(self.results_dir):
            folders = self.results_dir.iterdir() if self.results_dir.is_dir() else iter(())
            names = [folder.name for folder in folders if folder.is_dir() and is_name(folder.name)]
        for name in names:
            yield from self.runs(name)

    def _folder(self, experiment_name: str) -> Path:
        return self.results_dir / check_name(experiment_name, "an experiment")

    def _create(self, parent: Path, experiment: Experiment, text: str, note: str) -> Run:
        target, scratch = parent / self._next_id(experiment.name), parent / ".new"
        manifest = Manifest(
            run=target.name,
            created_s=round(self._clock(), 3),
            experiment_id=_identity(experiment),
            experiment=experiment.model_dump(mode="json"),
        )
        with os_error_as_machine_error(target):
            scratch.mkdir()
            (scratch / MANIFEST).write_bytes(json_bytes(manifest.document()))
            (scratch / EXPERIMENT).write_bytes(text.encode())
            sync_tree(scratch)
            rename_durably(scratch, target)
        return Run(target, note)

    def _note(self, experiment_name: str) -> str:
        unfinished = (run.id for run in self.runs(experiment_name)[::-1] if not run.finished)
        other = next(unfinished, "")
        return other and f"the experiment differs from that of the unfinished run {other}: new run"

    def _next_id(self, experiment_name: str) -> str:
        """Name a new run by time, to 1/65536 s; after all others even if the clock went back."""
        now = self._clock()
        for run in self.runs(experiment_name):
            stamp, _, ticks = run.id.rpartition("-")
            started_s = calendar.timegm(time.strptime(stamp, _STAMP)) + int(ticks, 16) * _TICK_S
            now = max(now, started_s + _TICK_S)
        second, part = divmod(now, 1)
        return f"{time.strftime(_STAMP, time.gmtime(second))}-{int(part / _TICK_S):04x}"


def _identity(experiment: Experiment) -> str:
    return digest(experiment.model_dump(mode="json"))
