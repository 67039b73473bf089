"""
Where the time of a job went: seconds of each part of its tasks, together the whole of a task.

Only what the main thread did or waited for counts, so the parts add up; what other threads did
meanwhile (spills, copies, merges) is in the timeline.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from statistics import fmean
from typing import Any

from harness.base.documents.document import Figure, Figures, Section, Table, Value, table
from harness.base.documents.drawing import WIDE, Stack, stacked
from harness.base.documents.wording import (
    UNKNOWN,
    count,
    listing,
    natural,
    number,
    one_line,
    percent,
    seconds,
)
from harness.base.records.tasks import (
    MapTimes,
    ReduceTimes,
    Source,
    SourceComparison,
    TaskSpans,
    covered_s,
)
from harness.base.records.trace import TaskAttempt, TaskKind
from harness.core.reports.data import JobTaskTimes, ReportData, TaskParts
from harness.core.reports.sections.profile import scaled

# What people call the parts, in the order of a task.  Where there are logs alone, some parts are
# known only as a sum; such a part lists what is in it.
PARTS: dict[str, str] = {
    "launch": "launch of the container",
    "jvm": "start of the JVM",
    "init": "initialisation",
    "start": "launch, JVM, initialisation",
    "read": "read",
    "map_function": "map function",
    "collect": "collect",
    "map_loop": "read, map, collect",
    "map_loop_blocked": "read, map, collect, blocked",
    "blocked": "blocked: buffer full",
    "wait_spill": "waiting for the spill thread",
    "spill_sort": "spill: sort",
    "spill_combine": "spill: combine",
    "spill_write": "spill: write",
    "spill": "spill: sort, combine, write",
    "merge": "merge of the spills",
    "wait": "waiting for map outputs",
    "stall": "no memory for a map output",
    "copy": "copying",
    "memory_merge": "merge in memory",
    "disk_merge": "merge on disk",
    "last_merges": "merging after the last copy",
    "read_merge": "read with the last merge",
    "reduce_function": "reduce function",
    "output": "write",
    "reduce_loop": "read, reduce, write",
    "commit": "commit",
    "end": "end",
    "other": "other, not distinguished",
}
KINDS: tuple[TaskKind, ...] = ("map", "reduce")

# Parts that rest on a field of the task's record; a source may only estimate it.
_RESTS_ON = {
    "collect_s": ("collect", "map_function"),
    "spilling_s": ("map_loop",),
    "blocked_s": ("blocked",),
    "function_s": ("reduce_function",),
    "write_s": ("output",),
}
_LEAD = (
    "The jobs of the timelines, part by part: what a task's main thread did or waited for, from the"
    " launch of its container to the end that the application master saw. Parts that the source"
    " cannot distinguish stand as their sum."
)
_MOST_HOSTS = 20
_SOURCES = {"spans": "recorded", "logs": "from logs"}


def section(results: ReportData) -> Section:
    """A stacked bar for all nodes and for each; and what logs show beside the tracer."""
    jobs = list[tuple[str, str, JobTaskTimes]]()
    for record, _ in results.timelines:
        times = results.task_times.get(record.trial.id, JobTaskTimes())
        jobs.append((record.trial.id, record.trial.cell.workload.name, times))
    figures = [
        time_bars(place, workload, bars(times.parts))
        for place, (_, workload, times) in enumerate(jobs)
        if times.parts
    ]
    return Section(
        id="inside",
        title="Where the time of a job went",
        blocks=[
            Figures(figures, _LEAD),
            *(differences_table(workload, times.differences) for _, workload, times in jobs),
        ],
        missing="The parts of tasks are not known: there is no recording, and no log of theirs.",
        values=lambda: {"inside": [_job_document(*job) for job in jobs]},
    )


def _job_document(trial_id: str, workload: str, times: JobTaskTimes) -> dict[str, Any]:
    """What the JSON report has of one job."""
    parts = [
        asdict(bar) | {"estimated": sorted(bar.estimated), "total_s": bar.total_s}
        for bar in bars(times.parts)
    ]
    return {
        "trial": trial_id,
        "workload": workload,
        "parts": parts,
        "logs_beside_spans": times.differences,
    }


def time_bars(place: int, workload: str, all_bars: Sequence[TaskParts]) -> Figure:
    """Mean seconds of each part of a task, stacked: all nodes, then each kind's first nodes."""
    drawn = list[TaskParts]()
    for kind in KINDS:
        drawn += [task_bar for task_bar in all_bars if task_bar.kind == kind][: 1 + _MOST_HOSTS]
    stacks = []
    for task_bar in drawn:
        where = one_line(task_bar.host, 24) or "all nodes"
        name = f"{task_bar.kind} tasks, {where}"
        stacks.append(Stack(task_bar.kind, name, part_pieces(task_bar)))
    whole = [task_bar for task_bar in all_bars if not task_bar.host]
    tasks = [
        f"{count(task_bar.tasks, f'{task_bar.kind} task')} ({_SOURCES[task_bar.source]})"
        for task_bar in whole
    ]
    caption = (
        f"{workload}: where the time of a task of one job went, means over {listing(tasks)}."
        " What other threads did at the same time is not in the bars."
    )
    sampled = frozenset[str]().union(*(task_bar.estimated for task_bar in whole))
    if estimated := [name for part, name in PARTS.items() if part in sampled]:
        caption += f" Estimated from samples: {listing(estimated)}."
    if hidden := len(all_bars) - len(drawn):
        caption += f" {count(hidden, 'more bar')} of single nodes in the table."
    title = f"{workload}: mean seconds of the parts of a task"
    height, draw = stacked(stacks, "mean seconds per task", PARTS)
    data = parts_table(workload, all_bars)
    return Figure(f"parts{place}", title, WIDE, height, caption, data, draw)


def part_pieces(task_bar: TaskParts) -> list[tuple[str, float, str]]:
    """Pieces of a stacked bar: each part with its seconds and a tooltip."""
    pieces = []
    for part, part_s in task_bar.seconds.items():
        tooltip = f"{PARTS[part]}: {seconds(part_s)}, {percent(part_s / task_bar.total_s)}"
        if part in task_bar.estimated:
            tooltip += " (estimated)"
        pieces.append((part, part_s, tooltip))
    return pieces


def parts_table(workload: str, all_bars: Sequence[TaskParts]) -> Table:
    """Mean seconds of each part, a row for each kind, node and part."""
    rows: list[tuple[str | Value, ...]] = []
    for task_bar in all_bars:
        for part, mean_s in task_bar.seconds.items():
            remark = Value("estimated", "mark") if part in task_bar.estimated else ""
            rows.append(
                (
                    *(task_bar.kind, task_bar.host or "all", PARTS[part]),
                    *(number(mean_s), percent(mean_s / task_bar.total_s), str(task_bar.tasks)),
                    *(_SOURCES[task_bar.source], remark),
                )
            )
    columns = ("Tasks", "Node", "Part", "Mean, s", "Share", "Count", "Source", "Remark")
    return table(f"{workload}: where the time of a task went", columns, "lllrrrll", rows)


def differences_table(workload: str, differences: Sequence[SourceComparison]) -> Table:
    """Each statistic from spans and from logs, where both have it."""
    rows = []
    for difference in differences:
        factor, unit = scaled(difference.name)
        rows.append(
            (
                *(
                    difference.name,
                    number(factor * difference.spans),
                    number(factor * difference.logs),
                    unit,
                ),
                percent(difference.ratio - 1, signed=True),
                percent(difference.spread) if difference.count > 1 else UNKNOWN,
                *(str(difference.count), difference.text),
            )
        )
    columns = ("Statistic", "Spans", "Logs", "Unit", "Difference", "Spread \u00b1", "Tasks", "What")
    return table(
        f"{workload}: what the tasks' own logs show, beside the tracer",
        columns,
        "crrlrrrl",
        rows,
        note="For the same tasks, as measured. The spread is that of the ratio between tasks. Logs"
        " are as fine as a millisecond, and what is shorter differs by much.",
    )


def task_parts(
    times: MapTimes | ReduceTimes, attempt: TaskAttempt, recording: TaskSpans | None = None
) -> TaskParts:
    """
    Give the parts of *attempt*, by its *times*.

    Its *recording*, where there is one, distinguishes launch, JVM start and initialisation.  What
    is left of the attempt's time is ``other``, or the record loop where only that is not known.
    """
    rest_name = "other"
    if isinstance(times, MapTimes):
        parts = {**map_loop_parts(times), **map_tail_parts(times)}
        tail = (times.start_up_s, times.flush_s, times.merge_s, times.end_s)
        if times.spilling_s is None and None not in tail:
            rest_name = "map_loop_blocked"
    else:
        parts = reduce_parts(times, attempt)
    parts |= start_parts(times.start_up_s, attempt, recording)
    known_s = {name: part_s for name in PARTS if (part_s := parts.get(name)) and part_s > 0}
    rest_s = attempt.duration_s - sum(known_s.values())
    sampled = set[str]().union(*(_RESTS_ON.get(name, ()) for name in times.sampled))
    return TaskParts(
        kind=attempt.kind,
        host=attempt.host,
        tasks=1,
        source=times.source,
        seconds=known_s | ({rest_name: rest_s} if rest_s > 0 else {}),
        estimated=frozenset(sampled & set(known_s)),
    )


# Seconds of parts by their names; of a part that is not known, none.
Parts = dict[str, float | None]


def map_loop_parts(times: MapTimes) -> Parts:
    """The record loop of a map: as a whole, or split where single records were timed."""
    if times.alone_s is None or times.spilling_s is None:
        return {}
    loop_s = times.alone_s + times.spilling_s
    if times.read_s is None:
        return {"map_loop": loop_s}
    collect_s = times.collect_s or 0.0
    function_s = loop_s - times.read_s - collect_s
    return {"read": times.read_s, "map_function": function_s, "collect": collect_s}


def map_tail_parts(times: MapTimes) -> Parts:
    """What a map waits for within its loop and does behind it: the last spill, merge and end."""
    parts: Parts = {
        "blocked": times.blocked_s,
        "merge": times.merge_s,
        "end": times.end_s,
        "wait_spill": times.flush_s,
    }
    last = next((spill for spill in times.spills if spill.last), None)
    if times.flush_s is None or last is None:
        return parts
    parts["wait_spill"] = times.flush_s - last.duration_s
    if last.sort_s is None:
        return parts | {"spill": last.duration_s}
    return parts | {
        "spill_sort": last.sort_s,
        "spill_combine": last.combine_s,
        "spill_write": last.write_s,
    }


def start_parts(
    start_up_s: float | None, attempt: TaskAttempt, recording: TaskSpans | None
) -> Parts:
    """What came before the work of a task; a recording distinguishes its parts."""
    mains = [] if recording is None else [span.start_s for span in recording.named("main")]
    if recording is None or not mains or start_up_s is None:
        return {"start": start_up_s}
    before_main_s = max(mains[0] - attempt.start_s, 0.0)
    init_s = start_up_s - before_main_s
    if recording.process_start_s is None:
        return {"init": init_s, "start": before_main_s}
    # The start of a process is known to a few hundredths of a second.
    launch_s = min(max(recording.process_start_s - attempt.start_s, 0.0), before_main_s)
    return {"init": init_s, "launch": launch_s, "jvm": before_main_s - launch_s}


def reduce_parts(times: ReduceTimes, attempt: TaskAttempt) -> Parts:
    """Parts of a reduce behind its start."""
    commit_s = times.commit_s or 0.0
    return {
        "read_merge": times.read_s,
        "reduce_function": times.function_s,
        "output": times.write_s,
        "reduce_loop": times.loop_s if times.read_s is None else None,
        "commit": commit_s,
        "end": None if times.end_s is None else times.end_s - commit_s,
        **shuffle_parts(times, attempt),
    }


def shuffle_parts(times: ReduceTimes, attempt: TaskAttempt) -> Parts:
    """Parts of the shuffle; a fetcher without memory counts only while no other copies."""
    if times.shuffle_s is None or times.start_up_s is None:
        return {}
    start = attempt.start_s + times.start_up_s
    last_copy = max((segment.finish_s for segment in times.segments), default=start)
    window_s = min(max(last_copy - start, 0.0), times.shuffle_s)
    waited_s = min(times.waited_s or 0.0, window_s)
    copies = [
        (segment.start_s - (segment.connect_s or 0.0), segment.finish_s)
        for segment in times.segments
    ]
    copying_s = covered_s(copies, (start, start + times.shuffle_s))
    idle_s = max(window_s - waited_s - copying_s, 0.0)
    stalled_s = min(times.stalled_s or 0.0, idle_s)
    return {
        "wait": waited_s,
        "stall": stalled_s,
        "copy": window_s - waited_s - stalled_s,
        "last_merges": times.shuffle_s - window_s,
    }


def bars(tasks: Sequence[TaskParts]) -> list[TaskParts]:
    """
    Means of *tasks* by kind, then by kind and node.

    Where any task of a kind was recorded, those that were not are left out: their sums would stand
    beside the others' parts.
    """
    means = []
    for kind in KINDS:
        chosen = from_best_source([task for task in tasks if task.kind == kind])
        if not chosen:
            continue
        means.append(mean_parts(chosen, ""))
        hosts = sorted({task.host for task in chosen}, key=natural)
        if len(hosts) > 1:
            means += [mean_parts(chosen, host) for host in hosts]
    return means


def from_best_source(tasks: Sequence[TaskParts]) -> list[TaskParts]:
    """Those that were recorded; where none was, those from logs."""
    source: Source = "spans" if any(task.source == "spans" for task in tasks) else "logs"
    return [task for task in tasks if task.source == source]


def mean_parts(tasks: Sequence[TaskParts], host: str) -> TaskParts:
    """Mean of each part over *tasks* of one kind and source that ran on *host*; empty: on any."""
    chosen = [task for task in tasks if host in ("", task.host)]
    means = {part: fmean(task.seconds.get(part, 0.0) for task in chosen) for part in PARTS}
    known_s = {part: mean_s for part, mean_s in means.items() if mean_s > 0}
    estimated = frozenset[str]().union(*(task.estimated for task in chosen))
    first = chosen[0]
    return TaskParts(first.kind, host, len(chosen), first.source, known_s, estimated)
