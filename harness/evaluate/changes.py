"""
What changed between two runs: what they are, measured times, costs of the profile, models' errors.

Each number has its interval and a verdict.  All times of one quantity are a family, all costs, and
all errors of one quantity: where nothing changed, 5 of 100 families name a change.
"""

from __future__ import annotations

import math

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, product
from statistics import fmean, stdev
from typing import NamedTuple

from harness.errors import DataError, SpecError
from harness.evaluate.flow import Evaluation
from harness.experiment.grid import axis_values, label, readable, varying
from harness.records.score import Measurement, ScoreBook
from harness.records.trial import Cell
from harness.reports.sections.method import flatten
from harness.scoring.comparisons import FAMILY_ERROR, MARGIN
from harness.scoring.score import LEVELS
from harness.stats.pairs import change_tests
from harness.stats.resampling import FEWEST_REFITS, jackknife_variance
from harness.stats.spread import ENOUGH_REPEATS, mean_floors
from harness.text import excerpt

# What a manifest and its experiment say beside axes; of it, what is different every time.
_FACTS = ("harness", "commit", "python", "nodes", "machine", "gpus", "repeat", "seed", "tracing")
_VARIES = (".load", ".free_bytes")
_MOST_NAMED = 3

Key = tuple[str, str, str, str, str]  # the first fields of `Change`
# Value, standard error, degrees of freedom, and a further error that cells share; NaN: not known.
Estimate = tuple[float, float, float, float]


class Change(NamedTuple):
    """
    A number in the base run and in the other one, which *run* names; spreads are standard errors.

    *kind* is `time` (*name* is a quantity of the scores), `cost` (a statistic) or `error` (the mean
    relative one of a model).  Without a *cell* it is the mean over those that both runs have, of
    times the geometric one.  *change*, from *low* to *high* at 95 %, is relative to the base, of
    errors the difference.  *verdict* is `larger`, `smaller`, `equal` or `undecided`; *chance* gives
    as much, corrected for the family (`None`: the noise is not known).
    """

    kind: str
    workload: str
    model: str
    name: str
    cell: str
    run: str
    base: float
    other: float
    base_spread: float | None
    other_spread: float | None
    change: float
    low: float | None
    high: float | None
    chance: float | None
    verdict: str


class Side:
    """What is compared of one run: *facts* are what it says of itself, *missing* what it lacks."""

    def __init__(self, evaluation: Evaluation) -> None:
        """Read it; `DataError` where it has not come to its end, or is not as it was measured."""
        self.run, self.scores = evaluation.run, ScoreBook()
        if not self.run.measured.finished:
            ended = len(self.run.trial_ids())
            planned = len(evaluation.plan)
            what = f"run {self.run.id} is not finished: {ended} of {planned} trials have ended"
            fix = "go on with it (harness all FILE), then compare again"
            raise DataError(what, where=str(self.run.path), fix=fix)
        self.run.check_evidence()
        self.profiles = self.run.read_profiles()
        self.predictions = evaluation.predictions
        if self.run.is_scored:
            self.scores = self.run.read_scores()
        parts = {"profile": self.profiles, "score": self.scores.scores}
        self.missing = [
            f"{self.run.id} has no {noun}s: harness {noun} makes them"
            for noun, given in parts.items()
            if not given
        ]
        self.rates = [rate for each in evaluation.done.values() if (rate := evaluation.rate(each))]
        self.trials = defaultdict[str, list[Measurement]](list)
        measurements = evaluation.measurements(self.scores.measurements, profiling=True)
        sizes = {cell: each.workload.input_bytes for cell, each in evaluation.cells.items()}
        for measurement in sorted(measurements, key=lambda each: sizes[each.cell]):
            self.trials[measurement.cell].append(measurement)
        self.cells = {cell: evaluation.cells[cell] for cell in self.trials}
        self.axes = defaultdict[str, set[str]](set)
        for axis, value in chain(*(axis_values(cell).items() for cell in self.cells.values())):
            self.axes[axis].add(readable(axis, value))
        manifest = self.run.read_manifest().document()
        experiment = manifest["experiment"]
        cluster = manifest["experiment"]["cluster"]
        document = {name: {**manifest, **experiment}.get(name) for name in _FACTS}
        document |= {"hosts": cluster.get("hosts"), "limits": cluster.get("nodes")}
        document["jars"] = manifest.get("versions", {}).get("jars")
        disturbed = [bool(each.disturbed) for each in chain(*self.trials.values())] or [False]
        self.facts = {axis: ", ".join(sorted(texts)) for axis, texts in self.axes.items()}
        self.facts["disturbed trials"] = f"{100 * fmean(disturbed):.0f} %"
        for name, value in flatten(document):
            if not name.endswith(_VARIES):
                self.facts[name] = excerpt(value, 40)
        self.facts |= {
            f"code of {prediction.model}": prediction.code[:12] for prediction in self.predictions
        }

    def estimates(self, labels: Mapping[str, str]) -> Iterator[tuple[Key, Estimate]]:
        """Logarithms of times and errors of the cells of *labels*, which it names; all costs."""
        import numpy as np

        freedoms = dict[str, int]()
        for quantity, workload in product(LEVELS, sorted(self.axes["workload"])):
            times_s = {
                cell: times_s
                for cell, trials in self.trials.items()
                if trials[0].workload == workload
                and (times_s := [t for trial in trials if (t := trial.raw_s.get(quantity, 0)) > 0])
            }
            every = sum(map(len, times_s.values()))
            floors = mean_floors([*times_s.values()])
            for (cell, repeats_s), floor in zip(times_s.items(), floors, strict=True):
                few = len(repeats_s) < ENOUGH_REPEATS  # which share their spread
                freedoms[cell] = every - len(times_s) if few else len(repeats_s) - 1
                if cell in labels:
                    estimate = math.log(fmean(repeats_s)), floor or math.nan, freedoms[cell], 0.0
                    yield ("time", workload, "", quantity, labels[cell]), estimate
        refits = {
            (prediction.model, prediction.cell): prediction.refits
            for prediction in self.predictions
        }
        for score in self.scores.scores:
            if score.speed == "raw" and score.quantity in LEVELS and score.cell in labels:
                workload = self.cells[score.cell].workload.name
                times = refits.get((score.model, score.cell), {}).get(score.quantity, ())
                errors = abs(np.asarray(times, dtype=float) / score.measured_s - 1)
                is_known = len(errors) >= FEWEST_REFITS
                of_profile = float(jackknife_variance(errors)) ** 0.5 if is_known else math.nan
                noise = (score.floor or math.nan) * score.predicted_s / score.measured_s
                key = "error", workload, score.model, score.quantity, labels[score.cell]
                yield key, (score.relative_error, noise, freedoms[score.cell], of_profile)
        if len(self.rates) > 1:
            rate = fmean(self.rates)
            spread = stdev(self.rates) / len(self.rates) ** 0.5
            yield ("cost", "", "", "speed_probe_rate", ""), (rate, spread, len(self.rates) - 1, 0.0)
        for workload, profile in self.profiles.items():
            for name, cost in {**profile.statistics, **profile.frame, **profile.costs}.items():
                # Tasks of one trial vary together: their mean is no better than that of the trials.
                is_error = name in profile.costs or cost.assumed
                root = 1.0 if is_error else min(cost.count, len(profile.trials) or 1) ** 0.5
                spread = cost.spread / root if cost.count > 1 else math.nan
                yield ("cost", workload, "", name, ""), (cost.value, spread, cost.count - 1, 0.0)


def differences(base: Side, other: Side) -> list[tuple[str, str, str]]:
    """What differs of what the runs say of themselves: name, value in *base*, value in *other*."""
    facts = base.facts | other.facts
    unset = "not set"
    rows = [(fact, base.facts.get(fact, unset), other.facts.get(fact, unset)) for fact in facts]
    return [row for row in rows if row[1] != row[2]]


def shared_cells(base: Side, other: Side) -> dict[str, str]:
    """
    Give the cell of *other* for each cell of *base* that both have measured; `SpecError`: none.

    They have the same workload and input, and the same values on all axes that vary within a run.
    An axis that does not, such as the one disk limit of each run, is what is compared.
    """
    cells = [*base.cells.values(), *other.cells.values()]
    kept = {"workload", "input"}.union(*(cell.workload.parameters for cell in cells))
    kept |= {axis for side in (base, other) for axis in side.axes if len(side.axes[axis]) > 1}

    def point(cell: Cell) -> tuple[tuple[str, object], ...]:
        return tuple(pair for pair in sorted(axis_values(cell).items()) if pair[0] in kept)

    twins = {point(cell): cell_id for cell_id, cell in other.cells.items()}
    points = {cell_id: point(cell) for cell_id, cell in base.cells.items()}
    if shared := {cell_id: twins[each] for cell_id, each in points.items() if each in twins}:
        return shared
    apart = [f"{name} {one} and {two}" for name, one, two in differences(base, other)]
    what = f"the runs share no cell: {'; '.join(apart[:_MOST_NAMED])}"
    fix = "compare runs that measured a workload with the same input"
    raise SpecError(what, where=f"{base.run.path}, {other.run.path}", fix=fix)


def changes(base: Side, other: Side) -> list[Change]:
    """Judge every number that both runs have; no times where both are of one measurement."""
    shared = shared_cells(base, other)
    axes = varying(base.cells.values())
    labels = {cell: label(base.cells[cell], axes) for cell in shared}
    is_same = base.run.measured.path.samefile(other.run.measured.path)
    one = dict(base.estimates(labels))
    two = dict(other.estimates({shared[cell]: text for cell, text in labels.items()}))
    wholes = defaultdict[Key, list[Key]](list)
    families = defaultdict[str, list[Key]](list)
    for key in one:
        if key in two and not (is_same and key[0] == "time"):
            families[f"{key[0]} {key[3] if key[0] != 'cost' else ''}"].append(key)
            wholes[*key[:4], ""].append(key)
    for whole, keys in wholes.items():
        if whole not in one:
            families[f"{whole[0]} {whole[3]}"].insert(0, whole)
            for side in (one, two):
                values, errors, freedoms, commons = zip(*(side[key] for key in keys), strict=True)
                error = math.hypot(*errors) / len(keys)
                freedom = max(freedoms)
                side[whole] = fmean(values), error, freedom, fmean(commons)
    return [*chain(*(_judged(keys, one, two, other.run.id) for keys in families.values()))]


def _judged(
    keys: Sequence[Key], one: Mapping[Key, Estimate], two: Mapping[Key, Estimate], run: str
) -> Iterator[Change]:
    """Judge the numbers of one family."""
    import numpy as np

    table = np.asarray([[side[key] for key in keys] for side in (one, two)])
    values, spreads, freedoms, commons = np.moveaxis(table, -1, 0)
    scale = np.ones(len(keys))
    if keys[0][0] == "cost":  # where both are 0, the spread is all that there is
        sizes = np.abs([*values, spreads.sum(axis=0), scale])
        scale = sizes[(sizes > 0).argmax(axis=0), range(len(keys))]
    gaps = (values[1] - values[0]) / scale
    spreads = np.hypot(spreads, np.nan_to_num(commons))
    tests = change_tests(gaps, (spreads / scale) ** 2, np.maximum(freedoms, 1), margin=MARGIN)
    ends = np.asarray([gaps, *tests[:2]])
    chances = np.asarray(tests[2:]) + 0 * commons.sum(axis=0)
    if keys[0][0] == "time":  # logarithms, until here
        values = np.exp(values)
        ends = np.expm1(np.minimum(ends, 99))
        spreads = spreads * values
    is_distinct = chances[0] <= FAMILY_ERROR
    verdicts = np.select(
        [chances[1] <= FAMILY_ERROR, is_distinct & (gaps > 0), is_distinct],
        ["equal", "larger", "smaller"],
        "undecided",
    )
    numbers = np.asarray([*values, *spreads, *ends, chances[0]]).T
    for key, row, verdict in zip(keys, numbers.tolist(), verdicts.tolist(), strict=True):
        known = (None if math.isnan(number) else number for number in row)
        yield Change._make((*key, run, *known, verdict))


def sentence(base: Side, other: Side, changed: Sequence[Change]) -> str:
    """Say what moved in the *other* run, and what else differs."""
    moved = [each for each in changed if each.verdict in ("larger", "smaller")]
    jobs = [each for each in moved if (each.kind, each.name) == ("time", "job_s")]
    texts = list[str]()
    for each in [job for job in jobs if not job.cell] or jobs:
        power, word = (1, "slower") if each.change > 0 else (-1, "faster")
        ends = (each.change, each.low or 0.0, each.high or 0.0)
        low, middle, high = sorted((1 + end) ** power for end in ends)
        name = each.cell or each.workload
        texts.append(f"{name} is {middle:.3g} times {word} ({low:.3g} to {high:.3g})")
    if not moved:
        return f"nothing moved beyond the noise in run {other.run.id}"
    what = ", ".join(texts) or f"no job time moved beyond the noise, but {len(moved)} numbers did,"
    apart = [
        f"{name} {there} there, {here} here"
        for name, here, there in differences(base, other)
        if name not in ("workload", "input")  # by which, and by what varies, cells are matched
        and max(len(side.axes.get(name, ())) for side in (base, other)) < 2
    ]
    cause = "; ".join(apart[:_MOST_NAMED]) or "nothing that the runs say of themselves differs"
    return f"{what} in run {other.run.id}: {cause}"
