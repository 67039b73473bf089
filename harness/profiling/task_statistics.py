"""
Statistics of task times: what a record or a byte costs in each part of a task.

Each is a ratio of sums over tasks, of all hosts and of each; its spread is the standard deviation
of the tasks' own ratios.  Times are brought to reference speed.  Where both sources have it, spans
are taken.  What depends on the map output's (or the job output's) codec has a second statistic for
the jobs that compress, by the name and ``_compressed``.

Names are those of ``docs/models/prophet.md``, section 2.1, where it has one.
``spill_bytes_selectivity`` is Prophet's `combine_bytes_selectivity`: combiner and compression
together, while What-If's statistic of that name holds no compression.
"""

from __future__ import annotations

import math

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Literal, NamedTuple, TypeVar

from harness.profiling.dataflow import Pair, pooled
from harness.profiling.jobs import Observation
from harness.records.profile import SpeedCorrection, Statistic
from harness.records.task_times import (
    MapTimes,
    ReduceTimes,
    Source,
    SourceComparison,
    SpillTimes,
    covered_s,
)
from harness.records.trace import TASK_COUNTER
from harness.stats.spread import standard_deviation

COMPRESSED = "_compressed"

Counters = Mapping[str, int]
Task = TypeVar("Task", MapTimes, ReduceTimes)
_Maybe = float | None
_MaybePair = tuple[_Maybe, _Maybe]


@dataclass(frozen=True, slots=True)
class TaskStatistic(Generic[Task]):
    """
    A statistic of the tasks of one kind as numerator and denominator of one task.

    *time* says which of the two is a time, *codec* whose compression it depends on.  *of* names the
    field that it rests on, for a source may only estimate that.  Not *kept*: it follows from the
    job's configuration, so it serves to compare sources and is no part of a profile.
    """

    text: str
    pair: Callable[[Task, Counters], _MaybePair]
    time: Literal["top", "bottom", ""] = "top"
    codec: Literal["map_output", "output", ""] = ""
    of: str = ""
    kept: bool = True


def _spills(
    part: Callable[[SpillTimes], _Maybe], per: Callable[[SpillTimes], _Maybe]
) -> Callable[[MapTimes, Counters], _MaybePair]:
    """Sums over the spills of which both are known."""

    def pair(map_times: MapTimes, _: Counters) -> Pair:
        pairs = [(part(spill), per(spill)) for spill in map_times.spills]
        known = [(top, bottom) for top, bottom in pairs if top is not None and bottom is not None]
        return math.fsum(top for top, _ in known), math.fsum(bottom for _, bottom in known)

    return pair


def _spill_bytes(map_times: MapTimes, counters: Counters) -> _MaybePair:
    taken = [spill.buffer_bytes for spill in map_times.spills]
    emitted = counters.get(f"{TASK_COUNTER}.MAP_OUTPUT_BYTES")
    file_bytes = _sum(spill.file_bytes for spill in map_times.spills)
    return file_bytes, _sum(taken) if None not in taken else emitted


def _sum(values: Iterable[_Maybe]) -> _Maybe:
    """Sum, `None` where a part is not known."""
    known = list(values)
    return None if any(value is None for value in known) else math.fsum(v or 0.0 for v in known)


MAP: dict[str, TaskStatistic[MapTimes]] = {
    "map_s_per_record": TaskStatistic(
        "map function with reading and collecting, no spill running / records",
        lambda map_times, _: (map_times.alone_s, map_times.alone_records),
        of="alone_s",
    ),
    "map_while_spilling_s_per_record": TaskStatistic(
        "map function with reading and collecting, a spill running / records",
        lambda map_times, _: (map_times.spilling_s, map_times.spilling_records),
        codec="map_output",
        of="spilling_s",
    ),
    "read_s_per_record": TaskStatistic(
        "reading / records", lambda map_times, _: (map_times.read_s, map_times.records)
    ),
    "collect_s_per_record": TaskStatistic(
        "collecting / map output records",
        lambda map_times, counters: (
            map_times.collect_s,
            counters.get(f"{TASK_COUNTER}.MAP_OUTPUT_RECORDS"),
        ),
        of="collect_s",
    ),
    "sort_s_per_record": TaskStatistic(
        "sorting in spills / their records",
        _spills(lambda spill: spill.sort_s, lambda spill: spill.records),
    ),
    # The combiner writes as it goes, so its time holds the codec's.
    "combine_s_per_record": TaskStatistic(
        "combining in spills / their records",
        _spills(lambda spill: spill.combine_s, lambda spill: spill.records),
        codec="map_output",
    ),
    "spill_write_s_per_byte": TaskStatistic(
        "writing of spills / bytes of their files",
        _spills(lambda spill: spill.write_s, lambda spill: spill.file_bytes),
        codec="map_output",
    ),
    "spill_s_per_record": TaskStatistic(
        "whole spills / their records",
        _spills(lambda spill: spill.duration_s, lambda spill: spill.records),
        codec="map_output",
    ),
    "spill_bytes_selectivity": TaskStatistic(
        "bytes of spill files / bytes taken from the buffer",
        _spill_bytes,
        time="",
        codec="map_output",
    ),
    "map_merge_s_per_byte": TaskStatistic(
        "merging of spills / bytes of their files",
        # A single spill is the output: nothing is merged.
        lambda map_times, _: (
            map_times.merge_s,
            _sum(spill.file_bytes for spill in map_times.spills)
            if len(map_times.spills) > 1
            else None,
        ),
        codec="map_output",
    ),
    "map_startup_s": TaskStatistic(
        "launch to map function", lambda map_times, _: (map_times.start_up_s, 1)
    ),
    "map_end_s": TaskStatistic("merge to end", lambda map_times, _: (map_times.end_s, 1)),
    "map_flush_s": TaskStatistic("flush", lambda map_times, _: (map_times.flush_s, 1), kept=False),
    "map_blocked_s": TaskStatistic(
        "blocked on the full buffer",
        lambda map_times, _: (map_times.blocked_s, 1),
        of="blocked_s",
        kept=False,
    ),
    "map_overlap_share": TaskStatistic(
        "records mapped while a spill ran / records",
        lambda map_times, _: (map_times.spilling_records, map_times.records),
        time="",
        kept=False,
    ),
}


def _sent_bytes(reduce_times: ReduceTimes) -> float:
    return math.fsum(segment.sent_bytes for segment in reduce_times.segments)


def _merges(kind: str) -> Callable[[ReduceTimes, Counters], Pair]:
    def pair(reduce_times: ReduceTimes, _: Counters) -> Pair:
        known = [
            (merge.finish_s - merge.start_s, merge.bytes)
            for merge in reduce_times.merges
            if merge.kind == kind and merge.bytes is not None
        ]
        return math.fsum(seconds for seconds, _ in known), float(sum(size for _, size in known))

    return pair


def _reduce_loop(reduce_times: ReduceTimes, _: Counters) -> _MaybePair:
    parts_s = _sum((reduce_times.read_s, reduce_times.function_s, reduce_times.write_s))
    return parts_s if reduce_times.loop_s is None else reduce_times.loop_s, reduce_times.records


REDUCE: dict[str, TaskStatistic[ReduceTimes]] = {
    "reduce_startup_s": TaskStatistic(
        "launch to shuffle", lambda reduce_times, _: (reduce_times.start_up_s, 1)
    ),
    "copy_s_per_byte": TaskStatistic(
        "connecting and copying of each fetcher / bytes sent",
        lambda reduce_times, _: (
            math.fsum(
                segment.finish_s - segment.start_s + (segment.connect_s or 0.0)
                for segment in reduce_times.segments
            ),
            _sent_bytes(reduce_times),
        ),
        codec="map_output",
    ),
    "shuffle_bytes_per_s": TaskStatistic(
        "bytes sent / time in which map outputs were on their way",
        lambda reduce_times, _: (
            _sent_bytes(reduce_times),
            covered_s((segment.start_s, segment.finish_s) for segment in reduce_times.segments),
        ),
        time="bottom",
        codec="map_output",
    ),
    "memory_merge_s_per_byte": TaskStatistic(
        "memory merges / bytes written", _merges("memory"), codec="map_output"
    ),
    "disk_merge_s_per_byte": TaskStatistic(
        "disk merges / bytes written", _merges("disk"), codec="map_output"
    ),
    "reduce_read_s_per_record": TaskStatistic(
        "reading with the last merge / records",
        lambda reduce_times, _: (reduce_times.read_s, reduce_times.records),
        of="read_s",
    ),
    "reduce_s_per_record": TaskStatistic(
        "reduce function / records",
        lambda reduce_times, _: (reduce_times.function_s, reduce_times.records),
        of="function_s",
    ),
    "reduce_write_s_per_record": TaskStatistic(
        "writing / output records",
        lambda reduce_times, counters: (
            reduce_times.write_s,
            counters.get(f"{TASK_COUNTER}.REDUCE_OUTPUT_RECORDS"),
        ),
        codec="output",
        of="write_s",
    ),
    "reduce_loop_s_per_record": TaskStatistic(
        "reading, reduce function and writing / records", _reduce_loop, codec="output"
    ),
    "reduce_commit_s": TaskStatistic("commit", lambda reduce_times, _: (reduce_times.commit_s, 1)),
    "reduce_end_s": TaskStatistic(
        "reduce function to end", lambda reduce_times, _: (reduce_times.end_s, 1)
    ),
    "shuffle_s": TaskStatistic(
        "shuffle", lambda reduce_times, _: (reduce_times.shuffle_s, 1), kept=False
    ),
    "shuffle_waited_s": TaskStatistic(
        "nothing to copy", lambda reduce_times, _: (reduce_times.waited_s, 1), kept=False
    ),
    "shuffle_stalled_s": TaskStatistic(
        "no memory for a map output",
        lambda reduce_times, _: (reduce_times.stalled_s, 1),
        kept=False,
    ),
    "final_merge_s": TaskStatistic(
        "final merge",
        lambda reduce_times, _: (
            math.fsum(m.finish_s - m.start_s for m in reduce_times.merges if m.kind == "final"),
            sum(merge.kind == "final" for merge in reduce_times.merges),
        ),
        kept=False,
    ),
}


class _Value(NamedTuple):
    """A statistic of one task of one source."""

    source: Source
    host: str
    pair: Pair
    is_estimate: bool


def task_statistics(
    observations: Sequence[Observation], speed: SpeedCorrection
) -> dict[str, Statistic]:
    """
    Statistics of all tasks that succeeded in *observations*; what no task shows is absent.

    A task counts once in a statistic: by its spans where any task has them, else by its log.
    """
    values: dict[str, list[_Value]] = {}
    for observation in observations:
        factor = observation.at_reference(1.0, speed)
        succeeded = {a.attempt_id: a for a in observation.trace.attempts if a.state == "succeeded"}
        is_compressed = {
            "map_output": observation.config.map_output_compressed,
            "output": observation.config.output_compressed,
        }
        for task in observation.task_times:
            if task.attempt_id not in succeeded:
                continue
            for name, (top, bottom) in _pairs(task, succeeded[task.attempt_id].counters):
                definition = MAP.get(name) or REDUCE[name]
                if not definition.kept:
                    continue
                pair = (
                    top * factor if definition.time == "top" else top,
                    bottom * factor if definition.time == "bottom" else bottom,
                )
                value = _Value(task.source, task.host, pair, definition.of in task.sampled)
                suffix = COMPRESSED if is_compressed.get(definition.codec) else ""
                values.setdefault(name + suffix, []).append(value)
    statistics = {}
    for name in (*MAP, *REDUCE):
        kind, definition_text = (
            ("map" if name in MAP else "reduce"),
            (MAP.get(name) or REDUCE[name]).text,
        )
        for suffixed in (name, name + COMPRESSED):
            if suffixed not in values:
                continue
            has_spans = any(value.source == "spans" for value in values[suffixed])
            source: Source = "spans" if has_spans else "logs"
            chosen = [value for value in values[suffixed] if value.source == source]
            text = f"{source}: {definition_text}, over {len(chosen)} {kind} tasks"
            if any(value.is_estimate for value in chosen):
                text += "; estimated for some"
            pairs = [(value.host, value.pair) for value in chosen]
            statistics[suffixed] = pooled(pairs, text)
    return statistics


def _pairs(task: MapTimes | ReduceTimes, counters: Counters) -> Iterator[tuple[str, Pair]]:
    """Numerator and denominator of each statistic of one task that both are known of."""
    if isinstance(task, MapTimes):
        pairs = ((name, definition.pair(task, counters)) for name, definition in MAP.items())
    else:
        pairs = ((name, definition.pair(task, counters)) for name, definition in REDUCE.items())
    for name, (top, bottom) in pairs:
        if top is not None and bottom is not None and bottom > 0 and math.isfinite(top):
            yield name, (float(top), float(bottom))


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
    recorded = {task.attempt_id: task for task in spans}
    both: dict[str, list[tuple[Pair, Pair]]] = {}
    for logged in logs:
        task = recorded.get(logged.attempt_id)
        if task is None or type(task) is not type(logged):
            continue
        task_counters = counters.get(logged.attempt_id, {})
        span_pairs = dict(_pairs(task, task_counters))
        for name, log_pair in _pairs(logged, task_counters):
            if name in span_pairs:
                both.setdefault(name, []).append((span_pairs[name], log_pair))
    comparisons = []
    for name in (*MAP, *REDUCE):
        if not (pairs := both.get(name)):
            continue
        span_value = pooled([("", span_pair) for span_pair, _ in pairs], "").value
        log_value = pooled([("", log_pair) for _, log_pair in pairs], "").value
        ratios = [(span[0] / span[1], log[0] / log[1]) for span, log in pairs]
        ratio = log_value / span_value if span_value else (math.inf if log_value else 1.0)
        comparisons.append(
            SourceComparison(
                name=name,
                text=(MAP.get(name) or REDUCE[name]).text,
                spans=span_value,
                logs=log_value,
                ratio=ratio,
                spread=standard_deviation([log / span for span, log in ratios if span]),
                count=len(pairs),
            )
        )
    return comparisons


def network_statistics(
    observations: Sequence[Observation], speed: SpeedCorrection
) -> dict[str, Statistic]:
    """
    `network_bps`: bytes sent to a node's reduces / time in which one or more were on their way.

    Bytes per second at reference speed under the jobs' own load, so it is no more than what the
    network can do.  From spans where any job has them, else from logs; absent where nobody copied.
    """
    copied: list[tuple[Observation, list[ReduceTimes]]] = []
    for observation in observations:
        succeeded = {attempt.attempt_id for attempt in observation.trace.succeeded("reduce")}
        reduces = [t for t in observation.task_times if isinstance(t, ReduceTimes) and t.segments]
        copied.append((observation, [t for t in reduces if t.attempt_id in succeeded]))
    has_spans = any(task.source == "spans" for _, reduces in copied for task in reduces)
    source = "spans" if has_spans else "logs"
    rates: list[tuple[str, Pair]] = []
    for observation, reduces in copied:
        factor = observation.at_reference(1.0, speed)
        chosen = [task for task in reduces if task.source == source]
        for host in sorted({task.host for task in chosen}):
            segments = [s for task in chosen if task.host == host for s in task.segments]
            busy_s = covered_s((segment.start_s, segment.finish_s) for segment in segments)
            if busy_s > 0:
                sent_bytes = float(sum(segment.sent_bytes for segment in segments))
                rates.append((host, (sent_bytes, busy_s * factor)))
    if not rates:
        return {}
    what = f"{source}: bytes sent to a node / time in which some were on their way"
    return {"network_bps": pooled(rates, f"{what}, over {len(rates)} nodes of jobs")}
