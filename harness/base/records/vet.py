"""
What vet measures of finished tasks: how much of their time was overhead.

Field names are those of ``docs/models/vet.md``, section 1.  Times are seconds; `None` stands where
a quantity is not defined.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from harness.base.records.trace import TaskKind

VetStatus = Literal["ok", "too_few_units", "zero_ideal"]

NEGATIVE_OVERHEAD = "negative_overhead"  # the ideal is above what was observed
OMEGA_SENSITIVE = "omega_sensitive"  # another probing window gives another answer
MULTI_SPILL = "multi_spill"  # units hold waiting for a full sort buffer
FLAGS = (MULTI_SPILL, OMEGA_SENSITIVE, NEGATIVE_OVERHEAD)

SUBPHASES: Mapping[TaskKind, str] = {"map": "read-map", "reduce": "reduce-write"}


@dataclass(frozen=True, slots=True)
class TaskUnits:
    """
    What vet reads of one finished task: the seconds of its units, in their order.

    *records* is how many its loop read, *task_s* its whole time, *spill_s* the part in which a
    spill ran; *counters* are those of the task, as `harness.base.records.trace` keys them.
    """

    attempt_id: str
    kind: TaskKind
    unit_records: int
    unit_seconds: Sequence[float]
    task_s: float
    records: int | None = None
    spill_s: float | None = None
    counters: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class VetTask:
    """
    Vet of one task.

    With *buckets*, sums of `bucket_units` ordered units each are looked at instead of units:
    `change_point`, `sse` and `slope_s` are of these, and `set_aside` units belong to none.
    """

    n: int
    status: VetStatus
    profiled_real_s: float
    change_point: int | None = None
    sse: float | None = None
    slope_s: float | None = None
    estimated_ideal_s: float | None = None
    overhead_s: float | None = None
    vet: float | None = None
    flags: tuple[str, ...] = ()
    buckets: int | None = None
    set_aside: int | None = None
    bucket_units: int | None = None


@dataclass(frozen=True, slots=True)
class VetJob:
    """Vet of the tasks of a job; means, quartiles and sample deviations are over the used tasks."""

    vet_tasks: tuple[float | None, ...]
    tasks_used: int
    tasks_skipped: int
    vet_job: float | None
    vet_quartile_1: float | None
    vet_median: float | None
    vet_quartile_3: float | None
    pr_mean_s: float | None
    pr_std_s: float | None
    ei_mean_s: float | None
    ei_std_s: float | None
    oc_mean_s: float | None
    ratio_of_means: float | None
    pearson_vet_vs_task_seconds: float | None


@dataclass(frozen=True, slots=True)
class HillPoint:
    """Hill's estimate from the *k* largest units; `alpha` is the tail index."""

    k: int
    mean_log_excess: float
    alpha: float


@dataclass(frozen=True, slots=True)
class KsTest:
    """Two-sample Kolmogorov-Smirnov test, two-sided."""

    statistic: float
    p_value: float


@dataclass(frozen=True, slots=True)
class VetKind:
    """
    Vet of all tasks of one kind of a job.

    *job* looks at units, *buckets* (their number -> the same) at sums of ordered units.  *flags*
    counts the tasks that have each; *short_units* those whose last unit has fewer records.
    *typical* is the attempt with the median vet, *alpha* the median tail index of the tasks that
    have one.
    """

    kind: TaskKind
    unit_records: int
    attempts: tuple[str, ...]
    job: VetJob
    buckets: Mapping[int, VetJob] = field(default_factory=dict)
    flags: Mapping[str, int] = field(default_factory=dict)
    short_units: int = 0
    typical: str | None = None
    alpha: float | None = None
    spill_share: float | None = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class VetCurve:
    """
    Ordered units of one task for a drawing: some of them, the outermost always.

    *place* counts from 1, *observed_s* are the ordered units, *ideal_s* what they should be.
    """

    attempt_id: str
    kind: TaskKind
    task: VetTask
    place: tuple[int, ...]
    observed_s: tuple[float, ...]
    ideal_s: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class JobVet:
    """Vet of each kind of task of a trial's job, and a curve of the typical task of each kind."""

    trial: str
    cell: str
    repetition: int
    kinds: tuple[VetKind, ...]
    curves: tuple[VetCurve, ...] = ()


@dataclass(frozen=True, slots=True)
class RepeatsTest:
    """Whether the vets of tasks of two repeats of a cell may have one distribution."""

    cell: str
    kind: TaskKind
    repetitions: tuple[int, int]
    ks: KsTest


@dataclass(frozen=True, slots=True)
class VetBook:
    """Vet of all jobs of a run whose tasks have times of units, and their repeats compared."""

    jobs: tuple[JobVet, ...] = ()
    repeats: tuple[RepeatsTest, ...] = ()
