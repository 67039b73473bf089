"""By how much the stock logs differ from the tracer, for the same tasks."""

from __future__ import annotations

from collections.abc import Sequence

from harness.reports.data import Difference
from harness.reports.profile_tables import scaled
from harness.reports.tables import Table, table
from harness.reports.wording import UNKNOWN, number, percent


def differences_table(name: str, found: Sequence[Difference]) -> Table | None:
    """Each statistic as spans and as logs tell it; `None` where not both do."""
    columns = ("Statistic", "Spans", "Logs", "Unit", "Difference", "Spread \u00b1", "Tasks", "What")
    rows = [_row(d) for d in found]
    return table(
        f"{name}: what the tasks' own logs tell, beside the tracer", columns, "crrlrrrl", rows,
        note="For the same tasks, as measured. The spread is that of the ratio between tasks. Logs"
        " are as fine as a millisecond, and what is shorter differs by much.",
    ) if rows else None  # fmt: skip


def _row(d: Difference) -> tuple[str, ...]:
    factor, unit = scaled(d.name)
    return (
        d.name,
        number(factor * d.spans),
        number(factor * d.logs),
        unit,
        percent(d.ratio - 1, signed=True),
        percent(d.spread) if d.count > 1 else UNKNOWN,
        str(d.count),
        d.text,
    )
