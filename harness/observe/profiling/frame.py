"""
The frame of jobs as measured, what passes around tasks and belongs to no model; and their bodies.

What lies between tasks is in the job history.  Where a task's work begins in its JVM and where it
ends is in what was recorded of it, or in its log; a history shows neither.
"""

from __future__ import annotations

import math
import statistics

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from harness.base.records.profile import FRAME, ProfiledJob, SpeedCorrection, Statistic
from harness.base.records.trace import JobTrace, TaskKind
from harness.base.stats.spread import median_absolute_deviation
from harness.models.whatif.inputs import SIDES, side_costs
from harness.observe.profiling.body import copies_of, task_ends
from harness.observe.profiling.jobs import Observation, map_slowdown
from harness.observe.profiling.measured import measured
from harness.observe.profiling.processes import outside_cpu_s, task_cpu_s

# By the kind of a task: parts of the frame that are start and end of its JVM.
_STARTS = {"map": "map_start_s", "reduce": "reduce_start_s"}
_ENDS = {"map": "map_end_s", "reduce": "reduce_end_s"}
_CPU = ("task_cpu_s", "outside_cpu_s")
# Start and end of a JVM take at most this share of the shortest task of their kind, where they are
# fitted: a fit knows no bound, and what it takes too much for them no task has left to work in.
_MOST_OF_TASK = 0.9
# Costs of What-If that stand for a JVM's start and end where nothing else shows them.
_FITTED = ((_STARTS, "setup_cpu_s"), (_ENDS, "cleanup_cpu_s"))


def shown_parts(observation: Observation) -> Iterator[tuple[str, float, str]]:
    """Each part of the frame that one job shows: name, seconds as measured, where that is from."""
    history = "job history"
    for name, seconds in _history_parts(observation):
        yield name, seconds, history
    ends = task_ends(observation)
    trace = observation.trace
    for attempt in (*trace.succeeded("map"), *trace.succeeded("reduce")):
        if attempt.attempt_id in ends:
            start_s, end_s, source = ends[attempt.attempt_id]
            yield _STARTS[attempt.kind], start_s, source
            yield _ENDS[attempt.kind], end_s, source


def _history_parts(observation: Observation) -> Iterator[tuple[str, float]]:
    """Yield each part of the frame that the history of one job shows, with its seconds."""
    trace = observation.trace
    if trace.attempts:
        first = min(attempt.start_s for attempt in trace.attempts)
        last = max(attempt.finish_s for attempt in trace.attempts)
        yield "job_start_s", max(0.0, first - trace.submit_s)
        yield "job_end_s", max(0.0, trace.finish_s - last)
    cluster = observation.cluster
    idle_s = [
        *_idle_seconds(trace, "map", cluster.map_slots),
        *_idle_seconds(trace, "reduce", cluster.reduce_slots),
    ]
    # Negative where more ran at once than slots exist.
    if idle_s and statistics.median(idle_s) >= 0:
        yield from (("task_gap_s", seconds) for seconds in idle_s)
    maps = trace.succeeded("map")
    reduces = trace.succeeded("reduce")
    if maps and reduces:
        waited_s = reduces[0].start_s - max(attempt.finish_s for attempt in maps)
        if waited_s >= 0:
            yield "reduce_gap_s", waited_s


def _idle_seconds(trace: JobTrace, kind: TaskKind, slots: int) -> Iterator[float]:
    """
    Yield seconds from each end of a task of *kind* to the start it made room for.

    The slot that is free first is filled first.
    """
    attempts = [attempt for attempt in trace.attempts if attempt.kind == kind]
    starts = sorted(attempt.start_s for attempt in attempts)[slots:] if slots else []
    ends = sorted(attempt.finish_s for attempt in attempts)
    for start, end in zip(starts, ends, strict=False):
        yield start - end


def measure_frame(
    observations: Sequence[Observation],
    speed: SpeedCorrection | None = None,
    costs: Mapping[str, Statistic] | None = None,
) -> dict[str, Statistic]:
    """
    Parts of the frame by the names of `FRAME`, medians in seconds, each where jobs show it.

    At reference speed, or as measured without a *speed*.  A start or an end of tasks that neither
    spans nor logs show is the fitted one of *costs*, and marked assumed: both of a kind within its
    shortest task.
    """
    seen = defaultdict[str, list[float]](list)
    sources = defaultdict[str, set[str]](set)
    for observation in observations:
        factor = observation.at_reference(1.0, speed) if speed else 1.0
        for name, seconds, source in shown_parts(observation):
            seen[name].append(factor * seconds)
            sources[name].add(source)
    frame = {
        name: Statistic(
            value=statistics.median(seen[name]),
            count=len(seen[name]),
            spread=median_absolute_deviation(seen[name]),
            source=f"{' and '.join(sorted(sources[name]))}: median",
        )
        for name in FRAME
        if name in seen
    }
    for side in SIDES:
        fitted_costs = side_costs(costs or {}, side)
        fitted = {
            names[side]: _assumed(fitted_costs[cost], cost)
            for names, cost in _FITTED
            if names[side] not in frame and cost in fitted_costs
        }
        frame |= _bounded(fitted, shortest_task_s(observations, side, speed))
    return frame


def _assumed(fitted: Statistic, cost: str) -> Statistic:
    """The *fitted* value of a *cost* as a part of the frame that no job shows."""
    changes = {"source": f"the fitted {cost}", "assumed": True, "group": (), "nodes": {}}
    return fitted.model_copy(update=changes)


def _bounded(fitted: Mapping[str, Statistic], shortest_s: float) -> dict[str, Statistic]:
    """The *fitted* start and end of a kind of tasks, the shortest of which took *shortest_s*."""
    most_s = _MOST_OF_TASK * shortest_s
    together_s = math.fsum(statistic.value for statistic in fitted.values())
    if together_s <= most_s:
        return dict(fitted)
    factor = most_s / together_s
    return {
        name: statistic.model_copy(
            update={
                "value": factor * statistic.value,
                "source": f"{statistic.source}, within the shortest task",
            }
        )
        for name, statistic in fitted.items()
    }


def shortest_task_s(
    observations: Iterable[Observation], kind: str, speed: SpeedCorrection | None
) -> float:
    """Seconds of the shortest task of *kind* that succeeded, at reference *speed*; else inf."""
    durations = [
        (observation.at_reference(1.0, speed) if speed else 1.0) * attempt.duration_s
        for observation in observations
        for attempt in observation.trace.attempts
        if (attempt.kind, attempt.state) == (kind, "succeeded")
    ]
    return min(durations, default=math.inf)


def jvm_ends(
    observation: Observation,
    profile_frame: Mapping[str, Statistic],
    speed: SpeedCorrection | None = None,
) -> tuple[dict[str, tuple[float, float]], tuple[str, ...]]:
    """
    Seconds of the start and of the end of each attempt's JVM as measured, and what is borrowed.

    An attempt that shows none has the medians of its job, else those of *profile_frame*, which is
    at reference *speed*: the last value names these.  Attempts of a kind whose start or end is
    known nowhere are left out.  Those of an uberized job have no JVM of their own: 0.
    """
    attempts = observation.trace.attempts
    if observation.trace.uberized:
        return {attempt.attempt_id: (0.0, 0.0) for attempt in attempts}, ()
    shown = measure_frame([observation])
    factor = observation.at_reference(1.0, speed) if speed else 1.0
    ends = {name: (start, end) for name, (start, end, _) in task_ends(observation).items()}
    borrowed = set[str]()
    for attempt in attempts:
        names = _STARTS[attempt.kind], _ENDS[attempt.kind]
        if attempt.attempt_id in ends:
            continue
        if shown.keys() >= {*names}:
            start_s, end_s = (shown[name].value for name in names)
        elif profile_frame.keys() >= {*names}:
            start_s, end_s = (profile_frame[name].value / factor for name in names)
            borrowed.update(names)
        else:
            continue
        ends[attempt.attempt_id] = start_s, end_s
    return ends, tuple(name for name in FRAME if name in borrowed)


def profiled_jobs(
    observations: Sequence[Observation], speed: SpeedCorrection, frame: Mapping[str, Statistic]
) -> tuple[ProfiledJob, ...]:
    """
    Jobs of *observations* in the order of their trials' names, times at reference speed.

    Each body is the time in which its tasks were at work; *frame* lends the starts and ends of JVMs
    that the job does not show.  A job of which some are known nowhere has no body.
    """
    jobs = []
    for observation in observations:
        job_trace = observation.trace
        cluster = observation.cluster
        ends, _ = jvm_ends(observation, frame, speed)
        times_s: dict[str, float | None] = {**measured([job_trace], ends, copies_of(observation))}
        for name in ("body_s", "map_task_s", "reduce_task_s"):
            if (times_s.get(name) or 0.0) <= 0:
                times_s[name] = None
        times_s["map_slowdown_s"] = map_slowdown(job_trace, cluster.map_slots)
        times_s["task_cpu_s"] = task_cpu_s(observation)
        times_s["outside_cpu_s"] = outside_cpu_s(observation)
        names = ("job_s", "body_s", "map_task_s", "reduce_task_s", "map_slowdown_s", *_CPU)
        jobs.append(
            ProfiledJob(
                trial=observation.trial.id,
                cell=observation.trial.cell.id,
                number=observation.number,
                input_bytes=observation.job_input.input_bytes,
                num_splits=observation.job_input.num_splits,
                num_nodes=cluster.num_nodes,
                map_slots=cluster.map_slots,
                reduce_slots=cluster.reduce_slots,
                configuration=observation.config,
                containers=len(job_trace.attempts),
                nodes=cluster.nodes,
                shuffle_bytes_total=math.fsum(
                    attempt.count("REDUCE_SHUFFLE_BYTES")
                    for attempt in job_trace.succeeded("reduce")
                ),
                **{
                    name: observation.at_reference(seconds, speed)
                    for name in names
                    if (seconds := times_s.get(name)) is not None
                },
            )
        )
    return tuple(sorted(jobs, key=lambda job: (job.trial, job.number)))
