"""`results/` on disk: the only code that knows the names of its files (docs/results.md)."""

from __future__ import annotations

import calendar
import json
import re
import time

from collections.abc import Callable
from pathlib import Path

from harness.errors import DataError
from harness.experiment.model import Experiment
from harness.hadoop.secrets import DIGEST
from harness.records.manifest import Manifest
from harness.records.trial import digest
from harness.store.files import (
    check_name,
    exclusive_lock,
    folders,
    is_name,
    json_bytes,
    os_error_as_machine_error,
    remove_tree,
    rename_durably,
    sync_tree,
)
from harness.store.opener import MANIFEST
from harness.store.run import EXPERIMENT, Run
from harness.store.trials import RawLogs, TrialFolder
from harness.text import excerpt

__all__ = ["RawLogs", "Run", "Store", "TrialFolder", "check_name", "os_error_as_machine_error"]

_STAMP, _TICK_S = "%Y%m%dT%H%M%SZ", 2**-16
RUN_NAME = re.compile(r"[0-9]{8}T[0-9]{6}Z-[0-9a-f]{4}")


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
        experiment_dir = self.folder(experiment.name)
        scratch = experiment_dir / ".new"
        with exclusive_lock(experiment_dir / ".lock", f"experiment {experiment.name}", wait=True):
            remove_tree(scratch)
            if not new and (earlier_run := self.unfinished(experiment)):
                return earlier_run
            # Runs are named by time, to 1/65536 s: after all others even if the clock went back.
            earlier, created_s = self.runs(experiment.name), self._clock()
            if earlier:
                stamp, _, ticks = earlier[-1].id.rpartition("-")
                started_s = calendar.timegm(time.strptime(stamp, _STAMP)) + int(ticks, 16) * _TICK_S
                created_s = max(created_s, started_s + _TICK_S)
            second, part = divmod(created_s, 1)
            stamp = time.strftime(_STAMP, time.gmtime(second))
            target = experiment_dir / f"{stamp}-{int(part / _TICK_S):04x}"
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
        others = [earlier_run.id for earlier_run in earlier if not earlier_run.finished]
        if new or not others:
            return Run(target)
        older = Run(experiment_dir / others[-1]).read_manifest().experiment
        contents = {
            DIGEST.sub("", json.dumps(one, sort_keys=True)) for one in (older, manifest.experiment)
        }
        what = "a secret of the experiment" if len(contents) == 1 else "the experiment"
        note = f"{what} differs from that of the unfinished run {others[-1]}: new run"
        return Run(target, note)

    def unfinished(self, experiment: Experiment) -> Run | None:
        """Give the newest unfinished run with the resolved content of *experiment*, if any."""
        identity = _identity(experiment)
        for run in reversed(self.runs(experiment.name)):
            if not run.finished and run.read_manifest().experiment_id == identity:
                return run
        return None

    def latest(self, experiment_name: str) -> Run:
        """Give the newest run of an experiment, finished or not."""
        runs = self.runs(experiment_name)
        if not runs:
            raise DataError(
                f"no run of experiment {experiment_name}",
                where=str(self.folder(experiment_name)),
                fix="start one with 'harness run FILE', or name the folder with --results-dir",
            )
        return runs[-1]

    def runs(self, experiment_name: str) -> tuple[Run, ...]:
        """All runs of an experiment, oldest first."""
        paths = folders(self.folder(experiment_name))
        return tuple(Run(path) for path in paths if RUN_NAME.fullmatch(path.name))

    def trial_ids(self) -> list[str]:
        """Ids of all trials that have ended, those of the newest run last."""
        return list(dict.fromkeys(trial for run in self._all_runs() for trial in run.trial_ids()))

    def find_trial(self, prefix: str) -> tuple[Run, str]:
        """Give the newest run with the trial of this *prefix*, and its id; `DataError`: not one."""
        matching = {
            trial: run
            for run in self._all_runs()
            for trial in run.trial_ids()
            if trial.startswith(prefix)
        }
        if len(matching) == 1 and prefix:
            ((trial, run),) = matching.items()
            return run, trial
        several = f"'{excerpt(prefix)}' matches several trials: {', '.join(sorted(matching)[:4])}"
        raise DataError(
            several if matching else f"no trial '{excerpt(prefix)}'",
            where=str(self.results_dir),
            fix="write more of its id" if matching else "harness plan FILE names the trials",
        )

    def _all_runs(self) -> list[Run]:
        """All runs of all experiments, oldest first."""
        names = [folder.name for folder in folders(self.results_dir) if is_name(folder.name)]
        return sorted((run for name in names for run in self.runs(name)), key=lambda run: run.id)

    def folder(self, experiment_name: str) -> Path:
        """Folder of the runs of an experiment."""
        return self.results_dir / check_name(experiment_name, "an experiment")


def _identity(experiment: Experiment) -> str:
    return digest(experiment.model_dump(mode="json"))
