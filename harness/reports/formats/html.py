"""The report as one HTML file: opens offline, needs no script, prints, works in both themes."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from harness.reports.document import Document
from harness.reports.drawing import drawing, render_figure, texture_definitions
from harness.reports.wording import typographic
from harness.text import printable


def render_html(document: Document) -> str:
    """One HTML document with style sheet and drawings inside; equal data gives equal bytes."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    def make_printable(value: Any) -> Any:
        return value if isinstance(value, Markup) else printable(value)

    environment = Environment(
        loader=PackageLoader("harness.reports"),
        autoescape=True,
        finalize=make_printable,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["typographic"] = typographic
    # Drawings are written by an XML library, which escapes texts; the rest is ours.
    environment.filters["svg"] = lambda figure: Markup(render_figure(figure))  # noqa: S704
    style = files("harness.reports").joinpath("templates/report.css").read_text("utf-8")
    with drawing():
        return environment.get_template("report.html.j2").render(
            document=document,
            style=Markup(style),  # noqa: S704
            textures=Markup(texture_definitions()),  # noqa: S704
        )
