"""
A bundle: the claim of one or several runs, with all that a stranger needs to check it.

It is made from stored files alone, has the same bytes each time, and appears by one rename.
"""

from __future__ import annotations

import os

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from harness.base.documents.document import Document, Section
from harness.base.documents.wording import by_number, count
from harness.base.errors import DataError, SpecError, UnmetError
from harness.base.records.trial import SCHEMA_VERSION
from harness.base.version import __version__
from harness.core.evaluate.flow import Evaluation
from harness.core.experiment.question import read_question, with_question
from harness.core.reports import REPORTS
from harness.core.reports.sections import make_document
from harness.core.store import Run, ledger, os_error_as_machine_error
from harness.core.store.published import source_name, unpublished_code
from harness.core.store.sums import SUMS, bundle_hashes, write_sums
from harness.observe.storage.files import (
    folders,
    json_bytes,
    remove_tree,
    rename_durably,
    sync_tree,
)
from harness.observe.storage.opener import Opener
from harness.pseudonyms.names import Pseudonyms
from harness.publish import crate
from harness.publish.data import CLAIM, Claim, make_claim, write_tables
from harness.publish.evidence import copy_run
from harness.publish.pack import pack
from harness.publish.paper import public_data, write_paper, write_pdf
from harness.publish.publication import PUBLICATION, Publication
from harness.publish.rules import RULES_FILE, VERSION, Check, check, rules_document
from harness.publish.system import disclosure, system_document
from harness.scoring.claims import models_by_paper

LEVELS = {
    "scores": "predictions from the profiles, and scores from the measured times",
    "traces": "profiles from what was recorded of each task, and all that follows",
    "raw": "all of it, from the logs as they were collected",
}
_README = """\
# {title}

{claim}{sources}

Division: **{division}**, by the rules of version {version} (`rules.json`).{failed}{labels}

## Check it

```sh
harness verify .                   # every number of the claim again
harness publish --check .          # the rules, one by one
harness reproduce .                # {made}
harness reproduce . --measure      # on a cluster of yours: which conclusions carry over
```

`harness` is mapreduce-harness {harness}.  Where it is not installed, its verifier needs Python 3
alone: take `harness/publish/verify.py` from the project, not from here.  The copy in this folder is
the same file; the project's page of verifiers has its SHA-256, to compare before it is run:

```sh
sha256sum verify.py && python3 -I -S verify.py
sha256sum -c --quiet SHA256SUMS
```

## What is missing

- Evidence: `{level}`. From it can be made again: {made}.
- What happened inside tasks, and what the report folds, is shown at level `raw` alone; numbers that
  are folded there are in `data/`.
- Names of hosts, users, folders and addresses are replaced; `runs/*/originals.json` has the
  checksums of the files as they were measured, so that their owner can show them.
- `disclosure.md` says what was dropped and why, and how far the conclusions reach; `system.json`
  what it ran on, with `not known` and why where it could not be had.{unpublished}

Licence of the data: {licence}.
"""
_MOST_SHOWN = 12
_OF_TASKS = ("timeline", "inside", "vet")  # sections of a report
_REPORTS = {"html": "html", "markdown": "md"}


class Published(NamedTuple):
    """
    A bundle that was made: its *claim*, how it meets the rules, and why it has no PDF.

    *sources* are those of models and workloads of the owner's own, *secrets* how many values that
    look like secrets have pseudonyms in it.
    """

    claim: Claim
    check: Check
    without_pdf: str
    sources: tuple[OwnSource, ...]
    secrets: int = 0


class OwnSource(NamedTuple):
    """
    What the owner calls *name*, from his *file*; *path* is where the bundle has its source.

    Empty: it does not have it.
    """

    name: str
    file: str
    path: str


def publish(
    runs: Sequence[Run],
    folder: Path,
    *,
    level: str = "traces",
    division: str | None = None,
    authors: Sequence[crate.Author] = (),
    licence: str = "",
    keep: Collection[str] = (),
    is_packed: bool = False,
    with_source: bool = True,
) -> Published:
    """
    Make the bundle *folder* of *runs* with the evidence of *level*; packed, if *is_packed*.

    *with_source*: with the source of models and workloads of the owner's, byte for byte.
    Without a *division* it is that whose rules are met.  `DataError`: a run lacks something, or a
    name that is not for the public would be in the bundle; nothing is there then.
    """
    refuse_existing(folder)
    for run in runs:
        require_complete(run)
    if len({run.id for run in runs}) < len(runs):
        raise SpecError("a run is named twice", where=" ".join(run.id for run in runs))
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    publication = Publication(
        level=level,
        division=division or "",
        licence=licence,
        authors=tuple(map(dict, authors or crate.NOBODY)),
        dated_s=float(epoch) if epoch else None,
        sealed=others_sealed(runs, is_unpublished=False),
        unpublished=others_sealed(runs, is_unpublished=True),
    )
    pseudonyms = Pseudonyms.of(runs, keep, level)
    scratch = folder.absolute().with_name(f".{folder.name}.{os.getpid()}")
    with os_error_as_machine_error(folder):
        scratch.mkdir(parents=True)
        try:
            for run in runs:
                target = scratch / "runs" / run.id
                copy_run(run, target, level, pseudonyms, with_source=with_source)
            evaluations = published_evaluations(scratch, {})
            published = write_pages(evaluations, scratch, publication, pseudonyms)
            published = published._replace(secrets=len(pseudonyms.secrets_by_form))
            sums_sha256 = Opener(scratch).sha256(scratch / SUMS)
            move_into_place(scratch, folder, is_packed=is_packed)
        finally:
            remove_tree(scratch)
    for run in runs:
        run.note_in_ledger(sums_sha256)
    return published


def others_sealed(runs: Sequence[Run], *, is_unpublished: bool) -> dict[str, int]:
    """How many other runs of each experiment this machine's ledger knows; *is_unpublished* only."""
    names = {run.experiment().name for run in runs}
    ids = {run.id for run in runs}
    counts = Counter(
        entry.experiment
        for entry in ledger.registered()
        if entry.experiment in names
        and entry.run not in ids
        and not (is_unpublished and entry.published)
    )
    return dict(sorted(counts.items()))


def published_evaluations(bundle: Path, questions: Mapping[str, str]) -> list[Evaluation]:
    """Give the runs of the folder *bundle* as they are published, with *questions* asked anew."""
    evaluations = [Evaluation.of(Run(path)) for path in sorted(folders(bundle / "runs"))]
    return [asked_anew(evaluation, questions) for evaluation in evaluations]


def asked_anew(evaluation: Evaluation, questions: Mapping[str, str]) -> Evaluation:
    """*evaluation* with the one of *questions* that is asked of its experiment, if one is."""
    experiment = evaluation.experiment
    if experiment.name not in questions:
        return evaluation
    models = experiment.predict.models
    asked = read_question(questions[experiment.name], models, models_by_paper())
    return replace(evaluation, experiment=with_question(experiment, asked))


def write_data(evaluations: Sequence[Evaluation], folder: Path) -> None:
    """Write the tables, `system.json` and `disclosure.md` of a bundle into *folder*."""
    runs = [evaluation.run for evaluation in evaluations]
    write_tables(evaluations, folder / "data", str)
    _write(folder / "system.json", json_bytes(system_document(runs)).decode())
    _write(folder / "disclosure.md", disclosure(runs))


def write_pages(
    evaluations: Sequence[Evaluation],
    scratch: Path,
    publication: Publication,
    pseudonyms: Pseudonyms | None = None,
    write_data: Callable[[Sequence[Evaluation], Path], None] = write_data,
) -> Published:
    """
    Write all of the bundle *scratch* that follows from its runs and its *publication*.

    These are the runs as they are published, so that whoever has the bundle makes all of it again.
    `DataError`: the closed division is not met, or a name that *pseudonyms* know would be there.
    """
    claim = make_claim(evaluations, publication.dated_s)
    level = publication.level
    licence = publication.licence
    write_data(evaluations, scratch)
    without_pdf = _write_reports(evaluations, claim, scratch, level)
    _write(scratch / "verify.py", Path(__file__).with_name("verify.py").read_text())
    rules_check = check(scratch)
    claimed = publication.division or rules_check.division
    if claimed == "closed" and rules_check.unmet:
        what = "\n  ".join(["the closed division is not met:", *rules_check.unmet.values()])
        fix = "measure again what a machine decides (R08 to R10), or publish it as --division open"
        raise UnmetError(what, where=name_of(scratch), fix=fix)
    publication = publication.model_copy(update={"division": claimed})
    _write(scratch / PUBLICATION, json_bytes(publication.model_dump(mode="json")).decode())
    _write(scratch / RULES_FILE, json_bytes(rules_document(rules_check, claimed)).decode())
    sources = tuple(dict.fromkeys(chain.from_iterable(map(own_sources, evaluations))))
    page = readme(claim, rules_check, publication, sources)
    _write(scratch / "README.md", page)
    if pseudonyms is not None:
        _refuse_private(pseudonyms, scratch, name_of(scratch))
    authors = publication.authors
    labelled = claim._replace(labels=tuple(rules_check.labels))
    _write(scratch / "CITATION.cff", crate.citation(labelled, authors, licence))
    metadata = crate.crate(labelled, authors, licence, bundle_hashes(scratch), scratch)
    _write(scratch / "ro-crate-metadata.json", metadata)
    write_sums(scratch)
    checked = rules_check.model_copy(update={"claimed": claimed})
    return Published(labelled, checked, without_pdf, sources)


def own_sources(evaluation: Evaluation) -> Iterator[OwnSource]:
    """Models and workloads of the owner's that a published run names, and where their source is."""
    run = evaluation.run
    missing = unpublished_code(run.opener, evaluation.experiment.own_code)
    for name, code in evaluation.experiment.own_code.items():
        path = "" if name in missing else f"runs/{run.id}/{source_name(code)}"
        yield OwnSource(name, code.file, path)


def name_of(scratch: Path) -> str:
    """Name of the bundle that is made in *scratch*, a folder ``.NAME.SUFFIX`` beside it."""
    return scratch.name.removeprefix(".").rpartition(".")[0]


def move_into_place(
    scratch: Path, folder: Path, *, is_packed: bool, earlier: Path | None = None
) -> None:
    """
    Let the bundle *scratch* appear as *folder*, packed if *is_packed*, in one step.

    Evidence of its runs that the folder *earlier* has packed stays as it is there.
    """
    result = pack(scratch, scratch / ".packed", earlier) if is_packed else scratch
    sync_tree(result)
    refuse_existing(folder)  # another one may have made it meanwhile
    rename_durably(result, folder.absolute())


def refuse_existing(folder: Path) -> None:
    """`SpecError` where *folder* is there already."""
    if folder.exists():
        fix = "name a folder that is not there: a bundle is made at once, or not at all"
        raise SpecError("the folder is there already", where=str(folder), fix=fix)


def _refuse_private(pseudonyms: Pseudonyms, scratch: Path, where: str) -> None:
    """Raise `DataError` where a name or a secret would become public with *scratch*."""
    private = [f"  {name}: {what}" for name, what in pseudonyms.found_in(scratch)]
    if private:
        what = "\n".join(["names or secrets would become public:", *private[:_MOST_SHOWN]])
        fix = "nothing was published: take what it names out of a copy of the run and what made it,"
        fix += " or publish less, --evidence traces or scores; a lean bundle that fails is our bug"
        raise DataError(what, where=where, fix=fix)


def require_complete(run: Run) -> None:
    """`DataError` says what *run* lacks to be published."""
    evaluation = Evaluation.of(run)
    version = run.read_manifest().schema_version
    missing = [trial.id for trial in evaluation.plan if trial.id not in run.trial_ids()]
    go_on = "go on with it (harness all FILE), then publish again"
    planned = f"{len(missing)} of {len(evaluation.plan)} planned trials are missing"
    is_answered = any(
        prediction.body_s or prediction.job_s for prediction in evaluation.predictions
    )
    lacks = (
        (run.measured is not run, "this is an analysis of a run", "publish the run itself"),
        (
            version != SCHEMA_VERSION,
            f"it is older: its schema_version is {version}, that of a bundle {SCHEMA_VERSION}",
            "publish it with the harness that measured it, or measure it with this one",
        ),
        (missing, f"{planned}, {', '.join(missing[:3])} among them", go_on),
        (not run.finished, "it has not ended", go_on),
        (not run.check_evidence(), "it has no evidence", "measure it again"),
        (not is_answered, "no model has predicted anything", "harness predict RUN"),
        (not run.is_scored, "it has no scores", "harness score RUN"),
    )
    for is_lacking, what, fix in lacks:
        if is_lacking:
            raise DataError(what, where=str(run.path), fix=fix)
    run.seal.check()


def _write_reports(
    evaluations: Sequence[Evaluation],
    claim: Claim,
    folder: Path,
    level: str,
) -> str:
    """
    Write the report of each run in each format, and the paper.

    What happened in tasks is shown where a reader has what it was made from.  Returned is why there
    is no PDF; nothing: there is one.
    """
    documents = {}
    without_pdf = ""
    with_tasks = level == "raw"
    for evaluation in evaluations:
        results = public_data(evaluation, with_tasks=with_tasks)
        document = make_document(results)
        if not with_tasks:
            document = without_tasks(document)
        suffix = f"-{evaluation.run.id}" if len(evaluations) > 1 else ""
        documents[suffix] = (results, document)
        for kind, ending in _REPORTS.items():
            _write(folder / f"report{suffix}.{ending}", REPORTS[kind].render(document))
        without_pdf = write_pdf(document, folder / f"report{suffix}.pdf")
    write_paper(documents, claim, folder)
    return without_pdf


def without_tasks(document: Document) -> Document:
    """A report without what happened in tasks, and without folded tables: those are in data/."""
    sections = list[Section]()
    for section in document.sections:
        if section.id not in _OF_TASKS:
            blocks = [block for block in section.blocks if not getattr(block, "folded", 0)]
            sections.append(replace(section, blocks=blocks))
    return replace(document, sections=sections)


def readme(
    claim: Claim, rules_check: Check, publication: Publication, sources: Collection[OwnSource] = ()
) -> str:
    """Say what is claimed, how to check it, and what is missing; *sources* are its owner's own."""
    failed = ", ".join(rules_check.unmet)
    level = publication.level
    licence = publication.licence
    return _README.format(
        unpublished="".join(map("\n- {}".format, others_sentences(publication))),
        title=claim.title,
        claim=CLAIM.format("\n".join(claim.lines)),
        sources="".join(f"\n\n{source_sentence(source)}" for source in sources),
        division=publication.division,
        version=VERSION,
        failed=f" Not met of the closed division: {failed}." if failed else "",
        labels=f"\n\nLabels: {', '.join(rules_check.labels)}." if rules_check.labels else "",
        made=LEVELS[level],
        harness=__version__,
        level=level,
        licence=licence or "none is stated, so all rights are reserved",
    )


def source_sentence(source: OwnSource) -> str:
    """Where the source of a model or workload of the owner's is, or what its absence means."""
    if source.path:
        place = f"its source is `{source.path}`, which was {source.file}"
        return f"{source.name} is its owner's own: {place}."
    what = "its source is not here: nobody else can make its numbers again"
    return f"{source.name} is its owner's own, and {what}."


def others_sentences(publication: Publication) -> Iterator[str]:
    """How many other runs of each experiment were known there, and how many are in no bundle."""
    for name, number in publication.sealed.items():
        left = publication.unpublished.get(name, 0)
        text = f"Of {name} the ledger of the machine that published it knew"
        text += f" {count(number, 'other sealed run')} at that moment, of which {left}"
        yield f"{text} {by_number(left, 'is', 'are')} in no bundle."


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
