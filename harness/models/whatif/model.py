"""What-If behind the contract of `harness.models.base`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from harness.errors import MissingStatistic, ModelError
from harness.models.scheduler import POOLS, map_spans, schedule
from harness.models.whatif.evaluation import evaluate
from harness.models.whatif.inputs import Statistics
from harness.models.whatif.phases import measurable
from harness.models.whatif.vectors import EVALUATORS
from harness.records.prediction import Cluster, JobConfig, JobInput, Prediction, TaskSpan
from harness.records.profile import Profile

if TYPE_CHECKING:
    import numpy as np

    from numpy.typing import NDArray

# Costs that dominate a job with reduces: never taken as 0 in silence.
_OF_REDUCES = frozenset({"network_s_per_byte", "local_write_s_per_byte"})

PHASES = (
    "map_read_s", "map_function_s", "collect_s", "spill_s", "map_merge_s", "map_write_s",
    "shuffle_s", "reduce_merge_s", "reduce_function_s", "reduce_write_s",
    "setup_cpu_s", "cleanup_cpu_s",
)  # fmt: skip
_AFTER_SHUFFLE = (
    "reduce_merge_s", "reduce_function_s", "reduce_write_s", "setup_cpu_s", "cleanup_cpu_s",
)  # fmt: skip
_ELSEWHERE = frozenset(
    {*PHASES, "job_s", "map_task_s", "reduce_task_s", "map_waves", "reduce_waves", "warnings"}
)


class WhatIf:
    """The published model (*rules* ``paper``), or its Hadoop 3 form (``mr2``)."""

    name: str
    required: frozenset[str]
    evaluators = EVALUATORS

    def __init__(self, name: str, rules: str, description: str) -> None:
        self.name, self.rules, self.description = name, rules, description
        self.required = _OF_REDUCES | {"input_record_bytes", "map_cpu_s_per_record"}

    def predict(
        self, profile: Profile, configuration: JobConfig, cluster: Cluster, job_input: JobInput
    ) -> Prediction:
        """
        Times for one cell: `job_s` is Eq. (94), the scheduler's job times are estimates.

        ``MissingStatistic`` names what the profile lacks of `required` (of a map-only job, without
        the costs of a shuffle); ``ModelError`` a field outside its range.
        """
        self._demand(profile, reduces=configuration.num_reduces != 0)
        config = configuration.model_dump() | {
            "num_maps": job_input.num_splits,
            "split_bytes": job_input.split_bytes,
        }
        size = _effective(cluster.map_slots, cluster.reduce_slots)
        answer = evaluate(*_numbers(profile), config, size, self.rules)
        return self._prediction(answer, profile, configuration, cluster, job_input)

    def predict_grid(
        self,
        profile: Profile,
        configuration: Mapping[str, Any],
        *,
        map_slots: Any,
        reduce_slots: Any,
        num_splits: Any,
        split_bytes: Any,
        quantities: Iterable[str] = ("job_s",),
    ) -> dict[str, NDArray[np.float64]]:
        """
        `predict` for many cells: numbers of the evaluation by name, each an array over the cells.

        *configuration* holds fields of `JobConfig`, absent ones taking its defaults; the keywords
        are fields of `Cluster` and `JobInput`.  Each is one value, or an array of one value per
        cell.  Errors are those of `predict`, and a `ModelError` for a field that is none.
        """
        import numpy as np

        from harness.models.whatif.grid import evaluate_grid

        if strange := configuration.keys() - JobConfig.model_fields.keys():
            raise ModelError(f"{min(strange)} is no field of a configuration", where=self.name)
        config = {
            **JobConfig().model_dump(),
            **configuration,
            "num_maps": num_splits,
            "split_bytes": split_bytes,
        }
        self._demand(profile, reduces=bool(np.any(np.asarray(config["num_reduces"]) != 0)))
        size = _effective(map_slots, reduce_slots)
        return evaluate_grid(*_numbers(profile), config, size, self.rules, quantities=quantities)

    def _demand(self, profile: Profile, *, reduces: bool) -> None:
        needed = self.required if reduces else self.required - _OF_REDUCES
        lacking = needed - profile.statistics.keys() - profile.costs.keys()
        if lacking:
            raise MissingStatistic(*sorted(lacking), model=self.name, workload=profile.workload)

    def _prediction(
        self,
        answer: Mapping[str, Any],
        profile: Profile,
        configuration: JobConfig,
        cluster: Cluster,
        job_input: JobInput,
    ) -> Prediction:
        tasks, notes = _scheduler_input(answer, profile, configuration, cluster, job_input)
        schedules = {pool: schedule(**tasks, pool=pool) for pool in POOLS}
        return Prediction(
            model=self.name,
            cell="",
            job_s=answer["job_s"],
            map_task_s=answer["map_task_s"],
            reduce_task_s=answer.get("reduce_task_s"),
            map_waves=answer["map_waves"],
            reduce_waves=answer["reduce_waves"],
            phases={name: answer[name] for name in PHASES if name in answer},
            measurable=measurable(answer),
            dataflow={k: v for k, v in answer.items() if k not in _ELSEWHERE},
            estimates={f"scheduler_{pool}_s": s["job_s"] for pool, s in schedules.items()},
            timeline=_timeline(tasks, schedules["separate"]),
            warnings=(*answer["warnings"], *notes),
        )


def _numbers(profile: Profile) -> tuple[dict[str, float], dict[str, float]]:
    """
    Statistics and costs without their noise.

    A profile holds what any model wants; what this one has no place for is no mistake in it.
    """
    mine = {f.name for f in fields(Statistics)}
    statistics = {name: s.value for name, s in profile.statistics.items() if name in mine}
    return statistics, {name: s.value for name, s in profile.costs.items()}


def _effective(map_slots: Any, reduce_slots: Any) -> dict[str, Any]:
    """
    Slots for Eqs. (92) and (93), where only the product of nodes and slots per node enters.

    A limit on running tasks may leave fewer slots than nodes x slots per node, so the whole cluster
    stands as one node.
    """
    return {
        "num_nodes": 1,
        "map_slots_per_node": map_slots,
        "reduce_slots_per_node": reduce_slots,
    }


def _scheduler_input(
    answer: Mapping[str, Any],
    profile: Profile,
    configuration: JobConfig,
    cluster: Cluster,
    job_input: JobInput,
) -> tuple[dict[str, Any], list[str]]:
    """Arguments of `schedule` but the pool, and warnings."""
    overheads = {
        name: profile.overheads[name].value if name in profile.overheads else 0.0
        for name in ("task_overhead_s", "job_overhead_s")
    }
    tasks = {
        "map_times_s": [answer["map_task_s"]] * job_input.num_splits,
        "num_reduces": configuration.num_reduces,
        "shuffle_s": answer.get("shuffle_s", 0.0),
        "after_shuffle_s": sum(answer.get(name, 0.0) for name in _AFTER_SHUFFLE),
        "map_slots": cluster.map_slots,
        "reduce_slots": cluster.reduce_slots,
        "slowstart": configuration.reduce_slowstart,
        **overheads,
    }
    absent = [name for name in overheads if name not in profile.overheads]
    return tasks, [f"no {name}: the scheduler's estimates take it as 0" for name in absent]


def _timeline(tasks: Mapping[str, Any], plan: Mapping[str, Any]) -> tuple[TaskSpan, ...]:
    """Tasks as the scheduler with separate pools runs them."""
    maps = map_spans(tasks["map_times_s"], tasks["map_slots"], tasks["task_overhead_s"])
    reduces = zip(plan["reduce_start_s"], plan["reduce_end_s"], strict=True)
    return (
        *(
            TaskSpan(task=f"map {i}", kind="map", start_s=start, end_s=end)
            for i, (start, end) in enumerate(maps)
        ),
        *(
            TaskSpan(task=f"reduce {i}", kind="reduce", start_s=start, end_s=end)
            for i, (start, end) in enumerate(reduces)
        ),
    )
