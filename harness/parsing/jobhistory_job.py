"""What the events of a job history add up to, and the checks that they do add up."""

from __future__ import annotations

import sys

from dataclasses import replace
from typing import NoReturn, cast

from harness.errors import ParseError
from harness.parsing.jobhistory_event import Event
from harness.records.trace import AttemptState, JobTrace, TaskAttempt, TaskKind

_KINDS: dict[str, TaskKind] = {"m": "map", "r": "reduce"}


class Job:
    """
    Collects the events of one job; `trace` is the answer.

    Each event is kept with its place until the end, attempts as records without their counters'
    spelling twice: nothing grows but with the number of attempts.
    """

    def __init__(self, source: str) -> None:
        self._source = source
        self._id = ""
        self._once: dict[str, Event] = {}
        self._starts: dict[str, TaskAttempt] = {}
        self._ends: dict[str, tuple[TaskAttempt, int]] = {}

    def submitted(self, event: Event) -> None:
        """JOB_SUBMITTED: who, what, when."""
        self._keep("submitted", event)

    def inited(self, event: Event) -> None:
        """JOB_INITED: the numbers of tasks."""
        self._keep("inited", event)

    def finished(self, event: Event) -> None:
        """JOB_FINISHED: the end of a job that succeeded."""
        self._keep("end", event)

    def unsuccessful(self, event: Event) -> None:
        """JOB_FAILED, JOB_KILLED, JOB_ERROR."""
        self._keep("end", event)

    def attempt_started(self, event: Event) -> None:
        """MAP_ATTEMPT_STARTED, REDUCE_ATTEMPT_STARTED: the container was launched."""
        attempt = self._attempt(event, "killed", event.time_s("startTime"), "trackerName")
        attempt = replace(
            attempt, container_id=event.text("containerId"), locality=event.text("locality")
        )
        if self._starts.setdefault(attempt.attempt_id, attempt) != attempt:
            raise event.error(f"{attempt.attempt_id} starts twice")

    def attempt_finished(self, event: Event) -> None:
        """MAP_ATTEMPT_FINISHED, REDUCE_ATTEMPT_FINISHED: an attempt that succeeded."""
        attempt = self._attempt(event, "succeeded", event.time_s("finishTime"), "hostname")
        if attempt.kind == "map":
            attempt = replace(attempt, map_finish_s=event.time_s("mapFinishTime"))
        else:
            attempt = replace(
                attempt,
                shuffle_finish_s=event.time_s("shuffleFinishTime"),
                sort_finish_s=event.time_s("sortFinishTime"),
            )
        self._end(attempt, event)

    def attempt_unsuccessful(self, event: Event) -> None:
        """*_ATTEMPT_FAILED, *_ATTEMPT_KILLED; one that had succeeded may still be called back."""
        state: AttemptState = "failed" if event.type.endswith("FAILED") else "killed"
        attempt = self._attempt(event, state, event.time_s("finishTime"), "hostname")
        self._end(replace(attempt, error=event.text("error")), event)

    def trace(self) -> JobTrace:
        """Give the job, once all events are in; `ParseError` where they do not make one."""
        submitted, end = self._needed("submitted"), self._needed("end")
        inited = self._once.get("inited")
        submit_s, finish_s = submitted.time_s("submitTime"), end.time_s("finishTime")
        if finish_s < submit_s:
            raise end.error("the job ends before it is submitted")
        trace = JobTrace(
            job_id=self._id,
            name=submitted.text("jobName"),
            user=submitted.text("userName"),
            state="SUCCEEDED" if end.type == "JOB_FINISHED" else end.type.removeprefix("JOB_"),
            submit_s=submit_s,
            launch_s=inited.time_s("launchTime") if inited else submit_s,
            finish_s=finish_s,
            num_maps=inited.count("totalMaps") if inited else 0,
            num_reduces=inited.count("totalReduces") if inited else 0,
            attempts=tuple(self._attempts()),
            counters=end.counters("totalCounters"),
            map_counters=end.counters("mapCounters"),
            reduce_counters=end.counters("reduceCounters"),
            diagnostics=end.text("diagnostics"),
        )
        self._check(trace, end)
        return trace

    def _keep(self, role: str, event: Event) -> None:
        self._belongs(event, event.id("jobid", "job"))
        kept = self._once.setdefault(role, event)
        if kept.raw != event.raw:
            raise event.error(f"contradicts line {kept.line}")

    def _belongs(self, event: Event, name: str) -> None:
        job = "_".join(["job", *name.split("_")[1:3]])
        self._id = self._id or job
        if job != self._id:
            raise event.error(f"{name} in the history of {self._id}")

    def _attempt(self, event: Event, state: AttemptState, at_s: float, host: str) -> TaskAttempt:
        name = event.id("attemptId", "attempt")
        self._belongs(event, name)
        parts = name.split("_")
        if len(parts) != 6 or not event.type.startswith(_KINDS[parts[3]].upper()):
            raise event.error(f"{name} is no attempt of this kind")
        counters = {sys.intern(key): value for key, value in event.counters("counters").items()}
        return TaskAttempt(
            attempt_id=name,
            task_id="_".join(["task", *parts[1:5]]),
            kind=_KINDS[parts[3]],
            state=state,
            start_s=at_s,
            finish_s=at_s,
            host=event.text(host),
            counters=counters,
        )

    def _end(self, attempt: TaskAttempt, event: Event) -> None:
        before, _ = self._ends.get(attempt.attempt_id, (attempt, 0))
        if before.state == attempt.state and before != attempt:
            raise event.error(f"{attempt.attempt_id} ends twice")
        if before is attempt or before.state == "succeeded":
            self._ends[attempt.attempt_id] = (attempt, event.line)

    def _needed(self, role: str) -> Event:
        if role in self._once:
            return self._once[role]
        what = "JOB_SUBMITTED" if role == "submitted" else "the end of the job"
        raise ParseError(
            f"no event tells {what}: the history is cut",
            source=self._source,
            fix="copy the history again once the job is done",
        )

    def _attempts(self) -> list[TaskAttempt]:
        """Join the attempts that ran, in the order of their start."""
        ran = []
        for name, (end, line) in self._ends.items():
            start = self._starts.get(name)
            if start is not None:
                ran.append(self._joined(start, end, line))
            elif end.state == "succeeded":
                self._refuse(f"{name} succeeds without having started", line)
        return sorted(ran, key=lambda a: (a.start_s, a.attempt_id))

    def _joined(self, start: TaskAttempt, end: TaskAttempt, line: int) -> TaskAttempt:
        if end.finish_s < start.start_s:
            self._refuse(f"{end.attempt_id} ends before it starts", line)
        return replace(
            end,
            start_s=start.start_s,
            host=start.host or end.host,
            container_id=start.container_id,
            locality=start.locality,
        )

    def _refuse(self, what: str, line: int) -> NoReturn:
        raise ParseError(what, source=self._source, line=line)

    def _check(self, trace: JobTrace, end: Event) -> None:
        """Compare with the job's own count of successful tasks: a lost line must not go unseen."""
        if trace.state != "SUCCEEDED":
            return
        for kind, field in (("map", "finishedMaps"), ("reduce", "finishedReduces")):
            tasks = {a.task_id for a in trace.succeeded(cast("TaskKind", kind))}
            if len(tasks) != end.count(field):
                raise end.error(
                    f"{field} is {end.count(field)}, and {len(tasks)} {kind} tasks are told of"
                )
