"""
YAML as mappings, lists and scalars that know their places, with all problems of a file.

A file may come from anybody.  Nothing in it is executed: anchors, aliases and tags are refused, and
so are texts that are large or deep.
"""

from __future__ import annotations

import re

from collections.abc import Callable, Iterable, Iterator, Sequence
from io import StringIO
from typing import Any, NamedTuple, Self

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

from harness.base.errors import SpecError
from harness.base.hadoop.secrets import SECRETS
from harness.base.installed import example, see
from harness.base.text import excerpt

MAX_CHARACTERS = 50_000
MAX_DEPTH = 12
_MOST_PROBLEMS = 50  # in one message: whoever has more will read it again

# After these, the rest of an override's path is one key: names of properties hold dots.
PROPERTIES = (("configuration",), ("cluster", "site"), ("predict", "profile_on"))
# First words of Hadoop's properties; no key of an experiment starts with one.
_HADOOP = frozenset({"mapreduce", "mapred", "yarn", "dfs", "hadoop", "io", "ipc", "fs"})

_INTEGER = re.compile(r"[-+]?[0-9]{1,18}")
_REAL = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]{1,2})?")
_WORDS: dict[str, bool | None] = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
}

KeyPath = tuple[str | int, ...]
_PlaceOfMark = Callable[[Any], "Place"]  # of a mark of the YAML reader


class Scalar(str):
    """
    A scalar of a file, as text.

    One that is *quoted* is text whatever it looks like.  *written* is what the file has where a
    name was replaced.
    """

    __slots__ = ("quoted", "written")

    quoted: bool
    written: str

    def __new__(cls, text: str, *, quoted: bool = False, written: str | None = None) -> Self:
        """Make one; *written* is *text* unless given."""
        scalar = super().__new__(cls, text)
        scalar.quoted = quoted
        scalar.written = text if written is None else written
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


def has_unit(scalar: str) -> bool:
    """Whether *scalar* is a size with its unit."""
    return re.fullmatch(r"[0-9]+(\.[0-9]+)?\s*[KkMGT]?i?B", scalar.strip()) is not None


class Place(NamedTuple):
    """Where something is: 1-based line and column of *source*; line 0 is an override."""

    line: int
    column: int
    source: str

    def __str__(self) -> str:
        source = excerpt(self.source)
        return f"{source}:{self.line}:{self.column}" if self.line else source


class Document:
    """
    An experiment file as mappings, lists and scalars, with the place of each and all problems.

    A part is known by its path: ``("cluster", "workers", 0)``.
    """

    def __init__(self, text: str, source: str) -> None:
        """Read *text*; *source* names its file in errors."""
        self.source = source
        self.places: dict[KeyPath, Place] = {}
        self.key_places: dict[KeyPath, Place] = {}
        self.spans: dict[KeyPath, tuple[int, int]] = {}  # of scalars, in the text
        self.reported: set[KeyPath] = set()
        self._problems: dict[tuple[Place, str], str] = {}
        self.data = self._load(text, ())

    def at(self, key_path: KeyPath) -> Any:
        """Give what the file has at *key_path*, or `None`."""
        content: Any = self.data
        for part in key_path:
            if isinstance(content, dict):
                content = content.get(part)
            elif isinstance(content, list) and isinstance(part, int) and part < len(content):
                content = content[part]
            else:
                return None
        return content

    def path_of(self, location: Iterable[str | int]) -> KeyPath:
        """The parts of *location* that the file has: a single value, say, has no index."""
        key_path: KeyPath = ()
        for part in location:
            around = self.at(key_path)
            is_key = isinstance(around, dict) and part in around
            is_index = isinstance(around, list) and isinstance(part, int)
            if is_key or is_index:
                key_path = (*key_path, part)
        return key_path

    def mapping(self, *key_path: str | int) -> dict[str, Any]:
        """Give the mapping at *key_path*; it is empty where there is none."""
        content = self.at(key_path)
        return content if isinstance(content, dict) else {}

    def scalars(self, key_path: KeyPath) -> Iterator[tuple[KeyPath, Scalar]]:
        """Path and text of the scalar at *key_path*, or of each in the list there."""
        content = self.at(key_path)
        if isinstance(content, Scalar):
            yield key_path, content
        elif isinstance(content, list):
            for index, item in enumerate(content):
                if isinstance(item, Scalar):
                    yield (*key_path, index), item

    def workloads(self) -> Iterator[tuple[KeyPath, str, dict[str, Any]]]:
        """Path, name and entry of each workload that has a name."""
        listed = self.at(("workloads",))
        for index in range(len(listed) if isinstance(listed, list) else 0):
            entry = self.mapping("workloads", index)
            if isinstance(entry.get("name"), Scalar):
                yield ("workloads", index), entry["name"], entry

    def put(self, key_path: KeyPath, content: Any) -> None:
        """Replace what is at *key_path*, whose parent exists."""
        parent: Any = self.at(key_path[:-1])
        parent[key_path[-1]] = content

    def place(self, key_path: KeyPath, *, key: bool = False) -> Place:
        """Where the value at *key_path*, or its *key*, is; else where what is around it begins."""
        if key and key_path in self.key_places:
            return self.key_places[key_path]
        while key_path not in self.places:
            key_path = key_path[:-1]
        return self.places[key_path]

    def problem(self, key_path: KeyPath, problem: str, fix: str, *, key: bool = False) -> None:
        """Note a *problem* at *key_path* (or with its *key*), and how to *fix* it."""
        self.reported.add(key_path)
        self._problems.setdefault((self.place(key_path, key=key), problem), fix)

    def raise_problems(self) -> None:
        """Raise `SpecError` with everything noted, in the order of the file."""
        if not self._problems:
            return
        problems = sorted(self._problems.items())
        (first, problem), fix = problems[0]
        if len(problems) == 1:
            raise SpecError(problem, where=str(first), fix=fix)
        lines = [f"  {at}: {problem}; {fix}" for (at, problem), fix in problems[:_MOST_PROBLEMS]]
        if len(problems) > _MOST_PROBLEMS:
            lines.append(f"  and {len(problems) - _MOST_PROBLEMS} more")
        what = "\n".join([f"{len(problems)} things are wrong in this file", *lines])
        fix = "correct these lines; 'harness plan FILE' checks an experiment and starts nothing"
        raise SpecError(what, where=str(first), fix=fix)

    def override(self, override: str) -> None:
        """
        Put the value of ``KEY=VALUE`` into the document; VALUE is YAML.

        A workload is meant by its number from 0 or by its name.  Problems of what is put are at the
        override.
        """
        key, equals, text = override.partition("=")
        key = key.strip()
        if not key or not equals:
            fix = "write KEY=VALUE, such as --set cluster.workers=2"
            raise SpecError(f"'{excerpt(override)}' is not an override", where="--set", fix=fix)
        place = Place(0, 0, f"--set {SECRETS.clean_override(override)}")
        if key.partition(".")[0] in _HADOOP:
            problem = f"'{excerpt(key)}' is a property of Hadoop, not a key of the experiment"
            fix = "put configuration. before it (each job), or cluster.site. (the whole cluster)"
            self._problems.setdefault((place, problem), fix)
            return
        parts = key.split(".")
        for head in PROPERTIES:
            if tuple(parts[: len(head)]) == head and len(parts) > len(head):
                parts = [*head, ".".join(parts[len(head) :])]
        key_path = self._make_way(parts, place)
        if key_path is None:
            return
        depth = len(key_path)
        for replaced_path in [path for path in self.places if path[:depth] == key_path]:
            del self.places[replaced_path]
        self.key_places[key_path] = place
        self.put(key_path, self._load(text, key_path, place))

    def _make_way(self, parts: Sequence[str], place: Place) -> KeyPath | None:
        """
        Give the path to *parts* of an override at *place*, and make the mappings that lack.

        `None`, and a problem is noted, where a part leads nowhere.
        """
        key_path: KeyPath = ()
        for part in parts:
            around = self.at(key_path)
            if isinstance(around, dict):
                key_path = (*key_path, part)
                if part not in around:
                    around[part] = {}
                    self.places[key_path] = self.key_places[key_path] = place
                continue
            names: list[Any] = []
            if isinstance(around, list):
                names = [item.get("name") if isinstance(item, dict) else None for item in around]
            index = _item_index(part, names)
            if index >= len(names):
                fix = "a single value stands there: override it as a whole"
                if names:
                    choices = ", ".join(excerpt(name or at) for at, name in enumerate(names))
                    fix = f"name one of {choices}, or a number below {len(names)}"
                problem = f"nothing is at '{excerpt(part)}'"
                self._problems.setdefault((place, problem), fix)
                return None
            key_path = (*key_path, index)
        return key_path

    def _load(self, text: str, key_path: KeyPath, override: Place | None = None) -> Any:
        """Read *text* as what is at *key_path*; every place in an *override* is the override."""

        def place(mark: Any) -> Place:
            return override or Place(mark.line + 1, mark.column + 1, self.source)

        start = override or Place(1, 1, self.source)
        if len(text) > MAX_CHARACTERS:
            what = f"the text has {len(text)} characters, more than {MAX_CHARACTERS}"
            fix = "an experiment file has a few dozen lines: is this the right file?"
            raise SpecError(what, where=str(start), fix=fix)
        self.places[key_path] = start
        try:
            return self._collect_document(text, key_path, place)
        except MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            reason = error.problem or error.context or ""
            raise _not_yaml_error(reason, place(mark) if mark else start) from error
        except (YAMLError, ValueError, OverflowError, LookupError) as error:
            # A character that YAML forbids, an escape that names none, ...
            raise _not_yaml_error(str(error), start) from error

    def _collect_document(self, text: str, key_path: KeyPath, place: _PlaceOfMark) -> Any:
        """Give the document in *text* as mappings, lists and scalars; of an empty text no value."""
        content: Any = None
        events = YAML(typ="safe", pure=True).parse(StringIO(text))
        for event in events:
            if isinstance(event, DocumentStartEvent):
                if content is not None:
                    raise _not_yaml_error("there is another document", place(event.start_mark))
                content = self._collect(next(events), events, key_path, place)
        return Scalar("") if content is None else content

    def _collect(
        self,
        event: Any,
        events: Iterator[Any],
        key_path: KeyPath,
        place: _PlaceOfMark,
        depth: int = 0,
    ) -> Any:
        """Give what *event* starts as mappings, lists and scalars, and remember the places."""
        _refuse_event(event, depth, place)
        self.places[key_path] = place(event.start_mark)
        if isinstance(event, ScalarEvent):
            self.spans[key_path] = event.start_mark.index, event.end_mark.index
            return Scalar(event.value, quoted=event.style not in (None, ""))
        if isinstance(event, SequenceStartEvent):
            items: list[Any] = []
            while not isinstance(item := next(events), SequenceEndEvent):
                items.append(self._collect(item, events, (*key_path, len(items)), place, depth + 1))
            return items
        return self._collect_mapping(events, key_path, place, depth)

    def _collect_mapping(
        self, events: Iterator[Any], key_path: KeyPath, place: _PlaceOfMark, depth: int
    ) -> dict[str, Any]:
        """Give the mapping at *key_path*, whose keys and values are the next *events*."""
        mapping: dict[str, Any] = {}
        discarded = (*key_path, -1)  # where nothing is looked for
        while not isinstance(key := next(events), MappingEndEvent):
            at = place(key.start_mark)
            word = self._collect(key, events, discarded, place, depth + 1)
            child_path = (*key_path, str(word)) if isinstance(word, Scalar) else discarded
            if child_path == discarded:
                self._problems.setdefault((at, "a key is not a word"), "write NAME: VALUE")
            elif word in mapping:
                first = self.key_places[child_path].line
                problem = f"{excerpt(word)} is given twice, first in line {first}"
                self._problems.setdefault((at, problem), "leave one of them")
                child_path = discarded
            else:
                self.key_places[child_path] = at
            value = self._collect(next(events), events, child_path, place, depth + 1)
            if child_path != discarded:
                mapping[str(word)] = value
        return mapping


def dotted(key_path: KeyPath) -> str:
    """Write *key_path* as in an override."""
    return ".".join(excerpt(part) for part in key_path)


def _item_index(part: str, names: Sequence[Any]) -> int:
    """Which item of a list with *names* the *part* of an override means; their number: none."""
    if part in names:
        return names.index(part)
    is_number = part.isascii() and part.isdecimal() and len(part) < 6
    return int(part) if is_number else len(names)


def _refuse_event(event: Any, depth: int, place: _PlaceOfMark) -> None:
    """`SpecError` for what a file may not have: names of parts, tags, and too many levels."""
    if isinstance(event, AliasEvent) or event.anchor is not None:
        complaint = f"anchors and aliases ({excerpt(event.anchor)}) are not allowed"
        fix = "write it out"
    elif event.tag is not None:
        complaint = f"the tag {excerpt(event.tag)} is not used"
        fix = "remove it"
    elif depth >= MAX_DEPTH:
        complaint = f"more than {MAX_DEPTH} levels deep"
        fix = "write fewer levels" + see("experiment.md", "has all keys")
    else:
        return
    raise SpecError(complaint, where=str(place(event.start_mark)), fix=fix)


def _not_yaml_error(reason: str, at: Place) -> SpecError:
    return SpecError(
        f"this is not YAML: {excerpt(reason)}",
        where=str(at),
        fix=f"compare the line with {example()}: indentation, brackets, quotes",
    )
