"""
Alarms of a series of nights, judged night by night: what moved, since when, and why.

What code and inputs change is exact, and is said in its first night.  For the rest the tests of
`harness.stats.shifts` look at factors, common ones first: all cells, a workload, a phase, a
resource, one cell, a cost, a model's residuals.  The highest factor that leaves nothing of what
moved is what the alarm names; which others moved with it says the cause (docs/nightly.md).
"""

from __future__ import annotations

import csv
import math

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np

from harness.errors import DataError
from harness.evaluate.nights import INPUT_OF, levels
from harness.records.nightly import PROBE, Acceptance, Alarm, AlarmState, Entry, Night, Point
from harness.records.trial import digest
from harness.stats import shifts
from harness.stats.shifts import Flags, Numbers
from harness.text import excerpt

MOVED = 2.6  # normal deviates beyond which a factor has moved with the one of an alarm
_SAME = 2.2  # and below which it stayed, or went back
_NEAR = 3  # nights by which two estimates of one change may lie apart
_SUSPECTED = 0.65  # of the threshold: cells are measured again
_EXACT = ("code", "input")
_FOLLOWS = ("profile", "model", "unknown")  # from a change of the machine or the cluster
_KINDS = ("all", "workload", "phase", "resource", "cell", "cost", "model")

Size = tuple[float, float | None, float | None]  # a change as a logarithm, and its interval


class Factor(NamedTuple):
    """The mean of the columns *members*; *of* is what kind of factor it is, common ones first."""

    of: str
    name: str
    members: tuple[int, ...]


@dataclass
class Table:
    """
    Nights of one series as numbers: a row per night, a column per *point*.

    *numbers* are the nights' numbers in their history, from 1; *values* logarithms (plain numbers
    where some are not positive: then *is_plain*), NaN where nothing was measured.  *firm* marks
    what was measured again.
    """

    numbers: Sequence[int]
    points: Sequence[Point]  # of each column, its values left out
    values: Numbers
    firm: Flags
    nights: Sequence[Night] = ()
    is_plain: bool = False
    notes: list[str] = field(default_factory=list)

    def factors(self) -> list[Factor]:
        """All factors, common ones first; a column that never varies is in none."""
        groups = dict[tuple[str, str], list[int]]()
        for place, point in enumerate(self.points):
            known = self.values[~np.isnan(self.values[:, place]), place]
            if len(known) < 2 or np.ptp(known) < 1e-12:
                if len(known) > 1 and point.kind != "cost":  # of which many are but counts
                    self.notes.append(f"{point.name} never varies: nothing is said of it")
                continue
            for named in point.factors:
                groups.setdefault(named, []).append(place)
        by_kind = sorted(groups.items(), key=lambda item: _KINDS.index(item[0][0]))
        lowest = {tuple(places): named for named, places in by_kind}  # of those with its columns
        return [
            Factor(*named, tuple(places))
            for named, places in by_kind
            if lowest[tuple(places)] == named
        ]


def tables(entries: Sequence[Entry]) -> list[Table]:
    """One table per series, of its whole nights."""
    import pandas as pd

    nights = [entry for entry in entries if isinstance(entry, Night)]
    whole = [(number, night) for number, night in enumerate(nights, 1) if night.whole]
    made = list[Table]()
    for series in dict.fromkeys(night.series.id for _, night in whole):
        numbers, own = zip(*(row for row in whole if row[1].series.id == series), strict=True)
        points = {point.name: point for night in own for point in night.points}
        values = pd.DataFrame([levels(night.points, night.offsets) for night in own])
        again = pd.DataFrame([{point.name: point.again for point in one.points} for one in own])
        columns = [points[name] for name in values]
        made.append(Table(numbers, columns, values.to_numpy(), (again > 0).to_numpy(), own))
    return made


class Judge:
    """The detector of one table; `judge` gives its alarms as they were raised."""

    def __init__(self, table: Table) -> None:
        import pandas as pd

        self.table, self.alarms = table, list[Alarm]()
        self.factors, self.columns = table.factors(), pd.DataFrame(table.values)
        # Each column from its median: a night that lacks one shifts no mean.
        centred = self.columns - self.columns.median()
        firm = pd.DataFrame(table.firm)
        members = [[*factor.members] for factor in self.factors]
        shape = len(members), len(centred)
        self.values = np.reshape([centred[member].mean(axis=1) for member in members], shape).T
        is_firm: list[Flags] = [firm[member].any(axis=1) for member in members]
        self.firm = np.reshape(np.asarray(is_firm, dtype=bool), shape).T
        self.clips = np.asarray([shifts.clip_of(len(factor.members)) for factor in self.factors])
        # Kinds of factors share the chance of a false alarm as 1, 1/2, 1/3 ..., common ones first.
        self.kinds = np.asarray([factor.of for factor in self.factors])
        counts = Counter(self.kinds)
        shares = 1 / np.arange(1, len(counts) + 1)
        limits = {
            of: shifts.threshold(count, shifts.FALSE_ALARMS * share / shares.sum())
            for (of, count), share in zip(counts.items(), shares, strict=True)
        }
        self.thresholds = np.asarray([limits[of] for of in self.kinds])

    def judge(self, *, last: bool = True) -> list[Alarm]:
        """All alarms, in the order in which they were raised; of all nights, or but the *last*."""
        for night in range(len(self.table.numbers) - (not last)):
            self._exact(night)
            while self.factors and self._shifted(night):
                pass
        return self.alarms

    def suspected(self) -> list[str]:
        """Names of cells that the last night makes suspect, beside what alarms say already."""
        self.judge(last=False)
        firm = self.firm.copy()
        firm[-1:] = True  # as if it had been measured again
        _, scores = shifts.scan(self.values, self.clips, firm)
        suspect = (scores > _SUSPECTED * self.thresholds).any(axis=0)
        chosen = [self.factors[place] for place in np.flatnonzero(suspect)]
        points = [self.table.points[place] for each in chosen for place in each.members]
        return list(dict.fromkeys(point.cell for point in points if point.cell))

    def _exact(self, night: int) -> None:
        """Raise what code and inputs changed in *night*, which is known without statistics."""
        nights = self.table.nights
        points = self.table.points
        if not nights or not night:
            return
        now = nights[night]
        before = nights[night - 1]
        for name in sorted(set(now.code) - set(before.code)):
            own = now.changed_by(name)
            size = median(own.values() or [0.0])
            cells = [p.cell for p in points if p.name in own]
            self._raise(f"code: {name}", name, night, night, size=(size,) * 3, cells=cells)
        cells = [
            name.removeprefix(INPUT_OF)
            for name, fact in now.facts.items()
            if name.startswith(INPUT_OF) and before.facts.get(name, fact) != fact
        ]
        if cells:
            places = [
                place
                for place, each in enumerate(self.factors)
                if any(points[column].cell in cells for column in each.members)
            ]
            sizes = [
                shifts.estimate(self.values[: night + 1, place], 1)[0]
                for place in places
                if self.factors[place].name in cells
            ]
            largest = max(sizes, key=abs, default=0.0), None, None
            self._raise("input", ", ".join(cells), night, night, size=largest, cells=cells)
            self.values[:night, places] = np.nan

    def _shifted(self, night: int) -> bool:
        """Raise the largest shift that ends with *night*; whether there was one."""
        values = self.values[: night + 1]
        firm = self.firm[: night + 1]
        deviates, scores = shifts.scan(values, self.clips, firm)
        excess = scores - self.thresholds
        largest = int(excess.max(axis=0).argmax())
        if not excess[:, largest].max() > 0:
            return False
        # The stretch that says it most clearly begins with the change.
        row = int(np.nanargmax(np.abs(deviates[:, largest])))
        lag = int(shifts.LAGS[row])
        z = deviates[row]
        since = night + 1 - lag
        direction = np.sign(z[largest])
        # A factor is shared if most of its columns moved as it did: else one of them moved it.
        began = int((~np.isnan(values[:, largest])).argmax())
        columns = self.columns[began : night + 1]
        steps = columns[-lag:].median() - columns[:-lag].median()
        of_columns = [steps[[*factor.members]] for factor in self.factors]
        is_shared = np.asarray(
            [
                len(own) < 2 or own.median() * np.sign(own.mean()) > abs(own.mean()) / 2
                for own in of_columns
            ]
        )
        strongest = int(np.where(is_shared, np.abs(np.nan_to_num(z)), 0.0).argmax())
        strongest = largest if is_shared[largest] else strongest
        # The highest one that leaves nothing of the strongest.
        clips = np.full_like(self.clips, self.clips[strongest])
        left, _ = shifts.scan(values[:, [strongest]] - values, clips)
        explains = is_shared & (z * np.sign(z[strongest]) > MOVED) & ~(np.abs(left[row]) > MOVED)
        explains[strongest] = True
        chosen = int(explains.argmax())
        factor = self.factors[chosen]
        # Of a common factor all cells, else those that moved.
        cells = [self.table.points[place].cell for place in factor.members]
        if factor.of not in ("all", "workload"):
            cells = [
                each.name
                for each, deviate in zip(self.factors, z, strict=True)
                if each.of == "cell" and deviate * direction > _SAME
            ]
        sizes = [shifts.estimate(column, lag) for column in values.T]
        cause = self._cause(z, np.asarray([size[0] for size in sizes]))
        moved = np.abs(np.nan_to_num(z)) > _SAME
        if cause in _FOLLOWS:  # a cell that went the other way has an alarm of its own
            moved &= (self.kinds != "cell") | (z * direction > 0)
        moved |= [{*factor.members}.issuperset(each.members) for each in self.factors]
        if not self._is_known(since, cause, factor, size := sizes[chosen]):
            state: AlarmState = "confirmed" if firm[-1, chosen] else "open"
            self._raise(cause, factor.name, since, night, size=size, cells=cells, state=state)
        self.values[:since, moved] = np.nan
        return True

    def _is_known(self, since: int, cause: str, factor: Factor, size: Size) -> bool:
        """Whether an alarm of before has said it: the same change, or the end of one."""
        number = self.table.numbers[since]
        (_, low, high) = size
        for place, alarm in enumerate(self.alarms):
            if alarm.state == "gone" or alarm.cause.startswith(_EXACT):
                continue
            is_near = alarm.since - _NEAR <= number <= alarm.raised + _NEAR
            is_new = factor.of == "cell" and factor.name not in alarm.cells
            if alarm.cause in _FOLLOWS:  # a cause of which others are no consequence
                is_near = is_near and alarm.cause == cause and not is_new
            if is_near and cause in (alarm.cause, *_FOLLOWS):
                return True
            # Back where it was: as far the other way.
            back = -alarm.change if self.table.is_plain else -math.log1p(max(alarm.change, -0.999))
            if alarm.series == factor.name and low is not None and low <= back <= (high or 0.0):
                self.alarms[place] = alarm.model_copy(update={"state": "gone"})
                return True
        return False

    def _cause(self, z: Numbers, sizes: Numbers) -> str:
        """Say why, by what moved and what did not: the rules of docs/nightly.md."""
        has_moved = np.abs(np.nan_to_num(z)) > MOVED
        is_probe = np.asarray([factor.name == PROBE for factor in self.factors])
        is_cell = has_moved & np.isin(self.kinds, ("cell", "all"))
        is_control = has_moved & (self.kinds == "resource") & ~is_probe
        followers = sizes[is_cell | is_control]
        if (np.abs(z[is_probe]) > (_SAME if len(followers) else MOVED)).any():
            shares = followers / -sizes[is_probe]
            if not len(shares) or -0.3 < np.median(shares) < 1.3:
                return "machine"
        if is_control.any():
            strongest = np.where(is_control, np.abs(sizes), 0.0).argmax()
            return f"cluster: {self.factors[strongest].name}"
        if is_cell.any():
            return "model" if "model" in self.kinds[has_moved] else "unknown"
        return "profile" if np.isin(self.kinds[has_moved], ("cost", "model")).any() else "unknown"

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
        is_plain = self.table.is_plain
        ends = [end if end is None or is_plain else math.expm1(end) for end in size]
        alarm = Alarm(
            id=digest([nights[since].run if nights else numbers[since], series, cause])[:8],
            cause=cause,
            series=series,
            since=numbers[since],
            raised=numbers[raised],
            change=ends[0] or 0.0,
            low=ends[1],
            high=ends[2],
            cells=tuple(dict.fromkeys(filter(None, cells))),
            suspects=nights[since].facts_since(nights[since - 1]) if nights and since else (),
            state=state,
        )
        self.alarms.append(alarm)


def judged(entries: Sequence[Entry]) -> tuple[list[Alarm], list[str]]:
    """Alarms of a history, replayed night by night by each series, and what else is to be said."""
    nights = [entry for entry in entries if isinstance(entry, Night)]
    every = tables(entries)
    alarms = list[Alarm]()
    notes = [
        f"night {number} is in no comparison: {'; '.join(night.lacks)}"
        for number, night in enumerate(nights, 1)
        if not night.whole
    ]
    if len(every) > 1:
        names = (f"{table.nights[0].series.id} from night {table.numbers[0]}" for table in every)
        notes.append(f"{len(every)} series are kept apart: {', '.join(names)}")
    for table in every:
        alarms += Judge(table).judge()
        notes += table.notes
        if len(table.numbers) < shifts.FEWEST_NIGHTS:
            what = f"{shifts.FEWEST_NIGHTS} nights show a shift at the soonest"
            notes.append(f"{what}, and series {table.nights[0].series.id} has {len(table.numbers)}")
    return _accepted(sorted(alarms, key=lambda alarm: alarm.raised), entries), notes


def current(entries: Sequence[Entry]) -> tuple[list[Alarm], list[str]]:
    """
    All alarms that a history has, with their states, as they were raised, and notes of `judged`.

    An alarm that was raised stays, whatever the detector of today makes of the same nights.
    """
    again, notes = judged(entries)
    gone = {alarm.id: alarm.state for alarm in again if alarm.state == "gone"}
    alarms = [
        alarm.model_copy(update={"state": gone.get(alarm.id, alarm.state)})
        for night in entries
        if isinstance(night, Night)
        for alarm in night.alarms
    ]
    return _accepted(alarms, entries), notes


def _accepted(alarms: Sequence[Alarm], entries: Sequence[Entry]) -> list[Alarm]:
    accepted = {entry.alarm: "accepted" for entry in entries if isinstance(entry, Acceptance)}
    return [
        alarm.model_copy(update={"state": accepted.get(alarm.id, alarm.state)}) for alarm in alarms
    ]


def read_csv(path: Path, *, each: bool = False) -> list[Table]:
    """
    Read nights from columns `time,NAME...`: a row per night, nothing or NaN where it has no value.

    They are one table, or with *each* one for each column; a column `commit` is left out.
    `DataError` names the line, and what in it is no number or a clock that goes back.
    """
    number = 1
    last = -math.inf
    rows = list[list[float]]()
    try:
        lines = csv.reader(path.read_text(encoding="utf-8").splitlines())
        head = [name.strip() for name in next(lines, [])]
        chosen = [place for place, name in enumerate(head) if place and name != "commit"]
        if not chosen or head[0] != "time" or len(set(head)) < len(head):
            raise ValueError(f"the first line is '{','.join(head)}', and not time,NAME,...")
        for line in lines:
            number += 1
            if len(line) != len(head):
                raise ValueError(f"{len(line)} values, and {len(head)} names are in the first line")
            try:
                now = float(line[0])
            except ValueError:
                now = datetime.fromisoformat(line[0].strip()).timestamp()
            if not now > last:
                raise ValueError(f"the time '{line[0]}' is not after that of the line before")
            rows.append([float(line[place] or "nan") for place in chosen])
            if any(map(math.isinf, rows[-1])):
                raise ValueError("a number is infinite")
            last = now
    except (OSError, ValueError, csv.Error) as error:
        fix = "write time,NAME,... and a line per night: 2026-11-23T02:00:00Z,12.5,... in order"
        is_read = not isinstance(error, OSError | UnicodeDecodeError)
        what = excerpt(error) if is_read else f"it cannot be read: {excerpt(error)}"
        where = f"{path}:{number}" if is_read else str(path)
        raise DataError(what, where=where, fix=fix) from error
    values = np.reshape(rows, (-1, len(chosen)))
    names = [excerpt(head[n], 60) for n in chosen]
    points = [Point(kind="measured", cell=name, quantity="job_s", raw=()) for name in names]
    made = list[Table]()
    every = [*range(len(names))]
    for places in [[place] for place in every] if each else [every]:
        columns = values[:, places]
        is_plain = bool((columns <= 0).any())
        logs = columns if is_plain else np.log(columns)
        firm = np.zeros(columns.shape, bool)
        own = [points[place] for place in places]
        made.append(Table(range(1, len(rows) + 1), own, logs, firm, is_plain=is_plain))
    return made
