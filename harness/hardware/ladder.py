"""
What each way of predicting jobs on a new machine is worth: their errors side by side.

The ways, each with what it takes: the profile of the old machine as it is; the same, with times
times the ratio of one TeraSort (for models that know whole jobs alone); transferred by the costs of
both machines; and profiles of the new machine itself.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from harness.base.documents.wording import count, percent
from harness.base.errors import DataError
from harness.base.records.prediction import Prediction
from harness.base.records.profile import Profile
from harness.base.records.trial import Cell
from harness.core.evaluate.flow import Evaluation
from harness.core.evaluate.predict import JOBS, predict_cells, scaled
from harness.core.store import Run
from harness.hardware.transfer import profiles_for, read_hardware
from harness.models import present_name

Profiles = Mapping[str, Profile]  # by workload

OF_WHOLE_JOBS = ("ernest", "scaling")
AS_IT_IS = "as it is"
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

    @classmethod
    def of(cls, way: str, prediction: Prediction, measured_s: float) -> Rung:
        """What one *prediction* says of a job that took *measured_s*."""
        low_s, high_s = prediction.intervals.get("job_s", {}).get("90") or (None, None)
        return cls(
            way=way,
            model=prediction.model,
            cell=prediction.cell,
            predicted_s=prediction.job_s,
            low_s=low_s,
            high_s=high_s,
            measured_s=measured_s,
        )

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


def ladder(target: Evaluation, source: Run, moved: Mapping[str, Profiles]) -> Iterator[Rung]:
    """
    All ways for each scored cell of *target*; by each in *moved* profiles of *source* are for it.

    Where no TeraSort of one size and configuration ran on both machines, its ratio is no way.
    """
    origin = Evaluation.of(source)
    measured_s = job_times(target)
    scored = dict.fromkeys(trial.cell.id for trial in target.plan if trial.is_scored)
    cells = [target.resolved[cell_id] for cell_id in scored if cell_id in measured_s]
    for way, profiles in _ways(origin, target, moved).items():
        profiled = target.resolved if way == OWN else origin.resolved
        for model in target.experiment.predict.models:
            if way.startswith(TIMES) and present_name(model) not in OF_WHOLE_JOBS:
                continue
            for prediction in predict_cells(model, cells, profiles, profiled):
                yield Rung.of(way, prediction, measured_s[prediction.cell])


def _ways(
    origin: Evaluation, target: Evaluation, moved: Mapping[str, Profiles]
) -> dict[str, Profiles]:
    """Profiles by each way, from the one that takes nothing to those of the new machine itself."""
    profiles = origin.run.read_profiles()
    ways: dict[str, Profiles] = {AS_IT_IS: profiles}
    if times := terasort_ratio(origin, target):
        ways[f"{TIMES} {times:.2f}, a TeraSort's ratio"] = {
            name: longer_jobs(profile, times) for name, profile in profiles.items()
        }
    ways |= moved
    if any(trial.profiling for trial in target.plan):
        ways[OWN] = target.run.read_profiles()
    return ways


def transferred_ways(
    source: Run, pairs: Iterable[tuple[Path, Path]], cells: Iterable[Cell]
) -> tuple[dict[str, Profiles], list[str]]:
    """
    Profiles of *source* for the machine of the second file of each pair, by the way's name.

    With them, what *cells* have other than these machines, each once.
    """
    cells = [*cells]
    ways = dict[str, Profiles]()
    differing = dict[str, None]()
    for old_path, new_path in pairs:
        minutes = f"{read_hardware(new_path).spent_s / 60:.0f} min"
        way = f"by {new_path.name}, {minutes}"
        if way in ways:
            way = f"by {new_path} from {old_path}, {minutes}"
        ways[way], differences = profiles_for(source, (old_path, new_path), cells)
        differing |= dict.fromkeys(differences)
    return ways, [*differing]


def profiled_way(run: Run) -> tuple[str, Profiles]:
    """Name of the way that profiles of *run* are, and these; `DataError` where it has none."""
    jobs = [record for record in Evaluation.of(run).done.values() if record.trial.profiling]
    if not jobs:
        fix = "name a run that has profiles of its own"
        raise DataError("it has no profiling trial", where=str(run.path), fix=fix)
    seconds = sum(job.finished_s - job.started_s for job in jobs)
    way = f"profiled in {run.id}, {len(jobs)} jobs in {seconds / 60:.0f} min"
    return way, run.read_profiles()


def longer_jobs(profile: Profile, times: float) -> Profile:
    """*profile* whose jobs, and what passes around their tasks, take that many times as long."""
    names = [JOBS + name for name in ("job_s", "body_s", "map_task_s", "reduce_task_s")]
    longer = scaled(profile, dict.fromkeys([*names, *profile.frame], times))
    return longer.model_copy(update={"refits": ()})


def terasort_ratio(origin: Evaluation, target: Evaluation) -> float | None:
    """Job time of the smallest TeraSort that both ran, on the new machine over that on the old."""
    old_s = _terasorts(origin)
    new_s = _terasorts(target)
    common = min(old_s.keys() & new_s.keys(), default=None)
    return new_s[common] / old_s[common] if common else None


def _terasorts(evaluation: Evaluation) -> dict[tuple[object, ...], float]:
    """Mean job time of each TeraSort that ran, by its size and configuration."""
    times_s = job_times(evaluation)
    return {
        (cell.workload.input_bytes, *sorted(cell.configuration.items())): times_s[key]
        for key, cell in evaluation.cells.items()
        if cell.workload.name == _RATIO_OF and key in times_s
    }


def job_times(evaluation: Evaluation) -> dict[str, float]:
    """Mean measured job time of each cell that ran, as measured."""
    times_s = defaultdict[str, list[float]](list)
    for measurement in evaluation.measurements(profiling=True):
        times_s[measurement.cell].append(measurement.raw_s["job_s"])
    return {key: fmean(repeats_s) for key, repeats_s in times_s.items()}


# What the ladder says.


class WayErrors(NamedTuple):
    """
    Errors of *model* by one *way*, as shares and without their signs: of each cell, by its id.

    *covered* says of each cell with an interval whether the measured time lies in it.
    """

    way: str
    model: str
    errors: Mapping[str, float]
    covered: Sequence[bool]

    def of_workload(self, workload: str, target: Evaluation) -> list[float]:
        """Errors of the cells of one *workload*."""
        return [
            error
            for cell_id, error in self.errors.items()
            if target.cells[cell_id].workload.name == workload
        ]


def errors_by_way(rungs: Sequence[Rung]) -> Iterator[WayErrors]:
    """Yield the errors of each model by each way, in the order of *rungs*."""
    rungs_by_way = defaultdict[tuple[str, str], list[Rung]](list)
    for rung in rungs:
        rungs_by_way[rung.way, rung.model].append(rung)
    for (way, model), way_rungs in rungs_by_way.items():
        errors = {rung.cell: abs(rung.error) for rung in way_rungs if rung.error is not None}
        covered = [rung.covered for rung in way_rungs if rung.covered is not None]
        yield WayErrors(way, model, errors, covered)


def ladder_answer(rungs: Sequence[Rung], target: Evaluation) -> dict[str, Any]:
    """What the *rungs* say: the nearest way, how far off it is, and on what that rests."""
    ways = [errors for errors in errors_by_way(rungs) if errors.errors]
    cells = {rung.cell for rung in rungs}
    jobs = sum(measured.cell in cells for measured in target.measurements(profiling=True))
    rests_on = {"cells": len(cells), "jobs": jobs}
    if not ways:
        says = "no way of predicting has an answer"
        return {"says": says, "judge": None, "judge_error": None, "rests_on": rests_on}
    # A way that answers fewer cells is compared with nothing.
    most = max(len(errors.errors) for errors in ways)
    whole = [errors for errors in ways if len(errors.errors) == most]
    nearest = min(whole, key=lambda errors: fmean(errors.errors.values()))
    error = fmean(nearest.errors.values())
    text = f"nearest is {nearest.model}, {nearest.way}: {percent(error)} off on job times here"
    old_errors = [errors for errors in whole if errors.way == AS_IT_IS]
    if old_errors:
        old = min(fmean(errors.errors.values()) for errors in old_errors)
        text += f", with the old profile as it is {percent(old)} at best"
    says = f"{text}; it rests on {count(most, 'cell')}, {count(jobs, 'job')}"
    return {"says": says, "judge": nearest.model, "judge_error": error, "rests_on": rests_on}


def ladder_table(
    target: Evaluation, rungs: Sequence[Rung]
) -> tuple[list[str], list[tuple[str, ...]]]:
    """Columns and rows of a table: errors by each way, of all cells and of each workload's."""
    workloads = sorted({target.cells[rung.cell].workload.name for rung in rungs})
    rows = []
    for way_errors in errors_by_way(rungs):
        errors = [*way_errors.errors.values()]
        summary = ("no answer", "")
        if errors:
            summary = (f"{fmean(errors):.1%}", f"{max(errors):.1%}")
        means = []
        for workload in workloads:
            workload_errors = way_errors.of_workload(workload, target)
            means.append(f"{fmean(workload_errors):.1%}" if workload_errors else "")
        covered = way_errors.covered
        coverage = f"{sum(covered)} of {len(covered)}" if covered else ""
        row = (way_errors.way, way_errors.model, str(len(errors)), *summary, *means, coverage)
        rows.append(row)
    columns = ["profile", "model", "cells", "mean error", "largest", *workloads, "in 90 %"]
    return columns, rows


def draw_ladder(path: Path, rungs: Sequence[Rung]) -> None:
    """Draw the mean error of each model by each way that all models can take."""
    import pandas as pd

    from harness.base.documents.drawing import SERIES, WIDE, Canvas, drawing, grid

    errors = [
        (rung.way, rung.model, 100 * abs(rung.error)) for rung in rungs if rung.error is not None
    ]
    table = pd.DataFrame(errors, columns=["way", "model", "error"])
    means = table.pivot_table("error", "way", "model", sort=False).dropna()
    with drawing():
        canvas = Canvas(WIDE, 3.4)
        axes = canvas.figure.add_subplot()
        means.plot(
            ax=axes,
            style="o-",
            color=[*SERIES],
            legend=False,
            xlabel="",
            ylim=(0, None),
            ylabel="mean error of job times, %",
            xticks=range(len(means)),
        )
        grid(axes, "y")
        canvas.figure.legend(loc="outside lower center", ncols=3)
        path.write_bytes(canvas.file(path.suffix))
