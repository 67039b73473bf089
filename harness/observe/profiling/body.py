"""
The body of a job as measured: the seconds in which its tasks were at work.

Of each attempt that is its interval without the start and the end of its JVM.  A reduce that has
copied what there is and waits for a map that does not run yet is not at work.
"""

from __future__ import annotations

import math

from collections.abc import Mapping, Sequence

from harness.base.records.tasks import Interval, ReduceTimes, Source, covered_s
from harness.base.records.trace import JobTrace, TaskAttempt
from harness.observe.profiling.jobs import Observation

# Seconds of the start and of the end of each attempt's JVM, by attempt.
JvmEnds = Mapping[str, tuple[float, float]]
# When a reduce copied or merged, by attempt.
Copies = Mapping[str, Sequence[Interval]]


def task_ends(observation: Observation) -> dict[str, tuple[float, float, Source]]:
    """
    Seconds of the start and of the end of each task's JVM, by attempt: by spans before logs.

    A task is left out of which one is not known, or where clocks of two hosts contradict.
    """
    ends: dict[str, tuple[float, float, Source]] = {}
    for task in sorted(observation.task_times, key=lambda task: task.source == "spans"):
        start_s = task.start_up_s
        end_s = task.end_s
        if start_s is not None and end_s is not None and min(start_s, end_s) >= 0:
            ends[task.attempt_id] = start_s, end_s, task.source
    return ends


def working_s(job: JobTrace, ends: JvmEnds, copies: Copies | None = None) -> float:
    """
    Seconds of *job* in which at least one of its attempts was at work.

    An attempt that is not in *ends* counts as a whole.  One that failed counts, too: the job waited
    for it; one that was killed until another attempt of its task has succeeded.

    A reduce in its shuffle only waits where no map is at work and the last one has not ended, but
    for its *copies*, where recordings or logs show them.
    """
    done_s = dict[str, float]()
    maps_end_s = -math.inf
    for attempt in job.attempts:
        if attempt.state == "succeeded":
            earlier_s = done_s.get(attempt.task_id, math.inf)
            done_s[attempt.task_id] = min(earlier_s, attempt.finish_s)
            if attempt.kind == "map":
                maps_end_s = max(maps_end_s, attempt.finish_s)
    intervals = list[Interval]()
    for attempt in job.attempts:
        start_s, end_s = ends.get(attempt.attempt_id, (0.0, 0.0))
        begin_s = attempt.start_s + start_s
        finish_s = attempt.finish_s - end_s
        if attempt.state != "succeeded":
            finish_s = min(finish_s, done_s.get(attempt.task_id, math.inf))
        if attempt.kind == "reduce":
            for copy_start_s, copy_finish_s in (copies or {}).get(attempt.attempt_id, ()):
                intervals.append((max(begin_s, copy_start_s), min(finish_s, copy_finish_s)))
            begin_s = max(begin_s, _waits_until_s(attempt, maps_end_s))
        intervals.append((begin_s, finish_s))
    return covered_s(intervals, (job.submit_s, job.finish_s))


def _waits_until_s(attempt: TaskAttempt, maps_end_s: float) -> float:
    """Until when a reduce is at work for nothing but the maps beside it, which count themselves."""
    shuffled_s = math.inf if attempt.shuffle_finish_s is None else attempt.shuffle_finish_s
    return min(maps_end_s, shuffled_s)


def copies_of(observation: Observation) -> dict[str, list[Interval]]:
    """When each reduce of *observation* copied map outputs or merged them, by spans before logs."""
    copies = dict[str, list[Interval]]()
    for times in sorted(observation.task_times, key=lambda times: times.source == "spans"):
        if isinstance(times, ReduceTimes):
            intervals = [(segment.start_s, segment.finish_s) for segment in times.segments]
            intervals += [(merge.start_s, merge.finish_s) for merge in times.merges]
            copies[times.attempt_id] = intervals
    return copies
