"""
What changed between two runs: what they are, measured times, costs of the profile, models' errors.

Each number has its interval and a verdict.  All times of one quantity are a family, all costs, and
all errors of one quantity: where nothing changed, 5 of 100 families name a change.
"""

from __future__ import annotations

import math

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, product
from statistics import fmean, stdev
from typing import NamedTuple

from harness.base.documents.wording import by_number, count
from harness.base.errors import DataError, SpecError
from harness.base.records.profile import Profile
from harness.base.records.score import Measurement, ScoreBook
from harness.base.records.trial import HISTORY, Cell
from harness.base.stats.gaps import change_tests
from harness.base.stats.resampling import FEWEST_REFITS, jackknife_variance
from harness.base.stats.spread import ENOUGH_REPEATS, mean_floors
from harness.base.text import excerpt
from harness.core.evaluate.measurements import measure_trials
from harness.core.evaluate.sensitivity import Repeats, Sensitivity, sensitivity_of
from harness.core.evaluate.stored import StoredTrials
from harness.core.experiment.grid import axis_values, label, readable, varying
from harness.core.reports.sections.method import flatten
from harness.scoring.comparisons import FAMILY_ERROR, MARGIN
from harness.scoring.score import LEVELS

# What a manifest and its experiment say beside axes; of it, what is different every time.
_FACTS = ("harness", "commit", "python", "nodes", "machine", "gpus", "repeat", "seed", "tracing")
_VARIES = (".load", ".free_bytes")
_MOST_NAMED = 3
# What an import sees of its jobs, and nobody set: how many tasks ran at once, how large splits are.
_OBSERVED = {
    "mapreduce.job.running.map.limit",
    "mapreduce.job.running.reduce.limit",
    "dfs.blocksize",
}
NEAR_INPUT = 0.01  # as far as inputs of past jobs that count as repeats of each other lie apart

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

    def __init__(self, evaluation: StoredTrials) -> None:
        """Read it; `DataError` where it has not come to its end, or is not as it was measured."""
        self.run = evaluation.run
        _require_finished(evaluation)
        self.run.check_evidence()
        self.profiles = self.run.read_profiles()
        self.predictions = evaluation.predictions
        self.scores = self.run.read_scores() if self.run.is_scored else ScoreBook()
        self.missing = list[str]()
        for noun, stored in (("profile", self.profiles), ("score", self.scores.scores)):
            if not stored:
                self.missing.append(f"{self.run.id} has no {noun}s: harness {noun} makes them")
        has_traces = self.run.measured.published_level != "scores"
        if not has_traces:
            what = f"{self.run.id} was published with its scores alone"
            self.missing.append(f"{what}: its profiling cells, and the speed of its machine")
        done = evaluation.done.values() if has_traces else ()
        self.rates = [rate for rate in map(evaluation.rate, done) if rate]
        self.trials = trials_by_cell(evaluation, self.scores, profiling=has_traces)
        self.cells = {cell: evaluation.cells[cell] for cell in self.trials}
        self.axes = texts_by_axis(self.cells.values())
        self.facts = self._facts()

    @property
    def varying(self) -> set[str]:
        """Axes on which its cells differ."""
        return {axis for axis, texts in self.axes.items() if len(texts) > 1}

    @property
    def is_of_past_jobs(self) -> bool:
        """Whether its jobs had run before, and were imported."""
        return all(cell.cluster.provider == HISTORY for cell in self.cells.values())

    def _facts(self) -> dict[str, str]:
        """Values of axes, how many trials were disturbed, the manifest, and codes of models."""
        facts = {axis: ", ".join(sorted(texts)) for axis, texts in self.axes.items()}
        trials = [*chain.from_iterable(self.trials.values())]
        share = fmean(bool(trial.disturbed) for trial in trials) if trials else 0.0
        facts["disturbed trials"] = f"{100 * share:.0f} %"
        manifest = self.run.read_manifest().document()
        experiment = manifest["experiment"]
        document = {name: {**manifest, **experiment}.get(name) for name in _FACTS}
        document["hosts"] = experiment["cluster"].get("hosts")
        document["limits"] = experiment["cluster"].get("nodes")
        document["jars"] = manifest.get("versions", {}).get("jars")
        for name, value in flatten(document):
            if not name.endswith(_VARIES):
                facts[name] = excerpt(value, 40)
        for prediction in self.predictions:
            facts[f"code of {prediction.model}"] = prediction.code[:12]
        return facts

    def estimates(self, labels: Mapping[str, str]) -> Iterator[tuple[Key, Estimate]]:
        """Logarithms of times and errors of the cells of *labels*, which it names; all costs."""
        freedoms = dict[str, int]()  # of the last quantity that a cell has
        for quantity, workload in product(LEVELS, sorted(self.axes["workload"])):
            for cell, estimate in self.time_estimates(quantity, workload):
                freedoms[cell] = int(estimate[2])
                if cell in labels:
                    yield ("time", workload, "", quantity, labels[cell]), estimate
        yield from self.error_estimates(labels, freedoms)
        if len(self.rates) > 1:
            rate = fmean(self.rates)
            spread = stdev(self.rates) / len(self.rates) ** 0.5
            yield ("cost", "", "", "speed_probe_rate", ""), (rate, spread, len(self.rates) - 1, 0.0)
        for workload, profile in self.profiles.items():
            for name, estimate in cost_estimates(profile):
                yield ("cost", workload, "", name, ""), estimate

    def time_estimates(self, quantity: str, workload: str) -> Iterator[tuple[str, Estimate]]:
        """Logarithm of the time of each cell of a workload."""
        times_s = dict[str, list[float]]()
        for cell, trials in self.trials.items():
            repeats_s = [trial.raw_s.get(quantity, 0) for trial in trials]
            repeats_s = [time_s for time_s in repeats_s if time_s > 0]
            if repeats_s and trials[0].workload == workload:
                times_s[cell] = repeats_s
        shared_freedom = sum(map(len, times_s.values())) - len(times_s)
        floors = mean_floors([*times_s.values()])
        for (cell, repeats_s), floor in zip(times_s.items(), floors, strict=True):
            has_spread = len(repeats_s) >= ENOUGH_REPEATS  # of its own: fewer repeats share theirs
            freedom = len(repeats_s) - 1 if has_spread else shared_freedom
            yield cell, (math.log(fmean(repeats_s)), floor or math.nan, freedom, 0.0)

    def repeats(self, workload: str, cells: Sequence[str]) -> Repeats:
        """How often those of *cells* that are of *workload* were repeated, and their noise."""
        estimates = dict(self.time_estimates("job_s", workload))
        chosen = [cell for cell in cells if cell in estimates]
        counts = {
            cell: sum(trial.raw_s.get("job_s", 0) > 0 for trial in self.trials[cell])
            for cell in estimates
        }
        return Repeats(
            run=self.run.id,
            counts=[counts[cell] for cell in chosen],
            floors=[estimates[cell][1] for cell in chosen],
            freedom=sum(counts.values()) - len(counts),
        )

    def error_estimates(
        self, labels: Mapping[str, str], freedoms: Mapping[str, int]
    ) -> Iterator[tuple[Key, Estimate]]:
        """Relative error of each model in each cell; the profile's error is common to the cells."""
        import numpy as np

        refits = {(p.model, p.cell): p.refits for p in self.predictions}
        for score in self.scores.scores:
            if (
                score.speed != self.scores.speed
                or score.quantity not in LEVELS
                or score.cell not in labels
            ):
                continue
            workload = self.cells[score.cell].workload.name
            times = refits.get((score.model, score.cell), {}).get(score.quantity, ())
            errors = abs(np.asarray(times, dtype=float) / score.measured_s - 1)
            profile_error = math.nan
            if len(errors) >= FEWEST_REFITS:
                profile_error = float(jackknife_variance(errors)) ** 0.5
            noise = (score.floor or math.nan) * score.predicted_s / score.measured_s
            key = ("error", workload, score.model, score.quantity, labels[score.cell])
            yield key, (score.relative_error, noise, freedoms[score.cell], profile_error)


def texts_by_axis(cells: Iterable[Cell]) -> defaultdict[str, set[str]]:
    """What *cells* have on each of their axes, as texts."""
    axes = defaultdict[str, set[str]](set)
    for cell in cells:
        for axis, value in axis_values(cell).items():
            axes[axis].add(readable(axis, value))
    return axes


def cost_estimates(profile: Profile) -> Iterator[tuple[str, Estimate]]:
    """Each statistic and each cost of a profile, with its standard error."""
    for name, cost in {**profile.statistics, **profile.frame, **profile.costs}.items():
        # Tasks of one trial vary together: their mean is no better than that of the trials.
        is_error = name in profile.costs or cost.assumed
        root = 1.0 if is_error else min(cost.count, len(profile.trials) or 1) ** 0.5
        spread = cost.spread / root if cost.count > 1 else math.nan
        yield name, (cost.value, spread, cost.count - 1, 0.0)


def _require_finished(evaluation: StoredTrials) -> None:
    """Raise `DataError` where a run has not come to its end."""
    run = evaluation.run
    if not run.measured.finished:
        ended = len(run.trial_ids())
        planned = len(evaluation.plan)
        verb = by_number(ended, "has", "have")
        what = f"run {run.id} is not finished: {ended} of {count(planned, 'trial')} {verb} ended"
        fix = "go on with it (harness all FILE), then compare again"
        raise DataError(what, where=str(run.path), fix=fix)


def trials_by_cell(
    evaluation: StoredTrials, scores: ScoreBook, *, profiling: bool = True
) -> dict[str, list[Measurement]]:
    """All measurements of each cell, *profiling* ones too; those of smaller inputs first."""
    stored = (*scores.measurements, *evaluation.published_measurements())
    measurements = measure_trials(evaluation, stored, profiling=profiling)
    sizes = {cell: spec.workload.input_bytes for cell, spec in evaluation.cells.items()}
    trials = defaultdict[str, list[Measurement]](list)
    for measurement in sorted(measurements, key=lambda measurement: sizes[measurement.cell]):
        trials[measurement.cell].append(measurement)
    return trials


def differences(base: Side, other: Side) -> list[tuple[str, str, str]]:
    """What differs of what the runs say of themselves: name, value in *base*, value in *other*."""
    facts = base.facts | other.facts
    unset = "not set"
    rows = [(fact, base.facts.get(fact, unset), other.facts.get(fact, unset)) for fact in facts]
    return [row for row in rows if row[1] != row[2]]


def shared_cells(base: Side, other: Side) -> dict[str, str]:
    """
    Give the cell of *other* for each cell of *base* that both have measured; `SpecError`: none.

    They have the same workload and input, and the same values on all axes that vary within a run;
    past jobs an input that is the same to 1 %.  An axis that does not vary, such as the one disk
    limit of each run, is what is compared.
    """
    cells = [*base.cells.values(), *other.cells.values()]
    kept = {"workload", "input"}.union(*(cell.workload.parameters for cell in cells))
    kept |= base.varying | other.varying

    twins = {_values(cell, kept): cell_id for cell_id, cell in other.cells.items()}
    points = {cell_id: _values(cell, kept) for cell_id, cell in base.cells.items()}
    shared = {cell_id: twins[values] for cell_id, values in points.items() if values in twins}
    shared |= near_cells(base, other, kept - {"input"} - _OBSERVED, shared)
    if shared:
        return shared
    apart = [f"{name} {old} and {new}" for name, old, new in differences(base, other)]
    what = f"the runs share no cell: {'; '.join(apart[:_MOST_NAMED])}"
    fix = "compare runs that measured a workload with the same input"
    raise SpecError(what, where=f"{base.run.path}, {other.run.path}", fix=fix)


def near_cells(
    base: Side, other: Side, kept: set[str], shared: Mapping[str, str]
) -> dict[str, str]:
    """
    Further pairs of cells of past jobs, whose inputs differ by `NEAR_INPUT` at most.

    The jobs of two months never read the same bytes.  All axes of *kept* are equal; a cell has one
    twin, the nearest that is left beside those that are *shared*.
    """
    free = defaultdict[tuple[object, ...], list[str]](list)
    taken = {*shared.values()}
    for cell_id, cell in other.cells.items():
        if cell_id not in taken and cell.cluster.provider == HISTORY:
            free[_values(cell, kept)].append(cell_id)
    pairs = dict[str, str]()
    for cell_id, cell in base.cells.items():
        candidates = free[_values(cell, kept)]
        if cell_id in shared or cell.cluster.provider != HISTORY or not candidates:
            continue
        size = cell.workload.input_bytes
        apart = {twin: other.cells[twin].workload.input_bytes / size - 1 for twin in candidates}
        nearest = min(candidates, key=lambda twin: abs(apart[twin]))
        if abs(apart[nearest]) <= NEAR_INPUT:
            pairs[cell_id] = nearest
            candidates.remove(nearest)
    return pairs


def _values(cell: Cell, axes: set[str]) -> tuple[object, ...]:
    """What *cell* has on each of *axes* that it has, with their names."""
    return tuple(pair for pair in sorted(axis_values(cell).items()) if pair[0] in axes)


def changes(base: Side, other: Side) -> list[Change]:
    """Judge every number that both runs have; no times where both are of one measurement."""
    shared = shared_cells(base, other)
    axes = varying(base.cells.values())
    labels = {cell: label(base.cells[cell], axes) for cell in shared}
    is_same = base.run.measured.path.samefile(other.run.measured.path)
    old = dict(base.estimates(labels))
    new = dict(other.estimates({shared[cell]: text for cell, text in labels.items()}))
    wholes = defaultdict[Key, list[Key]](list)
    families = defaultdict[str, list[Key]](list)
    for key in filter(new.__contains__, [*old]):
        if is_same and key[0] == "time":
            continue
        families[family_of(key)].append(key)
        wholes[*key[:4], ""].append(key)
    for whole, keys in wholes.items():
        if whole not in old:  # the mean over cells; costs are of none
            families[family_of(whole)].insert(0, whole)
            old[whole] = mean_estimate([old[key] for key in keys])
            new[whole] = mean_estimate([new[key] for key in keys])
    return [*chain(*(judged_family(keys, old, new, other.run.id) for keys in families.values()))]


def family_of(key: Key) -> str:
    """The numbers that a number is judged with: all costs, or those of its kind and quantity."""
    (kind, _, _, name, _) = key
    return "cost " if kind == "cost" else f"{kind} {name}"


def mean_estimate(estimates: Sequence[Estimate]) -> Estimate:
    """Mean of *estimates* whose errors are independent, but for those that they share."""
    values, errors, freedoms, shared_errors = zip(*estimates, strict=True)
    error = math.hypot(*errors) / len(estimates)
    return fmean(values), error, max(freedoms), fmean(shared_errors)


def judged_family(
    keys: Sequence[Key], old: Mapping[Key, Estimate], new: Mapping[Key, Estimate], run: str
) -> Iterator[Change]:
    """Judge the numbers of one family."""
    import numpy as np

    table = np.asarray([[old[key] for key in keys], [new[key] for key in keys]])
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
        fields = (None if math.isnan(number) else number for number in row)
        yield Change._make((*key, run, *fields, verdict))


def sentence(base: Side, other: Side, changed: Sequence[Change]) -> str:
    """Say what moved in the *other* run, and what else differs; or what would not have shown."""
    moved = [change for change in changed if change.verdict in ("larger", "smaller")]
    if not moved:
        return still_sentence(other, changed, sensitivities(base, other, changed))
    what = ", ".join(map(job_sentence, moved_jobs(moved)))
    what = what or f"no job time moved beyond the noise, but {len(moved)} numbers did,"
    matched = {"workload", "input"} | base.varying | other.varying  # by which cells are matched
    if base.is_of_past_jobs and other.is_of_past_jobs:
        matched |= _OBSERVED
    apart = list[str]()
    for name, old, new in differences(base, other):
        if name not in matched:
            apart.append(f"{name} {new} there, {old} here")
    cause = "; ".join(apart[:_MOST_NAMED]) or "nothing that the runs say of themselves differs"
    return f"{what} in run {other.run.id}: {cause}"


def still_sentence(other: Side, changed: Sequence[Change], shown: Sequence[Sensitivity]) -> str:
    """What is said of the *other* run where nothing moved: whether a change would have *shown*."""
    where = f"in run {other.run.id}"
    if whole_jobs(changed) and all(change.verdict == "equal" for change in whole_jobs(changed)):
        return f"nothing moved {where}: job times are equal, to within {100 * MARGIN:.0f} %"
    blind = [sensitivity for sensitivity in shown if sensitivity.is_blind]
    if blind:
        named = [f"{each.workload}: {each.words()}" for each in blind[:_MOST_NAMED]]
        if len(shown) == 1:
            named = [blind[0].words()]
        if len(blind) > _MOST_NAMED:
            named.append(f"and of {count(len(blind) - _MOST_NAMED, 'more workload')}")
        return f"cannot tell what moved {where}: {'; '.join(named)}"
    factors = [sensitivity.factor or 1.0 for sensitivity in shown]
    what = f"nothing moved beyond the noise {where}"
    return (
        f"{what}: a change by {100 * (max(factors) - 1):.2g} % would have shown" if shown else what
    )


def whole_jobs(changed: Sequence[Change]) -> list[Change]:
    """Job times over all cells of a workload, among what *changed* or not."""
    return [
        change
        for change in changed
        if (change.kind, change.name, change.cell) == ("time", "job_s", "")
    ]


def sensitivities(base: Side, other: Side, changed: Sequence[Change]) -> list[Sensitivity]:
    """What would have shown of the job times of each workload that both runs have."""
    shared = shared_cells(base, other)
    family_size = sum((change.kind, change.name) == ("time", "job_s") for change in changed)
    shown = list[Sensitivity]()
    for change in whole_jobs(changed):
        sides = (
            base.repeats(change.workload, [*shared]),
            other.repeats(change.workload, [*shared.values()]),
        )
        gap = math.log1p(change.change)
        shown.append(sensitivity_of(change.workload, sides, gap, family_size))
    return shown


def moved_jobs(moved: Sequence[Change]) -> list[Change]:
    """Job times among the numbers that *moved*: of all cells together, or else of each."""
    jobs = [change for change in moved if (change.kind, change.name) == ("time", "job_s")]
    wholes = [change for change in jobs if not change.cell]
    return wholes or jobs


def job_sentence(change: Change) -> str:
    """Say how many times slower or faster a job is."""
    is_slower = change.change > 0
    power = 1 if is_slower else -1
    ends = (change.change, change.low or 0.0, change.high or 0.0)
    low, middle, high = sorted((1 + end) ** power for end in ends)
    word = "slower" if is_slower else "faster"
    name = change.cell or change.workload
    return f"{name} is {middle:.3g} times {word} ({low:.3g} to {high:.3g})"
