"""
Where what is made of other people's runs is kept: they stay as they are.

A run in a bundle, or in a folder that this user cannot write, is read where it lies.  What is made
of it (an analysis, scores, a report) goes below the folder of results, `readings/<hash>/<run>/`, in
which `source.json` says what it is about: the bundle by its hash, and where that lay.
"""

from __future__ import annotations

import os

from pathlib import Path

from harness.base.errors import DataError, EvidenceError
from harness.base.records.trial import SCHEMA_VERSION, Record, SchemaVersion
from harness.base.text import excerpt
from harness.core.store.packed import opened
from harness.core.store.published import bundle_of
from harness.core.store.sums import SUMS
from harness.observe.storage.files import json_bytes, write_file
from harness.observe.storage.opener import MANIFEST, Opener

READINGS = "readings"
SOURCE = "source.json"
_HASH_CHARACTERS = 16  # as a bundle is quoted
_FIX = "put the bundle back where it was, or read it anew where it lies now: harness report BUNDLE"


class Source(Record):
    """
    `source.json`: the *run* that a reading is about, and its *place* as seen from there.

    *sha256* is that of the list of sums of its *bundle*; of a run in none, that of its manifest.
    """

    schema_version: SchemaVersion = SCHEMA_VERSION
    run: str
    is_in_bundle: bool
    sha256: str
    place: str


def is_own(run_path: Path) -> bool:
    """Whether this user may add to the run at *run_path*: it is in no bundle, nor read-only."""
    return bundle_of(run_path) is None and os.access(run_path, os.W_OK, effective_ids=True)


def identity(run_path: Path) -> str:
    """SHA-256 by which what the run at *run_path* lies in is known: its bundle, or itself."""
    bundle = bundle_of(run_path)
    folder, name = (run_path, MANIFEST) if bundle is None else (bundle, SUMS)
    return Opener(folder).sha256(folder / name)


def reading_folder(results_dir: Path, run_path: Path) -> Path:
    """Give the folder below *results_dir* for what is made of the foreign run at *run_path*."""
    return results_dir / READINGS / identity(run_path)[:_HASH_CHARACTERS] / run_path.name


def write_source(folder: Path, run_path: Path, place: Path) -> None:
    """Note in *folder* that it is about the run at *run_path*, which the user finds at *place*."""
    source = Source(
        run=run_path.name,
        is_in_bundle=bundle_of(run_path) is not None,
        sha256=identity(run_path),
        place=os.path.relpath(place.absolute(), folder.absolute()),
    )
    if read_source(folder) != source:
        write_file(folder / SOURCE, json_bytes(source.model_dump(mode="json")), folder)


def read_source(folder: Path) -> Source | None:
    """Read what the reading in *folder* is about; `None`: it is none."""
    opener = Opener(folder)
    if not opener.exists(folder / SOURCE):
        return None
    return opener.read_record(Source, folder / SOURCE, _FIX)


def place_of(folder: Path, source: Source) -> Path:
    """Give the path at which the run of the reading in *folder* lay, by its *source*."""
    return Path(os.path.normpath(folder.absolute() / source.place))


def run_of_reading(folder: Path) -> Path | None:
    """
    Give the path of the run that the reading in *folder* is about; `None`: it is no reading.

    `DataError`: it is not where it was; `EvidenceError`: another one is.
    """
    source = read_source(folder)
    if source is None:
        return None
    place = place_of(folder, source)
    path = opened(place)
    if not (path / MANIFEST).is_file():
        what = f"run {excerpt(source.run)}, which this was made of, is no longer there"
        raise DataError(what, where=str(place), fix=_FIX)
    if identity(path) != source.sha256:
        what = "another bundle lies in the place of the one that this was made of"
        raise EvidenceError(what, where=str(place), fix=_FIX)
    return path
