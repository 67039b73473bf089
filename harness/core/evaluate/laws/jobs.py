"""Laws of jobs: whose they are, their ids, tasks and counters."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from harness.base.documents.wording import count
from harness.base.errors import HarnessError
from harness.base.records.trace import TASK_COUNTER, TaskKind
from harness.base.records.trial import Cell, TrialRecord
from harness.base.text import excerpt
from harness.clusters.workloads.base import INPUT_TOLERANCE, SMALL_INPUT_BYTES
from harness.core.evaluate.laws.measured import CLOCK_S, Measured
from harness.core.evaluate.resolved import resolve_cell
from harness.core.store.evidence import EVIDENCE, Evidence
from harness.observe.storage.opener import MANIFEST

_RECORDS = ("raw/job-", "raw/recordings", "trace/")  # files that no two trials have alike
_OUR_GENERATOR = ".generate.Generate"
# Counters of tasks that the application master adds up as they are.
_SUMMED = ("MAP_INPUT_RECORDS", "MAP_OUTPUT_RECORDS", "REDUCE_INPUT_RECORDS", "SPILLED_RECORDS")


def job_once(measured: Measured) -> Iterator[str]:
    """No job belongs to two trials."""
    trials_by_job = defaultdict[str, list[str]](list)
    for record in measured.attempts:
        for job_id in record.job_ids:
            trials_by_job[job_id].append(record.trial.id)
    for job_id, trials in trials_by_job.items():
        if len(trials) > 1:
            yield f"{job_id} is a job of {count(len(trials), 'trial')}: {', '.join(trials)}"


def record_once(measured: Measured) -> Iterator[str]:
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


def job_ids_ascend(measured: Measured) -> Iterator[str]:
    """Later trials have jobs of later starts of a cluster, or of later numbers."""
    if measured.was_imported:
        return
    last = (0, 0)
    for record in measured.attempts:
        for job_id in record.job_ids:
            key = _start_and_number(job_id)
            if key <= last:
                yield f"{job_id} of trial {record.trial.id} is no later than the job before it"
            if key[0] / 1000 > record.started_s + CLOCK_S and measured.is_of_this_clock:
                yield f"{job_id} of trial {record.trial.id} is of a cluster that started later"
            last = max(last, key)


def _start_and_number(job_id: str) -> tuple[int, int]:
    """When the cluster of a job started, in milliseconds, and the job's number there."""
    start, number = job_id.removeprefix("job_").split("_")
    return int(start), int(number)


@dataclass
class _Start:
    """One start of a cluster: the number of its *last* job so far, and which *inputs* it has."""

    last: int = 0
    inputs: set[str] = field(default_factory=set)


def job_ids_have_no_gap(measured: Measured) -> Iterator[str]:
    """A start of a cluster has no job but those of the trials, and one that made a large input."""
    if not has_all_attempts(measured):
        return
    starts = defaultdict[int, _Start](_Start)
    unknown = _starts_of_others(measured)
    # Trials since the last job: each may have made an input, or had a job that nobody saw.
    failed_count = 0
    for record in measured.attempts:
        keys = [*map(_start_and_number, record.job_ids)]
        if keys and keys[0][0] not in unknown:
            start = starts[keys[0][0]]
            spec = repr(record.trial.cell.workload)
            is_made = spec not in start.inputs and is_made_by_job(record.trial.cell)
            missing = keys[0][1] - start.last - 1
            if missing > failed_count + is_made:
                yield (
                    f"{count(missing, 'job')} before {record.job_ids[0]} of trial"
                    f" {record.trial.id} {'is' if missing == 1 else 'are'} of no trial"
                )
            start.inputs.add(spec)
            start.last = keys[-1][1]
            failed_count = 0
        failed_count += record.state != "done"


def is_made_by_job(cell: Cell) -> bool:
    """Whether a job may have made the input of *cell*: our generator's client makes small ones."""
    try:
        plan = resolve_cell(cell).plan_input()
    except HarnessError:
        return True
    is_ours = plan.generator.main_class.endswith(_OUR_GENERATOR)
    return not is_ours or plan.bytes > SMALL_INPUT_BYTES


def has_all_attempts(measured: Measured) -> bool:
    """
    Whether the run holds all that ran on clusters of its own: its chain names warm-ups, too.

    A trial that is stored twice was moved away by its owner, to be measured again.
    """
    names = [line.name for line in measured.lines]
    if not measured.is_of_our_cluster or names[:1] != [MANIFEST]:
        return False
    stored = Counter(name for name in names if name.startswith("trials/") and name.count("/") == 1)
    retried = Counter(name.split("/")[1].split("-")[0] for name in names if "retried/" in name)
    return all(
        number - 1 <= retried[name.removeprefix("trials/")] for name, number in stored.items()
    )


def _starts_of_others(measured: Measured) -> set[int]:
    """Starts of clusters with trials of other runs, or with code that may have had any job."""
    reused = measured.manifest.reused

    def is_known(record: TrialRecord) -> bool:
        """Whether it ran here, and by a workload of ours."""
        return record.trial.id not in reused and record.trial.cell.workload.code is None

    return {
        _start_and_number(job_id)[0]
        for record in measured.attempts
        if not is_known(record)
        for job_id in record.job_ids
    }


def jobs_succeeded(measured: Measured) -> Iterator[str]:
    """A trial that is done has jobs that succeeded."""
    if measured.was_imported:
        return
    for trial_id, jobs in measured.jobs.items():
        for job in jobs:
            if job.state != "SUCCEEDED":
                yield f"{job.job_id} ended as {excerpt(job.state)}, and trial {trial_id} is done"


def attempts_within_job(measured: Measured) -> Iterator[str]:
    """Attempts of tasks run within their job, and a job has as many tasks as it says."""
    for job in measured.all_jobs():
        for attempt in job.attempts:
            if not job.submit_s - CLOCK_S <= attempt.start_s <= attempt.finish_s:
                yield f"{attempt.attempt_id} starts before its job, or ends before it starts"
            elif attempt.finish_s > job.finish_s + CLOCK_S and attempt.state == "succeeded":
                yield f"{attempt.attempt_id} ends after its job"
        if job.state == "SUCCEEDED":
            for kind, number in (("map", job.num_maps), ("reduce", job.num_reduces)):
                tasks = {attempt.task_id for attempt in job.attempts if attempt.kind == kind}
                if len(tasks) != number:
                    yield f"{job.job_id} has {count(number, kind)}, and attempts of {len(tasks)}"


def tasks_in_slots(measured: Measured) -> Iterator[str]:
    """No more tasks run at once than the nodes have slots."""
    if not measured.is_of_our_cluster:
        return
    for trial_id, jobs in measured.jobs.items():
        cluster = measured.records[trial_id].trial.cell.cluster
        slots = cluster.workers * (cluster.node.map_slots + cluster.node.reduce_slots)
        for job in jobs:
            task_count = most_at_once(
                (attempt.start_s, attempt.finish_s) for attempt in job.attempts
            )
            if task_count > slots:
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


def counters_add_up(measured: Measured) -> Iterator[str]:
    """Counters of a job are the sums of those of its tasks."""
    for job in measured.all_jobs():
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


def input_is_read(measured: Measured) -> Iterator[str]:
    """The input of a trial is as large as its cell asks for, and its first job reads it."""
    for record in measured.done:
        wanted_bytes = record.trial.cell.workload.input_bytes
        given_bytes = record.input_bytes or 0
        is_ours = record.trial.cell.workload.code is None  # others may round as they like
        is_right = _is_as_large(given_bytes, wanted_bytes) if is_ours else given_bytes > 0
        if not measured.was_imported and not is_right:
            yield (
                f"the input of trial {record.trial.id} has {given_bytes} bytes, and its cell asks"
                f" for {wanted_bytes}"
            )
    for trial_id, jobs in measured.jobs.items():
        asked_bytes = measured.records[trial_id].input_bytes
        if not asked_bytes or not jobs or not jobs[0].input_bytes:
            continue
        if not _is_as_large(jobs[0].input_bytes, asked_bytes):
            yield (
                f"{jobs[0].job_id} read {jobs[0].input_bytes} bytes, and the input of trial"
                f" {trial_id} has {asked_bytes}"
            )


def _is_as_large(size: int, wanted: int) -> bool:
    """Whether an input has the *wanted* size, as nearly as generators make it."""
    return abs(size - wanted) <= INPUT_TOLERANCE * wanted
