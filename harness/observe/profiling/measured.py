"""
Measured times of a trial, from the histories of its jobs: of the job, its tasks and their phases.

A history shows when each phase of a task ends; what the task's JVM needs to start and to end is
handed in, and belongs to no phase.
"""

from __future__ import annotations

import math

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import product
from statistics import fmean
from typing import NamedTuple

from harness.base.records.trace import JobTrace, TaskAttempt, TaskKind
from harness.observe.profiling.body import Copies, JvmEnds, working_s

MAP_PHASES = ("map_main_s", "map_tail_s")
REDUCE_PHASES = ("shuffle_s", "sort_s", "reduce_rest_s")


class Span(NamedTuple):
    """
    A part of a task that is measured as *quantity*, from one phase's end to that of another.

    *begin* and *end* are fields of `TaskAttempt`; without them the span begins and ends with the
    work of the task itself.
    """

    kind: TaskKind
    quantity: str
    begin: str = ""
    end: str = ""

    def measure(self, attempts: Iterable[TaskAttempt], ends: JvmEnds) -> list[float]:
        """
        Seconds of the span in each of *attempts* of which both its ends are known.

        *ends* are the seconds that the JVM of an attempt needs to start and to end.  Where these
        are another task's, a span may come out negative: it is given as it is, for a span that is
        cut at 0 hides that these ends are not this task's.
        """
        measured_s = []
        for attempt in attempts:
            start_s, end_s = ends.get(attempt.attempt_id, (None, None))
            begin = self._moment(attempt, self.begin, attempt.start_s, start_s)
            finish = self._moment(attempt, self.end, attempt.finish_s, end_s, sign=-1)
            if begin is not None and finish is not None:
                measured_s.append(finish - begin)
        return measured_s

    @staticmethod
    def _moment(
        attempt: TaskAttempt, name: str, outer_s: float, around_s: float | None, sign: int = 1
    ) -> float | None:
        """The moment *name* of an attempt; without a name its work's, *around_s* from *outer_s*."""
        if name:
            moment: float | None = getattr(attempt, name)
            return moment
        return None if around_s is None else outer_s + sign * around_s


SPANS = (
    Span("map", "map_task_s"),
    Span("map", "map_main_s", end="map_finish_s"),
    Span("map", "map_tail_s", begin="map_finish_s"),
    Span("reduce", "reduce_task_s"),
    Span("reduce", "shuffle_s", end="shuffle_finish_s"),
    Span("reduce", "sort_s", begin="shuffle_finish_s", end="sort_finish_s"),
    Span("reduce", "reduce_rest_s", begin="sort_finish_s"),
)


def measured(
    jobs: Sequence[JobTrace], ends: JvmEnds, copies: Copies | None = None
) -> dict[str, float]:
    """
    Quantities of a trial in seconds: those of tasks are means over all that succeeded.

    *ends* are the seconds of the start and of the end of each task's JVM, by attempt, *copies* when
    reduces copied.  `body_s` is the time in which tasks were at work without these starts and ends
    (`working_s`), `frame_s` the rest of the job.  Where the ends of an attempt are not known,
    neither is there: `attempts_s` is the same of whole attempts.

    The times of jobs are their sums; `each_job_s`, which a single job lacks, is their mean.  What
    passes between two jobs counts in none.  Reduce quantities are absent from map-only jobs, and
    every quantity whose times the history lacks.  `makespan_s` is the first task's start to the
    last task's end.
    """
    job_s = math.fsum(job.job_s for job in jobs)
    quantities = {"job_s": job_s}
    attempts = [attempt for job in jobs for attempt in job.attempts]
    if any(attempt.attempt_id not in ends for attempt in attempts):
        quantities["attempts_s"] = math.fsum(working_s(job, {}, copies) for job in jobs)
    elif attempts:
        body_s = math.fsum(working_s(job, ends, copies) for job in jobs)
        quantities["frame_s"] = job_s - body_s
        quantities["body_s"] = body_s
    makespans = [makespan for job in jobs if (makespan := job_makespan_s(job)) is not None]
    if makespans:
        quantities["makespan_s"] = math.fsum(makespans)
    if len(jobs) > 1:
        quantities["each_job_s"] = job_s / len(jobs)
    return quantities | task_means_s(jobs, ends)


def job_makespan_s(job: JobTrace) -> float | None:
    """Start of the first task of *job* to the end of the last one; `None` where none succeeded."""
    attempts = (*job.succeeded("map"), *job.succeeded("reduce"))
    if not attempts:
        return None
    first_s = min(attempt.start_s for attempt in attempts)
    last_s = max(attempt.finish_s for attempt in attempts)
    return last_s - first_s


def task_means_s(jobs: Sequence[JobTrace], ends: JvmEnds) -> dict[str, float]:
    """Mean seconds of each of `SPANS` over all tasks that succeeded and show both its ends."""
    tasks_s = defaultdict[str, list[float]](list)
    for job, span in product(jobs, SPANS):
        measured_s = span.measure(job.succeeded(span.kind), ends)
        if measured_s:
            tasks_s[span.quantity] += measured_s
    return {quantity: fmean(times_s) for quantity, times_s in tasks_s.items()}
