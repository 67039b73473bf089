"""Times of one job as its history holds them, by the names of `harness.records.score.Score`."""

from __future__ import annotations

import math

from collections.abc import Iterable

from harness.records.trace import JobTrace, TaskAttempt


def measured(trace: JobTrace) -> dict[str, float]:
    """
    Quantities of a job in seconds: means over the successful attempts of each kind.

    Reduce quantities are absent from a map-only job, and every quantity whose times the history
    lacks.  `makespan_s` is the first task's start to the last task's end.
    """
    maps, reduces = trace.succeeded("map"), trace.succeeded("reduce")
    found = {"job_s": trace.job_s, "makespan_s": _makespan((*maps, *reduces))}
    found["map_task_s"] = _mean(a.duration_s for a in maps)
    found["map_main_s"] = _mean(_gap(a.start_s, a.map_finish_s) for a in maps)
    found["map_tail_s"] = _mean(_gap(a.map_finish_s, a.finish_s) for a in maps)
    found["reduce_task_s"] = _mean(a.duration_s for a in reduces)
    found["shuffle_s"] = _mean(_gap(a.start_s, a.shuffle_finish_s) for a in reduces)
    found["sort_s"] = _mean(_gap(a.shuffle_finish_s, a.sort_finish_s) for a in reduces)
    found["reduce_rest_s"] = _mean(_gap(a.sort_finish_s, a.finish_s) for a in reduces)
    return {name: time for name, time in found.items() if time is not None}


def _makespan(attempts: tuple[TaskAttempt, ...]) -> float | None:
    if not attempts:
        return None
    return max(a.finish_s for a in attempts) - min(a.start_s for a in attempts)


def _gap(begin: float | None, end: float | None) -> float | None:
    return None if begin is None or end is None else end - begin


def _mean(times: Iterable[float | None]) -> float | None:
    known = [t for t in times if t is not None]
    return math.fsum(known) / len(known) if known else None
