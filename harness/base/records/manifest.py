"""
`manifest.json`: what a run says of itself, from its opening to its last trial.

Entries that do not concern a run are not written; `None` and empty values stand for them here.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import ConfigDict, Field, FiniteFloat, NonNegativeInt, PositiveInt

from harness.base.records.trial import (
    SCHEMA_VERSION,
    LimitedCluster,
    Moment,
    Record,
    SchemaVersion,
    Versions,
)


class OfferedGpus(Record):
    """How many GPUs each node offers to YARN (an axis), and whether they were found or declared."""

    per_node: tuple[NonNegativeInt, ...]
    origin: Literal["found on the nodes", "declared, not detected"]


class NodeGpus(Record):
    """
    GPUs of one node, or of this machine where all nodes are on it.

    *devices* have what their driver reports of them, *library* is the file of the driver's library
    (empty where there is none), *message* what the driver's tool wrote where it failed.  *h2d_bps*
    and *d2h_bps* are bytes per second of each pass of copies to the first device and back, or
    *rates_missing* says why there are none.
    """

    devices: tuple[dict[str, str | int | float], ...]
    library: str
    message: str | None = None
    h2d_bps: tuple[PositiveInt, ...] | None = None
    d2h_bps: tuple[PositiveInt, ...] | None = None
    rates_missing: str | None = None


class NodeRates(Record):
    """
    Rates of one node's disk and memory: bytes per second of each pass.

    *how* says whether the file system let the disk be read and written past the page cache.
    """

    disk_read_bps: tuple[PositiveInt, ...] = Field(min_length=1)
    disk_write_bps: tuple[PositiveInt, ...] = Field(min_length=1)
    mem_read_bps: tuple[PositiveInt, ...] = Field(min_length=1)
    mem_write_bps: tuple[PositiveInt, ...] = Field(min_length=1)
    how: Literal["direct", "cached"]


class MonitoredMachine(Record):
    """A machine that is monitored through one of its *nodes*."""

    nodes: tuple[str, ...]
    cores: FiniteFloat


class Manifest(Record):
    """
    What a run says of itself.

    *created_s* is seconds since the epoch; *experiment* is the resolved experiment, *experiment_id*
    its hash: a run is only continued by an equal one.  *harness*, *commit*, *python* and *command*
    say what ran, *machine* on what.  *versions* are those of the trials; *nodes* has the Hadoop,
    Java and kernel of the nodes, one text where all agree and by node where not.  *machines* are
    those monitored through a node, by the name that their samples have.  *limitations* say what
    measurements on the cluster cannot show; *limits* has one entry for each start of a cluster.
    *systems* says by node what each one is (`harness.clusters.node.system`), or has a text: the
    name of
    another node with the same answer, or ``not known: why``.  *daemon_options* are JVM options by
    kind of daemon; *packages* those installed where the harness ran, name and version, each with
    the SHA-256 of its ``RECORD``, the list of its files with their hashes, empty without one.
    *gpus_found* and *rates* are by node, and so is *micro*: bytes per second that the controls of a
    node gave while all nodes were measured at once, without a job.  *repeats_ended* says why no
    more trials were added.  *reused* has the run that measured a trial, where it was another.
    *analysis_of* is the run that an analysis is about; a run has none.  *not_before* goes into the
    seal: what nobody could know before some moment.
    """

    # What another version of the harness has written besides does not concern this one.
    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)

    schema_version: SchemaVersion = SCHEMA_VERSION
    run: str
    created_s: Moment
    experiment_id: str
    experiment: dict[str, Any]
    harness: str = ""
    commit: str = ""
    command: str = ""
    overrides: tuple[str, ...] = ()
    python: str = ""
    seed: int | None = None
    versions: Versions | None = None
    nodes: dict[str, str | dict[str, str]] = Field(default_factory=dict)
    packages: dict[str, str] = Field(default_factory=dict)
    machine: dict[str, Any] = Field(default_factory=dict)
    systems: dict[str, dict[str, Any] | str] = Field(default_factory=dict)
    daemon_options: dict[str, str] = Field(default_factory=dict)
    machines: dict[str, MonitoredMachine] = Field(default_factory=dict)
    limitations: tuple[str, ...] = ()
    limits: tuple[LimitedCluster, ...] = ()
    gpus: OfferedGpus | None = None
    gpus_found: dict[str, NodeGpus] = Field(default_factory=dict)
    rates: dict[str, NodeRates] = Field(default_factory=dict)
    micro: dict[str, dict[str, float]] = Field(default_factory=dict)
    repeats_ended: str = ""
    reused: dict[str, str] = Field(default_factory=dict)
    analysis_of: str = ""
    not_before: str = ""

    def document(self) -> dict[str, Any]:
        """JSON document of the manifest: what it holds, without entries that are empty."""
        given = self.model_fields_set | {"schema_version"}
        written = self.model_dump(mode="json", exclude_none=True, include=given)
        return {name: value for name, value in written.items() if value not in ("", {}, [])}
