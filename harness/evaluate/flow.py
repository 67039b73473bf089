"""
From stored trials to the report: profiles, sealed predictions, scores.

Nothing here needs Hadoop: every number can be made again from the run's files on any machine.
"""

from __future__ import annotations

import math

from collections import ChainMap, defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from statistics import median_low

from harness.errors import DataError, EvidenceError, HarnessError
from harness.evaluate.model_inputs import model_inputs, predict_cells, profiled_range
from harness.evaluate.observations import (
    collect_vets,
    job_task_times,
    job_vet,
    logged_times,
    observe,
)
from harness.evaluate.own_code import kept_own
from harness.evaluate.own_model import OwnModel
from harness.evaluate.provenance import blind_refusals, model_code
from harness.experiment.grid import label, varying
from harness.experiment.model import Experiment
from harness.monitor.machine import trial_rate
from harness.monitor.rates import rate_statistics
from harness.profiling import fit_profile, fit_speed
from harness.profiling.frame import own_frame
from harness.profiling.jobs import Observation
from harness.profiling.phases import part_means
from harness.records.prediction import Prediction
from harness.records.profile import Profile
from harness.records.score import Measurement, ScoreBook
from harness.records.trace import JobTrace, joined
from harness.records.trial import HISTORY, Cell, Trial, TrialRecord
from harness.records.vet import VetBook
from harness.reports import REPORTS
from harness.reports.data import JobTaskTimes, ReportData
from harness.reports.document import Document
from harness.reports.sections import make_document
from harness.scoring import METRICS, measured, score
from harness.scoring.comparisons import FAMILY_ERROR
from harness.stats.resampling import FEWEST_REFITS
from harness.stats.sequential import LOOK_ERROR
from harness.store import Run

MOST_REFITS = 20  # of a profile: their number bounds what predictions cost
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
    rates: dict[str, float | None] = field(default_factory=dict)  # of the speed probe, by trial

    @classmethod
    def of(cls, run: Run) -> Evaluation:
        """Give *run* as it was planned, with its own experiment."""
        return cls(run, run.experiment(), run.read_plan())

    @cached_property
    def done(self) -> dict[str, TrialRecord]:
        """Trials that ended well, by id, in the order of the plan."""
        records = self.run.trials()
        planned = [records[trial.id] for trial in self.plan if trial.id in records]
        return {record.trial.id: record for record in planned if record.state == "done"}

    @cached_property
    def cells(self) -> dict[str, Cell]:
        """All cells of the plan, by id."""
        return {trial.cell.id: trial.cell for trial in self.plan}

    @cached_property
    def labels(self) -> dict[str, str]:
        """Short name of each cell, by its id: its workload, and what varies over the plan."""
        if self.experiment.cluster.provider != HISTORY:
            axes = varying(self.cells.values())
            return {cell_id: label(cell, axes) for cell_id, cell in self.cells.items()}
        families = defaultdict[str, list[Cell]](list)  # which differ in whatever users set
        for cell in self.cells.values():
            families[cell.workload.name].append(cell)
        axes_of = {name: ("input", *varying(cells)) for name, cells in families.items()}
        return {key: label(cell, axes_of[cell.workload.name]) for key, cell in self.cells.items()}

    @property
    def predictions(self) -> list[Prediction]:
        """All stored predictions, model by model."""
        return list(chain.from_iterable(self.run.read_predictions().values()))

    def jobs(self, record: TrialRecord) -> tuple[JobTrace, ...]:
        """Traces of the jobs that a done trial measured, in their order; one at least."""
        traces = self.run.read_trace(record.trial.id)
        if not traces:
            what = f"trial {record.trial.id} is done, and its trace has no job"
            fix = "reproduce the trace from the raw logs: harness collect FILE"
            raise DataError(what, where=str(self.run.trial_dir(record.trial.id)), fix=fix)
        return traces

    def rate(self, record: TrialRecord) -> float | None:
        """Mean rate of the speed probe while the trial's jobs ran."""
        trial_id = record.trial.id
        if trial_id not in self.rates:
            jobs = self.run.read_trace(trial_id, whole=False)
            raw = self.run.raw(trial_id)
            ends = (jobs[0].submit_s, jobs[-1].finish_s) if jobs else None
            self.rates[trial_id] = trial_rate(raw, *ends) if ends else None
        return self.rates[trial_id]

    def observe(self, record: TrialRecord) -> list[Observation]:
        """What a profile is made from, of each job of one trial."""
        return observe(self.run, record, self.jobs(record), self.rate(record))

    # The steps, in their order; each stores its result.

    def profile(self) -> dict[str, Profile]:
        """Fit one profile per workload on the profiling trials, and store them."""
        observations = defaultdict[str, list[Observation]](list)
        for record in self.done.values():
            if record.trial.profiling:
                observations[record.trial.cell.workload.name] += self.observe(record)
        if not observations:
            what = "no profiling trial has succeeded"
            fix = "run the experiment first (harness run), or read the failed trials' reasons"
            raise DataError(what, where=str(self.run.path), fix=fix)
        # One machine, one reference speed: all workloads of the run share it.
        speed = fit_speed([*chain(*observations.values())])
        rates = rate_statistics(self.run.read_manifest().rates)
        profiles = {}
        for workload, observed in observations.items():
            profile = fit_profile(workload, observed, speed, rates)
            # Each without one profiling cell, or a few where there are many; below four cells
            # nothing could be concluded from them.
            cells = sorted({one.trial.cell.id for one in observed})
            refits = []
            for place in range(min(len(cells), MOST_REFITS) if len(cells) >= FEWEST_REFITS else 0):
                left_out = set(cells[place::MOST_REFITS])
                others = [one for one in observed if one.trial.cell.id not in left_out]
                with suppress(HarnessError):  # it has no answer then
                    refits.append(fit_profile(workload, others, speed, rates))
            profiles[workload] = profile.model_copy(update={"refits": tuple(refits)})
            self.run.write_profile(profiles[workload])
        return profiles

    def predict(self) -> list[Prediction]:
        """Have every model predict every scored cell, store the predictions and seal them."""
        profiles = self.run.read_profiles()
        if not profiles:
            where = str(self.run.path)
            raise DataError("there is no profile", where=where, fix="harness profile FILE")
        # Cells that feed profiles are never scored, and no model is asked about controls.
        controls = self.experiment.nightly.controls
        scored = {
            trial.cell.id: trial.cell
            for trial in self.plan
            if not trial.profiling and trial.cell.workload.name not in controls
        }.values()
        predictions = []
        hashes = self.run.profile_hashes()
        for model_name in self.experiment.predict.models:
            of_model = []
            code = self.experiment.predict.code.get(model_name)
            model = OwnModel(kept_own(code)) if code else model_name
            origin = {"code": code.sha256 if code else model_code(model_name)}
            for prediction in predict_cells(model, scored, profiles, self.cells):
                origin["profile"] = hashes.get(self.cells[prediction.cell].workload.name, "")
                of_model.append(prediction.model_copy(update=origin))
            self.run.write_predictions(model_name, of_model)
            predictions += of_model
        self.run.seal.add()
        return predictions

    def score(self, known: Iterable[Measurement] = (), *, strict: bool = False) -> ScoreBook:
        """
        Compare the sealed predictions with the measured cells, and store the scores.

        *known* measurements count as they are, the others are made from traces.  *strict*:
        `EvidenceError` refuses a run that is not blind.
        """
        self.run.seal.check()
        self.run.check_evidence(with_scores=False)
        if strict and (refusals := blind_refusals(self.run, self.done.values())):
            what = f"the run is not blind: {refusals[0]}"
            fix = "measure it with predict: {order: blind}, or score it without --strict"
            raise EvidenceError(what, where=str(self.run.path), fix=fix)
        error = LOOK_ERROR if self.experiment.is_until_decided else FAMILY_ERROR
        score_book = score(self.predictions, self.measurements(known), error=error)
        self.run.write_scores(score_book)
        return score_book

    def report(self, folder: Path | None = None) -> tuple[list[Path], Document]:
        """Write the report in every format, into *folder* if given; and give it, path and text."""
        self.run.check_evidence()
        document = self.document()
        paths = [
            self.run.write_report(name, REPORTS[kind].render(document), folder)
            for kind, name in REPORT_FILES.items()
        ]
        return paths, document

    def document(self) -> Document:
        """Make the report, which every format renders."""
        return make_document(replace(self.report_data(), vet=self.vet(self.done.values())))

    def measurements(
        self, known: Iterable[Measurement] = (), *, profiling: bool = False
    ) -> list[Measurement]:
        """Measured times of each scored trial, with *profiling* of all; *known* ones as is."""
        profiles = self.run.read_profiles()
        stored = {each.trial: each for each in known}
        measurements = []
        for trial_id, record in self.done.items():
            if record.trial.profiling and not profiling:
                continue
            if trial_id in stored:
                measurements.append(stored[trial_id])
                continue
            cell = record.trial.cell
            jobs = self.jobs(record)
            probe_rate = self.rate(record)
            profile = profiles.get(cell.workload.name)
            speed = profile.speed if profile is not None else None
            of_profile = profile.frame if profile is not None else {}
            observed = observe(self.run, record, jobs, probe_rate)
            own = [own_frame(each, of_profile, speed) for each in observed]
            frames_s, ends, borrowed = zip(*own, strict=True)
            raw_s = measured(jobs, frames_s, dict(ChainMap(*ends))) | part_means(observed)
            reference_s = raw_s
            if speed is not None and probe_rate:
                reference_s = {name: speed.at_reference(t, probe_rate) for name, t in raw_s.items()}
            measurements.append(
                Measurement(
                    cell=cell.id,
                    workload=cell.workload.name,
                    trial=trial_id,
                    input=f"{cell.workload.name} {cell.workload.input_bytes}",
                    raw_s=raw_s,
                    reference_s=reference_s,
                    jobs_s=tuple(job.job_s for job in jobs),
                    range=profiled_range(cell, profile),
                    disturbed=record.disturbed,
                    # A job's id has the moment at which the cluster's master started.
                    start="".join(record.job_ids[:1]).removeprefix("job_").partition("_")[0],
                    of_profile=tuple(dict.fromkeys(chain.from_iterable(borrowed))),
                )
            )
        return measurements

    def report_data(self, *, with_tasks: bool = True) -> ReportData:
        """
        Everything the report shows so far; `DataError` where a sealed file has changed.

        *with_tasks*: also where the time of the tasks of typical trials went.
        """
        is_sealed = self.run.finished or self.run.seal.exists()
        if is_sealed:
            self.run.seal.check()
        records = self.run.trials()
        workloads = dict.fromkeys(cell.workload.name for cell in self.cells.values())
        chosen = [self.typical_trial(workload) for workload in workloads if with_tasks]
        typical = [record for record in chosen if record]
        timelines = [(record, joined(self.jobs(record))) for record in typical]
        rates = {trial_id: self.rate(record) for trial_id, record in records.items()}
        is_scored = self.run.finished or self.run.is_scored
        score_book = self.run.read_scores() if is_scored else ScoreBook()
        not_blind = blind_refusals(self.run, self.done.values())[:1] if is_sealed else []
        return ReportData(
            experiment=self.experiment,
            cells={key: (cell, self.labels[key]) for key, cell in self.cells.items()},
            trials=[records[trial.id] for trial in self.plan if trial.id in records],
            measurements=self.measurements(score_book.measurements),
            predictions=self.predictions,
            metrics=METRICS,
            score_book=score_book,
            profiles=self.run.read_profiles(),
            manifest=self.run.read_manifest().document(),
            seal={"not_blind": not_blind} if is_sealed else {},
            timelines=timelines,
            jobs={record.trial.id: self.jobs(record) for record in typical},
            task_times={record.trial.id: self.task_times(record, job) for record, job in timelines},
            rates={trial_id: rate for trial_id, rate in rates.items() if rate is not None},
            planned=len(self.plan),
            evidence={
                trial_id: f"{self.run.to_measured}trials/{trial_id}/raw" for trial_id in records
            },
        )

    def vet(self, records: Iterable[TrialRecord]) -> VetBook:
        """Overhead of *records* whose tasks have times of units: over the tasks of all jobs."""
        timed = (record for record in records if record.trial.cell.tracing.mode == "units")
        vets = (job_vet(self.run, record, joined(self.jobs(record))) for record in timed)
        return collect_vets(filter(None, vets))

    def task_times(self, record: TrialRecord, trace: JobTrace) -> JobTaskTimes:
        """Where the time of the tasks of *trace* went."""
        if record.trial.cell.tracing.mode == "off":
            return JobTaskTimes()
        config, _, _ = model_inputs(record.trial.cell)
        raw = self.run.raw(record.trial.id)
        is_compressed = config.map_output_compressed
        logged = logged_times(raw, trace, is_compressed=is_compressed)
        return job_task_times(trace, logged, self.run.read_recordings(record.trial.id))

    def typical_trial(self, workload: str) -> TrialRecord | None:
        """Trial with the median job time in the largest cell of *workload*, a scored one if any."""
        ranks = {
            trial_id: (not trial.profiling, trial.cell.workload.input_bytes, trial.cell.id)
            for trial_id, record in self.done.items()
            if (trial := record.trial).cell.workload.name == workload
        }
        seconds = {
            trial_id: math.fsum(job.job_s for job in self.jobs(self.done[trial_id]))
            for trial_id, rank in ranks.items()
            if rank == max(ranks.values())
        }
        middle_s = median_low(seconds.values()) if seconds else None
        return next((self.done[second] for second in seconds if seconds[second] == middle_s), None)
