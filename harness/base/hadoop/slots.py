"""
Slots of a cluster: how many tasks of a kind run at once, and what would never run.

A node holds its slots as countable resources of YARN; one job is held to ``running.*.limit`` tasks
in the whole cluster; containers larger than those the node was sized for leave slots empty.
"""

from __future__ import annotations

import math

from collections.abc import Mapping

from harness.base.errors import SpecError
from harness.base.hadoop.properties import (
    has_serial_heap,
    heap_share,
    java_heap_bytes,
    job_config,
    whole,
)
from harness.base.hadoop.site import (
    GPU,
    block_bytes,
    client_properties,
    container_mb,
    node_memory_mb,
    refused_overrides,
)
from harness.base.records.prediction import Cluster
from harness.base.records.trace import TaskKind
from harness.base.records.trial import ClusterSpec
from harness.base.units import MIB

KINDS: tuple[TaskKind, ...] = ("map", "reduce")

MOST_WORKERS = 200  # one machine has no room for more JVMs
_NODE_CORES = 64  # that a NodeManager offers: slots are what limits tasks
LARGEST_SORT_MB = 2047  # Hadoop refuses more: the buffer is one array


def effective(cluster: ClusterSpec, configuration: Mapping[str, str]) -> Cluster:
    """
    Slots that a job with *configuration* has on *cluster*; a node's are its share, rounded up.

    Tasks that ask for GPUs have no more slots than GPUs allow.
    `SpecError` for a number that Hadoop would not read.
    """
    properties = {**client_properties(cluster), **configuration}
    room_mb = node_memory_mb(cluster.node)
    totals = {}
    for kind in KINDS:
        node_slots = cluster.node.map_slots if kind == "map" else cluster.node.reduce_slots
        gpus = _whole(f"mapreduce.{kind}.resource.{GPU}", properties, 0)
        if gpus:
            node_slots = min(node_slots, cluster.node.gpus // gpus)
        task_mb = container_mb(_requested_mb(kind, properties) * MIB)
        beside_master = min(node_slots, (room_mb - _master_mb(properties)) // task_mb)
        total = (cluster.workers - 1) * min(node_slots, room_mb // task_mb) + beside_master
        limit = _whole(f"mapreduce.job.running.{kind}.limit", properties, 0)
        totals[kind] = max(0, min(total, limit) if limit > 0 else total)
    maps = max(1, totals["map"])
    reduces = totals["reduce"]
    workers = [f"worker{number}" for number in range(1, cluster.workers + 1)]
    nodes = tuple(map(cluster.hardware, workers)) if cluster.limited else ()
    return Cluster(
        num_nodes=cluster.workers,
        map_slots_per_node=math.ceil(maps / cluster.workers),
        reduce_slots_per_node=math.ceil(reduces / cluster.workers),
        map_slots=maps,
        reduce_slots=reduces,
        nodes=nodes,
    )


def refusals(
    cluster: ClusterSpec, configuration: Mapping[str, str], *, sets_site: bool = True
) -> list[str]:
    """
    Why *cluster* cannot hold a job with *configuration*: each with its value and what to change.

    Hadoop itself would wait for ever, or let every attempt fail.  Empty: it can.  *sets_site*
    tells whether the cluster's site files are written by its provider, who then owns some names.
    """
    reasons = refused_overrides(cluster) if sets_site else []
    if cluster.workers > MOST_WORKERS:
        reasons.append(f"cluster.workers = {cluster.workers} is more than {MOST_WORKERS}: lower it")
        return reasons  # nothing is laid out for so many
    try:
        properties = {**client_properties(cluster), **configuration}
        block_bytes(cluster)
        has_reduces = _whole("mapreduce.job.reduces", properties, 1) > 0
        for kind in KINDS if has_reduces else KINDS[:1]:
            reasons += _container_refusals(kind, cluster, properties)
            reasons += _gpu_refusals(kind, cluster, properties)
        reasons += _sort_buffer_refusals(properties)
        try:
            job_config(properties)
        except SpecError as error:  # what models cannot read: after all trials it would be too late
            name = error.what.partition(" ")[0]
            if not any(name in reason for reason in reasons):
                reasons.append(error.what)
    except SpecError as error:
        reasons.append(f"{error.what}: {error.fix}" if error.fix else error.what)
    return reasons


def _sort_buffer_refusals(properties: Mapping[str, str]) -> list[str]:
    """Say why maps could not make their sort buffer, which is one array of their heap."""
    name = "mapreduce.task.io.sort.mb"
    heap_mb = _heap_mb("map", properties)
    array_mb = largest_array_mb(properties)
    buffer_mb = _whole(name, properties, 100)
    if not 1 <= buffer_mb <= LARGEST_SORT_MB:
        return [f"{name} = {buffer_mb} is not from 1 to {LARGEST_SORT_MB}"]
    if buffer_mb >= array_mb:
        what = f"{name} = {buffer_mb} does not fit, a map's heap of {heap_mb:.0f} MiB has room for"
        fix = "lower it, or raise cluster.node.task_memory"
        return [f"{what} one array of {array_mb:.0f} MiB: {fix}"]
    return []


def largest_array_mb(properties: Mapping[str, str]) -> float:
    """MiB of the largest array in the heap of a map, such as its sort buffer."""
    heap_mb = _heap_mb("map", properties)
    # It is in one generation of the heap; the serial collector's old one is two thirds.
    is_serial = has_serial_heap(properties.get("mapreduce.map.java.opts", ""))
    return heap_mb * 2 / 3 if is_serial else heap_mb


def _container_refusals(
    kind: TaskKind, cluster: ClusterSpec, properties: Mapping[str, str]
) -> list[str]:
    """Say why a node has no room for a container of *kind*, or the container none for its heap."""
    reasons = []
    requested_mb = _requested_mb(kind, properties)
    master_mb = _master_mb(properties)
    size_mb = container_mb(requested_mb * MIB)
    room_mb = node_memory_mb(cluster.node)
    free_mb = room_mb - (master_mb if cluster.workers == 1 else 0)
    if size_mb > free_mb:
        reasons.append(
            f"mapreduce.{kind}.memory.mb makes a container of {size_mb} MiB, and a node has"
            f" {free_mb} MiB for tasks: raise cluster.node.task_memory, or lower it"
        )
    heap_mb = _heap_mb(kind, properties)
    if heap_mb > requested_mb:
        reasons.append(
            f"mapreduce.{kind}.java.opts asks for a heap of {heap_mb:.0f} MiB in a container of"
            f" {requested_mb} MiB: lower -Xmx, or raise cluster.node.task_memory"
        )
    name = f"mapreduce.{kind}.cpu.vcores"
    cores = _whole(name, properties, 1)
    if cores > _NODE_CORES:
        reasons.append(f"{name} = {cores} is more than the {_NODE_CORES} of a node: lower it")
    elif kind == "map" and master_mb > room_mb:
        name = "yarn.app.mapreduce.am.resource.mb"
        reasons.append(f"{name} = {master_mb} is more than the {room_mb} MiB of a node: lower it")
    return reasons


def _gpu_refusals(kind: TaskKind, cluster: ClusterSpec, properties: Mapping[str, str]) -> list[str]:
    """
    Say why tasks of *kind* would never get the GPUs that they request.

    YARN reports it nowhere but in its own log, and the job waits.  A reduce that started early
    would hold, or reserve, what the maps are waiting for.
    """
    name = f"mapreduce.{kind}.resource.{GPU}"
    offered = cluster.node.gpus
    requested = _whole(name, properties, 0)
    if requested < 0:
        return [f"{name} = {requested} is below 0"]
    if requested > offered:
        what = f"{name} = {requested}, and a node has {offered or 'none'}"
        fix = f"set cluster.node.gpus to {requested} (auto: the devices that it has)"
        return [f"{what}: {fix}, or ask for fewer; GPU workloads ask for none with device: cpu"]
    if kind == "reduce" and requested and job_config(properties).reduce_slowstart < 1:
        what = f"{name} = {requested}, and reduces that start before the maps have ended would hold"
        fix = "set mapreduce.job.reduce.slowstart.completedmaps to 1.0"
        return [f"{what} the GPUs that maps wait for: {fix}"]
    return []


def _requested_mb(kind: TaskKind, properties: Mapping[str, str]) -> int:
    """Memory in MiB that a task of *kind* asks for; YARN grants the next step above."""
    requested = _whole(f"mapreduce.{kind}.memory.mb", properties, 1024)
    return requested if requested > 0 else 1024


def _master_mb(properties: Mapping[str, str]) -> int:
    return container_mb(_whole("yarn.app.mapreduce.am.resource.mb", properties, 1536) * MIB)


def _heap_mb(kind: TaskKind, properties: Mapping[str, str]) -> float:
    """Maximal heap in MiB of a task of *kind*: of the last ``-Xmx``, else a share of its memory."""
    heap_bytes = java_heap_bytes(properties.get(f"mapreduce.{kind}.java.opts", ""))
    if heap_bytes is not None:
        return heap_bytes / MIB
    return _requested_mb(kind, properties) * heap_share(properties)


def _whole(name: str, properties: Mapping[str, str], default: int) -> int:
    return whole(name, properties.get(name, str(default)), least=-(10**18))
