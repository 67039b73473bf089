"""What a machine costs, and where two differ: the same tables on a page and in a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from harness.records.hardware import MachineCosts
from harness.reports.document import Document, Section, Table, Text, table
from harness.text import excerpt

_APART = "!: outside the interval; what tasks do and what disks and networks do differ"


class CostPair(NamedTuple):
    """A cost of *one* machine and of an*other*; a *verdict* needs both intervals."""

    name: str
    one: float
    other: float
    ratio: float | None
    verdict: str


def machine_document(name: str, machine: MachineCosts) -> Document:
    """The costs of a machine with their intervals; folded, its jobs and what they ran on."""
    rows = []
    for cost_name, cost in {**machine.costs, **machine.frame}.items():
        ends = f"{cost.low:.3g} to {cost.high:.3g}" if cost.high is not None else "not known"
        apart = f"not told apart from {', '.join(cost.group)}" if cost.group else ""
        micro = (
            "" if cost.micro is None else f"{cost.micro:.3g}{' !' if cost.agree is False else ''}"
        )
        trials = str(cost.trials)
        rows.append((cost_name, f"{cost.value:.3g}", ends, micro, cost.unit, trials, apart))
    columns = ("cost", "value", "90 % interval", "without a job", "unit", "jobs", "")
    is_apart = any(cost.agree is False for cost in machine.costs.values())
    chosen = [(each["trial"], each["reason"], f"{each['seconds']:.1f}") for each in machine.chosen]
    jobs = table("Jobs in their order", ("trial", "chosen for", "s"), "clr", chosen, folded=True)
    facts = [(fact, excerpt(value)) for fact, value in machine.conditions.items()]
    measured_on = table("Measured on", ("fact", "value"), "cl", facts, folded=True)
    return Document(
        name=name,
        question="What does this machine cost?",
        headline=f"{len(machine.chosen)} jobs in {machine.spent_s:.0f} s",
        overview=table("Costs", columns, "crlrlrl", rows, note=_APART if is_apart else ""),
        sections=_shown(
            [
                Section("jobs", "Jobs", [jobs]),
                Section("facts", "Measured on", [measured_on]),
            ]
        ),
    )


def _shown(sections: list[Section]) -> list[Section]:
    return [section for section in sections if section.shown()]


def pairs(one: MachineCosts, other: MachineCosts) -> list[CostPair]:
    """Each cost that both machines have, and whether it differs beyond its intervals."""
    compared = list[CostPair]()
    others = {**other.costs, **other.frame}
    for name, cost in {**one.costs, **one.frame}.items():
        if there := others.get(name):
            ends = (cost.low, cost.high, there.low, there.high)
            verdict = "cannot tell"
            if None not in ends:
                is_apart = there.low > cost.high or there.high < cost.low  # type: ignore[operator]
                verdict = "differs" if is_apart else "within their intervals"
            ratio = there.value / cost.value if cost.value else None
            compared.append(CostPair(name, cost.value, there.value, ratio, verdict))
    return compared


def pair_document(
    names: Sequence[str],
    costs: Sequence[CostPair],
    conditions: dict[str, tuple[Any, Any]],
    times: Sequence[tuple[str, str, float, float]],
) -> Document:
    """
    *costs* of two machines side by side, which *conditions* differ, and where time goes on each.

    *times*: workload, what its tasks wait for, seconds of a map and a reduce on both.
    """
    rows = [
        (
            cost.name,
            f"{cost.one:.3g}",
            f"{cost.other:.3g}",
            f"{cost.ratio:.2f}" if cost.ratio else "",
            cost.verdict,
        )
        for cost in costs
    ]
    facts = [(fact, *map(excerpt, pair)) for fact, pair in conditions.items()]
    lines = [(*row[:2], f"{row[2]:.2f}", f"{row[3]:.2f}") for row in times]
    waits: list[Text | Table] = [
        table("Seconds of a map and a reduce", ("workload", "for", *names), "llrr", lines)
    ]
    for workload in dict.fromkeys(row[0] for row in times):
        most = [
            max((row[place], row[1]) for row in times if row[0] == workload)[1] for place in (2, 3)
        ]
        waits.append(Text(f"{workload}: most time goes to {most[0]} there, to {most[1]} here"))
    differing = sum(cost.verdict == "differs" for cost in costs)
    return Document(
        name=" and ".join(names),
        question="What does one machine cost, and what the other?",
        headline=f"{differing} of {len(costs)} costs differ beyond their intervals",
        overview=table("Costs", ("cost", *names, "ratio", ""), "crrrl", rows),
        sections=_shown(
            [
                Section(
                    "facts",
                    "Measured on",
                    [table("What differs", ("measured on", *names), "cll", facts)],
                ),
                Section("times", "Where the time goes", waits),
            ]
        ),
    )
