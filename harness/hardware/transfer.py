"""
A profile of jobs that ran on one machine, for another on which they never ran.

[V] A. Verma, L. Cherkasova, R. Campbell, "Profiling and evaluating hardware choices for MapReduce
environments", Performance Evaluation 79 (2014), relate two platforms by micro-benchmarks and a
regression.  Here each part of a task has its own factor: what its work costs there over what it
costs here, by the costs of both machines.  What the processor does takes as much longer as all
sorting and serialising of a calibration did together: both of them, and what belongs to the job
(its functions, its combiner).
"""

from __future__ import annotations

import math

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import NormalDist, fmean, stdev

import numpy as np

from harness.base.errors import DataError
from harness.base.records.hardware import Cost, MachineCosts
from harness.base.records.profile import Profile, SpeedCorrection
from harness.base.records.statistics import IN_PROFILES, NETWORK_ALONE, PROCESSOR, TASK_PARTS
from harness.base.records.trace import TaskKind
from harness.base.records.trial import SCHEMA_VERSION, Cell, TrialRecord
from harness.core.evaluate.flow import Evaluation
from harness.core.evaluate.judge import Judge, joint_judge, judges_of
from harness.core.evaluate.predict import JOBS, scaled
from harness.core.reports.sections.method import flatten
from harness.core.store import Run
from harness.observe.profiling import fit_speed
from harness.observe.profiling.jobs import Observation
from harness.observe.profiling.platform import (
    COMPUTED,
    COMPUTING,
    FEWEST,
    LEVEL,
    Counts,
    Work,
    copying_counts,
    mean_counts,
    seconds_of,
    works,
)
from harness.observe.storage.opener import Opener

_MORE_JOBS = "harness calibrate measures it by jobs: give it more time, as --budget 10m"
# What a cluster is made of, of which a machine's costs depend.
_FACTS = {"node", "nodes", "workers"}
DRAWS = 200
_SEED = 0
_FAR = 3  # times that a rate without a job is beyond the interval of jobs, before it is named
_LEAST_SHARE = 0.1  # of a cost, that a draw leaves: none is 0 or below
_RATES = frozenset(name for name, row in IN_PROFILES.items() if row.moves == "as a rate")
# What copying is, where nothing is written to disk meanwhile.
_SENDING = frozenset(copying_counts(0.0, 0.0))


@dataclass(frozen=True)
class Factors:
    """
    By how much longer tasks of a workload take elsewhere: *before_s* and *after_s* of each part.

    *computed_s* is what the job's own functions, combiner and codec take of *before_s*, and what
    sorting and serialising do; *computing* is the factor of that.
    """

    computing: float
    before_s: Mapping[str, float]
    after_s: Mapping[str, float]
    computed_s: Mapping[str, float]

    def of(self, parts: Iterable[str], *, machine_alone: bool = False) -> float:
        """
        Factor of all *parts* together; without any that tasks have, that of computing.

        *machine_alone*: of the machine's share of them.
        """
        shown = [part for part in parts if self.before_s.get(part)]
        computed_s = sum(self.computed_s[part] for part in shown) if machine_alone else 0.0
        before_s = sum(self.before_s[part] for part in shown) - computed_s
        after_s = sum(self.after_s[part] for part in shown) - self.computing * computed_s
        return after_s / before_s if before_s > 0 else self.computing

    def of_tasks(self, kind: TaskKind) -> float:
        """Factor of the whole work of maps, or of reduces."""
        sides = {name: part.side for name, part in TASK_PARTS.items() if not part.overlaps}
        return self.of(part for part in self.before_s if sides.get(part) == kind)

    def times(self, profile: Profile) -> dict[str, float]:
        """
        By how much longer each time of *profile* becomes, by name, and each rate smaller.

        Costs have combiners and codecs apart; statistics of task times do not.
        """
        times = dict[str, float]()
        for name in {**profile.statistics, **profile.costs}:
            if (row := IN_PROFILES.get(name)) is None:
                continue
            if row.moves == "with its parts":
                times[name] = self.of(row.parts, machine_alone=name in profile.costs)
            elif row.moves == "as computing":
                times[name] = self.of(())
            elif row.moves == "as a rate" and (longer := self.of(row.parts)):
                times[name] = 1 / longer
        return times

    def by_resource(self) -> dict[str, tuple[float, float]]:
        """Seconds of all parts on both machines, by what they wait for."""
        before_s = defaultdict[str, float](float)
        after_s = defaultdict[str, float](float)
        for part, computed_s in self.computed_s.items():
            before_s[PROCESSOR] += computed_s
            after_s[PROCESSOR] += self.computing * computed_s
            resource = TASK_PARTS[part].waits_for if part in TASK_PARTS else PROCESSOR
            before_s[resource] += self.before_s[part] - computed_s
            after_s[resource] += self.after_s[part] - self.computing * computed_s
        return {name: (before_s[name], after_s[name]) for name in sorted(before_s)}


@dataclass(frozen=True, slots=True)
class _Machines:
    """Two machines by their costs: the one that jobs ran on, and the one they are asked about."""

    old: Mapping[str, float]
    new: Mapping[str, float]
    by_logs: bool

    @classmethod
    def of(cls, old: MachineCosts, new: MachineCosts) -> _Machines:
        """`DataError` where one of them was never seen to sort."""
        old_costs = {name: cost.value for name, cost in old.costs.items()}
        new_costs = {name: cost.value for name, cost in new.costs.items()}
        if not (old_costs.get(COMPUTING) and new_costs.get(COMPUTING)):
            what = f"one of the machines has no `{COMPUTING}`, by which functions become longer"
            raise DataError(what, where="hardware", fix=_MORE_JOBS)
        return cls(old_costs, new_costs, by_logs=is_logged(old))

    @property
    def computing(self) -> float:
        """By how much longer the new one computes."""
        return self.new[COMPUTING] / self.old[COMPUTING]

    def seconds(self, counts: Counts) -> tuple[float, float]:
        """What so much work takes on the old machine, and on the new one."""
        return seconds_of(counts, self.old), seconds_of(counts, self.new)

    def explained(self, work: Work) -> tuple[float, float]:
        """What *work* takes on both; `DataError` names costs that count and that one lacks."""
        work_s, there_s = self.seconds(work.counts)
        if math.isnan(work_s + there_s) or work_s <= 0:
            lacking = [
                name
                for name, count in work.counts.items()
                if count and not (self.old.get(name) and name in self.new)
            ]
            what = f"no cost of {', '.join(lacking)}, which {work.part} of {work.workload} needs"
            raise DataError(what, where="hardware", fix=_MORE_JOBS)
        return work_s, there_s


def factors(rows: Sequence[Work], old: MachineCosts, new: MachineCosts) -> Factors:
    """
    Factors of a workload whose tasks worked as *rows* say on the *old* machine.

    `DataError` names a cost that counts and that one of the two machines lacks.
    """
    machines = _Machines.of(old, new)
    computing = machines.computing
    before_s = defaultdict[str, float](float)
    after_s = defaultdict[str, float](float)
    computed_s = defaultdict[str, float](float)
    for work in _mean_works(rows, machines):
        costs_s = (0.0, 0.0)
        if work.part not in COMPUTED and any(work.counts.values()):
            costs_s = machines.explained(work)
        work_s, there_s = costs_s
        before_s[work.part] += work.seconds
        after_s[work.part] += elsewhere(work.seconds, work_s, there_s, computing)
        is_partly_computed = work.is_shared or not work_s
        computed_s[work.part] += max(0.0, work.seconds - work_s) if is_partly_computed else 0.0
        if work.part == "copy_s":
            sent = {name: count for name, count in work.counts.items() if name in _SENDING}
            sent_s, sent_there_s = machines.seconds(sent)
            sending_s = _sending_seconds(work, work_s, sent_s)
            before_s[NETWORK_ALONE] += sending_s
            after_s[NETWORK_ALONE] += elsewhere(sending_s, sent_s, sent_there_s, computing)
    return Factors(computing, before_s, after_s, computed_s)


def _mean_works(rows: Sequence[Work], machines: _Machines) -> Iterator[Work]:
    """
    Yield what the mean task did in each part, those of jobs that share it with a codec apart.

    Both together are the mean over all jobs.
    """
    rows_by_part = defaultdict[tuple[str, bool], list[Work]](list)
    for row in rows:
        rows_by_part[row.part, row.is_shared].append(row)
    jobs = Counter(row.part for row in rows)
    for (part, _), alike in rows_by_part.items():
        share = len(alike) / jobs[part]
        # What logs do not show stays with what costs do not explain.
        counts = {
            name: share * count
            for name, count in mean_counts([row.counts for row in alike]).items()
            if name in machines.old or not machines.by_logs
        }
        seconds = share * fmean(row.seconds for row in alike)
        yield replace(alike[0], seconds=seconds, counts=counts)


def _sending_seconds(work: Work, work_s: float, sent_s: float) -> float:
    """What sending takes of copying, of which costs explain *work_s*, and *sent_s* as sending."""
    whole_s = min(work.seconds, work_s) if work.is_shared else work.seconds  # a codec is the job's
    share_s = whole_s * sent_s / work_s if work_s else 0.0
    return max(whole_s - work_s + sent_s, share_s)


def elsewhere(time_s: float, work_s: float, there_s: float, computing: float) -> float:
    """
    Seconds elsewhere of what takes *time_s* here: costs explain *work_s* of it, *there_s* there.

    What they do not explain is the processor's.  Where they explain too much, it takes as much more
    as they say where the machine is slower, and as many times as long where it is faster.
    """
    if time_s >= work_s:
        return computing * (time_s - work_s) + there_s
    if there_s > work_s:
        return time_s + there_s - work_s
    return time_s * there_s / work_s


def is_logged(machine: MachineCosts) -> bool:
    """Whether its tasks were not recorded, so that its costs are what logs show."""
    return machine.conditions.get("tracing") == "logs"


def longer_by(
    profile: Profile, rows: Sequence[Work], old: MachineCosts, new: MachineCosts
) -> dict[str, float]:
    """
    By how much longer each time of *profile* is on the *new* machine, by its name.

    Its tasks worked as *rows* say on the *old* one; times of its jobs are under `JOBS` and their
    name.
    """
    longer = factors(rows, old, new)
    maps_longer = longer.of_tasks("map")
    reduces_longer = longer.of_tasks("reduce")
    maps_s = sum(job.map_task_s or 0.0 for job in profile.jobs)
    tasks_s = sum((job.map_task_s or 0.0) + (job.reduce_task_s or 0.0) for job in profile.jobs)
    share = maps_s / tasks_s if tasks_s else 1.0
    jobs_longer = share * maps_longer + (1 - share) * reduces_longer
    frame_times = new.frame_beside(old)
    return {
        **longer.times(profile),
        **{name: frame_times[name] for name in profile.frame if name in frame_times},
        JOBS + "job_s": jobs_longer,
        JOBS + "body_s": jobs_longer,
        JOBS + "map_task_s": maps_longer,
        JOBS + "reduce_task_s": reduces_longer,
    }


def at_speed_of(machine: MachineCosts, speed: SpeedCorrection | None) -> MachineCosts:
    """*machine* at the reference speed of a run that it had at another hour."""
    if speed is None or machine.reference_rate is None:
        return machine
    times = speed.at_reference(1.0, machine.reference_rate)
    return machine.changed(lambda cost: cost.changed(lambda value: times * value))


def transferred(
    profile: Profile,
    rows: Sequence[Work],
    old: MachineCosts,
    new: MachineCosts,
    rate_spread: float = 0.0,
) -> Profile:
    """
    *profile*, whose tasks worked as *rows* say on the *old* machine, as it would be on the *new*.

    Its `draws` say what else it might be, as far as the costs of both machines are uncertain, and
    how fast the machine is at another hour: *rate_spread* is the standard deviation of the
    logarithm of the probe's rate.  Its reference speed is that of the new one, however fast the
    probe is on such a machine.
    """
    old = at_speed_of(old, profile.speed)
    speed = profile.speed
    if speed is not None and new.reference_rate is not None:
        speed = speed.model_copy(update={"reference_rate": new.reference_rate})
    times = longer_by(profile, rows, old, new)
    random = np.random.default_rng(_SEED)
    draws = []
    for _ in range(DRAWS):
        drawn = longer_by(profile, rows, drawn_costs(old, random), drawn_costs(new, random))
        slower = math.exp(random.normal() * rate_spread * (speed.coefficient if speed else 0.0))
        draw = {name: drawn[name] / value * slower for name, value in times.items() if value}
        for name in draw.keys() & _RATES:
            draw[name] = drawn[name] / times[name] * (1 / slower)
        draws.append(draw)
    refits = tuple(scaled(refit, times) for refit in profile.refits)
    return scaled(profile, times).model_copy(
        update={"refits": refits, "draws": tuple(draws), "speed": speed}
    )


def completed(new: MachineCosts, old: MachineCosts) -> tuple[MachineCosts, list[str]]:
    """
    The *new* machine with costs of the *old* where too few jobs were measured; which those are.

    Where rates of disks or networks say without a job that a byte takes longer on the new one, it
    does so by as much: what the rest of its cost is stays.
    """
    costs = dict(new.costs)
    measured = {name for name, cost in costs.items() if cost.trials >= FEWEST}
    lacking = costs.keys() - measured if measured else old.costs.keys()
    assumed = [name for name in old.costs if name in lacking]
    for name in assumed:
        old_micro = old.costs[name].micro
        new_micro = new.costs[name].micro if name in new.costs else None
        longer_s = 0.0
        if old_micro is not None and new_micro is not None:
            longer_s = new_micro - old_micro
        costs[name] = old.costs[name].changed(partial(_longer, longer_s=longer_s))
    return new.model_copy(update={"costs": costs}), assumed


def _longer(value: float, longer_s: float) -> float:
    """*value* with so many seconds more, or fewer, but no less than a share of itself."""
    return max(_LEAST_SHARE * value, value + longer_s)


def drawn_costs(machine: MachineCosts, random: np.random.Generator) -> MachineCosts:
    """
    *machine* as it might be: costs drawn with the errors that go together in its fits.

    Those of a fit move by sums over its trials, so that their covariance is the jackknife's; what
    has an interval alone moves by that.
    """
    draw_of_unit = defaultdict[str, float](lambda: float(random.normal()))
    times_of_level = NormalDist().inv_cdf((1 + LEVEL) / 2)

    def drawn(cost: Cost) -> Cost:
        error = 0.0
        count = len(cost.without)
        if cost.without:
            mean = fmean(cost.without.values())
            moves = (draw_of_unit[unit] * (value - mean) for unit, value in cost.without.items())
            error = math.sqrt((count - 1) / count) * math.fsum(moves)
        elif cost.low is not None and cost.high is not None:
            error = random.normal() * (cost.high - cost.low) / 2 / times_of_level
        value = max(_LEAST_SHARE * cost.value, cost.value + error)
        return Cost(value=value, unit=cost.unit, source=cost.source)

    return machine.changed(drawn)


def read_hardware(path: Path) -> MachineCosts:
    """Costs in the file *path*; `DataError` with the field that is wrong."""
    opener = Opener(path.parent)
    fix = "harness calibrate writes such a file"
    document = opener.parse_json(opener.read(path, fix), path, fix)
    return opener.validate(MachineCosts.model_validate, document, path, fix, SCHEMA_VERSION)


def _observed(evaluation: Evaluation, records: Iterable[TrialRecord]) -> list[Observation]:
    observed = list[Observation]()
    for record in records:
        observed += evaluation.observe(record)
    return observed


def profiled_works(source: Run) -> tuple[dict[str, list[Work]], float]:
    """
    What the tasks of the profiling trials of *source* worked on, by workload.

    With it, the standard deviation of the logarithm of the probe's rate over their jobs.
    """
    evaluation = Evaluation.of(source)
    by_workload = defaultdict[str, list[Work]](list)
    profiling = [record for record in evaluation.done.values() if record.trial.profiling]
    observed = _observed(evaluation, profiling)
    for row in works(observed, fit_speed(observed)):
        by_workload[row.workload].append(row)
    logs = [math.log(observation.rate) for observation in observed if observation.rate]
    return by_workload, stdev(logs) if len(logs) > 1 else 0.0


def times_by_resource(
    source: Run, old: MachineCosts, new: MachineCosts
) -> list[tuple[str, str, float, float]]:
    """Seconds of the mean map and reduce of each workload of *source*, by what they wait for."""
    rows = list[tuple[str, str, float, float]]()
    for workload, workload_rows in profiled_works(source)[0].items():
        by_resource = factors(workload_rows, old, new).by_resource()
        rows += [(workload, resource, *seconds) for resource, seconds in by_resource.items()]
    return rows


def explained(machine: MachineCosts, run: Run) -> list[tuple[str, str, float, float]]:
    """
    Seconds that parts of the mean tasks of *run* took, and what their work costs by *machine*.

    By workload and part, of all trials that are done; NaN where a cost is missing.
    """
    evaluation = Evaluation.of(run)
    observed = _observed(evaluation, evaluation.done.values())
    rows_by_part = defaultdict[tuple[str, str], list[Work]](list)
    for row in works(observed, fit_speed(observed)) if observed else ():
        if any(row.counts.values()):
            rows_by_part[row.workload, row.part].append(row)
    costs = {name: cost.value for name, cost in machine.costs.items()}
    return [
        (
            *key,
            fmean(row.seconds for row in rows),
            fmean(seconds_of(row.counts, costs) for row in rows),
        )
        for key, rows in sorted(rows_by_part.items())
    ]


def profiles_for(
    source: Run, paths: Sequence[Path], cells: Iterable[Cell]
) -> tuple[dict[str, Profile], list[str]]:
    """
    Profiles of *source* for the machine of the second of two files, and what *cells* have other.

    The first file is of the machine that *source* ran on.  Each profile says what it was made of.
    """
    old, new = map(read_hardware, paths)
    if is_logged(old) != is_logged(new):
        recorded, logged = paths if is_logged(new) else paths[::-1]
        what = f"its costs are by logs, and those of {recorded} by recordings: they do not compare"
        fix = (
            f"harness hardware fit RUN --logs-only -o FILE, of the calibration that made {recorded}"
        )
        raise DataError(what, where=str(logged), fix=fix)
    rows, spread = profiled_works(source)
    differing = _differing_facts(new, cells)
    warnings = [
        _origin(source, paths),
        *(f"measured on another machine: {difference}" for difference in differing),
        *_unsure(paths, old, new),
    ]
    profiles = {}
    for workload, profile in source.read_profiles().items():
        whole, assumed = completed(new, at_speed_of(old, profile.speed))
        moved = transferred(profile, rows[workload], old, whole, spread)
        own_warnings = list[str]()
        if assumed:
            warning = f"too few jobs of {paths[1].name} show {', '.join(assumed)}: those of"
            own_warnings.append(f"{warning} {paths[0].name} are taken, with its rates")
        if not rows[workload]:
            warning = f"no task of {workload} was recorded: all takes as much longer as computing"
            own_warnings.append(warning)
        update = {"warnings": (*warnings, *own_warnings)}
        profiles[workload] = moved.model_copy(update=update)
    return profiles, differing


def judges_there(source: Run, models: Iterable[str]) -> list[Judge]:
    """
    How far off each of *models* was on all job times of *source*; empty without scores.

    Workloads on which no model at all has an answer tell nothing of any.
    """
    try:
        scores = source.read_scores()
    except DataError:  # it was not scored
        return []
    workloads = sorted({measurement.workload for measurement in scores.measurements})
    by_workload = list(filter(None, (judges_of(scores, workload) for workload in workloads)))
    return [
        joint_judge(model, [judges.get(model, Judge(model)) for judges in by_workload])
        for model in models
    ]


def _origin(source: Run, paths: Sequence[Path]) -> str:
    """Which run and which two files profiles were made of."""
    hashes = [Opener(path.parent).sha256(path)[:16] for path in paths]
    note = f"from run {source.id}, sealed {source.seal.sha256()[:16]}, for the machine of"
    return note + f" {paths[1].name} ({hashes[1]}) instead of {paths[0].name} ({hashes[0]})"


def _differing_facts(machine: MachineCosts, cells: Iterable[Cell]) -> list[str]:
    """What the clusters of *cells* are made of that *machine* was not, each once."""
    differing = dict[str, None]()
    for cell in cells:
        facts = flatten({"cluster": cell.cluster.model_dump(mode="json", include=_FACTS)})
        for name, value in facts:
            calibrated = machine.conditions.get(name)
            if calibrated != value:
                label = name.removeprefix("cluster.")
                differing[f"{label}: {calibrated} there, {value} here"] = None
    return [*differing]


def _unsure(paths: Sequence[Path], old: MachineCosts, new: MachineCosts) -> list[str]:
    """What the files at *paths* do not tell well."""
    unsure = []
    for path, machine in zip(paths, (old, new), strict=True):
        for name, cost in machine.costs.items():
            if cost.group:
                group = ", ".join(cost.group)
                unsure.append(f"{name}: {path.name} does not tell it apart from {group}")
    for name, cost in new.costs.items():
        if cost.high is not None and cost.micro is not None and cost.micro > _FAR * cost.high:
            unsure.append(
                f"{name}: by jobs {cost.high:.2g} s at most, {cost.micro:.2g} without one: few of"
                f" the bytes of {paths[1].name} crossed what is slow"
            )
    if any(name.startswith("cluster.nodes.") for name in new.conditions):
        unsure.append(
            f"nodes of {paths[1].name} differ, its costs are means over them: a job that"
            " waits for the slowest one takes longer"
        )
    return unsure
