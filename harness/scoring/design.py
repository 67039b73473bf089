"""
What a design can decide, simulated before anything runs.

That is: which gap between two models, and whether a perfect one would be told from a typical one.
The test is the one that will be made of the scores.  The spread is that of an earlier run of the
experiment, or a typical one: gaps of two models in a cell vary normally about their mean; a perfect
model errs by the noise of a cell's mean, a typical one as models did.
"""

from __future__ import annotations

import math

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations
from statistics import fmean, median, quantiles, stdev
from typing import TYPE_CHECKING

from harness.base.records.question import Question
from harness.base.records.score import Score, ScoreBook
from harness.base.stats.flips import (
    DRAWS,
    FEWEST_UNITS,
    flip_chances,
    flip_signs,
    normal_draws,
)
from harness.scoring.comparisons import (
    FAMILY_ERROR,
    job_scores,
    ranked_rows,
    same_predictions,
)

if TYPE_CHECKING:
    from harness.base.stats.resampling import Numbers

POWER = 0.8  # a gap is told in four cases of five
_STEPS = 9  # of a bisection: to a hundredth of a spread
_MOST_GAP = 4.0  # spreads: six cells tell as much
_LARGER = (6, 8, 10, 12, 16, 20, 24, 32, 48, 64, 96)
_QUANTILES = 20
_SMALL_GAP = 0.05
_FAMILIES = 8  # that are made up


@dataclass(frozen=True)
class Spread:
    """
    What is known of noise and errors, and where from: *origin*.

    *gap* is the standard deviation over cells of the difference of two models' relative errors,
    *noise* that of one trial as a share of its cell's mean, *errors* relative errors of models.
    """

    origin: str
    gap: float
    noise: float
    errors: tuple[float, ...]


# By scripts/typical-spread.
TYPICAL = Spread(
    origin="typical of the published grids",
    gap=0.099,
    noise=0.080,
    errors=(
        *(0.011, 0.024, 0.038, 0.054, 0.064, 0.08, 0.091, 0.107, 0.13, 0.156),
        *(0.203, 0.223, 0.241, 0.252, 0.273, 0.287, 0.321, 0.357, 0.41, 0.528),
    ),
)


@dataclass(frozen=True)
class Design:
    """
    How much of a grid is scored: so many *units* of its question's scope, called *noun*.

    Each has *cells* of *repeats* trials; *pairs* of models are tested together.
    """

    units: int
    noun: str
    cells: int
    repeats: int
    pairs: int


@dataclass(frozen=True)
class Decision:
    """
    What a *design* decides: *gap*, a share, in four cases of five (`None`: none).

    *perfect* is the share of the draws in which a perfect model is told from a typical one.
    *enough* units would tell it in four cases of five; twice as many units tell *gap_of_twice*.
    *gap_alone* and *perfect_alone* are those of a pair that is asked alone, as `nearer: [A, B]`.
    """

    design: Design
    spread: Spread
    gap: float | None
    perfect: float
    enough: int | None
    gap_of_twice: float | None
    gap_alone: float | None
    perfect_alone: float

    @property
    def tells_perfection(self) -> bool:
        """Whether a perfect model would not stay undecided."""
        return self.perfect >= POWER


def pair_count(question: Question, models: Sequence[str]) -> int:
    """How many pairs of *models* are tested together for *question*."""
    if question.nearer:
        return len(question.nearer) - 1
    return max(1, math.comb(len(models), 2))


def decide(design: Design, spread: Spread, question: Question) -> Decision:
    """Simulate *question* on *design* with *spread*."""
    is_asked = bool(question.nearer)
    enough = None
    for units in _LARGER:
        larger = _scaled(design, units)
        if enough is None and perfect_share(larger, spread, is_asked=is_asked) >= POWER:
            enough = units
    twice = max(FEWEST_UNITS, 2 * design.units)
    alone = replace(design, pairs=1)
    return Decision(
        design=design,
        spread=spread,
        gap=told_gap(design.units, design.pairs, spread, is_asked=is_asked),
        perfect=perfect_share(design, spread, is_asked=is_asked),
        enough=enough,
        gap_of_twice=told_gap(twice, design.pairs, spread, is_asked=is_asked),
        gap_alone=told_gap(design.units, 1, spread, is_asked=True),
        perfect_alone=perfect_share(alone, spread, is_asked=True),
    )


def _scaled(design: Design, units: int) -> Design:
    """*design* with so many units of as many cells each."""
    cells = round(design.cells / max(1, design.units) * units)
    return replace(design, units=units, cells=max(units, cells))


def told_gap(units: int, pairs: int, spread: Spread, *, is_asked: bool) -> float | None:
    """The smallest mean gap that is told in four cases of five; `None`: none is."""
    if units < FEWEST_UNITS:
        return None
    drawn = normal_draws("gaps", units)
    low = 0.0
    high = _MOST_GAP
    if _told_share(drawn - high, pairs, is_asked=is_asked) < POWER:
        return None
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if _told_share(drawn - middle, pairs, is_asked=is_asked) < POWER:
            low = middle
        else:
            high = middle
    return high * spread.gap


def _told_share(gaps: Numbers, pairs: int, *, is_asked: bool) -> float:
    """
    In which share of the draws of *gaps* the first model is nearer, in a family of so many pairs.

    A pair alone is tested as it will be; one of several against the limit of a typical family.
    """
    import numpy as np

    units = gaps.shape[1]
    if pairs == 1 and is_asked:
        return float((flip_chances(gaps, _names(units)) <= FAMILY_ERROR).mean())
    distances = -gaps.sum(axis=1) / np.sqrt((gaps**2).sum(axis=1))
    return float((distances >= family_limit(units, pairs, is_asked=is_asked)).mean())


@cache
def family_limit(units: int, pairs: int, *, is_asked: bool) -> float:
    """
    What the largest distance of so many pairs exceeds by chance in one case of twenty.

    Mean over made-up families of equal models, whose errors are drawn.  Asked pairs share their
    first model, and one side of it counts; explored ones are all pairs of some models.
    """
    import numpy as np

    models = pairs + 1 if is_asked else math.ceil((1 + math.sqrt(1 + 8 * pairs)) / 2)
    models = min(max(2, models), DRAWS)
    first, second = np.triu_indices(models, 1)
    if is_asked:
        first = first[:pairs]
        second = second[:pairs]
    signs = flip_signs(units)
    limits = []
    for family in range(_FAMILIES):
        errors = normal_draws(f"family {family}", units)[:models]
        gaps = errors[first] - errors[second]
        scaled = gaps / np.sqrt((gaps**2).sum(axis=1, keepdims=True))
        flipped = signs @ scaled.T
        largest = np.sort((flipped if is_asked else np.abs(flipped)).max(axis=1))
        limits.append(largest[-1 - math.floor(FAMILY_ERROR * len(largest))])
    return float(np.mean(limits))


def _names(units: int) -> list[str]:
    return [f"{number:06}" for number in range(units)]


def perfect_share(design: Design, spread: Spread, *, is_asked: bool) -> float:
    """In which share of the draws a perfect model is told from one that errs as models did."""
    import numpy as np

    from scipy.special import ndtr

    if design.units < FEWEST_UNITS:
        return 0.0
    floor = spread.noise / math.sqrt(design.repeats)
    perfect = np.abs(normal_draws("perfect", design.units)) * floor
    ranks = ndtr(normal_draws("errors", design.units)) * len(spread.errors)
    typical = np.asarray(spread.errors)[np.minimum(ranks.astype(int), len(spread.errors) - 1)]
    return _told_share(perfect - typical, design.pairs, is_asked=is_asked)


def spread_of(score_book: ScoreBook, origin: str) -> Spread | None:
    """The spread that an earlier run shows; `None` where it does not show all of it."""
    rows, _ = ranked_rows(job_scores(score_book.scores, score_book.speed))
    same_as = same_predictions(rows)
    rows = {model: row for model, row in rows.items() if same_as[model] == model}
    cells = next(iter(rows.values()), [])
    noises = [score.floor * math.sqrt(score.trials) for score in cells if score.floor]
    if len(rows) < 2 or len(cells) < FEWEST_UNITS or not noises:
        return None
    gaps = [gap_spread(first, second) for first, second in combinations(rows.values(), 2)]
    errors = [score.relative_error for row in rows.values() for score in row]
    shown = quantiles(errors, n=2 * _QUANTILES)[::2]
    return Spread(origin, median(gaps), fmean(noises), tuple(shown))


def gap_spread(first: Sequence[Score], second: Sequence[Score]) -> float:
    """Standard deviation over the cells of the difference of two models' errors."""
    pairs = zip(first, second, strict=True)
    return stdev(near.relative_error - far.relative_error for near, far in pairs)


def decision_sentence(found: Decision) -> str:
    """Say what the design can decide, and what more would."""
    design = found.design
    over = f"{design.units} {design.noun}{'s' if design.units != 1 else ''}"
    family = f"{design.pairs} pairs of models that are tested together"
    is_alone = design.pairs == 1 and found.gap == found.gap_alone
    clauses = []
    if design.units < FEWEST_UNITS:
        tell = "tells" if design.units == 1 else "tell"
        clauses.append(f"{over} {tell} no two models apart: it takes {FEWEST_UNITS}")
    elif found.gap is None:
        clauses.append(f"{over} tell none of {family}")
    else:
        which = "two models" if is_alone else f"of {family} those"
        gap = f"whose mean errors differ by {points(found.gap)} points"
        clauses.append(
            f"{over} tell apart {which} {gap}, in four of five cases with one profile and no drift"
        )
    if found.gap_of_twice is not None:
        twice = max(FEWEST_UNITS, 2 * design.units)
        clauses.append(f"{twice} {design.noun}s tell gaps of {points(found.gap_of_twice)} points")
    perfect = "a model without error is told from one that errs as published models do in"
    clauses.append(f"{perfect} {round(100 * found.perfect)} of 100 cases")
    if not found.tells_perfection and found.enough is not None:
        clauses[-1] += f" ({found.enough} {design.noun}s: {100 * POWER:g})"
    if not is_alone and found.gap_alone is not None:
        alone = "a pair that is asked alone (nearer: [A, B]) is told from"
        clauses.append(
            f"{alone} {points(found.gap_alone)} points on, perfection in"
            f" {round(100 * found.perfect_alone)} of 100 cases"
        )
    origin = f"noise and errors: {found.spread.origin}; {DRAWS} draws"
    return f"{'; '.join(clauses)} ({origin})"


def points(share: float) -> str:
    """*share* in points, hundredths of a measured time; small ones with a decimal."""
    return f"{100 * share:.0f}" if share >= _SMALL_GAP else f"{100 * share:.1f}"
