"""Profiles: what the models were given, with spread, count and source of each value."""

from __future__ import annotations

from collections.abc import Mapping

from harness.base.documents.document import Block, Section, Table, Text, Value, table
from harness.base.documents.wording import UNKNOWN, number, percent
from harness.base.records.profile import Profile, Statistic
from harness.base.units import format_bytes
from harness.core.reports.data import ReportData

_LEAD = (
    "What the models were given, all of it from profiling trials, which are never scored. The"
    " spread of a dataflow statistic is its standard deviation, that of a fitted cost its standard"
    " error. Values marked assumed are shares of a group of costs that the trials could not"
    " distinguish, or the common cost of a side (maps, reduces) that does not show it."
)
# Costs are tiny in seconds; the factor brings them to the unit beside it.
_UNITS = {
    "_bps": (2.0**-20, "MiB/s"),
    "_s_per_byte": (1e9, "ns/B"),
    "_s_per_record": (1e6, "µs/record"),
    "_bytes": (1.0, "B"),
    "_s": (1.0, "s"),
}


def section(results: ReportData) -> Section:
    """All tables of each workload's profile, with its warnings."""
    blocks: list[Block] = [Text(_LEAD)]
    for workload, profile in results.profiles.items():
        blocks.append(Text(workload, "heading"))
        blocks += [Text(warning, "remark") for warning in profile.warnings]
        blocks += [
            statistics_table("Dataflow statistics", profile.statistics),
            statistics_table("Costs at reference speed", profile.costs),
            statistics_table("The frame: what passes around tasks", profile.frame),
            groups_table(profile),
            fits_table(profile),
            ranges_table(profile),
        ]
    return Section(
        id="profile",
        title="Profile",
        blocks=blocks,
        missing="No profile has been made.",
        values=lambda: {
            "profiles": {
                workload: profile.model_dump(mode="json", exclude={"refits"})
                for workload, profile in results.profiles.items()
            }
        },
    )


def groups_table(profile: Profile) -> Table:
    """Costs of which only the sum is measured."""
    rows = []
    for group in profile.groups:
        noise_s = group.spread_s or None
        sums = (number(group.sum_s, noise_s), number(group.spread_s, noise_s))
        rows.append((", ".join(group.names), *sums, group.note))
    return table(
        "Groups: costs that only occur together",
        ("Costs", "Sum, s", "Spread ±, s", "Why"),
        "lrrl",
        rows,
        note="Only the sum of a group is measured; its shares among the costs are assumed.",
    )


def fits_table(profile: Profile) -> Table:
    """What is left of the times of each phase beside its costs."""
    rows = [
        (fit.phase, str(fit.count), f"{fit.r2:.2f}", percent(fit.median_residual))
        for fit in profile.fit
    ]
    return table(
        "How well the costs explain the profiling trials",
        ("Phase", "Observations", "R²", "Median residual"),
        "lrrr",
        rows,
    )


def ranges_table(profile: Profile) -> Table:
    """Smallest and largest value of each axis that was profiled."""
    rows = []
    for name, ends in profile.ranges.items():
        write = format_bytes if name.endswith("_bytes") else "{:g}".format
        rows.append((name, *map(write, ends)))
    return table("Range that was profiled", ("Axis", "Smallest", "Largest"), "crr", rows)


def scaled(name: str) -> tuple[float, str]:
    """
    Factor and unit in which a statistic of this name reads well.

    >>> scaled("map_cpu_s_per_record"), scaled("map_records_selectivity")
    ((1000000.0, 'µs/record'), (1.0, ''))
    """
    for suffix in ("_compressed", "_map", "_reduce"):  # the same of jobs that compress, of a side
        name = name.removesuffix(suffix)
    return next((scale for suffix, scale in _UNITS.items() if name.endswith(suffix)), (1.0, ""))


def statistics_table(caption: str, statistics: Mapping[str, Statistic]) -> Table:
    """Statistics or costs; values that stand for a share of a group are marked as assumed."""
    numbers = group_numbers(statistics)
    rows = []
    for name, statistic in statistics.items():
        factor, unit = scaled(name)
        spread = factor * statistic.spread
        remarks = ["assumed"] if statistic.assumed else []
        if statistic.group:
            remarks.append(f"group {numbers[group_names(name, statistic)]}")
        rows.append(
            (
                name,
                number(factor * statistic.value, spread or None, most=6),
                number(spread, spread, most=6) if spread else UNKNOWN,
                *(unit, str(statistic.count), statistic.source),
                Value(", ".join(remarks), "mark" if statistic.assumed else ""),
            )
        )
    columns = ("Name", "Value", "Spread \u00b1", "Unit", "Count", "Source", "Remark")
    note = " ".join(f"Group {place}: {', '.join(names)}." for names, place in numbers.items())
    return table(caption, columns, "crrlrll", rows, note=note)


def group_names(name: str, statistic: Statistic) -> tuple[str, ...]:
    """Names of the costs that could not be distinguished from each other, this one among them."""
    return tuple(sorted({name, *statistic.group}))


def group_numbers(statistics: Mapping[str, Statistic]) -> dict[tuple[str, ...], int]:
    """Groups of costs that could not be distinguished, numbered from 1."""
    groups = dict.fromkeys(
        group_names(name, statistic) for name, statistic in statistics.items() if statistic.group
    )
    return {names: place for place, names in enumerate(groups, start=1)}
