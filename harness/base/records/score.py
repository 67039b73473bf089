"""Predictions compared with measurements, each beside the noise of its cell."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Self

from pydantic import Field, model_validator

from harness.base.records.question import Answer, Range
from harness.base.records.trial import SCHEMA_VERSION, Record, SchemaVersion

COMPARED = "job_s"  # what people wait and pay for: by it models are compared

Level = Literal["job", "task", "phase", "equation", "estimate"]
Speed = Literal["raw", "reference"]
# How reports write a value: shares as percentages, a spread with one digit, points of a percentage,
# a share of the cells as their number.
Unit = Literal["share", "signed share", "spread", "points", "cells", "seconds", "number"]
Best = Literal["lowest", "highest", "nearest to 0", "nearest to 1", "nearest to its level"]
Verdict = Literal["nearer", "equal", "undecided"]
TallyUnit = Literal["trial", "cell"]
Family = Literal["asked", "explored"]


class Measurement(Record):
    """
    Times of one trial by quantity (see `Score`), raw and at reference speed.

    *jobs_s* are the raw times of its jobs, in their order.  *range* says where the trial's cell
    lies in the range that was profiled.  *disturbed* repeats the mark of the trial; a disturbed
    trial is scored like any other.  *input* names what the cell reads, workload and size: cells of
    one input vary together (nothing: not known).  *start* names the start of the cluster.
    *of_profile* names the starts and ends of JVMs that the trial does not show itself: its `body_s`
    rests on the profile's.  *weight* is the share of a drawn cell (`Draw`); `None`: all count
    alike.
    """

    cell: str
    workload: str
    trial: str
    input: str = ""
    raw_s: dict[str, float]
    reference_s: dict[str, float]
    jobs_s: tuple[float, ...] = ()
    range: Range = "inside"
    disturbed: str = ""
    start: str = ""
    of_profile: tuple[str, ...] = ()
    weight: float | None = None


class Tally(Record):
    """
    How many trials or cells of those that were *planned* are *scored*, and why others are not.

    It is of one *quantity* and of one *model*, or without one of all: scored is then what one of
    them at least is scored on.  *done* of the planned ones ended well, and *usable* of these show
    the quantity.  *left_out* has the reason of each of the others: with it the sum is *planned*,
    which no record of this kind can miss.
    """

    unit: TallyUnit
    quantity: str
    model: str = ""
    planned: int
    done: int
    usable: int
    scored: int
    left_out: dict[str, int] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _adds_up(self) -> Self:
        if self.scored + sum(self.left_out.values()) != self.planned:
            raise ValueError("what is scored and what is left out are not what was planned")
        if not self.planned >= self.done >= self.usable >= self.scored >= 0:
            raise ValueError(
                "more is scored than usable, or usable than done, or done than planned"
            )
        return self


class Score(Record):
    """
    One model, one cell, one quantity.

    *quantity* is `body_s` (jobs without their frame), `job_s` (of a trial of several jobs, the sum
    of their times), `published_s` (the paper's own formula, which has no frame, against the
    measured job time), `frame_s`, `each_job_s` (the mean job; of a trial of one job there is none),
    `makespan_s` (first task start to last task end), `map_task_s`, `reduce_task_s`, a phase
    (`map_main_s`, `map_tail_s`, `shuffle_s`, `sort_s`, `reduce_rest_s`), or another of a model's
    estimates of the body.  *measured_s* is the mean over the cell's trials, *floor* its noise
    floor: the spread of that mean as a share of it (`None` where nothing was repeated).  Errors are
    shares of *measured_s*; *i_accu* is the accuracy indicator against `whatif` in percent.  *input*
    is that of the cell's measurements.  *covered_80* and *covered_90* say whether *measured_s* lies
    in the predicted interval, where there is one.

    Of a job time, *in_sample_miss* is that of the prediction, and *levelled_error* the relative
    error of the prediction without it: divided by 1 + the miss.  `None` where it is not known.

    *weight* is that of the cell's measurements.
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
    input: str = ""
    covered_80: bool | None = None
    covered_90: bool | None = None
    in_sample_miss: float | None = None
    levelled_error: float | None = None
    weight: float | None = None


class MetricValue(Record):
    """
    Value of a metric, with its 95 % interval where it has one.

    Of fewer cells than six no mean has an interval: *low* and *high* are the smallest and the
    largest value of a cell.
    """

    value: float
    low: float | None = None
    high: float | None = None


class Summary(Record):
    """
    One model, one quantity, all scored cells of one workload (or of all: workload ``*``).

    *metrics* holds the values of `harness.scoring.METRICS` by name, without those that the
    scores do not determine; *not_applicable* counts cells without an answer.
    """

    model: str
    workload: str
    level: Level
    quantity: str
    speed: Speed
    cells: int
    metrics: dict[str, MetricValue] = Field(default_factory=dict)
    not_applicable: int = 0

    def value(self, metric: str) -> float | None:
        """Value of that metric; `None` where the scores do not determine it."""
        return self.metrics[metric].value if metric in self.metrics else None


@dataclass(frozen=True, slots=True)
class Metric:
    """
    A metric: its value is `None` where the scores do not determine it.

    *compute* is given the scores of one model, of one quantity at one speed: at least one.
    *title* heads its column, *description* says in one line what it is and what a good value is.
    *columns* are the speeds at which the table of scores has a column of it, *brief* those at
    which the first screen has one; where no time is at such a speed, it is at the one there is.
    What has none is in the table of further metrics.  An *optional* one has no column where no
    score of a run determines it.
    """

    title: str
    unit: Unit
    best: Best
    compute: Callable[[Sequence[Score]], MetricValue | None]
    description: str
    columns: tuple[Speed, ...] = ()
    brief: tuple[Speed, ...] = ()
    optional: bool = False


class Comparison(Record):
    """
    Relative errors of two models on the cells that all models of the family answer, and a verdict.

    The *family* is what is tested together: the pairs that the question names (`asked`; *better* is
    the first that it names), or all of them (`explored`; *better* errs less).  *difference* is the
    better's mean error minus the worse's, from *low* to *high* as tested (of fewer units than six:
    the range of the cells; `None` where it has no bound).  *verdict* is `nearer` (the better one
    is), `equal` (they differ by less than the margin) or `undecided`; *reason* says why, for what
    it holds, or what would tell.  *chance* is the probability of so large a difference of equal
    models in this family; `None` where that cannot be said.  *errors* are the mean errors of both.

    All that is so with this profile.  With any profile of this kind the verdict is *any_profile*,
    and the difference lies from *any_low* to *any_high*: `undecided` without these where it is not
    known how far the profile varies, and `None` in older comparisons and where nothing is decided.
    """

    better: str
    worse: str
    quantity: str
    speed: Speed
    cells: int
    difference: float
    low: float | None
    high: float | None
    verdict: Verdict
    reason: str
    chance: float | None = None
    family: Family = "explored"
    any_profile: Verdict | None = None
    any_low: float | None = None
    any_high: float | None = None
    errors: tuple[float, float] | None = None


class Ranking(Record):
    """
    The models in the order of their mean errors, on the *cells* that all of them answer.

    *errors* are those means.  *nearest* are, of job times, the models than which no other is
    `nearer`: one alone is the nearest of several; of other times no models are compared.
    *left_out* has the reason for each model that is not ranked.  *cells_left_out* has the number of
    scored cells that are not compared, by the reason.  Older rankings left cells out for their
    frame: *reason* says so.
    """

    quantity: str
    speed: Speed
    cells: int
    models: tuple[str, ...] = ()
    errors: tuple[float, ...] = ()
    nearest: tuple[str, ...] = ()
    left_out: dict[str, str] = Field(default_factory=dict)
    reason: str = ""
    cells_left_out: dict[str, int] = Field(default_factory=dict)


class Decomposition(Record):
    """
    The error of one predicted body in its *parts*, whose sum is predicted less measured.

    They are what the error of each phase is worth in the body, in seconds: positive where it is too
    long.  The phase `rest_s` is what phases do not explain: overlap and waiting.  *cancelled* is
    the share of the parts' sizes that cancels: 0 where all have one sign, 1 where the body is right
    although its parts are not.
    """

    model: str
    cell: str
    speed: Speed
    measured_s: float
    predicted_s: float
    parts: dict[str, float]
    cancelled: float


class Control(Record):
    """
    A made-up model beside the others, on *cells*: what the test does with it.

    `perfect` predicts the measured means but for their noise, `coin` has the errors of the model
    *made_of* with signs that are drawn.  *error* is its mean error over all draws, at most *high*
    in 95 of 100 of them.  *nearer* has, for each model, the share of the draws in which the control
    is nearer than that model, asked alone.
    """

    name: Literal["perfect", "coin"]
    quantity: str
    cells: int
    draws: int
    error: float
    high: float
    made_of: str = ""
    nearer: dict[str, float] = Field(default_factory=dict)


class Drift(Record):
    """
    By which factor scored trials ran slower than those that fed the profiles, beside the probe.

    *ratio* is that of the job times of *sentinels*, trials of some profiling *cells* that ran among
    the scored ones, from *low* to *high* (70 %).
    """

    ratio: float
    low: float
    high: float
    sentinels: int
    cells: int


class ScoreBook(Record):
    """
    All that `score` gives: rows, summaries, comparisons of pairs, rankings, decompositions.

    *profiling* are trials by whose repeats the noise is known, of workloads of which no scored cell
    was repeated.  *answer* is that to the question of the run, *controls* are what the test does
    with made-up models.  *tallies* count what was planned and what of it is scored.  *drift* is
    what sentinels say, where there are some: times at reference speed are without it.  *speed* is
    that at which models are compared.  Older books lack some, and compare at raw speed.
    """

    schema_version: SchemaVersion = SCHEMA_VERSION
    measurements: tuple[Measurement, ...] = Field(default_factory=tuple)
    profiling: tuple[Measurement, ...] = Field(default_factory=tuple)
    scores: tuple[Score, ...] = Field(default_factory=tuple)
    summaries: tuple[Summary, ...] = Field(default_factory=tuple)
    comparisons: tuple[Comparison, ...] = Field(default_factory=tuple)
    rankings: tuple[Ranking, ...] = Field(default_factory=tuple)
    decompositions: tuple[Decomposition, ...] = Field(default_factory=tuple)
    tallies: tuple[Tally, ...] = Field(default_factory=tuple)
    controls: tuple[Control, ...] = Field(default_factory=tuple)
    answer: Answer | None = None
    drift: Drift | None = None
    speed: Speed = "raw"

    def control(self, name: str) -> Control | None:
        """The control of that *name*; `None` in an older book, or where no noise is known."""
        return next((control for control in self.controls if control.name == name), None)

    def asked(self) -> list[Comparison]:
        """Comparisons that the question asks for."""
        return [pair for pair in self.comparisons if pair.family == "asked"]

    def tally(self, unit: TallyUnit, quantity: str = "job_s", model: str = "") -> Tally | None:
        """Count of what is scored of that; `None` in an older book."""
        for tally in self.tallies:
            if (tally.unit, tally.quantity, tally.model) == (unit, quantity, model):
                return tally
        return None

    def ranking(self, speed: Speed | None = None) -> Ranking | None:
        """
        The ranking by job times at that *speed*, by default that at which models are compared.

        In older books it is by bodies, where few job times counted.
        """
        wanted = speed or self.speed
        by_quantity = {
            ranking.quantity: ranking for ranking in self.rankings if ranking.speed == wanted
        }
        jobs = by_quantity.get("job_s")
        bodies = by_quantity.get("body_s")
        if jobs is None or (jobs.reason and bodies and bodies.cells > 2 * jobs.cells):
            return bodies
        return jobs
