"""
Laws between the records of a run: what cannot be otherwise where it was measured as it says.

Hashes show that files stay as they were stored, and nothing of what was stored.  A record that was
made up has to agree with all others: the plan with the grid, moments with the chain, ids of jobs
with the starts of clusters, tasks with slots, tables with logs.  A law that is broken is a lie or a
fault; either way nothing should rest on the run.

Each law is one function of `LAWS`, which yields a sentence for each place where it does not hold.
Those that need traces or logs hold of nothing where a run has none: `unseen_by_laws` tells that.
"""

from __future__ import annotations

from itertools import islice

from harness.core.evaluate.laws import jobs, logs, moments, plan, profiles, recorded, speed
from harness.core.evaluate.laws.jobs import most_at_once
from harness.core.evaluate.laws.measured import Breach, Law, Measured
from harness.core.evaluate.laws.unseen import unseen_by_laws, unseen_in
from harness.core.store import Run

__all__ = [
    "LAWS",
    "Breach",
    "Law",
    "Measured",
    "broken_laws",
    "judged_by_laws",
    "most_at_once",
    "unseen_by_laws",
]

_MOST_NAMED = 3  # breaches of a law that are told one by one


def broken_laws(run: Run) -> list[Breach]:
    """Every law that a *run* breaks, with its first breaches."""
    return _broken(Measured(run))


def judged_by_laws(run: Run) -> tuple[list[Breach], list[str]]:
    """Every law that a *run* breaks, and what laws could not compare in it; all is read once."""
    measured = Measured(run)
    return _broken(measured), unseen_in(measured)


def _broken(measured: Measured) -> list[Breach]:
    """Laws that are broken, with the first breaches of each."""
    broken = []
    for law in LAWS:
        breaches = [*islice(law.breaches(measured), _MOST_NAMED + 1)]
        broken += [Breach(law.place, what) for what in breaches[:_MOST_NAMED]]
        if len(breaches) > _MOST_NAMED:
            broken.append(Breach(law.place, "and more of the kind"))
    return broken


LAWS = (
    Law("plan.jsonl", "the plan is that of the grid, the seed and the draw", plan.plan_of_grid),
    Law("plan.jsonl: order", "the plan has the order that the seed gives", plan.order_of_seed),
    Law("trials/", "every trial that ran is of the plan", plan.trial_of_plan),
    Law("trial.json: job_ids", "a job is of one trial", jobs.job_once),
    Law("trials/*/raw/", "histories and recordings are of one trial", jobs.record_once),
    Law("trial.json: moments", "trials run one after the other", moments.one_after_another),
    Law("trials.jsonl", "what ended is stored then, in that order", moments.stored_when_ended),
    Law(
        "predictions/sealed.json",
        "scored trials start after the seal",
        moments.sealed_before_scored,
    ),
    Law("anchors/end.json", "the end that was told is that of the chain", moments.end_was_told),
    Law("manifest.json: created_s", "a run is opened before all in it", moments.opened_before_all),
    Law("job ids", "ids of jobs ascend with time and starts of clusters", jobs.job_ids_ascend),
    Law(
        "job ids: gaps",
        "a start of a cluster has no jobs but those of trials and inputs",
        jobs.job_ids_have_no_gap,
    ),
    Law("job.json", "jobs run within their trial", moments.jobs_within_trial),
    Law(
        "job.json: moments",
        "jobs are submitted and end while their trial runs",
        moments.jobs_while_trial,
    ),
    Law(
        "trial.json: harness_s",
        "a client takes as long as its jobs, and steps no longer than the trial",
        moments.seconds_within_trial,
    ),
    Law("job.json: state", "a trial that is done has jobs that succeeded", jobs.jobs_succeeded),
    Law("attempts.parquet", "tasks run within their job, each of them", jobs.attempts_within_job),
    Law("slots", "no more tasks at once than slots", jobs.tasks_in_slots),
    Law("counters", "counters of jobs are sums of those of tasks", jobs.counters_add_up),
    Law("input", "an input has the size of its cell, and a job reads it", jobs.input_is_read),
    Law(
        "spans.parquet",
        "recordings lie within their attempts, fill them, and add up",
        recorded.spans_within_attempts,
    ),
    Law("history.jhist", "tables say what the job histories say", logs.trace_of_history),
    Law("conf.xml", "jobs have the configuration of their cell", logs.configured_as_cell),
    Law("trial.json: disturbed", "marks follow from loads", logs.disturbed_by_loads),
    Law(
        "trial.json: loads",
        "loads are means of the samples, and of each machine that was sampled",
        logs.loads_of_samples,
    ),
    Law("trial.json: device", "a device is one that tasks counted", logs.device_of_counters),
    Law("raw/speed.txt", "the speed probe was read as it writes", speed.readings_of_probe),
    Law("raw/speed.txt: rates", "trials have about the speed of each other", speed.speeds_alike),
    Law(
        "raw/speed.txt: starts",
        "a JVM's start is the same work in all trials, by the speed probe",
        speed.starts_alike,
    ),
    Law(
        "scores/: reference_s",
        "times at reference speed follow from the probe's rates",
        speed.reference_of_rates,
    ),
    Law("trial.json: versions", "versions are those of the manifest", plan.versions_of_manifest),
    Law("profiles/", "profiles are of the trials of their run", profiles.profiles_of_trials),
    Law("experiment.yaml", "the file asks for what the manifest says", plan.file_of_experiment),
)
