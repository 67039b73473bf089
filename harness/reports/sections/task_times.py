"""Where the time of a job went: mean seconds of each part of its tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from harness.records.task_times import SourceComparison
from harness.reports.data import ReportData
from harness.reports.document import Figure, Figures, Section, Table, Value, table
from harness.reports.drawing import WIDE, Canvas, Stack, draw_stacks
from harness.reports.sections.profile import scaled
from harness.reports.task_parts import PARTS, Bar, bars
from harness.reports.wording import UNKNOWN, count, listing, number, one_line, percent, seconds

_LEAD = (
    "The jobs of the timelines, part by part: what a task's main thread did or waited for, from the"
    " launch of its container to the end that the application master saw. Parts that the source"
    " cannot distinguish stand as their sum."
)
_MOST_HOSTS = 20
_MOST_BARS = 200
_SOURCES = {"spans": "tracer", "logs": "logs"}


def section(results: ReportData) -> Section:
    """A stacked bar for all nodes and for each; and what logs show beside the tracer."""
    known = results.timeline_task_times()
    figures = [
        time_bars(place, workload_name, bars(known_times.parts))
        for place, (workload_name, known_times) in enumerate(known)
        if known_times.parts
    ]

    def values() -> dict[str, Any]:
        jobs = []
        for (record, _), (workload_name, known_times) in zip(results.timelines, known, strict=True):
            parts = [
                asdict(each) | {"estimated": sorted(each.estimated), "total_s": each.total_s}
                for each in bars(known_times.parts)
            ]
            differences = [asdict(difference) for difference in known_times.differences]
            job = {"trial": record.trial.id, "workload": workload_name, "parts": parts}
            jobs.append(job | {"logs_beside_spans": differences})
        return {"inside": jobs}

    return Section(
        id="inside",
        title="Where the time of a job went",
        blocks=[
            Figures(figures, _LEAD),
            *(differences_table(workload, times.differences) for workload, times in known),
        ],
        missing="The parts of tasks are not known: there is no recording, and no log of theirs.",
        values=values,
    )


def time_bars(place: int, workload_name: str, every: Sequence[Bar]) -> Figure:
    """Mean seconds of each part of a task, stacked: all nodes, then each kind's first nodes."""
    drawn: list[Bar] = []
    for task_bar in every:
        hosts = sum(other.kind == task_bar.kind and bool(other.host) for other in drawn)
        if not task_bar.host or hosts < _MOST_HOSTS:
            drawn.append(task_bar)

    stacks = []
    for task_bar in drawn:
        pieces = []
        for part_name, part_s in task_bar.seconds.items():
            tooltip = f"{PARTS[part_name]}: {seconds(part_s)}, {percent(part_s / task_bar.total_s)}"
            tooltip += " (estimated)" if part_name in task_bar.estimated else ""
            pieces.append((part_name, part_s, tooltip))
        where = one_line(task_bar.host, 24) or "all nodes"
        stacks.append(Stack(task_bar.kind, f"{task_bar.kind} tasks, {where}", pieces))

    def draw(canvas: Canvas) -> None:
        draw_stacks(canvas, stacks, "mean seconds per task")
        canvas.texture_legend(PARTS, columns=4)

    whole = [task_bar for task_bar in every if not task_bar.host]
    sources = {"spans": "recorded", "logs": "from logs"}
    tasks = [
        f"{count(task_bar.tasks, f'{task_bar.kind} task')} ({sources[task_bar.source]})"
        for task_bar in whole
    ]
    caption = (
        f"{workload_name}: where the time of a task of one job went, means over {listing(tasks)}."
        " What other threads did at the same time is not in the bars."
    )
    estimated = [
        PARTS[part_name]
        for part_name in PARTS
        if any(part_name in task_bar.estimated for task_bar in whole)
    ]
    caption += f" Estimated from samples: {listing(estimated)}." if estimated else ""
    if hidden := len(every) - len(drawn):
        caption += f" {count(hidden, 'more bar')} of single nodes in the table."
    title = f"{workload_name}: mean seconds of the parts of a task"
    height = 1.35 + 0.32 * len(drawn) + 0.2 * len({task_bar.kind for task_bar in drawn})
    data = parts_table(workload_name, every)
    return Figure(f"parts{place}", title, WIDE, height, caption, data, draw)


def parts_table(workload_name: str, every: Sequence[Bar]) -> Table:
    """Mean seconds of each part, a row for each kind, node and part."""
    rows = [
        (
            *(task_bar.kind, task_bar.host or "all", PARTS[part_name]),
            *(number(mean_s), percent(mean_s / task_bar.total_s), str(task_bar.tasks)),
            _SOURCES[task_bar.source],
            Value("estimated", "mark") if part_name in task_bar.estimated else "",
        )
        for task_bar in every[:_MOST_BARS]
        for part_name, mean_s in task_bar.seconds.items()
    ]
    hidden = len(every) - _MOST_BARS
    note = f"{hidden} more kinds and nodes not shown." if hidden > 0 else ""
    columns = ("Tasks", "Node", "Part", "Mean, s", "Share", "Count", "Source", "Remark")
    return table(
        f"{workload_name}: where the time of a task went", columns, "lllrrrll", rows, note=note
    )


def differences_table(workload: str, differences: Sequence[SourceComparison]) -> Table:
    """Each statistic from spans and from logs, where both have it."""
    rows = []
    for each in differences:
        factor, unit = scaled(each.name)
        rows.append(
            (
                *(each.name, number(factor * each.spans), number(factor * each.logs), unit),
                percent(each.ratio - 1, signed=True),
                percent(each.spread) if each.count > 1 else UNKNOWN,
                *(str(each.count), each.text),
            )
        )
    columns = ("Statistic", "Spans", "Logs", "Unit", "Difference", "Spread \u00b1", "Tasks", "What")
    return table(
        f"{workload}: what the tasks' own logs show, beside the tracer", columns, "crrlrrrl", rows,
        note="For the same tasks, as measured. The spread is that of the ratio between tasks. Logs"
        " are as fine as a millisecond, and what is shorter differs by much.",
    )  # fmt: skip
