"""
Calibration: what a machine costs, by small jobs that nobody asks about, until a budget ends.

The jobs are chosen one by one from a list: each narrows the intervals most for each second that it
takes (`harness.base.stats.design`).  What a job will work on is known before it runs; what that
takes, and so how well each cost is told by it, is known from the disks and networks at first, and
better after each job.
"""

from __future__ import annotations

import math
import time

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, stdev
from typing import Any

import numpy as np

from harness.base.errors import DataError, SpecError
from harness.base.hadoop.properties import job_config
from harness.base.records.hardware import Cost, MachineCosts, interval
from harness.base.records.manifest import Manifest
from harness.base.records.profile import FRAME
from harness.base.records.statistics import LOGGED_SPILL, MACHINE_COSTS
from harness.base.records.trial import Cell, Trial, TrialRecord
from harness.base.stats.design import choose, information
from harness.base.units import MIB
from harness.core.evaluate.flow import Evaluation
from harness.core.evaluate.resolved import resolve_cell
from harness.core.experiment.grid import label, varying
from harness.core.reports.sections.method import flatten
from harness.core.run.estimate import Estimator, input_of
from harness.core.run.reuse import VARIES
from harness.core.run.session import Session
from harness.core.store import Run
from harness.observe.profiling import fit_speed
from harness.observe.profiling.dataflow import spill_count
from harness.observe.profiling.frame import shown_parts
from harness.observe.profiling.jobs import Observation
from harness.observe.profiling.platform import (
    FEWEST,
    LEVEL,
    PARTS,
    TYPICAL,
    Counts,
    MapAmounts,
    Work,
    copying_counts,
    fit_platform,
    map_counts,
    reading_counts,
    works,
    writing_counts,
)

# Its experiment, on a cluster as a file of an experiment has it.
TEXT = """\
schema: 1
name: calibrate
question: What does this machine cost?
cluster: {cluster}
workloads:
  - {{name: sleep, input: 96 KiB, reduce_ms: 1}}
  - {{name: dfsio, input: [8 MiB, 64 MiB, 160 MiB], mode: [read, write], files: 2}}
  - {{name: shuffle, input: [8 MiB, 64 MiB, 160 MiB], record: [24, 104, 1000]}}
  - {{name: sort, input: [8 MiB, 48 MiB, 160 MiB]}}
configuration:
  mapreduce.job.reduces: [1, 2]
  mapreduce.task.io.sort.mb: [8, 48]
  dfs.replication: [1, 2]
  mapreduce.map.output.compress: false
  mapreduce.output.fileoutputformat.compress: false
  mapreduce.job.running.map.limit: 2
  mapreduce.job.running.reduce.limit: 2
  mapreduce.job.reduce.slowstart.completedmaps: 1.0
trial_limit: 5 min
"""
_CHECKED = {"shuffle": 64 * MIB, "sort": 48 * MIB}  # what a check runs, at least so large
_MOVED = 1.25  # times that a part may take, beyond its interval, before it is said to have moved
_UNSURE = 3.0  # times, where there is no interval: twice was seen where nothing had moved
_STARTS = "sleep"
_LOGGED_PARTS = (LOGGED_SPILL, "map_merge_s", "copy_s")
_FRAMES = 2  # so many of it come first: nothing but start-up
_END_S = 5.0  # of a cluster, and of the fit
_NOISE = 0.1
_LEAST_S = 0.1  # of what a part takes, relative and absolute, before it is measured
_PRIOR = 1e-4  # information on each cost beforehand: little, so that telling costs apart counts
_TOLD_S = 0.005  # a part that should take less tells nothing of its costs
_SORT_RECORD = 654.0  # bytes of a line of `sort`, as its counters have them


def _copies(cell: Cell) -> int:
    """How many copies HDFS keeps of what the jobs of *cell* write."""
    return resolve_cell(cell).output_copies


def planned_work(cell: Cell) -> dict[str, Counts]:
    """
    What the mean task of each kind will work on, by part; nothing where a job only starts.

    Of tasks that are not recorded, those parts that their logs show.
    """
    resolved = resolve_cell(cell)
    spec = cell.workload
    arguments = resolved.workload.arguments(spec)
    sizes = resolved.plan_input().sizes
    if spec.name == "dfsio":
        size = spec.input_bytes / len(sizes)
        if arguments["mode"] == "read":
            return {"map_read_s": reading_counts(size, 0.0)}
        return {"map_write_s": writing_counts(size, 0.0, _copies(cell))}
    if spec.name not in ("shuffle", "sort"):
        return {}
    record_bytes = float(arguments["record"]) if spec.name == "shuffle" else _SORT_RECORD
    work = _sorting_work(cell, sizes, record_bytes)
    if cell.tracing.mode == "logs":
        return {part: work[part] for part in _LOGGED_PARTS if part in work}
    return {part: counts for part, counts in work.items() if part != LOGGED_SPILL}


def _sorting_work(cell: Cell, sizes: Sequence[int], record_bytes: float) -> dict[str, Counts]:
    """What the mean tasks of a job that sorts its input of these *sizes* will work on."""
    properties = resolve_cell(cell).configuration
    configuration = job_config(properties, use_combiner=False)
    maps = len(sizes)
    read_bytes = sum(sizes) / maps
    records = read_bytes / record_bytes
    buffer_bytes = configuration.sort_buffer_mb * MIB * configuration.sort_spill_percent
    spills = spill_count(records, record_bytes, buffer_bytes)
    amounts = MapAmounts(
        input_bytes=read_bytes,
        input_records=records,
        output_bytes=read_bytes,
        output_records=records,
        sorted_levels=records * math.log2(max(2.0, records / spills)),
        spill_bytes=[read_bytes / spills] * spills,
        merged_bytes=read_bytes,
    )
    work = map_counts(amounts)
    merging = work.pop("map_merge_s")
    work["copy_s"] = copying_counts(maps * read_bytes / configuration.num_reduces, maps)
    if spills > 1:  # a single one is renamed
        work["map_merge_s"] = merging
    share = maps / configuration.num_reduces
    if cell.workload.name == "sort":
        work["reduce_write_s"] = writing_counts(share * read_bytes, share * records, _copies(cell))
    return work


def offered_information(work: Mapping[str, Counts], costs: Mapping[str, float]) -> np.ndarray:
    """
    Information that a job adds on all costs by its planned *work*, where they are about *costs*.

    Each cost counts in multiples of itself, or of a typical one where that is more.
    """
    rows = []
    errors = []
    for counts in work.values():
        row = dict.fromkeys(TYPICAL, 0.0)
        row |= {name: count * max(costs[name], TYPICAL[name]) for name, count in counts.items()}
        rows.append([*row.values()])
        took_s = math.fsum(count * costs[name] for name, count in counts.items())
        errors.append(max(_LEAST_S, _NOISE * took_s))
    return information(np.array(rows).reshape(-1, len(TYPICAL)), np.array(errors))


def known_costs(run: Run) -> dict[str, float]:
    """Every cost as *run* tells it: from its jobs, else from rates of nodes, else a typical one."""
    evaluation = Evaluation.of(run)
    expected = expected_costs(run)
    observed = _observed(evaluation, evaluation.done.values())
    fitted = fit_platform(_works(observed), expected)
    return expected | {name: cost.value for name, cost in fitted.items() if not cost.group}


def _observed(evaluation: Evaluation, records: Iterable[TrialRecord]) -> list[Observation]:
    """The jobs of all *records*."""
    observed = list[Observation]()
    for record in records:
        observed += evaluation.observe(record)
    return observed


def _works(observed: Sequence[Observation], *, by_logs: bool = False) -> list[Work]:
    """
    What the tasks of *observed* worked on, by recordings or logs.

    A job that only starts works on next to nothing, which tells of no cost.
    """
    working = [job for job in observed if job.trial.cell.workload.name != _STARTS]
    if not working:
        return []
    logged = by_logs or any(job.trial.cell.tracing.mode == "logs" for job in working)
    return works(working, fit_speed(observed), "logs" if logged else "spans")


def expected_costs(run: Run) -> dict[str, float]:
    """Every cost without a job: as rates of nodes say, else a typical one."""
    return TYPICAL | micro_costs(run.read_manifest().micro)


@dataclass(frozen=True, slots=True)
class CheckedCost:
    """
    The largest *cost* of a part of a task, from a file and as it is *now*.

    *verdict*: it `holds`, it `moved`, or its interval `cannot tell`.
    """

    cost: str
    verdict: str
    from_file: float
    now: float

    @classmethod
    def of(cls, name: str, cost: Cost, times: float) -> CheckedCost:
        """A cost whose part takes so many times as long as by the file."""
        low = 1 / _UNSURE
        high = _UNSURE
        if cost.low is not None and cost.high is not None and cost.value:
            low = cost.low / cost.value / _MOVED
            high = cost.high / cost.value * _MOVED
        verdict = "holds" if cost.high is not None else "cannot tell"
        if cost.trials >= FEWEST and not low <= times <= high:
            verdict = "moved"
        return cls(name, verdict, cost.value, times * cost.value)

    @classmethod
    def largest(cls, costs: Mapping[str, Cost], rows: Sequence[Work]) -> CheckedCost | None:
        """The largest of *costs* of parts that worked as *rows* say; `None`: too little to tell."""
        values = {name: cost.value for name, cost in costs.items()}
        times = []
        expected_s = 0.0
        for row in rows:
            row_s = math.fsum(row.counts[name] * value for name, value in values.items())
            expected_s += row_s
            if row_s:
                times.append(row.seconds / row_s)
        if expected_s < _TOLD_S * len(rows):
            return None
        shares = {
            name: value * sum(row.counts[name] for row in rows) for name, value in values.items()
        }
        name = max(shares, key=lambda cost_name: shares[cost_name])
        return cls.of(name, costs[name], fmean(times))


@dataclass
class Calibration:
    """A calibration within *budget_s*, from now on; *session* is that of `TEXT`."""

    session: Session
    budget_s: float
    started_s: float = field(default_factory=time.monotonic)
    began_s: float = field(default_factory=time.time)
    choose: Callable[..., Iterator[tuple[int, float]]] = (
        choose  # as `harness.base.stats.design` has it
    )

    def __post_init__(self) -> None:
        """Plan the jobs that come first; `SpecError` where nothing is to be known of tasks."""
        if self.session.experiment.tracing.mode == "off":
            raise SpecError(
                "a calibration needs to know what tasks took",
                where="trace",
                fix="leave it out, or write logs",
            )
        cells = (trial.cell for trial in self.session.trials)
        self.cells = {cell.id: cell for cell in cells if _copies(cell) <= cell.cluster.workers}
        self.works = {key: planned_work(cell) for key, cell in self.cells.items()}
        starts = [trial for trial in self.session.trials if trial.cell.workload.name == _STARTS]
        if not starts:
            raise SpecError(
                "a calibration needs its job that only starts",
                where="workloads",
                fix="leave the workloads as they are",
            )
        cell = starts[0].cell
        versions = self.session.versions
        self.first_trials = tuple(
            Trial.of(cell, number, versions, profiling=True) for number in range(_FRAMES)
        )

    def spent_s(self, run: Run) -> float:
        """Seconds of the budget that are spent, on jobs before an interruption as well."""
        earlier_s = math.fsum(
            attempt.finished_s - attempt.started_s
            for attempt in run.attempts()
            if attempt.started_s < self.began_s
        )
        return earlier_s + time.monotonic() - self.started_s

    def next_trials(self, run: Run) -> list[Trial]:
        """The job that tells most for each second it takes; none where the budget is spent."""
        costs = known_costs(run)
        information_by_cell = {
            key: offered_information(work, costs) for key, work in self.works.items() if work
        }
        keys = [*information_by_cell]
        seconds = self._seconds_of(run, [self.cells[key] for key in keys])
        planned = run.read_plan()
        done = Counter(trial.cell.id for trial in planned)
        gained = _PRIOR * np.eye(len(TYPICAL))
        gained += sum(
            count * information_by_cell[key]
            for key, count in done.items()
            if key in information_by_cell
        )
        left_s = self.budget_s - self.spent_s(run) - _END_S
        offered = np.array([*information_by_cell.values()])
        chosen = next(self.choose(gained, offered, np.array(seconds), left_s), None)
        if chosen is None:
            return []
        place, gain = chosen
        cell = self.cells[keys[place]]
        reason = f"{cell.workload.name}: gain {gain:.2f} in {seconds[place]:.0f} s"
        self.session.console.say(f"{reason}; {left_s:.0f} s of the budget are left")
        facts = {"profiling": True, "look": 1 + len(planned), "reason": reason}
        return [Trial.of(cell, done[cell.id], self.session.versions, **facts)]

    def _seconds_of(self, run: Run, cells: Iterable[Cell]) -> list[float]:
        """What a job of each of *cells* would take, with what makes its input where that is new."""
        attempts = run.attempts()
        estimator = Estimator([(run.read_manifest().created_s, attempts)])
        inputs = {input_of(attempt.trial.cell) for attempt in attempts}
        seconds = list[float]()
        for cell in cells:
            is_new = input_of(cell) not in inputs
            resolved = resolve_cell(cell)
            generation_s = estimator.seconds(resolved, is_generation=True) if is_new else 0.0
            seconds.append(estimator.gap_s + estimator.seconds(resolved) + generation_s)
        return seconds

    def offers(self) -> list[tuple[str, str]]:
        """Each job that can be chosen, and the parts of a task that it tells of."""
        axes = varying(self.cells.values())
        return [
            (label(cell, axes), ", ".join(planned_work(cell)) or "start-up")
            for cell in self.cells.values()
        ]

    def check(self, hardware: MachineCosts) -> list[CheckedCost]:
        """Run a job that shuffles and one that sorts; say which costs of *hardware* still hold."""
        run, _ = self.session.measure(new=True, trials=[*self._checking_trials()])
        evaluation = Evaluation.of(run)
        observed = _observed(evaluation, evaluation.done.values())
        if not observed:
            fix = "read their reasons, then run the command again"
            raise DataError("none of its jobs ended well", where=str(run.path), fix=fix)
        return checked_costs(_works(observed), hardware)

    def _checking_trials(self) -> Iterator[Trial]:
        """Yield a trial of the largest job of each workload that a check runs."""
        largest = dict[str, Cell]()
        for cell in self.cells.values():
            name = cell.workload.name
            if name in _CHECKED and cell.workload.input_bytes >= _CHECKED[name]:
                largest[name] = cell
        for cell in largest.values():
            yield Trial.of(cell, 0, self.session.versions, profiling=True)

    def measure(self) -> tuple[Run, MachineCosts]:
        """Run the jobs, and fit what they say."""
        run, _ = self.session.measure(
            trials=self.first_trials, more=self.next_trials, more_here=self.next_trials
        )
        return run, hardware_of(run, budget_s=self.budget_s, spent_s=self.spent_s(run))


def checked_costs(rows: Sequence[Work], hardware: MachineCosts) -> list[CheckedCost]:
    """Of each kind of part that *rows* are of the largest cost by *hardware*, and if it holds."""
    checked = []
    for names in dict.fromkeys(PARTS.values()):
        costs = {name: hardware.costs[name] for name in names if name in hardware.costs}
        telling = [row for row in rows if PARTS.get(row.part) == names and any(row.counts.values())]
        if costs and telling and (cost := CheckedCost.largest(costs, telling)):
            checked.append(cost)
    return checked


def hardware_of(
    run: Run,
    *,
    budget_s: float = 0.0,
    spent_s: float = 0.0,
    within_s: float = math.inf,
    workloads: Collection[str] = (),
    by_logs: bool = False,
) -> MachineCosts:
    """
    What the jobs of *run* (of *workloads*) that ended *within_s* say of its machine.

    *by_logs*: as on a cluster that already runs, where no task is recorded and no rate measured.
    """
    evaluation = Evaluation.of(run)
    manifest = run.read_manifest()
    records = _told_by(evaluation, manifest.created_s + within_s, workloads, by_logs=by_logs)
    observed = _observed(evaluation, records)
    if not observed:
        when = f" within {within_s:g} s" if _done_of(evaluation, workloads) else ""
        raise DataError(f"no trial is done{when}", where=str(run.path), fix="run the command again")
    speed = fit_speed(observed)
    has_rate = any(job.rate for job in observed)
    micro = {} if by_logs else micro_costs(manifest.micro)
    costs = fit_platform(_works(observed, by_logs=by_logs), TYPICAL | micro)
    return MachineCosts(
        measured_s=manifest.created_s,
        budget_s=budget_s,
        spent_s=spent_s or max(record.finished_s for record in records) - manifest.created_s,
        reference_rate=speed.reference_rate if has_rate else None,
        conditions=_conditions(manifest, observed[0].trial.cell, by_logs=by_logs),
        costs=with_micro(costs, micro),
        frame=frame_of(observed),
        chosen=tuple(_chosen(record) for record in records),
    )


def _told_by(
    evaluation: Evaluation, until_s: float, workloads: Collection[str], *, by_logs: bool
) -> list[TrialRecord]:
    """Trials of *workloads* that had ended at *until_s*, as far as they tell of costs."""
    done = _done_of(evaluation, workloads)
    # Of a trial that feeds no profile, logs were not read where it was recorded.
    telling = [record for record in done if record.trial.profiling or not by_logs]
    return [record for record in telling if record.finished_s <= until_s]


def _chosen(record: TrialRecord) -> dict[str, Any]:
    """A job that was run: what it was expected to tell, and what it took."""
    seconds = record.finished_s - record.started_s
    return {"trial": record.trial.id, "reason": record.trial.reason, "seconds": seconds}


def _done_of(evaluation: Evaluation, workloads: Collection[str]) -> list[TrialRecord]:
    """Trials of *workloads* (without any: of all) that are done; `DataError` for one with none."""
    names = {record.trial.cell.workload.name for record in evaluation.done.values()}
    if unknown := sorted({*workloads} - names):
        what = f"no trial of {', '.join(unknown)} is done"
        fix = f"it has jobs of {', '.join(sorted(names))}"
        raise DataError(what, where=str(evaluation.run.path), fix=fix)
    return [
        record
        for record in evaluation.done.values()
        if not workloads or record.trial.cell.workload.name in workloads
    ]


def _conditions(manifest: Manifest, cell: Cell, *, by_logs: bool) -> dict[str, Any]:
    """Facts that a machine was measured on, by dotted names; *cell* is one that was run there."""
    machine = {name: fact for name, fact in manifest.machine.items() if name not in VARIES}
    facts = {
        "machine": machine,
        "systems": next(iter(manifest.systems.values()), {}),
        "hadoop": manifest.versions.hadoop if manifest.versions else "",
        "java": manifest.versions.java if manifest.versions else "",
        "cluster": cell.cluster.model_dump(mode="json", exclude={"hosts", "ssh"}),
        "tracing": "logs" if by_logs else cell.tracing.mode,
    }
    return dict(flatten(facts))


def with_micro(costs: Mapping[str, Cost], micro: Mapping[str, float]) -> dict[str, Cost]:
    """*costs* with those of *micro*, measured without a job, beside them or in their place."""
    completed = dict(costs)
    for name, value in micro.items():
        if name not in costs:
            unit = MACHINE_COSTS[name].unit
            completed[name] = Cost(
                value=value, unit=unit, source="rates without a job", micro=value
            )
            continue
        cost = costs[name]
        agree = None
        if cost.low is not None and cost.high is not None:
            agree = cost.low <= value <= cost.high
        completed[name] = cost.model_copy(update={"micro": value, "agree": agree})
    return completed


def micro_costs(micro: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """Costs that rates of nodes, measured without a job, say: the mean of the nodes'."""
    costs = {}
    for name, row in MACHINE_COSTS.items():
        seconds = [
            1 / min(rates[rate] for rate in row.node_rates)
            for rates in micro.values()
            if row.node_rates and rates.keys() >= row.node_rates
        ]
        if seconds:
            costs[name] = fmean(seconds)
    return costs


def frame_of(observed: Sequence[Observation]) -> dict[str, Cost]:
    """Start-up, ends and gaps of all jobs: mean of the trials' medians, with its interval."""
    seconds_by_part: Mapping[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    sources = dict[str, str]()
    for observation in observed:
        for name, seconds, source in shown_parts(observation):
            seconds_by_part[name][observation.trial.id].append(seconds)
            sources[name] = source
    frame = {}
    for name in FRAME:
        if seconds_by_trial := seconds_by_part.get(name):
            middles = [float(np.median(seconds)) for seconds in seconds_by_trial.values()]
            frame[name] = _mean_cost(middles, sources[name])
    return frame


def _mean_cost(middles: Sequence[float], source: str) -> Cost:
    """Mean seconds over trials, with Student's interval where there are several."""
    from scipy.special import stdtrit

    value = fmean(middles)
    count = len(middles)
    half = math.inf
    if count > 1:
        half = float(stdtrit(count - 1, (1 + LEVEL) / 2)) * stdev(middles) / math.sqrt(count)
    return Cost(value=value, **interval(value, half), unit="s", trials=count, source=source)
