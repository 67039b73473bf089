"""
Fixed seconds of tasks: lent to the body of every model of Hadoop, as the frame is to its job.

An equation has no place for what a task does once, whatever it works on.  Models that learn whole
times (`ernest`, `scaling`) have it in them; so those of equations are lent it, all alike, and no
equation is changed.  Each task takes it, so that a wave of tasks does:

    fixed_s = Wm*(map_main_fixed_s + map_tail_fixed_s)
            + (Wr - h)*shuffle_fixed_s + Wr*(sort_fixed_s + reduce_rest_fixed_s)

with the waves and the h of the frame (`harness.models.frame`): where slow start lets reduces start
before the last wave of maps, the first wave opens its shuffle beside maps.
"""

from __future__ import annotations

import math

from collections.abc import Mapping

from harness.base.records.prediction import Cluster, JobConfig, JobInput, Prediction
from harness.base.records.profile import FIXED, Profile
from harness.models.adapter import profile_number
from harness.models.frame import Numbers, frame_counts

# In which phase of a job history they pass, and which part of the frame lies as often on the way
# from a job's submission to its end.
_PHASES = dict(
    zip(FIXED, ("map_main_s", "map_tail_s", "shuffle_s", "sort_s", "reduce_rest_s"), strict=True)
)
_COUNTED_AS = dict(
    zip(
        FIXED,
        ("map_start_s", "map_start_s", "reduce_start_s", "reduce_end_s", "reduce_end_s"),
        strict=True,
    )
)
_OF_MAPS = 2  # the first of `FIXED`


def fixed_of(profile: Profile) -> dict[str, float]:
    """Fixed seconds that *profile* knows, by their names; ``ModelError`` for what is no time."""
    return {
        name: profile_number(profile, name, profile.statistics[name])
        for name in FIXED
        if name in profile.statistics
    }


def body_fixed_s(
    fixed: Mapping[str, float], counts: Mapping[str, int] | Mapping[str, Numbers]
) -> float | Numbers:
    """Seconds that *fixed* ones add to a body; *counts* are those of the parts of its frame."""
    return sum(seconds * counts[_COUNTED_AS[name]] for name, seconds in fixed.items())


def with_fixed(
    prediction: Prediction,
    profile: Profile,
    inputs: tuple[JobConfig, Cluster, JobInput],
) -> Prediction:
    """
    *prediction* of one job whose tasks take the fixed seconds of *profile*, too.

    So do its body, its estimates, its tasks and their phases; single equations, the timeline and
    what was published are those of the paper.
    """
    fixed = fixed_of(profile)
    if not fixed or prediction.body_s is None:
        return prediction
    added_s = float(body_fixed_s(fixed, frame_counts(*inputs)))
    by_phase = {_PHASES[name]: seconds for name, seconds in fixed.items()}
    fixed_by_name = {
        "map_task_s": math.fsum(fixed.get(name, 0.0) for name in FIXED[:_OF_MAPS]),
        "reduce_task_s": math.fsum(fixed.get(name, 0.0) for name in FIXED[_OF_MAPS:]),
    }
    tasks_s = {
        name: seconds + fixed_by_name[name]
        for name in fixed_by_name
        if (seconds := getattr(prediction, name)) is not None
    }
    return prediction.model_copy(
        update={
            "body_s": prediction.body_s + added_s,
            "estimates": {
                name: seconds + added_s for name, seconds in prediction.estimates.items()
            },
            "measurable": {
                phase: seconds + by_phase.get(phase, 0.0)
                for phase, seconds in prediction.measurable.items()
            },
            **tasks_s,
        }
    )
