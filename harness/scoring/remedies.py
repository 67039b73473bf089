"""What would tell two models apart: how many more cells, how many more repeats, in minutes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

from harness.base.records.score import Score
from harness.base.stats.flips import FEWEST_UNITS
from harness.base.stats.gaps import POWER_QUANTILE, gap_noise
from harness.scoring.weights import relative_weights

if TYPE_CHECKING:
    import numpy as np

    from numpy.typing import NDArray

    from harness.base.stats.resampling import Numbers

MOST_MORE = 200  # units
_MOST_REPEATS = 20
_REPEATS = (0, 1, 2, 3, 5, 8, 12, _MOST_REPEATS)
_MINUTE_S = 60


@dataclass(frozen=True)
class Remedy:
    """
    What is known of a pair that is undecided: its *scores* in the same cells, and their *units*.

    A *noun* names a unit.  *error* is the level at which the pair is tested, to one side; models
    that differ by less than *margin* are equal.
    """

    scores: Sequence[Sequence[Score]]
    units: Sequence[str]
    noun: str
    error: float
    margin: float


class Plan(NamedTuple):
    """
    So many more units, and so many more repeats of each cell; together they take *seconds*.

    They would show that one model is nearer, or where *shows_equal* that both are equal.
    """

    units: int
    repeats: int
    seconds: float
    shows_equal: bool = False


def remedy_text(remedy: Remedy) -> str:
    """Say what would give the pair a verdict in four cases of five, with the least measuring."""
    plan = cheapest_plan(remedy)
    if plan is None:
        return f"not even {MOST_MORE} more {remedy.noun}s would tell which is nearer"
    parts = []
    if plan.units:
        parts.append(_more(plan.units, remedy.noun))
    if plan.repeats:
        parts.append(f"{_more(plan.repeats, 'repeat')} of each cell")
    minutes = max(1, round(plan.seconds / _MINUTE_S))
    shown = "that one is nearer"
    if plan.shows_equal:
        shown = f"that they are equal, within {100 * remedy.margin:g} points"
    return f"{' with '.join(parts)} would show {shown} ({minutes} min of jobs)"


def _more(number: int, noun: str) -> str:
    return f"{number} more {noun}{'s' if number > 1 else ''}"


def cheapest_plan(remedy: Remedy) -> Plan | None:
    """The plan of cells and repeats that tells, and whose jobs take least; `None` of no plan."""
    import numpy as np

    cells = remedy.scores[0]
    unit_count = len(set(remedy.units))
    gap, variance, noise = _spread(remedy)
    more = np.unique(np.concatenate([[0], np.geomspace(1, MOST_MORE, 60).round()]))
    counts = unit_count + more
    cells_of_unit = len(cells) / unit_count
    cell_s = fmean(score.measured_s for score in cells)
    repeats = fmean(score.trials for score in cells)
    plans = []
    for repeats_more in _REPEATS if noise else _REPEATS[:1]:
        left = variance - noise + noise * repeats / (repeats + repeats_more)
        is_shown, is_equal = _tells(remedy, gap, left, counts)
        tells = (is_shown | is_equal) & (more + repeats_more > 0)
        if tells.any():
            place = int(np.argmax(tells))
            units_more = int(more[place])
            trials = (unit_count + units_more) * cells_of_unit * (repeats + repeats_more)
            seconds = (trials - len(cells) * repeats) * cell_s
            shows_equal = bool(is_equal[place] and not is_shown[place])
            plans.append(Plan(units_more, repeats_more, seconds, shows_equal))
    return min(plans, key=lambda plan: plan.seconds, default=None)


def _spread(remedy: Remedy) -> tuple[float, float, float]:
    """Mean gap of the pair, variance of a unit's gap, and the part of it that repeats explain."""
    import numpy as np

    first, second = (
        np.asarray([score.predicted_s / score.measured_s for score in row]) for row in remedy.scores
    )
    # A cell that weighs twice brings twice its gap, and twice its noise.
    weights = relative_weights(remedy.scores[0])
    gaps = weights * (np.abs(first - 1) - np.abs(second - 1))
    floors = np.asarray([score.floor or 0.0 for score in remedy.scores[0]])
    noise = weights * gap_noise(np.minimum(first, second), np.maximum(first, second), floors)
    names, places = np.unique(np.asarray(remedy.units), return_inverse=True)
    sizes = np.bincount(places)
    gaps_of_units = np.bincount(places, gaps) / sizes
    noise_of_units = np.bincount(places, noise**2) / sizes**2
    variance = float(gaps_of_units.var(ddof=1)) if len(names) > 1 else 0.0
    return float(gaps.mean()), variance, min(variance, float(noise_of_units.mean()))


def _tells(
    remedy: Remedy, gap: float, variance: float, counts: Numbers
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Whether so many units of that *variance* tell the *gap* from 0; and from the margin."""
    import numpy as np

    from scipy.special import stdtrit

    scales = np.sqrt(variance / counts)
    quantiles = stdtrit(np.maximum(counts - 1, 1), 1 - remedy.error) + POWER_QUANTILE
    is_enough = counts >= FEWEST_UNITS
    is_shown: NDArray[np.bool_] = (abs(gap) >= quantiles * scales) & is_enough
    is_equal: NDArray[np.bool_] = (remedy.margin - abs(gap) >= quantiles * scales) & is_enough
    return is_shown, is_equal
