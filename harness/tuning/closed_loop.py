"""
The closed loop of tuning: propose, measure beside the job's own settings and the best, learn.

Hadoop's defaults are measured beside them in each step, so that what a loop ends with is never
measured slower than these.  What was measured feeds the profile of the next
step, and what a model still misses there corrects it nearby.  Each step is a run of its own, blind:
its predictions are sealed before anything is measured, and its repeats are interleaved.  Nothing is
drawn anew: a loop that was interrupted proposes the same again, and takes the steps that are there.
"""

from __future__ import annotations

import json
import math

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from operator import itemgetter
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np

from harness.base.documents.wording import by_number
from harness.base.errors import DataError, SpecError
from harness.base.hadoop.slots import KINDS
from harness.base.records.trace import TaskKind
from harness.base.records.trial import Cell, Trial
from harness.base.stats.spread import mean_floors
from harness.clusters import PROVIDERS
from harness.clusters.monitor.rates import rate_statistics
from harness.core.evaluate.basis import Basis
from harness.core.evaluate.flow import Evaluation
from harness.core.evaluate.predict import predict_cells
from harness.core.evaluate.resolved import resolve_cell
from harness.core.run import Console
from harness.core.run.session import Session
from harness.core.store import Run, Store
from harness.observe.profiling import fit_profile, fit_speed
from harness.observe.profiling.jobs import Observation
from harness.tuning.ask import experiment_file
from harness.tuning.learned import Learned, Numbers, point_of
from harness.tuning.optimizers import PTC_WAVE
from harness.tuning.proposals import Proposal, proposals

SpeedUp = tuple[float, float | None, float | None]  # a ratio, and the ends of its interval

_OPTIMIZERS: tuple[str, ...] = ("mrtuner", "search")
_NOISE = 0.01  # of a mean, at the least: a few repeats may agree by chance


def _place(cell: Cell) -> Numbers:
    """Where *cell* lies among settings, as `harness.tuning.learned` has it."""
    configuration, _, job_input = resolve_cell(cell).model_inputs
    return point_of(configuration, job_input.num_splits)


def _factor(learned: Mapping[str, Learned], model: str, cell: Cell) -> float:
    """By what the answer of *model* for *cell* is multiplied, after what was learned of it."""
    return float(learned[model].factor(_place(cell))[0]) if model in learned else 1.0


def _times(speed_up: SpeedUp) -> str:
    """How many times as fast, with the interval; marked where that reaches 1."""
    ratio, low, high = speed_up
    if low is None or high is None:
        return f"{ratio:.2f} times as fast (no interval: too few repeats)"
    may_be_none = ", may be none" if low <= 1 <= high else ""
    return f"{ratio:.2f} times as fast ({low:.2f} to {high:.2f}, 95 %{may_be_none})"


class Step(NamedTuple):
    """
    One step: its run, who proposed, and the mean measured times so far in seconds.

    Of the proposal, of the job's own settings, and of the best.
    """

    run: str
    optimizer: str
    predicted_s: float
    measured_s: float
    own_s: float
    best_s: float


class Outcome(NamedTuple):
    """
    What the *steps* of a loop came to.

    *speed_up* is how many times as fast the best cell is as the job's own settings, with its 95 %
    interval, *over_defaults* the same of Hadoop's defaults, `None` where these are the best; *vet*
    is that of tasks with both, and *properties* are what the best cell changes.  It *says* the same
    in one sentence.
    """

    steps: Sequence[Step]
    speed_up: SpeedUp
    over_defaults: SpeedUp | None
    vet: Mapping[TaskKind, tuple[float, float]]
    properties: Mapping[str, str]
    says: str = ""

    def document(self) -> dict[str, Any]:
        """The outcome as JSON has it."""
        ends = ("value", "low", "high")
        speed_up: dict[str, Any] = dict(zip(ends, self.speed_up, strict=True))
        if self.over_defaults:
            speed_up["over_defaults"] = dict(zip(ends, self.over_defaults, strict=True))
        return {
            "says": self.says,
            "steps": [step._asdict() for step in self.steps],
            "speed_up": speed_up,
            "vet": {kind: {"own": base, "best": best} for kind, (base, best) in self.vet.items()},
            "properties": self.properties,
        }


@dataclass
class Tuning:
    """
    The loop for the base of *basis*, which *evaluation*, an earlier run, knows.

    *judge* prices the proposals; each step measures its cells *repeats* times, and its run is in
    *results_dir*: one that is there already counts, unless all is to be measured *anew*.
    """

    evaluation: Evaluation
    basis: Basis
    judge: str
    repeats: int
    results_dir: Path
    console: Console
    anew: bool = False
    # By cell, and in it by step and repetition.
    times_s: dict[str, dict[tuple[int, int], float]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    cells: dict[str, Cell] = field(default_factory=dict)
    defaults: set[str] = field(default_factory=set)  # cells that are Hadoop's
    default_cells: dict[str, Cell] = field(default_factory=dict)
    miss: float = 0.0  # by which share the last proposal took longer, or less, than was expected
    failed: dict[str, Cell] = field(default_factory=dict)
    learned: list[Observation] = field(default_factory=list)
    # By cell and kind of task: how far a job is from its ideal, where units were timed.
    vets: dict[tuple[str, TaskKind], list[float]] = field(default_factory=lambda: defaultdict(list))

    def __post_init__(self) -> None:
        """What the run's own profiling trials show is known from the start."""
        if self.basis.base.cluster.provider not in PROVIDERS:
            what = "its jobs had run before, on a cluster that nobody can start from here"
            fix = "try its properties there, or name a run that was measured"
            raise SpecError(what, where="--try", fix=fix)
        if self.basis.base.workload.code:
            what = "steps are run from the run alone, which has no workload of your own"
            fix = "write the properties that harness tune proposes into its experiment"
            raise SpecError(what, where="--try", fix=fix)
        self.source = self.evaluation.run.measured
        self.rates = rate_statistics(self.source.read_manifest().rates)
        workload = self.basis.base.workload.name
        for record in self.evaluation.done.values():
            if record.trial.profiling and record.trial.cell.workload.name == workload:
                self.learned += self.evaluation.observe(record)
        if not self.learned:
            what = f"the run has no profiling trial of {workload} to learn from"
            raise DataError(what, where=str(self.source.path), fix="name the run that measured it")

    def steps(self, limit: int) -> Iterator[Step]:
        """Yield *limit* steps, or as many until the gain that is expected is below the noise."""
        base = self.basis.base
        best = base
        for number in range(limit):
            learned = self.learn()
            # Hadoop's defaults, far from the job's own, tell most of what a model cannot know.
            optimizers = _OPTIMIZERS if self.default_cells else (*_OPTIMIZERS, "hadoop")
            proposed, _ = proposals(
                self.basis, optimizers, [self.judge], self.judge, learned, seed=1 + number
            )
            expected = self.expected_times(proposed, learned)
            if (chosen := self.worth_a_step(expected, best)) is None:
                return
            predicted_s, proposal = chosen
            self.note_defaults(proposed)
            self.note_error(proposal)
            cells = {
                cell.id: cell for cell in (base, best, *self.running_defaults(), proposal.cell)
            }
            expected_ratio = self.expected_ratio(proposal, learned)
            run = self.measure(number, cells)
            if proposal.cell.id in self.failed:
                continue
            measured_ratio = math.exp(-fmean(self._gains(base.id, proposal.cell.id)))
            self.miss = abs(measured_ratio / expected_ratio - 1) if expected_ratio else 0.0
            best = self.cells[self.best()]
            means_s = map(self.mean_s, (proposal.cell.id, base.id, best.id))
            yield Step(run, proposal.choice.optimizer, predicted_s, *means_s)

    def worth_a_step(
        self, expected: Sequence[tuple[float, Proposal]], best: Cell
    ) -> tuple[float, Proposal] | None:
        """
        The shortest of the *expected*; `None`, and it is said why, where none is worth a step.

        Before anything was measured Hadoop's defaults are, so that no loop ends below them.
        """
        if not expected:
            self.console.say("nothing is proposed that was not measured")
            return None
        predicted_s, proposal = min(expected, key=itemgetter(0))
        reason = self.reason_to_stop(proposal, predicted_s, best)
        if not reason:
            return predicted_s, proposal
        self.console.say(reason)
        others = [pair for pair in expected if pair[1].cell.id != self.basis.base.id]
        by_hadoop = [pair for pair in others if pair[1].choice.optimizer == "hadoop"]
        if self.times_s or not by_hadoop:
            return None
        self.console.say("Hadoop's defaults are measured beside them, to know")
        return by_hadoop[0]

    def note_defaults(self, proposed: Iterable[Proposal]) -> None:
        """Keep the cells of *proposed* that are Hadoop's defaults: each step measures them."""
        for candidate in proposed:
            if candidate.choice.optimizer == "hadoop":
                self.default_cells[candidate.cell.id] = candidate.cell
        self.defaults |= self.default_cells.keys()

    def running_defaults(self) -> list[Cell]:
        """Those of Hadoop's defaults with which the job does not fail."""
        return [cell for key, cell in self.default_cells.items() if key not in self.failed]

    def note_error(self, proposal: Proposal) -> None:
        """Say before the first step whether the judge can see what the *proposal* saves."""
        judge = self.basis.judge(self.judge)
        saved = proposal.saved or 0.0
        if saved > 0 and not self.times_s and judge.is_within(saved):
            self.console.say(f"{judge.clause}: {saved:+.0%} may be none, which this step shows")

    def expected_ratio(self, proposal: Proposal, learned: Mapping[str, Learned]) -> float | None:
        """What share of the base's time the *proposal* is expected to take; `None`: not known."""
        if proposal.saved is None:
            return None
        factor = _factor(learned, self.judge, proposal.cell)
        return (1 - proposal.saved) * factor / _factor(learned, self.judge, self.basis.base)

    def expected_times(
        self, proposed: Iterable[Proposal], learned: Mapping[str, Learned]
    ) -> list[tuple[float, Proposal]]:
        """Seconds that each proposal is expected to take, but for those that were measured."""
        expected = []
        for proposal in proposed:
            job_s = proposal.prediction.job_s
            if job_s and proposal.cell.id not in self.cells | self.failed:
                expected.append((job_s * _factor(learned, self.judge, proposal.cell), proposal))
        return expected

    def reason_to_stop(self, proposal: Proposal, predicted_s: float, best: Cell) -> str:
        """Why the best *proposal* is not worth its measurement, or nothing."""
        if not self.times_s:
            is_slower = (proposal.saved or 0.0) <= 0
            text = "nothing is expected to be faster than the job's own settings"
            return text if is_slower else ""
        gain = 1 - predicted_s / self.mean_s(best.id)
        noise = self.noise(best.id)
        if gain > max(noise, self.miss):
            return ""
        text = f"the next one is expected to save {gain:.1%}, and"
        if self.miss > noise:
            return f"{text} what was expected of the last one was {self.miss:.1%} off"
        return f"{text} the noise is {noise:.1%}"

    def learn(self) -> dict[str, Learned]:
        """How far off the judge, and the model of MRTuner's factors, are at what was measured."""
        learned = dict[str, Learned]()
        if not self.cells:
            return learned
        for model in {self.judge, PTC_WAVE}:
            measured = self.measured_ratios(model)
            if measured:
                places, ratios = zip(*measured, strict=True)
                noise = fmean(self.noise(cell_id) for cell_id in self.cells)
                learned[model] = Learned(np.vstack(places), np.array(ratios), max(noise, _NOISE))
        return learned

    def measured_ratios(self, model: str) -> list[tuple[Numbers, float]]:
        """Where each cell lies, with the logarithm of its measured time by that of *model*."""
        profiles = {self.basis.profile.workload: self.basis.profile}
        cells = [*self.cells.values()]
        answers = predict_cells(model, map(resolve_cell, cells), profiles, {})
        ratios = [
            (_place(cell), math.log(self.mean_s(cell.id) / answer.job_s))
            for cell, answer in zip(cells, answers, strict=True)
            if answer.job_s
        ]
        # Where a job fails it counts as twice as long as where it does not.
        failure = math.log(2) + (fmean(ratio for _, ratio in ratios) if ratios else 0.0)
        return ratios + [(_place(cell), failure) for cell in self.failed.values()]

    def measure(self, number: int, cells: dict[str, Cell]) -> str:
        """Run *cells* in turn as a run, and learn from it; its path."""
        base = self.basis.base
        name = f"tune-{base.workload.name}"
        session = Session(
            json.dumps(self.step_experiment(name)),
            name,
            self.results_dir,
            (),
            self.console,
            profiles={base.workload.name: self.basis.profile},
        )
        trials = [
            Trial.of(cell, repetition, session.versions)
            for repetition, cell in product(range(self.repeats), cells.values())
        ]
        run = self.earlier_run(session, trials)
        if run is not None and run.finished and not self.anew:
            self.console.say(f"step {1 + number} is measured already: {run.path}")
        else:
            run, _ = session.measure(new=self.anew or run is None, trials=trials)
        self.take_in(Evaluation.of(run), number, cells)
        return str(run.path)

    def earlier_run(self, session: Session, trials: Sequence[Trial]) -> Run | None:
        """The latest run that measured, or began to measure, the *trials* of *session*."""
        planned = [trial.id for trial in trials]
        earlier_runs = [
            run
            for run in Store(self.results_dir).fitting(session.experiment)
            if run.experiment().predict == session.experiment.predict
            and [trial.id for trial in run.read_plan()] == planned
        ]
        return earlier_runs[-1] if earlier_runs else None

    def step_experiment(self, name: str) -> dict[str, Any]:
        """The experiment file of a step, on the cluster of the base."""
        base = self.basis.base
        file = experiment_file(base, name, "Is a job faster with the settings that a model chose?")
        file["cluster"] |= {"provider": base.cluster.provider, "site": base.cluster.site}
        if base.cluster.hosts:
            file["cluster"]["hosts"] = [*base.cluster.hosts]
        if base.cluster.ssh:
            file["cluster"]["ssh"] = base.cluster.ssh.model_dump(mode="json", exclude_none=True)
        return file | {
            "configuration": base.configuration,
            "trace": base.tracing.mode,
            "repeat": self.repeats,
            "predict": {"models": [self.judge], "from": str(self.source.path.absolute())},
        }

    def take_in(self, evaluation: Evaluation, number: int, cells: dict[str, Cell]) -> None:
        """Learn from a step that was measured, from settings with which the job fails as well."""
        run = evaluation.run
        done = {record.trial.cell.id for record in evaluation.done.values()}
        failed = {key: cell for key, cell in cells.items() if key not in done}
        if failed:
            self.note_failures(failed, number, len(cells), str(run.path))
        with run.lock():
            evaluation.score()
            evaluation.report()
        for record in evaluation.done.values():
            observations = evaluation.observe(record)
            times_s = self.times_s[record.trial.cell.id]
            job_times_s = [observation.trace.job_s for observation in observations]
            times_s[number, record.trial.repetition] = sum(job_times_s)
            self.learned += observations
        self.add_vets(evaluation)
        self.cells |= {key: cell for key, cell in cells.items() if key in done}
        speed = fit_speed(self.learned)
        profile = fit_profile(self.basis.base.workload.name, self.learned, speed, self.rates)
        self.basis = self.basis._replace(profile=profile)

    def add_vets(self, evaluation: Evaluation) -> None:
        """Keep how far the tasks of a step are from their ideal, where it timed their units."""
        for job in evaluation.vet(evaluation.done.values()).jobs:
            for kind in job.kinds:
                if kind.job.vet_job:
                    self.vets[job.cell, kind.kind].append(kind.job.vet_job)

    def note_failures(
        self, failed: Mapping[str, Cell], number: int, all_cells: int, run: str
    ) -> None:
        """Keep those of *all_cells* in which the job failed; `DataError` for the base."""
        if self.basis.base.id in failed:
            what = f"step {1 + number}: the job failed with its own settings"
            fix = f"read the reasons, then start it again with --new: harness show {run}"
            raise DataError(what, where=run, fix=fix)
        settings = by_number(all_cells, "setting", "settings")
        self.console.say(
            f"step {1 + number}: the job fails with {len(failed)} of {all_cells} {settings},"
            f" and nothing near them is proposed: harness show {run}"
        )
        self.failed |= failed

    def mean_s(self, cell: str) -> float:
        """Mean measured seconds of a cell, by its id."""
        return fmean(self.times_s[cell].values())

    def best(self) -> str:
        """
        Id of the cell that is fastest beside the base and beside Hadoop's defaults.

        What counts is the lesser of both gains.  That of the faster one of these two is 0, so the
        best cell was measured slower than neither.
        """
        beside = [self.basis.base.id, *sorted(self.defaults & self.times_s.keys())]
        return max(
            self.times_s,
            key=lambda cell: min(fmean(self._gains(other, cell)) for other in beside),
        )

    def _gains(self, slow: str, fast: str) -> list[float]:
        """
        Logarithms of one cell's times over those of another.

        By pairs of both in one step and repetition, which ran one behind the other: what the
        machine does from one step to the next is in neither.  Without a pair that of the means.
        """
        slow_s = self.times_s[slow]
        fast_s = self.times_s[fast]
        gains = [math.log(slow_s[key] / fast_s[key]) for key in slow_s.keys() & fast_s.keys()]
        return gains or [math.log(self.mean_s(slow) / self.mean_s(fast))]

    def noise(self, cell: str) -> float:
        """The noise floor of a cell's mean, by its id: a share of it."""
        floors = mean_floors([[*times_s.values()] for times_s in self.times_s.values()])
        return dict(zip(self.times_s, floors, strict=True))[cell] or 0.0

    def vet(self) -> dict[TaskKind, tuple[float, float]]:
        """Mean vet of the base's tasks of each kind, and of the best cell's; none without units."""
        best = self.best()
        means = dict[TaskKind, tuple[float, float]]()
        for kind in KINDS:
            base_vets = self.vets[self.basis.base.id, kind]
            best_vets = self.vets[best, kind]
            if base_vets and best_vets:
                means[kind] = fmean(base_vets), fmean(best_vets)
        return means

    def outcome(self, steps: Sequence[Step]) -> Outcome:
        """What the *steps* that were taken came to."""
        defaults = self.defaults & self.cells.keys() - {self.best()}
        before = self.basis.base.configuration
        after = self.cells[self.best()].configuration
        return Outcome(
            steps=steps,
            speed_up=self.speed_up(),
            over_defaults=self.speed_up(min(defaults)) if defaults else None,
            vet=self.vet(),
            properties={name: value for name, value in after.items() if before.get(name) != value},
            says=self.says(steps),
        )

    def says(self, steps: Sequence[Step]) -> str:
        """What the *steps* came to in one sentence, with what it rests on and how far off it is."""
        base = self.basis.base.id
        best = self.best()
        beside = sorted(self.defaults & self.times_s.keys() - {best})
        judge = self.basis.judge(self.judge)
        texts = []
        if best != base:
            texts.append(f"{_times(self.speed_up())} as with its own settings")
        texts += [f"{_times(self.speed_up(cell))} as with Hadoop's defaults" for cell in beside]
        subject = "with what was found the job is"
        if best == base:
            subject = "the job's own settings are the best that was measured:"
        elif best in self.defaults:
            subject = "Hadoop's defaults are the best that was measured:"
        rests_on = (
            f"{by_number(len(steps), '1 step', f'{len(steps)} steps')}, {self.repeats} repeats"
        )
        text = f"{subject} {' and '.join(texts)}".rstrip(": ")
        return f"{text} ({rests_on} of each); {judge.clause}"

    def speed_up(self, cell: str = "") -> SpeedUp:
        """
        A *cell*'s time (the base's) over the best one's, with its 95 % interval.

        `None`: there are too few repeats.
        """
        from scipy.stats import ttest_1samp

        cell = cell or self.basis.base.id
        if cell == self.best():
            return 1.0, 1.0, 1.0
        gains = self._gains(cell, self.best())
        ratio = math.exp(fmean(gains))
        if len(gains) < 2:
            return ratio, None, None
        low, high = ttest_1samp(gains, 0).confidence_interval()
        return ratio, math.exp(low), math.exp(high)
