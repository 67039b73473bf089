"""
YAML as a tree that remembers where everything stood.

Only what an experiment file needs: mappings, lists and scalars of one document.  Anchors, aliases
and tags are refused, and so are texts that are large or deep, so that a hostile text costs nothing.
Reading goes on after a problem in the content: `Problems` holds them all.
"""

from __future__ import annotations

import re

from collections.abc import Iterator
from dataclasses import dataclass, field
from difflib import get_close_matches
from io import StringIO
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

from harness.errors import SpecError

MAX_CHARACTERS = 50_000
MAX_DEPTH = 12
_MOST_PROBLEMS = 50  # in one message: whoever has more will read it again

_INTEGER = re.compile(r"[-+]?[0-9]{1,18}")
_REAL = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]{1,2})?")
_WORDS: dict[str, bool | None] = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
}


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """Where something stands: 1-based line and column of *source*; line 0 is an override."""

    source: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        """Write it as editors read it."""
        source = shown(self.source)
        return f"{source}:{self.line}:{self.column}" if self.line else source


@dataclass(slots=True)
class Scalar:
    """A scalar as it was written; *plain* without quotes."""

    at: Place
    text: str
    plain: bool = True

    @property
    def value(self) -> str | int | float | bool | None:
        """Meaning by the core schema of YAML 1.2: ``no`` and ``1:30`` are text."""
        if not self.plain:
            return self.text
        if self.text in _WORDS:
            return _WORDS[self.text]
        if _INTEGER.fullmatch(self.text):
            return int(self.text)
        return float(self.text) if _REAL.fullmatch(self.text) else self.text


@dataclass(slots=True)
class Items:
    """A list."""

    at: Place
    items: list[Node] = field(default_factory=list)


@dataclass(slots=True)
class Entries:
    """A mapping; *keys* says where each key stands."""

    at: Place
    entries: dict[str, Node] = field(default_factory=dict)
    keys: dict[str, Place] = field(default_factory=dict)


Node = Scalar | Items | Entries


class Problems:
    """All that is wrong with a file, to be said at once."""

    def __init__(self, source: str) -> None:
        """Collect for the file *source*."""
        self.source = source
        self._found: dict[tuple[Place, str], str] = {}

    def __bool__(self) -> bool:
        """Tell whether anything is wrong."""
        return bool(self._found)

    def add(self, at: Place, what: str, fix: str) -> None:
        """Note that *what* is wrong *at* a place, and how to mend it."""
        self._found.setdefault((at, what), fix)

    def check(self) -> None:
        """Raise `SpecError` with everything noted, in the order of the file."""
        if not self._found:
            return
        found = sorted(self._found.items())
        (first, what), fix = found[0]
        if len(found) == 1:
            raise SpecError(what, where=str(first), fix=fix)
        lines = [f"  {at}: {what}; {fix}" for (at, what), fix in found[:_MOST_PROBLEMS]]
        if len(found) > _MOST_PROBLEMS:
            lines.append(f"  and {len(found) - _MOST_PROBLEMS} more")
        raise SpecError(
            "\n".join([f"{len(found)} things are wrong with this experiment", *lines]),
            where=str(first),
            fix="correct these lines; 'harness plan FILE' checks the file and starts nothing",
        )


def shown(text: str) -> str:
    """*text* for a message: short, and without anything that a terminal would obey."""
    text = text if text.isprintable() else repr(text)[1:-1]
    return text if len(text) <= 100 else f"{text[:97]}..."


def nearest(name: str, known: list[str]) -> str:
    """Fix for an unknown *name*: the nearest known one, or all of them."""
    close = get_close_matches(name[:100].lower(), known, n=1, cutoff=0.6)
    return f"did you mean {close[0]}?" if close else f"known are: {', '.join(known)}"


def read_tree(text: str, source: str, problems: Problems, *, override: bool = False) -> Node:
    """
    Read the one YAML document in *text*.

    Raises `SpecError` where it is no YAML of the allowed kind; keys given twice become *problems*.
    Every place in an *override* is the override itself.
    """
    if len(text) > MAX_CHARACTERS:
        raise SpecError(
            f"the text has {len(text)} characters, more than {MAX_CHARACTERS}",
            where=str(Place(source, 1, 1)),
            fix="an experiment file has some dozens of lines: is this the right file?",
        )
    return _Reader(text, source, problems, override=override).document()


class _Reader:
    def __init__(self, text: str, source: str, problems: Problems, *, override: bool) -> None:
        self._source, self._problems, self._override = source, problems, override
        self._text = text
        self._events: Iterator[Any] = iter(())

    def document(self) -> Node:
        try:
            self._events = iter(YAML(typ="safe", pure=True).parse(StringIO(self._text)))
            node = self._first()
            for event in self._events:
                if isinstance(event, DocumentStartEvent):
                    raise self._refuse(event, "a second document begins", "leave one in this file")
        except MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            at = Place(self._source) if mark is None else self._mark(mark)
            raise self._no_yaml(error.problem or error.context or "", at) from error
        except (YAMLError, ValueError, OverflowError, LookupError) as error:
            # A character that YAML forbids, an escape that names none, ...
            raise self._no_yaml(str(error), self._line(1)) from error
        return node

    def _first(self) -> Node:
        for event in self._events:
            if isinstance(event, ScalarEvent | SequenceStartEvent | MappingStartEvent | AliasEvent):
                return self._node(event, MAX_DEPTH)
        return Scalar(self._line(1), "")

    def _node(self, event: Any, depth: int) -> Node:
        self._check(event, depth)
        at = self._mark(event.start_mark)
        if isinstance(event, ScalarEvent):
            return Scalar(at, event.value, plain=event.style in (None, ""))
        if isinstance(event, SequenceStartEvent):
            return Items(at, [self._node(e, depth - 1) for e in self._until(SequenceEndEvent)])
        return self._mapping(at, depth)

    def _mapping(self, at: Place, depth: int) -> Entries:
        found = Entries(at)
        for event in self._until(MappingEndEvent):
            key = self._node(event, depth - 1)
            value = self._node(next(self._events), depth - 1)
            if not isinstance(key, Scalar):
                self._problems.add(key.at, "a key is not a word", "write NAME: VALUE")
            elif key.text in found.entries:
                first = found.keys[key.text]
                what = f"{shown(key.text)} is given twice, first in line {first.line}"
                self._problems.add(key.at, what, "leave one of them")
            else:
                found.entries[key.text], found.keys[key.text] = value, key.at
        return found

    def _until(self, end: type) -> Iterator[Any]:
        while not isinstance(event := next(self._events), end):
            yield event

    def _check(self, event: Any, depth: int) -> None:
        if isinstance(event, AliasEvent) or event.anchor is not None:
            name = shown(str(event.anchor))
            raise self._refuse(event, f"anchors and aliases ({name}) are not used", "write it out")
        if event.tag is not None:
            raise self._refuse(event, f"the tag {shown(event.tag)} is not used", "remove it")
        if depth <= 0:
            raise self._refuse(event, f"more than {MAX_DEPTH} levels deep", "see docs/guide.md")

    def _refuse(self, event: Any, what: str, fix: str) -> SpecError:
        return SpecError(what, where=str(self._mark(event.start_mark)), fix=fix)

    def _no_yaml(self, reason: str, at: Place) -> SpecError:
        return SpecError(
            f"this is not YAML: {shown(' '.join(reason.split()))}",
            where=str(at),
            fix="compare the line with experiments/demo.yaml: indentation, brackets, quotes",
        )

    def _mark(self, mark: Any) -> Place:
        return self._line(mark.line + 1, mark.column + 1)

    def _line(self, line: int, column: int = 1) -> Place:
        return Place(self._source) if self._override else Place(self._source, line, column)
