"""What the nights of a history can show: where their variance comes from, and what would help."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cache
from math import isnan, nan
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np

from harness.base.errors import DataError
from harness.nightly.alarms import Judge, Table, tables
from harness.nightly.records import PROBE, Entry, Point
from harness.nightly.shifts import (
    CLIP,
    FACTORS,
    FALSE_ALARMS,
    FEWEST_NIGHTS,
    Numbers,
    clip_of,
    scan,
)

_WITHIN = (3, 10, 30)  # nights
_FIRST = (7, 14)  # nights of which a first week says what they will show
_SURE = 0.8
_SIZES = np.arange(0.5, 8.1, 0.25)  # of shifts, in standard deviations of a night
_TRIED = 200  # series of each size
_ONE_NIGHT = (
    "one night says nothing of how far nights lie apart: from the second on there is a first idea"
    " of the steps that will be seen"
)
_MEDIAN_SQUARE = 0.4549  # of a normal deviate
_LEVELS = ("what", "repeats", "repeat, %", "start, %", "night, %")


def diagnose(entries: Sequence[Entry], where: str) -> dict[str, Any]:
    """
    Tables of rows, in percent: `variance` by level, `shifts` that are seen, and what `helps`.

    `DataError` where too few nights of the last series can be compared; *where* they stand.
    """
    table = last_table(entries, where)
    judge = Judge(table)
    judge.judge()  # what is left of each factor after its last change
    variance = list[dict[str, str]]()
    helps = dict[str, str]()
    for name, nights in job_times(table):
        levels = levels_of(nights)
        texts = [_percent(share) for share in (levels.repeat, levels.start, levels.night)]
        variance.append(dict(zip(_LEVELS, (name, str(levels.repeats), *texts), strict=True)))
        helps |= gains_of(name, levels)
    shifts = list[dict[str, str]]()
    for place, factor in enumerate(judge.factors):
        column = judge.values[~np.isnan(judge.values[:, place]), place]
        if factor.kind in ("cost", "model") or len(column) < FEWEST_NIGHTS:
            continue
        clip = clip_of(len(factor.members))
        limits = smallest(len(column), clip, float(judge.thresholds[place]))
        shifts.append(shift_row(factor.name, float(column.std(ddof=1)), limits))
        if factor.kind in ("all", "workload"):
            cells = len(factor.members)
            helps[f"{factor.name}: a cell more"] = f"up to {_gain(cells / (cells + 1), 1.0)}"
    rate = FALSE_ALARMS * min(1.0, len(judge.factors) / FACTORS)
    return {
        "variance": variance,
        "shifts": shifts,
        "helps": [{"what": what, "spread of a night, %": gain} for what, gain in helps.items()],
        "false_alarms": f"{rate:.2f} false alarms a year, as simulated",
        "notes": table.notes,
    }


def first_week(entries: Sequence[Entry]) -> list[str]:
    """What few nights of the last series say already, and how many more show which step."""
    table = next(reversed(tables(entries)), None)
    if table is None or len(table.numbers) >= FEWEST_NIGHTS:
        return []
    if len(table.numbers) < 2:
        return [_ONE_NIGHT]
    judge = Judge(table)
    is_time = np.isin(judge.kinds, ("cell", "resource"))
    spreads = np.asarray([spread_of(column) for column in judge.values.T])
    is_usable = is_time & ~np.isnan(spreads)
    if not is_usable.any():
        return []
    spread = float(np.median(spreads[is_usable]))
    limit = float(np.max(judge.thresholds[is_usable]))
    steps = list[str]()
    for nights in _FIRST:
        (size,) = smallest(nights, CLIP, limit, within=_WITHIN[:1])
        text = f"of {_step(spread, size)}" if size else f"above {_step(spread, _SIZES[-1])}"
        steps.append(f"after {nights} nights steps {text}")
    basis = f"median of {is_usable.sum()}, by {len(table.numbers)} nights"
    text = f"cells and controls lie {_percent(spread**2)} % apart from night to night ({basis})"
    outlook = f"three nights will show {', '.join(steps)} in one of them"
    return [f"{text}; if they go on so, {outlook}"]


def spread_of(column: Numbers) -> float:
    """Standard deviation of the nights of a factor; NaN: there are not two."""
    known_values = column[~np.isnan(column)]
    return float(known_values.std(ddof=1)) if len(known_values) > 1 else nan


def _step(spread: float, size: float) -> str:
    return f"{100 * np.expm1(spread * size):.0f} %"


def last_table(entries: Sequence[Entry], where: str) -> Table:
    """The nights of the last series; `DataError`: they are too few."""
    table = next(reversed(tables(entries)), None)
    count = len(table.numbers) if table else 0
    if table is None or count < FEWEST_NIGHTS:
        what = f"{FEWEST_NIGHTS} whole nights are needed, and the last series has {count}"
        raise DataError(what, where=where, fix="measure more nights: harness nightly FILE")
    return table


def shift_row(name: str, spread: float, limits: Sequence[float | None]) -> dict[str, str]:
    """The smallest shifts of a factor that are seen, of which *limits* are in units of *spread*."""
    row = {"what": name, "a night": _percent(spread**2)}
    for within, size in zip(_WITHIN, limits, strict=True):
        text = f"{100 * np.expm1(spread * size):.1f}" if size else "none"
        row[f"within {within} nights"] = text
    return row


def job_times(table: Table) -> Iterator[tuple[str, list[Point]]]:
    """The nights of each job time and of the speed probe, with the name of its cell or quantity."""
    points = defaultdict[str, list[Point]](list)
    for night in table.nights:
        for point in night.points:
            points[point.name].append(point)
    for nights in points.values():
        first = nights[0]
        is_time = first.quantity == "job_s" and first.kind != "residual"
        if is_time or first.quantity == PROBE:
            yield first.cell or first.quantity, nights


def gains_of(name: str, levels: Levels) -> dict[str, str]:
    """By how much one repeat or one start more makes the spread of a night smaller."""
    spread = levels.repeat / levels.repeats + np.nan_to_num(levels.start) + levels.night
    less_repeat = levels.repeat / (levels.repeats + 1) + spread - levels.repeat / levels.repeats
    gains = {f"{name}: a repeat more": _gain(less_repeat, spread)}
    if not isnan(levels.start):
        less_start = spread - np.nan_to_num(levels.start) / 2
        gains[f"{name}: a start more"] = _gain(less_start, spread)
    return gains


@cache
def smallest(
    nights: int, clip: float, threshold: float, within: tuple[int, ...] = _WITHIN
) -> tuple[float | None, ...]:
    """
    Smallest shift, in standard deviations of a night, that 80 % of series show *within* nights.

    Simulated with so many *nights* before it; `None` where 8 deviations are not enough.
    """
    quiet = np.random.default_rng(2).standard_normal((nights + max(within), _TRIED))
    wide = np.tile(quiet, len(_SIZES))
    wide[nights:] += np.repeat(_SIZES, _TRIED)
    clips = np.full(wide.shape[1], clip)
    is_raised = np.zeros(wide.shape[1], bool)
    answers = list[float | None]()
    for night in range(nights + 1, len(wide) + 1):
        is_raised |= scan(wide[:night], clips).scores.max(axis=0) > threshold
        if night - nights in within:
            enough = is_raised.reshape(len(_SIZES), _TRIED).mean(axis=1) >= _SURE
            answers.append(float(_SIZES[enough.argmax()]) if enough.any() else None)
    return tuple(answers)


class Levels(NamedTuple):
    """Repeats of a night, and variances of logarithms between repeats, starts and nights."""

    repeats: int
    repeat: float
    start: float
    night: float


def levels_of(nights: Sequence[Point]) -> Levels:
    """
    Where the variance of a number comes from, of which *nights* are the points.

    NaN: no night has a second repeat, or a second start.  That of nights is by the differences of
    neighbours, because a change moves but one of them.
    """
    logs = [np.log(night.raw[: len(night.raw) - night.again]) for night in nights]
    groups = list[Numbers]()  # repeats on one start
    start_variances = list[float]()
    for point, values in zip(nights, logs, strict=True):
        starts = np.asarray(point.starts[: len(values)] or [0] * len(values))
        night_groups = [values[starts == start] for start in np.unique(starts)]
        groups += night_groups
        if len(night_groups) > 1:
            start_means = [group.mean() for group in night_groups]
            start_variances.append(float(np.var(start_means, ddof=1)))
    repeat = pooled_variance(groups)
    repeat_variance = float(np.nan_to_num(repeat))
    start = nan
    if start_variances:
        group_size = len(np.concatenate(groups)) / len(groups)
        start = max(0.0, fmean(start_variances) - repeat_variance / group_size)
    count = int(np.median([len(values) for values in logs]))
    means = [values.mean() for values in logs]
    night = max(0.0, neighbour_variance(means) - repeat_variance / count)
    return Levels(count, repeat, start, night)


def neighbour_variance(values: Sequence[float]) -> float:
    """Variance of *values* by the steps from each to the next; NaN: there is but one."""
    steps = np.diff(values)
    return float(np.median(steps**2)) / 2 / _MEDIAN_SQUARE if len(steps) else nan


def pooled_variance(groups: Sequence[Numbers]) -> float:
    """Variance within *groups*, each about its mean; NaN: none has two values."""
    freedom = sum(len(group) - 1 for group in groups)
    squares = sum(float(group.var()) * len(group) for group in groups)
    return squares / freedom if freedom else nan


def _percent(variance: float) -> str:
    return "not known" if isnan(variance) else f"{100 * variance**0.5:.2f}"


def _gain(after: float, now: float) -> str:
    return "not known" if not now > 0 else f"{100 * (1 - (after / now) ** 0.5):.0f} less"
