"""
Dataflow statistics (What-If's Table 3) from the counters of tasks, and compression ratios.

Each is a ratio of two counters, taken over the sums of all tasks; its spread is the standard
deviation of the tasks' own ratios.  ``docs/models/whatif.md``, section 4.2, names the counters.

Compression ratios are 1 where compression is off, and measured where trials with and without it
exist.  One that cannot be measured is absent, and the observations that would need it are left
out: their counters mix dataflow and codec (``docs/models/README.md``, section 4).
"""

from __future__ import annotations

import math

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from harness.models.checks import METADATA_BYTES
from harness.profiling.jobs import Observation
from harness.records.profile import Statistic
from harness.records.trace import FILE_INPUT_COUNTER, FILE_OUTPUT_COUNTER, TaskAttempt, TaskKind
from harness.stats.spread import standard_deviation
from harness.units import MIB

Pair = tuple[float, float]
# Compressed over uncompressed bytes of an observation's input, map output and output.
Ratios = Mapping[str, float]

_INPUT_CODEC = "input_compression_ratio"
_MAP_OUTPUT_CODEC = "map_output_compression_ratio"
_OUTPUT_CODEC = "output_compression_ratio"


@dataclass(frozen=True, slots=True)
class Task:
    """
    A successful attempt's counters, and how its bytes are compressed.

    *job* is the id of its job; *spill_bytes* fill the sort buffer to its threshold.
    """

    attempt: TaskAttempt
    ratios: Ratios
    combines: bool
    map_only: bool
    job: str
    spill_bytes: float

    def __getitem__(self, counter: str) -> float:
        """Value of a counter, 0 where the task does not have it."""
        return float(self.attempt.count(counter))

    @property
    def input_bytes(self) -> float:
        """Stored bytes that a map read."""
        return self[f"{FILE_INPUT_COUNTER}.BYTES_READ"]

    @property
    def read_bytes(self) -> float:
        """Bytes that a map read, uncompressed."""
        return self.input_bytes / self.ratios[_INPUT_CODEC]

    @property
    def written_bytes(self) -> float:
        """Bytes of the job's output that a task wrote, before compression."""
        return self[f"{FILE_OUTPUT_COUNTER}.BYTES_WRITTEN"] / self.ratios[_OUTPUT_CODEC]


@dataclass(frozen=True, slots=True)
class Definition:
    """A statistic as numerator and denominator over one task's counters."""

    kind: TaskKind
    text: str
    pair: Callable[[Task], Pair]


def _counters(kind: TaskKind, numerator: str, denominator: str) -> Definition:
    return Definition(
        kind, f"{numerator} / {denominator}", lambda task: (task[numerator], task[denominator])
    )


DEFINITIONS: dict[str, Definition] = {
    "input_record_bytes": Definition(
        "map",
        "BYTES_READ / MAP_INPUT_RECORDS",
        # Maps that read no file have records without bytes: that is no size of a record.
        lambda task: (task.read_bytes, task.input_bytes and task["MAP_INPUT_RECORDS"]),
    ),
    "map_bytes_selectivity": Definition(
        "map",
        "MAP_OUTPUT_BYTES / BYTES_READ",
        lambda task: (
            task.written_bytes if task.map_only else task["MAP_OUTPUT_BYTES"],
            task.read_bytes,
        ),
    ),
    "map_records_selectivity": _counters("map", "MAP_OUTPUT_RECORDS", "MAP_INPUT_RECORDS"),
    "records_per_reduce_group": _counters("reduce", "REDUCE_INPUT_RECORDS", "REDUCE_INPUT_GROUPS"),
    "reduce_bytes_selectivity": Definition(
        "reduce",
        "BYTES_WRITTEN / REDUCE_SHUFFLE_BYTES",
        lambda task: (
            task.written_bytes,
            task["REDUCE_SHUFFLE_BYTES"] / task.ratios[_MAP_OUTPUT_CODEC],
        ),
    ),
    "reduce_records_selectivity": _counters(
        "reduce", "REDUCE_OUTPUT_RECORDS", "REDUCE_INPUT_RECORDS"
    ),
}
COMBINE_RECORDS = _counters("map", "COMBINE_OUTPUT_RECORDS", "COMBINE_INPUT_RECORDS")
COMBINE_BYTES = Definition(
    "map",
    "MAP_OUTPUT_MATERIALIZED_BYTES / MAP_OUTPUT_BYTES",
    lambda task: (
        task["MAP_OUTPUT_MATERIALIZED_BYTES"],
        task["MAP_OUTPUT_BYTES"] * task.ratios[_MAP_OUTPUT_CODEC],
    ),
)
# Of spills, whose number follows from the buffer and the records.
_OF_SPILLS = {
    "combine_records_selectivity": "records that spills left / MAP_OUTPUT_RECORDS",
    "combine_bytes_selectivity": "bytes that spills left / MAP_OUTPUT_BYTES",
    "records_per_combine": "MAP_OUTPUT_RECORDS / spills",
}
# Numbers of records show what a combiner leaves of more where the largest is so many times the
# smallest.
_APART = 2.0


def tasks(observation: Observation, ratios: Ratios) -> list[Task]:
    """Successful attempts of an observation, with what their counters mean."""
    trace, config = observation.trace, observation.config
    return [
        Task(
            attempt,
            ratios,
            combines=config.use_combiner,
            map_only=trace.num_reduces == 0,
            job=trace.job_id,
            spill_bytes=config.sort_buffer_mb * MIB * config.sort_spill_percent,
        )
        for attempt in (*trace.succeeded("map"), *trace.succeeded("reduce"))
    ]


def dataflow_statistics(chosen: Iterable[Task]) -> dict[str, Statistic]:
    """Statistics of *chosen* tasks, without those that no counter shows."""
    chosen = list(chosen)
    combined = [task for task in chosen if task.combines]
    statistics = {
        name: _pooled_tasks(definition, chosen) for name, definition in DEFINITIONS.items()
    }
    # In the merge, the combiner would have seen more than the map's output.
    once = [
        task for task in combined if task["COMBINE_INPUT_RECORDS"] <= task["MAP_OUTPUT_RECORDS"]
    ]
    statistics |= _combine_law(combined) or {
        "combine_records_selectivity": _pooled_tasks(COMBINE_RECORDS, once),
        "combine_bytes_selectivity": _pooled_tasks(COMBINE_BYTES, once),
    }
    return {name: statistic for name, statistic in statistics.items() if statistic is not None}


def _combine_law(combined: Sequence[Task]) -> Mapping[str, Statistic | None]:
    """
    What a combiner leaves of a spill, and how that grows with the records of the spill.

    It sees together the records of a spill and, where it runs in the merge, too, what is left of
    those of a map; the groups of all reduces are what is left of a job's.  In logarithms, what was
    left lies on a line over the records that it stands for, and the slope is the exponent; the
    shares are those of spills of the mean size.  Empty where all numbers of records are alike.
    """
    points, jobs = list[Pair](), defaultdict[str, list[float]](lambda: [0.0, 0.0])
    pairs = defaultdict[str, list[tuple[str, Pair]]](list)
    for task in combined:
        records, host = task["MAP_OUTPUT_RECORDS"], task.attempt.host
        jobs[task.job][0] += records
        jobs[task.job][1] += task["REDUCE_INPUT_GROUPS"]
        left, again = task["COMBINE_OUTPUT_RECORDS"], task["COMBINE_INPUT_RECORDS"] - records
        if task.attempt.kind != "map" or not records or again < 0 or left <= again:
            continue
        final = left - again
        if again:
            points.append((records, final))
            left = again  # what the spills left, which the merge saw again
        record_bytes = task["MAP_OUTPUT_BYTES"] / records
        spills = math.ceil(records / max(1, task.spill_bytes // (record_bytes + METADATA_BYTES)))
        points.append((records / spills, left / spills))
        final_bytes = task["MAP_OUTPUT_MATERIALIZED_BYTES"] / task.ratios[_MAP_OUTPUT_CODEC]
        shares = {
            "combine_records_selectivity": (left, records),
            "combine_bytes_selectivity": (left * final_bytes / final, task["MAP_OUTPUT_BYTES"]),
            "records_per_combine": (records, float(spills)),
        }
        for name, pair in shares.items():
            pairs[name].append((host, pair))
    if points and max(points)[0] < _APART * min(points)[0]:
        points += [(records, groups) for records, groups in jobs.values() if records and groups]
    if not points or max(points)[0] < _APART * min(points)[0]:
        return {}
    x, y = np.log(points).T
    slope, intercept = np.polyfit(x, y, 1)
    residuals = y - intercept - slope * x
    error = math.sqrt(np.sum(residuals**2) / max(1, len(points) - 2) / np.sum((x - x.mean()) ** 2))
    source = "what combiners left of the MAP_OUTPUT_RECORDS that they saw, logarithms of both"
    statistics = {
        name: pooled(known, f"{_OF_SPILLS[name]} over {len(known)} map tasks")
        for name, known in pairs.items()
    }
    statistics["combine_exponent"] = Statistic(
        value=float(np.clip(slope, 0.0, 1.0)), count=len(points), spread=float(error), source=source
    )
    return statistics


def _pooled_tasks(definition: Definition, chosen: Sequence[Task]) -> Statistic | None:
    pairs = [
        (task.attempt.host, pair)
        for task in chosen
        if task.attempt.kind == definition.kind and (pair := definition.pair(task))[1] > 0
    ]
    text = f"{definition.text} over {len(pairs)} {definition.kind} tasks"
    return pooled(pairs, text) if pairs else None


def pooled(pairs: Sequence[tuple[str, Pair]], source: str) -> Statistic:
    """
    Ratio of the sums of *pairs*, of all of them and for each host; their own ratios' spread.

    Each pair is a host and a task's numerator and positive denominator; there is one at least.
    """
    hosts: dict[str, list[Pair]] = {}
    for host, pair in pairs:
        hosts.setdefault(host, []).append(pair)
    return Statistic(
        value=_ratio([pair for _, pair in pairs]),
        count=len(pairs),
        spread=standard_deviation(
            [numerator / denominator for _, (numerator, denominator) in pairs]
        ),
        source=source,
        nodes={host: _ratio(hosts[host]) for host in sorted(hosts) if host},
    )


def _ratio(pairs: Sequence[Pair]) -> float:
    return math.fsum(top for top, _ in pairs) / math.fsum(bottom for _, bottom in pairs)


# Bytes for each byte or record, with which compression shows: of tasks of a kind, two counters.
_DENSITIES: dict[str, tuple[TaskKind, str, str]] = {
    _MAP_OUTPUT_CODEC: ("map", "MAP_OUTPUT_MATERIALIZED_BYTES", "MAP_OUTPUT_BYTES"),
    _OUTPUT_CODEC: ("reduce", f"{FILE_OUTPUT_COUNTER}.BYTES_WRITTEN", "REDUCE_OUTPUT_RECORDS"),
}


def compression_ratios(observations: Sequence[Observation]) -> dict[str, Statistic]:
    """Ratios that the observations give, by the models' names."""
    ratios = {}
    for statistic in (_INPUT_CODEC, _MAP_OUTPUT_CODEC, _OUTPUT_CODEC):
        jobs_with = [job for job in observations if _compressed(job)[statistic]]
        jobs_without = [job for job in observations if not _compressed(job)[statistic]]
        value, source = 1.0, "compression is off"
        if jobs_with:
            if statistic not in _DENSITIES or not jobs_without:
                continue
            kind, numerator, denominator = _DENSITIES[statistic]
            densities = []
            for jobs in (jobs_with, jobs_without):
                attempts = [attempt for job in jobs for attempt in job.trace.succeeded(kind)]
                top_sum, bottom_sum = (
                    math.fsum(attempt.count(counter) for attempt in attempts)
                    for counter in (numerator, denominator)
                )
                densities.append(top_sum / bottom_sum if bottom_sum else 0.0)
            if not all(densities):
                continue
            value = densities[0] / densities[1]
            numerator, denominator = (text.rpartition(".")[2] for text in (numerator, denominator))
            source = f"{numerator} / {denominator} of {len(jobs_with)} trials with and"
            source += f" {len(jobs_without)} without compression"
        ratios[statistic] = Statistic(
            value=value, count=len(observations), spread=0.0, source=source
        )
    return ratios


def ratios_of(observation: Observation, known: dict[str, Statistic]) -> Ratios | None:
    """Ratios that hold for one observation; `None` where it needs one that is not known."""
    flags = _compressed(observation)
    if any(is_on and statistic not in known for statistic, is_on in flags.items()):
        return None
    return {codec: known[codec].value if is_on else 1.0 for codec, is_on in flags.items()}


def _compressed(observation: Observation) -> dict[str, bool]:
    config = observation.config
    return {
        _INPUT_CODEC: config.input_compressed,
        _MAP_OUTPUT_CODEC: config.map_output_compressed,
        _OUTPUT_CODEC: config.output_compressed,
    }
