"""
Measured phases of tasks beside the costs that make them up.

A row is one phase of one task: its seconds at reference speed, and what each cost is multiplied
with (``docs/models/whatif.md``, each phase equation is linear in its costs).  A map task's row has
that task's own dataflow, a reduce task's the means of its job.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from harness.errors import ModelError
from harness.models.whatif import phase_terms
from harness.profiling.dataflow import Ratios, Task, plain, statistics, tasks
from harness.profiling.observation import Observation
from harness.records.profile import SpeedCorrection
from harness.records.trace import TaskAttempt

MAP_PHASES = ("map_main_s", "map_tail_s")
REDUCE_PHASES = ("shuffle_s", "sort_s", "reduce_rest_s")
PHASES = (*MAP_PHASES, *REDUCE_PHASES)

Terms = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True, slots=True)
class PhaseRow:
    """One phase of one task; *waited* marks a shuffle that began before the last map's end."""

    phase: str
    seconds: float
    terms: Mapping[str, float]
    waited: bool = False


def rows(
    observation: Observation, ratios: Ratios, speed: SpeedCorrection, warnings: list[str]
) -> list[PhaseRow]:
    """
    Rows of all successful tasks of *observation*.

    Tasks whose counters no model can read, and times that run backwards (clocks that differ
    between hosts), are left out; *warnings* says so.
    """
    found = []
    for row in _all_rows(observation, ratios, warnings):
        if row.seconds < 0:
            warnings.append(
                f"{row.phase} of job {observation.trace.job_id} runs backwards: left out"
            )
        elif any(row.terms.values()):
            found.append(_at_reference(row, observation.rate, speed))
    return found


def _all_rows(observation: Observation, ratios: Ratios, warnings: list[str]) -> Iterator[PhaseRow]:
    trace = observation.trace
    all_tasks = tasks(observation, ratios)
    maps = [t for t in all_tasks if t.attempt.kind == "map"]
    for task in maps:
        terms = _terms(observation, [task], warnings)
        yield from _paired(_map_times(task.attempt), terms)
    if trace.num_reduces:
        terms = _terms(observation, all_tasks, warnings)
        maps_end = max((t.attempt.finish_s for t in maps), default=trace.submit_s)
        for attempt in trace.succeeded("reduce"):
            waited = attempt.start_s < maps_end
            yield from _paired(_reduce_times(attempt, maps_end), terms, waited=waited)


def _paired(
    times: Mapping[str, float], terms: Terms | None, *, waited: bool = False
) -> Iterator[PhaseRow]:
    for phase, seconds in times.items() if terms is not None else ():
        yield PhaseRow(
            phase, seconds, (terms or {}).get(phase, {}), waited and phase == "shuffle_s"
        )


def _terms(observation: Observation, chosen: Sequence[Task], warnings: list[str]) -> Terms | None:
    maps = [t for t in chosen if t.attempt.kind == "map"]
    cluster = observation.cluster.model_dump()
    config = observation.config.model_dump() | {
        "num_maps": observation.trace.num_maps,
        "num_reduces": observation.trace.num_reduces,
        "split_bytes": sum(t.input_bytes for t in maps) / len(maps) if maps else 0.0,
    }
    names = ("num_nodes", "map_slots_per_node", "reduce_slots_per_node")
    codecs = chosen[0].ratios if chosen else Ratios(1.0, 1.0, 1.0)
    flow = plain(statistics(chosen)) | {
        "input_compression_ratio": codecs.source,
        "map_output_compression_ratio": codecs.map_output,
        "output_compression_ratio": codecs.output,
    }
    try:
        return phase_terms(flow, config, {name: cluster[name] for name in names})
    except ModelError as error:
        warnings.append(f"tasks of job {observation.trace.job_id} are left out: {error.what}")
        return None


def _map_times(attempt: TaskAttempt) -> dict[str, float]:
    middle = attempt.map_finish_s
    if middle is None:
        return {}
    return {"map_main_s": middle - attempt.start_s, "map_tail_s": attempt.finish_s - middle}


def _reduce_times(attempt: TaskAttempt, maps_end: float) -> dict[str, float]:
    shuffled, merged = attempt.shuffle_finish_s, attempt.sort_finish_s
    if shuffled is None or merged is None:
        return {}
    return {
        "shuffle_s": shuffled - max(attempt.start_s, maps_end),
        "sort_s": merged - shuffled,
        "reduce_rest_s": attempt.finish_s - merged,
    }


def _at_reference(row: PhaseRow, rate: float | None, speed: SpeedCorrection) -> PhaseRow:
    seconds = speed.at_reference(row.seconds, rate) if rate else row.seconds
    return PhaseRow(row.phase, seconds, row.terms, row.waited)
