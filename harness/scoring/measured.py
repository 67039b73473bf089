"""Times of a trial as its histories hold them, by the names of `harness.records.score.Score`."""

from __future__ import annotations

import math

from collections.abc import Iterable, Sequence

from harness.records.trace import JobTrace, TaskAttempt, TaskKind


def measured(jobs: Sequence[JobTrace]) -> dict[str, float]:
    """
    Quantities of a trial in seconds: those of tasks are means over all that succeeded.

    The times of jobs are their sums; `each_job_s`, which a single job lacks, is their mean.  What
    passes between two jobs counts in none.  Reduce quantities are absent from map-only jobs, and
    every quantity whose times the history lacks.  `makespan_s` is the first task's start to the
    last task's end.
    """
    maps, reduces = _succeeded(jobs, "map"), _succeeded(jobs, "reduce")
    job_s = math.fsum(j.job_s for j in jobs)
    found = {"job_s": job_s, "makespan_s": _sum(map(_makespan, jobs))}
    if len(jobs) > 1:
        found["each_job_s"] = job_s / len(jobs)
    found["map_task_s"] = _mean(a.duration_s for a in maps)
    found["map_main_s"] = _mean(_gap(a.start_s, a.map_finish_s) for a in maps)
    found["map_tail_s"] = _mean(_gap(a.map_finish_s, a.finish_s) for a in maps)
    found["reduce_task_s"] = _mean(a.duration_s for a in reduces)
    found["shuffle_s"] = _mean(_gap(a.start_s, a.shuffle_finish_s) for a in reduces)
    found["sort_s"] = _mean(_gap(a.shuffle_finish_s, a.sort_finish_s) for a in reduces)
    found["reduce_rest_s"] = _mean(_gap(a.sort_finish_s, a.finish_s) for a in reduces)
    return {name: time for name, time in found.items() if time is not None}


def _succeeded(jobs: Sequence[JobTrace], kind: TaskKind) -> list[TaskAttempt]:
    return [a for j in jobs for a in j.succeeded(kind)]


def _makespan(job: JobTrace) -> float | None:
    attempts = (*job.succeeded("map"), *job.succeeded("reduce"))
    if not attempts:
        return None
    return max(a.finish_s for a in attempts) - min(a.start_s for a in attempts)


def _sum(times: Iterable[float | None]) -> float | None:
    known = [t for t in times if t is not None]
    return math.fsum(known) if known else None


def _gap(begin: float | None, end: float | None) -> float | None:
    return None if begin is None or end is None else end - begin


def _mean(times: Iterable[float | None]) -> float | None:
    known = [t for t in times if t is not None]
    return math.fsum(known) / len(known) if known else None
