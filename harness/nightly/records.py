"""Nights: what each adds to a history, and the alarms that came of it."""

from __future__ import annotations

from statistics import fmean
from typing import Annotated, Literal

from pydantic import Field, FiniteFloat, NonNegativeInt, PositiveInt, ValidationError

from harness.base.errors import DataError
from harness.base.records.trial import SCHEMA_VERSION, Moment, Record, SchemaVersion, digest

PointKind = Literal["measured", "control", "cost", "residual"]
PROBE = "processor"
# Of the cluster, what a workload shows that no model is asked about; the speed probe the machine's.
_RESOURCES = {"dfsio": "disk", "shuffle": "network", "sleep": "framework"}
# The cause of an alarm about how far nights lie apart, and not about a level.
SPREAD = "spread"
OF_DISTURBED = 0.25  # of a repeat
AlarmState = Literal["open", "confirmed", "accepted", "gone"]


class Series(Record):
    """
    What nights must share to be compared: a change of any begins a new series.

    *residual* is the quantity that models are compared with: earlier nights had bodies.
    """

    machine: str
    experiment: str
    hadoop: str
    workers: str
    residual: str = Field("body_s", exclude_if=lambda quantity: quantity == "body_s")

    @property
    def id(self) -> str:
        """Short hash of all fields."""
        return digest(self.model_dump(mode="json"))[:8]


# What is above 0 and no mistake: the logarithm of a mean of several, and of a ratio, is finite.
Measured = Annotated[float, Field(ge=1e-100, le=1e100)]


class Point(Record):
    """
    One number of one night, all repeats of it: positive, in seconds, or as the quantity has it.

    *kind* is `measured` (times of a scored cell), `control` (a workload that no model is asked
    about, or the speed probe), `cost` (a statistic of the profile) or `residual` (measured over
    predicted time of *model*).  *reference* are the repeats at reference speed, where there are
    such.  *starts* are the numbers of the cluster's starts, from 0; the last *again* repeats were
    measured on suspicion; during those with the places *disturbed*, from 0, others used the
    machine.
    """

    kind: PointKind
    workload: str = ""
    cell: str = ""
    quantity: str
    model: str = ""
    raw: tuple[Measured, ...]
    reference: tuple[FiniteFloat, ...] = ()
    starts: tuple[NonNegativeInt, ...] = ()
    again: NonNegativeInt = 0
    disturbed: tuple[NonNegativeInt, ...] = ()

    @property
    def weights(self) -> tuple[float, ...]:
        """What each repeat counts: a disturbed one a quarter, as if it spread twice as wide."""
        return tuple(
            OF_DISTURBED if place in self.disturbed else 1.0 for place in range(len(self.raw))
        )

    @property
    def weight(self) -> float:
        """What the number counts among those of other nights: 1 where nobody disturbed it."""
        return fmean(self.weights) if self.raw else 0.0

    @property
    def name(self) -> str:
        """Name of the number, the same each night."""
        parts = (self.kind, self.workload, self.cell, self.quantity, self.model)
        return " | ".join(filter(None, parts))

    @property
    def factors(self) -> list[tuple[str, str]]:
        """
        What it is a part of, each as kind and name: of a time its workload and its cell.

        Of a control it is the resource that its workload shows.
        """
        if self.kind == "control":
            return [("resource", _RESOURCES.get(self.workload, self.workload) or self.quantity)]
        if self.kind != "measured":
            factor_kind = "model" if self.kind == "residual" else "cost"
            return [(factor_kind, self.model or f"{self.workload} {self.quantity}")]
        if self.quantity != "job_s":
            return [("phase", self.quantity)]
        factors = [("all", "all cells"), ("workload", self.workload), ("cell", self.cell)]
        return [(factor_kind, name) for factor_kind, name in factors if name]


def point_of(**fields: object) -> Point:
    """A point of a night; `DataError` where a number is none that a machine could have."""
    try:
        return Point.model_validate(fields)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        names = (fields.get(name) for name in ("workload", "model", "quantity"))
        what = f"{' '.join(str(name) for name in names if name)}: {first['msg'].lower()}"
        fix = "look at what the run was given: harness profile RUN --json, harness score RUN"
        where = f"{fields['kind']} numbers of the run"
        raise DataError(f"{what}, and it is {first['input']!r}", where=where, fix=fix) from error


class Alarm(Record):
    """
    A change since the night *since* that was raised in the night *raised*, counted from 1.

    *cause* is `machine`, `cluster: RESOURCE`, `profile`, `model`, `input`, `code: NAME`, `spread`,
    or `unknown`.  *series* names what moved, *cells* where; *change* is relative, *low* to *high*
    its 95 % interval (`None`: not known); of a `spread` it is that of the spread of nights.
    *suspects* are facts that changed between the last night before and the first night of the
    change.
    """

    id: str
    cause: str
    series: str
    since: PositiveInt
    raised: PositiveInt
    change: FiniteFloat
    low: FiniteFloat | None = None
    high: FiniteFloat | None = None
    cells: tuple[str, ...] = ()
    suspects: tuple[str, ...] = ()
    state: AlarmState = "open"


class Night(Record):
    """
    A line of a history: one night of one series.

    *facts* are what may explain a change, by name.  *code* names what gives other results of the
    night *baseline* with the code of this one, and *offsets* by how much, as logarithms, by the
    names of points.  *alarms* were raised in this night.  *lacks* says what is missing or doubtful;
    a night that is not *whole* is in no comparison.
    """

    schema_version: SchemaVersion = SCHEMA_VERSION
    kind: Literal["night"] = "night"
    time_s: Moment
    run: str
    series: Series
    whole: bool = True
    lacks: tuple[str, ...] = ()
    facts: dict[str, str] = Field(default_factory=dict)
    points: tuple[Point, ...] = ()
    baseline: str = ""
    code: tuple[str, ...] = ()
    offsets: dict[str, FiniteFloat] = Field(default_factory=dict)
    alarms: tuple[Alarm, ...] = ()
    previous: str = ""

    def facts_since(self, before: Night) -> tuple[str, ...]:
        """The facts that differ from those of the night *before*, each with both values."""
        names = sorted({*before.facts, *self.facts})
        old = before.facts
        new = self.facts
        return tuple(
            f"{name}: {old.get(name, 'not known')} before, {new.get(name, 'not known')} since"
            for name in names
            if old.get(name) != new.get(name)
        )

    def changed_by(self, name: str) -> dict[str, float]:
        """Offsets that a change of the code *name* makes: those of a model, else all of them."""
        model_offsets = {
            point_name: offset
            for point_name, offset in self.offsets.items()
            if point_name.endswith(f"| {name}")
        }
        return model_offsets or self.offsets


class Acceptance(Record):
    """A line of a history: the change of an *alarm* is as it should be, for that *reason*."""

    schema_version: SchemaVersion = SCHEMA_VERSION
    kind: Literal["accepted"] = "accepted"
    time_s: Moment
    alarm: str
    reason: str
    previous: str = ""


Entry = Night | Acceptance
