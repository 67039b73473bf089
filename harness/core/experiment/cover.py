"""
Which cells to profile, so that those which are scored lie within what was profiled.

A scored cell is *extrapolated* where no profiling cell of its workload has one of its regimes, or
where it lies outside of their ranges.  ``profile_on: auto`` chooses the profiling cells
(`harness.base.stats.cover`).  Nothing is drawn: the same grid has the same choice on every machine
and in every night.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from harness.base.documents.wording import count
from harness.base.errors import SpecError
from harness.base.records.ranges import Numbers, Ranges, axis_numbers, outside_axes, ranges_of
from harness.base.records.regimes import in_order, regimes_of
from harness.base.stats.cover import Group, NothingWithinError, choose_items
from harness.base.stats.resampling import FEWEST_CELLS
from harness.clusters.workloads.resolved import ResolvedCell
from harness.core.experiment.model import Experiment

WHERE = "predict.profile_on"
LARGEST_SHARE = 1 / 3  # of the run's time, for profiling
ENOUGH_CELLS = 9  # of a workload: predictions have intervals of 90 %
_FIX = "give an axis more values, or name the cells: profile_on: {AXIS: [VALUE, ...]}"


class Situation(NamedTuple):
    """What of a *cell* is to be profiled: its *regimes*, and its *numbers* by axis."""

    cell: ResolvedCell
    regimes: frozenset[str]
    numbers: Numbers

    @classmethod
    def of(cls, cell: ResolvedCell) -> Situation:
        """That of *cell*."""
        inputs = cell.model_inputs
        return cls(cell, regimes_of(*inputs), axis_numbers(cell.cell, inputs[2]))


class Covered(NamedTuple):
    """
    What the profiling cells of a *workload* cover.

    *profiling* are their ids, *regimes* the names of those that they have, in order, *scored* the
    ids of the others.  *lacking* names for each of these that is extrapolated the regimes that none
    of them has, and the axes on which it lies outside of their ranges.
    """

    workload: str
    profiling: tuple[str, ...]
    regimes: tuple[str, ...]
    scored: tuple[str, ...]
    lacking: Mapping[str, tuple[str, ...]]

    @property
    def is_of_no_use(self) -> bool:
        """Whether cells are scored, and all of them are extrapolated."""
        return bool(self.scored) and len(self.lacking) == len(self.scored)

    @property
    def lacks(self) -> str:
        """What is not covered, each with the number of scored cells that it is of."""
        numbers = Counter(chain.from_iterable(self.lacking.values()))
        return ", ".join(f"{name} ({count(number, 'cell')})" for name, number in numbers.items())


def no_cells_error(workload: str, cell_count: int) -> SpecError:
    """No profiling cells are found among the cells of a *workload*."""
    what = (
        f"profile_on: auto finds no profiling cells among {count(cell_count, 'cell')} of"
        f" {workload}: what covers their regimes and ranges takes more than a third of the run's"
        " time, or leaves none to be scored"
    )
    return SpecError(what, where=WHERE, fix=_FIX)


def lacks_of(situation: Situation, regimes: frozenset[str], ranges: Ranges) -> tuple[str, ...]:
    """What a *situation* has that is not among the profiled *regimes* and *ranges*."""
    axes = outside_axes(situation.numbers, ranges)
    missing_regimes = in_order(situation.regimes - regimes)
    return (*missing_regimes, *(f"range of {axis}" for axis in axes))


def covered_by(cells: Iterable[ResolvedCell], profiling: Collection[str]) -> Iterator[Covered]:
    """Yield what the cells of the ids *profiling* cover of each workload of *cells*."""
    by_workload = defaultdict[str, list[Situation]](list)
    for cell in cells:
        by_workload[cell.spec.name].append(Situation.of(cell))
    for workload, situations in by_workload.items():
        profiled = [situation for situation in situations if situation.cell.id in profiling]
        scored = [situation for situation in situations if situation.cell.id not in profiling]
        regimes = all_regimes(profiled)
        ranges = ranges_of(situation.numbers for situation in profiled)
        lacks = {situation.cell.id: lacks_of(situation, regimes, ranges) for situation in scored}
        yield Covered(
            workload,
            profiling=tuple(situation.cell.id for situation in profiled),
            regimes=tuple(in_order(regimes)),
            scored=tuple(situation.cell.id for situation in scored),
            lacking={cell_id: missing for cell_id, missing in lacks.items() if missing},
        )


def all_regimes(situations: Iterable[Situation]) -> frozenset[str]:
    """Regimes that one of *situations* has at least."""
    return frozenset[str]().union(*(situation.regimes for situation in situations))


# The choice


class Times(NamedTuple):
    """
    Seconds that work is expected to take: of each cell, by its id, a trial and making its input.

    *start_s* passes from the start of a cluster to its first counted trial.
    """

    trial_s: Mapping[str, float]
    generation_s: Mapping[str, float]
    start_s: float

    def of_setups(self, cells: Iterable[ResolvedCell]) -> dict[str, float]:
        """
        What passes before trials of *cells*: starts of clusters, and making of inputs there.

        The cluster of all of them starts for the scored ones, too: that takes profiling no time.
        """
        clusters = set[str]()
        setup_s = dict[str, float]()
        for cell in cells:
            cluster, made_input = setups_of(cell)
            clusters.add(cluster)
            setup_s[made_input] = self.generation_s[cell.id]
        start_s = self.start_s if len(clusters) > 1 else 0.0
        return setup_s | dict.fromkeys(clusters, start_s)


def setups_of(cell: ResolvedCell) -> tuple[str, str]:
    """What has to be there before a trial of *cell*: its cluster, and its input on that."""
    cluster = cell.cell.cluster.id
    return cluster, f"{cluster} {cell.spec.model_dump_json()}"


def choose_cells(
    experiment: Experiment, cells: Sequence[ResolvedCell], times: Times
) -> tuple[str, ...]:
    """
    Ids of those of *cells* that are profiled for ``profile_on: auto``, in the order of the grid.

    Profiling takes at most a third of what all *cells* take by *times*.  Where the whole grid
    cannot be covered within that, its dearest cells are left to be extrapolated.  `SpecError`: no
    cell of a workload would be scored within what was profiled.
    """
    by_workload = defaultdict[str, list[Situation]](list)
    for cell in cells:
        if cell.spec.name not in experiment.nightly.controls:
            by_workload[cell.spec.name].append(Situation.of(cell))
    repeats = experiment.profiling_repeats
    groups = [
        group_of(
            name,
            situations,
            [repeats * times.trial_s[situation.cell.id] for situation in situations],
        )
        for name, situations in by_workload.items()
    ]
    setup_s = times.of_setups(cells)
    trials_s = experiment.first_repeats * sum(times.trial_s[cell.id] for cell in cells)
    budget_s = LARGEST_SHARE * (trials_s + sum(setup_s.values()))
    try:
        places = choose_items(
            groups, setup_s, budget_s, enough=ENOUGH_CELLS, fewest_left=FEWEST_CELLS
        )
    except NothingWithinError as error:
        raise no_cells_error(error.group, len(by_workload[error.group])) from error
    chosen = {by_workload[name][place].cell.id for name, row in places.items() for place in row}
    return tuple(cell.id for cell in cells if cell.id in chosen)


def group_of(workload: str, situations: Sequence[Situation], seconds: Sequence[float]) -> Group:
    """The cells of a *workload* as items of a grid, each of which takes so many *seconds*."""
    import numpy as np

    names = in_order(all_regimes(situations))
    axes = sorted({axis for situation in situations for axis in situation.numbers})
    flags = [[name in situation.regimes for name in names] for situation in situations]
    rows = [[situation.numbers.get(axis, np.nan) for axis in axes] for situation in situations]
    numbers = np.array(rows, dtype=np.float64)
    return Group(
        name=workload,
        flags=np.array(flags, dtype=bool),
        numbers=np.where(np.isfinite(numbers), numbers, np.nan),
        seconds=np.array(seconds),
        setups=[setups_of(situation.cell) for situation in situations],
    )
