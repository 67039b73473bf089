"""
Slots of a cluster: how many tasks of a kind run at once, and what would never run.

A node holds its slots as countable resources of YARN; one job is held to ``running.*.limit`` tasks
in the whole cluster; containers larger than those the node was sized for leave slots empty.
"""

from __future__ import annotations

import math
import re

from collections.abc import Mapping
from typing import Literal

from harness.errors import SpecError
from harness.hadoop.properties import job_config
from harness.hadoop.site import (
    ALLOCATION_STEP_MB,
    GPU,
    block_bytes,
    client_properties,
    node_memory_mb,
    refused_overrides,
)
from harness.records.prediction import Cluster
from harness.records.trial import ClusterSpec

Kind = Literal["map", "reduce"]

_SUFFIX = {"": 1 / 2**20, "k": 1 / 2**10, "m": 1, "g": 2**10, "t": 2**20}
MOST_WORKERS = 200  # one machine has no room for more JVMs
_LARGEST_SORT_MB = 2047  # Hadoop refuses more: the buffer is one array


def effective(cluster: ClusterSpec, configuration: Mapping[str, str]) -> Cluster:
    """
    Slots that a job with *configuration* has on *cluster*.

    A node's slots are its share of the cluster's, rounded up, at most what the node has; tasks that
    ask for GPUs have no more slots than GPUs allow.
    `SpecError` for a number that Hadoop would not read.
    """
    properties = {**client_properties(cluster), **configuration}
    maps = _slots("map", cluster, properties)
    reduces = _slots("reduce", cluster, properties)
    return Cluster(
        num_nodes=cluster.workers,
        map_slots_per_node=max(1, _per_node(maps, cluster)),
        reduce_slots_per_node=_per_node(reduces, cluster),
        map_slots=max(1, maps),
        reduce_slots=reduces,
    )


def refusals(
    cluster: ClusterSpec, configuration: Mapping[str, str], *, sets_site: bool = True
) -> list[str]:
    """
    Why *cluster* cannot hold a job with *configuration*: each with its value and what to change.

    Hadoop itself would wait for ever, or let every attempt fail.  Empty: it can.  *sets_site*
    tells whether the cluster's site files are written by its provider, who then owns some names.
    """
    found = refused_overrides(cluster) if sets_site else []
    if cluster.workers > MOST_WORKERS:
        found.append(f"cluster.workers = {cluster.workers} is more than {MOST_WORKERS}: lower it")
        return found  # nothing is laid out for so many
    try:
        properties = {**client_properties(cluster), **configuration}
        block_bytes(cluster)
        for kind in _kinds(properties):
            found += _memory_refusals(kind, cluster, properties)
            found += _slot_refusals(kind, cluster, properties)
            found += _gpu_refusals(kind, cluster, properties)
        found += _sort_refusals(properties)
        found += _model_refusals(properties, found)
    except SpecError as error:
        found.append(f"{error.what}: {error.fix}" if error.fix else error.what)
    return found


def _kinds(properties: Mapping[str, str]) -> tuple[Kind, ...]:
    reduces = _whole("mapreduce.job.reduces", properties, 1)
    return ("map", "reduce") if reduces > 0 else ("map",)


def _slots(kind: Kind, cluster: ClusterSpec, properties: Mapping[str, str]) -> int:
    """Tasks of *kind* at once in the whole cluster."""
    node = cluster.node.map_slots if kind == "map" else cluster.node.reduce_slots
    if gpus := gpus_asked(kind, properties):
        node = min(node, cluster.node.gpus // gpus)
    size, room = _container_mb(kind, properties), node_memory_mb(cluster.node)
    plain = min(node, room // size)
    beside_master = min(node, (room - _master_mb(properties)) // size)
    total = (cluster.workers - 1) * plain + beside_master
    limit = _whole(f"mapreduce.job.running.{kind}.limit", properties, 0)
    return max(0, min(total, limit) if limit > 0 else total)


def gpus_asked(kind: Kind, properties: Mapping[str, str]) -> int:
    """GPUs that each task of *kind* asks for; `SpecError` for what YARN would not read."""
    return _whole(f"mapreduce.{kind}.resource.{GPU}", properties, 0)


def _per_node(total: int, cluster: ClusterSpec) -> int:
    return math.ceil(total / cluster.workers)


def _memory_refusals(kind: Kind, cluster: ClusterSpec, properties: Mapping[str, str]) -> list[str]:
    size, room = _container_mb(kind, properties), node_memory_mb(cluster.node)
    free = room - (_master_mb(properties) if cluster.workers == 1 else 0)
    found = []
    if size > free:
        found.append(
            f"mapreduce.{kind}.memory.mb makes a container of {size} MiB, and a node has {free} MiB"
            " for tasks: raise cluster.node.task_memory, or lower it"
        )
    heap, asked = _heap_mb(kind, properties), _asked_mb(kind, properties)
    if heap > asked:
        found.append(
            f"mapreduce.{kind}.java.opts asks for a heap of {heap:.0f} MiB in a container of"
            f" {asked} MiB: lower -Xmx, or raise cluster.node.task_memory"
        )
    return found


def _slot_refusals(kind: Kind, cluster: ClusterSpec, properties: Mapping[str, str]) -> list[str]:
    name = f"mapreduce.{kind}.cpu.vcores"
    cores, offered = _whole(name, properties, 1), 64
    if cores > offered:
        return [f"{name} = {cores} is more than the {offered} of a node: lower it"]
    master = _master_mb(properties)
    room = node_memory_mb(cluster.node)
    if kind == "map" and master > room:
        name = "yarn.app.mapreduce.am.resource.mb"
        return [f"{name} = {master} is more than the {room} MiB of a node: lower it"]
    return []


def _gpu_refusals(kind: Kind, cluster: ClusterSpec, properties: Mapping[str, str]) -> list[str]:
    """
    Say why tasks of *kind* would never get the GPUs that they ask for.

    YARN says so to nobody but itself, and the job waits.  A reduce that began early would hold, or
    reserve, what the maps are waiting for.
    """
    name, has = f"mapreduce.{kind}.resource.{GPU}", cluster.node.gpus
    asked = gpus_asked(kind, properties)
    if asked < 0:
        return [f"{name} = {asked} is below 0"]
    if asked > has:
        there = f"{name} = {asked}, and a node has {has or 'none'}"
        fix = f"set cluster.node.gpus to {asked} (auto: the devices that it has), or ask for fewer"
        return [f"{there}: {fix}; GPU workloads ask for none with device: cpu"]
    starts = job_config(properties).reduce_slowstart
    if kind == "reduce" and asked and starts < 1:
        what = f"{name} = {asked}, and reduces that begin before the maps have ended would hold the"
        fix = "set mapreduce.job.reduce.slowstart.completedmaps to 1.0"
        return [f"{what} GPUs that maps wait for: {fix}"]
    return []


def _sort_refusals(properties: Mapping[str, str]) -> list[str]:
    """Say why the sort buffer, one array, does not fit into the heap of a map."""
    name = "mapreduce.task.io.sort.mb"
    buffer, heap = _whole(name, properties, 100), _heap_mb("map", properties)
    options = properties.get("mapreduce.map.java.opts", "")
    # An array lies in one generation, and the serial collector's old one is two thirds of the heap.
    shaped = re.search(r"-Xmn|NewSize|NewRatio|SurvivorRatio", options)
    serial = "-XX:+UseSerialGC" in options and not shaped
    room = heap * 2 / 3 if serial else heap
    if not 1 <= buffer <= _LARGEST_SORT_MB:
        return [f"{name} = {buffer} is not from 1 to {_LARGEST_SORT_MB}"]
    if buffer < room:
        return []
    fits = f"a map's heap of {heap:.0f} MiB has room for one array of {room:.0f} MiB"
    return [f"{name} = {buffer} does not fit, {fits}: lower it, or raise cluster.node.task_memory"]


def _model_refusals(properties: Mapping[str, str], found: list[str]) -> list[str]:
    """Say what models cannot read: after all trials it would come too late."""
    try:
        job_config(properties)
    except SpecError as error:
        name = error.what.partition(" ")[0]
        return [] if any(name in reason for reason in found) else [error.what]
    return []


def _container_mb(kind: Kind, properties: Mapping[str, str]) -> int:
    """Container in MiB that YARN grants a task of *kind*."""
    return math.ceil(_asked_mb(kind, properties) / ALLOCATION_STEP_MB) * ALLOCATION_STEP_MB


def _asked_mb(kind: Kind, properties: Mapping[str, str]) -> int:
    asked = _whole(f"mapreduce.{kind}.memory.mb", properties, 1024)
    return asked if asked > 0 else 1024


def _master_mb(properties: Mapping[str, str]) -> int:
    asked = _whole("yarn.app.mapreduce.am.resource.mb", properties, 1536)
    return math.ceil(asked / ALLOCATION_STEP_MB) * ALLOCATION_STEP_MB


def _heap_mb(kind: Kind, properties: Mapping[str, str]) -> float:
    """Maximal heap in MiB of a task of *kind*: of the last ``-Xmx``, else 0.8 of the container."""
    options = properties.get(f"mapreduce.{kind}.java.opts", "")
    sizes = re.findall(r"(?:^|\s)-(?:Xmx|XX:MaxHeapSize=)(\d{1,18})([kKmMgGtT]?)(?=\s|$)", options)
    if not sizes:
        return _asked_mb(kind, properties) * 0.8
    number, suffix = sizes[-1]
    return float(int(number) * _SUFFIX[suffix.lower()])


def _whole(name: str, properties: Mapping[str, str], default: int) -> int:
    text = properties.get(name, str(default)).strip()
    if not re.fullmatch(r"-?\d{1,18}", text, re.ASCII):
        raise SpecError(
            f"{name} = {text!r:.80} is not a whole number", where=name, fix="write a whole number"
        )
    return int(text)
