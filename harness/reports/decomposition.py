"""Mean decompositions of the errors of a workload's job times, and their table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

from harness.records.score import Decomposition
from harness.reports.data import ReportData, models, workload_of
from harness.reports.plots.canvas import PHASE_NAMES
from harness.reports.tables import Table, table
from harness.reports.wording import number, percent

PHASES = {
    "map_main_s": "map",
    "map_tail_s": "map_tail",
    "shuffle_s": "shuffle",
    "sort_s": "sort",
    "reduce_rest_s": "reduce",
}
NAMES = {**{p: PHASE_NAMES[n] for p, n in PHASES.items()}, "rest_s": "overlap and overhead"}


class MeanError(NamedTuple):
    """Means over the cells of a workload, in seconds; *cancelled* is a share."""

    cells: int
    measured_s: float
    predicted_s: float
    parts: Mapping[str, float]
    cancelled: float


def mean_errors(data: ReportData, workload: str) -> dict[str, MeanError]:
    """Mean decompositions at raw speed, by model."""
    of = [
        d
        for d in data.book.decompositions
        if d.speed == "raw" and workload_of(data, d.cell) == workload
    ]
    by_model = {m: [d for d in of if d.model == m] for m in models(data)}
    return {m: _mean(found) for m, found in by_model.items() if found}


def _mean(found: Sequence[Decomposition]) -> MeanError:
    parts = [{p.phase: p.error_s for p in d.parts} for d in found]
    named = [name for name in NAMES if any(name in p for p in parts)]
    return MeanError(
        cells=len(found),
        measured_s=fmean(d.measured_s for d in found),
        predicted_s=fmean(d.predicted_s for d in found),
        parts={name: fmean(p.get(name, 0.0) for p in parts) for name in named},
        cancelled=fmean(d.cancelled for d in found),
    )


def decomposition_table(data: ReportData, workload: str) -> Table | None:
    """What the error of each phase is worth in the mean job time, a row per model."""
    means = mean_errors(data, workload)
    if not means:
        return None
    steps = [name for name in NAMES if any(name in m.parts for m in means.values())]
    rows = [
        (
            model,
            str(m.cells),
            number(m.measured_s),
            *(f"{m.parts[s]:+.1f}" if s in m.parts else "" for s in steps),
            number(m.predicted_s),
            percent(m.cancelled),
        )
        for model, m in means.items()
    ]
    return table(
        f"{workload}: where the error of the job time comes from (means over cells, s)",
        ("Model", "Cells", "Measured", *(NAMES[s] for s in steps), "Predicted", "Cancels"),
        "l" + "r" * (len(steps) + 4),
        rows,
        note="A phase counts once per wave of its tasks. Overlap and overhead is what phases do not"
        " explain. What cancels is the share of these errors that the job time does not show.",
    )
