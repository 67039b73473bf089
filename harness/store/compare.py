"""Stored results beside the same files made again: each value that is not the same."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

from harness.store.opener import Opener

_MOST = 1000  # differences named of one file
_UNREADABLE = "restore it from a copy, or make it again: harness collect, profile, predict, score"
_CLOSE = 1e-9  # relative: what linear algebra may differ by from one machine to another
_ORIGIN = ("code", "profile")  # of a prediction: says what made it, and is no part of the answer


class Difference(NamedTuple):
    """A value by the *name* of its file and its place there; `None` where there is none."""

    model: str
    name: str
    old: Any
    new: Any
    relative: float | None

    @property
    def is_equal(self) -> bool:
        """Whether it differs by no more than floats of linear algebra may."""
        return self.relative is not None and abs(self.relative) <= _CLOSE


def compare_files(stored: Opener, again: Opener, pattern: str) -> Iterator[Difference]:
    """Compare the files of two runs that *pattern* selects, the first values of each file."""
    paths = [(opener.root, path) for opener in (stored, again) for path in opener.glob(pattern)]
    for name in sorted({path.relative_to(root).as_posix() for root, path in paths}):
        both = [opener for opener in (stored, again) if opener.exists(opener.root / name)]
        if len(both) > len({opener.sha256(opener.root / name) for opener in both}):
            continue
        old, new = (dict(_values(opener, name)) for opener in (stored, again))
        places = (place for place in old | new if old.get(place) != new.get(place))
        for model, place in islice(places, _MOST):
            before = old.get((model, place))
            after = new.get((model, place))
            relative = None
            if isinstance(before, int | float) and isinstance(after, int | float) and before:
                relative = (after - before) / abs(before)
            yield Difference(model, place, before, after, relative)


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
