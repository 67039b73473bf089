"""
A job as events of Chrome's trace format, which Perfetto and ``chrome://tracing`` open.

A process is a task attempt, a thread one of its threads; times are microseconds since the job was
submitted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from harness.records.spans import TaskSpans
from harness.records.trace import JobTrace

Event = Mapping[str, Any]


def chrome_events(job: JobTrace, tasks: Iterable[TaskSpans]) -> Iterator[Event]:
    """
    Events of *job*: every attempt of its history, and the spans of those in *tasks*.

    They stand in the order of the attempts' starts; the caller puts them into one JSON list.
    """

    def work(
        name: str, times: tuple[float, float], process: int, thread: int, **args: Any
    ) -> Event:
        start, finish = times
        return {
            "name": name,
            "ph": "X",
            "ts": round((start - job.submit_s) * 1e6, 1),
            "dur": round((finish - start) * 1e6, 1),
            "pid": process,
            "tid": thread,
            "args": args,
        }

    def metadata(kind: str, process: int, thread: int = 0, **args: Any) -> Event:
        return {"name": kind, "ph": "M", "pid": process, "tid": thread, "args": args}

    yield metadata("process_name", 0, name=f"{job.job_id} {job.name}")
    yield work("job", (job.submit_s, job.finish_s), 0, 0, state=job.state)
    processes = {
        each_attempt.attempt_id: number for number, each_attempt in enumerate(job.attempts, start=1)
    }
    for attempt in job.attempts:
        process = processes[attempt.attempt_id]
        yield metadata("process_name", process, name=f"{attempt.task_id} on {attempt.host}")
        yield metadata("process_sort_index", process, sort_index=process)
        state = {"attempt": attempt.attempt_id, "state": attempt.state}
        times = attempt.start_s, attempt.finish_s
        event = work(f"{attempt.kind} attempt", times, process, 0)
        yield {**event, "args": {**state, **attempt.counters}}
    for recording in tasks:
        if recording.attempt_id not in processes:
            continue
        process = processes[recording.attempt_id]
        names = dict.fromkeys(span.thread for span in recording.spans)
        threads = {name: number for number, name in enumerate(names, start=1)}
        for name, number in threads.items():
            yield metadata("thread_name", process, number, name=name)
        for span in recording.spans:
            args: dict[str, Any] = {"amount": span.amount} if span.amount else {}
            if span.cpu_s is not None:
                args["cpu_ms"] = round(span.cpu_s * 1e3, 3)
            if span.text:
                args["text"] = span.text
            if span.details:
                args["details"] = list(span.details)
            if span.open:
                args["open"] = True
            thread = threads[span.thread]
            yield work(span.name, (span.start_s, span.finish_s), process, thread, **args)
