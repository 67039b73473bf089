"""What the report shows of the inside of a job's tasks, from their recordings and their logs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple

from harness.profiling.inside import compare
from harness.profiling.inside_definitions import MAP, REDUCE
from harness.profiling.spans import map_inside, reduce_inside
from harness.records.spans import TaskSpans
from harness.records.task_times import MapTimes, ReduceTimes
from harness.records.trace import JobTrace, TaskAttempt
from harness.reports.data import Difference, JobTaskTimes
from harness.reports.task_parts import task_parts
from harness.reports.tracks import drawn_attempts


def job_inside(
    trace: JobTrace, told: Sequence[MapTimes | ReduceTimes], recorded: Iterable[TaskSpans]
) -> JobTaskTimes:
    """
    Where the time of a job's tasks went; of *recorded* only what is drawn stays in memory.

    Attempts that failed or were killed are drawn, and count in no mean.
    """
    every = {a.attempt_id: a for a in trace.attempts}
    attempts = {name: a for name, a in every.items() if a.state == "succeeded"}
    drawn, recordings = drawn_attempts(trace), dict[str, TaskSpans]()
    spans: list[MapTimes | ReduceTimes] = []
    parts = {}
    for task in recorded:
        if task.attempt_id in drawn and task.attempt_id in every:
            recordings[task.attempt_id] = task
        if (attempt := attempts.get(task.attempt_id)) is None:
            continue
        spans.append((map_inside if attempt.kind == "map" else reduce_inside)(task, attempt))
        parts[task.attempt_id] = task_parts(spans[-1], attempt, task)
    logs = [t for t in told if t.attempt_id in attempts]
    for each in logs:
        parts.setdefault(each.attempt_id, task_parts(each, attempts[each.attempt_id]))
    return JobTaskTimes(
        parts=tuple(parts.values()),
        recordings=recordings,
        from_logs={t.attempt_id: t for t in logs if t.attempt_id in drawn},
        differences=_differences(spans, logs, attempts),
    )


def _differences(
    spans: Sequence[MapTimes | ReduceTimes],
    logs: Sequence[MapTimes | ReduceTimes],
    attempts: Mapping[str, TaskAttempt],
) -> list[Difference]:
    counters = {name: attempt.counters for name, attempt in attempts.items()}
    return [
        Difference(name, (MAP.get(name) or REDUCE[name]).text, *astuple(found))
        for name, found in compare(spans, logs, counters).items()
    ]
