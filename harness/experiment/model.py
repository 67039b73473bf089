"""
An experiment: a question with a grid, as its file holds it.

The models here are the format of the file.  `harness.experiment.file` reads a file into them, a run
keeps them in its manifest, and editors get their JSON Schema.  A field whose key in the file has
another name has that name as its alias.  Lists are axes; `harness.experiment.grid` makes the cells.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    WithJsonSchema,
    model_validator,
)
from pydantic.json_schema import GenerateJsonSchema, SkipJsonSchema

from harness.experiment.values import (
    ANY_AXIS,
    NAME,
    AnyCores,
    AnyDisk,
    AnyMemory,
    AnyNetwork,
    Argument,
    Axis,
    Cores,
    Count,
    DiskRate,
    Duration,
    ExperimentName,
    Flag,
    Gpus,
    Host,
    InputSize,
    KeyFile,
    Memory,
    ModelName,
    NetworkRate,
    Port,
    Properties,
    ProviderName,
    Question,
    Seed,
    Size,
    User,
    Warmups,
    WorkerName,
    WorkloadName,
    filled_list,
)
from harness.records.trial import Hardware, Record, SshAccess, TraceMode, Tracing
from harness.units import MIB


class _FileRecord(Record):
    """A record that a file holds: its aliases are the keys of the file."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_by_name=True)


class Node(_FileRecord):
    """
    Slots, memory, GPUs and limits of a worker; each is an axis.

    *gpus_found* tells that the file asked for those that there are (``gpus: auto``).  A limit of
    `None` is none: the node has what the machine gives.
    """

    map_slots: Axis[Count] = Field((1,), description="map tasks at once on a node (1)")
    reduce_slots: Axis[Count] = Field((1,), description="reduce tasks at once on a node (1)")
    task_memory_bytes: Axis[Size] = Field(
        (512 * MIB,),
        validation_alias="task_memory",
        description="memory of a task's container (512 MiB)",
    )
    gpus: Axis[Gpus] = Field(
        (0,), description="GPUs of a node that YARN counts, or auto: those that it has (0)"
    )
    # Not a key of the file.
    gpus_found: SkipJsonSchema[bool] = Field(default=False, validation_alias="(gpus found)")
    cores: Axis[AnyCores] = Field(
        (None,), description="share of the processors, such as 0.5 (unlimited)"
    )
    disk_bytes_per_s: Axis[AnyDisk] = Field(
        (None,),
        validation_alias="disk",
        description="rate of the disk, when read and when written (unlimited)",
    )
    network_bytes_per_s: Axis[AnyNetwork] = Field(
        (None,),
        validation_alias="network",
        description="rate of the network, in each direction (unlimited)",
    )
    memory_bytes: Axis[AnyMemory] = Field(
        (None,),
        validation_alias="memory",
        description="memory of the node: its processes, and the page cache (unlimited)",
    )


class NodeLimits(_FileRecord, Hardware):
    """Limits of a single worker, in the place of those of all."""

    cores: Cores = None
    disk_bytes_per_s: DiskRate = Field(None, validation_alias="disk")
    network_bytes_per_s: NetworkRate = Field(None, validation_alias="network")
    memory_bytes: Memory = Field(None, validation_alias="memory")

    @model_validator(mode="after")
    def _limit_something(self) -> NodeLimits:
        if not self.limited:
            raise ValueError("limits nothing; write cores, disk, network, memory, or remove it")
        return self


class SshSettings(_FileRecord, SshAccess):
    """How the hosts are reached."""

    user: User = Field("root", description="user (root)")
    key: KeyFile | None = Field(None, description="file of the private key (those of the agent)")
    port: Port = Field(22, description="of the hosts' sshd (22)")
    become: Flag = Field(default=False, description="use sudo where root is needed (false)")
    keep: Flag = Field(
        default=False, description="leave Hadoop on the hosts for the next start (false)"
    )


class ClusterAxes(_FileRecord):
    """
    The cluster to measure on: trials are grouped by cluster, one start each.

    *nodes* limits single workers, in every cell alike: it is no axis.  *hosts* are there already,
    the master first; *ssh* says how they are reached.
    """

    provider: ProviderName = Field("local", description="what makes the cluster (local)")
    workers: Axis[Count] = Field((3,), description="worker nodes (3); a list is an axis")
    node: Node = Field(Node(), description="slots, memory, GPUs and limits of a worker")
    nodes: dict[WorkerName, NodeLimits] = Field(
        default_factory=dict, description="limits of single workers, by their names"
    )
    site: Properties = Field(
        default_factory=dict, description="cluster-wide properties; a list is an axis"
    )
    hosts: Axis[Host] = Field((), description="hosts that are reached by SSH, the master first")
    ssh: SshSettings | None = Field(None, description="how the hosts are reached")

    @model_validator(mode="before")
    @classmethod
    def _count_workers(cls, data: Any) -> Any:
        """Let the hosts say how many workers there are, where the file does not."""
        if isinstance(data, dict) and isinstance(data.get("hosts"), list) and data["hosts"]:
            return {"workers": (max(1, len(data["hosts"]) - 1),), **data}
        return data


class WorkloadAxes(_FileRecord):
    """A workload, its input sizes and its further arguments, each an axis."""

    model_config = ConfigDict(json_schema_extra={"additionalProperties": ANY_AXIS})

    name: WorkloadName = Field(description="wordcount, or another of 'harness list workloads'")
    input_bytes: Axis[InputSize] = Field(
        validation_alias="input",
        description="a size such as 32 MiB, or one by its name, such as tiny, or a list",
    )
    seed: Seed = Field(1, description="of the generated input (1)")
    # Not a key of the file: each argument is.
    parameters: SkipJsonSchema[dict[str, Axis[Argument]]] = Field(
        default_factory=dict, validation_alias="(parameters)"
    )

    @model_validator(mode="before")
    @classmethod
    def _gather_parameters(cls, data: Any, info: ValidationInfo) -> Any:
        """Put the further keys of a file's entry together; unknown ones are left to be refused."""
        if not info.context or not isinstance(data, dict):
            return data
        known = info.context["parameters"]
        allowed = None if known is None else known.get(data.get("name"), ())
        parameters = {
            key: value
            for key, value in data.items()
            if key not in ("name", "input", "seed")
            and NAME.fullmatch(key)
            and (allowed is None or key in allowed)
        }
        others = {key: value for key, value in data.items() if key not in parameters}
        return {**others, "(parameters)": parameters}


class Design(_FileRecord):
    """Which points of the grid are taken: all, or *points* of a space-filling choice."""

    kind: Literal["full", "sobol", "latin"] = "full"
    points: Count | None = None

    @model_validator(mode="before")
    @classmethod
    def _read(cls, data: Any, info: ValidationInfo) -> Any:
        """Read ``full``, or ``{sobol: N}``, or ``{latin: N}``."""
        if not info.context:
            return data
        if data == "full":
            return {"kind": "full"}
        if isinstance(data, dict) and len(data) == 1 and data.keys() <= {"sobol", "latin"}:
            ((kind, points),) = data.items()
            return {"kind": kind, "points": points}
        raise ValueError("is not a valid design; write full, {sobol: 32} or {latin: 32}")

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: Any, handler: Any) -> dict[str, Any]:
        """Give the schema of what a file has."""
        del schema, handler
        return _word_or_count(["full"], "sobol", "latin")


def _word_or_count(words: list[str], *keys: str) -> dict[str, Any]:
    """JSON Schema of one of *words*, or of a mapping from one of *keys* to a number."""
    count = {"type": "integer", "minimum": 1}
    one = {"type": "object", "minProperties": 1, "maxProperties": 1, "additionalProperties": False}
    return {"anyOf": [{"enum": words}, one | {"properties": dict.fromkeys(keys, count)}]}


def _tracing(data: Any, info: ValidationInfo) -> Any:
    """Read ``spans``, ``units``, ``logs`` or ``off``, or ``{units: N}``."""
    modes = get_args(TraceMode)
    if not info.context:
        return data
    if isinstance(data, str) and data in modes:
        return {"mode": str(data)}
    if isinstance(data, dict) and list(data) == ["units"]:
        return {"mode": "units", "unit_records": data["units"]}
    raise ValueError(f"is not a way of tracing; write {', '.join(modes)}, or {{units: 5}}")


class Predict(_FileRecord):
    """Models to score, and the cells that feed the profiles: values allowed per axis."""

    models: Axis[ModelName] = Field(description="names from 'harness list models', to score")
    profile_on: Properties = Field(
        description="values of axes: these cells feed the profiles and are never scored"
    )


class Experiment(_FileRecord):
    """A question, the grid that answers it, and how it is measured."""

    model_config = ConfigDict(title="An experiment of mapreduce-harness")

    schema_version: Literal[1] = Field(
        default=1, validation_alias="schema", description="1, the version of this format"
    )
    name: ExperimentName = Field(
        description="a short name; results are kept in a folder of this name"
    )
    question: Question = Field(description="what the report is to answer, in a sentence")
    cluster: ClusterAxes = Field(ClusterAxes(), description="what to measure on")
    workloads: Annotated[
        tuple[WorkloadAxes, ...],
        BeforeValidator(filled_list),
        Field(json_schema_extra={"minItems": 1}),
    ] = Field(description="a list such as [{name: wordcount, input: [32 MiB, 64 MiB]}]")
    configuration: Properties = Field(
        default_factory=dict, description="job properties; a list is an axis of the grid"
    )
    design: Design = Field(Design(), description="full, {sobol: N} or {latin: N}")
    repeat: Count = Field(3, description="trials of each cell (3)")
    warmup: Warmups = Field(1, description="trials before those that count, per cluster (1)")
    seed: Seed = Field(7, description="of the order of trials and of the design (7)")
    trial_limit_s: Duration = Field(
        600.0,
        validation_alias="trial_limit",
        description="the longest that a trial may take (10 min)",
    )
    tracing: Annotated[
        Tracing,
        BeforeValidator(_tracing),
        WithJsonSchema(_word_or_count([*get_args(TraceMode)], "units")),
    ] = Field(
        Tracing(),
        validation_alias="trace",
        description="what is recorded inside tasks: spans, units, {units: N}, logs or off (spans)",
    )
    predict: Predict = Field(
        Predict(models=(), profile_on={}), description="what to predict, and from which cells"
    )


class _EditorSchema(GenerateJsonSchema):
    """For editors: no titles that repeat keys, no defaults in the units of records, no null."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        """Tell that a field needs none."""
        del schema
        return False

    def default_schema(self, schema: Any) -> dict[str, Any]:
        """Give the schema of the value alone."""
        return self.generate_inner(schema["schema"])

    def nullable_schema(self, schema: Any) -> dict[str, Any]:
        """Give the schema of the value that is not null."""
        return self.generate_inner(schema["schema"])


def experiment_schema() -> dict[str, Any]:
    """JSON Schema of the file, for editors."""
    schema = Experiment.model_json_schema(schema_generator=_EditorSchema)
    schema["required"].insert(0, "schema")
    return {"$schema": "http://json-schema.org/draft-07/schema#", **schema}
