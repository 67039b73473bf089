"""
How many settings must be measured until one is within 5 % of the best: models and searches alike.

    .venv/bin/python bench/bench_tune_effort.py [RUN] [--searches 200] [--profiles RUN]

RUN (the newest of results/tuning-settings) has measured all cells of a grid
(`experiments/tuning/settings.yaml`), so what a search would have seen is looked up in it: the same
clock for all.  The search without a model is Optuna's tree-structured Parzen estimator (TPE) with
its defaults, over the axes of the grid; a cell that it chooses again costs nothing.  A model
measures cells in the order of its predictions; it was given the profiling trials of another run.
One that learns corrects them after each cell by what it has measured, as the closed loop does
(`harness tune --try`), and measures the shortest one of the rest.  Chance is exact.  With
`--profiles` the predictions are made again, from the profiles of another run as they are now.

Then where the models are wrong: by how much they predict too long at each value of an axis (the
mean of all cells that have it), and of all pairs of cells that differ in one axis alone, and by one
step of it, in how many the larger value (or true) is slower, with the mean ratio of their times.
"""

from __future__ import annotations

import argparse
import itertools
import statistics

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import optuna

from pandas import DataFrame, concat

from harness.base.records.profile import Profile
from harness.core.evaluate.flow import Evaluation
from harness.core.evaluate.predict import predict_cells
from harness.core.experiment.grid import axis_values, varying
from harness.core.store import Run
from harness.tuning.learned import Learned, point_of
from harness.tuning.regret import NEAR, regrets

NOISE = 0.03  # of one measured time, as a share


def main() -> None:
    """Print a row for each input and way to choose."""
    parser = argparse.ArgumentParser(description=__doc__)
    runs = sorted(Path("results/tuning-settings").glob("2*"))
    parser.add_argument("run", type=Path, nargs="?", default=runs[-1] if runs else None)
    parser.add_argument("--searches", type=int, default=200, help="with another seed each")
    parser.add_argument("--profiles", type=Path, help="of this run, in the place of RUN's own")
    options = parser.parse_args()
    if options.run is None:
        parser.exit(message="no run: harness all experiments/tuning/settings.yaml measures one\n")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    evaluation = Evaluation.of(Run(options.run))
    times_s: dict[str, dict[str, float]] = defaultdict(dict)
    for score in evaluation.run.read_scores().scores:
        if (score.quantity, score.speed) == ("job_s", "raw"):
            times_s[score.input][score.cell] = score.measured_s
    rows = DataFrame(vars(score) for score in evaluation.run.read_scores().scores)
    rows = rows[(rows["quantity"] == "job_s") & (rows["speed"] == "raw")]
    print(f"{'input':24} {'chosen by':16} {'cells measured':>14} {'of':>4}  90 % of searches")
    if options.profiles:
        rows = predicted_again(evaluation, rows, Run(options.profiles).read_profiles())
    else:
        for row in regrets(evaluation):
            print(f"{row['input']:24} {row['model']:16} {row['measured']:14.1f} {row['of']:4}")
    for (of_input, model), of_model in rows.groupby(["input", "model"]):
        count = learnt(evaluation, of_model)
        print(f"{of_input:24} {model + ', learning':24} {count:6} {len(of_model):4}")
    for of_input, cells in times_s.items():
        counts = sorted(searched(evaluation, cells, seed) for seed in range(options.searches))
        low, high = (counts[round(share * (len(counts) - 1))] for share in (0.05, 0.95))
        print(f"{of_input:24} {'Optuna TPE':16} {statistics.mean(counts):14.1f} {len(cells):4}"
              f"  {low} to {high}")  # fmt: skip
    by_axis(evaluation, rows.assign(error=rows["predicted_s"] / rows["measured_s"] - 1))


def predicted_again(
    evaluation: Evaluation, rows: DataFrame, profiles: Mapping[str, Profile]
) -> DataFrame:
    """*rows* as *profiles* predict them; print the regret of each model, and its mean error."""
    parts = []
    for (of_input, model), part in rows.groupby(["input", "model"]):
        cells = [evaluation.resolved[key] for key in part["cell"]]
        answers = [each.job_s for each in predict_cells(model, cells, profiles, {})]
        again = part.assign(predicted_s=answers)
        chosen_s = again.loc[again["predicted_s"].idxmin(), "measured_s"]
        regret = chosen_s / again["measured_s"].min() - 1
        error = (again["predicted_s"] / again["measured_s"] - 1).abs().mean()
        print(f"{of_input:24} {model:16} regret {regret:.0%}, mean relative error {error:.1%}")
        parts.append(again)
    return concat(parts)


def learnt(evaluation: Evaluation, cells: DataFrame) -> int:
    """Cells that a model has measured, learning from each, when the first is near the best."""
    inputs = [evaluation.resolved[key].model_inputs for key in cells["cell"]]
    places = np.vstack([point_of(config, job.num_splits) for config, _, job in inputs])
    predicted_s, measured_s = cells["predicted_s"].to_numpy(), cells["measured_s"].to_numpy()
    ratios, done = np.log(measured_s / predicted_s), list[int]()
    while not done or measured_s[done].min() > (1 + NEAR) * measured_s.min():
        expected_s = predicted_s.copy()
        if done:
            expected_s *= Learned(places[done], ratios[done], NOISE).factor(places)
        expected_s[done] = np.inf
        done.append(int(expected_s.argmin()))
    return len(done)


def by_axis(evaluation: Evaluation, rows: DataFrame) -> None:
    """Print the errors by axis, and what the axes do to measured times."""
    for of_input, cells in rows.groupby("input"):
        axes = varying([evaluation.cells[key] for key in cells["cell"].unique()])
        values = [axis_values(evaluation.cells[key]) for key in cells["cell"]]
        values = [{axis: number(each[axis]) for axis in axes} for each in values]
        table = cells.assign(**{axis: [each[axis] for each in values] for axis in axes})
        measured = table.groupby("cell").first()
        for axis in axes:
            errors = table.groupby(["model", axis])["error"].mean().reset_index()
            errors = errors.pivot_table(index="model", columns=axis, values="error")
            shown = (100 * errors).round(1).to_string()
            print(f"\n{of_input}, {axis}: predicted too long by, %\n{shown}")
            others = [each for each in axes if each != axis]
            steps = [
                later / earlier
                for _, line in measured.sort_values(axis).groupby(others)
                for earlier, later in itertools.pairwise(line["measured_s"])
            ]
            slower, mean = sum(step > 1 for step in steps), statistics.geometric_mean(steps)
            print(
                f"a step up is slower in {slower} of {len(steps)} pairs, {mean:.2f} times as long"
            )


def number(value: str | float) -> str | float:
    """A text of digits as a number, to be sorted as one."""
    return int(value) if isinstance(value, str) and value.isdigit() else value


def searched(evaluation: Evaluation, times_s: dict[str, float], seed: int) -> int:
    """Cells that one search has measured when the first of them is near the best."""
    cells = {key: evaluation.cells[key] for key in times_s}
    axes = varying(cells.values())
    by_values = {
        tuple(axis_values(cell)[axis] for axis in axes): key for key, cell in cells.items()
    }
    choices = {axis: sorted({values[place] for values in by_values})
               for place, axis in enumerate(axes)}  # fmt: skip
    limit_s, measured = (1 + NEAR) * min(times_s.values()), set[str]()

    def measure(trial: optuna.Trial) -> float:
        values = (trial.suggest_categorical(axis, choices[axis]) for axis in axes)
        measured.add(key := by_values[tuple(values)])
        if times_s[key] <= limit_s:
            study.stop()
        return times_s[key]

    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))
    study.optimize(measure)
    return len(measured)


if __name__ == "__main__":
    main()
