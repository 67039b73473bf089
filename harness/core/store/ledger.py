"""
The ledger of this machine: how far each run had come when a harness last let go of it.

The chain of a run shows that no line of it was changed.  Who removes its last lines, what they name
and the mark of the end has a shorter run, which is as whole as the longer one was.  The ledger lies
elsewhere, in the state folder of the user, so this machine notices.  It proves nothing to others,
and nothing to those who may write there.

A line is added where a run is sealed, and where a measurement of it ends, however it does.  Nobody
else adds one: whoever scores, reports or unpacks a copy of a run, genuine or forged, changes
nothing here.  A line holds for the folder in which the run lay.  In another folder a run has to
agree with what is known of one folder at least: a copy that was measured to another end is no
witness against the run that it was copied from.  A ledger that cannot be written stops no
measurement.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from harness.base.documents.wording import count
from harness.base.errors import EvidenceError, HarnessError
from harness.base.records.trial import SCHEMA_VERSION, Moment, Record, SchemaVersion
from harness.clusters.state import state_folder
from harness.core.store.evidence import Line, growing
from harness.observe.storage.files import json_bytes
from harness.observe.storage.opener import Opener

LEDGER = "runs.jsonl"
_FIX = "take the ledger's last line out"


class Entry(Record):
    """
    A *run* of an *experiment* whose chain had so many *lines*, the last with the hash *line*.

    It lay in *folder*, which older lines do not say.  *sealed* is the hash of its seal, if it had
    one, which is of the moment *sealed_s*; *published* that of the `SHA256SUMS` of the bundle that
    was made of it at that moment.
    """

    schema_version: SchemaVersion = SCHEMA_VERSION
    run: str
    experiment: str
    lines: int
    line: str
    finished: bool
    noted_s: Moment
    sealed: str = ""
    published: str = ""
    sealed_s: Moment | None = None
    folder: str = ""


class Registered(NamedTuple):
    """
    A run that was sealed on this machine, when, and what became of it.

    Older ledgers do not say when it was sealed (`None`), and that was before they *first* saw it.
    """

    run: str
    experiment: str
    sealed: str
    sealed_s: float | None
    first_s: float
    finished: bool
    published: str


def note(entry: Entry) -> None:
    """
    Add how far a run has come, unless the ledger says so already.

    That it was published is of interest only where it is known: else it was sealed elsewhere.
    """
    with suppress(HarnessError, OSError):
        known_entries = [*entries(entry.run)]
        if entry.published and not known_entries:
            return
        of_folder = (earlier for earlier in known_entries if earlier.folder == entry.folder)
        last = next(reversed([*of_folder]), None)
        if last is not None and not entry.published:
            last_state = (last.line, last.finished, last.sealed)
            if last_state == (entry.line, entry.finished, entry.sealed):
                return
        path = ledger_file()
        with growing(Opener(path.parent), path) as add:
            add(json_bytes(entry.model_dump(mode="json"), indent=None))


def registered() -> list[Registered]:
    """Every run that was sealed on this machine, by the moment when that was noted."""
    found = dict[tuple[str, str], Registered]()
    for entry in entries():
        if not entry.sealed:
            continue
        key = (entry.run, entry.sealed)  # a copy with another seal is another run
        earlier = found.get(key)
        found[key] = Registered(
            run=entry.run,
            experiment=entry.experiment,
            sealed=entry.sealed,
            sealed_s=entry.sealed_s if earlier is None else earlier.sealed_s,
            first_s=entry.noted_s if earlier is None else earlier.first_s,
            finished=entry.finished or (earlier is not None and earlier.finished),
            published=entry.published or ("" if earlier is None else earlier.published),
        )
    return [*found.values()]


def entries(run_id: str = "") -> Iterator[Entry]:
    """What the ledger has of a run, or of all, oldest first; nothing where there is no ledger."""
    path = ledger_file()
    if not path.is_file():
        return
    opener = Opener(path.parent)
    whole, _, _ = opener.read(path, _FIX).rpartition(b"\n")  # a last line may be cut off
    for number, line in enumerate(whole.split(b"\n"), start=1):
        if line and run_id.encode() in line:  # what is wrong with others' lines stops nobody
            where = path.with_name(f"{path.name}:{number}")
            entry = opener.parse_record(Entry, line, where, _FIX)
            if run_id in ("", entry.run):
                yield entry


def contradictions(
    run_id: str, chain: Mapping[str, Line], *, finished: bool, folder: str = ""
) -> list[str]:
    """What this machine knows of the run in *folder* that the run itself does not show any more."""
    by_folder = defaultdict[str, list[Entry]](list)
    for entry in entries(run_id):
        by_folder[entry.folder].append(entry)
    placed = {name: known for name, known in by_folder.items() if name}
    if folder in placed:
        placed = {folder: placed[folder]}
    against = [_contradictions(known, chain, finished=finished) for known in placed.values()]
    unplaced = _contradictions(by_folder[""], chain, finished=finished)
    return [*unplaced, *min(against, key=len, default=[])]


def _contradictions(
    known: Sequence[Entry], chain: Mapping[str, Line], *, finished: bool
) -> list[str]:
    """What of the entries *known* a run does not show any more."""
    against = []
    had_finished = ""
    for entry in known:
        moment = datetime.fromtimestamp(entry.noted_s, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        if entry.line not in chain:
            against.append(
                f"on {moment} its chain had {count(entry.lines, 'line')}, of which the last one,"
                f" {entry.line[:16]}, is missing"
            )
        had_finished = moment if entry.finished else had_finished
    if had_finished and not finished:
        against.append(f"on {had_finished} it had ended, and its mark of that is gone")
    return against


def require_agreement(
    run_id: str, chain: Mapping[str, Line], path: Path, *, finished: bool
) -> None:
    """`EvidenceError`: this machine knows more of the run at *path* than its files show."""
    folder = str(path.resolve())
    if against := contradictions(run_id, chain, finished=finished, folder=folder):
        what = "\n  ".join(["this machine knows more of this run than its files show:", *against])
        fix = "restore it from a copy; if it is meant to be so, take its lines out of"
        fix += f" {ledger_file()}"
        raise EvidenceError(what, where=str(path), fix=fix)


def ledger_file() -> Path:
    """Path of the ledger, which need not exist."""
    return state_folder() / LEDGER
