"""What laws compare: the records of one run, each read once; and what a law is."""

from __future__ import annotations

import re

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import harmonic_mean
from typing import NamedTuple

from harness.base.errors import ParseError
from harness.base.records.manifest import Manifest
from harness.base.records.tasks import TaskSpans
from harness.base.records.trace import JobTrace, SpeedSample
from harness.base.records.trial import Trial, TrialRecord
from harness.clusters.monitor.machine import PROBE_LOGS, mean_rate
from harness.core.experiment.grid import expand
from harness.core.experiment.model import Experiment
from harness.core.experiment.planned import planned_trials
from harness.core.store import RawLogs, Run
from harness.core.store.evidence import Chain, Line
from harness.core.store.published import has_other_ids
from harness.observe.parsing.lines import read_speed

CLOCK_S = 1.0  # moments of one machine's clock, which is set meanwhile, may contradict so much
# Experiments that tuning and calibrating make, by their names: their trials follow from what was
# measured until then.  A ready-made experiment has none of these names.
_CHOSEN_MEANWHILE = re.compile(r"tune-.+|calibrate")


class Law(NamedTuple):
    """A law: the *place* that it protects, what holds in one *sentence*, and where it does not."""

    place: str
    sentence: str
    breaches: Callable[[Measured], Iterator[str]]


class Breach(NamedTuple):
    """One *law* that is broken, by its place, and *what* shows it."""

    law: str
    what: str

    def __str__(self) -> str:
        return f"{self.law}: {self.what}"


@dataclass(frozen=True)
class Measured:
    """What laws compare: all records of a *run*, each read once."""

    run: Run

    @cached_property
    def manifest(self) -> Manifest:
        """What the run says of itself."""
        return self.run.read_manifest()

    @cached_property
    def experiment(self) -> Experiment:
        """What was asked for."""
        return self.run.experiment()

    @property
    def was_imported(self) -> bool:
        """Whether its jobs had run before, beside each other and by no plan."""
        return self.experiment.was_imported

    @property
    def is_chosen_meanwhile(self) -> bool:
        """Whether its trials follow from what was measured until then, and from no grid."""
        return _CHOSEN_MEANWHILE.fullmatch(self.experiment.name) is not None

    @property
    def is_of_this_clock(self) -> bool:
        """Whether the cluster's clock is that of the machine which ran the harness."""
        return self.experiment.cluster.provider in ("local", "docker")

    @property
    def is_of_our_cluster(self) -> bool:
        """Whether the cluster was started for it, so that no others had jobs there."""
        return self.experiment.cluster.provider in ("local", "docker", "ansible")

    @cached_property
    def plan(self) -> Sequence[Trial]:
        """Trials in their order."""
        return self.run.read_plan()

    @cached_property
    def asked_plan(self) -> Sequence[Trial] | None:
        """The plan by the grid, the seed and the draw; `None`: it follows from none."""
        versions = next((record.versions for record in self.attempts), None)
        if versions is None or self.is_chosen_meanwhile or self.was_imported:
            return None
        cells = expand(self.experiment)
        return planned_trials(self.experiment, cells, self.run.read_draw(), versions)

    @cached_property
    def has_other_ids(self) -> bool:
        """Whether cells were given other ids for the public, by which a seed shuffles otherwise."""
        return has_other_ids(self.run.opener)

    @cached_property
    def attempts(self) -> Sequence[TrialRecord]:
        """All trials that ran, by their start: warm-ups and repeated ones, too."""
        return self.run.attempts()

    @cached_property
    def measured_here(self) -> Sequence[TrialRecord]:
        """Those of the attempts that no other run has measured."""
        reused = self.manifest.reused
        return [record for record in self.attempts if record.trial.id not in reused]

    @cached_property
    def records(self) -> Mapping[str, TrialRecord]:
        """Trials that count, by their ids."""
        return self.run.trials()

    @cached_property
    def done(self) -> Sequence[TrialRecord]:
        """Those of them that ended well."""
        return [record for record in self.records.values() if record.state == "done"]

    @cached_property
    def lines(self) -> Sequence[Line]:
        """Lines of the chain, in their order."""
        return [*Chain(self.run.opener).lines().values()]

    @cached_property
    def jobs(self) -> Mapping[str, Sequence[JobTrace]]:
        """Jobs of each trial that is done, where its traces are stored."""
        return {
            record.trial.id: self.run.read_trace(record.trial.id)
            for record in self.done
            if self.run.has_trace(record.trial.id)
        }

    def all_jobs(self) -> Iterator[JobTrace]:
        """Every job of which there is a trace."""
        for jobs in self.jobs.values():
            yield from jobs

    @cached_property
    def recordings(self) -> Mapping[str, Sequence[TaskSpans]]:
        """What was recorded inside the tasks of each trial of which there is a trace."""
        return {trial_id: [*self.run.read_recordings(trial_id)] for trial_id in self.jobs}

    @cached_property
    def readings(self) -> Mapping[str, Mapping[str, Sequence[SpeedSample] | ParseError]]:
        """Of each trial that is done, what logs of the speed probe have, or why none reads them."""
        return {record.trial.id: self._readings(record.trial.id) for record in self.done}

    def _readings(self, trial_id: str) -> Mapping[str, Sequence[SpeedSample] | ParseError]:
        """What each log of the speed probe of a trial has."""
        raw = self.raw(trial_id)
        readings: dict[str, Sequence[SpeedSample] | ParseError] = {}
        for name in filter(PROBE_LOGS.fullmatch, raw.names()):
            try:
                with raw.open(name) as lines:
                    readings[name] = [*read_speed(lines, name)]
            except ParseError as error:
                readings[name] = error
        return readings

    @cached_property
    def rates(self) -> Mapping[str, float]:
        """The mean rate of the speed probe while the jobs of each trial ran, where it is known."""
        rates = {}
        for trial_id, jobs in self.jobs.items():
            rate = self._rate(trial_id, jobs)
            if rate:
                rates[trial_id] = rate
        return rates

    def _rate(self, trial_id: str, jobs: Sequence[JobTrace]) -> float | None:
        """The rate of equal work on each machine in turn while *jobs* ran."""
        machine_rates = []
        for samples in self.readings[trial_id].values():
            if isinstance(samples, ParseError) or not jobs:
                return None
            machine_rate = mean_rate(samples, jobs[0].submit_s, jobs[-1].finish_s)
            if not machine_rate:
                return None
            machine_rates.append(machine_rate)
        return harmonic_mean(machine_rates) if machine_rates else None

    def raw(self, trial_id: str) -> RawLogs:
        """The logs of a trial that counts."""
        return self.run.raw(trial_id)
