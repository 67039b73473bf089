"""
Which cells to profile, so that those which are scored lie within what was profiled.

A scored cell is *extrapolated* where no profiling cell of its workload has one of its regimes, or
where it lies outside of their ranges.  ``profile_on: auto`` chooses the profiling cells: first the
cheapest that cover all regimes and both ends of each range, then those that tell most of what a
cell costs (greedy D-optimal design, `harness.base.stats.design`).  Nothing is drawn: the same grid
has the same choice on every machine and in every night.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from harness.base.documents.wording import count
from harness.base.errors import SpecError
from harness.base.records.ranges import Numbers, axis_numbers, outside_axes, ranges_of
from harness.base.records.regimes import in_order, regimes_of
from harness.base.stats.design import choose
from harness.base.stats.resampling import FEWEST_CELLS
from harness.clusters.workloads.resolved import ResolvedCell
from harness.core.experiment.model import Experiment

if TYPE_CHECKING:
    import numpy as np

    from numpy.typing import NDArray

    Matrix = NDArray[np.float64]
    Flags = NDArray[np.bool_]

WHERE = "predict.profile_on"
LARGEST_SHARE = 1 / 3  # of the run's time, for profiling
ENOUGH_CELLS = 9  # of a workload: predictions have intervals of 90 %
_KNOWN_BEFORE = 1e-3  # information on each coefficient before any cell, so that there is a volume
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


def covered_by(cells: Iterable[ResolvedCell], profiling: Collection[str]) -> Iterator[Covered]:
    """Yield what the cells of the ids *profiling* cover of each workload of *cells*."""
    by_workload = defaultdict[str, list[Situation]](list)
    for cell in cells:
        by_workload[cell.spec.name].append(Situation.of(cell))
    for workload, situations in by_workload.items():
        profiled = [each for each in situations if each.cell.id in profiling]
        scored = [each for each in situations if each.cell.id not in profiling]
        regimes = all_regimes(profiled)
        ranges = ranges_of(each.numbers for each in profiled)
        lacking = {}
        for situation in scored:
            missing = in_order(situation.regimes - regimes)
            missing += [f"range of {axis}" for axis in outside_axes(situation.numbers, ranges)]
            if missing:
                lacking[situation.cell.id] = tuple(missing)
        yield Covered(
            workload,
            profiling=tuple(each.cell.id for each in profiled),
            regimes=tuple(in_order(regimes)),
            scored=tuple(each.cell.id for each in scored),
            lacking=lacking,
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
        """What passes before trials of *cells*: starts of clusters, and making of inputs there."""
        setups = dict[str, float]()
        for cell in cells:
            cluster, made_input = setups_of(cell)
            setups[cluster] = self.start_s
            setups[made_input] = self.generation_s[cell.id]
        return setups


def setups_of(cell: ResolvedCell) -> tuple[str, str]:
    """What has to be there before a trial of *cell*: its cluster, and its input on that."""
    cluster = cell.cell.cluster.id
    return cluster, f"{cluster} {cell.spec.model_dump_json()}"


@dataclass(frozen=True)
class _Workload:
    """The cells of a *workload* that may be profiled, and the *seconds* of all trials of each."""

    workload: str
    situations: Sequence[Situation]
    seconds: Matrix

    def marks(self, targets: Flags) -> Flags:
        """
        What is to be covered, so that all *targets* lie within: a row for each cell.

        There is a column for each regime of theirs, and for each end of an axis.
        """
        import numpy as np

        regimes = self.regimes[:, self.regimes[targets].any(axis=0)]
        within = self.numbers[targets]
        is_lowest = self.numbers == np.fmin.reduce(within, axis=0)
        is_highest = self.numbers == np.fmax.reduce(within, axis=0)
        marks: Flags = np.concatenate([regimes, is_lowest, is_highest], axis=1)
        return marks & targets[:, None]

    @cached_property
    def regimes(self) -> Flags:
        """Whether each cell has each of the regimes that occur."""
        import numpy as np

        names = in_order(all_regimes(self.situations))
        rows = [[name in each.regimes for name in names] for each in self.situations]
        return np.array(rows, dtype=bool)

    @cached_property
    def numbers(self) -> Matrix:
        """Number of each cell on each axis, NaN where it has none that is finite."""
        import numpy as np

        axes = sorted({axis for each in self.situations for axis in each.numbers})
        rows = [[each.numbers.get(axis, np.nan) for axis in axes] for each in self.situations]
        numbers: Matrix = np.array(rows, dtype=np.float64)
        return np.where(np.isfinite(numbers), numbers, np.nan)

    @cached_property
    def information(self) -> Matrix:
        """
        What each cell tells of the coefficients of a cell's cost (n x p x p).

        They are a constant, one for each axis that varies, and one for each regime that does.
        """
        import numpy as np

        spans = np.ptp(self.numbers, axis=0)
        varied = self.numbers[:, spans > 0]
        scaled = (varied - varied.min(axis=0)) / spans[spans > 0]
        in_some = self.regimes[:, ~self.regimes.all(axis=0)].astype(np.float64)
        rows = np.concatenate([np.ones((len(varied), 1)), scaled, in_some], axis=1)
        found: Matrix = rows[:, :, None] * rows[:, None, :]
        return found


@dataclass(frozen=True)
class _Choice:
    """
    Cells chosen so far: of each of the *workloads* their places in it.

    *setups* are the seconds of what they have before their trials, of those of all cells.
    """

    workloads: Sequence[_Workload]
    setups: Mapping[str, float]
    places: Mapping[str, list[int]]

    @classmethod
    def empty(cls, workloads: Sequence[_Workload], setups: Mapping[str, float]) -> _Choice:
        """One of no cell."""
        return cls(workloads, setups, {each.workload: [] for each in workloads})

    def chosen(self, workload: _Workload) -> list[int]:
        """Places of the cells of *workload* that are chosen; to be changed by who chooses."""
        return self.places[workload.workload]

    @property
    def set_up(self) -> set[str]:
        """Clusters that are started for chosen cells, and inputs that are made for them."""
        cells = [each.situations[at].cell for each in self.workloads for at in self.chosen(each)]
        return {*chain.from_iterable(map(setups_of, cells))}

    @property
    def spent_s(self) -> float:
        """What profiling takes."""
        trials_s = sum(float(each.seconds[self.chosen(each)].sum()) for each in self.workloads)
        return trials_s + sum(self.setups[name] for name in self.set_up)

    def costs(self, workload: _Workload) -> Matrix:
        """Seconds that each cell of *workload* would add, with what has to be set up for it."""
        import numpy as np

        is_there = self.set_up
        further_s = [
            sum(self.setups[name] for name in setups_of(situation.cell) if name not in is_there)
            for situation in workload.situations
        ]
        costs: Matrix = workload.seconds + np.array(further_s)
        return costs


def choose_cells(
    experiment: Experiment, cells: Sequence[ResolvedCell], times: Times
) -> tuple[str, ...]:
    """
    Ids of those of *cells* that are profiled for ``profile_on: auto``, in the order of the grid.

    Profiling takes at most a third of what all *cells* take by *times*.  Where the whole grid
    cannot be covered within that, its dearest cells are left to be extrapolated.  `SpecError`: no
    cell of a workload would be scored within what was profiled.
    """
    import numpy as np

    controls = experiment.nightly.controls
    repeats = max(experiment.repeat, experiment.first_repeats)
    by_workload = defaultdict[str, list[Situation]](list)
    for cell in cells:
        if cell.spec.name not in controls:
            by_workload[cell.spec.name].append(Situation.of(cell))
    workloads = [
        _Workload(name, row, np.array([repeats * times.trial_s[each.cell.id] for each in row]))
        for name, row in by_workload.items()
    ]
    setups = times.of_setups(cells)
    trials_s = experiment.first_repeats * sum(times.trial_s[cell.id] for cell in cells)
    budget_s = LARGEST_SHARE * (trials_s + sum(setups.values()))
    targets = {each.workload: np.ones(len(each.situations), dtype=bool) for each in workloads}
    choice = _cover_within(workloads, targets, setups, budget_s)
    _fill(choice, targets, budget_s)
    chosen = {each.situations[place].cell.id for each in workloads for place in choice.chosen(each)}
    return tuple(cell.id for cell in cells if cell.id in chosen)


def _cover_within(
    workloads: Sequence[_Workload],
    targets: Mapping[str, Flags],
    setups: Mapping[str, float],
    budget_s: float,
) -> _Choice:
    """
    Cover *targets*, and leave out the dearest of them until that takes no more than *budget_s*.

    *targets* are changed.  Each workload keeps a target that is not profiled itself.
    """
    while True:
        choice = _Choice.empty(workloads, setups)
        for workload in workloads:
            _cover(choice, workload, targets[workload.workload])
        used_up = [
            workload
            for workload in workloads
            if len(choice.chosen(workload)) == targets[workload.workload].sum()
        ]
        if not used_up and choice.spent_s <= budget_s:
            return choice
        reducible = [each for each in workloads if targets[each.workload].sum() > 2]
        workload, place = _dearest(choice, used_up or reducible or workloads)
        targets[workload.workload][place] = False
        if targets[workload.workload].sum() < 2:
            raise _too_small_error(workload)


def _dearest(choice: _Choice, workloads: Sequence[_Workload]) -> tuple[_Workload, int]:
    """The chosen cell of *workloads* that takes longest: its workload, and its place there."""
    chosen = [(workload, place) for workload in workloads for place in choice.chosen(workload)]
    return max(chosen, key=lambda entry: float(entry[0].seconds[entry[1]]))


def _cover(choice: _Choice, workload: _Workload, targets: Flags) -> None:
    """
    Choose of *targets* the cell that covers most for each second, until all is covered.

    What others cover, too, is taken back then, the dearest cell first: a cheap cell that was chosen
    early is often of no use beside the one that ends a range.
    """
    import numpy as np

    marks = workload.marks(targets)
    chosen = choice.chosen(workload)
    left = marks.any(axis=0)
    while left.any():
        gains = marks[:, left].sum(axis=1) / choice.costs(workload)
        chosen.append(int(np.argmax(gains)))
        left &= ~marks[chosen[-1]]
    for place in sorted(chosen, key=lambda place: -float(workload.seconds[place])):
        others = [other for other in chosen if other != place]
        if not (marks[place] & ~marks[others].any(axis=0)).any():
            chosen.remove(place)


def _fill(choice: _Choice, targets: Mapping[str, Flags], budget_s: float) -> None:
    """
    Add the cells that narrow most, of the workload with the fewest in turn, within *budget_s*.

    None is added beyond `ENOUGH_CELLS` or half of a workload's cells, nor where a mean over the
    cells that are left would have no interval.
    """
    left_count = sum(int(each.sum()) for each in targets.values())
    left_count -= sum(map(len, choice.places.values()))
    open_workloads = [*choice.workloads]
    while open_workloads and left_count > FEWEST_CELLS:
        workload = min(open_workloads, key=lambda each: len(choice.chosen(each)))
        place = _next_place(choice, workload, targets[workload.workload], budget_s)
        if place is None:
            open_workloads.remove(workload)
        else:
            choice.chosen(workload).append(place)
            left_count -= 1


def _next_place(
    choice: _Choice, workload: _Workload, targets: Flags, budget_s: float
) -> int | None:
    """Place of the further cell of *workload* that narrows most; `None` where there is none."""
    import numpy as np

    chosen = choice.chosen(workload)
    if len(chosen) >= min(ENOUGH_CELLS, int(targets.sum()) // 2):
        return None
    is_offered = targets.copy()
    is_offered[chosen] = False
    offered = np.flatnonzero(is_offered)
    information = workload.information
    gathered = information[chosen].sum(axis=0) + _KNOWN_BEFORE * np.eye(information.shape[1])
    seconds = choice.costs(workload)[offered]
    best = next(choose(gathered, information[offered], seconds, budget_s - choice.spent_s), None)
    return None if best is None else int(offered[best[0]])


def _too_small_error(workload: _Workload) -> SpecError:
    """The error where no cell of *workload* would be scored within what is profiled."""
    cells = count(len(workload.situations), "cell")
    what = (
        f"profile_on: auto finds no profiling cells among {cells} of {workload.workload}: what"
        " covers their regimes and ranges takes more than a third of the run's time, or leaves none"
        " to be scored"
    )
    return SpecError(what, where=WHERE, fix=_FIX)
