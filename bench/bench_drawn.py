"""
What a drawn design saves, and whether its test keeps its word, on errors of the published grids.

    .venv/bin/python bench/bench_drawn.py            # three minutes on one core
    .venv/bin/python bench/bench_drawn.py RUN ...    # of runs of yours, as well

Nothing is assumed of errors: cells of a grid are drawn with replacement, and with them what two of
its models really had there.

- cells: variance of a pair's gap where cells are drawn by how far models disagree, over that of an
  even draw of as many: so many cells does it take for the same variance.  Models that disagree are
  the pair itself, as a question names it, or all of the grid.  First by the weights of Hansen and
  Hurwitz as they are; then by shares that add up to 1, as the difference is stored; last what the
  test looks at, in which a common factor of all weights has no part: the mean square of a gap.
- size: the two models are made equal, by swapped names or by the mean taken off (bench_verdicts.py
  says how); how often one is called nearer is to be 5 % at most.
- power: how often the nearer one of a pair is found.
"""

import itertools
import statistics
import sys

from pathlib import Path

import numpy as np

from bench_verdicts import ERROR, errors_of, grids, names, published

from harness.base.stats.drawn import draw_chances, drawn_weights
from harness.base.stats.flips import FEWEST_UNITS, flip_chances

GRIDS = ("tuning", "papers")
DRAWS = 200
SIZES = (6, 8, 12, 16, 24)


def disagreements_of(rows):
    """
    Logarithms of the largest over the smallest prediction: of all models, and of each pair.
    """
    logs = np.log([[score.predicted_s for score in row] for row in rows.values()])
    pairs = itertools.combinations(range(len(logs)), 2)
    return np.ptp(logs, axis=0), [np.abs(logs[first] - logs[second]) for first, second in pairs]


def pairs_of(rows):
    """
    Of each pair of models: gaps of its cells, its own disagreement, and that of all models.
    """
    errors = errors_of(rows)
    of_all, of_pairs = disagreements_of(rows)
    pairs = itertools.combinations(range(len(errors)), 2)
    for (first, second), apart in zip(pairs, of_pairs, strict=True):
        yield errors[first] - errors[second], apart, of_all


def ratios(gaps, chances):
    """
    What a draw by *chances* has of an even one: as Hansen and Hurwitz, as shares, as tested.
    """
    cells = len(gaps)
    mean = gaps.mean()
    square = float(((gaps / cells) ** 2 / chances).sum())
    distance = float((((gaps - mean) / cells) ** 2 / chances).sum())
    return (
        (square - mean**2) / gaps.var(),
        distance / gaps.var(),
        square / (gaps**2).mean(),
    )


def drawn(generator, chances, draws):
    """
    Cells of a draw, each once, and how much they count, 1 on average.
    """
    counts = np.bincount(generator.choice(len(chances), draws, p=chances), minlength=len(chances))
    cells = np.flatnonzero(counts)
    weights = drawn_weights(chances[cells], counts[cells])
    return cells, weights * len(cells)


def found(generator, gaps, chances, draws, *, swaps=False):
    """
    Share of so many draws in which the first of a pair is nearer; too few cells tell nothing.
    """
    count = 0
    for _ in range(DRAWS):
        cells, weights = drawn(generator, chances, draws)
        if len(cells) < FEWEST_UNITS:
            continue
        signs = generator.choice([-1.0, 1.0], size=len(cells)) if swaps else 1.0
        chance = flip_chances((gaps[cells] * signs)[None], names(len(cells)), weights)
        count += int(chance[0] <= ERROR)
    return count / DRAWS


def even(gaps):
    """
    Chances of an even draw.
    """
    return np.full(len(gaps), 1 / len(gaps))


def print_savings(known):
    """
    Print how many cells a drawn design takes of those of an even draw.
    """
    print(
        "cells of a drawn design for 1 of an even draw, mean over the pairs (best and worst pair)"
    )
    print("  who disagrees    as Hansen and Hurwitz | shares that add up to 1 | seen by the test")
    for name, rows in known:
        pairs = [*pairs_of(rows)]
        print(f"  {name}: {len(pairs[0][0])} cells, {len(pairs)} pairs")
        asked = [ratios(gaps, draw_chances(apart)) for gaps, apart, _ in pairs]
        explored = [ratios(gaps, draw_chances(of_all)) for gaps, _, of_all in pairs]
        for which, found_ratios in (("the pair asked", asked), ("all models", explored)):
            texts = [
                f"{statistics.fmean(column):.2f} ({min(column):.2f} to {max(column):.2f})"
                for column in zip(*found_ratios, strict=True)
            ]
            print(f"    {which:<14} {' | '.join(texts)}")


def print_tests(generator, known):
    """
    Print how often equal models are told apart, and how often others are.
    """
    print("\nsize: equal models called nearer, % (worst pair):")
    print("names swapped, drawn | means equal, drawn | means equal, even draw")
    print("power: the nearer one of a pair found, %: drawn | even draw;  cells measured, drawn")
    for name, rows in known:
        print(f"  {name}")
        for draws in SIZES:
            columns = [
                tested_pair(generator, gaps, apart, draws) for gaps, apart, _ in pairs_of(rows)
            ]
            swapped, centred, centred_even, power, power_even, cells = zip(*columns, strict=True)
            sizes = " | ".join(
                f"{100 * statistics.fmean(shares):4.1f} ({100 * max(shares):4.1f})"
                for shares in (swapped, centred, centred_even)
            )
            powers = " | ".join(f"{100 * statistics.fmean(it):3.0f}" for it in (power, power_even))
            print(f"    {draws:2} draws  {sizes};  {powers};  {statistics.fmean(cells):4.1f}")


def tested_pair(generator, gaps, apart, draws):
    """
    Size by swapped names and by equal means, drawn and even; power of both; cells of a draw.
    """
    chances = draw_chances(apart)
    centred = gaps - gaps.mean()
    nearer = gaps if gaps.mean() < 0 else -gaps
    cells = [len(drawn(generator, chances, draws)[0]) for _ in range(DRAWS)]
    return (
        found(generator, gaps, chances, draws, swaps=True),
        found(generator, centred, chances, draws),
        found(generator, centred, even(gaps), draws),
        found(generator, nearer, chances, draws),
        found(generator, nearer, even(gaps), draws),
        statistics.fmean(cells),
    )


def main():
    generator = np.random.default_rng(20261129)
    given = [(Path(name).name, Path(name)) for name in sys.argv[1:]]
    runs = [(name, path) for name, path in published() if name in GRIDS]
    known = list(grids([*runs, *given]))
    print("Each number is a mean over the pairs of a grid's models.\n")
    print_savings(known)
    print_tests(generator, known)


if __name__ == "__main__":
    main()
