"""
Fixed seconds of tasks as measured: what no equation and no frame holds.

An equation counts bytes and records.  What a task does beside them (opening the shuffle, asking for
map outputs, connecting, closing the shuffle, opening its output, renaming a single spill) passes
once for each task, whatever it works on.  Recordings show it: of each phase of a job history it is
the time in which no part of the equations was at work, and nothing waited for another task.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from statistics import fmean

from harness.base.records.profile import FIXED, SpeedCorrection, Statistic
from harness.base.records.tasks import MapTimes, ReduceTimes, covered_s
from harness.base.records.trace import TaskAttempt
from harness.base.stats.spread import standard_deviation
from harness.observe.profiling.jobs import Observation
from harness.observe.profiling.phases import part_times

_SHUFFLE = "shuffle_fixed_s"
_WAITED = "shuffle beside maps"  # of reduces that wait for them


def fixed_seconds(
    observations: Sequence[Observation], speed: SpeedCorrection
) -> dict[str, Statistic]:
    """
    Fixed seconds of each phase by the names of `FIXED`: means over recorded tasks, 0 at least.

    At reference speed.  Empty where no task was recorded.  A mean and no intercept: what these
    seconds grow by with the bytes of a task is in no equation either, and is hundredths.
    Reduces that wait for maps show little of their opening: they count where no others are.
    """
    seconds_by_name = defaultdict[str, list[float]](list)
    for observation in observations:
        factor = observation.at_reference(1.0, speed)
        for name, seconds in _seconds_of_tasks(observation):
            seconds_by_name[name].append(factor * seconds)
    waited_s = seconds_by_name.pop(_WAITED, [])
    if waited_s:
        seconds_by_name.setdefault(_SHUFFLE, waited_s)
    return {
        name: _mean_of_tasks(seconds_by_name[name]) for name in FIXED if name in seconds_by_name
    }


def _seconds_of_tasks(observation: Observation) -> Iterator[tuple[str, float]]:
    """Yield the fixed seconds of each recorded task by phase, those of waiters by `_WAITED`."""
    complete_attempts = part_times(observation)
    map_ends_s = [attempt.finish_s for attempt in observation.trace.succeeded("map")]
    maps_end_s = max(map_ends_s, default=0.0)
    for times, attempt in observation.succeeded_times("spans"):
        if times.attempt_id not in complete_attempts:
            continue
        has_waited = attempt.start_s < maps_end_s
        for name, seconds in _fixed_of(times, attempt):
            if name == _SHUFFLE and has_waited:
                yield _WAITED, seconds - (getattr(times, "waited_s", None) or 0.0)
            else:
                yield name, seconds


def _mean_of_tasks(task_seconds: Sequence[float]) -> Statistic:
    """The mean over tasks, 0 at least, as a statistic."""
    return Statistic(
        value=max(0.0, fmean(task_seconds)),
        count=len(task_seconds),
        spread=standard_deviation(task_seconds),
        source="spans: seconds of a task beside all parts that have an equation, mean",
    )


def _fixed_of(times: MapTimes | ReduceTimes, attempt: TaskAttempt) -> Iterator[tuple[str, float]]:
    """Yield name and seconds, as measured, of what a recorded task did beside the equations."""
    if times.start_up_s is None or times.end_s is None:
        return
    start_s = attempt.start_s + times.start_up_s
    finish_s = attempt.finish_s - times.end_s
    if isinstance(times, ReduceTimes):
        yield from _fixed_of_reduce(times, start_s, finish_s)
    else:
        yield from _fixed_of_map(times, start_s, finish_s)


def _fixed_of_map(times: MapTimes, start_s: float, finish_s: float) -> Iterator[tuple[str, float]]:
    """Yield what a map did beside its record loop's parts, and behind it beside its spills."""
    known_s = (times.loop_s, times.alone_s, times.spilling_s, times.blocked_s)
    if None in known_s:
        return
    loop_s, *parts_s = (seconds or 0.0 for seconds in known_s)
    yield "map_main_fixed_s", loop_s - sum(parts_s)
    if times.merge_s is None:  # without reduces: its work ends with the loop
        return
    loop_end_s = start_s + loop_s
    spills = [(spill.start_s, spill.finish_s) for spill in times.spills]
    merged_s = times.merge_s if len(spills) > 1 else 0.0  # a single one is renamed
    beside_spills_s = finish_s - loop_end_s - covered_s(spills, (loop_end_s, finish_s))
    yield "map_tail_fixed_s", beside_spills_s - merged_s


def _fixed_of_reduce(
    times: ReduceTimes, start_s: float, finish_s: float
) -> Iterator[tuple[str, float]]:
    """Yield what a reduce did beside copying and merging, and beside its records."""
    known_s = (times.shuffle_s, times.read_s, times.function_s, times.write_s)
    if None in known_s or not times.segments:
        return
    shuffle_s, *parts_s = (seconds or 0.0 for seconds in known_s)
    shuffled_s = start_s + shuffle_s
    copied_s = max(segment.finish_s for segment in times.segments)
    copies = [(segment.start_s, segment.finish_s) for segment in times.segments]
    merges = [(merge.start_s, merge.finish_s) for merge in times.merges]
    opening_s = copied_s - start_s - covered_s([*copies, *merges], (start_s, copied_s))
    yield _SHUFFLE, opening_s
    yield "sort_fixed_s", shuffled_s - copied_s - covered_s(merges, (copied_s, shuffled_s))
    yield "reduce_rest_fixed_s", finish_s - shuffled_s - sum(parts_s)
