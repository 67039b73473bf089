"""
Which items of a grid to measure, so that the others lie within what was measured.

An item lies within, where each of its flags is one of a measured item's, and each of its numbers
between two of theirs.  First the cheapest items are chosen that cover all flags and both ends of
each axis (greedy set cover by price: Chvatal, Mathematics of Operations Research 1979), then those
that narrow most (greedy D-optimal design, `harness.base.stats.design`).  Nothing is drawn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING

from harness.base.stats.design import choose

if TYPE_CHECKING:
    import numpy as np

    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]
    Flags = NDArray[np.bool_]

_KNOWN_BEFORE = 1e-3  # information on each coefficient before any item, so that there is a volume


class NothingWithinError(ValueError):
    """No item of a *group* would be left within what is measured."""

    def __init__(self, group: str) -> None:
        super().__init__(f"no item of {group} is left within what is measured")
        self.group = group


@dataclass(frozen=True)
class Group:
    """
    Items of a *name*, of which some are measured for the others.

    *flags* are n x f, *numbers* n x a, NaN where an item has none on that axis.  *seconds* is what
    each takes, beside its *setups*, which take time once for all items that share them.
    """

    name: str
    flags: Flags
    numbers: Numbers
    seconds: Numbers
    setups: Sequence[tuple[str, ...]]

    def marks(self, targets: Flags) -> Flags:
        """
        What is to be covered, so that all *targets* lie within: a row for each item.

        There is a column for each flag of theirs, and for each end of an axis.
        """
        import numpy as np

        within = self.numbers[targets]
        is_lowest = self.numbers == np.fmin.reduce(within, axis=0)
        is_highest = self.numbers == np.fmax.reduce(within, axis=0)
        flags = self.flags[:, self.flags[targets].any(axis=0)]
        marks: Flags = np.concatenate([flags, is_lowest, is_highest], axis=1)
        return marks & targets[:, None]

    @cached_property
    def information(self) -> Numbers:
        """
        What each item tells of the coefficients of an item's cost (n x p x p).

        They are a constant, one for each axis that varies, and one for each flag that does.
        """
        import numpy as np

        spans = np.ptp(self.numbers, axis=0)
        varied = self.numbers[:, spans > 0]
        scaled = (varied - varied.min(axis=0)) / spans[spans > 0]
        in_some = self.flags[:, ~self.flags.all(axis=0)].astype(np.float64)
        rows = np.concatenate([np.ones((len(varied), 1)), scaled, in_some], axis=1)
        found: Numbers = rows[:, :, None] * rows[:, None, :]
        return found


@dataclass(frozen=True)
class _Choice:
    """Items chosen so far: of each of the *groups* their places in it.  *setup_s* are seconds."""

    groups: Sequence[Group]
    setup_s: Mapping[str, float]
    places: Mapping[str, list[int]]

    @classmethod
    def empty(cls, groups: Sequence[Group], setup_s: Mapping[str, float]) -> _Choice:
        """One of no item."""
        return cls(groups, setup_s, {group.name: [] for group in groups})

    def chosen(self, group: Group) -> list[int]:
        """Places of the items of *group* that are chosen; to be changed by who chooses."""
        return self.places[group.name]

    def takes_all(self, group: Group, targets: Mapping[str, Flags]) -> bool:
        """Whether as many items of *group* are chosen as it has *targets*: none is left."""
        return len(self.chosen(group)) == int(targets[group.name].sum())

    @property
    def set_up(self) -> set[str]:
        """What is set up for the chosen items."""
        rows = (group.setups[place] for group in self.groups for place in self.chosen(group))
        return {*chain.from_iterable(rows)}

    @property
    def spent_s(self) -> float:
        """Seconds that all chosen items take."""
        items_s = sum(float(group.seconds[self.chosen(group)].sum()) for group in self.groups)
        return items_s + sum(self.setup_s[name] for name in self.set_up)

    def costs(self, group: Group) -> Numbers:
        """Seconds that each item of *group* would add, with what has to be set up for it."""
        import numpy as np

        is_there = self.set_up
        further_s = [
            sum(self.setup_s[name] for name in names if name not in is_there)
            for names in group.setups
        ]
        costs: Numbers = group.seconds + np.array(further_s)
        return costs


def choose_items(
    groups: Sequence[Group],
    setup_s: Mapping[str, float],
    budget_s: float,
    *,
    enough: int,
    fewest_left: int,
) -> dict[str, list[int]]:
    """
    Places of the items of each of the *groups* that are measured, by its name, within *budget_s*.

    Where not all can lie within for that, the dearest are left outside.  Items beyond those that
    cover are added up to *enough* of a group, or half of it, while more than *fewest_left* of all
    groups are left within.  `NothingWithinError`: no item of a group would be.
    """
    import numpy as np

    targets = {group.name: np.ones(len(group.seconds), dtype=bool) for group in groups}
    choice = _cover_within(groups, targets, setup_s, budget_s)
    left_count = sum(int(flags.sum()) for flags in targets.values())
    left_count -= sum(map(len, choice.places.values()))
    open_groups = [*groups]
    while open_groups and left_count > fewest_left:
        group = min(open_groups, key=lambda group: len(choice.chosen(group)))
        most_items = min(enough, int(targets[group.name].sum()) // 2)
        place = None
        if len(choice.chosen(group)) < most_items:
            place = _next_place(choice, group, targets[group.name], budget_s)
        if place is None:
            open_groups.remove(group)
        else:
            choice.chosen(group).append(place)
            left_count -= 1
    return dict(choice.places)


def _cover_within(
    groups: Sequence[Group],
    targets: Mapping[str, Flags],
    setup_s: Mapping[str, float],
    budget_s: float,
) -> _Choice:
    """
    Cover *targets*, and leave out the dearest of them until that takes no more than *budget_s*.

    *targets* are changed.  Each group keeps a target that is not chosen itself.
    """
    while True:
        choice = _Choice.empty(groups, setup_s)
        for group in groups:
            _cover(choice, group, targets[group.name])
        used_up = [group for group in groups if choice.takes_all(group, targets)]
        if not used_up and choice.spent_s <= budget_s:
            return choice
        reducible = [group for group in groups if targets[group.name].sum() > 2]
        group, place = _dearest(choice, used_up or reducible or groups)
        targets[group.name][place] = False
        if targets[group.name].sum() < 2:
            raise NothingWithinError(group.name)


def _dearest(choice: _Choice, groups: Sequence[Group]) -> tuple[Group, int]:
    """The chosen item of *groups* that takes longest: its group, and its place there."""
    chosen = [(group, place) for group in groups for place in choice.chosen(group)]
    return max(chosen, key=lambda entry: float(entry[0].seconds[entry[1]]))


def _cover(choice: _Choice, group: Group, targets: Flags) -> None:
    """
    Choose of *targets* the item that covers most for each second, until all is covered.

    What others cover, too, is taken back then, the dearest item first: a cheap item that was chosen
    early is often of no use beside the one that ends an axis.
    """
    import numpy as np

    marks = group.marks(targets)
    chosen = choice.chosen(group)
    left = marks.any(axis=0)
    while left.any():
        gains = marks[:, left].sum(axis=1) / choice.costs(group)
        chosen.append(int(np.argmax(gains)))
        left &= ~marks[chosen[-1]]
    for place in sorted(chosen, key=lambda place: -float(group.seconds[place])):
        rest = [chosen_place for chosen_place in chosen if chosen_place != place]
        if not (marks[place] & ~marks[rest].any(axis=0)).any():
            chosen.remove(place)


def _next_place(choice: _Choice, group: Group, targets: Flags, budget_s: float) -> int | None:
    """Place of the further item of *group* that narrows most; `None`: none fits the budget."""
    import numpy as np

    chosen = choice.chosen(group)
    is_offered = targets.copy()
    is_offered[chosen] = False
    offered = np.flatnonzero(is_offered)
    information = group.information
    gathered = information[chosen].sum(axis=0) + _KNOWN_BEFORE * np.eye(information.shape[1])
    seconds = choice.costs(group)[offered]
    best = next(choose(gathered, information[offered], seconds, budget_s - choice.spent_s), None)
    return None if best is None else int(offered[best[0]])
