"""
What SPN-GC asks of a job whose maps compute on a device: its test job, and the device's rates.

The jobs themselves tell, by the counters of the group `Device`: bytes and nanoseconds of each step
(of a GPU by its own clock), and on which kind of device it was done.  Where the processor stood in
for a GPU every source says ``device=cpu``, and `gpu_stand_in` is 1.

The test job is the smallest profiled cell, all its jobs together (``docs/models/spn-gc.md``,
section 2).  What nothing tells is absent.

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

from collections.abc import Callable, Iterable, Mapping, Sequence

from harness.profiling.dataflow import pooled
from harness.profiling.observation import Observation
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

    Seconds of the processor are at reference speed, a GPU's as it told them.  *warnings* says where
    devices of both kinds were used, which have no rate in common.
    """
    used = [o for o in observations if _devices(o, "map")]
    kinds = {kind for o in used for kind in _devices(o, "map")}
    if len(kinds) > 1:
        warnings.append("maps used GPUs and processors: profile with one kind of device")
    if len(kinds) != 1:
        return {}
    (kind,) = kinds
    device = _Device(kind, speed)
    on_device = float(any(_devices(o, "reduce") for o in used))
    return {
        "gpu_stand_in": _plain(float(kind == CPU), len(used), f"counters DEVICE_*; {device}"),
        "reduce_uses_gpu": _plain(on_device, len(used), "counters of reduces"),
        **device.rates(used),
        **_test_job(used, device),
    }


class _Device:
    """A kind of device, and what its seconds are worth."""

    def __init__(self, kind: str, speed: SpeedCorrection) -> None:
        self.kind, self.speed = kind, speed

    def __str__(self) -> str:
        return "device=cuda" if self.kind == CUDA else "device=cpu, in the place of a GPU"

    def seconds(self, observation: Observation, task: TaskAttempt, *names: str) -> float:
        """Seconds of the device in *task*, at reference speed where it is the processor."""
        measured = sum(_count(task, name) for name in names) / 1e9
        return measured if self.kind == CUDA else self.at_reference(observation, measured)

    def at_reference(self, observation: Observation, seconds: float) -> float:
        """Seconds of the processor at reference speed."""
        rate = observation.rate
        return self.speed.at_reference(seconds, rate) if rate else seconds

    def rates(self, used: Sequence[Observation]) -> dict[str, Statistic]:
        """Of copies, of the device's memory, and what opening the device takes."""
        asked: dict[str, tuple[str, Callable[[Observation, TaskAttempt], tuple[float, float]]]] = {
            "gpu_h2d_bps": (
                "BYTES_IN / H2D_NS",
                lambda o, a: (_count(a, "BYTES_IN"), self.seconds(o, a, "H2D_NS")),
            ),
            "gpu_d2h_bps": (
                "BYTES_OUT / D2H_NS",
                lambda o, a: (_count(a, "BYTES_OUT"), self.seconds(o, a, "D2H_NS")),
            ),
            "gpu_mem_read_bps": (
                "MEM_READ_BPS, measured by the job",
                lambda _, a: (rate := _count(a, "MEM_READ_BPS"), float(rate > 0)),
            ),
            "gpu_open_s": (
                "OPEN_NS and ALLOC_NS of a map",
                lambda o, a: (self.seconds(o, a, "OPEN_NS", "ALLOC_NS"), 1.0),
            ),
        }
        found = {}
        for name, (text, pair) in asked.items():
            tasks = [(a.host, pair(o, a)) for o in used for a in o.trace.succeeded("map")]
            # A device that gives nothing back, or copies in no time at all, has no rate.
            told = [(host, p) for host, p in tasks if min(p) > 0]
            if told:
                found[name] = pooled(told, f"{text} over {len(told)} maps; {self}")
        return found


def _test_job(used: Sequence[Observation], device: _Device) -> dict[str, Statistic]:
    smallest = min(used, key=lambda o: (o.job_input.input_bytes, o.trial.cell.id))
    jobs = [o for o in used if o.trial.cell.id == smallest.trial.cell.id]
    told = {name: _told(name, jobs, of) for name, of in _DATAFLOW.items()}
    told["load_s"] = _mean(
        [device.at_reference(o, _load_s(o)) for o in jobs], "submission to the first map's start"
    )
    told["map_gpu_s"] = _mean(
        [
            math.fsum(device.seconds(o, a, "KERNEL_NS") for a in o.trace.succeeded("map"))
            for o in jobs
        ],
        f"KERNEL_NS of all maps; {device}",
    )
    if block := smallest.job_input.gpu_block_bytes:
        told["gpu_block_bytes"] = _mean([float(block)], "argument of the workload")
    told["map_s"] = _mean(
        [device.at_reference(o, s) for o in jobs for s in _map_functions(o)],
        "spans: mapper without reading, blocking and the device's steps",
    )
    told["reduce_s"] = _reduce_s(jobs, device)
    return {name: value for name, value in told.items() if value is not None}


def _load_s(observation: Observation) -> float:
    trace = observation.trace
    return max(0.0, trace.succeeded("map")[0].start_s - trace.submit_s)


def _map_functions(observation: Observation) -> Iterable[float]:
    """Seconds of the mapper of each recorded map, less what another phase of the model has."""
    done = {a.attempt_id: a for a in observation.trace.succeeded("map")}
    for task in observation.inside:
        attempt = done.get(task.attempt_id)
        if not isinstance(task, MapTimes) or attempt is None or task.loop_s is None:
            continue
        steps = sum(_count(attempt, name) for name in _STEPS) / 1e9
        yield max(0.0, task.loop_s - (task.read_s or 0.0) - (task.blocked_s or 0.0) - steps)


def _reduce_s(jobs: Sequence[Observation], device: _Device) -> Statistic | None:
    """Of spans where each reduce of each job has them, else the history's last phase of reduces."""
    jobs = [o for o in jobs if o.trace.succeeded("reduce")]
    if not jobs:
        return None
    recorded = [_functions(o) for o in jobs]
    if None not in recorded:
        times = [
            device.at_reference(o, s) for o, s in zip(jobs, recorded, strict=True) if s is not None
        ]
        return _mean(times, "spans: reduce function of all reduces")
    last = [
        device.at_reference(
            o, math.fsum(a.finish_s - (a.sort_finish_s or a.finish_s) for a in done)
        )
        for o in jobs
        if (done := o.trace.succeeded("reduce"))
    ]
    return _mean(last, "job history: last phase of all reduces, with its writing")


def _functions(observation: Observation) -> float | None:
    """Seconds of the reduce function in all reduces; `None` where one was not recorded."""
    done = {a.attempt_id for a in observation.trace.succeeded("reduce")}
    told = {
        t.attempt_id: t.function_s
        for t in observation.inside
        if isinstance(t, ReduceTimes) and t.function_s is not None and t.attempt_id in done
    }
    return math.fsum(told.values()) if told.keys() == done else None


def _sum(kind: str, *counters: str) -> Callable[[Observation], float]:
    """Sum of the first of *counters* that tasks of *kind* have, over all of them."""

    def total(observation: Observation) -> float:
        tasks = [a for a in observation.trace.attempts if a.kind == kind and a.state == "succeeded"]
        return math.fsum(
            next((a.counters[c] for c in counters if c in a.counters), 0) for a in tasks
        )

    return total


def _map_bytes(observation: Observation) -> float:
    written = f"{FILE_OUTPUT_COUNTER}.BYTES_WRITTEN"
    counter = f"{TASK_COUNTER}.MAP_OUTPUT_BYTES" if observation.trace.num_reduces else written
    return _sum("map", counter)(observation)


def _spilled(observation: Observation) -> float:
    """Records that the maps spilled for the first time: with several spills they count again."""
    return math.fsum(
        min(
            a.counters.get(f"{TASK_COUNTER}.{n}", 0)
            for n in ("SPILLED_RECORDS", "MAP_OUTPUT_RECORDS")
        )
        for a in observation.trace.succeeded("map")
    )


_Of = Callable[[Observation], float]
_DATAFLOW: Mapping[str, tuple[str, bool, _Of]] = {
    # name: what is summed, whether map-only jobs have it, how
    "test_input_bytes": ("BYTES_READ", True, _sum("map", f"{FILE_INPUT_COUNTER}.BYTES_READ")),
    "test_num_maps": ("maps", True, lambda o: float(len(o.trace.succeeded("map")))),
    "test_map_bytes": ("MAP_OUTPUT_BYTES", True, _map_bytes),
    "test_map_spilled_records": ("SPILLED_RECORDS", True, _spilled),
    "test_map_output_bytes": (
        "REDUCE_SHUFFLE_BYTES", False, _sum("reduce", f"{TASK_COUNTER}.REDUCE_SHUFFLE_BYTES"),
    ),
    "test_reduce_bytes": (
        "HDFS_BYTES_WRITTEN", False, _sum("reduce", f"{FILE_SYSTEM_COUNTER}.HDFS_BYTES_WRITTEN"),
    ),
}  # fmt: skip


def _told(name: str, jobs: Sequence[Observation], of: tuple[str, bool, _Of]) -> Statistic | None:
    text, map_only, value = of
    chosen = [o for o in jobs if map_only or o.trace.num_reduces]
    found = [value(o) for o in chosen]
    # No test job without input: nothing could be scaled by it.
    return _mean([v for v in found if v > 0 or name != "test_input_bytes"], f"{text} of the job")


def _mean(values: Sequence[float], what: str) -> Statistic | None:
    if not values:
        return None
    return Statistic(
        value=math.fsum(values) / len(values),
        count=len(values),
        spread=standard_deviation(values),
        source=f"{what}, smallest profiled cell",
    )


def _plain(value: float, count: int, source: str) -> Statistic:
    return Statistic(value=value, count=count, spread=0.0, source=source)


def _count(attempt: TaskAttempt, name: str) -> float:
    return float(attempt.counters.get(f"{DEVICE_COUNTER}.{name}", 0))


def _devices(observation: Observation, kind: TaskKind) -> tuple[str, ...]:
    return devices(a.counters for a in observation.trace.succeeded(kind))
