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
import warnings

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import numpy as np

from harness.errors import DataError
from harness.evaluate.nights import INPUT_OF, levels
from harness.records.nightly import PROBE, Acceptance, Alarm, Entry, Night, Point
from harness.records.trial import digest
from harness.stats.shifts import (
    FALSE_ALARMS,
    FEWEST_BEFORE,
    LAGS,
    SHORTEST,
    Flags,
    Numbers,
    clip_of,
    estimate,
    scan,
    threshold,
)
from harness.text import excerpt

MOVED = 3.0  # normal deviates beyond which a factor has moved with the one of an alarm
_SAME = 2.5  # and below which it stayed, or went back
_NEAR = 3  # nights by which two estimates of one change may lie apart
_SUSPECTED = 0.65  # of the threshold: cells are measured again
_EXACT = ("code", "input")
_FOLLOWS = ("profile", "model", "unknown")  # from a change of the machine or the cluster
FEWEST_NIGHTS = FEWEST_BEFORE + SHORTEST
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
        merged = dict[tuple[int, ...], tuple[str, str]]()
        for named, places in groups.items():  # of two with the same columns the lower one
            other = merged.get(tuple(places), named)
            merged[tuple(places)] = max(named, other, key=lambda each: _KINDS.index(each[0]))
        factors = [Factor(*named, places) for places, named in merged.items()]
        return sorted(factors, key=lambda each: _KINDS.index(each.of))


def tables(nights: Sequence[tuple[int, Night]]) -> list[Table]:
    """One table per series, of its whole nights, each with its number in the history."""
    import pandas as pd

    by_series = dict[str, list[tuple[int, Night]]]()
    for number, night in nights:
        if night.whole:
            by_series.setdefault(night.series.id, []).append((number, night))
    made = list[Table]()
    for rows in by_series.values():
        points = {point.name: point for _, night in rows for point in night.points}
        values = pd.DataFrame([levels(night.points, night.offsets) for _, night in rows])
        again = pd.DataFrame([{each.name: each.again for each in one.points} for _, one in rows])
        numbers, all_nights = zip(*rows, strict=True)
        firm = (again > 0).to_numpy()
        made.append(
            Table(numbers, [points[name] for name in values], values.to_numpy(), firm, all_nights)
        )
    return made


@dataclass
class Judge:
    """The detector of one table; `judge` gives its alarms as they were raised."""

    table: Table
    alarms: list[Alarm] = field(default_factory=list)

    def __post_init__(self) -> None:
        import pandas as pd

        table = self.table
        self.factors = table.factors()
        share = np.zeros((len(table.points), len(self.factors)))
        for place, factor in enumerate(self.factors):
            share[list(factor.members), place] = 1.0
        # Each column from its median: a night that lacks one shifts no mean.
        centred = (frame := pd.DataFrame(table.values)) - frame.median()
        counts = frame.notna().to_numpy() @ share
        sums = centred.fillna(0.0).to_numpy() @ share
        self.values = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
        self.firm = table.firm @ share > 0
        self.clips = np.asarray([clip_of(len(each.members)) for each in self.factors])
        # Each kind of factor has the same share of the chance of a false alarm.
        kinds = Counter(each.of for each in self.factors)
        limits = {of: threshold(count, FALSE_ALARMS / len(kinds)) for of, count in kinds.items()}
        self.thresholds = np.asarray([limits[each.of] for each in self.factors])

    def judge(self, *, last: bool = True) -> list[Alarm]:
        """All alarms, in the order in which they were raised; of all nights, or but the *last*."""
        for night in range(len(self.table.numbers) - (not last)):
            self._exact(night)
            while self._shifted(night):
                pass
        return self.alarms

    def suspected(self) -> list[str]:
        """Names of cells that the last night makes suspect, beside what alarms say already."""
        self.judge(last=False)
        firm = self.firm.copy()
        firm[-1:] = True  # as if it had been measured again
        tests = scan(self.values, self.clips, firm)
        suspect = (tests.score > _SUSPECTED * self.thresholds).any(axis=0)
        chosen = [self.factors[place] for place in np.flatnonzero(suspect)]
        points = [self.table.points[place] for each in chosen for place in each.members]
        return list(dict.fromkeys(point.cell for point in points if point.cell))

    def _exact(self, night: int) -> None:
        """Raise what code and inputs changed in *night*, which is known without statistics."""
        nights, points = self.table.nights, self.table.points
        if not nights or not night:
            return
        now, before = nights[night], nights[night - 1]
        for name in sorted(set(now.code) - set(before.code)):
            sizes = sorted(now.offsets.values(), key=abs)
            own = [now.offsets[key] for key in now.offsets if key.endswith(f"| {name}")] or sizes
            size = own[len(own) // 2] if own else 0.0
            cells = [point.cell for point in points if point.name in now.offsets]
            self._raise(f"code: {name}", name, night, night, size=(size, size, size), cells=cells)
        cells = [name.removeprefix(INPUT_OF) for name, fact in now.facts.items()
                 if name.startswith(INPUT_OF) and before.facts.get(name, fact) != fact]  # fmt: skip
        if cells:
            places = [place for place, each in enumerate(self.factors)
                      if any(points[column].cell in cells for column in each.members)]  # fmt: skip
            sizes = [estimate(self.values[: night + 1, place], 1)[0] for place in places
                     if self.factors[place].name in cells]  # fmt: skip
            size, name = (max(sizes, key=abs) if sizes else 0.0), ", ".join(cells)
            self._raise("input", name, night, night, size=(size, None, None), cells=cells)
            self.values[:night, places] = np.nan

    def _shifted(self, night: int) -> bool:
        """Raise the largest shift that ends with *night*; whether there was one."""
        values, firm = self.values[: night + 1], self.firm[: night + 1]
        if not values.shape[1]:
            return False
        tests = scan(values, self.clips, firm)
        excess = tests.score - self.thresholds
        row, largest = divmod(int(excess.argmax()), values.shape[1])
        if not excess[row, largest] > 0:
            return False
        # The stretch that says it most clearly begins with the change.
        row = int(np.nanargmax(np.abs(tests.z[:, largest])))
        lag, z = int(LAGS[row]), tests.z[row]
        since = night + 1 - lag
        is_shared = np.asarray([self._is_shared(place, night, lag) for place in range(len(z))])
        sizes = np.where(is_shared, np.abs(np.nan_to_num(z)), 0.0)
        strongest = largest if is_shared[largest] else int(sizes.argmax())
        chosen = next(
            place
            for place in range(len(z))
            if place == strongest
            or (is_shared[place] and self._explains(values, (place, strongest), row, z))
        )
        # Of a common factor all cells, else those that moved.
        columns = [*self.factors[chosen].members]
        if self.factors[chosen].of not in ("all", "workload"):
            columns = [
                each.members[0]
                for each, deviate in zip(self.factors, z, strict=True)
                if each.of == "cell" and deviate * np.sign(z[largest]) > _SAME
            ]
        cells = [self.table.points[column].cell for column in columns]
        cause = self._cause(z, np.asarray([estimate(column, lag)[0] for column in values.T]))
        whole = set(self.factors[chosen].members)
        moved = np.abs(np.nan_to_num(z)) > _SAME
        if cause in _FOLLOWS:  # a cell that went the other way has an alarm of its own
            is_cell = np.asarray([each.of == "cell" for each in self.factors])
            moved &= ~is_cell | (z * np.sign(z[largest]) > 0)
        moved |= [whole.issuperset(each.members) for each in self.factors]
        if not self._is_known(since, cause, chosen, values, lag):
            name, size = self.factors[chosen].name, estimate(values[:, chosen], lag)
            is_firm = bool(firm[-1, chosen])
            self._raise(cause, name, since, night, size=size, cells=cells, is_firm=is_firm)
        self.values[:since, moved] = np.nan
        return True

    def _is_shared(self, place: int, night: int, lag: int) -> bool:
        """Whether most columns of a factor moved as it did: else one of them moved it."""
        first = int((~np.isnan(self.values[:, place])).argmax())
        members = list(self.factors[place].members)
        columns: Numbers = self.table.values[first : night + 1, members]  # noqa: PD011 - no frame
        if columns.shape[1] < 2 or len(columns) <= lag:
            return True
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # a column that has no night there
            sizes = np.nanmedian(columns[-lag:], axis=0) - np.nanmedian(columns[:-lag], axis=0)
        size = float(np.nanmean(sizes))
        return bool(np.nanmedian(sizes) * np.sign(size) > abs(size) / 2)

    def _explains(self, values: Numbers, pair: tuple[int, int], row: int, z: Numbers) -> bool:
        """Whether the first of two factors moved, and nothing of the second's shift is left."""
        above, below = pair
        if not z[above] * np.sign(z[below]) > MOVED:
            return False
        rest = scan(values[:, [below]] - values[:, [above]], self.clips[[below]])
        return not abs(rest.z[row, 0]) > MOVED

    def _is_known(self, since: int, cause: str, chosen: int, values: Numbers, lag: int) -> bool:
        """Whether an alarm of before has said it: the same change, or the end of one."""
        number, factor = self.table.numbers[since], self.factors[chosen]
        for place, alarm in enumerate(self.alarms):
            if alarm.state == "gone" or alarm.cause.startswith(_EXACT):
                continue
            is_near = alarm.since - _NEAR <= number <= alarm.raised + _NEAR
            is_new = factor.of == "cell" and factor.name not in alarm.cells
            if alarm.cause in _FOLLOWS:  # a cause of which others are no consequence
                is_near = is_near and alarm.cause == cause and not is_new
            if is_near and cause in (alarm.cause, *_FOLLOWS):
                return True
            if alarm.series == factor.name:
                _, low, high = estimate(values[:, chosen], lag)
                # Back where it was: as far the other way.
                before = math.log1p(max(alarm.change, -0.999))
                if low is not None and high is not None and low <= -before <= high:
                    self.alarms[place] = alarm.model_copy(update={"state": "gone"})
                    return True
        return False

    def _cause(self, z: Numbers, shifts: Numbers) -> str:
        """Say why, by what moved and what did not: the rules of docs/nightly.md."""
        moved: dict[str, list[int]] = {of: [] for of in _KINDS}
        for place in np.flatnonzero(np.abs(np.nan_to_num(z)) > MOVED):
            moved[self.factors[place].of].append(int(place))
        cells = moved["cell"] + moved["all"]
        probe = [place for place, each in enumerate(self.factors) if each.name == PROBE]
        controls = [place for place in moved["resource"] if place not in probe]
        if probe and abs(z[probe[0]]) > (_SAME if cells or controls else MOVED):
            shares = shifts[[*cells, *controls]] / -shifts[probe[0]]
            if not len(shares) or -0.3 < np.median(shares) < 1.3:
                return "machine"
        by_name = {self.factors[place].name: shifts[place] for place in controls}
        if by_name:
            return f"cluster: {max(by_name, key=lambda name: abs(by_name[name]))}"
        if moved["model"] and cells:
            return "model"
        return "profile" if not cells and (moved["cost"] or moved["model"]) else "unknown"

    def _raise(
        self,
        cause: str,
        series: str,
        since: int,
        raised: int,
        *,
        size: Size,
        cells: Sequence[str],
        is_firm: bool = False,
    ) -> None:
        """Add an alarm about nights by their rows, with a change as it stands in the table."""
        numbers, nights = self.table.numbers, self.table.nights
        is_plain = self.table.is_plain
        ends = [end if end is None or is_plain else math.expm1(end) for end in size]
        suspects = nights[since].facts_since(nights[since - 1]) if nights and since else ()
        key = nights[since].run if nights else numbers[since]
        alarm = Alarm(
            id=digest([key, series, cause])[:8],
            cause=cause,
            series=series,
            since=numbers[since],
            raised=numbers[raised],
            change=ends[0] or 0.0,
            low=ends[1],
            high=ends[2],
            cells=tuple(dict.fromkeys(filter(None, cells))),
            suspects=tuple(suspects),
            state="confirmed" if is_firm or cause.startswith(_EXACT) else "open",
        )
        self.alarms.append(alarm)


def judged(entries: Sequence[Entry]) -> tuple[list[Alarm], list[str]]:
    """Alarms of a history, replayed night by night by each series, and what else is to be said."""
    nights = [entry for entry in entries if isinstance(entry, Night)]
    alarms, notes = list[Alarm](), list[str]()
    every = tables([*enumerate(nights, 1)])
    for number, each in enumerate(nights, 1):
        if not each.whole:
            notes.append(f"night {number} is in no comparison: {'; '.join(each.lacks)}")
    if len(every) > 1:
        names = (f"{table.nights[0].series.id} from night {table.numbers[0]}" for table in every)
        notes.append(f"{len(every)} series are kept apart: {', '.join(names)}")
    for table in every:
        judge = Judge(table)
        alarms += judge.judge()
        notes += table.notes
        if len(table.numbers) < FEWEST_NIGHTS:
            what = f"{FEWEST_NIGHTS} nights show a shift at the soonest"
            notes.append(f"{what}, and series {table.nights[0].series.id} has {len(table.numbers)}")
    return _accepted(sorted(alarms, key=lambda alarm: alarm.raised), entries), notes


def current(entries: Sequence[Entry]) -> tuple[list[Alarm], list[str]]:
    """
    All alarms that a history has, with their states, as they were raised, and notes of `judged`.

    An alarm that was raised stays, whatever the detector of today makes of the same nights.
    """
    again, notes = judged(entries)
    states = {alarm.id: alarm.state for alarm in again}
    raised = [alarm for each in entries if isinstance(each, Night) for alarm in each.alarms]
    alarms = [
        alarm.model_copy(update={"state": "gone"}) if states.get(alarm.id) == "gone" else alarm
        for alarm in raised
    ]
    return _accepted(alarms, entries), notes


def _accepted(alarms: Sequence[Alarm], entries: Sequence[Entry]) -> list[Alarm]:
    accepted = {entry.alarm for entry in entries if isinstance(entry, Acceptance)}
    return [
        alarm.model_copy(update={"state": "accepted"}) if alarm.id in accepted else alarm
        for alarm in alarms
    ]


def read_csv(path: Path, *, each: bool = False) -> list[Table]:
    """
    Read nights from columns `time,NAME...`: a row per night, nothing or NaN where it has no value.

    They are one table, or with *each* one for each column; a column `commit` is left out.
    `DataError` names the line, and what in it is no number or a clock that goes back.
    """
    number, last, rows = 1, -math.inf, list[list[float]]()
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
    values, made = np.reshape(rows, (-1, len(chosen))), list[Table]()
    for places in [[place] for place in range(len(chosen))] if each else [[*range(len(chosen))]]:
        columns, names = values[:, places], [excerpt(head[chosen[place]], 60) for place in places]
        is_plain = bool((columns <= 0).any())
        points = [Point(kind="measured", cell=name, quantity="job_s", raw=()) for name in names]
        logs = columns if is_plain else np.log(columns)
        firm = np.zeros(columns.shape, bool)
        made.append(Table(range(1, len(rows) + 1), points, logs, firm, is_plain=is_plain))
    return made
