"""What a machine costs, and where two differ: the same tables on a page and in a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness.base.documents.document import Document, Section, Table, Text, table
from harness.base.records.hardware import MachineCosts
from harness.base.text import excerpt
from harness.hardware.rows import CostPair, CostRow, groups_of, rows_of
from harness.hardware.words import (
    interval_text,
    label,
    machine_says,
    micro_text,
    ratio_text,
    readable,
)

_GROUPED = "costs in one row are not told apart: it is what they take together for 64 MiB"
_APART = "!: outside the interval; what tasks do and what disks and networks do differ"


def machine_document(name: str, machine: MachineCosts) -> Document:
    """The costs of a machine with their intervals; folded, its jobs and what they ran on."""
    rows = [_cost_row(row) for row in rows_of(machine, groups_of([machine]))]
    columns = ("cost", "value", "90 % interval", "without a job", "jobs")
    is_apart = any(cost.agree is False for cost in machine.costs.values())
    notes = [_GROUPED] if any(cost.group for cost in machine.costs.values()) else []
    notes += [_APART] if is_apart else []
    chosen = [(job["trial"], job["reason"], f"{job['seconds']:.1f}") for job in machine.chosen]
    jobs = table("Jobs in their order", ("trial", "chosen for", "s"), "clr", chosen, folded=True)
    facts = [(fact, excerpt(value)) for fact, value in machine.conditions.items()]
    measured_on = table("Measured on", ("fact", "value"), "cl", facts, folded=True)
    return Document(
        name=name,
        question="What does this machine cost?",
        headline=machine_says(machine),
        overview=table("Costs", columns, "crlrr", rows, note="; ".join(notes)),
        sections=_shown(
            [
                Section("jobs", "Jobs", [jobs]),
                Section("facts", "Measured on", [measured_on]),
            ]
        ),
    )


def _cost_row(row: CostRow) -> tuple[str, ...]:
    """A cost, or a group, as one row of a table."""
    value = readable(row.value, row.names, row.unit)
    return label(row.names), value, interval_text(row), micro_text(row), str(row.trials)


def _shown(sections: list[Section]) -> list[Section]:
    return [section for section in sections if section.shown()]


def pair_document(
    names: Sequence[str],
    costs: Sequence[CostPair],
    conditions: dict[str, tuple[Any, Any]],
    times: Sequence[tuple[str, str, float, float]],
    says: str,
) -> Document:
    """
    *costs* of two machines side by side, which *conditions* differ, and where time goes on each.

    *times*: workload, what its tasks wait for, seconds of a map and a reduce on both.  What it
    *says* stands above all.
    """
    rows = []
    for cost in costs:
        values = [readable(value, cost.names, cost.unit) for value in (cost.one, cost.other)]
        rows.append((label(cost.names), *values, ratio_text(cost), cost.verdict))
    facts = [(fact, *map(excerpt, pair)) for fact, pair in conditions.items()]
    measured_on = table("What differs", ("measured on", *names), "cll", facts)
    return Document(
        name=" and ".join(names),
        question="What does one machine cost, and what the other?",
        headline=says,
        overview=table("Costs", ("cost", *names, "times as dear", ""), "crrll", rows),
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
