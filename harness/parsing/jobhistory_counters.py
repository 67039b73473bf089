"""
Counters of attempts: a job has thousands of attempts and few sets of counter names.

Attempts with the same names share them.  The first set of its kind is read name by name, and makes
a regular expression of its names, with a number behind each.  A set that matches is kept as its
bytes, for nothing in it can be wrong any more; its numbers are made when one is asked for.
"""

from __future__ import annotations

import re
import sys

from array import array
from collections.abc import Callable, ItemsView, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from harness.parsing.lines import clean

# Longer names and messages (stack traces, mostly) are cut: what is kept must not grow with the log.
LONGEST = 4000

# How many sets of names are learnt: a history with other names in every event stays slow.
_SETS = 16
_LONGEST_SET = 1 << 16

# So many bytes of sets wait for their numbers to be made; beyond, a set takes 8 bytes a counter.
_LARGEST_WAITING = 1 << 26


class Number(NamedTuple):
    """How a form of history writes a counter's value: all that match *pattern* fit eight bytes."""

    pattern: bytes
    read: Callable[[bytes], int]


class Names:
    """Names that sets of counters have, and the bytes *between* the values of such a set."""

    def __init__(
        self, index: Mapping[str, int], between: Sequence[bytes] = (), number: Number | None = None
    ) -> None:
        self.index = index
        self._between, self._number = [re.escape(text) for text in between], number
        self._values: re.Pattern[bytes] | None = None

    def pattern(self, values: bytes) -> re.Pattern[bytes]:
        """Regular expression of sets with these names."""
        return re.compile(values.join(self._between), re.DOTALL)

    def values(self, raw: bytes) -> array[int]:
        """Values in *raw*, a set that is known to match."""
        number = self._number
        assert number is not None
        self._values = self._values or self.pattern(b"(%s)" % number.pattern)
        found = self._values.fullmatch(raw)
        assert found is not None
        return array("q", map(number.read, found.groups()))


class Counters(Mapping[str, int]):
    """Values by name, *held* as numbers or as the bytes of a set."""

    __slots__ = ("_held", "_names")

    def __init__(self, names: Names, held: array[int] | bytes) -> None:
        self._names, self._held = names, held

    def __getitem__(self, name: str) -> int:
        """Value of the counter *name*."""
        return self.numbers()[self._names.index[name]]

    def __iter__(self) -> Iterator[str]:
        """Names, in the order of the history."""
        return iter(self._names.index)

    def __len__(self) -> int:
        """Count the counters."""
        return len(self._names.index)

    def items(self) -> ItemsView[str, int]:
        """Names with values, quicker than one by one."""
        return dict(zip(self._names.index, self.numbers(), strict=True)).items()

    def numbers(self) -> array[int]:
        """Values in the order of the names, made once."""
        held = self._held
        if isinstance(held, bytes):
            held = self._held = self._names.values(held)
        return held

    def __repr__(self) -> str:
        return f"Counters({dict(self)})"


class Sets:
    """Sets of counters that were met in a history whose numbers are written as *number* says."""

    def __init__(self, number: Number) -> None:
        self.learning = True
        self._number = number
        self._known: list[tuple[re.Pattern[bytes], Names]] = []
        self._tried = self._waiting = 0
        self._last = b""

    def read(self, data: bytes, at: int) -> tuple[Counters | None, int]:
        """Set at the position *at* of *data*, if it is known, and where it ends."""
        end = self._end(data, at)
        if not end:
            return None, at
        self._last = raw = data[at:end]
        found = Counters(self._known[0][1], raw)
        self._waiting += end - at
        if self._waiting > _LARGEST_WAITING:
            found.numbers()
        return found, end

    def skip(self, data: bytes, at: int) -> int:
        """Where the set at the position *at* of *data* ends; 0 if it is not known."""
        # A task repeats the counters of its attempt.
        last = self._last
        return at + len(last) if last and data.startswith(last, at) else self._end(data, at)

    def _end(self, data: bytes, at: int) -> int:
        """Position behind a known set, whose names stand in front then."""
        known = self._known
        for pattern, names in known:
            found = pattern.match(data, at)
            if found is not None:
                if names is not known[0][1]:
                    known.remove((pattern, names))
                    known.insert(0, (pattern, names))
                return found.end()
        return 0

    def learn(self, raw: bytes, names: Sequence[str], between: Callable[[], list[bytes]]) -> None:
        """Read sets like *raw*, which has these *names*, quickly from now on."""
        if not self.learning or self._tried == _SETS or len(raw) > _LONGEST_SET:
            return
        self._tried += 1
        learnt = Names(index_of(names), between(), self._number)
        pattern = learnt.pattern(self._number.pattern)
        # Of two equal names the first counts: such a set has less names than values.
        if len(learnt.index) == len(names) and pattern.fullmatch(raw):
            self._known.insert(0, (pattern, learnt))


def name_of(group: str, counter: str) -> str:
    """Give the key of a counter: its group's name, and its own."""
    return f"{clean(group[:LONGEST])}.{clean(counter[:LONGEST])}"


def index_of(names: Iterable[str]) -> dict[str, int]:
    """Number *names*, each kept in memory once."""
    return {sys.intern(name): at for at, name in enumerate(names)}
