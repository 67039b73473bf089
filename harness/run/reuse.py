"""Trials that other runs have measured, taken over where nothing tells them from new ones."""

from __future__ import annotations

from collections.abc import Sequence

from harness.errors import DataError, SpecError
from harness.monitor.machine import machine_facts
from harness.records.trial import Trial
from harness.store import Run, Store

# Each node is this machine; of others only their trials' versions are known before they start.
_PROVIDERS = ("local", "docker")
VARIES = ("load", "disk")  # facts of a machine that are not what it is


def take_over(run: Run, store: Store, trials: Sequence[Trial]) -> dict[str, str]:
    """
    Copy done *trials* that *run* lacks from other runs of *store*; return those runs' ids by trial.

    A trial's id holds its cell and the versions of Hadoop, Java and jars; its machine, with the
    kernel, is compared here.  A run without evidence, or not as it was measured, gives nothing.
    """
    if others := {trial.cell.cluster.provider for trial in trials}.difference(_PROVIDERS):
        what = f"trials of provider {min(others)} cannot be taken over: its hosts may have changed"
        raise SpecError(what, where="--reuse", fix="measure them: leave --reuse out")
    taken = dict(run.read_manifest().reused)
    missing = {trial.id: trial for trial in trials if trial.id not in run.trials()}
    here = machine_facts()
    for all_run in reversed(store.all_runs()):
        held_trials = sorted(missing.keys() & set(all_run.trial_ids()))
        if not held_trials or all_run.id == run.id:
            continue
        try:
            if not is_same(all_run.read_manifest().machine, here) or not all_run.check_evidence():
                continue
        except DataError:
            continue
        records = all_run.trials()
        for trial_id in held_trials:
            if records[trial_id].state == "done":
                run.take_in(all_run, records[trial_id], missing.pop(trial_id))
                taken[trial_id] = all_run.read_manifest().reused.get(trial_id, all_run.id)
    run.update_manifest(reused=taken)
    return taken


def is_same(machine: dict[str, object], here: dict[str, object]) -> bool:
    """Whether the facts of a *machine*, which has an id, are those of this one."""
    names = {*machine, *here}.difference(VARIES)
    return "id" in here and all(machine.get(name) == here.get(name) for name in names)
