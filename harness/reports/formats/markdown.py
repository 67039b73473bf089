"""The report as Markdown, for a code review or an issue: no drawings, and no folded tables."""

from __future__ import annotations

import re

from harness.reports.document import Document, Figures, Heading, Table, Text
from harness.reports.wording import count, one_line

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~&$@!])")
_RULES = {"l": ":--", "c": ":--", "r": "--:"}
# A longer table is more than a review can hold.
_MOST_ROWS = 500


def render_markdown(document: Document) -> str:
    """Write the sections without their drawings; the data of a drawing stands in its place."""
    blocks = [
        f"# {escape(document.question)}",
        f"Experiment {escape(document.name)}.",
        f"**{escape(document.headline)}**",
        *map(escape, document.details),
    ]
    for section in document.sections:
        shown = []
        for block in [] if section.is_missing() else section.shown():
            match block:
                case Text():
                    shown.append(escape(block.text))
                case Heading():
                    shown.append(f"### {escape(block.text)}")
                case Table():
                    shown += _table_blocks(block)
                case Figures():
                    for figure in block.figures:
                        shown += _table_blocks(figure.data)
        blocks += [f"## {escape(section.title)}", *shown] if shown else []
    return "\n\n".join(blocks) + "\n"


def escape(text: str) -> str:
    r"""
    *text* in one line, with everything that Markdown or HTML would act upon made literal.

    >>> escape("a|b <script> _c_")
    'a\\|b \\<script\\> \\_c\\_'
    """
    return _SPECIAL.sub(r"\\\1", one_line(text)).replace("://", "&#58;//")


def _table_blocks(table: Table) -> list[str]:
    if table.folded or not table.rows:
        return []
    caption = escape(table.caption)
    if len(table.rows) > _MOST_ROWS:
        return [f"{caption}: {count(len(table.rows), 'row')}, in report.html."]
    # Markdown has one row of headings: a group's name goes before each of its columns.
    spans = [name for name, width in table.groups for _ in range(width)]
    spans = spans or [""] * len(table.columns)
    lines = [
        " | ".join(
            escape(f"{group}: {column}" if group else column)
            for group, column in zip(spans, table.columns, strict=True)
        ),
        " | ".join(_RULES[align] for align in table.align),
        *(" | ".join(map(escape, row)) for row in table.texts()),
    ]
    body = "\n".join(f"| {line} |" for line in lines)
    return [caption, body, *([escape(table.note)] if table.note else [])]
