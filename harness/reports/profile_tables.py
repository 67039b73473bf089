"""A profile as tables: statistics and costs, each with spread, count and source."""

from __future__ import annotations

from collections.abc import Mapping

from harness.records.profile import Profile, SpeedCorrection, Statistic
from harness.reports.tables import Table, Value, table
from harness.reports.wording import UNKNOWN, count, number, one_line, percent
from harness.units import format_bytes

# Costs are tiny in seconds; the factor brings them to the unit beside it.
_UNITS = (
    ("_bytes_per_s", 2.0**-20, "MiB/s"),
    ("_bps", 2.0**-20, "MiB/s"),
    ("_s_per_byte", 1e9, "ns/B"),
    ("_s_per_record", 1e6, "µs/record"),
    ("_bytes", 1.0, "B"),
    ("_s", 1.0, "s"),
)


def scaled(name: str) -> tuple[float, str]:
    """
    Factor and unit in which a statistic of this name reads well.

    >>> scaled("map_cpu_s_per_record"), scaled("map_records_selectivity")
    ((1000000.0, 'µs/record'), (1.0, ''))
    """
    name = name.removesuffix("_compressed")  # the same of jobs that compress
    for suffix, factor, unit in _UNITS:
        if name.endswith(suffix):
            return factor, unit
    return 1.0, ""


def statistics_table(caption: str, statistics: Mapping[str, Statistic]) -> Table | None:
    """Statistics or costs; values that stand for a share of a group are marked as assumed."""
    groups = _groups(statistics)
    rows = [_statistic(name, s, groups) for name, s in statistics.items()]
    columns = ("Name", "Value", "Spread \u00b1", "Unit", "Count", "Source", "Remark")
    # The remarks need a column only where there are any.
    shown = len(columns) if any(row[-1].text for row in rows) else len(columns) - 1
    kept = [row[:shown] for row in rows]
    note = " ".join(f"Group {n}: {', '.join(names)}." for names, n in groups.items())
    return table(caption, columns[:shown], "crrlrll"[:shown], kept, note=note) if rows else None


def _groups(statistics: Mapping[str, Statistic]) -> dict[tuple[str, ...], int]:
    """Groups of costs that could not be told apart, numbered from 1."""
    found = (tuple(sorted({name, *s.group})) for name, s in statistics.items() if s.group)
    return {names: n for n, names in enumerate(dict.fromkeys(found), start=1)}


def _statistic(name: str, s: Statistic, groups: Mapping[tuple[str, ...], int]) -> tuple[Value, ...]:
    factor, unit = scaled(name)
    spread = factor * s.spread
    texts = (
        name,
        number(factor * s.value, spread or None, most=6),
        number(spread, spread, most=6) if spread else UNKNOWN,
        unit,
        str(s.count),
        s.source,
    )
    group = f"group {groups[tuple(sorted({name, *s.group}))]}" if s.group else ""
    remark = ", ".join(word for word in ("assumed" if s.assumed else "", group) if word)
    return (*(Value(text) for text in texts), Value(remark, "mark" if s.assumed else ""))


def group_table(profile: Profile) -> Table | None:
    """Costs that the profiling trials could not tell apart."""
    rows = [
        (
            ", ".join(g.names),
            number(g.sum_s, g.spread_s or None),
            number(g.spread_s, g.spread_s or None),
            g.note,
        )
        for g in profile.groups
    ]
    columns = ("Costs", "Sum, s", "Spread ±, s", "Why")
    return table(
        "Groups: costs that only occur together", columns, "lrrl", rows,
        note="Only the sum of a group is measured; how it is shared among its costs is assumed.",
    ) if rows else None  # fmt: skip


def fit_table(profile: Profile) -> Table | None:
    """How well the costs explain each phase of the profiling trials."""
    rows = [(f.phase, str(f.count), f"{f.r2:.2f}", percent(f.median_residual)) for f in profile.fit]
    columns = ("Phase", "Observations", "R²", "Median residual")
    return (
        table("How well the costs explain the profiling trials", columns, "lrrr", rows)
        if rows
        else None
    )


def range_table(profile: Profile) -> Table | None:
    """Smallest and largest value of each axis that was profiled."""
    rows = [(name, *(_axis(name, v) for v in ends)) for name, ends in profile.ranges.items()]
    columns = ("Axis", "Smallest", "Largest")
    return table("Range that was profiled", columns, "crr", rows) if rows else None


def _axis(name: str, value: float) -> str:
    return format_bytes(value) if name.endswith("_bytes") else f"{value:g}"


def profile_tables(profile: Profile) -> list[Table]:
    """All tables of one profile that have rows."""
    found = (
        statistics_table("Dataflow statistics", profile.statistics),
        statistics_table("Costs at reference speed", profile.costs),
        statistics_table("Overheads of the scheduler", profile.overheads),
        group_table(profile),
        fit_table(profile),
        range_table(profile),
    )
    return [t for t in found if t is not None]


def correction_text(workload: str, speed: SpeedCorrection | None) -> str:
    """Say what was done to bring times to reference speed."""
    if speed is None:
        return f"{workload}: no speed was measured; times at reference speed equal raw times."
    note = f" ({one_line(speed.note)})" if speed.note else ""
    trials = count(speed.count, "profiling trial")
    if speed.coefficient == 0:
        return (
            f"{workload}: no correction, because leave-one-out over {trials} shows no gain;"
            f" times at reference speed equal raw times{note}."
        )
    return (
        f"{workload}: times \u00d7 (speed / reference speed)^{number(speed.coefficient, 0.03)},"
        f" fitted on {trials}; leave-one-out spread falls by {percent(speed.gain, 0.03)}{note}."
    )
