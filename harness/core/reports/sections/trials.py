"""Trials: their jobs; those that failed, why, and where their logs are; and each as it ran."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from statistics import fmean
from typing import Any

from harness.base.documents.document import Section, Table, Text, Value, table
from harness.base.documents.wording import UNKNOWN, floor_percent, number, percent
from harness.base.records.score import Measurement
from harness.base.records.trial import TrialRecord
from harness.base.stats.spread import coefficient_of_variation
from harness.base.units import format_rate
from harness.core.reports.data import ReportData

_STATES = {"done": "done", "failed": "failed", "timed_out": "out of time"}


def jobs_section(results: ReportData) -> Section:
    """Each job of a trial, where trials have several."""
    tables = [jobs_table(results, workload) for workload in results.workloads]
    return Section("jobs", "Jobs of a trial", tables)


def jobs_table(results: ReportData, workload: str) -> Table:
    """Mean time of each job, by its number in the trial, of the cells whose trials have several."""
    cells: dict[str, list[Measurement]] = {}
    for measurement in results.measurements:
        if measurement.workload == workload:
            cells.setdefault(measurement.cell, []).append(measurement)
    table_rows = list[tuple[str, ...]]()
    places = results.cell_places(cells)
    for cell in sorted(cells, key=lambda cell: places[cell]):
        if any(len(trial.jobs_s) > 1 for trial in cells[cell]):
            table_rows += job_rows(results, cell, cells[cell])
    note = "All jobs of a trial are of one kind, and models predict the same for each."
    counts = sorted(
        prediction.jobs
        for prediction in results.predictions
        if prediction.cell in cells and prediction.each_job_s
    )
    if counts:
        ends = dict.fromkeys(f"{round(jobs, 1):g}" for jobs in (counts[0], counts[-1]))
        note += f" They assume that a trial has {' to '.join(ends)} of them."
    models = results.models
    return table(
        f"{workload}: each job of a trial, means over the repeats, s",
        ("Cell", "Job", "Trials", "Measured", "Noise floor", *models),
        "l" + "r" * (4 + len(models)),
        table_rows,
        note=note,
    )


def job_rows(
    results: ReportData, cell: str, repeats: Sequence[Measurement]
) -> Iterator[tuple[str, ...]]:
    """A row for each job of a trial of *cell*: its mean over the *repeats*, and what models say."""
    predicted = {
        prediction.model: prediction.each_job_s
        for prediction in results.predictions
        if prediction.cell == cell
    }
    by_job = zip_longest(*(repeat.jobs_s for repeat in repeats))
    for job_number, repeated_s in enumerate(by_job, start=1):
        times_s = [time_s for time_s in repeated_s if time_s is not None]
        floor = coefficient_of_variation(times_s)
        noise = fmean(times_s) * floor if floor else None
        yield (
            *(results.label(cell), str(job_number), str(len(times_s))),
            *(number(fmean(times_s), noise), floor_percent(floor)),
            *(number(predicted.get(model), noise) for model in results.models),
        )


def failed_section(results: ReportData) -> Section:
    """Every trial that is not done, why, and where its logs are."""
    table_rows = [
        (
            *(
                failed_trial.trial.id,
                results.label(failed_trial.trial.cell.id),
                str(failed_trial.trial.repetition + 1),
            ),
            Value(_STATES[failed_trial.state], "mark"),
            failed_trial.reason.strip() or "no reason was recorded",
            results.evidence.get(
                failed_trial.trial.id, f"the folder of trial {failed_trial.trial.id}"
            ),
            ", ".join(failed_trial.job_ids) or UNKNOWN,
        )
        for failed_trial in results.failed_trials
    ]
    columns = ("Trial", "Cell", "Repeat", "State", "Reason", "Evidence", "Jobs")
    return Section(
        id="failed",
        title="Failed trials",
        blocks=[
            Text("Their times are in no figure and no score."),
            table("Failed trials", columns, "clrllcc", table_rows),
        ],
        missing="No trial failed." if results.trials else "No trial has been run.",
        values=lambda: {
            "failed_trials": [
                document for document in _documents(results) if document["state"] != "done"
            ]
        },
    )


def every_section(results: ReportData) -> Section:
    """Every trial in the order in which it ran, with its times and the machine meanwhile."""
    return Section(
        id="trials",
        title="Every trial",
        blocks=[trial_table(results)],
        missing="No trial has been run.",
        values=lambda: {"trials": _documents(results)},
    )


def _documents(results: ReportData) -> list[dict[str, Any]]:
    """What the JSON report has of each trial, in the order of running."""
    kept = ("state", "job_ids", "started_s", "finished_s", "disturbed", "loads", "reason")
    return [
        {
            "order": position,
            "id": record.trial.id,
            "cell": record.trial.cell.id,
            "label": results.label(record.trial.cell.id),
            "repetition": record.trial.repetition,
            "profiling": record.trial.profiling,
            "use": record.trial.use,
            **{name: getattr(record, name) for name in kept},
            "rate": results.rates.get(record.trial.id),
            "evidence": results.evidence.get(record.trial.id),
        }
        for position, record in enumerate(results.ordered_trials, start=1)
    ]


def trial_table(results: ReportData) -> Table:
    """Trials in the order in which they ran; several jobs of a trial have a column."""
    ordered = results.ordered_trials
    times = {measurement.trial: measurement for measurement in results.measurements}
    first_s = min((trial_record.started_s for trial_record in ordered), default=0.0)
    has_several_jobs = any(len(trial_record.job_ids) > 1 for trial_record in ordered)
    table_rows = []
    for position, trial_record in enumerate(ordered, start=1):
        trial = trial_record.trial
        is_done = trial_record.state == "done"
        measured = times.get(trial.id)
        swap_bps = trial_record.most("swap_bytes_per_s")
        minutes, second = divmod(round(trial_record.started_s - first_s), 60)
        table_rows.append(
            (
                *(str(position), trial.id, results.label(trial.cell.id), str(trial.repetition + 1)),
                trial.use,
                Value(_STATES[trial_record.state], "" if is_done else "mark"),
                f"{minutes // 60}:{minutes % 60:02d}:{second:02d}",
                str(len(trial_record.job_ids)) if has_several_jobs else "",
                number(measured.raw_s.get("job_s"), 0.1) if measured else UNKNOWN,
                number(measured.reference_s.get("job_s"), 0.1) if measured else UNKNOWN,
                percent(results.relative_rates.get(trial.id), 0.004),
                percent(trial_record.most("busy"), 0.05),
                percent(trial_record.most("others"), 0.004),
                percent(trial_record.most("steal"), 0.004),
                UNKNOWN if swap_bps is None else format_rate(swap_bps),
                trial_remark(results, trial_record),
            )
        )
    columns = (
        "Order",
        "Trial",
        "Cell",
        "Repeat",
        "For",
        "State",
        "Start",
        "Jobs",
        "Job, s",
        "At ref., s",
        "Speed",
        "Busy",
        "Others",
        "Steal",
        "Swap",
        "Remark",
    )
    return table("Every trial in the order of running", columns, "rclrllrrrrrrrrrl", table_rows)


def trial_remark(results: ReportData, record: TrialRecord) -> Value:
    """What deserves a look, or the device that did the work."""
    if record.state != "done":
        return Value("see failed trials", "mark")
    if rule := results.disturbed_trials.get(record.trial.id):
        return Value(f"disturbed: {rule}", "mark")
    return Value(f"device={record.device}" if record.device else "")
