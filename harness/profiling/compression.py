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
_Density = tuple[TaskKind, str, str]

_MAP_OUTPUT: _Density = (
    "map",
    f"{TASK_COUNTER}.MAP_OUTPUT_MATERIALIZED_BYTES",
    f"{TASK_COUNTER}.MAP_OUTPUT_BYTES",
)
_OUTPUT: _Density = (
    "reduce",
    f"{FILE_OUTPUT_COUNTER}.BYTES_WRITTEN",
    f"{TASK_COUNTER}.REDUCE_OUTPUT_RECORDS",
)


def compression_ratios(observations: Sequence[Observation]) -> dict[str, Statistic]:
    """Ratios that the observations give, by the models' names."""
    ratios = {}
    for place, (name, density) in enumerate(zip(_NAMES, (None, _MAP_OUTPUT, _OUTPUT), strict=True)):
        ratio = _ratio(observations, place, density)
        if ratio is not None:
            ratios[name] = ratio
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


def _ratio(
    observations: Sequence[Observation], place: int, density: _Density | None
) -> Statistic | None:
    on = [observation for observation in observations if _compressed(observation)[place]]
    off = [observation for observation in observations if not _compressed(observation)[place]]
    if not on:
        return Statistic(value=1.0, count=len(off), spread=0.0, source="compression is off")
    if density is None or not off:
        return None
    kind, top, bottom = density
    densities = []
    for chosen in (on, off):
        attempts = [a for observation in chosen for a in observation.trace.succeeded(kind)]
        top_sum, bottom_sum = (
            math.fsum(attempt.counters.get(counter, 0) for attempt in attempts)
            for counter in (top, bottom)
        )
        densities.append(top_sum / bottom_sum if bottom_sum else 0.0)
    if not all(densities):
        return None
    top, bottom = top.rpartition(".")[2], bottom.rpartition(".")[2]
    return Statistic(
        value=densities[0] / densities[1],
        count=len(on) + len(off),
        spread=0.0,
        source=f"{top} / {bottom} of {len(on)} trials with and {len(off)} without compression",
    )
