"""SPN-GC behind the contract of `harness.models.base`."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from harness.errors import MissingStatistic
from harness.models.checks import check_number, range_error
from harness.models.scheduler import map_spans, schedule
from harness.models.spn_gc.inputs import FIELDS, REQUIRED
from harness.models.spn_gc.phases import PHASES, spn_phases
from harness.models.spn_gc.vectors import EVALUATORS
from harness.records.prediction import Cluster, JobConfig, JobInput, Prediction, TaskSpan
from harness.records.profile import Profile

# The cell says these; all else is measured.  Its own `gpu_block_bytes` win over the test job's.
_OF_CELL = frozenset({"input_bytes", "split_bytes", "num_reduces", "num_datanodes", "replication"})
_OF_REDUCES = frozenset({"reduce_s", "test_map_output_bytes", "test_reduce_bytes"})
_NOTED = ("cpu_ratio", "gpu_ratio", "reduce_uses_gpu")
STAND_IN = "gpu_stand_in"  # statistic: 1 where the processor did the work of the device

# Drawn with slots (4.2), which the paper's net does not have: so many runs, of so many tasks in
# sum, as take no longer than the rest of a prediction.
_SLOT_RUNS, _FEWEST_RUNS, _SLOT_TASKS = 100, 20, 100_000


class SpnGc:
    """The published model (*rules* ``paper``), or its Hadoop 3 form (``mr2``)."""

    name: str
    required: frozenset[str]
    evaluators = EVALUATORS

    def __init__(self, name: str, rules: str, description: str) -> None:
        self.name, self.rules, self.description = name, rules, description
        self.required = (REQUIRED - _OF_CELL) | {"test_num_maps"}

    def predict(
        self, profile: Profile, configuration: JobConfig, cluster: Cluster, job_input: JobInput
    ) -> Prediction:
        """
        Times for one cell: `job_s` is the mean of 2000 simulated runs of the `shared_read` net.

        The seed is the workload's name, so that all cells of a workload meet the same random
        numbers: their differences are not drawn, and more work never takes less time.
        ``MissingStatistic`` names what the profile lacks of `required` (of a map-only job, without
        what only reduces need); ``ModelError`` a field outside its range.
        """
        given, notes = self._parameters(profile, configuration, cluster, job_input)
        answer = spn_phases(given, self.rules)
        if answer["num_maps"] != job_input.num_splits:
            splits, maps = job_input.num_splits, answer["num_maps"]
            notes.append(f"{splits} splits, and equation (5) makes {maps} maps of them")
        seed = int.from_bytes(sha256(profile.workload.encode()).digest()[:8])
        estimates, more = _estimates(answer, configuration.num_reduces, cluster, seed)
        return self._prediction(answer | more, estimates, configuration, cluster, notes)

    def _parameters(
        self, profile: Profile, configuration: JobConfig, cluster: Cluster, job_input: JobInput
    ) -> tuple[dict[str, Any], list[str]]:
        """Parameters of the equations, and what was taken for those that nobody measured."""
        held = {**profile.overheads, **profile.costs, **profile.statistics}
        reduces = configuration.num_reduces != 0
        uses_gpu = reduces and "reduce_uses_gpu" in held and held["reduce_uses_gpu"].value != 0
        needed = self.required if reduces else self.required - _OF_REDUCES
        if uses_gpu and self.rules == "mr2":
            needed |= {"reduce_gpu_s"}
        if lacking := needed - held.keys():
            raise MissingStatistic(*sorted(lacking), model=self.name, workload=profile.workload)
        if reduces and cluster.reduce_slots < 1:
            what = "a whole number from 1 on"
            raise range_error("reduce_slots", cluster.reduce_slots, what, f"{self.name}, cluster")
        config = configuration.model_dump()
        given = dict.fromkeys(_OF_REDUCES, 0.0)
        given |= {n: config[n] for n in FIELDS if n in config}
        given |= {n: held[n].value for n in FIELDS.keys() - _OF_CELL if n in held}
        given |= {
            "input_bytes": job_input.input_bytes,
            "split_bytes": job_input.split_bytes,
            "num_datanodes": cluster.num_nodes,
            "replication": job_input.replication,
            "reduce_uses_gpu": uses_gpu,
        }
        if job_input.gpu_block_bytes:
            given["gpu_block_bytes"] = job_input.gpu_block_bytes
        given["map_s"] *= _share_of_test_split(given, held["test_num_maps"].value, self.name)
        notes = [f"no {n}: taken as {FIELDS[n].default:g}" for n in _NOTED if n not in held]
        if STAND_IN in held and held[STAND_IN].value:
            notes.append("the device of the test job is its processor (device=cpu), and no GPU")
        return given, notes

    def _prediction(
        self,
        answer: Mapping[str, Any],
        estimates: dict[str, float],
        configuration: JobConfig,
        cluster: Cluster,
        notes: list[str],
    ) -> Prediction:
        reduces = configuration.num_reduces
        shown = PHASES if reduces else PHASES[:6]
        map_s, reduce_s = _task_times(answer)
        return Prediction(
            model=self.name,
            cell="",
            job_s=estimates["simulated_s"],
            map_task_s=map_s,
            reduce_task_s=reduce_s if reduces else None,
            phases={name: answer[name] for name in shown},
            measurable=_measurable(answer, reduces=bool(reduces)),
            dataflow={k: v for k, v in answer.items() if k not in PHASES and k not in estimates},
            estimates=estimates,
            timeline=_timeline(answer, reduces, cluster),
            warnings=tuple(notes),
        )


def _share_of_test_split(given: Mapping[str, Any], test_num_maps: float, model: str) -> float:
    """What the map function of a split takes of that of a split of the test job (section 8)."""
    tested = check_number("test_num_maps", test_num_maps, where=model, above=True)
    split = check_number("split_bytes", given["split_bytes"], where=model)
    return (
        split
        * tested
        / check_number("test_input_bytes", given["test_input_bytes"], where=model, above=True)
    )


def _estimates(
    answer: Mapping[str, Any], reduces: int, cluster: Cluster, seed: int
) -> tuple[dict[str, float], dict[str, float]]:
    """Job times by name; and how the simulated ones spread."""
    from harness.models.spn_gc.estimates import expectations, simulate_net

    tasks = answer["num_maps"], reduces
    exact = expectations(answer, *tasks)
    read = simulate_net(answer, *tasks, seed=seed)
    shuffle = simulate_net(answer, *tasks, seed=seed, variant="shared_shuffle")
    estimates = {
        "sum_of_means_s": answer["sum_of_means_s"],
        "simulated_s": read.pop("simulated_s"),
        "expected_s": exact["expected_s"],
        "shared_shuffle_simulated_s": shuffle["simulated_s"],
        "shared_shuffle_expected_s": exact["shared_shuffle_expected_s"],
    }
    runs = max(_FEWEST_RUNS, min(_SLOT_RUNS, _SLOT_TASKS // sum(tasks)))
    drawn = {tasks: estimates["simulated_s"]}  # with slots for all, the paper's net
    for pool, free in {"separate": cluster.reduce_slots, "shared": cluster.map_slots}.items():
        slots = min(tasks[0], cluster.map_slots), min(reduces, free)
        if slots not in drawn:
            some = simulate_net(
                answer, *tasks, seed=seed, replications=runs,
                map_slots=slots[0], reduce_slots=slots[1],
            )  # fmt: skip
            drawn[slots] = some["simulated_s"]
        estimates[f"scheduler_{pool}_s"] = drawn[slots]
    return estimates, exact | {f"simulated_{name}": value for name, value in read.items()}


def _task_times(answer: Mapping[str, Any]) -> tuple[float, float]:
    """
    Mean times of a map and of a reduce, as a history cuts them.

    The net counts the shuffle to the maps, and reads once for all of them.
    """
    return sum(answer[n] for n in PHASES[1:6]), sum(answer[n] for n in PHASES[6:])


def _measurable(answer: Mapping[str, Any], *, reduces: bool) -> dict[str, float]:
    """Phases as the history shows them; spills before the last one are not told apart."""
    times = {
        "map_main_s": sum(answer[n] for n in PHASES[1:5]),
        "map_tail_s": answer["t6_spill_s"],
    }
    if reduces:
        times |= {
            "shuffle_s": answer["t7_shuffle_s"],
            "sort_s": answer["t8_merge_s"],
            "reduce_rest_s": answer["t9_reduce_s"],
        }
    return times


def _timeline(answer: Mapping[str, Any], reduces: int, cluster: Cluster) -> tuple[TaskSpan, ...]:
    """Tasks of mean length on the slots there are, after the load."""
    load = answer["t1_load_s"]
    map_s, reduce_s = _task_times(answer)
    maps = [map_s] * answer["num_maps"]
    plan = schedule(maps, reduces, 0.0, reduce_s, cluster.map_slots, cluster.reduce_slots, 1.0)
    spans = {
        "map": map_spans(maps, cluster.map_slots),
        "reduce": zip(plan["reduce_start_s"], plan["reduce_end_s"], strict=True),
    }
    return tuple(
        TaskSpan(task=f"{kind} {i}", kind=kind, start_s=load + start, end_s=load + end)
        for kind, times in spans.items()
        for i, (start, end) in enumerate(times)
    )
