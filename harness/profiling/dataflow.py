"""
Dataflow statistics (What-If's Table 3) from the counters of tasks.

Each is a ratio of two counters, taken over the sums of all tasks; its spread is the standard
deviation of the tasks' own ratios.  ``docs/models/whatif.md``, section 4.2, names the counters.
"""

from __future__ import annotations

import math

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from harness.profiling.observation import Observation
from harness.records.profile import Statistic
from harness.records.trace import (
    FILE_INPUT_COUNTER,
    FILE_OUTPUT_COUNTER,
    TASK_COUNTER,
    TaskAttempt,
    TaskKind,
)
from harness.stats.spread import standard_deviation

Pair = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Ratios:
    """Compressed over uncompressed bytes of an observation's input, map output and output."""

    source: float
    map_output: float
    output: float


@dataclass(frozen=True, slots=True)
class Task:
    """A successful attempt's counters, and how its bytes are compressed."""

    attempt: TaskAttempt
    ratios: Ratios
    combines: bool
    map_only: bool

    def __getitem__(self, counter: str) -> float:
        """Value of a counter, 0 where the task does not have it."""
        group = "" if "." in counter else f"{TASK_COUNTER}."
        return float(self.attempt.counters.get(f"{group}{counter}", 0))

    @property
    def input_bytes(self) -> float:
        """Stored bytes that a map read."""
        return self[f"{FILE_INPUT_COUNTER}.BYTES_READ"]

    @property
    def map_bytes(self) -> float:
        """Uncompressed bytes that a map emitted; of a map-only job, what it wrote."""
        if self.map_only:
            return self[f"{FILE_OUTPUT_COUNTER}.BYTES_WRITTEN"] / self.ratios.output
        return self["MAP_OUTPUT_BYTES"]

    @property
    def combined_again(self) -> bool:
        """Whether the combiner ran in the merge, too: it saw more than the map's output."""
        return self["COMBINE_INPUT_RECORDS"] > self["MAP_OUTPUT_RECORDS"]


@dataclass(frozen=True, slots=True)
class Definition:
    """A statistic as numerator and denominator over one task's counters."""

    kind: TaskKind
    text: str
    pair: Callable[[Task], Pair]


DEFINITIONS: dict[str, Definition] = {
    "input_record_bytes": Definition(
        "map",
        "BYTES_READ / MAP_INPUT_RECORDS",
        # Maps that read no file have records without bytes: that is no size of a record.
        lambda t: (t.input_bytes / t.ratios.source, t.input_bytes and t["MAP_INPUT_RECORDS"]),
    ),
    "map_bytes_selectivity": Definition(
        "map",
        "MAP_OUTPUT_BYTES / BYTES_READ",
        lambda t: (t.map_bytes, t.input_bytes / t.ratios.source),
    ),
    "map_records_selectivity": Definition(
        "map",
        "MAP_OUTPUT_RECORDS / MAP_INPUT_RECORDS",
        lambda t: (t["MAP_OUTPUT_RECORDS"], t["MAP_INPUT_RECORDS"]),
    ),
    "records_per_reduce_group": Definition(
        "reduce",
        "REDUCE_INPUT_RECORDS / REDUCE_INPUT_GROUPS",
        lambda t: (t["REDUCE_INPUT_RECORDS"], t["REDUCE_INPUT_GROUPS"]),
    ),
    "reduce_bytes_selectivity": Definition(
        "reduce",
        "BYTES_WRITTEN / REDUCE_SHUFFLE_BYTES",
        lambda t: (
            t[f"{FILE_OUTPUT_COUNTER}.BYTES_WRITTEN"] / t.ratios.output,
            t["REDUCE_SHUFFLE_BYTES"] / t.ratios.map_output,
        ),
    ),
    "reduce_records_selectivity": Definition(
        "reduce",
        "REDUCE_OUTPUT_RECORDS / REDUCE_INPUT_RECORDS",
        lambda t: (t["REDUCE_OUTPUT_RECORDS"], t["REDUCE_INPUT_RECORDS"]),
    ),
}
COMBINE_RECORDS = Definition(
    "map",
    "COMBINE_OUTPUT_RECORDS / COMBINE_INPUT_RECORDS",
    lambda t: (t["COMBINE_OUTPUT_RECORDS"], t["COMBINE_INPUT_RECORDS"]),
)
COMBINE_BYTES = Definition(
    "map",
    "MAP_OUTPUT_MATERIALIZED_BYTES / MAP_OUTPUT_BYTES",
    lambda t: (
        t["MAP_OUTPUT_MATERIALIZED_BYTES"],
        t["MAP_OUTPUT_BYTES"] * t.ratios.map_output,
    ),
)


def tasks(observation: Observation, ratios: Ratios) -> list[Task]:
    """Successful attempts of an observation, with what their counters mean."""
    trace, config = observation.trace, observation.config
    chosen = (*trace.succeeded("map"), *trace.succeeded("reduce"))
    return [Task(a, ratios, config.use_combiner, trace.num_reduces == 0) for a in chosen]


def statistics(chosen: Iterable[Task]) -> dict[str, Statistic]:
    """Statistics of *chosen* tasks, without those whose counters say nothing."""
    chosen = list(chosen)
    found = {name: _pooled(d, chosen) for name, d in DEFINITIONS.items()}
    combined = [t for t in chosen if t.combines]
    found["combine_records_selectivity"] = _pooled(COMBINE_RECORDS, combined)
    found["combine_bytes_selectivity"] = _combine_bytes(combined)
    return {name: value for name, value in found.items() if value is not None}


def _combine_bytes(combined: Sequence[Task]) -> Statistic | None:
    """
    Bytes after / before the combiner, from tasks in which each record was combined once.

    Where it always ran in the merge, too, each of the two passes is given the same share (the
    square root), so that Eq. (32) gives the bytes that were measured.
    """
    once = _pooled(COMBINE_BYTES, [t for t in combined if not t.combined_again])
    twice = _pooled(COMBINE_BYTES, combined) if once is None else None
    if twice is None:
        return once
    root = math.sqrt(twice.value)
    return twice.model_copy(
        update={
            "value": root,
            "spread": twice.spread / (2 * root) if root else 0.0,
            "nodes": {host: math.sqrt(value) for host, value in twice.nodes.items()},
            "source": f"square root (combined in spill and merge) of {twice.source}",
        }
    )


def _pooled(definition: Definition, chosen: Sequence[Task]) -> Statistic | None:
    mine = [t for t in chosen if t.attempt.kind == definition.kind]
    pairs = [(t.attempt.host, pair) for t in mine if (pair := definition.pair(t))[1] > 0]
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
        spread=standard_deviation([top / bottom for _, (top, bottom) in pairs]),
        source=source,
        nodes={host: _ratio(hosts[host]) for host in sorted(hosts) if host},
    )


def _ratio(pairs: Sequence[Pair]) -> float:
    return math.fsum(top for top, _ in pairs) / math.fsum(bottom for _, bottom in pairs)


def plain(found: Mapping[str, Statistic]) -> dict[str, float]:
    """Values alone, as the models take them."""
    return {name: statistic.value for name, statistic in found.items()}
