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

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist, fmean, stdev

import numpy as np

from harness.errors import DataError
from harness.evaluate.flow import Evaluation
from harness.evaluate.predict import JOBS, scaled
from harness.profiling import fit_speed
from harness.profiling.platform import (
    COMPUTED,
    COMPUTING,
    FEWEST,
    LEVEL,
    PARTS,
    Work,
    seconds_of,
    works,
)
from harness.records.hardware import Cost, MachineCosts
from harness.records.profile import Profile, SpeedCorrection
from harness.records.trial import SCHEMA_VERSION, Cell
from harness.reports.sections.method import flatten
from harness.store import Run
from harness.store.opener import Opener

# What a cluster is made of, of which a machine's costs depend.
_FACTS = {"node", "nodes", "workers"}
_OF_MAPS = ("map_read", "map_function", "map_write", "map_merge", "collect", "spill")
_OF_REDUCES = ("copy", "inmem", "ondisk", "reduce_merge", "reduce_function", "reduce_write")
DRAWS = 200
_SEED = 0
_FAR = 3  # times that a rate without a job is beyond the interval of jobs, before it is named
_LEAST_SHARE = 0.1  # of a cost, that a draw leaves: none is 0 or below
# What a part of a task waits for most.
RESOURCES = {
    "map_read_s": "HDFS, reading", "map_write_s": "HDFS, writing",
    "reduce_write_s": "HDFS, writing", "copy_s": "network",
    "spill_write_s": "local disk", "map_merge_s": "local disk", "inmem_merge_s": "local disk",
    "ondisk_merge_s": "local disk",
}  # fmt: skip
COPIES = "network alone"  # of copying, without what is written to disk meanwhile
_RATES = {"network_bps", "network_bps_compressed"}
_MERGES = ("map_merge_s", "inmem_merge_s", "ondisk_merge_s")
# With which parts each cost, and each statistic of task times, becomes longer: with none of them,
# as a function does.
_PARTS_OF: dict[str, tuple[str, ...]] = {
    "hdfs_read_s_per_byte": ("map_read_s",),
    "map_cpu_s_per_record": ("map_function_s",),
    "partition_cpu_s_per_record": ("collect_s",),
    "serde_cpu_s_per_record": ("collect_s",),
    "sort_cpu_s_per_record": ("spill_sort_s",),
    "combine_cpu_s_per_record": (),
    "local_write_s_per_byte": ("spill_write_s",),
    "local_read_s_per_byte": _MERGES,
    "merge_cpu_s_per_record": _MERGES,
    "network_s_per_byte": (COPIES,),
    "reduce_cpu_s_per_record": ("reduce_function_s",),
    "hdfs_write_s_per_byte": ("reduce_write_s", "map_write_s"),
    "map_output_compress_s_per_byte": (),
    "map_output_decompress_s_per_byte": (),
    "input_decompress_s_per_byte": (),
    "output_compress_s_per_byte": (),
    "map_s_per_record": ("map_read_s", "map_function_s", "collect_s"),
    "map_while_spilling_s_per_record": ("map_read_s", "map_function_s", "collect_s"),
    "read_s_per_record": ("map_read_s",),
    "collect_s_per_record": ("collect_s",),
    "sort_s_per_record": ("spill_sort_s",),
    "combine_s_per_record": ("spill_write_s",),
    "spill_write_s_per_byte": ("spill_write_s",),
    "spill_s_per_record": ("spill_sort_s", "spill_write_s"),
    "map_merge_s_per_byte": ("map_merge_s",),
    "copy_s_per_byte": ("copy_s",),
    "memory_merge_s_per_byte": ("inmem_merge_s",),
    "disk_merge_s_per_byte": ("ondisk_merge_s",),
    "reduce_read_s_per_record": ("reduce_function_s",),
    "reduce_s_per_record": ("reduce_function_s",),
    "reduce_write_s_per_record": ("reduce_write_s",),
}


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

    def times(self, profile: Profile) -> dict[str, float]:
        """
        By how much longer each time of *profile* becomes, by name, and each rate smaller.

        Costs have combiners and codecs apart; statistics of task times do not.
        """
        times = dict[str, float]()
        for name in {**profile.statistics, **profile.costs}:
            base = name.removesuffix("_compressed").removesuffix("_map").removesuffix("_reduce")
            if base in _PARTS_OF:
                is_cost = name in profile.costs
                times[name] = self.of(_PARTS_OF[base], machine_alone=is_cost)
            elif base == "network_bps" and (longer := self.of([COPIES])):
                times[name] = 1 / longer
        return times


def factors(rows: Sequence[Work], here: MachineCosts, there: MachineCosts) -> Factors:
    """
    Factors of a workload whose tasks worked as *rows* say *here*.

    `DataError` names a cost that counts and that one of the two machines lacks.
    """
    of_here, of_there = (
        {name: cost.value for name, cost in each.costs.items()} for each in (here, there)
    )
    if not (of_here.get(COMPUTING) and of_there.get(COMPUTING)):
        what = f"one of the machines has no `{COMPUTING}`, by which functions become longer"
        raise DataError(what, where="hardware", fix="harness calibrate measures it")
    computing = of_there[COMPUTING] / of_here[COMPUTING]
    by_logs = is_logged(here)
    before, after, of_jobs = (defaultdict[str, float](float) for _ in range(3))
    for part, is_shared in dict.fromkeys((row.part, row.is_shared) for row in rows):
        of_part = [row for row in rows if row.part == part]
        own = [row for row in of_part if row.is_shared == is_shared]
        share = len(own) / len(of_part)
        names = dict.fromkeys(name for row in own for name in row.counts)
        counts = {name: share * fmean(row.counts.get(name, 0.0) for row in own) for name in names}
        time_s = share * fmean(row.seconds for row in own)
        # What logs do not show stays with what costs do not explain.
        counts = {n: count for n, count in counts.items() if n in of_here or not by_logs}
        work_s = there_s = 0.0
        if part not in COMPUTED and any(counts.values()):
            work_s, there_s = (seconds_of(counts, costs) for costs in (of_here, of_there))
            if math.isnan(work_s + there_s) or work_s <= 0:
                lacking = [
                    n for n in counts if counts[n] and not (of_here.get(n) and n in of_there)
                ]
                what = f"no cost of {', '.join(lacking)}, which {part} of {own[0].workload} needs"
                raise DataError(what, where="hardware", fix="harness calibrate measures it")
        before[part] += time_s
        after[part] += elsewhere(time_s, work_s, there_s, computing)
        of_jobs[part] += max(0.0, time_s - work_s) if is_shared or not work_s else 0.0
        if part == "copy_s":
            sent = {n: count for n, count in counts.items() if n in PARTS[part]}
            sent_s, sent_there_s = (seconds_of(sent, costs) for costs in (of_here, of_there))
            whole_s = min(time_s, work_s) if is_shared else time_s  # a codec is the job's
            share_s = whole_s * sent_s / work_s if work_s else 0.0
            sending_s = max(whole_s - work_s + sent_s, share_s)
            before[COPIES] += sending_s
            after[COPIES] += elsewhere(sending_s, sent_s, sent_there_s, computing)
    return Factors(computing, before, after, of_jobs)


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
    profile: Profile, rows: Sequence[Work], here: MachineCosts, there: MachineCosts
) -> dict[str, float]:
    """
    By how much longer each time of *profile* is *there*, by its name.

    Its tasks worked as *rows* say *here*; times of its jobs are under `JOBS` and their name.
    """
    by = factors(rows, here, there)
    times = by.times(profile)
    for name in profile.frame:
        if name in there.frame and name in here.frame and here.frame[name].value > 0:
            times[name] = there.frame[name].value / here.frame[name].value
    of_maps, of_reduces = (
        by.of(part for part in by.before_s if part.startswith(begins))
        for begins in (_OF_MAPS, _OF_REDUCES)
    )
    maps_s = sum(job.map_task_s or 0.0 for job in profile.jobs)
    tasks_s = sum((job.map_task_s or 0.0) + (job.reduce_task_s or 0.0) for job in profile.jobs)
    share = maps_s / tasks_s if tasks_s else 1.0
    whole = share * of_maps + (1 - share) * of_reduces
    of_jobs = {"job_s": whole, "body_s": whole, "map_task_s": of_maps, "reduce_task_s": of_reduces}
    return times | {JOBS + name: value for name, value in of_jobs.items()}


def at_speed_of(machine: MachineCosts, speed: SpeedCorrection | None) -> MachineCosts:
    """*machine* at the reference speed of a run that it had at another hour."""
    if speed is None or machine.reference_rate is None:
        return machine
    times = speed.at_reference(1.0, machine.reference_rate)

    def changed(cost: Cost) -> Cost:
        ends = {
            name: times * value
            for name in ("value", "low", "high")
            if (value := getattr(cost, name)) is not None
        }
        without = {unit: times * value for unit, value in cost.without.items()}
        return cost.model_copy(update={**ends, "without": without})

    costs, frame = (
        {name: changed(cost) for name, cost in known.items()}
        for known in (machine.costs, machine.frame)
    )
    return machine.model_copy(update={"costs": costs, "frame": frame})


def transferred(
    profile: Profile,
    rows: Sequence[Work],
    here: MachineCosts,
    there: MachineCosts,
    rate_spread: float = 0.0,
) -> Profile:
    """
    *profile*, whose tasks worked as *rows* say *here*, as it would be *there*.

    Its `draws` say what else it might be, as far as the costs of both machines are uncertain, and
    how fast the machine is at another hour: *rate_spread* is the standard deviation of the
    logarithm of the probe's rate.  Its reference speed is that of *there*, however fast the probe
    is on such a machine.
    """
    here = at_speed_of(here, profile.speed)
    speed = profile.speed
    if speed is not None and there.reference_rate is not None:
        speed = speed.model_copy(update={"reference_rate": there.reference_rate})
    times = longer_by(profile, rows, here, there)
    random = np.random.default_rng(_SEED)
    draws = []
    for _ in range(DRAWS):
        drawn = longer_by(profile, rows, drawn_costs(here, random), drawn_costs(there, random))
        slower = math.exp(random.normal() * rate_spread * (speed.coefficient if speed else 0.0))
        draws.append(
            {
                name: drawn[name] / value * (1 / slower if name in _RATES else slower)
                for name, value in times.items()
                if value
            }
        )
    refits = tuple(scaled(refit, times) for refit in profile.refits)
    return scaled(profile, times).model_copy(
        update={"refits": refits, "draws": tuple(draws), "speed": speed}
    )


def completed(there: MachineCosts, here: MachineCosts) -> tuple[MachineCosts, list[str]]:
    """
    *there* with costs of *here* where too few jobs were measured; which those are.

    Where rates of disks or networks say without a job that a byte takes longer there, it does so by
    as much: what the rest of its cost is stays.
    """
    costs = dict(there.costs)
    assumed = list[str]()
    measured = {name for name, cost in costs.items() if cost.trials >= FEWEST}
    for name, cost in here.costs.items():
        if name in measured or (measured and name not in costs):
            continue
        assumed.append(name)
        rates = (there.costs[name].micro, cost.micro) if name in there.costs else (None, None)
        longer_s = 0.0 if None in rates else (rates[0] or 0.0) - (rates[1] or 0.0)
        values = {"value": cost.value, "low": cost.low, "high": cost.high}
        moved = {
            end: max(_LEAST_SHARE * value, value + longer_s)
            for end, value in values.items()
            if value is not None
        }
        without = {
            unit: max(_LEAST_SHARE * value, value + longer_s)
            for unit, value in cost.without.items()
        }
        costs[name] = cost.model_copy(update={**moved, "without": without})
    return there.model_copy(update={"costs": costs}), assumed


def drawn_costs(machine: MachineCosts, random: np.random.Generator) -> MachineCosts:
    """
    *machine* as it might be: costs drawn with the errors that go together in its fits.

    Those of a fit move by sums over its trials, so that their covariance is the jackknife's; what
    has an interval alone moves by that.
    """
    of_units = defaultdict[str, float](lambda: float(random.normal()))
    times_of_level = NormalDist().inv_cdf((1 + LEVEL) / 2)

    def drawn(cost: Cost) -> Cost:
        error = 0.0
        count = len(cost.without)
        if cost.without:
            mean = fmean(cost.without.values())
            moves = (of_units[unit] * (value - mean) for unit, value in cost.without.items())
            error = math.sqrt((count - 1) / count) * math.fsum(moves)
        elif cost.low is not None and cost.high is not None:
            error = random.normal() * (cost.high - cost.low) / 2 / times_of_level
        value = max(_LEAST_SHARE * cost.value, cost.value + error)
        return Cost(value=value, unit=cost.unit, source=cost.source)

    costs, frame = (
        {name: drawn(cost) for name, cost in known.items()}
        for known in (machine.costs, machine.frame)
    )
    return machine.model_copy(update={"costs": costs, "frame": frame})


def read_hardware(path: Path) -> MachineCosts:
    """Costs in the file *path*; `DataError` with the field that is wrong."""
    opener = Opener(path.parent)
    fix = "harness calibrate writes such a file"
    document = opener.parse_json(opener.read(path, fix), path, fix)
    return opener.validate(MachineCosts.model_validate, document, path, fix, SCHEMA_VERSION)


def profiled_works(source: Run) -> tuple[dict[str, list[Work]], float]:
    """
    What the tasks of the profiling trials of *source* worked on, by workload.

    With it, the standard deviation of the logarithm of the probe's rate over their jobs.
    """
    evaluation = Evaluation.of(source)
    by_workload = defaultdict[str, list[Work]](list)
    records = [record for record in evaluation.done.values() if record.trial.profiling]
    observed = [each for record in records for each in evaluation.observe(record)]
    for row in works(observed, fit_speed(observed)):
        by_workload[row.workload].append(row)
    logs = [math.log(each.rate) for each in observed if each.rate]
    return by_workload, stdev(logs) if len(logs) > 1 else 0.0


def explained(machine: MachineCosts, run: Run) -> list[tuple[str, str, float, float]]:
    """
    Seconds that parts of the mean tasks of *run* took, and what their work costs by *machine*.

    By workload and part, of all trials that are done; NaN where a cost is missing.
    """
    evaluation = Evaluation.of(run)
    of_part = defaultdict[tuple[str, str], list[Work]](list)
    observed = [each for done in evaluation.done.values() for each in evaluation.observe(done)]
    for row in works(observed, fit_speed(observed)) if observed else ():
        if any(row.counts.values()):
            of_part[row.workload, row.part].append(row)
    costs = {name: cost.value for name, cost in machine.costs.items()}
    return [
        (
            *key,
            fmean(row.seconds for row in rows),
            fmean(seconds_of(row.counts, costs) for row in rows),
        )
        for key, rows in sorted(of_part.items())
    ]


def profiles_for(
    source: Run, paths: Sequence[Path], cells: Iterable[Cell]
) -> tuple[dict[str, Profile], list[str]]:
    """
    Profiles of *source* for the machine of the second of two files, and what *cells* have other.

    The first file is of the machine that *source* ran on.  Each profile says what it was made of.
    """
    here, there = map(read_hardware, paths)
    if is_logged(here) != is_logged(there):
        recorded, logged = paths if is_logged(there) else paths[::-1]
        what = f"its costs are by logs, and those of {recorded} by recordings: they do not compare"
        fix = f"harness hardware fit RUN --logs -o FILE, of the calibration that made {recorded}"
        raise DataError(what, where=str(logged), fix=fix)
    rows, spread = profiled_works(source)
    hashes = [Opener(path.parent).sha256(path)[:16] for path in paths]
    note = f"from run {source.id}, sealed {source.seal.sha256()[:16]}, for the machine of"
    note += f" {paths[1].name} ({hashes[1]}) instead of {paths[0].name} ({hashes[0]})"
    others = dict.fromkeys(
        f"{name.removeprefix('cluster.')}: {there.conditions.get(name)} there, {value} here"
        for cell in cells
        for name, value in flatten(
            {"cluster": cell.cluster.model_dump(mode="json", include=_FACTS)}
        )
        if there.conditions.get(name) != value
    )
    unsure = [
        f"{name}: {path.name} does not tell it apart from {', '.join(cost.group)}"
        for path, machine in zip(paths, (here, there), strict=True)
        for name, cost in machine.costs.items()
        if cost.group
    ]
    unsure += [
        f"{name}: by jobs {cost.high:.2g} s at most, {cost.micro:.2g} without one: few of the bytes"
        f" of {paths[1].name} crossed what is slow"
        for name, cost in there.costs.items()
        if cost.high is not None and cost.micro is not None and cost.micro > _FAR * cost.high
    ]
    if any(name.startswith("cluster.nodes.") for name in there.conditions):
        unsure.append(
            f"nodes of {paths[1].name} differ, its costs are means over them: a job that"
            " waits for the slowest one takes longer"
        )
    profiles = {}
    for workload, profile in source.read_profiles().items():
        of_there, assumed = completed(there, at_speed_of(here, profile.speed))
        moved = transferred(profile, rows[workload], here, of_there, spread)
        warnings = (note, *(f"measured on another machine: {other}" for other in others), *unsure)
        if assumed:
            warning = f"too few jobs of {paths[1].name} show {', '.join(assumed)}: those of"
            warnings = (*warnings, f"{warning} {paths[0].name} are taken, with its rates")
        if not rows[workload]:
            warning = f"no task of {workload} was recorded: all takes as much longer as computing"
            warnings = (*warnings, warning)
        profiles[workload] = moved.model_copy(update={"warnings": warnings})
    return profiles, [*others]
