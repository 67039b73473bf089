"""
The made-up profile of the contracts of models, with every statistic that there is.

    .venv/bin/python -m tests.contracts.profiles

writes it for `harness check` to harness/core/evaluate/example-profile.json; a test compares the
two.
"""

from pathlib import Path

import harness.core.evaluate

from harness.base.records.prediction import JobConfig
from harness.base.records.profile import FIXED, FRAME, Profile, ProfiledJob, Statistic
from harness.base.records.statistics import JOB_COSTS, TASK_TIMES, rows_of
from harness.clusters.monitor.rates import RATES as MACHINE_RATES
from harness.core.evaluate.contract import made_up_rows
from harness.models.whatif.inputs import COSTS
from harness.observe.profiling.task_statistics import MAP, REDUCE

FILE = Path(harness.core.evaluate.__file__).with_name("example-profile.json")
MIB = 2**20
# Of the other statistics of a dataflow one is as good as the next.
FLOW = dict.fromkeys((row.name for row in rows_of("dataflow")), 1.0) | {
    "input_record_bytes": 100.0,
    "map_bytes_selectivity": 1.02,
    "reduce_bytes_selectivity": 0.96,
    "records_per_combine": 1e5,
}
# What the net of GPU jobs needs of its test job, and rates that are as good as the costs are low.
TEST_JOB = {
    "test_input_bytes": 512.0 * MIB, "test_num_maps": 4.0, "gpu_block_bytes": 8.0 * MIB,
    "load_s": 3.0, "map_s": 4.0, "map_gpu_s": 20.0, "reduce_s": 5.0, "test_map_bytes": 256.0 * MIB,
    "test_map_output_bytes": 256.0 * MIB, "test_reduce_bytes": 64.0 * MIB,
    "test_map_spilled_records": 1e6,
}  # fmt: skip
RATES = (
    *MACHINE_RATES, "network_bps", "gpu_h2d_bps", "gpu_mem_read_bps", "gpu_d2h_bps",
)  # fmt: skip
# What a record or a byte costs in a part of a task, as its recording shows it.
TASK_COSTS = [
    name
    for statistic, definition in {**MAP, **REDUCE}.items()
    if definition.is_time
    for name in TASK_TIMES[statistic].names
]
# What a model of ours can do without, as `harness check` has it.
OTHERS = {
    "spill_bytes_selectivity": 1.0, "spill_bytes_selectivity_compressed": 0.5, "gpu_open_s": 0.1,
    "gpu_stand_in": 0.0, "reduce_uses_gpu": 0.0,
}  # fmt: skip
# Processor seconds of processes, and the machine.
PROCESSES = dict.fromkeys((row.name for row in rows_of("process")), 1.0)
PROCESSES |= {row.name: 4.0 for row in rows_of("machine")}
FRAMES = dict.fromkeys(FRAME, 0.5) | {"task_gap_s": 0.7, "job_start_s": 5.0}
OF_SIDES = sorted(name for name, row in JOB_COSTS.items() if row.side == "both")
ALL_COSTS = (*COSTS, *(name for cost in OF_SIDES for name in JOB_COSTS[cost].names[1:]))
NAMES = {
    *FLOW,
    *TEST_JOB,
    *RATES,
    *TASK_COSTS,
    *OTHERS,
    *PROCESSES,
    *ALL_COSTS,
    *FRAMES,
    *FIXED,
    "jobs",
}


def stat(value):
    """
    A statistic of which only the value matters.
    """
    return Statistic(value=value, count=1, spread=0.0, source="made up")


def profile_of(cost=1e-8, without=()):
    """
    A profile with all that any model needs, but the statistics *without*.
    """
    costs = dict.fromkeys((*TASK_COSTS, *ALL_COSTS), cost)
    values = {**FLOW, **TEST_JOB, **OTHERS, **PROCESSES, **dict.fromkeys(RATES, 1 / cost)}
    values |= {**costs, **FRAMES, **dict.fromkeys(FIXED, 0.1)}
    # With a statistic goes its like of one side, or of compressed jobs.
    gone = {name for name in values if {name, name.rpartition("_")[0]} & set(without)}
    known = {name: stat(value) for name, value in values.items() if name not in gone}

    def some(names):
        return {name: known[name] for name in names if name in known}

    return Profile(
        workload="example",
        statistics=some((*FLOW, *TEST_JOB, *RATES, *TASK_COSTS, *OTHERS, *PROCESSES, *FIXED)),
        costs=some(ALL_COSTS),
        frame=some(FRAMES),
        jobs=() if "jobs" in without else [job_of(cost, splits) for splits in (2, 8)],
    )


def job_of(cost, splits):
    """
    A profiled job on four slots that took time for its input alone.
    """
    return ProfiledJob(
        trial=f"t{splits}", cell=f"c{splits}", input_bytes=splits * 16 * MIB, num_splits=splits,
        num_nodes=2, map_slots=4, reduce_slots=4, configuration=JobConfig(),
        job_s=5.0 + cost * splits / min(splits, 4) * 16 * MIB, map_task_s=cost * 16 * MIB,
        body_s=cost * splits / min(splits, 4) * 16 * MIB,
    )  # fmt: skip


def unlike_the_rest():
    """
    The profile without what `example_profile` makes for each row of the table.
    """
    profile = profile_of()
    kinds = ("dataflow", "task time", "job cost")
    made = {}
    for kind in kinds:
        made |= made_up_rows(kind)

    def rest(statistics):
        return {name: each for name, each in statistics.items() if each != made.get(name)}

    changes = {"statistics": rest(profile.statistics), "costs": rest(profile.costs)}
    return profile.model_copy(update=changes)


if __name__ == "__main__":
    FILE.write_text(unlike_the_rest().model_dump_json(exclude_defaults=True) + "\n")
