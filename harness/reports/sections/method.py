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
    shown = {name: value for name, value in results.manifest.items() if name != LIMITS}
    for name, value in flatten(shown):
        text = UNKNOWN if value is None or value in ("", {}) else str(value)
        if isinstance(value, int | float) and not isinstance(value, bool):
            if name.endswith("_s") and value > 1e9:
                text = moment(value)
            elif name.endswith("_bytes"):
                text = format_bytes(value)
        elif isinstance(value, list | tuple):
            text = (" " if "command" in name or "argv" in name else ", ").join(map(str, value))
        rows.append((name, text))
    order = "No trial has been run."
    if trials := results.trials:
        profiling = sum(record.trial.profiling for record in trials)
        done = len(trials) - len(results.failed_trials())
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
            *(Text(sentence) for sentence in _sealed(results.seal)),
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
        values=lambda: {"manifest": dict(results.manifest), "seal": dict(results.seal)},
    )


def _sealed(seal: Mapping[str, Any]) -> Iterator[str]:
    """Whether the predictions were made before what they are compared with, and made anew since."""
    if seal:
        reason = f"Not blind: {'; '.join(seal['not_blind'])}."
        blind = "Blind: every scored trial was measured after the predictions were sealed."
        yield reason if seal["not_blind"] else blind
        if seal["seals"] > 1:
            changes = "; ".join(seal["changed_since_the_first"]) or "nothing differs"
            yield f"Sealed {seal['seals']} times. Since the first seal: {changes}."


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
    for name, own in cluster.nodes.items():
        limits = {field.partition("_")[0]: limit for field, limit in own.limits().items()}
        texts = tuple(
            f"{axis} {readable(axis, limit)}" for axis, limit in limits.items() if limit is not None
        )
        yield f"{name} alone", _values(texts)
    points = "" if design.points is None else f", {design.points} points"
    yield "design", f"{design.kind}{points}"
    more = ", and more until decided" if experiment.is_until_decided else ""
    yield "repeats of a cell", f"{experiment.first_repeats}{more}"
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
    for name, values in (*experiment.configuration.items(), *cluster.site.items()):
        yield name, _values(values)
    for name, values in experiment.predict.profile_on.items():
        if name.endswith("input"):
            values = tuple(  # noqa: PLW2901 - sizes are read in units
                format_bytes(int(value)) if value.isascii() and value.isdigit() else value
                for value in values
            )
        yield f"profiled on {name}", _values(values)


def _values(values: tuple[Any, ...]) -> str:
    return ", ".join(map(str, values))


def flatten(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """
    Leaves of nested mappings by their dotted names.

    >>> list(flatten({"a": {"b": 1}, "c": [1, 2]}))
    [('a.b', 1), ('c', [1, 2])]
    """
    for key, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from flatten(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
