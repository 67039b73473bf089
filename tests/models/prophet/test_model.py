"""
Tests for Prophet behind the models' contract.
"""

import pytest

from harness.base.errors import MissingStatistic, ModelError
from harness.base.records.prediction import Cluster, JobConfig, JobInput
from harness.base.records.profile import Profile, Statistic
from harness.models import MODELS
from harness.models.prophet.map_spill import map_and_spill, waiting_for_spill_s
from harness.models.whatif.inputs import COSTS

MIB = 2**20
STATISTICS = {
    "input_record_bytes": 100.0,
    "map_records_selectivity": 1.0,
    "map_bytes_selectivity": 1.0,
    "map_s_per_record": 4e-6,
    "map_while_spilling_s_per_record": 5e-6,
    "sort_s_per_record": 1e-6,
    "spill_write_s_per_byte": 1e-8,
    "copy_s_per_byte": 2e-8,
}
CODED = {
    "spill_write_s_per_byte_compressed": 3e-8,
    "spill_bytes_selectivity_compressed": 0.4,
    "map_output_compression_ratio": 0.4,
}


def stat(value, **nodes):
    """
    A statistic of which only values matter, the mean's and those of *nodes*.
    """
    return Statistic(value=value, count=1, spread=0.0, source="test", nodes=nodes)


def profile(*, without=(), **more):
    """
    A traced profile; every cost 1e-8, *more* statistics, but those *without*.
    """
    values = {**STATISTICS, **more}
    statistics = {n: v if isinstance(v, Statistic) else stat(v) for n, v in values.items()}
    return Profile(
        workload="terasort",
        statistics={n: s for n, s in statistics.items() if n not in without},
        costs={name: stat(1e-8) for name in COSTS if name not in without},
    )


def predict(some_profile=None, *, maps=20, split=16, reduce_slots=8, **config):
    """
    Prediction for a job of *maps* maps of 16 MiB with a buffer of 4 MiB on four nodes.
    """
    size = JobInput(input_bytes=maps * split * MIB, num_files=1, num_splits=maps,
                    split_bytes=split * MIB)  # fmt: skip
    cluster = Cluster(num_nodes=4, map_slots_per_node=2, reduce_slots_per_node=2, map_slots=8,
                 reduce_slots=reduce_slots)  # fmt: skip
    setting = JobConfig(**{"num_reduces": 4, "sort_buffer_mb": 4, **config})
    return MODELS["prophet"].predict(some_profile or profile(), setting, cluster, size)


class TestTimes:
    def test_map_phases_are_the_task(self):
        """
        What overlaps is counted once: phases of a map add up to its time.
        """
        prediction = predict()
        of_map = ("map_while_not_spilling_s", "spill_s", "last_spill_s", "map_merge_s")

        assert prediction.dataflow["overlap_s"] > 0
        assert prediction.map_task_s == pytest.approx(sum(prediction.phases[n] for n in of_map))

    def test_history_sees_all_of_both_tasks(self):
        """
        Measurable phases are the tasks cut elsewhere.
        """
        prediction = predict()

        assert prediction.map_task_s == pytest.approx(
            prediction.measurable["map_main_s"] + prediction.measurable["map_tail_s"]
        )
        assert prediction.reduce_task_s == pytest.approx(
            sum(prediction.measurable[n] for n in ("shuffle_s", "sort_s", "reduce_rest_s"))
        )

    def test_history_waits_for_a_running_spill_behind_the_map_function(self):
        """
        With three MiB the map function ends while a spill runs: its rest is part of the tail.
        """
        prediction = predict(split=3)
        waiting_s = waiting_for_spill_s({**prediction.dataflow, **prediction.phases})
        tail_s = prediction.phases["last_spill_s"] + prediction.phases["map_merge_s"]

        assert waiting_s > 0.04
        assert prediction.measurable["map_tail_s"] == pytest.approx(waiting_s + tail_s)

    def test_history_counts_running_merges_as_sort(self):
        """
        Its shuffle ends with the last copy; the merger in memory goes on after it.
        """
        prediction = predict(maps=40, split=128, num_reduces=1, reduce_slowstart=1.0)

        assert prediction.dataflow["memory_merge_clock_s"] > prediction.dataflow["copy_clock_s"] > 0
        assert prediction.measurable["shuffle_s"] == pytest.approx(
            prediction.dataflow["copy_clock_s"]
        )

    def test_separate_pools_are_scored(self):
        """
        The body is section 6.1's; both pools stand among the estimates.
        """
        prediction = predict()

        assert prediction.body_s == prediction.estimates["scheduler_separate_s"]
        assert prediction.estimates.keys() == {"scheduler_separate_s", "scheduler_shared_s"}

    def test_slow_start_hides_copying(self):
        """
        Reduces that start with the first maps end no later.
        """
        early, late = (predict(reduce_slowstart=s) for s in (0.0, 1.0))

        assert early.body_s <= late.body_s
        assert early.phases["shuffle_s"] > late.phases["shuffle_s"]

    @pytest.mark.parametrize(("slowstart", "waves"), [(0.05, 1), (0.5, 2), (1.0, 3)])
    def test_published_is_whole_map_tasks_and_a_reduce_task(self, slowstart, waves):
        """
        K maps and a reduce, k waves of 8 of 20 maps until the reduces start (P22): with one wave of
        reduces that is the job of section 6.1.
        """
        prediction = predict(reduce_slowstart=slowstart)

        expected = waves * prediction.map_task_s + prediction.reduce_task_s
        assert (prediction.published_s, prediction.body_s) == pytest.approx((expected, expected))

    def test_parts_are_those_of_its_spills(self):
        """
        Sorting and the rest are the spills (2) and (3); without their parts neither is known.
        """
        whole = profile(without=["sort_s_per_record", "spill_write_s_per_byte"],
                        spill_s_per_record=2e-6)  # fmt: skip
        p = predict()

        assert p.parts["spill_sort_s"] + p.parts["spill_write_s"] == pytest.approx(
            p.phases["spill_s"] + p.phases["last_spill_s"]
        )
        assert p.parts["spill_sort_s"] == pytest.approx(p.dataflow["map_out_records"] * 1e-6)
        assert not {"spill_sort_s", "spill_write_s"} & set(predict(whole).parts)

    def test_start_of_tasks_is_of_the_frame(self):
        """
        What launching a JVM takes is in no time of the model.
        """
        slow = predict(profile(map_startup_s=2.0, reduce_startup_s=1.5))

        assert (slow.body_s, slow.published_s) == (predict().body_s, predict().published_s)

    def test_timeline_has_every_task(self):
        """
        20 maps and 4 reduces; the last one ends with the job.
        """
        prediction = predict()
        kinds = [span.kind for span in prediction.timeline]

        assert (kinds.count("map"), kinds.count("reduce")) == (20, 4)
        assert max(s.end_s for s in prediction.timeline) == prediction.body_s

    def test_other_splits_and_buffers_scale_records(self):
        """
        Twice the split has twice the records, and a buffer for all of them spills once.
        """
        small, large = predict(), predict(split=32)
        once = predict(sort_buffer_mb=100)

        assert large.dataflow["map_out_records"] == 2 * small.dataflow["map_out_records"]
        assert (once.dataflow["num_spills"], once.dataflow["overlap_s"]) == (1, 0.0)


class TestMachines:
    def test_lists_have_one_value_of_each(self):
        """
        Means over machines, not over tasks.
        """
        some_profile = profile(
            map_records_selectivity=stat(1.0, w1=1.0, w2=1.0),
            map_bytes_selectivity=stat(1.0, w1=1.0, w2=1.0),
            map_s_per_record=stat(4e-6, w1=3e-6, w2=9e-6),
            map_while_spilling_s_per_record=stat(5e-6, w1=5e-6),
            sort_s_per_record=stat(1e-6, w1=1e-6, w2=3e-6),
            spill_write_s_per_byte=stat(1e-8, w1=1e-8, w2=1e-8),
        )
        expected = map_and_spill(
            {
                "map_in_records": 16 * MIB / 100, "map_in_bytes": 16 * MIB, "sort_buffer_mb": 4,
                "map_records_selectivity": [1, 1], "map_bytes_selectivity": [1, 1],
                "map_s_per_record": [3e-6, 9e-6],
                # No map of w2 was beside a spill.
                "map_while_spilling_s_per_record": [5e-6, 9e-6],
                "sort_s_per_record": [1e-6, 3e-6], "spill_write_s_per_byte": [1e-8, 1e-8],
            }
        )  # fmt: skip

        prediction = predict(some_profile)
        phases, flow = prediction.phases, prediction.dataflow
        assert flow["map_while_spilling_s"] == pytest.approx(expected["map_while_spilling_s"])
        assert phases["spill_s"] == pytest.approx(expected["spill_s"])
        assert phases["map_while_not_spilling_s"] == pytest.approx(
            expected["map_while_not_spilling_s"]
        )


class TestStatistics:
    @pytest.mark.parametrize("missing", sorted(MODELS["prophet"].required))
    def test_names_what_the_profile_lacks(self, missing):
        """
        A statistic that the equations rest on is never silently taken as 0.
        """
        with pytest.raises(MissingStatistic, match=missing) as error:
            predict(profile(without=[missing]))

        assert error.value.names == (missing,)

    def test_logs_show_whole_spills(self):
        """
        Without their parts, spills cost what they took per record, and the answer says so.
        """
        logs = profile(without=["sort_s_per_record", "spill_write_s_per_byte"],
                       spill_s_per_record=2e-6)  # fmt: skip
        spans = profile(sort_s_per_record=2e-6, spill_write_s_per_byte=0.0)

        assert predict(logs).body_s == predict(spans).body_s
        assert any("spill_s_per_record stands for all" in w for w in predict(logs).warnings)

    def test_unknown_cost_beside_spills_is_that_without(self):
        """
        The specification's default, with a warning.
        """
        some_profile = profile(without=["map_while_spilling_s_per_record"])

        assert (
            predict(some_profile).body_s
            == predict(profile(map_while_spilling_s_per_record=4e-6)).body_s
        )
        assert any("map_while_spilling_s_per_record" in w for w in predict(some_profile).warnings)

    def test_combiner_needs_its_statistics(self):
        """
        A job that combines needs what combining costs and leaves.
        """
        with pytest.raises(MissingStatistic) as error:
            predict(use_combiner=True)

        assert error.value.names == (
            "combine_records_selectivity", "combine_s_per_record", "spill_bytes_selectivity",
        )  # fmt: skip

    def test_compressed_cells_take_compressed_statistics(self):
        """
        Plain and compressed are kept apart, and one is not a substitute for the other.
        """
        with pytest.raises(MissingStatistic) as error:
            predict(map_output_compressed=True)
        assert error.value.names == (
            "map_output_compression_ratio", "spill_bytes_selectivity_compressed",
            "spill_write_s_per_byte_compressed",
        )  # fmt: skip

        prediction = predict(profile(**CODED), map_output_compressed=True)
        assert prediction.dataflow["spill_bytes_selectivity"] == 0.4
        assert prediction.dataflow["map_final_bytes"] == pytest.approx(16 * MIB * 0.4)

    def test_copies_of_compressed_bytes_include_their_unpacking(self):
        """
        What was measured with the codec is not paid twice.
        """
        measured = profile(**CODED, copy_s_per_byte_compressed=3e-8)
        derived = profile(**CODED)  # 2e-8 a byte, and 1e-8 to unpack it

        one, other = (predict(g, map_output_compressed=True) for g in (measured, derived))
        assert one.phases["shuffle_s"] == pytest.approx(other.phases["shuffle_s"])

    def test_map_only_jobs_need_the_map_function_alone(self):
        """
        Without reduces nothing is sorted, spilled or copied: What-If's (90).
        """
        bare = profile(without=MODELS["prophet"].required - {"input_record_bytes"})
        prediction = predict(bare, num_reduces=0)

        assert (prediction.reduce_task_s, prediction.reduce_waves) == (None, 0)
        assert prediction.map_task_s == pytest.approx(
            16 * MIB * 1e-8 + 16 * MIB / 100 * 1e-8 + 16 * MIB * 1e-8
        )
        with pytest.raises(MissingStatistic, match="map_cpu_s_per_record"):
            predict(profile(without=["map_cpu_s_per_record"]), num_reduces=0)

    def test_a_job_without_map_output_copies_nothing(self):
        """
        No records, no spills, no groups.
        """
        prediction = predict(profile(map_records_selectivity=0.0, map_bytes_selectivity=0.0))

        assert (prediction.dataflow["num_spills"], prediction.phases["shuffle_s"]) == (0, 0.0)

    def test_records_without_bytes_are_counted(self):
        """
        They take 16 bytes of metadata each in the buffer, and no time on the network.
        """
        prediction = predict(profile(map_bytes_selectivity=0.0))

        assert prediction.dataflow["records_per_spill"] == 4 * MIB * 0.8 // 16
        assert prediction.dataflow["map_final_bytes"] == 0.0
        assert prediction.dataflow["reduce_in_records"] == pytest.approx(20 * 16 * MIB / 100 / 4)

    def test_a_job_without_maps_runs_its_reduces(self):
        """
        There is nothing to copy and nothing to wait for.
        """
        prediction = predict(maps=0)

        assert (prediction.map_waves, prediction.reduce_waves, prediction.body_s) == (0, 1, 0.0)
        assert [s.kind for s in prediction.timeline] == ["reduce"] * 4

    def test_refuses_a_cluster_without_reduce_slots(self):
        """
        Reduces that can run nowhere never end.
        """
        with pytest.raises(ModelError, match="reduce_slots"):
            predict(reduce_slots=0)

    @pytest.mark.parametrize(
        ("field", "value"),
        [("sort_s_per_record", -1.0), ("copy_s_per_byte", -1.0)],
    )
    def test_refuses_statistics_outside_their_range(self, field, value):
        """
        The error names what is not a number or not a cost.
        """
        with pytest.raises(ModelError, match=field):
            predict(profile(**{field: value}))
