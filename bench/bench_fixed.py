"""
What fixed seconds of tasks do to each model: its in-sample miss and its error, without and with.

    .venv/bin/python bench/bench_fixed.py            # of the published bundles: half a minute
    .venv/bin/python bench/bench_fixed.py RUN ...    # of runs that have their traces

It prints a Markdown table for each run.  The in-sample miss is the mean over the workloads, signed;
the error is that of job times at reference speed, mean over the scored cells; levelled is the error
once each prediction is divided by 1 + the in-sample miss of its model and workload.

Of a run with its traces the profiles are fitted again, and hold fixed seconds as recordings show
them.  A published bundle has none: what stands in their place there is what tasks of the profiled
jobs took on average beyond What-If's equations (rules mr2), 0 at least, of maps and of reduces that
did not wait for maps.  That is blind, too, but holds what else those equations miss.
"""

import sys

from collections import defaultdict
from pathlib import Path
from statistics import fmean

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from harness.base.errors import HarnessError  # noqa: E402
from harness.base.records.profile import FIXED, Statistic  # noqa: E402
from harness.clusters.monitor.rates import rate_statistics  # noqa: E402
from harness.core.evaluate.flow import Evaluation  # noqa: E402
from harness.core.evaluate.predict import in_sample_miss, predict_cell  # noqa: E402
from harness.core.evaluate.steps import fit_profiles  # noqa: E402
from harness.core.store import Run  # noqa: E402
from harness.core.store.packed import opened  # noqa: E402
from harness.models import MODELS, find  # noqa: E402
from harness.models.frame import frame_counts, inputs_of_profiled  # noqa: E402

EQUATIONS = MODELS["whatif-mr2"]


def published():
    """
    Names of bundles, and the paths of their runs.
    """
    for bundle in sorted((ROOT / "results/published").iterdir()):
        for path in sorted((opened(bundle) / "runs").iterdir()):
            yield bundle.name, path


def has_traces(run):
    """
    Whether the recordings of a run are there, so that its profiles can be fitted again.
    """
    return next(run.path.glob("trials/*/trace/spans.parquet"), None) is not None


def refitted(evaluation):
    """
    Profiles as they are fitted now, with fixed seconds as recordings show them.
    """
    observations = defaultdict(list)
    for record in evaluation.done.values():
        if record.trial.profiling:
            observations[record.trial.cell.workload.name] += evaluation.observe(record)
    return fit_profiles(observations, rate_statistics(evaluation.run.read_manifest().rates))


def without_fixed(profile):
    """
    A profile as if it were older.
    """
    kept = {name: value for name, value in profile.statistics.items() if name not in FIXED}
    return profile.model_copy(update={"statistics": kept, "refits": (), "draws": ()})


def with_residuals(profile):
    """
    A profile that keeps no recording, with what its tasks take beyond the equations.
    """
    beyond_s = {"map_tail_fixed_s": [], "reduce_rest_fixed_s": []}
    for job in profile.jobs:
        inputs = inputs_of_profiled(job)
        try:
            answer = EQUATIONS.predict(profile, *inputs)
            counts = frame_counts(*inputs)
        except HarnessError:
            continue
        if job.map_task_s is not None:
            beyond_s["map_tail_fixed_s"].append(job.map_task_s - answer.map_task_s)
        # In one wave of maps, or behind all of them, reduces wait for none.
        has_waited = counts["reduce_gap_s"] == 0
        if job.reduce_task_s is not None and answer.reduce_task_s is not None and not has_waited:
            beyond_s["reduce_rest_fixed_s"].append(job.reduce_task_s - answer.reduce_task_s)
    fixed = {
        name: Statistic(value=max(0.0, fmean(seconds)), count=len(seconds), spread=0.0, source="")
        for name, seconds in beyond_s.items()
        if seconds
    }
    return profile.model_copy(update={"statistics": {**profile.statistics, **fixed}})


def measured_s(run):
    """
    Mean job time of each scored cell at reference speed, else as measured.
    """
    times_s = defaultdict(list)
    for measurement in run.read_scores().measurements:
        times = measurement.reference_s or measurement.raw_s
        times_s[measurement.cell].append(times["job_s"])
    return {cell: fmean(seconds) for cell, seconds in times_s.items()}


def figures(evaluation, model, profiles, cells_s):
    """
    In-sample miss, error and levelled error of a model; `None` where it has no answer.
    """
    misses = {
        name: in_sample_miss(model, profile, evaluation.resolved)
        for name, profile in profiles.items()
    }
    errors = []
    levelled = []
    for cell_id, seconds in cells_s.items():
        cell = evaluation.resolved[cell_id]
        predicted_s = predict_cell(model, cell, profiles).job_s
        miss = misses.get(cell.spec.name)
        if predicted_s is None or miss is None:
            continue
        errors.append(abs(predicted_s / seconds - 1))
        levelled.append(abs(predicted_s / (1 + miss) / seconds - 1))
    known = [miss for miss in misses.values() if miss is not None]
    if not errors or not known:
        return None
    return fmean(known), fmean(errors), fmean(levelled)


def cells_of(before, after):
    """
    The cells of a row: each figure without and with fixed seconds, in percent.
    """
    signs = ("+", "", "")
    return [
        f"{100 * old:{sign}.1f} → {100 * new:{sign}.1f}"
        for old, new, sign in zip(before, after, signs, strict=True)
    ]


def show(name, path):
    """
    Print the table of one run.
    """
    run = Run(path)
    evaluation = Evaluation.of(run)
    is_recorded = has_traces(run)
    stored = refitted(evaluation) if is_recorded else run.read_profiles()
    old = {workload: without_fixed(profile) for workload, profile in stored.items()}
    new = stored
    if not is_recorded:
        new = {workload: with_residuals(profile) for workload, profile in old.items()}
    cells_s = measured_s(run)
    source = "as recorded" if is_recorded else "tasks beyond the equations"
    print(f"### {name}: {run.experiment().name}, {len(cells_s)} cells, fixed seconds {source}\n")
    for workload, profile in new.items():
        seconds = [
            f"{fixed} {profile.statistics[fixed].value:.3f}"
            for fixed in FIXED
            if fixed in profile.statistics
        ]
        print(f"- {workload}: {', '.join(seconds)}")
    print("\n| model | in-sample miss, % | error, % | levelled, % |\n|---|---|---|---|")
    for model in run.experiment().predict.models:
        known = find(model)
        before = figures(evaluation, known, old, cells_s) if known else None
        if before is not None:
            after = figures(evaluation, known, new, cells_s)
            print(f"| {model} | {' | '.join(cells_of(before, after))} |")
    print()


if __name__ == "__main__":
    given = [(Path(text).parent.name, Path(text)) for text in sys.argv[1:]]
    for grid, place in given or published():
        show(grid, place)
