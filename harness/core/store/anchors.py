"""
Anchors in time of a run: what somebody outside was told of its seal, and answered.

Inside a folder no order can be proved to others: whoever holds all files can make them anew.  What
an authority for time stamps, a repository elsewhere or a public log has seen before the first
scored trial was sealed before it.  Answers lie in `anchors/`, under the chain.
"""

from __future__ import annotations

import base64

from typing import Literal

from pydantic import field_validator

from harness.base.errors import DataError
from harness.base.records.trial import SCHEMA_VERSION, Moment, Record, SchemaVersion
from harness.core.store.evidence import Chain
from harness.core.store.published import ORIGINALS, RESTORE_BUNDLE
from harness.core.store.run import Run
from harness.core.store.seal import ANCHORS, SEAL
from harness.observe.storage.files import json_bytes

_FIX = "restore it from a copy of the run"

About = Literal["seal", "end"]


class Anchor(Record):
    """
    What a *command* was told about the run, and what it answered.

    *sha256* is that of the seal, or of the last line of the chain at the end; *answer* is what the
    command printed, in base64.  Of one that failed *error* says why, and there is no answer.
    """

    schema_version: SchemaVersion = SCHEMA_VERSION
    about: About
    sha256: str
    command: str
    asked_s: Moment
    answered_s: Moment
    answer: str = ""
    error: str = ""

    @field_validator("answer")
    @classmethod
    def _is_base64(cls, answer: str) -> str:
        """Refuse what is no answer in base64: whoever shows one decodes it."""
        base64.b64decode(answer.encode(), validate=True)
        return answer


def write_anchor(run: Run, anchor: Anchor) -> None:
    """Keep *anchor* in the run, once its chain names it."""
    data = json_bytes(anchor.model_dump(mode="json"))
    run.seal.store(f"{ANCHORS}/{anchor.about}.json", data)


def read_anchor(run: Run, about: About) -> Anchor | None:
    """What was answered about the run; `None`: nobody was asked, or there was no answer."""
    path = run.path / ANCHORS / f"{about}.json"
    if not run.opener.exists(path):
        return None
    anchor = run.opener.read_record(Anchor, path, _FIX)
    return None if anchor.error else anchor


def unanchored_why(run: Run) -> str:
    """Why nobody outside has seen the seal of *run* before it was measured; empty: somebody has."""
    if run.measured is not run:
        return "it is an analysis, which was sealed after the measurement"
    anchor = read_anchor(run, "seal")
    if anchor is None:
        return "no anchor"
    if anchor.sha256 != measured_seal(run):
        return "its anchor is of another seal"
    names = [line.name for line in Chain(run.opener).lines().values()]
    scored = {f"trials/{key}" for key, record in run.trials().items() if record.trial.is_scored}
    anchored_at = names.index(f"{ANCHORS}/seal.json")
    if any(name in scored for name in names[:anchored_at]):
        return "it was anchored after a scored trial was measured"
    return ""


def measured_seal(run: Run) -> str:
    """SHA-256 of the seal as it was when the run was measured, whatever was published of it."""
    path = run.path / ORIGINALS
    if run.opener.exists(path):
        originals = run.opener.parse_json(run.opener.read(path, _FIX), path, _FIX)
        files = originals.get("files")
        sha256 = files.get(SEAL) if isinstance(files, dict) else None
        if not isinstance(sha256, str):
            what = f"{ORIGINALS} does not say which hash {SEAL} had"
            raise DataError(what, where=str(path), fix=RESTORE_BUNDLE)
        return sha256
    return run.seal.sha256()


def order_words(run: Run) -> str:
    """How the order of a blind run is known: anchored by whom, or by the owner's word."""
    anchor = read_anchor(run, "seal")
    if anchor is None or unanchored_why(run):
        return "blind by the owner's word"
    return f"blind, anchored by {anchor.command}"
