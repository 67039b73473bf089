r"""
LaTeX: texts and tables of a report for a paper, and the tables alone for other programs.

Everything needs the package booktabs and, where it is pdfTeX, fontenc with T1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from harness.base.documents.document import Document, Table, Text
from harness.base.documents.wording import one_line, typographic

_LONG = 40  # characters of a text that is wrapped
_MOST_ROWS = 40  # of a table on one page: LaTeX breaks none
# What LaTeX would act upon, or join with its neighbour; behind the end of a line [ and * are read.
_ESCAPES = {
    **{char: f"\\{char}" for char in "{}%_#&$"},
    **{char: f"{{{char}}}" for char in '[]*<>|`"'},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "\xa0": "~",
    "\u2212": "$-$",
    "\u2013": r"\textendash{}",
    "\u2026": r"\dots{}",
}


def render_latex(document: Document) -> str:
    r"""
    Write the first screen, and below it the sections, as a text that a paper can ``\input``.

    A figure is its data; what is folded is left out.
    """
    mark = f", {document.mark}" if document.mark else ""
    blocks = [
        rf"\section{{{latex_text(document.question)}}}",
        latex_text(f"{document.titled_name}{mark}."),
        rf"\textbf{{{latex_text(document.headline)}}}",
    ]
    for title, sentences in document.facts.titled():
        blocks.append(rf"\paragraph{{{latex_text(title)}}} {latex_text(' '.join(sentences))}")
    if document.overview is not None and document.overview.is_open():
        blocks += _table_blocks(document.overview)
    for section in document.sections:
        if shown := section.undrawn():
            blocks.append(rf"\subsection{{{latex_text(section.title)}}}")
            for block in shown:
                blocks += [_paragraph(block)] if isinstance(block, Text) else _table_blocks(block)
    return "\n\n".join(blocks) + "\n"


def _paragraph(text: Text) -> str:
    escaped = latex_text(text.text)
    return rf"\subsubsection{{{escaped}}}" if text.kind == "heading" else escaped


def _table_blocks(shown: Table) -> Iterator[str]:
    """A table for each page that *shown* takes, and its note."""
    for start in range(0, len(shown.rows), _MOST_ROWS):
        page = replace(shown, rows=shown.rows[start : start + _MOST_ROWS])
        yield latex_table(page).rstrip()
    if shown.note:
        yield latex_text(shown.note)


def latex_table(shown: Table, environment: str = "table") -> str:
    """One table as a float with its caption: `table`, or over two columns `table*`."""
    rows = [shown.columns, *shown.texts()]
    head, *lines = [" & ".join(map(latex_text, texts)) + r" \\" for texts in rows]
    caption = latex_text(shown.caption)
    align = _column_types(shown)
    begin = rf"\begin{{{environment}}}\centering\caption{{{caption}}}\begin{{tabular}}{{{align}}}"
    end = rf"\bottomrule\end{{tabular}}\end{{{environment}}}"
    return "\n".join([begin, r"\toprule", head, r"\midrule", *lines, end, ""])


def _column_types(shown: Table) -> str:
    """LaTeX's letter of each column: long texts are wrapped, identifiers stand as texts."""
    types = []
    columns = zip(shown.columns, *shown.texts(), strict=True)
    for letter, texts in zip(shown.align, columns, strict=True):
        is_long = max(map(len, texts)) > _LONG
        types.append("p{3cm}" if is_long else letter.replace("c", "l"))
    return "".join(types)


def latex_text(text: str) -> str:
    r"""
    *text* in one line for LaTeX, every command in it made literal.

    Letters beyond Latin-1, which pdfTeX does not know by itself, are written as their numbers.

    >>> print(latex_text(r"50 % of \input{a_b}"), latex_text("\u03b2 --x"))
    50~\% of \textbackslash{}input\{a\_b\} U+03B2 -{}-x
    """
    plain = typographic(one_line(text))
    chars = (_ESCAPES.get(char, char if char <= "\xff" else f"U+{ord(char):04X}") for char in plain)
    return "".join(chars).replace("--", "-{}-").replace("--", "-{}-")
