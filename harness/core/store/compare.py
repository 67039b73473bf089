"""Stored results beside the same files made again: each value that is not the same."""

from __future__ import annotations

import re

from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

from harness.observe.storage.opener import Opener

_MOST = 1000  # differences named of one file
_UNREADABLE = "restore it from a copy, or make it again: harness collect, profile, predict, score"
_CLOSE = 1e-9  # relative: what linear algebra may differ by from one machine to another
_NUMBERS = re.compile(r"\.\d+(?=\.|$)")
_ORIGIN = ("code", "profile")  # of a prediction: says what made it, and is no part of the answer


class Difference(NamedTuple):
    """A value that differs; *name* is its file and its place there, `None` where a run has none."""

    model: str
    name: str
    old: Any
    new: Any
    relative: float | None

    @property
    def is_equal(self) -> bool:
        """Whether it differs by no more than floats of linear algebra may."""
        return self.relative is not None and abs(self.relative) <= _CLOSE


def compare_files(stored: Opener, remade: Opener, pattern: str) -> Iterator[Difference]:
    """
    Compare the files of two runs that *pattern* selects.

    Of each file there are no more than its first 1,000 differences.
    """
    names: set[str] = set()
    for opener in (stored, remade):
        names |= {path.relative_to(opener.root).as_posix() for path in opener.glob(pattern)}
    for name in sorted(names):
        if not _are_same_bytes(stored, remade, name):
            yield from islice(_differences(stored, remade, name), _MOST)


def _are_same_bytes(stored: Opener, remade: Opener, name: str) -> bool:
    paths = [(opener, opener.root / name) for opener in (stored, remade)]
    if not all(opener.exists(path) for opener, path in paths):
        return False
    return len({opener.sha256(path) for opener, path in paths}) == 1


def _differences(stored: Opener, remade: Opener, name: str) -> Iterator[Difference]:
    """
    The values of the file *name* that are not the same in both runs.

    What an older version of the harness stored has no value in the fields that came later.
    """
    old = dict(_values(stored, name))
    new = dict(_values(remade, name))
    if 0 < _version(stored, name) < _version(remade, name):
        known_fields = {_field(place) for _, place in old}
        new = {key: value for key, value in new.items() if _field(key[1]) in known_fields}
    for model, place in old | new:
        before = old.get((model, place))
        after = new.get((model, place))
        if before == after:
            continue
        relative = None
        if isinstance(before, int | float) and isinstance(after, int | float) and before:
            relative = (after - before) / abs(before)
        yield Difference(model, place, before, after, relative)


def _field(place: str) -> str:
    """The *place* of a value without its numbers in lists: the same for all items."""
    return _NUMBERS.sub("", place)


def _version(opener: Opener, name: str) -> int:
    """The version of the shape of the file *name*; 0 where it is not there, or says none."""
    path = opener.root / name
    if path.suffix != ".json" or not opener.exists(path):
        return 0
    document = opener.parse_json(opener.read(path, _UNREADABLE), path, _UNREADABLE)
    version = document.get("schema_version", 0) if isinstance(document, dict) else 0
    return version if isinstance(version, int) else 0


def _values(opener: Opener, name: str) -> Iterator[tuple[tuple[str, str], Any]]:
    """Values of the file *name*, if there is one, by model and place; the hash alone of a table."""
    path = opener.root / name
    if not opener.exists(path):
        return
    if path.suffix not in (".json", ".jsonl"):
        yield ("", name), opener.sha256(path)
        return
    content = opener.read(path, _UNREADABLE)
    is_predictions = path.suffix == ".jsonl"
    for number, text in enumerate(content.splitlines() if is_predictions else [content]):
        row = opener.parse_json(text, path, _UNREADABLE)
        start = name
        if is_predictions:
            start = row.get("cell", f"{name}[{number}]")
            row = {key: value for key, value in row.items() if key not in _ORIGIN}
        yield from leaves(row, start)


def leaves(value: Any, place: str, model: str = "") -> Iterator[tuple[tuple[str, str], Any]]:
    """Numbers and texts of nested lists and mappings, by the model around them and their place."""
    if not isinstance(value, dict | list):
        yield (model, place), value
        return
    if isinstance(value, dict):
        model = str(value.get("model", model))
    for key, part in value.items() if isinstance(value, dict) else enumerate(value):
        if key != "schema_version":  # says who wrote it, and is no part of the answer
            yield from leaves(part, f"{place}.{key}", model)
