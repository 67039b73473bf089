"""A run for other programs: tables, LaTeX, and test reports."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from xml.etree import ElementTree as ET

from harness.api.run import Run
from harness.base.documents.document import Document, Table
from harness.base.documents.formats.latex import latex_table as latex
from harness.base.documents.formats.latex import latex_text
from harness.base.documents.wording import floor_percent, one_line, percent
from harness.base.text import printable
from harness.core.store import os_error_as_machine_error
from harness.nightly.nights import night
from harness.nightly.page import otava_csv
from harness.nightly.records import Night
from harness.publish.interchange import pkb_samples, rumen_topology, rumen_trace

__all__ = ["FORMULA", "FRAMES", "Case", "export", "junit", "junit_xml", "latex", "latex_text"]

FRAMES = ("trials", "measurements", "attempts", "spans", "predictions", "scores", "comparisons")
_IN_LATEX = ("scores", "comparisons")  # sections of the report
# What a spreadsheet takes for the beginning of a formula, as wide characters, too.
FORMULA = tuple("=+-@\t\uff1d\uff0b\uff0d\uff20")
Case = tuple[str, str, str]  # of a test: its name, "failure", "skipped" or "", and why
_SURE = 2.0  # noise floors: 95 of 100 perfect predictions are within them


def export(run: Run, folder: Path, nights: Sequence[Night] = ()) -> Iterator[Path]:
    """
    Write the frames of *run* as CSV and Parquet, tables as LaTeX, and junit.xml; give their paths.

    In CSV a text that a spreadsheet would take for a formula has an apostrophe before it.  And the
    forms of other programs: samples of PerfKitBenchmarker, a trace for Rumen, and a table for Otava
    of *nights* (see `harness.nightly.nights`), in the order of time, or else of this run alone.
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
