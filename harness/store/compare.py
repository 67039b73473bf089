"""Stored results beside the same files made again: each value that is not the same."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from harness.store.files import parse_json, read_file
from harness.store.tables import read_rows

_MOST = 100  # differences named of one file: a table may have millions of values
_UNREADABLE = "restore it from a copy, or make it again: harness collect, profile, predict, score"
_ORIGIN = ("code", "profile")  # of a prediction: says what made it, and is no part of the answer


class Difference(NamedTuple):
    """A value by the *name* of its file and its place there; `None` where there is none."""

    model: str
    name: str
    old: Any
    new: Any
    relative: float | None


def compare_files(stored: Path, again: Path, pattern: str) -> Iterator[Difference]:
    """Compare the files of two folders that *pattern* selects, the first values of each file."""
    paths = [(root, path) for root in (stored, again) for path in root.glob(pattern)]
    for name in sorted({path.relative_to(root).as_posix() for root, path in paths}):
        both = (stored / name, again / name)
        if all(path.exists() for path in both) and len({path.read_bytes() for path in both}) == 1:
            continue
        old, new = (dict(_values(path, name)) for path in both)
        places = (place for place in old | new if old.get(place) != new.get(place))
        for model, place in islice(places, _MOST):
            before, after, relative = old.get((model, place)), new.get((model, place)), None
            if isinstance(before, int | float) and isinstance(after, int | float) and before:
                relative = (after - before) / abs(before)
            yield Difference(model, place, before, after, relative)


def _values(path: Path, name: str) -> Iterator[tuple[tuple[str, str], Any]]:
    """Values of the file *path*, called *name*, by the model that they are of and their place."""
    rows, is_predictions = list[dict[str, Any]](), path.suffix == ".jsonl"
    if path.exists() and path.suffix == ".parquet":
        rows = read_rows(path, _UNREADABLE)
    elif path.exists():
        content = read_file(path, _UNREADABLE)
        texts = content.splitlines() if is_predictions else [content]
        rows = [parse_json(text, path, _UNREADABLE) for text in texts]
    for number, row in enumerate(rows):
        start = f"{name}[{number}]" if len(rows) > 1 else name
        if is_predictions:
            start = row.get("cell", start)
            row = {key: value for key, value in row.items() if key not in _ORIGIN}  # noqa: PLW2901
        for place, value in _leaves(row, start):
            yield (row.get("model", ""), place), value


def _leaves(value: Any, place: str) -> Iterator[tuple[str, Any]]:
    """Numbers and texts of nested lists and mappings, by their place."""
    if isinstance(value, dict | list):
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _leaves(part, f"{place}.{key}")
    else:
        yield place, value
