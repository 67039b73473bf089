"""
Costs as rows that can be told apart, and two machines side by side.

Costs that the jobs of a calibration could not tell apart are one row: what they take together for a
reference task, which the fit knows well, whatever share of it each has.  Two machines are compared
by ratios, so intervals are those of logarithms.
"""

from __future__ import annotations

import math

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from harness.base.records.hardware import Cost, MachineCosts, interval
from harness.base.stats.resampling import jackknife_variance
from harness.base.units import MIB
from harness.observe.profiling.platform import (
    FEWEST,
    LEVEL,
    MapAmounts,
    copying_counts,
    map_counts,
    writing_counts,
)

# What a reference task works on: a group of costs is the seconds that this takes by all of them.
REFERENCE_BYTES = 64 * MIB
_RECORDS = REFERENCE_BYTES / 100
_SEGMENTS = 8
RATIO_LEVEL = 0.99  # of the intervals of ratios: some twenty are looked at together
UNSURE = 3.0  # times: twice was seen on one disk where nothing had changed
_LEAST_REPLICATE = 0.01  # of a cost: one that is 0 without a trial has no logarithm


def _reference_counts() -> dict[str, float]:
    """How often each cost counts in a reference task, which reads, spills, merges and writes."""
    amounts = MapAmounts(
        input_bytes=REFERENCE_BYTES,
        input_records=_RECORDS,
        output_bytes=REFERENCE_BYTES,
        output_records=_RECORDS,
        sorted_levels=_RECORDS * math.log2(_RECORDS),
        spill_bytes=[REFERENCE_BYTES],
        merged_bytes=REFERENCE_BYTES,
    )
    counts = dict[str, float]()
    for part_counts in map_counts(amounts).values():
        counts |= part_counts
    counts |= copying_counts(REFERENCE_BYTES, _SEGMENTS)
    return counts | writing_counts(REFERENCE_BYTES, _RECORDS, copies=2)


_REFERENCE = _reference_counts()


@dataclass(frozen=True)
class CostRow:
    """
    One cost of a machine, or the *names* of a group, in *unit* of a single cost.

    *value* with its 90 % interval; of a group they are seconds of a reference task.  *without* are
    its values without one trial each, and *trials* the jobs that show it.  *micro* is the single
    cost without a job, and *agree* whether that lies in the interval.
    """

    names: tuple[str, ...]
    value: float
    low: float | None
    high: float | None
    unit: str
    trials: int
    without: tuple[float, ...] = ()
    micro: float | None = None
    agree: bool | None = None

    @property
    def is_group(self) -> bool:
        """Whether it stands for several costs."""
        return len(self.names) > 1

    @property
    def name(self) -> str:
        """Its name; of a group all of them."""
        return " + ".join(self.names)

    @classmethod
    def of(cls, names: Sequence[str], costs: Mapping[str, Cost]) -> CostRow:
        """The row of the costs *names*, of which one may lack its group."""
        if len(names) == 1:
            cost = costs[names[0]]
            without = tuple(cost.without.values())
            return cls(
                tuple(names),
                cost.value,
                cost.low,
                cost.high,
                cost.unit,
                cost.trials,
                without,
                cost.micro,
                cost.agree,
            )
        members = [costs[name] for name in names]
        weights = [_REFERENCE.get(name, 1.0) for name in names]
        value = _weighted(weights, [cost.value for cost in members])
        units = [*members[0].without]
        without = ()
        if all(cost.without.keys() == members[0].without.keys() for cost in members):
            without = tuple(
                _weighted(weights, [cost.without[unit] for cost in members]) for unit in units
            )
        ends = interval(value, _half_width(without))
        trials = min(cost.trials for cost in members)
        return cls(tuple(names), value, ends.get("low"), ends.get("high"), "s", trials, without)


def _weighted(weights: Sequence[float], values: Sequence[float]) -> float:
    return math.fsum(weight * value for weight, value in zip(weights, values, strict=True))


def _half_width(replicates: Sequence[float]) -> float:
    """Half the 90 % interval of a number that has these values without one trial each."""
    from scipy.special import stdtrit

    if len(replicates) < FEWEST:
        return math.inf
    times = float(stdtrit(len(replicates) - 1, (1 + LEVEL) / 2))
    return times * math.sqrt(jackknife_variance(np.array(replicates)))


def all_costs(machine: MachineCosts) -> dict[str, Cost]:
    """Costs of *machine* with those of its frame, by name."""
    return {**machine.costs, **machine.frame}


def groups_of(machines: Iterable[MachineCosts]) -> dict[str, list[str]]:
    """By the name of a cost, those that some of *machines* does not tell apart from it, with it."""
    joined = dict[str, list[str]]()
    for machine in machines:
        for name, cost in all_costs(machine).items():
            for other in (name, *cost.group):
                members = joined.setdefault(name, [name])
                others = joined.setdefault(other, [other])
                if members is not others:
                    members += others
                    joined |= dict.fromkeys(others, members)
    return joined


def rows_of(machine: MachineCosts, groups: Mapping[str, list[str]]) -> Iterator[CostRow]:
    """Yield the costs of *machine* in their order, each group once."""
    costs = all_costs(machine)
    shown = set[str]()
    for name in costs:
        if name not in shown:
            members = [member for member in costs if member in groups[name]]
            shown |= {*members}
            yield CostRow.of(members, costs)


@dataclass(frozen=True)
class CostPair:
    """
    A cost, or a group of them, of *one* machine and of an*other*, in *unit*.

    *ratio* is the other's over the one's, with the 99 % interval *low* to *high*; without a *high*
    (for a ratio below 1 without a *low*) no more is known than the other end.  *verdict*: it
    `differs`, the ratio is `within their intervals`, or they `cannot tell`.
    """

    names: tuple[str, ...]
    one: float
    other: float
    unit: str
    ratio: float | None
    low: float | None
    high: float | None
    verdict: str

    @property
    def name(self) -> str:
        """Its name; of a group all of them."""
        return " + ".join(self.names)

    @classmethod
    def of(cls, old: CostRow, new: CostRow) -> CostPair:
        """Two rows of the same costs side by side."""
        ratio = new.value / old.value if old.value else None
        if not old.value and not new.value:
            ratio = 1.0
        low, high = _ratio_ends(old, new)
        verdict = "cannot tell"
        if (low is not None and low > 1) or (high is not None and high < 1):
            verdict = "differs"
        elif low is not None and high is not None:
            verdict = "within their intervals"
        return cls(new.names, old.value, new.value, new.unit, ratio, low, high, verdict)

    def document(self) -> dict[str, Any]:
        """The pair as JSON has it, in SI units."""
        return {"name": self.name, **vars(self), "names": [*self.names]}


def _ratio_ends(old: CostRow, new: CostRow) -> tuple[float | None, float | None]:
    """
    Ends of the interval of a ratio; of one that is not known well enough the one that is.

    With both intervals it is Welch's, of logarithms.  Where that is too wide to tell, or there is
    none, costs are taken to repeat within a factor: `UNSURE` of the ratio where no interval is
    known, `UNSURE` of either cost where both are.
    """
    if not (old.value > 0 and new.value > 0):
        return _ends_beside_nothing(old, new)
    ratio = new.value / old.value
    half = _log_half_width(old, new)
    if half is not None and half <= math.log(UNSURE):
        return ratio * math.exp(-half), ratio * math.exp(half)
    widest = math.log(UNSURE) if half is None else min(half, 2 * math.log(UNSURE))
    if math.log(ratio) > widest:
        return ratio * math.exp(-widest), None
    if math.log(ratio) < -widest:
        return None, ratio * math.exp(widest)
    return _ends_without_jobs(old, new)


def _ends_beside_nothing(old: CostRow, new: CostRow) -> tuple[float | None, float | None]:
    """The same where one of the costs is 0: as much as their intervals leave open."""
    if not old.value and not new.value:
        return 1.0, 1.0
    if not old.value and old.high and new.low and new.low > old.high:
        return new.low / old.high, None
    if not new.value and new.high and old.low and old.low > new.high:
        return None, new.high / old.low
    return None, None


def _ends_without_jobs(old: CostRow, new: CostRow) -> tuple[float | None, float | None]:
    """The same by rates of disks and networks without a job, where these are far apart."""
    if old.micro and new.micro:
        ratio = new.micro / old.micro
        if ratio > UNSURE:
            return ratio / UNSURE, None
        if ratio < 1 / UNSURE:
            return None, ratio * UNSURE
    return None, None


def _log_half_width(old: CostRow, new: CostRow) -> float | None:
    """Half the 99 % interval of the logarithm of a ratio; `None` where one has no interval."""
    from scipy.special import stdtrit

    known = [_log_error(old), _log_error(new)]
    errors = [error for error in known if error is not None]
    if len(errors) < len(known):
        return None
    variance = math.fsum(own_variance for own_variance, _ in errors)
    if not variance:
        return 0.0
    spread = math.fsum(own_variance**2 / freedom for own_variance, freedom in errors)
    return float(stdtrit(variance**2 / spread, (1 + RATIO_LEVEL) / 2)) * math.sqrt(variance)


def _log_error(row: CostRow) -> tuple[float, float] | None:
    """Variance of the logarithm of a cost, and its degrees of freedom; `None`: not known."""
    from scipy.special import stdtrit

    count = len(row.without)
    if count >= FEWEST:
        values = np.maximum(row.without, _LEAST_REPLICATE * row.value)
        return float(jackknife_variance(np.log(values))), count - 1
    if row.high is None:
        return None
    freedom = max(row.trials - 1, 1) if row.trials else 1e6  # an interval that is given as such
    half = (row.high - row.value) / row.value
    return (half / float(stdtrit(freedom, (1 + LEVEL) / 2))) ** 2, freedom


def pairs(old: MachineCosts, new: MachineCosts) -> list[CostPair]:
    """Each cost, or group, that both machines have, and whether it differs."""
    groups = groups_of([old, new])
    common = all_costs(old).keys() & all_costs(new).keys()
    compared = list[CostPair]()
    shown = set[str]()
    for name in all_costs(old):
        if name in common and name not in shown:
            members = [member for member in all_costs(old) if member in {*groups[name]} & common]
            shown |= {*members}
            rows = [CostRow.of(members, all_costs(machine)) for machine in (old, new)]
            compared.append(CostPair.of(*rows))
    return compared
