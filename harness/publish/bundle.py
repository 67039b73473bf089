"""
A bundle: the claim of one or several runs, with all that a stranger needs to check it.

It is made from stored files alone, has the same bytes each time, and appears by one rename.
"""

from __future__ import annotations

import os

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from harness.base.documents.document import Document, Section
from harness.base.errors import DataError, SpecError
from harness.base.records.trial import SCHEMA_VERSION
from harness.base.version import __version__
from harness.core.evaluate.flow import Evaluation
from harness.core.reports import REPORTS
from harness.core.reports.sections import make_document
from harness.core.store import Run, os_error_as_machine_error
from harness.core.store.sums import bundle_hashes, write_sums
from harness.observe.storage.files import json_bytes, remove_tree, rename_durably, sync_tree
from harness.pseudonyms.names import Pseudonyms
from harness.publish import crate
from harness.publish.data import CLAIM, Claim, make_claim, write_tables
from harness.publish.evidence import ShownRun, copy_run, is_scored_anew
from harness.publish.pack import pack
from harness.publish.paper import public_data, write_paper, write_pdf
from harness.publish.rules import RULES_FILE, VERSION, Check, check, rules_document
from harness.publish.system import disclosure, system_document

LEVELS = {
    "scores": "predictions from the profiles, and scores from the measured times",
    "traces": "profiles from what was recorded of each task, and all that follows",
    "raw": "all of it, from the logs as they were collected",
}
_README = """\
# {title}

{claim}

Division: **{division}**, by the rules of version {version} (`rules.json`).{failed}{labels}

## Check it

```sh
python3 -I -S verify.py            # every number of the claim again, in seconds
sha256sum -c --quiet SHA256SUMS
harness publish --check .          # the rules, one by one
harness reproduce .                # {made}
harness reproduce . --measure      # on a cluster of yours: which conclusions carry over
```

`verify.py` needs Python 3 alone; `harness` is mapreduce-harness {harness}.

## What is missing

- Evidence: `{level}`. From it can be made again: {made}.
- What happened inside tasks, and what the report folds, is shown at level `raw` alone; numbers that
  are folded there are in `data/`.
- Names of hosts, users, folders and addresses are replaced; `runs/*/originals.json` has the
  checksums of the files as they were measured, so that their owner can show them.
- `disclosure.md` says what was dropped and why, and how far the conclusions reach; `system.json`
  what it ran on, with `not known` and why where it could not be had.

Licence of the data: {licence}.
"""
_MOST_SHOWN = 12
_OF_TASKS = ("timeline", "inside", "vet")  # sections of a report
_REPORTS = {"html": "html", "markdown": "md"}


class Published(NamedTuple):
    """A bundle that was made: its *claim*, how it meets the rules, and why it has no PDF."""

    claim: Claim
    check: Check
    without_pdf: str


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
) -> Published:
    """
    Make the bundle *folder* of *runs* with the evidence of *level*; packed, if *is_packed*.

    Without a *division* it is that whose rules are met.  `DataError`: a run lacks something, or a
    name that is not for the public would be in the bundle; nothing is there then.
    """
    refuse_existing(folder)
    evaluations = [*map(complete_evaluation, runs)]
    if len({run.id for run in runs}) < len(runs):
        raise SpecError("a run is named twice", where=" ".join(run.id for run in runs))
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    pseudonyms = Pseudonyms.of(runs, keep, level)
    clean = pseudonyms.text
    scratch = folder.absolute().with_name(f".{folder.name}.{os.getpid()}")
    with os_error_as_machine_error(folder):
        scratch.mkdir(parents=True)
        try:
            for run in runs:
                copy_run(run, scratch / "runs" / run.id, level, pseudonyms)
            evaluations = [shown(evaluation, scratch, pseudonyms) for evaluation in evaluations]
            claim = make_claim(evaluations, float(epoch) if epoch else None)
            claim = claim._replace(title=clean(claim.title), lines=tuple(map(clean, claim.lines)))
            write_tables(evaluations, scratch / "data", clean)
            _write(scratch / "system.json", clean(json_bytes(system_document(runs)).decode()))
            _write(scratch / "disclosure.md", clean(disclosure(runs)))
            published = write_rest(
                evaluations,
                claim,
                scratch,
                clean=clean,
                level=level,
                division=division,
                authors=authors or crate.NOBODY,
                licence=licence,
                pseudonyms=pseudonyms,
            )
            move_into_place(scratch, folder, is_packed=is_packed)
        finally:
            remove_tree(scratch)
    return published


def shown(evaluation: Evaluation, scratch: Path, pseudonyms: Pseudonyms) -> Evaluation:
    """*evaluation* with the scores that its copy in *scratch* has, where they are others."""
    run = evaluation.run
    if not is_scored_anew(run):
        return evaluation
    copy = Run(scratch / "runs" / run.id)
    return replace(evaluation, run=ShownRun(run, copy, pseudonyms))


def write_rest(
    evaluations: Sequence[Evaluation],
    claim: Claim,
    scratch: Path,
    *,
    clean: Callable[[str], str],
    level: str,
    division: str | None,
    authors: Sequence[crate.Author],
    licence: str,
    pseudonyms: Pseudonyms | None = None,
) -> Published:
    """
    Write what follows from the runs, tables and disclosure of the bundle *scratch*.

    `DataError`: the closed *division* is not met, or a name that *pseudonyms* know would be there.
    """
    without_pdf = _write_reports(evaluations, claim, scratch, clean, level)
    _write(scratch / "verify.py", Path(__file__).with_name("verify.py").read_text())
    rules_check = check(scratch)
    claimed = division or rules_check.division
    if claimed == "closed" and rules_check.unmet:
        what = "\n  ".join(["the closed division is not met:", *rules_check.unmet.values()])
        fix = "publish it as open: --division open"
        raise DataError(what, where=name_of(scratch), fix=fix)
    _write(scratch / RULES_FILE, json_bytes(rules_document(rules_check, claimed)).decode())
    _write(scratch / "README.md", readme(claim, rules_check, claimed, level, licence))
    if pseudonyms is not None:
        _refuse_private(pseudonyms, scratch, name_of(scratch))
    _write(scratch / "CITATION.cff", crate.citation(claim, authors, licence))
    metadata = crate.crate(claim, authors, licence, bundle_hashes(scratch), scratch)
    _write(scratch / "ro-crate-metadata.json", metadata)
    write_sums(scratch)
    checked = rules_check.model_copy(update={"claimed": claimed})
    return Published(claim, checked, without_pdf)


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
        raise DataError(what, where=where, fix="report it: nothing was published")


def complete_evaluation(run: Run) -> Evaluation:
    """Evaluation of a run that can be published; `DataError` says what it lacks."""
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
    return evaluation


def _write_reports(
    evaluations: Sequence[Evaluation],
    claim: Claim,
    folder: Path,
    clean: Callable[[str], str],
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
        results = public_data(evaluation, clean, with_tasks=with_tasks)
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


def readme(claim: Claim, rules_check: Check, division: str, level: str, licence: str) -> str:
    """Say what is claimed, how to check it, and what is missing."""
    failed = ", ".join(rules_check.unmet)
    return _README.format(
        title=claim.title,
        claim=CLAIM.format("\n".join(claim.lines)),
        division=division,
        version=VERSION,
        failed=f" Not met of the closed division: {failed}." if failed else "",
        labels=f"\n\nLabels: {', '.join(rules_check.labels)}." if rules_check.labels else "",
        made=LEVELS[level],
        harness=__version__,
        level=level,
        licence=licence or "none is stated, so all rights are reserved",
    )


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
