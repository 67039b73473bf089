"""
Values of an experiment file: scalars as they were written, and the types that fields read them as.

A type's reader takes a scalar of a file, and refuses it by `ValueError`: "what is wrong; what to
write".  Values of a stored record are good as they are.
"""

from __future__ import annotations

import re

from collections.abc import Callable
from typing import Annotated, Any, Final, Self, TypeVar

from pydantic import (
    BeforeValidator,
    Field,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    ValidationInfo,
    WithJsonSchema,
)
from pydantic_core import PydanticCustomError, core_schema

from harness.text import excerpt
from harness.units import MIB, parse_bytes, parse_duration, parse_rate

FORMAT = 1
UNLIMITED = "unlimited"
AUTO_GPUS = -1  # in the place of ``gpus: auto`` until the provider has counted
MOST_GPUS = 64  # of one node
LEAST_CORES, MOST_CORES = 0.05, 1000  # 0.05: a millisecond in every twenty; daemons need as much
LEAST_NETWORK = 125_000  # bytes per second: daemons miss their heartbeats below
LEAST_MEMORY = 1024 * MIB  # bytes: a DataNode, a NodeManager, an application master

_INTEGER = re.compile(r"[-+]?[0-9]{1,18}")
_REAL = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]{1,2})?")
_WORDS: dict[str, bool | None] = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
}
NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}", re.ASCII)
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


def _reader(read: Callable[[Scalar], Any]) -> BeforeValidator:
    """Validate scalars of a file by *read*; values of a stored record are good as they are."""

    def validate(value: object) -> object:
        if isinstance(value, dict | list):
            raise ValueError("is not a single value; write one value here")
        return read(value) if isinstance(value, Scalar) else value

    return BeforeValidator(validate)


def _number(
    noun: str,
    least: float,
    most: float,
    write: str = "",
    *,
    whole: bool = True,
    auto: bool = False,
) -> Callable[[Scalar], float]:
    """Make a reader of numbers from *least* to *most*, or of ``auto``."""

    def read(scalar: Scalar) -> float:
        number = scalar.value
        if auto and scalar == "auto":
            return AUTO_GPUS
        if isinstance(number, int if whole else int | float) and not isinstance(number, bool):
            assert isinstance(number, int | float)
            if least <= number <= most:
                return number
        wrong = f"'{excerpt(scalar)}' is not a {noun} from {least} to {most}"
        raise ValueError(f"{wrong}; {write or f'write one such as {max(least, 3)}'}")

    return read


def _quantity(
    parse: Callable[[Scalar], float], least: float, most: float, complaint: str
) -> Callable[[Scalar], float]:
    """Make a reader of what *parse* understands; *complaint* is about what is out of bounds."""

    def read(scalar: Scalar) -> float:
        quantity = parse(scalar)
        if not least <= quantity < most:
            raise ValueError(f"'{excerpt(scalar)}' {complaint}")
        return quantity

    return read


def _bytes(scalar: Scalar) -> int:
    return parse_bytes(scalar.value if isinstance(scalar.value, int) else str(scalar))


def _seconds(scalar: Scalar) -> float:
    value = scalar.value
    return parse_duration(value if isinstance(value, int | float) else str(scalar))


def _or_unlimited(read: Callable[[Scalar], float]) -> BeforeValidator:
    def read_either(scalar: Scalar) -> float | None:
        if scalar == UNLIMITED:
            return None
        try:
            return read(scalar)
        except ValueError as error:
            raise ValueError(f"{error}, or {UNLIMITED}") from None

    return _reader(read_either)


def _flag(scalar: Scalar) -> bool:
    if not isinstance(scalar.value, bool):
        raise ValueError(f"'{excerpt(scalar)}' is neither; write true or false")
    return scalar.value


def _printable_text(scalar: Scalar) -> str:
    text = str(scalar)
    if not text.isprintable() or len(text) > 4000:
        raise ValueError(f"'{excerpt(text)}' cannot be passed on; write printable characters")
    return text


def _paragraph(scalar: Scalar) -> str:
    lines = [_printable_text(Scalar(line)) for line in scalar.split("\n")]
    if not "".join(lines).strip():
        raise ValueError("there is no text; write some")
    return "\n".join(lines).strip()


def has_unit(scalar: str) -> bool:
    """Whether *scalar* is a size with its unit."""
    return _SIZE_WITH_UNIT.fullmatch(scalar.strip()) is not None


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


def argument_value(scalar: Scalar) -> str | int | float:
    """Value of a workload's argument: a number or a text; `ValueError` for anything else."""
    value = scalar.value
    if value is None or isinstance(value, bool):
        return _property_text(scalar)
    return value if isinstance(value, int | float) else _printable_text(scalar)


def _matching(pattern: re.Pattern[str], complaint: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if pattern.fullmatch(text) is None:
            raise ValueError(f"'{excerpt(text)}' {complaint}")
        return str(text)

    return read


def _name_of(noun: str) -> BeforeValidator:
    letters = "use letters, digits, _ and -, starting with a letter"
    return _reader(_matching(NAME, f"cannot name the {noun}; {letters}"))


def _like(pattern: str, noun: str, example: str) -> tuple[BeforeValidator, WithJsonSchema]:
    """Annotations of a text that matches *pattern*."""
    schema = {"type": "string", "pattern": f"^({pattern})$", "examples": [example]}
    complaint = f"is not a valid {noun}; write one such as {example}"
    return _reader(_matching(re.compile(pattern, re.ASCII), complaint)), WithJsonSchema(schema)


def filled_list(value: Any, info: ValidationInfo) -> Any:
    """Give *value* back where it is a list with something in it."""
    if info.context and not isinstance(value, list):
        raise ValueError("is not a list; write [A, B], or a line '- A' for each")
    if info.context and not value:
        raise ValueError("is an empty list; give a value, or remove the line")
    return value


def _distinct(value: Any, handler: Callable[[Any], Any], info: ValidationInfo) -> Any:
    """Read a list of which a file has none twice; a value alone stands for a list of one."""
    items = list(value) if isinstance(value, list | tuple) else [value]
    axis = handler(filled_list(items, info))
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


class _Listed:
    """Annotates a tuple that may be written as a list, or as a single value."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> core_schema.CoreSchema:
        return core_schema.with_info_wrap_validator_function(_distinct, handler(source))

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        listed: dict[str, Any] = handler(schema) | {"minItems": 1}
        return {"anyOf": [listed["items"], listed]}


Axis = Annotated[tuple[T, ...], _Listed()]


def _range_schema(kind: str, least: float, most: float) -> dict[str, Any]:
    return {"type": kind, "minimum": least, "maximum": most}


def _whole(least: int, most: int) -> tuple[BeforeValidator, WithJsonSchema]:
    """Annotations of a whole number from *least* to *most*."""
    schema = WithJsonSchema(_range_schema("integer", least, most))
    return _reader(_number("whole number", least, most)), schema


def _or_word(schema: dict[str, Any], word: str) -> WithJsonSchema:
    return WithJsonSchema({"anyOf": [schema, {"const": word}]})


_SIZE: dict[str, Any] = {"type": ["string", "integer"], "examples": ["32 MiB", "200 MB"]}
_RATE: dict[str, Any] = {"type": "string", "examples": ["20 MiB/s", "100 Mbit/s"]}
_SHARE = _range_schema("number", LEAST_CORES, MOST_CORES)
_ANY: dict[str, Any] = {"type": ["string", "number", "boolean"]}
ANY_AXIS: Any = {"anyOf": [_ANY, {"type": "array", "items": _ANY, "minItems": 1}]}

_read_size = _quantity(_bytes, 1, 2**63, "is not a size to work with; write 32 MiB or 200 MB")
_read_time = _quantity(_seconds, 1e-9, 1e9, "is not a time to wait; write 90 s or 10 min")
_read_cores = _number(
    "number of cores", LEAST_CORES, MOST_CORES, "write one such as 0.5", whole=False
)
_read_disk = _quantity(parse_rate, MIB, 2**63, "is too slow; write 1 MiB/s or more")
_read_network = _quantity(parse_rate, LEAST_NETWORK, 2**63, "is too slow; write 1 Mbit/s or more")
_read_memory = _quantity(_read_size, LEAST_MEMORY, 2**63, "holds no daemons; write 1 GiB or more")
_read_gpus = _number(
    "number of GPUs", 0, MOST_GPUS, "write 1, or auto for those that a node has", auto=True
)

Count = Annotated[PositiveInt, *_whole(1, 10**6)]
Warmups = Annotated[NonNegativeInt, *_whole(0, 100)]
Seed = Annotated[NonNegativeInt, *_whole(0, 2**31 - 1)]
Port = Annotated[PositiveInt, *_whole(1, 65535)]
Gpus = Annotated[
    int,
    Field(ge=AUTO_GPUS),
    _reader(_read_gpus),
    _or_word(_range_schema("integer", 0, MOST_GPUS), "auto"),
]
Flag = Annotated[bool, _reader(_flag)]
Size = Annotated[PositiveInt, _reader(_read_size), WithJsonSchema(_SIZE)]
InputSize = Annotated[Size, WithJsonSchema(_SIZE | {"examples": ["32 MiB", "tiny"]})]
Duration = Annotated[
    PositiveFloat,
    _reader(_read_time),
    WithJsonSchema({"type": ["string", "number"], "examples": ["10 min"]}),
]
Question = Annotated[str, _reader(_paragraph)]
Property = Annotated[str, _reader(_property_text), WithJsonSchema(_ANY)]
Properties = dict[str, Axis[Property]]
Argument = Annotated[str | int | float, _reader(argument_value), WithJsonSchema(_ANY)]

# Limits of one worker, and of all, where the word for none is one more value.
Cores = Annotated[PositiveFloat | None, _reader(_read_cores), WithJsonSchema(_SHARE)]
DiskRate = Annotated[PositiveInt | None, _reader(_read_disk), WithJsonSchema(_RATE)]
NetworkRate = Annotated[PositiveInt | None, _reader(_read_network), WithJsonSchema(_RATE)]
Memory = Annotated[PositiveInt | None, _reader(_read_memory), WithJsonSchema(_SIZE)]
AnyCores = Annotated[PositiveFloat | None, _or_unlimited(_read_cores), _or_word(_SHARE, UNLIMITED)]
AnyDisk = Annotated[PositiveInt | None, _or_unlimited(_read_disk), _or_word(_RATE, UNLIMITED)]
AnyNetwork = Annotated[PositiveInt | None, _or_unlimited(_read_network), _or_word(_RATE, UNLIMITED)]
AnyMemory = Annotated[PositiveInt | None, _or_unlimited(_read_memory), _or_word(_SIZE, UNLIMITED)]

ExperimentName = Annotated[str, _name_of("experiment")]
ProviderName = Annotated[str, _name_of("provider")]
WorkloadName = Annotated[str, _name_of("workload")]
ModelName = Annotated[str, _name_of("model")]
Host = Annotated[
    str,
    *_like(
        r"[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?|[0-9A-Fa-f:]{2,45}",
        "name or address of a host",
        "10.0.0.7",
    ),
]
User = Annotated[str, *_like(r"[a-z_][a-z0-9_-]{0,31}", "name of a user", "hadoop")]
KeyFile = Annotated[str, *_like(r"[A-Za-z0-9._/~@+-]{1,400}", "path of a key", "~/.ssh/id_ed25519")]
WorkerName = Annotated[
    str,
    BeforeValidator(
        _matching(
            re.compile(r"worker[1-9][0-9]{0,5}", re.ASCII),
            "is not the name of a worker; workers are called worker1, worker2, ...",
        )
    ),
]
