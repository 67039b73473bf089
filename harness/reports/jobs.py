"""Jobs of trials that have several: what each took, beside what models say of one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import zip_longest
from statistics import fmean, median_low

from harness.records.score import Measurement
from harness.records.trace import JobTrace
from harness.reports.data import ReportData, cell_key, label, models
from harness.reports.tables import Table, table
from harness.reports.wording import UNKNOWN, count, floor_percent, number
from harness.stats.spread import coefficient_of_variation

_MOST_ROWS = 400

SUM_NOTE = (
    " A trial of several jobs takes the sum of their times; what passes between two of them is in"
    " none."
)


def several(data: ReportData) -> bool:
    """Whether any scored trial has more than one job."""
    return any(len(m.jobs_s) > 1 for m in data.measurements)


def jobs_table(data: ReportData, workload: str) -> Table | None:
    """Mean time of each job, by its number in the trial, of the cells whose trials have several."""
    cells: dict[str, list[Measurement]] = {}
    for m in data.measurements:
        if m.workload == workload:
            cells.setdefault(m.cell, []).append(m)
    names = models(data)
    rows = [
        row
        for cell in sorted(cells, key=lambda c: cell_key(data, c))
        if any(len(m.jobs_s) > 1 for m in cells[cell])
        for row in _rows(data, cell, cells[cell], names)
    ]
    if not rows:
        return None
    hidden = len(rows) - _MOST_ROWS
    note = _told(data, cells) + (f" {count(hidden, 'more row')} in report.json." * (hidden > 0))
    return table(
        f"{workload}: each job of a trial, means over the repeats, s",
        ("Cell", "Job", "Trials", "Measured", "Noise floor", *names),
        "l" + "r" * (4 + len(names)),
        rows[:_MOST_ROWS],
        note=f"All jobs of a trial are of one kind, and models say the same of each.{note}",
    )


def _told(data: ReportData, cells: Iterable[str]) -> str:
    """How many jobs a trial has, as predictions take it."""
    known = sorted({p.jobs for p in data.predictions if p.cell in cells and p.each_job_s})
    if not known:
        return ""
    several = " to ".join(dict.fromkeys(f"{round(jobs, 1):g}" for jobs in (known[0], known[-1])))
    return f" They take it that a trial has {several} of them."


def _rows(
    data: ReportData, cell: str, trials: Sequence[Measurement], names: Sequence[str]
) -> Iterable[tuple[str, ...]]:
    asked = {p.model: p.each_job_s for p in data.predictions if p.cell == cell}
    for place, times in enumerate(zip_longest(*(m.jobs_s for m in trials)), start=1):
        known = [t for t in times if t is not None]
        floor = coefficient_of_variation(known)
        noise = fmean(known) * floor if floor else None
        said = (asked.get(name) for name in names)
        yield (
            label(data, cell),
            str(place),
            str(len(known)),
            number(fmean(known), noise),
            floor_percent(floor),
            *(UNKNOWN if s is None else number(s, noise) for s in said),
        )


def typical_job(jobs: Sequence[JobTrace]) -> int:
    """Place of the job with the median time."""
    times = [j.job_s for j in jobs]
    return times.index(median_low(times))
