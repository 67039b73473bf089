"""
Tests for SPN-GC behind the models' contract (what all models keep to: tests/contracts).
"""

import pytest

from harness.base.errors import MissingStatistic, ModelError
from harness.base.records.prediction import Cluster, JobConfig, JobInput
from harness.base.records.profile import Profile, Statistic
from harness.models import MODELS
from harness.models.spn_gc.phases import PHASES, spn_phases
from tests.models.spn_gc.given import MIB, parameters

OF_CELL = {"input_bytes", "split_bytes", "num_reduces", "num_datanodes", "replication"}
GIVEN = {n: v for n, v in parameters().items() if n not in OF_CELL} | {"test_num_maps": 4.0}
BLOCKS = 8  # of a split of the test job
GPU = {"map_gpu_s", "gpu_block_bytes", "gpu_h2d_bps", "gpu_mem_read_bps", "gpu_d2h_bps"}


def profile(*, without=(), **changes):
    """
    What a test job on GPUs shows.
    """
    values = {n: v for n, v in {**GIVEN, **changes}.items() if n not in without}
    stat = {
        n: Statistic(value=float(v), count=1, spread=0.0, source="test") for n, v in values.items()
    }
    return Profile(workload="kmeans", statistics=stat)


def predict(name="spn-gc", given=None, *, maps=16, slots=64, reduce_slots=64, of=(), **config):
    """
    Prediction for a job of *maps* splits of 64 MiB on four nodes; *of* is more of its input.
    """
    size = JobInput(
        input_bytes=maps * 64 * MIB, num_files=1, num_splits=maps, split_bytes=64 * MIB, **dict(of)
    )
    on = Cluster(
        num_nodes=4, map_slots_per_node=16, reduce_slots_per_node=16,
        map_slots=slots, reduce_slots=reduce_slots,
    )  # fmt: skip
    return MODELS[name].predict(
        given or profile(), JobConfig(**{"num_reduces": 2, **config}), on, size
    )


@pytest.mark.parametrize(("name", "rules"), [("spn-gc", "paper"), ("spn-gc-mr2", "mr2")])
class TestBothRules:
    def test_phases_are_those_of_the_equations(self, name, rules):
        """
        Statistics of the profile, the job's configuration, the cell's input and cluster.
        """
        config = JobConfig(num_reduces=2).model_dump()
        expected = spn_phases(parameters(**{n: config[n] for n in (
            "sort_buffer_mb", "sort_spill_percent", "sort_record_percent", "merge_factor",
            "reduce_heap_bytes", "shuffle_buffer_percent", "shuffle_merge_percent",
        )}, map_gpu_s=GIVEN["map_gpu_s"] * (BLOCKS if rules == "paper" else 1)), rules)  # fmt: skip
        prediction = predict(name)

        assert prediction.phases == {p: expected[p] for p in PHASES}
        assert prediction.estimates["sum_of_means_s"] == pytest.approx(
            expected["sum_of_means_s"] - expected["t1_load_s"]
        )

    def test_loads_in_what_it_publishes(self, name, rules):
        """
        The start of the job is of the frame: the body does not depend on it.
        """
        early, late = (predict(name, profile(load_s=load)) for load in (0.0, 5.0))

        assert (early.body_s, early.published_s) == (late.body_s, early.body_s)
        assert late.published_s - early.published_s == pytest.approx(5.0, rel=0.1)

    def test_scores_the_simulated_time(self, name, rules):
        """
        Within 4 standard errors of the exact expectation, in both variants.
        """
        prediction = predict(name)

        error = 4 * prediction.dataflow["std_s"] / 2000**0.5
        assert prediction.body_s == prediction.estimates["simulated_s"]
        for variant in ("", "shared_shuffle_"):
            drawn, exact = (
                prediction.estimates[f"{variant}{e}_s"] for e in ("simulated", "expected")
            )
            assert drawn == pytest.approx(exact, abs=error)

    def test_names_what_a_job_without_gpus_lacks(self, name, rules):
        """
        All that is missing, at once.
        """
        with pytest.raises(MissingStatistic) as refused:
            predict(name, profile(without=GPU))

        assert set(refused.value.names) == GPU

    def test_slots_lengthen_the_scheduler_alone(self, name, rules):
        """
        The paper's net has none; with slots for all the scheduler's job is the net's.
        """
        many, few = predict(name), predict(name, slots=4, reduce_slots=1)

        assert many.body_s == few.body_s
        assert {many.estimates[f"scheduler_{p}_s"] for p in ("separate", "shared")} == {many.body_s}
        assert (
            few.estimates["scheduler_separate_s"] > few.estimates["scheduler_shared_s"] > few.body_s
        )

    def test_map_only_job(self, name, rules):
        """
        Needs nothing of reduces, and says nothing of them.
        """
        bare = profile(without=["reduce_s", "test_map_output_bytes", "test_reduce_bytes"])
        prediction = predict(name, bare, num_reduces=0, reduce_slots=0)

        assert set(prediction.phases) == set(PHASES[:6])
        assert (prediction.reduce_task_s, set(prediction.measurable)) == (
            None,
            {"map_main_s", "map_tail_s"},
        )
        assert prediction.body_s > prediction.map_task_s

    def test_map_function_scales_with_the_split(self, name, rules):
        """
        A test job of splits half as long had half the function per split.
        """
        half = profile(test_num_maps=8.0, map_s=3.0)

        assert predict(name, half).phases == pytest.approx(predict(name).phases)

    def test_refuses_a_cluster_without_reduce_slots(self, name, rules):
        """
        Reduces that can run nowhere never end.
        """
        with pytest.raises(ModelError, match="reduce_slots = 0"):
            predict(name, reduce_slots=0)


class TestReadings:
    """What the paper leaves open of the device's times (S06, S07)."""

    def test_a_split_is_on_the_device_as_long_as_its_kernels(self):
        """
        Under both rules: in block-seconds equation (9) gives what the blocks take in sequence.
        """
        test_split_s = GIVEN["map_gpu_s"] / GIVEN["test_num_maps"]

        for name in ("spn-gc", "spn-gc-mr2"):
            no_memory = profile(gpu_mem_read_bps=1e18)
            assert predict(name, no_memory).phases["t4_gpu_s"] == pytest.approx(test_split_s)

    def test_the_other_readings_are_estimates(self):
        """
        Device seconds lose a factor of the blocks of a split; with the device in T_m it counts
        twice.  Hadoop 3's form leaves neither open.
        """
        answer = predict()

        assert answer.estimates["device_seconds_s"] < answer.body_s
        assert answer.estimates["device_in_map_s"] > answer.body_s
        assert "device_seconds_s" not in predict("spn-gc-mr2").estimates


class TestPrediction:
    def test_reduce_on_the_device_needs_its_time(self):
        """
        Under mr2 rules; the paper takes the map's.
        """
        given = profile(reduce_uses_gpu=1, without=["reduce_gpu_s"])

        assert (
            predict("spn-gc", given).phases["t9_reduce_s"] > predict("spn-gc").phases["t9_reduce_s"]
        )
        with pytest.raises(MissingStatistic, match="reduce_gpu_s"):
            predict("spn-gc-mr2", given)

    def test_says_what_it_took_for_granted(self):
        """
        Each default that nobody measured.
        """
        assert predict().warnings == (
            "no cpu_ratio: assumed to be 1", "no gpu_ratio: assumed to be 1",
            "no reduce_uses_gpu: assumed to be 0",
        )  # fmt: skip

    def test_says_that_a_processor_stood_in(self):
        """
        Times of a device that is the processor are reported as such.
        """
        warnings = predict(given=profile(gpu_stand_in=1)).warnings

        assert [w for w in warnings if "device=cpu" in w]
        assert predict(given=profile(gpu_stand_in=0)).warnings == predict().warnings

    def test_takes_block_and_replicas_from_the_input(self):
        """
        Those of the cell win over those of the test job; the blocks of a test job serve any cell.
        """
        blocks = predict(of={"gpu_block_bytes": 4 * MIB}).dataflow["gpu_blocks_per_split"]
        local = predict(of={"replication": 1}).dataflow["local_read_fraction"]
        plain = predict().dataflow

        assert (blocks, plain["gpu_blocks_per_split"]) == (16, 8)
        assert (local, plain["local_read_fraction"]) == (0.25, 0.75)

    def test_measurable_phases_are_the_tasks(self):
        """
        What a history shows of a map and a reduce adds up to their times.
        """
        prediction = predict()
        map_s, reduce_s = (
            sum(prediction.measurable[p] for p in names)
            for names in (("map_main_s", "map_tail_s"), ("shuffle_s", "sort_s", "reduce_rest_s"))
        )

        assert (map_s, reduce_s) == pytest.approx((prediction.map_task_s, prediction.reduce_task_s))
        assert map_s + reduce_s == pytest.approx(prediction.estimates["sum_of_means_s"])

    def test_timeline_uses_the_slots(self):
        """
        16 maps on four slots are four waves of mean length, then the reduces.
        """
        prediction = predict(slots=4, reduce_slots=1)
        maps, reduces = (
            [s for s in prediction.timeline if s.kind == kind] for kind in ("map", "reduce")
        )

        assert (len(maps), len(reduces)) == (16, 2)
        assert maps[0].start_s == 0
        assert maps[-1].end_s == pytest.approx(4 * prediction.map_task_s)
        assert reduces[-1].end_s == pytest.approx(maps[-1].end_s + 2 * prediction.reduce_task_s)

    def test_workload_is_the_seed(self):
        """
        Another workload meets other random numbers; the same one the same.
        """
        other = profile().model_copy(update={"workload": "video"})

        assert predict() == predict()
        assert predict(given=other).body_s != predict().body_s
        assert predict(given=other).estimates["expected_s"] == predict().estimates["expected_s"]
