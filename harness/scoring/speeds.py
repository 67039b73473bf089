"""
At which speed verdicts are read, and by how much all measured times may be off together.

Models predict at the speed at which their profiles were measured.  Where the machine has become
slower since, all that was measured is longer by one factor, and whoever predicts more seems nearer.
So a verdict is read at reference speed where one is adopted, without the drift that sentinels show,
and has to hold at both ends of the interval in which that drift lies.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple, Self

from harness.base.records.score import Drift, Measurement, Score, Speed

if TYPE_CHECKING:
    from harness.base.stats.resampling import Numbers

AS_IT_IS = (1.0,)  # of one stretch: times as they are


class ReadAt(NamedTuple):
    """
    The *speed* at which verdicts are read, and the *stretches* at which they have to hold.

    A stretch is a factor by which predicted over measured times are larger, if the drift were
    another one: first 1, of the drift as it is; then those of both ends of its interval.
    """

    speed: Speed = "raw"
    stretches: Sequence[float] = AS_IT_IS

    @classmethod
    def of(cls, measurements: Iterable[Measurement], drift: Drift | None) -> Self:
        """Reference speed, where it makes any time another one, or where a *drift* is known."""
        if drift is not None:
            return cls("reference", (1.0, drift.low / drift.ratio, drift.high / drift.ratio))
        corrected = [trial for trial in measurements if trial.reference_s not in ({}, trial.raw_s)]
        return cls("reference" if corrected else "raw")


def errors_at(row: Sequence[Score], stretch: float = 1.0) -> Numbers:
    """Relative errors of the scores of a *row*, with all measured times *stretch* times shorter."""
    import numpy as np

    if stretch == 1.0:
        return np.asarray([score.relative_error for score in row])
    shares = np.asarray([score.predicted_s / score.measured_s for score in row])
    errors: Numbers = np.abs(shares * stretch - 1)
    return errors
