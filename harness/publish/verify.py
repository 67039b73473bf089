"""
Check this bundle with nothing but Python 3.6 or later: python3 -I -S verify.py [FOLDER].

What is checked, in this order (`check`, the last function, goes through it):

1. SHA256SUMS lists all files of the folder and no others; none of them is a link.
2. Each row of the tables of data/ is there once, is of a known cell, and its numbers are finite.
3. Measured are the trials that are done and scored, each of them and no others.
4. data/scores.csv follows from data/measurements.csv and data/predictions.csv.
5. data/comparisons.csv follows from the scores and from what the refits predict.
6. The claim of README.md follows from scores and comparisons, word by word.
7. Each file has the SHA-256 that SHA256SUMS states.

Steps 3 to 5 are done run by run, by the formulas of docs/scores.md; the functions name its sections
(1 to 4). Numbers agree to 1e-9 of themselves. Nothing follows from data/intervals.csv: it is shown.

It ends with 0 and the table of the claim, or with 1 and what differs first; and it writes nothing.
"""

import csv
import hashlib
import math
import sys

from collections import defaultdict
from itertools import chain, combinations
from pathlib import Path
from statistics import mean, median, pvariance, stdev
from typing import Any, Dict, Iterable, List, NamedTuple, Set, Tuple

Row = Dict[str, Any]
Table = Dict[Tuple[Any, ...], Row]  # rows of a run, by their columns of KEYS
Tables = Dict[str, Table]  # of a run, by their names

TABLES = ("runs", "cells", "trials", "measurements", "predictions", "scores", "comparisons",
          "intervals")  # fmt: skip
KEYS = ("cell", "trial", "model", "quantity", "refit", "speed", "better", "worse", "metric",
        "workload")  # fmt: skip
SCORE = ("predicted", "measured", "trials", "floor", "signed_error", "relative_error", "i_accu")
PAIR = ("cells", "chance", "difference", "low", "high")
NUMBERS = {*SCORE, *PAIR, "level", "refit", "value", "low_90", "high_90"}
# A text that a spreadsheet would take for a formula has an apostrophe before it.
GUARDED = tuple("'" + first for first in "=+-@\t\uff1d\uff0b\uff0d\uff20")

OWN_SPREAD_TRIALS = 6  # from so many trials on, a cell has a spread of its own (section 2)
MOST_FRAME = 0.3  # share of the time of jobs that are compared (section 3)
FEWEST_REFITS = 4  # with fewer, the profile counts as given (section 4)
FEWEST_UNITS = 3  # with fewer inputs, each cell is a unit (section 4)
INTERVAL_CELLS = 6  # with fewer, the interval is the range of the gaps (section 4)
MARGIN = 0.02  # mean errors that differ by less are equal (section 4)
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


def t_quantile(freedom: float) -> float:
    """The 0.975 quantile of Student's t, bit by bit from 8 down."""
    t = 0.0
    for exponent in range(3, -45, -1):
        if tail(freedom, t + 2.0**exponent) > 0.025:
            t += 2.0**exponent
    return t


def jackknife_variance(replicates: List[float]) -> float:
    """Variance of a number, by what it is without one unit after the other (Tukey, 1958)."""
    return (len(replicates) - 1) * pvariance(replicates)


def scored(measurements: Iterable[Row], predictions: Iterable[Row]) -> Any:
    """Scores by cell, model, quantity and speed, families by the latter two, predicted times."""
    times = defaultdict(list)  # type: Any
    trials = defaultdict(set)  # type: Any
    for row in measurements:
        times[row["workload"], row["quantity"], row["speed"], row["cell"]].append(row["value"])
        trials[row["cell"]].add(row["trial"])
    times = without_refuted(times)
    answers, predicted = answers_and_times(predictions)
    spreads = squared_spreads(times)
    scores = {}  # type: Table
    errors = defaultdict(dict)  # type: Any
    for key, values in times.items():
        workload, name, speed, cell = key
        measured = math.fsum(values) / len(values)
        pool = spreads[key] if len(values) >= OWN_SPREAD_TRIALS else spreads[key[:3]]
        floor = math.sqrt(mean(pool) / len(values)) if pool else None
        left_out = {"frame_s"}
        if is_mostly_frame(times, workload, cell, len(trials[cell])):
            left_out |= {"job_s", "each_job_s", "published_s"}
        models = answers[name, cell]
        for (model, quantity), answer in models.items():
            whatif = models.get(("whatif", quantity))
            score = score_of(answer, whatif, measured, len(values), floor)
            scores[cell, model, quantity, speed] = score
            if quantity not in left_out:
                errors[quantity, speed].setdefault(model, {})[cell] = score["relative_error"]
    return scores, {kind: family_of(by_model) for kind, by_model in errors.items()}, predicted


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


def answers_and_times(predictions: Iterable[Row]) -> Any:
    """
    What was predicted: rows with an answer by the profile itself, and times by it and its refits.

    Rows are by measured quantity and cell, then by model and the quantity that was predicted; times
    are by cell, model and quantity, NaN where there is no answer.
    """
    answers = defaultdict(dict)  # type: Any
    times = defaultdict(list)  # type: Any
    for row in sorted(predictions, key=lambda row: -1 if row["refit"] is None else row["refit"]):
        time_s = math.nan if row["predicted"] is None else row["predicted"]
        times[row["cell"], row["model"], row["quantity"]].append(time_s)
        if row["refit"] is None and row["predicted"] is not None:
            name = "job_s" if row["quantity"] == "published_s" else row["quantity"]
            answers[name, row["cell"]][row["model"], row["quantity"]] = row
    return answers, times


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


def squared_spreads(times: Any) -> Any:
    """Of each cell, and of all cells of a workload, quantity and speed (section 2)."""
    spreads = defaultdict(list)  # type: Any
    for key, values in times.items():
        if len(values) > 1 and mean(values) > 0:
            spreads[key] = [(stdev(values) / mean(values)) ** 2]
            spreads[key[:3]] += spreads[key] * (len(values) - 1)
    return spreads


def is_mostly_frame(times: Any, workload: str, cell: str, trials: int) -> bool:
    """Whether the frame of a cell is too much of its jobs to compare them (section 3, rule 1)."""
    frame_s = mean(times.get((workload, "frame_s", "raw", cell), [0.0]))
    job_s = sum(times.get((workload, "job_s", "raw", cell), [])) / trials
    return bool(frame_s > MOST_FRAME * job_s > 0)


def family_of(answered: Dict[str, Dict[str, float]]) -> Tuple[Dict[str, float], List[str]]:
    """Mean errors of models on common cells, nearest first, and the cells (section 3, 2 to 4)."""
    most_cells = max(map(len, answered.values()))
    ranked = {model: errors for model, errors in answered.items() if 2 * len(errors) >= most_cells}
    while not set.intersection(*map(set, ranked.values())):
        del ranked[max(ranked, key=lambda model: (-len(ranked[model]), model))]
    cells = sorted(set.intersection(*map(set, ranked.values())))
    means = {}
    for model, errors in ranked.items():
        means[model] = math.fsum(errors[cell] for cell in cells) / len(cells)
    return dict(sorted(means.items(), key=lambda item: (item[1], item[0]))), cells


def compared(family: Any, scores: Table, predicted: Any, inputs: Any, level: float) -> Table:
    """Rows of data/comparisons.csv of a family, by quantity, speed and both models (section 4)."""
    (quantity, speed), (errors, cells) = family
    rows = [scores[cell, min(errors), quantity, speed] for cell in cells]  # any model's will do
    floors, is_noise_known = noise_floors([row["floor"] for row in rows])
    units = [inputs[cell] or (cell,) for cell in cells]
    units = units if len(set(units)) >= FEWEST_UNITS else cells
    measured = {cell: row["measured"] for cell, row in zip(cells, rows)}
    shares = shares_of_models(errors, quantity, predicted, measured)
    pairs = [*combinations(errors, 2)]
    trials = rows[0]["trials"]
    tests = [pair([*zip(shares[a], shares[b])], floors, units, trials) for a, b in pairs]
    correct_by_holm(tests, 0)
    correct_by_holm(tests, 1)
    comparisons = {}
    for (better, worse), (distinct, equal, *numbers) in zip(pairs, tests):
        verdict = "nearer" if distinct <= level and is_noise_known else "undecided"
        if shares[better][0] == shares[worse][0] or (equal <= level and is_noise_known):
            verdict = "equal"
        values = (len(cells), distinct if is_noise_known else None, *numbers)
        comparisons[quantity, speed, better, worse] = dict(zip(PAIR, values), verdict=verdict)
    return comparisons


def noise_floors(floors: List[Any]) -> Tuple[List[float], bool]:
    """Floors without a gap, and whether the noise is known: one floor at least, and one above 0."""
    largest = max(floor or 0.0 for floor in floors)
    if not largest:
        return [1.0] * len(floors), False
    return [largest if floor is None else floor for floor in floors], True


def shares_of_models(models: Any, quantity: str, predicted: Any, measured: Any) -> Any:
    """
    Predicted over measured times of all cells, by model: by the profile, then by each refit.

    Where one has fewer refits than another one, the profile's prediction stands for the rest.
    """
    times = {model: [predicted[cell, model, quantity] for cell in measured] for model in models}
    counts = [len(cell_times) - 1 for cell_times in chain.from_iterable(times.values())]
    refits = max(counts) if min(counts) >= FEWEST_REFITS else 0
    shares = defaultdict(list)  # type: Any
    for model in models:
        padded = [cell_times + refits * cell_times[:1] for cell_times in times[model]]
        for all_cells in [*zip(*padded)][: refits + 1]:
            shares[model].append(tuple(p / y for p, y in zip(all_cells, measured.values())))
    return shares


def pair(shares: Any, floors: List[float], units: List[Any], trials: int) -> List[float]:
    """Of the shares of two models: chances distinct and equal, difference, its low and high end."""
    gaps, *gaps_by_refit = [error_gaps(*two_models) for two_models in shares]
    difference = mean(gaps)
    low = min(gaps)
    high = max(gaps)
    moved = [mean(refit_gaps) for refit_gaps in gaps_by_refit]
    profile = 0.0
    if moved and not math.isnan(sum(moved)):
        profile = jackknife_variance(moved)
    if len(gaps) > 1:
        without = [mean(g for g, u in zip(gaps, units) if u != unit) for unit in set(units)]
        unit_variance = jackknife_variance(without)
        variance = max(unit_variance, noise_variance(shares[0], floors) / 2)
        freedom = joint_freedom(variance, len(without), profile, len(moved))
        z = math.sqrt(variance + profile) or 1.0
        distance = abs(difference) / z
        inner = (MARGIN - abs(difference)) / z
        if len(gaps) >= INTERVAL_CELLS:
            half = t_quantile(freedom) * math.sqrt(unit_variance + profile)
            low = difference - half
            high = difference + half
    else:
        freedom = max(1, trials - 1)
        if profile > 0:
            freedom = min(freedom, len(moved) - 1)
        distance, inner = distances_in_a_cell(shares[0], math.sqrt(floors[0] ** 2 + profile / 4))
    if shares[0][0] == shares[0][1]:
        return [1.0, 0.0, difference, low, high]
    # Equal is by two one-sided tests (Schuirmann, 1987): the nearer end of the margin decides.
    return [2 * tail(freedom, distance), tail(freedom, inner), difference, low, high]


def error_gaps(shares_a: Iterable[float], shares_b: Iterable[float]) -> List[float]:
    """Relative error of the first model less that of the second, in each cell."""
    return [abs(share_a - 1) - abs(share_b - 1) for share_a, share_b in zip(shares_a, shares_b)]


def noise_variance(two_models: Any, floors: List[float]) -> float:
    """How much of the difference's variance the repeats alone explain: noise^2."""
    noise = 0.0
    for lower, upper, floor in zip(map(min, *two_models), map(max, *two_models), floors):
        cell_noise = (upper - lower) * min(floor, 1)
        if lower - 2 * floor < 1 < upper + 2 * floor:
            cell_noise = min(upper - lower, (lower + upper) * floor)
        noise += (cell_noise / len(floors)) ** 2
    return noise


def joint_freedom(variance: float, units: int, profile: float, refits: int) -> float:
    """Degrees of freedom of both variances (Welch, Satterthwaite), at most those of the units."""
    w = variance / (variance + profile or 1.0)
    return min(units - 1.0, 1 / (w**2 / (units - 1) + (1 - w) ** 2 / max(1, refits - 1)))


def distances_in_a_cell(two_models: Any, z: float) -> Tuple[float, float]:
    """
    How far the measured mean of the one cell, 1 here, lies from where a verdict changes.

    That is the middle of both predictions, where their errors are equal; and the nearer one of the
    two values where their errors differ by the margin (below 0 beyond it).
    """
    (lower,), (upper,) = sorted(two_models)
    middle = (lower + upper) / 2
    shortest = min((upper - lower) / MARGIN, middle / (1 + MARGIN / 2))
    longest = middle / (1 - MARGIN / 2)
    if upper - lower < MARGIN * upper:
        longest = math.inf  # above the middle, the errors then never differ by the margin
    return abs(1 - middle) / z, min(1 - shortest, longest - 1) / z


def correct_by_holm(tests: List[List[float]], place: int) -> None:
    """Correct the chance at that place of each test for the number of tests (Holm, 1979)."""
    corrected = 0.0
    for rank, test in enumerate(sorted(tests, key=lambda test: test[place])):
        corrected = min(1.0, max(corrected, (len(tests) - rank) * test[place]))
        test[place] = corrected


class Ranking(NamedTuple):
    """What a claim is about: mean errors by model, nearest first, and which are the nearest."""

    quantity: str
    errors: Dict[str, float]
    cells: List[str]
    nearest: List[str]


def ranking(families: Any, comparisons: Table) -> Ranking:
    """Models by the time of jobs, or of their bodies where these have more than twice the cells."""
    nothing = ({}, [])  # type: Any
    job_cells, body_cells = (families.get((q, "raw"), nothing)[1] for q in ("job_s", "body_s"))
    quantity = "body_s" if len(body_cells) > 2 * len(job_cells) else "job_s"
    errors, cells = families.get((quantity, "raw"), nothing)
    farther = set()
    for (compared_by, speed, _, worse), row in comparisons.items():
        if (compared_by, speed, row["verdict"]) == (quantity, "raw", "nearer"):
            farther.add(worse)
    return Ranking(quantity, errors, cells, [model for model in errors if model not in farther])


def claim_of(run: Tables, done: List[Row], scores: Table, ranked: Ranking) -> List[str]:
    """The sentences of a run's claim; *done* are its scored trials."""
    about = run["runs"][()]
    disturbed = sum(trial["disturbed"] != "" for trial in done)
    failed = sum(trial["state"] != "done" for trial in run["trials"].values())
    number = sum(cell["use"] == "score" for cell in run["cells"].values())
    rows = [scores[cell, ranked.nearest[0], ranked.quantity, "raw"] for cell in ranked.cells]
    floors = [row["floor"] for row in rows if row["floor"] is not None]
    noise = f"{100 * median(floors):.1f} % (median)" if floors else "not known"
    rests = f"  It rests on {len(done)} trial{'s' * (len(done) != 1)} of {number} scored cell"
    rests += f"{'s' * (number != 1)}, of which {disturbed} {'is' if disturbed == 1 else 'are'}"
    rests += f" disturbed and {failed} failed; the noise of a cell's mean is {noise}."
    order = "after the measurement: their models could have been chosen by it."
    if about["blind"] == "true" and all(trial["seal"] == about["sealed"] for trial in done):
        order = "before what they are scored on was measured."
    return [
        f"- {about['experiment']} ({about['id']}): {nearest_sentence(ranked)}",
        rests,
        f"  The predictions were sealed {order}",
        f"  It holds for {about['hardware']} and these inputs; nothing is said of other systems.",
    ]


def nearest_sentence(ranked: Ranking) -> str:
    """Which models are nearest, and how far they are off."""
    if not ranked.nearest:
        return "no model can be ranked."
    *models, last = ranked.nearest
    lowest, highest = (f"{100 * ranked.errors[ranked.nearest[end]]:.1f} %" for end in (0, -1))
    over = f"off on average over {len(ranked.cells)} cell{'s' * (len(ranked.cells) != 1)}"
    if not models:
        return f"{last} is nearest by {ranked.quantity}, {lowest} {over}."
    sentence = f"no model is nearest by {ranked.quantity}: {', '.join(models)} and {last},"
    return f"{sentence} {lowest} to {highest} {over}, cannot be told apart."


def table_of(run: Tables, ranked: Ranking) -> List[str]:
    """The table of a claim: the error of each model, its interval, and whether it is nearest."""
    heading = f"mean relative error by {ranked.quantity}, its interval; cells: {len(ranked.cells)}"
    lines = [f"{run['runs'][()]['experiment']} ({run['runs'][()]['id']}): {heading}"]
    is_near = "nearest" if len(ranked.nearest) == 1 else "undecided"
    for model, error in ranked.errors.items():
        row = run["intervals"].get((model, ranked.quantity, "raw", "mape", "*"), {})
        is_known = row.get("cells") == len(ranked.cells)
        ends = f"{row['low']:.1%} to {row['high']:.1%}" if is_known else ""
        place = "farther" if model not in ranked.nearest else is_near
        lines.append(f"  {model:<20} {error:8.1%}  {ends:>16}  {place}")
    return lines


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


def check_run(run: Tables) -> Tuple[List[str], List[str]]:
    """The table of a run's claim, and its sentences; an error where rows of the run differ."""
    trials = run["trials"]
    states = {key: (trial["use"], trial["state"]) for key, trial in trials.items()}
    done = {key for key in states if states[key] == ("score", "done")}
    for key in sorted(done ^ {key[:2] for key in run["measurements"]}):
        raise ValueError(f"data/measurements.csv {key}: no done scored trial, or one without rows")
    scores, families, predicted = scored(run["measurements"].values(), run["predictions"].values())
    compare("data/scores.csv", run["scores"], scores)
    inputs = {key[0]: cell["input"] for key, cell in run["cells"].items()}
    level = run["runs"][()]["level"]
    comparisons = {}  # type: Table
    for family in families.items():
        comparisons.update(compared(family, scores, predicted, inputs, level))
    compare("data/comparisons.csv", run["comparisons"], comparisons)
    ranked = ranking(families, comparisons)
    return table_of(run, ranked), claim_of(run, [trials[key] for key in done], scores, ranked)


def file_hashes(folder: Path) -> Dict[str, str]:
    """SHA-256 of each file but of those that were measured again; an error where one is a link."""
    hashes = {}
    for path in folder.rglob("*"):
        name = path.relative_to(folder).as_posix()
        is_folder = path.is_dir() and not path.is_symlink()
        if is_folder or name.split("/")[0] == "replications":
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
        if key in rows[row["run"]] or not is_known or not is_good:
            raise ValueError(f"{key} is there twice, of no known cell, or no good row")
        rows[row["run"]][key] = row
    return rows


def read_row(columns: List[str], fields: List[str]) -> Row:
    """A row by its columns: texts without the apostrophe before them, numbers, `None` for none."""
    row = {}  # type: Row
    for column, field in zip(columns, fields):
        row[column] = field[1:] if field.startswith(GUARDED) else field
    for column in NUMBERS & set(row):
        row[column] = float(row[column]) if row[column] else None
    return row


def check(folder: Path) -> List[str]:
    """The table of the claim; an error where anything is not as it should be."""
    hashes = file_hashes(folder)
    lines = (folder / "SHA256SUMS").read_bytes().decode("utf-8", "replace").split("\n")[:-1]
    stated = {line[66:]: line[:64] for line in lines}
    for name in sorted({*stated, "SHA256SUMS"} ^ {*hashes}):
        raise ValueError(f"{name}: {'the folder' if name in stated else 'SHA256SUMS'} lacks it")
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
    for run in sorted(titles, key=lambda run: titles[run]):
        table, sentences = check_run({name: rows[run] for name, rows in tables.items()})
        shown += table
        claim += sentences
    check_readme(folder, claim)
    for name in sorted(stated):
        if stated[name] != hashes[name]:
            raise ValueError(f"{name}: its hash is not that of SHA256SUMS")
    return shown


def check_readme(folder: Path, claim: List[str]) -> None:
    """An error for the first line of the claim of README.md that is not as computed."""
    stored = (folder / "README.md").read_bytes().decode("utf-8", "replace").split("\n")
    first = stored.index("<!-- claim -->") + 1
    for number, line in enumerate([*claim, "<!-- /claim -->"], first):
        if stored[number : number + 1] != [line]:
            raise ValueError(f"README.md: stored {stored[number : number + 1]}, computed {line}")


if __name__ == "__main__":
    try:
        for line in check(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent):
            print(line.encode("unicode_escape").decode())
    except Exception as error:  # noqa: BLE001  (whatever is damaged, there is no traceback)
        sys.exit(f"{type(error).__name__}: {error}".encode("unicode_escape").decode())
