"""
Limits of nodes as an experiment file writes them: the axes of all workers, and single workers.

    node:  {cores: 0.5, disk: [5 MiB/s, unlimited], network: 100 Mbit/s}
    nodes: {worker2: {disk: 5 MiB/s}}
"""

from __future__ import annotations

import re

from collections.abc import Callable
from typing import Any

from harness.experiment.grid import UNLIMITED
from harness.experiment.model import Experiment
from harness.experiment.shapes import Key, Keys, Listed, Schema, Shape, Value, size
from harness.experiment.yamltree import Entries, Node, Problems, Scalar, nearest, shown
from harness.units import MIB, format_bit_rate, format_bytes, format_rate, parse_rate

LEAST_CORES, MOST_CORES = (
    0.05,
    1000,
)  # a millisecond in every twenty; YARN would not start with less
LEAST_DISK, LEAST_NETWORK = MIB, 125_000  # bytes per second: daemons miss their heartbeats below
LEAST_MEMORY = 1024 * MIB  # bytes: a DataNode, a NodeManager, an application master
_WORKER = re.compile(r"worker[1-9][0-9]{0,5}", re.ASCII)


def cores(node: Scalar) -> float:
    """Share of the processors, in cores."""
    value = node.value
    if isinstance(value, int | float) and LEAST_CORES <= value <= MOST_CORES and value is not True:
        return float(value)
    raise ValueError(
        f"'{shown(node.text)}' is no number of cores from {LEAST_CORES} to {MOST_CORES};"
        " write one such as 0.5"
    )


def rate(least: int, show: Callable[[float], str]) -> Callable[[Scalar], int]:
    """Make a reader of bytes per second, of *least* or more."""

    def read(node: Scalar) -> int:
        value = parse_rate(node.text)
        if value < least:
            raise ValueError(f"'{shown(node.text)}' is too slow; write {show(least)} or more")
        return value

    return read


def memory(node: Scalar) -> int:
    """Bytes that a node can hold with its daemons."""
    value = size(node)
    if value < LEAST_MEMORY:
        least = format_bytes(LEAST_MEMORY)
        raise ValueError(f"'{shown(node.text)}' holds no daemons; write {least} or more")
    return value


# name in the file: field, reader, JSON schema, help
_RATE = {"type": "string"}
_LIMITS: dict[str, tuple[str, Callable[[Scalar], Any], Schema, str]] = {
    "cores": (
        "cores", cores,
        {"type": "number", "minimum": LEAST_CORES, "maximum": MOST_CORES},
        "share of the processors, such as 0.5",
    ),
    "disk": (
        "disk_bytes_per_s", rate(LEAST_DISK, format_rate), _RATE | {"examples": ["20 MiB/s"]},
        "rate of the disk, when read and when written",
    ),
    "network": (
        "network_bytes_per_s", rate(LEAST_NETWORK, format_bit_rate),
        _RATE | {"examples": ["100 Mbit/s"]}, "rate of the network, in each direction",
    ),
    "memory": (
        "memory_bytes", memory, {"type": ["string", "integer"], "examples": ["4 GiB"]},
        "memory of the node: its processes, and the pages of files",
    ),
}  # fmt: skip


def axes() -> dict[str, Key]:
    """Keys of ``cluster.node`` that limit every worker; each is an axis."""
    return {
        name: Key(
            Listed(Value(_or_unlimited(read), {"anyOf": [schema, {"const": UNLIMITED}]})),
            field,
            f"{help_} ({UNLIMITED})",
        )
        for name, (field, read, schema, help_) in _LIMITS.items()
    }


def _or_unlimited(read: Callable[[Scalar], Any]) -> Callable[[Scalar], Any]:
    """Make a reader that also takes the word for no limit, which is `None`."""

    def either(node: Scalar) -> Any:
        if node.text == UNLIMITED:
            return None
        try:
            return read(node)
        except ValueError as error:
            raise ValueError(f"{error}, or {UNLIMITED}") from None

    return either


class Nodes:
    """``{worker2: {disk: 5 MiB/s}}``: limits of single workers, no axes."""

    _of: Shape = Keys(
        {n: Key(Value(read, s), field, h) for n, (field, read, s, h) in _LIMITS.items()}
    )

    def read(self, node: Node, path: str, problems: Problems) -> Any:
        """Read the limits of each worker; `check_nodes` tells later whether it exists."""
        if not isinstance(node, Entries):
            problems.add(node.at, f"{path} is not a mapping", "write worker2: {disk: 5 MiB/s}")
            return {}
        found = {}
        for name, value in node.entries.items():
            if _WORKER.fullmatch(name) is None:
                what = f"{path}: '{shown(name)}' is not the name of a worker"
                problems.add(node.keys[name], what, "workers are called worker1, worker2, ...")
            found[name] = self._of.read(value, f"{path}.{shown(name)}", problems)
            if found[name] == {} and isinstance(value, Entries):
                what = f"{path}.{shown(name)} limits nothing"
                problems.add(value.at, what, f"write {', '.join(_LIMITS)}, or remove the line")
        return found

    def schema(self) -> Schema:
        """Return the schema of the mapping."""
        names = {f"^{_WORKER.pattern}$": self._of.schema()}
        return {"type": "object", "patternProperties": names, "additionalProperties": False}


def check_nodes(experiment: Experiment, tree: Entries, problems: Problems) -> None:
    """Note each worker that ``cluster.nodes`` names and that some cluster of the grid lacks."""
    fewest = min(experiment.cluster.workers)
    there = [f"worker{number}" for number in range(1, fewest + 1)]
    cluster = tree.entries.get("cluster")
    nodes = cluster.entries.get("nodes") if isinstance(cluster, Entries) else None
    for name in experiment.cluster.nodes if isinstance(nodes, Entries) else ():
        if name not in there:
            assert isinstance(nodes, Entries)
            what = f"cluster.nodes: there is no '{name}' in a cluster of {fewest} workers"
            problems.add(nodes.keys[name], what, nearest(name, there))
