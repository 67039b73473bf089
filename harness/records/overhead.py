"""What the tracer costs, as it was measured on a machine before a run."""

from __future__ import annotations

from pydantic import FiniteFloat, NonNegativeInt

from harness.records.trace import TaskKind
from harness.records.trial import Record


class TracerOverhead(Record):
    """
    What a mode of the tracer adds to the CPU time of a workload's tasks, with its 95 % interval.

    *share*, *low* and *high* are parts of a stock task's CPU time; *tasks* counts those that ran in
    the mode, *stock* those without it in the same jobs.  *measured_s* is when the last of them
    began, seconds since the epoch.
    """

    workload: str
    mode: str
    kind: TaskKind = "map"
    share: FiniteFloat
    low: FiniteFloat
    high: FiniteFloat
    tasks: NonNegativeInt
    stock: NonNegativeInt
    measured_s: FiniteFloat
