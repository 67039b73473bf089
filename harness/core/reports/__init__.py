"""
Records to text: what was found, for people and for scripts.

Every report takes a `Document`, which is made once for all of them, and gives text; it opens no
file and writes none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from harness.base.documents.document import Document
from harness.base.documents.formats import hibench, html, json, latex, markdown, terminal


@dataclass(frozen=True, slots=True)
class Report:
    """A format: how it is rendered, and what it is in one line."""

    render: Callable[[Document], str]
    description: str


REPORTS = {
    "hibench": Report(
        hibench.render_hibench, "HiBench's lines, a trial each, for scripts that read those"
    ),
    "html": Report(html.render_html, "one file with figures: offline, both themes, prints well"),
    "json": Report(json.render_json, "everything that was computed, for scripts"),
    "latex": Report(latex.render_latex, "texts and tables, for a paper"),
    "markdown": Report(markdown.render_markdown, "the tables, for a code review or an issue"),
    "terminal": Report(terminal.render_terminal, "the short table that ends a run"),
}
