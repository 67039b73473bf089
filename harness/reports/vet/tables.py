"""Vet of every job, and whether repeats of a cell agree."""

from __future__ import annotations

from harness.records.vet import SUBPHASES, JobVet, VetKind
from harness.reports.data import ReportData, label
from harness.reports.tables import Table, Value, table
from harness.reports.vet.choice import FLAG_NAMES, kinds, place
from harness.reports.wording import UNKNOWN, number

MOST_ROWS = 400

_UNLIKELY = 0.01  # p of two repeats that deserve a look


def vet_table(data: ReportData) -> Table | None:
    """A row for each job and kind of task; `None` where no units were recorded."""
    found = list(kinds(data))
    rows = [_row(data, job, kind) for job, kind in found[:MOST_ROWS]]
    hidden = len(found) - MOST_ROWS
    note = f"{hidden} more rows stand in report.json." if hidden > 0 else ""
    columns = (
        "Cell", "Repeat", "Sub-phase", "Tasks", "On units", "Quartiles", "On 1000", "On 100",
        "PR", "EI", "OC", "PR / EI", "Tail index", "Pearson", "Remark",
    )  # fmt: skip
    groups = (("", 4), ("vet", 2), ("vet on buckets", 2), ("Mean of a task, s", 3), ("", 4))
    return table(
        "Overhead of finished tasks", columns, "lrlrrrrrrrrrrrl", rows, note=note, groups=groups
    ) if rows else None  # fmt: skip


def _row(data: ReportData, job: JobVet, kind: VetKind) -> tuple[str | Value, ...]:
    v = kind.job
    on_buckets = [kind.buckets[b].vet_job if b in kind.buckets else None for b in (1000, 100)]
    return (
        label(data, job.cell),
        str(job.repetition),
        SUBPHASES[kind.kind],
        _of(v.tasks_used, v.tasks_used + v.tasks_skipped),
        ratio(v.vet_job),
        _range(v.vet_quartile_1, v.vet_quartile_3),
        *map(ratio, on_buckets),
        *map(number, (v.pr_mean_s, v.ei_mean_s, v.oc_mean_s)),
        ratio(v.ratio_of_means),
        ratio(kind.alpha),
        ratio(v.pearson_vet_vs_task_seconds),
        _remark(kind),
    )


def ratio(value: float | None) -> str:
    """Two decimals: what stands further behind differs from task to task."""
    return UNKNOWN if value is None else f"{value:.2f}"


def _of(part: int, whole: int) -> str:
    return str(whole) if part == whole else f"{part} of {whole}"


def _range(low: float | None, high: float | None) -> str:
    return UNKNOWN if low is None else f"{ratio(low)} to {ratio(high)}"


def _remark(kind: VetKind) -> Value:
    tasks = len(kind.attempts)
    said = [
        f"{name}: {_of(n, tasks)}" for f, name in FLAG_NAMES.items() if (n := kind.flags.get(f))
    ]
    return Value("; ".join(said), "mark" if said else "")


def repeats_table(data: ReportData) -> Table | None:
    """Kolmogorov-Smirnov between the repeats of each cell; `None` where none can be compared."""
    rows = [
        (
            label(data, each.cell),
            SUBPHASES[each.kind],
            "{} and {}".format(*each.repetitions),
            ratio(each.ks.statistic),
            Value(number(each.ks.p_value), "mark" if each.ks.p_value < _UNLIKELY else ""),
        )
        for each in sorted(data.vet.repeats, key=lambda t: place(data, t.cell))[:MOST_ROWS]
    ]
    columns = ("Cell", "Sub-phase", "Repeats", "D", "p")
    return table(
        "Vet of the tasks of two repeats: one distribution?", columns, "llrrr", rows,
        note="Two-sample Kolmogorov-Smirnov test. A small p says that the repeats differ; with many"
        " pairs some p is small by chance.",
    ) if rows else None  # fmt: skip
