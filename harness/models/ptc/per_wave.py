"""A time that each wave of maps has: the same for all waves, or one value for each."""

from __future__ import annotations

import math

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from harness.errors import ModelError
from harness.models.checks import check_number


@dataclass(frozen=True, slots=True)
class PerWave:
    """
    Seconds of *waves* waves, which count from 1: one number for all, or a tuple.

    *total* is the sum over all waves.
    """

    waves: int
    seconds: float | tuple[float, ...]

    @property
    def equal(self) -> bool:
        """Whether all waves have the same time."""
        return isinstance(self.seconds, float)

    @property
    def total(self) -> float:
        """Sum over all waves."""
        return self.between(0, self.waves)

    def between(self, after: int, last: int) -> float:
        """Sum over the waves behind wave *after* up to wave *last*."""
        if isinstance(self.seconds, float):
            return (last - after) * self.seconds
        return math.fsum(self.seconds[after:last])

    def of(self, wave: int) -> float:
        """Time of one wave."""
        return self.seconds if isinstance(self.seconds, float) else self.seconds[wave - 1]


def read_per_wave(
    name: str, value: Any, waves: int, *, where: str, from_second: bool = False
) -> PerWave:
    """
    *value* as the times of *waves* waves, 0 or more each.

    *from_second*: the first wave has none, and a list begins with the second.  ``ModelError`` for a
    list of another length.
    """
    if isinstance(value, str) or not isinstance(value, Sequence):
        return PerWave(waves, check_number(name, value, where=where))
    times = tuple(check_number(name, each, where=where) for each in value)
    expected = waves - from_second
    if len(times) != expected:
        raise ModelError(
            f"{name} has {len(times)} values, and {waves} waves of maps need {expected}",
            where=where,
        )
    return PerWave(waves, (0.0, *times) if from_second else times)
