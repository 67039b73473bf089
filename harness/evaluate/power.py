"""What the nights of a history can show: where their variance comes from, and what would help."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import isnan, nan
from statistics import fmean
from typing import Any

import numpy as np

from harness.errors import DataError
from harness.evaluate.alarms import Judge, tables
from harness.records.nightly import PROBE, Entry, Point
from harness.stats.shifts import FALSE_ALARMS, FEWEST_NIGHTS, HORIZON, Numbers, clip_of, scan

_WITHIN = (3, 10, 30)  # nights
_SURE = 0.8
_SIZES = np.arange(0.5, 8.1, 0.25)  # of shifts, in standard deviations of a night
_TRIED = 200  # series of each size
_YEAR = 365
_MEDIAN_SQUARE = 0.4549  # of a normal deviate
_LEVELS = ("what", "repeats", "repeat, %", "start, %", "night, %")


def diagnose(entries: Sequence[Entry]) -> dict[str, Any]:
    """
    Tables of rows, in percent: `variance` by level, `shifts` that are seen, and what `helps`.

    `DataError` where too few nights of the last series can be compared.
    """
    (*_, table) = (None, *tables(entries))
    count = len(table.numbers) if table else 0
    if table is None or count < FEWEST_NIGHTS:
        what = f"{FEWEST_NIGHTS} whole nights are needed, and the last series has {count}"
        raise DataError(what, where="the history", fix="measure more nights: harness nightly FILE")
    judge = Judge(table)
    judge.judge()  # what is left of each factor after its last change
    variance = list[dict[str, str]]()
    shifts = list[dict[str, str]]()
    helps = dict[str, str]()
    by_name = dict[str, list[Point]]()
    for each in (point for night in table.nights for point in night.points):
        by_name.setdefault(each.name, []).append(each)
    for nights in by_name.values():
        point = nights[0]
        name = point.cell or point.quantity
        is_time = point.quantity == "job_s" and point.kind != "residual"
        if not (is_time or point.quantity == PROBE):
            continue
        count, repeat, start, night = levels_of(nights)
        texts = [_percent(each) for each in (repeat, start, night)]
        variance.append(dict(zip(_LEVELS, (name, str(count), *texts), strict=True)))
        now = repeat / count + np.nan_to_num(start) + night
        helps[f"{name}: a repeat more"] = _gain(repeat / (count + 1) + now - repeat / count, now)
        if not isnan(start):
            helps[f"{name}: a start more"] = _gain(now - np.nan_to_num(start) / 2, now)
    for place, factor in enumerate(judge.factors):
        column = judge.values[~np.isnan(judge.values[:, place]), place]
        if factor.of in ("cost", "model") or len(column) < FEWEST_NIGHTS:
            continue
        spread = float(column.std(ddof=1))
        clip = clip_of(len(factor.members))
        limits = smallest(len(column), clip, float(judge.thresholds[place]))
        sizes = (f"{100 * np.expm1(spread * size):.1f}" if size else "none" for size in limits)
        shifts.append(
            {"what": factor.name, "a night": _percent(spread**2)}
            | dict(zip((f"within {n} nights" for n in _WITHIN), sizes, strict=True))
        )
        if factor.of in ("all", "workload"):
            cells = len(factor.members)
            helps[f"{factor.name}: a cell more"] = f"up to {_gain(cells / (cells + 1), 1.0)}"
    rate = FALSE_ALARMS * _YEAR / HORIZON
    return {
        "variance": variance,
        "shifts": shifts,
        "helps": [{"what": what, "spread of a night, %": gain} for what, gain in helps.items()],
        "false_alarms": f"{rate:.2f} false alarms a year, as simulated",
        "notes": table.notes,
    }


@cache
def smallest(nights: int, clip: float, threshold: float) -> tuple[float | None, ...]:
    """
    Smallest shift, in standard deviations of a night, that 80 % of series show within 3, 10, 30.

    Simulated with so many *nights* before it; `None` where 8 deviations are not enough.
    """
    quiet = np.random.default_rng(2).standard_normal((nights + max(_WITHIN), _TRIED))
    wide = np.tile(quiet, len(_SIZES))
    wide[nights:] += np.repeat(_SIZES, _TRIED)
    clips = np.full(wide.shape[1], clip)
    is_raised = np.zeros(wide.shape[1], bool)
    answers = list[float | None]()
    for night in range(nights + 1, len(wide) + 1):
        is_raised |= scan(wide[:night], clips)[1].max(axis=0) > threshold
        if night - nights in _WITHIN:
            enough = is_raised.reshape(len(_SIZES), _TRIED).mean(axis=1) >= _SURE
            answers.append(float(_SIZES[enough.argmax()]) if enough.any() else None)
    return tuple(answers)


def levels_of(nights: Sequence[Point]) -> tuple[int, float, float, float]:
    """
    Repeats of a night; variances of logarithms between repeats, starts, and nights.

    NaN: no night has a second repeat, or a second start.  That of nights is by the differences of
    neighbours, because a change moves but one of them.
    """
    logs = [np.log(night.raw[: len(night.raw) - night.again]) for night in nights]
    groups = list[Numbers]()
    starts = list[float]()
    for each, values in zip(nights, logs, strict=True):
        of_start = np.asarray(each.starts[: len(values)] or [0] * len(values))
        own = [values[of_start == start] for start in np.unique(of_start)]
        groups += own
        starts += [float(np.var([group.mean() for group in own], ddof=1))] if len(own) > 1 else []
    freedom = sum(len(group) - 1 for group in groups)
    repeat = sum(float(group.var()) * len(group) for group in groups) / freedom if freedom else nan
    count = int(np.median([len(values) for values in logs]))
    size = len(np.concatenate(groups)) / len(groups)
    start = max(0.0, fmean(starts) - np.nan_to_num(repeat) / size) if starts else nan
    steps = np.diff([values.mean() for values in logs])
    means = float(np.median(steps**2)) / 2 / _MEDIAN_SQUARE if len(steps) else nan
    return count, repeat, start, max(0.0, means - float(np.nan_to_num(repeat)) / count)


def _percent(variance: float) -> str:
    return "not known" if isnan(variance) else f"{100 * variance**0.5:.2f}"


def _gain(after: float, now: float) -> str:
    return "not known" if not now > 0 else f"{100 * (1 - (after / now) ** 0.5):.0f} less"
