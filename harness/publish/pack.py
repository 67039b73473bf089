"""
The packed form of a bundle: an archive, another one of each run's evidence, sums, and copies.

Evidence is packed once: a bundle that is published again has the same archive of it.  The copies
are what a reader wants to see first: the page of the bundle, its rules, one figure.
"""

from __future__ import annotations

import gzip
import shutil

from collections.abc import Iterator, Mapping
from pathlib import Path

from harness.base.errors import EvidenceError
from harness.clusters.archives import pack as write_archive
from harness.core.store.packed import ARCHIVE, EVIDENCE, PARTS, SUM_ENDING, evidence_of
from harness.core.store.published import WITH_EVIDENCE, level_of
from harness.observe.storage.files import folders
from harness.observe.storage.opener import Opener
from harness.publish.rules import RULES_FILE

_README = "README.md"
_TOP = "bundle"  # the folder that the archive unpacks into
_PREFACE = f"""\
> A packed bundle: `tar xzf {ARCHIVE}` unpacks it into `{_TOP}/`, where the commands below are to be
> given, and each archive in `{EVIDENCE}/`, where there is one, goes there in the same way.
> `harness reproduce`, `harness compare` and `harness publish --check` take this folder as it is.
> `{ARCHIVE}{SUM_ENDING}` has the sums of the archives; all else here is copied from the first one.

"""


def pack(bundle: Path, folder: Path, earlier: Path | None = None) -> Path:
    """
    Write the packed form of *bundle* into the new *folder*, which is given back.

    Archives of evidence that lie in the folder *earlier*, of the same trials, are copied.
    """
    archives = names_by_archive(bundle)
    folder.mkdir()
    sums = ""
    for archive, names in archives.items():
        (folder / archive).parent.mkdir(exist_ok=True)
        kept = earlier and earlier / archive
        if kept and archive != ARCHIVE and kept.is_file():
            shutil.copyfile(kept, folder / archive)
        else:
            _write_archive(folder / archive, {f"{_TOP}/{name}": bundle / name for name in names})
        sums += f"{Opener(folder).sha256(folder / archive)}  {archive}\n"
    (folder / f"{ARCHIVE}{SUM_ENDING}").write_text(sums, encoding="utf-8")
    for name in copied_names(bundle):
        preface = _PREFACE if name == _README else ""
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(preface.encode() + (bundle / name).read_bytes())
    return folder


def names_by_archive(bundle: Path) -> dict[str, list[str]]:
    """Names of the files of *bundle* by the archive that has them, that of the bundle first."""
    names = sorted(Opener(bundle).names(bundle))
    archives = {ARCHIVE: names}
    for run in folders(bundle / "runs"):
        if level_of(Opener(run)) in WITH_EVIDENCE:
            parts = tuple(f"runs/{run.name}/{part}/" for part in PARTS)
            archives[evidence_of(run.name)] = [name for name in names if name.startswith(parts)]
            archives[ARCHIVE] = [name for name in archives[ARCHIVE] if not name.startswith(parts)]
    return archives


def _write_archive(path: Path, entries: Mapping[str, Path]) -> None:
    """Write the archive *path* of *entries*: equal content, equal bytes."""
    with path.open("xb") as file, gzip.GzipFile("", "wb", fileobj=file, mtime=0) as stream:
        write_archive(entries, stream)  # type: ignore[arg-type]  # it writes alone


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
