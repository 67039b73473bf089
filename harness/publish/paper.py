"""What a paper takes from a bundle: tables for LaTeX, figures, a skeleton around them, a PDF."""

from __future__ import annotations

import dataclasses
import io
import json
import re

from collections.abc import Callable, Collection, Iterator, Mapping
from itertools import compress
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from harness.base.documents.document import Block, Document, Figure, Figures, Table, Text, table
from harness.base.documents.drawing import PAGE, draw_alone, drawing
from harness.base.documents.formats.latex import latex_table, latex_text
from harness.base.documents.wording import QUANTITIES, percent, share_with_interval, typographic
from harness.base.installed import extra_fix
from harness.base.records.score import Comparison
from harness.base.text import printable
from harness.core.evaluate.flow import Evaluation
from harness.core.reports.answer import ANSWERED
from harness.core.reports.data import ReportData
from harness.core.reports.sections import cells, predicted, profile, scores
from harness.publish.data import Claim

_OF_REPORT = ("errors", "phases")  # figures, the latter with a number
_MOST_ROWS = 40  # of a table on one page
_PAPER = r"""%% pdflatex paper.tex, or tectonic paper.tex: tables and figures lie beside it.
\documentclass[10pt,twocolumn]{article}
\usepackage[letterpaper,textwidth=7.16in,textheight=9.2in,columnsep=0.16in]{geometry}
\usepackage{booktabs,graphicx,iftex}
\ifPDFTeX\usepackage[T1]{fontenc}\IfFileExists{lmodern.sty}{\usepackage{lmodern}}{}\fi
\AddToHook{env/tabular/begin}{\footnotesize\setlength{\tabcolsep}{4pt}}
\emergencystretch=2em \setlength{\belowcaptionskip}{6pt}
\renewcommand{\dbltopfraction}{.9}\renewcommand{\topfraction}{.9}\renewcommand{\textfraction}{.05}
\title{%(title)s}\author{}\date{}
\begin{document}
\maketitle
\begin{abstract}
%(claim)s
\end{abstract}
%(parts)s
\section{How to check}
\verb|harness verify .|, in the folder of this paper, computes every number of the claim
again from \verb|data/|; \verb|harness reproduce .| makes all of it again from what was measured,
and with \verb|--measure| it is measured again on another cluster.
\end{document}
"""
_FIGURE = r"""\begin{%(place)s}\centering
\includegraphics[width=\linewidth,height=.85\textheight,keepaspectratio]{figures/%(name)s.pdf}
\caption{%(caption)s}\end{%(place)s}"""
# The report is data for it: no text is ever markup.
_PDF = """#let report = json(bytes(sys.inputs.report))
#let levels = (title: 1, section: 2, heading: 3)
#set document(title: report.first().text, date: none)
#set page(paper: "a4", margin: 1.4cm, numbering: "1 / 1")
#set text(size: 9pt, lang: "en")
#set table(stroke: none, inset: (x: 3pt, y: 2.5pt))
#show heading: set block(above: 1.4em, below: 0.7em, sticky: true)
#for shown in report {
  if "rows" in shown {
    let (count, heads) = (shown.columns.len(), shown.columns.map(strong))
    let sides = shown.align.clusters().map(letter => if letter == "r" { right } else { left })
    let places = shown.rows.flatten().map(place => place.text)
    block(sticky: true, above: 1.2em, strong(shown.caption))
    text(size: calc.min(7, 80 / count) * 1pt, table(columns: count, align: sides,
      table.header(..heads, table.hline(stroke: 0.5pt)), ..places))
    text(size: 7pt, shown.note)
  } else if "figures" in shown {
    block(sticky: true, shown.lead)
    grid(columns: if shown.side_by_side { 2 } else { 1 }, gutter: 0.16in,
      ..shown.figures.map(figure => block(breakable: false, {
        image(bytes(figure.svg), format: "svg", alt: figure.title)
        text(size: 8pt, figure.caption)
      })))
  } else if shown.kind in levels { heading(level: levels.at(shown.kind), shown.text) }
  else if shown.kind == "fact" { list.item(shown.text) }
  else { par(shown.text) }
}
"""


def public_data(evaluation: Evaluation, *, with_tasks: bool = True) -> ReportData:
    """All that the report of a published run shows."""
    data = evaluation.report_data(with_tasks=with_tasks)
    vet = evaluation.vet(evaluation.done.values() if with_tasks else ())
    return dataclasses.replace(data, vet=vet)


def cleaned(value: Any, clean: Callable[[str], str]) -> Any:
    """*value*, a record or what records are made of, with *clean* applied to each text in it."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, Mapping):
        return {cleaned(key, clean): cleaned(field, clean) for key, field in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        elements = [cleaned(element, clean) for element in value]
        make = getattr(value, "_make", type(value))  # of a named tuple, or of any other
        return make(elements)
    if isinstance(value, BaseModel):
        return value.model_copy(update={name: cleaned(field, clean) for name, field in value})
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in dataclasses.fields(value)]
        fields = {name: cleaned(getattr(value, name), clean) for name in names}
        return dataclasses.replace(value, **fields)
    return value


def write_paper(
    documents: Mapping[str, tuple[ReportData, Document]], claim: Claim, folder: Path
) -> None:
    """
    Write `tables/*.tex`, `figures/*.pdf` and `.svg`, and `paper.tex`, which includes them all.

    *documents* are by what the names of their files end in.
    """
    (folder / "tables").mkdir(parents=True)
    (folder / "figures").mkdir()
    parts = list[str]()
    for suffix, (results, document) in documents.items():
        experiment = f" ({document.name})" if suffix else ""
        parts += paper_sections(document, experiment)
        for name, shown in paper_tables(results).items():
            starts = range(0, len(shown.rows), _MOST_ROWS)
            pages = [shown.rows[start : start + _MOST_ROWS] for start in starts]
            tables = [
                latex_table(dataclasses.replace(shown, rows=rows), "table*") for rows in pages
            ]
            path = folder / "tables" / f"{name}{suffix}.tex"
            path.write_text("\n".join(tables), encoding="utf-8")
            parts.append(rf"\input{{tables/{path.stem}}}")
        for name, figure in paper_figures(results, document).items():
            for kind in ("svg", "pdf"):
                path = folder / "figures" / f"{name}{suffix}.{kind}"
                path.write_bytes(_drawn(figure, kind))
            place = "figure*" if figure.width >= PAGE else "figure"
            caption = latex_text(figure.caption)
            parts.append(_FIGURE % {"place": place, "name": path.stem, "caption": caption})
    lines = [latex_text(line.strip().removeprefix("- ")) for line in claim.lines]
    texts = {
        "title": latex_text(claim.title),
        "claim": "\n".join(lines),
        "parts": "\n".join(parts),
    }
    (folder / "paper.tex").write_text(_PAPER % texts, encoding="utf-8")


def paper_sections(document: Document, experiment: str) -> Iterator[str]:
    """Sections of a paper about a report, each a title, with the *experiment*, and its text."""
    method = list[str]()
    for section in document.sections:
        if section.id == "method":
            method += [block.text for block in section.shown() if isinstance(block, Text)]
    sections = {
        "Question": [document.question],
        "Method": method,
        "Results": [document.headline],
        "Threats to validity": document.facts.caveats,
    }
    for title, sentences in sections.items():
        yield rf"\section{{{latex_text(title + experiment)}}}"
        yield latex_text(" ".join(sentences))


def paper_figures(results: ReportData, document: Document) -> dict[str, Figure]:
    """Figures by the names of their files: the two of all models, and of the report what fits."""
    figures = [predicted.models_panel(results), predicted.calibration_figure(results)]
    report_figures = document.figures().values()
    figures += [fig for fig in report_figures if fig.name.rstrip("0123456789") in _OF_REPORT]
    return {figure.name: figure for figure in figures if figure}


def pair_text(pair: Comparison) -> str:
    """By how much the better model of *pair* is nearer, with the interval where it has ends."""
    if pair.low is None or pair.high is None:
        return percent(-pair.difference)
    return share_with_interval(-pair.difference, -pair.high, -pair.low)


def paper_tables(results: ReportData) -> dict[str, Table]:
    """Tables by the names of their files: what was measured, scores, pairs of models, costs."""
    quantity = results.answered
    time = ANSWERED[results.answered]
    pairs = [
        (
            *(pair.better, pair.worse, str(pair.cells)),
            pair_text(pair),
            *(percent(pair.chance, 0.001), pair.verdict),
        )
        for pair in results.score_book.comparisons
        if (pair.quantity, pair.speed, pair.family) == (quantity, results.speed, "explored")
    ]
    tables = {
        "cells": _part(
            cells.error_table(results, quantity),
            ("Cell", "Range", "Repeats", "Measured, s", "Noise"),
            f"Measured {time}: mean of the repeats of each cell, and the noise of that mean.",
            {"Speed": results.speed},
        ),
        "scores": _part(
            scores.score_table(results),
            (
                "Workload",
                "Model",
                "Cells",
                "Mean relative error",
                "Signed",
                "Noise floor",
                "I_accu",
                "In 80 %",
                "In 90 %",
            ),
            f"Errors of the {time}: mean over the cells with its 95 % interval (range below six"
            " cells), the same with signs, the noise of a cell's mean, by how many points a model"
            " is better than whatif (I_accu), and cells that lie in their predicted intervals.",
            {"Time": QUANTITIES[quantity]},
        ),
        "comparisons": table(
            f"Pairs of models by {time}: by how much the mean error of the first is smaller, and"
            " the chance that equal models differ by so much, corrected for all pairs.",
            ("Model", "Other", "Cells", "Nearer by", "Chance", "Verdict"),
            "llrrrl",
            pairs,
        ),
    }
    for place, (workload, stored_profile) in enumerate(results.profiles.items()):
        shown = profile.statistics_table("", stored_profile.costs)
        caption = f"{workload}: costs at reference speed, from the profiling trials. {shown.note}"
        heads = set(shown.columns) - {"Source"}
        tables[f"costs{place}"] = _part(shown, heads, caption, {})
    return {name: shown for name, shown in tables.items() if shown.rows}


def _part(shown: Table, heads: Collection[str], caption: str, only: Mapping[str, str]) -> Table:
    """The columns *heads* of *shown*, of the rows that have *only* these texts, by column."""
    kept = [name in heads for name in shown.columns]
    rows = [dict(zip(shown.columns, texts, strict=True)) for texts in shown.texts()]
    texts = [[*compress(row.values(), kept)] for row in rows if only.items() <= row.items()]
    columns = [*compress(shown.columns, kept)]
    align = "".join(compress(shown.align, kept))
    return table(caption, columns, align, texts)


def _drawn(figure: Figure, kind: str) -> bytes:
    """*figure* as `pdf` with its fonts, or `svg` with text; the same bytes each time."""
    import matplotlib as mpl

    from matplotlib.backend_bases import get_registered_canvas_class

    drawn = draw_alone(figure)
    file = io.BytesIO()
    with drawing():
        mpl.rc("svg", fonttype="none")
        mpl.rc("pdf", fonttype=42)
        # Not `savefig`, which draws everything twice.
        write = getattr(get_registered_canvas_class(kind)(drawn), f"print_{kind}")
        write(file, metadata={"CreationDate" if kind == "pdf" else "Date": None})
    return file.getvalue() if kind == "pdf" else re.sub(rb">\s+<", b"><", file.getvalue())


def write_pdf(document: Document, path: Path) -> str:
    """
    Write the report without what is folded, the same bytes each time.

    Returned is why there is none; nothing: it was written.
    """
    try:
        import typst
    except ImportError as error:
        return f"there is no {path.name}: {error} ({extra_fix('pdf')})"
    import matplotlib as mpl

    blocks = pdf_blocks(document)
    shown = [block for block in blocks if not (isinstance(block, Table) and block.folded)]
    texts = cleaned(shown, lambda text: typographic(printable(text)))
    fonts = Path(mpl.get_data_path(), "fonts", "ttf")  # of the figures
    # Tags, which double its size, are for readers of screens: the report in HTML has them.
    options: dict[str, Any] = {
        "font_paths": [fonts],
        "ignore_system_fonts": True,
        "pdf_tags": False,
    }
    inputs = {"report": json.dumps(texts, default=_block_fields)}
    path.write_bytes(typst.compile(_PDF.encode(), format="pdf", sys_inputs=inputs, **options))
    return ""


def pdf_blocks(document: Document) -> list[Block]:
    """All blocks of a report in their order, titles and facts among them as texts."""
    title = f"{document.titled_name}{document.mark and f', {document.mark}'}."
    blocks: list[Block] = [Text(document.question, "title"), Text(title)]
    blocks.append(Text(document.headline, "heading"))
    for heading, sentences in document.facts.titled():
        blocks += [Text(heading, "heading"), *(Text(sentence, "fact") for sentence in sentences)]
    if document.figure:
        blocks.append(Figures([document.figure]))
    if document.overview:
        blocks.append(document.overview)
    for section in document.sections:
        blocks += [Text(section.title, "section"), *section.shown()]
    return blocks


def _block_fields(block: Any) -> dict[str, Any]:
    """Fields of a block for JSON; those of a figure with its drawing in the place of its data."""
    fields = {field.name: getattr(block, field.name) for field in dataclasses.fields(block)}
    if isinstance(block, Figure):
        del fields["draw"], fields["data"]
        fields["svg"] = _drawn(block, "svg").decode()
    return fields
