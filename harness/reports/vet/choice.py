"""Which jobs stand first."""

from __future__ import annotations

from collections.abc import Iterator

from harness.records.vet import FLAGS, JobVet, VetKind
from harness.reports.data import ReportData, cell_key, workload_of, workloads

FLAG_NAMES = dict(
    zip(FLAGS, ("several spills", "depends on the window", "overhead below 0"), strict=True)
)


def by_cell(data: ReportData) -> list[JobVet]:
    """Jobs in the order of their cells, repeats of one behind each other."""
    return sorted(data.vet.jobs, key=lambda job: (*place(data, job.cell), job.repetition))


def by_repeat(data: ReportData) -> list[JobVet]:
    """The first repeat of each cell, then the second of each."""
    return sorted(data.vet.jobs, key=lambda job: (job.repetition, *place(data, job.cell)))


def kinds(data: ReportData) -> Iterator[tuple[JobVet, VetKind]]:
    """Each job with each of its kinds of tasks."""
    for job in by_cell(data):
        for kind in job.report.kinds:
            yield job, kind


def place(data: ReportData, cell: str) -> tuple[int, int, str, str]:
    """Sorts cells by workload, input size, label, id."""
    known, name = workloads(data), workload_of(data, cell)
    return known.index(name) if name in known else len(known), *cell_key(data, cell)
