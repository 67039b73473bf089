"""
What each way of predicting jobs on a new machine is worth: their errors side by side.

The ways, each with what it takes: the profile of the old machine as it is; the same, with times
times the ratio of one TeraSort (for models that know whole jobs alone); transferred by the costs of
both machines; and profiles of the new machine itself.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from statistics import fmean
from typing import NamedTuple

from harness.evaluate.flow import Evaluation
from harness.evaluate.predict import JOBS, predict_cells, scaled
from harness.records.profile import Profile
from harness.store import Run

OF_WHOLE_JOBS = ("ernest", "nearest")
OWN = "its own profile"
TIMES = "times"
_RATIO_OF = "terasort"


class Rung(NamedTuple):
    """
    Job time that *model* gives for *cell* by one *way*, with the ends of its 90 % interval.

    `None` where the model has no answer, or the interval no end.
    """

    way: str
    model: str
    cell: str
    predicted_s: float | None
    low_s: float | None
    high_s: float | None
    measured_s: float

    @property
    def error(self) -> float | None:
        """Signed relative error; `None` where the model has no answer."""
        return None if self.predicted_s is None else self.predicted_s / self.measured_s - 1

    @property
    def covered(self) -> bool | None:
        """Whether the measured time lies in the interval; `None` where there is none."""
        if self.low_s is None or self.high_s is None:
            return None
        return self.low_s <= self.measured_s <= self.high_s


def ladder(
    target: Evaluation, source: Run, moved: Mapping[str, Mapping[str, Profile]]
) -> Iterator[Rung]:
    """
    All ways for each scored cell of *target*; by each in *moved* profiles of *source* are for it.

    Where no TeraSort of one size and configuration ran on both machines, its ratio is no way.
    """
    origin = Evaluation.of(source)
    profiles = source.read_profiles()
    measured_s = job_times(target)
    ways: dict[str, Mapping[str, Profile]] = {"as it is": profiles}
    if times := terasort_ratio(origin, target):
        ways[f"{TIMES} {times:.2f}, a TeraSort's ratio"] = {
            name: longer_jobs(profile, times) for name, profile in profiles.items()
        }
    ways |= moved
    if any(trial.profiling for trial in target.plan):
        ways[OWN] = target.run.read_profiles()
    scored = dict.fromkeys(trial.cell.id for trial in target.plan if not trial.profiling)
    cells = [target.resolved[key] for key in scored if key in measured_s]
    for way, known in ways.items():
        profiled = target.resolved if way == OWN else origin.resolved
        for model in target.experiment.predict.models:
            if way.startswith(TIMES) and model not in OF_WHOLE_JOBS:
                continue
            for prediction in predict_cells(model, cells, known, profiled):
                low_s, high_s = prediction.intervals.get("job_s", {}).get("90") or (None, None)
                cell = prediction.cell
                time_s = measured_s[prediction.cell]
                yield Rung(way, model, cell, prediction.job_s, low_s, high_s, time_s)


def longer_jobs(profile: Profile, times: float) -> Profile:
    """*profile* whose jobs, and what passes around their tasks, take that many times as long."""
    names = [JOBS + name for name in ("job_s", "body_s", "map_task_s", "reduce_task_s")]
    longer = scaled(profile, dict.fromkeys([*names, *profile.frame], times))
    return longer.model_copy(update={"refits": ()})


def terasort_ratio(origin: Evaluation, target: Evaluation) -> float | None:
    """Job time of the smallest TeraSort that both ran, on the new machine over that on the old."""
    old, new = (
        {
            (cell.workload.input_bytes, *sorted(cell.configuration.items())): times_s[key]
            for key, cell in evaluation.cells.items()
            if cell.workload.name == _RATIO_OF and key in times_s
        }
        for evaluation in (origin, target)
        for times_s in (job_times(evaluation),)
    )
    common = min(old.keys() & new.keys(), default=None)
    return new[common] / old[common] if common else None


def job_times(evaluation: Evaluation) -> dict[str, float]:
    """Mean measured job time of each cell that ran, as measured."""
    times_s = defaultdict[str, list[float]](list)
    for measurement in evaluation.measurements(profiling=True):
        times_s[measurement.cell].append(measurement.raw_s["job_s"])
    return {key: fmean(several) for key, several in times_s.items()}
