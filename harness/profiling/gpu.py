"""
What SPN-GC needs of a job whose maps compute on a device: its test job, and the device's rates.

The jobs themselves report, by the counters of the group `Device`: bytes and nanoseconds of each
step (of a GPU by its own clock), and on which kind of device it was done.  Where the processor
stood in for a GPU every source says ``device=cpu``, and `gpu_stand_in` is 1.

The test job is the smallest profiled cell, all its jobs together (``docs/models/spn-gc.md``,
section 2).  What nothing shows is absent.

    statistic                   of the test job
    --------------------------  ----------------------------------------------------------------
    `test_input_bytes`          BYTES_READ, `test_num_maps` its maps
    `test_map_bytes`            MAP_OUTPUT_BYTES; of a map-only job, what it wrote
    `test_map_output_bytes`     REDUCE_SHUFFLE_BYTES
    `test_reduce_bytes`         HDFS_BYTES_WRITTEN of the reduces
    `test_map_spilled_records`  SPILLED_RECORDS of the maps, each record once (S30)
    `gpu_block_bytes`           bytes that its maps gave to the device at once
    `load_s`                    submission to the start of the first map
    `map_s`                     mapper without reading, being blocked and the device, of one map
    `map_gpu_s`                 kernels of all maps
    `reduce_s`                  reduce function of all reduces

    statistic           of all profiled jobs
    ------------------  ------------------------------------------------------------------------
    `gpu_h2d_bps`       BYTES_IN / H2D_NS
    `gpu_d2h_bps`       BYTES_OUT / D2H_NS
    `gpu_mem_read_bps`  MEM_READ_BPS, which the job measures
    `gpu_open_s`        OPEN_NS and ALLOC_NS of a map: in `map_s`, and in no phase by itself
    `reduce_uses_gpu`   whether reduces have the counters, too
"""

from __future__ import annotations

import math

from collections.abc import Callable, Mapping, Sequence

from harness.profiling.dataflow import Pair, pooled
from harness.profiling.jobs import Observation
from harness.records.profile import SpeedCorrection, Statistic
from harness.records.task_times import MapTimes, ReduceTimes
from harness.records.trace import (
    CPU,
    CUDA,
    DEVICE_COUNTER,
    FILE_INPUT_COUNTER,
    FILE_OUTPUT_COUNTER,
    FILE_SYSTEM_COUNTER,
    TASK_COUNTER,
    TaskAttempt,
    TaskKind,
    devices,
)
from harness.stats.spread import standard_deviation

_STEPS = ("H2D_NS", "KERNEL_NS", "D2H_NS")


def gpu_statistics(
    observations: Sequence[Observation], speed: SpeedCorrection, warnings: list[str]
) -> dict[str, Statistic]:
    """
    All of the tables above, or nothing where no job's maps used a device.

    Seconds of the processor are at reference speed, a GPU's as it reported them.  *warnings* says
    where devices of both kinds were used, which have no rate in common.
    """
    used = [observation for observation in observations if _devices(observation, "map")]
    kinds = {kind for observation in used for kind in _devices(observation, "map")}
    if len(kinds) > 1:
        warnings.append("maps used GPUs and processors: profile with one kind of device")
    if len(kinds) != 1:
        return {}
    device = _Device(kinds.pop(), speed)
    reduces_use_it = float(any(_devices(observation, "reduce") for observation in used))
    fixed = {
        "gpu_stand_in": (float(device.kind == CPU), f"counters DEVICE_*; {device}"),
        "reduce_uses_gpu": (reduces_use_it, "counters of reduces"),
    }
    return {
        **{
            name: Statistic(value=value, count=len(used), spread=0.0, source=source)
            for name, (value, source) in fixed.items()
        },
        **device.rates(used),
        **_test_job(used, device),
    }


class _Device:
    """A kind of device, and what its seconds are worth."""

    def __init__(self, kind: str, speed: SpeedCorrection) -> None:
        self.kind, self.speed = kind, speed

    def __str__(self) -> str:
        return "device=cuda" if self.kind == CUDA else "device=cpu, in the place of a GPU"

    def seconds(self, observation: Observation, attempt: TaskAttempt, *names: str) -> float:
        """Seconds of the device in *attempt*, at reference speed where it is the processor."""
        measured = sum(_count(attempt, name) for name in names) / 1e9
        if self.kind == CUDA:
            return measured
        return observation.at_reference(measured, self.speed)

    def rates(self, used: Sequence[Observation]) -> dict[str, Statistic]:
        """Of copies, of the device's memory, and what opening the device takes."""
        pairs: dict[str, list[tuple[str, Pair]]] = {}
        for observation in used:
            for attempt in observation.trace.succeeded("map"):
                copied_in, copied_out = _count(attempt, "BYTES_IN"), _count(attempt, "BYTES_OUT")
                read_bps = _count(attempt, "MEM_READ_BPS")
                for text, pair in (
                    ("gpu_h2d_bps", (copied_in, self.seconds(observation, attempt, "H2D_NS"))),
                    ("gpu_d2h_bps", (copied_out, self.seconds(observation, attempt, "D2H_NS"))),
                    ("gpu_mem_read_bps", (read_bps, float(read_bps > 0))),
                    (
                        "gpu_open_s",
                        (self.seconds(observation, attempt, "OPEN_NS", "ALLOC_NS"), 1.0),
                    ),
                ):
                    # A device that gives nothing back, or copies in no time at all, has no rate.
                    if min(pair) > 0:
                        pairs.setdefault(text, []).append((attempt.host, pair))
        texts = {
            "gpu_h2d_bps": "BYTES_IN / H2D_NS",
            "gpu_d2h_bps": "BYTES_OUT / D2H_NS",
            "gpu_mem_read_bps": "MEM_READ_BPS, measured by the job",
            "gpu_open_s": "OPEN_NS and ALLOC_NS of a map",
        }
        return {
            name: pooled(pairs[name], f"{text} over {len(pairs[name])} maps; {self}")
            for name, text in texts.items()
            if name in pairs
        }


def _test_job(used: Sequence[Observation], device: _Device) -> dict[str, Statistic]:
    smallest = min(used, key=lambda o: (o.job_input.input_bytes, o.trial.cell.id)).trial.cell.id
    jobs = [observation for observation in used if observation.trial.cell.id == smallest]
    load_s, kernel_s, mapper_s = list[float](), list[float](), list[float]()
    for job in jobs:
        maps = {attempt.attempt_id: attempt for attempt in job.trace.succeeded("map")}
        first_start = next(iter(maps.values())).start_s
        waited_s = max(0.0, first_start - job.trace.submit_s)
        load_s.append(job.at_reference(waited_s, device.speed))
        kernel_s.append(math.fsum(device.seconds(job, a, "KERNEL_NS") for a in maps.values()))
        for task in job.task_times:
            attempt = maps.get(task.attempt_id)
            if isinstance(task, MapTimes) and attempt is not None and task.loop_s is not None:
                # Less what another phase of the model has.
                steps_s = sum(_count(attempt, name) for name in _STEPS) / 1e9
                loop_s = task.loop_s - (task.read_s or 0.0) - (task.blocked_s or 0.0) - steps_s
                mapper_s.append(job.at_reference(max(0.0, loop_s), device.speed))
    block_bytes = jobs[0].job_input.gpu_block_bytes
    statistics = {
        name: _mean(
            # No test job without input: nothing could be scaled by it.
            [value for value in values if value > 0 or name != "test_input_bytes"],
            f"{text} of the job",
        )
        for name, (text, has_map_only, value_of) in _DATAFLOW.items()
        for values in [[value_of(job) for job in jobs if has_map_only or job.trace.num_reduces]]
    } | {
        "load_s": _mean(load_s, "submission to the first map's start"),
        "map_gpu_s": _mean(kernel_s, f"KERNEL_NS of all maps; {device}"),
        "gpu_block_bytes": _mean(
            [float(block_bytes)] if block_bytes else [], "argument of the workload"
        ),
        "map_s": _mean(mapper_s, "spans: mapper without reading, blocking and the device's steps"),
        "reduce_s": _reduce_s(jobs, device.speed),
    }
    return {name: statistic for name, statistic in statistics.items() if statistic is not None}


def _reduce_s(jobs: Sequence[Observation], speed: SpeedCorrection) -> Statistic | None:
    """Of spans where each reduce of each job has them, else the history's last phase of reduces."""
    recorded_s, last_s = list[float](), list[float]()
    jobs = [job for job in jobs if job.trace.succeeded("reduce")]
    for job in jobs:
        reduces = job.trace.succeeded("reduce")
        ids = {attempt.attempt_id for attempt in reduces}
        function_s = {
            task.attempt_id: task.function_s
            for task in job.task_times
            if isinstance(task, ReduceTimes)
            and task.function_s is not None
            and task.attempt_id in ids
        }
        if function_s.keys() == ids:
            recorded_s.append(job.at_reference(math.fsum(function_s.values()), speed))
        phase_s = math.fsum(a.finish_s - (a.sort_finish_s or a.finish_s) for a in reduces)
        last_s.append(job.at_reference(phase_s, speed))
    if len(recorded_s) == len(jobs):
        return _mean(recorded_s, "spans: reduce function of all reduces")
    return _mean(last_s, "job history: last phase of all reduces, with its writing")


def _sum(kind: TaskKind, counter: str) -> Callable[[Observation], float]:
    """Sum of *counter* over the tasks of *kind* that succeeded."""

    def total(observation: Observation) -> float:
        attempts = observation.trace.succeeded(kind)
        return math.fsum(attempt.counters.get(counter, 0) for attempt in attempts)

    return total


def _map_bytes(observation: Observation) -> float:
    written = f"{FILE_OUTPUT_COUNTER}.BYTES_WRITTEN"
    counter = f"{TASK_COUNTER}.MAP_OUTPUT_BYTES" if observation.trace.num_reduces else written
    return _sum("map", counter)(observation)


def _spilled(observation: Observation) -> float:
    """Records that the maps spilled for the first time: with several spills they count again."""
    return math.fsum(
        min(
            attempt.counters.get(f"{TASK_COUNTER}.{name}", 0)
            for name in ("SPILLED_RECORDS", "MAP_OUTPUT_RECORDS")
        )
        for attempt in observation.trace.succeeded("map")
    )


_DATAFLOW: Mapping[str, tuple[str, bool, Callable[[Observation], float]]] = {
    # name: what is summed, whether map-only jobs have it, how
    "test_input_bytes": ("BYTES_READ", True, _sum("map", f"{FILE_INPUT_COUNTER}.BYTES_READ")),
    "test_num_maps": ("maps", True, lambda job: float(len(job.trace.succeeded("map")))),
    "test_map_bytes": ("MAP_OUTPUT_BYTES", True, _map_bytes),
    "test_map_spilled_records": ("SPILLED_RECORDS", True, _spilled),
    "test_map_output_bytes": (
        "REDUCE_SHUFFLE_BYTES", False, _sum("reduce", f"{TASK_COUNTER}.REDUCE_SHUFFLE_BYTES"),
    ),
    "test_reduce_bytes": (
        "HDFS_BYTES_WRITTEN", False, _sum("reduce", f"{FILE_SYSTEM_COUNTER}.HDFS_BYTES_WRITTEN"),
    ),
}  # fmt: skip


def _mean(values: Sequence[float], what: str) -> Statistic | None:
    if not values:
        return None
    return Statistic(
        value=math.fsum(values) / len(values),
        count=len(values),
        spread=standard_deviation(values),
        source=f"{what}, smallest profiled cell",
    )


def _count(attempt: TaskAttempt, name: str) -> float:
    return float(attempt.counters.get(f"{DEVICE_COUNTER}.{name}", 0))


def _devices(observation: Observation, kind: TaskKind) -> tuple[str, ...]:
    return devices(attempt.counters for attempt in observation.trace.succeeded(kind))
