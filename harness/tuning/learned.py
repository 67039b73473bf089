"""What measured settings say of a model: how far off it is at them, and so near them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from harness.base.records.prediction import JobConfig

Numbers: TypeAlias = np.ndarray

_REACH = 2.0  # octaves: at four times as many maps, reduces or MiB half of a ratio is gone
_CODEC = 2.0  # octaves that a job with a codec is away from one without
_LEAST_ERROR = 0.05  # of a model, whatever it had at the few settings that were measured


def points(
    num_maps: Numbers, num_reduces: Numbers, sort_buffer_mb: Numbers, compressed: Numbers
) -> Numbers:
    """Where settings lie, in octaves: a row for each, of what cuts a job and what it writes."""
    quantities = (num_maps, num_reduces, sort_buffer_mb)
    octaves = [np.log2(np.maximum(1, quantity)) for quantity in quantities]
    return np.column_stack([*octaves, _CODEC * np.asarray(compressed, float)])


def point_of(configuration: JobConfig, num_maps: int) -> Numbers:
    """Where one job lies, as a row."""
    return points(
        np.array([num_maps]),
        np.array([configuration.num_reduces]),
        np.array([configuration.sort_buffer_mb]),
        np.array([configuration.map_output_compressed]),
    )


@dataclass(frozen=True)
class Learned:
    """
    Logarithms of *ratios*, measured by predicted times, at *places*, a row for each.

    They are carried to other settings as the mean of a Gaussian process: far from all that was
    measured the model is off by as much as in the mean, which changes no choice (ordinary kriging).
    *noise* is that of a mean measured time, as a share; the spread of the process is that of the
    ratios themselves.
    """

    places: Numbers
    ratios: Numbers
    noise: float

    def factor(self, places: Numbers) -> Numbers:
        """By what predictions at *places* are multiplied."""
        spread = max(float(np.var(self.ratios)), _LEAST_ERROR**2)
        covariance = spread * _likeness(self.places, self.places)
        covariance += self.noise**2 * np.eye(len(covariance))
        ones = np.ones(len(covariance))
        solved_ones = np.linalg.solve(covariance, ones)
        mean = ones @ np.linalg.solve(covariance, self.ratios) / (ones @ solved_ones)
        weights = np.linalg.solve(covariance, self.ratios - mean)
        factors: Numbers = np.exp(mean + spread * _likeness(places, self.places) @ weights)
        return factors


def _likeness(left: Numbers, right: Numbers) -> Numbers:
    """From 1, at the same place, to 0: of each row of *left* with each of *right*."""
    squares = ((left[:, None, :] - right[None, :, :]) ** 2).sum(axis=2)
    likeness: Numbers = np.exp(-squares / (2 * _REACH**2))
    return likeness
