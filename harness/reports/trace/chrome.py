"""
A job as events of Chrome's trace format, which Perfetto and ``chrome://tracing`` open.

A process is a task attempt, a thread one of its threads; times are microseconds since the job was
submitted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from harness.records.spans import Span, TaskSpans
from harness.records.trace import JobTrace, TaskAttempt

Event = Mapping[str, Any]


def chrome_events(job: JobTrace, tasks: Iterable[TaskSpans]) -> Iterator[Event]:
    """
    Events of *job*: every attempt of its history, and the spans of those in *tasks*.

    They stand in the order of the attempts' starts; the caller puts them into one JSON list.
    """
    begin = job.submit_s
    yield _meta("process_name", 0, name=f"{job.job_id} {job.name}")
    yield _complete("job", (0.0, job.finish_s - begin), (0, 0), {"state": job.state})
    processes = {a.attempt_id: n for n, a in enumerate(job.attempts, start=1)}
    for attempt in job.attempts:
        yield from _attempt(attempt, processes[attempt.attempt_id], begin)
    for task in tasks:
        if task.attempt_id in processes:
            yield from _task(task, processes[task.attempt_id], begin)


def _attempt(attempt: TaskAttempt, process: int, begin: float) -> Iterator[Event]:
    yield _meta("process_name", process, name=f"{attempt.task_id} on {attempt.host}")
    yield _meta("process_sort_index", process, sort_index=process)
    times = attempt.start_s - begin, attempt.finish_s - begin
    told = {"attempt": attempt.attempt_id, "state": attempt.state, **attempt.counters}
    yield _complete(f"{attempt.kind} attempt", times, (process, 0), told)


def _task(task: TaskSpans, process: int, begin: float) -> Iterator[Event]:
    names = dict.fromkeys(span.thread for span in task.spans)
    threads = {name: number for number, name in enumerate(names, start=1)}
    for name, number in threads.items():
        yield _meta("thread_name", process, number, name=name)
    for span in task.spans:
        times = span.start_s - begin, span.finish_s - begin
        yield _complete(span.name, times, (process, threads[span.thread]), _told(span))


def _told(span: Span) -> dict[str, Any]:
    told: dict[str, Any] = {"amount": span.amount} if span.amount else {}
    if span.cpu_s is not None:
        told["cpu_ms"] = round(span.cpu_s * 1e3, 3)
    if span.text:
        told["text"] = span.text
    if span.details:
        told["details"] = list(span.details)
    return told | ({"open": True} if span.open else {})


def _complete(
    name: str, times: tuple[float, float], thread: tuple[int, int], told: Mapping[str, Any]
) -> Event:
    """A piece of work of *thread* (its process and itself); *times* count from the submission."""
    start, finish = times
    return {
        "name": name,
        "ph": "X",
        "ts": round(start * 1e6, 1),
        "dur": round((finish - start) * 1e6, 1),
        "pid": thread[0],
        "tid": thread[1],
        "args": told,
    }


def _meta(kind: str, process: int, thread: int = 0, **told: object) -> Event:
    return {"name": kind, "ph": "M", "pid": process, "tid": thread, "args": told}
