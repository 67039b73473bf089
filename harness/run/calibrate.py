"""
Calibration: what a machine costs, by small jobs that nobody asks about, until a budget ends.

The jobs are chosen one by one from a list: each narrows the intervals most for each second that it
takes (`harness.stats.design`).  What a job will work on is known before it runs; what that takes,
and so how well each cost is told by it, is known from the disks and networks at first, and better
after each job.
"""

from __future__ import annotations

import math
import time

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, stdev
from typing import Any

import numpy as np

from harness.errors import DataError, SpecError
from harness.evaluate.flow import Evaluation
from harness.evaluate.resolved import resolve_cell
from harness.experiment.grid import label, varying
from harness.profiling import fit_speed
from harness.profiling.frame import shown_parts
from harness.profiling.jobs import Observation
from harness.profiling.platform import (
    FEWEST,
    LEVEL,
    LOGGED_SPILL,
    PARTS,
    TYPICAL,
    Work,
    fit_platform,
    stored,
    works,
    written,
)
from harness.records.hardware import Cost, MachineCosts
from harness.records.profile import FRAME
from harness.records.trial import NETWORK_IN, NETWORK_OUT, Cell, Trial
from harness.reports.sections.method import flatten
from harness.run.estimate import Estimator, input_of
from harness.run.reuse import VARIES
from harness.run.session import Session
from harness.stats.design import choose, information
from harness.store import Run
from harness.units import MIB

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
# What a cost is without a job: by which rates of a node.
_MICRO = {
    "local_write_s_per_byte": {"buffered_write"},
    "hdfs_write_s_per_byte": {"buffered_write"},
    "hdfs_copy_s_per_byte": {NETWORK_IN, NETWORK_OUT},
    "network_s_per_byte": {NETWORK_IN, NETWORK_OUT},
}
_STARTS = "sleep"
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


def planned_work(cell: Cell) -> dict[str, tuple[float, ...]]:
    """
    What the mean task of each kind will work on, by part; nothing where a job only starts.

    Of tasks that are not recorded, those parts that their logs show.
    """
    resolved = resolve_cell(cell)
    spec = cell.workload
    properties = resolved.configuration
    arguments = resolved.workload.arguments(spec)
    copies = resolved.output_copies
    sizes = resolved.plan_input().sizes
    if spec.name == "dfsio":
        size = spec.input_bytes / len(sizes)
        if arguments["mode"] == "read":
            return {"map_read_s": (size, 0.0, 1.0)}
        return {"map_write_s": (*stored([size], copies), 0.0, 1.0)}
    if spec.name not in ("shuffle", "sort"):
        return {}
    width = float(arguments["record"]) if spec.name == "shuffle" else _SORT_RECORD
    read = sum(sizes) / len(sizes)
    records = read / width
    room = 0.8 * MIB * int(properties["mapreduce.task.io.sort.mb"])
    spills = math.ceil((read + 16 * records) / room)
    maps = len(sizes)
    reduces = int(properties["mapreduce.job.reduces"])
    work: dict[str, tuple[float, ...]] = {
        "map_read_s": (read, records, 1.0),
        "collect_s": (read, records),
        "spill_sort_s": (records * math.log2(max(2.0, records / spills)), read),
        "spill_write_s": (*written([read / spills] * spills), records, spills),
        "copy_s": (maps * read / reduces, maps),
    }
    if spills > 1:
        work["map_merge_s"] = (*written([read]), records, 1.0)
    if spec.name == "sort":
        share = maps / reduces
        work["reduce_write_s"] = (*stored([share * read], copies), share * records, 1.0)
    if cell.tracing.mode == "logs":
        work[LOGGED_SPILL] = work["spill_sort_s"] + work["spill_write_s"]
        work = {
            part: work[part] for part in (LOGGED_SPILL, "map_merge_s", "copy_s") if part in work
        }
    return work


def offered_information(
    work: Mapping[str, tuple[float, ...]], costs: Mapping[str, float]
) -> np.ndarray:
    """
    Information that a job adds on all costs by its planned *work*, where they are about *costs*.

    Each cost counts in multiples of itself, or of a typical one where that is more.
    """
    rows = []
    errors = []
    for part, counts in work.items():
        row = dict.fromkeys(TYPICAL, 0.0)
        names = PARTS[part]
        row |= {
            name: n * max(costs[name], TYPICAL[name]) for name, n in zip(names, counts, strict=True)
        }
        rows.append([*row.values()])
        took_s = math.fsum(n * costs[name] for name, n in zip(names, counts, strict=True))
        errors.append(max(_LEAST_S, _NOISE * took_s))
    return information(np.array(rows).reshape(-1, len(TYPICAL)), np.array(errors))


def known_costs(run: Run) -> dict[str, float]:
    """Every cost as *run* tells it: from its jobs, else from rates of nodes, else a typical one."""
    evaluation = Evaluation.of(run)
    expected = expected_costs(run)
    observed = [each for record in evaluation.done.values() for each in evaluation.observe(record)]
    fitted = fit_platform(_works(observed), expected)
    return expected | {name: cost.value for name, cost in fitted.items() if not cost.group}


def _works(observed: Sequence[Observation], *, by_logs: bool = False) -> list[Work]:
    """
    What the tasks of *observed* worked on, by recordings or logs.

    A job that only starts works on next to nothing, which tells of no cost.
    """
    working = [each for each in observed if each.trial.cell.workload.name != _STARTS]
    logged = by_logs or any(each.trial.cell.tracing.mode == "logs" for each in working)
    return works(working, fit_speed(observed), "logs" if logged else "spans") if working else []


def expected_costs(run: Run) -> dict[str, float]:
    """Every cost without a job: as rates of nodes say, else a typical one."""
    return TYPICAL | micro_costs(run.read_manifest().micro)


@dataclass
class Calibration:
    """A calibration within *budget_s*, from now on; *session* is that of `TEXT`."""

    session: Session
    budget_s: float
    started_s: float = field(default_factory=time.monotonic)
    began_s: float = field(default_factory=time.time)
    choose: Callable[..., Iterator[tuple[int, float]]] = choose  # as `harness.stats.design` has it

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
        earlier = [attempt for attempt in run.attempts() if attempt.started_s < self.began_s]
        earlier_s = math.fsum(each.finished_s - each.started_s for each in earlier)
        return earlier_s + time.monotonic() - self.started_s

    def next_trials(self, run: Run) -> list[Trial]:
        """The job that tells most for each second it takes; none where the budget is spent."""
        attempts = run.attempts()
        versions = self.session.versions
        estimator = Estimator([(run.read_manifest().created_s, attempts)])
        made = {input_of(record.trial.cell) for record in attempts}
        costs = known_costs(run)
        information_of = {
            key: offered_information(work, costs) for key, work in self.works.items() if work
        }
        keys = [*information_of]
        seconds = list[float]()
        for cell in (self.cells[key] for key in keys):
            is_new = input_of(cell) not in made
            resolved = resolve_cell(cell)
            generation_s = estimator.seconds(resolved, is_generation=True) if is_new else 0.0
            seconds.append(estimator.gap_s + estimator.seconds(resolved) + generation_s)
        done = Counter(trial.cell.id for trial in run.read_plan())
        known = _PRIOR * np.eye(len(TYPICAL))
        known += sum(n * information_of[key] for key, n in done.items() if key in information_of)
        left_s = self.budget_s - self.spent_s(run) - _END_S
        offered = np.array([*information_of.values()])
        chosen = next(self.choose(known, offered, np.array(seconds), left_s), None)
        if chosen is None:
            return []
        cell = self.cells[keys[chosen[0]]]
        look = 1 + len(run.read_plan())
        reason = f"{cell.workload.name}: gain {chosen[1]:.2f} in {seconds[chosen[0]]:.0f} s"
        self.session.console.say(f"{reason}; {left_s:.0f} s of the budget are left")
        facts = {"profiling": True, "look": look, "reason": reason}
        return [Trial.of(cell, done[cell.id], versions, **facts)]

    def offers(self) -> list[tuple[str, str]]:
        """Each job that can be chosen, and the parts of a task that it tells of."""
        axes = varying(self.cells.values())
        return [
            (label(cell, axes), ", ".join(planned_work(cell)) or "start-up")
            for cell in self.cells.values()
        ]

    def check(self, hardware: MachineCosts) -> list[tuple[str, str, float, float]]:
        """
        Run one job that shuffles and one that sorts; say of which parts *hardware* still holds.

        For each: its largest cost, `holds`, `moved` or `cannot tell`, and that cost there and here.
        """
        versions = self.session.versions
        chosen = dict[str, Cell]()
        for cell in self.cells.values():  # the largest of both
            name = cell.workload.name
            if name in _CHECKED and cell.workload.input_bytes >= _CHECKED[name]:
                chosen[name] = cell
        trials = [Trial.of(cell, 0, versions, profiling=True) for cell in chosen.values()]
        run, _ = self.session.measure(new=True, trials=trials)
        evaluation = Evaluation.of(run)
        records = evaluation.done.values()
        observed = [each for record in records for each in evaluation.observe(record)]
        if not observed:
            fix = "read their reasons, then run the command again"
            raise DataError("none of its jobs ended well", where=str(run.path), fix=fix)
        seen = _works(observed)
        answers = []
        for names in dict.fromkeys(PARTS.values()):
            rows = [
                row for row in seen if PARTS.get(row.part) == names and any(row.counts.values())
            ]
            known = {name: hardware.costs[name] for name in names if name in hardware.costs}
            expected_s = [
                math.fsum(row.counts[name] * cost.value for name, cost in known.items())
                for row in rows
            ]
            if not known or not rows or sum(expected_s) < _TOLD_S * len(rows):
                continue
            times = fmean(row.seconds / s for row, s in zip(rows, expected_s, strict=True) if s)
            largest = max(
                known, key=lambda name: known[name].value * sum(row.counts[name] for row in rows)
            )
            cost = known[largest]
            low, high = (
                (cost.low / cost.value / _MOVED, cost.high / cost.value * _MOVED)
                if cost.low is not None and cost.high is not None and cost.value
                else (1 / _UNSURE, _UNSURE)
            )
            verdict = "holds" if cost.high is not None else "cannot tell"
            if cost.trials >= FEWEST and not low <= times <= high:
                verdict = "moved"
            answers.append((largest, verdict, cost.value, times * cost.value))
        return answers

    def measure(self) -> tuple[Run, MachineCosts]:
        """Run the jobs, and fit what they say."""
        run, _ = self.session.measure(
            trials=self.first_trials, more=self.next_trials, more_here=self.next_trials
        )
        return run, hardware_of(run, budget_s=self.budget_s, spent_s=self.spent_s(run))


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
    began_s = manifest.created_s
    by_name = {name: record.trial.cell.workload.name for name, record in evaluation.done.items()}
    if unknown := sorted({*workloads} - {*by_name.values()}):
        what = f"no trial of {', '.join(unknown)} is done"
        fix = f"it has jobs of {', '.join(sorted({*by_name.values()}))}"
        raise DataError(what, where=str(run.path), fix=fix)
    done = [
        record
        for name, record in evaluation.done.items()
        if not workloads or by_name[name] in workloads
    ]
    # Of a trial that feeds no profile, logs were not read where it was recorded.
    records = [
        record
        for record in done
        if record.finished_s <= began_s + within_s and (record.trial.profiling or not by_logs)
    ]
    observed = [each for record in records for each in evaluation.observe(record)]
    if not observed:
        when = f" within {within_s:g} s" if done else ""
        raise DataError(f"no trial is done{when}", where=str(run.path), fix="run the command again")
    speed = fit_speed(observed)
    micro = {} if by_logs else micro_costs(manifest.micro)
    costs = fit_platform(_works(observed, by_logs=by_logs), TYPICAL | micro)
    known = {
        "machine": {
            name: manifest.machine[name] for name in manifest.machine if name not in VARIES
        },
        "systems": next(iter(manifest.systems.values()), {}),
        "hadoop": manifest.versions.hadoop if manifest.versions else "",
        "java": manifest.versions.java if manifest.versions else "",
        "cluster": observed[0].trial.cell.cluster.model_dump(mode="json", exclude={"hosts", "ssh"}),
        "tracing": "logs" if by_logs else observed[0].trial.cell.tracing.mode,
    }
    return MachineCosts(
        measured_s=manifest.created_s,
        budget_s=budget_s,
        spent_s=spent_s or max(record.finished_s for record in records) - began_s,
        reference_rate=speed.reference_rate if any(each.rate for each in observed) else None,
        conditions=dict(flatten(known)),
        costs=with_micro(costs, micro),
        frame=frame_of(observed),
        chosen=tuple(
            {
                "trial": record.trial.id,
                "reason": record.trial.reason,
                "seconds": record.finished_s - record.started_s,
            }
            for record in records
        ),
    )


def with_micro(costs: Mapping[str, Cost], micro: Mapping[str, float]) -> dict[str, Cost]:
    """*costs* with those of *micro*, measured without a job, beside them or in their place."""
    known = dict(costs)
    for name, value in micro.items():
        if name not in costs:
            known[name] = Cost(value=value, unit="s/B", source="rates without a job", micro=value)
        else:
            cost = costs[name]
            agree = None
            if cost.low is not None and cost.high is not None:
                agree = cost.low <= value <= cost.high
            known[name] = cost.model_copy(update={"micro": value, "agree": agree})
    return known


def micro_costs(micro: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """Costs that rates of nodes, measured without a job, say: the mean of the nodes'."""
    nodes = {
        name: [node for node in micro.values() if node.keys() >= rates]
        for name, rates in _MICRO.items()
    }
    return {
        name: fmean(1 / min(node[rate] for rate in _MICRO[name]) for node in known)
        for name, known in nodes.items()
        if known
    }


def frame_of(observed: Sequence[Observation]) -> dict[str, Cost]:
    """Start-up, ends and gaps of all jobs: mean of the trials' medians, with its interval."""
    from scipy.special import stdtrit

    seen: Mapping[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    sources = dict[str, Any]()
    for observation in observed:
        for name, seconds, source in shown_parts(observation):
            seen[name][observation.trial.id].append(seconds)
            sources[name] = source
    frame = {}
    for name in FRAME:
        if not (by_trial := seen.get(name)):
            continue
        middles = [float(np.median(each)) for each in by_trial.values()]
        value = fmean(middles)
        count = len(middles)
        ends = {}
        if count > 1:
            half = float(stdtrit(count - 1, (1 + LEVEL) / 2)) * stdev(middles) / math.sqrt(count)
            ends = {"low": max(0.0, value - half), "high": value + half}
        known = {"unit": "s", "trials": count, "source": sources[name]}
        frame[name] = Cost(value=value, **ends, **known)
    return frame
