"""
Statistics of task times: what a record or a byte costs in each part of a task.

Each is a ratio of sums over tasks, of all hosts and of each; its spread is the standard deviation
of the tasks' own ratios.  Times are brought to reference speed.  Where both sources have it, spans
are taken.  What depends on the map output's (or the job output's) codec has a second statistic for
the jobs that compress (`StatisticRow.compressed_name`).

Names are those of ``docs/models/prophet.md``, section 2.1, where it has one.
``spill_bytes_selectivity`` is Prophet's `combine_bytes_selectivity`: combiner and compression
together, while What-If's statistic of that name holds no compression.
"""

from __future__ import annotations

import math

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.base.records.profile import SpeedCorrection, Statistic
from harness.base.records.statistics import TASK_TIMES
from harness.base.records.tasks import (
    MapTimes,
    ReduceTimes,
    SegmentTimes,
    Source,
    SourceComparison,
    covered_s,
)
from harness.base.records.trace import TASK_COUNTER
from harness.base.stats.spread import standard_deviation
from harness.observe.profiling.dataflow import Pair, pooled
from harness.observe.profiling.jobs import Observation

Counters = Mapping[str, int]
_MaybePair = tuple[float | None, float | None]


@dataclass(frozen=True, slots=True)
class TaskStatistic:
    """
    A statistic of the tasks of one kind as numerator and denominator of one task.

    The numerator is in seconds unless *is_time* says otherwise.  *field* names what it rests on,
    for a source may only estimate that.
    """

    text: str
    pair: Callable[[Any, Counters], _MaybePair]
    is_time: bool = True
    field: str = ""


def _fields(text: str, dividend: str, divisor: str) -> TaskStatistic:
    """A field of the task over another one, or over a counter (in capitals)."""

    def pair(task_times: Any, counters: Counters) -> _MaybePair:
        if divisor.isupper():
            return getattr(task_times, dividend), counters.get(f"{TASK_COUNTER}.{divisor}")
        return getattr(task_times, dividend), getattr(task_times, divisor)

    return TaskStatistic(text, pair, field=dividend)


def _spills(text: str, dividend: str, divisor: str) -> TaskStatistic:
    """Sums of two fields over the spills of which both are known."""

    def pair(map_times: MapTimes, _: Counters) -> Pair:
        pairs = [(getattr(spill, dividend), getattr(spill, divisor)) for spill in map_times.spills]
        known_pairs = [known_pair for known_pair in pairs if None not in known_pair]
        return math.fsum(top for top, _ in known_pairs), math.fsum(low for _, low in known_pairs)

    return TaskStatistic(text, pair)


def _merges(kind: str) -> TaskStatistic:
    def pair(reduce_times: ReduceTimes, _: Counters) -> Pair:
        merges = [
            (merge.finish_s - merge.start_s, merge.bytes)
            for merge in reduce_times.merges
            if merge.kind == kind and merge.bytes is not None
        ]
        return math.fsum(seconds for seconds, _ in merges), float(sum(size for _, size in merges))

    return TaskStatistic(f"{kind} merges / bytes written", pair)


def _sum(values: Iterable[float | None]) -> float | None:
    """Sum, `None` where a part is not known."""
    parts = list(values)
    known_parts = [part for part in parts if part is not None]
    return math.fsum(known_parts) if len(known_parts) == len(parts) else None


def _spill_files(map_times: MapTimes) -> float | None:
    return _sum(spill.file_bytes for spill in map_times.spills)


MAP: dict[str, TaskStatistic] = {
    "map_s_per_record": _fields(
        "map function with reading and collecting, no spill running / records",
        "alone_s",
        "alone_records",
    ),
    "map_while_spilling_s_per_record": _fields(
        "map function with reading and collecting, a spill running / records",
        "spilling_s",
        "spilling_records",
    ),
    "read_s_per_record": _fields("reading / records", "read_s", "records"),
    "collect_s_per_record": _fields(
        "collecting / map output records", "collect_s", "MAP_OUTPUT_RECORDS"
    ),
    "sort_s_per_record": _spills("sorting in spills / their records", "sort_s", "records"),
    # The combiner writes as it goes, so its time holds the codec's.
    "combine_s_per_record": _spills("combining in spills / their records", "combine_s", "records"),
    "spill_write_s_per_byte": _spills(
        "writing of spills / bytes of their files", "write_s", "file_bytes"
    ),
    "spill_s_per_record": _spills("whole spills / their records", "duration_s", "records"),
    "spill_bytes_selectivity": TaskStatistic(
        "bytes of spill files / bytes taken from the buffer",
        lambda map_times, counters: (
            _spill_files(map_times),
            counters.get(f"{TASK_COUNTER}.MAP_OUTPUT_BYTES")
            if any(spill.buffer_bytes is None for spill in map_times.spills)
            else _sum(spill.buffer_bytes for spill in map_times.spills),
        ),
        is_time=False,
    ),
    "map_merge_s_per_byte": TaskStatistic(
        "merging of spills / bytes of their files",
        # A single spill is the output: nothing is merged.
        lambda map_times, _: (
            map_times.merge_s,
            _spill_files(map_times) if len(map_times.spills) > 1 else None,
        ),
    ),
}
REDUCE: dict[str, TaskStatistic] = {
    "copy_s_per_byte": TaskStatistic(
        "connecting and copying of each fetcher / bytes sent",
        lambda reduce_times, _: (
            math.fsum(
                segment.finish_s - segment.start_s + (segment.connect_s or 0.0)
                for segment in reduce_times.segments
            ),
            math.fsum(segment.sent_bytes for segment in reduce_times.segments),
        ),
    ),
    "memory_merge_s_per_byte": _merges("memory"),
    "disk_merge_s_per_byte": _merges("disk"),
    "reduce_read_s_per_record": _fields(
        "reading with the last merge / records", "read_s", "records"
    ),
    "reduce_s_per_record": _fields("reduce function / records", "function_s", "records"),
    "reduce_write_s_per_record": _fields(
        "writing / output records", "write_s", "REDUCE_OUTPUT_RECORDS"
    ),
}


_DEFINITIONS: dict[str, TaskStatistic] = {**MAP, **REDUCE}


def task_statistics(
    observations: Sequence[Observation], speed: SpeedCorrection
) -> dict[str, Statistic]:
    """
    Statistics of all tasks that succeeded in *observations*; what no task shows is absent.

    A task counts once in a statistic: by its spans where any task has them, else by its log.
    """
    # By the statistic's name and its source: hosts and pairs of tasks, and which are estimates.
    pairs = defaultdict[tuple[str, Source], list[tuple[str, Pair]]](list)
    estimated = set[tuple[str, Source]]()
    for observation in observations:
        factor = observation.at_reference(1.0, speed)
        for task_times, attempt in observation.succeeded_times():
            for statistic, (numerator, denominator) in _pairs(task_times, attempt.counters):
                definition = _DEFINITIONS[statistic]
                pair = numerator * factor if definition.is_time else numerator, denominator
                name = TASK_TIMES[statistic].name_for(observation.config)
                key = (name, task_times.source)
                pairs[key].append((task_times.host, pair))
                if definition.field in task_times.sampled:
                    estimated.add(key)
    statistics = {}
    for statistic, definition in _DEFINITIONS.items():
        row = TASK_TIMES[statistic]
        for name in row.names:
            source: Source = "spans" if (name, "spans") in pairs else "logs"
            if not (chosen := pairs.get((name, source))):
                continue
            text = f"{source}: {definition.text}, over {len(chosen)} {row.side} tasks"
            if (name, source) in estimated:
                text += "; estimated for some"
            statistics[name] = pooled(chosen, text)
    return statistics


def _pairs(task_times: MapTimes | ReduceTimes, counters: Counters) -> Iterator[tuple[str, Pair]]:
    """Numerator and denominator of each statistic of one task that both are known of."""
    definitions: dict[str, Any] = MAP if isinstance(task_times, MapTimes) else REDUCE
    for statistic, definition in definitions.items():
        numerator, denominator = definition.pair(task_times, counters)
        if None not in (numerator, denominator) and denominator > 0 and math.isfinite(numerator):
            yield statistic, (float(numerator), float(denominator))


def compare_sources(
    spans: Iterable[MapTimes | ReduceTimes],
    logs: Iterable[MapTimes | ReduceTimes],
    counters: Mapping[str, Counters],
) -> list[SourceComparison]:
    """
    By how much logs differ from spans, for the same attempts, in raw time; for each statistic.

    *counters* are those of the attempts, by their ids.  Statistics that depend on a codec are
    compared together, for both sources saw the same jobs.
    """
    recorded = {task_times.attempt_id: task_times for task_times in spans}
    pairs = defaultdict[str, list[tuple[Pair, Pair]]](list)
    for logged in logs:
        task_times = recorded.get(logged.attempt_id)
        if task_times is None or type(task_times) is not type(logged):
            continue
        task_counters = counters.get(logged.attempt_id, {})
        span_pairs = dict(_pairs(task_times, task_counters))
        for statistic, log_pair in _pairs(logged, task_counters):
            if statistic in span_pairs:
                pairs[statistic].append((span_pairs[statistic], log_pair))
    return [
        _comparison(statistic, definition.text, pairs[statistic])
        for statistic, definition in _DEFINITIONS.items()
        if statistic in pairs
    ]


def _comparison(statistic: str, text: str, pairs: Sequence[tuple[Pair, Pair]]) -> SourceComparison:
    """One statistic of the same tasks by spans and by logs."""
    span_value = pooled([("", span_pair) for span_pair, _ in pairs], "").value
    log_value = pooled([("", log_pair) for _, log_pair in pairs], "").value
    ratio = 1.0
    if span_value:
        ratio = log_value / span_value
    elif log_value:
        ratio = math.inf
    task_values = [(span[0] / span[1], log[0] / log[1]) for span, log in pairs]
    return SourceComparison(
        name=statistic,
        text=text,
        spans=span_value,
        logs=log_value,
        ratio=ratio,
        spread=standard_deviation([log / span for span, log in task_values if span]),
        count=len(pairs),
    )


def network_statistics(
    observations: Sequence[Observation], speed: SpeedCorrection
) -> dict[str, Statistic]:
    """
    `network_bps`: bytes sent to a node's reduces / time in which one or more were on their way.

    Bytes per second at reference speed under the jobs' own load, so it is no more than what the
    network can do.  From spans where any job has them, else from logs; absent where nobody copied.
    """
    # Segments that reduces copied, by number of the job, and host of the reduces.
    by_source: dict[Source, dict[tuple[int, str], list[SegmentTimes]]] = {"spans": {}, "logs": {}}
    for number, observation in enumerate(observations):
        for task_times, _ in observation.succeeded_times():
            if isinstance(task_times, ReduceTimes):
                place = (number, task_times.host)
                by_source[task_times.source].setdefault(place, []).extend(task_times.segments)
    wanted: Source = "spans" if any(by_source["spans"].values()) else "logs"
    rates: list[tuple[str, Pair]] = []
    for (number, host), segments in sorted(by_source[wanted].items()):
        busy_s = covered_s((segment.start_s, segment.finish_s) for segment in segments)
        if busy_s > 0:
            factor = observations[number].at_reference(1.0, speed)
            sent_bytes = float(sum(segment.sent_bytes for segment in segments))
            rates.append((host, (sent_bytes, busy_s * factor)))
    if not rates:
        return {}
    what = f"{wanted}: bytes sent to a node / time in which some were on their way"
    return {"network_bps": pooled(rates, f"{what}, over {len(rates)} nodes of jobs")}
