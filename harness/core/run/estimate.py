"""
How long the trials of a plan take: as earlier runs on this machine say, else by a rule.

While they run, what is left follows what the done ones took (`Remaining`).  Pure: it is given what
was measured.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import linear_regression, mean, median, median_low

from harness.base.records.trial import Cell, TrialRecord
from harness.clusters.workloads.resolved import ResolvedCell
from harness.core.experiment.cover import Times

# The rule while nothing was measured: seen on two cores, within a factor of two.
CLUSTER_START_S = 15.0
END_S = 8.0  # before its first trial; from the last one to the report
LIMITING_S = 20.0  # more, where nodes are limited and measured first
TRIAL_S = 9.0
GENERATION_S = 6.0  # of each job; of each input on each cluster
BYTES_PER_S = 12 * 2**20
SOME_JOBS = 5  # of a trial that takes as many as it needs
PRIOR_TRIALS = 4.0  # as many measured trials weigh as much as what was expected of all


@dataclass
class Remaining:
    """
    How long the trials that wait still take: what was expected of them, at the pace of those done.

    *expected_s* is of each trial by its id, the start of its cluster included; *end_s* comes behind
    the last one.  The pace is measured over expected time.  It begins at 1, and `PRIOR_TRIALS` mean
    trials weigh as much as that: no single trial, long or short, turns the answer over.
    """

    expected_s: Mapping[str, float] = field(default_factory=dict)
    end_s: float = 0.0
    measured_s: dict[str, float] = field(default_factory=dict)

    def left_s(self, waiting: Collection[str]) -> float | None:
        """Seconds until the trials *waiting* are done; `None` where nothing says."""
        if not waiting:
            return 0.0
        known_s = [*self.expected_s.values()] or [*self.measured_s.values()]
        if not known_s:
            return None
        mean_s = mean(known_s)
        prior_s = PRIOR_TRIALS * mean_s
        done_s = sum(self.expected_s.get(trial_id, mean_s) for trial_id in self.measured_s)
        waiting_s = sum(self.expected_s.get(trial_id, mean_s) for trial_id in waiting)
        if prior_s + done_s <= 0:
            return None
        pace = (prior_s + sum(self.measured_s.values())) / (prior_s + done_s)
        return pace * waiting_s + self.end_s


class Estimator:
    """
    Seconds that work takes here, from *runs*: when each was opened, and its attempts in order.

    `start_s` is from what was before to a cluster's first trial, `gap_s` between two trials,
    `end_s` from the last one to the report, `run_count` how many runs say something.
    """

    def __init__(self, runs: Sequence[tuple[float, Sequence[TrialRecord]]]) -> None:
        """Take the times of *runs* apart; those of failed trials do not count."""
        self._points: dict[tuple[str, bool], list[tuple[int, float]]] = defaultdict(list)
        starts_s = list[float]()
        gaps_s = list[float]()
        self.run_count = len(runs)
        for opened_s, attempts in runs:
            start = ""
            inputs = set[str]()
            ended_s = opened_s
            for record in attempts:
                before_s = record.started_s - ended_s
                ended_s = record.finished_s
                if record.state != "done" or not record.job_ids or before_s < 0:  # or taken over
                    continue
                if record.job_ids[0].split("_")[1] != start:  # when the cluster was started
                    start = record.job_ids[0].split("_")[1]
                    inputs = set()
                (gaps_s if inputs else starts_s).append(before_s)
                generated = input_of(record.trial.cell)
                self._add_points(record, is_new_input=generated not in inputs)
                inputs.add(generated)
        # The low one: a run that was interrupted for hours began again then.
        self.start_s = median_low(starts_s) if starts_s else CLUSTER_START_S
        self.gap_s = mean(gaps_s or [0.0])
        self.end_s = END_S * self.start_s / CLUSTER_START_S

    def _add_points(self, record: TrialRecord, *, is_new_input: bool) -> None:
        """Note the seconds of one job of a trial, and of the generation of its input."""
        cell = record.trial.cell
        size = cell.workload.input_bytes
        prepare_s = record.harness_s.get("prepare_s", 0.0)
        rest_s = (record.finished_s - record.started_s - prepare_s) / len(record.job_ids)
        for likeness in _likenesses(cell):
            self._points[likeness, False].append((size, rest_s))
            if is_new_input:
                self._points[likeness, True].append((size, prepare_s))

    def knows(self, cell: Cell) -> bool:
        """Whether the workload of *cell* was measured here."""
        return (_likenesses(cell)[-2], False) in self._points

    def seconds(self, cell: ResolvedCell, *, is_generation: bool = False) -> float:
        """
        Expected seconds of a trial of *cell*, its input there; or of the generation of that.

        From trials of the cell, else of those that differ by input alone, else of its workload's,
        else of all: by the line over their inputs; where all have one, by the rule in proportion.
        """
        size = cell.spec.input_bytes
        job_count = 1 if is_generation else cell.planned_jobs or SOME_JOBS
        constant_s = GENERATION_S if is_generation else TRIAL_S
        by_rule_s = constant_s + size / BYTES_PER_S
        for likeness in _likenesses(cell.cell):
            points = self._points.get((likeness, is_generation))
            if not points:
                continue
            sizes, times_s = zip(*points, strict=True)
            if len(set(sizes)) > 1:
                slope, intercept = linear_regression(sizes, times_s)
                if slope >= 0 and intercept + slope * size > 0:
                    return job_count * (intercept + slope * size)
            shares = [
                time_s / (constant_s + point_bytes / BYTES_PER_S) for point_bytes, time_s in points
            ]
            return job_count * median(shares) * by_rule_s
        return job_count * by_rule_s


def times_by_rule(cells: Sequence[ResolvedCell], warmup: int) -> Times:
    """Times of *cells* by the rule, the same on every machine, whatever was measured there."""
    rule = Estimator([])
    trial_s = {cell.id: rule.seconds(cell) for cell in cells}
    generation_s = {cell.id: rule.seconds(cell, is_generation=True) for cell in cells}
    return Times(trial_s, generation_s, CLUSTER_START_S + warmup * mean(trial_s.values()))


def input_of(cell: Cell) -> str:
    """Input of *cell*: trials of equal ones on one cluster share it."""
    return cell.workload.model_dump_json()


def _likenesses(cell: Cell) -> tuple[str, ...]:
    """What *cell* has in common with others, the nearest first."""
    workload = cell.workload.model_copy(update={"input_bytes": 1})
    any_input = cell.model_copy(update={"workload": workload})
    provider = cell.cluster.provider
    return cell.id, any_input.id, f"{provider} {workload.name}", provider
