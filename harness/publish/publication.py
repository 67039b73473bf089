"""
What a bundle is made with, beside its runs: `publication.json`.

A bundle is a function of its runs, of this, and of the release: who has all three makes the same
bytes again.  Older bundles have no such file, and leave out what their pages were made from.
"""

from __future__ import annotations

import hashlib
import platform

from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Self

from pydantic import Field

from harness.base.records.trial import SCHEMA_VERSION, Moment, Record, SchemaVersion
from harness.base.version import __version__
from harness.observe.storage.opener import Opener
from harness.publish.data import FIX

PUBLICATION = "publication.json"
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
    all dates state in place of the last trial's.  *unpublished* counts other runs of each
    experiment that were sealed on that machine, by its ledger, and not published.  *questions* are
    texts by the experiment of whose runs they were asked afterwards.
    """

    schema_version: SchemaVersion = SCHEMA_VERSION
    level: str
    division: str = ""
    licence: str = ""
    authors: tuple[dict[str, str], ...] = ()
    dated_s: Moment | None = None
    unpublished: dict[str, int] = Field(default_factory=dict)
    questions: dict[str, str] = Field(default_factory=dict)
    release: Release = Field(default_factory=Release.present)


def read_publication(bundle: Opener) -> Publication | None:
    """How *bundle* was published; `None`: by an earlier version, which did not say."""
    path = bundle.root / PUBLICATION
    return bundle.read_record(Publication, path, FIX) if bundle.exists(path) else None


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
