"""
What shows that stored results are as they were measured: hashes of files, and a chain of them.

A line of the chain is written before what it names appears: whoever is killed in between has lost
that file, and makes it again.  Nothing is ever taken into the chain because it is there.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import time

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple, Protocol, TypeVar, get_args
from weakref import WeakKeyDictionary

from pydantic import Field

from harness.base.errors import EvidenceError
from harness.base.records.trial import SCHEMA_VERSION, Moment, Record, SchemaVersion
from harness.base.text import excerpt
from harness.observe.storage.files import folders, json_bytes, os_error_as_machine_error, write_file
from harness.observe.storage.opener import MANIFEST, PACKED, Opener

EVIDENCE = "evidence.json"
CHAIN = "trials.jsonl"
SCORES = "scores"
MAKE_SCORES = "harness score FILE makes them again"
_RESTORE = "restore it from a copy, or measure again: harness all FILE --new"
_MOST_NAMED = 12
# Trials that are never counted: one that failed and was run again, and so on.
Discarded = Literal["retried", "warmup", "disturbed"]
DISCARDED: tuple[Discarded, ...] = get_args(Discarded)
_DERIVED = ("profiles/*.json", "predictions/sealed*.json", "anchors/*.json")


class _Linked(Protocol):
    """A record with the hash of the line before it."""

    @property
    def previous(self) -> str: ...


Linked = TypeVar("Linked", bound=_Linked)


class Evidence(Record):
    """
    `evidence.json`: hashes of what a trial *measured*, and of its *tables*, by name of file.

    The tables were *made_from* all that was measured: this is the hash of those hashes.
    """

    schema_version: SchemaVersion = SCHEMA_VERSION
    measured: dict[str, str]
    tables: dict[str, str] = Field(default_factory=dict)
    made_from: str = ""

    def hashes(self, name: str) -> dict[str, str]:
        """Hash of what was measured, and of the tables, by what the chain calls them."""
        parts = {name: self.measured, f"{name}/trace": self.tables}
        documents = {key: json_bytes(part, indent=None) for key, part in parts.items() if part}
        return {key: hashlib.sha256(data).hexdigest() for key, data in documents.items()}


class Line(Record):
    """One line of a chain: *name* was stored with hash *sha256*; *previous* is the line before."""

    schema_version: SchemaVersion = SCHEMA_VERSION
    name: str
    sha256: str
    stored_s: Moment
    previous: str


class _End(NamedTuple):
    """A chain that was read to its end, while its file has these *facts*: hash of its last line."""

    facts: tuple[int, ...]
    last_line: str
    noted: dict[str, str]


_ENDS = WeakKeyDictionary[Opener, _End]()  # else each line would cost a look at all before it


class Chain:
    """`trials.jsonl` of the run of *opener*, which may have none: what was stored, in order."""

    def __init__(self, opener: Opener) -> None:
        self._opener = opener
        self.path = opener.root / CHAIN

    def append(self, name: str, sha: str, *, starts: bool = False) -> None:
        """
        Write down that *name* is stored with hash *sha*, unless its last line says the same.

        A run of an earlier version, which has no chain, gets none: only a trial *starts* one.
        """
        if not starts and not self.path.exists():
            return
        with growing(self._opener, self.path) as add:
            end = _ENDS.get(self._opener)
            if end is None or end.facts != self._facts():  # another has written meanwhile
                lines = self.lines()
                end = _End((), next(reversed(lines), ""), _noted(lines))
            if end.noted.get(name) == sha:
                return
            stored_s = round(time.time(), 3)
            line = Line(name=name, sha256=sha, stored_s=stored_s, previous=end.last_line)
            text = json_bytes(line.model_dump(mode="json"), indent=None)
            add(text)
            end.noted[name] = sha
            last_line = hashlib.sha256(text).hexdigest()
            _ENDS[self._opener] = _End(self._facts(), last_line, end.noted)

    def lines(self) -> dict[str, Line]:
        """All lines by their hashes; `EvidenceError` where one does not follow from the last."""
        parse = partial(self._opener.parse_record, Line, fix=_RESTORE)
        return chained(self._opener, self.path, parse, _RESTORE)

    def _facts(self) -> tuple[int, ...]:
        """What changes with every change of the file."""
        facts = self.path.lstat()
        return facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns


def _noted(lines: Mapping[str, Line]) -> dict[str, str]:
    """The hash of each name, as its last line has it."""
    return {line.name: line.sha256 for line in lines.values()}


def chained(
    opener: Opener, path: Path, parse: Callable[[bytes, Path], Linked], fix: str
) -> dict[str, Linked]:
    """
    Whole lines of *path*, which need not exist, by their hashes.

    `EvidenceError`: one has not the hash of the line before as its *previous*.
    """
    lines = dict[str, Linked]()
    previous = ""
    content = opener.read(path, fix) if path.exists() else b""
    for number, text in enumerate(content[: content.rfind(b"\n") + 1].splitlines(), 1):
        where = path.with_name(f"{path.name}:{number}")
        line = parse(text, where)
        if line.previous != previous:
            what = f"{path.name} was changed: line {number} does not follow from the line before"
            raise EvidenceError(what, where=str(where), fix=fix)
        previous = hashlib.sha256(text + b"\n").hexdigest()
        lines[previous] = line
    return lines


@contextmanager
def growing(opener: Opener, path: Path) -> Iterator[Callable[[bytes], None]]:
    """
    Lock *path*, and give a function that adds a line to it, or nothing where the disk is full.

    An end that a loss of power cut off names what never appeared: it is taken off.
    """
    with os_error_as_machine_error(path):
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW  # it may be somebody's link
        # No buffer, which would be written again when the file is closed.
        with os.fdopen(os.open(path, flags, 0o666), "ab", buffering=0) as file:
            fcntl.flock(file, fcntl.LOCK_EX)

            def add(line: bytes) -> None:
                whole_bytes = os.fstat(file.fileno()).st_size
                if whole_bytes and os.pread(file.fileno(), 1, whole_bytes - 1) != b"\n":
                    whole_bytes = opener.read(path, _RESTORE).rfind(b"\n") + 1
                file.truncate(whole_bytes)
                try:
                    while line:
                        line = line[file.write(line) :]
                    os.fsync(file.fileno())
                except OSError:
                    file.truncate(whole_bytes)
                    raise

            yield add


def write_evidence(folder: Path, opener: Opener, name: str) -> None:
    """Hash what was measured in the trial in *folder*, and note it as *name* in its run's chain."""
    evidence = Evidence(measured=_hash_files(folder, opener))
    write_file(folder / EVIDENCE, json_bytes(evidence.model_dump(mode="json")), folder)
    Chain(opener).append(name, evidence.hashes(name)[name], starts=True)


def note_move(folder: Path, opener: Opener, name: str) -> None:
    """Note that the trial in *folder*, if it has evidence, is *name* from now on."""
    if (folder / EVIDENCE).exists():
        evidence = opener.read_record(Evidence, folder / EVIDENCE, _RESTORE)
        Chain(opener).append(name, evidence.hashes(name)[name])


def note_losses(opener: Opener) -> None:
    """
    Note which discarded trials the chain names and nobody has: with no hash.

    Whoever was killed between the line and the folder has lost that trial, which is not run again.
    """
    chain = Chain(opener)
    for name, sha in _noted(chain.lines()).items():
        is_discarded = name.partition("/")[0] in DISCARDED
        if is_discarded and sha and not opener.exists(opener.root / name):
            chain.append(name, "")


def add_tables(folder: Path, tables: Path, opener: Opener, scratch: Path) -> None:
    """Note the *tables* that will be the trace of the trial in *folder*, if it has evidence."""
    path = folder / EVIDENCE
    name = f"trials/{folder.name}"
    if path.exists():
        evidence = opener.read_record(Evidence, path, _RESTORE)
        noted = {f"trace/{key}": sha for key, sha in opener.hashes(tables).items()}
        made_from = evidence.hashes(name)[name]
        evidence = evidence.model_copy(update={"tables": noted, "made_from": made_from})
        Chain(opener).append(f"{name}/trace", evidence.hashes(name)[f"{name}/trace"])
        write_file(path, json_bytes(evidence.model_dump(mode="json")), scratch)


def check_evidence(opener: Opener, last_line: str, *, with_scores: bool) -> bool:
    """
    Whether the run has evidence; `EvidenceError` names all that is changed, missing or added.

    *last_line* is the hash of the chain's last line when the run came to its end, if it has.
    Scores count only where they are to be read: *with_scores*.
    """
    lines = Chain(opener).lines()
    run_path = opener.root
    trial_folders = folders(run_path / "trials")
    if not lines and not any((folder / EVIDENCE).exists() for folder in trial_folders):
        return False
    stored = dict[str, str]()
    problems = list[str]()
    noted = _noted(lines)
    if has_manifest_first(lines):
        trial_folders += [folder for kind in DISCARDED for folder in folders(run_path / kind)]
    # One after the other: with many small files threads wait for each other, and take longer.
    for folder in trial_folders:
        hashes, changes = _check_trial(opener, folder)
        stored |= hashes
        problems += changes
    scores = noted.pop(SCORES, "")
    if with_scores and scores and scores != hash_folder(run_path / SCORES, opener):
        problems.append(f"{SCORES} were changed: {MAKE_SCORES}")
    stored |= _hash_others(opener, noted)
    if not last_line and _is_manifest_before(lines, stored.get(MANIFEST, "")):
        noted[MANIFEST] = stored[MANIFEST]
    noted = {name: sha for name, sha in noted.items() if sha}
    if not lines:
        problems = [f"{CHAIN} is missing"]
    elif last_line and last_line not in lines:
        problems.append(f"the last lines of {CHAIN} are missing")
    else:
        problems += differences(noted, stored)
    if problems:
        raise EvidenceError(_listed(problems), where=str(run_path), fix=_RESTORE)
    return True


def has_manifest_first(lines: Mapping[str, Line]) -> bool:
    """Whether the chain names the manifest before all else, and discarded trials, too."""
    first = next(iter(lines.values()), None)
    return first is not None and first.name == MANIFEST


def _is_manifest_before(lines: Mapping[str, Line], sha: str) -> bool:
    """Whether *sha* is the manifest's last hash but one: a harness was killed in between."""
    hashes = [line.sha256 for line in lines.values() if line.name == MANIFEST]
    return sha in hashes[-2:-1]


def _hash_others(opener: Opener, noted: Iterable[str]) -> dict[str, str]:
    """Hashes of what there is beside trials: of *noted* names, and of profiles and seals."""
    names = {name for name in noted if name.partition("/")[0] not in ("trials", *DISCARDED)}
    for pattern in _DERIVED:
        names |= {path.relative_to(opener.root).as_posix() for path in opener.glob(pattern)}
    paths = {name: opener.root / name for name in names}
    return {name: opener.sha256(path) for name, path in paths.items() if opener.exists(path)}


def _listed(problems: Iterable[str]) -> str:
    shown = [f"  {excerpt(problem, 200)}" for problem in sorted(problems)]
    if len(shown) > _MOST_NAMED:
        shown[_MOST_NAMED:] = [f"  and {len(shown) - _MOST_NAMED} more"]
    return "\n".join(["the results are not as they were stored:", *shown])


def _check_trial(opener: Opener, folder: Path) -> tuple[dict[str, str], list[str]]:
    """Hashes of the parts of a trial's evidence, and what differs from it in its files."""
    name = f"{folder.parent.name}/{folder.name}"
    if not (folder / EVIDENCE).exists():
        return {name: ""}, [f"{name}/{EVIDENCE} is missing"]
    evidence = opener.read_record(Evidence, folder / EVIDENCE, _RESTORE)
    changes = differences(evidence.measured | evidence.tables, _hash_files(folder, opener))
    return evidence.hashes(name), [f"{name}/{change}" for change in changes]


def differences(expected: Mapping[str, str], actual: Mapping[str, str]) -> list[str]:
    """What is changed, missing or added in *actual*, by name."""
    changes = []
    for name in sorted({*expected, *actual}):
        if name not in expected:
            changes.append(f"{name} was added")
        elif name not in actual:
            changes.append(f"{name} is missing")
        elif expected[name] != actual[name]:
            changes.append(f"{name} was changed")
    return changes


def hash_folder(folder: Path, opener: Opener) -> str:
    """One hash of all files below *folder*."""
    names = {name.removesuffix(PACKED) for name in opener.names(folder)}
    hashes = {name: opener.sha256(folder / name) for name in names}
    return hashlib.sha256(json_bytes(hashes, indent=None)).hexdigest()


def _hash_files(folder: Path, opener: Opener) -> dict[str, str]:
    """SHA-256 of every file below *folder*, by its name there, but of the evidence itself."""
    return {name: sha for name, sha in opener.hashes(folder).items() if name != EVIDENCE}
