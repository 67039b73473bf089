"""
Compression ratios: 1 where compression is off, measured where trials with and without it exist.

A ratio that cannot be measured is absent, and the observations that would need it are left out:
their counters mix dataflow and codec (``docs/models/README.md``, section 4).
"""

from __future__ import annotations

import math

from collections.abc import Callable, Sequence

from harness.profiling.dataflow import Ratios
from harness.profiling.observation import Observation
from harness.records.profile import Statistic
from harness.records.trace import FILE_OUTPUT_COUNTER, TASK_COUNTER, TaskAttempt, TaskKind

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
    found = (
        _ratio(observations, lambda o: o.config.input_compressed, None),
        _ratio(observations, lambda o: o.config.map_output_compressed, _MAP_OUTPUT),
        _ratio(observations, lambda o: o.config.output_compressed, _OUTPUT),
    )
    return {name: ratio for name, ratio in zip(_NAMES, found, strict=True) if ratio is not None}


def ratios_of(observation: Observation, known: dict[str, Statistic]) -> Ratios | None:
    """Ratios that hold for one observation; `None` where it needs one that is not known."""
    config = observation.config
    on = (config.input_compressed, config.map_output_compressed, config.output_compressed)
    if any(flag and name not in known for flag, name in zip(on, _NAMES, strict=True)):
        return None
    values = [known[name].value if flag else 1.0 for flag, name in zip(on, _NAMES, strict=True)]
    return Ratios(*values)


def _ratio(
    observations: Sequence[Observation],
    compressed: Callable[[Observation], bool],
    density: _Density | None,
) -> Statistic | None:
    on = [o for o in observations if compressed(o)]
    off = [o for o in observations if not compressed(o)]
    if not on:
        return Statistic(value=1.0, count=len(off), spread=0.0, source="compression is off")
    if density is None or not off:
        return None
    with_codec, without = _bytes_each(on, density), _bytes_each(off, density)
    if not with_codec or not without:
        return None
    _, top, bottom = density
    return Statistic(
        value=with_codec / without,
        count=len(on) + len(off),
        spread=0.0,
        source=f"{top} / {bottom} of {len(on)} trials with and {len(off)} without compression",
    )


def _bytes_each(observations: Sequence[Observation], density: _Density) -> float:
    kind, top, bottom = density
    attempts = [a for o in observations for a in o.trace.succeeded(kind)]
    total = _sum(attempts, bottom)
    return _sum(attempts, top) / total if total else 0.0


def _sum(attempts: Sequence[TaskAttempt], counter: str) -> float:
    return math.fsum(a.counters.get(counter, 0) for a in attempts)
