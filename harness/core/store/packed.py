"""
A packed bundle, which commands read as though it were the folder that it was made of.

What a user names may be the archive, the folder in which it lies as `bundle.tar.gz`, or a path that
goes on from there: `results/published/quick/runs/RUN`.  Trials of a run may lie in an archive of
their own beside it, `evidence/RUN.tar.gz`.  Archives are foreign: they are unpacked by the checks
of `harness.core.store.extract`, once, into a folder of this user's cache that is named by the
SHA-256 of the first one, whose `SHA256SUMS` has all files.  Nothing is written into that folder,
which can be removed at any time.
"""

from __future__ import annotations

import hashlib
import os
import re

from contextlib import suppress
from pathlib import Path

from harness.base.errors import DataError, EvidenceError, MachineError
from harness.base.text import excerpt
from harness.core.store.evidence import DISCARDED
from harness.core.store.published import WITH_EVIDENCE, level_of
from harness.core.store.sums import SUMS, check_sums
from harness.observe.storage.files import (
    exclusive_lock,
    folders,
    is_path,
    os_error_as_machine_error,
    remove_tree,
    rename_durably,
    sync_tree,
)
from harness.observe.storage.opener import Opener

ARCHIVE = "bundle.tar.gz"
UNPACKED = "unpacked-bundles"  # a folder of what was published, which stays as it is
SUM_ENDING = ".sha256"
EVIDENCE = "evidence"  # a folder beside the archive
PARTS = ("trials", *DISCARDED)  # of a run, which its evidence has
_ENDINGS = (".tar", ".tar.gz", ".tgz", ".tar.zst")
_MOST_SUM_BYTES = 2**20
_AGAIN = "get the archive again, with the file of its sum, and evidence/, if there is one"


def archive_of(path: Path) -> Path | None:
    """Find the packed bundle that *path* is, or that lies in it; `None`: neither."""
    if path.name.endswith(_ENDINGS) and path.is_file():
        return path
    inner = path / ARCHIVE
    return inner if inner.is_file() else None


def evidence_of(run_id: str) -> str:
    """Give the name, from beside the archive of a bundle, of that with the trials of a run."""
    return f"{EVIDENCE}/{run_id}.tar.gz"


def is_bundle(path: Path) -> bool:
    """Whether *path* is a bundle, packed or not; its files are not looked at."""
    return is_path(path) and ((path / SUMS).is_file() or archive_of(path) is not None)


def home_of(path: Path) -> Path:
    """Give the folder for what is added to the bundle *path*: its own, or that of its archive."""
    archive = archive_of(path)
    return path if archive is None else archive.parent


def opened(path: Path) -> Path:
    """
    Give the folder or file that *path* means: another one where it leads into a packed bundle.

    `DataError`: the archive is refused; `EvidenceError`: the sum beside it is another.
    """
    # What is there is meant as it is, whatever archives lie around it.
    nearest = next(place for place in (path, *path.parents) if place.exists())
    is_named = nearest == path or nearest.name != ""  # an id does not name the shell's folder
    archive = archive_of(nearest) if is_named else None
    if archive is None or (nearest / SUMS).is_file():
        return path
    return unpacked(archive) / path.relative_to(nearest)


def unpacked(archive: Path) -> Path:
    """Give the folder with what *archive* has; sums are checked each time."""
    sha256 = _sha256(archive)
    _check_sums(archive, sha256)
    cache = _cache_folder()
    target = cache / sha256
    if target.is_dir():
        return target
    scratch = cache / f".{sha256}"
    with exclusive_lock(cache / ".lock", str(cache), wait=True):
        if not target.is_dir():
            remove_tree(scratch)
            try:
                folder = _extracted(archive, scratch)
                with os_error_as_machine_error(target):
                    sync_tree(folder)
                    rename_durably(folder, target)
            finally:
                remove_tree(scratch)
    return target


def _sha256(archive: Path) -> str:
    """SHA-256 of an archive, which must be there."""
    _require_file(archive)
    with os_error_as_machine_error(archive), archive.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _require_file(archive: Path) -> None:
    """`DataError` where an archive is not there."""
    is_there = False
    with suppress(OSError):  # its name may be longer than a name can be
        is_there = archive.is_file()
    if not is_there:
        where = excerpt(str(archive), 400)
        raise DataError("a part of the bundle is missing", where=where, fix=_AGAIN)


def _check_sums(archive: Path, sha256: str) -> None:
    """
    `EvidenceError` where the file beside *archive* states another sum; there may be none.

    Its first line is about the archive, further ones are about evidence.
    """
    sum_file = archive.with_name(archive.name + SUM_ENDING)
    if not sum_file.is_file():
        return
    with os_error_as_machine_error(sum_file), sum_file.open("rb") as stream:
        text = stream.read(_MOST_SUM_BYTES).decode(errors="replace")
    stated = re.match(r"[0-9a-f]{64}(?![0-9a-f])", text)
    if stated is None:
        what = f"this is not the sum of a file: '{excerpt(text, 80)}'"
        raise DataError(what, where=str(sum_file), fix=_AGAIN)
    sums = {archive: (sha256, stated[0])}
    for evidence_sha, name in re.findall(rf"\n([0-9a-f]{{64}})  {EVIDENCE}/([^/\n]+)", text):
        path = archive.parent / EVIDENCE / name
        sums[path] = (_sha256(path), evidence_sha)
    for path, (found, expected) in sums.items():
        if found != expected:
            what = f"its SHA-256 is {found}, and {sum_file.name} states {expected}"
            raise EvidenceError(what, where=str(path), fix=_AGAIN)


def _extracted(archive: Path, scratch: Path) -> Path:
    """Unpack *archive* below *scratch*; give the folder of the bundle there."""
    folder = _extracted_with(SUMS, archive, scratch)
    if folder is None:
        what = f"there is no {SUMS} in it: this is not a bundle"
        fix = "name one that harness publish made; a packed run is taken in by harness unpack"
        raise DataError(what, where=str(archive), fix=fix)
    runs = [run for run in folders(folder / "runs") if not (run / "trials").exists()]
    kept_beside = [run for run in runs if level_of(Opener(run)) in WITH_EVIDENCE]
    for run in kept_beside:
        _add_evidence(archive.parent / evidence_of(run.name), run)
    if kept_beside:
        try:
            check_sums(folder)
        except DataError as error:
            raise type(error)(error.what, where=str(archive.parent), fix=_AGAIN) from error
    return folder


def _add_evidence(archive: Path, run: Path) -> None:
    """Move the trials that *archive* has into the folder *run*."""
    _require_file(archive)
    scratch = run / "unpacked"
    found = _extracted_with("trials", archive, scratch)
    for part in PARTS:
        if found is not None and (found / part).is_dir():
            with os_error_as_machine_error(scratch):
                (found / part).rename(run / part)
    remove_tree(scratch)


def _extracted_with(name: str, archive: Path, scratch: Path) -> Path | None:
    """Unpack *archive* below *scratch*; give the folder there that has *name*, if one has."""
    from harness.core.store.extract import extract, folder_with  # with all that reads tar files

    try:
        with os_error_as_machine_error(archive):
            extract(archive, scratch)
    except DataError as error:
        raise DataError(error.what, where=error.where, fix=_AGAIN) from error
    return folder_with(name, scratch)


def _cache_folder() -> Path:
    """Make the folder of all unpacked bundles of this user."""
    cache_home = os.environ.get("XDG_CACHE_HOME", "")
    if not cache_home.startswith("/"):  # the XDG rules: a relative path counts as unset
        cache_home = f"{os.environ.get('HOME', '/')}/.cache"
    folder = Path(cache_home, "mapreduce-harness", UNPACKED)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        what = f"bundles cannot be unpacked there: {(error.strerror or str(error)).lower()}"
        fix = "set XDG_CACHE_HOME to a folder that this user can write"
        raise MachineError(what, where=str(folder), fix=fix) from error
    return folder
