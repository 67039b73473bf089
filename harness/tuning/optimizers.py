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

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from harness.base.errors import DataError
from harness.base.hadoop.constants import METADATA_BYTES
from harness.base.records.prediction import JobConfig
from harness.base.records.profile import Profile
from harness.base.units import MIB
from harness.tuning.dataflow import combined_bytes, map_output, maps_and_waves, reasons_of
from harness.tuning.learned import Numbers
from harness.tuning.objective import Objective
from harness.tuning.settings import (
    COPIERS,
    SMALLEST_BYTES,
    SPLIT,
    SWITCH,
    Job,
    Setting,
    Values,
    columns,
)

SEARCHED = 20_000  # evaluations of a model that answers many at once
ASKED_ONE_BY_ONE = 600
_CONFIDENCE = 0.99
_SHARE = 0.1  # that one of so many samples is among the best tenth
_SHRINK = 0.5
_SMALLEST = 0.01
_INDIFFERENT = 1e-3  # share of a job time that no setting is worth
_WIDE = 8  # times as many at once, by a model that answers many
PTC_WAVE = "ptc-wave"  # by which MRTuner's factors are chosen
_MOST_OF_A_FACTOR = 20
_FULLEST = 0.95  # share of a sort buffer
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
    names = [setting.name for setting in job.space() if setting.name != SPLIT]
    defaults = JobConfig()
    values = {name: float(getattr(defaults, name)) for name in names}
    values["sort_buffer_mb"] = min(defaults.sort_buffer_mb, job.largest_sort_mb)
    values[SPLIT] = float(job.largest_split)
    reasons = dict.fromkeys(values, "Hadoop's default")
    reasons[SPLIT] = "Hadoop's default: a map for each block"
    return Choice("hadoop", model, values, reasons)


def rules_of_thumb(
    profile: Profile, job: Job, model: str, *, share: float = 0.95, **_: int
) -> Choice:
    """
    The rules of Hadoop's MapReduce tutorial: reduces for 0.95 of the slots, or for 1.75.

    And a buffer for one spill.  Of few slots a share is rounded: 0.95 of two are two.
    """
    choice = hadoop_defaults(profile, job, model)
    choice.optimizer = "rules" if share < 1 else f"rules-{share:g}"
    if job.configuration.num_reduces:
        choice.values["num_reduces"] = max(1, round(share * job.cluster.reduce_slots))
        waves = "all reduces in one wave" if share < 1 else "faster nodes take a second wave"
        choice.reasons["num_reduces"] = f"{share:g} of the slots: {waves}"
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
    model = model if model.startswith("ptc") else PTC_WAVE
    rows = [*_factor_rows(profile, job)]
    if not rows:
        fix = "give maps more memory, or let a split be smaller: cluster.node.task_memory"
        raise DataError("no plan fits the heap of its maps", where="tune", fix=fix)
    values = columns(rows)
    totals_s = Objective(model, profile, job).seconds(values)
    counts = values["parallel_copies"], values["num_reduces"], job.num_maps(values[SPLIT])
    best = np.lexsort((*counts, totals_s))[0]  # the total counts first, copiers last
    job_s = float(totals_s[best])
    plan = rows[best]
    choice = Choice("mrtuner", model, plan, job_s=job_s, evaluations=len(rows))
    if not job.can_compress:
        del plan[SWITCH]
        choice.bounds.append("compression: no profiled job shows what a codec costs")
    _one_spill(profile, job, choice)
    choice.reasons = reasons_of(profile, job, choice.values)
    return choice


def _factor_rows(profile: Profile, job: Job) -> Iterator[dict[str, float]]:
    """
    The plans of MRTuner's grid that have room for one spill, each with all that follows from it.

    Of more waves or reduces than `_MOST_OF_A_FACTOR` so many are tried, at about equal ratios.
    """
    slots = job.cluster
    total = sum(job.files)
    most_waves = max(1, math.ceil(total / SMALLEST_BYTES / slots.map_slots))
    largest_splits = dict[int, int]()  # by number of maps: of splits that make as many
    for waves in _spread(range(1, most_waves + 1)):
        split = math.ceil(total / (waves * slots.map_slots) / MIB) * MIB
        split = min(job.largest_split, max(SMALLEST_BYTES, split))
        largest_splits.setdefault(int(job.num_maps(np.array([split]))[0]), split)
    splits = {job.largest_split, *largest_splits.values()}
    most_bytes, _ = map_output(profile, total)
    reduce_slots = max(1, slots.reduce_slots)
    most_reduces = max(reduce_slots, math.ceil(most_bytes / SMALLEST_BYTES))
    # Any number in one wave, then whole waves.
    reduces = {*range(1, reduce_slots + 1), *range(reduce_slots, most_reduces + 1, reduce_slots)}
    switches = (0.0, 1.0) if job.can_compress else (job.configuration.map_output_compressed,)
    for split in sorted(splits):
        for percent in (job.configuration.sort_spill_percent, _FULLEST):
            buffer_mb = sort_buffer_mb(profile, job, split, percent)
            if buffer_mb <= job.largest_sort_mb:
                break
        else:
            continue
        for num_reduces in _spread(sorted(reduces)):
            plan = {SPLIT: float(split), "num_reduces": float(num_reduces)}
            plan |= {"sort_buffer_mb": float(max(1, buffer_mb)), "sort_spill_percent": percent}
            plan |= derived(profile, job, plan)
            for copiers, is_compressed in itertools.product(COPIERS, switches):
                yield plan | {"parallel_copies": float(copiers), SWITCH: float(is_compressed)}


def _spread(values: Sequence[int]) -> list[int]:
    """*values* in their order; of many the first, the last and some between."""
    if len(values) <= _MOST_OF_A_FACTOR:
        return [*values]
    places = np.unique(np.rint(np.geomspace(1, len(values), _MOST_OF_A_FACTOR)).astype(int)) - 1
    return [values[place] for place in places]


def sort_buffer_mb(profile: Profile, job: Job, split_bytes: float, spill_percent: float) -> int:
    """MiB of a buffer that holds all that a map writes, so that it spills once."""
    size, records = map_output(profile, min(split_bytes, job.largest_split))
    return math.ceil((size + METADATA_BYTES * records) / (spill_percent * MIB))


def _one_spill(profile: Profile, job: Job, choice: Choice) -> None:
    """Give *choice* a sort buffer for one spill, or the largest that the heap has room for."""
    split = choice.values.get(SPLIT, job.job_input.split_bytes)
    room_mb = job.largest_sort_mb
    percent = choice.values.get("sort_spill_percent", job.configuration.sort_spill_percent)
    wanted_mb = sort_buffer_mb(profile, job, split, percent)
    choice.values["sort_buffer_mb"] = max(1, min(wanted_mb, room_mb))
    reasons = reasons_of(profile, job, choice.values)
    choice.reasons["sort_buffer_mb"] = reasons["sort_buffer_mb"]
    if wanted_mb > room_mb:
        text = f"sort buffer: {wanted_mb} MiB are wanted, the heap of a map has room for {room_mb}"
        choice.bounds.append(text)


def derived(profile: Profile, job: Job, plan: Mapping[str, float]) -> dict[str, float]:
    """What follows from splits and reduces of a *plan*, by the rules of `docs/tuning.md`."""
    maps, map_waves = maps_and_waves(job, plan)
    written_bytes, records = map_output(profile, job.job_input.input_bytes / maps)
    segment = combined_bytes(profile, job, written_bytes, records) / plan["num_reduces"]
    heap = job.configuration.reduce_heap_bytes
    reduce_input = segment * maps
    room = 0.7 if reduce_input <= 0.7 * heap else 0.9
    limit = math.ceil(110 * segment / (room * heap)) / 100
    is_early = map_waves > 1 and job.configuration.reduce_slowstart < 1
    return {
        "merge_factor": float(min(100, max(10, maps))),
        "inmem_merge_segments": 0.0 if maps > _MANY_MAPS else 1000.0,
        "shuffle_buffer_percent": room,
        "shuffle_merge_percent": 0.9 if reduce_input <= 0.9 * room * heap else 0.66,
        "shuffle_segment_limit_percent": min(0.5, max(0.25, limit)),
        "reduce_buffer_percent": 0.7 if reduce_input <= 0.5 * heap else 0.0,
        "reduce_slowstart": round(1 / map_waves, 2) if is_early else 1.0,
    }


def search(
    profile: Profile, job: Job, model: str, *, evaluations: int = 0, seed: int = 1
) -> Choice:
    """Recursive random search over *model* in so many *evaluations* (0: as its speed allows)."""
    objective = Objective(model, profile, job)
    is_fast = model.startswith("whatif")  # it answers thousands in the time of one
    budget = evaluations or (SEARCHED if is_fast else ASKED_ONE_BY_ONE)
    random_search = _Search(objective, job.space(), budget)
    samples = math.ceil(math.log(1 - _CONFIDENCE) / math.log(1 - _SHARE))
    random_search.run(samples * _WIDE if is_fast else samples, np.random.default_rng(seed))
    best_s = random_search.best_s
    if not math.isfinite(best_s):
        what = f"{model} has no answer for any setting of this job"
        raise DataError(what, where="tune", fix="choose another --model")
    looked_at = objective.evaluations
    values, reasons = _needed_values(objective, random_search.best_values(), best_s)
    texts = {
        "sort_buffer_mb": f"sort buffer: the heap of a map has room for {job.largest_sort_mb}",
        SPLIT: "split: no file of the input is known to be larger",
    }
    highest = {setting.name: setting.high for setting in random_search.space}
    bounds = [
        text for name, text in texts.items() if name in values and values[name] >= highest[name]
    ]
    return Choice(
        "search",
        model,
        values,
        reasons,
        best_s,
        looked_at,
        curve=random_search.curve,
        bounds=bounds,
    )


class _Search:
    """The best settings that were seen of a *space*, as *budget* evaluations find them."""

    def __init__(self, objective: Objective, space: list[Setting], budget: int) -> None:
        self.objective = objective
        self.space = space
        self.budget = budget
        self.best = np.full(len(space), 0.5)  # shares of each range
        self.best_s = math.inf
        self.curve = list[tuple[int, float]]()

    @property
    def left(self) -> int:
        """Evaluations that are left."""
        return self.budget - self.objective.evaluations

    def run(self, samples: int, random: np.random.Generator) -> None:
        """Recursive random search [Y], of so many *samples* at once."""
        width = len(self.space)
        while self.left > 0:
            centre, centre_s = self.look(random.random((min(samples, self.left), width)))
            size = _SHARE ** (1 / width) / 2
            while size > _SMALLEST and self.left > 0:
                count = min(samples // 2, self.left)
                moved = centre + size * random.uniform(-1, 1, (count, width))
                place, place_s = self.look(np.clip(moved, 0, 1))
                if place_s < centre_s:
                    centre = place
                    centre_s = place_s
                else:
                    size *= _SHRINK

    def look(self, places: Numbers) -> tuple[Numbers, float]:
        """The best of *places*, rows of shares of each range, and its seconds."""
        seconds = self.objective.seconds(_values(self.space, places))
        seconds[np.isnan(seconds)] = math.inf
        row = int(seconds.argmin())
        if seconds[row] < self.best_s:
            self.best = places[row]
            self.best_s = float(seconds[row])
            self.curve.append((self.objective.evaluations, self.best_s))
        return places[row], float(seconds[row])

    def best_values(self) -> dict[str, float]:
        """The best settings that were seen, by their fields."""
        return {
            name: float(values[0]) for name, values in _values(self.space, self.best[None]).items()
        }


def _needed_values(
    objective: Objective, values: dict[str, float], best_s: float
) -> tuple[dict[str, float], dict[str, str]]:
    """
    The settings without which the job would take longer, and for each a reason that says how much.

    To all others of *values* the model is indifferent: they stay as the job has them.
    """
    kept = dict(values)
    # Something must be asked where no setting is left: what the job has anyway.
    unchanged = {"merge_factor": float(objective.job.configuration.merge_factor)}

    def seconds_without(name: str) -> float:
        """Seconds of the job with all settings that are kept but this one."""
        rest = {key: value for key, value in kept.items() if key != name}
        return float(objective.seconds(columns([rest or unchanged]))[0])

    for name in values:
        if seconds_without(name) <= best_s * (1 + _INDIFFERENT):
            del kept[name]
    reasons = reasons_of(objective.profile, objective.job, kept)
    for name in kept:
        longer_s = seconds_without(name) - best_s
        reasons[name] += f"; without it {longer_s:+.1f} s"
    return kept, reasons


def _values(space: list[Setting], places: Numbers) -> Values:
    """Settings of a *space* at *places*, whose columns are shares of each range."""
    return {setting.name: setting.at(places[:, column]) for column, setting in enumerate(space)}


OPTIMIZERS: dict[str, Callable[..., Choice]] = {
    "hadoop": hadoop_defaults,
    "rules": rules_of_thumb,
    "rules-1.75": partial(rules_of_thumb, share=1.75),
    "mrtuner": mrtuner,
    "search": search,
}


def choose(optimizer: str, profile: Profile, job: Job, model: str, **search_options: int) -> Choice:
    """
    What *optimizer* chooses by *model*, with the seconds that it took.

    *search_options* are `evaluations` and `seed`, of which the other optimizers take no notice.
    """
    began_s = time.perf_counter()
    choice = OPTIMIZERS[optimizer](profile, job, model, **search_options)
    if math.isnan(choice.job_s):
        choice.job_s = float(Objective(model, profile, job).seconds(columns([choice.values]))[0])
    choice.seconds = time.perf_counter() - began_s
    return choice
