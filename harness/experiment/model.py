"""
An experiment as its file holds it: a question with a grid.

Lists are axes here; `harness.experiment.grid.expand` makes the cells.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import (
    Field,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    SerializerFunctionWrapHandler,
    model_serializer,
)

from harness.records.trial import Hardware, Record, SshAccess, Tracing


class Node(Record):
    """
    Axes of a worker node; more than one value makes a further cluster.

    *gpus_found* tells that the file asked for what there is (``gpus: auto``).  A limit of `None`
    is none: the node has what the machine gives.
    """

    map_slots: tuple[PositiveInt, ...] = (1,)
    reduce_slots: tuple[PositiveInt, ...] = (1,)
    task_memory_bytes: tuple[PositiveInt, ...] = (512 * 2**20,)
    gpus: tuple[NonNegativeInt, ...] = (0,)
    gpus_found: bool = False
    cores: tuple[PositiveFloat | None, ...] = (None,)
    disk_bytes_per_s: tuple[PositiveInt | None, ...] = (None,)
    network_bytes_per_s: tuple[PositiveInt | None, ...] = (None,)
    memory_bytes: tuple[PositiveInt | None, ...] = (None,)

    @model_serializer(mode="wrap")
    def _without_no_gpus(self, plain: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out what an older file could not say: its run is the same experiment's still."""
        written: dict[str, Any] = plain(self)
        none = {name for name in Hardware.model_fields if getattr(self, name) == (None,)}
        none |= {"gpus"} if self.gpus == (0,) else set()
        none |= set() if self.gpus_found else {"gpus_found"}
        return {name: value for name, value in written.items() if name not in none}


class ClusterAxes(Record):
    """
    Axes of the cluster: trials are grouped by cluster, one start each.

    *nodes* limits single workers, in every cell alike: it is no axis.  *hosts* are there already,
    the master first; *ssh* says how they are reached.
    """

    provider: str = "local"
    workers: tuple[PositiveInt, ...] = (3,)
    node: Node = Node()
    site: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    nodes: dict[str, Hardware] = Field(default_factory=dict)
    hosts: tuple[str, ...] = ()
    ssh: SshAccess | None = None

    @model_serializer(mode="wrap")
    def _without_no_nodes(self, plain: SerializerFunctionWrapHandler) -> dict[str, Any]:
        later = {"nodes", "hosts", "ssh"}
        return {name: v for name, v in plain(self).items() if name not in later or v}


class WorkloadAxes(Record):
    """A workload, its input sizes and its further arguments, each an axis."""

    name: str
    input_bytes: tuple[PositiveInt, ...]
    seed: NonNegativeInt = 1
    parameters: dict[str, tuple[str | int | float, ...]] = Field(default_factory=dict)


class Design(Record):
    """Which points of the grid are taken: all, or *points* of a space-filling choice."""

    kind: Literal["full", "sobol", "latin"] = "full"
    points: PositiveInt | None = None


class Predict(Record):
    """Models to score, and the cells that feed the profiles: values allowed per axis."""

    models: tuple[str, ...] = ("whatif", "whatif-mr2")
    profile_on: dict[str, tuple[str, ...]] = Field(default_factory=dict)


class Experiment(Record):
    """A question, the grid that answers it, and how it is measured."""

    schema_version: Literal[1] = 1
    name: str
    question: str
    cluster: ClusterAxes = ClusterAxes()
    workloads: tuple[WorkloadAxes, ...]
    configuration: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    design: Design = Design()
    repeat: PositiveInt = 3
    warmup: NonNegativeInt = 1
    seed: NonNegativeInt = 7
    trial_limit_s: PositiveFloat = 600.0
    tracing: Tracing = Tracing()
    predict: Predict = Predict()
