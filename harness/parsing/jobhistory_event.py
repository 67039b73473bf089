"""Fields of one event of a job history, each read with its type or refused by name."""

from __future__ import annotations

import re

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from harness.errors import ParseError
from harness.parsing.jobhistory_counters import LONGEST, Counters, name_of
from harness.parsing.lines import LARGEST, clean, named, shown

CUT = "copy the history again once the job is done"

_ID = re.compile(r"[a-z]{3,8}_[0-9]{1,16}_[0-9]{1,10}(?:_[mr]_[0-9]{1,10}(?:_[0-9]{1,10})?)?")


@dataclass(frozen=True, slots=True)
class Source:
    """A history by its name, and what its events are counted in: lines, or bytes before them."""

    name: str
    unit: Literal["line", "byte"] = "line"

    def error(self, what: str, at: int | None = None, fix: str = "") -> ParseError:
        """Error at the line or byte *at*."""
        line, byte = (at, None) if self.unit == "line" else (None, at)
        return ParseError(what, source=self.name, line=line, byte=byte, fix=fix)


@dataclass(frozen=True, slots=True)
class Event:
    """One event: its type, its fields, where it stands, and its bytes."""

    type: str
    values: Mapping[str, Any]
    source: Source
    at: int
    raw: bytes

    def error(self, what: str) -> ParseError:
        """Error at this event."""
        return self.source.error(f"{self.type}: {what}", self.at)

    def time_s(self, name: str) -> float:
        """Field *name*, milliseconds since the epoch, in seconds."""
        return self.count(name) / 1000

    def count(self, name: str) -> int:
        """Field *name* as a whole number, 0 or more."""
        value = self._whole(name, self.values.get(name))
        if value < 0:
            raise self.error(f"{name} is {value}")
        return value

    def truth(self, name: str) -> bool:
        """Field *name* as true or false; an absent one is false."""
        value = self.values.get(name, False)
        if not isinstance(value, bool):
            raise self.error(f"{name} is neither true nor false: {named(value)}")
        return value

    def text(self, name: str) -> str:
        """Field *name* as text; an absent or null one is empty."""
        value = self.values.get(name)
        if isinstance(value, dict) and value.keys() == {"string"}:
            value = value["string"]
        if value is not None and not isinstance(value, str):
            raise self.error(f"{name} is no text: {named(value)}")
        value = value[:LONGEST] if value else ""
        return value if value.isascii() else clean(value)

    def id(self, name: str, prefix: str) -> str:
        """Field *name* as the id of a job, a task or an attempt."""
        value = self.text(name)
        if not (value.startswith(f"{prefix}_") and _ID.fullmatch(value)):
            raise self.error(f"{name} is no {prefix} id: {shown(value.encode())}")
        return value

    def counters(self, name: str) -> Mapping[str, int]:
        """Field *name* as counters, keyed by the group's name and their own."""
        value = self.values.get(name)
        if isinstance(value, Counters):
            return value
        if isinstance(value, dict) and len(value) == 1 and "groups" not in value:
            value = next(iter(value.values()))  # The tag of a union.
        found: dict[str, int] = {}
        if value is None:
            return found
        for group in self._objects(name, value, "groups"):
            group_name = self._name(name, group)
            for counter in self._objects(name, group, "counts"):
                full = name_of(group_name, self._name(name, counter))
                found.setdefault(full, self._whole(full, counter.get("value"), 2**63))
        return found

    def _whole(self, name: str, value: Any, limit: int = LARGEST) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.error(f"{name!a} is no whole number: {named(value)}")
        if not -limit <= value < limit:
            raise self.error(f"{name!a} is too large")
        return value

    def _objects(self, name: str, value: Any, key: str) -> list[dict[str, Any]]:
        items = value.get(key) if isinstance(value, dict) else None
        if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
            raise self.error(f"{name} has no list of {key}")
        return items

    def _name(self, where: str, value: Mapping[str, Any]) -> str:
        name = value.get("name")
        if not isinstance(name, str):
            raise self.error(f"{where} holds a group or counter without a name")
        return name
