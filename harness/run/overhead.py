"""What is known of the tracer's cost when a run begins: the last self-test measured it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness.records.overhead import TracerOverhead

if TYPE_CHECKING:
    from harness.hadoop_home.home import HadoopHome
    from harness.tracer.effects import Effect, Sample

# What a file of another version, a damaged or a foreign one can raise wherever it is computed with.
_DAMAGED = (ArithmeticError, LookupError, OSError, RecursionError, TypeError, ValueError)


def tracer_overhead(home: HadoopHome) -> list[TracerOverhead]:
    """
    What the tracer of *home* costs, as far as it was measured on this machine.

    Nothing where that was never done, or where what was kept of it cannot be used: no run fails for
    it.
    """
    import numpy as np

    from harness.tracer.effects import effects
    from harness.tracer.overhead import known

    try:
        samples = known(home)
        with np.errstate(all="ignore"):  # numbers of a damaged file: the record refuses the result
            return [_record(effect, samples) for effect in effects(samples)]
    except _DAMAGED:
        return []


def _record(effect: Effect, samples: Sequence[Sample]) -> TracerOverhead:
    mine = [s for s in samples if (s.workload, s.mode) == (effect.workload, effect.mode)]
    return TracerOverhead(
        workload=effect.workload,
        mode=effect.mode,
        kind=getattr(effect, "kind", "map"),
        share=effect.share,
        low=effect.low,
        high=effect.high,
        tasks=effect.tasks,
        stock=effect.stock,
        measured_s=max(s.start_s for s in mine),
    )
