"""Ideal, overhead and vet of one task: (2) to (5), and the option `buckets` of section 3.6."""

from __future__ import annotations

import math

from typing import Any

import numpy as np

from harness.errors import ModelError
from harness.models.checks import check_count, check_flag
from harness.models.vet.change_point import SplitErrors, line_error
from harness.models.vet.inputs import WHERE, Times, ordered, window
from harness.records.vet import NEGATIVE_OVERHEAD, OMEGA_SENSITIVE, VetTask

OMEGA = 3
UNITS_OF_BUCKET = 10  # with fewer units to a bucket its sum says little

_SENSITIVE = 0.2  # vet of another window differs by more than this share
_ROUNDING = 1e-12  # of PR; an overhead below zero by less is none


def vet_task(
    unit_seconds: Any,
    omega: int = OMEGA,
    cap_at_observed: bool = False,  # noqa: FBT001, FBT002 - the signature of the specification
    buckets: int | None = None,
) -> VetTask:
    """
    Vet of a task from the seconds of its units, in any order.

    ``ModelError`` (a ``ValueError``) for an omega below 2, a negative, infinite or NaN time, fewer
    buckets than 2*omega.
    """
    return vet_ordered(ordered(unit_seconds), omega, cap_at_observed, buckets)


def vet_ordered(
    y: Times,
    omega: int = OMEGA,
    cap_at_observed: bool = False,  # noqa: FBT001, FBT002 - as above
    buckets: int | None = None,
) -> VetTask:
    """`vet_task` of times that are in order already."""
    omega, capped = window(omega), check_flag("cap_at_observed", cap_at_observed, where=WHERE)
    if buckets is None:
        enough, set_aside, looked_at = len(y) >= 2 * omega, 0.0, y
        shape: dict[str, Any] = {}
    else:
        b = _number_of_buckets(buckets, omega)
        r, s = len(y) % b, len(y) // b
        enough, set_aside = len(y) >= UNITS_OF_BUCKET * b, float(y[:r].sum())
        looked_at = y[r:].reshape(b, s).sum(axis=1) if enough else y[:0]
        shape = {"buckets": b, "set_aside": r, "bucket_units": s}
    if not enough:
        return VetTask(len(y), "too_few_units", float(y.sum()), **shape)
    return _measured(len(y), looked_at, set_aside, omega, capped=capped, shape=shape)


def _number_of_buckets(buckets: Any, omega: int) -> int:
    b = check_count("buckets", buckets, where=WHERE, low=1)
    if b < 2 * omega:
        raise ModelError(f"buckets = {b} is below 2*omega = {2 * omega}", where=WHERE)
    return b


def _measured(
    n: int, y: Times, set_aside_s: float, omega: int, *, capped: bool, shape: dict[str, Any]
) -> VetTask:
    """(1) to (5) of *y*; units set aside count as observed, and as ideal."""
    errors = SplitErrors(y)
    t = errors.best(omega)
    pr = profiled_real(y) + set_aside_s
    ei = estimated_ideal(y, t, capped=capped) + set_aside_s
    oc = overhead(y, t, capped=capped)
    vet = vet_of(pr, ei)
    flags = []
    if _sensitive(y, errors, set_aside_s, capped=capped):
        flags.append(OMEGA_SENSITIVE)
    if oc < -_ROUNDING * pr:
        flags.append(NEGATIVE_OVERHEAD)
    return VetTask(
        n=n,
        status="zero_ideal" if vet is None else "ok",
        profiled_real_s=pr,
        change_point=t,
        sse=line_error(y[:t]) + line_error(y[t:]),
        slope_s=slope(y, t),
        estimated_ideal_s=ei,
        overhead_s=oc,
        vet=vet,
        flags=tuple(flags),
        **shape,
    )


def slope(y: Times, t: int) -> float:
    """Step of the ideal line: d = Y_t - Y_{t-1}, in seconds."""
    return float(y[t - 1] - y[t - 2])


def ideal_after(y: Times, t: int, *, capped: bool = False) -> Times:
    """(2): g_hat(t + j) = Y_t + j*d for j = 1..n-t; *capped*, never above what was observed."""
    ideal: Times = y[t - 1] + np.arange(1.0, len(y) - t + 1) * slope(y, t)
    return np.minimum(ideal, y[t:]) if capped else ideal


def profiled_real(y: Times) -> float:
    """PR: sum of all units."""
    return float(y.sum())


def estimated_ideal(y: Times, t: int, *, capped: bool = False) -> float:
    """(3): EI, the sum of the ideal."""
    if capped:
        return float(y[:t].sum() + ideal_after(y, t, capped=True).sum())
    after = len(y) - t
    return float(y[:t].sum() + after * y[t - 1] + slope(y, t) * after * (after + 1) / 2)


def overhead(y: Times, t: int, *, capped: bool = False) -> float:
    """(4): OC, what the units after the change point have above the ideal."""
    return float((y[t:] - ideal_after(y, t, capped=capped)).sum())


def vet_of(pr: float, ei: float) -> float | None:
    """(5): PR/EI; `None` where the ideal is nothing, or next to it."""
    vet = pr / ei if ei > 0 else math.inf
    return vet if math.isfinite(vet) else None


def _sensitive(y: Times, errors: SplitErrors, set_aside_s: float, *, capped: bool) -> bool:
    """Section 4: whether a window of 1 % of the units gives another vet than one of three."""
    wide = max(OMEGA, len(y) // 100)
    if wide == OMEGA:
        return False
    pr = profiled_real(y) + set_aside_s
    first, second = (
        vet_of(pr, estimated_ideal(y, errors.best(omega), capped=capped) + set_aside_s)
        for omega in (OMEGA, wide)
    )
    if first is None or second is None:
        return first is not second
    return abs(second - first) > _SENSITIVE * first
