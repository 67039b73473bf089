"""
A bundle in one file, which commands read as though it were the folder that it was made of.

What a user names may be the archive, the folder in which it lies as `bundle.tar.gz`, or a path that
goes on from there: `results/published/quick/runs/RUN`.  The archive is foreign: it is unpacked by
the checks of `harness.core.store.extract`, once, into a folder of this user's cache that is named
by its SHA-256.  Nothing is written into that folder, which can be removed at any time.
"""

from __future__ import annotations

import hashlib
import os
import re

from pathlib import Path

from harness.base.errors import DataError, EvidenceError, MachineError
from harness.base.text import excerpt
from harness.core.store.sums import SUMS
from harness.observe.storage.files import (
    exclusive_lock,
    is_path,
    os_error_as_machine_error,
    remove_tree,
    rename_durably,
    sync_tree,
)

ARCHIVE = "bundle.tar.gz"
UNPACKED = "unpacked-bundles"  # a folder of what was published, which stays as it is
SUM_ENDING = ".sha256"
_ENDINGS = (".tar", ".tar.gz", ".tgz", ".tar.zst")
_MOST_SUM_BYTES = 400
_AGAIN = "get the archive again, with the file of its sum"


def archive_of(path: Path) -> Path | None:
    """Find the packed bundle that *path* is, or that lies in it; `None`: neither."""
    if path.name.endswith(_ENDINGS) and path.is_file():
        return path
    inner = path / ARCHIVE
    return inner if inner.is_file() else None


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
    """Give the folder with what *archive* has; its sum is checked each time."""
    with os_error_as_machine_error(archive), archive.open("rb") as stream:
        sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
    _check_sum(archive, sha256)
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


def _check_sum(archive: Path, sha256: str) -> None:
    """`EvidenceError` where the file beside *archive* states another sum; there may be none."""
    sum_file = archive.with_name(archive.name + SUM_ENDING)
    if not sum_file.is_file():
        return
    with os_error_as_machine_error(sum_file), sum_file.open("rb") as stream:
        text = stream.read(_MOST_SUM_BYTES).decode(errors="replace")
    stated = re.match(r"[0-9a-f]{64}(?![0-9a-f])", text)
    if stated is None:
        what = f"this is not the sum of a file: '{excerpt(text, 80)}'"
        raise DataError(what, where=str(sum_file), fix=_AGAIN)
    if stated[0] != sha256:
        what = f"its SHA-256 is {sha256}, and {sum_file.name} states {stated[0]}"
        raise EvidenceError(what, where=str(archive), fix=_AGAIN)


def _extracted(archive: Path, scratch: Path) -> Path:
    """Unpack *archive* below *scratch*; give the folder of the bundle there."""
    from harness.core.store.extract import extract, folder_with  # with all that reads tar files

    try:
        with os_error_as_machine_error(archive):
            extract(archive, scratch)
    except DataError as error:
        raise DataError(error.what, where=error.where, fix=_AGAIN) from error
    folder = folder_with(SUMS, scratch)
    if folder is None:
        what = f"there is no {SUMS} in it: this is not a bundle"
        fix = "name one that harness publish made; a packed run is taken in by harness unpack"
        raise DataError(what, where=str(archive), fix=fix)
    return folder


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
