"""Times of a trial as its histories hold them, by the names of `harness.records.score.Score`."""

from __future__ import annotations

import math

from collections.abc import Iterable, Sequence

from harness.records.trace import JobTrace


def measured(jobs: Sequence[JobTrace]) -> dict[str, float]:
    """
    Quantities of a trial in seconds: those of tasks are means over all that succeeded.

    The times of jobs are their sums; `each_job_s`, which a single job lacks, is their mean.  What
    passes between two jobs counts in none.  Reduce quantities are absent from map-only jobs, and
    every quantity whose times the history lacks.  `makespan_s` is the first task's start to the
    last task's end.
    """
    maps = [attempt for job in jobs for attempt in job.succeeded("map")]
    reduces = [attempt for job in jobs for attempt in job.succeeded("reduce")]
    job_s = math.fsum(job.job_s for job in jobs)
    makespans = []
    for job in jobs:
        if attempts := (*job.succeeded("map"), *job.succeeded("reduce")):
            last_s = max(attempt.finish_s for attempt in attempts)
            makespans.append(last_s - min(attempt.start_s for attempt in attempts))
    quantities = {
        "job_s": job_s,
        "makespan_s": math.fsum(makespans) if makespans else None,
        "each_job_s": job_s / len(jobs) if len(jobs) > 1 else None,
        "map_task_s": _mean(a.duration_s for a in maps),
        "map_main_s": _mean(_interval(a.start_s, a.map_finish_s) for a in maps),
        "map_tail_s": _mean(_interval(a.map_finish_s, a.finish_s) for a in maps),
        "reduce_task_s": _mean(a.duration_s for a in reduces),
        "shuffle_s": _mean(_interval(a.start_s, a.shuffle_finish_s) for a in reduces),
        "sort_s": _mean(_interval(a.shuffle_finish_s, a.sort_finish_s) for a in reduces),
        "reduce_rest_s": _mean(_interval(a.sort_finish_s, a.finish_s) for a in reduces),
    }
    return {name: seconds for name, seconds in quantities.items() if seconds is not None}


def _interval(start_s: float | None, finish_s: float | None) -> float | None:
    return None if start_s is None or finish_s is None else finish_s - start_s


def _mean(times: Iterable[float | None]) -> float | None:
    known = [seconds for seconds in times if seconds is not None]
    return math.fsum(known) / len(known) if known else None
