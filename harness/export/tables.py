"""A run for other programs: tables, LaTeX, and test reports."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import chain
from pathlib import Path

from harness.base.documents.document import Document, Table
from harness.base.documents.formats.latex import latex_table
from harness.base.documents.junit import Case, junit_xml
from harness.base.documents.wording import floor_percent, percent
from harness.base.text import printable, without_formula
from harness.core.frames import Frames
from harness.export.interchange import pkb_samples, rumen_topology, rumen_trace
from harness.observe.storage.files import os_error_as_machine_error, replace_file

FRAMES = ("trials", "measurements", "attempts", "spans", "predictions", "scores", "comparisons")
FRAMES_OF_SCORES = [name for name in FRAMES if name not in ("attempts", "spans")]
_IN_LATEX = ("scores", "comparisons")  # sections of the report
_SURE = 2.0  # noise floors: 95 of 100 perfect predictions are within them


def export(
    run: Frames, folder: Path, further: Mapping[str, Iterable[bytes]] | None = None
) -> Iterator[Path]:
    """
    Write the frames of *run* as CSV and Parquet, tables as LaTeX, and junit.xml; give their paths.

    *run* is what `harness.open` gives.  In CSV a text that a spreadsheet would take for a formula
    has an apostrophe before it.  And the forms of other programs: samples of PerfKitBenchmarker, a
    trace for Rumen, and what *further* has, the contents of files by their names.
    """

    def harmless(value: object) -> object:
        return without_formula(printable(value)) if isinstance(value, str) else value

    with os_error_as_machine_error(folder):
        folder.mkdir(parents=True, exist_ok=True)
        has_traces = run.evaluation.has_traces
        for name in FRAMES if has_traces else FRAMES_OF_SCORES:
            frame = getattr(run, name)
            path = folder / f"{name}.parquet"
            replace_file(path, partial(frame.to_parquet, index=False))
            yield path
            safe = frame.map(harmless).rename(columns=harmless)
            path = path.with_suffix(".csv")
            replace_file(path, partial(safe.to_csv, index=False))
            yield path
        files: dict[str, Iterable[bytes]] = {
            "junit.xml": [junit(run).encode()],
            **(further or {}),
            "samples.json": pkb_samples(run),
            **(_rumen_files(run) if has_traces else {}),
        }
        for name, pieces in (files | _latex_files(run.evaluation.document())).items():
            path = folder / name
            replace_file(path, partial(_write_pieces, pieces))
            yield path


def _rumen_files(run: Frames) -> dict[str, Iterable[bytes]]:
    """Trace and topology for Rumen, by the names of their files."""
    traced = filter(run.run.measured.has_trace, run.trials.sort_values("started_s")["trial"])
    jobs = chain.from_iterable(map(run.run.read_trace, traced))
    topology = rumen_topology(run.attempts["host"])
    return {"rumen-trace.json": rumen_trace(jobs), "rumen-topology.json": [topology]}


def _write_pieces(pieces: Iterable[bytes], path: Path) -> None:
    with path.open("wb") as file:
        file.writelines(pieces)


def _latex_files(document: Document) -> dict[str, Iterable[bytes]]:
    """The first table of each section that is given for LaTeX, by the name of its file."""
    files: dict[str, Iterable[bytes]] = {}
    for section in document.sections:
        if section.id in _IN_LATEX:
            tables = [block for block in section.shown() if isinstance(block, Table)]
            files[f"{section.id}.tex"] = ["\n".join(map(latex_table, tables[:1])).encode()]
    return files


def junit(run: Frames) -> str:
    """
    Write a test case per model and scored cell, which fails where the prediction is surely wrong.

    That is where its error is more than two noise floors of the cell: 95 of 100 perfect predictions
    are within them.  Skipped are cells without an answer, a measurement or a known noise.
    """
    score_book = run.run.read_scores()
    labels = run.evaluation.labels
    ranking = score_book.ranking()
    suites = dict[str, list[Case]]()
    quantity = ranking.quantity if ranking else "job_s"
    scores = {
        (score.model, score.cell): score
        for score in score_book.scores
        if (score.quantity, score.speed) == (quantity, score_book.speed)
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
