"""
What the test of two models can tell, on the errors of the published grids: size, power, perfection.

    .venv/bin/python bench/bench_verdicts.py            # two minutes on one core
    .venv/bin/python bench/bench_verdicts.py RUN ...    # of runs of yours, as well

Nothing is assumed of errors: cells of a grid are drawn with replacement, and with them what two of
its models really had there.

- size: models a and b are made equal.  Either their names are swapped in each cell by chance (which
  no test can see through), or the mean of their gaps is taken off (which leaves gaps that are skew:
  equal on average, and not alike).  How often one is called nearer is to be 5 % at most.
- power: the mean of the gaps is put at a given number of points; how often the pair, asked alone,
  is found.
- perfection: in how many of 100 draws a perfect model is nearer than each published one, asked
  alone, on the grid itself, and on as many cells drawn from it.

The peer is Student's t over the same cells with Holm's correction for all pairs of the grid's
models, which is what the harness did before.
"""

import itertools
import statistics
import sys

from pathlib import Path

import numpy as np

from scipy import stats

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from harness.base.stats.flips import flip_chances  # noqa: E402
from harness.core.store import Run  # noqa: E402
from harness.core.store.packed import opened  # noqa: E402
from harness.scoring.comparisons import (  # noqa: E402
    Settings,
    explored_pairs,
    ranked_rows,
    same_predictions,
)
from harness.scoring.controls import cell_floors, floor_of, perfect_errors  # noqa: E402

ERROR = 0.05
DRAWS = 200
SIZES = (6, 8, 12, 24, 48, 96)
POINTS = {6: 23, 12: 15, 24: 10, 48: 7}
RESAMPLED = (12, 24, 48)
FAR = 0.10  # points above the floor, of which perfection is to be told
FEWEST_CELLS = 8


def grids(runs, speed="raw"):
    """
    Rows of scores by model of each run, each kind of prediction once, by the name of the grid.

    *runs* are names and paths, scores those at *speed*; an experiment that is called otherwise than
    its bundle is named.
    """
    for name, path in runs:
        by_model = {}
        for score in Run(path).read_stored_scores().scores:
            if (score.quantity, score.speed) == ("job_s", speed):
                by_model.setdefault(score.model, {})[score.cell] = score
        rows, _ = ranked_rows(by_model)
        same_as = same_predictions(rows)
        rows = {model: row for model, row in rows.items() if same_as[model] == model}
        if len(next(iter(rows.values()), ())) >= FEWEST_CELLS:
            experiment = Run(path).experiment().name
            yield name if name == experiment else f"{name} ({experiment})", rows


def published():
    """
    Names of bundles, and the paths of their runs.
    """
    for bundle in sorted((ROOT / "results/published").iterdir()):
        for path in sorted((opened(bundle) / "runs").iterdir()):
            yield bundle.name, path


def errors_of(rows):
    """
    Relative errors: models x cells.
    """
    return np.array([[score.relative_error for score in row] for row in rows.values()])


def names(cells):
    """
    Names of so many units.
    """
    return [f"{number:04}" for number in range(cells)]


def found(gaps):
    """
    Share of the draws of *gaps* in which the first is nearer, by flips of signs.
    """
    return float((flip_chances(gaps, names(gaps.shape[1])) <= ERROR).mean())


def found_by_holm(gaps, pairs):
    """
    The same by Student's t to both sides, corrected for so many pairs.
    """
    statistic, chance = stats.ttest_1samp(gaps, 0.0, axis=1)
    return float(((chance * pairs <= ERROR) & (statistic < 0)).mean())


def draw(generator, gaps, cells):
    """
    *gaps* of cells that are drawn with replacement: draws x cells.
    """
    return gaps[generator.integers(0, len(gaps), size=(DRAWS, cells))]


def pair_gaps(errors):
    """
    Gaps of each pair of models over the cells of a grid.
    """
    for first, second in itertools.combinations(range(len(errors)), 2):
        yield errors[first] - errors[second]


def decided(rows):
    """
    How many pairs of a grid there are; decided as one family, each alone, and as it was before.
    """
    settings = Settings("jobs", ERROR, {})
    explored = sum(pair.verdict == "nearer" for pair in explored_pairs(rows, settings, {}))
    gaps = np.array(list(pair_gaps(errors_of(rows))))
    chances = flip_chances(gaps, names(gaps.shape[1]))
    before = sum(found_by_holm(row[None, :], len(gaps)) for row in gaps)
    return len(gaps), explored, int((chances <= ERROR).sum()), int(before)


def main():
    generator = np.random.default_rng(20261129)
    given = [(Path(name).name, Path(name)) for name in sys.argv[1:]]
    known = list(grids([*published(), *given]))
    print("Each number is a mean over the pairs of a grid's models, then over the grids.\n")
    print(
        "size: equal models called nearer, %, names swapped | means equal, gaps skew (worst grid)"
    )
    for cells in SIZES:
        swapped, centred = [], []
        for _, rows in known:
            by_pair = [[], []]
            for gaps in pair_gaps(errors_of(rows)):
                signs = generator.choice([-1.0, 1.0], size=(DRAWS, cells))
                by_pair[0].append(found(draw(generator, gaps, cells) * signs))
                by_pair[1].append(found(draw(generator, gaps - gaps.mean(), cells)))
            swapped.append(statistics.fmean(by_pair[0]))
            centred.append(statistics.fmean(by_pair[1]))
        columns = (statistics.fmean(swapped), max(swapped), statistics.fmean(centred), max(centred))
        print(
            "  {:3} cells  {:4.1f} ({:4.1f}) | {:4.1f} ({:4.1f})".format(
                cells, *(100 * column for column in columns)
            )
        )
    print("\npower: a pair asked alone is found, % (worst grid) | by Student and Holm, all pairs")
    for cells, points in POINTS.items():
        flips, holm = [], []
        for _, rows in known:
            errors = errors_of(rows)
            pairs = max(1, len(errors) * (len(errors) - 1) // 2)
            by_pair = [[], []]
            for gaps in pair_gaps(errors):
                drawn = draw(generator, gaps - gaps.mean(), cells) - points / 100
                by_pair[0].append(found(drawn))
                by_pair[1].append(found_by_holm(drawn, pairs))
            flips.append(statistics.fmean(by_pair[0]))
            holm.append(statistics.fmean(by_pair[1]))
        shares = (statistics.fmean(flips), min(flips), statistics.fmean(holm), min(holm))
        columns = [100 * share for share in shares]
        form = "  {:3} cells, {:2} points  {:3.0f} ({:3.0f}) | {:3.0f} ({:3.0f})"
        print(form.format(cells, points, *columns))
    print("\npairs decided: as explored, all of a grid | each asked alone | by Student and Holm")
    for name, rows in known:
        print("  {}: {} pairs, {} | {} | {}".format(name, *decided(rows)))
    print("\nperfection: nearer in so many of 100 draws; * 10 points above the floor or more")
    for name, rows in known:
        cells = next(iter(rows.values()))
        perfect = perfect_errors(cells)
        floor, _ = floor_of(perfect)
        print(f"  {name}: {len(cells)} cells, floor {100 * floor:.1f} %")
        floors = np.array(cell_floors(cells))
        for model, row in rows.items():
            errors = np.array([score.relative_error for score in row])
            shares = [found(perfect - errors)]
            for number in RESAMPLED:
                places = generator.integers(0, len(cells), size=(DRAWS, number))
                noise = np.abs(generator.standard_normal((DRAWS, number))) * floors[places]
                shares.append(found(noise - errors[places]))
            mark = "*" if errors.mean() >= floor + FAR else " "
            texts = "  ".join(f"{100 * share:3.0f}" for share in shares)
            print(f"   {mark} {model:<16} {100 * errors.mean():5.1f} %   {texts}")
    print(f"  columns: on the grid itself, on {', '.join(map(str, RESAMPLED))} cells drawn from it")


if __name__ == "__main__":
    main()
