"""
Verifiers that are ours: which program checks a bundle, and whether its own copy is one of them.

A bundle has a copy of `verify.py`, so that it can be checked where nothing is installed.  That copy
comes from whom it is about; so no command runs it, and it has to be a verifier of a release: the
present one, or one of those that wrote a published bundle before.  Their texts lie in
`former_verifiers.tar.xz`, and `former_verifiers.txt` has a line for each, with the newest schema of
runs that it has checked: who put a former one beside later runs would have the weaker of both.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
import tarfile

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from harness.base.errors import DataError, EvidenceError
from harness.base.records.trial import SCHEMA_VERSION
from harness.base.text import excerpt
from harness.base.version import __version__
from harness.core.store import Run
from harness.core.store.sums import check_sums
from harness.observe.storage.files import folders
from harness.observe.storage.opener import Opener
from harness.publish.data import FIX
from harness.publish.publication import (
    Publication,
    read_publication,
    require_level,
    schema_of,
    sources_sha256,
)

PRESENT = Path(__file__).with_name("verify.py")
FORMER_LIST = Path(__file__).with_name("former_verifiers.txt")
FORMER_TEXTS = Path(__file__).with_name("former_verifiers.tar.xz")
_COPY = "verify.py"  # in a bundle
_FORMER = re.compile(r"([0-9a-f]{64}) ([0-9a-f]{7,40}) ([0-9]{1,3})")
_ERROR = "ValueError: "  # with which former verifiers begin what they found
_INSTALL = "install the harness again: this is a file of its own"


class Verifier(NamedTuple):
    """A verifier with this *sha256*, of a *release* in words, for runs up to a *schema*."""

    sha256: str
    release: str
    schema: int

    @property
    def is_present(self) -> bool:
        """Whether it is that of this version."""
        return self.sha256 == present_verifier().sha256

    def text(self) -> bytes:
        """Give the program, as it is kept here."""
        if self.is_present:
            return PRESENT.read_bytes()
        with tarfile.open(FORMER_TEXTS) as archive:
            member = archive.extractfile(f"{self.sha256}.py")
            assert member is not None  # a test holds the archive to the list
            return member.read()


class Verification(NamedTuple):
    """What a *verifier* printed about a bundle, and whether its tables and its claim hold."""

    verifier: Verifier
    lines: list[str]
    is_borne_out: bool


@cache
def present_verifier() -> Verifier:
    """Give the verifier of this version."""
    sha256 = hashlib.sha256(PRESENT.read_bytes()).hexdigest()
    return Verifier(sha256, f"this version, {__version__}", SCHEMA_VERSION)


@cache
def former_verifiers() -> dict[str, Verifier]:
    """Verifiers of earlier versions, by their SHA-256."""
    listed = Opener(FORMER_LIST.parent).read(FORMER_LIST, _INSTALL).decode(errors="replace")
    verifiers = {}
    for number, line in enumerate(listed.splitlines(), 1):
        if line.startswith("#"):
            continue
        found = _FORMER.fullmatch(line)
        if found is None:
            what = f"'{excerpt(line, 80)}' is no SHA-256 with its commit and its schema"
            raise DataError(what, where=f"{FORMER_LIST}:{number}", fix=_INSTALL)
        sha256, commit, schema = found.groups()
        release = f"an earlier version, commit {commit}"
        verifiers[sha256] = Verifier(sha256, release, int(schema))
    return verifiers


def whole_verifier(bundle: Path) -> Verifier:
    """
    Give the verifier of the folder *bundle*, which is whole, says how it was published, and has it.

    `EvidenceError` names what was changed, is missing, or is another verifier than that of then.
    """
    check_sums(bundle)
    _require_runs_alone(bundle / "runs")
    publication = read_publication(Opener(bundle))
    if publication is not None:
        for run_path in folders(bundle / "runs"):
            require_level(Run(run_path), publication.level)
    verifier = verifier_of(bundle)
    _require_of_then(verifier, bundle, publication)
    return verifier


def _require_of_then(verifier: Verifier, bundle: Path, publication: Publication | None) -> None:
    """`EvidenceError` where *verifier* is older than the release that made *bundle*."""
    schema = schema_of(Opener(bundle))
    is_of_this = publication is not None and publication.release.sources == sources_sha256()
    made_by = "this release" if is_of_this else f"a release that writes schema {schema}"
    if verifier.schema < schema or (is_of_this and not verifier.is_present):
        what = (
            f"the verifier in the bundle is that of {verifier.release}, and the bundle is made by"
        )
        fix = "believe no page of it: get the bundle again from where it was published"
        raise EvidenceError(f"{what} {made_by}", where=str(bundle / _COPY), fix=fix)


def _require_runs_alone(runs: Path) -> None:
    """`EvidenceError` where something lies beside the runs of a bundle: no command makes it."""
    strays = (
        [path.name for path in sorted(runs.iterdir()) if path.is_file()] if runs.is_dir() else []
    )
    if strays:
        what = f"{excerpt(strays[0], 80)} lies beside the runs: harness publish puts nothing there"
        raise EvidenceError(what, where=str(runs), fix=FIX)


def verifier_of(bundle: Path) -> Verifier:
    """
    Give that of our verifiers of which the folder *bundle* has a copy.

    `EvidenceError` where it has another program in that place.
    """
    copy = Opener(bundle).read(bundle / _COPY, FIX)
    sha256 = hashlib.sha256(copy).hexdigest()
    present = present_verifier()
    if sha256 == present.sha256:
        return present
    if sha256 in former_verifiers():
        return former_verifiers()[sha256]
    what = f"the verifier in the bundle is none of ours: its SHA-256 is {sha256}"
    fix = "do not run it: take harness/publish/verify.py from the project, or use  harness verify"
    raise EvidenceError(what, where=str(bundle / _COPY), fix=fix)


def verify(bundle: Path) -> Verification:
    """
    Check the folder *bundle* by the rules of the version that made it; none of its files is run.

    `EvidenceError` where it is not whole, or its own copy of the verifier is not that of then.
    """
    return verification_by(whole_verifier(bundle), bundle)


def verification_by(verifier: Verifier, bundle: Path) -> Verification:
    """What *verifier* says of the folder *bundle*, which is whole."""
    with TemporaryDirectory(prefix="harness-verify-") as folder:
        program = Path(folder) / _COPY
        program.write_bytes(verifier.text())
        command = [sys.executable, "-I", "-S", str(program), str(bundle.absolute())]
        ended = subprocess.run(command, check=False, capture_output=True, text=True)
    lines = [line.removeprefix(_ERROR) for line in (ended.stdout + ended.stderr).splitlines()]
    return Verification(verifier, lines, ended.returncode == 0)
