"""
The ready-made experiments: every one is planned without an error, and scores what it predicts.
"""

import json
import re

from collections import Counter
from pathlib import Path

import pytest

from harness.cli import main
from harness.core.experiment.file import read_experiment

PROJECT = Path(__file__).resolve().parent.parent
BUDGETS = PROJECT / "experiments" / "budgets.yaml"  # no experiment: of `harness compare`
EXPERIMENTS = sorted({*(PROJECT / "experiments").rglob("*.yaml")} - {BUDGETS})
COUNTS = {
    path: re.findall(r"# (\d+) cells, (\d+) trials", path.read_text(encoding="utf-8"))
    for path in EXPERIMENTS
}


@pytest.fixture(params=EXPERIMENTS, ids=lambda path: path.stem)
def experiment(request):
    """
    One after the other.
    """
    return request.param


def planned(path, capsys, tmp_path):
    """
    The trials that `harness plan` lists.
    """
    assert main(["plan", str(path), "--json", "--results-dir", str(tmp_path)]) == 0
    return json.loads(capsys.readouterr().out)["trials"]


@pytest.mark.process
def test_all_workloads_feed_a_profile_and_are_scored(experiment, capsys, tmp_path):
    """
    A workload without profiling cells cannot be predicted, one without others is not scored; of
    controls no model is asked, and what takes another run's profiles has none of its own.
    """
    trials = planned(experiment, capsys, tmp_path)
    uses = Counter((t["cell"]["workload"]["name"], t["profiling"]) for t in trials)
    names = {name for name, _ in uses}
    of_file = read_experiment(experiment.read_text(), experiment.name, ())
    without = names if of_file.predict.source else of_file.nightly.controls

    wanted = {(name, profiling) for name in names for profiling in (True, False)}
    assert set(uses) == wanted - {(name, True) for name in without}


COUNTED = [path for path in EXPERIMENTS if COUNTS[path]]


@pytest.mark.process
@pytest.mark.parametrize("experiment_file", COUNTED, ids=lambda path: path.stem)
def test_says_how_many_trials_it_has(experiment_file, capsys, tmp_path):
    """
    Where a file tells its cells and trials, they are those of the plan.
    """
    trials = planned(experiment_file, capsys, tmp_path)
    cells = {t["cell_id"] for t in trials}

    assert COUNTS[experiment_file] == [(str(len(cells)), str(len(trials)))]


def test_is_called_as_its_file(experiment):
    """
    Results lie under an experiment's name: two files never share one.
    """
    name = "-".join(experiment.relative_to(PROJECT / "experiments").with_suffix("").parts)

    assert f"\nname: {name}\n" in experiment.read_text(encoding="utf-8")
