"""
Statistics of the inside of tasks: what a record or a byte costs in each part of a task.

Names are those of ``docs/models/prophet.md``, section 2.1, where it has one.  Each is a ratio of
sums over tasks, of all hosts and of each; its spread is the standard deviation of the tasks' own
ratios.  Times are brought to reference speed.  Where both sources tell, spans are taken.  What
depends on the map output's (or the job output's) codec has a second statistic for the jobs that
compress, by the name and ``_compressed``.

``spill_bytes_selectivity`` is Prophet's `combine_bytes_selectivity`: combiner and compression
together, while What-If's statistic of that name holds no compression.
"""

from __future__ import annotations

import math

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from harness.profiling.dataflow import Pair, pooled
from harness.profiling.observation import Observation
from harness.profiling.spans import covered
from harness.records.inside import MapInside, ReduceInside, SegmentInside, Source, SpillInside
from harness.records.profile import SpeedCorrection, Statistic
from harness.stats.spread import standard_deviation

COMPRESSED = "_compressed"

Counters = Mapping[str, int]
_Maybe = float | None


@dataclass(frozen=True, slots=True)
class MapStatistic:
    """
    A statistic of map tasks as numerator and denominator of one task.

    *time* says which of the two is a time, *codec* whose compression it depends on.  *of* names the
    field that it rests on, for a source may only estimate that.  Not *kept*: it follows from the
    job's configuration, so it serves to compare sources and is no part of a profile.
    """

    text: str
    pair: Callable[[MapInside, Counters], tuple[_Maybe, _Maybe]]
    time: Literal["top", "bottom", ""] = "top"
    codec: Literal["map_output", "output", ""] = ""
    of: str = ""
    kept: bool = True


@dataclass(frozen=True, slots=True)
class ReduceStatistic:
    """The same of reduce tasks."""

    text: str
    pair: Callable[[ReduceInside, Counters], tuple[_Maybe, _Maybe]]
    time: Literal["top", "bottom", ""] = "top"
    codec: Literal["map_output", "output", ""] = ""
    of: str = ""
    kept: bool = True


def _spills(
    part: Callable[[SpillInside], _Maybe], per: Callable[[SpillInside], _Maybe]
) -> Callable[[MapInside, Counters], tuple[_Maybe, _Maybe]]:
    """Sums over the spills of which both are known."""

    def pair(task: MapInside, _: Counters) -> Pair:
        told = [(part(s), per(s)) for s in task.spills]
        known = [(top, bottom) for top, bottom in told if top is not None and bottom is not None]
        return math.fsum(top for top, _ in known), math.fsum(bottom for _, bottom in known)

    return pair


def _spill_bytes(task: MapInside, counters: Counters) -> tuple[_Maybe, _Maybe]:
    taken = [s.buffer_bytes for s in task.spills]
    emitted = counters.get("TaskCounter.MAP_OUTPUT_BYTES")
    return _sum(s.file_bytes for s in task.spills), _sum(taken) if None not in taken else emitted


def _map_merge(task: MapInside, _: Counters) -> tuple[_Maybe, _Maybe]:
    """A single spill is the output: nothing is merged."""
    read = _sum(s.file_bytes for s in task.spills) if len(task.spills) > 1 else None
    return task.merge_s, read


def _sum(values: Iterable[_Maybe]) -> _Maybe:
    """Sum, `None` where a part is not known."""
    known = list(values)
    return None if any(v is None for v in known) else math.fsum(v or 0.0 for v in known)


MAP: dict[str, MapStatistic] = {
    "map_s_per_record": MapStatistic(
        "map function with reading and collecting, no spill running / records",
        lambda m, _: (m.alone_s, m.alone_records),
        of="alone_s",
    ),
    "map_while_spilling_s_per_record": MapStatistic(
        "map function with reading and collecting, a spill running / records",
        lambda m, _: (m.spilling_s, m.spilling_records),
        codec="map_output",
        of="spilling_s",
    ),
    "read_s_per_record": MapStatistic("reading / records", lambda m, _: (m.read_s, m.records)),
    "collect_s_per_record": MapStatistic(
        "collecting / map output records",
        lambda m, c: (m.collect_s, c.get("TaskCounter.MAP_OUTPUT_RECORDS")),
        of="collect_s",
    ),
    "sort_s_per_record": MapStatistic(
        "sorting in spills / their records", _spills(lambda s: s.sort_s, lambda s: s.records)
    ),
    "combine_s_per_record": MapStatistic(
        "combining in spills / their records", _spills(lambda s: s.combine_s, lambda s: s.records)
    ),
    "spill_write_s_per_byte": MapStatistic(
        "writing of spills / bytes of their files",
        _spills(lambda s: s.write_s, lambda s: s.file_bytes),
        codec="map_output",
    ),
    "spill_s_per_record": MapStatistic(
        "whole spills / their records",
        _spills(lambda s: s.duration_s, lambda s: s.records),
        codec="map_output",
    ),
    "spill_bytes_selectivity": MapStatistic(
        "bytes of spill files / bytes taken from the buffer",
        _spill_bytes,
        time="",
        codec="map_output",
    ),
    "map_merge_s_per_byte": MapStatistic(
        "merging of spills / bytes of their files", _map_merge, codec="map_output"
    ),
    "map_startup_s": MapStatistic("launch to map function", lambda m, _: (m.start_up_s, 1)),
    "map_end_s": MapStatistic("merge to end", lambda m, _: (m.end_s, 1)),
    "map_flush_s": MapStatistic("flush", lambda m, _: (m.flush_s, 1), kept=False),
    "map_blocked_s": MapStatistic(
        "blocked on the full buffer", lambda m, _: (m.blocked_s, 1), of="blocked_s", kept=False
    ),
    "map_overlap_share": MapStatistic(
        "records mapped while a spill ran / records",
        lambda m, _: (m.spilling_records, m.records),
        time="",
        kept=False,
    ),
}


def _copies(part: Callable[[SegmentInside], float]) -> Callable[[ReduceInside], float]:
    return lambda r: math.fsum(part(s) for s in r.segments)


_SENT = _copies(lambda s: s.sent_bytes)
_COPYING = _copies(lambda s: s.finish_s - s.start_s + (s.connect_s or 0.0))


def _busy(task: ReduceInside) -> float:
    """Seconds in which one or more map outputs were on their way."""
    return covered([(s.start_s, s.finish_s) for s in task.segments], (-math.inf, math.inf))


def _merges(kind: str) -> Callable[[ReduceInside, Counters], Pair]:
    def pair(task: ReduceInside, _: Counters) -> Pair:
        known = [(m.finish_s - m.start_s, m.bytes) for m in task.merges if m.kind == kind]
        told = [(seconds, size) for seconds, size in known if size is not None]
        return math.fsum(seconds for seconds, _ in told), float(sum(size for _, size in told))

    return pair


def _loop(task: ReduceInside, _: Counters) -> tuple[_Maybe, _Maybe]:
    told = task.loop_s
    if told is None:
        told = _sum((task.read_s, task.function_s, task.write_s))
    return told, task.records


def _final_merge(task: ReduceInside, _: Counters) -> tuple[_Maybe, _Maybe]:
    final = [m.finish_s - m.start_s for m in task.merges if m.kind == "final"]
    return math.fsum(final), len(final)


REDUCE: dict[str, ReduceStatistic] = {
    "reduce_startup_s": ReduceStatistic("launch to shuffle", lambda r, _: (r.start_up_s, 1)),
    "copy_s_per_byte": ReduceStatistic(
        "connecting and copying of each fetcher / bytes sent",
        lambda r, _: (_COPYING(r), _SENT(r)),
        codec="map_output",
    ),
    "shuffle_bytes_per_s": ReduceStatistic(
        "bytes sent / time in which map outputs were on their way",
        lambda r, _: (_SENT(r), _busy(r)),
        time="bottom",
        codec="map_output",
    ),
    "memory_merge_s_per_byte": ReduceStatistic(
        "memory merges / bytes written", _merges("memory"), codec="map_output"
    ),
    "disk_merge_s_per_byte": ReduceStatistic(
        "disk merges / bytes written", _merges("disk"), codec="map_output"
    ),
    "reduce_read_s_per_record": ReduceStatistic(
        "reading with the last merge / records", lambda r, _: (r.read_s, r.records), of="read_s"
    ),
    "reduce_s_per_record": ReduceStatistic(
        "reduce function / records", lambda r, _: (r.function_s, r.records), of="function_s"
    ),
    "reduce_write_s_per_record": ReduceStatistic(
        "writing / output records",
        lambda r, c: (r.write_s, c.get("TaskCounter.REDUCE_OUTPUT_RECORDS")),
        codec="output",
        of="write_s",
    ),
    "reduce_loop_s_per_record": ReduceStatistic(
        "reading, reduce function and writing / records", _loop, codec="output"
    ),
    "reduce_commit_s": ReduceStatistic("commit", lambda r, _: (r.commit_s, 1)),
    "reduce_end_s": ReduceStatistic("reduce function to end", lambda r, _: (r.end_s, 1)),
    "shuffle_s": ReduceStatistic("shuffle", lambda r, _: (r.shuffle_s, 1), kept=False),
    "shuffle_waited_s": ReduceStatistic(
        "nothing to copy", lambda r, _: (r.waited_s, 1), kept=False
    ),
    "shuffle_stalled_s": ReduceStatistic(
        "no memory for a map output", lambda r, _: (r.stalled_s, 1), kept=False
    ),
    "final_merge_s": ReduceStatistic("final merge", _final_merge, kept=False),
}


@dataclass(frozen=True, slots=True)
class _Value:
    """A statistic of one task of one source."""

    source: Source
    host: str
    pair: Pair
    estimate: bool


def inside_statistics(
    observations: Sequence[Observation], speed: SpeedCorrection
) -> dict[str, Statistic]:
    """
    Statistics of all tasks that succeeded in *observations*; what no task tells is absent.

    A task is of one statistic once: from its spans where any task has them, else from its log.
    """
    found: dict[str, list[_Value]] = {}
    for observation in observations:
        for name, value in _values(observation, speed):
            found.setdefault(name, []).append(value)
    order = [name + suffix for name in (*MAP, *REDUCE) for suffix in ("", COMPRESSED)]
    return {name: _statistic(name, found[name]) for name in order if name in found}


def _values(observation: Observation, speed: SpeedCorrection) -> Iterator[tuple[str, _Value]]:
    rate = observation.rate
    factor = speed.at_reference(1.0, rate) if rate else 1.0
    done = {a.attempt_id: a for a in observation.trace.attempts if a.state == "succeeded"}
    codecs = {
        "map_output": observation.config.map_output_compressed,
        "output": observation.config.output_compressed,
    }
    for task in observation.inside:
        if task.attempt_id not in done:
            continue
        for name, definition, (top, bottom) in _pairs(task, done[task.attempt_id].counters):
            if not definition.kept:
                continue
            suffix = COMPRESSED if codecs.get(definition.codec) else ""
            pair = (
                top * factor if definition.time == "top" else top,
                bottom * factor if definition.time == "bottom" else bottom,
            )
            estimate = definition.of in task.sampled
            yield name + suffix, _Value(task.source, task.host, pair, estimate)


def _pairs(
    task: MapInside | ReduceInside, counters: Counters
) -> Iterator[tuple[str, MapStatistic | ReduceStatistic, Pair]]:
    """Statistics of one task, those that it can tell."""
    if isinstance(task, MapInside):
        maps = ((n, d, d.pair(task, counters)) for n, d in MAP.items())
        yield from ((n, d, pair) for n, d, told in maps if (pair := _known(*told)))
    else:
        reduces = ((n, d, d.pair(task, counters)) for n, d in REDUCE.items())
        yield from ((n, d, pair) for n, d, told in reduces if (pair := _known(*told)))


def _known(top: _Maybe, bottom: _Maybe) -> Pair | None:
    if top is None or bottom is None or not bottom > 0 or not math.isfinite(top):
        return None
    return float(top), float(bottom)


def _statistic(name: str, values: Sequence[_Value]) -> Statistic:
    source: Source = "spans" if any(v.source == "spans" for v in values) else "logs"
    chosen = [v for v in values if v.source == source]
    plain = name.removesuffix(COMPRESSED)
    kind, text = ("map", MAP[plain].text) if plain in MAP else ("reduce", REDUCE[plain].text)
    text = f"{source}: {text}, over {len(chosen)} {kind} tasks"
    if any(v.estimate for v in chosen):
        text += "; estimated for some"
    return pooled([(v.host, v.pair) for v in chosen], text)


@dataclass(frozen=True, slots=True)
class Comparison:
    """
    One statistic from two sources, over the tasks that have it from both.

    *ratio* is *logs* / *spans*, *spread* the standard deviation of the tasks' own ratios (of those
    whose spans do not say 0).
    """

    spans: float
    logs: float
    ratio: float
    spread: float
    count: int


def compare(
    spans: Iterable[MapInside | ReduceInside],
    logs: Iterable[MapInside | ReduceInside],
    counters: Mapping[str, Counters],
) -> dict[str, Comparison]:
    """
    By how much logs differ from spans, for the same attempts, in raw time; by statistic.

    *counters* are those of the attempts, by their ids.  Statistics that depend on a codec are
    compared together, for both sources saw the same jobs.
    """
    recorded = {t.attempt_id: t for t in spans}
    found: dict[str, list[tuple[Pair, Pair]]] = {}
    for task in logs:
        other = recorded.get(task.attempt_id)
        if other is None or type(other) is not type(task):
            continue
        mine = counters.get(task.attempt_id, {})
        theirs = {name: pair for name, _, pair in _pairs(other, mine)}
        for name, _, pair in _pairs(task, mine):
            if name in theirs:
                found.setdefault(name, []).append((theirs[name], pair))
    return {name: _compared(found[name]) for name in (*MAP, *REDUCE) if name in found}


def _compared(pairs: Sequence[tuple[Pair, Pair]]) -> Comparison:
    recorded = pooled([("", spans) for spans, _ in pairs], "").value
    told = pooled([("", logs) for _, logs in pairs], "").value
    each = [(s[0] / s[1], t[0] / t[1]) for s, t in pairs]
    return Comparison(
        spans=recorded,
        logs=told,
        ratio=told / recorded if recorded else (1.0 if not told else math.inf),
        spread=standard_deviation([log / span for span, log in each if span]),
        count=len(pairs),
    )
