"""
How long a report takes: a run of 500 trials with 10 models, from its files to every format.

The trials are the recorded jobs of the tests, so that no cluster is needed.  Those show less than
some models need: these answer what `whatif` does, a little aside.  Each round is a new evaluation,
in one process: `score` checks seal and evidence, compares and stores; `report` checks them again,
gathers, and writes every format.  The first round imports what the others have.
"""

from __future__ import annotations

import cProfile
import pstats
import sys
import time

from pathlib import Path
from tempfile import TemporaryDirectory

from harness.base.records.prediction import Prediction
from harness.core.experiment.file import read_experiment
from harness.core.experiment.grid import expand, order
from harness.core.store import Run, Store
from harness.models import MODELS
from tests.evaluate.test_flow import RATES, commit, evaluation
from tests.run.fakes import VERSIONS

ROUNDS = 5
TIMES = ("body_s", "job_s", "published_s", "makespan_s", "map_task_s", "reduce_task_s")
EXPERIMENT = """
schema: 1
name: large
question: How long does a report of 500 trials and 10 models take?
cluster: {workers: 2, site: {dfs.blocksize: 2m}}
workloads:
  - {name: terasort, input: 6000000}
  - {name: wordcount, input: 6000000}
configuration:
  mapreduce.job.reduces: 2
  mapreduce.task.io.sort.mb: [1, 2, 3, 4, 5, 6]
  mapreduce.job.reduce.slowstart.completedmaps: 1.0
  mapreduce.task.io.sort.factor: [3, 4, 5, 6, 7, 8, 10, 12, 15, 20, 25, 30, 40, 50]
repeat: 3
predict:
  models: [%s]
  profile_on: {mapreduce.task.io.sort.factor: [3, 10], mapreduce.task.io.sort.mb: [1, 4]}
"""


def fill(folder: Path) -> Run:
    """The run, sealed and not yet scored."""
    text = EXPERIMENT % ", ".join(list(MODELS)[:10])
    experiment = read_experiment(text, "large.yaml", ())
    run = Store(folder).open_run(experiment, text)
    trials = order(experiment, expand(experiment), VERSIONS)
    run.write_plan(trials)
    for n, trial in enumerate(trials):
        # Rates that no cell has twice, and that differ from trial to trial by up to a tenth.
        commit(run, trial, "done", RATES[n % len(RATES)] + n % 7)
    steps = evaluation(run)
    steps.profile()
    predictions = steps.predict()
    by_model: dict[str, list[Prediction]] = {}
    for each in predictions:
        by_model.setdefault(each.model, []).append(each)
    for place, (model, own) in enumerate(by_model.items()):
        if all(each.job_s is None for each in own):
            share = 1 + 0.02 * place
            times = [
                {name: share * time for name in TIMES if (time := getattr(each, name)) is not None}
                for each in by_model["whatif"]
            ]
            answers = [
                each.model_copy(update={"model": model, **changed})
                for each, changed in zip(by_model["whatif"], times, strict=True)
            ]
            run.write_predictions(model, answers)
    run.seal.path.unlink()  # what was sealed are the answers before they were moved aside
    run.seal.add()
    print(f"{len(trials)} trials, {len(steps.experiment.predict.models)} models", flush=True)
    return run


def main() -> None:
    """Print the seconds of each step and round; with ``--profile``, of one, and where they go."""
    with TemporaryDirectory() as folder:
        run = fill(Path(folder))
        for n in range(ROUNDS if "--profile" not in sys.argv else 1):
            seconds = []
            for step in ("score", "report"):
                wall, cpu = time.perf_counter(), time.process_time()
                getattr(evaluation(run), step)()
                wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
                seconds.append(f"{step} {wall:.2f} s ({cpu:.2f} s of processors)")
            print(f"round {n + 1}: {', '.join(seconds)}", flush=True)
        if "--profile" in sys.argv:
            for step in ("score", "report"):
                profiler = cProfile.Profile(time.process_time)
                profiler.runcall(getattr(evaluation(run), step))
                stats = pstats.Stats(profiler).strip_dirs()
                stats.sort_stats("cumulative").print_stats(70)
                stats.sort_stats("tottime").print_stats(30)


if __name__ == "__main__":
    main()
