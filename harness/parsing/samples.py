"""
Samples that the harness takes while trials run: of the machine, and of its speed.

Both writers are killed, and may be while they write: a last line without an end is left out.
"""

from __future__ import annotations

import re

from collections.abc import Iterable, Iterator
from dataclasses import fields

import orjson

from harness.errors import ParseError
from harness.parsing.lines import LARGEST, limited, value_excerpt, whole_lines
from harness.records.trace import MachineSample, SpeedSample
from harness.text import excerpt

_MACHINE_FIELDS = frozenset(field.name for field in fields(MachineSample))
_WHOLE_FIELDS = ("runnable", "available_bytes")
_SPEED_LINE = re.compile(rb"\s*(\d{1,16})\s+(\d{1,6})\s+(\d{1,16})\s+(\d{1,16})\s*")


def read_machine(lines: Iterable[bytes], source: str) -> Iterator[MachineSample]:
    """
    Yield the samples in *lines*, each a JSON object with exactly the fields of `MachineSample`.

    A line that is not such a sample is `ParseError` with *source*, line and field.
    """
    for number, sample_line in limited(whole_lines(lines), source):
        if sample_line.isspace():
            continue
        try:
            values = orjson.loads(sample_line)
            if not isinstance(values, dict) or values.keys() != _MACHINE_FIELDS:
                raise ValueError(f"the fields are not {', '.join(sorted(_MACHINE_FIELDS))}")
            for name, field_value in values.items():
                if name == "memory_pressure" and field_value is None:
                    continue
                is_number = type(field_value) is int or (
                    type(field_value) is float and name not in _WHOLE_FIELDS
                )
                if not is_number or not 0 <= field_value < LARGEST:
                    raise ValueError(f"{name} is {value_excerpt(field_value)}")
        except ValueError as error:
            raise ParseError(
                f"not a sample of the machine: '{excerpt(sample_line)}': {error}",
                source=source,
                line=number,
            ) from error
        yield MachineSample(**values)


def read_speed(lines: Iterable[bytes], source: str) -> Iterator[SpeedSample]:
    """
    Yield the samples of the speed probe in *lines*, a sample's CPU time in seconds.

    A line is ``epoch_ms thread units cpu_ns``: when the sample was taken, on which thread, the
    units of fixed work that were done and the CPU time they took; or a header after ``#``.  Any
    other line is `ParseError` with *source* and line.
    """
    for number, sample_line in limited(whole_lines(lines), source):
        if sample_line.isspace() or sample_line.startswith(b"#"):
            continue
        match = _SPEED_LINE.fullmatch(sample_line)
        values = [int(text) for text in match.groups()] if match else [LARGEST]
        if max(values) >= LARGEST:
            raise ParseError(
                f"not a sample of the speed probe: '{excerpt(sample_line)}'",
                source=source,
                line=number,
                fix="a sample is: epoch_ms thread units cpu_ns",
            )
        epoch_ms, thread, units, cpu_ns = values
        yield SpeedSample(at_s=epoch_ms / 1e3, thread=thread, units=units, cpu_s=cpu_ns / 1e9)
