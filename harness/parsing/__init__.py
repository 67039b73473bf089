"""
Text to records; one module per source.

Every parser takes an iterable of lines as bytes (`read_properties` and `read_units`: all bytes at
once) and the name of the text for its messages.  It answers with frozen records or with
`ParseError`, and with nothing else, whatever the bytes are.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

# Name -> where its function is: who reads a history need not load the others.
PARSERS: dict[str, str] = {
    "container_log": "harness.parsing.container_log:read_spills",
    "gc_log": "harness.parsing.gc_log:read_gc",
    "jobconf": "harness.parsing.jobconf:read_properties",
    "jobhistory": "harness.parsing.jobhistory:read_job",
    "ltrace": "harness.parsing.ltrace:read_ltrace",
    "machine": "harness.parsing.machine:read_machine",
    "shuffle_log": "harness.parsing.shuffle_log:read_shuffle_log",
    "speed_probe": "harness.parsing.speed_probe:read_speed",
    "task_log": "harness.parsing.container_log:read_task_log",
    "units": "harness.parsing.units:read_units",
}


def parser(name: str) -> Callable[..., Any]:
    """Return the parser of that name (`KeyError` where there is none)."""
    module, _, function = PARSERS[name].partition(":")
    found: Callable[..., Any] = getattr(import_module(module), function)
    return found
