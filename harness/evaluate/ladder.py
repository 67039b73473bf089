"""
What each way of predicting jobs on a new machine is worth: their errors side by side.

The ways, each with what it takes: the profile of the old machine as it is; the same, with times
times the ratio of one TeraSort (for models that know whole jobs alone); transferred by the costs of
both machines; and a profile of the new machine itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from statistics import fmean
from typing import NamedTuple

from harness.errors import DataError
from harness.evaluate.flow import Evaluation
from harness.evaluate.model_inputs import predict_cell
from harness.records.profile import Profile
from harness.records.trial import Cell
from harness.store import Run

OF_WHOLE_JOBS = ("ernest", "nearest")
_RATIO_OF = "terasort"


class Rung(NamedTuple):
    """Signed relative error of the job time that *model* gives for *cell* by one *way*."""

    way: str
    model: str
    cell: str
    predicted_s: float | None
    measured_s: float

    @property
    def error(self) -> float | None:
        """Relative error; `None` where the model has no answer."""
        return None if self.predicted_s is None else self.predicted_s / self.measured_s - 1


def ladder(target: Evaluation, source: Run, moved: Mapping[str, Profile]) -> Iterator[Rung]:
    """
    All ways for each scored cell of *target*, whose profiles from *source* are *moved* to it.

    `DataError`: there is no TeraSort that both machines ran.
    """
    origin, own = Evaluation.of(source), target.run.read_profiles()
    profiles = source.read_profiles()
    times = terasort_ratio(origin, target)
    ways = {
        "as it is": profiles,
        f"times {times:.2f}, the ratio of a TeraSort": {
            name: longer_jobs(profile, times) for name, profile in profiles.items()
        },
        "transferred": moved,
    }
    if any(record.trial.profiling for record in target.done.values()):
        ways["its own profile"] = own
    measured_s = _job_times(target)
    scored = {trial.cell.id: trial.cell for trial in target.plan if not trial.profiling}
    for way, known in ways.items():
        for model in target.experiment.predict.models:
            if "ratio" in way and model not in OF_WHOLE_JOBS:
                continue
            for key, cell in scored.items():
                if key in measured_s:
                    predicted_s = predict_cell(model, cell, known).job_s
                    yield Rung(way, model, key, predicted_s, measured_s[key])


def longer_jobs(profile: Profile, times: float) -> Profile:
    """*profile* whose jobs, and what passes around their tasks, take that many times as long."""
    names = ("job_s", "body_s", "map_task_s", "reduce_task_s")
    jobs = [
        job.model_copy(
            update={name: times * value for name in names if (value := getattr(job, name))}
        )
        for job in profile.jobs
    ]
    frame = {
        name: each.model_copy(update={"value": times * each.value})
        for name, each in profile.frame.items()
    }
    return profile.model_copy(update={"jobs": tuple(jobs), "frame": frame, "refits": ()})


def terasort_ratio(origin: Evaluation, target: Evaluation) -> float:
    """Job time of the smallest TeraSort that both ran, on the new machine over that on the old."""

    def by_work(evaluation: Evaluation) -> dict[tuple[int, str], list[float]]:
        times_s = dict[tuple[int, str], list[float]]()
        for record in evaluation.done.values():
            cell = record.trial.cell
            if cell.workload.name == _RATIO_OF:
                job_s = sum(job.job_s for job in evaluation.jobs(record))
                times_s.setdefault(_work(cell), []).append(job_s)
        return times_s

    old, new = by_work(origin), by_work(target)
    if not (common := sorted(old.keys() & new.keys())):
        what = f"no {_RATIO_OF} of one size and configuration ran on both machines"
        raise DataError(what, where=str(target.run.path), fix="measure one on both")
    return fmean(new[common[0]]) / fmean(old[common[0]])


def _work(cell: Cell) -> tuple[int, str]:
    """What a cell does, wherever it runs."""
    return cell.workload.input_bytes, repr(sorted(cell.configuration.items()))


def _job_times(evaluation: Evaluation) -> dict[str, float]:
    """Mean measured job time of each scored cell."""
    times_s = dict[str, list[float]]()
    for record in evaluation.done.values():
        if not record.trial.profiling:
            job_s = sum(job.job_s for job in evaluation.jobs(record))
            times_s.setdefault(record.trial.cell.id, []).append(job_s)
    return {key: fmean(several) for key, several in times_s.items()}
