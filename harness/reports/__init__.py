"""
Records to text: what was found, for people and for scripts.

Every report takes a `ReportData` and answers text; it opens no file and writes none.
"""

from __future__ import annotations

from collections.abc import Callable

from harness.reports.data import ReportData
from harness.reports.html import render_html
from harness.reports.json_report import render_json
from harness.reports.markdown import render_markdown
from harness.reports.terminal import render_terminal

REPORTS: dict[str, Callable[[ReportData], str]] = {
    "html": render_html,
    "json": render_json,
    "markdown": render_markdown,
    "terminal": render_terminal,
}
