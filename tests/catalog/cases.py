"""Histories of other clusters, as `tests/catalog/data/README.md` lists them."""

import tarfile

from pathlib import Path

DATA = Path(__file__).parent / "data"


def unpacked(case, folder):
    """
    The folder of a *case*, below *folder*.
    """
    with tarfile.open(DATA / f"{case}.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return folder / case
