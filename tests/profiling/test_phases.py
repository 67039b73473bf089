"""Costs from recorded tasks: each part of the equations by itself."""

import gzip

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hypothesis import given, settings
from hypothesis import strategies as st

from harness.base.records.profile import SpeedCorrection
from harness.base.records.tasks import SegmentTimes
from harness.base.records.trace import FILE_OUTPUT_COUNTER, TASK_COUNTER, TaskAttempt
from harness.models.whatif.model import MAP_PARTS, REDUCE_PARTS
from harness.observe.parsing.ltrace import read_ltrace
from harness.observe.profiling import fit_profile
from harness.observe.profiling.dataflow import ratios_of
from harness.observe.profiling.phases import part_means, part_times, phase_rows
from harness.observe.profiling.task_times import recorded_map_times, recorded_reduce_times
from tests.profiling.jobs import COSTS, grid, observation
from tests.profiling.recordings import recorded, recorded_grid

# Collecting is one time for both.
TOGETHER = {"partition_cpu_s_per_record", "serde_cpu_s_per_record"}
APART = [name for name in COSTS if name not in TOGETHER]
HISTORY = {"map_main_s", "map_tail_s", "shuffle_s", "sort_s", "reduce_rest_s"}
FACTORS = st.fixed_dictionaries({name: st.floats(0.3, 3) for name in COSTS})
UNCORRECTED = SpeedCorrection(reference_rate=1.0, coefficient=0.0, gain=0.0, count=0)
RECORDINGS = Path(__file__).parent.parent / "hostile" / "data"


def values(profile, names=APART):
    """Costs as plain numbers, those that the profile has."""
    return {n: profile.costs[n].value for n in names if n in profile.costs}


def near(costs, names=APART):
    """The same, as exactly as noiseless rows give them."""
    return {n: pytest.approx(costs[n], rel=1e-6) for n in names}


def phases(*jobs):
    """Phases that the costs were fitted to."""
    return {f.phase for f in fit_profile("w", jobs).fit}


def changed(job, kind, **fields):
    """The job with other *fields* in the recordings of a kind of task."""
    task_times = tuple(
        replace(t, **fields) if f"_{kind}_" in t.attempt_id else t for t in job.task_times
    )
    return replace(job, task_times=task_times)


class TestKnownCosts:
    """Profiles of recorded jobs whose costs are known."""

    @pytest.mark.process
    @settings(max_examples=4)
    @given(FACTORS)
    def test_every_cost_but_those_of_collecting_comes_back(self, factors):
        """
        Reading, mapping, writing and reducing are distinguished, which the history cannot do.
        """
        true = {name: COSTS[name] * factor for name, factor in factors.items()}

        profile = fit_profile("w", [*recorded_grid(costs=true), recorded(combine=True, costs=true)])

        assert values(profile) == near(true)

    def test_collecting_is_divided_by_typical_ratios(self):
        """
        Partitioning and serialisation have one time between them, whose sum is right; no other cost
        is assumed.
        """
        profile = fit_profile("w", [*recorded_grid(), recorded(combine=True)])

        assert [set(group.names) for group in profile.groups] == [TOGETHER]
        assert not any(profile.costs[name].assumed for name in APART)
        result = [profile.costs[name].value for name in sorted(TOGETHER)]
        assert sum(result) == pytest.approx(sum(COSTS[n] for n in TOGETHER))
        assert all(profile.costs[name].assumed for name in TOGETHER)

    def test_one_recorded_cell(self):
        """
        One cell, of which the history tells only sums, gives most costs when it was recorded.
        """
        alone = ["hdfs_read_s_per_byte", "map_cpu_s_per_record", "sort_cpu_s_per_record",
                 "local_write_s_per_byte", "network_s_per_byte", "hdfs_write_s_per_byte",
                 "setup_cpu_s", "cleanup_cpu_s"]  # fmt: skip

        profile = fit_profile("w", [recorded(), recorded(repetition=1)])

        assert values(profile, alone) == near(COSTS, alone)

    def test_larger_inputs_from_noisy_recordings(self):
        """
        Four recorded trials, each part of them off by 20 %: a job whose splits are four times as
        large, with other spills and merges, is predicted within 5 % in the mean of six draws.
        """
        errors = []
        for seed in range(6):
            rng = np.random.default_rng(seed)
            trials = [
                recorded(
                    335_544, maps, repetition=k,
                    noise=lambda _, seconds, rng=rng: seconds * max(0.05, rng.normal(1, 0.2)),
                )
                for maps in (1, 2) for k in range(2)
            ]  # fmt: skip
            result = values(fit_profile("w", trials), COSTS)
            reported = observation(1_342_176, 2, costs=result).trace.job_s
            errors.append(abs(reported / observation(1_342_176, 2).trace.job_s - 1))

        assert np.mean(errors) < 0.05

    def test_map_only_jobs(self):
        """
        Without reduces the output of the map function is written as the job's.
        """
        jobs = [recorded(r, 2, reduces=0) for r in (50_000, 150_000)]
        for job in jobs:
            for attempt in job.trace.attempts:
                attempt.counters[f"{FILE_OUTPUT_COUNTER}.BYTES_WRITTEN"] = attempt.counters[
                    f"{TASK_COUNTER}.MAP_OUTPUT_BYTES"
                ]

        profile = fit_profile("w", jobs)

        names = ["hdfs_read_s_per_byte", "hdfs_write_s_per_byte", "map_cpu_s_per_record",
                 "setup_cpu_s", "cleanup_cpu_s"]  # fmt: skip
        assert values(profile, COSTS) == near(COSTS, names)
        assert profile.groups == ()

    def test_source_names_the_part(self):
        """
        A cost says what it was fitted to.
        """
        profile = fit_profile("w", [recorded()])

        assert profile.costs["hdfs_read_s_per_byte"].source.startswith("fit of map_read_s")


class TestMixture:
    """Recorded tasks beside others."""

    def test_costs_of_both(self):
        """
        Jobs with recordings, jobs without, and jobs of which the maps alone have some: one fit.
        """
        jobs = [*grid()[::3], *recorded_grid()[1::3], *recorded_grid(kinds=("map",))[::3]]

        profile = fit_profile("w", jobs)

        names = [n for n in APART if not n.startswith("combine")]
        assert values(profile) == near(COSTS, names)
        assert {f.phase for f in profile.fit} >= {*HISTORY, "map_read_s", "copy_s"}

    def test_sum_of_a_group_counts_each_task_once(self):
        """
        The seconds of a group in a mean task do not depend on the source of the tasks' times.
        """
        reported, recordings = observation(), recorded()

        sums = [
            next(g.sum_s for g in fit_profile("w", jobs).groups if set(g.names) >= TOGETHER)
            for jobs in ([recordings], [recordings, recorded(repetition=1)])
        ]
        mixed = fit_profile("w", [reported, recordings])
        collected = next(g for g in mixed.groups if set(g.names) >= TOGETHER)

        pairs = 600_000 * sum(COSTS[n] for n in TOGETHER)
        assert sums == [pytest.approx(pairs), pytest.approx(pairs)]
        assert set(collected.names) == TOGETHER
        assert collected.sum_s == pytest.approx(pairs)

    def test_untraced_jobs_are_as_before(self):
        """
        Without recordings, and with logs alone, costs come from the history's phases.
        """
        job = recorded()

        assert phases(observation()) == HISTORY
        assert phases(changed(changed(job, "m", source="logs"), "r", source="logs")) == HISTORY


class TestAbsentParts:
    """Recordings that do not have it all."""

    @pytest.mark.parametrize(
        "lacks",
        [{"start_up_s": None}, {"read_s": None}, {"merge_s": None}, {"spills": ()},
         {"records": 199_999}, {"alone_s": 1e3}, {"start_up_s": -0.1}],
    )  # fmt: skip
    def test_map_falls_back(self, lacks):
        """
        A map that lacks a part, whose records are not those of its counters, or whose times do not
        fit into it, has two phases.
        """
        result = phases(changed(recorded(), "m", **lacks))

        assert result & {*HISTORY, *MAP_PARTS} == {"map_main_s", "map_tail_s"}
        assert "copy_s" in result

    @pytest.mark.parametrize(
        "lacks",
        [{"start_up_s": None}, {"function_s": None}, {"segments": ()}, {"records": 7}],
    )
    def test_reduce_falls_back(self, lacks):
        """
        So does a reduce with its three.
        """
        result = phases(changed(recorded(), "r", **lacks))

        assert result & {*HISTORY, *REDUCE_PARTS} == {"shuffle_s", "sort_s", "reduce_rest_s"}
        assert "map_read_s" in result

    def test_merges_that_the_recording_does_not_have(self):
        """
        Merges that the model expects and nobody saw do not make merging cheap.
        """
        jobs = [changed(job, "r", merges=()) for job in recorded_grid()]

        result = fit_profile("w", jobs)

        assert not {"inmem_merge_s", "ondisk_merge_s", "reduce_merge_s"} & {
            f.phase for f in result.fit
        }
        assert values(result, ["local_write_s_per_byte"]) == near(COSTS, ["local_write_s_per_byte"])

    def test_merge_that_the_model_does_not_have(self):
        """
        Where the model has one spill and the task had two, the merge is left out with a warning.
        """
        job = recorded(sort_mb=200)
        first = replace(job.task_times[0].spills[0], last=False, records=0, sort_s=0.0)

        spills = (first, *job.task_times[0].spills)
        profile = fit_profile("w", [changed(job, "m", spills=spills, merge_s=0.01)])

        assert "map_merge_s" not in {f.phase for f in profile.fit}
        assert "some tasks have a map_merge_s where the model has none: left out" in (
            profile.warnings
        )

    def test_collecting_is_no_more_than_the_function(self):
        """
        The estimate from samples can exceed what it is a part of; nothing gets negative.
        """
        profile = fit_profile("w", [changed(recorded(), "m", collect_s=1e3)])

        assert profile.costs["map_cpu_s_per_record"].value == pytest.approx(0, abs=1e-12)
        assert not any("backwards" in warning for warning in profile.warnings)

    def test_copies_at_the_same_time_take_it_once(self):
        """
        Four copiers that all work for two seconds are two seconds in which outputs were on the way.
        """
        job = recorded()
        beside = tuple(
            SegmentTimes(f"m{k}", "w1", 1000, 1000, "memory", 3.0, 5.0, 0.0) for k in range(4)
        )
        parts = part_times(changed(job, "r", segments=beside))

        copying = [one.seconds["copy_s"] for one in parts.values() if "copy_s" in one.seconds]
        assert copying == pytest.approx([2.0] * len(copying))
        assert copying

    def test_a_shuffle_of_the_history_begins_with_the_last_map_s_end(self):
        """
        Reduces that began four seconds earlier waited for it: that is no time of theirs.
        """
        job = observation()
        maps_end = max(attempt.finish_s for attempt in job.trace.succeeded("map"))
        attempts = tuple(
            replace(attempt, start_s=maps_end - 4.0) if attempt.kind == "reduce" else attempt
            for attempt in job.trace.attempts
        )
        early = replace(job, trace=replace(job.trace, attempts=attempts))
        rows = phase_rows(early, ratios_of(early, {}), UNCORRECTED, [])

        shuffles = [row for row in rows if row.phase == "shuffle_s"]
        reduces = [attempt for attempt in attempts if attempt.kind == "reduce"]
        assert [row.seconds for row in shuffles] == pytest.approx(
            [attempt.shuffle_finish_s - maps_end for attempt in reduces]
        )
        assert all(row.waited for row in shuffles)

    def test_waiting_for_maps_does_not_hide_the_network(self):
        """
        Reduces that began before the last map's end have a cost of copying when recorded.
        """
        profile = fit_profile("w", recorded_grid(slowstart_wait=5.0))

        assert values(profile, ["network_s_per_byte"]) == near(COSTS, ["network_s_per_byte"])
        assert not any("slowstart" in warning for warning in profile.warnings)


class TestMeans:
    """What recordings show of the parts of tasks, for the equations to be held against."""

    def test_are_over_the_recorded_tasks(self):
        """
        Equal tasks have the mean; the map function with what it reads and collects is their sum.
        """
        job = recorded()
        (one, *_) = (p for n, p in part_times(job).items() if "_m_" in n)
        means = part_means([job, observation()])

        assert {n: means[n] for n in one.seconds} == pytest.approx(one.seconds)
        assert means["map_s"] == pytest.approx(
            sum(means[n] for n in ("map_read_s", "map_function_s", "collect_s"))
        )
        assert {"copy_s", "reduce_write_s"} <= set(means)

    def test_are_none_where_nothing_was_recorded(self):
        """
        A history has no parts.
        """
        assert part_means([observation()]) == {}


class TestReal:
    """What the tracer wrote in real tasks (``tests/hostile/data/README.md``)."""

    def timed(self, name, kind, counters):
        """Seconds of the parts of a real task, by its recording alone."""
        task = read_ltrace([gzip.decompress((RECORDINGS / name).read_bytes())], name)
        begin = task.process_start_s
        finish = max(span.finish_s for span in task.spans) + 0.01
        attempt = TaskAttempt(
            task.attempt_id, "task_1", kind, "succeeded", begin, finish, "w1", counters=counters
        )
        reported = (recorded_map_times if kind == "map" else recorded_reduce_times)(task, attempt)
        job = observation(maps=counters.get(f"{TASK_COUNTER}.SHUFFLED_MAPS", 1))
        job = replace(job, trace=replace(job.trace, attempts=(attempt,)), task_times=(reported,))
        return reported, attempt, part_times(job)[task.attempt_id]

    def test_map(self):
        """
        All that the main thread did is in one part or was waiting.
        """
        task = read_ltrace(
            [gzip.decompress((RECORDINGS / "map.ltrace.spans.gz").read_bytes())], "map"
        )
        counters = {
            f"{TASK_COUNTER}.MAP_INPUT_RECORDS": task.loop.records,
            f"{TASK_COUNTER}.MAP_OUTPUT_RECORDS": task.loop.outputs,
        }

        reported, attempt, result = self.timed("map.ltrace.spans.gz", "map", counters)

        behind = sum(s.duration_s for s in reported.spills if not s.last)
        assert set(result.seconds) == {*MAP_PARTS} - {"map_write_s"}
        assert all(seconds > 0 for seconds in result.seconds.values())
        assert sum(result.seconds.values()) - behind + reported.blocked_s == pytest.approx(
            attempt.duration_s
        )

    def test_reduce(self):
        """
        Three merges in memory, and copying that is a small part of the shuffle.
        """
        task = read_ltrace(
            [gzip.decompress((RECORDINGS / "reduce.ltrace.spans.gz").read_bytes())], "reduce"
        )
        counters = {
            f"{TASK_COUNTER}.REDUCE_INPUT_RECORDS": task.loop.records,
            f"{TASK_COUNTER}.SHUFFLED_MAPS": 6,
        }

        reported, _, result = self.timed("reduce.ltrace.spans.gz", "reduce", counters)

        assert set(result.seconds) == {*REDUCE_PARTS} - {"ondisk_merge_s"}
        assert all(seconds > 0 for seconds in result.seconds.values())
        assert result.seconds["copy_s"] < reported.shuffle_s - reported.waited_s
        assert result.sent_bytes == sum(s.sent_bytes for s in reported.segments)
