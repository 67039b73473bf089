"""
Files of a bundle, whose sums somebody has made anew: for the verifier, the rules and `reproduce`.
"""

from __future__ import annotations

import os
import tarfile

from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from unittest.mock import patch

from harness.base.errors import DataError, HarnessError
from harness.core.store import packed
from harness.core.store.sums import SUMS, check_sums
from harness.observe.storage.opener import Opener
from harness.publish import verify
from harness.publish.data import read_table
from harness.publish.remade import page_differences
from harness.publish.rules import check
from tests.hostile import generate, numbers
from tests.hostile.hunt import Target
from tests.hostile.mutate import mutate
from tests.hostile.whole import sum_again
from tests.hostile.witnesses import JSON, either, replacing

TABLES = tuple(f"{name}.csv" for name in verify.TABLES)
PAGES = ("README.md", "report.md", "system.json", "rules.json")
OF_RUN = ("originals.json", "manifest.json", "predictions/sealed.json", "trials.jsonl")
NAMES = (
    *TABLES,
    *PAGES,
    *(f"bundle-{Path(name).name}" for name in OF_RUN),
    SUMS,
    "bundle.tar.gz",
    "bundle.tar.gz.sha256",
)
RULES_EVERY = 20  # of so many sizes of a file one is also held to the rules
_REFUSED = (HarnessError,)


def bundle_targets(bundle: Path, folder: Path) -> Iterator[Target]:
    """All of them, in a *bundle* that is as it was made."""
    for name in (*(f"data/{table}" for table in TABLES), *PAGES):
        if (bundle / name).is_file():
            yield _of_file(bundle, name)
    (run,) = (bundle / "runs").iterdir()
    for name in OF_RUN:
        yield _of_file(bundle, f"runs/{run.name}/{name}", "bundle-")
    sums = bundle / SUMS

    def read_sums() -> object:
        check_sums(bundle)
        return checked(bundle)

    yield Target(SUMS, (sums.read_bytes(),), replacing(sums, read_sums), _REFUSED)
    yield from _packed(bundle, folder)


def _of_file(bundle: Path, name: str, before: str = "") -> Target:
    """One *name* of the bundle, read by whoever reads a bundle."""
    whole = (bundle / name).read_bytes()
    stored = bundle.with_name("stored")
    (stored / name).parent.mkdir(parents=True, exist_ok=True)
    (stored / name).write_bytes(whole)
    sums = (bundle / SUMS).read_bytes()

    def read(data: bytes) -> object:
        (bundle / name).write_bytes(data)
        sum_again(bundle, name)
        for _ in page_differences(Opener(stored), Opener(bundle), name, is_exact=False):
            pass
        check_again(data)
        try:
            return checked(bundle)
        finally:
            (bundle / name).write_bytes(whole)
            (bundle / SUMS).write_bytes(sums)

    def check_again(data: bytes) -> None:
        """Hold the bundle to its rules, which any of its files may make impossible."""
        if len(data) % RULES_EVERY == 0:
            try:
                if name.startswith("data/"):
                    read_table(Opener(bundle), Path(name).stem)
                check(bundle)
            except HarnessError:
                return
            except BaseException as error:
                raise Unforeseen(f"{type(error).__name__}: {error}") from error

    change = JSON if name.endswith((".json", ".jsonl")) else either(mutate, numbers.in_text)
    return Target(
        f"{before}{Path(name).name}", (whole,), read, _REFUSED, change=change, limit_s=6.0
    )


def checked(bundle: Path) -> object:
    """What the verifier says, which makes one line of any error, and no traceback."""
    try:
        return verify.check(bundle)
    except Exception as error:
        raise DataError(f"{type(error).__name__}: {error}"[: verify.MOST_SHOWN]) from error


class Unforeseen(BaseException):
    """What another reader of a bundle than its verifier did not expect."""


def _packed(bundle: Path, folder: Path) -> Iterator[Target]:
    """A packed bundle, and the sum beside it."""
    place = folder / "packed"
    place.mkdir()
    archive = place / "bundle.tar.gz"
    stream = BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz", compresslevel=1) as tar:
        tar.add(bundle, "bundle")
    archive.write_bytes(stream.getvalue())
    sound = {f"bundle/{name}": (bundle / name).read_bytes() for name in ("README.md", SUMS)}

    def read() -> object:
        with patch.dict(os.environ, {"XDG_CACHE_HOME": str(folder / "cache")}):
            opened = packed.opened(place)
            packed.remove_tree(folder / "cache")
        return opened

    made = generate.mixed(generate.tar_or_zip(sound), 0.02)
    yield Target(
        "bundle.tar.gz",
        (archive.read_bytes(),),
        replacing(archive, read),
        (HarnessError,),
        change=either(mutate, lambda _, __, random: made(random)),
    )
    sums = place / "bundle.tar.gz.sha256"
    sums.write_text(f"{packed._sha256(archive)}  bundle.tar.gz\n{'ab' * 32}  evidence/x.tar.gz\n")

    def read_sum() -> object:
        return packed._check_sums(archive, packed._sha256(archive))

    yield Target(sums.name, (sums.read_bytes(),), replacing(sums, read_sum), (DataError,))
    sums.unlink()
