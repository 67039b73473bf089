"""
`harness catalog` as a user types it.
"""

import json
import re

import pytest

from harness.cli import main
from tests.catalog.made import put, words


@pytest.fixture
def harness(tmp_path, capsys, monkeypatch):
    """
    Run a command in a folder with a done tree; return status, standard output and errors.
    """
    monkeypatch.chdir(tmp_path)
    put("done", 1, conf=words())
    put("done", 2, conf=words(), times=2.0)

    def run(*arguments):
        status = main(["catalog", *arguments])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return run


def test_from_histories_to_the_most_similar_job(harness):
    """
    Add, list, show, similar.
    """
    status, out, _ = harness("add", "done", "--json")
    assert (status, json.loads(out)["added"]) == (0, 2)

    status, out, _ = harness("list", "--json")
    (family,) = json.loads(out)
    assert (status, family["jobs"]) == (0, 2)

    status, out, _ = harness("list", "word", "--json")
    assert {job["state"] for job in json.loads(out)} == {"SUCCEEDED"}

    status, out, _ = harness("show", "job_1795224441974_0001", "--json")
    groups = json.loads(out)["groups"]
    assert groups["program"]["fields"]["mapper"] == "org.example.Words$Mapper"
    assert groups["records and bytes"]["from"] == "history: see counters_from"

    status, out, _ = harness("similar", "job_1795224441974_0001", "--json")
    (match,) = json.loads(out)["matches"]
    assert (match["job_id"], match["level"]) == ("job_1795224441974_0002", "same program")


def test_tables_for_people(harness):
    """
    The same without --json.
    """
    assert "incomplete" in harness("add", "done")[1]
    assert "word count [o.e.Words$Mapper" in harness("list")[1]
    assert "job_1795224441974_0002" in harness("list", "word")[1]
    shown = harness("show", "job_1795224441974_0001")[1]
    assert re.search("records and bytes +history: see counters_from", shown)
    assert "5.73 MiB" in shown
    assert "map_bytes_selectivity" in harness("similar", "job_1795224441974_0001")[1]


def test_text_of_a_history_cannot_steer_the_terminal(harness):
    """
    Its controls are written out.
    """
    put("done", 3, name=r"\u001b]0;x\u0007 \u202e", conf=words(mapper="a&#10;b"))
    put("done", 4, text=b"\x1b[31mAvro")
    status, out, err = harness("add", "done")
    shown = out + err + harness("list")[1] + harness("show", "job_1795224441974_0003")[1]

    assert status == 6
    assert not set("\x1b\x07\u202e") & set(shown)
    assert "\\x1b" in err


@pytest.mark.parametrize(
    ("arguments", "status", "what"),
    [
        (("add", "nowhere"), 2, "neither a folder nor a run"),
        (("add", "hdfs://nn/history"), 2, "write hdfs:/PATH"),
        (("list",), 7, "there is no catalog yet"),
        (("similar", "job_1_0001"), 7, "harness catalog add SOURCE"),
        (("list", "--rules", "none.yaml"), 2, "none.yaml"),
    ],
)
def test_mistakes(harness, arguments, status, what):
    """
    Are one clear error each.
    """
    ended, out, err = harness(*arguments)

    assert (ended, out) == (status, "")
    assert what in err


def test_a_family_that_is_not_there(harness):
    """
    Names the command that lists them.
    """
    harness("add", "done")
    status, _, err = harness("list", "sort")

    assert (status, "harness catalog list" in err) == (7, True)
