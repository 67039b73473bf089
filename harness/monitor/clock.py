"""
Whether somebody set the machine's clock while a trial ran.

Hadoop writes times of the wall clock into its histories.  When that clock is set, a job's times are
those of nobody; the monotonic clock, which is never set, shows it.
"""

from __future__ import annotations

import time

from collections.abc import Callable
from dataclasses import dataclass, field

# Far above what slewing (500 parts in a million at most) does in minutes; 1 % of a ten-second job.
MOST_SHIFT_S = 0.1


@dataclass
class Watch:
    """
    A stopwatch beside the wall clock, from its making on.

    *at_s* is when it was made (*wall*, epoch seconds); durations come from the monotonic clock.
    """

    wall: Callable[[], float] = time.time
    at_s: float = field(init=False)
    _begun: float = field(init=False)
    _offset: float = field(init=False)

    def __post_init__(self) -> None:
        self._begun, self._offset = time.monotonic(), self._look()
        self.at_s = self._begun + self._offset

    @property
    def elapsed_s(self) -> float:
        """Seconds since it was made, whatever the wall clock did."""
        return time.monotonic() - self._begun

    def complaint(self) -> str:
        """How far the wall clock was set meanwhile, as the reason of a failure; else nothing."""
        shift = self._look() - self._offset
        if abs(shift) <= MOST_SHIFT_S:
            return ""
        way = "forward (or the machine slept)" if shift > 0 else "back"
        return f"the machine's clock was set {abs(shift):.1f} s {way} during the trial"

    def _look(self) -> float:
        """Wall clock minus monotonic clock; of three looks, the one that was interrupted least."""
        looks = []
        for _ in range(3):
            before, at, after = time.monotonic(), self.wall(), time.monotonic()
            looks.append((after - before, at - after))
        return min(looks)[1]
