"""What a machine costs, and on what that was measured: `hardware.json`."""

from __future__ import annotations

import math

from collections.abc import Callable
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from harness.base.records.trial import LATEST_S, Moment, Record


def interval(value: float, half_width: float) -> dict[str, float]:
    """The ends of an interval about *value*, which no cost has below 0; none if it has no width."""
    if not math.isfinite(half_width):
        return {}
    return {"low": max(0.0, value - half_width), "high": value + half_width}


class Cost(Record):
    """
    One cost of a machine with its 90 % interval, in *unit*; without ends too few jobs show it.

    *micro* is what a measurement without a job says, if one was made, and *agree* whether that lies
    within the interval.  *group* names the costs from which the design could not tell this one
    apart.  *trials* is how many jobs show it; *without* is its value where one trial, or one start
    of the cluster, is left out: those of all costs together say how their errors go together.
    """

    value: float = Field(ge=0)
    low: float | None = Field(default=None, ge=0)
    high: float | None = Field(default=None, ge=0)
    unit: str
    trials: int = 0
    source: str
    micro: float | None = None
    agree: bool | None = None
    group: tuple[str, ...] = ()
    without: dict[str, float] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _holds_its_value(self) -> Cost:
        if (self.low is None) != (self.high is None):
            raise ValueError("the interval has one end: give both, or neither")
        low = self.low or 0.0
        high = math.inf if self.high is None else self.high
        if not low <= self.value <= high:
            raise ValueError(f"the interval {low} to {high} lacks its value {self.value}")
        return self

    def changed(self, change: Callable[[float], float]) -> Cost:
        """The same with its value, its interval and its values without a trial changed."""
        ends = {
            name: change(value)
            for name in ("value", "low", "high")
            if (value := getattr(self, name)) is not None
        }
        without = {unit: change(value) for unit, value in self.without.items()}
        return self.model_copy(update={**ends, "without": without})


class MachineCosts(Record):
    """
    `hardware.json`: the *costs* of a machine, and its *frame*, by the names of `records.profile`.

    *conditions* are the facts it was measured on, by dotted names; *chosen* the jobs that were run,
    in their order, each with what it was expected to tell and what it took.  *reference_rate* is
    the median rate of the speed probe beside them: costs are those of a machine that is as fast.
    """

    schema_version: Literal[2] = 2
    measured_s: Moment
    budget_s: float = 0.0
    spent_s: float = 0.0
    reference_rate: float | None = Field(default=None, gt=0)
    conditions: dict[str, Any] = Field(default_factory=dict)
    costs: dict[str, Cost]
    frame: dict[str, Cost] = Field(default_factory=dict)
    chosen: tuple[dict[str, Any], ...] = ()

    @field_validator("chosen")
    @classmethod
    def _are_jobs(cls, chosen: tuple[dict[str, Any], ...]) -> tuple[dict[str, Any], ...]:
        """Refuse what pages cannot show: a job without its trial, its reason, or its seconds."""
        for job in chosen:
            is_named = all(isinstance(job.get(name), str) for name in ("trial", "reason"))
            took_s = job.get("seconds")
            if not (is_named and isinstance(took_s, int | float) and abs(took_s) < LATEST_S):
                raise ValueError("a job has a trial, a reason, and the seconds that it took")
        return chosen

    def changed(self, change: Callable[[Cost], Cost]) -> MachineCosts:
        """The same with each of its costs, and each part of its frame, changed."""
        costs = {name: change(cost) for name, cost in self.costs.items()}
        frame = {name: change(cost) for name, cost in self.frame.items()}
        return self.model_copy(update={"costs": costs, "frame": frame})

    def frame_beside(self, machine: MachineCosts) -> dict[str, float]:
        """How many times as long each part of the frame takes as on another *machine*."""
        return {
            name: cost.value / machine.frame[name].value
            for name, cost in self.frame.items()
            if name in machine.frame and machine.frame[name].value > 0
        }
