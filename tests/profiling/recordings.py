"""Jobs whose tasks were recorded: the parts of their tasks made from known costs."""

from dataclasses import replace

from harness.base.records.tasks import MapTimes, MergeTimes, ReduceTimes, SegmentTimes, SpillTimes
from harness.base.records.trace import TASK_COUNTER
from harness.models.whatif.evaluation import evaluate
from harness.models.whatif.model import cost_terms
from tests.profiling.jobs import COSTS, flow, no_noise, observation

# Time that is no cost, in every task that can have it.
BLOCKED, WAITED = 7.0, 11.0
MERGES = {"memory": "inmem_merge_s", "disk": "ondisk_merge_s", "final": "reduce_merge_s"}


def recorded(
    records=200_000, maps=4, *,
    costs=None, combine=False, kinds=("map", "reduce"), noise=no_noise, **job,
):  # fmt: skip
    """A job of `observation` with recordings of its *kinds* of tasks, equal but for rounding."""
    made = observation(records, maps, combine=combine, costs=costs, noise=noise, **job)
    wanted = (
        flow(combine=combine),
        made.config.model_dump() | {"num_maps": maps, "split_bytes": made.job_input.split_bytes},
        {"num_nodes": 2, "map_slots_per_node": 1, "reduce_slots_per_node": 1},
    )
    true = COSTS if costs is None else costs
    seconds = {
        part: sum(c * true.get(name, 0.0) for name, c in terms.items())
        for part, terms in cost_terms(*wanted, of_parts=True).items()
    }
    amounts = evaluate(wanted[0], {}, *wanted[1:])
    attempts, task_times = [], []
    for attempt in made.trace.attempts:
        if attempt.kind in kinds:
            make = a_map if attempt.kind == "map" else a_reduce
            own = {part: noise(part, s) for part, s in seconds.items()}
            reported, lasting = make(attempt, own, amounts, made, true)
            task_times.append(reported)
            attempts.append(lasting)
        else:
            attempts.append(attempt)
    trace = replace(made.trace, attempts=tuple(attempts))
    return replace(made, trace=trace, task_times=tuple(task_times))


def a_map(attempt, seconds, amounts, job, _):
    """Recording of a map, and the attempt as long as it says: all spills but the last overlap."""
    part = {"collect_s": 0.0, "spill_sort_s": 0.0, "map_write_s": 0.0, **seconds}
    out = part["map_write_s"] if job.trace.num_reduces == 0 else part["collect_s"]
    count = amounts.get("num_spills", 0)
    spills = tuple(
        a_spill(part["spill_sort_s"] / count, part["spill_write_s"] / count, last=k == count - 1)
        for k in range(count)
    )
    pairs = attempt.counters[f"{TASK_COUNTER}.MAP_OUTPUT_RECORDS"]
    size = round(attempt.count("MAP_OUTPUT_BYTES") / count) if count else None
    spills = tuple(
        replace(
            s,
            records=pairs - pairs // count * (count - 1) if s.last else pairs // count,
            file_bytes=size,
        )
        for s in spills
    )
    merge = part.get("map_merge_s", 0.0)
    loop = part["map_read_s"] + part["map_function_s"] + out
    reported = MapTimes(
        attempt.attempt_id, "spans", "w1", attempt.counters[f"{TASK_COUNTER}.MAP_INPUT_RECORDS"],
        spills, start_up_s=part["map_setup_s"], alone_s=0.75 * loop, spilling_s=0.25 * loop,
        read_s=part["map_read_s"], collect_s=out, blocked_s=BLOCKED,
        merge_s=merge if job.trace.num_reduces else None, sampled=("collect_s",),
    )  # fmt: skip
    flushed = sum(s.duration_s for s in spills if s.last)
    lasts = part["map_setup_s"] + loop + BLOCKED + flushed + merge + part["map_cleanup_s"]
    return reported, replace(attempt, start_s=attempt.finish_s - lasts)


def a_spill(sort_s, write_s, *, last):
    """A spill, of whose writing a third is combining."""
    return SpillTimes(
        0.0, sort_s + write_s, last=last,
        sort_s=sort_s, combine_s=write_s / 3, write_s=write_s * 2 / 3,
    )  # fmt: skip


def a_reduce(attempt, seconds, amounts, job, costs):
    """Recording of a reduce that waits before each copy, connects for 0.1 s, and merges."""
    straight = not amounts["segments_go_to_memory"]
    maps = job.trace.num_maps
    size = round(amounts["shuffle_bytes"] / maps)
    copying = maps * size * costs["network_s_per_byte"]
    copying += seconds["inmem_merge_s"] if straight else 0.0
    at, segments = 0.0, []
    for k in range(maps):
        at += WAITED / maps
        to = "disk" if straight else "memory"
        end, connect = at + copying / maps, 0.0 if k else 0.1
        segments.append(SegmentTimes(f"m{k}", "w1", size, size, to, at, end, connect))
        at = end
    merges = tuple(
        MergeTimes(kind, 0.0, seconds[part])
        for kind, part in MERGES.items()
        if seconds[part] and not (kind == "memory" and straight)
    )
    function, write = seconds["reduce_function_s"], seconds["reduce_write_s"]
    reported = ReduceTimes(
        attempt.attempt_id, "spans", "w1", attempt.counters[f"{TASK_COUNTER}.REDUCE_INPUT_RECORDS"],
        tuple(segments), merges, start_up_s=seconds["reduce_setup_s"] - 0.1, shuffle_s=at + 5.0,
        waited_s=WAITED, stalled_s=0.0, read_s=0.3 * function, function_s=0.7 * function,
        write_s=write,
    )  # fmt: skip
    lasts = (
        reported.start_up_s + reported.shuffle_s + function + write + seconds["reduce_cleanup_s"]
    )
    return reported, replace(attempt, finish_s=attempt.start_s + lasts)


def recorded_grid(**options):
    """Recorded jobs that differ in all that moves a cost: split, spills, merges, reduces."""
    return [
        recorded(records, maps, reduces=reduces, sort_mb=sort_mb, merge_factor=factor, **options)
        for records in (40_000, 400_000)
        for maps, reduces in ((2, 1), (5, 4))
        for sort_mb, factor in ((4, 3), (16, 10), (200, 10))
    ]
