"""
Sentinels: profiling cells that are measured again among the scored ones, and never scored.

What separates their times from those that fed the profiles is no model's: the machine was slower
or faster when the scored trials ran.  Where the profiles are another run's, it has measured these
cells, and here they control the hour.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from harness.base.errors import SpecError
from harness.base.records.trial import Cell, Trial, Versions, digest
from harness.core.experiment.model import Experiment

ADDED = "a sentinel: it tells the hour of the trials that were added with it"


def require_sentinels(experiment: Experiment) -> None:
    """`SpecError` where *experiment* asks for sentinels that nothing could be compared with."""
    if not experiment.sentinels:
        return
    what = ""
    if experiment.sentinels == 1:
        what = "sentinels: 1 leaves no trial to be scored"
    elif experiment.predict.hardware:
        what = "sentinels tell hours of one machine apart, and the profiles are another machine's"
    elif experiment.predict.source and not experiment.predict.profile_on:
        what = "sentinels repeat profiling cells, and profile_on names none of the other run's"
    elif not experiment.predict.is_blind:
        what = "sentinels repeat profiling cells, which are not measured before the others here"
    if what:
        raise SpecError(what, where="sentinels", fix="write sentinels: 6, or leave it out")


def with_sentinels(
    trials: Sequence[Trial],
    profiling: Iterable[Cell],
    experiment: Experiment,
    versions: Versions,
    earlier: Iterable[Trial] = (),
) -> Iterator[Trial]:
    """
    Yield *trials* in their order, and sentinels among the scored ones: of so many trials one.

    Each start of a cluster that has a *profiling* cell has one at least; they lie at equal
    distances, and which cell each repeats is drawn by the seed.  Its repetitions go on behind those
    of the profile, also where these are another run's, and behind those of *earlier* trials.
    """
    by_cluster = cells_by_cluster(profiling)
    repetitions = Counter(trial.cell.id for trial in earlier if trial.sentinel)
    sentinel_number = repetitions.total()
    for (cluster, use), group in groupby(
        trials, key=lambda trial: (trial.cell.cluster.id, trial.use)
    ):
        planned = [*group]
        cells = by_cluster.get(cluster, []) if use == "score" else []
        if not cells:
            yield from planned
            continue
        places = sentinel_places(len(planned), experiment.sentinels)
        for place, trial in enumerate(planned):
            for _ in range(places[place]):
                cell = drawn_cell(cells, sentinel_number, experiment.seed)
                repetition = experiment.profiling_repeats + repetitions[cell.id]
                yield Trial.of(
                    cell,
                    repetition,
                    versions,
                    sentinel=True,
                    look=trial.look,
                    reason=ADDED if trial.look else "",
                )
                repetitions[cell.id] += 1
                sentinel_number += 1
            yield trial


def cells_by_cluster(cells: Iterable[Cell]) -> Mapping[str, list[Cell]]:
    """*cells* by the id of their cluster, each once, in the order of their own."""
    found = defaultdict[str, dict[str, Cell]](dict)
    for cell in cells:
        found[cell.cluster.id][cell.id] = cell
    return {cluster: [by_id[key] for key in sorted(by_id)] for cluster, by_id in found.items()}


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
