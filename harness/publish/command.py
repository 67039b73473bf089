"""`harness publish`: a comparison that a stranger can check, and the check of its rules."""

from __future__ import annotations

import os
import re

from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.base.documents.wording import by_number, count
from harness.base.errors import SpecError
from harness.cli.console import completion
from harness.cli.console.command import command
from harness.cli.console.options import (
    choice_option,
    file_option,
    folder_option,
    json_option,
    open_evaluation,
    results_option,
)
from harness.cli.console.present import Note, Part, Rows, present

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from harness.publish.bundle import Published
    from harness.publish.rules import Check
    from harness.publish.verifiers import Verification

_LEAVE_OUT = " It goes public with the bundle, under its licence; --without-source leaves it out."


@command("publish")
@click.argument("names", metavar="RUN...", nargs=-1, shell_complete=completion.runs)
@results_option
@folder_option("-o", "--output", help="The folder to make.")
@choice_option(
    "--evidence",
    choices=["traces", "scores", "raw"],
    text="From what a reader can make the results again.",
)
@click.option(
    "--division",
    type=click.Choice(["closed", "open"]),
    help="The division that is claimed (default: the one whose rules are met).",
)
@file_option("--authors", help="A YAML list.")
@click.option("--licence", default="", metavar="ID", help="Of the data, by SPDX: CC-BY-4.0.")
@click.option(
    "--keep",
    multiple=True,
    type=click.Choice(["hosts", "users", "paths", "queues"]),
    help="Names that are not replaced; repeatable.",
)
@click.option(
    "--without-source",
    is_flag=True,
    help="Leave out the source of models and workloads of your own.",
)
@click.option(
    "--check",
    "checked",
    type=click.Path(path_type=Path),
    metavar="BUNDLE",
    help="Check a bundle, packed or not, by the rules of its division.",
)
@click.option(
    "--pack",
    "is_packed",
    is_flag=True,
    help="Pack the bundle, and the evidence of each run once and for all.",
)
@click.option(
    "--again",
    "earlier",
    type=click.Path(path_type=Path),
    metavar="BUNDLE",
    help="Score the runs of a bundle anew, and publish them again.",
)
@click.option(
    "--question",
    "asked",
    multiple=True,
    metavar="EXPERIMENT=QUESTION",
    help="With --again: what is asked of the runs of an experiment afterwards; repeatable.",
)
@json_option
def publish(
    names: tuple[str, ...],
    results_dir: Path,
    output: Path | None,
    evidence: str,
    division: str | None,
    authors: Path | None,
    licence: str,
    keep: tuple[str, ...],
    without_source: bool,
    checked: Path | None,
    is_packed: bool,
    earlier: Path | None,
    asked: tuple[str, ...],
    as_json: bool,
) -> int:
    """
    Make a bundle of RUN...: the claim, its data, its rules, its proof; or check one.

    A bundle has every number of the claim as CSV with a program that computes them again
    (verify.py), the report, tables and figures, what the system was, and no name of a host, a user
    or a folder.  It appears as a whole or not at all.  A model of your own is in it with its
    source, under the licence of the data, unless you leave that out: nobody else can make its
    numbers again then, and the bundle says so beside them.  Exit status 1: the claimed division is
    not met.

    \b
    Example:
        harness publish 20261121T0323 -o bundle --licence CC-BY-4.0
        harness publish 20261121T0323 -o packed --pack
        harness publish --check bundle
        harness publish --again bundle -o anew --question 'quick={how_far: whatif}'
    """
    _check_epoch()  # libraries read it when they are imported
    from harness.core.store import os_error_as_machine_error
    from harness.publish import bundle, crate
    from harness.publish.again import publish_again

    if bool(names) + (checked is not None) + (earlier is not None) != 1:
        what = "give one or more RUN and -o DIR, or --again BUNDLE -o DIR, or --check BUNDLE"
        raise click.UsageError(what)
    if checked is not None:
        checked_rules = check_bundle(checked)
        rules = checked_rules.model_dump(mode="json")
        answer = {"bundle": checked, **rules, "is_met": checked_rules.is_met}
        present(answer, shown_check(checked_rules, checked), as_json=as_json)
        return int(not checked_rules.is_met)
    if output is None:
        raise click.UsageError("give the folder of the bundle: -o DIR")
    crate.check_licence(licence)
    people: Sequence[crate.Author] = ()
    if authors:
        with os_error_as_machine_error(authors):
            text = authors.read_text(encoding="utf-8", errors="replace")
        people = crate.read_authors(text, str(authors))
    if earlier is not None:
        published = publish_again(
            earlier,
            output,
            questions=questions_of(asked),
            authors=people,
            licence=licence,
            is_packed=is_packed,
            with_source=not without_source,
        )
    else:
        published = bundle.publish(
            [open_evaluation(name, results_dir).run for name in names],
            output,
            level=evidence,
            division=division,
            authors=people,
            licence=licence,
            keep=keep,
            is_packed=is_packed,
            with_source=not without_source,
        )
    answer = {
        "bundle": output,
        "claim": published.claim.lines,
        "pdf": published.without_pdf,
        "sources": [source._asdict() for source in published.sources],
        "check": published.check.model_dump(mode="json"),
    }
    present(answer, shown_bundle(published, output), as_json=as_json)
    return int(not published.check.is_met)


def questions_of(asked: Sequence[str]) -> dict[str, str]:
    """Questions by the experiment that they are asked of, from ``EXPERIMENT=QUESTION``."""
    questions = {}
    for text in asked:
        name, separator, question = text.partition("=")
        if not separator:
            fix = "write one such as 'quick={how_far: whatif}'"
            raise SpecError(f"'{text}' is no EXPERIMENT=QUESTION", where="--question", fix=fix)
        questions[name] = question
    return questions


def shown_bundle(published: Published, folder: Path) -> Iterator[Part]:
    """The claim of a bundle, sources of your own in it, its division, and how to check it."""
    from harness.publish.bundle import source_sentence

    yield from published.claim.lines
    if published.without_pdf:
        yield Note(published.without_pdf)
    for source in published.sources:
        yield Note(source_sentence(source) + (_LEAVE_OUT if source.path else ""))
    if published.secrets:
        values = count(published.secrets, "value")
        has = by_number(published.secrets, "has", "have")
        yield Note(
            f"secrets: {values} with the form of a secret {has} a pseudonym in the bundle"
            " (secret-1, ...); the run itself still has what was there"
        )
    yield from (Note(f"label: {label}: {text}") for label, text in published.check.labels.items())
    unmet = ", ".join(published.check.unmet)
    rest = f"not met of the closed one: {unmet}" if unmet else "every rule is met"
    yield Note(f"division: {published.check.claimed} ({rest})")
    yield Note(f"bundle: {folder}")
    yield Note(f"check it: harness verify {folder}")


def check_bundle(named: Path) -> Check:
    """Check the sums and the rules of the bundle *named*, and copies beside it if it is packed."""
    from harness.core.store.packed import opened
    from harness.publish.pack import check_copies
    from harness.publish.rules import check
    from harness.publish.verifiers import whole_verifier

    folder = opened(named)
    whole_verifier(folder)
    if named.is_dir():
        check_copies(named, folder)
    return check(folder)


@command("verify")
@click.argument("bundle", type=click.Path(path_type=Path))
@json_option
def verify(bundle: Path, as_json: bool) -> int:
    """
    Check BUNDLE, packed or not: that scores, comparisons and the claim follow from its tables.

    The verifier is this installation's: that of this version, or, for the bundle of an earlier one,
    the verifier of that version, as it is kept here.  No file of BUNDLE is run.  Its runs are held
    to the laws between records, too.  Exit status 1: it is not borne out, or contradicts itself;
    7: it was changed, or has a verifier in it that is none of ours.

    \b
    Example:
        harness verify bundle
        harness verify results/published/quick --json
    """
    from harness.core.store.packed import opened
    from harness.publish import verifiers

    folder = opened(bundle)
    with ThreadPoolExecutor(1) as beside:
        checked = beside.submit(verifiers.whole_verifier, folder)
        from harness.core.evaluate.laws import judged_by_laws
        from harness.core.store import Run
        from harness.observe.storage.files import folders

        # The verifier is a process: the laws are held beside it, to what is whole.
        verification = beside.submit(verifiers.verification_by, checked.result(), folder)
        judged = {path.name: judged_by_laws(Run(path)) for path in folders(folder / "runs")}
        verified = verification.result()
    broken = {run_id: [*map(str, breaches)] for run_id, (breaches, _) in judged.items()}
    unseen = {run_id: sentences for run_id, (_, sentences) in judged.items()}
    anchors = [*folder.glob("runs/*/anchors/*.json")]
    is_sound = verified.is_borne_out and not any(broken.values())
    answer = {
        "bundle": bundle,
        "verifier": verified.verifier._asdict(),
        "is_borne_out": verified.is_borne_out,
        "lines": verified.lines,
        "broken_laws": broken,
        "unseen_by_laws": unseen,
        "anchors": len(anchors),
    }
    present(answer, shown_verification(verified, broken, unseen, len(anchors)), as_json=as_json)
    return int(not is_sound)


def shown_verification(
    verified: Verification,
    broken: Mapping[str, Sequence[str]],
    unseen: Mapping[str, Sequence[str]],
    anchors: int,
) -> Iterator[Part]:
    """
    Whether the bundle holds, what the verifier printed and whose it is, and what was not checked.

    *broken* has the laws that each run breaks, *unseen* what they could not compare.
    """
    sound = sum(not breaches for breaches in broken.values())
    kept = f"{sound} of {count(len(broken), 'run')} {by_number(sound, 'keeps', 'keep')} the laws"
    is_sound = verified.is_borne_out and sound == len(broken)
    holds = "is" if verified.is_borne_out else "is not"
    yield (
        f"{'It holds' if is_sound else 'It does not hold'}: the bundle {holds} borne out by its own"
        f" tables, and {kept} between records."
    )
    for run_id, breaches in broken.items():
        yield from (f"run {run_id} contradicts itself: {breach}" for breach in breaches)
    yield from (line.partition("; not checked: ")[0] for line in verified.lines)
    sha256, release, _ = verified.verifier
    yield Note(f"verifier: of {release} (SHA-256 {sha256})")
    for sentence in dict.fromkeys(chain.from_iterable(unseen.values())):
        run_ids = [run_id for run_id, sentences in unseen.items() if sentence in sentences]
        yield f"not compared by laws: {sentence} ({', '.join(run_ids)})"
    told = f"anchors: {anchors}, of which none was verified"
    how = ": harness anchor check RUN --certificate FILE" if anchors else ""
    yield (told if anchors else "anchors: none") + how
    yield "not checked: that data and pages follow from what was recorded: harness reproduce BUNDLE"


def _check_epoch() -> None:
    """`SpecError` where the moment that the environment gives for all dates is none."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
    if epoch and not re.fullmatch("[0-9]{1,11}", epoch):
        what = f"{epoch!a} is not a moment"
        fix = "give seconds since 1970, or unset it"
        raise SpecError(what, where="SOURCE_DATE_EPOCH", fix=fix)


def shown_check(checked_rules: Check, bundle: Path) -> Iterator[Part]:
    """The rules of *bundle* one by one, with file and value; whether the division is met."""
    rows = []
    for answer in checked_rules.answers:
        value = answer.value
        if outcome := checked_rules.named_release.get(answer.rule):
            value += f"; by the release of rules.json, which has other models: {outcome}"
        rows.append((answer.rule, answer.title, answer.outcome, answer.file, value))
    title = "The rules of the closed division"
    yield Rows(("rule", "what it asks for", "outcome", "file", "value"), rows, title=title)
    yield from (f"label: {label}: {text}" for label, text in checked_rules.labels.items())
    yield from checked_rules.differing
    verdict = "met" if checked_rules.is_met else "not met"
    claimed = checked_rules.claimed
    why = (
        " (it asks for no rule, and says which ones it does not meet)" if claimed == "open" else ""
    )
    yield f"the claimed division, {claimed}, is {verdict}{why}"
    yield f"numbers were not recomputed: harness verify {bundle}"
