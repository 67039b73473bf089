"""
Records to text: what was found, for people and for scripts.

Every report takes a `ReportData` and gives text; it opens no file and writes none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from harness.reports.data import ReportData
from harness.reports.document import Document
from harness.reports.formats import (
    render_hibench,
    render_html,
    render_json,
    render_markdown,
    render_terminal,
)
from harness.reports.sections import make_document


@dataclass(frozen=True, slots=True)
class Report:
    """A format: how it is rendered, and what it is in one line."""

    render: Callable[[ReportData], str]
    description: str


def _of_document(render: Callable[[Document], str]) -> Callable[[ReportData], str]:
    return lambda results: render(make_document(results))


REPORTS = {
    "hibench": Report(render_hibench, "HiBench's lines, a trial each, for scripts that read those"),
    "html": Report(
        _of_document(render_html), "one file with figures: offline, both themes, prints well"
    ),
    "json": Report(_of_document(render_json), "everything that was computed, for scripts"),
    "markdown": Report(_of_document(render_markdown), "the tables, for a code review or an issue"),
    "terminal": Report(_of_document(render_terminal), "the short table that ends a run"),
}
