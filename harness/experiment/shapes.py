"""
Shapes that a part of a file can have: each reads a node, and says itself as JSON Schema.

The file format is a table of shapes (`harness.experiment.codec`), so the reader and the schema that
editors use cannot disagree.  A shape notes what is wrong and then answers anything; nobody uses
the answer before `Problems.check`.
"""

from __future__ import annotations

import re

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from harness.experiment.yamltree import Entries, Items, Node, Problems, Scalar, nearest, shown
from harness.units import MIB, parse_bytes, parse_duration

Schema = dict[str, Any]

AUTO = "auto"
MOST_GPUS = 64  # of one node

# A slash stands in the names of YARN's resources: mapreduce.map.resource.yarn.io/gpu.
_PROPERTY = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,199}(/[A-Za-z][A-Za-z0-9_-]{0,99})?", re.ASCII)
_ARGUMENT = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}", re.ASCII)
_SIZE = re.compile(r"[0-9]+(\.[0-9]+)?\s*[KkMGT]?i?B")


class Shape(Protocol):
    """What a node must be."""

    def read(self, node: Node, path: str, problems: Problems) -> Any:
        """Value of *node*, which stands at *path* in the file."""
        ...

    def schema(self) -> Schema:
        """JSON Schema of the nodes that `read` accepts."""
        ...


@dataclass(frozen=True, slots=True)
class Value:
    """
    A scalar; *convert* makes its value or raises `ValueError` that says what to write.

    An error's text may hold the fix after a semicolon, or after a colon where it says `write`.
    """

    convert: Callable[[Scalar], Any]
    json: Schema

    def read(self, node: Node, path: str, problems: Problems) -> Any:
        """Convert the scalar."""
        if not isinstance(node, Scalar):
            problems.add(node.at, f"{path} is not a single value", "write one value here")
            return None
        try:
            return self.convert(node)
        except ValueError as error:
            what, _, fix = re.sub(r": (?=write )", "; ", str(error), count=1).partition("; ")
            problems.add(node.at, f"{path}: {what}", fix or "correct this value")
            return None

    def schema(self) -> Schema:
        """Return the schema of the scalar."""
        return dict(self.json)


@dataclass(frozen=True, slots=True)
class Listed:
    """A list of *of*, none twice; a scalar stands for a list of one where *bare*."""

    of: Shape
    bare: bool = True
    unique: bool = True

    def read(self, node: Node, path: str, problems: Problems) -> Any:
        """Read each item; the answer is a tuple."""
        if not isinstance(node, Items):
            if self.bare:
                return (self.of.read(node, path, problems),)
            problems.add(node.at, f"{path} is not a list", "write [A, B], or a line '- A' for each")
            return ()
        if not node.items:
            problems.add(node.at, f"{path} is an empty list", "give a value, or remove the line")
        found: list[Any] = []
        for index, item in enumerate(node.items):
            value = self.of.read(item, f"{path}.{index}", problems)
            if self.unique and value is not None and value in found:
                problems.add(item.at, f"{path}: {_written(item)} is given twice", "leave one")
            found.append(value)
        return tuple(found)

    def schema(self) -> Schema:
        """Return the schema of an item, or of a list of them."""
        listed: Schema = {"type": "array", "items": self.of.schema(), "minItems": 1}
        return {"anyOf": [self.of.schema(), listed]} if self.bare else listed


@dataclass(frozen=True, slots=True)
class Key:
    """A key of a mapping: the *shape* of its value, the *field* of the record that it fills."""

    shape: Shape
    field: str
    help: str = ""
    required: bool = False


@dataclass(frozen=True, slots=True)
class Keys:
    """
    A mapping with the given keys.

    With *rest*, further keys are allowed and come back, read as *rest*, under ``parameters``;
    *allowed* tells from the values which of them exist (`None`: any).
    """

    keys: Mapping[str, Key]
    rest: Shape | None = None
    allowed: Callable[[Mapping[str, Any]], Collection[str] | None] = field(
        default=lambda values: None  # noqa: ARG005 - any further key
    )

    def read(self, node: Node, path: str, problems: Problems) -> Any:
        """Read each key; the answer maps the fields that are given."""
        if not isinstance(node, Entries):
            problems.add(node.at, f"{path or 'the file'} is not a mapping", self._example())
            return {}
        known = {name: value for name, value in node.entries.items() if name in self.keys}
        values = {
            self.keys[name].field: self.keys[name].shape.read(value, _join(path, name), problems)
            for name, value in known.items()
        }
        self._further(node, path, values, problems)
        for name, key in self.keys.items():
            if key.required and name not in node.entries:
                what = f"{path or 'the experiment'} lacks '{name}'"
                problems.add(node.at, what, f"add {name}: {key.help}")
        return values

    def _further(
        self, node: Entries, path: str, values: dict[str, Any], problems: Problems
    ) -> None:
        """Read the keys that are not in the table, or note that they are unknown."""
        extra = [name for name in node.entries if name not in self.keys]
        allowed = () if self.rest is None else self.allowed(values)
        parameters = {}
        for name in extra:
            if self.rest is not None and _ARGUMENT.fullmatch(name) and allowed is None:
                pass
            elif not allowed or name not in allowed:
                what = f"unknown key '{shown(name)}' in {path or 'the experiment'}"
                fix = nearest(name, [*self.keys, *(allowed or ())])
                problems.add(node.keys[name], what, fix)
                continue
            assert self.rest is not None
            parameters[name] = self.rest.read(node.entries[name], _join(path, name), problems)
        if parameters:
            values["parameters"] = parameters

    def _example(self) -> str:
        return "write NAME: VALUE lines; names are " + ", ".join(self.keys)

    def schema(self) -> Schema:
        """Return the schema of the mapping."""
        properties = {
            name: key.shape.schema() | ({"description": key.help} if key.help else {})
            for name, key in self.keys.items()
        }
        return {
            "type": "object",
            "properties": properties,
            "required": [name for name, key in self.keys.items() if key.required],
            "additionalProperties": False if self.rest is None else self.rest.schema(),
        }


@dataclass(frozen=True, slots=True)
class Properties:
    """
    A mapping from names of Hadoop properties to their values, each an axis, as Hadoop's text.

    *objection* says what is wrong with a name, and what to write.
    """

    objection: Callable[[str], tuple[str, str] | None] = lambda name: None  # noqa: ARG005

    def read(self, node: Node, path: str, problems: Problems) -> Any:
        """Read each property; the answer maps its name to a tuple of texts."""
        if not isinstance(node, Entries):
            problems.add(node.at, f"{path} is not a mapping", "write PROPERTY: VALUE lines")
            return {}
        found = {}
        for name, value in node.entries.items():
            if _PROPERTY.fullmatch(name) is None:
                what = f"{path}: '{shown(name)}' is not the name of a property"
                problems.add(node.keys[name], what, "write a name such as mapreduce.job.reduces")
            elif wrong := self.objection(name):
                problems.add(node.keys[name], f"{path}: {wrong[0]}", wrong[1])
            shape = Listed(Value(lambda s, n=name: hadoop_text(s, n), {}))  # type: ignore[misc]
            found[name] = shape.read(value, _join(path, name), problems)
        return found

    def schema(self) -> Schema:
        """Return the schema of the mapping."""
        scalar: Schema = {"type": ["string", "number", "boolean"]}
        listed = {"type": "array", "items": scalar, "minItems": 1}
        return {"type": "object", "additionalProperties": {"anyOf": [scalar, listed]}}


def hadoop_text(node: Scalar, name: str = "") -> str:
    """
    Text of a property's value as Hadoop reads it.

    Numbers stay as they were written, ``True`` becomes ``true``, and a size with a unit, which
    Hadoop would not understand, becomes bytes.
    """
    value = node.value
    if value is None:
        raise ValueError("there is no value; write one, or remove the line")
    if isinstance(value, bool):
        return str(value).lower()
    if _SIZE.fullmatch(node.text.strip()):
        if name.endswith((".mb", "-mb")):
            whole = max(1, round(parse_bytes(node.text) / MIB))
            raise ValueError(f"'{node.text}' for a number of MiB; write {whole}")
        return str(parse_bytes(node.text))
    return _printable(node.text)


def argument(node: Scalar) -> str | int | float:
    """Value of a workload's argument: a number or a text."""
    value = node.value
    if value is None or isinstance(value, bool):
        return hadoop_text(node)
    return value if isinstance(value, int | float) else _printable(value)


def size(node: Scalar) -> int:
    """Bytes, at least one."""
    value = node.value
    whole = parse_bytes(value if isinstance(value, int) else node.text)
    if not 1 <= whole < 2**63:
        raise ValueError(f"'{shown(node.text)}' is no size to work with; write 32 MiB or 200 MB")
    return whole


def duration(node: Scalar) -> float:
    """Seconds, more than none."""
    value = node.value
    seconds = parse_duration(value if isinstance(value, int | float) else node.text)
    if not 0 < seconds < 1e9:
        raise ValueError(f"'{shown(node.text)}' is no time to wait; write 90 s or 10 min")
    return seconds


def whole(least: int, most: int = 10**6) -> Callable[[Scalar], int]:
    """Make a reader of whole numbers from *least* to *most*."""

    def read(node: Scalar) -> int:
        value = node.value
        if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
            return value
        raise ValueError(
            f"'{shown(node.text)}' is not a whole number from {least} to {most};"
            f" write one such as {max(least, 3)}"
        )

    return read


def gpus(node: Scalar) -> int | str:
    """GPUs of a node: a number, or `AUTO`."""
    if node.text == AUTO:
        return AUTO
    try:
        return whole(0, MOST_GPUS)(node)
    except ValueError:
        what = f"'{shown(node.text)}' is no number of GPUs from 0 to {MOST_GPUS}"
        raise ValueError(f"{what}; write 1, or auto for those that a node has") from None


def text(node: Scalar) -> str:
    """Text for people, of one line or more."""
    lines = [_printable(line) for line in node.text.split("\n")]
    if not "".join(lines).strip():
        raise ValueError("there is no text; write some")
    return "\n".join(lines).strip()


def one_of(known: Collection[str] | None, what: str) -> Callable[[Scalar], str]:
    """Make a reader of names of a *what*, which must be *known* where that is not `None`."""

    def read(node: Scalar) -> str:
        if _ARGUMENT.fullmatch(node.text) is None:
            raise ValueError(
                f"'{shown(node.text)}' cannot name the {what};"
                " use letters, digits, _ and -, beginning with a letter"
            )
        if known is not None and node.text not in known:
            raise ValueError(
                f"there is no {what} '{shown(node.text)}'; {nearest(node.text, list(known))}"
            )
        return node.text

    return read


def _printable(value: str) -> str:
    if not value.isprintable() or len(value) > 4000:
        raise ValueError(f"'{shown(value)}' cannot be passed on; write printable characters")
    return value


def _join(path: str, name: str) -> str:
    return f"{path}.{shown(name)}" if path else shown(name)


def _written(node: Node) -> str:
    return f"'{shown(node.text)}'" if isinstance(node, Scalar) else "this item"
