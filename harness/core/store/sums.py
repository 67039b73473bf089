"""The sums of a bundle: the SHA-256 of each file, as it was published."""

from __future__ import annotations

import re

from pathlib import Path

from harness.base.errors import DataError, EvidenceError
from harness.base.text import excerpt
from harness.core.store.evidence import differences
from harness.observe.storage.opener import Opener

SUMS = "SHA256SUMS"
REPLICATIONS = "replications"
_MOST_SHOWN = 12


def bundle_hashes(folder: Path) -> dict[str, str]:
    """SHA-256 of every file of a bundle but the sums themselves and what was added to it since."""
    hashes = Opener(folder).hashes(folder)
    return {name: hashes[name] for name in sorted(hashes) if is_summed(name)}


def is_summed(name: str) -> bool:
    """
    Whether the sums have the file *name* of a bundle: not themselves, nor what was added since.

    >>> is_summed("replications/one/replication.json"), is_summed("replications-2/one.json")
    (False, True)
    """
    first, separator, _ = name.partition("/")
    is_added = first == REPLICATIONS and separator != ""
    return name != SUMS and not is_added


def write_sums(folder: Path) -> None:
    """Write `SHA256SUMS` of the bundle in *folder*."""
    lines = [f"{sha}  {name}\n" for name, sha in bundle_hashes(folder).items()]
    (folder / SUMS).write_text("".join(lines), encoding="utf-8")


def check_sums(folder: Path) -> None:
    """`EvidenceError` names the files that are not as `SHA256SUMS` of the bundle has them."""
    fix = f"name the folder of a bundle, in which {SUMS} lies; if it is one, get it again from"
    fix += " where it was published"
    content = Opener(folder).read(folder / SUMS, fix).decode(errors="replace")
    if not re.fullmatch(r"([0-9a-f]{64}  [^\n]{1,400}\n)*", content):
        raise DataError(f"{SUMS} is not a list of sums", where=str(folder / SUMS), fix=fix)
    stated = {name: sha for sha, _, name in (line.partition("  ") for line in content.splitlines())}
    if changes := differences(stated, bundle_hashes(folder)):
        shown = [f"  {excerpt(change, 200)}" for change in changes[:_MOST_SHOWN]]
        more = [f"  and {len(changes) - _MOST_SHOWN} more"] * (len(changes) > _MOST_SHOWN)
        what = "\n".join(["the bundle is not as it was published:", *shown, *more])
        raise EvidenceError(what, where=str(folder / SUMS), fix=fix)
