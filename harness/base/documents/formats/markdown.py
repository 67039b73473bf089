"""Markdown: the tables of a report, for a code review or an issue."""

from __future__ import annotations

import re

from harness.base.documents.document import Document, Table, Text
from harness.base.documents.wording import count, one_line

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~&$@!])")
_RULES = {"l": ":--", "c": ":--", "r": "--:"}
_MOST_ROWS = 500  # of a table: a longer one is more than a review can hold


def render_markdown(document: Document) -> str:
    """Write the first screen, and below it the sections: data for drawings, no folded table."""
    mark = f", **{document.mark}**" if document.mark else ""
    blocks = [
        f"# {escape(document.question)}",
        f"{escape(document.titled_name)}{mark}.",
        f"**{escape(document.headline)}**",
    ]
    if document.overview is not None and document.overview.is_open():
        blocks += _table_blocks(document.overview)
    for title, sentences in document.facts.titled():
        blocks += [f"{title}:", "\n".join(f"- {escape(sentence)}" for sentence in sentences)]
    blocks.append("## Details")
    for section in document.sections:
        if shown := section.undrawn():
            blocks.append(f"### {escape(section.title)}")
            for block in shown:
                blocks += _text_blocks(block) if isinstance(block, Text) else _table_blocks(block)
    return "\n\n".join(blocks) + "\n"


def escape(text: str) -> str:
    r"""
    *text* in one line, with everything that Markdown or HTML would act upon made literal.

    >>> escape("a|b <script> _c_")
    'a\\|b \\<script\\> \\_c\\_'
    """
    return _SPECIAL.sub(r"\\\1", one_line(text)).replace("://", "&#58;//")


def _text_blocks(text: Text) -> list[str]:
    mark = "#### " if text.kind == "heading" else ""
    return [mark + escape(text.text)]


def _table_blocks(shown: Table) -> list[str]:
    """Caption, table and note; only how many rows there are of a table that has too many."""
    caption = escape(shown.caption)
    if len(shown.rows) > _MOST_ROWS:
        return [f"{caption}: {count(len(shown.rows), 'row')}, in report.html."]
    lines = [
        " | ".join(map(escape, shown.columns)),
        " | ".join(_RULES[align] for align in shown.align),
        *(" | ".join(map(escape, row)) for row in shown.texts()),
    ]
    blocks = [caption, "\n".join(f"| {line} |" for line in lines)]
    if shown.note:
        blocks.append(escape(shown.note))
    return blocks
