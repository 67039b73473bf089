"""
Counters of attempts: a job has thousands of attempts and few sets of counter names.

Attempts with the same names share them, and each keeps its values alone, eight bytes a counter.
"""

from __future__ import annotations

import sys

from array import array
from collections.abc import ItemsView, Iterable, Iterator, Mapping

from harness.parsing.lines import clean

# Longer names and messages (stack traces, mostly) are cut: what is kept must not grow with the log.
LONGEST = 4000


class Counters(Mapping[str, int]):
    """Values by name; `index` tells where each name's value stands and belongs to many."""

    __slots__ = ("_index", "_values")

    def __init__(self, index: Mapping[str, int], values: array[int]) -> None:
        self._index, self._values = index, values

    def __getitem__(self, name: str) -> int:
        """Value of the counter *name*."""
        return self._values[self._index[name]]

    def __iter__(self) -> Iterator[str]:
        """Names, in the order of the history."""
        return iter(self._index)

    def __len__(self) -> int:
        """Count the counters."""
        return len(self._index)

    def items(self) -> ItemsView[str, int]:
        """Names with values, quicker than one by one."""
        return dict(zip(self._index, self._values, strict=True)).items()

    def __repr__(self) -> str:
        return f"Counters({dict(self)})"


def name_of(group: str, counter: str) -> str:
    """Give the key of a counter: the last component of its group's class, and its name."""
    return f"{clean(group[:LONGEST]).rpartition('.')[2]}.{clean(counter[:LONGEST])}"


def index_of(names: Iterable[str]) -> dict[str, int]:
    """Number *names*, each kept in memory once."""
    return {sys.intern(name): at for at, name in enumerate(names)}
