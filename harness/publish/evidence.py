"""
The run of a bundle: what can be made again from it, at the level of evidence that was chosen.

Names in it are pseudonyms, so its files have other hashes: seal, evidence and chain are made anew,
with the same lines and moments, and `originals.json` keeps the hashes of what was measured.
"""

from __future__ import annotations

import gzip
import hashlib

from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from pathlib import Path

from harness.base.errors import DataError
from harness.base.records.trial import SCHEMA_VERSION
from harness.core.evaluate.flow import Evaluation
from harness.core.evaluate.own_code import kept_own
from harness.core.store import Run
from harness.core.store.evidence import (
    CHAIN,
    DISCARDED,
    EVIDENCE,
    SCORES,
    Chain,
    Evidence,
    hash_folder,
)
from harness.core.store.published import ORIGINALS, source_name
from harness.core.store.run import FINISHED
from harness.core.store.seal import ANCHORS, DRAWN, PLAN, PREDICTIONS, PROFILES, SEAL, Seal
from harness.observe.storage.files import folders, json_bytes, remove_tree
from harness.observe.storage.opener import PACKED, Opener
from harness.pseudonyms.contents import Change, pieces, published, rewrite
from harness.pseudonyms.names import Pseudonyms

_PARTS = ("trials", *DISCARDED)
_OPAQUE = "logs that are packed or damaged, into which nobody can look"


def copy_run(
    run: Run, target: Path, level: str, pseudonyms: Pseudonyms, *, with_source: bool = True
) -> None:
    """
    Make the run *target* of what is published of *run* at *level*; `DataError`: a file is damaged.

    *with_source*: with the source of models and workloads of the owner's.
    `Run.check_evidence`, `seal.check` and `reproduce` hold for it as for any other run.
    """
    copy = Run(target)
    hashes = dict[str, str]()
    left_out = Counter[str]()

    def change(text: str, key: str) -> str:
        text = pseudonyms.change(text, key)
        for before, after in hashes.items():
            text = text.replace(before, after)
        return text

    # Files whose hashes others have are before these: predictions name profiles, jobs the seal.
    # Anchors are before the seal, so that they keep what was told: its hash as it was measured.
    order = {PROFILES: 0, PLAN: 1, PREDICTIONS: 1, ANCHORS: 1, SEAL: 2}
    names = [*published(run, level), *([SEAL] if run.seal.exists() else [])]
    for name in sorted(names, key=lambda name: order.get(name, order.get(name.split("/")[0], 3))):
        path = target / pseudonyms.file_name(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        is_packed = level != "raw" and name.startswith((PROFILES, PREDICTIONS, SCORES))
        is_packed &= name != DRAWN  # which verify.py reads
        if name == SEAL:
            write_seal(run, copy, path, pseudonyms)
        elif not _write(run, name, path, change, is_packed=is_packed):
            left_out[_OPAQUE] += 1
        if name == SEAL or name.startswith(PROFILES):
            before = run.opener.sha256(run.path / name)
            after = copy.opener.sha256(path)
            if before != after:
                hashes[before] = after
    if with_source:
        copy_sources(run, target, pseudonyms)
    write_originals(run, target, level=level, pseudonyms=pseudonyms, names=names, left_out=left_out)
    if is_scored_anew(run):
        score_anew(copy)
    elif pseudonyms.ids and run.is_scored:
        sort_scores(copy)
    make_evidence(run, copy, pseudonyms)
    copy.check_evidence()
    copy.seal.check()


def copy_sources(run: Run, target: Path, pseudonyms: Pseudonyms) -> None:
    """
    Put the sources of the owner's models and workloads beside the run *target*, byte for byte.

    One with a name or a secret in it that is not for the public stays out: changed it would be
    another one, and reports say that it is missing.
    """
    for code in run.experiment().own_code.values():
        with suppress(DataError):  # it never ran here
            source = kept_own(code).source
            if pseudonyms.text(source) == source:
                path = target / source_name(code)
                path.parent.mkdir(exist_ok=True)
                path.write_bytes(source.encode())


def write_originals(
    run: Run,
    target: Path,
    *,
    level: str,
    pseudonyms: Pseudonyms,
    names: Sequence[str],
    left_out: Counter[str],
) -> None:
    """Write the hashes of what was measured, of which *names* are published, and what is not."""
    stored = {*run.opener.names(run.path)}
    anew = {CHAIN, FINISHED, *(name for name in stored if name.endswith(f"/{EVIDENCE}"))}
    measured = {*names, *anew} & stored
    for name in stored - measured:
        parts = name.split("/")
        left_out["/".join(["trials", "*", parts[2]] if parts[0] == "trials" else parts[:1])] += 1
    hashes = dict[str, str]()
    for name in measured:
        hashes[pseudonyms.file_name(name)] = run.opener.sha256(run.path / name)
    originals = {
        "schema_version": SCHEMA_VERSION,
        "level": level,
        "files": hashes,
        "chain": next(reversed(Chain(run.opener).lines()), ""),
        "ids": {new: old for old, new in pseudonyms.ids.items()},
        "left_out": left_out,
    }
    (target / ORIGINALS).write_bytes(json_bytes(originals))


def write_seal(run: Run, copy: Run, path: Path, pseudonyms: Pseudonyms) -> None:
    """Write the seal of *run* with the hashes that its files have in *copy*."""
    seal = run.opener.read_record(Seal, run.path / SEAL, "")
    names = map(pseudonyms.file_name, seal.sha256)
    new_hashes = {name: copy.opener.sha256(copy.path / name) for name in names}
    seal = seal.model_copy(update={"sha256": new_hashes})
    path.write_bytes(json_bytes(seal.model_dump(mode="json")))


def sort_scores(copy: Run) -> None:
    """Put the scores of *copy* into the order of the ids of its cells, some of which are new."""
    stored = copy.read_scores()
    scores = tuple(sorted(stored.scores, key=lambda score: (score.model, score.cell)))
    document = stored.model_copy(update={"scores": scores}).model_dump(mode="json")
    data = json_bytes(document, indent=None)
    (path,) = (copy.path / SCORES).iterdir()
    path.write_bytes(gzip.compress(data, mtime=0) if path.suffix == PACKED else data)


def is_scored_anew(run: Run) -> bool:
    """Whether the scores of *run* are others in a bundle, where no other run is to compare with."""
    found = run.read_scores().answer if run.is_scored else None
    return found is not None and bool(found.question.moved_since)


def score_anew(copy: Run) -> None:
    """Score *copy*, which has no evidence yet, by its own ids; packed if its scores were."""
    (path,) = (copy.path / SCORES).iterdir()
    stored = copy.read_scores()
    scores = Evaluation.of(copy).score(stored)
    data = json_bytes(scores.model_dump(mode="json"), indent=None)
    remove_tree(path.parent)
    path.parent.mkdir()
    path.write_bytes(gzip.compress(data, mtime=0) if path.suffix == PACKED else data)
    remove_tree(copy.path / "incoming")  # of what was half-done


def _write(run: Run, name: str, path: Path, change: Change, *, is_packed: bool) -> bool:
    """Write the file *name* of *run*, changed, to *path*; not a log that nobody can look into."""
    source = run.path / name
    is_changed = is_packed or name.endswith(PACKED)  # whose header may hold anything
    path = path.with_name(path.name + PACKED) if is_packed else path
    try:
        with path.open("xb") as file:
            is_zipped = path.suffix == PACKED
            zipped = gzip.GzipFile("", "wb", 6, file, mtime=0) if is_zipped else nullcontext(file)
            with zipped as output:
                for piece in pieces(run.opener, source):
                    changed = rewrite(piece, change)
                    is_changed |= changed != piece
                    output.write(changed)
    except DataError as error:
        if error.where or "/raw/" not in name:
            fix = "restore it from a copy of the run"
            raise DataError(error.what, where=error.where or str(source), fix=fix) from error
        path.unlink()
        return False
    if not is_changed:
        path.unlink()
        run.opener.copy(source, path)
    return True


def make_evidence(run: Run, copy: Run, pseudonyms: Pseudonyms) -> None:
    """Make the evidence of each trial of *copy*, its chain, and its end, like those of *run*."""
    hashes = dict[str, str]()
    for part in _PARTS:
        for folder in folders(copy.path / part):
            hashes |= make_trial_evidence(copy.opener, folder)
    lines = [*Chain(run.opener).lines().values()]
    last_hashes = {line.name: line.sha256 for line in lines}
    content = b""
    previous = ""
    for line in lines:
        name = pseudonyms.file_name(line.name)
        if name == SCORES:
            hashes[name] = hash_folder(copy.path / name, copy.opener)
        elif name.partition("/")[0] not in _PARTS:
            hashes[name] = copy.opener.sha256(copy.path / name)
        if name not in hashes:
            continue  # tables and discarded trials that are left out at this level
        is_unchanged = hashes[name] == last_hashes[line.name]
        sha = line.sha256 if is_unchanged else hashes[name]
        changes = {"name": name, "sha256": sha, "previous": previous}
        document = line.model_copy(update=changes).model_dump(mode="json")
        text = json_bytes(document, indent=None)
        content = content + text
        previous = hashlib.sha256(text).hexdigest()
    (copy.path / CHAIN).write_bytes(content)
    (copy.path / FINISHED).write_bytes(previous.encode())


def make_trial_evidence(opener: Opener, folder: Path) -> dict[str, str]:
    """Write the evidence of the trial in *folder*; give its hashes by their names in the chain."""
    file_hashes = opener.hashes(folder)
    name = f"{folder.parent.name}/{folder.name}"
    tables = {key: sha for key, sha in file_hashes.items() if key.startswith("trace/")}
    measured = {key: file_hashes[key] for key in file_hashes.keys() - tables.keys()}
    evidence = Evidence(measured=measured)
    made_from = evidence.hashes(name)[name] if tables else ""
    evidence = evidence.model_copy(update={"tables": tables, "made_from": made_from})
    (folder / EVIDENCE).write_bytes(json_bytes(evidence.model_dump(mode="json")))
    return evidence.hashes(name)
