"""
How near the estimate of `harness plan` is to what runs took.

    .venv/bin/python bench/bench_estimate.py [RESULTS]

Of each finished run below RESULTS (by default results/): the estimate from the runs before it
there, and from none of them by the rule, against the time from its opening to its last trial.
Starts nothing.  Runs of all machines are taken for runs of one.
"""

from __future__ import annotations

import sys

from pathlib import Path

from harness.core.run.estimate import Estimator
from harness.core.run.plan import make_plan
from harness.core.store import Store


def main(results: Path) -> None:
    """Print a line for each run: seconds estimated and measured, and the relative error."""
    earlier: list[tuple[float, list]] = []
    print(f"{'run':<34} {'measured':>9} {'by rule':>15} {'from earlier':>16} {'runs':>5}")
    for run in Store(results).all_runs():
        if not run.finished:
            continue
        attempts, opened_s = run.attempts(), run.read_manifest().created_s
        own = [record for record in attempts if record.started_s >= opened_s]
        took_s, cells = own[-1].finished_s - opened_s, []
        for estimator in (Estimator([]), Estimator(earlier)):
            plan = make_plan(run.experiment(), run.read_plan(), {}, estimator)
            expected_s = plan["estimate_s"] - estimator.end_s
            cells.append(f"{expected_s:6.0f} s {expected_s / took_s - 1:+6.0%}")
        print(f"{run.path.parent.name + '/' + run.id:<34} {took_s:7.0f} s {cells[0]:>15}"
              f" {cells[1]:>16} {len(earlier):5}")  # fmt: skip
        earlier.append((opened_s, attempts))


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "results"))
