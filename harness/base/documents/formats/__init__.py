"""
The formats of a report: a `Document` as text, by the kind of its blocks.

A format is a module here with one function, from a `Document` to text, and one line in `REPORTS`
(`harness/core/reports/__init__.py`).  None looks at the name of a section, so that a new section is
in every format at once; HiBench's lines are made from the trials alone.

What a format can show decides which blocks it asks for.  One that draws and folds takes
`Section.shown` (HTML); one that does neither takes `Section.undrawn`, where a figure is the table
of its data (Markdown, LaTeX); the terminal takes the first screen.  A format that is a program for
a typesetter is text like all others: what runs the typesetter is given that text.
"""

from __future__ import annotations

from harness.base.documents.formats.hibench import render_hibench
from harness.base.documents.formats.html import render_html
from harness.base.documents.formats.json import SCHEMA_VERSION, render_json
from harness.base.documents.formats.latex import render_latex
from harness.base.documents.formats.markdown import render_markdown
from harness.base.documents.formats.terminal import render_terminal

__all__ = [
    "SCHEMA_VERSION",
    "render_hibench",
    "render_html",
    "render_json",
    "render_latex",
    "render_markdown",
    "render_terminal",
]
