"""
Tests for `harness.models.prophet.tasks`: whole tasks, and the job they make.
"""

import json

from pathlib import Path

import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.base.errors import ModelError
from harness.models.prophet.shuffle import Outcome, Segment, read_setting
from harness.models.prophet.tasks import (
    ANY_CLUSTER,
    Plan,
    ReduceSide,
    after_shuffle,
    job_times,
    num_evicted,
    tasks,
)
from harness.models.scheduler import schedule
from harness.models.whatif.inputs import Costs, read_job

MIB = 2**20
VECTORS = Path(__file__).parents[2] / "validation" / "vectors" / "prophet_tasks.json"
PLAIN = json.loads(VECTORS.read_text())["cases"][0]["input"]
COSTS = {
    "network_s_per_byte": 2e-8, "local_read_s_per_byte": 8e-9, "local_write_s_per_byte": 1.2e-8,
    "map_output_decompress_s_per_byte": 5e-9, "map_output_compress_s_per_byte": 1.5e-8,
    "merge_cpu_s_per_record": 3e-7,
}  # fmt: skip
AFTER = {"reduce_merge_s": 5.0, "reduce_function_s": 0.0, "reduce_write_s": 0.0}
SETTING = {"reduce_heap_bytes": 200 * MIB, "merge_factor": 10, "parallel_copies": 5}


def answer(**parts):
    """
    The vectors' first case, with fields of its parts replaced.
    """
    case = {name: {**part, **parts.get(name, {})} for name, part in PLAIN.items()}
    return tasks(case["map_and_spill"], case["shuffle"], case["statistics"], case["costs"],
                 case["config"])  # fmt: skip


def plan(**fields):
    """
    The job of the specification's last worked example.
    """
    example = {
        "map_task_s": 10.0, "num_maps": 6, "num_reduces": 3, "num_nodes": 2, "map_slots": 4,
        "reduce_slots": 2, "slowstart": 0.5, "task_overhead_s": 1.0, "job_overhead_s": 3.0,
    }  # fmt: skip
    return Plan(**{**example, **fields})


def times(job_plan, pool="separate", *, mib=16.0, costs=COSTS):
    """
    Its times: segments of 16 MiB, five seconds behind each shuffle.
    """
    size = mib * MIB
    side = ReduceSide(
        segment=Segment(size, size, 160_000.0) if mib else None,
        setting=read_setting(SETTING, costs),
        after=lambda _: AFTER,
    )
    return job_times(job_plan, pool, side)


class TestTasks:
    def test_one_spill_is_renamed(self):
        """
        A buffer that holds all output leaves nothing to merge.
        """
        one = answer(map_and_spill={"sort_buffer_mb": 400})

        assert (one["num_spills"], one["map_merge_s"]) == (1, 0.0)
        assert one["map_task_s"] == one["map_and_spill_s"]

    def test_no_output_costs_no_merge(self):
        """
        Without records there are no files, and the reduce has nothing to do.
        """
        none = answer(
            map_and_spill={"map_records_selectivity": [0.0], "map_bytes_selectivity": [0.0]}
            | {n: [v[0]] for n, v in PLAIN["map_and_spill"].items()
               if isinstance(v, list) and "map_" not in n}
            | {n: [PLAIN["map_and_spill"][n][0]]
               for n in ("map_s_per_record", "map_while_spilling_s_per_record")},
            shuffle={"groups": []},
        )  # fmt: skip

        assert (none["num_spills"], none["map_final_bytes"], none["map_merge_s"]) == (0, 0.0, 0.0)
        assert none["reduce_task_s"] == 0.0

    def test_more_spills_than_a_square_of_the_factor_are_merged(self):
        """
        N > F^2 is answered by the simulation of What-If's merges.
        """
        many = answer(map_and_spill={"sort_buffer_mb": 10}, config={"merge_factor": 3})

        assert many["num_spills"] > 9
        assert many["merge_passes"] >= 3
        assert many["map_final_bytes"] == pytest.approx(many["map_out_bytes"])

    @pytest.mark.parametrize(
        ("part", "field", "value"),
        [
            ("config", "merge_factor", 1),
            ("config", "reduce_heap_bytes", -1),
            ("statistics", "input_record_bytes", 0),
            ("costs", "hdfs_write_s_per_byte", float("nan")),
            ("shuffle", "groups", None),
            ("map_and_spill", "sort_buffer_mb", -1),
        ],
    )
    def test_refuses_by_name(self, part, field, value):
        """
        Each part is checked, and the error names the field.
        """
        with pytest.raises(ModelError, match=field):
            answer(**{part: {field: value}})


class TestAfterShuffle:
    def after(self, left=(), disk=(), **config):
        """
        What follows a shuffle that leaves *left* in memory and *disk* files; F is 3.
        """
        config = PLAIN["config"] | config
        job, _, _ = read_job(PLAIN["statistics"], {}, config, ANY_CLUSTER, "mr2")
        outcome = Outcome(disk_files=list(disk), left=list(left))
        return after_shuffle(outcome, job, Costs(local_write_s_per_byte=1.0))

    @pytest.mark.parametrize(("allowed", "evicted"), [(0, 3), (5, 3), (10, 2), (20, 1), (30, 0)])
    def test_evicts_in_the_order_of_arrival(self, allowed, evicted):
        """
        Until what is left may stay.
        """
        assert num_evicted([Segment(10.0, 5.0, 1.0)] * 3, allowed) == evicted

    def test_evicted_segments_become_one_file_beside_few(self):
        """
        Fewer files than F: step 1 writes the evicted, and the reduce function reads all of them.
        """
        after = self.after([Segment(10.0, 5.0, 1.0)] * 3, [(7.0, 1.0)])

        assert (after["step1_bytes"], after["step1_s"]) == (15.0, 15.0)
        assert after["step2_bytes"] == 0
        assert after["reduce_disk_input_bytes"] == 22.0

    def test_evicted_segments_join_the_first_pass_of_many(self):
        """
        F files or more: nothing is written in step 1, and the pass reads files alone.
        """
        disk = [(float(n), 1.0) for n in (7, 8, 9, 10)]
        after = self.after([Segment(10.0, 5.0, 1.0)], disk)

        assert after["step1_s"] == 0
        assert (after["step2_read_bytes"], after["step2_bytes"]) == (15.0, 20.0)
        assert after["reduce_disk_input_bytes"] == pytest.approx(39.0)

    def test_retained_segments_are_not_read_from_disk(self):
        """
        A reduce that may keep its memory reads nothing.
        """
        after = self.after([Segment(10.0, 5.0, 1.0)], reduce_buffer_percent=1.0)

        assert (after["segments_evicted"], after["segments_retained"]) == (0, 1)
        assert after["reduce_disk_input_bytes"] == 0
        assert after["reduce_in_bytes"] == 5.0


class TestJob:
    def test_worked_example(self):
        """
        Two reduces wait for the second wave of maps, the third finds everything ready.
        """
        job = times(plan())

        assert [r.outcome.shuffle_s for r in job.reduces] == pytest.approx(
            [11.831503872, 11.831503872, 2.502592512]
        )
        assert [r.end_s for r in job.reduces] == pytest.approx(
            [28.831503872, 28.831503872, 37.334096384]
        )
        assert job.job_s == pytest.approx(40.334096384)
        assert (job.map_waves, job.reduce_waves) == (2, 2)

    @given(
        st.integers(0, 40), st.integers(0, 9), st.integers(1, 7), st.integers(1, 5),
        st.floats(0, 1), st.sampled_from(["separate", "shared"]),
    )  # fmt: skip
    def test_is_the_unified_scheduler_where_copying_takes_no_time(  # noqa: PLR0917
        self, maps, reduces, map_slots, reduce_slots, slowstart, pool
    ):
        """
        Steps 1 to 5 and 7 are those of all task-level models: waiting alone agrees to the last bit.
        """
        job_plan = plan(num_maps=maps, num_reduces=reduces, map_slots=map_slots,
                          reduce_slots=reduce_slots, slowstart=slowstart)  # fmt: skip
        free = dict.fromkeys(COSTS, 0.0)
        job = times(job_plan, pool, costs=free)
        expected = schedule([10.0] * maps, reduces, 0.0, 5.0, map_slots, reduce_slots, slowstart,
                            pool, 1.0, 3.0)  # fmt: skip

        assert job.job_s == pytest.approx(expected["job_s"], rel=1e-12)
        ends = [r.end_s for r in job.reduces]
        assert ends == pytest.approx(expected["reduce_end_s"], rel=1e-12)
        assert job.map_waves == expected["map_waves"]
        assert job.reduce_waves == expected["reduce_waves"]

    @given(st.integers(1, 30), st.integers(1, 9), st.floats(0, 1))
    def test_reduces_that_start_late_are_like_those_that_start_at_the_end(
        self, maps, reduces, slowstart
    ):
        """
        Computed once or each for itself: the same numbers.
        """
        one = times(plan(num_maps=maps, num_reduces=reduces, slowstart=slowstart, reduce_slots=1))
        for reduce in one.reduces:
            alone = times(plan(num_maps=maps, num_reduces=1, slowstart=1.0))
            if reduce.start_s > max(end for _, end in one.maps):
                assert reduce.outcome.shuffle_s == alone.reduces[0].outcome.shuffle_s

    def test_no_output_is_not_waited_for(self):
        """
        A job whose maps emit nothing has no groups.
        """
        job = times(plan(), mib=0)

        assert all(r.outcome.shuffle_s == 0 for r in job.reduces)

    def test_refuses_reduces_without_a_slot(self):
        """
        As the unified scheduler does.
        """
        with pytest.raises(ModelError, match="reduce_slots"):
            times(plan(reduce_slots=0))
