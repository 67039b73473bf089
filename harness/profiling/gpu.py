"""
What SPN-GC needs of a job whose maps compute on a device: its test job, and the device's rates.

The jobs themselves report, by the counters of the group `Device`: bytes and nanoseconds of each
step (of a GPU by its own clock), and on which kind of device it was done.  Where the processor
stood in for a GPU every source says ``device=cpu``, and `gpu_stand_in` is 1.

The test job is the smallest profiled cell, all its jobs together; ``docs/models/spn-gc.md``,
section 11, says where each statistic comes from.  What nothing shows is absent.
"""

from __future__ import annotations

import math

from collections.abc import Callable, Sequence

from harness.profiling.dataflow import Pair, pooled
from harness.profiling.jobs import Observation
from harness.records.profile import SpeedCorrection, Statistic
from harness.records.tasks import ReduceTimes
from harness.records.trace import (
    CPU,
    CUDA,
    DEVICE_COUNTER,
    FILE_INPUT_COUNTER,
    FILE_OUTPUT_COUNTER,
    FILE_SYSTEM_COUNTER,
    TaskAttempt,
    TaskKind,
    devices,
)
from harness.stats.spread import standard_deviation

_STEPS = ("H2D_NS", "KERNEL_NS", "D2H_NS")
_RATES = {
    "gpu_h2d_bps": "BYTES_IN / H2D_NS",
    "gpu_d2h_bps": "BYTES_OUT / D2H_NS",
    "gpu_mem_read_bps": "MEM_READ_BPS, measured by the job",
    "gpu_open_s": "OPEN_NS and ALLOC_NS of a map",
}


def gpu_statistics(
    observations: Sequence[Observation], speed: SpeedCorrection, warnings: list[str]
) -> dict[str, Statistic]:
    """
    All statistics of the test job and of the device, or nothing where no job's maps used a device.

    Seconds of the processor are at reference speed, a GPU's as it reported them.  *warnings* says
    where devices of both kinds were used, which have no rate in common.
    """
    device_jobs = [observation for observation in observations if _devices(observation, "map")]
    kinds = {kind for observation in device_jobs for kind in _devices(observation, "map")}
    if len(kinds) > 1:
        warnings.append("maps used GPUs and processors: profile with one kind of device")
    if len(kinds) != 1:
        return {}
    is_gpu = kinds == {CUDA}
    device = "device=cuda" if is_gpu else "device=cpu, instead of a GPU"

    def device_s(observation: Observation, attempt: TaskAttempt, *names: str) -> float:
        measured_s = sum(_count(attempt, counter) for counter in names) / 1e9
        return measured_s if is_gpu else observation.at_reference(measured_s, speed)

    pairs: dict[str, list[tuple[str, Pair]]] = {counter: [] for counter in _RATES}
    for observation in device_jobs:
        for attempt in observation.trace.succeeded("map"):
            read_bps = _count(attempt, "MEM_READ_BPS")
            in_s, out_s, open_s = (
                device_s(observation, attempt, *names)
                for names in (("H2D_NS",), ("D2H_NS",), ("OPEN_NS", "ALLOC_NS"))
            )
            for counter, pair in (
                ("gpu_h2d_bps", (_count(attempt, "BYTES_IN"), in_s)),
                ("gpu_d2h_bps", (_count(attempt, "BYTES_OUT"), out_s)),
                ("gpu_mem_read_bps", (read_bps, float(read_bps > 0))),
                ("gpu_open_s", (open_s, 1.0)),
            ):
                # A device that gives nothing back, or copies in no time at all, has no rate.
                if min(pair) > 0:
                    pairs[counter].append((attempt.host, pair))
    reduces_use_it = float(any(_devices(observation, "reduce") for observation in device_jobs))
    return (
        {
            counter: Statistic(value=value, count=len(device_jobs), spread=0.0, source=source)
            for counter, value, source in (
                ("gpu_stand_in", float(kinds == {CPU}), f"counters DEVICE_*; {device}"),
                ("reduce_uses_gpu", reduces_use_it, "counters of reduces"),
            )
        }
        | {
            counter: pooled(pairs[counter], f"{text} over {len(pairs[counter])} maps; {device}")
            for counter, text in _RATES.items()
            if pairs[counter]
        }
        | _test_job(device_jobs, speed, device, device_s)
    )


def _test_job(
    device_jobs: Sequence[Observation],
    speed: SpeedCorrection,
    device: str,
    device_s: Callable[[Observation, TaskAttempt, str], float],
) -> dict[str, Statistic]:
    smallest = min((job.job_input.input_bytes, job.trial.cell.id) for job in device_jobs)[1]
    jobs = [observation for observation in device_jobs if observation.trial.cell.id == smallest]
    load_s = list[float]()
    kernel_s = list[float]()
    mapper_s = list[float]()
    recorded_s = list[float]()
    last_phase_s = list[float]()
    for job in jobs:
        maps = {attempt.attempt_id: attempt for attempt in job.trace.succeeded("map")}
        waited_s = max(0.0, next(iter(maps.values())).start_s - job.trace.submit_s)
        load_s.append(job.at_reference(waited_s, speed))
        kernel_s.append(math.fsum(device_s(job, task, "KERNEL_NS") for task in maps.values()))
        reduces = {attempt.attempt_id: attempt for attempt in job.trace.succeeded("reduce")}
        function_s = {}
        for task in job.task_times:
            if isinstance(task, ReduceTimes):
                if task.function_s is not None and task.attempt_id in reduces:
                    function_s[task.attempt_id] = task.function_s
            elif task.attempt_id in maps and task.loop_s is not None:
                # Less what another phase of the model has.
                steps_s = sum(_count(maps[task.attempt_id], counter) for counter in _STEPS) / 1e9
                loop_s = task.loop_s - (task.read_s or 0.0) - (task.blocked_s or 0.0) - steps_s
                mapper_s.append(job.at_reference(max(0.0, loop_s), speed))
        if reduces:
            if function_s.keys() == reduces.keys():
                recorded_s.append(job.at_reference(math.fsum(function_s.values()), speed))
            phases_s = (
                task.finish_s - (task.sort_finish_s or task.finish_s) for task in reduces.values()
            )
            last_phase_s.append(job.at_reference(math.fsum(phases_s), speed))
    reduce_s = recorded_s
    reduce_source = "spans: reduce function of all reduces"
    if len(recorded_s) < len(last_phase_s):
        reduce_s = last_phase_s
        reduce_source = "job history: last phase of all reduces, with its writing"
    block_bytes = jobs[0].job_input.gpu_block_bytes
    measured = {
        counter: (f"{text} of the job", values)
        for counter, (text, values) in _dataflow(jobs).items()
    } | {
        "load_s": ("submission to the first map's start", load_s),
        "map_gpu_s": (f"KERNEL_NS of all maps; {device}", kernel_s),
        "gpu_block_bytes": ("argument of the workload", [float(block_bytes)] * bool(block_bytes)),
        "map_s": ("spans: mapper without reading, blocking and the device's steps", mapper_s),
        "reduce_s": (reduce_source, reduce_s),
    }
    return {
        counter: Statistic(
            value=math.fsum(values) / len(values),
            count=len(values),
            spread=standard_deviation(values),
            source=f"{text}, smallest profiled cell",
        )
        for counter, (text, values) in measured.items()
        if values
    }


def _dataflow(jobs: Sequence[Observation]) -> dict[str, tuple[str, list[float]]]:
    """What the counters say of each job of the test job: which counter, and its sums."""

    def sums(of_jobs: Sequence[Observation], kind: TaskKind, *counters: str) -> list[float]:
        """Sum over the tasks of *kind* of each job; of several *counters* the smallest counts."""
        return [
            math.fsum(
                min(attempt.count(counter) for counter in counters)
                for attempt in job.trace.succeeded(kind)
            )
            for job in of_jobs
        ]

    input_bytes = sums(jobs, "map", f"{FILE_INPUT_COUNTER}.BYTES_READ")
    reducing = [job for job in jobs if job.trace.num_reduces]
    map_only = [job for job in jobs if not job.trace.num_reduces]
    records = ("SPILLED_RECORDS", "MAP_OUTPUT_RECORDS")
    return {
        # Nothing scales by no input.
        "test_input_bytes": ("BYTES_READ", [job_bytes for job_bytes in input_bytes if job_bytes]),
        "test_num_maps": ("maps", [float(len(job.trace.succeeded("map"))) for job in jobs]),
        "test_map_bytes": (
            "MAP_OUTPUT_BYTES",
            sums(reducing, "map", "MAP_OUTPUT_BYTES")
            + sums(map_only, "map", f"{FILE_OUTPUT_COUNTER}.BYTES_WRITTEN"),
        ),
        # Records that were spilled for the first time: with several spills they count again.
        "test_map_spilled_records": ("SPILLED_RECORDS", sums(jobs, "map", *records)),
        "test_map_output_bytes": (
            "REDUCE_SHUFFLE_BYTES",
            sums(reducing, "reduce", "REDUCE_SHUFFLE_BYTES"),
        ),
        "test_reduce_bytes": (
            "HDFS_BYTES_WRITTEN",
            sums(reducing, "reduce", f"{FILE_SYSTEM_COUNTER}.HDFS_BYTES_WRITTEN"),
        ),
    }


def _count(attempt: TaskAttempt, counter: str) -> float:
    return float(attempt.count(f"{DEVICE_COUNTER}.{counter}"))


def _devices(observation: Observation, kind: TaskKind) -> tuple[str, ...]:
    return devices(attempt.counters for attempt in observation.trace.succeeded(kind))
