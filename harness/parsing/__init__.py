"""
Text to records; one module per source.

Every parser takes an iterable of lines as bytes (`read_properties` and `read_units`: all bytes at
once) and the name of the text for its messages.  It answers with frozen records or with
`ParseError`, and with nothing else, whatever the bytes are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harness.parsing.container_log import read_spills
from harness.parsing.gc_log import read_gc
from harness.parsing.jobconf import read_properties
from harness.parsing.jobhistory import read_job
from harness.parsing.ltrace import read_ltrace
from harness.parsing.machine import read_machine
from harness.parsing.shuffle_log import read_shuffle_log
from harness.parsing.speed_probe import read_speed
from harness.parsing.units import read_units

PARSERS: dict[str, Callable[..., Any]] = {
    "container_log": read_spills,
    "gc_log": read_gc,
    "jobconf": read_properties,
    "jobhistory": read_job,
    "ltrace": read_ltrace,
    "machine": read_machine,
    "shuffle_log": read_shuffle_log,
    "speed_probe": read_speed,
    "units": read_units,
}
