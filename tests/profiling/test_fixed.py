"""
Fixed seconds of tasks: what recordings show of each phase beside the parts of the equations.
"""

from dataclasses import replace

import pytest

from harness.base.records.profile import FIXED, SpeedCorrection
from harness.base.records.tasks import MapTimes, MergeTimes, ReduceTimes, SegmentTimes, SpillTimes
from harness.base.records.trace import TASK_COUNTER
from harness.observe.profiling import fit_profile
from harness.observe.profiling.fixed import fixed_seconds
from tests.profiling.jobs import observation

AS_MEASURED = SpeedCorrection(reference_rate=100.0, coefficient=0.0, gain=0.0, count=0)
START_S = 1.0
END_S = 0.5


def a_map(attempt, extra_s, spills=1):
    """
    A map of 4 s of records, a spill behind them of 1 s, and *extra_s* more of each kind.
    """
    loop_s = 4.0 + extra_s
    loop_end_s = attempt.start_s + START_S + loop_s
    merge_s = 0.25
    records = attempt.count("MAP_OUTPUT_RECORDS")
    shares = [records // spills] * (spills - 1) + [records - records // spills * (spills - 1)]
    made = tuple(
        SpillTimes(
            loop_end_s, loop_end_s + 1.0, last=place == 0, records=share, file_bytes=10,
            sort_s=0.5, combine_s=0.0, write_s=0.5,
        )
        for place, share in enumerate(shares)
    )  # fmt: skip
    times = MapTimes(
        attempt.attempt_id, "spans", "w1", attempt.counters[f"{TASK_COUNTER}.MAP_INPUT_RECORDS"],
        made, start_up_s=START_S, alone_s=2.0, spilling_s=1.0, loop_s=loop_s, read_s=0.5,
        collect_s=0.5, blocked_s=1.0, merge_s=merge_s, end_s=END_S,
    )  # fmt: skip
    finish_s = loop_end_s + 1.0 + merge_s + END_S
    return times, replace(attempt, finish_s=finish_s)


def a_reduce(attempt, opening_s, closing_s, output_s, waited_s=0.0):
    """
    A reduce that opens, copies for 1 s, closes, merges for 1 s, and has 3 s of records.
    """
    start_s = attempt.start_s + START_S
    copy_s = start_s + opening_s
    segments = tuple(
        SegmentTimes(f"m{place}", "w1", 10, 10, "memory", copy_s, copy_s + 1.0, 0.0)
        for place in range(4)
    )
    merges = (MergeTimes("final", copy_s + 1.0 + closing_s, copy_s + 2.0 + closing_s),)
    shuffle_s = opening_s + closing_s + 2.0
    times = ReduceTimes(
        attempt.attempt_id, "spans", "w1", attempt.counters[f"{TASK_COUNTER}.REDUCE_INPUT_RECORDS"],
        segments, merges, start_up_s=START_S, shuffle_s=shuffle_s, waited_s=waited_s,
        stalled_s=0.0, read_s=1.0, function_s=1.0, write_s=1.0, end_s=END_S,
    )  # fmt: skip
    return times, replace(attempt, finish_s=start_s + shuffle_s + 3.0 + output_s + END_S)


def recorded(map_s=0.0, spills=1, waited_s=0.0, slowstart_wait=0.0, **more):
    """
    A job of four maps and two reduces, whose parts are those of `a_map` and `a_reduce`.
    """
    made = observation(slowstart_wait=slowstart_wait, **more)
    task_times = []
    attempts = []
    for attempt in made.trace.attempts:
        if attempt.kind == "map":
            times, lasting = a_map(attempt, map_s, spills)
        else:
            times, lasting = a_reduce(attempt, 0.3, 0.2, 0.1, waited_s)
        task_times.append(times)
        attempts.append(lasting)
    # All maps have ended when reduces start, unless these are early.
    later_s = 0.0 if slowstart_wait else 1000.0
    attempts = [moved(attempt, later_s) for attempt in attempts]
    task_times = [moved_times(times, later_s) for times in task_times]
    trace = replace(made.trace, attempts=tuple(attempts))
    return replace(made, trace=trace, task_times=tuple(task_times))


def moved(attempt, later_s):
    """
    A reduce that ran so much later; maps stay.
    """
    if attempt.kind == "map":
        return attempt
    return replace(attempt, start_s=attempt.start_s + later_s, finish_s=attempt.finish_s + later_s)


def moved_times(times, later_s):
    """
    The recording of a reduce that ran so much later.
    """
    if isinstance(times, MapTimes):
        return times
    segments = tuple(
        replace(segment, start_s=segment.start_s + later_s, finish_s=segment.finish_s + later_s)
        for segment in times.segments
    )
    merges = tuple(
        replace(merge, start_s=merge.start_s + later_s, finish_s=merge.finish_s + later_s)
        for merge in times.merges
    )
    return replace(times, segments=segments, merges=merges)


def seconds(*jobs, speed=AS_MEASURED):
    """
    Fixed seconds of *jobs* by name.
    """
    return {name: found.value for name, found in fixed_seconds(jobs, speed).items()}


def test_are_what_no_part_covers():
    """
    A single spill is renamed, which no equation counts; the reduce opens, closes, and opens again.
    """
    assert seconds(recorded(map_s=0.05)) == pytest.approx(
        {
            "map_main_fixed_s": 0.05, "map_tail_fixed_s": 0.25, "shuffle_fixed_s": 0.3,
            "sort_fixed_s": 0.2, "reduce_rest_fixed_s": 0.1,
        }
    )  # fmt: skip


def test_a_merge_of_several_spills_has_an_equation():
    """
    So nothing is left behind the record loop.
    """
    assert seconds(recorded(spills=2))["map_tail_fixed_s"] == pytest.approx(0.0)


def test_are_means_and_never_below_0():
    """
    Recordings whose sums of samples are too long do not make a task shorter.
    """
    jobs = recorded(map_s=0.1), recorded(map_s=0.3)
    found = fixed_seconds(jobs, AS_MEASURED)["map_main_fixed_s"]

    assert (found.value, found.count) == (pytest.approx(0.2), 8)
    assert seconds(recorded(map_s=-0.5))["map_main_fixed_s"] == 0.0


def test_reduces_that_wait_for_maps_count_where_no_others_are():
    """
    Without what they waited; beside others they tell nothing.
    """
    early = recorded(waited_s=0.1, slowstart_wait=500.0)

    assert seconds(early)["shuffle_fixed_s"] == pytest.approx(0.2)
    assert seconds(early, recorded())["shuffle_fixed_s"] == pytest.approx(0.3)


def test_are_at_reference_speed():
    """
    A machine at half its speed takes twice as long.
    """
    speed = AS_MEASURED.model_copy(update={"coefficient": 1.0})

    assert seconds(recorded(rate=50.0), speed=speed)["sort_fixed_s"] == pytest.approx(0.1)


def test_a_profile_has_them_where_tasks_were_recorded():
    """
    Else it says that they count as 0.
    """
    note = "no recording shows the fixed seconds of tasks: they count as 0"
    with_recordings = fit_profile("w", [recorded()])
    without = fit_profile("w", [observation()])

    assert {*FIXED} <= with_recordings.statistics.keys()
    assert note not in with_recordings.warnings
    assert not {*FIXED} & without.statistics.keys()
    assert note in without.warnings
