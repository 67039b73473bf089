"""SPN-GC behind the contract of `harness.models.Model`, and its answers to test vectors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from harness.base.records.prediction import Cluster, JobConfig, JobInput, Prediction
from harness.base.records.profile import Profile, Statistic
from harness.models.adapter import cell_inputs, leave_out, pick
from harness.models.checks import check_number, range_error, require_statistics
from harness.models.scheduler import schedule, timeline
from harness.models.spn_gc.estimates import expectations, simulate_net
from harness.models.spn_gc.net import build_net
from harness.models.spn_gc.phases import FIELDS, PHASES, REQUIRED, spn_phases
from harness.models.vectors import CaseInput, Evaluator

# The cell says these; all else is measured.  Its own `gpu_block_bytes` win over the test job's.
_OF_CELL = frozenset({"input_bytes", "split_bytes", "num_reduces", "num_datanodes", "replication"})
_OF_REDUCES = frozenset({"reduce_s", "test_map_output_bytes", "test_reduce_bytes"})
_MAP_PHASES = PHASES[1:6]
_REDUCE_PHASES = PHASES[6:]
_NOTED = ("cpu_ratio", "gpu_ratio", "reduce_uses_gpu")
SCORED = "scored"
STAND_IN = "gpu_stand_in"  # statistic: 1 where the processor did the work of the device

# Drawn with slots (4.2), which the paper's net does not have: so many runs, of so many tasks in
# sum, as take no longer than the rest of a prediction.
_SLOT_RUNS = 100
_FEWEST_RUNS = 20
_SLOT_TASKS = 100_000


def _answer_phases(case: CaseInput) -> dict[str, Any]:
    """Phase means, the quantities between, and the estimates of both nets."""
    answer = spn_phases(case.fields, case.rules or "paper")
    tasks = answer["num_maps"], case.fields.get("num_reduces", 1)
    answer |= expectations(answer, *tasks)
    answer["simulated_s"] = simulate_net(answer, *tasks)["simulated_s"]
    shared_shuffle = simulate_net(answer, *tasks, variant="shared_shuffle")
    answer["shared_shuffle_simulated_s"] = shared_shuffle["simulated_s"]
    return answer


EVALUATORS: tuple[Evaluator, ...] = (
    Evaluator("spn-gc", frozenset({"test_input_bytes"}), _answer_phases),
    Evaluator("spn-gc", frozenset({"input_bytes"}), _answer_phases),
    Evaluator("spn-gc", frozenset({"num_maps"}), lambda case: build_net(**case.fields)),
    Evaluator("spn-gc", frozenset({"num_reduces"}), lambda case: build_net(**case.fields)),
)


@dataclass(eq=False)
class SpnGc:
    """The published model (*rules* ``paper``), or its Hadoop 3 form (``mr2``)."""

    name: str
    rules: str
    description: str
    required = (REQUIRED - _OF_CELL) | {"test_num_maps"}
    evaluators = EVALUATORS

    def predict(
        self, profile: Profile, configuration: JobConfig, cluster: Cluster, job_input: JobInput
    ) -> Prediction:
        """
        Times for one cell: the body is the mean of 2000 simulated runs of the `shared_read` net.

        Loading, phase 1, is in the published time alone: it is the start of the job, of the frame.
        The seed is the workload's name, so that all cells of a workload meet the same random
        numbers: their differences are not drawn, and more work never takes less time.
        """
        given, warnings = self._parameters(profile, configuration, cluster, job_input)
        readings = self._readings(given)
        answer = readings.pop(SCORED)
        num_maps = answer["num_maps"]
        num_reduces = configuration.num_reduces
        if num_maps != job_input.num_splits:
            warnings.append(
                f"{job_input.num_splits} splits, and equation (5) makes {num_maps} maps of them"
            )
        seed = int.from_bytes(sha256(profile.workload.encode()).digest()[:8])
        body = answer | {
            "t1_load_s": 0.0,
            "sum_of_means_s": answer["sum_of_means_s"] - answer["t1_load_s"],
        }
        estimates, spread = _estimates(body, num_reduces, cluster, seed)
        published = simulate_net(answer, num_maps, num_reduces, seed=seed)
        for reading, phases in readings.items():
            unloaded = simulate_net(phases | {"t1_load_s": 0.0}, num_maps, num_reduces, seed=seed)
            estimates[reading] = unloaded["simulated_s"]
        # As a history cuts them: the net counts the shuffle to the maps, and reads once for all.
        map_s = sum(answer[name] for name in _MAP_PHASES)
        reduce_s = sum(answer[name] for name in _REDUCE_PHASES)
        # Tasks of mean length on the slots there are.
        plan = schedule(
            [map_s] * num_maps,
            num_reduces,
            0.0,
            reduce_s,
            cluster.map_slots,
            cluster.reduce_slots,
            1.0,
        )
        return Prediction(
            model=self.name,
            body_s=estimates["simulated_s"],
            published_s=published["simulated_s"],
            map_task_s=map_s,
            reduce_task_s=reduce_s if num_reduces else None,
            phases=pick(answer, PHASES if num_reduces else PHASES[:6]),
            measurable=_measurable(answer, has_reduces=bool(num_reduces)),
            dataflow=leave_out(answer | spread, {*PHASES, *estimates}),
            estimates=estimates,
            timeline=timeline(plan["map_spans"], plan["reduce_spans"]),
            warnings=tuple(warnings),
        )

    def _readings(self, given: dict[str, Any]) -> dict[str, dict[str, Any]]:
        """
        Phases by how T_m and T_m_GPU are read; only the printed equations leave that open.

        T_m_GPU, measured as the device's seconds, is in block-seconds: equation (9) lets all blocks
        of a split run side by side, each as long as the split is on the device (S06).  T_m is a
        task's time without the device, or with it (S07).
        """
        plain = spn_phases(given, self.rules)
        if self.rules != "paper":
            return {SCORED: plain}
        device_s = given["map_gpu_s"] * given["split_bytes"] / given["test_input_bytes"]
        scored = given | {"map_gpu_s": plain["gpu_blocks_per_split"] * given["map_gpu_s"]}
        counted_twice = scored | {"map_s": given["map_s"] + device_s}
        return {
            SCORED: spn_phases(scored, self.rules),
            "device_seconds_s": plain,
            "device_in_map_s": spn_phases(counted_twice, self.rules),
        }

    def _parameters(
        self, profile: Profile, configuration: JobConfig, cluster: Cluster, job_input: JobInput
    ) -> tuple[dict[str, Any], list[str]]:
        """Parameters of the equations, and what was assumed for those that nobody measured."""
        measured = {**profile.costs, **profile.statistics}
        has_reduces = configuration.num_reduces != 0
        uses_gpu = has_reduces and _is_set(measured, "reduce_uses_gpu")
        self._require(profile, has_reduces=has_reduces, uses_gpu=uses_gpu)
        if has_reduces and cluster.reduce_slots < 1:
            wanted = "a whole number of at least 1"
            raise range_error("reduce_slots", cluster.reduce_slots, wanted, f"{self.name}, cluster")
        cell = cell_inputs(configuration, cluster, job_input)
        measured_values = {name: statistic.value for name, statistic in measured.items()}
        given = cell | measured_values | pick(cell, _OF_CELL) | {"reduce_uses_gpu": uses_gpu}
        parameters = dict.fromkeys(_OF_REDUCES, 0.0) | pick(given, FIELDS)
        if job_input.gpu_block_bytes:
            parameters["gpu_block_bytes"] = job_input.gpu_block_bytes
        parameters["map_s"] *= self._splits_of_test_job(measured, parameters)
        warnings = [
            f"no {name}: assumed to be {FIELDS[name].default:g}"
            for name in _NOTED
            if name not in measured
        ]
        if _is_set(measured, STAND_IN):
            warnings.append("the device of the test job is its processor (device=cpu), not a GPU")
        return parameters, warnings

    def _require(self, profile: Profile, *, has_reduces: bool, uses_gpu: bool) -> None:
        """``MissingStatistic`` where *profile* lacks what such a job needs."""
        needed = self.required if has_reduces else self.required - _OF_REDUCES
        if uses_gpu and self.rules == "mr2":
            needed |= {"reduce_gpu_s"}
        require_statistics(needed, {*profile.costs, *profile.statistics}, profile, self.name)

    def _splits_of_test_job(
        self, measured: Mapping[str, Statistic], parameters: Mapping[str, Any]
    ) -> float:
        """How many of the test job's splits a split of the cell is as large as (section 8)."""
        test_num_maps = check_number(
            "test_num_maps", measured["test_num_maps"].value, where=self.name, above=True
        )
        split_bytes = check_number("split_bytes", parameters["split_bytes"], where=self.name)
        test_bytes = check_number(
            "test_input_bytes", parameters["test_input_bytes"], where=self.name, above=True
        )
        return split_bytes * test_num_maps / test_bytes


def _is_set(measured: Mapping[str, Statistic], name: str) -> bool:
    """Whether the statistic of that *name*, which is a flag, is known and not 0."""
    return name in measured and measured[name].value != 0


def _measurable(answer: Mapping[str, Any], *, has_reduces: bool) -> dict[str, float]:
    """
    Phases as a history shows them, in seconds per task.

    Spills before the last one cannot be distinguished in a history: all count as the map's tail.
    """
    phases = {
        "map_main_s": sum(answer[name] for name in PHASES[1:5]),
        "map_tail_s": answer["t6_spill_s"],
    }
    if has_reduces:
        phases |= {
            "shuffle_s": answer["t7_shuffle_s"],
            "sort_s": answer["t8_merge_s"],
            "reduce_rest_s": answer["t9_reduce_s"],
        }
    return phases


def _estimates(
    answer: Mapping[str, Any], num_reduces: int, cluster: Cluster, seed: int
) -> tuple[dict[str, float], dict[str, float]]:
    """Estimates of the body by name; and what else the net says, such as how its runs spread."""
    num_maps = answer["num_maps"]
    exact = expectations(answer, num_maps, num_reduces)
    simulated = simulate_net(answer, num_maps, num_reduces, seed=seed)
    shared_shuffle = simulate_net(
        answer, num_maps, num_reduces, seed=seed, variant="shared_shuffle"
    )
    estimates = {
        "sum_of_means_s": answer["sum_of_means_s"],
        "simulated_s": simulated.pop("simulated_s"),
        "expected_s": exact["expected_s"],
        "shared_shuffle_simulated_s": shared_shuffle["simulated_s"],
        "shared_shuffle_expected_s": exact["shared_shuffle_expected_s"],
    }
    runs = max(_FEWEST_RUNS, min(_SLOT_RUNS, _SLOT_TASKS // (num_maps + num_reduces)))
    map_slots = min(num_maps, cluster.map_slots)
    # With slots for all, it is the paper's net.
    times_by_slots = {(num_maps, num_reduces): estimates["simulated_s"]}
    for pool, pool_slots in {"separate": cluster.reduce_slots, "shared": cluster.map_slots}.items():
        reduce_slots = min(num_reduces, pool_slots)
        slots = (map_slots, reduce_slots)
        if slots not in times_by_slots:
            times_by_slots[slots] = simulate_net(
                answer,
                num_maps,
                num_reduces,
                seed=seed,
                replications=runs,
                map_slots=map_slots,
                reduce_slots=reduce_slots,
            )["simulated_s"]
        estimates[f"scheduler_{pool}_s"] = times_by_slots[slots]
    return estimates, exact | {f"simulated_{name}": value for name, value in simulated.items()}
