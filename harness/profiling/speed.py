"""
How much of a trial's time follows the machine's speed.

Within a cell, log(job time) = constant + coefficient x log(reference rate / rate).  The coefficient
is used only where it helps: each trial is predicted from the others with and without it, and where
that shows no gain it is 0.
"""

from __future__ import annotations

import math
import statistics

from collections import defaultdict
from collections.abc import Iterable, Sequence

from harness.profiling.observation import Observation
from harness.records.profile import SpeedCorrection

# What slows the machine may slow a job more than the probe: 1.9 was seen for TeraSort.  A larger
# slope comes from few repeats at nearly equal rates.
_LARGEST = 3.0

Point = tuple[float, float]


def fit_speed(observations: Sequence[Observation]) -> SpeedCorrection:
    """
    Fit the correction on jobs of all cells that were repeated.

    Give it the observations of one workload, or of all workloads of a run for one correction.
    Without rates, or with too few repeats, the coefficient is 0 and `note` says why.
    """
    rated = [(o, o.rate) for o in observations if o.rate and o.trace.job_s > 0]
    if not rated:
        return _no_correction(1.0, "no trial has a speed probe: times stand as measured")
    reference = statistics.median(rate for _, rate in rated)
    by_cell: dict[tuple[str, int], list[Point]] = defaultdict(list)
    for observation, rate in rated:
        point = (math.log(reference / rate), math.log(observation.trace.job_s))
        # The jobs of one trial are no repeats of each other; the same job of the next trial is.
        by_cell[observation.trial.cell.id, observation.number].append(point)
    cells = [points for points in by_cell.values() if len(points) >= 2]
    count = sum(map(len, cells))
    if count - len(cells) < 2:
        note = f"{count} trials in repeated cells are too few for a correction"
        return _no_correction(reference, note)
    coefficient = _slope(cells)
    plain, corrected = _left_out_errors(cells)
    gain = 1 - corrected / plain if plain > 0 else 0.0
    note = f"leave-one-out over {count} trials of {len(cells)} cells: spread "
    note += f"{plain:.1%} as measured, {corrected:.1%} corrected"
    if coefficient <= 0 or gain <= 0:
        return _no_correction(reference, f"{note}; no gain, times stand as measured", count)
    return SpeedCorrection(
        reference_rate=reference, coefficient=coefficient, gain=gain, count=count, note=note
    )


def _no_correction(reference: float, note: str, count: int = 0) -> SpeedCorrection:
    return SpeedCorrection(
        reference_rate=reference, coefficient=0.0, gain=0.0, count=count, note=note
    )


def _slope(cells: Iterable[Sequence[Point]]) -> float:
    """Common slope within cells, no less than 0 and no more than 3; 0 where rates are equal."""
    xx = xy = 0.0
    for points in cells:
        mean_x = statistics.fmean(x for x, _ in points)
        mean_y = statistics.fmean(y for _, y in points)
        xx += math.fsum((x - mean_x) ** 2 for x, _ in points)
        xy += math.fsum((x - mean_x) * (y - mean_y) for x, y in points)
    return min(max(xy / xx, 0.0), _LARGEST) if xx > 0 else 0.0


def _left_out_errors(cells: list[list[Point]]) -> tuple[float, float]:
    """Root mean square error of each trial by its cell's others: as measured, corrected."""
    plain, corrected = [], []
    for index, points in enumerate(cells):
        for place, (x, y) in enumerate(points):
            others = [*points[:place], *points[place + 1 :]]
            slope = _slope([*cells[:index], others, *cells[index + 1 :]])
            error_x = x - statistics.fmean(other_x for other_x, _ in others)
            error_y = y - statistics.fmean(other_y for _, other_y in others)
            plain.append(error_y**2)
            corrected.append((error_y - slope * error_x) ** 2)
    return math.sqrt(statistics.fmean(plain)), math.sqrt(statistics.fmean(corrected))
