"""
What is measured: cells of the grid, the trials that repeat them, and what limits their nodes.

Everything here is resolved: one value where an experiment file may hold a list.
"""

from __future__ import annotations

import hashlib
import json

from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    TypeAdapter,
)

from harness.base.units import format_bit_rate, format_rate

# Hashed into every id.  It changes with the meaning of a field, or with what is hashed: trials of
# before are then measured again, and never taken for those of now.
ID_VERSION = 1

# Of every stored record: it changes with the fields of any of them (tests/store/shapes.json).
SCHEMA_VERSION = 14
OLDEST_READ = 2  # runs of the first shape have tables and profiles that nothing here knows
SchemaVersion = Annotated[int, Field(ge=1, le=SCHEMA_VERSION)]

# A control is one rate by which a node is limited, by its name: cores in cores, the others in bytes
# per second.
CORES = "cores"
DISK_WRITE = "disk_write"
DISK_READ = "disk_read"
NETWORK_OUT = "network_out"
NETWORK_IN = "network_in"
# The controls of each field of `Hardware`; those of one field are measured together.
CONTROLS: dict[str, tuple[str, ...]] = {
    "cores": (CORES,),
    "disk_bytes_per_s": (DISK_WRITE, DISK_READ),
    "network_bytes_per_s": (NETWORK_OUT, NETWORK_IN),
    "memory_bytes": (),  # the kernel counts it: there is nothing to measure, nor to adjust
}
TOLERANCE = 0.1  # relative difference between what was requested and what is measured
# Where buffered writes are faster by more than this, the page cache takes them up.
_BUFFERED_TOLERANCE = 1.5

HISTORY = "history"  # the provider of a cell whose jobs ran without us

# Seconds since 1970 that a calendar has: a clock says no others, and none could be shown.
LATEST_S = 253_402_300_800
Moment = Annotated[float, Field(ge=0, lt=LATEST_S)]
# As experiments have it; somebody's record may say anything, and each worker gets a name.
ManyAtMost = Annotated[int, Field(gt=0, le=10**6)]
# As Hadoop writes it: when the cluster started, and the number of the job there.
HadoopJobId = Annotated[str, Field(pattern=r"^job_[0-9]{1,16}_[0-9]{1,10}$")]

TrialState = Literal["done", "failed", "timed_out"]
TrialUse = Literal["profile", "sentinel", "score"]
TraceMode = Literal["spans", "units", "logs", "off"]


class Record(BaseModel):
    """A frozen record that refuses fields it does not know, and numbers that are not finite."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


def is_imported(provider: str) -> bool:
    """Whether *provider* stands for no cluster of ours, but for the histories of past jobs."""
    return provider == HISTORY


class Hardware(Record):
    """
    What a node is limited to; `None` leaves it what the machine gives.

    *cores* is a share of the processors; the disk's (when read and when written) and the network's
    (in each direction) are bytes per second.  *memory_bytes* is for all of the node's processes and
    for the page cache of the files that they use.
    """

    cores: PositiveFloat | None = None
    disk_bytes_per_s: PositiveInt | None = None
    network_bytes_per_s: PositiveInt | None = None
    memory_bytes: PositiveInt | None = None

    @property
    def limited(self) -> bool:
        """Whether anything is limited."""
        return any(value is not None for value in self.limits().values())

    def limits(self) -> dict[str, float | None]:
        """The limits alone, by their names."""
        return {name: getattr(self, name) for name in Hardware.model_fields}


class Limit(Record):
    """
    One control of one node: what was *requested*, the *setting* that gives it, what was *measured*.

    *buffered_write* is measured for writing alone: the rate at which a disk takes writes that are
    not synced, once memory has taken up the first of them; tasks and DataNodes write so.
    """

    requested: PositiveFloat
    setting: PositiveFloat
    measured: PositiveFloat
    buffered_write: PositiveFloat | None = None

    @property
    def is_met(self) -> bool:
        """Whether what is measured is near what was requested."""
        return abs(self.measured / self.requested - 1) <= TOLERANCE

    @property
    def is_enforced(self) -> bool:
        """Whether tasks are limited by it: not where the page cache takes all that they write."""
        if self.buffered_write is None:
            return True
        return self.buffered_write <= _BUFFERED_TOLERANCE * self.requested


class LimitedCluster(Record):
    """
    What the nodes of one start of a cluster were.

    *cluster* is the id of its specification, *measured_s* seconds since the epoch; *nodes* maps a
    node to the limits of its controls.
    """

    cluster: str
    measured_s: float
    nodes: dict[str, dict[str, Limit]]


# node -> control -> its limit, as files hold it
LIMITS = TypeAdapter(dict[str, dict[str, Limit]])


def requested_controls(hardware: Hardware) -> dict[str, float]:
    """
    What each control of a node is requested to be; what is not limited is left out.

    >>> requested_controls(Hardware(cores=0.5, network_bytes_per_s=10**6))
    {'cores': 0.5, 'network_out': 1000000.0, 'network_in': 1000000.0}
    """
    controls: dict[str, float] = {}
    for field, rate in hardware.limits().items():
        if rate is not None:
            controls |= dict.fromkeys(CONTROLS[field], float(rate))
    return controls


def format_control(control: str, rate: float) -> str:
    """
    Rate of a control for people.

    >>> format_control("cores", 0.5), format_control("disk_read", 20 * 2**20)
    ('0.5 cores', '20 MiB/s')
    """
    if control == CORES:
        return f"{rate:.3g} cores"
    return format_bit_rate(rate) if control.startswith("network") else format_rate(rate)


class NodeSpec(Hardware):
    """
    One worker node: tasks of each kind at once, the memory of each task's container, and GPUs.

    *gpus* are counted by YARN, as ``yarn.io/gpu``; 0 declares none.
    """

    map_slots: PositiveInt = 1
    reduce_slots: PositiveInt = 1
    task_memory_bytes: PositiveInt = 512 * 2**20
    gpus: NonNegativeInt = 0


class SshAccess(Record):
    """
    How hosts are reached: *key* is a file (`None`: the keys of an agent).

    *become*: root's work is done by sudo.  *keep*: Hadoop stays on the hosts for the next start.
    """

    user: str = "root"
    key: str | None = None
    port: PositiveInt = 22
    become: bool = False
    keep: bool = False


class ClusterSpec(Record):
    """
    A cluster to provision; *site* holds cluster-wide Hadoop properties, values as text.

    *nodes* holds further limits of single workers (``worker2``), in the place of those of *node*.
    *hosts* are there already, the master first; *ssh* says how they are reached.  *exposed* accepts
    a cluster that others can reach, where it cannot be fenced.
    """

    provider: str = "local"
    workers: ManyAtMost = 3
    node: NodeSpec = NodeSpec()
    site: dict[str, str] = Field(default_factory=dict)
    nodes: dict[str, Hardware] = Field(default_factory=dict)
    hosts: tuple[str, ...] = ()
    ssh: SshAccess | None = None
    # Left out where it is not set: ids of fenced clusters are those of before there was a choice.
    exposed: bool = Field(default=False, exclude_if=lambda exposed: not exposed)

    @property
    def id(self) -> str:
        """Hash of all fields: trials with equal ids can share one running cluster."""
        return digest({"version": ID_VERSION, "cluster": self.model_dump(mode="json")})

    @property
    def was_imported(self) -> bool:
        """Whether nobody started it from here: it is what histories of past jobs tell of one."""
        return is_imported(self.provider)

    @property
    def limited(self) -> bool:
        """Whether any worker is limited."""
        return self.node.limited or any(node.limited for node in self.nodes.values())

    def hardware(self, worker: str) -> Hardware:
        """Limits of *worker*: each is its own where it has one, else that of all workers."""
        limits = self.node.limits()
        worker_limits = self.nodes.get(worker, Hardware()).limits()
        limits |= {name: value for name, value in worker_limits.items() if value is not None}
        return Hardware(**limits)


class Code(Record):
    """A class that a user wrote: its file's name, its own, and the SHA-256 of the file."""

    file: str
    class_name: str
    sha256: str = Field(pattern="^[0-9a-f]{64}$")


class WorkloadSpec(Record):
    """
    A workload with its input: bytes asked of the generator, its seed, further arguments.

    *code* is that of a workload of the user's own.
    """

    name: str
    input_bytes: PositiveInt
    seed: NonNegativeInt = 1
    parameters: dict[str, str | int | float] = Field(default_factory=dict)
    # Left out where there is none: ids of other workloads are those of before there was any.
    code: Code | None = Field(default=None, exclude_if=lambda code: code is None)


class Tracing(Record):
    """
    How much is recorded inside tasks.

    *spans*: the parts of each task and exact sums over its records.  *units*: that, and the seconds
    of every *unit_records* records.  *logs*: what Hadoop logs itself.  *off*: not even that is
    read.
    """

    mode: TraceMode = "spans"
    unit_records: PositiveInt = 5


class Cell(Record):
    """One point of the grid: cluster x workload x job properties (unchanged, values as text)."""

    cluster: ClusterSpec
    workload: WorkloadSpec
    configuration: dict[str, str] = Field(default_factory=dict)
    tracing: Tracing = Tracing()

    @property
    def was_imported(self) -> bool:
        """Whether its jobs ran before, without the harness, and are known by their histories."""
        return self.cluster.was_imported

    @property
    def id(self) -> str:
        """Hash of all that the cell fixes."""
        return digest({"version": ID_VERSION, "cell": self.model_dump(mode="json")})


class Versions(Record):
    """What an outcome depends on beside its cell; *jars* maps a jar's name to its SHA-256."""

    hadoop: str
    java: str
    jars: dict[str, str] = Field(default_factory=dict)


class Trial(Record):
    """
    One repetition of a cell; *repetition* counts from 0, *profiling* trials feed the profile.

    A *sentinel* repeats a profiling cell among the scored trials, and is never scored.
    Of a trial that was added until a verdict is reached, *look* is the number of the look at the
    data that asked for it, and *reason* why.
    """

    id: str
    cell: Cell
    repetition: NonNegativeInt
    profiling: bool = False
    sentinel: bool = False
    look: NonNegativeInt = 0
    reason: str = ""

    @property
    def use(self) -> TrialUse:
        """What it is for."""
        if self.profiling:
            return "profile"
        return "sentinel" if self.sentinel else "score"

    @property
    def is_scored(self) -> bool:
        """Whether models are scored on it."""
        return self.use == "score"

    @classmethod
    def of(cls, cell: Cell, repetition: int, versions: Versions, **facts: Any) -> Trial:
        """The *repetition* of *cell* by these *versions*; *facts* are its other fields."""
        return cls(
            id=trial_id(cell, repetition, versions), cell=cell, repetition=repetition, **facts
        )


def trial_id(cell: Cell, repetition: int, versions: Versions) -> str:
    """Hash of all that decides the outcome: the cell, the repetition, the versions."""
    return digest(
        {
            "version": ID_VERSION,
            "cell": cell.model_dump(mode="json"),
            "repetition": repetition,
            "versions": versions.model_dump(mode="json"),
        }
    )


def digest(value: Any) -> str:
    """First 16 hex digits of the SHA-256 of *value* as canonical JSON."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


class MachineLoad(Record):
    """
    How one machine was used during a trial, by means over its samples.

    *busy* and *steal* are shares of the time of all its cores.  So is *others*: what went to
    processes that are neither the cluster's nor the harness's own; `None` where that is unknown.
    *swap_bytes_per_s* went to the swap space and came from there.
    """

    busy: float
    steal: float
    others: float | None
    swap_bytes_per_s: float


class TrialRecord(Record):
    """
    `trial.json`: how a trial ended, and on what it ran.

    Times are seconds since the epoch on the machine that ran the harness.  *reason* says why a
    trial is not done.  *job_ids* are the Hadoop jobs of the trial, in order.  *disturbed* names
    the rule that marked the trial, and is empty for an undisturbed one; *loads* are the figures of
    each machine that was sampled.  *device* is the kind on which maps computed: ``cuda``, or
    ``cpu`` where the processor stood in for one, or both; it is empty where they used none.
    *disk_bytes* are those ``read`` and ``written`` by each limited disk while the jobs ran, by the
    node's name.  *versions* and *kernel* are those of the nodes that ran the tasks; where nodes
    differ, each is named with its own.
    """

    # What another version of the harness has written besides does not concern this one.
    model_config = ConfigDict(frozen=True, extra="ignore")

    schema_version: SchemaVersion = SCHEMA_VERSION
    trial: Trial
    state: TrialState
    started_s: Moment
    finished_s: Moment
    job_ids: tuple[HadoopJobId, ...] = ()
    reason: str = ""
    disturbed: str = ""
    loads: dict[str, MachineLoad] = Field(default_factory=dict)
    device: str = ""
    versions: Versions
    kernel: str = ""
    input_bytes: int | None = None
    num_splits: int | None = None
    harness_s: dict[str, float] = Field(default_factory=dict)
    disk_bytes: dict[str, dict[str, int]] = Field(default_factory=dict)

    def most(self, name: str) -> float | None:
        """
        Largest value in `loads` of the figure *name*, a field of `MachineLoad`.

        `None` where it is not known of one of the machines, or no machine was sampled.
        """
        figures = [getattr(load, name) for load in self.loads.values()]
        return None if None in figures else max(figures, default=None)
