"""
The closed loop of tuning: propose, measure beside the default and the best, learn, propose again.

Each step is a run of its own, blind: its predictions are sealed before anything is measured, and
its repeats are interleaved.  What a step measured feeds the profile of the next one.
"""

from __future__ import annotations

import json
import math

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import fmean, variance
from typing import NamedTuple

from harness.errors import DataError
from harness.evaluate.ask import Basis, experiment_file
from harness.evaluate.flow import Evaluation
from harness.evaluate.tune import Proposal, proposals
from harness.monitor.rates import rate_statistics
from harness.profiling import fit_profile, fit_speed
from harness.profiling.jobs import Observation
from harness.records.profile import Profile
from harness.records.trial import Cell, Trial, trial_id
from harness.run import Console
from harness.run.session import Session
from harness.stats.spread import standard_deviation

_OPTIMIZERS = ("mrtuner", "search")


class Step(NamedTuple):
    """
    One step: its run, its proposal, and the mean measured times so far in seconds.

    *gain* is what it was expected to save of the best one's time, *noise* the floor of that.
    """

    run: str
    proposal: Proposal
    predicted_s: float
    measured_s: float
    default_s: float
    best_s: float
    gain: float
    noise: float


@dataclass
class Tuning:
    """
    The loop for the base of *basis*, which *evaluation*, an earlier run, knows.

    *judge* prices the proposals; each step measures its cells *repeats* times.
    """

    evaluation: Evaluation
    basis: Basis
    judge: str
    repeats: int
    console: Console
    times_s: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    cells: dict[str, Cell] = field(default_factory=dict)
    learned: list[Observation] = field(default_factory=list)

    def __post_init__(self) -> None:
        """What the run's own profiling trials show is known from the start."""
        self.profile: Profile = self.basis.profile
        self.source = self.evaluation.run.measured
        self.rates = rate_statistics(self.source.read_manifest().rates)
        workload = self.basis.base.workload.name
        for record in self.evaluation.done.values():
            if record.trial.profiling and record.trial.cell.workload.name == workload:
                self.learned += self.evaluation.observe(record)
        if not self.learned:
            what = f"the run has no profiling trial of {workload} to learn from"
            raise DataError(what, where=str(self.source.path), fix="name the run that measured it")

    def steps(self, most: int) -> Iterator[Step]:
        """Yield *most* steps, or as many until the gain that is expected is below the noise."""
        base = self.basis.base
        best = base
        for number in range(most):
            basis = self.basis._replace(profile=self.profile, profiled=self.evaluation.cells)
            made, _ = proposals(basis, _OPTIMIZERS, [self.judge], self.judge, seed=1 + number)
            new = [each for each in made if each.cell.id not in self.cells
                   and each.prediction.job_s is not None]  # fmt: skip
            if not new:
                self.console.say("nothing is proposed that was not measured")
                return
            proposal = new[0]
            predicted_s = proposal.prediction.job_s or math.nan
            gain, noise = 0.0, 0.0
            if self.times_s:
                best_s = fmean(self.times_s[best.id])
                gain, noise = 1 - predicted_s / best_s, self.noise(best)
                if gain <= noise:
                    self.console.say(
                        f"the next one is expected to save {gain:.1%}, and the noise is {noise:.1%}"
                    )
                    return
            cells = {each.id: each for each in (base, best, proposal.cell)}
            run = self.measure(number, cells)
            best = min(self.cells.values(), key=lambda cell: fmean(self.times_s[cell.id]))
            yield Step(
                run,
                proposal,
                predicted_s,
                fmean(self.times_s[proposal.cell.id]),
                fmean(self.times_s[base.id]),
                fmean(self.times_s[best.id]),
                gain,
                noise,
            )

    def measure(self, number: int, cells: dict[str, Cell]) -> str:
        """Run *cells* in turn as a run, and learn from it; its path."""
        base = self.basis.base
        name = f"tune-{base.workload.name}"
        file = experiment_file(base, name, "Is a job faster with the settings that a model chose?")
        file["cluster"] |= {"provider": base.cluster.provider, "site": base.cluster.site}
        if base.cluster.hosts:
            file["cluster"]["hosts"] = [*base.cluster.hosts]
        if base.cluster.ssh:
            file["cluster"]["ssh"] = base.cluster.ssh.model_dump(mode="json", exclude_none=True)
        file |= {
            "configuration": base.configuration,
            "trace": base.tracing.mode,
            "repeat": self.repeats,
            "predict": {"models": [self.judge], "from": self.source.id},
        }
        session = Session(
            json.dumps(file), name, self.source.path.parent.parent, (), self.console,
            profiles={base.workload.name: self.profile},
        )  # fmt: skip
        session.trials = tuple(
            Trial(id=trial_id(cell, repetition, session.versions), cell=cell, repetition=repetition)
            for repetition in range(self.repeats)
            for cell in cells.values()
        )
        run, failures = session.measure(new=True)
        if failures:
            what = f"{failures} trials of step {1 + number} failed"
            raise DataError(what, where=str(run.path), fix="read their reasons: harness show RUN")
        evaluation = Evaluation.of(run)
        with run.lock():
            evaluation.score()
            evaluation.report()
        for record in evaluation.done.values():
            observed = evaluation.observe(record)
            self.times_s[record.trial.cell.id].append(sum(each.trace.job_s for each in observed))
            self.learned += observed
        self.cells |= cells
        speed = fit_speed(self.learned)
        self.profile = fit_profile(base.workload.name, self.learned, speed, self.rates)
        return str(run.path)

    def noise(self, cell: Cell) -> float:
        """The noise floor of *cell*, by the spread of all that was repeated."""
        several = [times for times in self.times_s.values() if len(times) > 1]
        if not several:
            return 0.0
        spread = fmean(standard_deviation(times) / fmean(times) for times in several)
        return spread / math.sqrt(len(self.times_s[cell.id]))

    def speed_up(self) -> tuple[float, float, float]:
        """The base's time over the best one's, with its 95 % interval (Welch, of logarithms)."""
        from scipy.special import stdtrit

        base = self.basis.base.id
        best = min(self.times_s, key=lambda cell: fmean(self.times_s[cell]))
        logs = [[math.log(time_s) for time_s in self.times_s[cell]] for cell in (base, best)]
        ratio = math.exp(fmean(logs[0]) - fmean(logs[1]))
        if base == best or min(map(len, logs)) < 2:
            return ratio, ratio, ratio
        shares = [variance(each) / len(each) for each in logs]
        freedom = sum(shares) ** 2 / (
            sum(share**2 / (len(each) - 1) for share, each in zip(shares, logs, strict=True))
            or math.inf
        )
        half = float(stdtrit(max(1.0, freedom), 0.975)) * math.sqrt(sum(shares))
        return ratio, ratio * math.exp(-half), ratio * math.exp(half)
