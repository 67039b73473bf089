"""
Alarms of a series of nights, judged night by night: what moved, since when, and why.

What code and inputs change is exact, and is said in its first night.  For the rest the tests of
`harness.nightly.shifts` look at factors, common ones first: all cells, a workload, a phase, a
resource, one cell, a cost, a model's residuals.  The highest factor that leaves nothing of what
moved is what the alarm names; which others moved with it says the cause (docs/nightly.md).  Where a
wider spread explains the nights better than another level, the alarm says that.
"""

from __future__ import annotations

import math

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from harness.base.records.trial import digest
from harness.nightly import shifts
from harness.nightly.nights import INPUT_OF, levels
from harness.nightly.records import (
    PROBE,
    SPREAD,
    Acceptance,
    Alarm,
    AlarmState,
    Entry,
    Night,
    Point,
)
from harness.nightly.shifts import Flags, Numbers

MOVED = 2.6  # normal deviates beyond which a factor has moved with the one of an alarm
_SAME = 2.2  # and below which it stayed, or went back
_NEAR = 3  # nights by which two estimates of one change may lie apart
_SUSPECTED = 0.8  # of the threshold: cells are measured again
_EXACT = ("code", "input")
# Of factors, common ones first.
_KINDS = ("all", "workload", "phase", "resource", "cell", "cost", "model")

Size = tuple[float, float | None, float | None]  # a change as a logarithm, and its interval


class Factor(NamedTuple):
    """The mean of the columns *members*; *kind* is one of `_KINDS`."""

    kind: str
    name: str
    members: tuple[int, ...]


@dataclass
class Table:
    """
    Nights of one series as numbers: a row per night, a column per *point*.

    *numbers* are the nights' numbers in their history, from 1; *values* logarithms (plain numbers
    where some are not positive: then *is_plain*), NaN where nothing was measured.  *firm* marks
    what was measured again; *weights* are what each counts, 1 where nobody disturbed it.  The table
    may have *share* of the false alarms of all that is judged with it.
    """

    numbers: Sequence[int]
    points: Sequence[Point]  # of each column, its values left out
    values: Numbers
    firm: Flags
    weights: Numbers
    nights: Sequence[Night] = ()
    is_plain: bool = False
    share: float = 1.0
    notes: list[str] = field(default_factory=list)

    def factors(self) -> list[Factor]:
        """All factors, common ones first; a column that never varies is in none."""
        groups = dict[tuple[str, str], list[int]]()
        for place, point in enumerate(self.points):
            measured = self.values[~np.isnan(self.values[:, place]), place]
            if len(measured) > 1 and np.ptp(measured) >= 1e-12:
                for named_kind in point.factors:
                    groups.setdefault(named_kind, []).append(place)
            elif len(measured) > 1 and point.kind != "cost":  # of which many are but counts
                self.notes.append(f"{point.name} never varies: nothing is said of it")
        by_kind = sorted(groups.items(), key=lambda item: _KINDS.index(item[0][0]))
        # Of factors with the same columns the lowest stands for all.
        lowest = {tuple(places): named_kind for named_kind, places in by_kind}
        factors = list[Factor]()
        for (kind, name), places in by_kind:
            if lowest[tuple(places)] == (kind, name):
                factors.append(Factor(kind, name, tuple(places)))
        return factors


def tables(entries: Sequence[Entry]) -> list[Table]:
    """One table per series, of its whole nights."""
    numbers_by_series = defaultdict[str, list[int]](list)
    nights_by_series = defaultdict[str, list[Night]](list)
    nights = [entry for entry in entries if isinstance(entry, Night)]
    for number, night in enumerate(nights, 1):
        if night.whole:
            numbers_by_series[night.series.id].append(number)
            nights_by_series[night.series.id].append(night)
    return [
        series_table(numbers, nights_by_series[series])
        for series, numbers in numbers_by_series.items()
    ]


def series_table(numbers: Sequence[int], nights: Sequence[Night]) -> Table:
    """The table of *nights* of one series with these *numbers* in the history."""
    import pandas as pd

    points = {point.name: point for point in chain.from_iterable(n.points for n in nights)}
    values = pd.DataFrame([levels(night.points, night.offsets) for night in nights])
    repeated = pd.DataFrame([{point.name: point.again for point in n.points} for n in nights])
    weighed = pd.DataFrame([{point.name: point.weight for point in n.points} for n in nights])
    columns = [points[name] for name in values]
    firm = (repeated > 0).to_numpy()
    weights = weighed.fillna(0.0).to_numpy()
    return Table(numbers, columns, values.to_numpy(), firm, weights, nights)


@dataclass(frozen=True)
class Moves:
    """
    What moved with the shift of an alarm: how far each of *factors*, in normal deviates.

    *sizes* are the same as logarithms.
    """

    factors: Sequence[Factor]
    deviates: Numbers
    sizes: Numbers

    def moved(self, *kinds: str) -> Flags:
        """Which factors of these *kinds* have moved, the probe left out of the resources."""
        kinds_of = np.asarray([factor.kind for factor in self.factors])
        is_chosen = np.isin(kinds_of, kinds) & ~(self.is_probe & (kinds_of == "resource"))
        moved: Flags = is_chosen & (np.abs(np.nan_to_num(self.deviates)) > MOVED)
        return moved

    @property
    def is_probe(self) -> Flags:
        """Which factor is the rate of the speed probe."""
        flags: Flags = np.asarray([factor.name == PROBE for factor in self.factors])
        return flags


def _of_machine(moves: Moves) -> str | None:
    """The probe's rate moved, and most cells and controls by no more than that explains."""
    followers = moves.sizes[moves.moved("cell", "all", "resource")]
    least = _SAME if len(followers) else MOVED
    if not (np.abs(moves.deviates[moves.is_probe]) > least).any():
        return None
    shares = followers / -moves.sizes[moves.is_probe]
    return "" if not len(shares) or -0.3 < np.median(shares) < 1.3 else None


def _of_cluster(moves: Moves) -> str | None:
    """A control moved: of several the one that moved most."""
    is_control = moves.moved("resource")
    if not is_control.any():
        return None
    strongest = int(np.where(is_control, np.abs(moves.sizes), 0.0).argmax())
    return moves.factors[strongest].name


def _of_model(moves: Moves) -> str | None:
    """Cells moved, and the prediction of the night's own profile did not follow."""
    return "" if moves.moved("cell", "all").any() and moves.moved("model").any() else None


def _of_profile(moves: Moves) -> str | None:
    """Costs or predictions moved, and no cell did."""
    is_known = moves.moved("cost", "model").any()
    return "" if is_known and not moves.moved("cell", "all").any() else None


def _not_known(_moves: Moves) -> str | None:
    """Whatever is left."""
    return ""


class Cause(NamedTuple):
    """
    Why numbers moved: *detail* says whether it is that, by what moved, and may name what it is.

    One that *follows* moves in the wake of a change of the machine or the cluster, too, and raises
    no alarm of its own then.
    """

    detail: Callable[[Moves], str | None]
    follows: bool = True


# By their names, in the order in which they are tried (docs/nightly.md): the first that it is.
CAUSES: dict[str, Cause] = {
    "machine": Cause(_of_machine, follows=False),
    "cluster": Cause(_of_cluster, follows=False),
    "model": Cause(_of_model),
    "profile": Cause(_of_profile),
    "unknown": Cause(_not_known),
}


def cause_of(moves: Moves) -> str:
    """The cause of what moved, as an alarm has it: its name, and its detail behind a colon."""
    for name, cause in CAUSES.items():
        detail = cause.detail(moves)
        if detail is not None:
            return f"{name}: {detail}" if detail else name
    raise AssertionError("the last cause is any")


def has_followed(cause: str) -> bool:
    """Whether a *cause* is a consequence of the machine or the cluster, where these changed."""
    name, _, _ = cause.partition(": ")
    return name in CAUSES and CAUSES[name].follows


class Judge:
    """The detector of one table; `judge` gives its alarms as they were raised."""

    def __init__(self, table: Table) -> None:
        import pandas as pd

        self.table = table
        self.alarms = list[Alarm]()
        self.factors = table.factors()
        self.columns = pd.DataFrame(table.values)
        # Each column from its median: a night that lacks one shifts no mean.
        centred = self.columns - self.columns.median()
        firm = pd.DataFrame(table.firm)
        weights = pd.DataFrame(table.weights).where(self.columns.notna())
        members = [[*factor.members] for factor in self.factors]
        shape = len(members), len(centred)
        self.values = np.reshape([centred[places].mean(axis=1) for places in members], shape).T
        means = [weights[places].mean(axis=1).fillna(0.0) for places in members]
        self.weights = np.reshape(means, shape).T
        is_firm: list[Flags] = [firm[places].any(axis=1) for places in members]
        self.firm = np.reshape(np.asarray(is_firm, dtype=bool), shape).T
        self.clips = np.asarray([shifts.clip_of(len(factor.members)) for factor in self.factors])
        self.kinds = np.asarray([factor.kind for factor in self.factors])
        rate = shifts.FALSE_ALARMS * min(table.share, len(self.factors) / shifts.FACTORS)
        self.thresholds = thresholds([factor.kind for factor in self.factors], rate)

    def judge(self, *, last: bool = True) -> list[Alarm]:
        """All alarms, in the order in which they were raised; of all nights, or but the *last*."""
        for night in range(len(self.table.numbers) - (not last)):
            self._raise_exact(night)
            while self.factors and self._raise_shift(night):
                pass
        return self.alarms

    def suspected(self) -> list[str]:
        """Names of cells that the last night makes suspect, beside what alarms say already."""
        self.judge(last=False)
        firm = self.firm.copy()
        firm[-1:] = True  # as if it had been measured again
        scan = shifts.scan(self.values, self.clips, firm, self.weights)
        is_suspect = (scan.scores > _SUSPECTED * self.thresholds).any(axis=0)
        cells = dict[str, None]()
        for suspect in np.flatnonzero(is_suspect):
            for place in self.factors[suspect].members:
                cells[self.table.points[place].cell] = None
        return [*filter(None, cells)]

    def _raise_exact(self, night: int) -> None:
        """Raise what code and inputs changed in *night*, which is known without statistics."""
        nights = self.table.nights
        if not nights or not night:
            return
        for name in sorted(set(nights[night].code) - set(nights[night - 1].code)):
            offsets = nights[night].changed_by(name)
            size = median(offsets.values() or [0.0])
            cells = [point.cell for point in self.table.points if point.name in offsets]
            self._raise(f"code: {name}", name, night, night, size=(size,) * 3, cells=cells)
        cells = changed_inputs(nights[night - 1], nights[night])
        if cells:
            self._raise_inputs(night, cells)

    def _raise_inputs(self, night: int, cells: Sequence[str]) -> None:
        """Raise that *cells* read something else since *night*, and begin anew what has them."""
        places = list[int]()
        sizes = list[float]()
        for place, factor in enumerate(self.factors):
            if any(self.table.points[column].cell in cells for column in factor.members):
                places.append(place)
                if factor.name in cells:
                    sizes.append(shifts.estimate(self.values[: night + 1, place], 1)[0])
        largest = max(sizes, key=abs, default=0.0)
        size = (largest, None, None)
        self._raise("input", ", ".join(cells), night, night, size=size, cells=cells)
        self.values[:night, places] = np.nan

    def _raise_shift(self, night: int) -> bool:
        """Raise the largest shift that ends with *night*, or a wider spread; whether any was."""
        values = self.values[: night + 1]
        weights = self.weights[: night + 1]
        deviates_by_lag, scores = shifts.scan(values, self.clips, self.firm[: night + 1], weights)
        excess = scores - self.thresholds
        largest = int(excess.max(axis=0).argmax())
        if not excess[:, largest].max() > 0:
            return self._raise_spread(night)
        # The stretch that says it most clearly begins with the change.
        row = int(np.nanargmax(np.abs(deviates_by_lag[:, largest])))
        deviates = deviates_by_lag[row]
        lag = int(shifts.LAGS[row])
        since = night + 1 - lag
        chosen = self._explaining_factor(values, row, deviates, largest)
        for suspect in dict.fromkeys((chosen, largest)):
            wide_nights = shifts.wider_since(values[:, suspect], lag)
            if wide_nights:
                self._add_spread(night, wide_nights, suspect)
                return True
        factor = self.factors[chosen]
        alike = deviates * np.sign(deviates[largest])  # above 0 what went the same way
        sizes = [shifts.estimate(column, lag) for column in values.T]
        cause = cause_of(Moves(self.factors, deviates, np.asarray([size[0] for size in sizes])))
        if not self._is_known(since, cause, factor, sizes[chosen]):
            state: AlarmState = "confirmed" if self.firm[night, chosen] else "open"
            cells = self._cells_of(factor, alike)
            size = sizes[chosen]
            self._raise(cause, factor.name, since, night, size=size, cells=cells, state=state)
        has_moved = np.abs(np.nan_to_num(deviates)) > _SAME
        if has_followed(cause):  # a cell that went the other way has an alarm of its own
            has_moved &= (self.kinds != "cell") | (alike > 0)
        members = {*factor.members}
        has_moved |= [members.issuperset(part.members) for part in self.factors]
        self.values[:since, has_moved] = np.nan
        return True

    def _raise_spread(self, night: int) -> bool:
        """Raise the spread that is wider by most since some nights before *night*, if any is."""
        _, scores = shifts.scan_spread(self.values[: night + 1])
        excess = scores - self.thresholds
        row, largest = np.unravel_index(excess.argmax(), excess.shape)
        if not excess[row, largest] > 0:
            return False
        self._add_spread(night, int(shifts.LAGS[row]), int(largest))
        return True

    def _add_spread(self, night: int, lag: int, largest: int) -> None:
        """Raise that the nights of the factor *largest* lie farther apart since *lag* nights."""
        values = self.values[: night + 1]
        since = night + 1 - lag
        row = int(np.flatnonzero(lag == shifts.LAGS)[0])
        deviates = np.nan_to_num(shifts.scan_spread(values).deviates[row])
        has_moved = deviates > MOVED
        has_moved[largest] = True
        chosen = int(has_moved.argmax())  # the highest of those that are wider
        factor = self.factors[chosen]
        size = shifts.spread_change(values[:, chosen], lag)
        if not self._is_known(since, SPREAD, factor, size):
            cells = self._cells_of(factor, np.where(has_moved, np.inf, 0.0))
            self._raise(SPREAD, factor.name, since, night, size=size, cells=cells, state="open")
        self.values[:since, has_moved] = np.nan

    def _explaining_factor(self, values: Numbers, row: int, deviates: Numbers, largest: int) -> int:
        """
        Index of the highest factor that leaves nothing of what moved most.

        *deviates* are how far each factor has moved since the lag in that *row* of `shifts.LAGS`;
        *largest* is the factor whose shift is beyond its threshold by most.
        """
        # A factor is shared if most of its columns moved as it did: else one of them moved it.
        began = int((~np.isnan(values[:, largest])).argmax())
        columns = self.columns[began : len(values)]
        lag = int(shifts.LAGS[row])
        steps = columns[-lag:].median() - columns[:-lag].median()
        is_shared = np.asarray(
            [is_shared_step(steps[[*factor.members]]) for factor in self.factors]
        )
        strongest = largest
        if not is_shared[largest]:
            strongest = int(np.where(is_shared, np.abs(np.nan_to_num(deviates)), 0.0).argmax())
        clips = np.full_like(self.clips, self.clips[strongest])
        remainders, _ = shifts.scan(
            values[:, [strongest]] - values, clips, None, self.weights[: len(values)]
        )
        has_moved_alike = deviates * np.sign(deviates[strongest]) > MOVED
        explains = is_shared & has_moved_alike & ~(np.abs(remainders[row]) > MOVED)
        explains[strongest] = True
        return int(explains.argmax())

    def _cells_of(self, factor: Factor, alike: Numbers) -> list[str]:
        """Cells of an alarm about *factor*: of a common one all, else those that moved alike."""
        if factor.kind in ("all", "workload"):
            return [self.table.points[place].cell for place in factor.members]
        is_cell = (self.kinds == "cell") & (alike > _SAME)
        return [self.factors[place].name for place in np.flatnonzero(is_cell)]

    def _is_known(self, since: int, cause: str, factor: Factor, size: Size) -> bool:
        """Whether an alarm of before has said it: the same change, or the end of one."""
        number = self.table.numbers[since]
        for place, alarm in enumerate(self.alarms):
            if alarm.state == "gone" or alarm.cause.startswith(_EXACT):
                continue
            is_near = alarm.since - _NEAR <= number <= alarm.raised + _NEAR
            if is_near and is_part(alarm, cause, factor):
                return True
            if alarm.series == factor.name and cause != SPREAD and self._is_return(alarm, size):
                self.alarms[place] = alarm.model_copy(update={"state": "gone"})
                return True
        return False

    def _is_return(self, alarm: Alarm, size: Size) -> bool:
        """Whether a change of that *size* leads back from an alarm's: as far the other way."""
        if alarm.cause == SPREAD:
            return False
        (_, low, high) = size
        back = -alarm.change if self.table.is_plain else -math.log1p(max(alarm.change, -0.999))
        return low is not None and low <= back <= (high or 0.0)

    def _raise(
        self,
        cause: str,
        series: str,
        since: int,
        raised: int,
        *,
        size: Size,
        cells: Sequence[str],
        state: AlarmState = "confirmed",
    ) -> None:
        """Add an alarm about nights by their rows, with a change as it stands in the table."""
        numbers = self.table.numbers
        nights = self.table.nights
        is_plain = self.table.is_plain and cause != SPREAD  # of spreads it is always a share
        change, low, high = (end if end is None or is_plain else math.expm1(end) for end in size)
        alarm = Alarm(
            id=digest([nights[since].run if nights else numbers[since], series, cause])[:8],
            cause=cause,
            series=series,
            since=numbers[since],
            raised=numbers[raised],
            change=change or 0.0,
            low=low,
            high=high,
            cells=tuple(dict.fromkeys(filter(None, cells))),
            suspects=nights[since].facts_since(nights[since - 1]) if nights and since else (),
            state=state,
        )
        self.alarms.append(alarm)


def is_part(alarm: Alarm, cause: str, factor: Factor) -> bool:
    """Whether a change of *factor* for that *cause*, near that of *alarm*, is a part of it."""
    if SPREAD in (cause, alarm.cause):
        return cause == alarm.cause
    if has_followed(alarm.cause):  # a cause of which others are no consequence
        is_new_cell = factor.kind == "cell" and factor.name not in alarm.cells
        return alarm.cause == cause and not is_new_cell
    return cause == alarm.cause or has_followed(cause)


def thresholds(kinds: Sequence[str], rate: float) -> Numbers:
    """
    Scores beyond which factors of these *kinds* raise an alarm, so often a year by chance: *rate*.

    Half of the chance is shared by kinds alike, so that what is common has more of it than each of
    many cells; the other half by all factors alike.
    """
    counts = Counter(kinds)
    limits = dict[str, float]()
    for kind, count in counts.items():
        share = (1 / len(counts) + count / len(kinds)) / 2
        limits[kind] = shifts.threshold(rate * share / count)
    return np.asarray([limits[kind] for kind in kinds])


def changed_inputs(before: Night, after: Night) -> list[str]:
    """Cells whose jobs have read something else in the night *after* than in the one *before*."""
    cells = list[str]()
    for name, fact in after.facts.items():
        if name.startswith(INPUT_OF) and before.facts.get(name, fact) != fact:
            cells.append(name.removeprefix(INPUT_OF))
    return cells


def is_shared_step(steps: Any) -> bool:
    """Whether most columns of a factor moved as their mean did, by the *steps* of its columns."""
    known = steps.dropna()
    if len(known) < 2:
        return True
    mean = known.mean()
    has_followed_mean = known * np.sign(mean) > abs(mean) / 2
    return bool(has_followed_mean.mean() > 0.5)


def judged(entries: Sequence[Entry]) -> tuple[list[Alarm], list[str]]:
    """Alarms of a history, replayed night by night by each series, and what else is to be said."""
    nights = [entry for entry in entries if isinstance(entry, Night)]
    series_tables = tables(entries)
    alarms = list[Alarm]()
    notes = [
        f"night {number} is in no comparison: {'; '.join(night.lacks)}"
        for number, night in enumerate(nights, 1)
        if not night.whole
    ]
    if len(series_tables) > 1:
        names = [
            f"{table.nights[0].series.id} from night {table.numbers[0]}" for table in series_tables
        ]
        notes.append(f"{len(names)} series are kept apart: {', '.join(names)}")
    for table in series_tables:
        alarms += Judge(table).judge()
        notes += table.notes
        if not any(point.kind == "control" and point.workload for point in table.points):
            what = f"series {table.nights[0].series.id} has no control"
            fix = "name workloads in nightly.controls of the experiment file"
            notes.append(f"{what}, so that no change is the cluster's: {fix}")
        notes += few_nights(table, f"series {table.nights[0].series.id}")
    return _accepted(sorted(alarms, key=lambda alarm: alarm.raised), entries), notes


def few_nights(table: Table, name: str) -> list[str]:
    """That a *table* with this *name* has too few nights for any shift, where it has."""
    count = len(table.numbers)
    if count >= shifts.FEWEST_NIGHTS:
        return []
    what = f"{shifts.FEWEST_NIGHTS} nights show a shift at the soonest, and {name} has {count}"
    return [f"{what}: measure more, nothing is said until then"]


def current(entries: Sequence[Entry]) -> tuple[list[Alarm], list[str]]:
    """
    All alarms that a history has, with their states, as they were raised, and notes of `judged`.

    An alarm that was raised stays, whatever the detector of today makes of the same nights.
    """
    replayed, notes = judged(entries)
    gone = {alarm.id: alarm.state for alarm in replayed if alarm.state == "gone"}
    alarms = list[Alarm]()
    for entry in entries:
        if isinstance(entry, Night):
            for alarm in entry.alarms:
                state = gone.get(alarm.id, alarm.state)
                alarms.append(alarm.model_copy(update={"state": state}))
    return _accepted(alarms, entries), notes


def _accepted(alarms: Sequence[Alarm], entries: Sequence[Entry]) -> list[Alarm]:
    accepted = {entry.alarm: "accepted" for entry in entries if isinstance(entry, Acceptance)}
    return [
        alarm.model_copy(update={"state": accepted.get(alarm.id, alarm.state)}) for alarm in alarms
    ]
