"""Laws of moments: trials one after the other, the chain beside them, jobs within them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise

from harness.base.records.trial import TrialRecord
from harness.core.evaluate.laws.measured import CLOCK_S, Measured
from harness.core.store.anchors import end_problem
from harness.core.store.evidence import Line
from harness.core.store.seal import SEAL


def one_after_another(measured: Measured) -> Iterator[str]:
    """Trials do not overlap, and none ends before it starts."""
    for record in measured.attempts:
        if record.finished_s < record.started_s:
            yield f"trial {record.trial.id} ends before it starts"
    if measured.was_imported:
        return
    for earlier, later in pairwise(measured.attempts):
        if later.started_s < earlier.finished_s - CLOCK_S:
            yield f"trial {later.trial.id} starts while {earlier.trial.id} runs"


def stored_when_ended(measured: Measured) -> Iterator[str]:
    """A trial is in the chain once it has ended, in the order of the ends; moments ascend."""
    chain_s = [line.stored_s for line in measured.lines]
    if any(later < earlier - CLOCK_S for earlier, later in pairwise(chain_s)):
        yield "moments of the chain go back"
    if measured.was_imported:
        return
    finished_s = 0.0
    last_lines = {line.name: line for line in measured.lines}
    for line in measured.lines:
        if line is not last_lines[line.name]:
            continue  # a trial that failed, and was run again
        record = measured.records.get(line.name.removeprefix("trials/"))
        if record is None:
            continue
        if line.stored_s < record.finished_s - CLOCK_S:
            yield f"trial {record.trial.id} was stored before it ended"
        if record.finished_s < finished_s - CLOCK_S and not _is_taken_over(record, line):
            yield f"trial {record.trial.id} was stored behind one that ended later"
        finished_s = max(finished_s, record.finished_s)


def _is_taken_over(record: TrialRecord, line: Line) -> bool:
    """Whether an earlier run measured it: it was stored long after it had ended."""
    return line.stored_s - record.finished_s > 60.0 + record.finished_s - record.started_s


def sealed_before_scored(measured: Measured) -> Iterator[str]:
    """Where the order is blind, no scored trial starts before the seal was stored."""
    moments = [line.stored_s for line in measured.lines if line.name == SEAL]
    if not moments or not measured.experiment.predict.is_blind:
        return
    sealed_s = moments[-1]
    for record in measured.records.values():
        if record.trial.is_scored and record.started_s < sealed_s - CLOCK_S:
            yield f"trial {record.trial.id} started before the predictions were sealed"


def end_was_told(measured: Measured) -> Iterator[str]:
    """Whoever was told the end of a run was told the last line that its chain had then."""
    if problem := end_problem(measured.run):
        yield problem


def opened_before_all(measured: Measured) -> Iterator[str]:
    """A run is opened before anything is stored in it, and before its first trial starts."""
    opened_s = measured.manifest.created_s - CLOCK_S
    if measured.lines and measured.lines[0].stored_s < opened_s:
        yield "the first line of the chain is older than the manifest says that the run is"
    if measured.was_imported:
        return
    for record in measured.measured_here:
        if record.started_s < opened_s:
            yield f"trial {record.trial.id} started before the run was opened"


def jobs_within_trial(measured: Measured) -> Iterator[str]:
    """Jobs of a trial run one after the other, within its time."""
    for trial_id, jobs in measured.jobs.items():
        record = measured.records[trial_id]
        for earlier, later in pairwise(jobs):
            if later.submit_s < earlier.submit_s:
                yield f"{later.job_id} was submitted before {earlier.job_id}"
        whole_s = jobs[-1].finish_s - jobs[0].submit_s if jobs else 0.0
        if whole_s > record.finished_s - record.started_s + CLOCK_S:
            yield f"the jobs of trial {trial_id} take longer than the trial"
        if tuple(job.job_id for job in jobs) != record.job_ids:
            yield f"the traces of trial {trial_id} are of other jobs than its record"


def jobs_while_trial(measured: Measured) -> Iterator[str]:
    """Jobs are submitted and end while their trial runs, where one clock has both."""
    if not measured.is_of_this_clock:
        return
    for trial_id, jobs in measured.jobs.items():
        record = measured.records[trial_id]
        for job in jobs:
            if job.submit_s < record.started_s - CLOCK_S:
                yield f"{job.job_id} was submitted before its trial {trial_id} started"
            if job.finish_s > record.finished_s + CLOCK_S:
                yield f"{job.job_id} ended after its trial {trial_id}"


def seconds_within_trial(measured: Measured) -> Iterator[str]:
    """The client takes as long as its jobs at least, and all steps no longer than the trial."""
    for record in measured.attempts:
        whole_s = record.finished_s - record.started_s
        if sum(record.harness_s.values()) > whole_s + CLOCK_S:
            yield f"the steps of trial {record.trial.id} take longer than the trial"
    jobs_s = seconds_of_jobs(measured)
    for record in measured.done:
        job_s = jobs_s.get(record.trial.id, 0.0)
        client_s = record.harness_s.get("client_s")
        if client_s is None:
            if not measured.was_imported:
                yield f"trial {record.trial.id} is done, and does not say how long its client took"
        elif job_s > client_s + CLOCK_S:
            yield (
                f"the jobs of trial {record.trial.id} take {job_s:.1f} s, and their client"
                f" {client_s:.1f} s"
            )


def seconds_of_jobs(measured: Measured) -> Mapping[str, float]:
    """How long the jobs of each trial took, by its traces; without any by the scores."""
    if measured.jobs or not measured.run.is_scored:
        by_trial = measured.jobs.items()
        return {trial: jobs[-1].finish_s - jobs[0].submit_s for trial, jobs in by_trial if jobs}
    scores = measured.run.read_scores()
    measurements = (*scores.measurements, *scores.profiling)
    return {measurement.trial: sum(measurement.jobs_s) for measurement in measurements}
