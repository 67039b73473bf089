"""
Vet of a finished job: all its tasks, one after the other; answers to test vectors.

What is kept of a task is a few numbers: ten thousand tasks with a hundred thousand units each are
read as a stream.  Vet of a map supposes that it spills once, so that its main thread never waits:
`single_spill_check` is section 5.
"""

from __future__ import annotations

import math

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from statistics import fmean, median
from typing import Any, Literal

import numpy as np

from harness.errors import ModelError
from harness.models.checks import check_count, check_flag, check_number
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
from harness.records.prediction import JobConfig
from harness.records.trace import TASK_COUNTER, TaskKind
from harness.records.vet import (
    FLAGS,
    MULTI_SPILL,
    SUBPHASES,
    SingleSpill,
    TaskUnits,
    VetCurve,
    VetKind,
    VetReport,
    VetTask,
)

BUCKETS = (1000, 100)  # section 3.6: reported beside the units, where there are ten units to each
MOST_POINTS = 400  # of a curve
METADATA_BYTES = 16  # of a record in the sort buffer
MOST_SORT_BUFFER_MB = 2047

_MIB = 2**20
_MUCH_SPILLING = 0.1  # of a map task's time (V17)
_MAP_OUTPUT = {"map_out_bytes": "MAP_OUTPUT_BYTES", "map_out_records": "MAP_OUTPUT_RECORDS"}


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


def assess(traces: Iterable[TaskUnits], config: JobConfig) -> VetReport:
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
        measured.attempts.append(task_units.attempt_id)
        measured.tasks.append(assess_task(task_units, ordered, config))
        for number in BUCKETS:
            measured.buckets.setdefault(number, []).append(vet_ordered(ordered, buckets=number))
        measured.task_seconds.append(task_units.task_s)
        if (alpha := tail_index(ordered)) is not None:
            measured.alphas.append(alpha)
        if task_units.spill_s is not None and task_units.task_s > 0:
            measured.spill_shares.append(task_units.spill_s / task_units.task_s)
        if task_units.records is not None and len(ordered):
            measured.short_units += len(ordered) * unit_records > task_units.records
    return VetReport(tuple(report_kind(name, kinds[name]) for name in SUBPHASES if name in kinds))


def report_kind(name: TaskKind, measured: _Measured) -> VetKind:
    """Vet of the tasks of one kind."""
    flags = Counter(flag for task in measured.tasks for flag in task.flags)
    job = vet_of_tasks(measured.tasks, measured.task_seconds)
    buckets = {number: vet_of_tasks(tasks) for number, tasks in measured.buckets.items()}
    spill_share = fmean(measured.spill_shares) if measured.spill_shares else None
    warnings: tuple[str, ...] = ()
    if name == "map" and spill_share is not None and spill_share >= _MUCH_SPILLING:
        share = f"spills ran for {spill_share:.0%} of the time of a map task"
        warnings = (f"{share}; vet leaves them out, as if they were short",)
    typical = None
    if job.vet_median is not None:  # the attempt nearest to it, of equally near ones the first
        distances = [
            (abs(vet - job.vet_median), attempt)
            for attempt, vet in zip(measured.attempts, job.vet_tasks, strict=True)
            if vet is not None
        ]
        typical = min(distances)[1]
    return VetKind(
        kind=name,
        unit_records=measured.unit_records,
        attempts=tuple(measured.attempts),
        job=job,
        buckets={number: vets for number, vets in buckets.items() if vets.tasks_used},
        flags={flag: flags[flag] for flag in FLAGS if flags[flag]},
        short_units=measured.short_units,
        typical=typical,
        alpha=median(measured.alphas) if measured.alphas else None,
        spill_share=spill_share,
        warnings=warnings,
    )


def assess_task(task_units: TaskUnits, ordered: Times, config: JobConfig) -> VetTask:
    """Vet of one task, whose times are *ordered*, with all its flags."""
    vet = vet_ordered(ordered)
    if is_multi_spill(task_units, config):
        vet = replace(vet, flags=(MULTI_SPILL, *vet.flags))
    return vet


def is_multi_spill(task_units: TaskUnits, config: JobConfig) -> bool:
    """Whether a map spilled more than once: by its counters, else by the size of its output."""
    if task_units.kind != "map" or not config.num_reduces:
        return False
    sizes = {
        name: task_units.counters.get(f"{TASK_COUNTER}.{counter}")
        for name, counter in _MAP_OUTPUT.items()
    }
    if None in sizes.values():
        return False
    check = single_spill_check({**sizes, "counters": task_units.counters}, config.model_dump())
    observed = check.observed_single_spill
    return not (check.single_spill if observed is None else observed)


def single_spill_check(
    profile: Mapping[str, Any], config: Mapping[str, Any], rules: Literal["mr2", "paper"] = "mr2"
) -> SingleSpill:
    """
    Whether a map's output fits into its sort buffer, and whether its counters say that it did.

    *profile* has `map_out_bytes` and `map_out_records` of one map, and perhaps its `counters`;
    *config* `sort_buffer_mb`, `sort_spill_percent`, `use_combiner` for the counters, and
    `sort_record_percent` for the paper's rules.
    """
    data_bytes = check_number("map_out_bytes", profile.get("map_out_bytes"), where=WHERE)
    records = check_number("map_out_records", profile.get("map_out_records"), where=WHERE)
    buffer_mb = check_number(
        "sort_buffer_mb", config.get("sort_buffer_mb"), where=WHERE, above=True
    )
    spill_share = check_number(
        "sort_spill_percent", config.get("sort_spill_percent"), where=WHERE, high=1, above=True
    )
    uses_combiner = check_flag("use_combiner", config.get("use_combiner", False), where=WHERE)
    metadata_bytes = METADATA_BYTES * records
    # Parts of the buffer: what must fit into each, and its share of the whole.
    if rules == "mr2":
        parts = [(data_bytes + metadata_bytes, 1.0)]
    elif rules == "paper":
        metadata_share = check_number(
            "sort_record_percent", config.get("sort_record_percent"), where=WHERE, high=1
        )
        parts = [(data_bytes, 1 - metadata_share), (metadata_bytes, metadata_share)]
    else:
        raise ModelError(f"rules = {rules!r} is not mr2 or paper", where=WHERE)
    too_much_mb = MOST_SORT_BUFFER_MB + 1.0
    needed_mb = 0.0
    for part_bytes, part_share in parts:
        if part_bytes and (usable_share := part_share * spill_share):
            needed_mb = max(needed_mb, part_bytes / (_MIB * usable_share))
        elif part_bytes:  # no buffer is large enough
            needed_mb = too_much_mb
    required_mb = math.ceil(min(needed_mb, too_much_mb))
    return SingleSpill(
        single_spill=all(
            part_bytes <= _MIB * buffer_mb * part_share * spill_share
            for part_bytes, part_share in parts
        ),
        required_sort_buffer_mb=required_mb if required_mb <= MOST_SORT_BUFFER_MB else None,
        observed_single_spill=observed_single_spill(
            profile.get("counters"), uses_combiner=uses_combiner
        ),
    )


def observed_single_spill(
    counters: Mapping[str, int] | None, *, uses_combiner: bool
) -> bool | None:
    """
    Whether a map's counters show one spill; `None` where they do not show it either way.

    A combiner that ran in the merge as well has read more records than the map wrote.
    """
    if counters is None:
        return None

    def read_counter(name: str) -> int | None:
        """A counter under its full name, or without its group."""
        value = counters.get(f"{TASK_COUNTER}.{name}", counters.get(name))
        return None if value is None else check_count(name, value, where=WHERE)

    written, spilled = read_counter("MAP_OUTPUT_RECORDS"), read_counter("SPILLED_RECORDS")
    if written == 0:
        return True
    if written is None or spilled is None:
        return None
    if not uses_combiner:
        return spilled == written
    combined = read_counter("COMBINE_INPUT_RECORDS")
    combiner_output = read_counter("COMBINE_OUTPUT_RECORDS")
    if combined is None or combiner_output is None:
        return None
    return spilled == combiner_output and combined == written


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


def _answer_task(case: CaseInput) -> dict[str, Any]:
    return asdict(vet_task(**case.fields))


def _answer_tail(case: CaseInput) -> dict[str, Any]:
    points = hill_points(case.fields["unit_seconds"], case.fields["k_values"])
    return {"hill": [asdict(point) for point in points]}


def _answer_job(case: CaseInput) -> dict[str, Any]:
    if isinstance(tasks := case.fields["tasks"], list):
        refuse_too_many("the number of tasks", len(tasks))
    return asdict(vet_job(**case.fields))


def _answer_ks(case: CaseInput) -> dict[str, Any]:
    return {"ks": asdict(ks_two_sample(case.fields["sample_a"], case.fields["sample_b"]))}


EVALUATORS: tuple[Evaluator, ...] = (
    Evaluator("vet", frozenset({"unit_seconds", "k_values"}), _answer_tail),
    Evaluator("vet", frozenset({"unit_seconds"}), _answer_task),
    Evaluator("vet", frozenset({"tasks"}), _answer_job),
    Evaluator("vet", frozenset({"sample_a", "sample_b"}), _answer_ks),
)
