"""
A bundle published again: scored by this version, with the same measurements and predictions.

What was measured, predicted, sealed and disclosed is copied, packed evidence byte for byte; scores,
tables, claim, reports and the answers to the rules are made anew.
"""

from __future__ import annotations

import csv
import gzip
import io
import shutil

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from harness.base.errors import SpecError
from harness.base.records.question import Question
from harness.base.text import read_json
from harness.core.evaluate.flow import Evaluation
from harness.core.experiment.question import with_question
from harness.core.store import Run, os_error_as_machine_error
from harness.core.store.evidence import CHAIN, SCORES, Chain, hash_folder
from harness.core.store.packed import home_of, opened
from harness.core.store.published import CODE, ORIGINALS
from harness.core.store.run import FINISHED
from harness.core.store.sums import REPLICATIONS, write_sums
from harness.observe.storage.files import folders, json_bytes, remove_tree
from harness.observe.storage.opener import PACKED, Opener
from harness.publish import crate
from harness.publish.bundle import (
    Published,
    asked_anew,
    move_into_place,
    refuse_existing,
    write_data,
    write_pages,
)
from harness.publish.data import FIX, question_of_row, read_table, write_tables
from harness.publish.publication import PUBLICATION, Publication, read_publication
from harness.publish.rules import RULES_FILE
from harness.publish.verifiers import whole_verifier

_COPIED = ("system.json", "disclosure.md")
_TABLES_KEPT = ("trials", "measurements", "predictions")
# Of a run: what was found when it was published, from files that the bundle may lack.
_KEPT_OF_RUN = ("blind", "sealed", "schema", "started_s", "ended_s")


def publish_again(
    bundle: Path,
    folder: Path,
    *,
    questions: Mapping[str, str],
    authors: Sequence[crate.Author] = (),
    licence: str = "",
    is_packed: bool = False,
    with_source: bool = True,
) -> Published:
    """
    Make the bundle *folder* of the runs of *bundle*, scored anew.

    *questions* are texts by the name of the experiment that they are asked of, afterwards.  A run
    that was asked afterwards before keeps its question, unless there is another one.
    """
    refuse_existing(folder)
    source = opened(bundle)
    whole_verifier(source)
    opener = Opener(source)
    opener.require_plain()
    before = read_publication(opener)
    publication = _publication(opener, before, authors, licence, questions)
    scratch = folder.absolute().with_name(f".{folder.name}.again")
    with os_error_as_machine_error(folder):
        scratch.mkdir(parents=True)
        try:
            shutil.copytree(source / "runs", scratch / "runs")
            if not with_source:
                for code_folder in scratch.glob(f"runs/*/{CODE}"):
                    remove_tree(code_folder)
            if (source / REPLICATIONS).is_dir():  # what was measured again says of which bundle
                shutil.copytree(source / REPLICATIONS, scratch / REPLICATIONS)
            asked = asked_before(opener)
            evaluations = [
                scored_again(path, questions, asked.get(path.name))
                for path in sorted(folders(scratch / "runs"))
            ]
            _require_asked(evaluations, questions)
            write = write_data if before else partial(write_older_data, opener)
            published = write_pages(evaluations, scratch, publication, write_data=write)
            if before is None:
                (scratch / PUBLICATION).unlink()
                write_sums(scratch)
            move_into_place(scratch, folder, is_packed=is_packed, earlier=home_of(bundle))
        finally:
            remove_tree(scratch)
    return published


def _publication(
    bundle: Opener,
    before: Publication | None,
    authors: Sequence[crate.Author],
    licence: str,
    questions: Mapping[str, str],
) -> Publication:
    """How *bundle* is published now; a closed one has to meet the present rules anew."""
    if before is None:
        first = min(folders(bundle.root / "runs"))
        level = str(read_json(bundle.read(first / ORIGINALS, FIX))["level"])
        division = str(read_json(bundle.read(bundle.root / RULES_FILE, FIX))["division"])
        before = Publication(level=level, division=division, authors=crate.NOBODY)
    return Publication(
        level=before.level,
        division="open" if before.division == "open" else "",
        licence=licence or before.licence,
        authors=tuple(map(dict, authors)) or before.authors,
        dated_s=before.dated_s,
        sealed=before.sealed,
        unpublished=before.unpublished,
        questions={**before.questions, **questions},
    )


def write_older_data(bundle: Opener, evaluations: Sequence[Evaluation], folder: Path) -> None:
    """
    Write the tables of an earlier version's *bundle* into *folder*, with what it says itself.

    Its runs lack the configurations of their jobs, from which the rest was made.
    """
    write_tables(evaluations, folder / "data", str)
    for name in (*_COPIED, *(f"data/{table}.csv" for table in _TABLES_KEPT)):
        shutil.copyfile(bundle.root / name, folder / name)
    keep_runs(bundle, folder / "data/runs.csv")


def _require_asked(evaluations: Sequence[Evaluation], questions: Mapping[str, str]) -> None:
    """`SpecError` where a question is about an experiment that is not in the bundle."""
    names = sorted({evaluation.experiment.name for evaluation in evaluations})
    for name in questions.keys() - set(names):
        fix = f"its experiments: {', '.join(names)}"
        raise SpecError(f"the bundle has no experiment '{name}'", where="--question", fix=fix)


def asked_before(bundle: Opener) -> dict[str, Question]:
    """The questions that were asked of runs of *bundle* afterwards, by the ids of the runs."""
    return {
        row["id"]: question_of_row(row)
        for row in read_table(bundle, "runs")
        if row.get("asked") == "afterwards"
    }


def scored_again(
    path: Path, questions: Mapping[str, str], before: Question | None = None
) -> Evaluation:
    """
    Score the run at *path*, which is a copy, with its question; the evidence of it anew.

    Where none is among *questions*, and none was sealed, it is the one that was asked *before*.
    """
    run = Run(path)
    evaluation = Evaluation.of(run)
    experiment = evaluation.experiment
    if experiment.name in questions:
        evaluation = asked_anew(evaluation, questions)
    elif before is not None and run.seal.question() is None:
        title = experiment.question.title
        experiment = with_question(experiment, before.model_copy(update={"title": title}))
        evaluation = replace(evaluation, experiment=experiment)
    chain = Chain(run.opener)
    lines = (path / CHAIN).read_bytes()
    scores = evaluation.score()
    data = json_bytes(scores.model_dump(mode="json"), indent=None)
    (path / SCORES / f"scores.json{PACKED}").write_bytes(gzip.compress(data, mtime=0))
    (path / SCORES / "scores.json").unlink()
    remove_tree(path / "incoming")  # of what was half-done
    (path / CHAIN).write_bytes(lines)
    chain = Chain(run.opener)
    chain.append(SCORES, hash_folder(path / SCORES, run.opener))
    (path / FINISHED).write_text([*Chain(run.opener).lines()][-1], encoding="utf-8")
    run.check_evidence()
    run.seal.check()
    return evaluation


def keep_runs(bundle: Opener, path: Path) -> None:
    """Put what was known of each run when it was published into the table of runs at *path*."""
    published_rows = {row["id"]: row for row in read_table(bundle, "runs")}
    rows = list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"), newline="")))
    for row in rows:
        row.update({column: published_rows[row["id"]][column] for column in _KEPT_OF_RUN})
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
