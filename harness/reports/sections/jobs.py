"""Jobs of a trial: what each took, and what a job takes beyond its tasks."""

from __future__ import annotations

from itertools import zip_longest
from statistics import fmean

from harness.records.score import Measurement
from harness.reports.data import ReportData
from harness.reports.document import Section, Table, table
from harness.reports.wording import UNKNOWN, floor_percent, number, percent
from harness.stats.spread import coefficient_of_variation


def section(results: ReportData) -> Section | None:
    """
    Each job of a trial, where trials have several, and the overhead around tasks.

    The overhead is job time minus makespan: What-If has no term for it.
    """
    if not results.measurements:
        return None
    rows = []
    for workload in results.workloads():
        times = [
            trial.raw_s
            for trial in results.measurements
            if trial.workload == workload and {"job_s", "makespan_s"} <= set(trial.raw_s)
        ]
        if times:
            job_s = fmean(trial["job_s"] for trial in times)
            makespan_s = fmean(trial["makespan_s"] for trial in times)
            overhead_s = job_s - makespan_s
            share = percent(overhead_s / job_s) if job_s > 0 else UNKNOWN
            seconds = (number(job_s), number(makespan_s), number(overhead_s))
            rows.append((workload, str(len(times)), *seconds, share))
    overheads = table(
        "What a job takes beyond its tasks, means over the scored trials",
        ("Workload", "Trials", "Job, s", "Makespan, s", "Overhead, s", "Of the job"),
        "lrrrrr",
        rows,
        note="Makespan: first task start to last task end. The overhead around it (starting the"
        " application master, committing the job) is in the measured job time, and What-If has no"
        " term for it.",
    )
    return Section(
        id="jobs",
        title="Jobs around their tasks",
        blocks=[*(jobs_table(results, workload) for workload in results.workloads()), overheads],
    )


def jobs_table(results: ReportData, workload: str) -> Table:
    """Mean time of each job, by its number in the trial, of the cells whose trials have several."""
    cells: dict[str, list[Measurement]] = {}
    for measurement in results.measurements:
        if measurement.workload == workload:
            cells.setdefault(measurement.cell, []).append(measurement)
    models = results.models()
    rows = []
    places = results.cell_places(cells)
    for cell_id in sorted(cells, key=lambda cell_id: places[cell_id]):
        if all(len(trial.jobs_s) <= 1 for trial in cells[cell_id]):
            continue
        predicted = {
            prediction.model: prediction.each_job_s
            for prediction in results.predictions
            if prediction.cell == cell_id
        }
        for place, times in enumerate(
            zip_longest(*(repeat.jobs_s for repeat in cells[cell_id])), start=1
        ):
            known = [seconds for seconds in times if seconds is not None]
            floor = coefficient_of_variation(known)
            noise = fmean(known) * floor if floor else None
            rows.append(
                (
                    *(results.label(cell_id), str(place), str(len(known))),
                    *(number(fmean(known), noise), floor_percent(floor)),
                    *(number(predicted.get(model), noise) for model in models),
                )
            )
    note = "All jobs of a trial are of one kind, and models predict the same for each."
    counts = sorted(
        {
            prediction.jobs
            for prediction in results.predictions
            if prediction.cell in cells and prediction.each_job_s
        }
    )
    if counts:
        ends = dict.fromkeys(f"{round(jobs, 1):g}" for jobs in (counts[0], counts[-1]))
        note += f" They assume that a trial has {' to '.join(ends)} of them."
    return table(
        f"{workload}: each job of a trial, means over the repeats, s",
        ("Cell", "Job", "Trials", "Measured", "Noise floor", *models),
        "l" + "r" * (4 + len(models)),
        rows,
        note=note,
        most=400,
    )
