"""
Tests for `harness.observe.profiling.gpu`.
"""

from dataclasses import replace

import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.base.errors import MissingStatistic
from harness.base.records.profile import SpeedCorrection, Statistic
from harness.base.records.tasks import MapTimes, ReduceTimes, SegmentTimes
from harness.base.records.trace import DEVICE_COUNTER, FILE_OUTPUT_COUNTER, TASK_COUNTER
from harness.models import MODELS
from harness.observe.profiling.fit import fit_profile
from harness.observe.profiling.gpu import gpu_statistics
from tests.profiling.jobs import observation

BLOCK = 2**20
PLAIN = SpeedCorrection(reference_rate=1.0, coefficient=0.0, gain=0.0, count=0)
# Half as fast as the reference: its seconds are worth half as many.
SLOW = {"rate": 0.5}
REFERENCE = SpeedCorrection(reference_rate=1.0, coefficient=1.0, gain=0.5, count=4)
RATES = ("disk_read_bps", "disk_write_bps", "mem_read_bps", "mem_write_bps")
MACHINE = {n: Statistic(value=1e9, count=3, spread=0.0, source="measured") for n in RATES}


def device(kind="CPU", **changes):
    """
    Counters of a map that gave 8 MB to a device in 2 ms, computed 100 ms, took 1 MB back in 1 ms.
    """
    reported = {
        f"DEVICE_{kind}": 1, "BYTES_IN": 8_000_000, "H2D_NS": 2_000_000, "KERNEL_NS": 100_000_000,
        "BYTES_OUT": 1_000_000, "D2H_NS": 1_000_000, "OPEN_NS": 3_000_000, "ALLOC_NS": 1_000_000,
        "BLOCKS": 8, "MEM_READ_BPS": 5_000_000_000,
    }  # fmt: skip
    return {f"{DEVICE_COUNTER}.{name}": value for name, value in {**reported, **changes}.items()}


def job(
    records=1000, *, counters=None, task_times=True, loop_s=1.0, more=None, block=BLOCK, **options
):
    """
    A job of which each map has *counters* of a device and, where recorded, a mapper of 1 s.
    """
    plain = observation(records, **options)
    own = device() if counters is None else counters
    attempts = tuple(
        replace(a, counters={**a.counters, **(own if a.kind == "map" else {}), **(more or {})})
        for a in plain.trace.attempts
    )
    recorded = tuple(recording(a, loop_s) for a in attempts) if task_times else ()
    return replace(
        plain,
        trace=replace(plain.trace, attempts=attempts),
        job_input=plain.job_input.model_copy(update={"gpu_block_bytes": block}),
        task_times=recorded,
    )


def recording(attempt, loop_s):
    """
    What spans tell: 0.2 s of reading and 0.1 s blocked within the mapper; a reduce of 0.4 s.
    """
    if attempt.kind == "map":
        return MapTimes(
            attempt.attempt_id, "spans", "w1", 1, (), loop_s=loop_s, read_s=0.2, blocked_s=0.1
        )
    copy = SegmentTimes("m", "w1", 1000, 1000, "memory", 0.0, 1.0)
    return ReduceTimes(attempt.attempt_id, "spans", "w1", 1, (copy,), (), function_s=0.4)


def statistics(*jobs, speed=PLAIN):
    """
    What is found of *jobs*, nothing being amiss.
    """
    warnings = []
    result = gpu_statistics(jobs, speed, warnings)
    assert warnings == []
    return result


def values(*jobs, **options):
    """
    The same, as plain numbers.
    """
    return {name: s.value for name, s in statistics(*jobs, **options).items()}


class TestRates:
    def test_are_bytes_over_the_time_of_the_device(self):
        """
        Over all maps of all jobs, by host too, with the tasks' spread.
        """
        result = statistics(job(maps=2), job(maps=2, counters=device(H2D_NS=6_000_000)))

        assert result["gpu_h2d_bps"].value == pytest.approx(8e6 * 4 / 16e-3)
        assert result["gpu_h2d_bps"].count == 4
        assert result["gpu_h2d_bps"].spread > 0
        assert result["gpu_h2d_bps"].nodes.keys() == {"w1"}

    def test_of_one_map(self):
        """
        Each by its own counters; opening the device and its memory are one time.
        """
        result = values(job(maps=1))

        assert {
            n: result[n] for n in result if n.startswith("gpu_") and n.endswith(("bps", "n_s"))
        } == {
            "gpu_h2d_bps": pytest.approx(4e9),
            "gpu_d2h_bps": pytest.approx(1e9),
            "gpu_mem_read_bps": 5e9,
            "gpu_open_s": pytest.approx(4e-3),
        }

    @pytest.mark.parametrize(
        ("counter", "statistic"),
        [
            ("BYTES_OUT", "gpu_d2h_bps"),
            ("H2D_NS", "gpu_h2d_bps"),
            ("MEM_READ_BPS", "gpu_mem_read_bps"),
        ],
    )
    def test_what_was_not_measured_is_absent(self, counter, statistic):
        """
        No zero stands for it.
        """
        assert statistic not in values(job(counters=device(**{counter: 0})))


class TestTestJob:
    def test_is_the_smallest_cell(self):
        """
        Sums of its jobs, each a mean over the repeats; larger cells count for nothing.
        """
        small = [job(1000, maps=2, repetition=n) for n in range(2)]
        result = statistics(job(9000, maps=3), *small)

        assert (result["test_num_maps"].value, result["test_num_maps"].count) == (2.0, 2)
        assert result["test_input_bytes"].value == 2 * 1000 * 100
        assert result["test_map_bytes"].value == 2 * 1000 * 3 * 104
        assert result["test_map_output_bytes"].value == pytest.approx(2 * 1000 * 3 * 104)
        assert result["map_gpu_s"].value == pytest.approx(0.2)
        assert result["load_s"].value == pytest.approx(2.0)
        assert result["gpu_block_bytes"].value == BLOCK

    def test_loading_ends_with_the_first_map_s_start(self):
        """
        Further waves of maps wait for slots, not for the job.
        """
        assert values(job(maps=6))["load_s"] == pytest.approx(2.0)

    def test_map_function_is_what_no_other_phase_has(self):
        """
        The mapper, less reading, being blocked, and the three steps of the device.
        """
        assert values(job())["map_s"] == pytest.approx(1.0 - 0.2 - 0.1 - 0.103)

    def test_map_function_needs_spans(self):
        """
        The history does not tell it from the start of the JVM.
        """
        assert "map_s" not in values(job(task_times=False))

    def test_reduce_function_is_the_sum_over_the_reduces(self):
        """
        Of spans; without them, of the history's last phase, which its source says.
        """
        spans, history = statistics(job(reduces=2)), statistics(job(reduces=2, task_times=False))

        assert spans["reduce_s"].value == pytest.approx(0.8)
        assert "job history" in history["reduce_s"].source
        assert history["reduce_s"].value > 0

    @pytest.mark.parametrize(("spilled", "counted"), [(3000, 3000), (9000, 3000)])
    def test_spilled_records_count_once(self, spilled, counted):
        """
        With several spills Hadoop counts merged records again; a map put out 3000.
        """
        result = values(job(1000, maps=2, more={f"{TASK_COUNTER}.SPILLED_RECORDS": spilled}))

        assert result["test_map_spilled_records"] == 2 * counted

    def test_map_only_job(self):
        """
        Says nothing of reduces; its maps' output is what they wrote.
        """
        plain = job(maps=2, more={f"{FILE_OUTPUT_COUNTER}.BYTES_WRITTEN": 500})
        maps = tuple(a for a in plain.trace.attempts if a.kind == "map")
        result = values(replace(plain, trace=replace(plain.trace, attempts=maps, num_reduces=0)))

        assert result["test_map_bytes"] == 1000
        assert not {"reduce_s", "test_map_output_bytes", "test_reduce_bytes"} & result.keys()


class TestDevice:
    def test_processor_is_named_as_what_it_is(self):
        """
        Whatever was measured on it says so.
        """
        result = statistics(job())

        assert result["gpu_stand_in"].value == 1
        for name in ("gpu_h2d_bps", "gpu_d2h_bps", "gpu_mem_read_bps", "map_gpu_s", "gpu_stand_in"):
            assert "device=cpu" in result[name].source

    def test_gpu_has_a_clock_of_its_own(self):
        """
        The seconds of a GPU do not depend on the speed of the processor, those of the mapper do.
        """
        on_cpu = values(job(**SLOW), speed=REFERENCE)
        on_gpu = values(job(counters=device("CUDA"), **SLOW), speed=REFERENCE)

        assert (on_cpu["gpu_stand_in"], on_gpu["gpu_stand_in"]) == (1, 0)
        assert on_cpu["map_gpu_s"] == pytest.approx(on_gpu["map_gpu_s"] / 2)
        assert on_cpu["gpu_h2d_bps"] == pytest.approx(2 * on_gpu["gpu_h2d_bps"])
        assert on_cpu["map_s"] == pytest.approx(on_gpu["map_s"])

    def test_jobs_without_a_device_have_no_statistic(self):
        """
        Nor have they a warning.
        """
        assert statistics(job(counters={}), job(counters={f"{DEVICE_COUNTER}.BLOCKS": 1})) == {}

    def test_two_kinds_have_no_rate_in_common(self):
        """
        That is reported, and no statistic is given.
        """
        warnings = []
        result = gpu_statistics([job(), job(counters=device("CUDA"))], PLAIN, warnings)

        assert result == {}
        assert warnings == ["maps used GPUs and processors: profile with one kind of device"]

    @given(st.dictionaries(st.sampled_from(sorted(device())), st.integers(0, 2**53)))
    def test_any_counters_give_numbers_or_nothing(self, counters):
        """
        Whatever a job counts, rates are positive and seconds no less than zero.
        """
        result = gpu_statistics([job(counters=counters)], PLAIN, [])

        assert all(s.value > 0 for n, s in result.items() if n.endswith("bps"))
        assert all(s.value >= 0 for s in result.values())


class TestModel:
    @pytest.mark.parametrize("model", ["spn-gc", "spn-gc-mr2"])
    def test_applies_to_jobs_of_a_device(self, model):
        """
        With rates of the machine, the profile of such a job has all that SPN-GC asks for.
        """
        jobs = [job(n, maps=2) for n in (1000, 2000)]
        wanted = job(4000, maps=4)

        result = MODELS[model].predict(
            fit_profile("w", jobs, machine=MACHINE), wanted.config, wanted.cluster, wanted.job_input
        )

        assert result.body_s > 0
        assert any("device=cpu" in w for w in result.warnings)

    def test_does_not_apply_to_others(self):
        """
        A job without a device lacks its times by name.
        """
        jobs = [observation(n) for n in (1000, 2000)]
        wanted = jobs[0]

        with pytest.raises(MissingStatistic) as refused:
            MODELS["spn-gc"].predict(
                fit_profile("w", jobs, machine=MACHINE),
                wanted.config, wanted.cluster, wanted.job_input,
            )  # fmt: skip
        assert {"map_gpu_s", "gpu_h2d_bps"} <= set(refused.value.names)
