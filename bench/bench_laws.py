"""
The laws between records, over each stored run below some folders: what they find and what it costs.

A bundle that is packed is opened where it is kept.  Of each run stand the seconds of the processor
that the laws take, each law that it breaks, and one breach of it; at the end the sums.
"""

import sys
import time

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from harness.base.errors import HarnessError
from harness.core.evaluate.laws import LAWS, Breach, broken_laws
from harness.core.store import Run
from harness.core.store.packed import archive_of, opened
from harness.observe.storage.opener import MANIFEST

PUBLISHED = Path(__file__).parents[1] / "results/published"


def runs_below(folder: Path) -> Iterator[Run]:
    """Every run at any depth below *folder*, analyses and unfinished ones, too."""
    for path in sorted([folder, *folder.rglob("*")]):
        if path.is_dir() and archive_of(path):
            yield from runs_below(opened(path))
        elif path.name == MANIFEST:
            yield Run(path.parent)


def laws_of(run: Run) -> tuple[list[Breach], float]:
    """What the *run* breaks, and the processor's seconds that it took to see."""
    started_s = time.process_time()
    broken = broken_laws(run.measured)
    return broken, time.process_time() - started_s


def main(folders: list[str]) -> None:
    """Print a line for each run below the *folders*, then the sums."""
    seen: set[str] = set()
    found: Counter[str] = Counter()
    for folder in folders or [PUBLISHED]:
        for run in runs_below(Path(folder)):
            if run.path.name in seen:
                continue
            seen.add(run.path.name)
            try:
                trials = len(run.trials())
                broken, took_s = laws_of(run)
            except HarnessError as error:
                print(f"{run.path.name}: cannot be read: {error}")
                continue
            first = {breach.law: breach.what for breach in reversed(broken)}
            found.update(first.keys())
            print(f"{run.path.name}: {trials} trials, {took_s:.2f} s, {len(first)} laws broken")
            for law, what in first.items():
                print(f"  {law}: {what}")
    print(f"{len(seen)} runs, {len(LAWS)} laws: {dict(found) or 'none is broken'}")


if __name__ == "__main__":
    main(sys.argv[1:])
