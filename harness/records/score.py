"""Predictions compared with measurements, each beside the noise of its cell."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from harness.records.trial import Record

Level = Literal["job", "task", "phase"]
Speed = Literal["raw", "reference"]
Range = Literal["inside", "edge", "outside"]


class Measurement(Record):
    """
    Times of one trial by quantity (see `Score`), raw and at reference speed.

    *jobs_s* are the raw times of its jobs, in their order.  *range* says where the trial's cell
    lies in the range that was profiled.  *disturbed* repeats
    the mark of the trial; a disturbed trial is scored like any other.
    """

    cell: str
    workload: str
    trial: str
    raw_s: dict[str, float]
    reference_s: dict[str, float]
    jobs_s: tuple[float, ...] = ()
    range: Range = "inside"
    disturbed: str = ""


class Score(Record):
    """
    One model, one cell, one quantity.

    *quantity* is `job_s` (of a trial of several jobs, the sum of their times), `each_job_s` (the
    mean of them; of a trial of one job there is none), `makespan_s` (first task start to last task
    end), `map_task_s`, `reduce_task_s`, or a phase (`map_main_s`, `map_tail_s`, `shuffle_s`,
    `sort_s`, `reduce_rest_s`).  *measured_s* is the mean over the cell's trials, *floor* its noise
    floor: the coefficient of variation of the repeats (`None` for a single trial).  Errors are
    shares of *measured_s*; *i_accu* is the accuracy indicator against `whatif` in percent.
    """

    model: str
    cell: str
    level: Level
    quantity: str
    speed: Speed
    predicted_s: float
    measured_s: float
    trials: int
    floor: float | None
    signed_error: float
    relative_error: float
    i_accu_percent: float | None = None
    range: Range = "inside"


class Calibration(Record):
    """Regression of measured on predicted times, measured = intercept_s + slope x predicted."""

    slope: float
    intercept_s: float
    r2: float
    count: int


class Summary(Record):
    """
    One model, one quantity, all scored cells of one workload (or of all: workload ``*``).

    *mape* with its bootstrap interval; *median_floor* is the median noise floor of the cells;
    *within_floor* the share of cells whose error lies inside its floor; *not_applicable* counts
    cells without an answer.
    """

    model: str
    workload: str
    level: Level
    quantity: str
    speed: Speed
    cells: int
    mape: float
    mape_low: float
    mape_high: float
    mean_signed_error: float
    worst_error: float
    median_floor: float | None
    within_floor: float | None
    mean_i_accu_percent: float | None
    calibration: Calibration | None
    not_applicable: int = 0


class Comparison(Record):
    """Paired bootstrap of two models' relative errors: the better's mean minus the worse's."""

    better: str
    worse: str
    quantity: str
    speed: Speed
    cells: int
    difference: float
    low: float
    high: float
    outside_noise: bool


class PhaseError(Record):
    """
    What the error of one phase is worth in the job time, in seconds: positive where it is too long.

    *waves* is how often the phase enters the job time.  The phase `rest_s` is what phases do not
    explain: overlap, start-up, waiting.
    """

    phase: str
    waves: float
    error_s: float


class Decomposition(Record):
    """
    The error of one predicted job time in its *parts*, whose sum is predicted less measured.

    *cancelled* is the share of the parts' sizes that cancels: 0 where all have one sign, 1 where
    the job time is right although its parts are not.
    """

    model: str
    cell: str
    speed: Speed
    measured_s: float
    predicted_s: float
    parts: tuple[PhaseError, ...]
    cancelled: float


class ScoreBook(Record):
    """
    Everything that `score` gives: rows, summaries, comparisons of pairs of models, decompositions.

    *not_applicable* counts, by model, the measured cells for which it had no answer (a model
    without any answer has no summary).
    """

    schema_version: Literal[1] = 1
    scores: tuple[Score, ...] = Field(default_factory=tuple)
    summaries: tuple[Summary, ...] = Field(default_factory=tuple)
    comparisons: tuple[Comparison, ...] = Field(default_factory=tuple)
    decompositions: tuple[Decomposition, ...] = Field(default_factory=tuple)
    not_applicable: dict[str, int] = Field(default_factory=dict)
