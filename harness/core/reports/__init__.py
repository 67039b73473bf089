"""
Records to text: what was found, for people and for scripts.

Every report takes a `Document`, which is made once for all of them, and gives text; it opens no
file and writes none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from harness.base.documents import formats
from harness.base.documents.document import Document


@dataclass(frozen=True, slots=True)
class Report:
    """A format: how it is rendered, and what it is in one line."""

    render: Callable[[Document], str]
    description: str


REPORTS = {
    "hibench": Report(
        formats.render_hibench, "HiBench's lines, a trial each, for scripts that read those"
    ),
    "html": Report(formats.render_html, "one file with figures: offline, both themes, prints well"),
    "json": Report(formats.render_json, "everything that was computed, for scripts"),
    "latex": Report(formats.render_latex, "texts and tables, for a paper"),
    "markdown": Report(formats.render_markdown, "the tables, for a code review or an issue"),
    "terminal": Report(formats.render_terminal, "the short table that ends a run"),
}
