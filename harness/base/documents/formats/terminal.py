"""Plain text: the first screen of a report, which ends a run on a terminal."""

from __future__ import annotations

from harness.base.documents.document import Document
from harness.base.documents.wording import UNKNOWN, aligned, one_line


def render_terminal(document: Document) -> str:
    """Write the first screen as text, unescaped."""
    lines = []
    if (overview := document.overview) is not None:
        rows = [[*map(one_line, texts)] for texts in (overview.columns, *overview.texts())]
        lines += [line.rstrip() for line in aligned(rows, overview.align)]
        lines.append("")
    if document.mark:
        lines.append(f"Predictions were {document.mark}.")
    lines.append(one_line(document.headline))
    for title, sentences in document.facts.titled():
        lines.append(f"{title}:")
        lines += [f"  {one_line(sentence)}" for sentence in sentences]
    return "\n".join(lines).replace(UNKNOWN, "-") + "\n"
