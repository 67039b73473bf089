"""
Anchors in time of a run: what somebody outside was told of its seal, and answered.

Inside a folder no order can be proved to others: whoever holds all files can make them anew.  What
an authority for time stamps, a repository elsewhere or a public log has seen before the first
scored trial was sealed before it.  Answers lie in `anchors/`, under the chain.

An answer that is a time stamp, or should be one, counts only where it is a stamp of this very seal.
Who has signed it is not looked at here: that takes the authority's certificate.
"""

from __future__ import annotations

import base64
import re
import shlex

from typing import Literal, get_args

from pydantic import field_validator

from harness.base.errors import DataError
from harness.base.records.trial import SCHEMA_VERSION, Moment, Record, SchemaVersion
from harness.base.text import excerpt
from harness.core.store.evidence import Chain
from harness.core.store.published import ORIGINALS, RESTORE_BUNDLE
from harness.core.store.run import Run
from harness.core.store.seal import ANCHORS, SEAL
from harness.core.store.stamps import imprints, read_stamp, readable, stamp_in
from harness.observe.storage.files import json_bytes

_FIX = "restore it from a copy of the run"
_MOST_NAME = 400
_MOST_SKEW_S = 60.0
_HOST_OF_ADDRESS = re.compile(
    r"[A-Za-z][A-Za-z0-9+.-]*://(?:[^\s/@'\"]*@)?(\[[0-9A-Fa-f:.]+\]|[^\s/:?#'\"]+)"
)

About = Literal["seal", "end"]
ABOUT: tuple[About, ...] = get_args(About)
END = f"{ANCHORS}/end.json"


class Anchor(Record):
    """
    What a *command* was told about the run, and what it answered.

    *sha256* is that of the seal, or of the last line of the chain at the end; *answer* is what the
    command printed, in base64.  Of one that failed *error* says why, and there is no answer.
    *name* is who was told, for readers; older anchors have none.
    """

    schema_version: SchemaVersion = SCHEMA_VERSION
    about: About
    sha256: str
    command: str
    asked_s: Moment
    answered_s: Moment
    answer: str = ""
    error: str = ""
    name: str = ""

    @field_validator("answer")
    @classmethod
    def _is_base64(cls, answer: str) -> str:
        """Refuse what is no answer in base64: whoever shows one decodes it."""
        base64.b64decode(answer.encode(), validate=True)
        return answer

    @field_validator("name")
    @classmethod
    def _is_one_line(cls, name: str) -> str:
        """Refuse what no line can show: every report has it."""
        if len(name) > _MOST_NAME or not name.isprintable():
            raise ValueError(f"a name is one printable line of at most {_MOST_NAME} characters")
        return name

    @property
    def printed(self) -> bytes:
        """What the command printed."""
        return base64.b64decode(self.answer)

    @property
    def told(self) -> str:
        """Who was told, in words for a reader."""
        return self.name or name_of_command(self.command)


def name_of_command(command: str) -> str:
    """Host of the first address in a *command*, or its program without the folder."""
    address = _HOST_OF_ADDRESS.search(command)
    if address is not None:
        return address[1]
    try:
        words = shlex.split(command)
    except ValueError:
        words = command.split()
    program = words[0] if words else ""
    return program.rpartition("/")[2] or "a command"


def name_of_answer(command: str, printed: bytes, digest: str) -> str:
    """Who was told, as a stamp of *digest* names its authority, else by the *command*."""
    try:
        stamp = read_stamp(stamp_in(printed))
    except ValueError:
        return readable(name_of_command(command))
    is_of_digest = stamp.imprint in imprints(digest)
    name = stamp.name if is_of_digest else ""
    return name or readable(name_of_command(command))


def write_anchor(run: Run, anchor: Anchor) -> None:
    """Keep *anchor* in the run, once its chain names it."""
    data = json_bytes(anchor.model_dump(mode="json"))
    run.seal.store(f"{ANCHORS}/{anchor.about}.json", data)


def read_anchor(run: Run, about: About) -> Anchor | None:
    """What was answered about the run; `None`: nobody was asked, or there was no answer."""
    anchor = read_attempt(run, about)
    return None if anchor is None or anchor.error else anchor


def read_attempt(run: Run, about: About) -> Anchor | None:
    """The same, or the error of a command that gave no answer; `None`: nobody was asked."""
    path = run.path / ANCHORS / f"{about}.json"
    if not run.opener.exists(path):
        return None
    return run.opener.read_record(Anchor, path, _FIX)


def unanchored_why(run: Run) -> str:
    """Why nobody outside has seen the seal of *run* before it was measured; empty: somebody has."""
    if run.measured is not run:
        return "it is an analysis, which was sealed after the measurement"
    anchor = read_attempt(run, "seal")
    if anchor is None:
        return "no anchor"
    if anchor.error:
        return f"nobody answered: {excerpt(anchor.error, 200)}"
    if anchor.sha256 != measured_seal(run):
        return "its anchor is of another seal"
    return stamp_problem(anchor) or _late_why(run, anchor)


def stamp_problem(anchor: Anchor) -> str:
    """Why the answer is no stamp of what was told, where it should be one; empty: all is well."""
    stamp_bytes = stamp_in(anchor.printed)
    if not stamp_bytes:
        is_asked_for = re.search(r"\banchor\s+tsa\b", anchor.command)
        return "its answer is no time stamp, and one was asked for" if is_asked_for else ""
    try:
        is_of_digest = read_stamp(stamp_bytes).imprint in imprints(anchor.sha256)
    except ValueError as error:
        return f"its time stamp cannot be read: {excerpt(error)}"
    return "" if is_of_digest else f"its time stamp is of something else than this {anchor.about}"


def _late_why(run: Run, anchor: Anchor) -> str:
    """Why the *anchor* of the seal came too late, by the chain or its stamp; empty: it did not."""
    names = [line.name for line in Chain(run.opener).lines().values()]
    name = f"{ANCHORS}/{anchor.about}.json"
    if name not in names:
        return "the chain does not name its anchor"
    scored = [record for record in run.trials().values() if record.trial.is_scored]
    scored_names = {f"trials/{record.trial.id}" for record in scored}
    anchored_at = len(names) - 1 - names[::-1].index(name)  # one that failed may be before it
    if scored_names.intersection(names[:anchored_at]):
        return "it was anchored after a scored trial was measured"
    stamp_bytes = stamp_in(anchor.printed)
    if not stamp_bytes or not scored:
        return ""
    stamped_at = read_stamp(stamp_bytes).stamped_at
    first_s = min(record.started_s for record in scored)
    if stamped_at.timestamp() > first_s + _MOST_SKEW_S:
        late_s = stamped_at.timestamp() - first_s
        return f"its time stamp was made {late_s:.0f} s after a scored trial had started"
    return ""


def end_problem(run: Run) -> str:
    """
    Why the anchor of the end of *run* does not hold; empty: it does, or there is none.

    It was told the hash of the last line of the chain at that moment, which is the one before its
    own.  A published run has other hashes there: only the run as it was measured can be compared.
    """
    anchor = read_anchor(run, "end")
    if anchor is None:
        return ""
    lines = [line for line in Chain(run.opener).lines().values() if line.name == END]
    if not lines:
        return f"the chain does not name {END}"
    is_of_chain = any(line.previous == anchor.sha256 for line in lines)  # it may end twice
    if not is_of_chain and not run.is_published:
        return f"{END} is of another chain: its last line was {lines[-1].previous[:16]} then"
    problem = stamp_problem(anchor)
    return problem and f"{END}: {problem}"


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
    return f"blind, anchored by {anchor.told}"
