"""Where the time of a job went: mean seconds of each part of its tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from harness.records.task_times import SourceComparison
from harness.reports.data import ReportData
from harness.reports.document import Figure, Figures, Section, Table, Value, table
from harness.reports.drawing import WIDE, Canvas, row_axes
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
        time_bars(place, name, bars(times.parts))
        for place, (name, times) in enumerate(known)
        if times.parts
    ]

    def values() -> dict[str, Any]:
        jobs = []
        for (record, _), (name, times) in zip(results.timelines, known, strict=True):
            parts = [
                {**asdict(bar), "estimated": sorted(bar.estimated), "total_s": bar.total_s}
                for bar in bars(times.parts)
            ]
            differences = [asdict(difference) for difference in times.differences]
            jobs.append(
                {
                    "trial": record.trial.id,
                    "workload": name,
                    "parts": parts,
                    "logs_beside_spans": differences,
                }
            )
        return {"inside": jobs}

    return Section(
        id="inside",
        title="Where the time of a job went",
        blocks=[
            Figures(figures, _LEAD),
            *(differences_table(name, times.differences) for name, times in known),
        ],
        missing="The parts of tasks are not known: there is no recording, and no log of theirs.",
        values=values,
    )


def time_bars(place: int, name: str, every: Sequence[Bar]) -> Figure:
    """Mean seconds of each part of a task, stacked: all nodes, then each kind's first nodes."""
    drawn: list[Bar] = []
    for bar in every:
        hosts = sum(other.kind == bar.kind and bool(other.host) for other in drawn)
        if not bar.host or hosts < _MOST_HOSTS:
            drawn.append(bar)

    def draw(canvas: Canvas) -> None:
        axes = canvas.figure.add_subplot()
        names, row, before = [], -1.0, drawn[0].kind
        for bar in drawn:
            row += 1.5 if bar.kind != before else 1.0
            before, start_s = bar.kind, 0.0
            for part, part_s in bar.seconds.items():
                tooltip = f"{PARTS[part]}: {seconds(part_s)}, {percent(part_s / bar.total_s)}"
                tooltip += " (estimated)" if part in bar.estimated else ""
                canvas.bar(axes, row, (start_s, start_s + part_s), part, tooltip=tooltip, edge=0.3)
                start_s += part_s
            axes.annotate(number(start_s), (start_s, row), (4, 0), textcoords="offset points",
                          va="center", fontsize=8.5)  # fmt: skip
            names.append((row, f"{bar.kind} tasks, {one_line(bar.host, 24) or 'all nodes'}"))
        longest_s = max(bar.total_s for bar in drawn)
        row_axes(axes, names, longest_s * 1.08, "mean seconds per task")
        canvas.texture_legend(PARTS, columns=4)

    whole = [bar for bar in every if not bar.host]
    sources = {"spans": "recorded", "logs": "from logs"}
    tasks = [f"{count(bar.tasks, f'{bar.kind} task')} ({sources[bar.source]})" for bar in whole]
    caption = (
        f"{name}: where the time of a task of one job went, means over {listing(tasks)}. What"
        " other threads did at the same time is not in the bars."
    )
    estimated = [PARTS[part] for part in PARTS if any(part in bar.estimated for bar in whole)]
    caption += f" Estimated from samples: {listing(estimated)}." if estimated else ""
    if hidden := len(every) - len(drawn):
        caption += f" {count(hidden, 'more bar')} of single nodes in the table."
    return Figure(
        name=f"parts{place}",
        title=f"{name}: mean seconds of the parts of a task",
        width=WIDE,
        height=1.35 + 0.32 * len(drawn) + 0.2 * len({bar.kind for bar in drawn}),
        caption=caption,
        data=parts_table(name, every),
        draw=draw,
    )


def parts_table(name: str, every: Sequence[Bar]) -> Table:
    """Mean seconds of each part, a row for each kind, node and part."""
    rows = [
        (
            *(bar.kind, bar.host or "all", PARTS[part]),
            *(number(mean_s), percent(mean_s / bar.total_s), str(bar.tasks)),
            _SOURCES[bar.source],
            Value("estimated", "mark") if part in bar.estimated else "",
        )
        for bar in every[:_MOST_BARS]
        for part, mean_s in bar.seconds.items()
    ]
    hidden = len(every) - _MOST_BARS
    note = f"{hidden} more kinds and nodes not shown." if hidden > 0 else ""
    columns = ("Tasks", "Node", "Part", "Mean, s", "Share", "Count", "Source", "Remark")
    return table(f"{name}: where the time of a task went", columns, "lllrrrll", rows, note=note)


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
