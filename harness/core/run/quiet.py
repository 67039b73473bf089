"""
A look at the machines before a trial: whether others use them, and a wait until they do not.

Who measures while others work measures them, too.  Looking takes a second, so it is taken before
the first trial of a cluster, and after a trial that was disturbed.
"""

from __future__ import annotations

import time

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from harness.base.units import format_duration
from harness.clusters.monitor.machine import find_disturbance
from harness.clusters.monitor.watch import Monitor

_LOOK_S = 1.0
_SAID_EACH_S = 60.0


@dataclass
class QuietWait:
    """
    How long a run may still wait for quiet machines: *left_s* seconds, over all its trials.

    *say* is told what is waited for; looks are kept in a folder that is made in *scratch* and
    removed.
    """

    left_s: float
    scratch: Path
    say: Callable[[str], None]
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep

    def wait(self, monitor: Monitor) -> None:
        """Wait until nobody else uses the machines, or time is up: that is said, once."""
        if self.left_s <= 0:
            return
        started_s = self.clock()
        said_s = None
        was_disturbed = False
        while disturbance := self.look(monitor):
            was_disturbed = True
            waited_s = self.clock() - started_s
            if waited_s >= self.left_s:
                self.say(
                    f"the machine does not become quiet, and is measured as it is: {disturbance}"
                    " (--wait-quiet TIME waits longer)"
                )
                break
            if said_s is None or waited_s - said_s >= _SAID_EACH_S:
                left = format_duration(round(self.left_s - waited_s))
                self.say(f"waiting for a quiet machine, {left} at most: {disturbance}")
                said_s = waited_s
        if was_disturbed:
            self.left_s = max(0.0, self.left_s - (self.clock() - started_s))

    def look(self, monitor: Monitor) -> str:
        """Who disturbs at this moment, and how much; nothing: nobody, or it is not known."""
        with TemporaryDirectory(dir=self.scratch, prefix="look-") as folder:
            with monitor.sample(Path(folder)):
                self.sleep(_LOOK_S)
            return find_disturbance(monitor.loads(Path(folder)))
