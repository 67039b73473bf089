"""
Measured phases of tasks beside the costs that make them up.

A row is one phase of one task: its seconds at reference speed, and what each cost is multiplied
with (``docs/models/whatif.md``, each phase equation is linear in its costs).  A map task's row has
that task's own dataflow, a reduce task's the means of its job.

A task that was recorded (spans) has a row for each part of the equations, any other the five phases
of the job history.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from harness.errors import ModelError
from harness.models.whatif import MAP_PARTS, REDUCE_PARTS, part_terms, phase_terms
from harness.profiling.dataflow import Ratios, Task, dataflow_statistics, tasks
from harness.profiling.jobs import Observation
from harness.profiling.part_times import part_terms_of, part_times
from harness.records.profile import SpeedCorrection
from harness.records.trace import TaskAttempt

MAP_PHASES = ("map_main_s", "map_tail_s")
REDUCE_PHASES = ("shuffle_s", "sort_s", "reduce_rest_s")
# Of the history and of recordings, for the map and for the reduce.
KINDS = ((MAP_PHASES, MAP_PARTS), (REDUCE_PHASES, REDUCE_PARTS))
PHASES = (*MAP_PHASES, *REDUCE_PHASES, *MAP_PARTS, *REDUCE_PARTS)

Terms = Mapping[str, Mapping[str, float]]


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
    trace = observation.trace
    all_tasks, recorded = tasks(observation, ratios), part_times(observation)
    maps = [task for task in all_tasks if task.attempt.kind == "map"]
    maps_end = max((task.attempt.finish_s for task in maps), default=trace.submit_s)
    reduces = trace.succeeded("reduce") if trace.num_reduces else ()
    mean_terms: dict[Callable[..., Terms], Terms | None] = {}
    measured: list[PhaseRow] = []
    attempts = [(task.attempt, [task]) for task in maps]
    attempts += [(attempt, all_tasks) for attempt in reduces]
    for attempt, chosen in attempts:
        parts = recorded.get(attempt.attempt_id)
        terms_of = phase_terms if parts is None else part_terms
        if attempt.kind == "map":
            terms = _terms(terms_of, observation, chosen, warnings)
        else:  # of the mean of the job: the same for all reduces
            if terms_of not in mean_terms:
                mean_terms[terms_of] = _terms(terms_of, observation, chosen, warnings)
            terms = mean_terms[terms_of]
        if terms is None:
            continue
        if parts is None:
            waited = attempt.kind == "reduce" and attempt.start_s < maps_end
            measured += [
                PhaseRow(phase, seconds, terms.get(phase, {}), waited and phase == "shuffle_s")
                for phase, seconds in _history_phases(attempt, maps_end).items()
            ]
            continue
        modelled = part_terms_of(parts, terms)
        measured += [PhaseRow(part, *modelled_part) for part, modelled_part in modelled.items()]
        warnings += [
            f"some tasks have a {part} where the model has none: left out"
            for part, seconds in parts.seconds.items()
            if part not in modelled and seconds > 0
        ]
    warnings += [
        f"{phase_row.phase} of job {trace.job_id} runs backwards: left out"
        for phase_row in measured
        if phase_row.seconds < 0
    ]
    return [
        replace(phase_row, seconds=observation.at_reference(phase_row.seconds, speed))
        for phase_row in measured
        if phase_row.seconds >= 0 and any(phase_row.terms.values())
    ]


def _terms(
    terms_of: Callable[..., Terms],
    observation: Observation,
    chosen: Sequence[Task],
    warnings: list[str],
) -> Terms | None:
    """Coefficients of the mean of *chosen* tasks; `None` where no model can read their counters."""
    maps = [task for task in chosen if task.attempt.kind == "map"]
    cluster = observation.cluster.model_dump()
    configuration = observation.config.model_dump() | {
        "num_maps": observation.trace.num_maps,
        "num_reduces": observation.trace.num_reduces,
        "split_bytes": sum(task.input_bytes for task in maps) / len(maps) if maps else 0.0,
    }
    slots = ("num_nodes", "map_slots_per_node", "reduce_slots_per_node")
    codecs = chosen[0].ratios if chosen else Ratios(1.0, 1.0, 1.0)
    statistics = {
        "input_compression_ratio": codecs.source,
        "map_output_compression_ratio": codecs.map_output,
        "output_compression_ratio": codecs.output,
    }
    for name, statistic in dataflow_statistics(chosen).items():
        statistics[name] = statistic.value
    try:
        return terms_of(statistics, configuration, {name: cluster[name] for name in slots})
    except ModelError as error:
        warnings.append(f"tasks of job {observation.trace.job_id} are left out: {error.what}")
        return None


def _history_phases(attempt: TaskAttempt, maps_end: float) -> dict[str, float]:
    """Seconds of the phases that the job history shows of *attempt*."""
    shuffled, merged = attempt.shuffle_finish_s, attempt.sort_finish_s
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
