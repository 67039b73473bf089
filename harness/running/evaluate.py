"""
From stored trials to the report: profiles, sealed predictions, scores.

Nothing here needs Hadoop: every number can be made again from the run's files on any machine.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from statistics import fmean, median

from harness.errors import DataError, HarnessError, MissingStatistic
from harness.hadoop.properties import job_config
from harness.hadoop.site import block_bytes, client_properties
from harness.hadoop.slots import effective
from harness.models import MODELS
from harness.parsing.container_log import spills_of
from harness.parsing.machine import read_machine
from harness.parsing.speed_probe import read_speed
from harness.profiling import fit_profile, fit_speed
from harness.profiling.observation import Observation
from harness.profiling.spans import map_inside, reduce_inside
from harness.records.experiment import Experiment
from harness.records.grid import label, varying
from harness.records.inside import MapInside, ReduceInside
from harness.records.prediction import Cluster, JobConfig, JobInput, Prediction
from harness.records.profile import Profile
from harness.records.score import Measurement, Range, ScoreBook
from harness.records.trace import JobTrace
from harness.records.trial import Cell, Trial, TrialRecord
from harness.records.vet import VetBook
from harness.reports import REPORTS
from harness.reports.data import JobInside, ReportData
from harness.running.cells import configured
from harness.running.containers import ContainerLogs
from harness.running.execute import MACHINE_LOG, PROBE_LOG
from harness.running.job_inside import job_inside
from harness.running.probe import rate
from harness.running.vet import job_vet, vet_book
from harness.scoring import score
from harness.scoring.measured import measured
from harness.store import Run
from harness.workloads import WORKLOADS

REPORT_FILES = {"html": "report.html", "markdown": "report.md", "json": "report.json"}


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
                seen.setdefault(record.trial.cell.workload.name, []).append(self.observe(record))
        # One machine, one reference speed: all workloads of the run share it.
        speed = fit_speed([o for observations in seen.values() for o in observations])
        profiles = {name: fit_profile(name, mine, speed) for name, mine in seen.items()}
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
            book=self.run.read_scores(),
            profiles=self.run.read_profiles(),
            manifest=self.run.manifest(),
            timelines=timelines,
            inside={r.trial.id: self.inside(r, job) for r, job in timelines},
            machine={i: self._machine(r) for i, r in records.items()},
            order=[r.trial.id for r in sorted(records.values(), key=lambda r: r.started_s)],
            evidence={
                i: str((self.run.trial_dir(i) / "raw").relative_to(self.run.path)) for i in records
            },
        )

    def vet(self, records: Iterable[TrialRecord]) -> VetBook:
        """Overhead of the jobs of *records* whose tasks have times of units."""
        found = (
            job_vet(self.run, record, self._trace(record), question(record.trial.cell)[0])
            for record in records
        )
        return vet_book(job for job in found if job is not None)

    def inside(self, record: TrialRecord, trace: JobTrace) -> JobInside:
        """What is known of the inside of one job's tasks, with the recordings that are drawn."""
        if record.trial.cell.tracing.mode == "off":
            return JobInside()
        config, _, _ = question(record.trial.cell)
        logs = ContainerLogs(self.run.raw(record.trial.id), trace)
        told = list(logs.inside(compressed=config.map_output_compressed))
        return job_inside(trace, told, self.run.read_recordings(record.trial.id))

    def _timelines(self) -> list[tuple[TrialRecord, JobTrace]]:
        names = dict.fromkeys(c.workload.name for c in self.cells.values())
        found = (self.typical(name) for name in names)
        return [(r, self._trace(r)) for r in found if r]

    def _machine(self, record: TrialRecord) -> dict[str, float]:
        raw, means = self.run.raw(record.trial.id), {}
        if MACHINE_LOG in raw.names():
            with raw.open(MACHINE_LOG) as lines:
                samples = list(read_machine(lines, MACHINE_LOG))
            if samples:
                means["busy"] = fmean(s.busy for s in samples)
                means["steal"] = fmean(s.steal for s in samples)
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
        raw = self.run.raw(record.trial.id)
        traces = self.run.read_trace(record.trial.id)
        if PROBE_LOG not in raw.names() or not traces:
            return None
        with raw.open(PROBE_LOG) as lines:
            samples = list(read_speed(lines, PROBE_LOG))
        return rate(samples, traces[0].submit_s, traces[-1].finish_s)

    def observe(self, record: TrialRecord) -> Observation:
        """What a profile is made from, of one trial."""
        config, cluster, job_input = question(record.trial.cell)
        trace = self._trace(record)
        logs = ContainerLogs(self.run.raw(record.trial.id), trace)
        return Observation(
            trial=record.trial,
            trace=trace,
            config=config,
            cluster=cluster,
            job_input=job_input,
            spills={attempt: spills_of(log) for attempt, log in logs.tasks.items()},
            rate=self.rate(record),
            inside=tuple(self._inside(record, trace, logs, config)),
        )

    def _inside(
        self, record: TrialRecord, trace: JobTrace, logs: ContainerLogs, config: JobConfig
    ) -> Iterator[MapInside | ReduceInside]:
        """What the tasks' logs tell of them, and what the tracer recorded in them."""
        if record.trial.cell.tracing.mode == "off":
            return
        yield from logs.inside(compressed=config.map_output_compressed)
        attempts = {a.attempt_id: a for a in trace.attempts}
        for task in self.run.read_recordings(record.trial.id):
            if (attempt := attempts.get(task.attempt_id)) is not None:
                told = map_inside if attempt.kind == "map" else reduce_inside
                yield told(task, attempt)

    def _trace(self, record: TrialRecord) -> JobTrace:
        """Trace of the job that a done trial measured."""
        traces = self.run.read_trace(record.trial.id)
        if not traces:
            raise DataError(
                f"trial {record.trial.id} is done, and its trace holds no job",
                where=str(self.run.trial_dir(record.trial.id)),
                fix="make the trace again from the raw logs: harness collect FILE",
            )
        return traces[0]

    def _measurement(self, record: TrialRecord, profile: Profile | None) -> Measurement:
        raw = measured(self._trace(record))
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
        times = {r.trial.id: self._trace(r).job_s for r in same}
        middle = median(times.values())
        return min(same, key=lambda r: abs(times[r.trial.id] - middle))


def question(cell: Cell) -> tuple[JobConfig, Cluster, JobInput]:
    """What a model is told of *cell*: configuration, effective slots, input."""
    workload = WORKLOADS.get(cell.workload.name)
    if workload is None:
        raise _unknown("workload", cell.workload.name)
    asked = configured(cell)
    properties = {**client_properties(cell.cluster), **asked}
    plan = workload.plan_input(cell.workload, block_bytes(cell.cluster))
    return (
        job_config(properties, use_combiner=workload.uses_combiner),
        effective(cell.cluster, asked),
        JobInput(
            input_bytes=plan.bytes,
            num_files=len(plan.files),
            num_splits=len(plan.files),
            split_bytes=plan.bytes / len(plan.files),
        ),
    )


def predict_cell(model: str, cell: Cell, profiles: Mapping[str, Profile]) -> Prediction:
    """Answer of *model* for *cell*; not applicable where the profile lacks what it needs."""
    profile = profiles.get(cell.workload.name)
    if profile is None:
        lacks: tuple[str, ...] = (f"profile of {cell.workload.name}",)
        return Prediction(model=model, cell=cell.id, job_s=None, not_applicable=lacks)
    try:
        if model not in MODELS:
            raise _unknown("model", model)
        answer = MODELS[model].predict(profile, *question(cell))
    except MissingStatistic as missing:
        return Prediction(model=model, cell=cell.id, job_s=None, not_applicable=missing.names)
    except HarnessError as error:
        return Prediction(model=model, cell=cell.id, job_s=None, not_applicable=(error.what,))
    return answer.model_copy(update={"cell": cell.id})


def _unknown(what: str, name: str) -> DataError:
    return DataError(
        f"this harness has no {what} {name[:80]!r}",
        where="the run's plan and manifest",
        fix="use the harness that measured this run, or a later one",
    )


def place(cell: Cell, profile: Profile | None) -> Range:
    """Where *cell* lies in the range that was profiled."""
    if profile is None:
        return "outside"
    values: dict[str, float] = {"input_bytes": cell.workload.input_bytes}
    for key, text in cell.configuration.items():
        try:
            values[key] = float(text)
        except ValueError:
            continue
    at_edge = False
    for key, (low, high) in profile.ranges.items():
        if key not in values:
            continue
        if not low <= values[key] <= high:
            return "outside"
        at_edge = at_edge or (low < high and values[key] in {low, high})
    return "edge" if at_edge else "inside"
