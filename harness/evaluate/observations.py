"""Jobs of profiling trials as observations: what a profile is made from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.evaluate.containers import ContainerLogs
from harness.evaluate.model_inputs import planned_jobs, question
from harness.parsing.task_log import spills_of
from harness.profiling.observation import Observation
from harness.profiling.spans import map_inside, reduce_inside
from harness.records.prediction import JobConfig, JobInput
from harness.records.task_times import MapTimes, ReduceTimes
from harness.records.trace import FILE_INPUT_COUNTER, JobTrace, joined
from harness.records.trial import TrialRecord
from harness.store import Run
from harness.workloads.base import INPUT_TOLERANCE

BYTES_READ = f"{FILE_INPUT_COUNTER}.BYTES_READ"


def observe(
    run: Run, record: TrialRecord, jobs: Sequence[JobTrace], rate: float | None
) -> list[Observation]:
    """One observation for each of the *jobs* of a trial; *rate* is the speed probe's meanwhile."""
    cell = record.trial.cell
    config, cluster, planned = question(cell)
    whole = joined(jobs)
    logs = ContainerLogs(run.raw(record.trial.id), whole)
    inside = list(_inside(run, record, whole, logs, config))
    found = []
    for number, trace in enumerate(jobs):
        mine = {a.attempt_id for a in trace.attempts}
        found.append(
            Observation(
                trial=record.trial,
                trace=trace,
                config=config,
                cluster=cluster,
                job_input=input_read(trace, planned),
                spills={a: spills_of(log) for a, log in logs.tasks.items() if a in mine},
                rate=rate,
                inside=tuple(i for i in inside if i.attempt_id in mine),
                number=number,
                planned_jobs=planned_jobs(cell),
            )
        )
    return found


def input_read(trace: JobTrace, planned: JobInput) -> JobInput:
    """
    Input of one job: as *planned*, or what its counters say where that is another.

    A later job of a trial may read what one before it wrote: other bytes, in other splits.
    """
    size = trace.counters.get(BYTES_READ, 0)
    same = abs(size - planned.input_bytes) <= INPUT_TOLERANCE * planned.input_bytes
    if size == 0 or (same and trace.num_maps == planned.num_splits):
        return planned
    maps = trace.num_maps
    read = {"input_bytes": size, "num_files": maps, "num_splits": maps, "split_bytes": size / maps}
    return planned.model_copy(update=read)


def _inside(
    run: Run, record: TrialRecord, trace: JobTrace, logs: ContainerLogs, config: JobConfig
) -> Iterator[MapTimes | ReduceTimes]:
    """What the tasks' logs tell of them, and what the tracer recorded in them."""
    if record.trial.cell.tracing.mode == "off":
        return
    yield from logs.inside(compressed=config.map_output_compressed)
    attempts = {a.attempt_id: a for a in trace.attempts}
    for task in run.read_recordings(record.trial.id):
        if (attempt := attempts.get(task.attempt_id)) is not None:
            told = map_inside if attempt.kind == "map" else reduce_inside
            yield told(task, attempt)
