"""Measures real Hadoop clusters and scores what performance models predicted of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.api.run import Run

__version__ = "0.1.0"  # the one place: the build reads it (pyproject.toml), and `harness --version`


def open(run: str | Path, results_dir: str | Path = "results") -> Run:  # noqa: A001
    """
    Open a run: its folder, that of its experiment (the newest one), of an analysis, or its id.

    An id, or its first characters, is looked up under *results_dir*.  `DataError` (of
    `harness.errors`) says what there is where none is meant, or several are.
    """
    from harness.api.run import Run
    from harness.evaluate.flow import Evaluation
    from harness.store import Store

    return Run(Evaluation.of(Store(Path(results_dir)).find(str(run))))
