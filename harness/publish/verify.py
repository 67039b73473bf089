"""
Check this bundle with nothing but Python 3.6 or later: python3 -I -S verify.py [FOLDER].

Scores, comparisons and the claim of README.md must follow from the other tables by docs/scores.md.
It ends with 0 and the table of the claim, or with 1 and what differs first; and it writes nothing.
"""

import csv
import hashlib
import math
import sys

from collections import defaultdict
from itertools import combinations
from pathlib import Path
from statistics import mean, median, pvariance, stdev
from typing import Any, Dict, Iterable, List, Tuple

Table = Dict[Tuple[Any, ...], Dict[str, Any]]
TABLES = "runs cells trials measurements predictions scores comparisons intervals"
KEYS = "cell trial model quantity refit speed better worse metric workload"
SCORE = "predicted measured trials floor signed_error relative_error i_accu"
PAIR = "cells chance difference low high"
NUMBERS = set(f"{SCORE} {PAIR} level refit value low_90 high_90".split())
GUARDED = tuple("'" + first for first in "=+-@\t\uff1d\uff0b\uff0d\uff20")  # no formulas
STEPS = [(math.exp(math.pi / 2 * math.sinh(n / 12)), math.cosh(n / 12)) for n in range(-48, 49)]


def compare(file: str, stored: Table, computed: Table) -> None:
    """An error for the first row or number of a file that is not as computed, to 1e-9."""
    for key in [*computed, *stored]:
        for name, value in computed.get(key, {"row": "no such row"}).items():
            known: Any = stored[key].get(name, "this row") if key in stored else "no such row"
            least = 1e-12 if name in PAIR.split()[2:] else 1e-300  # where shares cancel
            are_numbers = isinstance(known, float) and isinstance(value, (float, int))
            is_near = are_numbers and math.isclose(known, value, rel_tol=1e-9, abs_tol=least)
            if known != value and not is_near:
                raise ValueError(f"{file} {key} {name}: stored {known}, computed {value}")


def tail(freedom: float, t: float) -> float:
    """Chance that Student's t is above *t*, by double exponential quadrature."""
    scale, power = 1 + min(abs(t), 1e100), -(freedom + 1) / 2
    front = math.sqrt(math.pi / freedom) * math.exp(math.lgamma(-power) - math.lgamma(freedom / 2))
    total = math.fsum(w * e * (1 + (scale * (1 + e) - 1) ** 2 / freedom) ** power for e, w in STEPS)
    return front * scale / 24 * total if t >= 0 else 1 - front * scale / 24 * total


def scored(measurements: Iterable[Any], predictions: Iterable[Any]) -> Any:
    """Scores (sections 1, 2), families (3), what is predicted by the profile and by its refits."""
    times, squares, trials, scores = defaultdict(list), defaultdict(list), defaultdict(set), {}  # type: Any, Any, Any, Any
    answers, groups, known, families = defaultdict(dict), defaultdict(dict), defaultdict(list), {}  # type: Any, Any, Any, Any
    for row in measurements:
        times[row["workload"], row["quantity"], row["speed"], row["cell"]].append(row["value"])
        trials[row["cell"]].add(row["trial"])
    for row in sorted(predictions, key=lambda row: -1 if row["refit"] is None else row["refit"]):
        time = math.nan if row["predicted"] is None else row["predicted"]
        known[row["cell"], row["model"], row["quantity"]].append(time)
        name = "job_s" if row["quantity"] == "published_s" else row["quantity"]
        if row["refit"] is None and row["predicted"] is not None:
            answers[name, row["cell"]][row["model"], row["quantity"]] = row
    for key, values in times.items():
        if len(values) > 1 and mean(values) > 0:
            squares[key] = [(stdev(values) / mean(values)) ** 2]
            squares[key[:3]] += squares[key] * (len(values) - 1)
    for (workload, name, speed, cell), values in times.items():
        actual = math.fsum(values) / len(values)
        pool = squares[(workload, name, speed, cell)[: 4 if len(values) >= 6 else 3]]
        floor = math.sqrt(mean(pool) / len(values)) if pool else None
        frame_s = mean(times.get((workload, "frame_s", "raw", cell), [0.0]))
        job_s = sum(times.get((workload, "job_s", "raw", cell), [])) / len(trials[cell])
        framed = ("job_s", "each_job_s", "published_s") if frame_s > 0.3 * job_s > 0 else ()
        models = answers[name, cell] if actual > 0 else {}
        for (model, quantity), row in models.items():
            predicted, other = row["predicted"], models.get(("whatif", quantity))
            error = (predicted - actual) / actual
            gain = other and 100 * (abs((other["predicted"] - actual) / actual) - abs(error))
            numbers = predicted, actual, len(values), floor, error, abs(error), gain
            ends = (row["low"], row["high"]), (row["low_90"], row["high_90"])
            covered = ["" if a is None else str(a <= actual <= b).lower() for a, b in ends]
            texts = {"rung": row["rung"], "covered_80": covered[0], "covered_90": covered[1]}
            scores[cell, model, quantity, speed] = dict(zip(SCORE.split(), numbers), **texts)
            if quantity not in ("frame_s", *framed):
                groups[quantity, speed].setdefault(model, {})[cell] = abs(error)
    for kind, answered in groups.items():
        most = max(map(len, answered.values()))
        ranked = {model: off for model, off in answered.items() if 2 * len(off) >= most}
        while not set.intersection(*map(set, ranked.values())):
            del ranked[max(ranked, key=lambda model: (-len(ranked[model]), model))]
        cells = sorted(set.intersection(*map(set, ranked.values())))
        errors = {m: math.fsum(off[c] for c in cells) / len(cells) for m, off in ranked.items()}
        families[kind] = dict(sorted(errors.items(), key=lambda two: two[::-1])), cells
    return scores, families, known


def pair(shares: Any, floors: List[float], units: List[Any], trials: int) -> List[float]:
    """Both chances, difference and its ends of two models (section 4) by shares, then of refits."""
    gaps, *again = [[abs(one - 1) - abs(other - 1) for one, other in zip(*two)] for two in shares]
    moved, difference, low, high, noise = [*map(mean, again)], mean(gaps), min(gaps), max(gaps), 0.0
    profile = (len(moved) - 1) * pvariance(moved) if moved and not math.isnan(sum(moved)) else 0.0
    for lower, upper, floor in zip(map(min, *shares[0]), map(max, *shares[0]), floors):
        is_between = lower - 2 * floor < 1 < upper + 2 * floor
        most = (lower + upper if is_between else upper - lower) * floor
        noise += (min(upper - lower, most) / len(gaps)) ** 2
    if len(gaps) > 1:
        left = [mean(gap for gap, unit in zip(gaps, units) if unit != one) for one in set(units)]
        of_units, freedom, t = (len(left) - 1) * pvariance(left), len(left) - 1.0, 0.0
        variance = max(of_units, noise / 2)
        w, of_profile = variance / (variance + profile or 1.0), max(1, len(moved) - 1)
        freedom = min(freedom, 1 / (w**2 / freedom + (1 - w) ** 2 / of_profile))
        if len(gaps) >= 6:
            for step in range(3, -45, -1):  # the 0.975 quantile, bit by bit
                t += 2.0**step if tail(freedom, t + 2.0**step) > 0.025 else 0.0
            low, high = (difference + end * math.sqrt(of_units + profile) for end in (-t, t))
        z = math.sqrt(variance + profile) or 1.0
        distance, inner = abs(difference) / z, (0.02 - abs(difference)) / z
    else:
        freedom = min([max(1, trials - 1)] + [len(moved) - 1] * (profile > 0))
        z, middle = math.sqrt(floors[0] ** 2 + profile / 4), (lower + upper) / 2
        longest = math.inf if upper - lower < 0.02 * upper else middle / 0.99
        shortest = min((upper - lower) / 0.02, middle / 1.01)
        distance, inner = abs(1 - middle) / z, min(1 - shortest, longest - 1) / z
    chances = 2 * tail(freedom, distance), tail(freedom, inner)
    return [*(chances if shares[0][0] != shares[0][1] else (1.0, 0.0)), difference, low, high]


def compared(family: Any, scores: Table, known: Any, inputs: Any, level: float) -> Table:
    """Rows of data/comparisons.csv of a family, by quantity, speed and models (section 4)."""
    kind, (errors, cells) = family
    rows = [scores[(cell, min(errors), *kind)] for cell in cells]
    largest = max(row["floor"] or 0.0 for row in rows)
    floors = [largest if row["floor"] is None else row["floor"] for row in rows]
    floors = floors if largest else [1.0] * len(cells)
    units = [inputs[cell] or (cell,) for cell in cells]
    units = units if len(set(units)) >= 3 else cells
    times = {model: [known[cell, model, kind[0]] for cell in cells] for model in errors}
    counts = [len(each) for model in errors for each in times[model]]
    numbers, shares, pairs = range(max(counts) if min(counts) > 4 else 1), {}, {}  # type: Any, Any, Table
    for model in errors:
        padded = [(each + len(numbers) * each[:1], row) for each, row in zip(times[model], rows)]
        shares[model] = [tuple(each[n] / row["measured"] for each, row in padded) for n in numbers]
    models, trials = [*combinations(errors, 2)], rows[0]["trials"]
    tests = [pair([*zip(shares[a], shares[b])], floors, units, trials) for a, b in models]
    for place in (0, 1):  # Holm's method
        most = 0.0
        for rank, test in enumerate(sorted(tests, key=lambda test: test[place])):
            most = test[place] = min(1.0, max(most, (len(tests) - rank) * test[place]))
    for (one, other), (distinct, equal, *ends) in zip(models, tests):
        is_equal = shares[one][0] == shares[other][0] or (largest and equal <= level)
        verdict = "nearer" if largest and distinct <= level else "undecided"
        values = len(cells), distinct if largest else None, *ends, "equal" if is_equal else verdict
        pairs[(*kind, one, other)] = dict(zip([*PAIR.split(), "verdict"], values))
    return pairs


def check_run(own: Dict[str, Table]) -> Tuple[List[str], List[str]]:
    """The table of a run's claim, and its sentences; an error where rows of the run differ."""
    run, trials, cells = own["runs"][()], own["trials"], own["cells"]
    done = {k: row for k, row in trials.items() if (row["use"], row["state"]) == ("score", "done")}
    for key in {*done} ^ {key[:2] for key in own["measurements"]}:
        raise ValueError(f"data/measurements.csv {key}: no done scored trial, or one without rows")
    scores, families, known = scored(own["measurements"].values(), own["predictions"].values())
    compare("data/scores.csv", own["scores"], scores)
    inputs, pairs = {key[0]: row["input"] for key, row in cells.items()}, {}  # type: Any, Any
    for family in families.items():
        pairs.update(compared(family, scores, known, inputs, run["level"]))
    compare("data/comparisons.csv", own["comparisons"], pairs)
    jobs, bodies = ((q, *families.get((q, "raw"), ({}, []))) for q in ("job_s", "body_s"))
    name, errors, common = bodies if len(bodies[2]) > 2 * len(jobs[2]) else jobs
    farther = {(*key[:2], key[3]) for key, row in pairs.items() if row["verdict"] == "nearer"}
    near = [model for model in errors if (name, "raw", model) not in farther]
    rows = [scores[cell, near[0], name, "raw"] for cell in common]
    floors = [row["floor"] for row in rows if row["floor"] is not None]
    noise = f"{100 * median(floors):.1f} %" if floors else "not known"
    over, first = f"off on average over {len(common)} cells", "no model can be ranked."
    if near:
        least, most = (f"{100 * errors[model]:.1f} %" for model in (near[0], near[-1]))
        first = f"{near[0]} is nearest by {name}, {least} {over}."
    if len(near) > 1:
        first = f"no model is nearest by {name}: {', '.join(near[:-1])} and {near[-1]},"
        first += f" {least} to {most} {over}, cannot be told apart."
    order = "after the measurement: their models could have been chosen by it."
    if run["blind"] == "true" and all(row["seal"] == run["sealed"] for row in done.values()):
        order = "before what they are scored on was measured."
    disturbed = sum(row["disturbed"] != "" for row in done.values())
    failed = sum(row["state"] != "done" for row in trials.values())
    number = sum(row["use"] == "score" for row in cells.values())
    rests = f"  It rests on {len(done)} trials of {number} scored cells, of which {disturbed} are"
    rests += f" disturbed and {failed} failed; the noise of a cell's mean is {noise} (median)."
    reach = f"  It holds for {run['hardware']} and these inputs; nothing is said of other systems."
    title = f"{run['experiment']} ({run['id']})"
    table = [f"{title}: mean relative error by {name}, its interval; {len(common)} cells"]
    for model, error in errors.items():
        row = own["intervals"].get((model, name, "raw", "mape", "*"), {})
        ends = f"{row['low']:.1%} to {row['high']:.1%}" if row.get("cells") == len(common) else ""
        place = "nearest" if model in near else "farther"
        table.append(f"  {model:<20} {error:8.1%}  {ends:>16}  {place}")
    return table, [f"- {title}: {first}", rests, f"  The predictions were sealed {order}", reach]


def check(folder: Path) -> List[str]:
    """The table of the claim; an error where anything is not as it should be."""
    hashes, tables, known, shown, claim = {}, {}, set(), [], []  # type: Any, Any, Any, List[str], Any
    for path in folder.rglob("*"):
        name, most = path.relative_to(folder).as_posix(), 2**25 if path.suffix == ".csv" else 2**28
        if name.split("/")[0] != "replications" and (path.is_symlink() or not path.is_dir()):
            if path.is_symlink() or not path.is_file() or path.stat().st_size > most:
                raise ValueError(f"{name}: it is a link, no plain file, or too large")
            hashes[name] = hashlib.sha256(path.read_bytes()).hexdigest()
    lines = (folder / "SHA256SUMS").read_bytes().decode("utf-8", "replace").split("\n")[:-1]
    listed = {line[66:]: line[:64] for line in lines}
    for name in sorted({*listed, "SHA256SUMS"} ^ {*hashes}):
        raise ValueError(f"{name}: {'the folder' if name in listed else 'SHA256SUMS'} lacks it")
    for table in TABLES.split():
        rows = tables.setdefault(table, defaultdict(dict))
        try:
            text = (folder / f"data/{table}.csv").read_bytes().decode("utf-8")
            names, *records = csv.reader(text.splitlines(keepends=True), strict=True)
            for texts in records:
                row = dict(zip(names, (text[text.startswith(GUARDED) :] for text in texts)))  # type: Any
                row.update((n, float(row[n]) if row[n] else None) for n in NUMBERS & set(row))
                key = tuple(row[name] for name in KEYS.split() if name in row)
                where = row["run"], row.get("cell")
                known |= {where} if table in ("runs", "cells") else set()
                is_good = {where, (row["run"], None)} <= known and len(texts) == len(names)
                is_good &= all(abs(x) < 1e100 for x in row.values() if isinstance(x, float))
                if key in rows[row["run"]] or not is_good:
                    raise ValueError(f"{key} is there twice, of no known cell, or no good row")
                rows[row["run"]][key] = row
        except (LookupError, OSError, ValueError, csv.Error) as error:
            raise ValueError(f"data/{table}.csv: {error}") from None
    named = {n: (row[()]["experiment"], row[()]["id"]) for n, row in tables["runs"].items()}
    for run in sorted(named, key=lambda n: named[n]):
        lines, sentences = check_run({name: rows[run] for name, rows in tables.items()})
        shown, claim = shown + lines, claim + sentences
    stored = (folder / "README.md").read_bytes().decode("utf-8", "replace").split("\n")
    for n, line in enumerate([*claim, "<!-- /claim -->"], stored.index("<!-- claim -->") + 1):
        if stored[n : n + 1] != [line]:
            raise ValueError(f"README.md: stored {stored[n : n + 1]}, computed {line}")
    for name in sorted(name for name in listed if listed[name] != hashes[name]):
        raise ValueError(f"{name}: its hash is not that of SHA256SUMS")
    return shown


if __name__ == "__main__":
    try:
        for line in check(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent):
            print(line.encode("unicode_escape").decode())
    except Exception as error:  # noqa: BLE001  (whatever is damaged, there is no traceback)
        sys.exit(f"{type(error).__name__}: {error}".encode("unicode_escape").decode())
