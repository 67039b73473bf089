"""
How long a search for settings takes, and how good its choice is, beside SciPy's.

    .venv/bin/python bench/bench_tune.py

The job is the largest TeraSort of the published bundle `quick`.  Each optimizer chooses by
`whatif-mr2`, MRTuner's factors by `ptc-wave`; the peer is SciPy's differential evolution over the
same ranges, with as many evaluations, all of a generation at once.  Starting Python is apart.
"""

from __future__ import annotations

import statistics
import time

from pathlib import Path

import numpy as np

from scipy.optimize import differential_evolution

from harness.core.evaluate.basis import basis_of_run
from harness.core.evaluate.flow import Evaluation
from harness.core.store import Store
from harness.tuning.objective import Objective
from harness.tuning.optimizers import choose
from harness.tuning.proposals import job_of

BUNDLE = Path(__file__).parents[1] / "results/published/quick"
MODEL, EVALUATIONS, MANY, ROUNDS = "whatif-mr2", 20_000, 10**6, 5


def main() -> None:
    """Print seconds (median of five) and the job time that each choice has by the model."""
    run = Store(BUNDLE).find(str(BUNDLE))
    basis = basis_of_run(Evaluation.of(run), "terasort")
    job, profile = job_of(basis), basis.profile
    base_s = float(Objective(MODEL, profile, job).seconds({"num_reduces": np.array([2.0])})[0])
    print(f"base: {base_s:.2f} s by {MODEL}")
    print(f"{'optimizer':12} {'evaluations':>11} {'seconds':>8} {'job, s':>8}")
    for name in ("hadoop", "rules", "mrtuner", "search"):
        model = "ptc-wave" if name == "mrtuner" else MODEL
        choices = [choose(name, profile, job, model, seed=seed) for seed in range(ROUNDS)]
        seconds = statistics.median(each.seconds for each in choices)
        values = {field: np.array([value]) for field, value in choices[0].values.items()}
        job_s = float(Objective(MODEL, profile, job).seconds(values)[0])
        if name == "search":
            job_s = statistics.median(each.job_s for each in choices)
        print(f"{name:12} {choices[0].evaluations:11} {seconds:8.3f} {job_s:8.2f}")
    times_s, best_s = [], []
    for seed in range(ROUNDS):
        objective, space = Objective(MODEL, profile, job), job.space()

        def look(places, objective=objective, space=space):
            values = {each.name: each.at(row) for each, row in zip(space, places, strict=True)}
            return np.nan_to_num(objective.seconds(values), nan=1e9)

        began_s = time.perf_counter()
        generations = EVALUATIONS // (15 * len(space)) - 1
        result = differential_evolution(
            look, [(0, 1)] * len(space), maxiter=generations, popsize=15, tol=0, polish=False,
            vectorized=True, updating="deferred", rng=seed,
        )  # fmt: skip
        times_s.append(time.perf_counter() - began_s)
        best_s.append(result.fun)
    seconds, job_s = statistics.median(times_s), statistics.median(best_s)
    print(f"{'SciPy':12} {objective.evaluations:11} {seconds:8.3f} {job_s:8.2f}")
    random, objective = np.random.default_rng(1), Objective(MODEL, profile, job)
    values = {each.name: each.at(random.random(MANY)) for each in job.space()}
    began_s = time.perf_counter()
    objective.seconds(values)
    print(f"{MANY} settings at once: {time.perf_counter() - began_s:.2f} s")


if __name__ == "__main__":
    main()
