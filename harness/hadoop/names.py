"""
Names of Hadoop's properties: which there are, and which one a misspelled name stands for.

Hadoop takes any name and says nothing, so a misspelled property measures its default.  What is
refused here, and what is only a warning, follows from that:

- a name that Hadoop knows is taken; so is one that continues a known name (``...address.rm1``) and
  one of the `_FAMILIES`, whose names hold words of their user;
- a name out of use is refused with its successor, which is the one that models and slots go by;
- a name one slip away from a known one is refused: a letter, a case, a dot, a lost part;
- any other name that begins as Hadoop's do is taken, with a warning that names the nearest known
  one: it may belong to a job's own code;
- a name with another beginning is the user's own.

The table is written by ``scripts/export-properties`` from Hadoop's jars.
"""

from __future__ import annotations

import re

from collections import defaultdict
from difflib import SequenceMatcher
from functools import cache
from importlib.resources import files

from harness.hadoop.properties import READ_NAMES
from harness.text import nearest_name

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
    if name in known_names() or _FAMILIES.fullmatch(name):
        return True
    # What continues a known name of three parts or more.
    parts = name.split(".")
    heads = (".".join(parts[:count]) for count in range(_LEAST_PARTS, len(parts)))
    return any(head in known_names() for head in heads)


@cache
def known_names() -> frozenset[str]:
    """All names that are in use, those that models read among them; families apart."""
    return READ_NAMES | {name for name, _, replacement in _table() if not replacement}


def is_own(name: str) -> bool:
    """Tell whether *name* begins as none of Hadoop's does: a property of the user's own."""
    return name.partition(".")[0] not in _first_words()


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
    parts, similar = name.split("."), _similar_names()
    near = {*similar.get(("letters", _letters(name)), ())}
    if len(parts) >= _LEAST_PARTS:
        near.update(similar.get(("shortened", name), ()))
    for index, part in enumerate(parts):
        for known in similar.get(("masked", _masked(parts, index)), ()):
            known_part = known.split(".")[index]
            least = _ALIKE_SHORT if len(known_part) <= _SHORT else _ALIKE
            # With digits it is another word: fs.s3a and fs.s3n are two file systems.
            has_digit = any(letter.isdigit() for letter in part + known_part)
            if not has_digit and _likeness(part, known_part) >= least:
                near.add(known)
    return min(near, key=lambda known: (-_likeness(name, known), known), default="")


def resembling(name: str) -> str:
    """
    Give the known name that looks most like an unknown *name*, however they differ, or nothing.

    Slow: it looks at each.

    >>> resembling("mapreduce.reduce.shuffle.buffer.percent")
    'mapreduce.reduce.shuffle.input.buffer.percent'
    """
    tail = f".{name}"
    in_order = sorted(known_names())
    longer = next((known for known in in_order if known.endswith(tail)), None)
    # Hadoop's names are long and alike: a lower cut-off would offer one for any.
    return longer or nearest_name(name, in_order, cutoff=0.85) or ""


def objection(name: str) -> tuple[str, str] | None:
    """Say what is wrong with *name* as a property, and what to write; `None`: it may stand."""
    if later := successor(name):
        return (f"'{name}' is obsolete in Hadoop 3, and is not read here", f"write {later}")
    if near := meant(name):
        fix = f"did you mean {near}? a property of your own needs its own first word"
        return f"Hadoop knows no property '{name}'", fix
    return None


def _likeness(name: str, known: str) -> float:
    return SequenceMatcher(None, name, known).ratio()


def _letters(name: str) -> str:
    return re.sub(r"[._-]", "", name).lower()


def _masked(parts: list[str], index: int) -> str:
    """The name of *parts* with a ``*`` in the place of one of them."""
    return ".".join([*parts[:index], "*", *parts[index + 1 :]])


@cache
def _successors() -> dict[str, str]:
    return {name: replacement for name, _, replacement in _table() if replacement}


@cache
def _first_words() -> frozenset[str]:
    return frozenset(name.partition(".")[0] for name, _, _ in _table())


@cache
def _similar_names() -> dict[tuple[str, str], list[str]]:
    """Known names by their letters alone, shortened by one of their parts, and with it masked."""
    names = defaultdict(list)
    for name in known_names():
        names["letters", _letters(name)].append(name)
        parts = name.split(".")
        for index in range(len(parts)):
            names["shortened", ".".join([*parts[:index], *parts[index + 1 :]])].append(name)
            names["masked", _masked(parts, index)].append(name)
    return dict(names)


@cache
def _table() -> tuple[tuple[str, str, str], ...]:
    text = (files("harness.hadoop") / "property-names.txt").read_text(encoding="utf-8")
    return tuple(line.partition(" ") for line in text.splitlines())
