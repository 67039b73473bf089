"""
An object as Java's own serialization writes it, as plain fields: no class is looked for.

    stream      AC ED 00 05, then one object
    object      its class, then for each class from the top one down the values of its fields and,
                where the class writes more itself (maps, lists), blocks of bytes and objects
    reference   to what came before, by its number

Hadoop writes the index of aggregated logs so.
"""

from __future__ import annotations

import struct

from dataclasses import dataclass, field
from typing import Any, NamedTuple

_MAGIC = b"\xac\xed\x00\x05"
_NULL, _REFERENCE, _CLASS, _OBJECT, _STRING = 0x70, 0x71, 0x72, 0x73, 0x74
_BLOCK, _END_OF_BLOCKS, _ENUM = 0x77, 0x78, 0x7E
_FIRST_HANDLE = 0x7E0000
_WRITES_MORE = 0x01
_SERIALIZABLE = 0x02
_DEEPEST = 30
_FORMATS = {"B": ">b", "C": ">H", "D": ">d", "F": ">f", "I": ">i", "J": ">q", "S": ">h", "Z": ">?"}


@dataclass(slots=True)
class JavaObject:
    """The *fields* of an object by their names, and what its classes wrote besides, in order."""

    fields: dict[str, Any] = field(default_factory=dict)
    more: list[Any] = field(default_factory=list)


class _Class(NamedTuple):
    """Names and types of the fields that a class writes, and the class above it."""

    flags: int
    fields: list[tuple[str, str]]
    parent: _Class | None


def read_object(data: bytes) -> Any:
    """
    The object in *data*: a `JavaObject`, a text, or `None`.

    Of an enumeration it is the name.  `ValueError` for anything else than such an object.
    """
    if not data.startswith(_MAGIC):
        raise ValueError("not an object that Java has written")
    return _Stream(data).content(0)


class _Stream:
    """Reads contents one behind the other, and remembers those that can be referred to."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._place = len(_MAGIC)
        self._handles = list[Any]()

    def content(self, nesting: int) -> Any:
        """Read what comes next: an object, a text, bytes of a block, or `None`."""
        if nesting > _DEEPEST:
            raise ValueError(f"objects more than {_DEEPEST} deep")
        kind = self._number(">B")
        if kind == _NULL:
            return None
        if kind == _REFERENCE:
            return self._handle(self._number(">i") - _FIRST_HANDLE)
        if kind == _STRING:
            self._handles.append(self._text())
            return self._handles[-1]
        if kind == _BLOCK:
            return self._bytes(self._number(">B"))
        if kind == _OBJECT:
            return self._object(nesting)
        if kind == _ENUM:
            return self._enumerated(nesting)
        raise ValueError(f"0x{kind:02x} is no kind of content")

    def _object(self, nesting: int) -> JavaObject:
        java_class = self._class(nesting)
        made = JavaObject()
        self._handles.append(made)
        lineage = list[_Class]()
        while java_class is not None:
            lineage.append(java_class)
            java_class = java_class.parent
        for part in reversed(lineage):
            if not part.flags & _SERIALIZABLE:
                raise ValueError("a class that writes itself")
            for name, type_code in part.fields:
                made.fields[name] = self._value(type_code, nesting)
            if part.flags & _WRITES_MORE:
                made.more += self._blocks(nesting)
        return made

    def _value(self, type_code: str, nesting: int) -> Any:
        if type_code in "L[":
            return self.content(nesting + 1)
        return self._number(_FORMATS[type_code])

    def _enumerated(self, nesting: int) -> Any:
        self._class(nesting)
        place = len(self._handles)
        self._handles.append(None)
        self._handles[place] = self.content(nesting + 1)
        return self._handles[place]

    def _class(self, nesting: int) -> _Class | None:
        """Read the description of a class."""
        if nesting > _DEEPEST:
            raise ValueError(f"classes more than {_DEEPEST} deep")
        kind = self._number(">B")
        if kind == _NULL:
            return None
        if kind == _REFERENCE:
            known = self._handle(self._number(">i") - _FIRST_HANDLE)
            if not isinstance(known, _Class):
                raise ValueError("a reference to no class")
            return known
        if kind != _CLASS:
            raise ValueError(f"0x{kind:02x} is no class")
        self._text()
        self._bytes(8)  # its version
        place = len(self._handles)
        self._handles.append(None)
        flags = self._number(">B")
        fields = [self._field(nesting) for _ in range(self._number(">H"))]
        self._blocks(nesting)
        described = _Class(flags, fields, self._class(nesting + 1))
        self._handles[place] = described
        return described

    def _field(self, nesting: int) -> tuple[str, str]:
        type_code = chr(self._number(">B"))
        name = self._text()
        if type_code in "L[":
            self.content(nesting + 1)  # the name of its class
        elif type_code not in _FORMATS:
            raise ValueError(f"0x{ord(type_code):02x} is no type of a field")
        return name, type_code

    def _blocks(self, nesting: int) -> list[Any]:
        """Contents up to the mark of their end."""
        contents = []
        while self._data[self._place : self._place + 1] != bytes([_END_OF_BLOCKS]):
            contents.append(self.content(nesting + 1))
        self._place += 1
        return contents

    def _handle(self, number: int) -> Any:
        if not 0 <= number < len(self._handles):
            raise ValueError("a reference to nothing")
        return self._handles[number]

    def _text(self) -> str:
        return self._bytes(self._number(">H")).decode("utf-8", "replace")

    def _number(self, number_format: str) -> Any:
        (number,) = struct.unpack(number_format, self._bytes(struct.calcsize(number_format)))
        return number

    def _bytes(self, size: int) -> bytes:
        taken = self._data[self._place : self._place + size]
        if len(taken) < size:
            raise ValueError("it is cut off")
        self._place += size
        return taken
