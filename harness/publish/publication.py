"""
What a bundle is made with, beside its runs: `publication.json`.

A bundle is a function of its runs, of this, and of the release: who has all three makes the same
bytes again.  Bundles of runs with an older schema have no such file, and leave out what their pages
were made from; of a later one that lacks it, somebody took it away.
"""

from __future__ import annotations

import hashlib
import platform

from collections.abc import Iterable
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Self

from pydantic import Field, NonNegativeInt

from harness.base.errors import EvidenceError
from harness.base.records.trial import SCHEMA_VERSION, Moment, Record, SchemaVersion
from harness.base.text import excerpt
from harness.base.version import __version__
from harness.core.store import Run
from harness.core.store.evidence import CHAIN, EVIDENCE, Chain
from harness.core.store.published import CODE, ORIGINALS, WITH_EVIDENCE, level_of
from harness.core.store.run import FINISHED
from harness.core.store.seal import SEAL
from harness.observe.storage.files import folders
from harness.observe.storage.opener import MANIFEST, Opener
from harness.pseudonyms.contents import published
from harness.publish.crate import is_author, is_licence
from harness.publish.data import FIX

PUBLICATION = "publication.json"
SINCE_SCHEMA = 14  # of runs, from which on each bundle of them says how it was published
# What draws, typesets and computes: other versions may give other last digits, and other pictures.
_PACKAGES = ("jinja2", "matplotlib", "numpy", "pandas", "pyarrow", "scipy", "typst")
_HARNESS = Path(__file__).parents[1]


class Release(Record):
    """
    What made a bundle: the version, a hash of all its *sources*, and of what it stands on.

    *packages* have the version of each package that computes or draws, and of Python.
    """

    harness: str
    sources: str
    packages: dict[str, str]

    @classmethod
    def present(cls) -> Self:
        """Give the release that is installed here."""
        packages = {name: _version(name) for name in _PACKAGES}
        packages["python"] = platform.python_version()
        return cls(harness=__version__, sources=sources_sha256(), packages=packages)


class Publication(Record):
    """
    How the runs of a bundle were published.

    *level* is that of the evidence, *division* the one that is claimed, *dated_s* the moment that
    all dates state in place of the last trial's.  *sealed* counts other runs of each experiment
    that were sealed on that machine, by its ledger at that moment, and *unpublished* those of them
    of which no bundle had been made.  *questions* are texts by the experiment of whose runs they
    were asked afterwards.
    """

    schema_version: SchemaVersion = SCHEMA_VERSION
    level: str
    division: str = ""
    licence: str = ""
    authors: tuple[dict[str, str], ...] = ()
    dated_s: Moment | None = None
    sealed: dict[str, NonNegativeInt] = Field(default_factory=dict)
    unpublished: dict[str, NonNegativeInt] = Field(default_factory=dict)
    questions: dict[str, str] = Field(default_factory=dict)
    release: Release = Field(default_factory=Release.present)


def read_publication(bundle: Opener) -> Publication | None:
    """
    How *bundle* was published; `None`: by an earlier version, which did not say.

    `EvidenceError`: it is of a later one, and does not say so.
    """
    path = bundle.root / PUBLICATION
    if not bundle.exists(path):
        schema = schema_of(bundle)
        if schema < SINCE_SCHEMA:
            return None
        what = f"{PUBLICATION} is missing: runs of schema {schema} are not published without it"
        fix = "believe no page of it: get the bundle again from where it was published"
        raise EvidenceError(what, where=str(path), fix=fix)
    publication = bundle.read_record(Publication, path, FIX)
    is_fit = is_licence(publication.licence) and all(map(is_author, publication.authors))
    if not is_fit:
        what = "its licence or its authors are none that harness publish would have written"
        raise EvidenceError(what, where=str(path), fix=FIX)
    return publication


def schema_of(bundle: Opener) -> int:
    """
    Give the newest schema that a run of *bundle* shows: in its records, or by its first line.

    Who writes another number into one of them would have to do so in all.
    """
    schemas = [1]
    for run_path in folders(bundle.root / "runs"):
        opener = Opener(run_path)
        for name in (MANIFEST, ORIGINALS, SEAL):
            path = run_path / name
            if opener.exists(path):
                document = opener.parse_json(opener.read(path, FIX), path, FIX)
                schemas.append(int(document["schema_version"]))
        first = next(iter(Chain(opener).lines().values()), None)
        if first is not None:
            schemas.append(SINCE_SCHEMA if first.name == MANIFEST else first.schema_version)
    return max(schemas)


def _is_source(opener: Opener, name: str) -> bool:
    """Whether *name* is that of the source of a model or workload: what is in it, by its hash."""
    return name == f"{CODE}/{opener.sha256(opener.root / name)}.py"


def require_level(run: Run, level: str) -> None:
    """`EvidenceError` where *run* says another level of evidence, or does not have what it has."""
    stated = level_of(run.opener)
    where = run.path / ORIGINALS
    fix = "get the bundle again from where it was published"
    if stated != level or not stated:
        what = f"the run is of level '{stated}', and {PUBLICATION} says '{excerpt(level)}'"
        raise EvidenceError(what, where=str(where), fix=fix)
    all_names = run.opener.names(run.path)
    names = {name for name in all_names if not name.endswith(f"/{EVIDENCE}")}
    for name in _files_beyond(run, level, names):
        what = f"a run of level '{level}' does not have this file: {excerpt(name)}"
        raise EvidenceError(what, where=str(where), fix=fix)
    is_measured = any(name.startswith("trials/") for name in names)
    has_traces = any("/trace/" in name for name in names)
    if level in WITH_EVIDENCE and is_measured and not has_traces:
        what = f"the run says that it is of level '{level}', and no trial of it has a trace"
        raise EvidenceError(what, where=str(where), fix=fix)


def _files_beyond(run: Run, level: str, names: Iterable[str]) -> list[str]:
    """Of the files *names* of a published *run* those that its *level* of evidence has not."""
    of_bundle = {SEAL, ORIGINALS, CHAIN, FINISHED, *published(run, level)}
    return [name for name in sorted({*names} - of_bundle) if not _is_source(run.opener, name)]


@cache
def sources_sha256() -> str:
    """Hash of every file of this package, by name, but of what Python makes of them."""
    digest = hashlib.sha256()
    for path in sorted(_HARNESS.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            name = path.relative_to(_HARNESS).as_posix()
            digest.update(f"{name} {hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()


def _version(package: str) -> str:
    """Version of an installed package; empty where it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
