"""How it was measured: the set-up, the order of the trials, and the manifest."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from harness.base.documents.document import Section, Text, table
from harness.base.documents.wording import count, floor_percent, moment
from harness.base.stats.spread import split_by_start
from harness.base.text import excerpt
from harness.base.units import format_bytes, format_duration, format_rate
from harness.core.experiment.model import UNLIMITED
from harness.core.reports.data import ReportData

_FIRST_MOMENT_S = 1e9  # seconds beyond which are a moment, in 2001, and no duration
# Of the manifest: the experiment has a table of its own, limits a section, the rest is a bundle's.
_ELSEWHERE = ("limits", "experiment", "systems", "packages")


def section(results: ReportData) -> Section:
    """The set-up that was asked for, and what the run says of itself."""
    words = {"repeat": "until decided"} if results.experiment.is_until_decided else {}
    experiment = results.experiment.model_dump(mode="json") | words
    if results.experiment.was_imported:
        del experiment["seed"]
    manifest = {key: value for key, value in results.manifest.items() if key not in _ELSEWHERE}
    return Section(
        id="method",
        title="How it was measured",
        blocks=[
            Text(order_text(results)),
            Text(noise_text(results)),
            table("The experiment", ("Name", "Value"), "cl", leaves(experiment)),
            table("Manifest", ("Name", "Value"), "cl", leaves(manifest)),
        ],
        values=lambda: {"manifest": results.manifest, "seal": results.seal},
    )


def origin(results: ReportData) -> str:
    """When the trials ran, and on what machine: for the top of a report."""
    moments_s = [record.started_s for record in results.trials]
    if not moments_s:
        return ""
    ends = (moment(end_s).partition(" ")[0] for end_s in (min(moments_s), max(moments_s)))
    days = " to ".join(dict.fromkeys(ends))
    if results.experiment.was_imported:
        return f"jobs of {days}"
    machine = results.manifest.get("machine") or {}
    if "cpu" not in machine:
        return f"measured {days}"
    where = "on" if results.experiment.cluster.provider == "local" else "from"
    processor = excerpt(f"{machine.get('cores', '?')} x {machine['cpu']}")
    return f"measured {days} {where} {processor}"


def order_text(results: ReportData) -> str:
    """Say how many trials were run, in which order, and how long all of it took."""
    trials = results.trials
    if not trials:
        return "No trial has been run."
    profiling = sum(record.trial.profiling for record in trials)
    done = len(trials) - len(results.failed_trials)
    first_s = min(record.started_s for record in trials)
    took = format_duration(max(record.finished_s for record in trials) - first_s)
    cells = count(len({record.trial.cell.id for record in trials}), "cell")
    how = f"shuffled with seed {results.experiment.seed} and repeats interleaved"
    if results.experiment.was_imported:
        how = "that nobody chose: they are jobs that had run before"
    sentinels = sum(record.trial.use == "sentinel" for record in trials)
    beside_them = ""
    if sentinels:
        beside_them = (
            f" {count(sentinels, 'sentinel')} repeated profiling cells among the scored ones."
        )
    if results.experiment.is_drawn:
        drawn = f" The scored cells were drawn, in {results.experiment.design.points} draws, where"
        beside_them += f"{drawn} the asked models disagree, and count by their weights."
    return (
        f"{count(len(trials), 'trial')} of {cells} within {took}, in an order {how}; {done}"
        f" done. {profiling} of them fed the profiles and are never scored.{beside_them}"
    )


def noise_text(results: ReportData) -> str:
    """Say what of the spread of repeats is that of starts of the cluster."""
    times_s: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for trial in results.measurements:
        if results.answered in trial.raw_s:
            times_s[trial.cell][trial.start].append(trial.raw_s[results.answered])
    if parts := split_by_start([list(by_start.values()) for by_start in times_s.values()]):
        repeat, start = map(floor_percent, parts)
        return f"Trials of a cell vary by {repeat} between repeats, by {start} between starts."
    why = "the noise cannot be split into repeats and starts of the cluster"
    return f"No cell ran twice on two starts: {why}." if times_s else ""


def leaves(values: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Leaves of nested *values* by their dotted names, in units for people; none that is unset."""
    rows = []
    for name, value in flatten(values):
        items = value if isinstance(value, list | tuple) else [value]
        if any(item not in (None, "", {}) for item in items):
            # The words of a command are one line.
            separator = " " if "command" in name or "argv" in name else ", "
            rows.append((name, separator.join(leaf_text(name, item) for item in items)))
    return rows


def leaf_text(name: str, value: object) -> str:
    """*value* in a unit for people, which follows from what the *name* of it ends in."""
    text = str(value)
    if value is None:  # among others: of limits
        return UNLIMITED
    if isinstance(value, int | float):
        if name.endswith("_s") and value > _FIRST_MOMENT_S:
            return moment(value)
        if name.endswith("_bytes_per_s"):
            return format_rate(value)
    is_size = name.endswith(("_bytes", "input"))
    return format_bytes(int(text)) if is_size and text.isascii() and text.isdigit() else text


def flatten(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """
    Leaves of nested mappings, and of lists of them, by their dotted names.

    >>> list(flatten({"a": {"b": 1}, "c": [1, 2], "d": [{"e": 3}]}))
    [('a.b', 1), ('c', [1, 2]), ('d.0.e', 3)]
    """
    for key, value in values.items():
        inner = value
        if isinstance(value, list | tuple) and all(isinstance(item, Mapping) for item in value):
            inner = dict(enumerate(value))
        if isinstance(inner, Mapping) and inner:
            yield from flatten(inner, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
