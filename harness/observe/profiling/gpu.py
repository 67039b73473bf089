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

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from harness.base.records.profile import SpeedCorrection, Statistic
from harness.base.records.tasks import MapTimes, ReduceTimes
from harness.base.records.trace import (
    CPU,
    CUDA,
    DEVICE_COUNTER,
    FILE_OUTPUT_COUNTER,
    FILE_SYSTEM_COUNTER,
    TaskAttempt,
    TaskKind,
    devices,
)
from harness.base.stats.spread import standard_deviation
from harness.observe.profiling.dataflow import Pair, pooled
from harness.observe.profiling.jobs import Observation

_STEPS = ("H2D_NS", "KERNEL_NS", "D2H_NS")
_RATES = {
    "gpu_h2d_bps": "BYTES_IN / H2D_NS",
    "gpu_d2h_bps": "BYTES_OUT / D2H_NS",
    "gpu_mem_read_bps": "MEM_READ_BPS, measured by the job",
    "gpu_open_s": "OPEN_NS and ALLOC_NS of a map",
}


@dataclass(frozen=True, slots=True)
class _Device:
    """The kind of device that all maps used, and the speed of the machine around it."""

    kind: str
    speed: SpeedCorrection

    @property
    def text(self) -> str:
        """What each source says of it."""
        return "device=cuda" if self.kind == CUDA else "device=cpu, instead of a GPU"

    def seconds(self, job: Observation, attempt: TaskAttempt, *counters: str) -> float:
        """Sum of *counters*: of a GPU as it reported them, of a processor at reference speed."""
        measured_s = sum(_count(attempt, counter) for counter in counters) / 1e9
        return measured_s if self.kind == CUDA else job.at_reference(measured_s, self.speed)


def gpu_statistics(
    observations: Sequence[Observation], speed: SpeedCorrection, warnings: list[str]
) -> dict[str, Statistic]:
    """
    All statistics of the test job and of the device, or nothing where no job's maps used a device.

    Seconds of the processor are at reference speed, a GPU's as it reported them.  *warnings* says
    where devices of both kinds were used, which have no rate in common.
    """
    device_jobs = [observation for observation in observations if _devices(observation, "map")]
    kinds = set[str]()
    for job in device_jobs:
        kinds |= {*_devices(job, "map")}
    if len(kinds) > 1:
        warnings.append("maps used GPUs and processors: profile with one kind of device")
    if len(kinds) != 1:
        return {}
    device = _Device(kinds.pop(), speed)
    reduces_use_it = float(any(_devices(job, "reduce") for job in device_jobs))
    stands_in = float(device.kind == CPU)
    count = len(device_jobs)
    return (
        {
            "gpu_stand_in": Statistic(
                value=stands_in,
                count=count,
                spread=0.0,
                source=f"counters DEVICE_*; {device.text}",
            ),
            "reduce_uses_gpu": Statistic(
                value=reduces_use_it, count=count, spread=0.0, source="counters of reduces"
            ),
        }
        | _device_rates(device_jobs, device)
        | _test_job(device_jobs, device)
    )


def _device_rates(jobs: Sequence[Observation], device: _Device) -> dict[str, Statistic]:
    """Rates of the device, and what opening it takes, over the maps of all *jobs*."""
    pairs: dict[str, list[tuple[str, Pair]]] = {name: [] for name in _RATES}
    for job in jobs:
        for attempt in job.trace.succeeded("map"):
            read_bps = _count(attempt, "MEM_READ_BPS")
            in_s = device.seconds(job, attempt, "H2D_NS")
            out_s = device.seconds(job, attempt, "D2H_NS")
            attempt_pairs = {
                "gpu_h2d_bps": (_count(attempt, "BYTES_IN"), in_s),
                "gpu_d2h_bps": (_count(attempt, "BYTES_OUT"), out_s),
                "gpu_mem_read_bps": (read_bps, float(read_bps > 0)),
                "gpu_open_s": (device.seconds(job, attempt, "OPEN_NS", "ALLOC_NS"), 1.0),
            }
            for name, pair in attempt_pairs.items():
                # A device that gives nothing back, or copies in no time at all, has no rate.
                if min(pair) > 0:
                    pairs[name].append((attempt.host, pair))
    return {
        name: pooled(pairs[name], f"{text} over {len(pairs[name])} maps; {device.text}")
        for name, text in _RATES.items()
        if pairs[name]
    }


def _test_job(device_jobs: Sequence[Observation], device: _Device) -> dict[str, Statistic]:
    """Statistics of the smallest profiled cell over its jobs; what none of them shows is absent."""
    smallest = min((job.job_input.input_bytes, job.trial.cell.id) for job in device_jobs)[1]
    jobs = [job for job in device_jobs if job.trial.cell.id == smallest]
    speed = device.speed
    block_bytes = float(jobs[0].job_input.gpu_block_bytes)
    load_s = []
    kernel_s = []
    mapper_s = list[float]()
    for job in jobs:
        maps = job.trace.succeeded("map")
        waited_s = max(0.0, maps[0].start_s - job.trace.submit_s)
        load_s.append(job.at_reference(waited_s, speed))
        kernel_s.append(math.fsum(device.seconds(job, task, "KERNEL_NS") for task in maps))
        mapper_s += _mapper_seconds(job, speed)
    reduce_s, reduce_source = _reduce_seconds(jobs, speed)
    measured = {name: (f"{text} of the job", values) for name, (text, values) in _dataflow(jobs)}
    measured |= {
        "load_s": ("submission to the first map's start", load_s),
        "map_gpu_s": (f"KERNEL_NS of all maps; {device.text}", kernel_s),
        "gpu_block_bytes": ("argument of the workload", [block_bytes] if block_bytes else []),
        "map_s": ("spans: mapper without reading, blocking and the device's steps", mapper_s),
        "reduce_s": (reduce_source, reduce_s),
    }
    return {
        name: Statistic(
            value=math.fsum(values) / len(values),
            count=len(values),
            spread=standard_deviation(values),
            source=f"{text}, smallest profiled cell",
        )
        for name, (text, values) in measured.items()
        if values
    }


def _mapper_seconds(job: Observation, speed: SpeedCorrection) -> Iterator[float]:
    """Yield the seconds of each recorded mapper, less what another phase of the model has."""
    for times, attempt in job.succeeded_times():
        if isinstance(times, MapTimes) and times.loop_s is not None:
            steps_s = sum(_count(attempt, counter) for counter in _STEPS) / 1e9
            loop_s = times.loop_s - (times.read_s or 0.0) - (times.blocked_s or 0.0) - steps_s
            yield job.at_reference(max(0.0, loop_s), speed)


def _reduce_seconds(jobs: Sequence[Observation], speed: SpeedCorrection) -> tuple[list[float], str]:
    """Seconds of all reduce functions of each job that has reduces, and where these are from."""
    recorded_s = list[float]()
    last_phase_s = list[float]()
    for job in jobs:
        reduces = {attempt.attempt_id: attempt for attempt in job.trace.succeeded("reduce")}
        if not reduces:
            continue
        function_s = {
            times.attempt_id: times.function_s
            for times, _ in job.succeeded_times()
            if isinstance(times, ReduceTimes) and times.function_s is not None
        }
        if function_s.keys() == reduces.keys():
            recorded_s.append(job.at_reference(math.fsum(function_s.values()), speed))
        phases_s = (
            task.finish_s - (task.sort_finish_s or task.finish_s) for task in reduces.values()
        )
        last_phase_s.append(job.at_reference(math.fsum(phases_s), speed))
    if len(recorded_s) < len(last_phase_s):
        return last_phase_s, "job history: last phase of all reduces, with its writing"
    return recorded_s, "spans: reduce function of all reduces"


def _dataflow(jobs: Sequence[Observation]) -> Iterator[tuple[str, tuple[str, list[float]]]]:
    """Yield what counters say of the test job: a statistic, and which counter, and its sums."""
    input_bytes = [
        math.fsum(attempt.input_bytes for attempt in job.trace.succeeded("map")) for job in jobs
    ]
    reducing = [job for job in jobs if job.trace.num_reduces]
    map_only = [job for job in jobs if not job.trace.num_reduces]
    map_bytes = _sums(reducing, "map", "MAP_OUTPUT_BYTES")
    map_bytes += _sums(map_only, "map", f"{FILE_OUTPUT_COUNTER}.BYTES_WRITTEN")
    # Records that were spilled for the first time: with several spills they count again.
    spilled = _sums(jobs, "map", "SPILLED_RECORDS", "MAP_OUTPUT_RECORDS")
    written = _sums(reducing, "reduce", f"{FILE_SYSTEM_COUNTER}.HDFS_BYTES_WRITTEN")
    # Nothing scales by no input.
    yield "test_input_bytes", ("BYTES_READ", [size for size in input_bytes if size])
    yield "test_num_maps", ("maps", [float(len(job.trace.succeeded("map"))) for job in jobs])
    yield "test_map_bytes", ("MAP_OUTPUT_BYTES", map_bytes)
    yield "test_map_spilled_records", ("SPILLED_RECORDS", spilled)
    shuffled = _sums(reducing, "reduce", "REDUCE_SHUFFLE_BYTES")
    yield "test_map_output_bytes", ("REDUCE_SHUFFLE_BYTES", shuffled)
    yield "test_reduce_bytes", ("HDFS_BYTES_WRITTEN", written)


def _sums(jobs: Sequence[Observation], kind: TaskKind, *counters: str) -> list[float]:
    """Sum over the tasks of *kind* of each job; of several *counters* the smallest counts."""
    return [
        math.fsum(
            min(attempt.count(counter) for counter in counters)
            for attempt in job.trace.succeeded(kind)
        )
        for job in jobs
    ]


def _count(attempt: TaskAttempt, counter: str) -> float:
    return float(attempt.count(f"{DEVICE_COUNTER}.{counter}"))


def _devices(observation: Observation, kind: TaskKind) -> tuple[str, ...]:
    return devices(attempt.counters for attempt in observation.trace.succeeded(kind))
