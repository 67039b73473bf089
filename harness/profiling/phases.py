"""
Measured phases of tasks beside the costs that make them up.

A row is one phase of one task: its seconds at reference speed, and what each cost is multiplied
with (``docs/models/whatif.md``, each phase equation is linear in its costs).  A map task's row has
that task's own dataflow, a reduce task's the means of its job.

A task that was recorded (spans) has a row for each part of the equations, any other the five phases
of the job history.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from harness.errors import ModelError
from harness.models.whatif import MAP_PARTS, REDUCE_PARTS, part_terms, phase_terms
from harness.profiling.dataflow import Ratios, Task, plain, statistics, tasks
from harness.profiling.fine import Timed, fine_rows, timed_tasks
from harness.profiling.observation import Observation
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
    all_tasks, timed = tasks(observation, ratios), timed_tasks(observation)
    maps = [t for t in all_tasks if t.attempt.kind == "map"]
    mean = _Terms(observation, all_tasks, warnings)
    for task in maps:
        mine = _Terms(observation, [task], warnings)
        if (told := timed.get(task.attempt.attempt_id)) is not None:
            yield from _fine(told, mine.parts, warnings)
        else:
            yield from _paired(_map_times(task.attempt), mine.phases)
    maps_end = max((t.attempt.finish_s for t in maps), default=trace.submit_s)
    for attempt in trace.succeeded("reduce") if trace.num_reduces else ():
        if (told := timed.get(attempt.attempt_id)) is not None:
            yield from _fine(told, mean.parts, warnings)
        else:
            times = _reduce_times(attempt, maps_end)
            yield from _paired(times, mean.phases, waited=attempt.start_s < maps_end)


def _fine(timed: Timed, terms: Terms | None, warnings: list[str]) -> Iterator[PhaseRow]:
    """Rows of a recorded task; *warnings* names the parts that took time and have no equation."""
    if terms is None:
        return
    found = fine_rows(timed, terms)
    for part, (seconds, mine) in found.items():
        yield PhaseRow(part, seconds, mine)
    warnings += [
        f"some tasks have a {part} where the model has none: left out"
        for part, seconds in timed.seconds.items()
        if part not in found and seconds > 0
    ]


def _paired(
    times: Mapping[str, float], terms: Terms | None, *, waited: bool = False
) -> Iterator[PhaseRow]:
    for phase, seconds in times.items() if terms is not None else ():
        yield PhaseRow(
            phase, seconds, (terms or {}).get(phase, {}), waited and phase == "shuffle_s"
        )


class _Terms:
    """Coefficients of the mean of some tasks, of either form, worked out when asked for."""

    def __init__(
        self, observation: Observation, chosen: Sequence[Task], warnings: list[str]
    ) -> None:
        self._observation, self._chosen, self._warnings = observation, chosen, warnings

    @cached_property
    def phases(self) -> Terms | None:
        """Of the phases of the history; `None` where no model can read the tasks."""
        return self._terms(phase_terms)

    @cached_property
    def parts(self) -> Terms | None:
        """Of the parts of a recording; `None` where no model can read the tasks."""
        return self._terms(part_terms)

    def _terms(self, terms_of: Callable[..., Terms]) -> Terms | None:
        observation, chosen = self._observation, self._chosen
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
            return terms_of(flow, config, {name: cluster[name] for name in names})
        except ModelError as error:
            job = observation.trace.job_id
            self._warnings.append(f"tasks of job {job} are left out: {error.what}")
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
