"""
Vet of a finished job: all its tasks, one after the other.

What stays of a task is a few numbers: ten thousand tasks with a hundred thousand units each are
read as a stream.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean, median

from harness.errors import ModelError
from harness.models.checks import check_count
from harness.models.vet.inputs import WHERE, ordered
from harness.models.vet.job import of_tasks
from harness.models.vet.spill import single_spill_check
from harness.models.vet.tail import tail_index_ordered
from harness.models.vet.task import vet_ordered
from harness.records.prediction import JobConfig
from harness.records.trace import TASK_COUNTER, TaskKind
from harness.records.vet import (
    FLAGS,
    MULTI_SPILL,
    SUBPHASES,
    TaskUnits,
    VetKind,
    VetReport,
    VetTask,
)

BUCKETS = (1000, 100)  # section 3.6: reported beside the units, where there are ten units to each

_MUCH_SPILLING = 0.1  # of a map task's time (V17)


@dataclass(slots=True)
class _Kind:
    """What was measured so far of the tasks of one kind."""

    unit_records: int
    attempts: list[str] = field(default_factory=list)
    tasks: list[VetTask] = field(default_factory=list)
    buckets: dict[int, list[VetTask]] = field(default_factory=dict)
    task_s: list[float] = field(default_factory=list)
    alphas: list[float] = field(default_factory=list)
    spill_shares: list[float] = field(default_factory=list)
    short_units: int = 0


def assess(traces: Iterable[TaskUnits], config: JobConfig) -> VetReport:
    """
    Vet of a job from the units of its finished tasks, in any order, each looked at once.

    *config* says whether a map's output fits into its sort buffer, and whether a combiner ran.
    ``ModelError`` where a time is bad, or tasks of one kind have units of different size.
    """
    kinds: dict[TaskKind, _Kind] = {}
    for task in traces:
        size = check_count("unit_records", task.unit_records, where=task.attempt_id, low=1)
        kind = kinds.setdefault(task.kind, _Kind(size))
        if kind.unit_records != size:
            sizes = f"units of {kind.unit_records} and of {size} records in one job"
            raise ModelError(sizes, where=f"{WHERE}, {task.attempt_id}")
        _add(kind, task, config)
    found = (_kind(name, kinds[name]) for name in SUBPHASES if name in kinds)
    return VetReport(tuple(found))


def assess_task(task: TaskUnits, config: JobConfig) -> VetTask:
    """Vet of one task, with all its flags."""
    measured = vet_ordered(ordered(task.unit_seconds))
    return _flagged(measured, multi_spill=multi_spill(task, config))


def multi_spill(task: TaskUnits, config: JobConfig) -> bool:
    """Whether a map spilled more than once: by its counters, else by the size of its output."""
    if task.kind != "map" or not config.num_reduces:
        return False
    sizes = {
        field: task.counters.get(f"{TASK_COUNTER}.{name}")
        for field, name in (
            ("map_out_bytes", "MAP_OUTPUT_BYTES"),
            ("map_out_records", "MAP_OUTPUT_RECORDS"),
        )
    }
    if None in sizes.values():
        return False
    checked = single_spill_check({**sizes, "counters": task.counters}, config.model_dump())
    once = checked.observed_single_spill
    return not (checked.single_spill if once is None else once)


def _add(kind: _Kind, task: TaskUnits, config: JobConfig) -> None:
    y = ordered(task.unit_seconds)
    kind.attempts.append(task.attempt_id)
    kind.tasks.append(_flagged(vet_ordered(y), multi_spill=multi_spill(task, config)))
    for number in BUCKETS:
        kind.buckets.setdefault(number, []).append(vet_ordered(y, buckets=number))
    kind.task_s.append(task.task_s)
    if (alpha := tail_index_ordered(y)) is not None:
        kind.alphas.append(alpha)
    if task.spill_s is not None and task.task_s > 0:
        kind.spill_shares.append(task.spill_s / task.task_s)
    if task.records is not None and len(y):
        kind.short_units += len(y) * kind.unit_records > task.records


def _flagged(task: VetTask, *, multi_spill: bool) -> VetTask:
    return replace(task, flags=(MULTI_SPILL, *task.flags)) if multi_spill else task


def _kind(name: TaskKind, kind: _Kind) -> VetKind:
    counted = Counter(flag for task in kind.tasks for flag in task.flags)
    job = of_tasks(kind.tasks, kind.task_s)
    with_buckets = {number: of_tasks(tasks) for number, tasks in kind.buckets.items()}
    share = fmean(kind.spill_shares) if kind.spill_shares else None
    return VetKind(
        kind=name,
        unit_records=kind.unit_records,
        attempts=tuple(kind.attempts),
        job=job,
        buckets={number: each for number, each in with_buckets.items() if each.tasks_used},
        flags={flag: counted[flag] for flag in FLAGS if counted[flag]},
        short_units=kind.short_units,
        typical=_typical(kind.attempts, job.vet_tasks, job.vet_median),
        alpha=median(kind.alphas) if kind.alphas else None,
        spill_share=share,
        warnings=_warnings(name, share),
    )


def _typical(
    attempts: Sequence[str], values: Sequence[float | None], middle: float | None
) -> str | None:
    """Attempt whose vet is nearest to the median, the first of these by name."""
    if middle is None:
        return None
    known = [(abs(v - middle), a) for a, v in zip(attempts, values, strict=True) if v is not None]
    return min(known)[1]


def _warnings(kind: TaskKind, spill_share: float | None) -> tuple[str, ...]:
    if kind != "map" or spill_share is None or spill_share < _MUCH_SPILLING:
        return ()
    share = f"spills ran for {spill_share:.0%} of the time of a map task"
    return (f"{share}; vet leaves them out, as if they were short",)
