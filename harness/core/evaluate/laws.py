"""
Laws between the records of a run: what cannot be otherwise where it was measured as it says.

Hashes show that files stay as they were stored, and nothing of what was stored.  A record that was
made up has to agree with all others: the plan with the grid, moments with the chain, ids of jobs
with the starts of clusters, tasks with slots, counters with each other.  A law that is broken is a
lie or a fault; either way nothing should rest on the run.

Each law is one function of `LAWS`, which yields a sentence for each place where it does not hold.
Those that need traces hold of nothing where a run has none.
"""

from __future__ import annotations

import re

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, pairwise
from typing import NamedTuple

from harness.base.documents.wording import count
from harness.base.records.tasks import TaskSpans
from harness.base.records.trace import TASK_COUNTER, JobTrace, TaskKind
from harness.base.records.trial import Trial, TrialRecord
from harness.core.experiment.grid import expand
from harness.core.experiment.model import Experiment
from harness.core.experiment.planned import planned_trials
from harness.core.store import Run
from harness.core.store.evidence import EVIDENCE, Chain, Evidence, Line
from harness.core.store.seal import SEAL

_MOST_NAMED = 3  # breaches of a law that are told one by one
_CLOCK_S = 1.0  # moments of one machine's clock, which is set meanwhile, may contradict so much
_STEP_S = 0.002  # moments that are stored to a millisecond
_RECORDS = ("raw/job-", "raw/recordings", "trace/")  # files that no two trials have alike
_INPUT_TOLERANCE = 0.01
# Experiments that tuning and calibrating make, by their names: their trials follow from what was
# measured until then.  A ready-made experiment has none of these names.
_CHOSEN_MEANWHILE = re.compile(r"tune-.+|calibrate")
# Counters of tasks that the application master adds up as they are.
_SUMMED = ("MAP_INPUT_RECORDS", "MAP_OUTPUT_RECORDS", "REDUCE_INPUT_RECORDS", "SPILLED_RECORDS")


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
    def experiment(self) -> Experiment:
        """What was asked for."""
        return self.run.experiment()

    @cached_property
    def plan(self) -> Sequence[Trial]:
        """Trials in their order."""
        return self.run.read_plan()

    @cached_property
    def attempts(self) -> Sequence[TrialRecord]:
        """All trials that ran, by their start: warm-ups and repeated ones, too."""
        return self.run.attempts()

    @cached_property
    def lines(self) -> Sequence[Line]:
        """Lines of the chain, in their order."""
        return [*Chain(self.run.opener).lines().values()]

    @cached_property
    def jobs(self) -> Mapping[str, Sequence[JobTrace]]:
        """Jobs of each trial that is done, where its traces are stored."""
        done = [record for record in self.run.trials().values() if record.state == "done"]
        return {
            record.trial.id: self.run.read_trace(record.trial.id)
            for record in done
            if self.run.has_trace(record.trial.id)
        }


def broken_laws(run: Run) -> list[Breach]:
    """Every law that a *run* breaks, with its first breaches."""
    measured = Measured(run)
    broken = []
    for law in LAWS:
        breaches = [*islice(law.breaches(measured), _MOST_NAMED + 1)]
        broken += [Breach(law.place, what) for what in breaches[:_MOST_NAMED]]
        if len(breaches) > _MOST_NAMED:
            broken.append(Breach(law.place, "and more of the kind"))
    return broken


def _plan_of_grid(measured: Measured) -> Iterator[str]:
    """Planned are the trials of the grid, those of drawn cells, and those added by a look."""
    experiment = measured.experiment
    versions = next((record.versions for record in measured.attempts), None)
    if versions is None or _CHOSEN_MEANWHILE.fullmatch(experiment.name):
        return
    asked = planned_trials(experiment, expand(experiment), measured.run.read_draw(), versions)
    by_rule = Counter(map(_role, asked))
    planned = Counter(_role(trial) for trial in measured.plan if not trial.look)
    for missing in (by_rule - planned).elements():
        yield f"the grid has a trial that the plan has not: {missing}"
    for added in (planned - by_rule).elements():
        yield f"the plan has a trial that the grid has not: {added}"
    if not (experiment.is_until_decided or experiment.fastest):
        for trial in measured.plan:
            if trial.look:
                yield f"trial {trial.id} was added, and the experiment asks for no additions"


def _role(trial: Trial) -> str:
    """What a trial is in a plan, whatever its versions are."""
    return f"cell {trial.cell.id}, repetition {trial.repetition}, use {trial.use}"


def _trial_of_plan(measured: Measured) -> Iterator[str]:
    """Every trial that ran is one of the plan, or warmed a cluster for one."""
    cells = {trial.cell.id for trial in measured.plan}
    planned = {trial.id for trial in measured.plan}
    for trial_id in measured.run.trial_ids():
        if trial_id not in planned:
            yield f"trial {trial_id} is not planned"
    for record in measured.attempts:
        if record.trial.cell.id not in cells:
            yield f"trial {record.trial.id} is of cell {record.trial.cell.id}, which is not planned"


def _job_once(measured: Measured) -> Iterator[str]:
    """No job belongs to two trials."""
    trials_by_job = defaultdict[str, list[str]](list)
    for record in measured.attempts:
        for job_id in record.job_ids:
            trials_by_job[job_id].append(record.trial.id)
    for job_id, trials in trials_by_job.items():
        if len(trials) > 1:
            yield f"{job_id} is a job of {count(len(trials), 'trial')}: {', '.join(trials)}"


def _record_once(measured: Measured) -> Iterator[str]:
    """No history, configuration or recording of a job is that of two trials."""
    opener = measured.run.opener
    place_by_hash: dict[str, str] = {}
    for trial_id in measured.run.trial_ids():
        path = measured.run.trial_dir(trial_id) / EVIDENCE
        if not opener.exists(path):
            continue
        for name, sha256 in opener.read_record(Evidence, path, "").measured.items():
            if not name.startswith(_RECORDS):
                continue
            place = f"{trial_id}/{name}"
            first_place = place_by_hash.setdefault(sha256, place)
            if first_place.partition("/")[0] != trial_id:
                yield f"{place} is the same file as {first_place}"


def _one_after_another(measured: Measured) -> Iterator[str]:
    """Trials do not overlap, and none ends before it starts."""
    for record in measured.attempts:
        if record.finished_s < record.started_s:
            yield f"trial {record.trial.id} ends before it starts"
    for earlier, later in pairwise(measured.attempts):
        if later.started_s < earlier.finished_s - _CLOCK_S:
            yield f"trial {later.trial.id} starts while {earlier.trial.id} runs"


def _stored_when_ended(measured: Measured) -> Iterator[str]:
    """A trial is in the chain once it has ended, in the order of the ends; moments ascend."""
    chain_s = [line.stored_s for line in measured.lines]
    if any(later < earlier - _CLOCK_S for earlier, later in pairwise(chain_s)):
        yield "moments of the chain go back"
    finished_s = 0.0
    last_lines = {line.name: line for line in measured.lines}
    trials = measured.run.trials()
    for line in measured.lines:
        if line is not last_lines[line.name]:
            continue  # a trial that failed, and was run again
        record = trials.get(line.name.removeprefix("trials/"))
        if record is None:
            continue
        if line.stored_s < record.finished_s - _CLOCK_S:
            yield f"trial {record.trial.id} was stored before it ended"
        if record.finished_s < finished_s - _CLOCK_S and not _is_taken_over(record, line):
            yield f"trial {record.trial.id} was stored behind one that ended later"
        finished_s = max(finished_s, record.finished_s)


def _is_taken_over(record: TrialRecord, line: Line) -> bool:
    """Whether an earlier run measured it: it was stored long after it had ended."""
    return line.stored_s - record.finished_s > 60.0 + record.finished_s - record.started_s


def _sealed_before_scored(measured: Measured) -> Iterator[str]:
    """Where the order is blind, no scored trial starts before the seal was stored."""
    moments = [line.stored_s for line in measured.lines if line.name == SEAL]
    if not moments or not measured.experiment.predict.is_blind:
        return
    sealed_s = moments[-1]
    for record in measured.run.trials().values():
        if record.trial.is_scored and record.started_s < sealed_s - _CLOCK_S:
            yield f"trial {record.trial.id} started before the predictions were sealed"


def _job_ids_ascend(measured: Measured) -> Iterator[str]:
    """Later trials have jobs of later starts of a cluster, or of later numbers."""
    last = (0, 0)
    for record in measured.attempts:
        for job_id in record.job_ids:
            start, number = job_id.removeprefix("job_").split("_")
            key = (int(start), int(number))
            if key <= last:
                yield f"{job_id} of trial {record.trial.id} is no later than the job before it"
            if key[0] / 1000 > record.started_s + _CLOCK_S and _is_of_this_clock(measured):
                yield f"{job_id} of trial {record.trial.id} is of a cluster that started later"
            last = max(last, key)


def _is_of_this_clock(measured: Measured) -> bool:
    """Whether the cluster's clock is that of the machine which ran the harness."""
    return measured.experiment.cluster.provider in ("local", "docker")


def _jobs_within_trial(measured: Measured) -> Iterator[str]:
    """Jobs of a trial run one after the other, within its time."""
    records = measured.run.trials()
    for trial_id, jobs in measured.jobs.items():
        record = records[trial_id]
        for earlier, later in pairwise(jobs):
            if later.submit_s < earlier.submit_s:
                yield f"{later.job_id} was submitted before {earlier.job_id}"
        whole_s = jobs[-1].finish_s - jobs[0].submit_s if jobs else 0.0
        if whole_s > record.finished_s - record.started_s + _CLOCK_S:
            yield f"the jobs of trial {trial_id} take longer than the trial"
        if tuple(job.job_id for job in jobs) != record.job_ids:
            yield f"the traces of trial {trial_id} are of other jobs than its record"


def _attempts_within_job(measured: Measured) -> Iterator[str]:
    """Attempts of tasks run within their job, and a job has as many tasks as it says."""
    for job in _all_jobs(measured):
        for attempt in job.attempts:
            if not job.submit_s - _CLOCK_S <= attempt.start_s <= attempt.finish_s:
                yield f"{attempt.attempt_id} starts before its job, or ends before it starts"
            elif attempt.finish_s > job.finish_s + _CLOCK_S and attempt.state == "succeeded":
                yield f"{attempt.attempt_id} ends after its job"
        if job.state == "SUCCEEDED":
            for kind, number in (("map", job.num_maps), ("reduce", job.num_reduces)):
                tasks = {attempt.task_id for attempt in job.attempts if attempt.kind == kind}
                if len(tasks) != number:
                    yield f"{job.job_id} has {count(number, kind)}, and attempts of {len(tasks)}"


def _tasks_in_slots(measured: Measured) -> Iterator[str]:
    """No more tasks run at once than the nodes have slots."""
    records = measured.run.trials()
    for trial_id, jobs in measured.jobs.items():
        cluster = records[trial_id].trial.cell.cluster
        slots = cluster.workers * (cluster.node.map_slots + cluster.node.reduce_slots)
        for job in jobs:
            task_count = most_at_once(
                (attempt.start_s, attempt.finish_s) for attempt in job.attempts
            )
            if cluster.provider != "existing" and task_count > slots:
                yield f"{job.job_id} has {task_count} tasks at once, and there are {slots} slots"


def most_at_once(windows: Iterable[tuple[float, float]]) -> int:
    """
    How many of the *windows*, each of two moments, share one; those that touch do not.

    >>> most_at_once([(0.0, 2.0), (1.0, 3.0), (2.0, 4.0)])
    2
    """
    moments = [(moment, step) for start, end in windows for moment, step in ((start, 1), (end, -1))]
    peak = 0
    current = 0
    for _, step in sorted(moments):
        current += step
        peak = max(peak, current)
    return peak


def _counters_add_up(measured: Measured) -> Iterator[str]:
    """Counters of a job are the sums of those of its tasks."""
    for job in _all_jobs(measured):
        counters: dict[TaskKind, Mapping[str, int]] = {
            "map": job.map_counters,
            "reduce": job.reduce_counters,
        }
        for kind, stated in counters.items():
            summed = job.task_counters(kind)
            for name in _SUMMED:
                counter = f"{TASK_COUNTER}.{name}"
                if counter in stated and counter in summed and stated[counter] != summed[counter]:
                    yield (
                        f"{job.job_id}: {name} of its {kind}s is {stated[counter]}, and their"
                        f" tasks have {summed[counter]}"
                    )


def _input_is_read(measured: Measured) -> Iterator[str]:
    """The first job of a trial reads the input that its cell asks for."""
    records = measured.run.trials()
    for trial_id, jobs in measured.jobs.items():
        asked_bytes = records[trial_id].input_bytes
        if not asked_bytes or not jobs or not jobs[0].input_bytes:
            continue
        if abs(jobs[0].input_bytes - asked_bytes) > _INPUT_TOLERANCE * asked_bytes:
            yield (
                f"{jobs[0].job_id} read {jobs[0].input_bytes} bytes, and the input of trial"
                f" {trial_id} has {asked_bytes}"
            )


def _spans_within_attempts(measured: Measured) -> Iterator[str]:
    """What was recorded in a task lies within its attempt, and attempts are those of the job."""
    for trial_id, jobs in measured.jobs.items():
        windows = {attempt.attempt_id: attempt.window for job in jobs for attempt in job.attempts}
        for task in measured.run.read_recordings(trial_id):
            if task.attempt_id not in windows:
                yield f"{task.attempt_id} was recorded, and no job of trial {trial_id} has it"
            elif not _is_within(task, *windows[task.attempt_id]):
                yield f"{task.attempt_id} was recorded outside of the time that it ran"


def _is_within(task: TaskSpans, start_s: float, finish_s: float) -> bool:
    """Whether all spans of a *task* lie between two moments."""
    return all(start_s <= span.start_s and span.finish_s <= finish_s for span in task.spans)


def _all_jobs(measured: Measured) -> Iterator[JobTrace]:
    """Every job of which there is a trace."""
    for jobs in measured.jobs.values():
        yield from jobs


LAWS = (
    Law("plan.jsonl", "the plan is that of the grid, the seed and the draw", _plan_of_grid),
    Law("trials/", "every trial that ran is of the plan", _trial_of_plan),
    Law("trial.json: job_ids", "a job is of one trial", _job_once),
    Law("trials/*/raw/", "histories and recordings are of one trial", _record_once),
    Law("trial.json: moments", "trials run one after the other", _one_after_another),
    Law("trials.jsonl", "what ended is stored then, in that order", _stored_when_ended),
    Law("predictions/sealed.json", "scored trials start after the seal", _sealed_before_scored),
    Law("job ids", "ids of jobs ascend with time and starts of clusters", _job_ids_ascend),
    Law("job.json", "jobs run within their trial", _jobs_within_trial),
    Law("attempts.parquet", "tasks run within their job, each of them", _attempts_within_job),
    Law("slots", "no more tasks at once than slots", _tasks_in_slots),
    Law("counters", "counters of jobs are sums of those of tasks", _counters_add_up),
    Law("input", "a job reads its input", _input_is_read),
    Law("spans.parquet", "recordings lie within their attempts", _spans_within_attempts),
)
