"""
An experiment: a question with a grid, as its file holds it.

The models here are the format of the file.  `harness.experiment.file` reads a file into them, a run
keeps them in its manifest, and editors get their JSON Schema.  A field whose key in the file has
another name has that name as its alias.  Lists are axes; `harness.experiment.grid` makes the cells.
"""

from __future__ import annotations

import re

from collections.abc import Callable
from typing import Annotated, Any, Final, Literal, Self, TypeVar, get_args

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    ValidationInfo,
    WithJsonSchema,
    model_validator,
)
from pydantic.json_schema import GenerateJsonSchema, SkipJsonSchema
from pydantic_core import PydanticCustomError, core_schema

from harness.records.trial import Hardware, Record, SshAccess, TraceMode, Tracing
from harness.text import excerpt
from harness.units import (
    MIB,
    format_bit_rate,
    format_bytes,
    format_rate,
    parse_bytes,
    parse_duration,
    parse_rate,
)

FORMAT = 1
UNLIMITED = "unlimited"
AUTO_GPUS = -1  # in the place of ``gpus: auto`` until the provider has counted
MOST_GPUS = 64  # of one node
LEAST_CORES, MOST_CORES = 0.05, 1000  # 0.05: a millisecond in every twenty; daemons need as much
LEAST_DISK, LEAST_NETWORK = MIB, 125_000  # bytes per second: daemons miss their heartbeats below
LEAST_MEMORY = 1024 * MIB  # bytes: a DataNode, a NodeManager, an application master

_INTEGER = re.compile(r"[-+]?[0-9]{1,18}")
_REAL = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]{1,2})?")
_WORDS: dict[str, bool | None] = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
}
NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}", re.ASCII)
WORKER: Final = re.compile(r"worker[1-9][0-9]{0,5}", re.ASCII)
_HOST = r"[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?|[0-9A-Fa-f:]{2,45}"
_SIZE_WITH_UNIT = re.compile(r"[0-9]+(\.[0-9]+)?\s*[KkMGT]?i?B")

T = TypeVar("T")


class Scalar(str):
    """
    A scalar of a file, as text.

    One that is *quoted* is text whatever it looks like.  *written* is what the file has where that
    is a name which was replaced.
    """

    __slots__ = ("quoted", "written")

    quoted: bool
    written: str

    def __new__(cls, text: str, *, quoted: bool = False, written: str | None = None) -> Self:
        """Make one; *written* is *text* unless given."""
        scalar = super().__new__(cls, text)
        scalar.quoted, scalar.written = quoted, text if written is None else written
        return scalar

    @property
    def value(self) -> str | int | float | bool | None:
        """Meaning by the core schema of YAML 1.2: ``no`` and ``1:30`` are text."""
        text = str(self)
        if self.quoted:
            return text
        if text in _WORDS:
            return _WORDS[text]
        if _INTEGER.fullmatch(text):
            return int(text)
        return float(text) if _REAL.fullmatch(text) else text


# Readers: each takes a scalar of a file, and refuses it by `ValueError`: "what is wrong; what to
# write".


def _scalar(read: Callable[[Scalar], Any]) -> BeforeValidator:
    """Validate scalars of a file by *read*; values of a stored record are good as they are."""

    def validate(value: object) -> object:
        if isinstance(value, dict | list):
            raise ValueError("is not a single value; write one value here")
        return read(value) if isinstance(value, Scalar) else value

    return BeforeValidator(validate)


def _whole(least: int, most: int) -> tuple[BeforeValidator, WithJsonSchema]:
    """Annotations of a whole number from *least* to *most*."""

    def read(scalar: Scalar) -> int:
        number = scalar.value
        if type(number) is int and least <= number <= most:
            return number
        what = f"'{excerpt(scalar)}' is not a whole number from {least} to {most}"
        raise ValueError(f"{what}; write one such as {max(least, 3)}")

    return _scalar(read), WithJsonSchema({"type": "integer", "minimum": least, "maximum": most})


def _flag(scalar: Scalar) -> bool:
    if not isinstance(scalar.value, bool):
        raise ValueError(f"'{excerpt(scalar)}' is neither; write true or false")
    return scalar.value


def _size(scalar: Scalar) -> int:
    size = parse_bytes(scalar.value if isinstance(scalar.value, int) else str(scalar))
    if not 1 <= size < 2**63:
        raise ValueError(f"'{excerpt(scalar)}' is not a size to work with; write 32 MiB or 200 MB")
    return size


def _duration(scalar: Scalar) -> float:
    number = isinstance(scalar.value, int | float)
    seconds = parse_duration(scalar.value if number else str(scalar))  # type: ignore[arg-type]
    if not 0 < seconds < 1e9:
        raise ValueError(f"'{excerpt(scalar)}' is not a time to wait; write 90 s or 10 min")
    return seconds


def _cores(scalar: Scalar) -> float:
    cores = scalar.value
    if isinstance(cores, int | float) and LEAST_CORES <= cores <= MOST_CORES and cores is not True:
        return float(cores)
    what = f"'{excerpt(scalar)}' is not a number of cores from {LEAST_CORES} to {MOST_CORES}"
    raise ValueError(f"{what}; write one such as 0.5")


def _rate(least: int, write: Callable[[float], str]) -> Callable[[Scalar], int]:
    def read(scalar: Scalar) -> int:
        rate = parse_rate(str(scalar))
        if rate < least:
            raise ValueError(f"'{excerpt(scalar)}' is too slow; write {write(least)} or more")
        return rate

    return read


def _memory(scalar: Scalar) -> int:
    size = _size(scalar)
    if size < LEAST_MEMORY:
        least = format_bytes(LEAST_MEMORY)
        raise ValueError(f"'{excerpt(scalar)}' holds no daemons; write {least} or more")
    return size


def _or_unlimited(read: Callable[[Scalar], Any]) -> Callable[[Scalar], Any]:
    def read_either(scalar: Scalar) -> Any:
        if scalar == UNLIMITED:
            return None
        try:
            return read(scalar)
        except ValueError as error:
            raise ValueError(f"{error}, or {UNLIMITED}") from None

    return read_either


def _gpus(scalar: Scalar) -> int:
    number = AUTO_GPUS if scalar == "auto" else scalar.value
    if isinstance(number, int) and (scalar == "auto" or 0 <= number <= MOST_GPUS):
        return number
    what = f"'{excerpt(scalar)}' is not a number of GPUs from 0 to {MOST_GPUS}"
    raise ValueError(f"{what}; write 1, or auto for those that a node has")


def _printable_text(scalar: Scalar) -> str:
    text = str(scalar)
    if not text.isprintable() or len(text) > 4000:
        raise ValueError(f"'{excerpt(text)}' cannot be passed on; write printable characters")
    return text


def _question(scalar: Scalar) -> str:
    lines = [_printable_text(Scalar(line)) for line in scalar.split("\n")]
    if not "".join(lines).strip():
        raise ValueError("there is no text; write some")
    return "\n".join(lines).strip()


def _property_text(scalar: Scalar) -> str:
    """
    Text of a property's value as Hadoop reads it.

    Numbers stay as they were written, ``True`` becomes ``true``, and a size with a unit, which
    Hadoop would not understand, becomes bytes.
    """
    value = scalar.value
    if value is None:
        raise ValueError("there is no value; write one, or remove the line")
    if isinstance(value, bool):
        return str(value).lower()
    return str(parse_bytes(scalar)) if has_unit(scalar) else _printable_text(scalar)


def has_unit(scalar: str) -> bool:
    """Whether *scalar* is a size with its unit."""
    return _SIZE_WITH_UNIT.fullmatch(scalar.strip()) is not None


def argument_value(scalar: Scalar) -> str | int | float:
    """Value of a workload's argument: a number or a text; `ValueError` for anything else."""
    value = scalar.value
    if value is None or isinstance(value, bool):
        return _property_text(scalar)
    return value if isinstance(value, int | float) else _printable_text(scalar)


def _matching(pattern: re.Pattern[str], what: str, write: str) -> Callable[[str], str]:
    def read(scalar: str) -> str:
        if pattern.fullmatch(scalar) is None:
            raise ValueError(f"'{excerpt(scalar)}' {what}; {write}")
        return str(scalar)

    return read


def _named(what: str) -> BeforeValidator:
    letters = "use letters, digits, _ and -, starting with a letter"
    return _scalar(_matching(NAME, f"cannot name the {what}", letters))


def _text_like(pattern: str, what: str, example: str) -> tuple[BeforeValidator, WithJsonSchema]:
    schema = {"type": "string", "pattern": f"^({pattern})$", "examples": [example]}
    compiled = re.compile(pattern, re.ASCII)
    read = _matching(compiled, f"is not a valid {what}", f"write one such as {example}")
    return _scalar(read), WithJsonSchema(schema)


def _refuse_equal(value: Any, handler: Callable[[Any], Any], info: ValidationInfo) -> Any:
    """Read a list of which a file has none twice; a value alone stands for a list of one."""
    items = list(value) if isinstance(value, list | tuple) else [value]
    if info.context:
        _filled_list(items, info)
    axis = handler(items)
    first: dict[Any, Any] = {}
    for index, item in enumerate(axis if info.context else ()):
        earlier = first.setdefault(item, items[index])
        if earlier is not items[index]:
            what = f"'{excerpt(items[index].written)}' is given twice"
            if earlier.written != items[index].written:
                what += f", first as '{excerpt(earlier.written)}'"
            problem = {"what": what, "index": index}
            raise PydanticCustomError("given_twice", "{what}; leave one", problem)
    return axis


def _filled_list(value: Any, info: ValidationInfo) -> Any:
    if info.context and not isinstance(value, list):
        raise ValueError("is not a list; write [A, B], or a line '- A' for each")
    if not value:
        raise ValueError("is an empty list; give a value, or remove the line")
    return value


class _Listed:
    """Annotates a tuple that may be written as a list, or as a single value."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> core_schema.CoreSchema:
        return core_schema.with_info_wrap_validator_function(_refuse_equal, handler(source))

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        listed: dict[str, Any] = handler(schema) | {"minItems": 1}
        return {"anyOf": [listed["items"], listed]}


Axis = Annotated[tuple[T, ...], _Listed()]

# Types of values.

_RATE_SCHEMA: dict[str, Any] = {"type": "string", "examples": ["20 MiB/s", "100 Mbit/s"]}
_SIZE_SCHEMA: dict[str, Any] = {"type": ["string", "integer"], "examples": ["32 MiB", "200 MB"]}
_CORES_SCHEMA = {"type": "number", "minimum": LEAST_CORES, "maximum": MOST_CORES}
_ANY_SCALAR: dict[str, Any] = {"type": ["string", "number", "boolean"]}
_ANY_AXIS: Any = {"anyOf": [_ANY_SCALAR, {"type": "array", "items": _ANY_SCALAR, "minItems": 1}]}


def _either_schema(schema: dict[str, Any], *words: str) -> WithJsonSchema:
    return WithJsonSchema({"anyOf": [schema, *({"const": word} for word in words)]})


_read_disk = _rate(LEAST_DISK, format_rate)
_read_network = _rate(LEAST_NETWORK, format_bit_rate)
Count = Annotated[PositiveInt, *_whole(1, 10**6)]
Seed = Annotated[NonNegativeInt, *_whole(0, 2**31 - 1)]
Flag = Annotated[bool, _scalar(_flag)]
Size = Annotated[PositiveInt, _scalar(_size), WithJsonSchema(_SIZE_SCHEMA)]
InputSize = Annotated[Size, WithJsonSchema(_SIZE_SCHEMA | {"examples": ["32 MiB", "tiny"]})]
Property = Annotated[str, _scalar(_property_text), WithJsonSchema(_ANY_SCALAR)]
Properties = dict[str, Axis[Property]]
Argument = Annotated[str | int | float, _scalar(argument_value), WithJsonSchema(_ANY_SCALAR)]
Host = Annotated[str, *_text_like(_HOST, "name or address of a host", "10.0.0.7")]
_worker = _matching(WORKER, "is not the name of a worker", "workers are called worker1, worker2")
WorkerName = Annotated[str, BeforeValidator(_worker)]


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
    gpus: Axis[
        Annotated[
            int,
            Field(ge=AUTO_GPUS),
            _scalar(_gpus),
            _either_schema({"type": "integer", "minimum": 0, "maximum": MOST_GPUS}, "auto"),
        ]
    ] = Field((0,), description="GPUs of a node that YARN counts, or auto: those that it has (0)")
    # Not a key of the file.
    gpus_found: SkipJsonSchema[bool] = Field(default=False, validation_alias="(gpus found)")
    cores: Axis[
        Annotated[
            PositiveFloat | None,
            _scalar(_or_unlimited(_cores)),
            _either_schema(_CORES_SCHEMA, UNLIMITED),
        ]
    ] = Field((None,), description="share of the processors, such as 0.5 (unlimited)")
    disk_bytes_per_s: Axis[
        Annotated[
            PositiveInt | None,
            _scalar(_or_unlimited(_read_disk)),
            _either_schema(_RATE_SCHEMA, UNLIMITED),
        ]
    ] = Field(
        (None,),
        validation_alias="disk",
        description="rate of the disk, when read and when written (unlimited)",
    )
    network_bytes_per_s: Axis[
        Annotated[
            PositiveInt | None,
            _scalar(_or_unlimited(_read_network)),
            _either_schema(_RATE_SCHEMA, UNLIMITED),
        ]
    ] = Field(
        (None,),
        validation_alias="network",
        description="rate of the network, in each direction (unlimited)",
    )
    memory_bytes: Axis[
        Annotated[
            PositiveInt | None,
            _scalar(_or_unlimited(_memory)),
            _either_schema(_SIZE_SCHEMA, UNLIMITED),
        ]
    ] = Field(
        (None,),
        validation_alias="memory",
        description="memory of the node: its processes, and the pages of files (unlimited)",
    )


class NodeLimits(_FileRecord, Hardware):
    """Limits of a single worker, in the place of those of all."""

    cores: Annotated[PositiveFloat | None, _scalar(_cores), WithJsonSchema(_CORES_SCHEMA)] = None
    disk_bytes_per_s: Annotated[
        PositiveInt | None, _scalar(_read_disk), WithJsonSchema(_RATE_SCHEMA)
    ] = Field(None, validation_alias="disk")
    network_bytes_per_s: Annotated[
        PositiveInt | None, _scalar(_read_network), WithJsonSchema(_RATE_SCHEMA)
    ] = Field(None, validation_alias="network")
    memory_bytes: Annotated[PositiveInt | None, _scalar(_memory), WithJsonSchema(_SIZE_SCHEMA)] = (
        Field(None, validation_alias="memory")
    )

    @model_validator(mode="after")
    def _limit_something(self) -> NodeLimits:
        if not self.limited:
            raise ValueError("limits nothing; write cores, disk, network, memory, or remove it")
        return self


class SshSettings(_FileRecord, SshAccess):
    """How the hosts are reached."""

    user: Annotated[str, *_text_like(r"[a-z_][a-z0-9_-]{0,31}", "name of a user", "hadoop")] = (
        Field("root", description="user (root)")
    )
    key: (
        Annotated[
            str, *_text_like(r"[A-Za-z0-9._/~@+-]{1,400}", "path of a key", "~/.ssh/id_ed25519")
        ]
        | None
    ) = Field(None, description="file of the private key (those of the agent)")
    port: Annotated[PositiveInt, *_whole(1, 65535)] = Field(
        22, description="of the hosts' sshd (22)"
    )
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

    provider: Annotated[str, _named("provider")] = Field(
        "local", description="what makes the cluster (local)"
    )
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

    model_config = ConfigDict(json_schema_extra={"additionalProperties": _ANY_AXIS})

    name: Annotated[str, _named("workload")] = Field(
        description="wordcount, or another of 'harness list workloads'"
    )
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

    models: Axis[Annotated[str, _named("model")]] = Field(
        description="names from 'harness list models', to score"
    )
    profile_on: Properties = Field(
        description="values of axes: these cells feed the profiles and are never scored"
    )


class Experiment(_FileRecord):
    """A question, the grid that answers it, and how it is measured."""

    model_config = ConfigDict(title="An experiment of mapreduce-harness")

    schema_version: Literal[1] = Field(
        default=1, validation_alias="schema", description="1, the version of this format"
    )
    name: Annotated[str, _named("experiment")] = Field(
        description="a short name; results are kept in a folder of this name"
    )
    question: Annotated[str, _scalar(_question)] = Field(
        description="what the report is to answer, in a sentence"
    )
    cluster: ClusterAxes = Field(ClusterAxes(), description="what to measure on")
    workloads: Annotated[
        tuple[WorkloadAxes, ...],
        BeforeValidator(_filled_list),
        Field(json_schema_extra={"minItems": 1}),
    ] = Field(description="a list such as [{name: wordcount, input: [32 MiB, 64 MiB]}]")
    configuration: Properties = Field(
        default_factory=dict, description="job properties; a list is an axis of the grid"
    )
    design: Design = Field(Design(), description="full, {sobol: N} or {latin: N}")
    repeat: Count = Field(3, description="trials of each cell (3)")
    warmup: Annotated[NonNegativeInt, *_whole(0, 100)] = Field(
        1, description="trials before those that count, per cluster (1)"
    )
    seed: Seed = Field(7, description="of the order of trials and of the design (7)")
    trial_limit_s: Annotated[
        PositiveFloat,
        _scalar(_duration),
        WithJsonSchema({"type": ["string", "number"], "examples": ["10 min"]}),
    ] = Field(
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
