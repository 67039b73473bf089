"""What a paper takes from a bundle: tables for LaTeX, figures, a skeleton around them, a PDF."""

from __future__ import annotations

import dataclasses
import io

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from harness.api.export import latex, latex_text
from harness.evaluate.flow import Evaluation
from harness.publish.claim import make_claim
from harness.reports.answer import ANSWERED
from harness.reports.data import ReportData
from harness.reports.document import Document, Figure, Figures, Table, Text, Value, table
from harness.reports.drawing import COLUMN, PAGE, draw_alone, drawing
from harness.reports.sections import cells, make_document, predicted, profile, scores
from harness.reports.wording import QUANTITIES, percent, share_with_interval, typographic
from harness.scoring import METRICS
from harness.text import printable

_KINDS = ("pdf", "svg")
_METRICS = ("mape", "signed_error", "noise_floor", "i_accu", "coverage_80", "coverage_90")
_BY_PHASE = ("phases", "waterfall")  # figures of the report, one for each workload
_MOST_ROWS = 40  # of a table on one page
# Shades of values, as those of the report in HTML.
_TONES = {"low1": "e8f1fb", "low2": "cfe2f6", "low3": "b2d2f0", "high1": "fdf1e4",
          "high2": "fae0c6", "high3": "f5cca3", "mark": "fdecea"}  # fmt: skip
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
_PDF = """#set document(title: {title}, date: none)
#set page(paper: "a4", margin: 1.4cm, numbering: "1 / 1")
#set text(size: 9pt, lang: "en")
#set table(stroke: none, inset: (x: 3pt, y: 2.5pt))
#show table: set text(size: 7pt)
#show table: set par(justify: false)
#show heading: set block(above: 1.4em, below: 0.7em, sticky: true)
#heading(level: 1, {question})
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
        tables, figures = paper_tables(results), paper_figures(results)
        for key, shown in tables.items():
            path = folder / "tables" / f"{prefix}{key}.tex"
            path.write_text(_pages(shown), encoding="utf-8")
        for key, figure in figures.items():
            for kind, content in zip(_KINDS, _drawn(figure, _KINDS), strict=True):
                (folder / "figures" / f"{prefix}{key}.{kind}").write_bytes(content)
        sections += _sections(make_document(results), prefix, tables, figures)
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
    return cleaned(dataclasses.replace(evaluation.report_data(), vet=vet), clean)  # type: ignore[no-any-return]


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


def paper_figures(results: ReportData) -> dict[str, Figure]:
    """Figures by the names of their files: the two of all models, and of the report what fits."""
    report = make_document(results).figures()
    chosen = [predicted.models_panel(results), report.get("errors")]
    chosen += [predicted.calibration_figure(results)]
    chosen += [each for name, each in report.items() if name.rstrip("0123456789") in _BY_PHASE]
    return {figure.name: figure for figure in chosen if figure is not None}


def paper_tables(results: ReportData) -> dict[str, Table]:
    """Tables by the names of their files: what was measured, scores, pairs of models, costs."""
    quantity, score_book = results.answered, results.score_book
    name, time = QUANTITIES[quantity], ANSWERED[quantity]
    measured = _columns(
        cells.error_table(results, quantity),
        ("Cell", "Range", "Repeats", "Measured, s", "Noise"),
        f"Measured {time}: mean of the repeats of each cell, and noise of that mean.",
        {"Speed": "raw"},
    )
    titles = [f"{title[0].upper()}{title[1:]}" for title in (METRICS[m].title for m in _METRICS)]
    notes = [
        f"{title}: {METRICS[m].description}." for m, title in zip(_METRICS, titles, strict=True)
    ]
    scored = _columns(
        scores.score_table(results),
        ("Workload", "Model", "Cells", *titles),
        f"Scores by {time}. {' '.join(notes[:4])}",
        {"Time": name},
    )
    pairs = [
        (
            *(pair.better, pair.worse, str(pair.cells)),
            share_with_interval(-pair.difference, -pair.high, -pair.low),
            *(percent(pair.chance, 0.001), pair.verdict),
        )
        for pair in score_book.comparisons
        if (pair.quantity, pair.speed) == (quantity, "raw")
    ]
    caption = f"Pairs of models by {time}: by how much the mean error of the first is smaller, with"
    caption += " the chance that equal models differ by so much, corrected for all pairs."
    heads = ("Model", "Other", "Cells", "Nearer by", "Chance", "Verdict")
    tables = {
        "cells": measured,
        "scores": scored,
        "comparisons": table(caption, heads, "llrrrl", pairs),
    }
    for place, (workload, known) in enumerate(results.profiles.items()):
        costs = profile.statistics_table("", known.costs)
        caption = f"{workload}: costs at reference speed, from the profiling trials. {costs.note}"
        heads = ("Name", "Value", "Spread \u00b1", "Unit", "Count", "Remark")
        tables[f"costs{place}"] = _columns(costs, heads, caption)
    return {key: shown for key, shown in tables.items() if shown.rows}


def _columns(
    shown: Table, names: Collection[str], caption: str, only: Mapping[str, str] | None = None
) -> Table:
    """The columns *names* of *shown*, of the rows that have *only* these texts in others."""
    places = {name: place for place, name in enumerate(shown.columns)}
    wanted = {places[name]: text for name, text in (only or {}).items() if name in places}
    kept = [places[name] for name in names if name in places]
    rows = [
        [row[place] for place in kept]
        for row in shown.rows
        if all(row[place].text == text for place, text in wanted.items())
    ]
    heads, align = zip(*((shown.columns[place], shown.align[place]) for place in kept), strict=True)
    return table(caption, heads, "".join(align), rows)


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
        yield rf"\begin{{figure{star}}}\centering\includegraphics{{figures/{prefix}{key}.pdf}}"
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
    lines = [_PDF.format(title=_string(document.name), question=_string(document.question))]
    mark = f", {document.mark}" if document.mark else ""
    lines += [
        f"#par({_string(f'Experiment {document.name}{mark}.')})",
        f"#strong({_string(document.headline)})",
    ]
    for title, sentences in document.facts.titled():
        lines += [f"#heading(level: 3, {_string(title)})"]
        lines += [f"#list({', '.join(map(_string, sentences))})"]
    lines += [_image(document.figure, PAGE)] if document.figure else []
    lines += _table(document.overview) if document.overview else []
    for section in document.sections:
        lines.append(f"#heading(level: 2, {_string(section.title)})")
        for block in section.shown():
            match block:
                case Text(kind="heading"):
                    lines.append(f"#heading(level: 3, {_string(block.text)})")
                case Text():
                    lines.append(f"#par({_string(block.text)})")
                case Table():
                    lines += _table(block)
                case Figures():
                    width = COLUMN if block.side_by_side else PAGE
                    images = ",\n".join(_image(each, width)[1:] for each in block.figures)
                    columns = 2 if block.side_by_side else 1
                    lines.append(f"#block(sticky: true, {_string(block.lead)})")
                    lines.append(f"#grid(columns: {columns}, gutter: 0.16in,\n{images})")
    return "\n".join(lines) + "\n"


def _string(text: str) -> str:
    """*text* as a string of typst, as people read it."""
    return _quoted(typographic(printable(text)))


def _quoted(text: str) -> str:
    plain = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{plain}"'


def _image(figure: Figure, width: float) -> str:
    """A figure with its caption, as a block; what is said of it where it cannot be seen."""
    svg = _drawn(figure, ["svg"], width)[0].decode()
    image = f'image(bytes({_quoted(svg)}), format: "svg", alt: {_string(figure.title)})'
    return f"#block(breakable: false, {{ {image}; text(size: 8pt, {_string(figure.caption)}) }})"


def _table(shown: Table) -> list[str]:
    """A table with its caption above and its note below it; none where it is folded."""
    if shown.folded or not shown.rows:
        return []
    sides = ", ".join("right" if letter == "r" else "left" for letter in shown.align)
    heads = ", ".join(f"strong({_string(name)})" for name in shown.columns)
    rows = [", ".join(map(_cell, row)) for row in shown.rows]
    lines = ",\n".join([f"table.header({heads}, table.hline(stroke: 0.5pt))", *rows])
    caption = f"#block(sticky: true, above: 1.2em, strong({_string(shown.caption)}))"
    table = f"#table(columns: {len(shown.columns)}, align: ({sides},),\n{lines})"
    note = [f"#text(size: 7pt, {_string(shown.note)})"] if shown.note else []
    return [caption, table, *note]


def _cell(value: Value) -> str:
    text = _string(value.text)
    return f'table.cell(fill: rgb("{_TONES[value.tone]}"), {text})' if value.tone else text
