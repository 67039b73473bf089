"""
PTC behind the contract of `harness.models.Model`, and its answers to test vectors.

The job time is `total_s`, in the body without start, end and scheduling of tasks; the model has
waves of its own, so the unified scheduler has no part in it.  `harness.models.ptc.quantities` says
where the quantities come from.
"""

from __future__ import annotations

import math

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from harness.base.records.prediction import Cluster, JobConfig, JobInput, Prediction, TaskSpan
from harness.base.records.profile import Profile
from harness.models.adapter import leave_out, pick, published_inputs_of_cell
from harness.models.checks import Numbers, require_statistics
from harness.models.ptc.equations import METHODS, first_copied_wave, ptc
from harness.models.ptc.quantities import (
    Quantities,
    estimate_quantities,
    evaluate_quantities,
    predict_ptc,
    published_quantities,
)
from harness.models.scheduler import timeline
from harness.models.vectors import CaseInput, Evaluator
from harness.models.whatif.evaluation import evaluate, evaluate_grid
from harness.models.whatif.model import AFTER_SHUFFLE, measurable

# Costs that dominate a job with reduces: never silently taken as 0.
_OF_REDUCES = frozenset({"copy_s_per_byte", "local_write_s_per_byte", "network_bps"})

# Parts of the job that follow each other: they add up to `total_s`.
PHASES = (
    "map_s", "schedule_map_s", "context_switch_s", "leftover_s", "rest_transfer_s", "local_io_s",
    "consumer_s",
)  # fmt: skip
_OF_REDUCE_TASK = ("shuffle_s", "sort_s", "reduce_rest_s")
_NOT_DATAFLOW = frozenset({*PHASES, "map_waves", "reduce_waves", "warnings"})


def _answer_waves(case: CaseInput) -> dict[str, Any]:
    return ptc(_rename_slowstart(case), case.method or "wave")


def _answer_quantities(case: CaseInput) -> dict[str, Any]:
    return predict_ptc(_rename_slowstart(case), case.method or "wave")


def _rename_slowstart(case: CaseInput) -> dict[str, Any]:
    """Fields of a case, `reduce_slowstart` under the name that the functions have for it."""
    names = {"reduce_slowstart": "slowstart"}
    return {names.get(name, name): value for name, value in case.fields.items()}


EVALUATORS: tuple[Evaluator, ...] = (
    # The last two answer cases that lack the number of tasks or of waves: both are refused by name.
    Evaluator("mrtuner-ptc", frozenset({"num_maps"}), _answer_quantities),
    Evaluator("mrtuner-ptc", frozenset({"map_waves"}), _answer_waves),
    Evaluator("mrtuner-ptc", frozenset({"map_task_s"}), _answer_quantities),
    Evaluator("mrtuner-ptc", frozenset({"map_wave_s"}), _answer_waves),
)


@dataclass(eq=False)
class PTC:
    """One of the two methods: ``wave`` (wave by wave) or ``closed`` (the paper's closed form)."""

    name: str
    method: str
    description: str
    required = _OF_REDUCES | {"input_record_bytes", "map_cpu_s_per_record"}
    evaluators = EVALUATORS

    def predict(
        self, profile: Profile, configuration: JobConfig, cluster: Cluster, job_input: JobInput
    ) -> Prediction:
        """Times for one cell; the job time by the other method stands under `estimates`."""
        self._require(profile, configuration)
        # What-If's tasks, no reduce input kept in memory; its shuffle and network are not used.
        nothing_kept = configuration.model_copy(update={"reduce_buffer_percent": 0.0})
        tasks = evaluate(
            *published_inputs_of_cell(profile, nothing_kept, cluster, job_input), "mr2"
        )
        task_warnings = [text for text in tasks["warnings"] if "network_s_per_byte" not in text]
        quantities, job_warnings = estimate_quantities(
            profile, configuration, cluster, job_input, tasks
        )
        answers = {method: evaluate_quantities(quantities, method) for method in METHODS}
        answer = answers[self.method]
        published = published_quantities(profile, quantities)
        # Phases as a history shows them are What-If's, but for the copying of a wave of reduces.
        history = measurable(tasks)
        reduce_task_s = None
        if answer["reduce_waves"]:
            history["shuffle_s"] = answer["transporter_s"] / answer["reduce_waves"]
            reduce_task_s = sum(history[phase] for phase in _OF_REDUCE_TASK)
        return Prediction(
            model=self.name,
            body_s=answer["total_s"],
            published_s=evaluate_quantities(published, self.method)["total_s"],
            map_task_s=tasks["map_task_s"],
            reduce_task_s=reduce_task_s,
            map_waves=answer["map_waves"],
            reduce_waves=answer["reduce_waves"],
            phases=pick(answer, PHASES),
            measurable=history,
            dataflow=_dataflow(quantities, answer),
            estimates={
                f"{method}_s": times["total_s"]
                for method, times in answers.items()
                if method != self.method
            },
            timeline=_timeline(quantities, answer),
            warnings=(*answer["warnings"], *task_warnings, *job_warnings),
        )

    def bodies(
        self,
        profile: Profile,
        cell: tuple[JobConfig, Cluster, JobInput],
        fields: Mapping[str, Numbers],
    ) -> Numbers:
        """`body_s` of *cell* with each of very many values of *fields*, arrays by name, in s."""
        configuration, cluster, job_input = cell
        self._require(profile, configuration)
        statistics, costs, config, nodes = published_inputs_of_cell(profile, *cell)
        config |= {**fields, "reduce_buffer_percent": 0.0}
        names = ("map_task_s", "map_final_bytes", *AFTER_SHUFFLE)
        tasks = evaluate_grid(statistics, costs, config, nodes, "mr2", quantities=names)
        settings = pick(fields, JobConfig.model_fields)
        sizes = {
            "num_splits": np.asarray(fields["num_maps"], int),
            "split_bytes": fields["split_bytes"],
        }
        bodies = []
        for row in range(len(fields["num_maps"])):
            quantities, _ = estimate_quantities(
                profile,
                configuration.model_copy(update=_row_values(settings, row)),
                cluster,
                job_input.model_copy(update=_row_values(sizes, row)),
                _row_values(tasks, row),
            )
            bodies.append(evaluate_quantities(quantities, self.method)["total_s"])
        return np.array(bodies)

    def _require(self, profile: Profile, configuration: JobConfig) -> None:
        """``MissingStatistic`` where *profile* lacks what the model needs."""
        needed = self.required if configuration.num_reduces else self.required - _OF_REDUCES
        available = {*profile.statistics, *profile.costs}
        if "copy_s_per_byte_compressed" in available:
            # Bytes on the wire are bytes: the copies of either codec show their rate.
            available.add("copy_s_per_byte")
        require_statistics(needed, available, profile, self.name)


def _row_values(columns: Mapping[str, Numbers], row: int) -> dict[str, Any]:
    """One value of each of *columns*, as Python's number."""
    return {name: values[row].item() for name, values in columns.items()}


def _dataflow(quantities: Quantities, answer: Mapping[str, Any]) -> dict[str, Any]:
    """What the answer rests on, and what it holds beside its phases."""
    dataflow = {
        name: value
        for name, value in vars(quantities).items()
        if value is not None and name != "map_task_s" and math.isfinite(value)
    }
    return dataflow | leave_out(answer, _NOT_DATAFLOW)


def _timeline(quantities: Quantities, answer: Mapping[str, Any]) -> tuple[TaskSpan, ...]:
    """
    Tasks wave by wave.

    The maps' waves share the producer's time evenly.  The first wave of reduces starts when it may
    and ends with what it has left to do behind the maps; the others follow it.
    """
    map_waves = answer["map_waves"]
    reduce_waves = answer["reduce_waves"]
    maps_end = answer["producer_s"]
    ends = [maps_end * wave / map_waves for wave in range(1, map_waves + 1)]
    maps = _wave_spans(quantities.num_maps, quantities.map_slots, 0.0, ends)
    if not reduce_waves:
        return timeline(maps)
    wave_s = (answer["local_io_s"] + answer["consumer_s"]) / reduce_waves
    first_end = maps_end + answer["nonoverlap_first_wave_s"] + wave_s
    last_end = maps_end + answer["transporter_s"] + answer["consumer_s"]
    length = (last_end - first_end) / max(1, reduce_waves - 1)
    first_start = ends[first_copied_wave(map_waves, quantities.slowstart) - 1]
    ends = [first_end + length * wave for wave in range(reduce_waves)]
    spans = _wave_spans(quantities.num_reduces, quantities.reduce_slots, first_start, ends)
    return timeline(maps, spans)


def _wave_spans(
    tasks: int, slots: int, start: float, ends: list[float]
) -> Iterator[tuple[float, float]]:
    """Start and end of *tasks* in waves of *slots*; a wave starts when the one before it ends."""
    starts = [start, *ends]
    for task in range(tasks):
        yield starts[task // slots], ends[task // slots]
