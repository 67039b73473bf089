"""
Resource samples of the machine, one JSON object per line, written by `harness.running`.

Each holds exactly the fields of `MachineSample`.
"""

from __future__ import annotations

import json

from collections.abc import Iterable, Iterator
from dataclasses import fields
from typing import Any

from harness.errors import ParseError
from harness.parsing.lines import LARGEST, limited, named, shown, whole
from harness.records.trace import MachineSample

_FIELDS = frozenset(f.name for f in fields(MachineSample))
_WHOLE = ("runnable", "available_bytes")


def read_machine(lines: Iterable[bytes], source: str) -> Iterator[MachineSample]:
    """
    Yield the samples in *lines*.

    A last line without an end is left out: the sampler is killed, and may be while it writes.
    Any other line that is no sample is `ParseError` with *source*, line and field.
    """
    return limited(_samples(lines, source), source)


def _samples(lines: Iterable[bytes], source: str) -> Iterator[MachineSample]:
    for number, line in whole(lines):
        if line.isspace():
            continue
        try:
            yield _sample(line)
        except ValueError as error:
            raise ParseError(
                f"not a sample of the machine: {error}", source=source, line=number
            ) from error


def _sample(line: bytes) -> MachineSample:
    try:
        values = json.loads(line)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if not isinstance(values, dict) or values.keys() != _FIELDS:
        raise ValueError(f"the fields are not {', '.join(sorted(_FIELDS))}: {shown(line)}")
    for name, value in values.items():
        if not (_fits(name, value) or (name == "memory_pressure" and value is None)):
            raise ValueError(f"{name} is {named(value)}")
    return MachineSample(**values)


def _fits(name: str, value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int if name in _WHOLE else int | float):
        return False
    return bool(0 <= value < LARGEST)  # False for what is not a number, too.
