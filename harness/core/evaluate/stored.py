"""What a run holds of its trials, read when it is asked for: cells, jobs, rates, observations."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from statistics import harmonic_mean
from typing import Self

from harness.base.errors import DataError
from harness.base.records.draw import Draw
from harness.base.records.prediction import Prediction
from harness.base.records.profile import Profile
from harness.base.records.score import Measurement
from harness.base.records.trace import JobTrace
from harness.base.records.trial import Cell, Trial, TrialRecord
from harness.clusters.monitor.machine import PROBE_LOGS, mean_rate
from harness.clusters.workloads.resolved import ResolvedCell
from harness.core.evaluate.observations import observe
from harness.core.evaluate.resolved import resolve_cell
from harness.core.experiment.grid import label, varying
from harness.core.experiment.model import Experiment
from harness.core.store import RawLogs, Run
from harness.observe.parsing.lines import read_speed
from harness.observe.profiling.jobs import Observation


@dataclass(frozen=True)
class StoredTrials:
    """
    The trials of a *run*, by its *plan*, for an *experiment*: its own, or one asked of it later.

    *rates* are those of the speed probe that were read, by trial.  *borrowed* are the profiles that
    are asked for of another run, by workload, where the run does not keep them.
    """

    run: Run
    experiment: Experiment
    plan: Sequence[Trial]
    rates: dict[str, float | None] = field(default_factory=dict)
    borrowed: Mapping[str, Profile] = field(default_factory=dict)

    @classmethod
    def of(cls, run: Run) -> Self:
        """Give *run* as it was planned, with its own experiment."""
        return cls(run, run.experiment(), run.read_plan())

    @cached_property
    def records(self) -> dict[str, TrialRecord]:
        """Trials that have ended, by id, failed ones too."""
        return self.run.trials()

    @cached_property
    def done(self) -> dict[str, TrialRecord]:
        """Trials that ended well, by id, in the order of the plan."""
        records = self.records
        planned = [records[trial.id] for trial in self.plan if trial.id in records]
        return {record.trial.id: record for record in planned if record.state == "done"}

    @cached_property
    def cells(self) -> dict[str, Cell]:
        """All cells of the plan, by id."""
        return {trial.cell.id: trial.cell for trial in self.plan}

    @cached_property
    def resolved(self) -> dict[str, ResolvedCell]:
        """All cells of the plan with their workloads, by id."""
        return {cell_id: resolve_cell(cell) for cell_id, cell in self.cells.items()}

    @cached_property
    def labels(self) -> dict[str, str]:
        """Short name of each cell, by its id: its workload, and what varies over the plan."""
        if not self.experiment.was_imported:
            axes = varying(self.cells.values())
            return {cell_id: label(cell, axes) for cell_id, cell in self.cells.items()}
        return labels_in_families(self.cells)

    @cached_property
    def draw(self) -> Draw | None:
        """Which cells of a drawn design the run has; `EvidenceError`: not as it was sealed."""
        return self.run.measured.read_draw()

    @property
    def has_traces(self) -> bool:
        """Whether there is more of the trials than their scores, as in a lean bundle."""
        return self.run.published_level != "scores"

    def published_measurements(self) -> tuple[Measurement, ...]:
        """
        Measured times as they were published, where nothing else is left of the trials.

        `EvidenceError`: these were changed.
        """
        if self.has_traces:
            return ()
        self.run.measured.check_evidence()
        stored = self.run.measured.read_stored_scores()
        return (*stored.measurements, *stored.profiling)

    @property
    def predictions(self) -> list[Prediction]:
        """All stored predictions, model by model."""
        return list(chain.from_iterable(self.run.read_predictions().values()))

    def resolved_of(self, record: TrialRecord) -> ResolvedCell:
        """Give the cell of a trial, with its workload."""
        return self.resolved[record.trial.cell.id]

    def jobs(self, record: TrialRecord) -> tuple[JobTrace, ...]:
        """Traces of the jobs that a done trial measured, in their order; one at least."""
        traces = self.run.read_trace(record.trial.id)
        if not traces:
            what = f"trial {record.trial.id} is done, and its trace has no job"
            fix = "reproduce the trace from the raw logs: harness collect FILE"
            raise DataError(what, where=str(self.run.trial_dir(record.trial.id)), fix=fix)
        return traces

    def rate(self, record: TrialRecord) -> float | None:
        """Mean rate of the speed probe while the trial's jobs ran; `None`: it is not known."""
        if not self.has_traces:
            return None
        trial_id = record.trial.id
        if trial_id not in self.rates:
            jobs = self.run.read_trace(trial_id, whole=False)
            raw = self.run.raw(trial_id)
            ends = (jobs[0].submit_s, jobs[-1].finish_s) if jobs else None
            self.rates[trial_id] = trial_rate(raw, *ends) if ends else None
        return self.rates[trial_id]

    def observe(self, record: TrialRecord) -> list[Observation]:
        """What a profile is made from, of each job of one trial."""
        cell = self.resolved_of(record)
        return observe(self.run, record, cell, self.jobs(record), self.rate(record))


def labels_in_families(cells: Mapping[str, Cell]) -> dict[str, str]:
    """Short names of *cells* of past jobs, by id: their input, and what varies in their family."""
    families = defaultdict[str, list[Cell]](list)  # which differ in whatever users set
    for cell in cells.values():
        families[cell.workload.name].append(cell)
    axes_of = {name: ("input", *varying(family)) for name, family in families.items()}
    return {cell_id: label(cell, axes_of[cell.workload.name]) for cell_id, cell in cells.items()}


def trial_rate(raw: RawLogs, start_s: float, end_s: float) -> float | None:
    """
    Units of work per CPU second between two moments (seconds since the epoch), of all machines.

    It is the harmonic mean of the machines' rates: the rate of equal work on each of them in turn.
    `None` where nothing was sampled, or one of the machines had no sample.
    """
    machine_rates = []
    for file_name in filter(PROBE_LOGS.fullmatch, raw.names()):
        with raw.open(file_name) as lines:
            machine_rate = mean_rate(read_speed(lines, file_name), start_s, end_s)
        if not machine_rate:
            return None
        machine_rates.append(machine_rate)
    return harmonic_mean(machine_rates) if machine_rates else None
