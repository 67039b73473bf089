"""
The run of a bundle: what can be made again from it, at the level of evidence that was asked for.

Names in it are pseudonyms, so its files have other hashes: seal, evidence and chain are made anew,
with the same lines and moments, and `originals.json` keeps the hashes of what was measured.
"""

from __future__ import annotations

import gzip
import hashlib

from collections import Counter
from pathlib import Path

from harness.errors import DataError
from harness.publish.contents import Change, pieces, published, rewrite
from harness.publish.pseudonyms import Pseudonyms
from harness.records.score import ScoreBook
from harness.records.trial import SCHEMA_VERSION
from harness.store import Run
from harness.store.evidence import CHAIN, EVIDENCE, SCORES, Chain, Evidence, hash_folder
from harness.store.files import folders, json_bytes
from harness.store.opener import PACKED
from harness.store.run import FINISHED
from harness.store.seal import PLAN, PREDICTIONS, PROFILES, SEAL, Seal

ORIGINALS = "originals.json"
_OPAQUE = "logs that are packed or damaged, into which nobody can look"
_RESTORE = "restore it from a copy of the run"


def copy_run(run: Run, target: Path, level: str, pseudonyms: Pseudonyms) -> None:
    """
    Make the run *target* of what is published of *run* at *level*; `DataError`: a file is damaged.

    `Run.check_evidence`, `seal.check` and `reproduce` hold for it as for any other run.
    """
    copy, hashes, left_out = Run(target), dict[str, str](), Counter[str]()

    def change(text: str, key: str) -> str:
        text = pseudonyms.change(text, key)
        for before, after in hashes.items():
            text = text.replace(before, after)
        return text

    # Files whose hashes others hold are before these: predictions name profiles, jobs the seal.
    order = {PROFILES: 0, PLAN: 1, PREDICTIONS: 1, SEAL: 2}
    names = [*published(run, level), *([SEAL] if run.seal.exists() else [])]
    for name in sorted(names, key=lambda name: order.get(name, order.get(name.split("/")[0], 3))):
        path = target / pseudonyms.name(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        is_packed = level != "raw" and name.startswith((PROFILES, PREDICTIONS, SCORES))
        if name == SEAL:
            seal = run.opener.read_record(Seal, run.path / SEAL, _RESTORE)
            new = {name: copy.opener.sha256(target / name)
                   for name in map(pseudonyms.name, seal.sha256)}  # fmt: skip
            seal = seal.model_copy(update={"sha256": new})
            path.write_bytes(json_bytes(seal.model_dump(mode="json")))
        elif not _write(run, name, path, change, is_packed=is_packed):
            left_out[_OPAQUE] += 1
            continue
        if name == SEAL or name.startswith(PROFILES):
            before, after = run.opener.sha256(run.path / name), copy.opener.sha256(path)
            hashes |= {before: after} if before != after else {}
    _make_evidence(run, copy, pseudonyms)
    anew = {CHAIN, FINISHED, *(f"trials/{key}/{EVIDENCE}" for key in run.trial_ids())}
    for name in {*run.opener.names(run.path)} - {*names} - anew:
        parts = name.split("/")
        left_out["/".join(["trials", "*", parts[2]] if parts[0] == "trials" else parts[:1])] += 1
    originals = {
        "schema_version": SCHEMA_VERSION,
        "level": level,
        "files": {
            pseudonyms.name(name): run.opener.sha256(run.path / name)
            for name in (*names, *anew)
            if (run.path / name).exists()
        },
        "chain": next(reversed(Chain(run.opener).lines()), ""),
        "ids": {new: old for old, new in pseudonyms.ids.items()},
        "left_out": left_out,
    }
    (target / ORIGINALS).write_bytes(json_bytes(originals))
    copy.check_evidence()
    if copy.seal.exists():
        copy.seal.check()


def _write(run: Run, name: str, path: Path, change: Change, *, is_packed: bool) -> bool:
    """Write the file *name* of *run*, changed, to *path*; not a log that nobody can look into."""
    source, is_changed = run.path / name, False
    try:
        if source.suffix == ".gz":
            with path.open("xb") as file, gzip.GzipFile("", "wb", 6, file, mtime=0) as log:
                for piece in pieces(run.opener, source):
                    changed = rewrite(piece, change)
                    is_changed |= changed is not piece and changed != piece
                    log.write(changed)
        else:
            data = b"".join(pieces(run.opener, source))
            changed = rewrite(data, change)
            if changed != data and name.startswith(SCORES):  # in the order of the ids of cells
                book = ScoreBook.model_validate_json(changed)
                scores = tuple(sorted(book.scores, key=lambda each: (each.model, each.cell)))
                book = book.model_copy(update={"scores": scores})
                changed = json_bytes(book.model_dump(mode="json"), indent=None)
            is_changed = changed != data
            if is_packed:
                path = path.with_name(path.name + PACKED)
                changed = gzip.compress(changed, 9, mtime=0)
            with path.open("xb") as file:
                file.write(changed)
    except DataError as error:
        if error.where or "/raw/" not in name:
            raise DataError(error.what, where=error.where or str(source), fix=_RESTORE) from error
        path.unlink(missing_ok=True)
        return False
    if not is_changed and not is_packed:
        path.unlink()
        run.opener.copy(source, path)
    return True


def _make_evidence(run: Run, copy: Run, pseudonyms: Pseudonyms) -> None:
    """Make the evidence of each trial of *copy*, its chain, and its end, like those of *run*."""
    hashes, opener = dict[str, str](), copy.opener
    for folder in folders(copy.path / "trials"):
        own, name = opener.hashes(folder), f"trials/{folder.name}"
        evidence = Evidence(
            measured={key: sha for key, sha in own.items() if not key.startswith("trace/")},
            tables={key: sha for key, sha in own.items() if key.startswith("trace/")},
        )
        if evidence.tables:
            made_from = evidence.hashes(name)[name]
            evidence = evidence.model_copy(update={"made_from": made_from})
        (folder / EVIDENCE).write_bytes(json_bytes(evidence.model_dump(mode="json")))
        hashes |= evidence.hashes(name)
    lines, content, previous = [*Chain(run.opener).lines().values()], b"", ""
    measured = {line.name: line.sha256 for line in lines}
    for line in lines:
        name = pseudonyms.name(line.name)
        if name == SCORES:
            hashes.setdefault(name, hash_folder(copy.path / name, opener))
        elif opener.exists(copy.path / name) and not name.startswith("trials/"):
            hashes.setdefault(name, opener.sha256(copy.path / name))
        if name not in hashes:
            continue  # tables that are left out at this level
        sha = line.sha256 if hashes[name] == measured[line.name] else hashes[name]
        line = line.model_copy(update={"name": name, "sha256": sha, "previous": previous})
        text = json_bytes(line.model_dump(mode="json"), indent=None)
        content, previous = content + text, hashlib.sha256(text).hexdigest()
    (copy.path / CHAIN).write_bytes(content)
    if run.finished:
        (copy.path / FINISHED).write_bytes(previous.encode())
