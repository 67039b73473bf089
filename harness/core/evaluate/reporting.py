"""The report of a run: its data, made into a document, which every format renders."""

from __future__ import annotations

import math

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from statistics import median_low
from typing import Any

from harness.base.documents.document import Document
from harness.base.records.score import ScoreBook
from harness.base.records.trace import JobTrace, joined
from harness.base.records.trial import TrialRecord
from harness.base.records.vet import VetBook
from harness.core.evaluate.measurements import measure_trials
from harness.core.evaluate.observations import collect_vets, job_task_times, job_vet, logged_times
from harness.core.evaluate.provenance import blind_refusals
from harness.core.evaluate.stored import StoredTrials
from harness.core.reports import REPORTS
from harness.core.reports.data import JobTaskTimes, ReportData
from harness.core.reports.sections import make_document
from harness.core.store import Run
from harness.core.store.anchors import order_words
from harness.core.store.published import unpublished_code
from harness.scoring import METRICS

REPORT_FILES = {
    "html": "report.html",
    "markdown": "report.md",
    "json": "report.json",
    "hibench": "hibench.report",
}


def write_report(run: Run, document: Document, folder: Path | None = None) -> list[Path]:
    """Write *document* in every format, into *folder* if given; return the paths."""
    return [
        run.write_report(name, REPORTS[kind].render(document), folder)
        for kind, name in REPORT_FILES.items()
    ]


def report_document(trials: StoredTrials, data: ReportData) -> Document:
    """Make the report of *data*, with the vet of all trials that timed units."""
    return make_document(replace(data, vet=vet_trials(trials, trials.done.values())))


def report_data(trials: StoredTrials, *, with_tasks: bool = True) -> ReportData:
    """
    Everything the report shows so far; `DataError` where a sealed file has changed.

    *with_tasks*: also where the time of the tasks of typical trials went.  Of a run that was
    published without its traces there is what its scores and profiles say.
    """
    run = trials.run
    seal = seal_facts(trials)
    records = trials.records
    with_tasks = with_tasks and trials.has_traces
    score_book = run.read_scores() if run.finished or run.is_scored else ScoreBook()
    typical = typical_trials(trials) if with_tasks else []
    timelines = [(record, joined(trials.jobs(record))) for record in typical]
    return ReportData(
        experiment=trials.experiment,
        cells={key: (cell, trials.labels[key]) for key, cell in trials.cells.items()},
        trials=[records[trial.id] for trial in trials.plan if trial.id in records],
        measurements=measure_trials(trials, score_book.measurements),
        predictions=trials.predictions,
        metrics=METRICS,
        score_book=score_book,
        profiles=run.read_profiles(),
        manifest=run.read_manifest().document(),
        seal=seal,
        timelines=timelines,
        jobs={record.trial.id: trials.jobs(record) for record in typical},
        task_times={record.trial.id: task_times(trials, record, job) for record, job in timelines},
        rates=probe_rates(trials, records),
        planned=len(trials.plan),
        unpublished_code=unpublished_code(run.opener, trials.experiment.own_code),
        evidence=evidence_places(run, records),
    )


def evidence_places(run: Run, trial_ids: Iterable[str]) -> dict[str, str]:
    """Folder of each trial's logs, as seen from the report of *run*; of others' where there are."""
    measured = run.measured
    if measured.is_foreign:
        present = (key for key in trial_ids if (measured.path / "trials" / key / "raw").is_dir())
        return {key: f"{measured.place}/trials/{key}/raw" for key in present}
    way = "" if measured is run else "../../"
    return {key: f"{way}trials/{key}/raw" for key in trial_ids}


def seal_facts(trials: StoredTrials) -> dict[str, Any]:
    """Check the seal, and say why the run is not blind, if so; nothing where none is sealed."""
    if not trials.run.finished and not trials.run.seal.exists():
        return {}
    trials.run.seal.check()
    refusals = blind_refusals(trials.run, trials.done.values())
    return {"not_blind": refusals[:1], "order": "" if refusals else order_words(trials.run)}


def probe_rates(trials: StoredTrials, records: Mapping[str, TrialRecord]) -> dict[str, float]:
    """Rate of the speed probe during each trial that has one, by its id."""
    rates = {}
    for trial_id, record in records.items():
        rate = trials.rate(record)
        if rate is not None:
            rates[trial_id] = rate
    return rates


def vet_trials(trials: StoredTrials, records: Iterable[TrialRecord]) -> VetBook:
    """Overhead of *records* whose tasks have times of units: over the tasks of all jobs."""
    vets = []
    for record in records if trials.has_traces else ():
        if record.trial.cell.tracing.mode == "units":
            cell = trials.resolved_of(record)
            vets.append(job_vet(trials.run, record, cell, joined(trials.jobs(record))))
    return collect_vets(filter(None, vets))


def task_times(trials: StoredTrials, record: TrialRecord, trace: JobTrace) -> JobTaskTimes:
    """Where the time of the tasks of *trace* went."""
    if record.trial.cell.tracing.mode == "off":
        return JobTaskTimes()
    config, _, _ = trials.resolved_of(record).model_inputs
    raw = trials.run.raw(record.trial.id)
    logged = logged_times(raw, trace, is_compressed=config.map_output_compressed)
    return job_task_times(trace, logged, trials.run.read_recordings(record.trial.id))


def typical_trials(trials: StoredTrials) -> list[TrialRecord]:
    """Give the typical trial of each workload that has a done one, in the order of the plan."""
    workloads = dict.fromkeys(cell.workload.name for cell in trials.cells.values())
    typical = [typical_trial(trials, workload) for workload in workloads]
    return [record for record in typical if record is not None]


def typical_trial(trials: StoredTrials, workload: str) -> TrialRecord | None:
    """Trial with the median job time in the largest cell of *workload*, a scored one if any."""
    ranks = {}
    for trial_id, record in trials.done.items():
        trial = record.trial
        if trial.cell.workload.name == workload:
            ranks[trial_id] = (trial.is_scored, trial.cell.workload.input_bytes, trial.cell.id)
    if not ranks:
        return None
    highest = max(ranks.values())
    times_s = {
        trial_id: math.fsum(job.job_s for job in trials.jobs(trials.done[trial_id]))
        for trial_id, rank in ranks.items()
        if rank == highest
    }
    middle_s = median_low(times_s.values())
    return next(trials.done[trial_id] for trial_id, time_s in times_s.items() if time_s == middle_s)
