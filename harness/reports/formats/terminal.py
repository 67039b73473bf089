"""What ends ``harness all`` and ``harness score``: plain text, no escapes."""

from __future__ import annotations

from harness.reports.document import Document, Table, Text
from harness.reports.wording import UNKNOWN, one_line


def render_terminal(document: Document) -> str:
    """Write the short tables of the sections, the answer, and their short texts."""
    briefs = [block for section in document.sections for block in section.brief]
    lines = []
    for block in briefs:
        if isinstance(block, Table) and block.rows:
            rows = [[*map(one_line, row_texts)] for row_texts in (block.columns, *block.texts())]
            widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
            for row_texts in rows:
                texts = (
                    text.rjust(width) if align == "r" else text.ljust(width)
                    for text, width, align in zip(row_texts, widths, block.align, strict=True)
                )
                lines.append("  ".join(texts).rstrip())
            lines.append("")
    lines.append(one_line(document.headline))
    # Two spaces stand between an id and what is said of it.
    lines += [
        "  ".join(one_line(part) for part in block.text.split("  "))
        for block in briefs
        if isinstance(block, Text)
    ]
    return "\n".join(lines).replace(UNKNOWN, "-") + "\n"
