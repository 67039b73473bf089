"""
Vet: how much of the finished tasks' time was overhead, by jobs and kinds of tasks.

Figures show the ordered unit times of a typical task beside its ideal, as figure 4 of the paper.
Where the longest units are far above the others, times stand on a logarithmic axis; where the
change point lies among the last few, so do the units, counted from the longest.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from math import isfinite
from statistics import fmean
from typing import TYPE_CHECKING, Any

from harness.records.vet import FLAGS, MULTI_SPILL, SUBPHASES, JobVet, VetCurve, VetKind
from harness.reports.data import ReportData
from harness.reports.document import Figure, Figures, Section, Table, Text, Value, table
from harness.reports.drawing import INK, MUTED, SERIES, WIDE, Canvas, grid
from harness.reports.wording import UNKNOWN, count, listing, number, one_line, percent, seconds

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
_MOST_ROWS = 400
_MOST_NAMED = 6
_MOST_POINTS = 40  # of a kind in the table of a figure
_UNLIKELY = 0.01  # p of two repeats that deserve a look
_MUCH_SPILLING = 0.1
_FAR = 30.0  # longest over median unit
_LATE = 0.05  # share of the units after the change point
_FLAG_NAMES = dict(
    zip(FLAGS, ("several spills", "depends on the window", "overhead below 0"), strict=True)
)


def section(results: ReportData) -> Section:
    """Texts, a figure per job, and tables of all jobs and of the tests between repeats."""
    tested = {each.cell for each in results.vet.repeats}
    places = results.cell_places(tested | {job.cell for job in results.vet.jobs})
    by_repeat = sorted(results.vet.jobs, key=lambda job: (job.repetition, places[job.cell]))
    drawn = [job for job in by_repeat if job.curves]
    texts = list(_texts(results)) if results.vet.jobs else []
    figures = [_figure(results, place, job) for place, job in enumerate(drawn[:MOST_FIGURES])]
    lead = ""
    if len(drawn) > MOST_FIGURES:
        lead = f"{MOST_FIGURES} of {len(drawn)} jobs are drawn, the first repeats first."
    tests = [
        (
            *(
                results.label(each.cell),
                SUBPHASES[each.kind],
                "{} and {}".format(*each.repetitions),
            ),
            ratio(each.ks.statistic),
            Value(number(each.ks.p_value), "mark" if each.ks.p_value < _UNLIKELY else ""),
        )
        for each in sorted(results.vet.repeats, key=lambda each: places[each.cell])
    ]
    repeats = table(
        "Vet of the tasks of two repeats: one distribution?",
        ("Cell", "Sub-phase", "Repeats", "D", "p"), "llrrr", tests, most=_MOST_ROWS,
        note="Two-sample Kolmogorov-Smirnov test. A small p says that the repeats differ; with many"
        " pairs some p is small by chance.",
    )  # fmt: skip
    return Section(
        id="vet",
        title="Overhead of finished tasks (vet)",
        blocks=[*map(Text, texts), Figures(figures, lead), _jobs_table(results), repeats],
        missing="No times of records were recorded: that takes 'trace: units' in the experiment.",
        values=lambda: {"vet": _vet_document(results)},
    )


def _jobs_by_cell(results: ReportData) -> list[JobVet]:
    """Jobs in the order of their cells, repeats of one behind each other."""
    places = results.cell_places({job.cell for job in results.vet.jobs})
    return sorted(results.vet.jobs, key=lambda job: (places[job.cell], job.repetition))


def _vet_document(results: ReportData) -> dict[str, Any]:
    """Jobs with every task's vet, the typical task of each kind in full, and the tests."""
    jobs = []
    for job in _jobs_by_cell(results):
        typical = {curve.kind: asdict(curve.task) for curve in job.curves}
        kinds = []
        for kind in job.report.kinds:
            # JSON has no word for infinite, which the index of equal units is.
            alpha = kind.alpha if kind.alpha is not None and isfinite(kind.alpha) else None
            buckets = {str(size): asdict(vet) for size, vet in kind.buckets.items()}
            task = typical.get(kind.kind)
            kinds.append({**asdict(kind), "alpha": alpha, "buckets": buckets, "typical_task": task})
        jobs.append(
            {
                "label": results.label(job.cell),
                "trial": job.trial,
                "cell": job.cell,
                "repetition": job.repetition,
                "kinds": kinds,
            }
        )
    repeats = [{**asdict(e), "repetitions": list(e.repetitions)} for e in results.vet.repeats]
    return {"jobs": jobs, "repeats": repeats}


def _texts(results: ReportData) -> Iterator[str]:
    """What a reader must know to read tables and figures, and section 5.5 of the paper."""
    yield _MEANING
    kinds = [kind for job in results.vet.jobs for kind in job.report.kinds]
    sizes = sorted({kind.unit_records for kind in kinds})
    yield f"A unit is {listing([str(n) for n in sizes], 'or')} records, read one after the other."
    trials = {job.trial for job in results.vet.jobs}
    if any(len(record.job_ids) > 1 for record in results.trials if record.trial.id in trials):
        yield "Where a trial has several jobs, its vet is over the tasks of all of them."
    spilled = sum(kind.flags.get(MULTI_SPILL, 0) for kind in kinds)
    if spilled:
        maps = sum(len(kind.attempts) for kind in kinds if kind.kind == "map")
        yield (
            f"{spilled} of {count(maps, 'map task')} spilled more than once: their units hold the"
            " waiting for room in the sort buffer, and the paper's best case is not given."
        )
    shares = [k.spill_share for k in kinds if k.kind == "map" and k.spill_share is not None]
    if shares and max(shares) >= _MUCH_SPILLING:
        yield (
            f"Spills ran for up to {percent(max(shares))} of the time of a map task. They are not"
            " in its units: vet supposes that they are short."
        )
    crowded: dict[str, None] = {}
    for job in _jobs_by_cell(results):
        vets = [vet for k in job.report.kinds for vet in k.job.vet_tasks if vet is not None]
        if vets and job.cell in results.cells:
            node = results.cells[job.cell][0].cluster.node
            if fmean(vets) > node.map_slots + node.reduce_slots:
                crowded[results.label(job.cell)] = None
    if crowded:
        named = list(crowded)[:_MOST_NAMED]
        named += [f"{len(crowded) - len(named)} more"] if len(crowded) > len(named) else []
        yield (
            "The mean vet of a task is above the number of tasks that run at once on a node, which"
            f" speaks for fewer at once: {listing(named)}."
        )


def ratio(value: float | None) -> str:
    """Two decimals: what stands further behind differs from task to task."""
    return UNKNOWN if value is None else f"{value:.2f}"


def _jobs_table(results: ReportData) -> Table:
    """A row for each job and kind of task."""

    def part_of(part: int, whole: int) -> str:
        return str(whole) if part == whole else f"{part} of {whole}"

    def row(job: JobVet, kind: VetKind) -> tuple[str | Value, ...]:
        vet, tasks = kind.job, len(kind.attempts)
        on_buckets = [kind.buckets[n].vet_job if n in kind.buckets else None for n in (1000, 100)]
        low, high = ratio(vet.vet_quartile_1), ratio(vet.vet_quartile_3)
        remarks = [
            f"{name}: {part_of(flagged, tasks)}"
            for flag, name in _FLAG_NAMES.items()
            if (flagged := kind.flags.get(flag))
        ]
        return (
            *(results.label(job.cell), str(job.repetition), SUBPHASES[kind.kind]),
            part_of(vet.tasks_used, vet.tasks_used + vet.tasks_skipped),
            ratio(vet.vet_job),
            UNKNOWN if vet.vet_quartile_1 is None else f"{low} to {high}",
            *map(ratio, on_buckets),
            *map(number, (vet.pr_mean_s, vet.ei_mean_s, vet.oc_mean_s)),
            *map(ratio, (vet.ratio_of_means, kind.alpha, vet.pearson_vet_vs_task_seconds)),
            Value("; ".join(remarks), "mark" if remarks else ""),
        )

    rows = [row(job, kind) for job in _jobs_by_cell(results) for kind in job.report.kinds]
    columns = (
        "Cell", "Repeat", "Sub-phase", "Tasks", "On units", "Quartiles", "On 1000", "On 100",
        "PR", "EI", "OC", "PR / EI", "Tail index", "Pearson", "Remark",
    )  # fmt: skip
    groups = (("", 4), ("vet", 2), ("vet on buckets", 2), ("Mean of a task, s", 3), ("", 4))
    caption = "Overhead of finished tasks"
    return table(caption, columns, "lrlrrrrrrrrrrrl", rows, groups=groups, most=_MOST_ROWS)


def _figure(results: ReportData, place: int, job: JobVet) -> Figure:
    name = f"{results.label(job.cell)}, repeat {job.repetition}"

    def draw(canvas: Canvas) -> None:
        panels = canvas.figure.subplots(1, len(job.curves), squeeze=False)[0]
        for axes, curve in zip(panels, job.curves, strict=True):
            _draw_curve(canvas, axes, curve)
        handles, labels = panels[0].get_legend_handles_labels()
        canvas.figure.legend(handles, labels, loc="outside upper left", ncols=3)

    texts = [
        f"{SUBPHASES[curve.kind]} {seconds(curve.task.profiled_real_s)} observed,"
        f" {seconds(curve.task.estimated_ideal_s)} ideal, vet {ratio(curve.task.vet)}"
        for curve in job.curves
    ]
    rows = []
    for curve in job.curves:
        points = len(curve.place)
        step = -(-points // _MOST_POINTS)
        for n in range((points - 1) % step, points, step):  # the last one among them
            observed, ideal = number(1e3 * curve.observed_s[n]), number(1e3 * curve.ideal_s[n])
            rows.append((one_line(curve.attempt_id), str(curve.place[n]), observed, ideal))
    columns = ("Attempt", "Unit", "Observed, ms", "Ideal, ms")
    title = f"{name}: some of the ordered units"
    return Figure(
        name=f"vet{place}",
        title=f"{name}: ordered unit times of the task with the median vet, and its ideal",
        width=WIDE,
        height=3.2,
        caption=f"{name}: {'; '.join(texts)}. The task with the median vet of each kind.",
        data=table(title, columns, "crrr", rows, folded=True),
        draw=draw,
    )


def _draw_curve(canvas: Canvas, axes: Axes, curve: VetCurve) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator

    task = curve.task
    assert task.change_point is not None
    late = task.n - task.change_point < _LATE * task.n
    units = [task.n + 1 - place if late else place for place in curve.place]
    change = task.n + 1 - task.change_point if late else task.change_point
    after = [n for n, place in enumerate(curve.place) if place >= task.change_point]
    style: dict[str, Any] = {"linewidth": 1.6}
    (line,) = axes.plot(units, curve.observed_s, color=SERIES[0], label="observed", **style)
    tooltip = f"{curve.attempt_id}: {task.n} units, {seconds(task.profiled_real_s)}"
    canvas.mark(line, tooltip=tooltip)
    ideal_s = [curve.ideal_s[n] for n in after]
    style["linestyle"] = (0, (4, 2))
    axes.plot([units[n] for n in after], ideal_s, color=SERIES[1], label="ideal", **style)
    axes.axvline(change, color=INK, linewidth=0.8, linestyle=(0, (1, 2)), label="change point")
    positive = any(time_s > 0 for time_s in (*curve.observed_s, *curve.ideal_s))
    middle_s = curve.observed_s[sum(2 * place < task.n for place in curve.place)]
    if positive and middle_s > 0 and max(curve.observed_s) > _FAR * middle_s:
        axes.set_yscale("log", nonpositive="mask")
        axes.yaxis.set_minor_locator(NullLocator())
    if late:
        axes.set_xscale("log")
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_xlim(task.n * 1.1, 0.9)
        axes.set_xlabel("unit, counted from the longest")
    else:
        axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        axes.set_xlabel("unit, the shortest first")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0f}"))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{1e3 * value:g}"))
    axes.set_ylabel("time of a unit, ms", color=INK)
    axes.tick_params(colors=MUTED, labelcolor=INK)
    axes.set_title(f"{SUBPHASES[curve.kind]}: vet {ratio(task.vet)}")
    grid(axes, "both")
