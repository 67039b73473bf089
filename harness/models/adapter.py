"""
The inputs of models: one table of what a cell says, by the names that equations have for it.

A model's adapter, its `model.py`, turns a profile and a cell into the inputs of its equations, and
their answer into a `Prediction`.  A record of inputs takes from `cell_inputs` what it has a field
for; only what comes from elsewhere, or under a condition, stands in the adapter.

    model    from `cell_inputs`           beside that
    -------  ---------------------------  ------------------------------------------------------
    whatif   `Config`                     `inputs_of_profile`, `all_slots`
    prophet  `Plan`                       What-If's, and its `View` of statistics by codec
    ptc      `Quantities`                 What-If's, without reduce input in memory; cluster rates
    spn-gc   `Parameters`                 statistics and costs by name, those of the test job
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import fields
from typing import Any, TypeAlias, TypeVar

from harness.base.records.prediction import Cluster, JobConfig, JobInput
from harness.base.records.profile import Profile, Statistic
from harness.models.checks import check_number
from harness.models.whatif.inputs import Config, Statistics, side_costs

# Start and end of a task's JVM: in the published time, and in the frame of the body.
AROUND_TASKS = ("setup_cpu_s", "cleanup_cpu_s")

# The law of combiners (errata W42): ours, and `whatif-mr2`'s alone.
_COMBINE_LAW = ("records_per_combine", "combine_bytes_exponent", "combine_records_exponent")

_STATISTICS = frozenset(field.name for field in fields(Statistics))
_CONFIG = tuple(field.name for field in fields(Config))

# What-If's statistics and costs of a profile; and with them configuration and cluster of a cell.
ProfileInputs: TypeAlias = tuple[dict[str, float], dict[str, float]]
CellInputs: TypeAlias = tuple[dict[str, float], dict[str, float], dict[str, Any], dict[str, Any]]
_Value = TypeVar("_Value")


def cell_inputs(configuration: JobConfig, cluster: Cluster, job_input: JobInput) -> dict[str, Any]:
    """All that a cell says, by the names that equations have for it."""
    return {
        **vars(configuration),
        "slowstart": configuration.reduce_slowstart,
        "num_nodes": cluster.num_nodes,
        "num_datanodes": cluster.num_nodes,
        "map_slots": cluster.map_slots,
        "reduce_slots": cluster.reduce_slots,
        "num_maps": job_input.num_splits,
        "input_bytes": job_input.input_bytes,
        "split_bytes": job_input.split_bytes,
        "replication": job_input.replication,
    }


# What-If's inputs, which the models that share its equations read too


def inputs_of_cell(
    profile: Profile, configuration: JobConfig, cluster: Cluster, job_input: JobInput
) -> CellInputs:
    """What-If's statistics, costs, configuration and cluster of one cell, for `evaluate`."""
    config = config_of_cell(configuration, cluster, job_input)
    return *inputs_of_profile(profile), config, all_slots(cluster)


def published_inputs_of_cell(
    profile: Profile, configuration: JobConfig, cluster: Cluster, job_input: JobInput
) -> CellInputs:
    """
    The same for models of other papers: a combiner leaves the share of all spills that it left.

    The law of what it leaves is none of theirs; only the model that is named for it has it.
    """
    inputs = inputs_of_cell(profile, configuration, cluster, job_input)
    return leave_out(inputs[0], _COMBINE_LAW), *inputs[1:]


def inputs_of_profile(profile: Profile) -> ProfileInputs:
    """Statistics, and costs; setup and cleanup of tasks cost nothing: they are in no body."""
    statistics = {
        name: statistic.value
        for name, statistic in profile.statistics.items()
        if name in _STATISTICS
    }
    costs = {
        name: cost.value
        for name, cost in profile.costs.items()
        if not name.startswith(AROUND_TASKS)
    }
    return statistics, costs | dict.fromkeys(AROUND_TASKS, 0.0)


def config_of_cell(
    configuration: JobConfig, cluster: Cluster, job_input: JobInput
) -> dict[str, Any]:
    """Configuration of Table 5."""
    return pick(cell_inputs(configuration, cluster, job_input), _CONFIG)


def all_slots(cluster: Cluster) -> dict[str, Any]:
    """The cluster of Eqs. (92) and (93): all slots, which a limit may lessen, on one node."""
    return {
        "num_nodes": 1,
        "map_slots_per_node": cluster.map_slots,
        "reduce_slots_per_node": cluster.reduce_slots,
    }


def around_tasks_s(profile: Profile, side: str) -> float:
    """Setup and cleanup of a map or a reduce in seconds, 0 where the profile has none."""
    costs = side_costs(profile.costs, side)
    return sum(profile_number(profile, name, costs.get(name)) for name in AROUND_TASKS)


# Of all models


def profile_number(
    profile: Profile, name: str, statistic: Statistic | None, *, above: bool = False
) -> float:
    """Value of a statistic of that *name*, 0 where the profile has none; it is checked."""
    if statistic is None:
        return 0.0
    where = f"profile of {profile.workload!r}"
    return check_number(name, statistic.value, where=where, above=above)


def pick(values: Mapping[str, _Value], names: Iterable[str]) -> dict[str, _Value]:
    """Those of *values* that have one of *names*, in the order of the names."""
    return {name: values[name] for name in names if name in values}


def leave_out(values: Mapping[str, _Value], names: Collection[str]) -> dict[str, _Value]:
    """Those of *values* that have none of *names*."""
    return {name: value for name, value in values.items() if name not in names}
