"""How it was measured: the set-up, the order of the trials, and the manifest."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from harness.experiment.model import UNLIMITED
from harness.reports.data import ReportData
from harness.reports.document import Section, Text, table
from harness.reports.wording import count, floor_percent, moment
from harness.stats.spread import split_by_start
from harness.units import format_bytes, format_duration, format_rate


def section(results: ReportData) -> Section:
    """The set-up that was asked for, and what the run says of itself."""
    words = {"repeat": "until decided"} if results.experiment.is_until_decided else {}
    experiment = results.experiment.model_dump(mode="json") | words
    # The experiment has a table of its own, limits a section, and the rest is a bundle's.
    elsewhere = ("limits", "experiment", "systems", "packages")
    manifest = {k: v for k, v in results.manifest.items() if k not in elsewhere}
    if results.experiment.was_imported:
        del experiment["seed"]
    order = "No trial has been run."
    if trials := results.trials:
        profiling = sum(record.trial.profiling for record in trials)
        done = len(trials) - len(results.failed_trials)
        first_s = min(record.started_s for record in trials)
        took = format_duration(max(record.finished_s for record in trials) - first_s)
        cells = count(len({record.trial.cell.id for record in trials}), "cell")
        how = f"shuffled with seed {results.experiment.seed} and repeats interleaved"
        if results.experiment.was_imported:
            how = "that nobody chose: they are jobs that had run before"
        order = (
            f"{count(len(trials), 'trial')} of {cells} within {took}, in an order {how}; {done}"
            f" done. {profiling} of them fed the profiles and are never scored."
        )
    return Section(
        id="method",
        title="How it was measured",
        blocks=[
            Text(order),
            Text(noise_text(results)),
            table("The experiment", ("Name", "Value"), "cl", leaves(experiment)),
            table("Manifest", ("Name", "Value"), "cl", leaves(manifest)),
        ],
        values=lambda: {"manifest": results.manifest, "seal": results.seal},
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
        several = value if isinstance(value, list | tuple) else [value]
        texts = []
        for each in several:
            text = str(each)
            is_number = isinstance(each, int | float)
            if each is None:  # among others: of limits
                text = UNLIMITED
            elif is_number and name.endswith("_s") and each > 1e9:
                text = moment(each)
            elif is_number and name.endswith("_bytes_per_s"):
                text = format_rate(each)
            elif name.endswith(("_bytes", "input")) and text.isascii() and text.isdigit():
                text = format_bytes(int(text))
            texts.append(text)
        if any(each not in (None, "", {}) for each in several):
            # The words of a command are one line.
            rows.append((name, (" " if "command" in name or "argv" in name else ", ").join(texts)))
    return rows


def flatten(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """
    Leaves of nested mappings, and of lists of them, by their dotted names.

    >>> list(flatten({"a": {"b": 1}, "c": [1, 2], "d": [{"e": 3}]}))
    [('a.b', 1), ('c', [1, 2]), ('d.0.e', 3)]
    """
    for key, value in values.items():
        inner = value
        if isinstance(value, list | tuple) and all(isinstance(each, Mapping) for each in value):
            inner = dict(enumerate(value))
        if isinstance(inner, Mapping) and inner:
            yield from flatten(inner, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
