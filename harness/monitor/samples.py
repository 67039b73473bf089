"""
What was sampled of machines during a trial: its files, and what they come to.

This machine's are ``speed.txt`` and ``machine.jsonl``; those of a machine that was sampled through
a node have the node's name in theirs: ``speed-worker1.txt``.
"""

from __future__ import annotations

import re
import shutil

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from statistics import fmean, harmonic_mean
from typing import Any, Protocol

from harness.parsing.lines import read_machine, read_speed
from harness.records.trace import MachineSample, SpeedSample

PROBE_LOG = "speed.txt"
MACHINE_LOG = "machine.jsonl"
SAMPLE_S = 1.0  # a sample of the speed probe sums over the second that ends at its time


class RawFiles(Protocol):
    """The raw files of a trial, by name."""

    def names(self) -> Sequence[str]:
        """Return the names of all files."""
        ...

    def open(self, file_name: str) -> Any:
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


def mean_rate(samples: Iterable[SpeedSample], start_s: float, end_s: float) -> float | None:
    """
    Units of work per CPU second between two moments, or `None` where nothing was sampled.

    A sample counts where the middle of its second is between them, ends included.
    """
    units, cpu_s = 0, 0.0
    for sample in samples:
        if start_s <= sample.at_s - SAMPLE_S / 2 <= end_s:
            units += sample.units
            cpu_s += sample.cpu_s
    return units / cpu_s if cpu_s > 0 else None


def trial_rate(raw: RawFiles, start_s: float, end_s: float) -> float | None:
    """
    Units of work per CPU second between two moments (seconds since the epoch), of all machines.

    It is the harmonic mean of the machines' own: the time that equal work takes on each, added up.
    `None` where nothing was sampled, or one of the machines had no sample.
    """
    machine_rates = []
    for file_name in _machine_files(raw, PROBE_LOG):
        with raw.open(file_name) as lines:
            machine_rate = mean_rate(read_speed(lines, file_name), start_s, end_s)
        if not machine_rate:
            return None
        machine_rates.append(machine_rate)
    return harmonic_mean(machine_rates) if machine_rates else None


def machine_means(raw: RawFiles) -> dict[str, float]:
    """Mean shares of the time, ``busy`` and ``steal``, over the samples of all machines."""
    samples: list[MachineSample] = []
    for file_name in _machine_files(raw, MACHINE_LOG):
        with raw.open(file_name) as lines:
            samples += read_machine(lines, file_name)
    if not samples:
        return {}
    return {
        "busy": fmean(sample.busy for sample in samples),
        "steal": fmean(sample.steal for sample in samples),
    }


def copy_tail(source: Path, start: int, target: Path) -> None:
    """Copy what was written to *source* since it had *start* bytes, from the next whole line on."""
    with source.open("rb") as stream, target.open("wb") as copy:
        stream.seek(max(0, start - 1))
        if start:
            stream.readline()
        shutil.copyfileobj(stream, copy)


def _machine_files(raw: RawFiles, log: str) -> Iterator[str]:
    """Files of all machines that were sampled; what a task's container left is in a folder."""
    stem, _, ending = log.partition(".")
    pattern = re.compile(rf"{stem}(-[^/]+)?\.{ending}")
    return (file_name for file_name in raw.names() if pattern.fullmatch(file_name))
