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

# A job shows how what a combiner leaves grows where it saw so many times as many records.
_APART = 2.0


def tasks(observation: Observation, ratios: Ratios) -> list[Task]:
    """Successful attempts of an observation, with what their counters mean."""
    trace = observation.trace
    config = observation.config
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
    statistics = {
        name: _pooled_tasks(definition, chosen) for name, definition in DEFINITIONS.items()
    }
    known = {name: statistic for name, statistic in statistics.items() if statistic is not None}
    return known | combiner_statistics([task for task in chosen if task.combines])


@dataclass(frozen=True, slots=True)
class _Combined:
    """
    Records and bytes of a map that combines: of its output, of all its spills, of its final file.

    *again* says that it combined in the merge, too.
    A record that combining takes away takes as many bytes along as the mean of its map, so that
    the bytes of the spills follow from their records.
    """

    host: str
    spills: int
    again: bool
    output: Pair
    left: Pair
    final: Pair

    @classmethod
    def of(cls, task: Task) -> _Combined | None:
        """`None` where the counters are not those of a map that combines."""
        records = task["MAP_OUTPUT_RECORDS"]
        size = task["MAP_OUTPUT_BYTES"]
        again = task["COMBINE_INPUT_RECORDS"] - records  # what the merge saw of the spills
        final = task["COMBINE_OUTPUT_RECORDS"] - again
        if task.attempt.kind != "map" or not size or again < 0 or not 0 < final <= records:
            return None
        spills = math.ceil(records / max(1, task.spill_bytes // (size / records + METADATA_BYTES)))
        final_bytes = task["MAP_OUTPUT_MATERIALIZED_BYTES"] / task.ratios[_MAP_OUTPUT_CODEC]
        if not final_bytes:
            return None
        left = again or final
        bytes_of_each = (size - final_bytes) / max(1, records - final)
        left_bytes = final_bytes + (left - final) * bytes_of_each
        pairs = (records, size), (left, left_bytes), (final, final_bytes)
        return cls(task.attempt.host, spills, again > 0, *pairs)


def combiner_statistics(combining: Sequence[Task]) -> dict[str, Statistic]:
    """
    Shares that a combiner leaves of a spill, and how what is left grows with the spill's records.

    It sees together the records of a spill and, where it runs in the merge, too, those that all
    spills of a map stand for; the groups of all reduces are what is left of a job's.  In
    logarithms, what was left lies on a line over these records, one line for each job, whose input
    may have other keys; their common slope is the exponent.  Without jobs whose combiners saw
    different numbers of records there is none, and the shares are those of any number.
    """
    jobs = defaultdict[str, list[Task]](list)
    maps = list[_Combined]()
    for task in combining:
        jobs[task.job].append(task)
    distances = []
    lines = 0  # from the mean of their line: of records, of records and bytes left
    for of_job in jobs.values():
        combined = [each for task in of_job if (each := _Combined.of(task)) is not None]
        groups = math.fsum(task["REDUCE_INPUT_GROUPS"] for task in of_job)
        maps += combined
        if line := _line(combined, groups):
            logarithms = np.log(line)
            distances += [*(logarithms - logarithms.mean(axis=0))]
            lines += 1
    if not maps:
        return {}
    number = f"over {len(maps)} map tasks"
    statistics = {
        f"combine_{of}_selectivity": pooled(
            [(each.host, (each.left[place], each.output[place])) for each in maps],
            f"{of} that spills left / MAP_OUTPUT_{of.upper()} {number}",
        )
        for place, of in enumerate(("records", "bytes"))
    }
    if not distances:
        return statistics
    statistics["records_per_combine"] = pooled(
        [(each.host, (each.output[0], float(each.spills))) for each in maps],
        f"MAP_OUTPUT_RECORDS / spills {number}",
    )
    x, *left = np.array(distances).T
    for of, y in zip(("records", "bytes"), left, strict=True):
        slope = float(x @ y / (x @ x))
        residuals = y - slope * x
        error = math.sqrt(residuals @ residuals / max(1, len(x) - lines - 1) / (x @ x))
        statistics[f"combine_{of}_exponent"] = Statistic(
            value=min(1.0, max(0.0, slope)),
            count=len(x),
            spread=error,
            source=f"{of} that combiners left of the records that they saw, in logarithms {number}",
        )
    return statistics


def _line(maps: Sequence[_Combined], groups: float) -> list[tuple[float, ...]]:
    """Records that the combiners of one job saw, records and bytes left; [] if all are alike."""
    points = [
        (each.output[0] / each.spills, *(of / each.spills for of in each.left)) for each in maps
    ]
    points += [(each.output[0], *each.final) for each in maps if each.again]
    if not points:
        return []
    if max(points)[0] < _APART * min(points)[0] and groups:
        records, size, final, final_bytes = (
            math.fsum(pair[place] for pair in pairs)
            for pairs in ([each.output for each in maps], [each.final for each in maps])
            for place in (0, 1)
        )
        bytes_of_each = (size - final_bytes) / max(1.0, records - final)
        groups = min(groups, final)
        points.append(
            (records, groups, max(groups, final_bytes - (final - groups) * bytes_of_each))
        )
    return points if max(points)[0] >= _APART * min(points)[0] else []


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
        value = 1.0
        source = "compression is off"
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
