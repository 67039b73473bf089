"""How it was measured: the set-up, the machine, and every trial."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from statistics import fmean
from typing import Any

from harness.experiment.grid import readable
from harness.experiment.model import Experiment
from harness.experiment.values import UNLIMITED
from harness.records.hardware import ENTRY as LIMITS
from harness.records.trial import Hardware, TrialRecord
from harness.reports.data import ReportData, disturbed, failed, in_order, job_seconds, label
from harness.reports.overhead import ENTRY
from harness.reports.plots.machine import relative_rates
from harness.reports.tables import Table, Value, table
from harness.reports.wording import UNKNOWN, count, moment, number, percent
from harness.units import format_bytes, format_duration

_STATES = {"done": "done", "failed": "failed", "timed_out": "out of time"}


def setup_table(data: ReportData) -> Table:
    """Set-up that the experiment file asks for."""
    e = data.experiment
    rows = [*_asked(e), *_axes(e)]
    return table("The experiment", ("What", "Value"), "ll", rows)


def _asked(e: Experiment) -> Iterator[tuple[str, str]]:
    node = e.cluster.node
    design = (
        e.design.kind if e.design.points is None else f"{e.design.kind}, {e.design.points} points"
    )
    memory = ", ".join(format_bytes(b) for b in node.task_memory_bytes)
    yield "cluster", f"{e.cluster.provider}, {_values(e.cluster.workers)} workers"
    yield (
        "slots per node",
        f"{_values(node.map_slots)} map, {_values(node.reduce_slots)} reduce, {memory} each",
    )
    if any(node.gpus) or node.gpus_found:
        origin = "found" if node.gpus_found else "declared, not detected"
        yield "GPUs per node", f"{_values(node.gpus)} ({origin})"
    yield from _limits(e)
    yield "design", design
    yield "repeats of a cell", str(e.repeat)
    yield "warm-up trials, not counted", str(e.warmup)
    yield "order", f"shuffled with seed {e.seed}, repeats interleaved"
    yield "time limit of a trial", format_duration(e.trial_limit_s)
    yield "models", ", ".join(e.predict.models) or "none"


def _limits(e: Experiment) -> Iterator[tuple[str, str]]:
    """Limits of nodes that the file asks for."""
    for field in Hardware.model_fields:
        values, axis = getattr(e.cluster.node, field), field.partition("_")[0]
        if any(value is not None for value in values):
            yield (
                f"{axis} of a node",
                _values(tuple(readable(axis, v or UNLIMITED) for v in values)),
            )
    for node, own in e.cluster.nodes.items():
        said = {f.partition("_")[0]: v for f, v in own.limits().items() if v is not None}
        yield f"{node} alone", _values(tuple(f"{a} {readable(a, v)}" for a, v in said.items()))


def _axes(e: Experiment) -> Iterator[tuple[str, str]]:
    for w in e.workloads:
        sizes = ", ".join(format_bytes(b) for b in w.input_bytes)
        further = "".join(f"; {k} {_values(v)}" for k, v in w.parameters.items())
        yield f"input of {w.name}", f"{sizes}; seed {w.seed}{further}"
    for name, values in (*e.configuration.items(), *e.cluster.site.items()):
        yield name, _values(values)
    for name, values in e.predict.profile_on.items():
        shown = tuple(_size(v) for v in values) if name.endswith("input") else values
        yield f"profiled on {name}", _values(shown)


def _size(text: str) -> str:
    return format_bytes(int(text)) if text.isascii() and text.isdigit() else text


def _values(values: tuple[Any, ...]) -> str:
    return ", ".join(str(v) for v in values)


def order_text(data: ReportData) -> str:
    """How many trials there are, how they ran, and which of them count for what."""
    trials = data.trials
    if not trials:
        return "No trial has been run."
    profiling = sum(r.trial.profiling for r in trials)
    done = sum(r.state == "done" for r in trials)
    span = max(r.finished_s for r in trials) - min(r.started_s for r in trials)
    return (
        f"{count(len(trials), 'trial')} of {count(len({r.trial.cell.id for r in trials}), 'cell')}"
        f" within {format_duration(span)}, in an order shuffled with seed {data.experiment.seed}"
        f" and repeats interleaved; {done} done. {profiling} of them fed the profiles and are"
        " never scored."
    )


def disturbed_table(data: ReportData) -> Table | None:
    """Trials that a rule, fixed beforehand, marks as disturbed by others on the machine."""
    marks = disturbed(data)
    rows = [
        (r.trial.id, label(data, r.trial.cell.id), marks[r.trial.id])
        for r in in_order(data)
        if r.trial.id in marks
    ]
    note = "Marked by a rule fixed beforehand; scored like any other trial."
    return (
        table("Disturbed trials", ("Trial", "Cell", "Rule"), "cll", rows, note=note)
        if rows
        else None
    )


def failed_table(data: ReportData) -> Table | None:
    """Every trial that is not done, why, and where its logs lie."""
    rows = [
        (
            r.trial.id,
            label(data, r.trial.cell.id),
            str(r.trial.repetition + 1),
            Value(_STATES[r.state], "mark"),
            r.reason or "no reason was recorded",
            data.evidence.get(r.trial.id, f"the folder of trial {r.trial.id}"),
            ", ".join(r.job_ids) or UNKNOWN,
        )
        for r in failed(data)
    ]
    columns = ("Trial", "Cell", "Repeat", "State", "Reason", "Evidence", "Jobs")
    return table("Failed trials", columns, "clrllcc", rows) if rows else None


def trial_table(data: ReportData) -> Table | None:
    """Every trial in the order in which it ran, with its times and the machine meanwhile."""
    ordered, times, rates = in_order(data), job_seconds(data), relative_rates(data)
    first = min((r.started_s for r in ordered), default=0.0)
    several = any(len(r.job_ids) > 1 for r in ordered)
    rows = []
    for place, r in enumerate(ordered, start=1):
        m = times.get(r.trial.id)
        load = data.machine.get(r.trial.id, {})
        rows.append(
            (
                str(place),
                r.trial.id,
                label(data, r.trial.cell.id),
                str(r.trial.repetition + 1),
                "profile" if r.trial.profiling else "score",
                Value(_STATES[r.state], "" if r.state == "done" else "mark"),
                _clock(r.started_s - first),
                *([str(len(r.job_ids))] if several else []),
                number(m.raw_s.get("job_s"), 0.1) if m else UNKNOWN,
                number(m.reference_s.get("job_s"), 0.1) if m else UNKNOWN,
                percent(rates.get(r.trial.id), 0.004),
                percent(load.get("busy"), 0.05),
                percent(load.get("steal"), 0.004),
                _remark(data, r),
            )
        )
    columns = (
        "Order", "Trial", "Cell", "Repeat", "For", "State", "Start", *(["Jobs"] if several else []),
        "Job, s", "At ref., s", "Speed", "Busy", "Steal", "Remark",
    )  # fmt: skip
    caption = "Every trial in the order of running"
    return (
        table(caption, columns, "rclrll" + "r" * (len(columns) - 7) + "l", rows) if rows else None
    )


def _clock(seconds: float) -> str:
    minutes, second = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{second:02d}"


def _remark(data: ReportData, r: TrialRecord) -> Value:
    if r.state != "done":
        return Value("see failed trials", "mark")
    rule = disturbed(data).get(r.trial.id, "")
    device = f"device={r.device}" if r.device else ""
    return Value(f"disturbed: {rule}" if rule else device, "mark" if rule else "")


def load_text(data: ReportData) -> str:
    """How busy the machine was, and how much of it others took."""
    said = []
    for name, words in (("busy", "busy"), ("steal", "taken by other guests of the host")):
        values = [v[name] for v in data.machine.values() if name in v]
        if values:
            said.append(
                f"{percent(fmean(values), 0.004)} {words} (at most {percent(max(values), 0.004)})"
            )
    return f"The machine was, on average over the trials: {', '.join(said)}." if said else ""


def manifest_table(data: ReportData) -> Table | None:
    """Manifest with one row per value; what has sentences of its own is left out."""
    shown = {name: value for name, value in data.manifest.items() if name not in (ENTRY, LIMITS)}
    rows = [(name, _manifest_value(name, v)) for name, v in flatten(shown)]
    return table("Manifest", ("Name", "Value"), "cl", rows) if rows else None


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


def _manifest_value(name: str, value: Any) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        if name.endswith("_s") and value > 1e9:
            return moment(value)
        if name.endswith("_bytes"):
            return format_bytes(value)
    if isinstance(value, list | tuple):
        between = " " if "command" in name or "argv" in name else ", "
        return between.join(str(v) for v in value)
    return UNKNOWN if value is None or value in ("", {}) else str(value)
