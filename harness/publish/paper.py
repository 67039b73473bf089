"""What a paper takes from a bundle: tables for LaTeX, figures, a skeleton around them, a PDF."""

from __future__ import annotations

import dataclasses
import io

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from harness.api.export import latex, latex_text
from harness.evaluate.flow import Evaluation
from harness.publish.claim import make_claim
from harness.reports.answer import ANSWERED
from harness.reports.data import ReportData
from harness.reports.document import Block, Document, Figure, Figures, Table, Text, table
from harness.reports.drawing import COLUMN, PAGE, draw_alone, drawing
from harness.reports.sections import cells, make_document, predicted, profile, scores
from harness.reports.wording import QUANTITIES, percent, share_with_interval, typographic
from harness.text import printable

_KINDS = ("pdf", "svg")
_BY_PHASE = ("phases", "waterfall")  # figures of the report, one for each workload
_MOST_ROWS = 40  # of a table on one page
_PAPER = r"""%% pdflatex paper.tex, or tectonic paper.tex: tables and figures lie beside it.
\documentclass[10pt,twocolumn]{article}
\usepackage[letterpaper,textwidth=7.16in,textheight=9.2in,columnsep=0.16in]{geometry}
\usepackage{booktabs,graphicx,iftex}
\ifPDFTeX\usepackage[T1]{fontenc}\IfFileExists{lmodern.sty}{\usepackage{lmodern}}{}\fi
\AddToHook{env/tabular/begin}{\footnotesize\setlength{\tabcolsep}{4pt}}
\emergencystretch=2em \setlength{\belowcaptionskip}{6pt}
\renewcommand{\dbltopfraction}{.9}\renewcommand{\topfraction}{.9}\renewcommand{\textfraction}{.05}
\title{%(title)s}
\author{}
\date{}
\begin{document}
\maketitle
\begin{abstract}
%(claim)s
\end{abstract}
%(sections)s
\section{How to check}
Everything here was made from files of the bundle around this paper.
In its folder, with Python and nothing else,
\begin{verbatim}
python3 -I -S verify.py
sha256sum -c --quiet SHA256SUMS
\end{verbatim}
compute every number of the claim again from \verb|data/| and compare all files with their sums;
\verb|harness reproduce .| makes them again from what was measured, and
\verb|harness reproduce . --measure| measures again on another cluster.
\end{document}
"""
# Each text is a string of typst, never markup.
_PDF = """#set document(title: {0}, date: none)
#set page(paper: "a4", margin: 1.4cm, numbering: "1 / 1")
#set text(size: 9pt, lang: "en")
#set table(stroke: none, inset: (x: 3pt, y: 2.5pt))
#show heading: set block(above: 1.4em, below: 0.7em, sticky: true)
#heading(level: 1, {0})
#par({1})
#strong({2})
"""


def write_paper(
    evaluations: Sequence[Evaluation], folder: Path, clean: Callable[[str], str]
) -> None:
    """
    Write `tables/*.tex`, `figures/*.pdf` and `.svg`, and `paper.tex`, which includes them all.

    *clean* is applied to every text before anything is made of it.  Of several evaluations, names
    of files begin with the experiment, and with the run where it has several.
    """
    for name in ("tables", "figures"):
        (folder / name).mkdir(parents=True)
    named, sections = Counter(each.experiment.name for each in evaluations), list[str]()
    for evaluation in sorted(evaluations, key=lambda each: (each.experiment.name, each.run.id)):
        name, results = evaluation.experiment.name, public_data(evaluation, clean)
        prefix = f"{name}-" if len(evaluations) > 1 else ""
        prefix += f"{evaluation.run.id}-" if named[name] > 1 else ""
        document = make_document(results)
        tables, figures = paper_tables(results), paper_figures(results, document)
        for key, shown in tables.items():
            path = folder / "tables" / f"{prefix}{key}.tex"
            path.write_text(_pages(shown), encoding="utf-8")
        for key, figure in figures.items():
            for kind, content in zip(_KINDS, _drawn(figure, _KINDS), strict=True):
                (folder / "figures" / f"{prefix}{key}.{kind}").write_bytes(content)
        sections += _sections(document, prefix, tables, figures)
    claim = make_claim(evaluations, 0.0)
    lines = [latex_text(clean(line).strip().removeprefix("- ")) for line in claim.lines]
    texts = {"title": latex_text(clean(claim.title)), "claim": "\n".join(lines)}
    text = _PAPER % (texts | {"sections": "\n".join(sections)})
    (folder / "paper.tex").write_text(text, encoding="utf-8")


def public_data(evaluation: Evaluation, clean: Callable[[str], str]) -> ReportData:
    """
    Everything the report of *evaluation* shows, each text of it cleaned.

    Cleaned before it is cut, wrapped or drawn, where half a name would not be recognised.
    """
    vet = evaluation.vet(evaluation.done.values())
    data = dataclasses.replace(evaluation.report_data(), vet=vet)
    results: ReportData = cleaned(data, clean)
    return results


def cleaned(value: Any, clean: Callable[[str], str]) -> Any:
    """*value*, a record or what records are made of, with *clean* applied to each text in it."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, BaseModel):
        return value.model_copy(update={name: cleaned(each, clean) for name, each in value})
    if isinstance(value, Mapping):
        return {cleaned(key, clean): cleaned(each, clean) for key, each in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(cleaned(each, clean) for each in value))
    if isinstance(value, list | tuple | set | frozenset):
        return type(value)(cleaned(each, clean) for each in value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in dataclasses.fields(value)]
        fields = {name: cleaned(getattr(value, name), clean) for name in names}
        return dataclasses.replace(value, **fields)
    return value


def paper_figures(results: ReportData, document: Document) -> dict[str, Figure]:
    """Figures by the names of their files: the two of all models, and of the report what fits."""
    report = document.figures()
    chosen = [predicted.models_panel(results), report.get("errors")]
    chosen += [predicted.calibration_figure(results)]
    chosen += [each for name, each in report.items() if name.rstrip("0123456789") in _BY_PHASE]
    return {figure.name: figure for figure in chosen if figure is not None}


def paper_tables(results: ReportData) -> dict[str, Table]:
    """Tables by the names of their files: what was measured, scores, pairs of models, costs."""
    quantity, time = results.answered, ANSWERED[results.answered]
    pairs = [
        (
            *(pair.better, pair.worse, str(pair.cells)),
            share_with_interval(-pair.difference, -pair.high, -pair.low),
            *(percent(pair.chance, 0.001), pair.verdict),
        )
        for pair in results.score_book.comparisons
        if (pair.quantity, pair.speed) == (quantity, "raw")
    ]
    tables = {
        "cells": _columns(
            cells.error_table(results, quantity),
            ("Cell", "Range", "Repeats", "Measured, s", "Noise"),
            f"Measured {time}: mean of the repeats of each cell, and the noise of that mean.",
            ("Speed", "raw"),
        ),
        "scores": _columns(
            scores.score_table(results),
            ("Workload", "Model", "Cells", "Mean relative error", "Signed", "Noise floor", "I_accu",
             "In 80 %", "In 90 %"),
            f"Errors of the {time}: mean over the cells with its 95 % interval (range below six"
            " cells), the same with signs, the noise of a cell's mean, by how many points a model"
            " is better than whatif (I_accu), and cells that lie in their predicted intervals.",
            ("Time", QUANTITIES[quantity]),
        ),
        "comparisons": table(
            f"Pairs of models by {time}: by how much the mean error of the first is smaller, and"
            " the chance that equal models differ by so much, corrected for all pairs.",
            ("Model", "Other", "Cells", "Nearer by", "Chance", "Verdict"),
            "llrrrl",
            pairs,
        ),
    }  # fmt: skip
    for place, (workload, known) in enumerate(results.profiles.items()):
        shown = profile.statistics_table("", known.costs)
        caption = f"{workload}: costs at reference speed, from the profiling trials. {shown.note}"
        heads = ("Name", "Value", "Spread \u00b1", "Unit", "Count", "Remark")
        tables[f"costs{place}"] = _columns(shown, heads, caption)
    return {key: shown for key, shown in tables.items() if shown.rows}


def _columns(
    shown: Table, names: Iterable[str], caption: str, only: tuple[str, str] | None = None
) -> Table:
    """The columns *names* of *shown*, of the rows that have *only* this text in another column."""
    rows = [dict(zip(shown.columns, texts, strict=True)) for texts in shown.texts()]
    kept = [row for row in rows if only is None or row[only[0]] == only[1]]
    aligned = dict(zip(shown.columns, shown.align, strict=True))
    heads = [name for name in names if name in aligned]
    align = "".join(aligned[name] for name in heads)
    return table(caption, heads, align, [[row[name] for name in heads] for row in kept])


def _pages(shown: Table) -> str:
    """*shown* for LaTeX across both columns of a page, a long one as several."""
    starts = range(0, len(shown.rows), _MOST_ROWS)
    parts = [dataclasses.replace(shown, rows=shown.rows[s : s + _MOST_ROWS]) for s in starts]
    return "\n".join(latex(part, "table*") for part in parts)


def _drawn(figure: Figure, kinds: Iterable[str], width: float | None = None) -> list[bytes]:
    """*figure* as `pdf` with its fonts, as `svg` with outlines; the same bytes each time."""
    import matplotlib as mpl

    from matplotlib.backends.backend_pdf import FigureCanvasPdf
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    drawn, contents = draw_alone(figure, width), []
    with drawing():
        mpl.rc("svg", fonttype="path")
        mpl.rc("pdf", fonttype=42)
        for kind in kinds:
            file = io.BytesIO()
            # Not `savefig`, which draws everything twice.
            if kind == "pdf":
                FigureCanvasPdf(drawn).print_pdf(file, metadata={"CreationDate": None})  # type: ignore[no-untyped-call]
            else:
                FigureCanvasSVG(drawn).print_svg(file, metadata={"Date": None})  # type: ignore[no-untyped-call]
            contents.append(file.getvalue())
    return contents


def _sections(
    document: Document, prefix: str, tables: Mapping[str, Table], figures: Mapping[str, Figure]
) -> Iterator[str]:
    """The sections of the paper that are about one run: question, method, results, threats."""
    head = f" ({latex_text(document.name)})" if prefix else ""
    method = [each for each in document.sections if each.id == "method"]
    texts = [block.text for each in method for block in each.shown() if isinstance(block, Text)]
    yield rf"\section{{Question{head}}}" + "\n" + latex_text(document.question)
    yield rf"\section{{Method{head}}}" + "\n" + latex_text(" ".join(texts))
    yield r"\verb|data/*.csv| has every number, \verb|disclosure.md| how all of it was measured."
    yield rf"\section{{Results{head}}}" + "\n" + latex_text(document.headline)
    for key in tables:
        yield rf"\input{{tables/{prefix}{key}}}"
    for key, figure in figures.items():
        star = "*" if figure.width >= PAGE else ""
        yield rf"\begin{{figure{star}}}\centering"
        size = r"width=\linewidth,height=.85\textheight,keepaspectratio"
        yield rf"\includegraphics[{size}]{{figures/{prefix}{key}.pdf}}"
        yield rf"\caption{{{latex_text(figure.caption)}}}\end{{figure{star}}}"
    yield rf"\section{{Threats to validity{head}}}"
    yield "\n\n".join(latex_text(sentence) for sentence in document.facts.caveats)


def write_pdf(document: Document, path: Path) -> str:
    """
    Write the report as PDF by typst, the same bytes each time; why there is none, if so.

    Names that are not for the public must be out of *document*: `public_data` leaves them out.
    """
    try:
        typst = import_module("typst")
    except ImportError as error:
        return f"there is no {path.name}: {error} (pip install 'mapreduce-harness[pdf]')"
    source = typst_source(document).encode()
    # Tags, which double its size, are for readers of screens: the report in HTML has them.
    content = typst.compile(source, format="pdf", ignore_system_fonts=True, pdf_tags=False)
    path.write_bytes(content)
    return ""


def typst_source(document: Document) -> str:
    """
    The first screen and the sections as source of typst, without what is folded.

    Each text is a string of typst, which has no markup.
    """
    title = f"Experiment {document.name}{document.mark and f', {document.mark}'}."
    lines = [_PDF.format(*map(_string, (document.question, title, document.headline)))]
    for heading, sentences in document.facts.titled():
        lines.append(f"#heading(level: 3, {_string(heading)})")
        lines.append(f"#list({', '.join(map(_string, sentences))})")
    first = [Figures([document.figure])] if document.figure else []
    lines += _blocks([*first, *([document.overview] if document.overview else [])])
    for section in document.sections:
        lines.append(f"#heading(level: 2, {_string(section.title)})")
        lines += _blocks(section.shown())
    return "\n".join(lines) + "\n"


def _blocks(blocks: Iterable[Block]) -> Iterator[str]:
    """Texts, tables that are not folded, and figures for typst."""
    for block in blocks:
        match block:
            case Text(kind="heading"):
                yield f"#heading(level: 3, {_string(block.text)})"
            case Text():
                yield f"#par({_string(block.text)})"
            case Table(folded=False):
                sides = ", ".join("right" if letter == "r" else "left" for letter in block.align)
                heads = ", ".join(f"strong({_string(name)})" for name in block.columns)
                rows = [", ".join(map(_string, texts)) for texts in block.texts()]
                places = ",\n".join([f"table.header({heads}, table.hline(stroke: 0.5pt))", *rows])
                yield f"#block(sticky: true, above: 1.2em, strong({_string(block.caption)}))"
                columns, size = len(block.columns), min(7.0, 80 / len(block.columns))
                yield f"#text(size: {size:.1f}pt, table(columns: {columns}, align: ({sides},),"
                yield f"{places}))"
                yield f"#text(size: 7pt, {_string(block.note)})"
            case Figures():
                yield f"#block(sticky: true, {_string(block.lead)})"
                abreast, width = (2, COLUMN) if block.side_by_side else (1, PAGE)
                yield f"#grid(columns: {abreast}, gutter: 0.16in,"
                for figure in block.figures:
                    svg = _quoted(_drawn(figure, ["svg"], width)[0].decode())
                    image = f'image(bytes({svg}), format: "svg", alt: {_string(figure.title)})'
                    caption = f"text(size: 8pt, {_string(figure.caption)})"
                    yield f"block(breakable: false, {{ {image}; {caption} }}),"
                yield ")"


def _string(text: str) -> str:
    """*text* as a string of typst, as people read it."""
    return _quoted(typographic(printable(text)))


def _quoted(text: str) -> str:
    plain = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{plain}"'
