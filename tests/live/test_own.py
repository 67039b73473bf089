"""
The workload of docs/own-workload.md on a real cluster, from its file to a report, and a model of
one's own about that run afterwards, without a job.
"""

import subprocess

import pytest

from harness.core.store import Store
from tests.docs.test_own import MODEL, WORKLOAD, blocks
from tests.live.runs import command

pytestmark = [pytest.mark.live, pytest.mark.long]


def test_pages_on_a_cluster(tmp_path):
    """
    Its trials are done, so its own check of their outputs passed; both kinds of models are scored.
    """
    file, results = tmp_path / "mean.yaml", tmp_path / "results"
    file.write_text(blocks(WORKLOAD, "yaml")[0])
    (tmp_path / "mean.py").write_text(blocks(WORKLOAD, "python")[-1])
    (tmp_path / "mine.py").write_text(blocks(MODEL, "python")[0])

    for argv in (
        command("all", results, experiment=file),
        command("predict", results, "--model", "whatif,./mine.py:Mine", experiment=file),
    ):
        done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr

    run = Store(results).latest("mean")
    (analysis,) = run.analyses()
    assert [record.state for record in run.trials().values()] == ["done"] * 3
    assert [*run.read_profiles()] == ["wordmean"]
    assert {score.model for score in analysis.read_scores().scores} == {"whatif", "mine"}
    assert "wordmean" in (analysis.path / "report.html").read_text()
