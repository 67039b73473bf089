"""
PTC behind the contract of `harness.models.base`.

The job time is `total_s` + `job_overhead_s`; the model has waves of its own, so the unified
scheduler has no part in it.  Where the quantities come from says `harness.models.ptc.estimation`.
"""

from __future__ import annotations

import math

from collections.abc import Mapping, Sequence
from typing import Any

from harness.errors import MissingStatistic
from harness.models.ptc.equations import METHODS, first_wave
from harness.models.ptc.estimation import Asked, overhead, quantities, whatif_tasks
from harness.models.ptc.physical import Quantities, evaluate
from harness.models.ptc.vectors import EVALUATORS
from harness.models.whatif import measurable
from harness.records.prediction import Cluster, JobConfig, JobInput, Prediction, TaskSpan
from harness.records.profile import Profile

# Costs that dominate a job with reduces: never taken as 0 in silence.
_OF_REDUCES = frozenset({"copy_s_per_byte", "local_write_s_per_byte", "network_bps"})

# Parts of the job that follow each other: they add up to `total_s`.
PHASES = (
    "map_s", "schedule_map_s", "context_switch_s", "leftover_s", "rest_transfer_s", "local_io_s",
    "consumer_s",
)  # fmt: skip
_ELSEWHERE = frozenset({*PHASES, "map_waves", "reduce_waves", "warnings"})
_OF_REDUCE_TASK = ("shuffle_s", "sort_s", "reduce_rest_s")


class PTC:
    """One of the two methods: ``wave`` (wave by wave) or ``closed`` (the paper's closed form)."""

    name: str
    required: frozenset[str]
    evaluators = EVALUATORS

    def __init__(self, name: str, method: str, description: str) -> None:
        self.name, self.method, self.description = name, method, description
        self.required = _OF_REDUCES | {"input_record_bytes", "map_cpu_s_per_record"}

    def predict(
        self, profile: Profile, configuration: JobConfig, cluster: Cluster, job_input: JobInput
    ) -> Prediction:
        """
        Times for one cell; the job time by the other method stands under `estimates`.

        ``MissingStatistic`` names what the profile lacks of `required` (of a map-only job, without
        the costs of copying); ``ModelError`` a field outside its range.
        """
        asked = Asked(
            profile=profile, configuration=configuration, cluster=cluster, job_input=job_input
        )
        self._demand(asked)
        tasks, notes = whatif_tasks(asked)
        job, more = quantities(asked, tasks)
        answers = {method: evaluate(job, method) for method in METHODS}
        return self._prediction(asked, tasks, answers, job, [*notes, *more])

    def _demand(self, asked: Asked) -> None:
        reduces = asked.configuration.num_reduces != 0
        needed = self.required if reduces else self.required - _OF_REDUCES
        known = {*asked.profile.statistics, *asked.profile.costs}
        # Bytes on the wire are bytes: either codec's copies tell.
        if "copy_s_per_byte_compressed" in known:
            known.add("copy_s_per_byte")
        if lacking := needed - known:
            raise MissingStatistic(
                *sorted(lacking), model=self.name, workload=asked.profile.workload
            )

    def _prediction(
        self,
        asked: Asked,
        tasks: Mapping[str, Any],
        answers: Mapping[str, Mapping[str, Any]],
        job: Quantities,
        notes: Sequence[str],
    ) -> Prediction:
        mine = answers[self.method]
        around = overhead(asked.profile, "job_overhead_s")
        shown = _measurable(tasks, mine)
        known = {k: v for k, v in vars(job).items() if v is not None and k != "map_task_s"}
        flow = {k: v for k, v in known.items() if math.isfinite(v)}
        return Prediction(
            model=self.name,
            cell="",
            job_s=mine["total_s"] + around,
            map_task_s=tasks["map_task_s"],
            reduce_task_s=sum(shown[p] for p in _OF_REDUCE_TASK) if mine["reduce_waves"] else None,
            map_waves=mine["map_waves"],
            reduce_waves=mine["reduce_waves"],
            phases={name: mine[name] for name in PHASES},
            measurable=shown,
            dataflow=flow | {k: v for k, v in mine.items() if k not in _ELSEWHERE},
            estimates={
                f"{method}_s": a["total_s"] + around
                for method, a in answers.items()
                if method != self.method
            },
            timeline=_timeline(job, mine),
            warnings=(*mine["warnings"], *notes),
        )


def _measurable(tasks: Mapping[str, Any], mine: Mapping[str, Any]) -> dict[str, float]:
    """Phases as a history shows them: What-If's, but a mean reduce wave's copying as shuffle."""
    shown = measurable(tasks)
    if mine["reduce_waves"]:
        copying = mine["transporter_s"] / mine["reduce_waves"]
        shown["shuffle_s"] = tasks.get("setup_cpu_s", 0.0) + copying
    return shown


def _timeline(job: Quantities, mine: Mapping[str, Any]) -> tuple[TaskSpan, ...]:
    """
    Tasks wave by wave.

    The maps' waves share the producer's time evenly.  The first wave of reduces begins when it may
    and ends with what it has left to do behind the maps; the others follow it.
    """
    m, r, maps_end = mine["map_waves"], mine["reduce_waves"], mine["producer_s"]
    ends = [maps_end * wave / m for wave in range(1, m + 1)]
    maps = _spans("map", job.num_maps, job.map_slots, [0.0, *ends[:-1]], ends)
    if not r:
        return maps
    each = (mine["local_io_s"] + mine["consumer_s"]) / r
    first = maps_end + mine["nonoverlap_first_wave_s"] + each
    length = (maps_end + mine["transporter_s"] + mine["consumer_s"] - first) / max(1, r - 1)
    done = [first + length * wave for wave in range(r)]
    begin = ends[first_wave(m, job.slowstart) - 1]
    return (*maps, *_spans("reduce", job.num_reduces, job.reduce_slots, [begin, *done[:-1]], done))


def _spans(
    kind: Any, tasks: int, slots: int, starts: Sequence[float], ends: Sequence[float]
) -> tuple[TaskSpan, ...]:
    """Waves of *slots* tasks, the last with what is left of *tasks*."""
    return tuple(
        TaskSpan(task=f"{kind} {i}", kind=kind, start_s=starts[i // slots], end_s=ends[i // slots])
        for i in range(tasks)
    )
