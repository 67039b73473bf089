"""
Regimes: the ways in which a job can run, as far as its configuration, cluster and input tell.

A profile of jobs with one wave of maps says little of jobs with ten, whatever their size: what it
was fitted on has to share the regimes of what is predicted.  `REGIMES` is the table of them; of
each aspect a job is in exactly one.
"""

from __future__ import annotations

import math

from collections.abc import Callable
from typing import NamedTuple

from harness.base.records.prediction import Cluster, JobConfig, JobInput
from harness.base.units import MIB

_Holds = Callable[[JobConfig, Cluster, JobInput], bool]


class Regime(NamedTuple):
    """A regime by its *name*: of which *aspect* it is, what it *means*, and when it *holds*."""

    aspect: str
    name: str
    means: str
    holds: _Holds


def map_waves(cluster: Cluster, job_input: JobInput) -> int:
    """How often all map slots are filled, the last time perhaps in part."""
    return math.ceil(job_input.num_splits / cluster.map_slots)


def reduces_run_beside_maps(
    configuration: JobConfig, cluster: Cluster, job_input: JobInput
) -> bool:
    """Whether reduces start before the last wave of maps."""
    is_early = configuration.num_reduces > 0 and configuration.reduce_slowstart < 1
    return is_early and map_waves(cluster, job_input) > 1


def tasks_at_once(configuration: JobConfig, cluster: Cluster, job_input: JobInput) -> int:
    """How many tasks of the job run at once on its fullest node."""
    maps = math.ceil(min(job_input.num_splits, cluster.map_slots) / cluster.num_nodes)
    reduces = math.ceil(min(configuration.num_reduces, cluster.reduce_slots) / cluster.num_nodes)
    if reduces_run_beside_maps(configuration, cluster, job_input):
        return maps + reduces
    return max(maps, reduces)


def cores_of_node(cluster: Cluster) -> float:
    """Cores to which the smallest node is limited; a node without a limit counts as one."""
    return min((node.cores or 1.0 for node in cluster.nodes), default=1.0)


def tasks_share_cores(configuration: JobConfig, cluster: Cluster, job_input: JobInput) -> bool:
    """Whether more tasks run at once on a node than it has cores."""
    return tasks_at_once(configuration, cluster, job_input) > cores_of_node(cluster)


def has_several_spills(configuration: JobConfig, _: Cluster, job_input: JobInput) -> bool:
    """
    Whether a map spills several times, if its output is as large as its split.

    How large it is says the profile alone, which there is none of when cells are chosen.
    """
    buffer_bytes = configuration.sort_buffer_mb * MIB * configuration.sort_spill_percent
    return job_input.split_bytes > buffer_bytes


def is_compressed(configuration: JobConfig) -> bool:
    """Whether a codec reads or writes any data of the job."""
    return (
        configuration.map_output_compressed
        or configuration.output_compressed
        or configuration.input_compressed
    )


REGIMES: tuple[Regime, ...] = (
    Regime(
        "waves of maps",
        "one wave of maps",
        "All maps of the job run at once.",
        lambda _, cluster, job_input: map_waves(cluster, job_input) <= 1,
    ),
    Regime(
        "waves of maps",
        "several waves of maps",
        "Maps wait for slots, so that a later wave runs where an earlier one ended.",
        lambda _, cluster, job_input: map_waves(cluster, job_input) > 1,
    ),
    Regime(
        "tasks a core",
        "one task a core",
        "No more tasks run at once on a node than it has cores (one, where none are limited).",
        lambda *inputs: not tasks_share_cores(*inputs),
    ),
    Regime(
        "tasks a core",
        "several tasks a core",
        "Tasks that run at once on a node share its cores.",
        tasks_share_cores,
    ),
    Regime(
        "reduces",
        "no reduces",
        "The job has maps alone.",
        lambda configuration, *_: configuration.num_reduces == 0,
    ),
    Regime(
        "reduces",
        "reduces behind maps",
        "Reduces start once the last wave of maps runs, or when all maps have ended.",
        lambda configuration, *rest: (
            configuration.num_reduces > 0 and not reduces_run_beside_maps(configuration, *rest)
        ),
    ),
    Regime(
        "reduces",
        "reduces beside maps",
        "Reduces copy while waves of maps are left to run: slow start below 1.",
        reduces_run_beside_maps,
    ),
    Regime(
        "waves of reduces",
        "one wave of reduces",
        "All reduces of the job run at once, if it has any.",
        lambda configuration, cluster, _: configuration.num_reduces <= cluster.reduce_slots,
    ),
    Regime(
        "waves of reduces",
        "several waves of reduces",
        "Reduces wait for slots, so that a later wave copies when all maps have ended.",
        lambda configuration, cluster, _: configuration.num_reduces > cluster.reduce_slots,
    ),
    Regime(
        "spills",
        "one spill",
        "A split fits into the sort buffer's share that is filled before it spills.",
        lambda *inputs: not has_several_spills(*inputs),
    ),
    Regime(
        "spills",
        "several spills",
        "A split is larger than that share: its map spills several times, and merges.",
        has_several_spills,
    ),
    Regime(
        "combiner",
        "no combiner",
        "What maps write is copied as it is.",
        lambda configuration, *_: not configuration.use_combiner,
    ),
    Regime(
        "combiner",
        "combiner",
        "A combiner shrinks what maps write, at each spill.",
        lambda configuration, *_: configuration.use_combiner,
    ),
    Regime(
        "codec",
        "no codec",
        "All data are read and written as they are.",
        lambda configuration, *_: not is_compressed(configuration),
    ),
    Regime(
        "codec",
        "codec",
        "Input, map outputs or output are compressed.",
        lambda configuration, *_: is_compressed(configuration),
    ),
)


def regimes_of(configuration: JobConfig, cluster: Cluster, job_input: JobInput) -> frozenset[str]:
    """Names of the regimes of a job, one of each aspect."""
    inputs = (configuration, cluster, job_input)
    return frozenset(regime.name for regime in REGIMES if regime.holds(*inputs))


def in_order(names: frozenset[str]) -> list[str]:
    """Those *names* in the order of the table."""
    return [regime.name for regime in REGIMES if regime.name in names]
