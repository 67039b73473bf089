"""Costs of a machine, fitted over the jobs of all workloads together."""

from dataclasses import replace

import numpy as np
import pytest

from harness.base.records.profile import SpeedCorrection
from harness.base.records.tasks import ReduceTimes
from harness.base.records.trace import TASK_COUNTER
from harness.base.units import MIB
from harness.clusters.workloads.terasort import TeraSort
from harness.clusters.workloads.wordcount import WordCount
from harness.observe.profiling.platform import (
    PARTS,
    TYPICAL,
    Work,
    fit_platform,
    seconds_of,
    stored,
    works,
)
from tests.profiling.jobs import COSTS
from tests.profiling.recordings import recorded, recorded_grid

UNCORRECTED = SpeedCorrection(reference_rate=1.0, coefficient=0.0, gain=0.0, count=0)
SIZES = {"byte": 1e7, "record": 1e5, "file": 1, "segment": 8}


def rows(random, *, trials=12, noise=0.05, costs=TYPICAL, parts=PARTS):
    """
    Work of so many trials: every part with random amounts, and its seconds by *costs* and noise.
    """
    made = []
    for trial in range(trials):
        for part, names in parts.items():
            amounts = {
                name: SIZES[name.rpartition("_")[2]] * random.lognormal(0, 1) for name in names
            }
            seconds = sum(costs[name] * n for name, n in amounts.items())
            times = random.lognormal(0, noise)
            made.append(Work(f"t{trial}", "1", "shuffle", part, seconds * times, amounts))
    return made


def test_exact_times_give_the_costs_that_made_them():
    """
    Every part by its own regression; a cost of several parts is one number.
    """
    costs = fit_platform(rows(np.random.default_rng(1), noise=0.0))

    values = {name: cost.value for name, cost in costs.items()}
    assert values == pytest.approx(TYPICAL | {"computing": 1.0}, rel=1e-6)
    assert {cost.unit for cost in costs.values()} == {"s", "s/B", "s/record", ""}


def test_computing_is_told_as_a_whole_where_its_division_is_not():
    """
    Half the speed, one job off by a third: about 2, whatever that does to each cost.
    """
    parts = {part: PARTS[part] for part in ("collect_s", "spill_sort_s")}
    slow = {name: 2 * value for name, value in TYPICAL.items()}
    made = rows(np.random.default_rng(5), costs=slow, parts=parts, noise=0.1)
    made[0] = replace(made[0], seconds=made[0].seconds * 4 / 3)
    computing = fit_platform(made)["computing"]

    assert computing.value == pytest.approx(2.0, rel=0.1)
    assert computing.low <= 2.0 <= computing.high
    assert computing.high - computing.low <= 0.4
    assert "computing" not in fit_platform(rows(np.random.default_rng(5), parts={}))


@pytest.mark.process
def test_intervals_hold_the_truth_about_as_often_as_they_say():
    """
    90 % intervals over 30 machines: between 80 and 98 % of all costs that are not near 0.
    """
    random, covers = np.random.default_rng(2), []
    for _ in range(30):
        costs = fit_platform(rows(random, parts={"copy_s": PARTS["copy_s"]}))
        covers += [cost.low <= TYPICAL[name] <= cost.high for name, cost in costs.items()]

    assert 0.8 <= np.mean(covers) <= 0.98


def test_a_disk_that_lets_8_mib_wait_has_its_own_rate_beyond():
    """
    Files of 2 to 64 MiB, early bytes at memory's speed and the rest at 10 MiB/s: both are found.
    """
    costs = TYPICAL | {"hdfs_write_s_per_byte": 1 / (10 * MIB), "hdfs_write_s_per_early_byte": 2e-9}
    made = []
    for trial, size in enumerate([2, 4, 7, 12, 24, 48, 64]):
        amounts = [*stored([size * MIB], 1), 1000.0 * (trial % 3), 1.0]
        counts = dict(zip(PARTS["reduce_write_s"], amounts, strict=True))
        seconds = seconds_of(counts, costs)
        made.append(Work(f"t{trial}", "1", "sort", "reduce_write_s", seconds, counts))

    fitted = fit_platform(made)

    for name in ("hdfs_write_s_per_byte", "hdfs_write_s_per_early_byte"):
        assert fitted[name].value == pytest.approx(costs[name], rel=0.01)


def test_each_cost_knows_its_value_without_each_trial():
    """
    Its interval is Student's t times the jackknife's error of these values.
    """
    made = rows(np.random.default_rng(4), trials=8, parts={"copy_s": PARTS["copy_s"]})
    cost = fit_platform(made)["network_s_per_byte"]
    values = np.array([*cost.without.values()])

    assert cost.without.keys() == {work.trial for work in made}
    error = np.sqrt(7 * values.var())
    assert cost.high - cost.value == pytest.approx(1.895 * error, rel=1e-3)
    again = fit_platform([work for work in made if work.trial != "t3"])
    assert cost.without["t3"] == pytest.approx(again["network_s_per_byte"].value)


def test_one_task_that_was_spared_its_work_does_not_decide():
    """
    A reduce that copies from its own node takes a hundredth; all others give the cost.
    """
    random, (name, segments) = np.random.default_rng(5), PARTS["copy_s"]
    made = [
        Work(f"t{n}", "1", "w", "copy_s", size * 8e-8 * random.lognormal(0, 0.1),
             {name: size, segments: 2.0})
        for n, size in enumerate(random.uniform(4e6, 1e8, 20))
    ]  # fmt: skip
    made.append(Work("t20", "1", "w", "copy_s", 0.009, {name: 8e6, segments: 1.0}))

    assert fit_platform(made)[name].value == pytest.approx(8e-8, rel=0.1)


def test_what_always_comes_together_is_a_group():
    """
    Segments of one size: a segment's share and a byte's cannot be told apart.
    """
    made = [
        Work(f"t{n}", "1", "w", "copy_s", 0.1 * n, {name: n * TYPICAL[name] for name in names})
        for names in (PARTS["copy_s"],)
        for n in range(1, 6)
    ]

    assert {cost.group for cost in fit_platform(made).values()} == {
        ("network_s_per_byte",),
        ("network_s_per_segment",),
    }


def test_two_trials_say_nothing_of_an_interval():
    """
    Nor does one trial; the value is known.
    """
    costs = fit_platform(rows(np.random.default_rng(3), trials=2))

    assert {(cost.low, cost.high) for cost in costs.values()} == {(None, None)}


@pytest.mark.process
def test_recorded_tasks_give_the_costs_that_they_were_made_with():
    """
    Copying takes its bytes and nothing else; what it takes is the same whatever is told apart.
    """
    rows = works(recorded_grid(), UNCORRECTED)
    costs = {name: cost.value for name, cost in fit_platform(rows).items()}

    assert costs["network_s_per_byte"] == pytest.approx(COSTS["network_s_per_byte"], rel=0.02)
    for part in ("map_read_s", "reduce_write_s"):
        took = [(row.seconds, seconds_of(row.counts, costs)) for row in rows if row.part == part]
        assert [fitted for _, fitted in took] == pytest.approx([time for time, _ in took], rel=0.05)


def as_logs_show(job):
    """
    The job as if nothing had been recorded of its tasks but what stock Hadoop logs.
    """
    return replace(job, task_times=tuple(
        replace(each, source="logs")
        if isinstance(each, ReduceTimes)
        else replace(each, source="logs", spills=tuple(
            replace(spill, file_bytes=20 * spill.records, sort_s=None, combine_s=None, write_s=None)
            for spill in each.spills
        ))
        for each in job.task_times
    ))  # fmt: skip


@pytest.mark.process
def test_logs_tell_of_copying_and_merging_what_recordings_do():
    """
    A spill is one part; of what belongs to records alone there is nothing.
    """
    jobs = recorded_grid()
    recorded_rows = works(jobs, UNCORRECTED)
    logged_rows = works([as_logs_show(job) for job in jobs], UNCORRECTED, "logs")

    def seconds(rows, *parts):
        return sum(row.seconds for row in rows if row.part in parts)

    assert {row.part for row in logged_rows if row.counts} == {
        "spill_s", "map_merge_s", "copy_s", "inmem_merge_s"
    }  # fmt: skip
    for part in ("copy_s", "map_merge_s", "inmem_merge_s"):
        assert seconds(logged_rows, part) == pytest.approx(seconds(recorded_rows, part))
    assert seconds(logged_rows, "spill_s") == pytest.approx(
        seconds(recorded_rows, "spill_sort_s", "spill_write_s")
    )
    name = "network_s_per_byte"
    assert fit_platform(logged_rows)[name].value == pytest.approx(COSTS[name], rel=0.02)


@pytest.mark.process
@pytest.mark.parametrize("workload", ["sort", "wordcount"])
def test_computing_by_logs_is_processor_time_of_maps_that_only_sort(workload):
    """
    Half the speed: twice the typical time.  What a job's own function takes says nothing.
    """

    def half_the_speed(job):
        attempts = tuple(
            replace(each, counters={**each.counters, f"{TASK_COUNTER}.CPU_MILLISECONDS": round(
                2000 * (0.14 + 2e-6 * each.count("MAP_OUTPUT_RECORDS")
                        + 5e-9 * each.count("MAP_OUTPUT_BYTES")))})
            for each in job.trace.attempts
        )  # fmt: skip
        spec = job.trial.cell.workload.model_copy(update={"name": workload})
        cell = job.trial.cell.model_copy(update={"workload": spec})
        trial = job.trial.model_copy(update={"cell": cell})
        return replace(as_logs_show(job), trial=trial, trace=replace(job.trace, attempts=attempts))

    costs = fit_platform(works(map(half_the_speed, recorded_grid()), UNCORRECTED, "logs"))

    if workload == "sort":
        assert costs["computing"].value == pytest.approx(2.0, rel=0.01)
    assert ("computing" in costs) == (workload == "sort")


SORTED = {"spill_write_s", "map_merge_s", "copy_s", "inmem_merge_s", "ondisk_merge_s"}


@pytest.mark.process
@pytest.mark.parametrize(
    ("changes", "shared"),
    [
        ({"use_combiner": False}, set()),
        ({"use_combiner": True}, {"spill_write_s"}),
        ({"map_output_compressed": True}, SORTED),
        ({"output_compressed": True}, {"reduce_write_s", "map_write_s"}),
    ],
    ids=["neither", "combiner", "map outputs", "output"],
)
def test_where_a_combiner_or_a_codec_works_nothing_is_a_cost_of_the_machine(changes, shared):
    """
    They work while it reads, copies or writes: the time of that is the job's, too.
    """
    jobs = [replace(job, config=job.config.model_copy(update=changes)) for job in recorded_grid()]
    rows = works(jobs, UNCORRECTED)

    parts = {row.part for row in rows}
    assert {row.part for row in rows if row.is_shared} == shared & parts
    assert parts >= SORTED - {"ondisk_merge_s"}
    costs = fit_platform(rows)
    for part in ("spill_write_s", "copy_s", "map_read_s", "reduce_write_s"):
        assert costs.keys().isdisjoint(PARTS[part]) == (part in shared), part


def test_copies_of_what_is_written_have_a_cost_of_their_own():
    """
    TeraSort keeps one copy of its output: none of its bytes crosses the network again.
    """
    one = recorded()
    two = replace(one, output_copies=2)
    (alone,), (copied,) = (
        [row.counts for row in works([each], UNCORRECTED) if row.part == "reduce_write_s"]
        for each in (one, two)
    )

    bytes_written = alone["hdfs_write_s_per_byte"] + alone["hdfs_write_s_per_early_byte"]
    assert alone["hdfs_copy_s_per_byte"] == 0
    assert copied == alone | {"hdfs_copy_s_per_byte": bytes_written}
    assert TeraSort().output_copies({"dfs.replication": "2"}) == 1
    assert WordCount().output_copies({"dfs.replication": "2"}) == 2
