"""
The packed form of a bundle: one archive, which is never written anew, its sum, and copies.

The copies are what a reader wants to see first: the page of the bundle, its rules, one figure.
"""

from __future__ import annotations

import gzip
import hashlib

from collections.abc import Iterator
from pathlib import Path

from harness.base.errors import EvidenceError
from harness.clusters.archives import pack as write_archive
from harness.core.store.packed import ARCHIVE, SUM_ENDING
from harness.observe.storage.opener import Opener
from harness.publish.rules import RULES_FILE

_README = "README.md"
_TOP = "bundle"  # the folder that the archive unpacks into
_PREFACE = f"""\
> A bundle in one file: `tar xzf {ARCHIVE}` unpacks it into `{_TOP}/`, where the commands below are
> to be given. `harness reproduce`, `harness compare` and `harness publish --check` take this folder
> as it is. `{ARCHIVE}{SUM_ENDING}` has the sum of the archive; all else here is copied from it.

"""


def pack(bundle: Path, folder: Path) -> Path:
    """Write the packed form of *bundle* into the new *folder*, which is given back."""
    names = sorted(Opener(bundle).names(bundle))
    folder.mkdir()
    archive = folder / ARCHIVE
    with archive.open("xb") as file, gzip.GzipFile("", "wb", fileobj=file, mtime=0) as stream:
        entries = {f"{_TOP}/{name}": bundle / name for name in names}
        write_archive(entries, stream)  # type: ignore[arg-type]  # it writes alone
    sha256 = hashlib.sha256(archive.read_bytes()).hexdigest()
    (folder / f"{ARCHIVE}{SUM_ENDING}").write_text(f"{sha256}  {ARCHIVE}\n", encoding="utf-8")
    for name in copied_names(bundle):
        preface = _PREFACE if name == _README else ""
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(preface.encode() + (bundle / name).read_bytes())
    return folder


def copied_names(bundle: Path) -> Iterator[str]:
    """Names of the files of *bundle* that lie beside its archive, too: of its figures one."""
    yield from (_README, RULES_FILE)
    figures = sorted((bundle / "figures").glob("predicted*.svg"))
    yield from (f"figures/{figure.name}" for figure in figures[:1])


def check_copies(folder: Path, bundle: Path) -> None:
    """`EvidenceError` names what in *folder*, with an archive of *bundle*, is no copy from it."""
    opener = Opener(folder)
    for name in copied_names(bundle):
        if (folder / name).exists():
            copied = opener.read(folder / name, "")
            original = (bundle / name).read_bytes()
            is_same = copied.endswith(original) if name == _README else copied == original
            if not is_same:
                what = f"it is not as {ARCHIVE} beside it has it"
                fix = "believe what is in the archive, or get both again"
                raise EvidenceError(what, where=str(folder / name), fix=fix)
