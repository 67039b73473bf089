"""
The definitions of docs/scores.md once more, by the standard library alone: a second opinion.

Rows are dictionaries, as a table has them: measurements have cell, trial, quantity, speed, value;
predictions cell, model, rung (the level), quantity, refit (nothing, or its number), predicted, and
the ends of their intervals: low, high, low_90, high_90.
"""

import math
import sys

from collections import defaultdict
from itertools import combinations

MARGIN, LEVELS = 0.02, ("job", "task", "phase")
FRAMED = ("job_s", "each_job_s", "published_s")


def mean(values):
    """Their sum, which is exact, over their number."""
    return math.fsum(values) / len(values)


def beta(a, b, x):
    """Regularised incomplete beta function, by Lentz's continued fraction."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - beta(b, a, 1 - x)
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    log_front += a * math.log(x) + b * math.log1p(-x)
    value, c, d = 1.0, 1.0, 0.0
    for step in range(2000):
        m = step // 2
        if step == 0:
            term = 1.0
        elif step % 2:
            term = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        else:
            term = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        d = 1 / ((1 + term * d) or 1e-300)
        c = (1 + term / c) or 1e-300
        value *= c * d
        if abs(c * d - 1) < 1e-16:
            break
    return math.exp(log_front) / a * (value - 1)


def student(freedom, t):
    """Distribution function of Student's t."""
    tail = beta(freedom / 2, 0.5, freedom / (freedom + t * t)) / 2
    return tail if t < 0 else 1 - tail


def quantile(freedom):
    """The 0.975 quantile of Student's t."""
    low, high = 0.0, 1e4
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if student(freedom, -middle) > 0.025 else (low, middle)
    return high


def holm(chances):
    """Chances corrected for their number, by their places."""
    order, largest, corrected = sorted(range(len(chances)), key=chances.__getitem__), 0.0, {}
    for rank, place in enumerate(order):
        largest = max(largest, chances[place] * (len(chances) - rank))
        corrected[place] = min(largest, 1.0)
    return corrected


def floors_of(times):
    """Noise floors by cell, of *times* by cell."""
    spreads = {}
    for cell, values in times.items():
        if len(values) > 1 and mean(values) > 0:
            squares = math.fsum((value - mean(values)) ** 2 for value in values)
            spreads[cell] = math.sqrt(squares / (len(values) - 1)) / mean(values)
    weights = {cell: len(times[cell]) - 1 for cell in spreads}
    shared = None
    if spreads:
        total = math.fsum(weights[cell] * spread**2 for cell, spread in spreads.items())
        shared = math.sqrt(total / sum(weights.values()))
    own = {cell: spreads.get(cell) if len(times[cell]) >= 6 else shared for cell in times}
    return {
        cell: None if spread is None else spread / math.sqrt(len(times[cell]))
        for cell, spread in own.items()
    }


def jackknife(values):
    """Variance of a number whose values without one unit each are these."""
    middle = mean(values)
    return (len(values) - 1) * mean([(value - middle) ** 2 for value in values])


def pair(shares, floors, units, refits, trials):
    """Difference of two models, its interval, and both chances; *shares* are pairs by cell."""
    gaps = [abs(one - 1) - abs(other - 1) for one, other in shares]
    difference, noise = mean(gaps), 0.0
    for (one, other), floor in zip(shares, floors, strict=True):
        lower, upper = min(one, other), max(one, other)
        is_between = lower - 2 * floor < 1 < upper + 2 * floor
        most = upper - lower
        noise += (min(most, (lower + upper) * floor) if is_between else most * min(floor, 1.0)) ** 2
    noise /= len(gaps) ** 2
    profile = 0.0
    if refits and not any(math.isnan(value) for each in refits for two in each for value in two):
        profile = jackknife(
            [mean([abs(one - 1) - abs(other - 1) for one, other in each]) for each in refits]
        )
    low, high = min(gaps), max(gaps)
    if len(gaps) > 1:
        names = sorted(set(units))
        left = [
            mean([gap for gap, unit in zip(gaps, units, strict=True) if unit != name])
            for name in names
        ]
        of_units = jackknife(left)
        variance, freedom = max(of_units, noise / 2), len(names) - 1.0
        if profile:
            share = variance / max(variance + profile, sys.float_info.min)
            rest = (1 - share) ** 2 / (len(refits) - 1)
            freedom = min(freedom, 1 / (share**2 / freedom + rest))
        if len(gaps) >= 6:
            half = quantile(freedom) * math.sqrt(of_units + profile)
            low, high = difference - half, difference + half
        scale = math.sqrt(variance + profile) or sys.float_info.min
        distance, inner = abs(difference) / scale, (MARGIN - abs(difference)) / scale
    else:
        freedom = max(1, trials - 1)
        freedom = min(freedom, len(refits) - 1) if profile else freedom
        scale = math.sqrt(floors[0] ** 2 + profile / 4)
        lower, upper = sorted(shares[0])
        most = upper - lower
        shortest = most / MARGIN if most < MARGIN * lower else (lower + upper) / (2 + MARGIN)
        longest = math.inf if most < MARGIN * upper else (lower + upper) / (2 - MARGIN)
        distance = abs(1 - (lower + upper) / 2) / scale
        inner = min(1 - shortest, longest - 1) / scale
    if all(one == other for one, other in shares):
        return difference, low, high, 1.0, 0.0
    return difference, low, high, 2 * student(freedom, -distance), student(freedom, -inner)


def scores_of(measurements, predictions, workloads):
    """Every score by cell, model, quantity and speed: what scores.csv has."""
    times, by_workload = defaultdict(list), defaultdict(dict)
    for row in measurements:
        times[row["cell"], row["quantity"], row["speed"]].append(row["value"])
    for (cell, quantity, speed), values in times.items():
        by_workload[workloads[cell], quantity, speed][cell] = values
    floors = {key: floors_of(cells) for key, cells in by_workload.items()}
    known = {
        (row["cell"], row["model"], row["quantity"]): row
        for row in predictions
        if row["predicted"] is not None and row["refit"] is None
    }
    made = {}
    for (cell, model, quantity), row in known.items():
        as_measured = "job_s" if quantity == "published_s" else quantity
        as_measured = "body_s" if row["rung"] == "estimate" else as_measured
        whatif = known.get((cell, "whatif", quantity))
        for speed in ("raw", "reference"):
            values = times.get((cell, as_measured, speed))
            if not values or mean(values) <= 0:
                continue
            actual, predicted = mean(values), row["predicted"]
            error = (predicted - actual) / actual
            accuracy = None
            if whatif:
                accuracy = 100 * (abs(whatif["predicted"] - actual) / actual - abs(error))
            ends = {80: (row["low"], row["high"]), 90: (row["low_90"], row["high_90"])}
            made[cell, model, quantity, speed] = {
                "predicted": predicted,
                "measured": actual,
                "trials": len(values),
                "floor": floors[workloads[cell], as_measured, speed][cell],
                "signed_error": error,
                "relative_error": abs(error),
                "i_accu": accuracy,
                **{
                    f"covered_{level}": low <= actual <= high if low is not None else None
                    for level, (low, high) in ends.items()
                },
            }
    return made


def families(scores, measurements, rungs):
    """Models and common cells of each quantity and speed that are compared."""
    frames, jobs = defaultdict(list), defaultdict(dict)
    for row in measurements:
        if row["speed"] == "raw" and row["quantity"] == "frame_s":
            frames[row["cell"]].append(row["value"])
        if row["speed"] == "raw":
            jobs[row["cell"]].setdefault(row["trial"], 0.0)
        if row["speed"] == "raw" and row["quantity"] == "job_s":
            jobs[row["cell"]][row["trial"]] = row["value"]
    share = {
        cell: mean(values) / (mean([*jobs[cell].values()]) or math.inf)
        for cell, values in frames.items()
    }
    groups = defaultdict(lambda: defaultdict(set))
    for cell, model, quantity, speed in scores:
        is_compared = rungs[model, quantity] in LEVELS and quantity != "frame_s"
        if is_compared and not (quantity in FRAMED and share.get(cell, 0.0) > 0.3):
            groups[quantity, speed][model].add(cell)
    for key, answers in groups.items():
        most = max(map(len, answers.values()))
        ranked = {model for model, cells in answers.items() if 2 * len(cells) >= most}
        while not (common := set.intersection(*(answers[model] for model in ranked))):
            ranked.remove(min(ranked, key=lambda model: (len(answers[model]), model)))
        errors = {
            model: mean([scores[cell, model, *key]["relative_error"] for cell in common])
            for model in ranked
        }
        yield key, sorted(ranked, key=lambda model: (errors[model], model)), sorted(common), errors


def comparisons_of(family, scores, inputs, refits, level):
    """Every pair of a family by its models: what comparisons.csv has."""
    (quantity, speed), models, cells, _ = family
    rows = {model: [scores[cell, model, quantity, speed] for cell in cells] for model in models}
    known = [row["floor"] for row in rows[models[0]] if row["floor"] is not None]
    largest = max(known, default=0.0) or 1.0
    floors = [
        row["floor"] if any(known) and row["floor"] is not None else largest
        for row in rows[models[0]]
    ]
    labels = [inputs[cell] or f"\0{cell}" for cell in cells]
    labels = labels if len(set(labels)) >= 3 else [*range(len(cells))]
    again = {
        (model, cell): refits.get((cell, model, quantity), []) for model in models for cell in cells
    }
    count = max(map(len, again.values())) if min(map(len, again.values())) >= 4 else 0
    pairs, results = list(combinations(models, 2)), []
    for two in pairs:
        shares = [[row["predicted"] / row["measured"] for row in rows[model]] for model in two]
        varied = [
            [
                tuple(
                    (again[model, cell] + [row["predicted"]] * count)[number] / row["measured"]
                    for model, row in ((model, rows[model][place]) for model in two)
                )
                for place, cell in enumerate(cells)
            ]
            for number in range(count)
        ]
        trials = rows[models[0]][0]["trials"]
        results.append(pair(list(zip(*shares, strict=True)), floors, labels, varied, trials))
    distinct, equal = (holm([result[place] for result in results]) for place in (3, 4))
    for place, (two, result) in enumerate(zip(pairs, results, strict=True)):
        verdict, cells_of_two = "undecided", zip(*map(rows.get, two), strict=True)
        is_same = all(one["predicted"] == other["predicted"] for one, other in cells_of_two)
        if is_same or (any(known) and equal[place] <= level):
            verdict = "equal"
        elif any(known) and distinct[place] <= level:
            verdict = "nearer"
        numbers = dict(
            zip(("difference", "low", "high"), result[:3], strict=True), cells=len(cells)
        )
        yield two, verdict, {**numbers, "chance": distinct[place] if any(known) else None}
