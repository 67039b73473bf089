"""What a reader must know to read the figures of vet."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import fmean

from harness.records.vet import MULTI_SPILL
from harness.reports.data import ReportData, label
from harness.reports.vet.choice import by_cell, kinds
from harness.reports.wording import count, listing, percent

MOST_FIGURES = 16

_MOST_NAMED = 6
_MUCH_SPILLING = 0.1


def vet_texts(data: ReportData) -> list[str]:
    """Sentences above the tables; none where there are none."""
    if not data.vet.jobs:
        return []
    return [_MEANING, _sizes(data), *_jobs(data), *_cautions(data), *_hints(data)]


def drawn_text(data: ReportData) -> list[str]:
    """How many of the jobs the figures show, where these are not all."""
    every = sum(bool(job.curves) for job in data.vet.jobs)
    if every <= MOST_FIGURES:
        return []
    return [f"{MOST_FIGURES} of {every} jobs are drawn, the first repeats first."]


def _jobs(data: ReportData) -> Iterator[str]:
    """Say what is put together where a trial has several jobs."""
    seen = {job.trial for job in data.vet.jobs}
    if any(len(r.job_ids) > 1 for r in data.trials if r.trial.id in seen):
        yield "Where a trial has several jobs, its vet is over the tasks of all of them."


_MEANING = (
    "Vet is what the records of a task took (PR) over what they would take if all were like most"
    " (EI): 1 is without overhead, at 3 the records took three times their ideal. It is measured"
    " on finished tasks, and no model is scored by it. On heavy tails the estimate on units lies"
    " too near to 1; that on sums of equally many ordered units sees more. Compare only like with"
    " like."
)


def _sizes(data: ReportData) -> str:
    sizes = sorted({kind.unit_records for _, kind in kinds(data)})
    return f"A unit is {listing([str(n) for n in sizes], 'or')} records, read one after the other."


def _cautions(data: ReportData) -> Iterator[str]:
    every = [kind for _, kind in kinds(data)]
    spilled = sum(kind.flags.get(MULTI_SPILL, 0) for kind in every)
    maps = sum(len(kind.attempts) for kind in every if kind.kind == "map")
    if spilled:
        yield (
            f"{spilled} of {count(maps, 'map task')} spilled more than once: their units hold the"
            " waiting for room in the sort buffer, and the paper's best case is not given."
        )
    shares = [k.spill_share for k in every if k.kind == "map" and k.spill_share is not None]
    if shares and max(shares) >= _MUCH_SPILLING:
        yield (
            f"Spills ran for up to {percent(max(shares))} of the time of a map task. They are no"
            " part of its units: vet supposes that they are short."
        )


def _hints(data: ReportData) -> Iterator[str]:
    """Section 5.5 of the paper: more overhead than tasks at once tells to run fewer."""
    crowded: dict[str, None] = {}
    for job in by_cell(data):
        values = [v for k in job.report.kinds for v in k.job.vet_tasks if v is not None]
        if values and job.cell in data.cells:
            node = data.cells[job.cell][0].cluster.node
            if fmean(values) > node.map_slots + node.reduce_slots:
                crowded[label(data, job.cell)] = None
    named = list(crowded)[:_MOST_NAMED]
    if named:
        more = f" and {len(crowded) - len(named)} more" if len(crowded) > len(named) else ""
        yield (
            "The mean vet of a task is above the number of tasks that run at once on a node, which"
            f" speaks for fewer at once: {listing(named) if not more else ', '.join(named)}{more}."
        )
