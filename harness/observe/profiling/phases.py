"""
Measured phases of tasks beside the costs that make them up.

A row is one phase of one task: its seconds at reference speed, and what each cost is multiplied
with (``docs/models/whatif.md``, each phase equation is linear in its costs).  A map task's row has
that task's own dataflow, a reduce task's the means of its job.

A task that was recorded (spans) has a row for each part of the equations, any other the five phases
of the job history.  ``docs/models/README.md``, section 9, says what each part is in the spans.
Beside those parts, setup is launch to record loop or shuffle, with connecting while nothing was
copied; cleanup is all else that the main thread did.

Waiting is in none: blocked on the full buffer, for map outputs, for memory.  The time of spill
thread, copiers and mergers counts in full, though other threads work meanwhile: a cost is what a
byte or a record takes, as the paper's profiler measured it.  The model adds what overlaps.

Segments that go straight to disk are written while they are copied: then `copy_s` holds the terms
of `inmem_merge_s`, too.
"""

from __future__ import annotations

import math

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from harness.base.errors import ModelError
from harness.base.records.profile import SpeedCorrection
from harness.base.records.tasks import MapTimes, ReduceTimes, SpillTimes, covered_s
from harness.base.records.trace import TaskAttempt
from harness.models.whatif.model import (
    MAP_FUNCTION_PARTS,
    MAP_PARTS,
    REDUCE_PARTS,
    Terms,
    cost_terms,
)
from harness.observe.profiling.dataflow import Ratios, Task, dataflow_statistics, tasks
from harness.observe.profiling.jobs import Observation
from harness.observe.profiling.measured import MAP_PHASES, REDUCE_PHASES

# Of the history and of recordings, for the map and for the reduce.
KINDS = ((MAP_PHASES, MAP_PARTS), (REDUCE_PHASES, REDUCE_PARTS))
PHASES = (*MAP_PHASES, *REDUCE_PHASES, *MAP_PARTS, *REDUCE_PARTS)
_MERGES = {"inmem_merge_s": "memory", "ondisk_merge_s": "disk", "reduce_merge_s": "final"}


@dataclass(frozen=True, slots=True)
class PhaseRow:
    """One phase of one task; *waited* marks a shuffle that started before the last map's end."""

    phase: str
    seconds: float
    terms: Mapping[str, float]
    waited: bool = False


def phase_rows(
    observation: Observation, ratios: Ratios, speed: SpeedCorrection, warnings: list[str]
) -> list[PhaseRow]:
    """
    Rows of all successful tasks of *observation*.

    Tasks whose counters no model can read, and times that run backwards (clocks that differ
    between hosts), are left out; *warnings* says so.
    """
    measured = [*_task_rows(observation, ratios, warnings)]
    warnings += [
        f"{phase_row.phase} of job {observation.trace.job_id} runs backwards: left out"
        for phase_row in measured
        if phase_row.seconds < 0
    ]
    return [
        replace(phase_row, seconds=observation.at_reference(phase_row.seconds, speed))
        for phase_row in measured
        if phase_row.seconds >= 0 and any(phase_row.terms.values())
    ]


def _task_rows(observation: Observation, ratios: Ratios, warnings: list[str]) -> Iterator[PhaseRow]:
    """Yield the rows of each task that models can read, with seconds as measured."""
    trace = observation.trace
    all_tasks = tasks(observation, ratios)
    recorded = part_times(observation)
    maps = [task for task in all_tasks if task.attempt.kind == "map"]
    maps_end = max((task.attempt.finish_s for task in maps), default=trace.submit_s)
    for task in maps:
        parts = recorded.get(task.attempt.attempt_id)
        terms = _terms(observation, [task], ratios, warnings, by_parts=parts is not None)
        yield from _rows_of(task.attempt, parts, terms, maps_end, warnings)
    mean_terms: dict[bool, Terms | None] = {}  # of the job: the same for all reduces
    for attempt in trace.succeeded("reduce") if trace.num_reduces else ():
        parts = recorded.get(attempt.attempt_id)
        by_parts = parts is not None
        if by_parts not in mean_terms:
            mean_terms[by_parts] = _terms(
                observation, all_tasks, ratios, warnings, by_parts=by_parts
            )
        yield from _rows_of(attempt, parts, mean_terms[by_parts], maps_end, warnings)


def _rows_of(
    attempt: TaskAttempt,
    parts: PartTimes | None,
    terms: Terms | None,
    maps_end: float,
    warnings: list[str],
) -> Iterator[PhaseRow]:
    """Yield the rows of one task: its recorded *parts*, else the phases of the history."""
    if terms is None:
        return
    if parts is None:
        has_waited = attempt.kind == "reduce" and attempt.start_s < maps_end
        for phase, seconds in _history_phases(attempt, maps_end).items():
            waited = has_waited and phase == "shuffle_s"
            yield PhaseRow(phase, seconds, terms.get(phase, {}), waited)
        return
    if parts.sent_bytes:
        written = terms.get("inmem_merge_s", {}) if parts.straight_to_disk else {}
        copying = {**written, "network_s_per_byte": float(parts.sent_bytes)}
        terms = {**terms, "copy_s": copying}
    for part, seconds in parts.seconds.items():
        if any(terms.get(part, {}).values()):
            yield PhaseRow(part, seconds, terms[part])
        elif seconds > 0:
            warnings.append(f"some tasks have a {part} where the model has none: left out")


def _terms(
    observation: Observation,
    chosen: Sequence[Task],
    ratios: Ratios,
    warnings: list[str],
    *,
    by_parts: bool,
) -> Terms | None:
    """Coefficients of the mean of *chosen* tasks; `None` where no model can read their counters."""
    maps = [task for task in chosen if task.attempt.kind == "map"]
    configuration = observation.config.model_dump() | {
        "num_maps": observation.trace.num_maps,
        "num_reduces": observation.trace.num_reduces,
        "split_bytes": sum(task.input_bytes for task in maps) / len(maps) if maps else 0.0,
    }
    slots = {"num_nodes", "map_slots_per_node", "reduce_slots_per_node"}
    size = observation.cluster.model_dump(include=slots)
    shown = {name: statistic.value for name, statistic in dataflow_statistics(chosen).items()}
    try:
        return cost_terms({**ratios, **shown}, configuration, size, of_parts=by_parts)
    except ModelError as error:
        warnings.append(f"tasks of job {observation.trace.job_id} are left out: {error.what}")
        return None


def _history_phases(attempt: TaskAttempt, maps_end: float) -> dict[str, float]:
    shuffled = attempt.shuffle_finish_s
    merged = attempt.sort_finish_s
    if attempt.kind == "map" and attempt.map_finish_s is not None:
        return {
            "map_main_s": attempt.map_finish_s - attempt.start_s,
            "map_tail_s": attempt.finish_s - attempt.map_finish_s,
        }
    if attempt.kind == "map" or shuffled is None or merged is None:
        return {}
    return {
        "shuffle_s": shuffled - max(attempt.start_s, maps_end),
        "sort_s": merged - shuffled,
        "reduce_rest_s": attempt.finish_s - merged,
    }


@dataclass(frozen=True, slots=True)
class PartTimes:
    """
    Seconds of the parts of one task, by name.

    *sent_bytes* are those that a reduce copied; *straight_to_disk* says that some were not kept in
    memory first.
    """

    seconds: Mapping[str, float]
    sent_bytes: int = 0
    straight_to_disk: bool = False


def part_times(observation: Observation) -> dict[str, PartTimes]:
    """
    Tasks that succeeded and were recorded from start to end, by the ids of their attempts.

    A recording is left out that lacks a part, has not all records or segments of the task's
    counters, or whose parts take longer than the task, as with a mapper of several threads.
    """
    trace = observation.trace
    complete = {}
    for task_times, attempt in observation.succeeded_times("spans"):
        if isinstance(task_times, ReduceTimes):
            parts = _reduce_parts(task_times, attempt, trace.num_maps)
        else:
            parts = _map_parts(task_times, attempt, is_map_only=trace.num_reduces == 0)
        if parts is not None and min(parts.seconds.values()) >= 0:
            complete[task_times.attempt_id] = parts
    return complete


def logged_parts(observation: Observation) -> dict[str, PartTimes]:
    """
    Tasks that succeeded, by the ids of their attempts, with those parts that their logs show.

    A log has a spill as a whole, `spill_s`: sorting and writing are not told apart.  What a map
    computed, `map_cpu_s`, is a counter's.
    """
    trace = observation.trace
    logged = {}
    for task_times, attempt in observation.succeeded_times("logs"):
        parts = dict[str, float]()
        if isinstance(task_times, ReduceTimes):
            if len(task_times.segments) == attempt.count("SHUFFLED_MAPS", trace.num_maps):
                parts = _copies_and_merges(task_times)
        # Nothing is known of a map unless its log tells of the file of each spill.
        elif task_times.spills and all(spill.file_bytes for spill in task_times.spills):
            parts["spill_s"] = math.fsum(spill.duration_s for spill in task_times.spills)
            parts["map_cpu_s"] = attempt.count("CPU_MILLISECONDS") / 1000
            if len(task_times.spills) > 1 and task_times.merge_s is not None:
                parts["map_merge_s"] = task_times.merge_s
        logged[task_times.attempt_id] = PartTimes(parts)
    return logged


def part_means(observations: Iterable[Observation]) -> dict[str, float]:
    """
    Mean seconds of each part over the recorded tasks of all *observations*, as measured.

    `map_s` is all that the map function takes, with reading and collecting.
    """
    seconds = defaultdict[str, list[float]](list)
    for observation in observations:
        for parts in part_times(observation).values():
            for part, part_s in parts.seconds.items():
                seconds[part].append(part_s)
            map_parts_s = [
                parts.seconds[name] for name in MAP_FUNCTION_PARTS if name in parts.seconds
            ]
            if map_parts_s:
                seconds["map_s"].append(math.fsum(map_parts_s))
    return {part: fmean(task_seconds) for part, task_seconds in seconds.items()}


def _map_parts(map_times: MapTimes, attempt: TaskAttempt, *, is_map_only: bool) -> PartTimes | None:
    known_times = _known_seconds(
        map_times, "start_up_s", "alone_s", "spilling_s", "read_s", "blocked_s"
    )
    if known_times is None or map_times.records != attempt.count("MAP_INPUT_RECORDS"):
        return None
    start_up_s, alone_s, spilling_s, read_s, blocked_s = known_times
    mapping_s = alone_s + spilling_s - read_s
    # An estimate, and no more than what it is a part of.
    output_s = min(map_times.collect_s or 0.0, mapping_s)
    parts = {
        "map_setup_s": start_up_s,
        "map_read_s": read_s,
        "map_function_s": mapping_s - output_s,
        "map_write_s" if is_map_only else "collect_s": output_s,
        "map_cleanup_s": attempt.duration_s - start_up_s - alone_s - spilling_s - blocked_s,
    }
    if is_map_only:  # Closing the writer comes behind the record loop: it counts as cleaning up.
        return PartTimes(parts)
    spills = map_times.spills
    spilled = sum(spill.records or 0 for spill in spills)
    if map_times.merge_s is None or spilled != attempt.count("MAP_OUTPUT_RECORDS"):
        return None
    # The main thread makes the last spill, and merges.
    parts["map_cleanup_s"] -= math.fsum(spill.duration_s for spill in spills if spill.last)
    parts |= _spill_parts(spills)
    if len(spills) > 1:  # A single one is renamed.
        parts["map_merge_s"] = map_times.merge_s
        parts["map_cleanup_s"] -= map_times.merge_s
    return PartTimes(parts)


def _spill_parts(spills: Sequence[SpillTimes]) -> dict[str, float]:
    """Sorting, and combining with writing, of all *spills*; nothing where there is none."""
    if not spills:
        return {}
    written_s = math.fsum((spill.combine_s or 0.0) + (spill.write_s or 0.0) for spill in spills)
    return {
        "spill_sort_s": math.fsum(spill.sort_s or 0.0 for spill in spills),
        "spill_write_s": written_s,
    }


def _reduce_parts(reduce_times: ReduceTimes, attempt: TaskAttempt, maps: int) -> PartTimes | None:
    known_times = _known_seconds(
        reduce_times, "start_up_s", "shuffle_s", "read_s", "function_s", "write_s"
    )
    has_all_records = reduce_times.records == attempt.count("REDUCE_INPUT_RECORDS")
    has_all_segments = len(reduce_times.segments) == attempt.count("SHUFFLED_MAPS", maps)
    if known_times is None or not (has_all_records and has_all_segments):
        return None
    start_up_s, shuffle_s, read_s, function_s, write_s = known_times
    copying_s = covered_s((segment.start_s, segment.finish_s) for segment in reduce_times.segments)
    visiting_s = covered_s(
        (segment.start_s - (segment.connect_s or 0.0), segment.finish_s)
        for segment in reduce_times.segments
    )
    left_s = attempt.duration_s - start_up_s - shuffle_s - read_s - function_s - write_s
    parts = {
        "reduce_setup_s": start_up_s + visiting_s - copying_s,
        "reduce_function_s": read_s + function_s,
        "reduce_write_s": write_s,
        "reduce_cleanup_s": left_s,
    }
    straight_to_disk = any(segment.to == "disk" for segment in reduce_times.segments)
    sent_bytes = sum(segment.sent_bytes for segment in reduce_times.segments)
    return PartTimes(parts | _copies_and_merges(reduce_times), sent_bytes, straight_to_disk)


def _copies_and_merges(reduce_times: ReduceTimes) -> dict[str, float]:
    segments = reduce_times.segments
    parts = {"copy_s": covered_s((segment.start_s, segment.finish_s) for segment in segments)}
    for part, kind in _MERGES.items():
        merges_s = [
            merge.finish_s - merge.start_s for merge in reduce_times.merges if merge.kind == kind
        ]
        if merges_s:
            parts[part] = math.fsum(merges_s)
    if any(segment.to == "disk" for segment in segments):
        parts["copy_s"] += parts.pop("inmem_merge_s", 0.0)
    return parts


def _known_seconds(task_times: MapTimes | ReduceTimes, *names: str) -> list[float] | None:
    known_times = [getattr(task_times, name) for name in names]
    return None if None in known_times else known_times
