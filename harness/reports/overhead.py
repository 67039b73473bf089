"""What the tracer cost the tasks that a report tells of, as it was measured before the run."""

from __future__ import annotations

from datetime import UTC, datetime

from pydantic import TypeAdapter, ValidationError

from harness.records.overhead import TracerOverhead
from harness.reports.data import ReportData
from harness.reports.wording import count, percent

# Entry of the manifest; runs of earlier versions have none.
ENTRY = "tracer_overhead"
_NOISE = 0.001  # a percentage with one decimal: the tracer's aims are whole ones
_COMMAND = "harness trace selftest --overhead 30"


def overheads(data: ReportData) -> list[TracerOverhead]:
    """
    What was known of the cost of this experiment's mode of tracing when it was run.

    An entry of the manifest that is none of ours is as good as none.
    """
    try:
        found = TypeAdapter(tuple[TracerOverhead, ...]).validate_python(data.manifest.get(ENTRY))
    except ValidationError:
        return []
    return [o for o in found if o.mode == data.experiment.tracing.mode]


def overhead_texts(data: ReportData) -> list[str]:
    """Sentences on what the tracer cost, one for each workload; or that nobody measured it."""
    mode = data.experiment.tracing.mode
    if mode in ("logs", "off"):
        return ["No tracer ran in the tasks, so it cost them nothing."]
    unknown = (
        f"What recording {mode} costs a task had not been measured on this machine when this run"
        f" began; '{_COMMAND}' measures it, for the runs that follow."
    )
    return [_text(o) for o in overheads(data)] or [unknown]


def _text(o: TracerOverhead) -> str:
    low, share, high = (percent(x, _NOISE, signed=True) for x in (o.low, o.share, o.high))
    return (
        f"Recording {o.mode} adds {share} (95 % interval {low.removesuffix(' %')} to {high}) to the"
        f" CPU time of a {o.kind} of {o.workload}: {count(o.tasks, 'task')} with it and {o.stock}"
        f" without, mixed within the same jobs, on this machine; measured {_day(o.measured_s)}."
    )


def _day(epoch_s: float) -> str:
    try:
        return datetime.fromtimestamp(epoch_s, UTC).strftime("%Y-%m-%d")
    except (ValueError, OverflowError, OSError):
        return "at no date that a calendar has"
