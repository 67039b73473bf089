"""How it was measured: the set-up, the order of the trials, and the manifest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from harness.experiment.grid import readable
from harness.experiment.model import UNLIMITED, Experiment
from harness.records.trial import ENTRY as LIMITS
from harness.records.trial import Hardware
from harness.reports.data import ReportData
from harness.reports.document import Section, Text, table
from harness.reports.wording import UNKNOWN, count, moment
from harness.units import format_bytes, format_duration


def section(results: ReportData) -> Section:
    """The set-up that was asked for, the disturbed trials, and what the run says of itself."""
    rules = results.disturbed_trials()
    disturbed = [
        (record.trial.id, results.label(record.trial.cell.id), rules[record.trial.id])
        for record in results.ordered_trials()
        if record.trial.id in rules
    ]
    rows = []
    shown = {
        entry_name: entry_value
        for entry_name, entry_value in results.manifest.items()
        if entry_name != LIMITS
    }
    for entry_name, entry_value in flatten(shown):
        text = UNKNOWN if entry_value is None or entry_value in ("", {}) else str(entry_value)
        if isinstance(entry_value, int | float) and not isinstance(entry_value, bool):
            if entry_name.endswith("_s") and entry_value > 1e9:
                text = moment(entry_value)
            elif entry_name.endswith("_bytes"):
                text = format_bytes(entry_value)
        elif isinstance(entry_value, list | tuple):
            between = " " if "command" in entry_name or "argv" in entry_name else ", "
            text = between.join(str(each) for each in entry_value)
        rows.append((entry_name, text))
    trials = results.trials
    order = "No trial has been run."
    if trials:
        profiling = sum(record.trial.profiling for record in trials)
        done = sum(record.state == "done" for record in trials)
        first_s = min(record.started_s for record in trials)
        took = format_duration(max(record.finished_s for record in trials) - first_s)
        cells = count(len({record.trial.cell.id for record in trials}), "cell")
        order = (
            f"{count(len(trials), 'trial')} of {cells} within {took}, in an order shuffled with"
            f" seed {results.experiment.seed} and repeats interleaved; {done} done. {profiling} of"
            " them fed the profiles and are never scored."
        )
    return Section(
        id="method",
        title="How it was measured",
        blocks=[
            Text(order),
            table("The experiment", ("What", "Value"), "ll", list(_setup(results.experiment))),
            table(
                "Disturbed trials",
                ("Trial", "Cell", "Rule"),
                "cll",
                disturbed,
                note="Marked by a rule fixed beforehand; scored like any other trial.",
            ),
            table("Manifest", ("Name", "Value"), "cl", rows),
        ],
        values=lambda: {"manifest": dict(results.manifest)},
    )


def _setup(experiment: Experiment) -> Iterator[tuple[str, str]]:
    """What the experiment file asks for: the cluster, the design, and the axes."""
    cluster, node, design = experiment.cluster, experiment.cluster.node, experiment.design
    slots = f"{_values(node.map_slots)} map, {_values(node.reduce_slots)} reduce"
    memory = ", ".join(format_bytes(size) for size in node.task_memory_bytes)
    yield "cluster", f"{cluster.provider}, {_values(cluster.workers)} workers"
    yield "slots per node", f"{slots}, {memory} each"
    if any(node.gpus) or node.gpus_found:
        origin = "found" if node.gpus_found else "declared, not detected"
        yield "GPUs per node", f"{_values(node.gpus)} ({origin})"
    for field in Hardware.model_fields:
        limits, axis = getattr(node, field), field.partition("_")[0]
        if any(limit is not None for limit in limits):
            texts = tuple(readable(axis, limit or UNLIMITED) for limit in limits)
            yield f"{axis} of a node", _values(texts)
    for entry_name, own in cluster.nodes.items():
        limits = {field.partition("_")[0]: limit for field, limit in own.limits().items()}
        texts = tuple(
            f"{axis_name} {readable(axis_name, setting)}"
            for axis_name, setting in limits.items()
            if setting is not None
        )
        yield f"{entry_name} alone", _values(texts)
    points = "" if design.points is None else f", {design.points} points"
    yield "design", f"{design.kind}{points}"
    yield "repeats of a cell", str(experiment.repeat)
    yield "warm-up trials, not counted", str(experiment.warmup)
    yield "order", f"shuffled with seed {experiment.seed}, repeats interleaved"
    yield "time limit of a trial", format_duration(experiment.trial_limit_s)
    yield "models", ", ".join(experiment.predict.models) or "none"
    for workload in experiment.workloads:
        sizes = ", ".join(format_bytes(size) for size in workload.input_bytes)
        further = "".join(
            f"; {key} {_values(setting)}" for key, setting in workload.parameters.items()
        )
        yield f"input of {workload.name}", f"{sizes}; seed {workload.seed}{further}"
    for entry_name, values in (*experiment.configuration.items(), *cluster.site.items()):
        yield entry_name, _values(values)
    for entry_name, values in experiment.predict.profile_on.items():
        is_size = entry_name.endswith("input")
        shown = (
            format_bytes(int(setting))
            if is_size and setting.isascii() and setting.isdigit()
            else setting
            for setting in values
        )
        yield f"profiled on {entry_name}", ", ".join(shown)


def _values(values: tuple[Any, ...]) -> str:
    return ", ".join(str(entry_value) for entry_value in values)


def flatten(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """
    Leaves of nested mappings by their dotted names.

    >>> list(flatten({"a": {"b": 1}, "c": [1, 2]}))
    [('a.b', 1), ('c', [1, 2])]
    """
    for key, entry_value in values.items():
        if isinstance(entry_value, Mapping) and entry_value:
            yield from flatten(entry_value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", entry_value
