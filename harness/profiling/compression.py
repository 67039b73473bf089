"""
Compression ratios: 1 where compression is off, measured where trials with and without it exist.

A ratio that cannot be measured is absent, and the observations that would need it are left out:
their counters mix dataflow and codec (``docs/models/README.md``, section 4).
"""

from __future__ import annotations

import math

from collections.abc import Sequence

from harness.profiling.dataflow import Ratios
from harness.profiling.observation import Observation
from harness.records.profile import Statistic
from harness.records.trace import FILE_OUTPUT_COUNTER, TASK_COUNTER, TaskKind

_NAMES = ("input_compression_ratio", "map_output_compression_ratio", "output_compression_ratio")
# Bytes for each byte or record, with which compression shows: of tasks of a kind, two counters.
_DENSITIES: dict[str, tuple[TaskKind, str, str]] = {
    "map_output_compression_ratio": (
        "map",
        f"{TASK_COUNTER}.MAP_OUTPUT_MATERIALIZED_BYTES",
        f"{TASK_COUNTER}.MAP_OUTPUT_BYTES",
    ),
    "output_compression_ratio": (
        "reduce",
        f"{FILE_OUTPUT_COUNTER}.BYTES_WRITTEN",
        f"{TASK_COUNTER}.REDUCE_OUTPUT_RECORDS",
    ),
}


def compression_ratios(observations: Sequence[Observation]) -> dict[str, Statistic]:
    """Ratios that the observations give, by the models' names."""
    ratios = {}
    for place, name in enumerate(_NAMES):
        jobs_with = [one for one in observations if _compressed(one)[place]]
        jobs_without = [one for one in observations if not _compressed(one)[place]]
        value, source = 1.0, "compression is off"
        if jobs_with:
            if name not in _DENSITIES or not jobs_without:
                continue
            kind, top, bottom = _DENSITIES[name]
            densities = []
            for jobs in (jobs_with, jobs_without):
                attempts = [attempt for job in jobs for attempt in job.trace.succeeded(kind)]
                top_sum, bottom_sum = (
                    math.fsum(attempt.counters.get(counter, 0) for attempt in attempts)
                    for counter in (top, bottom)
                )
                densities.append(top_sum / bottom_sum if bottom_sum else 0.0)
            if not all(densities):
                continue
            value = densities[0] / densities[1]
            source = f"{top.rpartition('.')[2]} / {bottom.rpartition('.')[2]} of {len(jobs_with)}"
            source += f" trials with and {len(jobs_without)} without compression"
        ratios[name] = Statistic(value=value, count=len(observations), spread=0.0, source=source)
    return ratios


def ratios_of(observation: Observation, known: dict[str, Statistic]) -> Ratios | None:
    """Ratios that hold for one observation; `None` where it needs one that is not known."""
    flags = dict(zip(_NAMES, _compressed(observation), strict=True))
    if any(is_on and name not in known for name, is_on in flags.items()):
        return None
    return Ratios(*(known[name].value if is_on else 1.0 for name, is_on in flags.items()))


def _compressed(observation: Observation) -> tuple[bool, bool, bool]:
    """Whether the job's input, map output and output are compressed."""
    config = observation.config
    return config.input_compressed, config.map_output_compressed, config.output_compressed
