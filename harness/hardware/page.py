"""What a machine costs, and where two differ: the same tables on a page and in a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from harness.base.documents.document import Document, Section, Table, Text, table
from harness.base.documents.wording import by_number, count
from harness.base.records.hardware import Cost, MachineCosts
from harness.base.text import excerpt

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
    costs = {**machine.costs, **machine.frame}
    rows = [_cost_row(cost_name, cost) for cost_name, cost in costs.items()]
    columns = ("cost", "value", "90 % interval", "without a job", "unit", "jobs", "")
    is_apart = any(cost.agree is False for cost in machine.costs.values())
    chosen = [(job["trial"], job["reason"], f"{job['seconds']:.1f}") for job in machine.chosen]
    jobs = table("Jobs in their order", ("trial", "chosen for", "s"), "clr", chosen, folded=True)
    facts = [(fact, excerpt(value)) for fact, value in machine.conditions.items()]
    measured_on = table("Measured on", ("fact", "value"), "cl", facts, folded=True)
    return Document(
        name=name,
        question="What does this machine cost?",
        headline=f"{count(len(machine.chosen), 'job')} in {machine.spent_s:.0f} s",
        overview=table("Costs", columns, "crlrlrl", rows, note=_APART if is_apart else ""),
        sections=_shown(
            [
                Section("jobs", "Jobs", [jobs]),
                Section("facts", "Measured on", [measured_on]),
            ]
        ),
    )


def _cost_row(name: str, cost: Cost) -> tuple[str, ...]:
    """A cost as one row of a table, marked where a measurement without a job contradicts it."""
    ends = "not known" if cost.high is None else f"{cost.low:.3g} to {cost.high:.3g}"
    apart = f"not told apart from {', '.join(cost.group)}" if cost.group else ""
    micro = "" if cost.micro is None else f"{cost.micro:.3g}"
    if cost.micro is not None and cost.agree is False:
        micro += " !"
    return name, f"{cost.value:.3g}", ends, micro, cost.unit, str(cost.trials), apart


def _shown(sections: list[Section]) -> list[Section]:
    return [section for section in sections if section.shown()]


def pairs(old: MachineCosts, new: MachineCosts) -> list[CostPair]:
    """Each cost that both machines have, and whether it differs beyond its intervals."""
    new_costs = {**new.costs, **new.frame}
    compared = list[CostPair]()
    for name, old_cost in {**old.costs, **old.frame}.items():
        if new_cost := new_costs.get(name):
            ratio = new_cost.value / old_cost.value if old_cost.value else None
            verdict = _verdict(old_cost, new_cost)
            compared.append(CostPair(name, old_cost.value, new_cost.value, ratio, verdict))
    return compared


def _verdict(old_cost: Cost, new_cost: Cost) -> str:
    """Whether a cost differs beyond its intervals on two machines; it needs both."""
    if old_cost.low is None or old_cost.high is None:
        return "cannot tell"
    if new_cost.low is None or new_cost.high is None:
        return "cannot tell"
    if new_cost.low > old_cost.high or new_cost.high < old_cost.low:
        return "differs"
    return "within their intervals"


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
    rows = []
    for cost in costs:
        ratio = f"{cost.ratio:.2f}" if cost.ratio else ""
        rows.append((cost.name, f"{cost.one:.3g}", f"{cost.other:.3g}", ratio, cost.verdict))
    facts = [(fact, *map(excerpt, pair)) for fact, pair in conditions.items()]
    differing = sum(cost.verdict == "differs" for cost in costs)
    verb = by_number(differing, "differs", "differ")
    measured_on = table("What differs", ("measured on", *names), "cll", facts)
    return Document(
        name=" and ".join(names),
        question="What does one machine cost, and what the other?",
        headline=f"{differing} of {count(len(costs), 'cost')} {verb} beyond the intervals",
        overview=table("Costs", ("cost", *names, "ratio", ""), "crrrl", rows),
        sections=_shown(
            [
                Section("facts", "Measured on", [measured_on]),
                Section("times", "Where the time goes", _waits(names, times)),
            ]
        ),
    )


def _waits(
    names: Sequence[str], times: Sequence[tuple[str, str, float, float]]
) -> list[Text | Table]:
    """What tasks wait for on two machines, and for each workload what they wait for most."""
    lines = [
        (workload, resource, f"{old_s:.2f}", f"{new_s:.2f}")
        for workload, resource, old_s, new_s in times
    ]
    columns = ("workload", "for", *names)
    waits: list[Text | Table] = [table("Seconds of a map and a reduce", columns, "llrr", lines)]
    for workload in dict.fromkeys(row[0] for row in times):
        workload_times = [row[1:] for row in times if row[0] == workload]
        _, old_resource = max((old_s, resource) for resource, old_s, _ in workload_times)
        _, new_resource = max((new_s, resource) for resource, _, new_s in workload_times)
        text = f"{workload}: most time goes to {old_resource} there, to {new_resource} here"
        waits.append(Text(text))
    return waits
