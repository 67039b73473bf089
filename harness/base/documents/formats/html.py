"""HTML: one file with style sheet and drawings inside, for a browser and for paper."""

from __future__ import annotations

import html

from functools import lru_cache
from importlib.resources import files

from harness.base.documents.document import Document, Table, Value
from harness.base.documents.drawing import drawing, render_figure
from harness.base.documents.wording import typographic
from harness.base.text import printable

_LONG_WORD = 24  # characters from which a word may be broken at the end of a line


def render_html(document: Document) -> str:
    """
    One HTML file with style sheet and drawings inside; equal data gives equal bytes.

    It opens offline, needs no script, prints, and works in both themes.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("harness.base.documents"),
        autoescape=True,
        finalize=lambda value: value if isinstance(value, Markup) else printable(value),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["typographic"] = typographic
    environment.filters["rows"] = lambda shown: Markup(_table_rows(shown))  # noqa: S704 - escaped
    # Drawings are written by an XML library, which escapes texts; the rest is ours.
    environment.filters["svg"] = lambda figure: Markup(render_figure(figure))  # noqa: S704
    style = files("harness.base.documents").joinpath("templates/report.css").read_text("utf-8")
    with drawing():
        return environment.get_template("report.html.j2").render(
            document=document,
            style=Markup(style),  # noqa: S704
        )


def _table_rows(shown: Table) -> str:
    """Rows of a table as HTML: a page has a hundred thousand values, too many for a template."""
    first_letter = shown.align[0]
    letters = shown.align[1:]
    lines = []
    for name, *values in shown.rows:
        cells = [_cell(first_letter, name, is_name=True)]
        cells += map(_cell, letters, values)
        lines.append(f"<tr>{''.join(cells)}</tr>")
    return "\n".join(lines)


@lru_cache(maxsize=65536)
def _cell(letter: str, value: Value, *, is_name: bool = False) -> str:
    """One value of a column aligned by *letter*; the first of a row is its name, unshaded."""
    text = printable(value.text)
    classes = []
    if letter != "r" or is_name:  # most values are numbers: theirs is the look without a class
        classes.append(letter)
    if letter == "l" and _is_word(text):
        classes.append("n")
    if value.tone and not is_name:
        classes.append(value.tone)
    text = html.escape(typographic(text) if letter == "r" else text)
    attribute = f' class="{" ".join(classes)}"' if classes else ""
    if is_name:
        return f'<th scope="row"{attribute}>{text}</th>'
    return f"<td{attribute}>{text}</td>"


def _is_word(text: str) -> bool:
    """Whether *text* is a word or a short number: those are not broken at the end of a line."""
    return len(text) < _LONG_WORD and " " not in text
