"""
From stored trials to the report: profiles, sealed predictions, scores.

Nothing here needs Hadoop: every number can be made again from the run's files on any machine.
"""

from __future__ import annotations

import math

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from statistics import median

from harness.errors import DataError
from harness.evaluate.containers import ContainerLogs
from harness.evaluate.job_inside import job_inside
from harness.evaluate.model_inputs import place, predict_cell, question
from harness.evaluate.observations import observe
from harness.evaluate.vet import job_vet, vet_book
from harness.experiment.grid import label, varying
from harness.experiment.model import Experiment
from harness.monitor.rates import rate_statistics
from harness.monitor.samples import machine_means, trial_rate
from harness.profiling import fit_profile, fit_speed
from harness.profiling.observation import Observation
from harness.records.prediction import Prediction
from harness.records.profile import Profile
from harness.records.score import Measurement, ScoreBook
from harness.records.trace import JobTrace, joined
from harness.records.trial import Cell, Trial, TrialRecord
from harness.records.vet import VetBook
from harness.reports import REPORTS
from harness.reports.data import JobTaskTimes, ReportData
from harness.scoring import METRICS, measured, score
from harness.store import Run

REPORT_FILES = {
    "html": "report.html",
    "markdown": "report.md",
    "json": "report.json",
    "hibench": "hibench.report",
}


@dataclass
class Evaluation:
    """A run to be evaluated: its experiment, its planned trials, its files."""

    run: Run
    experiment: Experiment
    plan: Sequence[Trial]
    rates: dict[str, float | None] = field(default_factory=dict)

    @cached_property
    def done(self) -> dict[str, TrialRecord]:
        """Trials that ended well, by id, in the order of the plan."""
        records = self.run.trials()
        found = (records[t.id] for t in self.plan if t.id in records)
        return {r.trial.id: r for r in found if r.state == "done"}

    @cached_property
    def cells(self) -> dict[str, Cell]:
        """All cells of the plan, by id."""
        return {t.cell.id: t.cell for t in self.plan}

    @cached_property
    def scored(self) -> list[str]:
        """Ids of the cells that feed no profile."""
        return list(dict.fromkeys(t.cell.id for t in self.plan if not t.profiling))

    def profile(self) -> dict[str, Profile]:
        """Fit one profile per workload on the profiling trials, and store them."""
        seen: dict[str, list[Observation]] = {}
        for record in self.done.values():
            if record.trial.profiling:
                seen.setdefault(record.trial.cell.workload.name, []).extend(self.observe(record))
        # One machine, one reference speed: all workloads of the run share it.
        speed = fit_speed([o for observations in seen.values() for o in observations])
        rates = rate_statistics(self.run.manifest().get("rates"))
        profiles = {name: fit_profile(name, mine, speed, rates) for name, mine in seen.items()}
        for profile in profiles.values():
            self.run.write_profile(profile)
        if not profiles:
            raise DataError(
                "no profiling trial has ended well",
                where=str(self.run.path),
                fix="run the experiment first (harness run), or read the failed trials' reasons",
            )
        return profiles

    def predict(self) -> list[Prediction]:
        """Ask every model for every scored cell, store the answers and seal them."""
        profiles = self.run.read_profiles()
        if not profiles:
            raise DataError(
                "there is no profile", where=str(self.run.path), fix="harness profile FILE"
            )
        answers = []
        for model in self.experiment.predict.models:
            mine = [predict_cell(model, self.cells[c], profiles) for c in self.scored]
            self.run.write_predictions(model, mine)
            answers += mine
        self.run.seal()
        return answers

    def score(self) -> ScoreBook:
        """Compare the sealed predictions with the measured cells, and store the scores."""
        self.run.check_seal()
        answers = [p for mine in self.run.read_predictions().values() for p in mine]
        book = score(answers, self.measurements())
        self.run.write_scores(book)
        return book

    def report(self) -> list[Path]:
        """Write the report in every format; the first path is the one to open."""
        data = replace(self.report_data(), vet=self.vet(self.done.values()))
        return [self.run.write_report(n, REPORTS[k].render(data)) for k, n in REPORT_FILES.items()]

    def report_data(self) -> ReportData:
        """Everything the report shows; `DataError` where a sealed file has changed."""
        self.run.check_seal()
        records, axes = self.run.trials(), varying(self.cells.values())
        timelines = self._timelines()
        return ReportData(
            experiment=self.experiment,
            cells={i: (cell, label(cell, axes)) for i, cell in self.cells.items()},
            trials=[records[t.id] for t in self.plan if t.id in records],
            measurements=self.measurements(),
            predictions=[p for mine in self.run.read_predictions().values() for p in mine],
            metrics=METRICS,
            book=self.run.read_scores(),
            profiles=self.run.read_profiles(),
            manifest=self.run.manifest(),
            timelines=timelines,
            jobs={r.trial.id: self.jobs(r) for r, _ in timelines},
            task_times={r.trial.id: self.inside(r, job) for r, job in timelines},
            machine={i: self._machine(r) for i, r in records.items()},
            order=[r.trial.id for r in sorted(records.values(), key=lambda r: r.started_s)],
            evidence={
                i: str((self.run.trial_dir(i) / "raw").relative_to(self.run.path)) for i in records
            },
        )

    def vet(self, records: Iterable[TrialRecord]) -> VetBook:
        """Overhead of *records* whose tasks have times of units: over the tasks of all jobs."""
        found = (
            job_vet(self.run, record, joined(self.jobs(record)), question(record.trial.cell)[0])
            for record in records
        )
        return vet_book(job for job in found if job is not None)

    def inside(self, record: TrialRecord, trace: JobTrace) -> JobTaskTimes:
        """What is known of the inside of the tasks of *trace*, with the recordings drawn."""
        if record.trial.cell.tracing.mode == "off":
            return JobTaskTimes()
        config, _, _ = question(record.trial.cell)
        logs = ContainerLogs(self.run.raw(record.trial.id), trace)
        told = list(logs.inside(compressed=config.map_output_compressed))
        return job_inside(trace, told, self.run.read_recordings(record.trial.id))

    def _timelines(self) -> list[tuple[TrialRecord, JobTrace]]:
        names = dict.fromkeys(c.workload.name for c in self.cells.values())
        found = (self.typical(name) for name in names)
        return [(r, joined(self.jobs(r))) for r in found if r]

    def _machine(self, record: TrialRecord) -> dict[str, float]:
        means = machine_means(self.run.raw(record.trial.id))
        if (now := self.rate(record)) is not None:
            means["rate"] = now
        return means

    def measurements(self) -> list[Measurement]:
        """Measured times of every scored trial, raw and at reference speed."""
        profiles = self.run.read_profiles()
        chosen = [r for r in self.done.values() if not r.trial.profiling]
        return [self._measurement(r, profiles.get(r.trial.cell.workload.name)) for r in chosen]

    def rate(self, record: TrialRecord) -> float | None:
        """Mean rate of the speed probe while the trial's jobs ran."""
        if record.trial.id not in self.rates:
            self.rates[record.trial.id] = self._read_rate(record)
        return self.rates[record.trial.id]

    def _read_rate(self, record: TrialRecord) -> float | None:
        traces = self.run.read_trace(record.trial.id)
        if not traces:
            return None
        raw = self.run.raw(record.trial.id)
        return trial_rate(raw, traces[0].submit_s, traces[-1].finish_s)

    def observe(self, record: TrialRecord) -> list[Observation]:
        """What a profile is made from, of each job of one trial."""
        return observe(self.run, record, self.jobs(record), self.rate(record))

    def jobs(self, record: TrialRecord) -> tuple[JobTrace, ...]:
        """Traces of the jobs that a done trial measured, in their order; one at least."""
        traces = self.run.read_trace(record.trial.id)
        if not traces:
            raise DataError(
                f"trial {record.trial.id} is done, and its trace holds no job",
                where=str(self.run.trial_dir(record.trial.id)),
                fix="make the trace again from the raw logs: harness collect FILE",
            )
        return traces

    def _measurement(self, record: TrialRecord, profile: Profile | None) -> Measurement:
        jobs = self.jobs(record)
        raw = measured(jobs)
        speed, now = profile.speed if profile else None, self.rate(record)
        at_reference = (
            {q: speed.at_reference(s, now) for q, s in raw.items()} if speed and now else raw
        )
        return Measurement(
            cell=record.trial.cell.id,
            workload=record.trial.cell.workload.name,
            trial=record.trial.id,
            raw_s=raw,
            reference_s=at_reference,
            jobs_s=tuple(j.job_s for j in jobs),
            range=place(record.trial.cell, profile),
            disturbed=record.disturbed,
        )

    def typical(self, workload: str) -> TrialRecord | None:
        """Trial with the median job time in the largest cell of *workload*, a scored one if any."""
        mine = [r for r in self.done.values() if r.trial.cell.workload.name == workload]
        if not mine:
            return None
        mine = [r for r in mine if not r.trial.profiling] or mine
        largest = max(mine, key=lambda r: (r.trial.cell.workload.input_bytes, r.trial.cell.id))
        same = [r for r in mine if r.trial.cell.id == largest.trial.cell.id]
        times = {r.trial.id: math.fsum(j.job_s for j in self.jobs(r)) for r in same}
        middle = median(times.values())
        return min(same, key=lambda r: abs(times[r.trial.id] - middle))
