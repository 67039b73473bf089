"""
Check this bundle with nothing but Python 3.6 or later: python3 -I -S verify.py [FOLDER].

FOLDER is the folder of the bundle.  A packed one is unpacked first: tar xzf bundle.tar.gz makes
bundle/, and each archive of evidence/, where there is one, goes into the same folder.

What is checked, in this order (`check`, the last function, goes through it):

1. SHA256SUMS lists all files of the folder and no others; none of them is a link.  The bundle says
   how it was published (publication.json), and each run that it is of that level of evidence.
2. Each row of the tables of data/ is there once, is of a known cell, and its numbers are finite.
3. Measured are the trials that are done and scored, each of them and no others but those that
   fed the profile of a workload of which no scored cell was repeated.
4. data/scores.csv follows from data/measurements.csv and data/predictions.csv.
5. data/comparisons.csv follows from the scores and from the question of data/runs.csv, which is
   that of the seal where it says so.
6. The claim of README.md follows from scores and comparisons, word by word.
7. Each file has the SHA-256 that SHA256SUMS states.

Steps 3 to 6 are done run by run, by the formulas of docs/scores.md; the functions name its sections
(1 to 6). Numbers agree to 1e-9 of themselves. Nothing follows from data/intervals.csv: it is shown.

It ends with 0 and the table of the claim, or with 1 and what differs first; and it writes nothing.
Not checked: who signed an anchor, laws between records, that data/ follows from what was recorded.
"""

import base64
import csv
import hashlib
import json
import math
import re
import shlex
import sys

from collections import Counter, defaultdict
from contextlib import suppress
from itertools import combinations
from pathlib import Path
from statistics import mean, median, stdev
from typing import Any, Dict, Iterable, List, NamedTuple, Set, Tuple

Row = Dict[str, Any]
Table = Dict[Tuple[Any, ...], Row]  # rows of a run, by their columns of KEYS
Tables = Dict[str, Table]  # of a run, by their names

TABLES = ("runs", "cells", "trials", "measurements", "predictions", "scores", "comparisons",
          "intervals")  # fmt: skip
KEYS = ("cell", "trial", "model", "quantity", "refit", "repeat", "speed", "better", "worse",
        "family", "metric", "workload")  # fmt: skip
SCORE = ("predicted", "measured", "trials", "floor", "signed_error", "relative_error", "i_accu")
PAIR = ("cells", "chance", "difference", "low", "high", "any_low", "any_high")
ANY = ("any_profile", "any_low", "any_high")  # with any profile of this kind (section 4)
MISS = "in_sample_miss"
DRIFT = ("drift", "drift_low", "drift_high")
# Of a command: the host in an address.  Of an answer: what says that it is a time stamp.
ADDRESS = re.compile(
    r"[A-Za-z][A-Za-z0-9+.-]*://(?:[^\s/@'\"]*@)?(\[[0-9A-Fa-f:.]+\]|[^\s/:?#'\"]+)"
)
STAMP = bytes.fromhex("060b2a864886f70d0109100104")
NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?\Z")
MOST_SHOWN = 2000  # characters of what is wrong
FIX = "name the folder of a bundle; if this is one, believe no page of it, and get it again"
UNPACK = (
    "this is a packed bundle: unpack it with  tar xzf bundle.tar.gz  (and each archive of"
    " evidence/, where there is one, in the same place), then  python3 -I -S verify.py bundle"
)
PACKED = (".tar", ".tar.gz", ".tgz", ".tar.zst", ".zip")
SINCE_SCHEMA = 14  # of runs, from which on each bundle of them has publication.json
NUMBERS = {
    *SCORE,
    *PAIR,
    *DRIFT,
    MISS,
    "level",
    "refit",
    "repeat",
    "weight",
    "value",
    "low_90",
    "high_90",
}
# A text that a spreadsheet would take for a formula has an apostrophe before it.
GUARDED = tuple("'" + first for first in "=+-@\t\uff1d\uff0b\uff0d\uff20")

LEVEL = 0.05  # of the tests (section 4)
LOOK_LEVEL = 0.012  # of those of a run to which trials were added until decided (section 4)
UNTIL_DECIDED = 0  # in the place of a number of repeats
OWN_SPREAD_TRIALS = 6  # from so many trials on, a cell has a spread of its own (section 2)
FEWEST_UNITS = 6  # with fewer nothing can be told (section 4)
ALL_FLIPS_TO = 12  # units, whose signs are flipped in all ways (section 4)
FLIPS = 4096  # of more units (section 4)
NEAR = 1e-9  # sums of the same numbers in another order differ by less (section 4)
CANCELLED = 1e-14  # of a square: what is left of the same number less itself (section 4)
MOST_IN_SAMPLE = 0.1  # of a job: who misses more of what it learnt from has no rank (section 3)
MARGIN = 0.02  # mean errors that differ by less are equal (section 4)
FEWEST_RUNS = 3  # with fewer there is no interval over runs (section 6)
LEAST_BEND = 1e-6  # of Hall's transformation (section 7)
INTERVAL_UNITS = 6  # with fewer, the interval is the range of the cells (section 7)
DRAWS = 200  # of a perfect model (section 5)
# What is said of a model by its verdict beside another (section 6).
FATES = {
    "nearer": "is nearer than",
    "equal": "is equal to",
    "farther": "is farther than",
    "undecided": "cannot be told apart from",
}
KINDS = ("how_far", "nearer", "choice", "claims", "moved_since")  # of questions
# What papers claim: in words, and as a question (section 6).
CLAIMS = {
    "prophet": [("Prophet is nearer than What-If (Tables I to III)", "nearer prophet whatif")]
}
MOVED_ALONE = "what has moved since another run is seen beside that run alone, by harness compare"
STEPS = [(math.exp(math.pi / 2 * math.sinh(n / 12)), math.cosh(n / 12)) for n in range(-48, 49)]


def tail(freedom: float, t: float) -> float:
    """
    Chance that Student's t is above *t*: its density, summed from |t| on.

    At x = |t| + (1 + |t|) e with e = exp(pi/2 sinh u), for u from -4 to 4 in steps of 1/12: double
    exponential quadrature (Takahasi and Mori, 1974).
    """
    scale = 1 + min(abs(t), 1e100)
    power = -(freedom + 1) / 2
    front = math.sqrt(math.pi / freedom) * math.exp(math.lgamma(-power) - math.lgamma(freedom / 2))
    total = math.fsum(
        weight * e * (1 + (scale * (1 + e) - 1) ** 2 / freedom) ** power for e, weight in STEPS
    )
    beyond = front * scale / 24 * total
    return beyond if t >= 0 else 1 - beyond


def t_quantile(freedom: float, beyond: float = 0.025) -> float:
    """What Student's t is above with the chance *beyond*, bit by bit from 1,024 down."""
    t = 0.0
    for exponent in range(10, -45, -1):
        if tail(freedom, t + 2.0**exponent) > beyond:
            t += 2.0**exponent
    return t


def scored(measurements: Table, predictions: Iterable[Row], profiling: Set[Any]) -> Table:
    """Scores by cell, model, quantity and speed; by *profiling* trials the noise is known."""
    times = defaultdict(list)  # type: Any
    other_times = defaultdict(list)  # type: Any
    for key, row in measurements.items():
        of_use = other_times if key[:2] in profiling else times
        of_use[row["workload"], row["quantity"], row["speed"], row["cell"]].append(row["value"])
    times = without_refuted(times)
    answers = answers_of(predictions)
    spreads = squared_spreads(times, other_times)
    scores = {}  # type: Table
    for key, values in times.items():
        _, name, speed, cell = key
        measured = math.fsum(values) / len(values)
        pool = spreads[key] if len(values) >= OWN_SPREAD_TRIALS else spreads[key[:3]]
        floor = math.sqrt(mean(pool) / len(values)) if pool else None
        models = answers[name, cell]
        for (model, quantity), answer in models.items():
            whatif = models.get(("whatif", quantity))
            score = score_of(answer, whatif, measured, len(values), floor)
            scores[cell, model, quantity, speed] = score
    return scores


def without_refuted(times: Any) -> Any:
    """*times* without quantities that are no times in a cell of their workload (section 1)."""
    is_refuted = {
        key[:2] for key, values in times.items() if min(values) < 0 or math.fsum(values) <= 0
    }
    has_bodies = "body_s" not in {quantity for _, quantity in is_refuted}
    return {
        key: values
        for key, values in times.items()
        if key[:2] not in is_refuted and (has_bodies or key[1] not in {"body_s", "frame_s"})
    }


def answers_of(predictions: Iterable[Row]) -> Any:
    """Rows with an answer by the profile itself, by quantity and cell, then by model."""
    answers = defaultdict(dict)  # type: Any
    for row in predictions:
        is_own = row["refit"] is None and row.get("repeat") is None
        if is_own and row["predicted"] is not None:
            name = "job_s" if row["quantity"] == "published_s" else row["quantity"]
            answers[name, row["cell"]][row["model"], row["quantity"]] = row
    return answers


def score_of(answer: Row, whatif: Any, measured: float, trials: int, floor: Any) -> Row:
    """A row of data/scores.csv (section 1); *whatif* is the answer of that model, or `None`."""
    error = (answer["predicted"] - measured) / measured
    gain = None
    if whatif is not None:
        gain = 100 * (abs((whatif["predicted"] - measured) / measured) - abs(error))
    numbers = (answer["predicted"], measured, trials, floor, error, abs(error), gain)
    score = dict(zip(SCORE, numbers), rung=answer["rung"])  # type: Row
    for column, low, high in (("covered_80", "low", "high"), ("covered_90", "low_90", "high_90")):
        score[column] = ""
        if answer[low] is not None:
            score[column] = "true" if answer[low] <= measured <= answer[high] else "false"
    return score


def squared_spreads(times: Any, other_times: Any) -> Any:
    """Of each cell, and of all cells of a workload, quantity and speed (section 2)."""
    spreads = squares_of(other_times)
    spreads.update(squares_of(times))  # those of scored cells, where one was repeated
    return spreads


def squares_of(times: Any) -> Any:
    """Of each cell, and of all cells of a kind as often as they have degrees of freedom."""
    spreads = defaultdict(list)  # type: Any
    for key, values in times.items():
        if len(values) > 1 and mean(values) > 0:
            spreads[key] = [(stdev(values) / mean(values)) ** 2]
            spreads[key[:3]] += spreads[key] * (len(values) - 1)
    return spreads


class Subject(NamedTuple):
    """
    What is asked of a run, and its scores of job times at one speed in the cells it is about.

    Verdicts are those at the speed *read_at*; there they hold at all *stretches* (section 4).
    """

    asks: List[str]
    asked: str  # when: sealed, afterwards, or explored
    scope: str
    level: float
    read_at: str
    stretches: List[float]
    inputs: Dict[str, str]
    workloads: Dict[str, str]
    anew: Any  # by model and cell: the rows of repeats; `None` in bundles of earlier versions
    scores: Dict[str, Dict[str, Row]]  # by model and cell
    ranked: List[str]
    cells: List[str]
    unranked: Set[str]
    left_out: int  # extrapolated cells that the question leaves out
    shares: Dict[str, Any]  # weights of drawn cells, `None` where all count alike

    def row(self, model: str, cells: Iterable[str]) -> List[Row]:
        """Scores of a model in those cells."""
        return [self.scores[model][cell] for cell in cells]

    def errors(self, model: str, cells: Iterable[str], stretch: float = 1.0) -> List[float]:
        """Relative errors of a model in those cells, at a stretch."""
        rows = self.row(model, cells)
        if stretch == 1.0:
            return [row["relative_error"] for row in rows]
        return [abs(row["predicted"] / row["measured"] * stretch - 1) for row in rows]

    def weights(self, cells: Iterable[str]) -> List[float]:
        """How much each of those cells counts: 1 on average (section 3)."""
        return relative_weights([self.shares.get(cell) for cell in cells])

    def error(self, model: str, cells: List[str]) -> float:
        """Mean relative error of a model over those cells."""
        return mean_of(self.errors(model, cells), self.weights(cells))

    def units(self, cells: Iterable[str]) -> List[str]:
        """What varies together with each cell: itself, or its input (section 4)."""
        if self.scope == "jobs":
            return [*cells]
        return [self.inputs[cell] or f"\0{cell}" for cell in cells]

    def settings(self) -> List[List[str]]:
        """Cells of each input that has two or more (section 6)."""
        by_input = defaultdict(list)  # type: Any
        for cell in self.cells:
            by_input[self.inputs[cell] or cell].append(cell)
        return [cells for _, cells in sorted(by_input.items()) if len(cells) >= 2]

    def by_time(self, model: str, cells: Iterable[str]) -> List[str]:
        """Those cells in the order of what was measured, by the scores of a model (section 5)."""
        row = self.scores[model]
        return sorted(cells, key=lambda cell: (row[cell]["measured"], cell))

    def places(self, model: str, cells: List[str]) -> List[int]:
        """Of each cell the place of its unit, by the mean of what was measured (section 4)."""
        units = self.units(cells)
        times = defaultdict(list)  # type: Any
        for unit, row in zip(units, self.row(model, cells)):
            times[unit].append(row["measured"])
        means = {
            unit: math.fsum(unit_times) / len(unit_times) for unit, unit_times in times.items()
        }
        order = sorted(means, key=lambda unit: (means[unit], unit))
        return [order.index(unit) for unit in units]


def answered_of(scores: Table, speed: str, outside: Set[str], extrapolate: str) -> Any:
    """Scores of job times at a speed, by model and cell, in the cells that are asked about."""
    answered = defaultdict(dict)  # type: Any
    for (cell, model, quantity, row_speed), row in scores.items():
        is_outside = cell in outside
        is_meant = {"true": is_outside, "out": not is_outside}.get(extrapolate, True)
        if is_meant and (quantity, row_speed) == ("job_s", speed):
            answered[model][cell] = row
    return answered


def subject(run: Tables, scores: Table, speed: str) -> Subject:
    """What the question of *run* is about: models on common cells, nearest first (section 3)."""
    about = run["runs"][()]
    outside = {key[0] for key, cell in run["cells"].items() if cell["range"] == "outside"}
    answered = answered_of(scores, speed, outside, about["extrapolate"])
    shares = {key[0]: cell.get("weight") for key, cell in run["cells"].items()}
    unranked = unlearnt_of(run, answered, shares)
    names, cells = ranked_of({name: answered[name] for name in answered if name not in unranked})
    inputs = {key[0]: cell["input"] for key, cell in run["cells"].items()}
    asks = about["asks"].split(" ")
    scope = about["scope"]
    read_at = about.get("read_at", "raw")  # bundles of earlier versions have no such column
    stretches = stretches_of(about) if speed == read_at else [1.0]
    workloads = {key[0]: cell.get("workload", "") for key, cell in run["cells"].items()}
    given = (about["level"], read_at, stretches, inputs, workloads, anew_of(run))
    left_out = len(outside) if about["extrapolate"] == "out" else 0
    ranked = (answered, names, cells, unranked, left_out, shares)
    found = Subject(asks, about["asked"], scope, *given, *ranked)
    names.sort(key=lambda model: (found.error(model, cells), model))
    return found


def relative_weights(shares: List[Any]) -> List[float]:
    """How much each cell counts, 1 on average; *shares* are `None` where all count alike."""
    if None in shares or len(set(shares)) <= 1:
        return [1.0] * len(shares)
    total = math.fsum(shares)
    return [len(shares) * share / total for share in shares]


def unlearnt_of(run: Tables, answered: Dict[str, Dict[str, Row]], shares: Any) -> Set[str]:
    """Models that do not reproduce the jobs they learnt from (section 3)."""
    misses = defaultdict(list)  # type: Any
    for row in run.get("predictions", {}).values():
        miss = row.get(MISS)
        if miss is not None and row["cell"] in answered.get(row["model"], ()):
            misses[row["model"]].append((abs(miss), shares.get(row["cell"])))
    unlearnt = set()
    for model, known in misses.items():
        weights = relative_weights([share for _, share in known])
        if mean_of([size for size, _ in known], weights) > MOST_IN_SAMPLE:
            unlearnt.add(model)
    return unlearnt


def anew_of(run: Tables) -> Any:
    """Rows of job times by profiles without some trials, in their order (section 4)."""
    if not all("any_profile" in row for row in run.get("comparisons", {"": {}}).values()):
        return None
    anew = defaultdict(list)  # type: Any
    for row in run["predictions"].values():
        if row.get("repeat") is not None and row["quantity"] == "job_s":
            anew[row["model"], row["cell"]].append(row)
    for rows in anew.values():
        rows.sort(key=lambda row: row["repeat"])
    return anew


def stretches_of(about: Row) -> List[float]:
    """By which factors predicted over measured times are larger at the ends of the drift."""
    if about.get("drift") is None:
        return [1.0]
    return [1.0, about["drift_low"] / about["drift"], about["drift_high"] / about["drift"]]


def ranked_of(answered: Dict[str, Dict[str, Row]]) -> Tuple[List[str], List[str]]:
    """The models that are ranked, and the cells that all of them answer (section 3)."""
    most_cells = max(map(len, answered.values()), default=0)
    ranked = {model: row for model, row in answered.items() if 2 * len(row) >= most_cells}
    while ranked and not set.intersection(*map(set, ranked.values())):
        del ranked[max(ranked, key=lambda model: (-len(ranked[model]), model))]
    cells = sorted(set.intersection(*map(set, ranked.values()))) if ranked else []
    return [*ranked], cells


def compared(about: Subject, speed: str) -> Table:
    """Rows of data/comparisons.csv: the asked family, and all pairs of ranked models."""
    rows = {}  # type: Table
    first, *rivals = about.asks[1:]
    is_family = (about.asks[0], speed) == ("nearer", about.read_at) and about.asked != "explored"
    asked = (first, *rivals) if is_family else ()
    shared = [set(about.scores.get(model, ())) for model in asked]
    if asked and set.intersection(*shared):
        pairs = [(first, rival) for rival in rivals]
        cells = sorted(set.intersection(*shared))
        rows.update(family(about, pairs, asked, cells, ("asked", speed)))
    explored = [*combinations(about.ranked, 2)]
    rows.update(family(about, explored, about.ranked, about.cells, ("explored", speed)))
    return rows


def family(about: Subject, pairs: Any, models: Iterable[str], cells: Any, kind: Any) -> Table:
    """The verdicts on *pairs* of *models* in *cells*: tested together (section 4)."""
    name, speed = kind
    same = first_alike({model: about.row(model, cells) for model in models})
    tested = [*dict.fromkeys((same[a], same[b]) for a, b in pairs if same[a] != same[b])]
    units = about.places(pairs[0][0], cells) if pairs else []
    weights = about.weights(cells)
    tests = {}
    gaps = gaps_of(about, tested, cells, 1.0)
    if len(set(units)) >= FEWEST_UNITS:
        at_each = [
            flip_tests(gaps_of(about, tested, cells, at), units, name, about.level, weights)
            for at in about.stretches
        ]
        tests = dict(zip(tested, map(held_at_all, zip(*at_each))))
    rows = {}  # type: Table
    for a, b in pairs:
        key = same[a], same[b]
        values = (0.0, 0.0, 0.0, 1.0, "equal")  # type: Any
        values += ("equal", 0.0, 0.0)
        if key in tests:
            values = with_verdict(tests[key], about.level)
            values += with_any_profile(about, (key, cells), tests[key], (values[4], name))
        elif key[0] != key[1]:
            gap = gaps[tested.index(key)]
            ends = (min(gap), max(gap), None, "undecided", "", None, None)
            values = (mean_of(gap, weights), *ends)
        columns = ["difference", "low", "high", "chance", "verdict"]
        columns += ANY if about.anew is not None else ()
        rows["job_s", speed, a, b, name] = dict(zip(columns, values), cells=len(cells))
    return rows


def with_any_profile(about: Subject, where: Any, test: Any, kind: Any) -> Any:
    """What is left of a verdict with any profile of this kind, and the ends then (section 4)."""
    difference, low, high, _ = test
    verdict, name = kind
    is_told = verdict != "undecided" or (name == "asked" and low > NEAR)
    if about.anew is None or not is_told:  # in bundles of earlier versions nothing is said of it
        return "", None, None
    spread = profile_spread(about, *where)
    if spread is None:
        return "undecided", None, None
    deviation, freedom = spread
    sides = 1 if name == "asked" else 2
    reach = t_quantile(freedom, about.level / sides) * deviation
    low = difference - math.hypot(difference - low, reach)
    high = difference + math.hypot(high - difference, reach)
    ends = [end if math.isfinite(end) else None for end in (low, high)]
    return (held_verdict(verdict, low, high), *ends)


def held_verdict(verdict: str, low: float, high: float) -> str:
    """What is left of a verdict where the difference lies between these ends."""
    if low > -MARGIN and high < MARGIN:
        return "equal"
    return "nearer" if verdict == "nearer" and not low <= 0 <= high else "undecided"


def profile_spread(about: Subject, pair: Any, cells: Any) -> Any:
    """Deviation of a difference over profiles, and its degrees of freedom; `None`: not known."""
    cells_by_workload = defaultdict(list)  # type: Any
    for cell, weight in zip(cells, about.weights(cells)):
        cells_by_workload[about.workloads[cell]].append((cell, weight))
    variances = []
    freedoms = []
    for weighted_cells in cells_by_workload.values():
        moves = [moved_error(about, model, weighted_cells) for model in pair]
        if None in moves or len(moves[0]) != len(moves[1]):
            return None
        squares = []
        for first_sides, second_sides in zip(*moves):
            gaps = [first - second for first, second in zip(first_sides, second_sides)]
            squares.append((max(map(abs, gaps)) / len(cells)) ** 2)
        variances.append(math.fsum(squares) / len(squares))
        freedoms.append(len(squares) - 1.0)
    total = math.fsum(variances)
    if not total:
        return 0.0, math.fsum(freedoms)
    parts = [variance**2 / freedom for variance, freedom in zip(variances, freedoms)]
    return math.sqrt(total), total**2 / math.fsum(parts)


def moved_error(about: Subject, model: str, weighted_cells: Any) -> Any:
    """By how much a model's weighted error moves with each repeat, both ways; `None`: unknown."""
    moves = []
    for cell, weight in weighted_cells:
        score = about.scores[model][cell]
        times = [row["predicted"] for row in about.anew.get((model, cell), ())]
        if len(times) < 2 or None in times:
            return None
        moves.append([weighted_sides(score, time, len(times), weight) for time in times])
    if len(set(map(len, moves))) > 1:
        return None
    return [[math.fsum(way) for way in zip(*sides_by_cell)] for sides_by_cell in zip(*moves)]


def weighted_sides(score: Row, time: float, repeats: int, weight: float) -> List[float]:
    """By how much an error moves with the *time* of one of *repeats*, stretched, both ways."""
    share = score["predicted"] / score["measured"]
    reach = math.sqrt(repeats - 1) * (time / score["measured"] - share)
    moved_errors = (abs(share + reach - 1), abs(share - reach - 1))
    return [weight * (error - abs(share - 1)) for error in moved_errors]


def gaps_of(about: Subject, pairs: Any, cells: Any, stretch: float) -> List[List[float]]:
    """Errors of the first of each pair less those of the second, at a stretch."""
    errors = {m: about.errors(m, cells, stretch) for m in {m for pair in pairs for m in pair}}
    return [[x - y for x, y in zip(errors[a], errors[b])] for a, b in pairs]


def held_at_all(tests: Any) -> Any:
    """Difference of the first of the tests of a pair, with the widest ends and chance of all."""
    low, high, chance = (list(column) for column in [*zip(*tests)][1:])
    return tests[0][0], min(low), max(high), max(chance)


def first_alike(rows: Dict[str, List[Row]]) -> Dict[str, str]:
    """For each model the first that predicts the same but for rounding: mostly itself."""
    times = {
        model: [row["predicted"] for row in rows_of_model] for model, rows_of_model in rows.items()
    }
    same = {}  # type: Dict[str, str]
    for model, predicted in times.items():
        firsts = [earlier for earlier in same if same[earlier] == earlier]
        alike = (earlier for earlier in firsts if is_alike(predicted, times[earlier]))
        same[model] = next(alike, model)
    return same


def is_alike(times: List[float], other_times: List[float]) -> bool:
    """Whether times are the same but for rounding."""
    return all(abs(x - y) <= NEAR * abs(y) for x, y in zip(times, other_times))


def with_verdict(test: Any, level: float) -> Any:
    """Numbers of a pair as tested, and what they come to."""
    difference, low, high, chance = test
    verdict = "nearer" if chance <= level else "undecided"
    if low > -MARGIN and high < MARGIN:
        verdict = "equal"
    ends = [end if math.isfinite(end) else None for end in (low, high)]
    return (difference, *ends, chance, verdict)


def flip_tests(
    gaps: List[List[float]], units: List[int], side: str, level: float, counts: Any = None
) -> Any:
    """
    Of each pair: difference, both ends, chance; one family, whose signs are flipped together.

    *counts* say how much each cell counts, 1 on average; without them all count alike.
    """
    names = sorted(set(units))
    counts = counts or [1.0] * len(units)
    weights = sums_of(counts, units)
    sums = [sums_of([count * value for count, value in zip(counts, gap)], units) for gap in gaps]
    fold = float if side == "asked" else abs  # type: Any
    lengths = [math.sqrt(math.fsum(x * x for x in unit_sums)) or 1.0 for unit_sums in sums]
    seen = [fold(-math.fsum(x) / length) for x, length in zip(sums, lengths)]
    flips = flip_bytes(len(names))
    flipped = []
    for unit_sums, length in zip(sums, lengths):
        flipped.append([fold(-total / length) for total in flipped_sums(unit_sums, flips)])
    tests = [(0.0, 0.0, 0.0, 1.0)] * len(gaps)
    for place, chance, limit in step_down(seen, flipped, level):
        ends = ends_of(sums[place], weights, limit)
        tests[place] = (math.fsum(sums[place]), *ends, chance)
    return tests


def sums_of(gap: List[float], units: List[int]) -> List[float]:
    """What each unit adds to the mean of *gap*, by the places of the units."""
    by_unit = defaultdict(list)  # type: Any
    for unit, value in zip(units, gap):
        by_unit[unit].append(value)
    return [math.fsum(by_unit[unit]) / len(gap) for unit in sorted(by_unit)]


def flip_bytes(units: int) -> List[bytes]:
    """Signs of each flip, a bit for each unit, 1 is a minus: all, or those of SHAKE-256."""
    length = (units + 7) // 8
    if units <= ALL_FLIPS_TO:
        left = 8 * length - units
        return [(number << left).to_bytes(length, "big") for number in range(2**units)]
    digests = [hashlib.shake_256(str(n).encode()).digest(length) for n in range(1, FLIPS)]
    return [bytes(length), *digests]


def flipped_sums(values: List[float], flips: List[bytes]) -> List[float]:
    """The sum of *values* with the signs of each flip; eight of them are looked up at once."""
    tables = []
    for start in range(0, len(values), 8):
        eight = (values[start : start + 8] + 8 * [0.0])[:8]
        table = [0.0]
        for value in eight:
            table = [total + signed for total in table for signed in (value, -value)]
        tables.append(table)
    return [math.fsum(table[byte] for table, byte in zip(tables, flip)) for flip in flips]


def step_down(seen: List[float], flipped: List[List[float]], level: float) -> Any:
    """Of each place, the clearest first: its chance in the family, and the limit it is held to."""
    order = sorted(range(len(seen)), key=lambda place: -seen[place])
    largest = {}
    so_far = [-math.inf] * len(flipped[0]) if flipped else []
    for place in reversed(order):
        so_far = [*map(max, so_far, flipped[place])]
        largest[place] = so_far
    chance = 0.0
    stopped_at = -math.inf
    for place in order:
        least = seen[place] - NEAR * abs(seen[place])
        flips = len(largest[place])
        chance = max(chance, sum(value >= least for value in largest[place]) / flips)
        limit = max(sorted(largest[place])[-1 - int(level * flips + NEAR)], stopped_at)
        if chance > level:
            stopped_at = limit
        yield place, chance, limit


def ends_of(sums: List[float], weights: List[float], limit: float) -> Tuple[float, float]:
    """Differences that are no farther from what is seen than *limit*: between two roots."""
    seen = math.fsum(sums)
    square = limit * limit
    first = 1 - square * math.fsum(weight * weight for weight in weights)
    second = seen - square * math.fsum(x * weight for x, weight in zip(sums, weights))
    third = seen * seen - square * math.fsum(x * x for x in sums)
    inner = second * second - first * third
    if abs(inner) <= CANCELLED * second * second:
        inner = 0.0  # all units alike: two roots in one
    if abs(first) <= NEAR or (first < 0 and inner <= 0):
        return -math.inf, math.inf
    root = math.sqrt(max(0.0, inner))
    lower = (second - root) / first
    upper = (second + root) / first
    if first > 0:
        return lower, upper
    return (lower if seen >= lower else -math.inf), (upper if seen <= upper else math.inf)


# Controls (section 5) and answers (section 6)


def normal_draws(name: str, cells: int) -> List[List[float]]:
    """Draws of the normal distribution, by SHAKE-256 of *name* (Box and Muller, 1958)."""
    digest = hashlib.shake_256(name.encode()).digest(16 * DRAWS * cells)
    uniform = []
    for start in range(0, len(digest), 8):
        integer = int.from_bytes(digest[start : start + 8], "big")
        uniform.append(((integer >> 11) + 0.5) / 2.0**53)
    pairs = zip(uniform[::2], uniform[1::2])
    drawn = [math.sqrt(-2 * math.log(u)) * math.cos(2 * math.pi * v) for u, v in pairs]
    return [drawn[start : start + cells] for start in range(0, len(drawn), cells)]


def floors_of(rows: List[Row]) -> Any:
    """Floors without a gap; `None` where none is known, or none is above 0."""
    largest = max(row["floor"] or 0.0 for row in rows)
    return [largest if row["floor"] is None else row["floor"] for row in rows] if largest else None


def mean_of(values: List[float], weights: Any = None) -> float:
    """Mean of *values* of cells; *weights* say how much each counts, 1 on average."""
    if not weights:
        return float(mean(values))
    return math.fsum(weight * value for weight, value in zip(weights, values)) / len(weights)


def floor_and_high(rows: List[Row], weights: Any = None) -> Any:
    """Mean error of a perfect model, and what 95 of 100 of its draws do not exceed."""
    floors = floors_of(rows)
    if floors is None:
        return None, None
    draws = normal_draws("perfect", len(rows))
    means = [mean_of([abs(z * w) for z, w in zip(draw, floors)], weights) for draw in draws]
    return mean(means), sorted(means)[round(0.95 * DRAWS) - 1]


def mean_interval(
    errors: List[float], units: List[str], weights: Any = None
) -> Tuple[float, float]:
    """Interval of a mean at 95 %, by Hall's transformation (1992); of few cells their range."""
    if len(set(units)) < INTERVAL_UNITS:
        return min(errors), max(errors)
    names = sorted(set(units))
    weights = weights or [1.0] * len(errors)
    without = [mean_without(name, [*zip(errors, units, weights)]) for name in names]
    moved = [mean(without) - value for value in without]
    largest = max(map(abs, moved))
    centre = mean_of(errors, weights)
    if not largest:
        return centre, centre
    count = len(names)
    shares = [x / largest for x in moved]  # no power of them is too large or small for a number
    variance = mean(x * x for x in shares)
    bend = mean(x**3 for x in shares) / variance**1.5 / (3 * count**0.5)
    bend = bend if abs(bend) >= LEAST_BEND else LEAST_BEND
    student = t_quantile(count - 1)
    spread = ((count - 1) * variance) ** 0.5 * largest
    ends = []
    for end in (student, -student):
        inner = 1 + 3 * bend * (end - bend / 2)
        root = math.copysign(abs(inner) ** (1 / 3), inner)
        ends.append(centre - spread * (root - 1) / bend)
    return max(0.0, min(ends[0], centre)), max(ends[1], centre)


def mean_without(name: str, cells: Any) -> float:
    """The mean of the errors that are not of that unit; *cells*: error, unit and weight of each."""
    kept = [(error, weight) for error, unit, weight in cells if unit != name]
    return math.fsum(error * weight for error, weight in kept) / math.fsum(w for _, w in kept)


def share(value: float) -> str:
    """A share as a claim has it."""
    return f"{100 * value:.1f} %"


def listed(names: List[str]) -> str:
    """Names as a claim has them."""
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]


def cells_text(number: int) -> str:
    """So many cells."""
    return f"{number} cell{'s' if number != 1 else ''}"


def answer(asks: List[str], about: Subject, comparisons: Table) -> str:
    """The sentence that answers what is asked, and how many cells it leaves out (section 6)."""
    found = answer_of_kind(asks, about, comparisons)
    if not about.left_out:
        return found
    verb = "is" if about.left_out == 1 else "are"
    return f"{found} Extrapolated, and left out, {verb} {cells_text(about.left_out)}."


def answer_of_kind(asks: List[str], about: Subject, comparisons: Table) -> str:
    """The sentence that answers a question of that kind."""
    kind, *given = asks
    if kind == "nearer":
        return answer_nearer(given, about, comparisons)[1]
    if kind == "choice":
        return answer_choice(int(given[0]), about)
    if kind == "claims":
        return answer_claims(given[0], about, comparisons)
    if kind == "moved_since":
        return f"It cannot be told: {MOVED_ALONE}. {answer_how_far('best', about, comparisons)}"
    return answer_how_far(given[0], about, comparisons)


def answer_how_far(model: str, about: Subject, comparisons: Table) -> str:
    """How far a model is off, or the best one."""
    is_best = model == "best"
    if is_best and not about.ranked:
        why = "reproduces the jobs it learnt from" if about.unranked else "has an answer"
        return f"It cannot be told: no model {why}."
    model = about.ranked[0] if is_best else model
    cells = about.cells if is_best else sorted(about.scores.get(model, ()))
    if not cells:
        return f"It cannot be told: {model} has no answer in a cell."
    units = about.units(cells)
    weights = about.weights(cells)
    errors_at = [about.errors(model, cells, stretch) for stretch in about.stretches]
    ends_at = [mean_interval(errors, units, weights) for errors in errors_at]
    low, high = min(low for low, _ in ends_at), max(high for _, high in ends_at)
    is_interval = len(set(about.units(cells))) >= INTERVAL_UNITS
    ends = f"{'95 %' if is_interval else 'cells'}: {share(low)} to {share(high)}"
    error = about.error(model, cells)
    off = f"off by {share(error)} on average ({ends}) over {cells_text(len(cells))}, at worst by"
    in_order = about.by_time(model, cells)
    perfect = floor_clause(about.row(model, in_order), error, about.weights(in_order))
    off += f" {share(max(about.errors(model, cells)))}; {perfect}."
    if not is_best:
        return f"{model} is {off}"
    if len(about.ranked) < 2:
        only = f"Only {model} reproduces the jobs it learnt from:"
        return f"{only if about.unranked else f'{model} is'} {off}"
    those = " that reproduce the jobs they learnt from" if about.unranked else ""
    rivals = beside_others(about, comparisons)
    return f"Of {len(about.ranked)} models{those} {model} errs least: {off} {rivals}"


def floor_clause(rows: List[Row], error: float, weights: Any = None) -> str:
    """What a perfect model would have."""
    floor, high = floor_and_high(rows, weights)
    if floor is None:
        return "the noise is not known"
    inside = ", so that this is inside the noise" if error <= high else ""
    return f"a perfect model would be off by {share(floor)}{inside}"


def beside_others(about: Subject, comparisons: Table) -> str:
    """What the best model is beside each of the others."""
    first, *rivals = about.ranked
    verdicts = {rival: pair_of(first, rival, about, comparisons)["verdict"] for rival in rivals}
    holds = any_profile_sentence(pair_of(first, rival, about, comparisons) for rival in rivals)
    if len(rivals) > 1 and set(verdicts.values()) == {"nearer"}:
        return f"It is nearer than each of the others.{holds}"
    clauses = []
    for verdict in ("nearer", "equal", "undecided"):
        chosen = [rival for rival in rivals if verdicts[rival] == verdict]
        clauses += [f"{FATES[verdict]} {listed(chosen)}"] if chosen else []
    return f"It {'; it '.join(clauses)}.{holds}"


def any_profile_sentence(pairs: Iterable[Row]) -> str:
    """Whether what was told of pairs holds with any profile of this kind."""
    told_pairs = [pair for pair in pairs if pair.get("any_profile")]
    lost_pairs = [pair for pair in told_pairs if not is_held(pair)]
    if not told_pairs:
        return ""
    if not lost_pairs:
        return " It holds with any profile of this kind."
    if all(pair["any_low"] is None and pair["any_high"] is None for pair in lost_pairs):
        return " It holds with this profile; how far profiles vary is not known."
    return " It holds with this profile; with another one of its kind it may not."


def is_held(pair: Row) -> bool:
    """Whether what is told of a pair holds with any profile of this kind."""
    is_farther = pair["verdict"] == "undecided" and (pair["any_low"] or 0.0) > NEAR
    return pair["any_profile"] != "undecided" or is_farther


def pair_of(first: str, second: str, about: Subject, comparisons: Table) -> Any:
    """The row of two models as asked, else as explored; with who is the better one."""
    for name in ("asked", "explored"):
        for better, worse in ((first, second), (second, first)):
            row = comparisons.get(("job_s", about.read_at, better, worse, name))
            if row is not None:
                return dict(row, better=better)
    return None


def answer_nearer(models: List[str], about: Subject, comparisons: Table) -> Tuple[str, str]:
    """Whether the first model is nearer than each of the others: in a word, and the sentence."""
    first, *rivals = models
    pairs = {rival: pair_of(first, rival, about, comparisons) for rival in rivals}
    if None in pairs.values():
        return "cannot tell", f"It cannot be told: {why_not_compared(models, about)}."
    fates = {rival: fate(first, pair) for rival, pair in pairs.items()}
    outcome, head = outcome_of(fates)
    cells = sorted(set.intersection(*(set(about.scores[model]) for model in models)))
    if ("job_s", about.read_at, first, rivals[0], "asked") not in comparisons:
        cells = about.cells
    texts = [f"{rival} by {share(about.error(rival, cells))}" for rival in rivals]
    off = f"{first} is off by {share(about.error(first, cells))}, {listed(texts)}"
    over = f"over {cells_text(len(cells))}"
    holds = any_profile_sentence(pairs.values())
    return outcome, f"{head}: {off}, {over}; {fates_text(fates)}.{holds}"


def why_not_compared(models: List[str], about: Subject) -> str:
    """Why two of these models are not compared."""
    missing = [model for model in models if not about.scores.get(model)]
    unranked = [model for model in models if model not in about.ranked]
    shared = set.intersection(*(set(about.scores.get(model, ())) for model in models))
    if not missing and unranked and shared:
        verb = "are" if len(unranked) > 1 else "is"
        return f"{listed(unranked)} {verb} not ranked, and what is explored compares ranked models"
    if not missing:
        return "they share no cell"
    return f"{listed(missing)} {'answer' if len(missing) > 1 else 'answers'} no cell"


def outcome_of(fates: Dict[str, str]) -> Tuple[str, str]:
    """What the fates of a model come to, and how the sentence begins."""
    if set(fates.values()) == {"nearer"}:
        return "yes", "Yes"
    if {"farther", "equal"} & set(fates.values()):
        return "no", "No"
    return "cannot tell", "It cannot be told"


def fates_text(fates: Dict[str, str]) -> str:
    """Than which others a model is nearer, and so on."""
    clauses = []
    for word, text in FATES.items():
        chosen = [rival for rival, found in fates.items() if found == word]
        clauses += [f"it {text} {listed(chosen)}"] if chosen else []
    return "; ".join(clauses)


def fate(first: str, pair: Row) -> str:
    """What is said of the first model of a pair."""
    if pair["verdict"] == "nearer":
        return "nearer" if pair["better"] == first else "farther"
    is_tested = pair["chance"] is not None
    if pair["verdict"] == "undecided" and is_tested and (pair["low"] or 0.0) > NEAR:
        return "farther"
    return str(pair["verdict"])


def answer_choice(tried: int, about: Subject) -> str:
    """Which model chooses best among the settings of each input."""
    groups = [cells for cells in about.settings() if len(cells) > tried]
    if not groups or not about.ranked:
        settings = "two settings" if tried == 1 else f"more than {tried} settings"
        return f"It cannot be told: no input has {settings} that all models answer."
    regrets = {m: [regret(about.row(m, cells), tried) for cells in groups] for m in about.ranked}
    ranked = sorted(regrets, key=lambda model: (mean(regrets[model]), model))
    best = ranked[0]
    chosen = [m for m in ranked if mean(regrets[m]) <= mean(regrets[best]) + NEAR]
    whose = "its" if len(chosen) == 1 else "their"
    choices = f"{whose} first choice"
    if tried > 1:
        choices = f"the best of {whose} first {tried} choices"
    inputs = f"{len(groups)} input{'s' if len(groups) != 1 else ''}"
    verb = "chooses best" if len(chosen) == 1 else "choose equally well"
    text = f"{listed(chosen)} {verb}: {choices} takes {share(mean(regrets[best]))} longer than the"
    text += f" fastest setting, mean over {inputs} with {sum(map(len, groups))} settings in all, at"
    text += f" worst {share(max(regrets[best]))}"
    in_order = [about.row(best, about.by_time(best, cells)) for cells in groups]
    floor = perfect_regret(in_order, tried)
    if floor is not None:
        text += f"; a perfect model would lose {share(floor)}"
    if len(chosen) < len(ranked):
        lost = [f"{model} {share(mean(regrets[model]))}" for model in ranked[len(chosen) :]]
        text += f"; others lose: {', '.join(lost)}"
    return f"{text}."


def regret(rows: List[Row], tried: int) -> float:
    """By how much the best of the first choices takes longer than the fastest setting."""
    order = sorted(rows, key=lambda row: (row["predicted"], -row["measured"]))
    fastest = min(row["measured"] for row in rows)
    return float(min(row["measured"] for row in order[:tried]) / fastest - 1)


def perfect_regret(groups: List[List[Row]], tried: int) -> Any:
    """Mean regret of a perfect model; `None` where a noise is not known."""
    lost = []
    for rows in groups:
        floors = floors_of(rows)
        if floors is None:
            return None
        times = [row["measured"] for row in rows]
        for draw in normal_draws("perfect", len(rows)):
            guesses = [t * (1 + z * floor) for t, z, floor in zip(times, draw, floors)]
            order = sorted(range(len(times)), key=guesses.__getitem__)
            lost.append(min(times[place] for place in order[:tried]) / min(times) - 1)
    return mean(lost)


def answer_claims(paper: str, about: Subject, comparisons: Table) -> str:
    """Which of the claims of a paper hold."""
    found = []
    for title, asks in CLAIMS[paper]:
        _, *models = asks.split(" ")
        found.append((title, *answer_nearer(models, about, comparisons)))
    holding = sum(outcome == "yes" for _, outcome, _ in found)
    details = " ".join(f"{title}: {sentence}" for title, _, sentence in found)
    return f"{holding} of {len(found)} claims of {paper} hold. {details}"


def claim_of(run: Tables, done: List[Row], about: Subject, comparisons: Table) -> List[str]:
    """The sentences of a run's claim; *done* are its scored trials."""
    row = run["runs"][()]
    first = "no model can be ranked."
    if about.scores:
        when = {"sealed": "", "afterwards": "Asked afterwards: "}
        before = when.get(row["asked"], "Explored, not proved: ")
        first = before + answer(about.asks, about, comparisons)
    order = "after the measurement: their models could have been chosen by it."
    if row["blind"] == "true" and all(trial["seal"] == row["sealed"] for trial in done):
        order = f"before what they are scored on was measured: {row['order']}."
    return [
        f"- {row['experiment']} ({row['id']}): {first}",
        basis_sentence(run, done, about),
        f"  The predictions were sealed {order}",
        f"  It holds for {row['hardware']} and these inputs; nothing is said of other systems.",
    ]


def lines_over_runs(name: str, subjects: List[Subject]) -> List[str]:
    """Of several runs of an experiment: how far the best model is off over them (section 6)."""
    shared = [m for m in subjects[0].ranked if all(m in about.ranked for about in subjects)]
    if len(subjects) < 2 or not shared:
        return []
    errors = {m: [about.error(m, about.cells) for about in subjects] for m in shared}
    best = min(shared, key=lambda model: (mean(errors[model]), model))
    first = f"of {len(shared)} models {best} errs least:" if len(shared) > 1 else f"{best} is"
    text = f"- {name} over {len(subjects)} runs: {first} off by {share(mean(errors[best]))} on"
    if len(subjects) < FEWEST_RUNS:
        return [f"{text} average; an interval over runs takes {FEWEST_RUNS} of them."]
    half = t_quantile(len(subjects) - 1) * stdev(errors[best]) / len(subjects) ** 0.5
    low = share(max(0.0, mean(errors[best]) - half))
    high = share(mean(errors[best]) + half)
    return [f"{text} average, between {low} and {high} over such runs (95 %)."]


def basis_sentence(run: Tables, done: List[Row], about: Subject) -> str:
    """On how many trials a claim rests, and what noise their means have."""
    disturbed = sum(trial["disturbed"] != "" for trial in done)
    failed = sum(trial["state"] != "done" for trial in run["trials"].values())
    number = sum(cell["use"] == "score" for cell in run["cells"].values())
    rows = about.row(about.ranked[0], about.cells) if about.ranked else []
    floors = [score["floor"] for score in rows if score["floor"] is not None]
    noise = f"{100 * median(floors):.1f} % (median)" if floors else "not known"
    rests = f"  It rests on {len(done)} trial{'s' * (len(done) != 1)} of {number} scored cell"
    rests += f"{'s' * (number != 1)}, of which {disturbed} {'is' if disturbed == 1 else 'are'}"
    return f"{rests} disturbed and {failed} failed; the noise of a cell's mean is {noise}."


def table_of(run: Tables, about: Subject, comparisons: Table) -> List[str]:
    """The table of a claim: the error of each model, its interval, and whether it is nearest."""
    heading = f"mean relative error by job_s, its interval; cells: {len(about.cells)}"
    lines = [f"{run['runs'][()]['experiment']} ({run['runs'][()]['id']}): {heading}"]
    farther = {
        key[3]
        for key, row in comparisons.items()
        if (key[1], key[4], row["verdict"]) == (about.read_at, "explored", "nearer")
    }
    nearest = [model for model in about.ranked if model not in farther]
    is_decided = len(nearest) == 1
    for model in about.ranked:
        errors = about.errors(model, about.cells)
        units = about.units(about.cells)
        low, high = mean_interval(errors, units, about.weights(about.cells))
        place = beside_first(model, about, comparisons)
        if model == about.ranked[0]:
            place = "nearest" if is_decided else "undecided"
        if len(about.ranked) == 1:
            place = "alone"
        ends = f"{low:.1%} to {high:.1%}"
        lines.append(f"  {model:<20} {about.error(model, about.cells):8.1%}  {ends:>16}  {place}")
    for model in sorted({*about.scores} - {*about.ranked}):
        why = "it answers too few cells"
        if model in about.unranked:
            why = f"it misses the jobs it learnt from by more than {MOST_IN_SAMPLE:.0%}"
        lines.append(f"  {model:<20} not ranked: {why}")
    return lines


def beside_first(model: str, about: Subject, comparisons: Table) -> str:
    """What is said of a model beside the one that errs least."""
    key = ("job_s", about.read_at, about.ranked[0], model, "explored")
    row = comparisons.get(key, {"verdict": "undecided"})
    return "farther" if row["verdict"] == "nearer" else str(row["verdict"])


def compare(file: str, stored: Table, computed: Table) -> None:
    """An error for the first row or number of a file that is not as computed."""
    for key in [*computed, *stored]:
        for column, value in computed.get(key, {"row": "no such row"}).items():
            found = stored[key].get(column, "this row") if key in stored else "no such row"  # type: Any
            least = 1e-12 if column in PAIR[2:] else 1e-300  # where shares may cancel
            are_numbers = isinstance(found, float) and isinstance(value, (float, int))
            is_near = are_numbers and math.isclose(found, value, rel_tol=1e-9, abs_tol=least)
            if found != value and not is_near:
                raise ValueError(f"{file} {key} {column}: stored {found}, computed {value}")


def check_run(run: Tables) -> Tuple[List[str], List[str], Subject]:
    """The table of a run's claim, its sentences and subject; an error where its rows differ."""
    trials = run["trials"]
    states = {key: (trial["use"], trial["state"]) for key, trial in trials.items()}
    done = {key for key in states if states[key] == ("score", "done")}
    profiling = profiling_trials(run, done)
    for key in sorted((done | profiling) ^ {key[:2] for key in run["measurements"]}):
        is_stored = key in {row[:2] for row in run["measurements"]}
        found = "stored are rows of it, and it is no done scored trial"
        why = found if is_stored else "stored is no row of it, and it is a done trial that counts"
        raise ValueError(f"data/measurements.csv {key}: {why}")
    scores = scored(run["measurements"], run["predictions"].values(), profiling)
    compare("data/scores.csv", run["scores"], scores)
    comparisons = {}  # type: Table
    for speed in ("raw", "reference"):
        comparisons.update(compared(subject(run, scores, speed), speed))
    compare("data/comparisons.csv", run["comparisons"], comparisons)
    about = subject(run, scores, run["runs"][()].get("read_at", "raw"))
    claim = claim_of(run, [trials[key] for key in done], about, comparisons)
    return table_of(run, about, comparisons), claim, about


def profiling_trials(run: Tables, done: Set[Any]) -> Set[Any]:
    """Trials by which noise is known: of workloads of which no scored cell was *done* twice."""
    workloads = {key[0]: cell["workload"] for key, cell in run["cells"].items()}
    numbers = Counter(cell for cell, _ in done)
    repeated = {workloads[cell] for cell, number in numbers.items() if number > 1}
    once = {workloads[cell] for cell in numbers} - repeated
    return {
        key
        for key, trial in run["trials"].items()
        if (trial["use"], trial["state"]) == ("profile", "done") and workloads[key[0]] in once
    }


def check_question(folder: Path, about: Row) -> None:
    """An error where a run says that its question was sealed, or not, and its seal says else."""
    place = f"data/runs.csv {about['id']}: stored as {about['asked']}"
    if about["asked"] not in ("sealed", "explored", "afterwards") or "/" in about["id"]:
        raise ValueError(f"{place}; it is sealed, explored or afterwards, and an id has no slash")
    name = f"runs/{about['id']}/predictions/sealed.json"
    seal = read_json(folder / name)
    originals = read_json(folder / f"runs/{about['id']}/originals.json")["files"]
    measured = originals["predictions/sealed.json"]
    if about["sealed"] != measured:
        found = f"data/runs.csv {about['id']}: stored is the seal {about['sealed'][:16]}"
        raise ValueError(f"{found}, another seal than was measured: {measured[:16]}")
    if not is_as_sealed(seal, originals):
        raise ValueError(f"{name}: stored is another seal than was measured: {measured[:16]}")
    question = seal.get("question")
    if about["asked"] == "sealed" and (question is None or question["anyway"]):
        raise ValueError(f"{place}, and {name} holds no such question")
    if about["asked"] == "afterwards" and question is not None and about["blind"] == "true":
        raise ValueError(f"{place}, and {name} holds a question")
    if about["asked"] == "sealed":
        asks = asks_of(question)
        stored = [about["asks"], about["scope"], about["extrapolate"]]
        if question["moved_since"]:  # the earlier run may be called otherwise in a bundle
            asks[0] = "moved_since"
            stored[0] = stored[0].split(" ")[0]
        if asks != stored:
            raise ValueError(f"{place}, and {name} asks {asks}")


def check_order(folder: Path, about: Row) -> None:
    """An error where a run says that somebody outside saw its seal, and nobody has answered."""
    if "/" in about["id"] or about["order"] == "blind by the owner's word":
        return
    place = f"data/runs.csv {about['id']} order: stored '{about['order']}'"
    name = f"runs/{about['id']}/anchors/seal.json"
    if not (folder / name).is_file():
        raise ValueError(f"{place}, and there is no {name}")
    anchor = read_json(folder / name)
    if anchor["error"] or anchor["sha256"] != about["sealed"]:
        raise ValueError(f"{place}, and {name} is of another seal, or of none")
    expected = f"blind, anchored by {told_of(anchor)}"
    if about["order"] != expected:
        raise ValueError(f"{place}, computed '{expected}'")
    if not is_answered(anchor):
        raise ValueError(f"{place}, and the answer in {name} is no time stamp of that seal")


def told_of(anchor: Row) -> str:
    """Who was told of a seal: by name, or by the host or the program in the command."""
    command = anchor["command"]
    address = ADDRESS.search(command)
    try:
        words = shlex.split(command)
    except ValueError:
        words = command.split()
    program = words[0].rpartition("/")[2] if words else ""
    return str(anchor.get("name") or (address[1] if address else program or "a command"))


def is_answered(anchor: Row) -> bool:
    """Whether an answer is a stamp of the seal that was told, or one that need not be a stamp."""
    answer = base64.b64decode(anchor["answer"])
    text = answer  # type: Any
    encoded = b""
    with suppress(ValueError, RecursionError):  # it is no JSON
        document = json.loads(answer.decode("utf-8"))
        text = document.get("stamp") if isinstance(document, dict) else answer
    with suppress(ValueError):  # it is no base64
        encoded = base64.b64decode(text) if isinstance(text, (str, bytes)) else b""
    stamps = [data for data in (answer, encoded) if data[:1] == b"0" and STAMP in data]
    if not stamps:
        return re.search(r"\banchor\s+tsa\b", anchor["command"]) is None
    told = anchor["sha256"]
    kinds = ("sha512", "sha256", "sha384")
    imprints = [hashlib.new(kind, told.encode()).digest() for kind in kinds]
    return any(imprint in stamps[0] for imprint in [*imprints, bytes.fromhex(told)])


def read_json(path: Path) -> Any:
    """What a JSON file of the bundle holds."""
    return json.loads(path.read_bytes().decode("utf-8"))


def is_as_sealed(seal: Row, originals: Dict[str, str]) -> bool:
    """
    Whether a seal is the one that was measured, but for the hashes of its files.

    Files in which names were changed have others in a bundle: with the hashes of what was measured
    it has to be the measured one, byte for byte.
    """
    measured = dict(seal, sha256={name: originals.get(name, "") for name in seal["sha256"]})
    forms = [measured]
    if measured.get("question", "") is None:  # which seals of earlier versions do not have
        forms.append({key: value for key, value in measured.items() if key != "question"})
    texts = [json.dumps(form, indent=2, sort_keys=True, allow_nan=False) + "\n" for form in forms]
    hashes = [hashlib.sha256(text.encode()).hexdigest() for text in texts]
    return originals["predictions/sealed.json"] in hashes


def check_settings(folder: Path, run: Tables) -> None:
    """An error where the level of a run, or input or weight of a cell, is not what was measured."""
    about = run["runs"][()]
    experiment = read_json(folder / f"runs/{about['id']}/manifest.json")["experiment"]
    level = LOOK_LEVEL if experiment.get("repeat") == UNTIL_DECIDED else LEVEL
    if about["level"] != level:
        found = f"stored is the level {about['level']}"
        raise ValueError(f"data/runs.csv {about['id']}: {found}, computed {level}")
    trials = run["trials"]
    scored_rows = [
        row
        for key, row in run["measurements"].items()
        if trials.get(key[:2], {}).get("use") == "score"
    ]
    speed = speed_of(about, scored_rows)
    if about.get("read_at", "raw") != speed:
        found = f"stored is the speed {about.get('read_at')}"
        raise ValueError(f"data/runs.csv {about['id']}: {found}, computed {speed}")
    weights = {}  # type: Dict[str, float]
    if experiment.get("design", {}).get("kind") == "drawn":
        draw = read_json(folder / f"runs/{about['id']}/predictions/drawn.json")
        weights = {row["cell"]: row["weight"] for row in draw["candidates"] if row["count"]}
    for key, cell in run["cells"].items():
        weight = cell.get("weight")
        drawn = weights.get(key[0])
        if weight != drawn:
            raise ValueError(f"data/cells.csv {key}: stored is the weight {weight}, drawn {drawn}")
        expected = f"{cell['workload']} {cell['input_bytes']}"
        if cell["input"] != expected:
            raise ValueError(f"data/cells.csv {key}: stored {cell['input']}, computed {expected}")


def check_system(folder: Path, runs: List[Row]) -> None:
    """An error for the first fact of `system.json` that the manifest of its run contradicts."""
    shown = read_json(folder / "system.json")["experiments"]
    left = dict(shown)
    for about in sorted(runs, key=lambda row: str(row["id"])):
        if "/" in about["id"]:
            raise ValueError(f"data/runs.csv id: stored '{about['id']}', which is no name of a run")
        name = about["experiment"]
        while name not in left and name + " again" in shown:
            name += " again"
        if name not in left:
            raise ValueError(f"system.json: it has nothing about {about['id']}")
        facts = left.pop(name)
        manifest = read_json(folder / "runs" / about["id"] / "manifest.json")
        versions = manifest.get("versions") or {}
        for place, shown_facts, stored in (
            ("client", facts["client"], manifest.get("machine")),
            ("nodes", facts["nodes"], manifest.get("systems")),
            ("harness", facts["harness"], {**manifest, "version": manifest.get("harness")}),
            ("hadoop.version", facts["hadoop"]["version"], versions.get("hadoop")),
            ("hadoop.jars", facts["hadoop"]["jars"], versions.get("jars")),
            ("hadoop.on the nodes", facts["hadoop"]["on the nodes"], manifest.get("nodes")),
            ("measured.rates", facts["measured"]["rates"], manifest.get("rates")),
        ):
            contradiction = contradicted(shown_facts, stored, place)
            if contradiction:
                raise ValueError(f"system.json: {name}: {contradiction}")
    if left:
        raise ValueError(f"system.json: no run is of {min(left)}")


def contradicted(shown: Any, stored: Any, place: str) -> str:
    """Where *shown* facts are not the *stored* ones; empty: nowhere, or nothing is stored."""
    if stored in (None, "", {}, []):
        return ""
    if isinstance(shown, dict) and isinstance(stored, dict):
        places = [contradicted(shown[key], stored.get(key), f"{place}.{key}") for key in shown]
        return next(filter(None, places), "")
    is_same_node = str(shown) == f"the same as {stored}"
    return "" if shown == stored or is_same_node else f"{place} is {shown!r}, and was {stored!r}"


def speed_of(about: Row, measurements: Iterable[Row]) -> str:
    """The speed at which verdicts are read (section 4); earlier versions read them as measured."""
    if "read_at" not in about:
        return "raw"
    times = defaultdict(set)  # type: Any
    for row in measurements:
        times[row["cell"], row["trial"], row["quantity"]].add(row["value"])
    is_corrected = any(len(values) > 1 for values in times.values())
    return "reference" if is_corrected or about["drift"] is not None else "raw"


def asks_of(question: Row) -> List[str]:
    """A sealed question, as data/runs.csv has it: what it asks, scope, extrapolate."""
    kind = next(kind for kind in KINDS if question[kind])
    given = question[kind] if isinstance(question[kind], list) else [str(question[kind])]
    extrapolate = str(question["extrapolate"]).lower()  # true, false or out
    return [" ".join([kind, *given]), question["scope"], extrapolate]


def file_hashes(folder: Path) -> Dict[str, str]:
    """SHA-256 of each file but of those that were measured again; an error where one is a link."""
    hashes = {}
    for path in folder.rglob("*"):
        name = path.relative_to(folder).as_posix()
        is_folder = path.is_dir() and not path.is_symlink()
        if is_folder or name.startswith("replications/"):
            continue
        is_plain = path.is_file() and not path.is_symlink()
        most_bytes = 2**25 if path.suffix == ".csv" else 2**28
        if not is_plain or path.stat().st_size > most_bytes:
            raise ValueError(f"{name}: it is a link, no plain file, or too large")
        hashes[name] = hashlib.sha256(path.read_bytes()).hexdigest()
    return hashes


def read_table(name: str, text: str, places: Set[Any]) -> Dict[str, Table]:
    """
    Rows of a table by run; an error where one of them is no row of this bundle.

    *places* are its runs, (run, None), and its cells, (run, cell). The tables of these are read
    first, and add to them.
    """
    rows = defaultdict(dict)  # type: Dict[str, Table]
    columns, *lines = csv.reader(text.splitlines(keepends=True), strict=True)
    for fields in lines:
        row = read_row(columns, fields)
        key = tuple(row[column] for column in KEYS if column in row)
        place = (row["run"], row.get("cell"))
        if name in ("runs", "cells"):
            places.add(place)
        numbers = [value for value in row.values() if isinstance(value, float)]
        is_good = len(fields) == len(columns) and all(abs(number) < 1e100 for number in numbers)
        is_known = {place, (row["run"], None)} <= places
        wrongs = {
            "is there twice": key in rows[row["run"]],
            "is of a run or a cell that is not known": not is_known,
            "has no value": name == "measurements" and row["value"] is None,
            f"has not {len(columns)} fields, or a number that is too large": not is_good,
        }
        for wrong in (wrong for wrong in wrongs if wrongs[wrong]):
            raise ValueError(f"stored is a row that {wrong}: {key}")
        rows[row["run"]][key] = row
    return rows


def read_row(columns: List[str], fields: List[str]) -> Row:
    """A row by its columns: texts without the apostrophe before them, numbers, `None` for none."""
    row = {}  # type: Row
    for column, field in zip(columns, fields):
        row[column] = field[1:] if field.startswith(GUARDED) else field
    for column in NUMBERS & set(row):
        row[column] = number_of(row[column]) if row[column] else None
    return row


def number_of(text: str) -> float:
    """The number in *text*; an error for what Python alone reads as one: 3_0.6, other digits."""
    if NUMBER.match(text) is None:
        raise ValueError(f"stored is '{text[:80]}', which is no number")
    return float(text)


def check(folder: Path) -> List[str]:
    """The table of the claim; an error where anything is not as it should be."""
    hashes = file_hashes(folder)
    lines = (folder / "SHA256SUMS").read_bytes().decode("utf-8", "replace").split("\n")[:-1]
    stated = {line[66:]: line[:64] for line in lines}
    for name in sorted({*stated, "SHA256SUMS"} ^ {*hashes}):
        raise ValueError(f"{name}: {'the folder' if name in stated else 'SHA256SUMS'} lacks it")
    check_publication(folder)
    tables = {}
    places = set()  # type: Set[Any]
    for name in TABLES:
        file = f"data/{name}.csv"
        try:
            tables[name] = read_table(name, (folder / file).read_bytes().decode("utf-8"), places)
        except (LookupError, OSError, ValueError, csv.Error) as error:
            raise ValueError(f"{file}: {error}") from None
    shown = []  # type: List[str]
    claim = []  # type: List[str]
    titles = {run: (row[()]["experiment"], row[()]["id"]) for run, row in tables["runs"].items()}
    by_name = defaultdict(list)  # type: Any
    for run in sorted(titles, key=lambda run: titles[run]):
        by_name[titles[run][0]].append(run)
    for name, runs in by_name.items():
        subjects = []
        for run in runs:
            rows_of_run = {name: rows[run] for name, rows in tables.items()}
            check_question(folder, rows_of_run["runs"][()])
            check_order(folder, rows_of_run["runs"][()])
            check_settings(folder, rows_of_run)
            table, sentences, about = check_run(rows_of_run)
            shown += table
            claim += sentences
            subjects.append(about)
        claim += lines_over_runs(name, subjects)
    check_system(folder, [rows[()] for rows in tables["runs"].values()])
    check_readme(folder, claim)
    check_reports(folder, claim)
    for name in sorted(stated):
        if stated[name] != hashes[name]:
            found = f"stored has the SHA-256 {hashes[name][:16]}, SHA256SUMS {stated[name][:16]}"
            raise ValueError(f"{name}: {found}")
    return shown


def check_publication(folder: Path) -> None:
    """An error where the bundle does not say how it was published, or a run says otherwise."""
    originals = sorted(folder.glob("runs/*/originals.json"))
    levels = {path: read_json(path).get("level") for path in originals}
    name = "publication.json"
    if not (folder / name).is_file():
        schema = max(map(schema_of, folder.glob("runs/*")), default=1)
        if schema >= SINCE_SCHEMA:
            raise ValueError(f"{name}: it is missing, and runs are of schema {schema}")
        return
    level = read_json(folder / name)["level"]
    for path, found in levels.items():
        if found != level:
            place = path.relative_to(folder).as_posix()
            raise ValueError(f"{place} level: stored '{found}', and {name} has '{level}'")


def schema_of(run: Path) -> int:
    """The newest schema that a run shows: in its records, or by the first line of its chain."""
    names = ("manifest.json", "originals.json", "predictions/sealed.json")
    records = [read_json(run / name) for name in names if (run / name).is_file()]
    schemas = [1, *(int(record.get("schema_version", 1)) for record in records)]
    chain = run / "trials.jsonl"
    if chain.is_file():
        first = json.loads(chain.read_bytes().decode("utf-8").split("\n")[0] or "{}")
        is_manifest = first.get("name") == "manifest.json"
        schemas.append(SINCE_SCHEMA if is_manifest else int(first.get("schema_version", 1)))
    return max(schemas)


def check_readme(folder: Path, claim: List[str]) -> None:
    """An error for the first line of the claim of README.md that is not as computed."""
    stored = (folder / "README.md").read_bytes().decode("utf-8", "replace").split("\n")
    if "<!-- claim -->" not in stored:
        raise ValueError("README.md: stored is no line '<!-- claim -->', which a claim begins with")
    first = stored.index("<!-- claim -->") + 1
    for number, line in enumerate([*claim, "<!-- /claim -->"], first):
        if stored[number : number + 1] != [line]:
            raise ValueError(f"README.md: stored {stored[number : number + 1]}, computed {line}")


def check_reports(folder: Path, claim: List[str]) -> None:
    """An error where the report of a run, as text, has another answer than the claim."""
    reports = sorted(folder.glob("report*.md"))
    pages = [path.read_bytes().decode("utf-8", "replace") for path in reports]
    texts = [page.replace("\\", "") for page in pages]
    answers = [line.partition("): ")[2] for line in claim if line.startswith("- ")]
    for answer in answers:
        if texts and not any(answer in text for text in texts):
            raise ValueError(f"{reports[0].name}: no report answers: {answer}")


def summary(folder: Path) -> str:
    """What was checked, and what was not, of a bundle that is borne out."""
    files = len((folder / "SHA256SUMS").read_bytes().split(b"\n")) - 1
    anchors = len([*folder.glob("runs/*/anchors/*.json")])
    return (
        f"verified: SHA256SUMS ({files} files), that scores, comparisons and the claim follow from"
        " data/, and system.json from the manifests; not checked: who signed anchors"
        f" ({anchors}; harness anchor check RUN --certificate FILE), laws between records (harness"
        " verify), that data/ follows from what was recorded (harness reproduce)"
    )


def problem_of(error: Exception) -> str:
    """What is wrong, in one line: whatever is damaged, there is no traceback."""
    if isinstance(error, KeyError):
        return f"a table or a record lacks the column or key {error}"
    if isinstance(error, OSError):
        return f"{error.filename}: it cannot be read: {error.strerror}"
    if type(error) is ValueError:
        return str(error)
    return f"a table or a record has something else than it should: {type(error).__name__}: {error}"


def main(folder: Path) -> int:
    """Check the bundle in *folder*, and say what was found; the exit status."""
    is_unpacked = (folder / "SHA256SUMS").is_file()
    is_archive = folder.name.endswith(PACKED) and folder.is_file()
    if is_archive or ((folder / "bundle.tar.gz").is_file() and not is_unpacked):
        print(f"{folder}: {UNPACK}".encode("unicode_escape").decode(), file=sys.stderr)
        return 1
    try:
        lines = [*check(folder), summary(folder)]
    except Exception as error:  # noqa: BLE001  (whatever is damaged, there is no traceback)
        problem = problem_of(error)[:MOST_SHOWN].encode("unicode_escape").decode()
        print(f"{problem}\n  fix: {FIX}", file=sys.stderr)
        return 1
    for line in lines:
        print(line.encode("unicode_escape").decode())
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent))
