"""Trials that other runs have measured, taken over where nothing tells them from new ones."""

from __future__ import annotations

from collections.abc import Sequence

from harness.base.errors import DataError, SpecError
from harness.base.records.trial import Trial
from harness.clusters.monitor.machine import machine_facts
from harness.core.store import Run, Store

# Each node is this machine; of others only their trials' versions are known before they start.
_PROVIDERS = ("local", "docker")
VARIES = ("load", "disk")  # facts of a machine that are not what it is


def take_over(run: Run, store: Store, trials: Sequence[Trial]) -> dict[str, str]:
    """
    Copy done *trials* that *run* lacks from other runs of *store*; return those runs' ids by trial.

    A trial's id holds its cell and the versions of Hadoop, Java and jars; its machine, with the
    kernel, is compared here.  A run without evidence, or not as it was measured, gives nothing.
    Sentinels say what the machine does while this run is measured: they are never taken over.
    """
    providers = {trial.cell.cluster.provider for trial in trials}
    if foreign := providers.difference(_PROVIDERS):
        what = f"trials of provider {min(foreign)} cannot be taken over: its hosts may have changed"
        raise SpecError(what, where="--reuse", fix="measure them: leave --reuse out")
    taken = dict(run.read_manifest().reused)
    missing = {
        trial.id: trial for trial in trials if trial.id not in run.trials() and not trial.sentinel
    }
    machine = machine_facts()
    for source in reversed(store.all_runs()):
        held_trials = sorted(missing.keys() & set(source.trial_ids()))
        if not held_trials or source.id == run.id or not _is_trustworthy(source, machine):
            continue
        records = source.trials()
        for trial_id in held_trials:
            if records[trial_id].state == "done":
                run.take_in(source, records[trial_id], missing.pop(trial_id))
                taken[trial_id] = source.read_manifest().reused.get(trial_id, source.id)
    run.update_manifest(reused=taken)
    return taken


def _is_trustworthy(run: Run, machine: dict[str, object]) -> bool:
    """Whether *run* was measured on this *machine*, and is still as it was measured."""
    try:
        return is_same(run.read_manifest().machine, machine) and run.check_evidence()
    except DataError:
        return False


def is_same(machine: dict[str, object], target_machine: dict[str, object]) -> bool:
    """Whether the facts of a *machine*, which has an id, are those of *target_machine*."""
    names = {*machine, *target_machine}.difference(VARIES)
    is_identified = "id" in target_machine
    return is_identified and all(machine.get(name) == target_machine.get(name) for name in names)
