"""
Statistics of the inside of tasks: what a record or a byte costs in each part of a task.

Each of `harness.profiling.inside_definitions` is a ratio of sums over tasks, of all hosts and of
each; its spread is the standard deviation of the tasks' own ratios.  Times are brought to reference
speed.  Where both sources tell, spans are taken.  What depends on the map output's (or the job
output's) codec has a second statistic for the jobs that compress, by the name and ``_compressed``.
"""

from __future__ import annotations

import math

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from harness.profiling.dataflow import Pair, pooled
from harness.profiling.inside_definitions import MAP, REDUCE, Counters, TaskStatistic
from harness.profiling.observation import Observation
from harness.records.profile import SpeedCorrection, Statistic
from harness.records.task_times import MapTimes, ReduceTimes, Source
from harness.stats.spread import standard_deviation

COMPRESSED = "_compressed"

_Maybe = float | None


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
    task: MapTimes | ReduceTimes, counters: Counters
) -> Iterator[tuple[str, TaskStatistic[MapTimes] | TaskStatistic[ReduceTimes], Pair]]:
    """Statistics of one task, those that it can tell."""
    if isinstance(task, MapTimes):
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
    spans: Iterable[MapTimes | ReduceTimes],
    logs: Iterable[MapTimes | ReduceTimes],
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
