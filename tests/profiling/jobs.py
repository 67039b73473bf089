"""Jobs whose times are made from known costs, as observations."""

from harness.base.records.prediction import Cluster, JobConfig, JobInput
from harness.base.records.trace import (
    FILE_INPUT_COUNTER,
    FILE_OUTPUT_COUNTER,
    TASK_COUNTER,
    JobTrace,
    TaskAttempt,
)
from harness.base.records.trial import Cell, ClusterSpec, Trial, WorkloadSpec
from harness.models.whatif.model import cost_terms
from harness.observe.profiling.jobs import Observation

COSTS = {
    "hdfs_read_s_per_byte": 4e-9,
    "hdfs_write_s_per_byte": 3e-8,
    "local_read_s_per_byte": 9e-9,
    "local_write_s_per_byte": 2e-8,
    "network_s_per_byte": 1.5e-8,
    "map_cpu_s_per_record": 2e-6,
    "reduce_cpu_s_per_record": 1e-6,
    "combine_cpu_s_per_record": 8e-7,
    "partition_cpu_s_per_record": 1e-7,
    "serde_cpu_s_per_record": 5e-7,
    "sort_cpu_s_per_record": 6e-8,
    "merge_cpu_s_per_record": 9e-7,
    "setup_cpu_s": 1.2,
    "cleanup_cpu_s": 0.3,
}
RECORD, PAIR = 100, 104  # bytes of an input record, and of a pair that a map emits
PAIRS = 3  # pairs that a map emits for a record
KEPT = 0.5  # share of the pairs, and of their bytes, that the combiner keeps
SLOTS = 2


def no_noise(phase, seconds):
    """Times as the model has them."""
    return seconds


def flow(*, combine):
    """Statistics of all jobs made here."""
    kept = KEPT if combine else 1.0
    # They leave the same share of more records, and all of what they have left already.
    law = (
        {
            "records_per_combine": 1000.0,
            "combine_bytes_exponent": 1.0,
            "combine_records_exponent": 1.0,
        }
        if combine
        else {}
    )
    return law | {
        "input_record_bytes": RECORD,
        "map_bytes_selectivity": PAIRS * PAIR / RECORD,
        "map_records_selectivity": PAIRS,
        "combine_records_selectivity": kept,
        "combine_bytes_selectivity": kept,
        "records_per_reduce_group": 1.0 if combine else 2.0,
        "reduce_bytes_selectivity": 0.25,
        "reduce_records_selectivity": 0.5,
    }


def observation(
    records=200_000, maps=4, *, reduces=2, combine=False, sort_mb=16, merge_factor=10, repetition=0,
    costs=None, noise=no_noise, rate=None, gap=0.5, slowstart_wait=0.0, **settings,
):  # fmt: skip
    """A job of equal tasks on `SLOTS` slots of each kind, its phases made from *costs*."""
    config = JobConfig(
        num_reduces=reduces, sort_buffer_mb=sort_mb, merge_factor=merge_factor,
        use_combiner=combine, reduce_heap_bytes=300 * 2**20, **settings,
    )  # fmt: skip
    cluster = Cluster(
        num_nodes=SLOTS, map_slots_per_node=1, reduce_slots_per_node=1,
        map_slots=SLOTS, reduce_slots=SLOTS,
    )  # fmt: skip
    size = records * RECORD
    terms = cost_terms(
        flow(combine=combine),
        config.model_dump() | {"num_maps": maps, "split_bytes": size},
        {"num_nodes": SLOTS, "map_slots_per_node": 1, "reduce_slots_per_node": 1},
        of_parts=False,
    )
    true = COSTS if costs is None else costs
    seconds = {p: sum(c * true.get(k, 0.0) for k, c in t.items()) for p, t in terms.items()}
    at = Clock(gap)
    attempts = [_map(k, at, _noisy(seconds, noise), records, config) for k in range(maps)]
    at.all_slots_at(max(a.finish_s for a in attempts) - slowstart_wait)
    ends = max(a.finish_s for a in attempts)
    emitted = maps * records * PAIRS * (KEPT if combine else 1.0)
    attempts += [
        _reduce(k, at, _noisy(seconds, noise), emitted / reduces, maps_end=ends, combine=combine)
        for k in range(reduces)
    ]
    finish = max(a.finish_s for a in attempts) + 1.5
    properties = {"mapreduce.job.reduces": str(reduces), "mapreduce.task.io.sort.mb": str(sort_mb)}
    cell = Cell(
        cluster=ClusterSpec(workers=SLOTS),
        workload=WorkloadSpec(name="w", input_bytes=maps * size),
        configuration=properties | {"mapreduce.map.output.compress": str(combine).lower()},
    )
    trace = JobTrace(
        job_id="job_1_0001", name="w", user="u", state="SUCCEEDED", submit_s=98.0, launch_s=99.0,
        finish_s=finish, num_maps=maps, num_reduces=reduces, attempts=tuple(attempts),
    )  # fmt: skip
    return Observation(
        trial=Trial(id=f"{cell.id}-{repetition}", cell=cell, repetition=repetition, profiling=True),
        trace=trace, config=config, cluster=cluster,
        job_input=JobInput(
            input_bytes=maps * size, num_files=maps, num_splits=maps, split_bytes=size
        ),
        rate=rate,
    )  # fmt: skip


class Clock:
    """The moment at which each slot is free."""

    def __init__(self, gap):
        self.gap = gap
        self.free = [100.0] * SLOTS

    def all_slots_at(self, moment):
        """Let nothing start before *moment*."""
        self.free = [moment] * SLOTS

    def take(self, seconds):
        """Start and end of a task on the slot that is free first."""
        start = min(self.free)
        self.free[self.free.index(start)] = start + seconds + self.gap
        return start, start + seconds


def _noisy(seconds, noise):
    return {phase: noise(phase, time) for phase, time in seconds.items()}


def _map(index, at, seconds, records, config):
    main, tail = (seconds[p] for p in ("map_main_s", "map_tail_s"))
    start, finish = at.take(main + tail)
    pairs = records * PAIRS
    kept = KEPT if config.use_combiner else 1.0
    left = int(pairs * KEPT) if config.use_combiner else 0
    spills = -(-pairs // int(config.sort_buffer_mb * 2**20 * 0.8 / (PAIR + 16)))
    again = left if spills >= config.combine_min_spills else 0  # it keeps all that it left
    counters = {
        f"{FILE_INPUT_COUNTER}.BYTES_READ": records * RECORD,
        f"{TASK_COUNTER}.MAP_INPUT_RECORDS": records,
        f"{TASK_COUNTER}.MAP_OUTPUT_RECORDS": pairs,
        f"{TASK_COUNTER}.MAP_OUTPUT_BYTES": pairs * PAIR,
        f"{TASK_COUNTER}.MAP_OUTPUT_MATERIALIZED_BYTES": int(pairs * PAIR * kept),
        f"{TASK_COUNTER}.COMBINE_INPUT_RECORDS": pairs + again if left else 0,
        f"{TASK_COUNTER}.COMBINE_OUTPUT_RECORDS": left + again,
    }
    return TaskAttempt(
        f"attempt_1_0001_m_{index:06}_0", f"task_1_0001_m_{index:06}", "map", "succeeded",
        start, finish, "w1", map_finish_s=finish - tail, counters=counters,
    )  # fmt: skip


def _reduce(index, at, seconds, records, *, maps_end, combine):
    shuffle, sort, rest = (seconds[p] for p in ("shuffle_s", "sort_s", "reduce_rest_s"))
    start, _ = at.take(0.0)
    shuffled = max(start, maps_end) + shuffle
    finish = shuffled + sort + rest
    at.free[at.free.index(start + at.gap)] = finish + at.gap
    counters = {
        f"{TASK_COUNTER}.REDUCE_SHUFFLE_BYTES": int(records * PAIR),
        f"{TASK_COUNTER}.REDUCE_INPUT_RECORDS": int(records),
        f"{TASK_COUNTER}.REDUCE_INPUT_GROUPS": int(records / (1 if combine else 2)),
        f"{TASK_COUNTER}.REDUCE_OUTPUT_RECORDS": int(records / 2),
        f"{FILE_OUTPUT_COUNTER}.BYTES_WRITTEN": int(records * PAIR / 4),
    }
    return TaskAttempt(
        f"attempt_1_0001_r_{index:06}_0", f"task_1_0001_r_{index:06}", "reduce", "succeeded",
        start, finish, "w1", shuffle_finish_s=shuffled, sort_finish_s=shuffled + sort,
        counters=counters,
    )  # fmt: skip


def grid(**options):
    """Jobs that differ in all that moves a cost: split, spills, merges, reduces."""
    cells = [
        (records, maps, reduces, sort_mb, factor)
        for records in (40_000, 120_000, 400_000)
        for maps, reduces in ((2, 1), (6, 2), (5, 4))
        for sort_mb, factor in ((4, 3), (16, 10), (200, 10))
    ]
    return [
        observation(r, m, reduces=n, sort_mb=s, merge_factor=f, **options)
        for r, m, n, s, f in cells
    ]
