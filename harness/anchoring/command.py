"""``harness anchor``: time stamps of an authority, asked for and verified."""

from __future__ import annotations

import base64

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.cli.console.command import command, group
from harness.cli.console.options import json_option, run_argument
from harness.cli.console.present import Note, Part, present

if TYPE_CHECKING:
    from harness.core.evaluate.flow import Evaluation
    from harness.core.store import Run


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
    help="Certificate of the authority, PEM; repeatable. Without one no stamp is verified.",
)
@json_option
def check(evaluation: Evaluation, certificates: tuple[Path, ...], as_json: bool) -> int:
    """
    Say who has seen the seal of RUN, and when; verify stamps by the authority's certificate.

    Needs no network.  Exit status 1: nobody had seen it before a scored trial was measured; 7: a
    stamp does not hold.

    \b
    Example:
        harness anchor check 20261130T0323 --certificate tsa-root.pem
    """
    from harness.core.store.anchors import order_words, unanchored_why

    run = evaluation.run
    why = unanchored_why(run)
    found = [*_stamps(run, certificates)]
    answer = {"run": run.path, "order": order_words(run), "unanchored": why, "anchors": found}
    present(answer, _shown(answer), as_json=as_json)
    return int(bool(why))


def _stamps(run: Run, certificates: tuple[Path, ...]) -> Iterator[dict[str, Any]]:
    """Each anchor of *run*: of what, told to whom, and what a stamp says, if it is one."""
    from harness.anchoring.stamp import is_stamp, read_stamp, verify_stamp
    from harness.core.store import os_error_as_machine_error
    from harness.core.store.anchors import read_anchor

    roots = list[bytes]()
    for path in certificates:
        with os_error_as_machine_error(path):
            roots.append(path.read_bytes())
    for about in ("seal", "end"):
        anchor = read_anchor(run, about)
        if anchor is None:
            continue
        facts: dict[str, Any] = {"about": about, "sha256": anchor.sha256, "command": anchor.command}
        answer = base64.b64decode(anchor.answer)
        where = f"{run.path}/anchors/{about}.json"
        if stamp_bytes := is_stamp(answer):
            stamp = read_stamp(stamp_bytes, where)
            if roots:
                stamp = verify_stamp(stamp_bytes, anchor.sha256, roots, where)
            facts["stamped"] = stamp.stamped_at.isoformat()
            facts["authority"] = stamp.name
            facts["is_verified"] = bool(roots)
        else:
            facts["answer"] = answer.decode(errors="replace")
        yield facts


def _shown(answer: dict[str, Any]) -> Iterator[Part]:
    """The order in words, then each anchor."""
    yield f"{answer['order'][0].upper()}{answer['order'][1:]}."
    if answer["unanchored"]:
        yield f"Nobody outside had seen the seal before it was measured: {answer['unanchored']}."
    for anchor in answer["anchors"]:
        yield f"{anchor['about']}: {anchor['command']} was told {anchor['sha256']}"
        if "stamped" in anchor:
            how = "verified" if anchor["is_verified"] else "not verified: give --certificate"
            authority = anchor["authority"] or "no name"
            yield Note(f"  stamped {anchor['stamped']} by {authority}, {how}")
        else:
            yield Note(f"  {anchor['answer'].strip()[:400]}")


anchor_group.add_command(tsa)
anchor_group.add_command(check)
