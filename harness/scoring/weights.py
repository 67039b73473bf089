"""
How much each cell counts in what is said of several: alike, or as a drawn design weighs them.

A cell of a drawn design stands for others that were not drawn: its weight is what Hansen and
Hurwitz give it (`harness.core.experiment.drawn`).  Weights here are relative, 1 on average, so that
a sum of weighted numbers over the number of cells is their weighted mean.  Where all cells count
alike each weight is exactly 1, and a weighted number is the plain one to the last bit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import TYPE_CHECKING

from harness.base.records.score import Score

if TYPE_CHECKING:
    from harness.base.stats.resampling import Numbers


def relative_weights(row: Sequence[Score]) -> Numbers:
    """How much each score of a *row* counts, its cell being one of these: 1 on average."""
    import numpy as np

    weights = [score.weight for score in row if score.weight is not None]
    if len(weights) < len(row) or len(set(weights)) == 1:
        return np.ones(len(row))
    relative: Numbers = np.asarray(weights) / fmean(weights)  # the same in any order of the cells
    return relative


def weighted_mean(values: Iterable[float], row: Sequence[Score]) -> float:
    """Mean of *values*, of which the scores of *row* have one each."""
    weights = relative_weights(row).tolist()
    return fmean(weight * value for weight, value in zip(weights, values, strict=True))
