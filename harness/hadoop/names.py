"""
Names of Hadoop's properties: which there are, and which one a misspelled name stands for.

Hadoop takes any name and says nothing, so a misspelled property measures its default.  What is
refused here, and what is only told, follows from that:

- a name that Hadoop knows is taken; so is one that continues a known name (``...address.rm1``) and
  one of the `_FAMILIES`, whose names hold words of their user;
- a name out of use is refused with its successor, which is the one that models and slots go by;
- a name one slip away from a known one is refused: a letter, a case, a dot, a lost part;
- any other name that begins as Hadoop's do is taken, and told with the nearest known name: it may
  belong to a job's own code;
- a name with another beginning is the user's own.

The table is written by ``scripts/export-properties`` from Hadoop's jars.
"""

from __future__ import annotations

import re

from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher, get_close_matches
from functools import cache
from importlib.resources import files

from harness.hadoop.properties import READ_NAMES

_FAMILIES = re.compile(
    r"yarn\.scheduler\.(capacity|fair)\..*|yarn\.nodemanager\.aux-services\..*"
    r"|yarn\.(nodemanager\.resource-type|resource-types)\..*|mapreduce\.(map|reduce)\.resource\..*"
    r"|yarn\.app\.mapreduce\.am\.resource\..*|mapreduce\.multipleoutputs\..*"
    r"|mapreduce\.job\.log4j-.*|hadoop\.(proxyuser|security|http)\..*|ipc\.\d+\..*"
    r"|fs\.([A-Za-z]+|AbstractFileSystem\..*)\.impl(\..*)?|fs\.s3a\.bucket\..*"
    r"|fs\.viewfs\..*|fs\.azure\..*"
)
_ALIKE, _ALIKE_SHORT, _SHORT = 0.75, 0.5, 3  # of a part that was misspelled; letters of a short one
_LEAST_PARTS = 3  # of a name that lacks one: two alone are too common a name


def is_known(name: str) -> bool:
    """
    Tell whether Hadoop or a model reads *name*.

    >>> is_known("mapreduce.job.reduces"), is_known("yarn.resourcemanager.address.rm1")
    (True, True)
    """
    if name in _known() or _FAMILIES.fullmatch(name):
        return True
    return any(head in _known() for head in _heads(name))


def known_names() -> frozenset[str]:
    """All names that are in use, families apart."""
    return _known()


def is_own(name: str) -> bool:
    """Tell whether *name* begins as none of Hadoop's does: a property of the user's own."""
    return name.partition(".")[0] not in _beginnings()


def successor(name: str) -> str:
    """
    Name that took the place of *name*, empty where it is in use or unknown.

    >>> successor("mapred.reduce.tasks")
    'mapreduce.job.reduces'
    """
    return "" if name in READ_NAMES else _successors().get(name, "")


def meant(name: str) -> str:
    """
    Give the known name that an unknown *name* is one slip away from, or nothing.

    >>> meant("mapreduce.task.io.sort.bm"), meant("mapreduce.job.quorum"), meant("my.job.reduces")
    ('mapreduce.task.io.sort.mb', '', '')
    """
    if is_known(name):
        return ""
    found = {*_slips().get(_squashed(name), ()), *_with_a_part_more(name)}
    found |= {known for known in _with_another_part(name) if _alike(name, known)}
    return min(found, key=lambda known: (-_likeness(name, known), known), default="")


def resembling(name: str) -> str:
    """
    Give the known name that looks most like an unknown *name*, however they differ, or nothing.

    Slow: it looks at each.

    >>> resembling("mapreduce.reduce.shuffle.buffer.percent")
    'mapreduce.reduce.shuffle.input.buffer.percent'
    """
    tail = f".{name}"
    ends = [known for known in sorted(_known()) if known.endswith(tail)]
    close = get_close_matches(name, sorted(_known()), n=1, cutoff=0.85)
    return next(iter([*ends, *close]), "")


def objection(name: str) -> tuple[str, str] | None:
    """Say what is wrong with *name* as a property, and what to write; `None`: it may stand."""
    if later := successor(name):
        return f"'{name}' is out of use in Hadoop 3, and is not read here", f"write {later}"
    if near := meant(name):
        fix = f"did you mean {near}? a property of your own takes a first word of its own"
        return f"Hadoop knows no property '{name}'", fix
    return None


def _heads(name: str) -> Iterator[str]:
    """Give what *name* continues: it less its last parts, three parts at least."""
    parts = name.split(".")
    return (".".join(parts[:n]) for n in range(_LEAST_PARTS, len(parts)))


def _with_a_part_more(name: str) -> Iterable[str]:
    return _gaps().get(name, ()) if name.count(".") + 1 >= _LEAST_PARTS else ()


def _with_another_part(name: str) -> Iterator[str]:
    parts = name.split(".")
    for index in range(len(parts)):
        yield from _holes().get(_hole(parts, index), ())


def _alike(name: str, known: str) -> bool:
    """Tell whether the one part in which the names differ is misspelled, and not another word."""
    pairs = zip(name.split("."), known.split("."), strict=True)
    ((mine, theirs),) = [(a, b) for a, b in pairs if a != b]
    if any(c.isdigit() for c in mine + theirs):
        return False  # fs.s3a and fs.s3n are two things
    short = len(theirs) <= _SHORT
    return SequenceMatcher(None, mine, theirs).ratio() >= (_ALIKE_SHORT if short else _ALIKE)


def _likeness(name: str, known: str) -> float:
    return SequenceMatcher(None, name, known).ratio()


def _squashed(name: str) -> str:
    return re.sub(r"[._-]", "", name).lower()


def _hole(parts: list[str], index: int) -> str:
    return ".".join([*parts[:index], "*", *parts[index + 1 :]])


@cache
def _successors() -> dict[str, str]:
    return {old: new for old, _, new in _table() if new}


@cache
def _known() -> frozenset[str]:
    """Names that are in use, those that models read among them."""
    return READ_NAMES | {name for name, _, new in _table() if not new}


@cache
def _beginnings() -> frozenset[str]:
    return frozenset(name.partition(".")[0] for name, _, _ in _table())


@cache
def _slips() -> dict[str, list[str]]:
    """Known names by their letters alone."""
    return _index((_squashed(name), name) for name in _known())


@cache
def _gaps() -> dict[str, list[str]]:
    """Known names by what is left without one of their parts."""
    return _index(
        (".".join([*parts[:i], *parts[i + 1 :]]), name)
        for name in _known()
        for parts in [name.split(".")]
        for i in range(len(parts))
    )


@cache
def _holes() -> dict[str, list[str]]:
    """Known names by what is left with one of their parts blotted out."""
    return _index(
        (_hole(parts, i), name)
        for name in _known()
        for parts in [name.split(".")]
        for i in range(len(parts))
    )


def _index(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for key, name in pairs:
        found.setdefault(key, []).append(name)
    return found


@cache
def _table() -> tuple[tuple[str, str, str], ...]:
    text = (files("harness.hadoop") / "property-names.txt").read_text(encoding="utf-8")
    return tuple(line.partition(" ") for line in text.splitlines())
