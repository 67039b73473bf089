"""``harness anchor``: time stamps of an authority, asked for, verified and taken out of a run."""

from __future__ import annotations

import base64
import os

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.base.text import excerpt
from harness.cli.console.command import command, group
from harness.cli.console.options import choice_option, file_option, json_option, run_argument
from harness.cli.console.present import Part, present

if TYPE_CHECKING:
    from harness.core.evaluate.flow import Evaluation
    from harness.core.store import Run
    from harness.core.store.anchors import About, Anchor


@group("anchor")
def anchor_group() -> None:
    """Have somebody outside see what a run has sealed, and check what they answered."""


@command("tsa")
@click.argument("url")
@click.argument("digest")
@json_option
def tsa(url: str, digest: str, as_json: bool) -> None:
    """
    Ask the time-stamping authority at URL (RFC 3161) for a stamp of DIGEST, and print it in base64.

    Meant for ``--anchor 'harness anchor tsa URL'``, which gives the DIGEST: 64 digits of a SHA-256.

    \b
    Example:
        harness anchor tsa http://tsa.example/tsr "$(sha256sum file | cut -c1-64)"
    """
    from harness.anchoring.stamp import ask_authority

    stamp = base64.encodebytes(ask_authority(url, digest)).decode()
    present({"sha256": digest, "stamp": stamp}, stamp.splitlines(), as_json=as_json)


@command("check")
@run_argument
@click.option(
    "--certificate",
    "certificates",
    multiple=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="Root certificate of the authority, PEM; repeatable. Without one no stamp is verified.",
)
@json_option
def check(evaluation: Evaluation, certificates: tuple[Path, ...], as_json: bool) -> int:
    """
    Say who has seen the seal of RUN, and when; verify stamps by the authority's certificate.

    Needs no network.  Exit status 1: nobody had seen it before a scored trial was measured, or it
    has no stamp to verify; 7: a stamp does not hold, or the run is not as it was stored.

    \b
    Example:
        harness anchor check 20261130T0323 --certificate tsa-root.pem
    """
    from harness.core.store.anchors import ABOUT, end_problem, order_words, unanchored_why

    run = evaluation.run
    has_evidence = run.check_evidence(with_scores=False)
    seal = run.seal.record() if run.seal.exists() else None
    if seal is not None:
        run.seal.check()
    why = unanchored_why(run)
    problem = end_problem(run)
    roots = _roots(certificates)
    found = [facts for about in ABOUT if (facts := _anchor_facts(run, about, roots))]
    is_unverified = bool(roots) and not any(
        facts["about"] == "seal" and facts.get("is_verified") for facts in found
    )
    answer = {
        "run": run.path,
        "order": order_words(run),
        "unanchored": why,
        "not_before": "" if seal is None else seal.not_before,
        "has_evidence": has_evidence,
        "anchors": found,
        "end": problem,
        "no_stamp": is_unverified,
    }
    present(answer, _shown(answer), as_json=as_json)
    if problem:
        return 7
    return int(bool(why) or is_unverified)


def _roots(paths: Sequence[Path]) -> list[bytes]:
    """What the files of certificates hold, each of which has one."""
    from harness.core.store import os_error_as_machine_error

    roots = list[bytes]()
    for path in paths:
        with os_error_as_machine_error(path):
            roots.append(path.read_bytes())
    if roots:
        from harness.anchoring.stamp import read_certificates

        read_certificates(roots)
    return roots


def _anchor_facts(run: Run, about: About, roots: Sequence[bytes]) -> dict[str, Any]:
    """An anchor of *run*: of what, told to whom, and what its stamp says; empty: there is none."""
    from harness.core.store.anchors import read_attempt
    from harness.core.store.stamps import stamp_in

    anchor = read_attempt(run, about)
    if anchor is None:
        return {}
    facts: dict[str, Any] = {
        "about": about,
        "sha256": anchor.sha256,
        "name": anchor.told,
        "command": anchor.command,
        "asked_s": anchor.asked_s,
        "answered_s": anchor.answered_s,
        "error": anchor.error,
    }
    if stamp_bytes := stamp_in(anchor.printed):
        return facts | _stamp_facts(stamp_bytes, anchor, roots, _place(run, about))
    return facts | {"answer": anchor.printed.decode(errors="replace")}


def _stamp_facts(
    stamp_bytes: bytes, anchor: Anchor, roots: Sequence[bytes], where: str
) -> dict[str, Any]:
    """When an authority has stamped, by which name, and whether that was verified by *roots*."""
    from harness.anchoring.stamp import read_stamp, verify_stamp

    if roots:
        stamp = verify_stamp(stamp_bytes, anchor.sha256, roots, where)
    else:
        stamp = read_stamp(stamp_bytes, where)
    return {
        "stamped": stamp.stamped_at.isoformat(),
        "authority": stamp.name,
        "is_verified": bool(roots),
    }


def _place(run: Run, about: About) -> str:
    """Where an anchor of *run* lies."""
    return f"{run.path}/anchors/{about}.json"


def _shown(answer: dict[str, Any]) -> Iterator[Part]:
    """The order in words, then each anchor."""
    yield f"{answer['order'][0].upper()}{answer['order'][1:]}."
    if answer["unanchored"]:
        yield f"Nobody outside had seen the seal before it was measured: {answer['unanchored']}."
    if answer["not_before"]:
        yield f"Sealed after this was known: {answer['not_before']}"
    if not answer["has_evidence"]:
        yield "The run has no evidence: nothing shows whether its anchors were changed."
    for anchor in answer["anchors"]:
        yield f"{anchor['about']}: {anchor['command']} was told {anchor['sha256']}"
        yield f"  {_outcome(anchor)}"
    if answer["end"]:
        yield f"The end does not hold: {answer['end']}."
    if answer["no_stamp"]:
        yield "--certificate says nothing here: the seal has no time stamp that it could verify."


def _outcome(anchor: dict[str, Any]) -> str:
    """What came of an anchor, in one line."""
    if anchor["error"]:
        return f"no answer: {excerpt(anchor['error'], 400)}"
    if "stamped" not in anchor:
        return f"answered: {excerpt(anchor['answer'], 400) or 'nothing'}"
    how = "verified" if anchor["is_verified"] else "not verified: give --certificate"
    return f"stamped {anchor['stamped']} by {anchor['authority'] or 'no name'}, {how}"


@command("stamp")
@run_argument
@file_option("-o", "--output", required=True, metavar="FILE", help="File that is not there yet.")
@choice_option("--of", "about", choices=["seal", "end"], text="Which of the two stamps.")
@json_option
def stamp(evaluation: Evaluation, output: Path, about: About, as_json: bool) -> None:
    """
    Write a time stamp of RUN to a file, as other tools verify it (openssl ts -verify).

    Stamped are the 64 digits that are printed: as a text, without an end of line.

    \b
    Example:
        harness anchor stamp 20261130T0323 -o seal.tsr
        openssl ts -verify -in seal.tsr -data digits -CAfile root.pem
    """
    from harness.base.errors import DataError, SpecError
    from harness.core.store import os_error_as_machine_error
    from harness.core.store.anchors import read_anchor, stamp_problem
    from harness.core.store.stamps import as_response, stamp_in
    from harness.observe.storage.files import replace_file

    run = evaluation.run
    anchor = read_anchor(run, about)
    stamp_bytes = b"" if anchor is None else stamp_in(anchor.printed)
    if anchor is None or not stamp_bytes:
        fix = "harness anchor check RUN says who was told, and what they answered"
        raise DataError(f"there is no time stamp of its {about}", where=str(run.path), fix=fix)
    if problem := stamp_problem(anchor):
        fix = "restore it from a copy of the run"
        raise DataError(problem, where=_place(run, about), fix=fix)
    if os.path.lexists(output):
        fix = "name one that is not there: nothing is overwritten"
        raise SpecError("the file is there already", where=str(output), fix=fix)
    with os_error_as_machine_error(output, is_long=True):
        replace_file(output, lambda file: file.write_bytes(as_response(stamp_bytes)))
    present({"file": output, "sha256": anchor.sha256}, [output, anchor.sha256], as_json=as_json)


anchor_group.add_command(tsa)
anchor_group.add_command(check)
anchor_group.add_command(stamp)
