"""
An experiment: a question with a grid, as its file holds it.

These models are the format of the file and its JSON Schema.  The key of a field is its name without
the unit, unless an alias is given.  Lists are axes; `harness.core.experiment.grid` makes the cells.
"""

from __future__ import annotations

import re

from collections.abc import Callable, Collection
from typing import Annotated, Any, Final, Literal, TypeVar, get_args

from pydantic import (
    AliasGenerator,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationInfo,
    WithJsonSchema,
    model_validator,
)
from pydantic.json_schema import SkipJsonSchema
from pydantic_core import PydanticCustomError, core_schema

from harness.base.records.question import BEST, Extrapolate, Question
from harness.base.records.trial import (
    Code,
    Hardware,
    Record,
    SshAccess,
    TraceMode,
    Tracing,
    is_imported,
)
from harness.base.text import excerpt
from harness.base.units import MIB, parse_bytes, parse_duration, parse_rate
from harness.core.experiment.document import Scalar, has_unit

UNLIMITED = "unlimited"
AUTO = "auto"  # in the place of the axes of profile_on
UNTIL_DECIDED = 0  # in the place of ``repeat: until decided``
AUTO_GPUS = -1  # in the place of ``gpus: auto`` until the provider has counted
_MEANINGS = {"auto": AUTO_GPUS, "until decided": UNTIL_DECIDED}
# What daemons and an application master need, to keep their heartbeats.
LEAST_CORES = 0.05
LEAST_NETWORK = 125_000
LEAST_MEMORY = 1024 * MIB

NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}", re.ASCII)
_OR_PATH = {"pattern": rf"^({NAME.pattern}|.+\.py:[A-Za-z_][A-Za-z0-9_]*)$"}  # of a class
_UNIT_IN_NAME = re.compile(r"(_bytes|_bytes_per_s|_s)$")

_Schema = dict[str, Any]
_SIZE: _Schema = {"type": ["string", "integer"], "minimum": MIB, "examples": ["32 MiB"]}
_RATE: _Schema = {"type": "string", "examples": ["20 MiB/s", "100 Mbit/s"]}
_TIME: _Schema = {"type": "string", "examples": ["10 min"]}
_ANY: _Schema = {"type": ["string", "number", "boolean"]}
T = TypeVar("T")
_Read = Callable[[Scalar], Any]
_Annotations = tuple[BeforeValidator, WithJsonSchema]


def _written(
    read: _Read, schema: dict[str, Any], word: str = "", meaning: Any = None
) -> _Annotations:
    """
    Annotations of a type whose values *read* takes from scalars of a file; editors get *schema*.

    *read* refuses by `ValueError`: "what is wrong; what to write".  *word* stands for *meaning*.
    """

    def validate(value: object) -> object:
        if isinstance(value, dict | list):
            raise ValueError("is not a single value; write one value here")
        if not isinstance(value, Scalar):
            return value
        if word and value == word:
            return meaning
        try:
            return read(value)
        except ValueError as error:
            raise ValueError(f"{error}, or {word}" if word else str(error)) from None

    either = {"anyOf": [schema, {"const": word}]} if word else schema
    return BeforeValidator(validate), WithJsonSchema(either)


def _number(
    noun: str, least: float, most: float, fix: str = "", *, whole: bool = True, word: str = ""
) -> _Annotations:
    """Annotations of numbers from *least* to *most*, beside which *word* may stand."""

    def read(scalar: Scalar) -> Any:
        number: Any = scalar.value
        if type(number) in ((int,) if whole else (int, float)) and least <= number <= most:
            return number
        advice = fix or f"write one such as {max(least, 3)}"
        raise ValueError(f"'{excerpt(scalar)}' is not a {noun} from {least} to {most}; {advice}")

    schema = {"type": "integer" if whole else "number", "minimum": least, "maximum": most}
    return _written(read, schema, word, _MEANINGS.get(word))


def _quantity(
    parse: _Read, least: float, flaw: str, schema: _Schema, word: str = "", *, most: float = 2**63
) -> _Annotations:
    """Annotations of what *parse* understands; *flaw* is about what is out of bounds."""

    def read(scalar: Scalar) -> Any:
        quantity = parse(scalar)
        if parse is parse_bytes and 0 < quantity < MIB and scalar.written.isdigit():  # MiB?
            raise ValueError(f"'{scalar}' has no unit; write {scalar} MiB, or {scalar} B")
        if not least <= quantity < most:
            raise ValueError(f"'{excerpt(scalar)}' {flaw}")
        return quantity

    return _written(read, schema, word)


def _text(pattern: str, complaint: str, /, **schema: Any) -> _Annotations:
    def read(scalar: Scalar) -> str:
        if re.fullmatch(pattern, scalar, re.ASCII) is None:
            raise ValueError(f"'{excerpt(scalar)}' {complaint}")
        return str(scalar)

    return _written(read, {"type": "string", "pattern": f"^({pattern})$", **schema})


def _name_of(noun: str, **schema: str) -> _Annotations:
    letters = "use letters, digits, _ and -, starting with a letter"
    return _text(NAME.pattern, f"cannot name the {noun}; {letters}", **schema)


def _like(pattern: str, noun: str, example: str) -> _Annotations:
    complaint = f"is not a valid {noun}; write one such as {example}"
    return _text(pattern, complaint, examples=[example])


def _read_flag(scalar: Scalar) -> bool:
    if isinstance(scalar.value, bool):
        return scalar.value
    raise ValueError(f"'{excerpt(scalar)}' is neither; write true or false")


_EXTRAPOLATE: dict[str, Extrapolate] = {
    "only": True,
    "in": False,
    "out": "out",
    "true": True,
    "false": False,
}


def _read_extrapolate(scalar: Scalar) -> Extrapolate:
    if scalar in _EXTRAPOLATE:
        return _EXTRAPOLATE[scalar]
    raise ValueError(f"'{excerpt(scalar)}' is not a choice; write only, in or out")


def _read_printable(text: str) -> str:
    if not text.isprintable() or len(text) > 4000:
        raise ValueError(f"'{excerpt(text)}' cannot be passed on; write printable characters")
    return str(text)


def _read_paragraph(scalar: Scalar) -> str:
    if text := "\n".join(map(_read_printable, scalar.split("\n"))).strip():
        return text
    raise ValueError("there is no text; write some")


def _read_property(scalar: Scalar) -> str:
    """Text of a property's value as Hadoop reads it: a size with a unit becomes bytes."""
    value = scalar.value
    if value is None:
        raise ValueError("there is no value; write one, or remove the line")
    if isinstance(value, bool):
        return str(value).lower()
    return str(parse_bytes(scalar)) if has_unit(scalar) else _read_printable(scalar)


def argument_value(scalar: Scalar) -> str | int | float:
    """Value of a workload's argument: a number or a text; `ValueError` for anything else."""
    value = scalar.value
    if value is None or isinstance(value, bool):
        return _read_property(scalar)
    return value if isinstance(value, int | float) else _read_printable(scalar)


def _filled_list(value: Any, info: ValidationInfo) -> Any:
    """Give *value* back where it is a list with something in it."""
    if info.context and not isinstance(value, list):
        raise ValueError("is not a list; write [A, B], or a line '- A' for each")
    if info.context and not value:
        raise ValueError("is an empty list; give a value, or remove the line")
    return value


class _Listed:
    """Annotates a tuple that a file writes as a list without repeats, or as a single value."""

    @staticmethod
    def _read(value: Any, handler: Callable[[Any], Any], info: ValidationInfo) -> Any:
        items = list(value) if isinstance(value, list | tuple) else [value]
        axis = handler(_filled_list(items, info))
        first: dict[Any, Any] = {}
        for index, item in enumerate(axis if info.context else ()):
            earlier = first.setdefault(item, items[index])
            if earlier is not items[index]:
                problem = f"'{excerpt(items[index].written)}' is given twice"
                if earlier.written != items[index].written:
                    problem += f", first as '{excerpt(earlier.written)}'"
                details = {"what": problem, "index": index}
                raise PydanticCustomError("given_twice", "{what}; leave one", details)
        return axis

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> core_schema.CoreSchema:
        return core_schema.with_info_wrap_validator_function(self._read, handler(source))

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        listed: dict[str, Any] = handler(schema) | {"minItems": 1}
        return {"anyOf": [listed["items"], listed]}


def _word_or_count(
    fields: tuple[str, str], words: Collection[str], keys: Collection[str], complaint: str
) -> _Annotations:
    """Annotations of a record that a file writes as one of *words*, or as a key with a count."""

    def read(contents: Any, info: ValidationInfo) -> Any:
        if not info.context:
            return contents
        if isinstance(contents, str) and contents in words:
            return {fields[0]: str(contents)}
        if isinstance(contents, dict) and len(contents) == 1 and contents.keys() <= set(keys):
            return dict(zip(fields, *contents.items(), strict=True))
        raise ValueError(complaint)

    count = {"type": "integer", "minimum": 1}
    counted = {
        "type": "object",
        "minProperties": 1,
        "maxProperties": 1,
        "additionalProperties": False,
        "properties": dict.fromkeys(keys, count),
    }
    return BeforeValidator(read), WithJsonSchema({"anyOf": [{"enum": [*words]}, counted]})


def _cores(word: str = "", fix: str = "write one such as 0.5") -> _Annotations:
    return _number("number of cores", LEAST_CORES, 1000, fix, whole=False, word=word)


def _rate(least: float, example: str, word: str = "") -> _Annotations:
    return _quantity(parse_rate, least, f"is too slow; write {example} or more", _RATE, word)


def _memory(word: str = "") -> _Annotations:
    complaint = "is too little for the daemons; write 1 GiB or more"
    return _quantity(parse_bytes, LEAST_MEMORY, complaint, _SIZE, word)


_DISK = (MIB, "1 MiB/s")
_NETWORK = (LEAST_NETWORK, "1 Mbit/s")
_ADDRESS = r"[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?"
_MODES = get_args(TraceMode)

# Not a key of the file, whose names may be paths; left out where there is none.
_UNSET: dict[str, Any] = {"exclude_if": lambda value: not value}
_CODE: dict[str, Any] = {"validation_alias": "(code)", **_UNSET}

Axis = Annotated[tuple[T, ...], _Listed()]
_Printable = Annotated[str, *_written(_read_printable, {"type": "string"})]
Count = Annotated[int, *_number("whole number", 1, 10**6)]
Seed = Annotated[int, *_number("whole number", 0, 2**31 - 1)]
Gpus = Annotated[int, *_number("number of GPUs", 0, 64, "write how many a node has", word="auto")]
Flag = Annotated[bool, *_written(_read_flag, {"type": "boolean"})]
_NO_SIZE = "is not a size to work with; write 32 MiB or 200 MB"
Size = Annotated[int, *_quantity(parse_bytes, 1, _NO_SIZE, _SIZE)]
_NO_TIME = "is not a time to wait; write 90 s or 10 min"
Time = Annotated[float, *_quantity(parse_duration, 1e-9, _NO_TIME, _TIME, most=1e9)]
InputSize = Annotated[Size, WithJsonSchema(_SIZE | {"examples": ["32 MiB", "tiny"]})]
Properties = dict[str, Axis[Annotated[str, *_written(_read_property, _ANY)]]]
Argument = Annotated[str | int | float, *_written(argument_value, _ANY)]
KeyFile = Annotated[str, *_like(r"[A-Za-z0-9._/~@+-]{1,400}", "path of a key", "~/.ssh/id_ed25519")]


class _FileRecord(Record):
    """A record that a file holds: its aliases are the keys of the file."""

    model_config = ConfigDict(
        validate_by_name=True,
        alias_generator=AliasGenerator(validation_alias=lambda name: _UNIT_IN_NAME.sub("", name)),
        use_attribute_docstrings=True,
    )


class Node(_FileRecord):
    """
    Slots, memory, GPUs and limits of each worker; every key is an axis.

    A limit that is not given leaves the node what the machine has.
    """

    map_slots: Axis[Count] = (1,)
    """map tasks that run at once (default: 1)"""
    reduce_slots: Axis[Count] = (1,)
    """reduce tasks that run at once (default: 1)"""
    task_memory_bytes: Axis[Size] = (512 * MIB,)
    """memory of each task's container (default: 512 MiB)"""
    gpus: Axis[Gpus] = (0,)
    """GPUs that YARN offers, or auto: as many as the node has (default: 0)"""
    # Whether the file had auto; not a key of the file.
    gpus_found: SkipJsonSchema[bool] = Field(default=False, validation_alias="(gpus found)")
    cores: Axis[Annotated[float | None, *_cores(UNLIMITED)]] = (None,)
    """processor cores, such as 0.5 (default: unlimited)"""
    disk_bytes_per_s: Axis[Annotated[int | None, *_rate(*_DISK, UNLIMITED)]] = (None,)
    """disk bandwidth for reads and for writes (default: unlimited)"""
    network_bytes_per_s: Axis[Annotated[int | None, *_rate(*_NETWORK, UNLIMITED)]] = (None,)
    """network bandwidth in each direction (default: unlimited)"""
    memory_bytes: Axis[Annotated[int | None, *_memory(UNLIMITED)]] = (None,)
    """memory for processes and page cache (default: unlimited)"""


class NodeLimits(_FileRecord, Hardware):
    """Limits of a single worker; they override those of all workers."""

    cores: Annotated[float | None, *_cores()] = None
    """processor cores, such as 0.5 (default: that of cluster.node)"""
    disk_bytes_per_s: Annotated[int | None, *_rate(*_DISK)] = None
    """disk bandwidth for reads and for writes (default: that of cluster.node)"""
    network_bytes_per_s: Annotated[int | None, *_rate(*_NETWORK)] = None
    """network bandwidth in each direction (default: that of cluster.node)"""
    memory_bytes: Annotated[int | None, *_memory()] = None
    """memory for processes and page cache (default: that of cluster.node)"""

    @model_validator(mode="after")
    def _limit_something(self) -> NodeLimits:
        if not self.limited:
            raise ValueError("limits nothing; write cores, disk, network, memory, or remove it")
        return self


class SshSettings(_FileRecord, SshAccess):
    """How the hosts are reached."""

    user: Annotated[str, *_like(r"[a-z_][a-z0-9_-]{0,31}", "name of a user", "hadoop")] = "root"
    """user to log in as (default: root)"""
    key: KeyFile | None = None
    """file of the private key (default: the keys of the SSH agent)"""
    port: Annotated[int, *_number("whole number", 1, 65535)] = 22
    """port of sshd on the hosts (default: 22)"""
    become: Flag = False
    """use sudo to become root (default: false)"""
    keep: Flag = False
    """leave Hadoop on the hosts for the next start (default: false)"""


class ClusterAxes(_FileRecord):
    """The cluster to measure on; trials are grouped by cluster, and each cluster starts once."""

    provider: Annotated[str, *_name_of("provider")] = "local"
    """what makes the cluster: see 'harness list providers' (default: local)"""
    workers: Axis[Count] = (3,)
    """number of workers, or a list of numbers (default: 3)"""
    node: Node = Node()
    """slots, memory, GPUs and limits of each worker"""
    nodes: dict[str, NodeLimits] = Field(default_factory=dict)
    """limits of single workers such as worker2, the same in every cell"""
    site: Properties = Field(default_factory=dict)
    """cluster-wide Hadoop properties; a list is an axis"""
    hosts: Axis[Annotated[str, *_like(_ADDRESS, "name or IPv4 address of a host", "10.0.0.7")]] = ()
    """existing hosts to use, the master first"""
    ssh: SshSettings | None = None
    """how the hosts are reached"""
    exposed: Flag = False
    """accept a cluster that others can reach, where it cannot be fenced (default: false)"""

    @model_validator(mode="before")
    @classmethod
    def _count_workers(cls, contents: Any) -> Any:
        """Let the hosts say how many workers there are, where the file does not."""
        hosts = contents.get("hosts") if isinstance(contents, dict) else None
        if isinstance(hosts, list) and hosts:
            return {"workers": (max(1, len(hosts) - 1),), **contents}
        return contents


class WorkloadAxes(_FileRecord):
    """A workload, its input sizes and its further arguments, each an axis."""

    model_config = ConfigDict(
        json_schema_extra={"additionalProperties": TypeAdapter(Axis[Argument]).json_schema()}
    )

    name: Annotated[str, *_name_of("workload", **_OR_PATH)]
    """a workload: see 'harness list workloads'; ./mine.py:Mine is one of your own"""
    input_bytes: Axis[InputSize]
    """a size such as 32 MiB, a named size such as tiny, or a list of them"""
    seed: Seed = 1
    """seed of the generated input (default: 1)"""
    # Not a key of the file: each argument is.
    parameters: SkipJsonSchema[dict[str, Axis[Argument]]] = Field(
        default_factory=dict, validation_alias="(parameters)"
    )
    code: SkipJsonSchema[Code | None] = Field(default=None, **_CODE)

    @model_validator(mode="before")
    @classmethod
    def _gather_parameters(cls, contents: Any, info: ValidationInfo) -> Any:
        """Put the further keys of a file's entry together; unknown ones are left to be refused."""
        if not info.context or not isinstance(contents, dict):
            return contents
        parameters_by_workload = info.context["parameters"]
        candidates = contents.keys() - {"name", "input", "seed"}
        if parameters_by_workload is not None:
            candidates &= {*parameters_by_workload.get(str(contents.get("name")), ())}
        parameters: dict[str, Any] = {}
        fields: dict[str, Any] = {}
        for key, value in contents.items():
            is_parameter = key in candidates and NAME.fullmatch(key)
            (parameters if is_parameter else fields)[key] = value
        return {**fields, "(parameters)": parameters}


class Design(_FileRecord):
    """
    Which points of the grid are taken: all, or *points* of a space-filling choice.

    Of a drawn one so many are drawn, after profiling, where the asked models disagree.
    """

    kind: Literal["full", "sobol", "latin", "drawn"] = "full"
    points: Count | None = None


class _OrAuto:
    """Annotates properties in whose place a file may have the word `AUTO`."""

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        return {"anyOf": [{"const": AUTO}, handler(schema)]}


class Predict(_FileRecord):
    """The models to score, and the cells that feed the profiles."""

    models: Axis[Annotated[str, *_name_of("model", **_OR_PATH)]]
    """models to score: see 'harness list models'; ./mine.py:Mine is one of your own"""
    code: SkipJsonSchema[dict[str, Code]] = Field(default_factory=dict, **_CODE)
    profile_on: Annotated[Properties, _OrAuto()] = Field(default_factory=dict)
    """values of axes that select the cells for the profiles, never scored; auto: chosen to cover"""
    # Ids of the cells that were chosen for `profile_on: auto`: none until they are.  Not a key of
    # the file.
    cells: SkipJsonSchema[tuple[str, ...] | None] = Field(
        default=None, validation_alias="(cells)", exclude_if=lambda value: value is None
    )
    profile_repeat: Annotated[int, *_number("whole number", 0, 100)] = Field(0, **_UNSET)
    """trials of each profiling cell, where these are more than of the others; 0: as many"""
    source: _Printable = Field("", validation_alias="from", **_UNSET)
    """a run whose profiles are taken, by its id or folder: those of profile_on run as sentinels"""
    hardware: Axis[_Printable] = Field((), **_UNSET)
    """two files of harness calibrate: the machine of that run, and this one"""
    order: Annotated[
        Literal["blind", "mixed"],
        *_text("blind|mixed", "is not an order; write blind or mixed", enum=["blind", "mixed"]),
    ] = "blind"
    """blind: scored cells are measured after predictions were sealed; or mixed (default: blind)"""

    @property
    def is_auto(self) -> bool:
        """Whether the profiling cells are chosen so that they cover the grid."""
        return self.cells is not None

    @property
    def is_blind(self) -> bool:
        """Whether there are predictions to be sealed before the scored cells are measured."""
        has_profiles = self.is_auto or bool(self.profile_on or self.source)
        return self.order == "blind" and bool(self.models) and has_profiles

    @model_validator(mode="before")
    @classmethod
    def _read_auto(cls, contents: Any) -> Any:
        """A file has `AUTO` in the place of the axes: no cell is chosen yet."""
        if isinstance(contents, dict) and contents.get("profile_on") == AUTO:
            return {**contents, "profile_on": {}, "(cells)": ()}
        return contents


class Nightly(_FileRecord):
    """What `harness nightly` does beside measuring."""

    controls: Axis[Annotated[str, *_name_of("workload")]] = ()
    """workloads that no model is asked about: what they show is the cluster's"""
    confirm: Annotated[int, *_number("whole number", 0, 100)] = 4
    """repeats of each cell that seems to have moved, at once, or 0 (default: 4)"""
    on_alarm: _Printable = ""
    """command that is run with new alarms as JSON on its input (default: none)"""


class AskedQuestion(_FileRecord, Question):
    """What is asked of the run: one kind of question, in words if you like."""

    title: Annotated[str, *_written(_read_paragraph, {"type": "string"})] = ""
    """the question in words (default: made of the rest)"""
    how_far: Annotated[str, *_name_of("model", **_OR_PATH)] = ""
    """how far a model is off; best: the one that errs least"""
    nearer: Axis[Annotated[str, *_name_of("model", **_OR_PATH)]] = ()
    """models: whether the first is nearer than each of the others"""
    choice: Annotated[int, *_number("whole number", 1, 1000)] = 0
    """which model chooses the best settings, with so many first choices tried"""
    claims: _Printable = ""
    """a paper whose claims are checked: prophet"""
    moved_since: _Printable = ""
    """an earlier run of the same cells, by its id or folder: what moved"""
    scope: Annotated[
        Literal["jobs", "inputs"],
        *_text("jobs|inputs", "is not a scope; write jobs or inputs", enum=["jobs", "inputs"]),
    ] = "jobs"
    """jobs: the answer is for these jobs; inputs: for inputs of their kind (default: jobs)"""
    extrapolate: Annotated[
        Extrapolate,
        *_written(
            _read_extrapolate,
            {"anyOf": [{"enum": ["only", "in", "out"]}, {"type": "boolean"}]},
        ),
    ] = False
    """extrapolated cells: only they count, in like others, or out (default: in; out with auto)"""
    anyway: Flag = False
    """true: measure although the design decides nothing; the answer is explored (default: false)"""

    @model_validator(mode="before")
    @classmethod
    def _read_words(cls, contents: Any) -> Any:
        """A text alone is a title: how far the best model is off."""
        if isinstance(contents, str):
            return {"title": contents, "how_far": BEST}
        if not isinstance(contents, dict | Question):
            raise ValueError("is no question; write a text, or one of {nearer: [A, B]} and others")
        return contents


class _OrText:
    """Annotates a record that a file may write as a text alone."""

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        return {"anyOf": [{"type": "string"}, handler(schema)]}


class Experiment(_FileRecord):
    """A question, the grid that answers it, and how it is measured."""

    model_config = ConfigDict(title="An experiment of mapreduce-harness")

    schema_version: Literal[1] = Field(default=1, validation_alias="schema")
    """version of this format: 1"""
    name: Annotated[str, *_name_of("experiment")]
    """a short name, which is also the name of the results folder"""
    question: Annotated[AskedQuestion, _OrText()] = AskedQuestion(how_far=BEST)
    """what is asked, required where models are: a sentence, or {nearer: [prophet, whatif]}"""
    cluster: ClusterAxes = ClusterAxes()
    """the cluster to measure on"""
    workloads: Annotated[
        tuple[WorkloadAxes, ...],
        BeforeValidator(_filled_list),
        Field(json_schema_extra={"minItems": 1}),
    ]
    """a list such as [{name: wordcount, input: [32 MiB, 64 MiB]}]"""
    configuration: Properties = Field(default_factory=dict)
    """Hadoop properties of each job; a list is an axis"""
    design: Annotated[
        Design,
        *_word_or_count(
            ("kind", "points"),
            ["full"],
            ["sobol", "latin", "drawn"],
            "is not a valid design; write full, {sobol: 32} or {latin: 32}, or {drawn: 24}",
        ),
    ] = Design()
    """full, {sobol: N}, {latin: N}, or {drawn: N}: where models disagree (default: full)"""
    repeat: Annotated[int, *_number("whole number", 1, 10**6, word="until decided")] = 3
    """trials of each cell, or until decided: as few as a verdict takes (default: 3)"""
    fastest: Annotated[int, *_number("whole number", 0, 10**6)] = 0
    """cells of each input that get all repeats, the others one; 0: all cells (default: 0)"""
    budget_s: Time = 1200.0
    """the longest time of all scored trials with repeat: until decided (default: 20 min)"""
    sentinels: Annotated[int, *_number("whole number", 0, 100)] = 0
    """N: each Nth trial after the seal repeats a profiling cell, for drift; 0: none (default: 0)"""
    starts: Annotated[int, *_number("whole number", 1, 100)] = 1
    """starts over which repeats of each cluster of a grid are spread, in turn (default: 1)"""
    warmup: Annotated[int, *_number("whole number", 0, 100)] = 1
    """uncounted trials after each start of a cluster (default: 1)"""
    seed: Seed = 7
    """seed of the order of trials and of the design (default: 7)"""
    trial_limit_s: Time = 600.0
    """the longest time that a trial may take (default: 10 min)"""
    tracing: Annotated[
        Tracing,
        *_word_or_count(
            ("mode", "unit_records"),
            _MODES,
            ["units"],
            f"is not a way of tracing; write {', '.join(_MODES)}, or {{units: 5}}",
        ),
    ] = Field(Tracing(), validation_alias="trace")
    """what tasks record: spans, units, {units: N}, logs or off (default: spans)"""
    predict: Predict = Predict(models=(), profile_on={})
    """what to predict, and from which cells"""
    nightly: Nightly = Nightly()
    """what 'harness nightly' does beside measuring"""

    def with_gpus(self, count: int) -> Experiment:
        """This experiment with *count* devices of a node in the place of ``gpus: auto``."""
        gpus = tuple(count if number == AUTO_GPUS else number for number in self.cluster.node.gpus)
        node = self.cluster.node.model_copy(update={"gpus": gpus, "gpus_found": True})
        cluster = self.cluster.model_copy(update={"node": node})
        return self.model_copy(update={"cluster": cluster})

    def with_cells(self, chosen: Collection[str]) -> Experiment:
        """This experiment with the ids of the cells *chosen* for ``profile_on: auto``."""
        predict = self.predict.model_copy(update={"cells": tuple(chosen)})
        return self.model_copy(update={"predict": predict})

    def asking(self, question: Question) -> Experiment:
        """
        This experiment with *question*, which leaves extrapolated cells out unless it says.

        Where users name the profiling cells themselves, it has them in unless it says.
        """
        if self.predict.is_auto and "extrapolate" not in question.model_fields_set:
            question = question.model_copy(update={"extrapolate": "out"})
        return self.model_copy(update={"question": question})

    @property
    def title(self) -> str:
        """The question in words; the name of an experiment that asks no model anything."""
        if self.question.title or not self.predict.models:
            return self.question.title or self.name
        return self.question.as_words()

    @property
    def was_imported(self) -> bool:
        """Whether its jobs had run before: no file has its cells, and nobody chose a seed."""
        return is_imported(self.cluster.provider)

    @property
    def own_code(self) -> dict[str, Code]:
        """Models and workloads of the user's own, by their names."""
        workloads = {spec.name: spec.code for spec in self.workloads if spec.code is not None}
        return {**self.predict.code, **workloads}

    @property
    def is_until_decided(self) -> bool:
        """Whether trials are added until the models' comparison has a verdict."""
        return self.repeat == UNTIL_DECIDED

    @property
    def is_drawn(self) -> bool:
        """Whether its scored cells are drawn once the profiling cells are measured."""
        return self.design.kind == "drawn"

    @property
    def asked_models(self) -> tuple[str, ...]:
        """Models that the question names, or else all that predict."""
        return self.question.models or self.predict.models

    @property
    def first_repeats(self) -> int:
        """Trials of each scored cell that are planned from the start."""
        if self.is_until_decided:
            return 2
        return 1 if self.fastest else self.repeat

    @property
    def profiling_repeats(self) -> int:
        """Trials of each profiling cell: two show the noise."""
        return max(self.repeat, self.first_repeats, self.predict.profile_repeat)
