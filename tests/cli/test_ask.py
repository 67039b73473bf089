"""
`harness ask`: a question to a stored run, and what is printed, written and drawn of the answers.
"""

import csv
import json
import re

import pytest

from harness.cli import main
from tests.evaluate.test_flow import stored  # noqa: F401 - a fixture

REDUCES, SORT_MB = "mapreduce.job.reduces", "mapreduce.task.io.sort.mb"


def test_one_document_and_one_table_have_all_answers(stored, capsys, tmp_path):  # noqa: F811
    """
    The base, a setting, and each point of the grid, by both models of the run.
    """
    options = ["--setting", f"{SORT_MB}=2", "--grid", f"{REDUCES}=1,4", "--workload", "terasort"]
    table = tmp_path / "answers.csv"

    assert main(["ask", str(stored.path), *options, "-o", str(table), "--json"]) == 0
    shown = capsys.readouterr()
    rows = json.loads(shown.out)["answers"]
    assert [(row["model"], row["settings"][REDUCES]) for row in rows] == [
        (model, reduces) for model in ("whatif", "whatif-mr2") for reduces in ("2", "2", "1", "4")
    ]
    assert f"run: {stored.path}" in shown.err
    assert "base: terasort sort.factor=" in shown.err
    with table.open(encoding="utf-8") as lines:
        written = list(csv.DictReader(lines))
    assert [float(row["job_s"]) for row in written] == [row["job_s"] for row in rows]
    assert [row[f"settings.{REDUCES}"] for row in written[2:4]] == ["1", "4"]


def test_people_read_what_it_does_and_how_far_to_trust_it(stored, capsys):  # noqa: F811
    """
    A profile alone has no error and no base but the defaults.
    """
    profile = stored.path / "profiles" / "terasort.json"

    assert main(["ask", str(stored.path), "--setting", f"{SORT_MB}=2", "--model", "whatif"]) == 0
    shown = capsys.readouterr().out
    assert f"never profiled: {SORT_MB} 2 (profiled: 1)" in shown
    assert re.search(rf"whatif +\+ {SORT_MB}=2 +[\d.]+ .*(within|beyond) \d+ %", shown)
    assert main(["ask", str(profile), "--setting", "input=12 MB", "--setting", f"{REDUCES}=2"]) == 0
    assert not re.search("within|beyond", capsys.readouterr().out)


@pytest.mark.process
def test_what_a_model_of_ones_own_warns_of_is_shown(stored, capsys, tmp_path, monkeypatch):  # noqa: F811
    """
    Below its answer; a class that is no model is refused.
    """
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    head = "class Mine:\n    def predict(self, profile, configuration, cluster, job_input):\n"
    (tmp_path / "mine.py").write_text(
        f"{head}        return {{'body_s': 1.0, 'warnings': ['mind']}}\n"
    )
    (tmp_path / "none.py").write_text("class Mine:\n    pass\n")

    assert main(["ask", str(stored.path), "--model", f"{tmp_path}/mine.py:Mine"]) == 0
    assert "mine warns: mind\n" in capsys.readouterr().out
    assert main(["ask", str(stored.path), "--model", f"{tmp_path}/none.py:Mine"]) == 2
    assert "none.py:1: Mine has no method predict" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["-o", "a.gif"], "nothing is written to a file that ends in '.gif'"),
        (["--model", "whatfi"], "did you mean whatif?"),
        (["--grid", "reduces=1,2"], "there is no setting 'reduces'"),
    ],
)
def test_slips_are_named(stored, capsys, options, complaint):  # noqa: F811
    """
    With exit status 2, and before anything is written.
    """
    assert main(["ask", str(stored.path), *options]) == 2
    assert complaint in capsys.readouterr().err


@pytest.mark.process
@pytest.mark.parametrize(
    ("ending", "head"), [(".svg", b"<?xml"), (".pdf", b"%PDF"), (".png", b"\x89PNG")]
)
def test_answers_are_drawn(stored, tmp_path, ending, head):  # noqa: F811
    """
    In the format of the name's ending.
    """
    picture = tmp_path / f"answers{ending}"
    grid = ["--grid", f"{REDUCES}=1,2,4", "--grid", f"{SORT_MB}=2,4", "-o", str(picture)]

    assert main(["ask", str(stored.path), *grid]) == 0
    assert picture.read_bytes().startswith(head)
