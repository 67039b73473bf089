"""
Records to text: what was found, for people and for scripts.

Every report takes a `ReportData` and answers text; it opens no file and writes none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from harness.reports.data import ReportData
from harness.reports.hibench import render_hibench
from harness.reports.html import render_html
from harness.reports.json_report import render_json
from harness.reports.markdown import render_markdown
from harness.reports.terminal import render_terminal


@dataclass(frozen=True, slots=True)
class Report:
    """A format: how it is rendered, and what it is in one line."""

    render: Callable[[ReportData], str]
    description: str


REPORTS = {
    "hibench": Report(render_hibench, "HiBench's lines, a trial each, for scripts that read those"),
    "html": Report(render_html, "one file with figures: offline, both themes, prints well"),
    "json": Report(render_json, "everything that was computed, for scripts"),
    "markdown": Report(render_markdown, "the tables, for a code review or an issue"),
    "terminal": Report(render_terminal, "the short table that ends a run"),
}
