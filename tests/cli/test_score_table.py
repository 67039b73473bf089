"""
Tests for `harness score TABLE.csv`.
"""

import json
import shlex

from pathlib import Path

import pytest

from harness.cli import main

ROWS = "".join(
    f"c{cell},{number},{100 + number},105,{130 + cell}\n" for cell in range(8) for number in (0, 1)
)
TABLE = f"cell,repeat,measured,good,bad\n{ROWS}"


@pytest.fixture
def score(tmp_path, monkeypatch, capsys):
    """
    Types the command about a table with a text; gives status, what was printed, and the errors.
    """
    monkeypatch.chdir(tmp_path)

    def run(*options, text=TABLE, name="t.csv"):
        (tmp_path / "t.csv").write_text(text)
        status = main(["score", name, *options])
        return (status, *capsys.readouterr())

    return run


def test_answers_without_a_run(score, tmp_path):
    """
    The sentence comes first, then the models, the floor; and nothing is written.
    """
    status, out, _ = score()

    assert status == 0
    assert out.startswith("Asked afterwards: Of 2 models good errs least: off by 4.5 % on average")
    assert out.index("good") < out.index("Floor ")
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]


def test_is_asked_a_question(score):
    """
    By its own family of tests.
    """
    _, out, _ = score("--question", "{nearer: [good, bad]}")
    assert out.startswith("Asked afterwards: Yes: good is off by 4.5 %, bad by ")


def test_json_has_all_of_it(score):
    """
    Scores, comparisons, controls, the answer.
    """
    _, out, _ = score("--json")
    document = json.loads(out)

    assert document["answer"]["model"] == "good"
    assert {control["name"] for control in document["controls"]} == {"perfect", "coin"}


@pytest.mark.parametrize(
    ("options", "changes", "says"),
    [((), {"text": TABLE.replace("101", "ten")}, ("'ten', which is no time", "t.csv:3")),
     ((), {"text": "cell,repeat,measured\n"}, ("no column of a model", "t.csv:1")),
     ((), {"name": "gone.csv"}, ("no such file", "gone.csv")),
     (("--question", "{nearer: [good, gone]}"), {}, ("no predictions of 'gone'", "--question"))],
)  # fmt: skip
def test_bad_input_is_one_clear_error(score, options, changes, says):
    """
    What, where, fix.
    """
    status, out, err = score(*options, **changes)

    assert (status != 0, out) == (True, "")
    assert all(text in err for text in says)
    assert "fix:" in err


def test_a_table_in_another_encoding_is_refused(score, tmp_path, capsys):
    """
    Two names that it would make one are two cells.
    """
    score()
    (tmp_path / "t.csv").write_bytes("cell,repeat,measured,m\n\u00e9,1,10,9\n".encode("latin-1"))

    assert main(["score", "t.csv"]) != 0
    assert "it is no UTF-8" in capsys.readouterr().err


def test_a_table_that_is_too_large_is_refused(score, monkeypatch):
    """
    Before it is read.
    """
    monkeypatch.setattr("harness.scoring.table.MOST_BYTES", 10)
    status, _, err = score()

    assert status != 0
    assert f"it has {len(TABLE)} bytes, of 10 that are read" in err


def test_the_page_shows_what_is_printed(score):
    """
    docs/own-numbers.md: its table, typed with its question.
    """
    page = (Path(__file__).parents[2] / "docs/own-numbers.md").read_text()
    table = page.split("```csv\n")[1].split("```")[0]
    command, shown = page.split("```console\n$ ")[1].split("```")[0].split("\n", 1)
    _, out, _ = score(*shlex.split(command)[3:], text=table)

    lines = [line.rstrip() for line in out.strip("\n").split("\n")]
    assert lines == shown.rstrip("\n").split("\n")


def test_what_is_decided_is_not_said_to_be_open(score):
    """
    The first of an asked pair is farther: no more cells are needed for that.
    """
    _, out, _ = score("--question", "{nearer: [bad, good]}")

    assert "it is farther than good" in out
    assert "would show" not in out


def test_models_that_choose_alike_are_both_named(score):
    """
    None wins by its name.
    """
    rows = "".join(
        f"c{n},{repeat},{10 * n + repeat},{10 * n},{11 * n},in{n // 3}\n"
        for n in range(1, 7)
        for repeat in (0, 1)
    )
    _, out, _ = score(
        "--question", "{choice: 1}", text=f"cell,repeat,measured,good,bad,input\n{rows}"
    )

    assert "bad and good choose equally well: their first choice takes 0.0 % longer" in out
    assert "others lose" not in out
