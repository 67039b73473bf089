"""
Estimates of what tracing costs, from tasks with and without it.

Times are compared within blocks of tasks of a job that started one after the other; what the
machine's moods leave within a block is corrected by each task's rate of the speed probe.
"""

from __future__ import annotations

import math

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

STOCK = "off"
MODES = (STOCK, "spans", "units")
ALL_MODES = (STOCK, "instrumented", "spans", "units")
WORKLOAD_NAMES = ("wordcount", "terasort")
KINDS = ("map", "reduce")
HEAD = ("workload", "tasks", "mode", "CPU time", "start-up", "measured", "spread", "for 1 %")
_EACH = 2  # times that a block holds each mode
_AIM = 0.01
_NOTHING = 1e-9


@dataclass(frozen=True, slots=True)
class Sample:
    """
    One task: its CPU seconds, and those from its launch to its split (reduce: to its shuffle).

    *mode* "instrumented" runs the classes with hooks, their recorder off.  *rate* is what the speed
    probe did meanwhile; *gc_s* was spent collecting garbage.  *records*, *outputs* and *spans* are
    what the recorder counted, 0 without it; *read_s* is what reading took by the recorder, and
    *read_samples* of how many reads it says so, 0: of all.
    """

    workload: str
    job: str
    mode: str
    start_s: float
    cpu_s: float
    start_up_s: float | None
    rate: float | None
    records: int = 0
    outputs: int = 0
    spans: int = 0
    kind: str = "map"
    wall_s: float | None = None
    gc_s: float | None = None
    read_s: float | None = None
    read_samples: int = 0


@dataclass(frozen=True, slots=True)
class Effect:
    """
    What a mode adds to stock tasks of a workload and *kind*, with its 95 % interval.

    *share* and its ends are parts of a stock task's CPU time; *start_up_s* and its ends seconds.
    *spread* is what remains of a task's CPU time (standard deviation, as a part of it) once block
    and rate are taken out.
    """

    workload: str
    mode: str
    share: float
    low: float
    high: float
    tasks: int
    stock: int
    spread: float
    stock_cpu_s: float
    start_up_s: float | None = None
    start_up_low_s: float | None = None
    start_up_high_s: float | None = None
    kind: str = "map"

    @property
    def needed(self) -> int:
        """Tasks of each mode that an interval of 1 % to either side takes, with this spread."""
        return math.ceil(2 * (1.96 * self.spread / _AIM) ** 2)


def effects(samples: Sequence[Sample]) -> list[Effect]:
    """What each mode adds, for each workload and kind with enough tasks of all modes it has."""
    estimates = []
    for workload in WORKLOAD_NAMES:
        for kind in KINDS:
            chosen = [
                s for s in samples if (s.workload, s.kind) == (workload, kind) and s.cpu_s > 0
            ]
            with suppress(ValueError):
                estimates += _effects(chosen)
    return estimates


def least_known(estimates: Iterable[Effect]) -> str:
    """Name the workload whose maps' intervals are the widest; one without any comes first."""
    widths = {e.workload: e.high - e.low for e in estimates if e.kind == "map"}
    return max(WORKLOAD_NAMES, key=lambda name: widths.get(name, math.inf))


def _effects(samples: Sequence[Sample]) -> list[Effect]:
    modes = [m for m in ALL_MODES if m != STOCK and any(s.mode == m for s in samples)]
    shares = contrasts(samples, lambda s: float(np.log(s.cpu_s)), modes)
    timed = [s for s in samples if s.start_up_s is not None]
    try:
        starts = contrasts(timed, lambda s: s.start_up_s or 0.0, modes)
    except ValueError:
        starts = {}
    return [_effect(mode, samples, shares[mode], starts.get(mode)) for mode in modes]


def _effect(
    mode: str, samples: Sequence[Sample], share: Contrast, start_up: Contrast | None
) -> Effect:
    stock = [s.cpu_s for s in samples if s.mode == STOCK]
    return Effect(
        samples[0].workload,
        mode,
        share=float(np.expm1(share.mean)),
        low=float(np.expm1(share.low)),
        high=float(np.expm1(share.high)),
        tasks=sum(s.mode == mode for s in samples),
        stock=len(stock),
        spread=share.spread,
        stock_cpu_s=float(np.median(stock)),
        start_up_s=start_up.mean if start_up else None,
        start_up_low_s=start_up.low if start_up else None,
        start_up_high_s=start_up.high if start_up else None,
        kind=samples[0].kind,
    )


class Contrast(NamedTuple):
    """How much more a mode has than stock tasks, its 95 % interval, and what chance left over."""

    mean: float
    low: float
    high: float
    spread: float


def contrasts(
    samples: Sequence[Sample], value: Callable[[Sample], float], modes: Sequence[str]
) -> dict[str, Contrast]:
    """
    Differences of *value* between each of *modes* and stock tasks.

    Least squares with a mean of its own for each block of neighbours and a slope on the log of the
    probe's rate (where every task has one); intervals by Student's t.
    `ValueError` where the tasks are too few.
    """
    from scipy.stats import t as student

    ordered = sorted(samples, key=lambda s: (s.job, s.start_s))
    blocks = _blocks(ordered)
    y = np.array([value(s) for s in ordered])
    columns = [np.array([float(s.mode == mode) for s in ordered]) for mode in modes]
    if all(s.rate for s in ordered):
        columns.append(np.array([np.log(s.rate or 1.0) for s in ordered]))
    for block in set(blocks):
        in_block = np.array([b == block for b in blocks])
        for column in (y, *columns):
            column[in_block] -= column[in_block].mean()
    # A probe that saw no difference within any block explains none.
    x = np.column_stack([c for c in columns if np.abs(c).max() > _NOTHING])
    freedom = len(y) - len(set(blocks)) - x.shape[1]
    if freedom < 1 or x.shape[1] < len(modes) or np.linalg.matrix_rank(x) < x.shape[1]:
        raise ValueError(f"{len(y)} tasks are too few")
    slope, *_ = np.linalg.lstsq(x, y, rcond=None)
    left = y - x @ slope
    variance = float(left @ left) / freedom
    errors = np.sqrt(np.diag(np.linalg.inv(x.T @ x)) * variance)
    reach = float(student.ppf(0.975, freedom))
    return {
        mode: Contrast(float(b), float(b - reach * e), float(b + reach * e), variance**0.5)
        for mode, b, e in zip(modes, slope, errors, strict=False)
    }


def _blocks(ordered: Sequence[Sample]) -> list[tuple[str, int]]:
    """Name the block of each sample: its job, and its place there, by as many as modes ask."""
    places: dict[str, int] = {}
    modes: dict[str, set[str]] = {}
    for sample in ordered:
        modes.setdefault(sample.job, set()).add(sample.mode)
    blocks = []
    for sample in ordered:
        place = places[sample.job] = places.get(sample.job, -1) + 1
        blocks.append((sample.job, place // (_EACH * len(modes[sample.job]))))
    return blocks


def rows(estimates: Iterable[Effect]) -> list[tuple[str, ...]]:
    """Effects for people, in columns of `HEAD`: what a mode adds, with intervals and tasks."""
    return [
        (
            e.workload,
            f"{e.kind}s",
            e.mode,
            f"{e.share:+.1%} ({e.low:+.1%} to {e.high:+.1%})",
            _start_up(e),
            f"{e.tasks}, {e.stock} stock",
            f"{e.spread:.1%}",
            f"{e.needed} each",
        )
        for e in estimates
    ]


def _start_up(effect: Effect) -> str:
    interval = effect.start_up_s, effect.start_up_low_s, effect.start_up_high_s
    if None in interval:
        return ""
    mean, low, high = (f"{seconds:+.2f}" for seconds in interval if seconds is not None)
    return f"{mean} s ({low} to {high})"
