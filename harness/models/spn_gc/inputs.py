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


def read_parameters(parameters: Mapping[str, Any], rules: str) -> Parameters:
    """Check *parameters*; ``ModelError`` names a field that is missing or out of its range."""
    if rules not in RULES:
        raise range_error("rules", rules, "paper or mr2", WHERE)
    checked_values = {}
    for name, parameter in FIELDS.items():
        if name in parameters:
            check = parameter.metadata["check"]
            checked_values[name] = check(
                name, parameters[name], where=WHERE, **parameter.metadata["limits"]
            )
        elif parameter.default is MISSING:
            raise ModelError(f"{name} is missing", where=WHERE)
    record_percent = checked_values.get("sort_record_percent", 0.05)
    if rules == "paper" and not 0 < record_percent < 1:
        raise range_error(
            "sort_record_percent", record_percent, "between 0 and 1", f"{WHERE}, paper rules"
        )
    return Parameters(**checked_values)


def warnings_of(parameters: Mapping[str, Any]) -> list[str]:
    """What a reader of the answer should know of its inputs."""
    unknown_names = set(parameters) - FIELDS.keys() - UNUSED
    return [f"{name} is not used by the model" for name in sorted(unknown_names)]


def ceil_ratio(numerator: float, denominator: float) -> int:
    """
    ceil(a/b), where a ratio within 1e-9 of an integer is that integer.

    >>> ceil_ratio(3, 2), ceil_ratio(0.3, 0.1), ceil_ratio(2**70, 3)
    (2, 3, 393530540239137101142)
    """
    if float(numerator).is_integer() and float(denominator).is_integer():
        return -(-int(numerator) // int(denominator))
    ratio = numerator / denominator
    if not math.isfinite(ratio):
        raise ModelError(f"{numerator:g}/{denominator:g} is beyond all counts", where=WHERE)
    nearest_count = round(ratio)
    return nearest_count if abs(ratio - nearest_count) <= 1e-9 * ratio else math.ceil(ratio)
