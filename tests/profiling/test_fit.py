"""Profiles: statistics, overheads, ranges, and what is said of what is missing."""

from dataclasses import replace

import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.base.errors import DataError
from harness.base.records.profile import Profile, SpeedCorrection
from harness.base.records.trace import TASK_COUNTER
from harness.base.records.trial import Tracing
from harness.observe.profiling import fit_profile
from tests.profiling.jobs import PAIR, PAIRS, RECORD, SLOTS, grid, observation

# What the profile of jobs says whose histories are all that shows their tasks.
UNRECORDED = "no recording shows the fixed seconds of tasks: they count as 0"


def recount(job, kind, **factors):
    """The job with counters of its *kind* of tasks multiplied."""
    attempts = tuple(
        replace(
            a,
            counters={
                k: int(v * factors.get(k.rpartition(".")[2], 1)) for k, v in a.counters.items()
            },
        )
        if a.kind == kind
        else a
        for a in job.trace.attempts
    )
    return replace(job, trace=replace(job.trace, attempts=attempts))


def logged(job):
    """The job as one of which the logs of tasks are all that shows what is in them."""
    cell = job.trial.cell.model_copy(update={"tracing": Tracing(mode="logs")})
    return replace(job, trial=job.trial.model_copy(update={"cell": cell}))


def test_tasks_without_a_whole_log_are_told():
    """Their number, where logs were asked for: what a part of one shows does not count."""
    jobs = [*grid()]
    count = sum(len(job.trace.attempts) for job in jobs)

    assert not any("whole log" in warning for warning in fit_profile("w", jobs).warnings)
    (warning,) = [
        warning
        for warning in fit_profile("w", [*map(logged, jobs)]).warnings
        if "whole log" in warning
    ]
    assert warning.startswith(f"{count} of {count} tasks have no whole log")


def combining(exponent, *sizes, spill=111_848):
    """
    Jobs of maps of so many records, without groups; of n a combiner leaves 20 n^exponent in the
    first job, 40 n^exponent in the second.
    """
    jobs = []
    for number, records in enumerate(sizes, 1):
        job, pairs = observation(records, combine=True), records * PAIRS
        spills = -(-pairs // spill)
        left, again = 20 * number * spills * (pairs / spills) ** exponent, 0
        final = 20 * number * pairs**exponent if spills >= 3 else left
        if spills >= 3:
            left, again = left + final, left
        counts = {
            "COMBINE_INPUT_RECORDS": pairs + again,
            "COMBINE_OUTPUT_RECORDS": left,
            "MAP_OUTPUT_MATERIALIZED_BYTES": final * PAIR,
            "REDUCE_INPUT_GROUPS": 0,
        }
        attempts = tuple(
            replace(a, counters={
                name: round(counts.get(name.rpartition(".")[2], value))
                for name, value in a.counters.items()
            })
            for a in job.trace.attempts
        )  # fmt: skip
        trace = replace(job.trace, job_id=f"job_1_000{number}", attempts=attempts)
        jobs.append(replace(job, trace=trace))
    return jobs


def values(profile):
    """Statistics as plain numbers."""
    return {name: s.value for name, s in profile.statistics.items()}


class TestJobsPerTrial:
    """How many jobs a trial has that takes as many as it needs."""

    def test_counts_the_jobs_of_each_trial(self):
        """
        Trials of three jobs and of one: two on average, with their spread.
        """
        jobs = [replace(observation(repetition=0), planned_jobs=None, number=n) for n in range(3)]
        jobs.append(replace(observation(repetition=1), planned_jobs=None))
        profile = fit_profile("w", jobs)

        result = profile.statistics["jobs_per_trial"]
        assert (result.value, result.count) == (2.0, 2)
        assert result.spread == pytest.approx(2**0.5)
        assert [(j.trial[-1], j.number) for j in profile.jobs] == [
            ("0", 0), ("0", 1), ("0", 2), ("1", 0),
        ]  # fmt: skip

    def test_is_no_statistic_of_a_fixed_number(self):
        """
        The workload says it, so nothing is measured.
        """
        profile = fit_profile(
            "w", [replace(observation(), planned_jobs=3, number=n) for n in (0, 1)]
        )

        assert "jobs_per_trial" not in profile.statistics


class TestStatistics:
    """Dataflow statistics."""

    def test_without_a_combiner(self):
        """
        Each is the ratio of its counters, and without a combiner its statistics are absent.
        """
        profile = fit_profile("w", [observation(), observation(100_000, 3)])

        assert values(profile) == {
            "input_record_bytes": RECORD,
            "map_bytes_selectivity": PAIRS * PAIR / RECORD,
            "map_records_selectivity": PAIRS,
            "records_per_reduce_group": 2.0,
            "reduce_bytes_selectivity": 0.25,
            "reduce_records_selectivity": 0.5,
            "input_compression_ratio": 1.0,
            "map_output_compression_ratio": 1.0,
            "output_compression_ratio": 1.0,
        }
        assert profile.statistics["input_record_bytes"].count == 7
        assert "7 map tasks" in profile.statistics["input_record_bytes"].source

    def test_spread_over_tasks(self):
        """
        The value weighs tasks by their size; the spread is that of the tasks' own ratios.
        """
        wide = recount(observation(), "map", MAP_OUTPUT_RECORDS=2)

        statistic = fit_profile("w", [observation(), wide]).statistics["map_records_selectivity"]

        assert statistic.value == 1.5 * PAIRS
        assert statistic.spread == pytest.approx(PAIRS / 2 * (8 / 7) ** 0.5)

    def test_combiner_of_which_no_more_is_seen(self):
        """
        Where all combiners saw as many records, what they left is a share of any number.
        """
        result = fit_profile("w", combining(0.5, 20_000)).statistics

        share = 20 / 60_000**0.5
        assert result["combine_records_selectivity"].value == pytest.approx(share, rel=1e-3)
        assert result["combine_bytes_selectivity"].value == pytest.approx(share, rel=1e-3)
        assert "combine_records_exponent" not in result
        assert "records_per_combine" not in result

    @pytest.mark.process
    @given(exponent=st.floats(0, 0.7), sizes=st.sampled_from([(400_000,), (400_000, 700_000)]))
    def test_combiner_of_few_keys_and_of_many(self, exponent, sizes):
        """
        A map's spills, and the merge in which the combiner sees all of them again, show how what is
        left grows with the records; jobs with other keys have lines of their own.
        """
        result = fit_profile("w", combining(exponent, *sizes)).statistics

        # Counters are whole numbers: where 20 records are left, half a one is 2.5 % of them.
        most = 0.025 if exponent < 0.05 else 0.015
        assert result["combine_records_exponent"].value == pytest.approx(exponent, abs=most)
        assert result["combine_bytes_exponent"].value == pytest.approx(exponent, abs=most)
        spills = [-(-records * PAIRS // 111_848) for records in sizes]
        assert result["records_per_combine"].value == sum(sizes) * PAIRS / sum(spills)
        left = sum(
            20 * job * n * (records * PAIRS / n) ** exponent
            for job, (records, n) in enumerate(zip(sizes, spills, strict=True), 1)
        )
        share = pytest.approx(left / sum(sizes) / PAIRS, rel=0.02)
        assert result["combine_records_selectivity"].value == share
        assert result["combine_bytes_selectivity"].value == share

    def test_records_that_combining_takes_away_are_narrower_than_the_rest(self):
        """
        Where a few wide records are never combined, spills have their bytes, too: each record that
        goes takes as much along in the spills as in the merge.
        """
        job = combining(0.2, 400_000)[0]
        wide = {"MAP_OUTPUT_BYTES": 2e6, "MAP_OUTPUT_MATERIALIZED_BYTES": 2e6}
        for attempt in job.trace.attempts:
            for name, more in wide.items():
                if attempt.kind == "map":
                    attempt.counters[f"{TASK_COUNTER}.{name}"] += int(more)
        result = fit_profile("w", [job]).statistics

        spills, pairs = 11, 400_000 * PAIRS
        left = 20 * spills * (pairs / spills) ** 0.2
        share = (2e6 + left * PAIR) / (2e6 + pairs * PAIR)
        assert result["combine_bytes_selectivity"].value == pytest.approx(share, rel=1e-3)
        assert 0.9 < result["combine_bytes_exponent"].value < 1
        assert result["combine_records_exponent"].value == pytest.approx(0.2, abs=0.01)

    def test_groups_of_a_job_are_what_is_left_of_all_its_records(self):
        """
        They stand for the second number of records where all spills are alike.
        """
        job = combining(0, 20_000)[0]
        attempts = tuple(
            replace(a, counters=a.counters | {f"{TASK_COUNTER}.REDUCE_INPUT_GROUPS": 10})
            if a.kind == "reduce" else a
            for a in job.trace.attempts
        )  # fmt: skip
        job = replace(job, trace=replace(job.trace, attempts=attempts))

        result = fit_profile("w", [job]).statistics["combine_records_exponent"]

        assert result.count == 4 + 1
        assert result.value < 0.01

    def test_compression_with_and_without(self):
        """
        Trials with and without compression give its ratio, and the rest reads through it.
        """
        packed = observation(map_output_compressed=True)
        packed = recount(packed, "map", MAP_OUTPUT_MATERIALIZED_BYTES=0.25)
        packed = recount(packed, "reduce", REDUCE_SHUFFLE_BYTES=0.25)

        profile = fit_profile("w", [observation(), packed])

        assert values(profile)["map_output_compression_ratio"] == pytest.approx(0.25)
        assert values(profile)["reduce_bytes_selectivity"] == pytest.approx(0.25)
        assert "map_output_compress_s_per_byte" in profile.costs
        assert profile.warnings == (UNRECORDED,)

    def test_compression_alone(self):
        """
        A ratio that nothing tells is absent, its trials feed no cost, and a warning says so.
        """
        packed = observation(map_output_compressed=True)

        profile = fit_profile("w", [packed])

        assert "map_output_compression_ratio" not in profile.statistics
        assert profile.costs == {}
        assert "1 of 1 jobs use a compression whose ratio is not known" in profile.warnings[0]


class TestFrame:
    """Time around tasks."""

    def test_slots_and_job(self):
        """
        The gap between tasks of a slot, and the time before and behind all tasks.
        """
        profile = fit_profile("w", [observation(maps=5, gap=0.7)])

        assert profile.frame["task_gap_s"].value == pytest.approx(0.7)
        assert profile.frame["task_gap_s"].count == 5 - SLOTS
        assert profile.frame["job_start_s"].value == pytest.approx(2.0)
        assert profile.frame["job_end_s"].value == pytest.approx(1.5)

    def test_one_wave(self):
        """
        Jobs whose tasks all have a slot at once do not show the gap.
        """
        profile = fit_profile("w", [observation(maps=SLOTS)])

        assert "task_gap_s" not in profile.frame
        assert any("task_gap_s is absent" in w for w in profile.warnings)


class TestProfile:
    """The profile as a whole."""

    def test_ranges(self):
        """
        Input size, what the cluster gives and every numeric property, from the smallest on.
        """
        profile = fit_profile("w", [observation(), observation(100_000, 3, reduces=1, sort_mb=8)])

        assert profile.ranges == {
            "input_bytes": (30_000_000, 80_000_000),
            "mapreduce.job.reduces": (1, 2),
            "mapreduce.task.io.sort.mb": (8, 16),
            "map_slots": (1, 1),
            "num_splits": (3, 4),
            "reduce_slots": (1, 1),
            "workers": (2, 2),
        }

    def test_survives_storage(self):
        """
        A profile reads back from JSON as it was: no number in it is infinite or none.
        """
        for jobs in (grid(), [observation()]):
            profile = fit_profile("w", jobs)

            assert Profile.model_validate_json(profile.model_dump_json()) == profile

    def test_order_does_not_matter(self):
        """
        The same jobs in another order give the same costs.
        """
        jobs = grid()

        first, second = fit_profile("w", jobs), fit_profile("w", jobs[::-1])

        assert {n: c.value for n, c in second.costs.items()} == {
            n: pytest.approx(c.value, rel=1e-6) for n, c in first.costs.items()
        }

    def test_times_are_brought_to_reference_speed(self):
        """
        Jobs on a machine of half the speed, corrected, give the costs of the reference.
        """
        slow = [
            replace(job, rate=50.0) for job in grid(noise=lambda _, seconds: 2 * seconds, gap=1.0)
        ]
        speed = SpeedCorrection(reference_rate=100.0, coefficient=1.0, gain=0.5, count=9)

        profile = fit_profile("w", slow, speed)

        assert profile.costs["setup_cpu_s"].value == pytest.approx(1.2)
        assert profile.frame["task_gap_s"].value == pytest.approx(0.5)
        assert profile.speed == speed

    def test_failed_jobs_tell_nothing(self):
        """
        A job that failed is left out; where none succeeded there is no profile.
        """
        failed = observation(repetition=1)
        failed = replace(failed, trace=replace(failed.trace, state="FAILED"))

        assert len(fit_profile("w", [observation(), failed]).trials) == 1
        with pytest.raises(DataError, match="no profiling job of 'w' has succeeded"):
            fit_profile("w", [failed])

    def test_shuffles_that_waited(self):
        """
        A shuffle that waited for maps tells no cost, unless there is no other.
        """
        waited = [observation(r, slowstart_wait=2.0) for r in (50_000, 100_000)]

        mixed = fit_profile("w", [*grid(), *waited])
        alone = fit_profile("w", waited)

        assert mixed.warnings == (UNRECORDED,)
        assert mixed.costs["network_s_per_byte"].value == pytest.approx(1.5e-8)
        assert any("slowstart" in w for w in alone.warnings)

    def test_clocks_that_differ(self):
        """
        A phase that runs backwards is left out with a warning.
        """
        job = observation()
        late = [replace(a, map_finish_s=a.finish_s + 9) if a.kind == "map" else a
                for a in job.trace.attempts]  # fmt: skip

        profile = fit_profile("w", [replace(job, trace=replace(job.trace, attempts=tuple(late)))])

        assert "map_tail_s" not in {f.phase for f in profile.fit}
        assert any("map_tail_s of job job_1_0001 runs backwards" in w for w in profile.warnings)

    def test_counters_that_no_model_reads(self):
        """
        Tasks without counters are left out with a warning that names what is missing.
        """
        job = observation()
        bare = tuple(replace(a, counters={}) for a in job.trace.attempts)

        profile = fit_profile("w", [replace(job, trace=replace(job.trace, attempts=bare))])

        assert profile.costs == {}
        assert any("input_record_bytes" in w for w in profile.warnings)
