"""Measures real Hadoop clusters and scores what performance models predicted of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from harness.base.version import __version__

if TYPE_CHECKING:
    from harness.api.run import Run

__all__ = ["__version__", "open"]


def open(run: str | Path, results_dir: str | Path = "results") -> Run:  # noqa: A001
    """
    Open a run: its folder, that of its experiment (the newest one), of an analysis, or its id.

    An id, or its first characters, is looked up under *results_dir*.  `DataError` (of
    `harness.base.errors`) says what there is where none is meant, or several are.
    """
    from harness.api.run import Run
    from harness.core.evaluate.flow import Evaluation
    from harness.core.store import Store

    return Run(Evaluation.of(Store(Path(results_dir)).find(str(run))))
