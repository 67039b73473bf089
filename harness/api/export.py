"""A run for other programs: tables, LaTeX, and test reports."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from xml.etree import ElementTree as ET

from harness.api.interchange import pkb_samples, rumen_topology, rumen_trace
from harness.api.run import Run
from harness.evaluate.nights import night
from harness.records.nightly import Night
from harness.reports.document import Document, Table
from harness.reports.nightly import otava_csv
from harness.reports.wording import floor_percent, one_line, percent, typographic
from harness.store import os_error_as_machine_error
from harness.text import printable

FRAMES = ("trials", "measurements", "attempts", "spans", "predictions", "scores", "comparisons")
_IN_LATEX = ("scores", "comparisons")  # sections of the report
_LONG = 40  # characters of a text that is wrapped
# What a spreadsheet takes for the beginning of a formula, as wide characters, too.
FORMULA = tuple("=+-@\t\uff1d\uff0b\uff0d\uff20")
# What LaTeX would act upon, or join with its neighbour; behind the end of a line [ and * are read.
_LATEX = {
    **{char: f"\\{char}" for char in "{}%_#&$"},
    **{char: f"{{{char}}}" for char in '[]*<>|`"'},
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "\xa0": "~", "\u2212": "$-$", "\u2013": r"\textendash{}", "\u2026": r"\dots{}",
}  # fmt: skip
Case = tuple[str, str, str]  # of a test: its name, "failure", "skipped" or "", and why
_SURE = 2.0  # noise floors: 95 of 100 perfect predictions are within them


def export(run: Run, folder: Path, nights: Sequence[Night] = ()) -> Iterator[Path]:
    """
    Write the frames of *run* as CSV and Parquet, tables as LaTeX, and junit.xml; give their paths.

    In CSV a text that a spreadsheet would take for a formula has an apostrophe before it.  And the
    forms of other programs: samples of PerfKitBenchmarker, a trace for Rumen, and a table for Otava
    of *nights* (see `harness.evaluate.nights`), in the order of time, or else of this run alone.
    """

    def harmless(value: object) -> object:
        text = printable(value) if isinstance(value, str) else ""
        return f"'{text}" if text.startswith(FORMULA) else text or value

    with os_error_as_machine_error(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for name in FRAMES:
            frame = getattr(run, name)
            path = folder / f"{name}.parquet"
            frame.to_parquet(path, index=False)
            yield path
            safe = frame.map(harmless).rename(columns=harmless)
            path = path.with_suffix(".csv")
            safe.to_csv(path, index=False)
            yield path
        traced = filter(run.run.measured.has_trace, run.trials.sort_values("started_s")["trial"])
        jobs = chain.from_iterable(map(run.run.read_trace, traced))
        files: dict[str, Iterable[bytes]] = {
            "junit.xml": [junit(run).encode()],
            "otava.csv": [otava_csv(nights or [night(run.evaluation)]).encode()],
            "samples.json": pkb_samples(run),
            "rumen-trace.json": rumen_trace(jobs),
            "rumen-topology.json": [rumen_topology(run.attempts["host"])],
        }
        for name, pieces in (files | _latex_files(run.document)).items():
            with (folder / name).open("wb") as file:
                file.writelines(pieces)
            yield folder / name


def _latex_files(document: Document) -> dict[str, Iterable[bytes]]:
    """The first table of each section that is given for LaTeX, by the name of its file."""
    files: dict[str, Iterable[bytes]] = {}
    for section in document.sections:
        if section.id in _IN_LATEX:
            tables = [block for block in section.shown() if isinstance(block, Table)]
            files[f"{section.id}.tex"] = ["\n".join(map(latex, tables[:1])).encode()]
    return files


def latex(shown: Table, environment: str = "table") -> str:
    """*shown* for LaTeX with the package booktabs and, where it is pdfTeX, fontenc with T1."""
    rows = [shown.columns, *shown.texts()]
    head, *lines = [" & ".join(map(latex_text, texts)) + r" \\" for texts in rows]
    align = ""
    for letter, texts in zip(shown.align, zip(*rows, strict=True), strict=True):
        is_wrapped = max(map(len, texts)) > _LONG
        align += "p{3cm}" if is_wrapped else letter.replace("c", "l")
    caption = latex_text(shown.caption)
    begin = rf"\begin{{{environment}}}\centering\caption{{{caption}}}\begin{{tabular}}{{{align}}}"
    end = rf"\bottomrule\end{{tabular}}\end{{{environment}}}"
    return "\n".join([begin, r"\toprule", head, r"\midrule", *lines, end, ""])


def latex_text(text: str) -> str:
    r"""
    *text* in one line for LaTeX, every command in it made literal.

    Letters beyond Latin-1, which pdfTeX does not know by itself, are written as their numbers.

    >>> print(latex_text(r"50 % of \input{a_b}"), latex_text("\u03b2 --x"))
    50~\% of \textbackslash{}input\{a\_b\} U+03B2 -{}-x
    """
    plain = typographic(one_line(text))
    chars = (_LATEX.get(char, char if char <= "\xff" else f"U+{ord(char):04X}") for char in plain)
    return "".join(chars).replace("--", "-{}-").replace("--", "-{}-")


def junit(run: Run) -> str:
    """
    Write a test case per model and scored cell, which fails where the prediction is surely wrong.

    That is where its error is more than two noise floors of the cell: 95 of 100 perfect predictions
    are within them.  Skipped are cells without an answer, a measurement or a known noise.
    """
    score_book = run.run.read_scores()
    labels = run.evaluation.labels
    ranking = score_book.ranking("raw")
    suites = dict[str, list[Case]]()
    quantity = ranking.quantity if ranking else "job_s"
    scores = {
        (score.model, score.cell): score
        for score in score_book.scores
        if (score.quantity, score.speed) == (quantity, "raw")
    }
    for model, predictions in run.run.read_predictions().items():
        cases = suites[model] = []
        for prediction in predictions:
            score = scores.get((model, prediction.cell))
            outcome = "skipped"
            if score is None:
                lacks = ", ".join(prediction.not_applicable)
                message = f"not applicable: {lacks}" if lacks else "not measured"
            elif score.floor is None:
                message = "the noise is not known: nothing was repeated"
            else:
                outcome = "failure" if score.relative_error > _SURE * score.floor else ""
                error = percent(score.signed_error, score.floor, signed=True)
                message = f"{quantity} predicted {score.predicted_s:.4g}, measured"
                message += f" {score.measured_s:.4g}: {error}, noise {floor_percent(score.floor)}"
            cases.append((labels[prediction.cell], outcome, message))
    return junit_xml(suites)


def junit_xml(suites: Mapping[str, Sequence[Case]]) -> str:
    """JUnit's XML of test cases by suite."""
    root = ET.Element("testsuites")
    for suite_name, cases in suites.items():
        suite = ET.SubElement(root, "testsuite", name=printable(suite_name))
        for name, outcome, message in cases:
            attributes = {"classname": suite.attrib["name"], "name": one_line(name)}
            case = ET.SubElement(suite, "testcase", attributes)
            if outcome:
                ET.SubElement(case, outcome, message=one_line(message))
        for kind, tag in (("tests", "testcase"), ("failures", "failure"), ("skipped", "skipped")):
            suite.set(kind, str(len(list(suite.iter(tag)))))
    ET.indent(root)
    return ET.tostring(root, "unicode", xml_declaration=True) + "\n"
