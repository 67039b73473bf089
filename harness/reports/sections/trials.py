"""Trials: those that failed, why, and where their logs are; and every trial as it ran."""

from __future__ import annotations

from typing import Any

from harness.records.trial import TrialRecord
from harness.reports.data import ReportData
from harness.reports.document import Section, Table, Text, Value, table
from harness.reports.wording import UNKNOWN, count, number, percent

_STATES = {"done": "done", "failed": "failed", "timed_out": "out of time"}


def failed_section(results: ReportData) -> Section:
    """Every trial that is not done, why, and where its logs are."""
    failed = results.failed_trials()
    rows, brief = [], []
    for record in failed:
        trial, reason = record.trial, record.reason.strip() or "no reason was recorded"
        brief.append(Text(f"{trial.id}  {reason.splitlines()[0]}"))
        rows.append(
            (
                *(trial.id, results.label(trial.cell.id), str(trial.repetition + 1)),
                Value(_STATES[record.state], "mark"),
                record.reason or reason,
                results.evidence.get(trial.id, f"the folder of trial {trial.id}"),
                ", ".join(record.job_ids) or UNKNOWN,
            )
        )
    if failed:
        trials = f"{count(len(failed), 'trial')} of {len(results.trials)}"
        brief.insert(0, Text(f"{trials} failed or ran out of time:"))

    def values() -> dict[str, Any]:
        return {
            "failed_trials": [
                {
                    "id": record.trial.id,
                    "cell": record.trial.cell.id,
                    "label": results.label(record.trial.cell.id),
                    "state": record.state,
                    "reason": record.reason,
                    "evidence": results.evidence.get(record.trial.id),
                    "job_ids": list(record.job_ids),
                }
                for record in failed
            ]
        }

    columns = ("Trial", "Cell", "Repeat", "State", "Reason", "Evidence", "Jobs")
    return Section(
        id="failed",
        title="Failed trials",
        blocks=[
            Text("Their times are in no figure and no score."),
            table("Failed trials", columns, "clrllcc", rows),
        ],
        missing="No trial failed." if results.trials else "No trial has been run.",
        brief=brief,
        values=values,
    )


def every_section(results: ReportData) -> Section:
    """Every trial in the order in which it ran, with its times and the machine meanwhile."""

    def values() -> dict[str, Any]:
        return {
            "trials": [
                {
                    "order": position,
                    "id": record.trial.id,
                    "cell": record.trial.cell.id,
                    "repetition": record.trial.repetition,
                    "profiling": record.trial.profiling,
                    "state": record.state,
                    "job_ids": list(record.job_ids),
                    "started_s": record.started_s,
                    "finished_s": record.finished_s,
                    "disturbed": record.disturbed,
                    "machine": dict(results.machine.get(record.trial.id, {})),
                }
                for position, record in enumerate(results.ordered_trials(), start=1)
            ]
        }

    return Section(
        id="trials",
        title="Every trial",
        blocks=[trial_table(results)],
        missing="No trial has been run.",
        values=values,
    )


def trial_table(results: ReportData) -> Table:
    """Trials in the order in which they ran; several jobs of a trial have a column."""
    ordered, rates = results.ordered_trials(), results.relative_rates()
    times = {measurement.trial: measurement for measurement in results.measurements}
    first_s = min((record.started_s for record in ordered), default=0.0)
    several = any(len(record.job_ids) > 1 for record in ordered)
    rules = results.disturbed_trials()

    def remark(record: TrialRecord) -> Value:
        if record.state != "done":
            return Value("see failed trials", "mark")
        if record.trial.id in rules:
            return Value(f"disturbed: {rules[record.trial.id]}", "mark")
        return Value(f"device={record.device}" if record.device else "")

    rows = []
    for position, record in enumerate(ordered, start=1):
        trial, measured = record.trial, times.get(record.trial.id)
        load = results.machine.get(trial.id, {})
        minutes, second = divmod(round(record.started_s - first_s), 60)
        rows.append(
            (
                *(str(position), trial.id, results.label(trial.cell.id), str(trial.repetition + 1)),
                "profile" if trial.profiling else "score",
                Value(_STATES[record.state], "" if record.state == "done" else "mark"),
                f"{minutes // 60}:{minutes % 60:02d}:{second:02d}",
                *([str(len(record.job_ids))] if several else []),
                number(measured.raw_s.get("job_s"), 0.1) if measured else UNKNOWN,
                number(measured.reference_s.get("job_s"), 0.1) if measured else UNKNOWN,
                percent(rates.get(trial.id), 0.004),
                percent(load.get("busy"), 0.05),
                percent(load.get("steal"), 0.004),
                remark(record),
            )
        )
    columns = (
        "Order", "Trial", "Cell", "Repeat", "For", "State", "Start", *(["Jobs"] if several else []),
        "Job, s", "At ref., s", "Speed", "Busy", "Steal", "Remark",
    )  # fmt: skip
    align = "rclrll" + "r" * (len(columns) - 7) + "l"
    return table("Every trial in the order of running", columns, align, rows)
