"""
How often the present rules call one of two equally good models nearer, from end to end.

    .venv/bin/python bench/bench_size.py            # four and a half minutes on one core
    .venv/bin/python bench/bench_size.py 100        # with so many draws of each grid instead of 200

Errors are those of the published grids, as in bench_verdicts.py: two models of a grid are drawn,
and cells of it with replacement, with the logarithms of predicted over measured time that both had
there.  In each cell their names are swapped by chance, and both are moved by one factor.  So they
are equally good over the grid; where a drift or a profile has to do harm, one of them says 5 % more
than the other all the same.

The tests are the product's: `flip_tests`, `held_at_all`, `ratio_of`, `widened`, `most_useful`,
`may_tell`.  `compare` itself takes ten milliseconds a draw, too long for a hundred thousand:
`verdict` here does what it does without records, and the first line says in how many draws
`compare` says the same.  In place of `next_repeats` stand the functions that it calls.
"""

from __future__ import annotations

import sys
import time

from collections.abc import Iterator, Sequence
from functools import cache
from statistics import fmean
from typing import NamedTuple

import numpy as np

from bench_drift import ONE_IN, REPEATS, drift_seen
from bench_verdicts import POINTS, grids, published

from harness.base.records.question import Question
from harness.base.records.score import Drift, Score
from harness.base.stats.flips import FEWEST_UNITS, FlipTests, flip_tests, held_at_all
from harness.base.stats.gaps import gap_noise
from harness.base.stats.sequential import (
    LOOK_ERROR,
    LOOKS,
    may_tell,
    most_useful,
    shrunk_spreads,
)
from harness.core.evaluate.steps import trials_left_out
from harness.scoring.any_profile import (
    Anew,
    ProfileSpread,
    stretched_shares,
    stretched_spread,
    widened,
)
from harness.scoring.comparisons import FAMILY_ERROR, MARGIN, compare
from harness.scoring.speeds import ReadAt

CELLS = (6, 12, 24, 48, 96)
DRIFTS = (1.0, 1.05, 1.1, 1.2)
APART = 0.05  # by so much the longer model says more
OFF = 0.05  # standard deviation of a profile's factor
PROFILES = ((4, 3), (4, 2))  # profiling cells, and trials of each
SHARED = 0.5  # of the variance of a gap, by the cells of an input
INPUTS = (2, 6, 12)
LOOKED_AT = (6, 7, 12, 24, 48)  # cells of plans until decided
FASTER = (0.0, 0.05, 0.10)
FIXED = (1, 2, 3, 5, 9)  # repeats of each cell of a fixed plan
NODES = 9  # of an integral over profiles
ENDLESS = 1e6  # degrees of freedom
NEARER = "nearer"
MODELS = ("long", "short")
DRAWS = 200  # of each grid, where it is counted what is wrong
TIMES_MORE = 3  # of them by profiles, whose rates lie about 5 %
ONE_OF = 2  # of them where it is counted what is found


class Grid(NamedTuple):
    """
    Logarithms of predicted over measured times, models x cells, and the spread of trials by cell.
    """

    name: str
    logs: np.ndarray
    noise: np.ndarray


def published_grids() -> Iterator[Grid]:
    """
    The published grids of eight cells and more, at reference speed, at which verdicts are read.
    """
    for name, rows in grids(published(), speed="reference"):
        logs = [
            [np.log(score.predicted_s / score.measured_s) for score in row] for row in rows.values()
        ]
        cells = next(iter(rows.values()))
        noise = [(score.floor or 0.0) * score.trials**0.5 for score in cells]
        yield Grid(name, np.array(logs), np.array(noise))


# Two models


class Drawn(NamedTuple):
    """
    Predicted over measured times of two models, 2 x cells, and the spread of trials by cell.
    """

    shares: np.ndarray
    noise: np.ndarray


def equal_models(generator, grid: Grid, cells: int, *, apart=0.0, off=0.0) -> Drawn:
    """
    Two models that are equally good over *grid*, where the first says *apart* more.

    Equal is the mean of their errors over profiles that are *off* by so much.
    """
    first, second = generator.choice(len(grid.logs), 2, replace=False)
    pair = grid.logs[[first, second]]
    places = generator.integers(0, pair.shape[1], cells)
    drawn = np.where(generator.random(cells) < 0.5, pair[:, places], pair[::-1, places])
    middle = middle_of(tuple(np.sort(pair, axis=None)), apart, off)
    sides = np.array([[apart / 2], [-apart / 2]])
    return Drawn(np.exp(drawn + middle + sides), grid.noise[places])


def profile_factors(off: float) -> tuple[np.ndarray, np.ndarray]:
    """
    Logarithms of factors that stand for profiles that are *off* by so much, and their weights.
    """
    points, weights = np.polynomial.hermite.hermgauss(NODES if off else 1)
    return off * np.sqrt(2) * points, weights / np.sqrt(np.pi)


@cache
def middle_of(logs: Sequence[float], apart: float, off: float) -> float:
    """
    What both models have to be moved by, so that the longer one errs as much as the other.
    """
    factors, weights = profile_factors(off)
    moved = np.add.outer(factors, np.array(logs))

    def error(by):
        return weights @ np.abs(np.exp(moved + by) - 1).mean(axis=1)

    low, high = -3.0, 3.0
    for _ in range(40):
        middle = (low + high) / 2
        if apart:
            is_long = error(middle + apart / 2) > error(middle - apart / 2)
        else:
            is_long = error(middle + 1e-6) > error(middle - 1e-6)
        low, high = (low, middle) if is_long else (middle, high)
    return (low + high) / 2


def gaps_of(shares: np.ndarray, stretch: float = 1.0) -> np.ndarray:
    """
    Errors of the first model less those of the second, by cell.
    """
    errors = np.abs(shares * stretch - 1)
    return errors[..., 0, :] - errors[..., 1, :]


# The verdict


@cache
def cell_names(cells: int) -> tuple[str, ...]:
    """
    Names of so many cells, in the order of their times.
    """
    return tuple(f"{number:04}" for number in range(cells))


def held_flips(gaps, units=(), error=FAMILY_ERROR) -> FlipTests:
    """
    What holds at each stretch of an asked pair, whose *gaps* are stretches x cells.
    """
    units = units or cell_names(gaps.shape[-1])
    return held_at_all(
        [flip_tests(found[None], units, side="first", error=error) for found in gaps]
    )


def verdict(gaps, *, units=(), error=FAMILY_ERROR, anew=None):
    """
    Both steps of the verdict on an asked pair, whose *gaps* at each stretch are stretches x cells.

    *anew* is the spread of its difference over profiles.
    """
    if units and len(set(units)) < FEWEST_UNITS:
        return "undecided", "undecided"
    tests = held_flips(gaps, units, error)
    ends = float(tests.low[0]), float(tests.high[0])
    first = kind_of(ends, tests.chance[0] <= error)
    if anew is None or first == "undecided":
        return first, first
    ends = widened(ends, float(tests.difference[0]), anew, error)
    return first, kind_of(ends, first == NEARER and ends[1] < 0)


def kind_of(ends, is_nearer) -> str:
    """
    What is said of a difference between these *ends*.
    """
    if ends[0] > -MARGIN and ends[1] < MARGIN:
        return "equal"
    return NEARER if is_nearer else "undecided"


def spread_over(anew: np.ndarray, shares) -> ProfileSpread:
    """
    What `profile_spread` says of the difference of two models, *anew*: profiles x 2 x cells.
    """
    moved = gaps_of(stretched_shares(shares, anew)).mean(axis=-1)
    return stretched_spread(moved - gaps_of(shares).mean())


def small_moves(anew: np.ndarray, shares) -> ProfileSpread:
    """
    The same by moves as they are, not stretched: the jackknife.
    """
    moved = gaps_of(anew).mean(axis=-1) - gaps_of(shares).mean()
    deviation = float(np.sqrt((1 - 1 / len(moved)) * (moved**2).sum()))
    return ProfileSpread(deviation, len(moved) - 1.0)


def stretches_of(drift: Drift) -> np.ndarray:
    """
    The stretches at which a verdict holds, upright.
    """
    return np.array(ReadAt.of((), drift).stretches)[:, None, None]


def by_compare(shares, drift: Drift | None, anew: np.ndarray | None, units=()) -> tuple[str, str]:
    """
    Both steps of the verdict as `compare` gives them, on records.
    """
    rows = []
    known = {}
    inputs = units or cell_names(shares.shape[1])
    for model, row in zip(MODELS, shares, strict=True):
        for place, share in enumerate(map(float, row)):
            cell = f"{place:04}"
            rows.append(
                Score(
                    model=model, cell=cell, level="job", quantity="job_s", speed="reference",
                    predicted_s=share, measured_s=1.0, trials=2, floor=0.05, input=inputs[place],
                    signed_error=share - 1, relative_error=abs(share - 1),
                )
            )  # fmt: skip
            if anew is not None:
                known[model, cell] = Anew("w", anew[:, MODELS.index(model), place].tolist())
    asks = Question(nearer=MODELS, scope="inputs" if units else "jobs")
    read_at = ReadAt("reference") if drift is None else ReadAt.of((), drift)
    _, pairs = compare(rows, question=asks, read_at=read_at, anew=known or None)
    (asked,) = [pair for pair in pairs if pair.family == "asked"]
    return asked.verdict, asked.any_profile or asked.verdict


# A profile


class Profiled(NamedTuple):
    """
    The factor by which a profile is off, and those of it without some trials.

    *without_cells* are those of it without one cell each.
    """

    factor: float
    without: np.ndarray
    without_cells: np.ndarray


def profile_of(generator, cells: int, trials: int, noise=None, cell_spread=0.0) -> Profiled:
    """
    A profile of *cells* with *trials* each, whose level is the mean of all of them.

    Trials vary by *noise*, by default so that the profile is `OFF`; cells by *cell_spread*, which
    is the same for each profile of this kind.
    """
    noise = OFF * np.sqrt(cells * trials) if noise is None else noise
    kept = cell_spread * generator.standard_normal((cells, 1))
    levels = kept - kept.mean() + noise * generator.standard_normal((cells, trials))
    by_trial = {
        f"{cell} {trial}": levels[cell, trial] for cell in range(cells) for trial in range(trials)
    }
    names = [[f"{cell} {trial}" for trial in range(trials)] for cell in range(cells)]
    without = [mean_without(by_trial, left_out) for left_out in trials_left_out(names)]
    return Profiled(
        factor=float(np.exp(levels.mean())),
        without=np.exp(without),
        without_cells=np.exp([mean_without(by_trial, set(of_cell)) for of_cell in names]),
    )


def mean_without(by_trial, left_out) -> float:
    """
    Mean level of the trials that are not *left_out*.
    """
    return fmean(level for name, level in by_trial.items() if name not in left_out)


def anew_of(shares, profile: Profiled) -> np.ndarray:
    """
    The *shares* of models, which are right by a profile without an error, by those of *profile*.
    """
    return shares * profile.without[:, None, None]


# The tables


def over_grids(known: Sequence[Grid], draws: int, seed, shown):
    """
    Mean of what is *shown* of a draw, over the draws, then over the grids; and the largest grid's.
    """
    by_grid = []
    for number, grid in enumerate(known):
        generator = np.random.default_rng([number, *seed])
        by_grid.append(np.mean([shown(generator, grid) for _ in range(draws)], axis=0))
    return np.mean(by_grid, axis=0), np.max(by_grid, axis=0)


def percents(mean, worst) -> str:
    """
    Columns of shares, each with that of the worst grid.
    """
    return " | ".join(
        f"{100 * one:.1f} ({100 * most:.1f})" for one, most in zip(mean, worst, strict=True)
    )


def header(*columns: str) -> None:
    """
    Print the head of a table.
    """
    print(f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}")


def sentinel_drift(generator, grid: Grid, drift: float, cells: int) -> Drift:
    """
    What one sentinel in six shows of a *drift*, where trials spread as those of *grid*.
    """
    count = max(1, round(cells * REPEATS / (ONE_IN - 1)))
    noise = float(np.sqrt(np.mean(grid.noise**2)))
    return drift_seen(generator, drift, count, noise)


def agreed(known, draws: int) -> int:
    """
    In how many draws `compare` says what `verdict` does.
    """
    count = 0
    generator = np.random.default_rng(1)
    for number in range(draws):
        grid = known[number % len(known)]
        cells = CELLS[number % 4]
        profile = profile_of(generator, 4, 3)
        right = equal_models(generator, grid, cells, apart=APART).shares
        shares = right * profile.factor * generator.choice([0.8, 1.0, 1.25])
        anew = anew_of(right, profile)
        drift = sentinel_drift(generator, grid, 1.05, cells)
        gaps = gaps_of(shares * stretches_of(drift))
        mine = verdict(gaps, anew=spread_over(anew, shares))
        count += mine == by_compare(shares, drift, anew)
    return count


def show_drift(known, draws):
    """
    Print how often the longer of two equal models is called nearer, by drift.
    """
    print("The longer of two equal models is called nearer, % (worst grid):\n")
    header("cells", "drift, %", "as measured", "corrected", "at both ends")

    def shown(generator, grid):
        shares = equal_models(generator, grid, cells, apart=APART).shares / drift
        seen = sentinel_drift(generator, grid, drift, cells)
        corrected = shares * seen.ratio
        rules = (shares[None], corrected[None], corrected * stretches_of(seen))
        return [verdict(gaps_of(each))[0] == NEARER for each in rules]

    for cells in CELLS:
        for drift in DRIFTS:
            found = over_grids(known, draws, [1, cells, round(100 * drift)], shown)
            print(f"| {cells} | {100 * (drift - 1):.0f} | {percents(*found)} |", flush=True)
    print()


def show_profile(known, draws):
    """
    Print how often the longer of two models is called nearer that are equal over profiles.

    Then the same with cells that differ as much as trials do; by moves that are not stretched; were
    each cell a sample of its own (by these, with 1 - 1 / trials of a cell in the place of 1 - 1 /
    all of them); and by the spread that is true.
    """
    print("The longer of two models, equal over profiles, is called nearer, % (worst grid):\n")
    kinds = [f"any profile, {cells} x {trials}" for cells, trials in PROFILES]
    others = ("small moves", "cells alone", "true spread")
    header("cells", "this profile", *kinds, "cells differ", *others)
    alike = OFF * float(np.sqrt(np.prod(PROFILES[0])))
    count = TIMES_MORE * draws

    def shown(generator, grid):
        right = equal_models(generator, grid, cells, apart=APART, off=OFF).shares
        profiles = [profile_of(generator, *shape) for shape in PROFILES]
        profiles.append(profile_of(generator, *PROFILES[0], cell_spread=alike))
        spreads = [spread_over(anew_of(right, each), right * each.factor) for each in profiles]
        first = profiles[0]
        narrower = float(np.sqrt((1 - 1 / PROFILES[0][1]) / (1 - 1 / len(first.without))))
        small = small_moves(anew_of(right, first), right * first.factor)
        spreads.append(small)
        spreads.append(small._replace(deviation=narrower * small.deviation))
        spreads.append(true_spread(right))
        profiles += [first, first, first]
        steps = [
            verdict(gaps_of(right * profile.factor)[None], anew=spread)
            for profile, spread in zip(profiles, spreads, strict=True)
        ]
        return [step == NEARER for step in (steps[0][0], *(second for _, second in steps))]

    for cells in CELLS:
        print(f"| {cells} | {percents(*over_grids(known, count, [2, cells], shown))} |", flush=True)
    print()


def true_spread(right) -> ProfileSpread:
    """
    How far the difference of two models really varies over profiles.
    """
    factors, weights = profile_factors(OFF)
    moved = gaps_of(right * np.exp(factors)[:, None, None]).mean(axis=-1)
    deviation = float(np.sqrt(weights @ (moved - weights @ moved) ** 2))
    return ProfileSpread(deviation, ENDLESS)


def show_inputs(known, draws):
    """
    Print what cells of one input do that share half of their errors.
    """
    print("One of two equal models is called nearer, % (worst grid), cells of few inputs:\n")
    header("cells", "inputs", "jobs: equal in these", "jobs: equal over inputs", "inputs")

    def shown(generator, grid):
        own = gaps_of(equal_models(generator, grid, cells).shares)
        by_input = gaps_of(equal_models(generator, grid, inputs).shares)
        places = np.arange(cells) % inputs
        # What is equal in these jobs: the shared part is no luck, and is taken off.
        shared = SHARED**0.5 * by_input[places]
        own = (1 - SHARED) ** 0.5 * own
        units = tuple(f"{place:04}" for place in places)
        asked = (
            verdict(own[None]),
            verdict((own + shared)[None]),
            verdict((own + shared)[None], units=units),
        )
        return [first == NEARER for first, _ in asked]

    for inputs in INPUTS:
        for cells in CELLS[1:4]:
            found = over_grids(known, draws, [3, cells, inputs], shown)
            print(f"| {cells} | {inputs} | {percents(*found)} |", flush=True)
    print()


# Until decided


def known_times(times, repeats):
    """
    Mean and standard deviation of the first *repeats* of each cell.
    """
    is_known = np.arange(times.shape[1]) < repeats[:, None]
    means = np.where(is_known, times, 0.0).sum(axis=1) / repeats
    squares = np.where(is_known, (times - means[:, None]) ** 2, 0.0).sum(axis=1)
    return means, np.sqrt(squares / np.maximum(repeats - 1, 1))


def until_decided(drawn: Drawn, times, *, stops: bool):
    """
    The verdict of a plan that is measured until decided, and how many trials it took.

    It *stops* where no repeat may tell, or goes on to the last look.
    """
    cells = drawn.shares.shape[1]
    repeats = np.full(cells, 2)
    for look in range(1, LOOKS + 1):
        means, spreads = known_times(times, repeats)
        shares = drawn.shares / means
        gaps = gaps_of(shares)
        tests = held_flips(gaps[None], error=LOOK_ERROR)
        low, high = float(tests.low[0]), float(tests.high[0])
        found = kind_of((low, high), tests.chance[0] <= LOOK_ERROR)
        is_open = found == "undecided" and low <= 0
        if not is_open or look == LOOKS:
            break
        spread = shrunk_spreads(spreads / means, repeats)
        noise = gap_noise(shares.min(axis=0), shares.max(axis=0), spread)
        is_of_use = not stops or may_tell(gaps, noise, repeats, margin=MARGIN)
        if not noise.any() or not is_of_use:
            break
        repeats = repeats + np.bincount(most_useful(noise, repeats, cells), minlength=cells)
    return found, repeats.sum()


def show_looks(known, draws):
    """
    Print size and power of the whole procedure, and the trials it takes beside fixed plans.
    """
    print("Until decided: the first is called nearer, % (worst grid), and repeats of a cell:\n")
    plans = [f"fixed: {repeats}" for repeats in FIXED]
    rules = ("to the last look", "repeats", "as it is", "repeats")
    header("cells", "points", *rules, "equal", *plans, "trials of a fixed plan's")

    def shown(generator, grid):
        drawn = equal_models(generator, grid, cells)
        drawn = drawn._replace(shares=farther(drawn.shares, by))
        times = 1 + drawn.noise[:, None] * generator.standard_normal((cells, 2 + LOOKS * cells))
        times = np.maximum(times, 0.1)
        before, trials_before = until_decided(drawn, times, stops=False)
        found, trials = until_decided(drawn, times, stops=True)
        fixed = []
        for repeats in FIXED:
            shares = drawn.shares / times[:, :repeats].mean(axis=1)
            fixed.append(verdict(gaps_of(shares)[None])[0] == NEARER)
        kinds = (before == NEARER, found == NEARER, found == "equal")
        return [trials_before / cells, trials / cells, *kinds, *fixed]

    for cells in LOOKED_AT:
        for by in FASTER:
            count = draws // ONE_OF if by else draws
            mean, worst = over_grids(known, count, [4, cells, round(100 * by)], shown)
            before, found, *rest = percents(mean[2:], worst[2:]).split(" | ")
            texts = [before, f"{mean[0]:.1f}", found, f"{mean[1]:.1f}", *rest]
            powers = zip(FIXED, mean[5:], strict=True)
            enough = [number for number, power in powers if power >= mean[3]]
            texts.append(f"{mean[1] / enough[0]:.1f}" if by and enough else "")
            print(f"| {cells} | {100 * by:.0f} | {' | '.join(texts)} |", flush=True)
    print()


# Power


def farther(shares, by: float):
    """
    *shares* where the second model errs by so much more in each cell, to the side where it errs.
    """
    signs = np.where(shares[1] < 1, -1.0, 1.0)
    return np.stack([shares[0], shares[1] + by * signs])


def show_power(known, draws):
    """
    Print how often an asked pair is found, by rules that ask for more and more.
    """
    print("A pair that is asked is found, % (least of the grids):\n")
    header("cells", "points", "as it is", "at both ends", "any profile", "both")

    def shown(generator, grid):
        right = farther(equal_models(generator, grid, cells).shares, points / 100)
        profile = profile_of(generator, 4, 3)
        shares = right * profile.factor
        spread = spread_over(anew_of(right, profile), shares)
        at_ends = right * stretches_of(sentinel_drift(generator, grid, 1.0, cells))
        ends_off = at_ends * profile.factor
        asked = (
            verdict(gaps_of(right)[None])[0],
            verdict(gaps_of(at_ends))[0],
            verdict(gaps_of(shares)[None], anew=spread)[1],
            verdict(gaps_of(ends_off), anew=spread)[1],
        )
        return [-(found == NEARER) for found in asked]

    for cells in POINTS:
        for points in POINTS.values():
            mean, worst = over_grids(known, draws // ONE_OF, [5, cells, points], shown)
            print(f"| {cells} | {points} | {percents(-mean, -worst)} |", flush=True)
    print()


def main():
    """
    Print the tables.
    """
    draws = int(sys.argv[1]) if len(sys.argv) > 1 else DRAWS
    known = [*published_grids()]
    begun = time.perf_counter()
    print(
        f"`compare` says the same as `verdict` here in {agreed(known, draws)} of {draws} draws.\n"
    )
    for show in (show_drift, show_profile, show_inputs, show_looks, show_power):
        show(known, draws)
        print(f"({time.perf_counter() - begun:.0f} s)", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
