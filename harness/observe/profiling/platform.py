"""
What a machine costs, whatever runs there: one number for it, fitted over all jobs together.

Each part of a recorded task is a sum of its *work* times what a unit of that costs here: a fixed
part for each file, spill or segment, and a part for each byte and each record.  What a part worked
on was counted (``docs/models/README.md``, section 10), so each part is a small regression of its
own.  The map function, the combiner and the reduce function belong to a job: they are in none.
What they take elsewhere follows from `COMPUTING`, which is about the processor as a whole: how much
longer sorting and serialising take than typical costs say.  Jobs tell that sum better than how it
divides between bytes and records.

What is written waits in memory for the disk, up to a bound; only a writer that is further ahead is
as slow as the disk.  So the first bytes of each file, the *early* ones, have a cost of their own: a
line with a knot at `WAITING`, which on a disk that is memory has the same slope on both sides.

Intervals come from leaving out one trial after the other, and one start of the cluster after the
other where there were several: tasks of one trial are no repeats.
"""

from __future__ import annotations

import math

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from harness.base.records.hardware import Cost, interval
from harness.base.records.profile import SpeedCorrection
from harness.base.records.statistics import (
    LOGGED_SPILL,
    MACHINE_COSTS,
    MAP_CPU,
    TASK_PARTS,
    costs_by_part,
    typical_values,
)
from harness.base.records.tasks import MapTimes, ReduceTimes, Source
from harness.base.records.trace import FILE_OUTPUT_COUNTER, TaskAttempt
from harness.base.stats.collinear import groups
from harness.base.stats.resampling import jackknife_variance
from harness.base.units import MIB
from harness.observe.profiling.costs import fit_by_typical
from harness.observe.profiling.jobs import Observation
from harness.observe.profiling.phases import logged_parts, part_times

LEVEL = 0.9  # of the intervals of costs
# Which jobs tell most of a machine depends on what is typical, and how a group divides.
TYPICAL = typical_values("machine cost")
TYPICAL_CPU = typical_values("processor time")
PARTS = costs_by_part()
COMPUTING = "computing"
COMPUTED = ("collect_s", "spill_sort_s")
_COMPUTED_BY_ANY_SOURCE = (*COMPUTED, MAP_CPU)
_WITHOUT_FUNCTIONS = {"sort", "shuffle"}  # jobs whose functions do next to nothing
WAITING = 8 * MIB  # of a disk that is slower on purpose, docs/clusters/slower.md
_FEW_STARTS = 2  # of a cluster: so many say nothing of a third
FEWEST = 3  # trials, or starts, of which an interval can come
_ROUNDS = 20
_CLOSE = 1e-4
_SHORTEST_S = 0.001  # a part that took less says nothing of what it costs
# The jobs of dfsio count what they moved, and what that took, themselves: in no part of a task.
_DFSIO = "mapreduce.harness.jobs.Dfsio$Moved"

# How often costs of a machine count in one part of a task, by their names.
Counts = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Work:
    """
    Mean seconds of a *part* over the tasks of a trial, and the mean *counts* of its units.

    *is_shared*: a combiner or a codec of the job worked in it as well.
    """

    trial: str
    start: str
    workload: str
    part: str
    seconds: float
    counts: Counts
    is_shared: bool = False


def works(
    observations: Iterable[Observation], speed: SpeedCorrection, source: Source = "spans"
) -> list[Work]:
    """
    What the tasks of each trial worked on, by part, at reference speed, as *source* shows it.

    What belongs to a job has its seconds and no counts.
    """
    seen = defaultdict[tuple[str, str, str, str, bool], list[tuple[float, Counts]]](list)
    for observation in observations:
        trial = observation.trial
        (_, start, _) = observation.trace.job_id.split("_")
        factor = observation.at_reference(1.0, speed)
        for part, is_shared, seconds, counts in _task_works(observation, source):
            key = (trial.id, start, trial.cell.workload.name, part, is_shared)
            seen[key].append((factor * seconds, counts))
    return [
        Work(
            *key[:4],
            seconds=fmean(seconds for seconds, _ in tasks),
            counts=mean_counts([counts for _, counts in tasks]),
            is_shared=key[4],
        )
        for key, tasks in seen.items()
    ]


def mean_counts(counts: Sequence[Counts]) -> dict[str, float]:
    """Mean of each count over several tasks; one that a task lacks is 0 there."""
    names = dict[str, None]()
    for task_counts in counts:
        names |= dict.fromkeys(task_counts)
    return {name: fmean(task_counts.get(name, 0.0) for task_counts in counts) for name in names}


def _task_works(
    observation: Observation, source: Source
) -> Iterator[tuple[str, bool, float, Counts]]:
    """
    Yield for each part of each task that *source* shows what it took, as measured, and worked on.

    With its name, and whether a combiner or a codec of the job worked in it, too.
    """
    parts_by_attempt = {"spans": part_times, "logs": logged_parts}[source](observation)
    attempts = {attempt.attempt_id: attempt for attempt in observation.trace.attempts}
    times = {
        task_time.attempt_id: task_time
        for task_time in observation.task_times
        if task_time.source == source
    }
    shared = {name for name, part in TASK_PARTS.items() if part.is_shared(observation.config)}
    for attempt_id, parts in parts_by_attempt.items():
        attempt = attempts[attempt_id]
        # A map of dfsio counts itself what it did, and nothing else.
        if moved_bytes := attempt.count(f"{_DFSIO}.BYTES"):
            seconds = attempt.count(f"{_DFSIO}.FILE_SYSTEM_NS") / 1e9
            if observation.trial.cell.workload.parameters.get("mode", "read") == "read":
                yield "map_read_s", False, seconds, reading_counts(moved_bytes, 0.0)
            else:
                counts = writing_counts(moved_bytes, 0.0, observation.output_copies)
                yield "map_write_s", False, seconds, counts
            continue
        task_counts = _counts(observation, attempt, times[attempt_id])
        for part, seconds in parts.seconds.items():
            yield part, part in shared, seconds, task_counts.get(part, {})


def _counts(
    observation: Observation, attempt: TaskAttempt, times: MapTimes | ReduceTimes
) -> dict[str, Counts]:
    """By part of a task that was observed, how often each cost counts; nothing of the job's own."""
    written_bytes = attempt.count(f"{FILE_OUTPUT_COUNTER}.BYTES_WRITTEN")
    copies = observation.output_copies
    if isinstance(times, ReduceTimes):
        counts = _shuffle_counts(attempt, times)
        records = attempt.count("REDUCE_OUTPUT_RECORDS")
        return counts | {"reduce_write_s": writing_counts(written_bytes, records, copies)}
    output_records = attempt.count("MAP_OUTPUT_RECORDS")
    output_bytes = attempt.count("MAP_OUTPUT_BYTES")
    spill_records = [spill.records or 0 for spill in times.spills]
    levels = math.fsum(count * math.log2(count) for count in spill_records if count > 1)
    file_bytes = [spill.file_bytes or 0 for spill in times.spills]
    counts = map_counts(
        MapAmounts(
            input_bytes=attempt.input_bytes,
            input_records=attempt.count("MAP_INPUT_RECORDS"),
            output_bytes=output_bytes,
            output_records=output_records,
            sorted_levels=levels,
            spill_bytes=file_bytes,
            merged_bytes=sum(file_bytes),
        )
    )
    counts["map_write_s"] = writing_counts(written_bytes, output_records, copies)
    if observation.trial.cell.workload.name in _WITHOUT_FUNCTIONS:
        counts[MAP_CPU] = {
            "cpu_s_per_task": 1,
            "cpu_s_per_record": output_records,
            "cpu_s_per_byte": output_bytes,
        }
    return counts


def _shuffle_counts(attempt: TaskAttempt, times: ReduceTimes) -> dict[str, Counts]:
    """By part of the shuffle of a reduce, how often each cost counts."""
    sent_bytes = sum(segment.sent_bytes for segment in times.segments)
    counts = dict[str, Counts]()
    for part, kind in (("inmem_merge_s", "memory"), ("ondisk_merge_s", "disk")):
        merged_bytes = [merge.bytes or 0 for merge in times.merges if merge.kind == kind]
        share = sum(merged_bytes) / sent_bytes if sent_bytes else 0.0
        records = share * attempt.count("REDUCE_INPUT_RECORDS")
        counts[part] = merging_counts(merged_bytes, records)
    copying = copying_counts(sent_bytes, len(times.segments))
    # Segments that are too large for the memory are written by the disk while they are copied.
    straight_bytes = [segment.sent_bytes for segment in times.segments if segment.to == "disk"]
    if straight_bytes:
        late_bytes, early_bytes = written(straight_bytes)
        copying["local_write_s_per_byte"] = late_bytes
        copying["local_write_s_per_early_byte"] = early_bytes
        # What is merged in memory meanwhile counts as copying, too.
        copying |= counts["inmem_merge_s"]
    return counts | {"copy_s": copying}


# The terms: how often each cost of a machine counts in a part, given what that works on.


@dataclass(frozen=True, kw_only=True, slots=True)
class MapAmounts:
    """
    What a map works on: bytes and records that it reads and gives, and the files that it spills.

    *sorted_levels* are the records of each spill times the levels at which they are compared, of
    all spills; *merged_bytes* those of the file that all spills become.
    """

    input_bytes: float
    input_records: float
    output_bytes: float
    output_records: float
    sorted_levels: float
    spill_bytes: Sequence[float]
    merged_bytes: float


def map_counts(amounts: MapAmounts) -> dict[str, Counts]:
    """By part of a map, but the write of one without reduces, how often each cost counts."""
    late_bytes, early_bytes = written(amounts.spill_bytes)
    sorting = {
        "sort_cpu_s_per_record": amounts.sorted_levels,
        "sort_s_per_byte": amounts.output_bytes,
    }
    writing = {
        "local_write_s_per_byte": late_bytes,
        "local_write_s_per_early_byte": early_bytes,
        "local_write_s_per_record": amounts.output_records,
        "local_write_s_per_file": len(amounts.spill_bytes),
    }
    collecting = {
        "serde_s_per_byte": amounts.output_bytes,
        "serde_cpu_s_per_record": amounts.output_records,
    }
    return {
        "map_read_s": reading_counts(amounts.input_bytes, amounts.input_records),
        "collect_s": collecting,
        "spill_sort_s": sorting,
        "spill_write_s": writing,
        LOGGED_SPILL: sorting | writing,
        "map_merge_s": merging_counts([amounts.merged_bytes], amounts.output_records),
    }


def reading_counts(size: float, records: float) -> dict[str, float]:
    """How often each cost counts where a task reads *size* bytes of a file in HDFS."""
    return {
        "hdfs_read_s_per_byte": size,
        "hdfs_read_s_per_record": records,
        "hdfs_read_s_per_file": 1,
    }


def merging_counts(sizes: Sequence[float], records: float) -> dict[str, float]:
    """How often each cost counts where merges write files of these *sizes*."""
    late_bytes, early_bytes = written(sizes)
    return {
        "merge_s_per_byte": late_bytes,
        "merge_s_per_early_byte": early_bytes,
        "merge_cpu_s_per_record": records,
        "merge_s_per_file": len(sizes),
    }


def copying_counts(sent_bytes: float, segments: float) -> dict[str, float]:
    """How often each cost counts where a reduce copies so many *segments*."""
    return {"network_s_per_byte": sent_bytes, "network_s_per_segment": segments}


def writing_counts(size: float, records: float, copies: int) -> dict[str, float]:
    """How often each cost counts where a task writes one file to HDFS, which keeps *copies*."""
    late_bytes, early_bytes, copied_bytes = stored([size], copies)
    return {
        "hdfs_write_s_per_byte": late_bytes,
        "hdfs_write_s_per_early_byte": early_bytes,
        "hdfs_copy_s_per_byte": copied_bytes,
        "hdfs_write_s_per_record": records,
        "hdfs_write_s_per_file": 1,
    }


def written(sizes: Iterable[float]) -> tuple[float, float]:
    """Bytes of files of these *sizes* that wait for a disk, and early ones that do not."""
    file_sizes = [*sizes]
    early = math.fsum(min(size, WAITING) for size in file_sizes)
    return math.fsum(file_sizes) - early, early


def stored(sizes: Iterable[float], copies: int) -> tuple[float, float, float]:
    """`written` of files in HDFS, and the bytes of which copies cross the network, if any do."""
    late, early = written(sizes)
    return late, early, late + early if copies > 1 else 0.0


# The fit.


def fit_platform(rows: Sequence[Work], expected: Mapping[str, float] = TYPICAL) -> dict[str, Cost]:
    """
    Costs of a machine, with their intervals, from what tasks worked on there.

    A cost that no row shows is absent.  What the rows cannot tell apart has its *group*, which
    divides as the *expected* costs do.
    """
    costs = dict[str, Cost]()
    for names in dict.fromkeys(PARTS.values()):
        telling = [row for row in rows if _tells_of(row, names)]
        shown = [name for name in names if any(row.counts[name] for row in telling)]
        if shown:
            typical = np.array([expected[name] for name in shown])
            costs |= _fit_part(telling, shown, typical)
    return costs | _computing(rows)


def _tells_of(row: Work, names: tuple[str, ...]) -> bool:
    """Whether a *row* is of a part with these costs, did some work, and is the machine's alone."""
    if PARTS.get(row.part) != names or row.is_shared or row.seconds < _SHORTEST_S:
        return False
    has_no_other_cost = row.counts.keys() <= {*names}
    return has_no_other_cost and any(row.counts.values())


def _fit_part(rows: Sequence[Work], names: Sequence[str], typical: np.ndarray) -> dict[str, Cost]:
    """Costs of parts with the same units of work, as all their *rows* say."""
    design = np.array([[row.counts[name] for name in names] for row in rows])
    target = np.array([row.seconds for row in rows])
    values = _fit(design, target, typical, typical)
    unit_names, kept = _left_out(rows)
    replicates = np.empty((len(names), 0))
    if len(kept) >= FEWEST and (kept.sum(axis=1) >= len(names)).all():
        replicates = np.array(
            [_fit(design[rest], target[rest], typical, values) for rest in kept]
        ).T
    weighted = design / np.maximum(target, design @ values)[:, None]
    joined = dict.fromkeys(names, frozenset[str]())
    for group in groups(weighted):
        members = frozenset(names[place] for place in group)
        joined |= dict.fromkeys(members, members)
    trial_count = len({row.trial for row in rows})
    source = f"fit of {', '.join(dict.fromkeys(row.part for row in rows))}"
    costs = {}
    for name, value, values_without in zip(names, values.tolist(), replicates, strict=True):
        ends = {} if joined[name] else interval(value, _half_width(values_without))
        costs[name] = Cost(
            value=value,
            **ends,
            unit=MACHINE_COSTS[name].unit,
            trials=trial_count,
            source=source,
            group=tuple(sorted(joined[name] - {name})),
            without=dict(zip(unit_names, values_without.tolist(), strict=False)),
        )
    return costs


def _left_out(rows: Sequence[Work]) -> tuple[list[str], np.ndarray]:
    """Names of what is left out in turn, trials or starts of the cluster; which rows are left."""
    starts = [row.start for row in rows]
    units = np.array(starts if len({*starts}) > _FEW_STARTS else [row.trial for row in rows])
    names = [*dict.fromkeys(units.tolist())]
    return names, np.array([units != name for name in names])


def _half_width(replicates: np.ndarray) -> float:
    """Half the interval of a number that has these values without one unit each."""
    from scipy.special import stdtrit

    if not replicates.size:
        return math.inf
    times = float(stdtrit(len(replicates) - 1, (1 + LEVEL) / 2))
    return times * math.sqrt(jackknife_variance(replicates))


def _computing(rows: Sequence[Work]) -> dict[str, Cost]:
    """`COMPUTING`, the geometric mean over trials; nothing where no trial sorted."""
    took_s = defaultdict[str, float](float)
    typical_s = defaultdict[str, float](float)
    for row in rows:
        is_computing = row.part in _COMPUTED_BY_ANY_SOURCE and not row.is_shared
        if is_computing and any(row.counts.values()):
            took_s[row.trial] += row.seconds
            typical_s[row.trial] += seconds_of(row.counts, TYPICAL | TYPICAL_CPU)
    logs = {
        trial: math.log(seconds / typical_s[trial])
        for trial, seconds in took_s.items()
        if seconds >= _SHORTEST_S
    }
    if not logs:
        return {}
    value = math.exp(fmean(logs.values()))
    without = dict[str, float]()
    if len(logs) >= FEWEST:
        total = math.fsum(logs.values())
        without = {trial: math.exp((total - log) / (len(logs) - 1)) for trial, log in logs.items()}
    parts = dict.fromkeys(row.part for row in rows if row.part in _COMPUTED_BY_ANY_SOURCE)
    cost = Cost(
        value=value,
        **interval(value, _half_width(np.array([*without.values()]))),
        unit=MACHINE_COSTS[COMPUTING].unit,
        trials=len(logs),
        source=f"{' and '.join(parts)}, beside typical costs",
        without=without,
    )
    return {COMPUTING: cost}


def _fit(
    design: np.ndarray, target: np.ndarray, typical: np.ndarray, costs: np.ndarray
) -> np.ndarray:
    """
    Costs of the units of one part, found from *costs* that are near.

    Errors count relative to what a part took or should take, whichever is more: else one task that
    was spared its work, as a reduce that copies from its own node, outweighs all that did it.
    """
    for _ in range(_ROUNDS):
        weights = 1 / np.maximum(target, design @ costs)
        before = costs
        costs = fit_by_typical(design, target, weights, typical).coefficients
        if np.allclose(costs, before, rtol=_CLOSE, atol=0):
            break
    return costs


def seconds_of(counts: Mapping[str, float], costs: Mapping[str, float]) -> float:
    """Seconds of work on a machine with these *costs*; NaN where one that counts is missing."""
    return math.fsum(count * costs.get(name, math.nan) for name, count in counts.items() if count)
