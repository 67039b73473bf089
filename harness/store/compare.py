"""Stored results beside the same files made again: each value that is not the same."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from harness.store.files import parse_json, read_file, sha256

_MOST = 1000  # differences named of one file
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
    """Values of the file *path*, called *name*, by model and place; the hash alone of a table."""
    if path.suffix not in (".json", ".jsonl"):
        yield from [(("", name), sha256(path))] if path.exists() else ()
        return
    content = read_file(path, _UNREADABLE) if path.exists() else b""
    is_predictions = path.suffix == ".jsonl"
    texts = content.splitlines() if is_predictions else [content] * path.exists()
    for number, text in enumerate(texts):
        row, start = parse_json(text, path, _UNREADABLE), name
        if is_predictions:
            start = row.get("cell", f"{name}[{number}]")
            row = {key: value for key, value in row.items() if key not in _ORIGIN}
        yield from _leaves(row, start)


def _leaves(value: Any, place: str, model: str = "") -> Iterator[tuple[tuple[str, str], Any]]:
    """Numbers and texts of nested lists and mappings, by the model around them and their place."""
    if not isinstance(value, dict | list):
        yield (model, place), value
        return
    if isinstance(value, dict):
        model = str(value.get("model", model))
    for key, part in value.items() if isinstance(value, dict) else enumerate(value):
        yield from _leaves(part, f"{place}.{key}", model)
