"""The sections of a report, in their order: every format shows them."""

from __future__ import annotations

from collections.abc import Callable

from harness.base.documents.document import Document, Section
from harness.core.reports.answer import facts, headline
from harness.core.reports.data import ReportData
from harness.core.reports.sections import (
    cells,
    comparisons,
    machine,
    method,
    phases,
    predicted,
    profile,
    scores,
    task_times,
    timeline,
    trials,
    vet,
)

SECTIONS: tuple[Callable[[ReportData], Section], ...] = (
    scores.section,
    comparisons.section,
    cells.section,
    predicted.section,
    phases.section,
    phases.decomposition_section,
    trials.jobs_section,
    timeline.section,
    timeline.schedule_section,
    task_times.section,
    vet.section,
    profile.section,
    machine.section,
    machine.hardware_section,
    method.section,
    trials.failed_section,
    trials.every_section,
)


def make_document(results: ReportData) -> Document:
    """Make the report of *results*: what every format renders, without sections of nothing."""
    return Document(
        name=results.experiment.name,
        question=results.experiment.title,
        headline=headline(results),
        is_answer=results.is_answered,
        sections=[section for make in SECTIONS if (section := make(results)).shown()],
        facts=facts(results),
        overview=scores.overview_table(results),
        figure=cells.errors_figure(results),
        mark="sealed after the measurement" if results.manifest.get("analysis_of") else "",
        origin=method.origin(results),
        values=lambda: {
            "experiment": results.experiment,
            "cells": {
                cell: {"label": label, **vars(spec)}
                for cell, (spec, label) in results.cells.items()
            },
        },
        trials=results.trials,
    )
