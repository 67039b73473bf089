"""
Tests for `harness check` of a model on a real cell of a run.
"""

import json

import pytest

from harness.cli import main
from tests.evaluate.test_flow import scored

pytestmark = pytest.mark.process
MODEL = """
class Mine:
    required = {required}

    def predict(self, profile, configuration, cluster, job_input):
        times = [job.job_s for job in profile.jobs]
        return {answer}
"""
WHOLE = '{"job_s": 0.5 * max(times) + job_input.num_splits}'
BODY = '{"body_s": 1.0 * job_input.num_splits}'


@pytest.fixture
def check(tmp_path, monkeypatch, capsys):
    """
    Checks a model on a stored run, and gives its status and what was said.
    """
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    run = scored(tmp_path / "results")

    def checked(answer, *options, required="()"):
        path = tmp_path / "mine.py"
        path.write_text(MODEL.format(answer=answer, required=required))
        words = ["check", f"{path}:Mine", "--from", str(run.path), *options]
        status = main(words)
        said = capsys.readouterr()
        return status, said.out, said.err

    checked.run = run
    return checked


def test_asks_about_the_largest_cell(check):
    """
    What the model says of it stands beside what was measured; a whole job is lent nothing.
    """
    status, whole, _ = check(WHOLE)
    _, body, _ = check(BODY)

    assert status == 0
    assert whole.startswith("the model mine keeps its contract\nof terasort sort.factor=")
    assert "the largest cell that the run scores, measured: " in whole
    assert ", it says a job of " in whole
    assert "lent" not in whole
    assert ", it says a body of 3.0" in body
    assert " with the frame that it is lent, " in body


def test_asks_about_the_cell_that_is_named(check):
    """
    As tables call it, or by its id; by the profile of its workload, as `predict` does.
    """
    _, text, _ = check(WHOLE, "--cell", "terasort sort.factor=5", "--json")
    tried = json.loads(text)["tried"]
    _, by_id, _ = check(WHOLE, "--workload", "terasort", "--cell", tried["cell"], "--json")

    profile = check.run.read_profiles()["terasort"]
    assert tried["job_s"] == 0.5 * max(job.job_s for job in profile.jobs) + 3
    assert (tried["body_s"], tried["frame_s"], tried["not_applicable"]) == (None, None, [])
    assert tried["note"].startswith("terasort sort.factor=5, measured: ")
    assert json.loads(by_id)["tried"] == tried


def test_what_a_real_profile_lacks_is_said(check):
    """
    Where the made-up one has it.
    """
    status, text, _ = check(WHOLE, required="{'gpu_h2d_bps'}")

    assert status == 1
    assert "mine needs gpu_h2d_bps, and the profile does not have it" in text
    assert "it has no answer" in text


@pytest.mark.parametrize(
    ("options", "what"),
    [
        (
            ["--cell", "terasort sort.factor=7"],
            "no cell of the run is called 'terasort sort.factor=7'",
        ),
        (["--workload", "wordcount"], "no profile is of workload 'wordcount'"),
        (
            ["--workload", "terasort", "--cell", "wordcount sort.factor=5"],
            "no cell of the run is called",
        ),
    ],
)
def test_a_cell_that_is_not_there(check, options, what):
    """
    Those that are there are named.
    """
    status, _, refusal = check(WHOLE, *options)

    assert status == 2
    assert what in refusal
    assert "fix: " in refusal


def test_what_is_of_a_run_needs_one(check, tmp_path, capsys):
    """
    A workload of one's own is asked nothing about it.
    """
    check(WHOLE)
    (tmp_path / "words.py").write_text(
        "from harness.clusters.workloads.wordcount import WordCount\n"
        "class Words(WordCount):\n    pass\n"
    )

    assert main(["check", f"{tmp_path}/mine.py:Mine", "--cell", "x"]) == 2
    assert "--workload and --cell are of a run" in capsys.readouterr().err
    assert main(["check", f"{tmp_path}/words.py:Words", "--from", str(check.run.path)]) == 2
    assert "--from RUN is for a model, and words is a workload" in capsys.readouterr().err
