"""
What models keep of the profiling trials: dataflow statistics and cost statistics.

Names are the field names of ``docs/models``; units are bytes, records and seconds.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import FailFast, Field

from harness.base.records.prediction import JobConfig
from harness.base.records.statistics import rows_of
from harness.base.records.trial import SCHEMA_VERSION, Hardware, Record, SchemaVersion

# What passes around tasks, in seconds.
FRAME = tuple(row.name for row in rows_of("frame"))
# What a task takes beside all equations, in seconds, in the order of the phases of a job history.
FIXED = tuple(row.name for row in rows_of("fixed seconds"))
FRAME_OF_REDUCES = tuple(row.name for row in rows_of("frame") if row.side == "reduce")


class Statistic(Record):
    """
    One number with its noise: how many observations, their spread, where it came from.

    *spread* is the standard deviation of a dataflow statistic over tasks or trials, and the
    standard error of a fitted cost.  *group* names the other costs from which the trials could not
    separate this one; its own value is then *assumed* (a share of the group's sum).  *nodes* are
    the values of each host alone, where they were taken apart.
    """

    value: float
    count: int
    spread: float
    source: str
    assumed: bool = False
    group: tuple[str, ...] = ()
    nodes: dict[str, float] = Field(default_factory=dict)


class CostGroup(Record):
    """Costs that only occur together: what the trials do give is their sum in *phase* seconds."""

    names: tuple[str, ...]
    sum_s: float
    spread_s: float
    note: str = ""


class SpeedCorrection(Record):
    """
    How a trial's time is brought to reference speed: time x (rate / reference_rate) ** coefficient.

    *reference_rate* is the median probe rate (units of work per CPU second) of the profiling
    trials.  *coefficient* is fitted on them and is 0 where they do not bear one;
    *gain* is the relative fall of the leave-one-out spread that it brings.
    """

    reference_rate: float = Field(ge=1e-9, le=1e30)
    coefficient: float = Field(ge=-5, le=5)
    gain: float
    count: int
    note: str = ""

    def at_reference(self, seconds: float, rate: float) -> float:
        """Time at reference speed of a trial that took *seconds* at probe rate *rate*."""
        return float(seconds * (rate / self.reference_rate) ** self.coefficient)


class FitDiagnostic(Record):
    """How well the costs explain one phase: observations, R2, median absolute relative residual."""

    phase: str
    count: int
    r2: float
    median_residual: float


class StartsAtOnce(Record):
    """
    Starts of the JVMs of one *kind* of task while so many tasks ran *at_once* on their machine.

    *start_s* is the median over *count* tasks from the launch of the container to the task's work,
    *spread* the median absolute deviation, *boot_cpu_s* the median of the processor seconds of the
    process until its main method, `None` where nobody read them.  At reference speed.
    """

    kind: Literal["map", "reduce"]
    at_once: int
    start_s: float
    count: int
    spread: float
    boot_cpu_s: float | None = None


class ProfiledJob(Record):
    """
    One job of a profiling trial: what it was asked, and its times at reference speed.

    *number* counts the jobs of one trial from 0.  Sizes are stored bytes; slots those that were
    effective.  *body_s* is the time in which its tasks were at work, *map_task_s* and
    *reduce_task_s* the means of its tasks, all without start and end of their JVMs; `None` where
    these are not known or there are none.  *map_slowdown_s* is by how much maps took longer once
    reduces ran than those of the first wave, `None` where nothing tells (no reduce before the last
    map started).  *task_cpu_s* are the processor seconds of its tasks' processes, *outside_cpu_s*
    those of all other processes of the cluster and of its client meanwhile, `None` where they were
    not sampled.  *containers* are those of its tasks, *nodes* what workers were limited to, where
    one was.
    """

    trial: str
    cell: str
    number: int = 0
    input_bytes: int
    num_splits: int
    num_nodes: int
    map_slots: int
    reduce_slots: int
    configuration: JobConfig
    job_s: float
    body_s: float | None = None
    map_task_s: float | None = None
    reduce_task_s: float | None = None
    map_slowdown_s: float | None = None
    shuffle_bytes_total: float = 0.0
    task_cpu_s: float | None = None
    outside_cpu_s: float | None = None
    containers: int = 0
    nodes: tuple[Hardware, ...] = ()


class Profile(Record):
    """
    All that a model is given of a workload.

    *frame* is what passes around tasks, by the names of `FRAME`: of no model, so that the same
    function adds it to every model's body (`harness.models.frame`).  Among the *statistics* are the
    fixed seconds, by the names of `FIXED`, where tasks were recorded (none in an older profile).
    *costs* hold, beside the common ones, those of maps and of reduces alone (``NAME_map``,
    ``NAME_reduce``) where trials tell them apart.  *ranges* are the smallest and largest value
    profiled of each axis (input, splits, workers, slots, numeric properties and arguments).  *jobs*
    are the jobs of the profiling trials (none in an older profile), *starts* how long JVMs took to
    start.  *refits* are profiles
    fitted without one profiling cell each (without a few of more than 20), where that can be done:
    its jobs lack those cells.  *repeats* are profiles fitted without one trial each of some cells,
    whose other trials stay: how far the profile varies.  *draws*, of a profile that was taken from
    another machine, are by how much longer each of its times might be, by name.
    """

    schema_version: SchemaVersion = SCHEMA_VERSION
    workload: str
    statistics: dict[str, Statistic] = Field(default_factory=dict)
    costs: dict[str, Statistic] = Field(default_factory=dict)
    frame: dict[str, Statistic] = Field(default_factory=dict)
    groups: tuple[CostGroup, ...] = ()
    fit: tuple[FitDiagnostic, ...] = ()
    ranges: dict[str, tuple[float, float]] = Field(default_factory=dict)
    speed: SpeedCorrection | None = None
    trials: tuple[str, ...] = ()
    jobs: tuple[ProfiledJob, ...] = ()
    starts: tuple[StartsAtOnce, ...] = ()
    warnings: tuple[str, ...] = ()
    # A profile of a stranger may have any number of these: the first that is wrong is enough.
    refits: Annotated[tuple[Profile, ...], FailFast()] = ()
    repeats: Annotated[tuple[Profile, ...], FailFast()] = ()
    draws: Annotated[tuple[dict[str, float], ...], FailFast()] = ()
