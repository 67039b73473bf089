"""
Vet of a finished job: all its tasks, one after the other; answers to test vectors.

What is kept of a task is a few numbers: ten thousand tasks with a hundred thousand units each are
read as a stream.  Vet of a map supposes that it spills once, so that its main thread never waits:
a map that does not is flagged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from itertools import chain
from statistics import fmean, median
from typing import Any

import numpy as np

from harness.base.errors import ModelError
from harness.base.hadoop.constants import METADATA_BYTES
from harness.base.records.prediction import JobConfig
from harness.base.records.trace import TASK_COUNTER, TaskKind
from harness.base.records.vet import (
    FLAGS,
    MULTI_SPILL,
    SUBPHASES,
    TaskUnits,
    VetCurve,
    VetJob,
    VetKind,
    VetTask,
)
from harness.base.units import MIB
from harness.models.checks import check_count
from harness.models.vectors import CaseInput, Evaluator, refuse_too_many
from harness.models.vet.change_point import WHERE, Times, order_units
from harness.models.vet.equations import (
    hill_points,
    ideal_after,
    ks_two_sample,
    tail_index,
    vet_job,
    vet_of_tasks,
    vet_ordered,
    vet_task,
)

BUCKETS = (1000, 100)  # section 3.6: reported beside the units, where there are ten units to each
MOST_POINTS = 400  # of a curve

_MUCH_SPILLING = 0.1  # of a map task's time (V17)


@dataclass(slots=True)
class _Measured:
    """What was measured so far of the tasks of one kind."""

    unit_records: int
    attempts: list[str] = field(default_factory=list)
    tasks: list[VetTask] = field(default_factory=list)
    buckets: dict[int, list[VetTask]] = field(default_factory=dict)
    task_seconds: list[float] = field(default_factory=list)
    alphas: list[float] = field(default_factory=list)
    spill_shares: list[float] = field(default_factory=list)
    short_units: int = 0

    def add(self, task_units: TaskUnits, ordered: Times, task: VetTask) -> None:
        """Take in a *task* whose units, *ordered*, are then needed no more."""
        self.attempts.append(task_units.attempt_id)
        self.tasks.append(task)
        for number in BUCKETS:
            self.buckets.setdefault(number, []).append(vet_ordered(ordered, buckets=number))
        self.task_seconds.append(task_units.task_s)
        alpha = tail_index(ordered)
        if alpha is not None:
            self.alphas.append(alpha)
        if task_units.spill_s is not None and task_units.task_s > 0:
            self.spill_shares.append(task_units.spill_s / task_units.task_s)
        if task_units.records is not None and len(ordered):
            self.short_units += len(ordered) * self.unit_records > task_units.records

    @property
    def spill_share(self) -> float | None:
        """Mean share of a task's time in which a spill ran; `None` where no task says so."""
        return fmean(self.spill_shares) if self.spill_shares else None

    def typical(self, vet_job: VetJob) -> str | None:
        """The attempt nearest to the median of *vet_job*, of equally near ones the first."""
        if vet_job.vet_median is None:
            return None
        distances = [
            (abs(vet - vet_job.vet_median), attempt)
            for attempt, vet in zip(self.attempts, vet_job.vet_tasks, strict=True)
            if vet is not None
        ]
        _, attempt = min(distances)
        return attempt


def assess(traces: Iterable[TaskUnits], config: JobConfig) -> tuple[VetKind, ...]:
    """
    Vet of a job from the units of its finished tasks, in any order, each read once.

    *config* says whether a map's output fits into its sort buffer, and whether a combiner ran.
    """
    kinds: dict[TaskKind, _Measured] = {}
    for task_units in traces:
        unit_records = check_count(
            "unit_records", task_units.unit_records, where=task_units.attempt_id, low=1
        )
        measured = kinds.setdefault(task_units.kind, _Measured(unit_records))
        if measured.unit_records != unit_records:
            sizes = f"units of {measured.unit_records} and of {unit_records} records in one job"
            raise ModelError(sizes, where=f"{WHERE}, {task_units.attempt_id}")
        ordered = order_units(task_units.unit_seconds)
        measured.add(task_units, ordered, assess_task(task_units, ordered, config))
    return tuple(report_kind(name, kinds[name]) for name in SUBPHASES if name in kinds)


def report_kind(name: TaskKind, measured: _Measured) -> VetKind:
    """Vet of the tasks of one kind."""
    flag_counts = Counter(chain.from_iterable(task.flags for task in measured.tasks))
    job = vet_of_tasks(measured.tasks, measured.task_seconds)
    buckets = {number: vet_of_tasks(tasks) for number, tasks in measured.buckets.items()}
    return VetKind(
        kind=name,
        unit_records=measured.unit_records,
        attempts=tuple(measured.attempts),
        job=job,
        buckets={number: vets for number, vets in buckets.items() if vets.tasks_used},
        flags={flag: flag_counts[flag] for flag in FLAGS if flag_counts[flag]},
        short_units=measured.short_units,
        typical=measured.typical(job),
        alpha=median(measured.alphas) if measured.alphas else None,
        spill_share=measured.spill_share,
        warnings=_spill_warnings(name, measured.spill_share),
    )


def _spill_warnings(name: TaskKind, spill_share: float | None) -> tuple[str, ...]:
    """What a reader should know of maps that spilled for much of their time."""
    if name != "map" or spill_share is None or spill_share < _MUCH_SPILLING:
        return ()
    share = f"spills ran for {spill_share:.0%} of the time of a map task"
    return (f"{share}; vet leaves them out, as if they were short",)


def assess_task(task_units: TaskUnits, ordered: Times, config: JobConfig) -> VetTask:
    """Vet of one task, whose times are *ordered*, with all its flags."""
    vet = vet_ordered(ordered)
    if is_multi_spill(task_units, config):
        vet = replace(vet, flags=(MULTI_SPILL, *vet.flags))
    return vet


def is_multi_spill(task_units: TaskUnits, config: JobConfig) -> bool:
    """
    Section 5: whether a map spilled more than once, by its counters, else by its output's size.

    A combiner that ran in the merge as well has read more records than the map wrote.
    """

    def read_counter(name: str) -> int | None:
        value = task_units.counters.get(f"{TASK_COUNTER}.{name}")
        return None if value is None else check_count(name, value, where=WHERE)

    output_bytes = read_counter("MAP_OUTPUT_BYTES")
    written = read_counter("MAP_OUTPUT_RECORDS")
    sorts = task_units.kind == "map" and config.num_reduces
    if not sorts or output_bytes is None or not written:
        return False
    spilled = read_counter("SPILLED_RECORDS")
    combined = read_counter("COMBINE_INPUT_RECORDS")
    after_combiner = read_counter("COMBINE_OUTPUT_RECORDS")
    if not config.use_combiner:
        combined = written
        after_combiner = written
    if None in (spilled, combined, after_combiner):
        buffer_bytes = MIB * config.sort_buffer_mb * config.sort_spill_percent
        return output_bytes + METADATA_BYTES * written > buffer_bytes
    return spilled != after_combiner or combined != written


def vet_curve(task_units: TaskUnits, config: JobConfig) -> VetCurve | None:
    """
    Ordered units of *task* beside their ideal, as few points as a drawing needs.

    The change point, both ends, and some between: half of them evenly, half ever closer to the end,
    where the few largest units are.  `None` where the ideal is not known.
    """
    ordered = order_units(task_units.unit_seconds)
    measured = assess_task(task_units, ordered, config)
    split = measured.change_point
    if split is None:
        return None
    ideal = np.concatenate([ordered[:split], ideal_after(ordered, split)])
    unit_count = len(ordered)
    places = np.arange(unit_count)
    if unit_count > MOST_POINTS:
        even = np.linspace(0, unit_count - 1, MOST_POINTS // 2)
        from_end = unit_count - np.geomspace(1, unit_count, MOST_POINTS // 2)
        drawn = np.concatenate([even, from_end, [split - 2, split - 1, split]])
        places = np.unique(drawn.round().astype(np.int64).clip(0, unit_count - 1))
    return VetCurve(
        attempt_id=task_units.attempt_id,
        kind=task_units.kind,
        task=measured,
        place=tuple((places + 1).tolist()),
        observed_s=tuple(ordered[places].tolist()),
        ideal_s=tuple(ideal[places].tolist()),
    )


# Answers to test vectors


def _answer_tail(case: CaseInput) -> dict[str, Any]:
    points = hill_points(case.fields["unit_seconds"], case.fields["k_values"])
    return {"hill": [asdict(point) for point in points]}


def _answer_job(case: CaseInput) -> dict[str, Any]:
    if isinstance(tasks := case.fields["tasks"], list):
        refuse_too_many("the number of tasks", len(tasks))
    return asdict(vet_job(**case.fields))


EVALUATORS: tuple[Evaluator, ...] = (
    Evaluator("vet", frozenset({"unit_seconds", "k_values"}), _answer_tail),
    Evaluator("vet", frozenset({"unit_seconds"}), lambda case: asdict(vet_task(**case.fields))),
    Evaluator("vet", frozenset({"tasks"}), _answer_job),
    Evaluator(
        "vet",
        frozenset({"sample_a", "sample_b"}),
        lambda case: {
            "ks": asdict(ks_two_sample(case.fields["sample_a"], case.fields["sample_b"]))
        },
    ),
)
