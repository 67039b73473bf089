"""
Causes of alarms: what is put into copies of a recorded night, and what the alarms then name.

`nightly.json` is of real trials, cells and controls: all repeats of one run or more, and profiles
fitted on profiling trials drawn from them with replacement, with what each makes models predict.
A night is made of repeats drawn with replacement, one of these profiles, and a factor of its own
for all times (1.5 %).  Where the recorded repeats spread more than 5 %, as on a busy machine, they
and the profiles are brought nearer to their means by one common factor.  In a history of 90 such
nights one cause begins at night 61.  The times that go with it are those that the recorded phases
and costs say, and predictions follow the costs as the models' code has them follow.  The first
alarm from then on must name the cause.

    bench_nightly_causes.py [--series N]         100 histories of each cause
    bench_nightly_causes.py --from RUN...        make nightly.json from folders of runs
"""

import argparse
import itertools
import json
import math
import time

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bench_nightly import MOVED, NIGHTS, SEED, wilson

from harness.base.errors import HarnessError
from harness.base.records.profile import Profile
from harness.core.evaluate.flow import Evaluation
from harness.core.evaluate.predict import predict_cells
from harness.core.store.run import Run
from harness.nightly.alarms import Judge, tables
from harness.nightly.nights import INPUT_OF, PROBE, night
from harness.nightly.records import Alarm, Night, Point
from harness.observe.profiling import fit_profile

FILE = Path(__file__).parent / "nightly.json"
OF_NIGHT, FITS = 0.015, 16
SPREAD, MOVING = 0.05, 0.02  # of repeats at most; of predictions that a cost moves, at least
RESOURCE, COST, ELSE = 1.2, 1.3, 1.1  # factors that are put in
# Of which phases and costs a resource is a part.
PHASES = {"disk": ("map_tail_s", "reduce_rest_s"), "network": ("shuffle_s",)}
COSTS = {"disk": ("write", "spill"), "network": ("copy", "network")}
CONTROLS = {"disk": "dfsio", "network": "shuffle", "framework": "sleep"}
TASKS = ("map_task_s", "reduce_task_s")


class Recording(NamedTuple):
    """
    A night as it was measured; *fits* have costs by their points' names, and seconds that models
    predict by those of residuals; *moves* how the latter change, as logarithms, with each cost.
    """

    night: Night
    fits: list[dict[str, dict[str, float]]]
    moves: dict[str, dict[str, float]]


class Cause(NamedTuple):
    """What is put in: factors by the names of points, and what the alarm should say."""

    name: str
    factors: dict[str, float]  # of measured times, controls and costs, by the points' names
    predicted: dict[str, float]  # of predictions, by the names of residuals
    residual: dict[str, float]
    fact: str = ""
    code: str = ""


# Histories.


def causes(recording: Recording, random: np.random.Generator) -> Iterator[tuple[str, Cause]]:
    """One of each kind, with what can be chosen drawn at random."""
    points = {point.name: point for point in recording.night.points}
    residuals = [point for point in points.values() if point.kind == "residual"]
    yield "nothing", Cause("", {}, {}, {})
    for resource, control in CONTROLS.items():
        if any(point.workload == control for point in points.values()):
            name = f"cluster: {resource}"
            yield f"{name} (x {RESOURCE})", of_resource(name, resource, points)
    slower = [point for point in points.values() if is_time(point) or point.kind == "control"]
    times = {point.name: 1 / ELSE if point.quantity == PROBE else ELSE for point in slower}
    predicted = {point.name: ELSE for point in residuals}
    yield f"machine (x {ELSE})", Cause("machine", times, predicted, {})
    model = random.choice(sorted({point.model for point in residuals}))
    moved = {point.name: ELSE for point in residuals if point.model == model}
    yield f"code (x {ELSE})", Cause(f"code: {model}", {}, {}, moved, code=model)
    moving = [name for name, moves in recording.moves.items() if max(moves.values()) > MOVING]
    cost = random.choice(sorted(moving))
    follow = {name: math.exp(move) for name, move in recording.moves[cost].items()}
    yield f"a cost (x {COST})", Cause("profile", {cost: COST}, follow, {})
    cell = random.choice(sorted({point.cell for point in residuals}))
    own = {name: ELSE for name, point in points.items()
           if point.cell == cell and point.kind == "measured"}  # fmt: skip
    yield f"input (x {ELSE})", Cause("input", own, {}, {}, fact=f"{INPUT_OF}{cell}")
    cells = {name: ELSE for name, point in points.items() if point.kind == "measured"}
    yield f"cells alone (x {ELSE})", Cause("model", cells, {}, {})


def is_time(point: Point) -> bool:
    """Whether it is in seconds, so that a slower machine has more of them."""
    return point.kind == "measured" or point.quantity.endswith("_s") or "_s_per_" in point.quantity


def of_resource(name: str, resource: str, points: Mapping[str, Point]) -> Cause:
    """A resource that takes longer: its control, phases and costs, and what they are part of."""
    factors, predicted = dict[str, float](), dict[str, float]()
    by_cell = defaultdict[str, dict[str, Point]](dict)
    for point in points.values():
        if point.kind == "control" and point.workload == CONTROLS[resource]:
            factors[point.name] = RESOURCE
        elif point.kind == "measured":
            by_cell[point.cell][point.quantity] = point
        elif point.kind == "cost" and any(
            part in point.quantity for part in COSTS.get(resource, ())
        ):
            factors[point.name] = 1 / RESOURCE if point.quantity.endswith("_bps") else RESOURCE
    for cell, of_cell in by_cell.items():
        seconds = {quantity: float(np.mean(point.raw)) for quantity, point in of_cell.items()}
        tasks_s = sum(seconds.get(task, 0.0) for task in TASKS)
        parts = [phase for phase in PHASES.get(resource, ()) if phase in seconds]
        added = {phase: seconds[phase] * (RESOURCE - 1) for phase in parts}
        for task in TASKS:
            own = sum(
                more
                for phase, more in added.items()
                if phase.startswith("map") == task.startswith("map")
            )
            added[task] = own
        share = sum(added[task] for task in TASKS) / tasks_s if tasks_s else 0.0
        added["body_s"] = added["job_s"] = share * seconds.get("body_s", 0.0)
        if resource == "framework":
            added = {"job_s": (RESOURCE - 1) * (seconds["job_s"] - seconds.get("body_s", 0.0))}
        for quantity, more in added.items():
            if quantity in of_cell and more:
                factors[of_cell[quantity].name] = 1 + more / seconds[quantity]
        if "body_s" in added:
            body = 1 + added["body_s"] / seconds["body_s"]
            predicted |= {point.name: body for point in points.values()
                          if point.kind == "residual" and point.cell == cell}  # fmt: skip
    if resource == "framework":
        of_job = [
            point for point in points.values() if point.quantity in ("job_start_s", "job_end_s")
        ]
        factors |= {point.name: RESOURCE for point in of_job}
    return Cause(name, factors, predicted, {})


def history(recording: Recording, cause: Cause, random: np.random.Generator) -> list[Night]:
    nights = []
    for number in range(1, NIGHTS + 1):
        has_moved = number >= MOVED
        points = tuple(made(recording, cause if has_moved else None, random))
        facts, offsets = dict(recording.night.facts), dict[str, float]()
        if has_moved and cause.fact:
            facts[cause.fact] = "another one"
        if has_moved and cause.code:
            offsets = {name: math.log(factor) for name, factor in cause.residual.items()}
        code = (cause.code,) if offsets else ()
        changes = {"time_s": 86400.0 * number, "run": f"night {number}", "points": points,
                   "facts": facts, "offsets": offsets, "code": code}  # fmt: skip
        nights.append(recording.night.model_copy(update=changes))
    return nights


def made(recording: Recording, cause: Cause | None, random: np.random.Generator) -> Iterator[Point]:
    """Points of a night."""
    fit = recording.fits[random.integers(len(recording.fits))]
    of_night = math.exp(OF_NIGHT * random.standard_normal())
    chosen = dict[str, np.ndarray]()  # repeats of each cell, the same for all its quantities
    factors, predicted, residual = (
        (cause.factors, cause.predicted, cause.residual) if cause else ({}, {}, {})
    )
    measured_s = dict[tuple[str, str], np.ndarray]()
    for point in recording.night.points:
        if point.kind in ("measured", "control"):
            places = chosen.get(point.cell or point.quantity)
            if places is None:
                places = random.integers(len(point.raw), size=min(len(point.raw), 4))
                chosen[point.cell or point.quantity] = places
            raw = np.asarray(point.raw)[places] * factors.get(point.name, 1.0)
            raw = raw if point.quantity == PROBE else raw * of_night
            measured_s[point.cell, point.quantity] = raw
        elif point.kind == "cost":
            raw = np.asarray([fit["costs"][point.name] * factors.get(point.name, 1.0)])
            raw = raw * of_night if is_time(point) else raw
        else:
            seconds = fit["predicted_s"][point.name] * predicted.get(point.name, 1.0) * of_night
            raw = measured_s[point.cell, point.quantity] / seconds * residual.get(point.name, 1.0)
        yield point.model_copy(update={"raw": tuple(raw.tolist()), "reference": (), "starts": ()})


def judged(nights: Sequence[Night]) -> list[Alarm]:
    (table,) = tables(nights)
    return Judge(table).judge()


def show(recording: Recording, count: int) -> None:
    head = ("put in", "histories", "named by the first alarm", "in so many nights, median",
            "with an alarm before", "named instead", "and later also")  # fmt: skip
    print("|", " | ".join(head), "|")
    print("|" + "---|" * len(head))
    alarms = defaultdict[str, list[tuple[str, list[Alarm]]]](list)
    for number in range(count):
        random = np.random.default_rng([SEED, number])
        for put_in, cause in causes(recording, random):
            alarms[put_in].append((cause.name, judged(history(recording, cause, random))))
    for put_in, all_alarms in alarms.items():
        early = sum(any(each.raised < MOVED for each in raised) for _, raised in all_alarms)
        named, waits, also, instead = 0, list[int](), Counter[str](), Counter[str]()
        for name, raised in all_alarms:
            late = [each for each in raised if each.raised >= MOVED]
            is_named = bool(late) and late[0].cause == name if name else not late
            named += is_named
            if is_named and late:
                waits.append(late[0].raised - MOVED + 1)
                also.update({each.cause for each in late} - {name})
            elif not is_named:
                instead[late[0].cause if late else "nothing"] += 1
        wait = f"{np.median(waits):g}" if waits else ""
        others = [", ".join(f"{cause} {times}" for cause, times in each.most_common())
                  for each in (instead, also)]  # fmt: skip
        cells = (put_in, f"{count}", wilson(named, count), wait, f"{early}", *others)
        print("|", " | ".join(cells), "|", flush=True)


# Recording.


def record(paths: Sequence[Path]) -> None:
    """Write the file."""
    raw, first, fits, moves = defaultdict[str, list[float]](list), None, [], {}
    for number, path in enumerate(paths):
        evaluation = Evaluation.of(Run(path))
        # Where the machine had other work to do all trials count: this is noise, not a result.
        evaluation.__dict__["done"] = {
            key: each.model_copy(update={"disturbed": ""}) for key, each in evaluation.done.items()
        }
        one = night(evaluation)
        first = first or one
        for point in one.points:
            raw[point.name] += point.raw
        random = np.random.default_rng([SEED, number])
        fits += [drawn(evaluation, random) for _ in range(max(1, FITS // len(paths)))]
        moves = moves or moved_by(evaluation)
    bare = {"reference": (), "starts": ()}
    points = [
        point.model_copy(update={"raw": tuple(raw[point.name]), **bare}) for point in first.points
    ]
    whole = first.model_copy(update={"points": tuple(points), "alarms": ()})
    document = {
        "night": whole.model_dump(mode="json", exclude={"schema_version"}),
        "fits": fits,
        "moves": moves,
    }
    FILE.write_text(rounded(document))
    print(f"{FILE}: {len(points)} points, {len(fits)} fits, {len(moves)} costs that move something")


def rounded(document: object) -> str:
    """JSON, numbers to six digits."""
    text = json.dumps(document)
    short = json.loads(text, parse_float=lambda digits: float(f"{float(digits):.6g}"))
    return json.dumps(short, separators=(",", ":")) + "\n"


def predictions(evaluation: Evaluation, profiles: Mapping[str, Profile]) -> dict[str, float]:
    """Bodies and times of the scored cells' jobs in seconds, by the names of residuals."""
    scored = {trial.cell.id: trial.cell for trial in evaluation.plan
              if not trial.profiling and trial.cell.workload.name in profiles}  # fmt: skip
    cells = [evaluation.resolved[key] for key in scored]
    seconds_of = {}
    for model in evaluation.experiment.predict.models:
        for each, quantity in itertools.product(
            predict_cells(model, cells, profiles, evaluation.resolved), ("body_s", "job_s")
        ):
            point = Point(kind="residual", workload=scored[each.cell].workload.name, model=model,
                          cell=evaluation.labels[each.cell], quantity=quantity, raw=())  # fmt: skip
            if seconds := getattr(each, quantity):
                seconds_of[point.name] = seconds
    return seconds_of


def drawn(evaluation: Evaluation, random: np.random.Generator) -> dict[str, dict[str, float]]:
    """Costs and predictions of profiles fitted on trials drawn with replacement, cell by cell."""
    by_cell = defaultdict[tuple[str, str], list](list)
    for each in evaluation.done.values():
        if each.trial.profiling:
            by_cell[each.trial.cell.workload.name, each.trial.cell.id].append(each)
    known = evaluation.run.read_profiles()
    observed = defaultdict[str, list](list)
    for (workload, _), records in by_cell.items():
        for place in random.integers(len(records), size=len(records)):
            observed[workload] += evaluation.observe(records[place])
    profiles = {name: fit_profile(name, each, known[name].speed) for name, each in observed.items()}
    costs = {
        Point(kind="cost", workload=workload, quantity=name, raw=()).name: cost.value
        for workload, each in profiles.items()
        for name, cost in {**each.statistics, **each.frame, **each.costs}.items()
    }
    return {"costs": costs, "predicted_s": predictions(evaluation, profiles)}


def moved_by(evaluation: Evaluation) -> dict[str, dict[str, float]]:
    """How predictions change with each time of the profile, where they do."""
    profiles = {name: each.model_copy(update={"refits": ()})
                for name, each in evaluation.run.read_profiles().items()}  # fmt: skip
    base, moves = predictions(evaluation, profiles), {}
    for (workload, profile), part in itertools.product(profiles.items(), ("statistics", "costs")):
        for name, cost in getattr(profile, part).items():
            point = Point(kind="cost", workload=workload, quantity=name, raw=())
            if not is_time(point) or cost.value <= 0:
                continue
            more = cost.model_copy(update={"value": cost.value * COST})
            own = profile.model_copy(update={part: {**getattr(profile, part), name: more}})
            try:
                now = predictions(evaluation, {**profiles, workload: own})
            except HarnessError:
                continue
            changes = {key: math.log(now[key] / base[key]) for key in base if key in now}
            if max(map(abs, changes.values()), default=0.0) > 1e-6:
                moves[point.name] = changes
    return moves


def read() -> Recording:
    """The recorded night, its repeats and fits as near to their means as nights are made of."""
    document = json.loads(FILE.read_text())
    whole, fits = Night.model_validate(document["night"]), document["fits"]
    # Costs and predictions that every fit has.
    known = set.intersection(*(
        {name for part in fit.values() for name, value in part.items() if value > 0} for fit in fits
    ))  # fmt: skip
    points = [point for point in whole.points
              if point.kind in ("measured", "control") or point.name in known]  # fmt: skip
    of_jobs = [np.log(point.raw) for point in points if point.quantity == "job_s"]
    spread = math.sqrt(float(np.mean([repeats.var(ddof=1) for repeats in of_jobs])))
    factor = min(1.0, SPREAD / spread)
    print(
        f"{len(of_jobs)} cells, their repeats spread {spread:.1%}, used as {factor * spread:.1%}\n"
    )
    nearer = [point.model_copy(update={"raw": drawn_in(point.raw, factor)}) for point in points]
    for part in ("costs", "predicted_s"):
        for name in known & {*fits[0][part]}:
            values = drawn_in([fit[part][name] for fit in fits], factor)
            for fit, value in zip(fits, values, strict=True):
                fit[part][name] = value
    night_of_points = whole.model_copy(update={"points": tuple(nearer)})
    moves = {name: each for name, each in document["moves"].items() if name in known}
    return Recording(night_of_points, fits, moves)


def drawn_in(values: Sequence[float], factor: float) -> tuple[float, ...]:
    """So many times as far from their geometric mean."""
    logarithms = np.log(values)
    middle = logarithms.mean()
    return tuple(np.exp(middle + factor * (logarithms - middle)).tolist())


def main() -> None:
    parser = argparse.ArgumentParser(description="causes that alarms name")
    parser.add_argument("--series", type=int, default=100)
    parser.add_argument("--from", dest="runs", type=Path, nargs="+")
    options = parser.parse_args()
    if options.runs:
        record(options.runs)
        return
    began, recording = time.perf_counter(), read()
    show(recording, options.series)
    print(f"\ntook {time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
