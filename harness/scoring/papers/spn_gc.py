"""
SPN-GC's tables: notations and defaults, held against the equations that use them.

    [Hung] Y. Hung, S.-T. Cheng, C.-M. Chen. "Estimation of Job Execution Time in MapReduce
    Framework over GPU Clusters": Eqs. (1)-(14), Tables I and II.

The paper prints no times, so that nothing but the defaults and the counts of its net can be
computed: what a default makes of the equations, and what a fork of exponential delays does to a
sum of means.  ``docs/models/spn-gc.md``, sections 2 to 6.
"""

from __future__ import annotations

import math

from dataclasses import dataclass
from functools import cache

from harness.scoring.papers.printed import number, printed
from harness.scoring.papers.records import Column, PaperTable

_SYSTEM, _APPLICATION = "spn_gc_table1_system", "spn_gc_table2_application"
_METADATA_BYTES = 16  # of a record, text before (11)
_MIB = 2**20
SLIPS = {
    "S07": "an equation needs it and no table has it; T_m may hold it already",
    "S09": "an equation needs it; neither table nor text defines it",
    "S20": "one rate in two spellings, and in no table",
    "S21": "an equation needs it and no table has it; it is no part of a job's run time",
    "S22": "carries the description of another row",
    "S01": "called a data size (D_), used as a rate",
    "S10": "one name for two rates: device memory in (9), device to host in (10) and (14)",
    "ST1": "stands in a table and in no equation",
    "ST2": "an equation needs it and no table has it",
}
_KNOWN = {
    "T_upload": "S21",
    "T_m_GPU": "S07",
    "M_test": "S09",
    "D_network": "S01",
    "GPU_mem_r": "S10",
    "GPU_Mem_r": "S10",
    "Disk_r": "S20",
    "Disk_w": "S20",
    "Mem_r": "S20",
    "Mem_w": "S20",
}


@dataclass(frozen=True, slots=True)
class Setting:
    """A row of Table I: its symbol in the equations, default and description as printed."""

    parameter: str
    symbol: str
    default: str
    description: str


@cache
def settings() -> tuple[Setting, ...]:
    """Rows of Table I."""
    return tuple(
        Setting(
            cells["parameter"],
            cells["notation"] or cells["parameter"],
            cells["default"],
            cells["description_as_printed"],
        )
        for cells in printed(_SYSTEM)
    )


@cache
def notations() -> tuple[tuple[str, str], ...]:
    """Rows of Table II: what, and its symbol."""
    return tuple((cells["parameter"], cells["notation"]) for cells in printed(_APPLICATION))


@cache
def equations() -> dict[str, str]:
    """Symbol -> numbers of the equations (5)-(14) that use it, with the text they rest on."""
    return {cells["symbol"]: cells["equations"] for cells in printed("spn_gc_symbols")}


@cache
def spellings() -> dict[str, str]:
    """Symbol -> how other equations spell it, or what they call it; '' for most."""
    return {cells["symbol"]: cells["also_printed_as"] for cells in printed("spn_gc_symbols")}


def untabled() -> list[str]:
    """Symbols of the equations that neither Table I nor Table II has."""
    tabled = {s.symbol for s in settings()} | {symbol for _, symbol in notations()}
    return [symbol for symbol in equations() if symbol not in tabled]


def unused() -> list[str]:
    """Symbols of Tables I and II that no equation uses."""
    tabled = [s.symbol for s in settings()] + [symbol for _, symbol in notations()]
    return [symbol for symbol in tabled if symbol not in equations()]


def borrowed() -> dict[str, str]:
    """Parameter -> the earlier one of Table I whose description it carries."""
    first: dict[str, str] = {}
    found: dict[str, str] = {}
    for setting in settings():
        if setting.description in first:
            found[setting.parameter] = first[setting.description]
        elif setting.description:
            first[setting.description] = setting.parameter
    return found


def _table1() -> PaperTable:
    unused_, borrowed_ = unused(), borrowed()
    rows = tuple(
        (
            s.parameter,
            s.symbol if s.symbol != s.parameter else "",
            s.default,
            _numbers(s.symbol),
            f"of {borrowed_[s.parameter]}" if s.parameter in borrowed_ else "",
            _marks(s.symbol in unused_, s.parameter in borrowed_),
        )
        for s in settings()
    )
    return PaperTable(
        name="spn-gc-1",
        paper="spn-gc",
        title="SPN-GC, Table I: system notations and settings",
        columns=(
            Column("parameter", "parameter"),
            Column("notation", "notation"),
            Column("default", "default"),
            Column("equations", "equations"),
            Column("description_of", "description"),
            Column("slip", "slip"),
        ),
        rows=rows,
        slips={mark: SLIPS[mark] for mark in ("ST1", "S22")},
    )


def _marks(is_unused: bool, is_borrowed: bool) -> str:  # noqa: FBT001 - both are named at the call
    return " ".join(mark for mark, has in (("ST1", is_unused), ("S22", is_borrowed)) if has)


def _numbers(symbol: str) -> str:
    used = equations().get(symbol, "")
    return ", ".join(used.split()) or "none"


def _table2() -> PaperTable:
    return PaperTable(
        name="spn-gc-2",
        paper="spn-gc",
        title="SPN-GC, Table II: notations of the application",
        columns=(
            Column("notation", "notation"),
            Column("equations", "equations"),
            Column("slip", "slip"),
        ),
        rows=tuple((symbol, _numbers(symbol), "") for _, symbol in notations()),
        slips={},
        note="it has no values",
    )


def _symbols() -> PaperTable:
    rows = tuple(
        (symbol, spellings()[symbol], _numbers(symbol), f"{_KNOWN.get(symbol, '')} ST2".strip())
        for symbol in untabled()
    )
    used = sorted({mark for row in rows for mark in row[-1].split()})
    return PaperTable(
        name="spn-gc-symbols",
        paper="spn-gc",
        title="SPN-GC, equations (5)-(14): symbols that stand in neither table",
        columns=(
            Column("symbol", "symbol"),
            Column("also_printed_as", "also as"),
            Column("equations", "equations"),
            Column("slip", "slip"),
        ),
        rows=rows,
        slips={mark: SLIPS[mark] for mark in used},
        note="the paper has no such table",
    )


# What the defaults of Table I make of the equations.


def _default(symbol: str) -> float:
    setting = next(s for s in settings() if s.symbol == symbol)
    return number(setting.default.split()[0], _SYSTEM)


def defaults() -> list[tuple[str, str, float, str]]:
    """Quantity, equation, value and unit, for each that the defaults alone decide."""
    sort_mib = _default("sort.mb") * _default("sort.spill.percent")
    metadata_mib = sort_mib * _default("sort.record.percent")
    data_mib = sort_mib - metadata_mib
    heap = _default("Heap_red")
    merge_mib = heap * _default("shuffle.buffer.percent") * _default("shuffle.merge.percent")
    narrow = _METADATA_BYTES * (data_mib / metadata_mib + 1)
    return [
        ("metadata buffer", "(11)", metadata_mib, "MB"),
        ("data buffer", "(11)", data_mib, "MB"),
        ("records of a spill, by the metadata", "(11)", metadata_mib * _MIB / _METADATA_BYTES, ""),
        ("narrowest record that fills the data buffer first", "(11)", narrow, "B"),
        ("reduce input of one disk pass", "(13)", merge_mib, "MB"),
        ("input of the test job: its maps x split", "(5)", _default("M_ref") * _split_mib(), "MB"),
    ]


def _split_mib() -> float:
    return _default("D_split")


def _defaults() -> PaperTable:
    return PaperTable(
        name="spn-gc-defaults",
        paper="spn-gc",
        title="SPN-GC: what the defaults of Table I alone decide",
        columns=(
            Column("quantity", "quantity"),
            Column("equation", "by"),
            Column("value", "value", 1),
            Column("unit", "unit"),
            Column("slip", "slip"),
        ),
        rows=tuple((*row, "") for row in defaults()),
        slips={},
        note="the paper has no such table; MB is 2^20 bytes",
    )


# The net.


def counts(num_maps: int, num_reduces: int) -> tuple[int, int]:
    """Places and transitions of the net, Eqs. (1) and (2)."""
    return 5 * num_maps + 3 * num_reduces + 2, 5 * num_maps + 2 * num_reduces + 2


def longest(branches: int, stages: int, *, steps: int = 1000) -> float:
    """
    Expected longest of *branches* parallel chains of *stages* exponential delays, in chain means.

    The chains are independent, all delays have one mean.  Integral of 1 - F(t)^branches by
    Simpson's rule, with F the Erlang distribution.

    >>> round(longest(3, 1), 6)  # 1 + 1/2 + 1/3
    1.833333
    """
    end = stages + 40.0 + 10 * math.log(branches)
    width = end / steps
    weights = (1, *(4 if i % 2 else 2 for i in range(1, steps)), 1)
    total = math.fsum(
        weight * _any_left(i * width, branches, stages) for i, weight in enumerate(weights)
    )
    return total * width / 3 / stages


def _any_left(t: float, branches: int, stages: int) -> float:
    term, left = math.exp(-t), 0.0
    for k in range(stages):
        left += term
        term *= t / (k + 1)
    return 1.0 if left >= 1 else -math.expm1(branches * math.log1p(-left))


NETS = ((1, 1), (3, 2), (4, 1), (16, 1), (64, 8))


def _net() -> PaperTable:
    return PaperTable(
        name="spn-gc-net",
        paper="spn-gc",
        title="SPN-GC: size of the net, and its map branch against a sum of means",
        columns=(
            Column("num_maps", "maps M", 0),
            Column("num_reduces", "reduces R", 0),
            Column("places", "places\n(1)", 0),
            Column("transitions", "transitions\n(2)", 0),
            Column("equal_stages", "longest branch / mean of a branch\n5 equal phases", 3),
            Column("one_stage", "\n1 phase takes all", 3),
            Column("slip", "slip"),
        ),
        rows=tuple(
            (float(m), float(r), *map(float, counts(m, r)), longest(m, 5), longest(m, 1), "")
            for m, r in NETS
        ),
        slips={},
        note="the paper's figure is M = 3, R = 2, its Table I M_ref = 4, R = 1",
    )


def tables() -> list[PaperTable]:
    """The paper's tables and ours on its equations."""
    return [_table1(), _table2(), _symbols(), _defaults(), _net()]
