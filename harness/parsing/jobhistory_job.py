"""What the events of a job history add up to, and the checks that they do add up."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping
from dataclasses import fields, make_dataclass
from operator import attrgetter
from typing import Any, NamedTuple, cast

from harness.parsing.jobhistory_counters import Counters, Names, index_of
from harness.parsing.jobhistory_event import CUT, Event, Source
from harness.records.trace import AttemptState, JobTrace, TaskAttempt, TaskKind

_KINDS: dict[str, TaskKind] = {"m": "map", "r": "reduce"}

# As `TaskAttempt`, but open: thousands are filled in a fifth of the time, then given its class.
_Open: Any = make_dataclass(
    "_Open", [f.name for f in fields(TaskAttempt)], slots=True, repr=False, eq=False
)


class Start(NamedTuple):
    """What the start of an attempt tells."""

    start_s: float
    host: str
    container_id: str
    locality: str


class End(NamedTuple):
    """What the end of an attempt tells; `at` is where it stands in the history."""

    at: int
    kind: TaskKind
    state: AttemptState
    finish_s: float
    host: str
    counters: Mapping[str, int]
    map_finish_s: float | None = None
    shuffle_finish_s: float | None = None
    sort_finish_s: float | None = None
    error: str = ""


class Job:
    """
    Collects the events of one job; `trace` is the answer.

    The few events of the job itself are kept to the end, of attempts what they tell: nothing
    grows but with the number of attempts.
    """

    def __init__(self, source: Source) -> None:
        self.id = ""
        self._source = source
        self._once: dict[str, Event] = {}
        self._starts: dict[str, Start] = {}
        self._ends: dict[str, End] = {}
        self._names: dict[tuple[str, ...], Names] = {}

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
        name, _ = self._attempt(event)
        texts = (event.text(field) for field in ("trackerName", "containerId", "locality"))
        if not self.start(name, Start(event.time_s("startTime"), *texts)):
            raise event.error(f"{name} starts twice")

    def attempt_finished(self, event: Event) -> None:
        """MAP_ATTEMPT_FINISHED, REDUCE_ATTEMPT_FINISHED: an attempt that succeeded."""
        name, kind = self._attempt(event)
        end = self._ended(event, kind, "succeeded")
        if kind == "map":
            end = end._replace(map_finish_s=event.time_s("mapFinishTime"))
        else:
            end = end._replace(
                shuffle_finish_s=event.time_s("shuffleFinishTime"),
                sort_finish_s=event.time_s("sortFinishTime"),
            )
        self._end(name, end, event)

    def attempt_unsuccessful(self, event: Event) -> None:
        """*_ATTEMPT_FAILED, *_ATTEMPT_KILLED; one that had succeeded may still be called back."""
        name, kind = self._attempt(event)
        state: AttemptState = "failed" if event.type.endswith("FAILED") else "killed"
        end = self._ended(event, kind, state)
        self._end(name, end._replace(error=event.text("error")), event)

    def start(self, name: str, start: Start) -> bool:
        """Keep the start of the attempt *name*; false where another start is known."""
        return self._starts.setdefault(name, start) == start

    def end(self, name: str, end: End) -> bool:
        """Keep the end of the attempt *name*; false where it contradicts what is known."""
        before = self._ends.setdefault(name, end)
        if before is end:
            return True
        if before.state == end.state and before[1:] != end[1:]:
            return False
        if before.state == "succeeded":
            self._ends[name] = end
        return True

    def trace(self) -> JobTrace:
        """Give the job, once all events are in; `ParseError` where they do not make one."""
        submitted, end = self._needed("submitted"), self._needed("end")
        inited = self._once.get("inited")
        submit_s, finish_s = submitted.time_s("submitTime"), end.time_s("finishTime")
        if finish_s < submit_s:
            raise end.error("the job ends before it is submitted")
        trace = JobTrace(
            job_id=self.id,
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
            uberized=inited.truth("uberized") if inited else False,
        )
        self._check(trace, end)
        return trace

    def _keep(self, role: str, event: Event) -> None:
        self._belongs(event, event.id("jobid", "job"))
        kept = self._once.setdefault(role, event)
        if kept.raw != event.raw:
            raise event.error(f"contradicts {kept.source.unit} {kept.at}")

    def _belongs(self, event: Event, name: str) -> None:
        job = "_".join(["job", *name.split("_")[1:3]])
        self.id = self.id or job
        if job != self.id:
            raise event.error(f"{name} in the history of {self.id}")

    def _attempt(self, event: Event) -> tuple[str, TaskKind]:
        name = event.id("attemptId", "attempt")
        self._belongs(event, name)
        parts = name.split("_")
        if len(parts) != 6 or not event.type.startswith(_KINDS[parts[3]].upper()):
            raise event.error(f"{name} is no attempt of this kind")
        return name, _KINDS[parts[3]]

    def _ended(self, event: Event, kind: TaskKind, state: AttemptState) -> End:
        return End(
            at=event.at,
            kind=kind,
            state=state,
            finish_s=event.time_s("finishTime"),
            host=event.text("hostname"),
            counters=self._shared(event.counters("counters")),
        )

    def _shared(self, counters: Mapping[str, int]) -> Mapping[str, int]:
        """Keep the values of *counters* beside names that other attempts have too."""
        if isinstance(counters, Counters):
            return counters
        names = tuple(counters)
        if names not in self._names:
            self._names[names] = Names(index_of(names))
        return Counters(self._names[names], array("q", counters.values()))

    def _end(self, name: str, end: End, event: Event) -> None:
        if not self.end(name, end):
            raise event.error(f"{name} ends twice")

    def _needed(self, role: str) -> Event:
        if role in self._once:
            return self._once[role]
        what = "JOB_SUBMITTED" if role == "submitted" else "the end of the job"
        raise self._source.error(f"no event tells {what}: the history is cut", fix=CUT)

    def _attempts(self) -> list[TaskAttempt]:
        """Join the attempts that ran, in the order of their start."""
        ran = []
        for name, end in self._ends.items():
            start = self._starts.get(name)
            if start is not None:
                ran.append(self._joined(name, start, end))
            elif end.state == "succeeded":
                raise self._source.error(f"{name} succeeds without having started", end.at)
        return sorted(ran, key=attrgetter("start_s", "attempt_id"))

    def _joined(self, name: str, start: Start, end: End) -> TaskAttempt:
        if end.finish_s < start.start_s:
            raise self._source.error(f"{name} ends before it starts", end.at)
        made = _Open(
            name,
            f"task{name[len('attempt') : name.rindex('_')]}",
            end.kind,
            end.state,
            start.start_s,
            end.finish_s,
            start.host or end.host,
            end.map_finish_s,
            end.shuffle_finish_s,
            end.sort_finish_s,
            start.container_id,
            start.locality,
            end.error,
            end.counters,
        )
        made.__class__ = TaskAttempt
        return cast("TaskAttempt", made)

    def _check(self, trace: JobTrace, end: Event) -> None:
        """Compare with the job's own count of successful tasks: a lost line must not go unseen."""
        if trace.state != "SUCCEEDED":
            return
        done = [a for a in trace.attempts if a.state == "succeeded"]
        for kind, field in (("map", "finishedMaps"), ("reduce", "finishedReduces")):
            tasks = len({a.task_id for a in done if a.kind == kind})
            if tasks != end.count(field):
                raise end.error(
                    f"{field} is {end.count(field)}, and {tasks} {kind} tasks are told of"
                )


READ: dict[str, Callable[[Job, Event], None]] = {
    "JOB_SUBMITTED": Job.submitted,
    "JOB_INITED": Job.inited,
    "MAP_ATTEMPT_STARTED": Job.attempt_started,
    "REDUCE_ATTEMPT_STARTED": Job.attempt_started,
    "MAP_ATTEMPT_FINISHED": Job.attempt_finished,
    "REDUCE_ATTEMPT_FINISHED": Job.attempt_finished,
    "MAP_ATTEMPT_FAILED": Job.attempt_unsuccessful,
    "MAP_ATTEMPT_KILLED": Job.attempt_unsuccessful,
    "REDUCE_ATTEMPT_FAILED": Job.attempt_unsuccessful,
    "REDUCE_ATTEMPT_KILLED": Job.attempt_unsuccessful,
    "JOB_FINISHED": Job.finished,
    "JOB_FAILED": Job.unsuccessful,
    "JOB_KILLED": Job.unsuccessful,
    "JOB_ERROR": Job.unsuccessful,
}
