"""
What SPN-GC is given: job, test job, rates and configuration, with defaults and ranges.

``docs/models/spn-gc.md``, sections 2 and 8; `read_parameters` checks all of them.
"""

from __future__ import annotations

import math

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import Any

from harness.errors import ModelError
from harness.models.checks import check_count, check_flag, check_number, range_error

MB = 2**20
RULES = ("paper", "mr2")
WHERE = "spn-gc"

# Fields of the specification's tables that no equation reads.
UNUSED = frozenset(
    {"num_maps", "test_num_maps", "map_slots_per_node", "parallel_copies", "map_slots",
     "reduce_slots"}
)  # fmt: skip


def _number(default: Any = MISSING, **limits: Any) -> Any:
    return field(default=default, metadata={"check": check_number, "limits": limits})


def _positive(default: Any = MISSING) -> Any:
    return _number(default, above=True)


def _share(default: float) -> Any:
    return _number(default, high=1.0, above=True)


def _count(default: Any = MISSING, low: int = 1) -> Any:
    return field(default=default, metadata={"check": check_count, "limits": {"low": low}})


@dataclass(frozen=True, kw_only=True)
class Parameters:
    """Symbols of section 2: sizes in bytes, rates in bytes/s, times in s."""

    input_bytes: float = _positive()
    test_input_bytes: float = _positive()
    split_bytes: float = _positive(128.0 * MB)
    gpu_block_bytes: float = _positive()
    num_reduces: int = _count(1, low=0)
    num_datanodes: int = _count()
    replication: int = _count(3)
    m_test: float = _number(1.0)

    load_s: float = _number()
    upload_s: float = _number(0.0)
    map_s: float = _number()
    map_gpu_s: float = _number()
    reduce_s: float = _number()
    reduce_gpu_s: float = _number(0.0)
    reduce_uses_gpu: bool = field(default=False, metadata={"check": check_flag, "limits": {}})
    cpu_ratio: float = _positive(1.0)
    gpu_ratio: float = _positive(1.0)

    test_map_bytes: float = _number()
    test_map_output_bytes: float = _number()
    test_reduce_bytes: float = _number()
    test_map_spilled_records: float = _number()

    disk_read_bps: float = _positive()
    disk_write_bps: float = _positive()
    mem_read_bps: float = _positive()
    mem_write_bps: float = _positive()
    network_bps: float = _positive()
    gpu_h2d_bps: float = _positive()
    gpu_mem_read_bps: float = _positive()
    gpu_d2h_bps: float = _positive()

    sort_buffer_mb: float = _positive(100.0)
    sort_spill_percent: float = _share(0.8)
    sort_record_percent: float = _number(0.05, low=-math.inf)
    merge_factor: int = _count(10, low=2)
    reduce_heap_bytes: float = _positive(1024.0 * MB)
    shuffle_buffer_percent: float = _share(0.7)
    shuffle_merge_percent: float = _share(0.66)
    reduce_buffer_percent: float = _number(0.0, high=1.0)
    gpu_block_concurrency: int = _count(1)

    @property
    def scale(self) -> float:
        """D_input/D_test."""
        return self.input_bytes / self.test_input_bytes


FIELDS = {f.name: f for f in fields(Parameters)}
REQUIRED = frozenset(name for name, f in FIELDS.items() if f.default is MISSING)


def read_parameters(given: Mapping[str, Any], rules: str) -> Parameters:
    """*given* as parameters; ``ModelError`` names a field that is missing or out of its range."""
    if rules not in RULES:
        raise range_error("rules", rules, "paper or mr2", WHERE)
    values = {}
    for name, f in FIELDS.items():
        if name in given:
            check = f.metadata["check"]
            values[name] = check(name, given[name], where=WHERE, **f.metadata["limits"])
        elif f.default is MISSING:
            raise ModelError(f"{name} is missing", where=WHERE)
    share = values.get("sort_record_percent", 0.05)
    if rules == "paper" and not 0 < share < 1:
        raise range_error("sort_record_percent", share, "between 0 and 1", f"{WHERE}, paper rules")
    return Parameters(**values)


def warnings_of(given: Mapping[str, Any]) -> list[str]:
    """What a reader of the answer should know of its inputs."""
    strange = set(given) - FIELDS.keys() - UNUSED
    return [f"{name} is not used by the model" for name in sorted(strange)]


def ceil_ratio(a: float, b: float) -> int:
    """
    ceil(a/b), where a ratio within 1e-9 of an integer is that integer.

    >>> ceil_ratio(3, 2), ceil_ratio(0.3, 0.1), ceil_ratio(2**70, 3)
    (2, 3, 393530540239137101142)
    """
    if float(a).is_integer() and float(b).is_integer():
        return -(-int(a) // int(b))
    ratio = a / b
    if not math.isfinite(ratio):
        raise ModelError(f"{a:g}/{b:g} is beyond all counts", where=WHERE)
    nearest = round(ratio)
    return nearest if abs(ratio - nearest) <= 1e-9 * ratio else math.ceil(ratio)
