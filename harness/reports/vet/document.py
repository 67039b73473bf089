"""Vet for scripts: all numbers of all jobs."""

from __future__ import annotations

from dataclasses import asdict
from math import isfinite
from typing import Any

from harness.records.vet import JobVet, RepeatsTest, VetKind
from harness.reports.data import ReportData, label
from harness.reports.vet.choice import by_cell


def vet_document(data: ReportData) -> dict[str, Any]:
    """Jobs with every task's vet, and the tests between repeats."""
    return {
        "jobs": [{"label": label(data, j.cell), **job_document(j)} for j in by_cell(data)],
        "repeats": [_repeats(each) for each in data.vet.repeats],
    }


def job_document(job: JobVet) -> dict[str, Any]:
    """One job; the typical task of each kind in full."""
    typical = {curve.kind: asdict(curve.task) for curve in job.curves}
    return {
        "trial": job.trial,
        "cell": job.cell,
        "repetition": job.repetition,
        "kinds": [
            {**_kind(kind), "typical_task": typical.get(kind.kind)} for kind in job.report.kinds
        ],
    }


def _kind(kind: VetKind) -> dict[str, Any]:
    # JSON has no word for infinite, which the index of equal units is.
    alpha = kind.alpha if kind.alpha is not None and isfinite(kind.alpha) else None
    buckets = {str(b): asdict(v) for b, v in kind.buckets.items()}
    return {**asdict(kind), "alpha": alpha, "buckets": buckets}


def _repeats(each: RepeatsTest) -> dict[str, Any]:
    return {**asdict(each), "repetitions": list(each.repetitions)}
