"""
Vet: how much of the finished tasks' time was overhead, by jobs and kinds of tasks.

Figures show the ordered unit times of a typical task beside its ideal, as figure 4 of the paper; an
axis is logarithmic where the longest units, or those after the change point, could not be seen.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from statistics import fmean
from typing import TYPE_CHECKING, Any

from harness.base.documents.document import Figure, Figures, Section, Table, Text, Value, table
from harness.base.documents.drawing import INK, SERIES, WIDE, Canvas, grid
from harness.base.documents.wording import (
    UNKNOWN,
    count,
    listing,
    number,
    one_line,
    percent,
    seconds,
)
from harness.base.records.vet import FLAGS, MULTI_SPILL, SUBPHASES, JobVet, VetCurve, VetKind
from harness.core.reports.data import ReportData

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MEANING = (
    "Vet is what the records of a task took (PR) over what they would take if all were like most"
    " (EI): 1 is without overhead, at 3 the records took three times their ideal. It is measured"
    " on finished tasks, and no model is scored by it. On heavy tails the estimate on units lies"
    " too near to 1; that on sums of equally many ordered units sees more. Compare only like with"
    " like."
)
MOST_FIGURES = 16
_MOST_NAMED = 6
_MOST_POINTS = 40  # of a kind in the table of a figure
_UNLIKELY = 0.01  # p of two repeats that deserve a look
_MUCH_SPILLING = 0.1
_FAR = 30.0  # longest over median unit
_LATE = 0.05  # share of the units after the change point
_FLAG_TEXTS = ("several spills", "depends on the window", "overhead below 0")


def section(results: ReportData) -> Section:
    """Texts, a figure per job, and tables of all jobs and of the tests between repeats."""
    tested = {repeat.cell for repeat in results.vet.repeats}
    places = results.cell_places(tested | {job_vet.cell for job_vet in results.vet.jobs})
    # Jobs in the order of their cells, repeats of one behind each other.
    jobs = sorted(results.vet.jobs, key=lambda job_vet: (places[job_vet.cell], job_vet.repetition))
    drawn = [job_vet for job_vet in jobs if job_vet.curves]
    drawn.sort(key=lambda job_vet: job_vet.repetition)
    figures = [vet_figure(results, *item) for item in enumerate(drawn[:MOST_FIGURES])]
    lead = ""
    if len(drawn) > MOST_FIGURES:
        lead = f"{MOST_FIGURES} of {len(drawn)} jobs are drawn, the first repeats first."
    repeats = repeats_table(results)
    texts = map(Text, _texts(results, jobs) if jobs else ())
    return Section(
        id="vet",
        title="Overhead of finished tasks (vet)",
        blocks=[*texts, Figures(figures, lead), vet_table(results, jobs), repeats],
        missing="No times of records were recorded: that takes 'trace: units' in the experiment.",
        values=lambda: {
            "vet": {
                "jobs": [_job_document(results, job_vet) for job_vet in jobs],
                "repeats": results.vet.repeats,
            }
        },
    )


def repeats_table(results: ReportData) -> Table:
    """The test of each pair of repeats, in the order of their cells."""
    places = results.cell_places({repeat.cell for repeat in results.vet.repeats})
    rows = []
    for repeat in sorted(results.vet.repeats, key=lambda repeat: places[repeat.cell]):
        is_unlikely = repeat.ks.p_value < _UNLIKELY
        rows.append(
            (
                results.label(repeat.cell),
                SUBPHASES[repeat.kind],
                "{} and {}".format(*repeat.repetitions),
                ratio(repeat.ks.statistic),
                Value(number(repeat.ks.p_value), "mark" if is_unlikely else ""),
            )
        )
    return table(
        "Vet of the tasks of two repeats: one distribution?",
        ("Cell", "Sub-phase", "Repeats", "D", "p"),
        "llrrr",
        rows,
        note="Two-sample Kolmogorov-Smirnov test. A small p says that the repeats differ; with many"
        " pairs some p is small by chance.",
    )


def _job_document(results: ReportData, job_vet: JobVet) -> dict[str, Any]:
    typical = {unit_curve.kind: unit_curve.task for unit_curve in job_vet.curves}
    return {
        "label": results.label(job_vet.cell),
        "trial": job_vet.trial,
        "cell": job_vet.cell,
        "repetition": job_vet.repetition,
        "kinds": [
            asdict(kind) | {"typical_task": typical.get(kind.kind)} for kind in job_vet.kinds
        ],
    }


def _texts(results: ReportData, jobs: Sequence[JobVet]) -> Iterator[str]:
    """What a reader must know to read tables and figures, and section 5.5 of the paper."""
    yield _MEANING
    kinds = [vet_kind for _, vet_kind in kinds_of_jobs(jobs)]
    sizes = sorted({vet_kind.unit_records for vet_kind in kinds})
    records = listing([str(size) for size in sizes], "or")
    yield f"A unit is {records} records, read one after the other."
    trials = {job_vet.trial for job_vet in jobs}
    if any(len(record.job_ids) > 1 for record in results.trials if record.trial.id in trials):
        yield "Where a trial has several jobs, its vet is over the tasks of all of them."
    yield from spill_texts(kinds)
    if crowded := crowded_cells(results, jobs):
        yield (
            "The mean vet of a task is above the number of tasks that run at once on a node, which"
            f" suggests fewer at once: {listing(crowded, most=_MOST_NAMED)}."
        )


def kinds_of_jobs(jobs: Sequence[JobVet]) -> Iterator[tuple[JobVet, VetKind]]:
    """Each job with each of its kinds of tasks."""
    for job_vet in jobs:
        for vet_kind in job_vet.kinds:
            yield job_vet, vet_kind


def spill_texts(kinds: Sequence[VetKind]) -> Iterator[str]:
    """What spills of maps do to their units, where they do much."""
    maps = [vet_kind for vet_kind in kinds if vet_kind.kind == "map"]
    spilled = sum(vet_kind.flags.get(MULTI_SPILL, 0) for vet_kind in kinds)
    if spilled:
        tasks = sum(len(vet_kind.attempts) for vet_kind in maps)
        yield (
            f"{spilled} of {count(tasks, 'map task')} spilled more than once: their units hold the"
            " waiting for room in the sort buffer, and the paper's best case is not given."
        )
    shares = [vet_kind.spill_share for vet_kind in maps if vet_kind.spill_share is not None]
    if shares and max(shares) >= _MUCH_SPILLING:
        yield (
            f"Spills ran for up to {percent(max(shares))} of the time of a map task. They are not"
            " in its units: vet assumes that they are short."
        )


def crowded_cells(results: ReportData, jobs: Sequence[JobVet]) -> list[str]:
    """Labels of the cells in which the mean vet of a task is above the slots of a node."""
    crowded = dict[str, None]()
    for job_vet in jobs:
        vets = list[float]()
        for kind in job_vet.kinds:
            vets += [vet for vet in kind.job.vet_tasks if vet is not None]
        if vets and job_vet.cell in results.cells:
            node = results.cells[job_vet.cell][0].cluster.node
            if fmean(vets) > node.map_slots + node.reduce_slots:
                crowded[results.label(job_vet.cell)] = None
    return list(crowded)


def ratio(value: float | None) -> str:
    """Two decimals: what stands further behind differs from task to task."""
    return UNKNOWN if value is None else f"{value:.2f}"


def part_of(part: int, whole: int) -> str:
    """How many of all; only how many where that is all."""
    return str(whole) if part == whole else f"{part} of {whole}"


def vet_table(results: ReportData, jobs: Sequence[JobVet]) -> Table:
    """A row for each job and kind of task."""
    rows: list[tuple[str | Value, ...]] = []
    for job_vet, vet_kind in kinds_of_jobs(jobs):
        vet = vet_kind.job
        quartiles = UNKNOWN
        if vet.vet_quartile_1 is not None:
            quartiles = f"{ratio(vet.vet_quartile_1)} to {ratio(vet.vet_quartile_3)}"
        remarks = flag_remarks(vet_kind)
        rows.append(
            (
                *(results.label(job_vet.cell), str(job_vet.repetition), SUBPHASES[vet_kind.kind]),
                part_of(vet.tasks_used, vet.tasks_used + vet.tasks_skipped),
                *(ratio(vet.vet_job), quartiles),
                *(ratio(bucket_vet(vet_kind, size)) for size in (1000, 100)),
                *map(number, (vet.pr_mean_s, vet.ei_mean_s, vet.oc_mean_s)),
                *map(ratio, (vet.ratio_of_means, vet_kind.alpha, vet.pearson_vet_vs_task_seconds)),
                Value("; ".join(remarks), "mark" if remarks else ""),
            )
        )
    columns = (
        "Cell",
        "Repeat",
        "Sub-phase",
        "Tasks",
        "vet",
        "Quartiles",
        "vet on 1000",
        "On 100",
        "Mean PR, s",
        "EI, s",
        "OC, s",
        "PR / EI",
        "Tail index",
        "Pearson",
        "Remark",
    )
    caption = "Overhead of finished tasks"
    return table(caption, columns, "lrlrrrrrrrrrrrl", rows)


def bucket_vet(vet_kind: VetKind, size: int) -> float | None:
    """Vet on sums of *size* ordered units, where that is known."""
    bucket = vet_kind.buckets.get(size)
    return None if bucket is None else bucket.vet_job


def flag_remarks(vet_kind: VetKind) -> list[str]:
    """How many tasks have what makes vet doubtful."""
    tasks = len(vet_kind.attempts)
    remarks = []
    for flag, name in zip(FLAGS, _FLAG_TEXTS, strict=True):
        if flagged := vet_kind.flags.get(flag):
            remarks.append(f"{name}: {part_of(flagged, tasks)}")
    return remarks


def vet_figure(results: ReportData, position: int, job_vet: JobVet) -> Figure:
    """Ordered unit times of the typical task of each kind of one job."""
    name = f"{results.label(job_vet.cell)}, repeat {job_vet.repetition}"

    def draw(canvas: Canvas) -> None:
        panels = canvas.figure.subplots(1, len(job_vet.curves), squeeze=False)[0]
        for unit_axes, unit_curve in zip(panels, job_vet.curves, strict=True):
            _draw_curve(canvas, unit_axes, unit_curve)
        handles, labels = panels[0].get_legend_handles_labels()
        canvas.figure.legend(handles, labels, loc="outside upper left", ncols=3)

    texts = [
        f"{SUBPHASES[unit_curve.kind]} {seconds(unit_curve.task.profiled_real_s)} observed,"
        f" {seconds(unit_curve.task.estimated_ideal_s)} ideal, vet {ratio(unit_curve.task.vet)}"
        for unit_curve in job_vet.curves
    ]
    rows = []
    for unit_curve in job_vet.curves:
        points = len(unit_curve.place)
        step = -(-points // _MOST_POINTS)
        for point in range((points - 1) % step, points, step):  # the last one among them
            times_s = unit_curve.observed_s[point], unit_curve.ideal_s[point]
            texts_ms = (number(1e3 * time_s) for time_s in times_s)
            rows.append((one_line(unit_curve.attempt_id), str(unit_curve.place[point]), *texts_ms))
    columns = ("Attempt", "Unit", "Observed, ms", "Ideal, ms")
    title = f"{name}: ordered unit times of the task with the median vet, and its ideal"
    caption = f"{name}: {'; '.join(texts)}. The task with the median vet of each kind."
    data = table(f"{name}: some of the ordered units", columns, "crrr", rows, folded=True)
    return Figure(f"vet{position}", title, WIDE, 3.2, caption, data, draw)


def _draw_curve(canvas: Canvas, unit_axes: Axes, unit_curve: VetCurve) -> None:
    from matplotlib.ticker import MaxNLocator, NullLocator

    task = unit_curve.task
    assert task.change_point is not None
    late = task.n - task.change_point < _LATE * task.n
    units = [task.n + 1 - position if late else position for position in unit_curve.place]
    change = task.n + 1 - task.change_point if late else task.change_point
    observed_s = unit_curve.observed_s
    ideal_s = unit_curve.ideal_s
    width = 1.6
    (line,) = unit_axes.plot(units, observed_s, color=SERIES[0], linewidth=width, label="observed")
    tooltip = f"{unit_curve.attempt_id}: {task.n} units, {seconds(task.profiled_real_s)}"
    canvas.mark(line, tooltip)
    first = bisect_left(unit_curve.place, task.change_point)
    unit_axes.plot(
        units[first:],
        ideal_s[first:],
        color=SERIES[1],
        linewidth=width,
        label="ideal",
        linestyle=(0, (4, 2)),
    )
    unit_axes.axvline(change, color=INK, linewidth=0.8, linestyle=(0, (1, 2)), label="change point")
    positive = any(time_s > 0 for time_s in (*observed_s, *ideal_s))
    middle_s = observed_s[bisect_left(unit_curve.place, task.n / 2)]
    if positive and middle_s > 0 and max(observed_s) > _FAR * middle_s:
        unit_axes.set_yscale("log", nonpositive="mask")
        unit_axes.yaxis.set_minor_locator(NullLocator())
    if late:
        unit_axes.set_xscale("log")
        unit_axes.xaxis.set_minor_locator(NullLocator())
        unit_axes.set_xlim(task.n * 1.1, 0.9)
        unit_axes.set_xlabel("unit, counted from the longest")
    else:
        unit_axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        unit_axes.set_xlabel("unit, the shortest first")
    unit_axes.xaxis.set_major_formatter(lambda value, _: f"{value:.0f}")
    unit_axes.yaxis.set_major_formatter(lambda value, _: f"{1e3 * value:g}")
    unit_axes.set_ylabel("time of a unit, ms")
    unit_axes.set_title(f"{SUBPHASES[unit_curve.kind]}: vet {ratio(task.vet)}")
    grid(unit_axes, "both")
