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

from harness.profiling.costs import TYPICAL as COSTS_OF_JOBS
from harness.profiling.costs import fit_by_typical
from harness.profiling.jobs import Observation
from harness.profiling.phases import logged_parts, part_times
from harness.records.hardware import Cost
from harness.records.profile import SpeedCorrection
from harness.records.tasks import MapTimes, ReduceTimes, Source
from harness.records.trace import FILE_INPUT_COUNTER, FILE_OUTPUT_COUNTER, TaskAttempt
from harness.stats.collinear import groups
from harness.stats.resampling import jackknife_variance
from harness.units import MIB

LEVEL = 0.9  # of the intervals of costs
LOGGED_SPILL = "spill_s"
# Where nothing is recorded: seconds of the processor that a map took, of jobs whose functions do
# next to nothing; typical ones for each task, record and byte.
MAP_CPU = "map_cpu_s"
_WITHOUT_FUNCTIONS = {"sort", "shuffle"}
TYPICAL_CPU = {"cpu_s_per_task": 0.14, "cpu_s_per_record": 2e-6, "cpu_s_per_byte": 5e-9}
# What is worked on in each part of a task, by the costs of its units, in their order.
_MERGE = ("merge_s_per_byte", "merge_s_per_early_byte", "merge_cpu_s_per_record",
          "merge_s_per_file")  # fmt: skip
_WRITE = ("hdfs_write_s_per_byte", "hdfs_write_s_per_early_byte", "hdfs_copy_s_per_byte",
          "hdfs_write_s_per_record", "hdfs_write_s_per_file")  # fmt: skip
_SORT = ("sort_cpu_s_per_record", "sort_s_per_byte")
_SPILL = ("local_write_s_per_byte", "local_write_s_per_early_byte", "local_write_s_per_record",
          "local_write_s_per_file")  # fmt: skip
PARTS: dict[str, tuple[str, ...]] = {
    "map_read_s": ("hdfs_read_s_per_byte", "hdfs_read_s_per_record", "hdfs_read_s_per_file"),
    "collect_s": ("serde_s_per_byte", "serde_cpu_s_per_record"),
    "spill_sort_s": _SORT,
    "spill_write_s": _SPILL,
    LOGGED_SPILL: (*_SORT, *_SPILL),  # where a log shows a spill as a whole
    "map_merge_s": _MERGE,
    "inmem_merge_s": _MERGE,
    "ondisk_merge_s": _MERGE,
    "copy_s": ("network_s_per_byte", "network_s_per_segment"),
    "map_write_s": _WRITE,
    "reduce_write_s": _WRITE,
}  # fmt: skip
COMPUTING = "computing"
COMPUTED = ("collect_s", "spill_sort_s")
COMPUTING_BY_LOGS = (
    "computing_by_logs"  # the same where nothing is recorded, and so of spills alone
)
# Beside those of Table 4, or in their place.
_TYPICAL = COSTS_OF_JOBS | {
    "hdfs_read_s_per_record": 1e-7, "hdfs_read_s_per_file": 2e-2, "serde_s_per_byte": 4e-10,
    "serde_cpu_s_per_record": 1.5e-7, "sort_cpu_s_per_record": 6e-8, "sort_s_per_byte": 1e-9,
    "local_write_s_per_early_byte": 6e-9,
    "local_write_s_per_record": 1e-7, "local_write_s_per_file": 5e-3, "merge_s_per_byte": 5e-9,
    "merge_s_per_early_byte": 5e-9, "merge_s_per_file": 5e-3, "network_s_per_segment": 3e-3,
    "hdfs_write_s_per_early_byte": 2e-8, "hdfs_copy_s_per_byte": 1e-9,
    "hdfs_write_s_per_record": 3e-7, "hdfs_write_s_per_file": 5e-2,
}  # fmt: skip
# Which jobs tell most of a machine depends on them, and how a group divides.
TYPICAL = {name: _TYPICAL[name] for names in PARTS.values() for name in names}
UNITS = {"byte": "s/B", "record": "s/record"}
# In which parts a combiner or a codec works, by the field of a job's configuration that says so.
_SHARED = {
    "use_combiner": {"spill_write_s", LOGGED_SPILL},
    "map_output_compressed": {"spill_write_s", LOGGED_SPILL, MAP_CPU, "map_merge_s", "copy_s",
                              "inmem_merge_s", "ondisk_merge_s"},
    "output_compressed": {"map_write_s", "reduce_write_s"},
}  # fmt: skip
WAITING = 8 * MIB  # of a disk that is slower on purpose, docs/clusters/slower.md
_FEW_STARTS = 2  # of a cluster: so many say nothing of a third
FEWEST = 3  # trials, or starts, of which an interval can come
_ROUNDS = 20
_CLOSE = 1e-4
_SHORTEST_S = 0.001  # a part that took less says nothing of what it costs
# The jobs of dfsio count what they moved, and what that took, themselves: in no part of a task.
_DFSIO = "mapreduce.harness.jobs.Dfsio$Moved"


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
    counts: Mapping[str, float]
    is_shared: bool = False


def works(
    observations: Iterable[Observation], speed: SpeedCorrection, source: Source = "spans"
) -> list[Work]:
    """
    What the tasks of each trial worked on, by part, at reference speed, as *source* shows it.

    What belongs to a job has its seconds and no counts.
    """
    of_source = {"spans": part_times, "logs": logged_parts}[source]
    seen = defaultdict[tuple[str, str, str, str, bool], list[tuple[float, Mapping[str, float]]]](
        list
    )
    for observation in observations:
        trial = observation.trial
        (_, start, _) = observation.trace.job_id.split("_")
        attempts = {attempt.attempt_id: attempt for attempt in observation.trace.attempts}
        times = {
            task_time.attempt_id: task_time
            for task_time in observation.task_times
            if task_time.source == source
        }
        factor = observation.at_reference(1.0, speed)
        shared = {
            part
            for field, parts in _SHARED.items()
            if getattr(observation.config, field)
            for part in parts
        }
        for name, parts in of_source(observation).items():
            counted = dict(_counts(attempts[name], times[name], observation.output_copies))
            key = (trial.id, start, trial.cell.workload.name)
            if moved := attempts[name].count(f"{_DFSIO}.BYTES"):
                mode = trial.cell.workload.parameters.get("mode", "read")
                seconds = attempts[name].count(f"{_DFSIO}.FILE_SYSTEM_NS") / 1e9
                part = "map_read_s" if mode == "read" else "map_write_s"
                copies = observation.output_copies
                of_bytes = (moved,) if mode == "read" else stored([moved], copies)
                counts = dict(zip(PARTS[part], (*of_bytes, 0.0, 1.0), strict=True))
                seen[*key, part, False].append((factor * seconds, counts))
                continue
            for part, seconds in parts.seconds.items():
                names = PARTS.get(part, ())
                if part == MAP_CPU and trial.cell.workload.name in _WITHOUT_FUNCTIONS:
                    names = tuple(TYPICAL_CPU)
                amounts = counted.get(part, ()) if names else ()
                counts = dict(zip(names, amounts, strict=True))
                if part == "copy_s" and (to_disk := _straight_to_disk(times[name])):
                    # What is merged in memory meanwhile counts as copying, too.
                    counts |= to_disk | dict(zip(_MERGE, counted["inmem_merge_s"], strict=True))
                seen[*key, part, part in shared].append((factor * seconds, counts))
    return [
        Work(
            *key[:4],
            fmean(seconds for seconds, _ in several),
            {
                cost: fmean(counts.get(cost, 0.0) for _, counts in several)
                for cost in dict.fromkeys(name for _, counts in several for name in counts)
            },
            key[4],
        )
        for key, several in seen.items()
    ]


def written(sizes: Iterable[float]) -> tuple[float, float]:
    """Bytes of files of these *sizes* that wait for a disk, and early ones that do not."""
    known = [*sizes]
    early = math.fsum(min(size, WAITING) for size in known)
    return math.fsum(known) - early, early


def stored(sizes: Iterable[float], copies: int) -> tuple[float, float, float]:
    """`written` of files in HDFS, and the bytes of which copies cross the network, if any do."""
    late, early = written(sizes)
    return late, early, late + early if copies > 1 else 0.0


def _straight_to_disk(times: MapTimes | ReduceTimes) -> dict[str, float]:
    """Bytes that a reduce writes while it copies: of segments that are too large for its memory."""
    segments = times.segments if isinstance(times, ReduceTimes) else ()
    sizes = [segment.sent_bytes for segment in segments if segment.to == "disk"]
    return dict(zip(_SPILL, written(sizes), strict=False)) if sizes else {}


def _counts(
    attempt: TaskAttempt, times: MapTimes | ReduceTimes, copies: int
) -> Iterator[tuple[str, tuple[float, ...]]]:
    """By part of a task, how often each of its costs counts."""
    output = stored([attempt.count(f"{FILE_OUTPUT_COUNTER}.BYTES_WRITTEN")], copies)
    if isinstance(times, ReduceTimes):
        sent_bytes = sum(segment.sent_bytes for segment in times.segments)
        yield "copy_s", (sent_bytes, len(times.segments))
        for part, kind in (("inmem_merge_s", "memory"), ("ondisk_merge_s", "disk")):
            merges = [merge for merge in times.merges if merge.kind == kind]
            merged = [merge.bytes or 0 for merge in merges]
            share = sum(merged) / sent_bytes if sent_bytes else 0.0
            records = share * attempt.count("REDUCE_INPUT_RECORDS")
            yield part, (*written(merged), records, len(merges))
        yield "reduce_write_s", (*output, attempt.count("REDUCE_OUTPUT_RECORDS"), 1)
        return
    records = attempt.count("MAP_OUTPUT_RECORDS")
    read = attempt.count(f"{FILE_INPUT_COUNTER}.BYTES_READ")
    yield "map_read_s", (read, attempt.count("MAP_INPUT_RECORDS"), 1)
    yield "collect_s", (attempt.count("MAP_OUTPUT_BYTES"), records)
    yield MAP_CPU, (1, records, attempt.count("MAP_OUTPUT_BYTES"))
    yield "map_write_s", (*output, records, 1)
    spills = times.spills
    levels = (n * math.log2(n) for spill in spills if (n := spill.records or 0) > 1)
    files = [spill.file_bytes or 0 for spill in spills]
    sorting = (math.fsum(levels), attempt.count("MAP_OUTPUT_BYTES"))
    writing = (*written(files), records, len(spills))
    yield "spill_sort_s", sorting
    yield "spill_write_s", writing
    yield LOGGED_SPILL, (*sorting, *writing)
    yield "map_merge_s", (*written([sum(files)]), records, 1)


def fit_platform(rows: Sequence[Work], expected: Mapping[str, float] = TYPICAL) -> dict[str, Cost]:
    """
    Costs of a machine, with their intervals, from what tasks worked on there.

    A cost that no row shows is absent.  What the rows cannot tell apart has its *group*, which
    divides as the *expected* costs do.
    """
    costs = dict[str, Cost]()
    for names in dict.fromkeys(PARTS.values()):
        chosen = [
            row
            for row in rows
            if PARTS.get(row.part) == names
            and not row.is_shared
            and row.counts.keys() <= {*names}  # no other cost is in it
            and row.seconds >= _SHORTEST_S
            and any(row.counts.values())
        ]
        shown = [name for name in names if any(row.counts[name] for row in chosen)]
        if not shown:
            continue
        design = np.array([[row.counts[name] for name in shown] for row in chosen])
        target = np.array([row.seconds for row in chosen])
        typical = np.array([expected[name] for name in shown])
        starts = [row.start for row in chosen]
        trials = [row.trial for row in chosen]
        units = np.array(starts if len({*starts}) > _FEW_STARTS else trials)
        names_of_units = [*dict.fromkeys(units.tolist())]
        kept = np.array([units != unit for unit in names_of_units])
        values = _fit(design, target, typical, typical)
        weighted = design / np.maximum(target, design @ values)[:, None]
        joined = [{shown[place] for place in group} for group in groups(weighted)]
        replicates = np.empty((len(shown), 0))
        if len(kept) >= FEWEST and (kept.sum(axis=1) >= len(shown)).all():
            replicates = np.array(
                [_fit(design[rows], target[rows], typical, values) for rows in kept]
            ).T
        for name, value, others in zip(shown, values.tolist(), replicates, strict=True):
            half = _half_width(others)
            group = next((sorted(each - {name}) for each in joined if name in each), ())
            is_known = math.isfinite(half) and not group
            costs[name] = Cost(
                value=value,
                low=max(0.0, value - half) if is_known else None,
                high=value + half if is_known else None,
                unit=UNITS.get(name.rpartition("_")[2], "s"),
                trials=len({*trials}),
                source=f"fit of {', '.join(dict.fromkeys(row.part for row in chosen))}",
                group=tuple(group),
                without=dict(zip(names_of_units, others.tolist(), strict=False)),
            )
    return costs | _computing(rows)


def _half_width(replicates: np.ndarray) -> float:
    """Half the interval of a number that has these values without one unit each."""
    from scipy.special import stdtrit

    if not replicates.size:
        return math.inf
    times = float(stdtrit(len(replicates) - 1, (1 + LEVEL) / 2))
    return times * math.sqrt(jackknife_variance(replicates))


def _computing(rows: Sequence[Work]) -> dict[str, Cost]:
    """`COMPUTING`, the geometric mean over trials; nothing where no trial sorted."""
    took, typical = (defaultdict[str, float](float) for _ in range(2))
    for row in rows:
        if row.part in (*COMPUTED, MAP_CPU) and any(row.counts.values()) and not row.is_shared:
            took[row.trial] += row.seconds
            typical[row.trial] += seconds_of(row.counts, TYPICAL | TYPICAL_CPU)
    logs = {
        trial: math.log(seconds / typical[trial])
        for trial, seconds in took.items()
        if seconds >= _SHORTEST_S
    }
    if not logs:
        return {}
    without = dict[str, float]()
    if len(logs) >= FEWEST:
        total = math.fsum(logs.values())
        without = {trial: math.exp((total - log) / (len(logs) - 1)) for trial, log in logs.items()}
    value = math.exp(fmean(logs.values()))
    half = _half_width(np.array([*without.values()]))
    ends = {"low": max(0.0, value - half), "high": value + half} if without else {}
    parts = dict.fromkeys(row.part for row in rows if row.part in (*COMPUTED, MAP_CPU))
    source = f"{' and '.join(parts)}, beside typical costs"
    return {
        COMPUTING: Cost(
            value=value, **ends, unit="", trials=len(logs), source=source, without=without
        )
    }


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
    return math.fsum(n * costs.get(name, math.nan) for name, n in counts.items() if n)
