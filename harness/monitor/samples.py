"""
What was sampled of machines during a trial: the files of it, and what they tell in sum.

This machine's are ``speed.txt`` and ``machine.jsonl``; those of a machine that was watched through
the door of a node have the node's name in theirs: ``speed-worker1.txt``.
"""

from __future__ import annotations

import re
import shutil

from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean, harmonic_mean
from typing import Any, Protocol

from harness.monitor.probe import rate
from harness.parsing.samples import read_machine, read_speed
from harness.records.trace import MachineSample

PROBE_LOG = "speed.txt"
MACHINE_LOG = "machine.jsonl"


class RawFiles(Protocol):
    """The raw files of a trial, by name."""

    def names(self) -> Sequence[str]:
        """Return the names of all files."""
        ...

    def open(self, name: str) -> Any:
        """Open a file, as a context manager over lines."""
        ...


def named_after(log: str, node: str) -> str:
    """
    Name of the file for the machine of *node*.

    >>> named_after("speed.txt", "worker1")
    'speed-worker1.txt'
    """
    stem, _, ending = log.partition(".")
    return f"{stem}-{node}.{ending}"


def trial_rate(raw: RawFiles, start_s: float, end_s: float) -> float | None:
    """
    Units of work per CPU second between two moments (seconds since the epoch), of all machines.

    It is the harmonic mean of the machines' own: the time that equal work takes on each, added up.
    `None` where nothing was sampled, or one of the machines had no sample.
    """
    rates = []
    for name in _files(raw, PROBE_LOG):
        with raw.open(name) as lines:
            rates.append(rate(read_speed(lines, name), start_s, end_s))
    known = [r for r in rates if r]
    return harmonic_mean(known) if known and len(known) == len(rates) else None


def machine_means(raw: RawFiles) -> dict[str, float]:
    """Mean shares of the time, ``busy`` and ``steal``, over the samples of all machines."""
    samples: list[MachineSample] = []
    for name in _files(raw, MACHINE_LOG):
        with raw.open(name) as lines:
            samples += read_machine(lines, name)
    if not samples:
        return {}
    return {"busy": fmean(s.busy for s in samples), "steal": fmean(s.steal for s in samples)}


def _files(raw: RawFiles, log: str) -> Iterator[str]:
    """The files of all machines that were sampled."""
    stem, _, ending = log.partition(".")
    pattern = re.compile(rf"{stem}(-[^/]+)?\.{ending}")
    return (name for name in raw.names() if pattern.fullmatch(name))


def slice_file(source: Path, start: int, target: Path) -> None:
    """Copy what was written to *source* since it had *start* bytes, from the next whole line on."""
    with source.open("rb") as stream, target.open("wb") as out:
        stream.seek(max(0, start - 1))
        if start:
            stream.readline()
        shutil.copyfileobj(stream, out)
