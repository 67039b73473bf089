"""
Who chooses: rules of thumb, MRTuner's four factors, and a recursive random search over a model.

[Y] T. Ye, S. Kalyanaraman, "A recursive random search algorithm for large-scale network parameter
configuration", SIGMETRICS 2003: sample at random until a good region is likely to be hit, search
in it, move to what is better and shrink where nothing is, then start again.  Starfish searches
What-If's parameters so (Herodotou, Babu, VLDB 2011).  MRTuner's search: ``mrtuner-ptc.md``, 11.
"""

from __future__ import annotations

import itertools
import math
import time

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from harness.errors import DataError
from harness.models import MODELS
from harness.models.ptc.equations import METHODS
from harness.models.ptc.quantities import estimate_quantities, evaluate_quantities
from harness.models.whatif.evaluation import evaluate_grid
from harness.models.whatif.model import AFTER_SHUFFLE, inputs_of_cell
from harness.records.prediction import JobConfig
from harness.records.profile import Profile
from harness.tuning.objective import Objective
from harness.tuning.settings import (
    COPIERS,
    MEANINGS,
    METADATA_BYTES,
    SMALLEST_BYTES,
    SPLIT,
    SWITCH,
    Job,
    Numbers,
    Setting,
    Values,
    columns,
)
from harness.units import MIB

SEARCHED = 20_000  # evaluations of a model that answers many at once
ASKED_ONE_BY_ONE = 600
_CONFIDENCE, _SHARE = 0.99, 0.1  # that one of so many samples is among the best tenth
_SHRINK, _SMALLEST = 0.5, 0.01
_INDIFFERENT = 1e-3  # share of a job time that no setting is worth
_WIDE = 8  # times as many at once, by a model that answers many
_PTC = "ptc-wave"
_MANY_MAPS = 1000  # from which on the number of map outputs alone would start merges


@dataclass
class Choice:
    """
    Settings that an *optimizer* chose, by their fields, with a reason for each.

    *job_s* is what its model thinks of them, *curve* the best so far after so many evaluations,
    *bounds* what could not be exceeded.
    """

    optimizer: str
    model: str
    values: dict[str, float]
    reasons: dict[str, str] = field(default_factory=dict)
    job_s: float = math.nan
    evaluations: int = 0
    seconds: float = 0.0
    curve: list[tuple[int, float]] = field(default_factory=list)
    bounds: list[str] = field(default_factory=list)


def hadoop_defaults(_profile: Profile, job: Job, model: str, **_: int) -> Choice:
    """Hadoop's own defaults."""
    names = [each.name for each in job.space() if each.name != SPLIT]
    defaults = JobConfig()
    values = {name: float(getattr(defaults, name)) for name in names}
    values["sort_buffer_mb"] = min(defaults.sort_buffer_mb, job.largest_sort_mb)
    reasons = dict.fromkeys(values, "Hadoop's default")
    return Choice("hadoop", model, values, reasons)


def rules_of_thumb(profile: Profile, job: Job, model: str, **_: int) -> Choice:
    """Hadoop's published rules: reduces for 0.95 of the slots, a buffer for one spill."""
    choice = hadoop_defaults(profile, job, model)
    choice.optimizer = "rules"
    if job.configuration.num_reduces:
        reduces = max(1, math.floor(0.95 * job.cluster.reduce_slots))
        choice.values["num_reduces"] = reduces
        choice.reasons["num_reduces"] = "0.95 of the slots: all reduces in one wave"
    _one_spill(profile, job, choice)
    return choice


def mrtuner(profile: Profile, job: Job, model: str, **_: int) -> Choice:
    """
    MRTuner's four factors by PTC: waves of maps and of reduces, copiers, compression.

    All of its grid is looked at; of equal totals fewer maps, then reduces, then copiers count.
    """
    if not job.configuration.num_reduces:
        what = "MRTuner's factors are of jobs that have reduces"
        raise DataError(what, where="tune", fix="use --optimizer search")
    method = "closed" if model == "ptc-closed" else METHODS[0]
    # What the model lacks it names itself.
    MODELS[_PTC].predict(profile, job.configuration, job.cluster, job.job_input)
    rows = [*_factor_rows(profile, job)]
    totals = _ptc_totals(profile, job, rows, method)
    order = sorted(
        (total, job.num_maps(np.array([row[SPLIT]]))[0], row["num_reduces"],
         row["parallel_copies"], place)
        for place, (row, total) in enumerate(zip(rows, totals.tolist(), strict=True))
        if math.isfinite(total)
    )  # fmt: skip
    if not order:
        fix = "give maps more memory, or let a split be smaller: cluster.node.task_memory"
        raise DataError("no plan fits the heap of its maps", where="tune", fix=fix)
    values = dict(rows[order[0][4]])
    choice = Choice("mrtuner", model, values, job_s=order[0][0], evaluations=len(rows))
    if not job.can_compress:
        values.pop(SWITCH)
        choice.bounds.append("compression: no profiled job shows what a codec costs")
    _derive(profile, job, choice)
    return choice


def _factor_rows(profile: Profile, job: Job) -> Iterator[dict[str, float]]:
    """The plans of MRTuner's grid, each with a sort buffer for one spill where that fits."""
    slots, total = job.cluster, sum(job.files)
    most_waves = max(1, math.ceil(total / SMALLEST_BYTES / slots.map_slots))
    by_count = dict[int, int]()  # of several splits that make as many maps, the largest
    for waves in range(1, most_waves + 1):
        split = math.ceil(total / (waves * slots.map_slots) / MIB) * MIB
        split = min(job.largest_split, max(SMALLEST_BYTES, split))
        by_count.setdefault(int(job.num_maps(np.array([split]))[0]), split)
    splits = {job.largest_split, *by_count.values()}
    most_bytes = total * map_output(profile, 1.0)[0]
    reduce_slots = max(1, slots.reduce_slots)
    most_reduces = max(reduce_slots, math.ceil(most_bytes / SMALLEST_BYTES))
    reduces = {*range(1, reduce_slots + 1), *range(reduce_slots, most_reduces + 1, reduce_slots)}
    switches = (False, True) if job.can_compress else (job.configuration.map_output_compressed,)
    for split, count, copies, is_compressed in itertools.product(
        sorted(splits), sorted(reduces), COPIERS, switches
    ):
        buffer_mb = sort_buffer_mb(profile, job, split, job.configuration.sort_spill_percent)
        if buffer_mb <= job.largest_sort_mb:
            yield {
                SPLIT: split,
                "num_reduces": count,
                "parallel_copies": copies,
                SWITCH: float(is_compressed),
                "sort_buffer_mb": max(1, buffer_mb),
            }


def _ptc_totals(profile: Profile, job: Job, rows: list[dict[str, float]], method: str) -> Numbers:
    """Seconds of each plan: `total_s` of PTC and the frame; infinite where it is refused."""
    if not rows:
        return np.array([])
    values = columns(rows)
    num_maps = job.num_maps(values[SPLIT])
    fields = {name: each.astype(bool) if name == SWITCH else each
              for name, each in values.items() if name != SPLIT}  # fmt: skip
    nothing_kept = job.configuration.model_copy(update={"reduce_buffer_percent": 0.0})
    given = inputs_of_cell(profile, nothing_kept, job.cluster, job.job_input)
    sizes = {"num_maps": num_maps, "split_bytes": job.job_input.input_bytes / num_maps}
    names = ("map_task_s", "map_final_bytes", *AFTER_SHUFFLE)
    tasks = evaluate_grid(*given[:2], given[2] | fields | sizes, given[3], "mr2", quantities=names)
    totals = np.full(len(rows), math.inf)
    for place, row in enumerate(rows):
        whole = {name: int(row[name])
                 for name in ("num_reduces", "parallel_copies", "sort_buffer_mb")}  # fmt: skip
        switch = {SWITCH: bool(row[SWITCH])}
        configuration = job.configuration.model_copy(update=whole | switch)
        job_input = job.job_input.model_copy(
            update={"num_splits": int(num_maps[place]), "split_bytes": sizes["split_bytes"][place]}
        )
        task = {name: float(each[place]) for name, each in tasks.items()}
        quantities, _ = estimate_quantities(profile, configuration, job.cluster, job_input, task)
        totals[place] = evaluate_quantities(quantities, method)["total_s"]
    totals += Objective(_PTC, profile, job).frame_s(fields, num_maps)
    return totals


def map_output(profile: Profile, read_bytes: float) -> tuple[float, float]:
    """Bytes and records that a map writes of *read_bytes*, before it combines."""
    known = profile.statistics
    records = read_bytes / known["input_record_bytes"].value
    selectivity = (
        known["map_records_selectivity"].value if "map_records_selectivity" in known else 1.0
    )
    size = known["map_bytes_selectivity"].value if "map_bytes_selectivity" in known else 1.0
    return read_bytes * size, records * selectivity


def sort_buffer_mb(profile: Profile, job: Job, split_bytes: float, spill_percent: float) -> int:
    """MiB of a buffer that holds all that a map writes, so that it spills once."""
    size, records = map_output(profile, min(split_bytes, job.largest_split))
    return math.ceil((size + METADATA_BYTES * records) / (spill_percent * MIB))


def _one_spill(profile: Profile, job: Job, choice: Choice) -> None:
    """Give *choice* a sort buffer for one spill, or the largest that the heap has room for."""
    split = choice.values.get(SPLIT, job.job_input.split_bytes)
    percent = choice.values.get("sort_spill_percent", job.configuration.sort_spill_percent)
    wanted = sort_buffer_mb(profile, job, split, percent)
    size, records = map_output(profile, split)
    choice.values["sort_buffer_mb"] = max(1, min(wanted, job.largest_sort_mb))
    choice.reasons["sort_buffer_mb"] = (
        f"a map writes {size / MIB:.0f} MiB and {records:.0f} records, {METADATA_BYTES} bytes each:"
        f" {wanted} MiB hold them"
    )
    if wanted > job.largest_sort_mb:
        choice.bounds.append(
            f"sort buffer: {wanted} MiB are wanted, the heap of a map has room for"
            f" {job.largest_sort_mb}"
        )


def _derive(profile: Profile, job: Job, choice: Choice) -> None:
    """What follows from the four factors: `docs/tuning.md` has the rule of each."""
    values, reasons = choice.values, choice.reasons
    maps = job.num_maps(np.array([values[SPLIT]]))[0]
    map_waves = math.ceil(maps / job.cluster.map_slots)
    reasons[SPLIT] = f"{maps:.0f} maps, {map_waves} waves on {job.cluster.map_slots} slots"
    reduce_waves = math.ceil(values["num_reduces"] / max(1, job.cluster.reduce_slots))
    reasons["num_reduces"] = f"{reduce_waves} waves on {job.cluster.reduce_slots} slots"
    reasons["parallel_copies"] = "the fewest copiers that keep up with the maps (T3)"
    if SWITCH in values:
        reasons[SWITCH] = "copying less outside the overlap against the processor's time (T2)"
    _one_spill(profile, job, choice)
    final, _ = map_output(profile, job.job_input.input_bytes / maps)
    if job.configuration.use_combiner and "combine_bytes_selectivity" in profile.statistics:
        final *= profile.statistics["combine_bytes_selectivity"].value
    segment = final / values["num_reduces"]
    values["merge_factor"] = float(min(100, max(10, maps)))
    reasons["merge_factor"] = f"{maps:.0f} map outputs are merged in one pass, of 100 at most"
    values["inmem_merge_segments"] = 0.0 if maps > _MANY_MAPS else 1000.0
    reasons["inmem_merge_segments"] = "bytes decide when to merge, not the number of outputs"
    heap = job.configuration.reduce_heap_bytes
    reduce_input = segment * maps
    room = values["shuffle_buffer_percent"] = 0.7 if reduce_input <= 0.7 * heap else 0.9
    reasons["shuffle_buffer_percent"] = (
        f"a reduce copies {reduce_input / MIB:.0f} MiB, its heap has {heap / MIB:.0f}"
    )
    values["shuffle_merge_percent"] = 0.9 if reduce_input <= 0.9 * room * heap else 0.66
    reasons["shuffle_merge_percent"] = "merges to disk begin late where all fits, early where not"
    limit = min(0.5, max(0.25, math.ceil(110 * segment / (room * heap)) / 100))
    values["shuffle_segment_limit_percent"] = limit
    reasons["shuffle_segment_limit_percent"] = (
        f"an output of {segment / MIB:.1f} MiB fits in memory"
    )
    kept = reduce_input <= 0.5 * heap
    values["reduce_buffer_percent"] = 0.7 if kept else 0.0
    reasons["reduce_buffer_percent"] = (
        "its input stays in memory" if kept else "its function needs the heap"
    )
    early = map_waves > 1 and job.configuration.reduce_slowstart < 1
    values["reduce_slowstart"] = round(1 / map_waves, 2) if early else 1.0
    reasons["reduce_slowstart"] = (
        "copying begins behind the first wave of maps" if early
        else "one wave of maps, or reduces that would take their slots: nothing to overlap"
    )  # fmt: skip


def search(
    profile: Profile, job: Job, model: str, *, evaluations: int = 0, seed: int = 1
) -> Choice:
    """Recursive random search over *model* in so many *evaluations* (0: as its speed allows)."""
    objective, space = Objective(model, profile, job), job.space()
    is_fast = model.startswith("whatif")  # it answers thousands in the time of one
    budget = evaluations or (SEARCHED if is_fast else ASKED_ONE_BY_ONE)
    random, curve = np.random.default_rng(seed), list[tuple[int, float]]()
    best, best_s = np.full(len(space), 0.5), math.inf

    def look(places: Numbers) -> tuple[Numbers, float]:
        """The best of *places*, rows of shares of each range, and its seconds."""
        nonlocal best, best_s
        seconds = objective.seconds(_values(space, places))
        if np.isnan(seconds).all():
            return places[0], math.inf
        place = int(np.nanargmin(seconds))
        if seconds[place] < best_s:
            best, best_s = places[place], float(seconds[place])
            curve.append((objective.evaluations, best_s))
        return places[place], float(seconds[place])

    samples = math.ceil(math.log(1 - _CONFIDENCE) / math.log(1 - _SHARE))
    samples *= _WIDE if is_fast else 1
    while objective.evaluations < budget:
        centre, centre_s = look(random.random((min(samples, budget), len(space))))
        size = _SHARE ** (1 / len(space)) / 2
        while size > _SMALLEST and objective.evaluations < budget:
            count = min(samples // 2, budget - objective.evaluations)
            moved = centre + size * random.uniform(-1, 1, (count, len(space)))
            place, seconds = look(np.clip(moved, 0, 1))
            if seconds < centre_s:
                centre, centre_s = place, seconds
            else:
                size *= _SHRINK
    if not math.isfinite(best_s):
        what = f"{model} has no answer for any setting of this job"
        raise DataError(what, where="tune", fix="choose another --model")
    looked_at = objective.evaluations
    values = {name: float(each[0]) for name, each in _values(space, best[None]).items()}
    values, reasons = _that_count(objective, values, best_s)
    return Choice("search", model, values, reasons, best_s, looked_at, curve=curve,
                  bounds=_bounds(job, space, values))  # fmt: skip


def _that_count(
    objective: Objective, values: dict[str, float], best_s: float
) -> tuple[dict[str, float], dict[str, str]]:
    """
    Those of *values* without which the job would take longer, each with by how much.

    To the others the model is indifferent: they stay as the job has them.
    """
    kept = dict(values)

    def without(name: str) -> float:
        rest = {key: value for key, value in kept.items() if key != name}
        return float(objective.seconds(columns([rest]))[0])

    for name in values:
        if len(kept) > 1 and without(name) <= best_s * (1 + _INDIFFERENT):
            del kept[name]
    longer_s = {name: without(name) - best_s for name in kept} if len(kept) > 1 else {}
    reasons = {name: f"{MEANINGS[name]}; without it {more_s:+.1f} s"
               for name, more_s in longer_s.items()}  # fmt: skip
    return kept, reasons


def _values(space: list[Setting], places: Numbers) -> Values:
    return {each.name: each.at(places[:, column]) for column, each in enumerate(space)}


def _bounds(job: Job, space: list[Setting], values: dict[str, float]) -> list[str]:
    """Where a choice is at the end of what fits a map's heap, or the files."""
    at_end = {each.name for each in space if values.get(each.name, 0.0) >= each.high}
    texts = {"sort_buffer_mb": f"sort buffer: the heap of a map has room for {job.largest_sort_mb}"}
    texts[SPLIT] = "split: no file of the input is larger"
    return [text for name, text in texts.items() if name in at_end]


Optimizer = Callable[..., Choice]
OPTIMIZERS: dict[str, Optimizer] = {
    "hadoop": hadoop_defaults, "rules": rules_of_thumb, "mrtuner": mrtuner, "search": search,
}  # fmt: skip


def choose(
    optimizer: str, profile: Profile, job: Job, model: str, *, evaluations: int = 0, seed: int = 1
) -> Choice:
    """What *optimizer* chooses by *model*, with the seconds that it took."""
    began_s = time.perf_counter()
    choice = OPTIMIZERS[optimizer](profile, job, model, evaluations=evaluations, seed=seed)
    if math.isnan(choice.job_s):
        choice.job_s = float(Objective(model, profile, job).seconds(columns([choice.values]))[0])
    return replace(choice, seconds=time.perf_counter() - began_s)
