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
from itertools import chain

import numpy as np

from harness.base.hadoop.constants import METADATA_BYTES
from harness.base.records.profile import Statistic
from harness.base.records.trace import FILE_OUTPUT_COUNTER, TaskAttempt, TaskKind
from harness.base.stats.spread import standard_deviation
from harness.base.units import MIB
from harness.observe.profiling.jobs import Observation

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
        return float(self.attempt.input_bytes)

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

    def pooled(self, chosen: Sequence[Task]) -> Statistic | None:
        """The statistic of all *chosen* tasks of its kind; `None` where no counter shows it."""
        pairs = [
            (task.attempt.host, pair)
            for task in chosen
            if task.attempt.kind == self.kind and (pair := self.pair(task))[1] > 0
        ]
        text = f"{self.text} over {len(pairs)} {self.kind} tasks"
        return pooled(pairs, text) if pairs else None


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
    statistics = {name: definition.pooled(chosen) for name, definition in DEFINITIONS.items()}
    shown = {name: statistic for name, statistic in statistics.items() if statistic is not None}
    return shown | combiner_statistics([task for task in chosen if task.combines])


def spill_count(records: float, record_bytes: float, spill_bytes: float) -> int:
    """
    Spills of a map that gives *records* of such a mean size, if *spill_bytes* start one each.

    Of a record wider than that each is a spill.
    """
    return math.ceil(records / max(1, spill_bytes // (record_bytes + METADATA_BYTES)))


@dataclass(frozen=True, slots=True)
class _Combined:
    """
    Records and bytes of a map that combines: of its output, of all its spills, of its final file.

    *in_merge* says that it combined in the merge, too.
    A record that combining takes away takes as many bytes along as the mean of its map, so that
    the bytes of the spills follow from their records.
    """

    host: str
    spills: int
    in_merge: bool
    output: Pair
    left: Pair
    final: Pair

    @classmethod
    def of(cls, task: Task) -> _Combined | None:
        """`None` where the counters are not those of a map that combines."""
        records = task["MAP_OUTPUT_RECORDS"]
        size = task["MAP_OUTPUT_BYTES"]
        merge_records = task["COMBINE_INPUT_RECORDS"] - records  # what the merge saw of the spills
        final = task["COMBINE_OUTPUT_RECORDS"] - merge_records
        if task.attempt.kind != "map" or not size:
            return None
        if merge_records < 0 or not 0 < final <= records:
            return None
        final_bytes = task["MAP_OUTPUT_MATERIALIZED_BYTES"] / task.ratios[_MAP_OUTPUT_CODEC]
        if not final_bytes:
            return None
        left = merge_records or final
        record_bytes = (size - final_bytes) / max(1, records - final)
        return cls(
            host=task.attempt.host,
            spills=spill_count(records, size / records, task.spill_bytes),
            in_merge=merge_records > 0,
            output=(records, size),
            left=(left, final_bytes + (left - final) * record_bytes),
            final=(final, final_bytes),
        )


def combiner_statistics(combining: Sequence[Task]) -> dict[str, Statistic]:
    """
    Shares that a combiner leaves of a spill, and how what is left grows with the spill's records.

    It sees together the records of a spill and, where it runs in the merge, too, those that all
    spills of a map stand for; the groups of all reduces are what is left of a job's.  In
    logarithms, what was left lies on a line over these records, one line for each job, whose input
    may have other keys; their common slope is the exponent.  Without jobs whose combiners saw
    different numbers of records there is none, and the shares are those of any number.
    """
    groups_by_job = defaultdict[str, list[float]](list)
    maps_by_job = defaultdict[str, list[_Combined]](list)
    for task in combining:
        groups_by_job[task.job].append(task["REDUCE_INPUT_GROUPS"])
        job_maps = maps_by_job[task.job]
        if combined := _Combined.of(task):
            job_maps.append(combined)
    maps = [*chain(*maps_by_job.values())]
    if not maps:
        return {}
    number = f"over {len(maps)} map tasks"
    statistics = {
        "combine_records_selectivity": pooled(
            [(task.host, (task.left[0], task.output[0])) for task in maps],
            f"records that spills left / MAP_OUTPUT_RECORDS {number}",
        ),
        "combine_bytes_selectivity": pooled(
            [(task.host, (task.left[1], task.output[1])) for task in maps],
            f"bytes that spills left / MAP_OUTPUT_BYTES {number}",
        ),
    }
    lines = [
        np.log(line)
        for job, job_maps in maps_by_job.items()
        if (line := _line(job_maps, math.fsum(groups_by_job[job])))
    ]
    if not lines:
        return statistics
    spills = [(combined.host, (combined.output[0], float(combined.spills))) for combined in maps]
    # Distances from the mean of each job's line, in logarithms: records seen, then what was left.
    distances = np.concatenate([line - line.mean(axis=0) for line in lines])
    seen, records_left, bytes_left = distances.T
    freedom = max(1, len(seen) - len(lines) - 1)
    return statistics | {
        "records_per_combine": pooled(spills, f"MAP_OUTPUT_RECORDS / spills {number}"),
        "combine_records_exponent": _exponent("records", seen, records_left, freedom, number),
        "combine_bytes_exponent": _exponent("bytes", seen, bytes_left, freedom, number),
    }


def _exponent(
    what: str, seen: np.ndarray, left: np.ndarray, freedom: int, number: str
) -> Statistic:
    """Common slope of *left* over *seen*, both in logarithms and from the means of their jobs."""
    slope = float(seen @ left / (seen @ seen))
    residuals = left - slope * seen
    return Statistic(
        value=min(1.0, max(0.0, slope)),
        count=len(seen),
        spread=math.sqrt(residuals @ residuals / freedom / (seen @ seen)),
        source=f"{what} that combiners left of the records that they saw, in logarithms {number}",
    )


def _line(maps: Sequence[_Combined], groups: float) -> list[tuple[float, ...]]:
    """Records that the combiners of one job saw, records and bytes left; [] if all are alike."""
    points: list[tuple[float, ...]] = [
        (
            combined.output[0] / combined.spills,
            combined.left[0] / combined.spills,
            combined.left[1] / combined.spills,
        )
        for combined in maps
    ]
    points += [(combined.output[0], *combined.final) for combined in maps if combined.in_merge]
    if not points:
        return []
    if not _are_apart(points) and groups:
        points.append(_whole_job(maps, groups))
    return points if _are_apart(points) else []


def _are_apart(points: Sequence[tuple[float, ...]]) -> bool:
    """Whether the combiner with the most records saw `_APART` times those of the one with least."""
    return max(points)[0] >= _APART * min(points)[0]


def _whole_job(maps: Sequence[_Combined], groups: float) -> tuple[float, float, float]:
    """Records of all *maps*, and what would be left if one combiner saw them: the job's groups."""
    records = math.fsum(combined.output[0] for combined in maps)
    size = math.fsum(combined.output[1] for combined in maps)
    final = math.fsum(combined.final[0] for combined in maps)
    final_bytes = math.fsum(combined.final[1] for combined in maps)
    record_bytes = (size - final_bytes) / max(1.0, records - final)
    groups = min(groups, final)
    return records, groups, max(groups, final_bytes - (final - groups) * record_bytes)


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
    for name in (_INPUT_CODEC, _MAP_OUTPUT_CODEC, _OUTPUT_CODEC):
        compressing = [job for job in observations if _compressed(job)[name]]
        plain = [job for job in observations if not _compressed(job)[name]]
        ratio: tuple[float, str] | None = (1.0, "compression is off")
        if compressing:
            ratio = _measured_ratio(name, compressing, plain)
        if ratio is not None:
            value, source = ratio
            count = len(observations)
            ratios[name] = Statistic(value=value, count=count, spread=0.0, source=source)
    return ratios


def _measured_ratio(
    name: str, compressing: Sequence[Observation], plain: Sequence[Observation]
) -> tuple[float, str] | None:
    """A compression ratio and its source; `None` where nothing shows it."""
    if name not in _DENSITIES or not plain:
        return None
    kind, numerator, denominator = _DENSITIES[name]
    with_codec = _density(compressing, kind, numerator, denominator)
    without_codec = _density(plain, kind, numerator, denominator)
    if not with_codec or not without_codec:
        return None
    counters = f"{numerator.rpartition('.')[2]} / {denominator.rpartition('.')[2]}"
    source = f"{counters} of {len(compressing)} trials with and {len(plain)} without compression"
    return with_codec / without_codec, source


def _density(
    jobs: Sequence[Observation], kind: TaskKind, numerator: str, denominator: str
) -> float:
    """Sum of one counter over that of the other, of all tasks of *kind*; 0 where both are."""
    attempts = list[TaskAttempt]()
    for job in jobs:
        attempts += job.trace.succeeded(kind)
    top_sum = math.fsum(attempt.count(numerator) for attempt in attempts)
    bottom_sum = math.fsum(attempt.count(denominator) for attempt in attempts)
    return top_sum / bottom_sum if bottom_sum else 0.0


def ratios_of(observation: Observation, codecs: dict[str, Statistic]) -> Ratios | None:
    """Ratios that hold for one observation; `None` where it needs one that *codecs* lack."""
    ratios = {}
    for name, is_on in _compressed(observation).items():
        if not is_on:
            ratios[name] = 1.0
        elif name in codecs:
            ratios[name] = codecs[name].value
        else:
            return None
    return ratios


def _compressed(observation: Observation) -> dict[str, bool]:
    config = observation.config
    return {
        _INPUT_CODEC: config.input_compressed,
        _MAP_OUTPUT_CODEC: config.map_output_compressed,
        _OUTPUT_CODEC: config.output_compressed,
    }
