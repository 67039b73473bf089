"""A task's ordered units beside its ideal, as few points as a drawing needs."""

from __future__ import annotations

import numpy as np

from numpy.typing import NDArray

from harness.models.vet.assessment import assess_task
from harness.models.vet.inputs import ordered
from harness.models.vet.task import ideal_after
from harness.records.prediction import JobConfig
from harness.records.vet import TaskUnits, VetCurve

MOST_POINTS = 400


def curve(task: TaskUnits, config: JobConfig, most: int = MOST_POINTS) -> VetCurve | None:
    """
    Ordered units of *task* and their ideal: the change point, both ends, and some between.

    `None` where its ideal is not known.
    """
    measured = assess_task(task, config)
    t = measured.change_point
    if t is None:
        return None
    y = ordered(task.unit_seconds)
    ideal = np.concatenate([y[:t], ideal_after(y, t)])
    shown = _shown(len(y), t, most)
    return VetCurve(
        attempt_id=task.attempt_id,
        kind=task.kind,
        task=measured,
        place=tuple((shown + 1).tolist()),
        observed_s=tuple(y[shown].tolist()),
        ideal_s=tuple(ideal[shown].tolist()),
    )


def _shown(n: int, t: int, most: int) -> NDArray[np.int64]:
    """
    Places from 0 that are drawn.

    Half of them evenly, half of them ever closer to the end: there the few largest units stand.
    """
    if n <= most:
        return np.arange(n)
    even = np.linspace(0, n - 1, most // 2)
    from_end = n - np.geomspace(1, n, most // 2)
    marked = [t - 2, t - 1, t]
    return np.unique(
        np.concatenate([even, from_end, marked]).round().astype(np.int64).clip(0, n - 1)
    )
