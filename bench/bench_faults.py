"""
Four faults of former rules, then and now, on the published bundles and the ready-made experiments.

    .venv/bin/python bench/bench_faults.py            # a minute on one core

It prints Markdown tables:

- the longer model wins: of the pairs that are told apart, how many are won by the model that
  predicts more, with times as measured and at reference speed;
- models miss what they learnt from: their misses of the profiled jobs, and their errors, without
  and with fixed seconds of tasks (bench_fixed.py says how);
- profiles have none of the regimes that are asked: scored cells of each experiment that are
  extrapolated, by the cells that its file names and by those of `profile_on: auto`; and how many
  intervals of 80 % hold what was measured, of cells within the profile and of extrapolated ones;
- fewer profiling cells give more verdicts: simulated, see `show_profiling`.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from statistics import fmean

import numpy as np

from bench_fixed import figures, measured_s, with_residuals, without_fixed
from bench_size import (
    NEARER,
    anew_of,
    cell_names,
    equal_models,
    farther,
    gaps_of,
    header,
    over_grids,
    profile_of,
    published_grids,
    spread_over,
    verdict,
)
from bench_verdicts import published

from harness.base.errors import HarnessError
from harness.base.records.question import Question
from harness.base.stats.flips import flip_tests
from harness.base.stats.resampling import FEWEST_CELLS, FEWEST_REFITS, mean_interval
from harness.core.evaluate.flow import Evaluation
from harness.core.experiment.cover import covered_by
from harness.core.experiment.grid import is_profiling
from harness.core.run.experiment_file import ExperimentFile
from harness.core.store import Run
from harness.models import find
from harness.scoring.any_profile import widened
from harness.scoring.comparisons import (
    FAMILY_ERROR,
    MOST_IN_SAMPLE,
    compare,
    job_scores,
    ranked_rows,
)
from harness.scoring.speeds import ReadAt

ROOT = Path(__file__).resolve().parent.parent
SPEEDS = ("raw", "reference")
PROFILING_CELLS = (2, 4, 9, 13)
TRIALS = 3  # of each of them
TRIAL_SPREAD = 0.065
CELL_SPREAD = 0.10  # of what cells of one profile differ by, whatever the trials
SCORED = 24  # cells
POINTS = 5
DRAWS = 150  # of each grid
REFUSED = "refused: too few cells"


class Silent:
    """
    A console that shows nothing.
    """

    def say(self, text):
        """
        Pass over one line.
        """


def runs():
    """
    Each published run that compares models, with the name of its experiment.
    """
    for bundle, path in published():
        run = Run(path)
        name = run.experiment().name
        yield bundle if name == bundle else f"{bundle} ({name})", run


# The longer model


def longer_wins(run, speed):
    """
    Of the pairs that are told apart, how many the longer one wins: explored, and each asked alone.
    """
    scores = run.read_stored_scores().scores
    rows, _ = ranked_rows(job_scores(scores, speed))
    logs = {
        model: np.mean([np.log(score.predicted_s) for score in row]) for model, row in rows.items()
    }
    of_speed = [score for score in scores if (score.quantity, score.speed) == ("job_s", speed)]
    _, explored = compare(of_speed)
    asked = []
    for first in rows:
        for second in rows:
            if first != second:
                _, pairs = compare(
                    [score for score in of_speed if score.model in (first, second)],
                    question=Question(nearer=(first, second)),
                    read_at=ReadAt(speed),
                )
                asked += [pair for pair in pairs if pair.family == "asked"]
    counts = []
    for pairs in (explored, asked):
        told = [pair for pair in pairs if pair.verdict == "nearer"]
        counts.append((sum(logs[pair.better] > logs[pair.worse] for pair in told), len(told)))
    return counts


def show_longer():
    """
    Print the table of pairs that are told apart; its sums are returned.
    """
    print("The longer model wins, of pairs that are told apart:\n")
    header("run", "explored, raw", "at reference speed", "asked, raw", "at reference speed")
    rows = []
    for name, run in runs():
        explored, asked = zip(*(longer_wins(run, speed) for speed in SPEEDS), strict=True)
        rows.append([*explored, *asked])
        texts = [f"{won} of {told}" for won, told in rows[-1]]
        print(f"| {name} | {' | '.join(texts)} |", flush=True)
    print()
    raw, reference, raw_asked, reference_asked = np.sum(rows, axis=0)
    return tuple(
        f"{alike[0]} of {alike[1]} explored, {each[0]} of {each[1]} asked"
        for alike, each in ((raw, raw_asked), (reference, reference_asked))
    )


# What was learnt


def show_learnt():
    """
    Print misses of profiled jobs and errors, mean over the models, without and with fixed seconds.

    Returned are means over the runs.
    """
    print("Misses of the profiled jobs, and errors, mean over the models, %:\n")
    header("run", "in-sample miss", "error", "models of more than 10 %")
    sums = []
    for name, run in runs():
        evaluation = Evaluation.of(run)
        profiles = run.read_profiles()
        old = {workload: without_fixed(profile) for workload, profile in profiles.items()}
        new = {workload: with_residuals(profile) for workload, profile in old.items()}
        cells_s = measured_s(run)
        known = [find(model) for model in run.experiment().predict.models]
        before, after = (
            [found for model in known if (found := figures(evaluation, model, each, cells_s))]
            for each in (old, new)
        )
        means = [
            [fmean(abs(found[place]) for found in rows) for place in (0, 1)]
            for rows in (before, after)
        ]
        counts = [sum(abs(found[0]) > MOST_IN_SAMPLE for found in rows) for rows in (before, after)]
        miss, error = (
            f"{100 * was:.1f} → {100 * now:.1f}" for was, now in zip(*means, strict=True)
        )
        print(f"| {name} | {miss} | {error} | {counts[0]} → {counts[1]} of {len(before)} |")
        sums.append([[*row, count] for row, count in zip(means, counts, strict=True)])
    print()
    return tuple(
        f"misses {100 * miss:.1f} %, errors {100 * error:.1f} %;"
        f" {len(sums) * count:.0f} models beyond 10 %"
        for miss, error, count in np.mean(sums, axis=0)
    )


# Regimes


def by_file(path, *overrides):
    """
    How many cells of an experiment file are extrapolated, scored, and profiled.
    """
    file = ExperimentFile(path.read_text(encoding="utf-8"), str(path), overrides, Silent())
    experiment = file.experiment
    cells = [
        cell for cell in file.cells.values() if cell.spec.name not in experiment.nightly.controls
    ]
    profiling = {cell.id for cell in cells if is_profiling(cell.cell, experiment.predict)}
    found = [*covered_by(cells, profiling)]
    return (
        sum(len(covered.lacking) for covered in found),
        sum(len(covered.scored) for covered in found),
        sum(len(covered.profiling) for covered in found),
    )


def show_regimes():
    """
    Print how many scored cells of each ready-made experiment are extrapolated; sums are returned.
    """
    print("Extrapolated cells of the ready-made experiments, of the scored ones:\n")
    header(
        "experiment", "by the cells of its file", "profiled", "by `profile_on: auto`", "profiled"
    )
    sums = np.zeros((2, 2), dtype=int)
    refused = 0
    for path in sorted((ROOT / "experiments").rglob("*.yaml")):
        if "profile_on:" not in path.read_text(encoding="utf-8"):
            continue
        extrapolated, scored, profiled = by_file(path)
        texts = [f"{extrapolated} of {scored}", f"{profiled}"]
        sums[0] += extrapolated, scored
        try:
            extrapolated, scored, profiled = by_file(path, "predict.profile_on=auto")
        except HarnessError as error:
            refused += 1
            texts += [REFUSED if "finds no profiling cells" in error.what else error.what, ""]
        else:
            sums[1] += extrapolated, scored
            texts += [f"{extrapolated} of {scored}", f"{profiled}"]
        print(f"| {path.relative_to(ROOT / 'experiments')} | {' | '.join(texts)} |", flush=True)
    print()
    then, now = (f"{extrapolated} of {scored} scored cells" for extrapolated, scored in sums)
    return then, f"{now}; {refused} files refused"


def show_coverage():
    """
    Print how many intervals of 80 % hold what was measured, within the profile and beyond.
    """
    print("Intervals of 80 % of job times that hold what was measured:\n")
    header("run", "cells within the profile", "extrapolated cells")
    for name, run in runs():
        evaluation = Evaluation.of(run)
        profiling = {
            record.trial.cell.id for record in evaluation.done.values() if record.trial.profiling
        }
        covered = [*covered_by(evaluation.resolved.values(), profiling)]
        beyond = {cell for each in covered for cell in each.lacking}
        held = {True: defaultdict(list), False: defaultdict(list)}
        for score in run.read_stored_scores().scores:
            is_of_jobs = (score.quantity, score.speed) == ("job_s", "reference")
            if is_of_jobs and score.covered_80 is not None:
                is_beyond = score.cell in beyond or score.range == "outside"
                held[is_beyond][score.cell].append(score.covered_80)
        texts = [share_of(held[is_beyond]) for is_beyond in (False, True)]
        print(f"| {name} | {' | '.join(texts)} |", flush=True)
    print()


def share_of(held):
    """
    How many are true, in words, of the lists in *held*: one of each cell, as models err together.
    """
    if not held:
        return "none has one"
    shares = [fmean(of_cell) for of_cell in held.values()]
    number = sum(len(of_cell) for of_cell in held.values())
    text = f"{100 * fmean(shares):.0f} % of {number} in {len(shares)} cells"
    if len(shares) < FEWEST_CELLS:
        return text
    low, high = mean_interval(shares)
    return f"{text} (95 %: {100 * low:.0f} to {100 * min(high, 1.0):.0f})"


# Profiling cells


def show_profiling():
    """
    Print what profiles of few and of many cells tell of two models.

    Costs of a cell differ from those of another by 10 %, and by 6.5 % from trial to trial; 24 cells
    are scored.  The former rule doubted a verdict that turned round without one profiling cell, and
    could not look below four; the present one leaves out trials.  Returned are shares that are
    told of the fewest and of the most profiling cells.
    """
    print(f"Profiling cells and verdicts, {SCORED} scored cells, {POINTS} points apart:\n")
    header("profiling cells", "half width, points", "with any profile", "told, then", "told, now")
    known = [*published_grids()]

    def shown(generator, grid):
        right = farther(equal_models(generator, grid, SCORED).shares, POINTS / 100)
        profile = profile_of(generator, cells, TRIALS, TRIAL_SPREAD, CELL_SPREAD)
        shares = right * profile.factor
        spread = spread_over(anew_of(right, profile), shares)
        gaps = gaps_of(shares)[None]
        first, second = verdict(gaps, anew=spread)
        refits = gaps_of(right * profile.without_cells[:, None, None]).mean(axis=-1)
        is_doubted = cells >= FEWEST_REFITS and (refits > 0).any()
        return [
            *half_widths(gaps, spread),
            first == NEARER and not is_doubted,
            second == NEARER,
        ]

    told = []
    for cells in PROFILING_CELLS:
        mean, _ = over_grids(known, DRAWS, [6, cells], shown)
        widths = " | ".join(f"{100 * width:.1f}" for width in mean[:2])
        print(f"| {cells} | {widths} | {100 * mean[2]:.0f} % | {100 * mean[3]:.0f} % |", flush=True)
        told.append(mean[2:])
    print()
    numbers = ", ".join(map(str, PROFILING_CELLS))
    texts = (", ".join(f"{100 * share:.0f}" for share in shares) for shares in np.transpose(told))
    return tuple(f"of {numbers} cells: {text} % told" for text in texts)


def half_widths(gaps, spread):
    """
    Half of the interval of a difference with this profile, and with any of its kind.
    """
    tests = flip_tests(gaps, cell_names(gaps.shape[-1]), side="first", error=FAMILY_ERROR)
    ends = float(tests.low[0]), float(tests.high[0])
    by_any = widened(ends, float(tests.difference[0]), spread, FAMILY_ERROR)
    return [(high - low) / 2 for low, high in (ends, by_any)]


def main():
    """
    Print the tables.
    """
    longer, learnt, regimes = show_longer(), show_learnt(), show_regimes()
    show_coverage()
    faults = {
        "the longer model wins": longer,
        "equations miss the jobs that they learnt from": learnt,
        "profiles have none of the regimes that are asked": regimes,
        "fewer profiling cells give more verdicts": show_profiling(),
    }
    header("fault", "then", "now")
    for fault, sides in faults.items():
        print(f"| {fault} | {' | '.join(sides)} |")


if __name__ == "__main__":
    main()
