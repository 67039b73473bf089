"""
Sentinels: profiling cells that are measured again among the scored ones, and never scored.

What separates their times from those that fed the profiles is no model's: the machine was slower
or faster when the scored trials ran.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from harness.base.errors import SpecError
from harness.base.records.trial import Cell, Trial, Versions, digest
from harness.core.experiment.model import Experiment


def require_sentinels(experiment: Experiment) -> None:
    """`SpecError` where *experiment* asks for sentinels that nothing could be compared with."""
    if not experiment.sentinels:
        return
    what = ""
    if experiment.sentinels == 1:
        what = "sentinels: 1 leaves no trial to be scored"
    elif experiment.predict.source:
        what = "sentinels repeat profiling cells, and the profiles are another run's"
    elif not experiment.predict.is_blind:
        what = "sentinels repeat profiling cells, which are not measured before the others here"
    if what:
        raise SpecError(what, where="sentinels", fix="write sentinels: 6, or leave it out")


def with_sentinels(
    trials: Sequence[Trial], one_in: int, seed: int, versions: Versions
) -> Iterator[Trial]:
    """
    Yield *trials* in their order, and sentinels among the scored ones: of so many trials one.

    Each start of a cluster on which a profiling cell runs has one at least; they lie at equal
    distances, and which cell each repeats is drawn by *seed*.  Its repetitions go on.
    """
    by_cluster = profiling_cells(trials)
    repetitions = Counter(trial.cell.id for trial in trials)
    sentinel_number = 0
    for (cluster, use), group in groupby(
        trials, key=lambda trial: (trial.cell.cluster.id, trial.use)
    ):
        planned = [*group]
        cells = by_cluster.get(cluster, []) if use == "score" else []
        if not cells:
            yield from planned
            continue
        places = sentinel_places(len(planned), one_in)
        for place, trial in enumerate(planned):
            for _ in range(places[place]):
                cell = drawn_cell(cells, sentinel_number, seed)
                yield Trial.of(cell, repetitions[cell.id], versions, sentinel=True)
                repetitions[cell.id] += 1
                sentinel_number += 1
            yield trial


def profiling_cells(trials: Sequence[Trial]) -> Mapping[str, list[Cell]]:
    """Cells that feed profiles, by the id of their cluster, each once."""
    found = defaultdict[str, dict[str, Cell]](dict)
    for trial in trials:
        if trial.use == "profile":
            found[trial.cell.cluster.id][trial.cell.id] = trial.cell
    return {cluster: [cells[key] for key in sorted(cells)] for cluster, cells in found.items()}


def sentinel_places(scored: int, one_in: int) -> Counter[int]:
    """
    How many sentinels run before each of so many scored trials of a start: one at least.

    >>> sentinel_places(12, 6), sentinel_places(2, 6)
    (Counter({3: 1, 9: 1}), Counter({1: 1}))
    """
    count = max(1, round(scored / (one_in - 1)))
    return Counter(int((number + 0.5) * scored / count) for number in range(count))


def drawn_cell(cells: Sequence[Cell], number: int, seed: int) -> Cell:
    """Which of *cells* the sentinel of this *number* repeats: all of them in turn, mixed."""
    lap, place = divmod(number, len(cells))
    mixed = sorted(cells, key=lambda cell: digest([seed, "sentinel", lap, cell.id]))
    return mixed[place]
