"""
The pages of a bundle made again from its runs, and compared with those that are there.

By the release that made them, on the same packages, every byte is the same.  With other packages
numbers may have other last digits, and pictures are drawn otherwise: they are not compared, and
that is said.  Another release writes other words, so there is nothing to compare.
"""

from __future__ import annotations

import math
import re
import shutil

from collections import defaultdict
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

from harness.base.text import excerpt
from harness.core.store.compare import Difference
from harness.core.store.sums import REPLICATIONS, SUMS
from harness.observe.storage.opener import Opener
from harness.publish.bundle import published_evaluations, write_pages
from harness.publish.publication import PUBLICATION, Publication, Release

_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
_PICTURES = (".pdf", ".svg", ".png")
_OPTIONAL = ".pdf"
_SUMS_OF = (SUMS, "ro-crate-metadata.json")  # of all other files

# What is not compared where another release, or other packages, made it.
PROFILES = "profiles"
PAGES = "pages"
PICTURES = "pictures"
NOT_COMPARED = "not compared"
# A picture in a page for a browser: drawn, or packed into an address.
_IN_PAGE = re.compile(rb"<svg\b.*?</svg>|data:image/[a-z+]+;base64,[A-Za-z0-9+/=]*", re.DOTALL)
# What draws within its own picture.  Anything else may hide the words of the page, or add others.
_DRAWS = re.compile(
    rb"</?(?:svg|g|path|title|use|text|tspan|defs|rect|pattern|clipPath|circle|ellipse|line"
    rb"|polyline|polygon|marker|desc)(?=[\s/>])(?![^>]*\son[a-z]+\s*=)(?![^>]*href\s*=\s*[\"'][^#])[^>]*>"
)

Compared = tuple[str, list[Difference] | None]  # a stage, and what differs; `None`: not compared


def remade_pages(bundle: Opener, folder: Path, publication: Publication) -> Iterator[Compared]:
    """
    Each kind of page of *bundle*, which this release made, made again in *folder*; what differs.

    Pictures that other packages drew are a kind of their own, and not compared.
    """
    scratch = folder / ".bundle.again"
    shutil.copytree(bundle.root / "runs", scratch / "runs")
    write_pages(published_evaluations(scratch, publication.questions), scratch, publication)
    remade = Opener(scratch)
    changed = changed_packages(publication.release)
    is_exact = not changed
    names_by_kind = defaultdict[str, list[str]](list)
    for name in sorted({*_page_names(bundle), *_page_names(remade)}):
        names_by_kind[name.partition("/")[0] if "/" in name else PAGES].append(name)
    for kind, names in names_by_kind.items():
        differences = list[Difference]()
        for name in names:
            differences += page_differences(bundle, remade, name, is_exact=is_exact)
        yield kind, differences
    if changed:
        yield f"{PICTURES}, drawn with other packages ({', '.join(changed)}): {NOT_COMPARED}", None


def changed_packages(made_by: Release) -> list[str]:
    """Packages of which other versions are here than *made_by* states, with both."""
    present = Release.present().packages
    names = sorted({*present, *made_by.packages})
    versions = {name: (made_by.packages.get(name, ""), present.get(name, "")) for name in names}
    return [
        f"{excerpt(name, 40)} {excerpt(there or 'none', 40)} there, {here or 'none'} here"
        for name, (there, here) in versions.items()
        if there != here
    ]


def _page_names(bundle: Opener) -> Iterator[str]:
    """Names of the files of *bundle* that follow from its runs."""
    for name in bundle.names(bundle.root):
        if name.partition("/")[0] not in ("runs", REPLICATIONS):
            yield name


def page_differences(
    stored: Opener, remade: Opener, name: str, *, is_exact: bool
) -> Iterator[Difference]:
    """What differs between two files *name*; unless *is_exact* digits and pictures may."""
    old = _content(stored, name)
    new = _content(remade, name)
    if old == new:
        return
    if not is_exact and name.endswith(_OPTIONAL) and None in (old, new):
        return  # whoever has no package that typesets makes none
    if old is None or new is None:
        yield Difference("", name, _presence(old), _presence(new), None)
    elif is_exact and name.endswith(_PICTURES):
        yield Difference("", name, f"{len(old)} bytes", f"{len(new)} bytes", None)
    elif is_exact or _has_equal_texts(name):
        if not is_exact and name.endswith(".html"):
            old, new = (_IN_PAGE.sub(_without_drawing, page) for page in (old, new))
        pages = [data.decode(errors="replace") for data in (old, new)]
        yield from _text_differences(name, *pages, tolerance=0.0 if is_exact else 1e-9)


def _without_drawing(picture: re.Match[bytes]) -> bytes:
    """A mark in the place of a *picture*; the picture itself where it does more than to draw."""
    is_drawing = b"<" not in _DRAWS.sub(b"", picture[0])
    return b"[picture]" if is_drawing else picture[0]


def _content(opener: Opener, name: str) -> bytes | None:
    """Bytes of a file of a bundle; `None`: it is not there."""
    path = opener.root / name
    return path.read_bytes() if opener.exists(path) else None


def _presence(content: bytes | None) -> str | None:
    """What a difference says of a file as a whole."""
    return None if content is None else "there"


def _has_equal_texts(name: str) -> bool:
    """Whether other packages make the same words of a file, and numbers but for rounding."""
    return not name.endswith(_PICTURES) and name not in (*_SUMS_OF, PUBLICATION)


def _text_differences(name: str, old: str, new: str, *, tolerance: float) -> Iterator[Difference]:
    """Lines of a page that differ by more than *tolerance* in a number, or in a word."""
    for number, (before, after) in enumerate(
        zip_longest(old.splitlines(), new.splitlines(), fillvalue=""), 1
    ):
        if before != after and not (tolerance and _is_close(before, after, tolerance)):
            shown_before, shown_after = _around_first_difference(before, after)
            yield Difference("", f"{name}:{number}", shown_before, shown_after, None)


def _is_close(before: str, after: str, tolerance: float) -> bool:
    """Whether two lines have the same words, and numbers that differ by a *tolerance* at most."""
    if _NUMBER.split(before) != _NUMBER.split(after):
        return False
    pairs = zip(_NUMBER.findall(before), _NUMBER.findall(after), strict=True)
    return all(_is_near(float(first), float(second), tolerance) for first, second in pairs)


def _is_near(first: float, second: float, tolerance: float) -> bool:
    """Whether two numbers are finite, and differ by a *tolerance* at most."""
    is_finite = math.isfinite(first) and math.isfinite(second)
    return is_finite and abs(first - second) <= tolerance * abs(first)


def _around_first_difference(before: str, after: str) -> tuple[str, str]:
    """The part of two lines where they begin to differ: a line may hold a whole picture."""
    pairs = enumerate(zip(before, after, strict=False))
    at = next(
        (place for place, (old, new) in pairs if old != new),
        min(len(before), len(after)),
    )
    start = max(at - 20, 0)
    return before[start : at + 60], after[start : at + 60]
