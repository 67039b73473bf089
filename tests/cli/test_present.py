"""
Tests for `harness.cli.console.present`: one answer, for people, for programs and as a file.
"""

import errno
import json
import os

from pathlib import Path

import pytest

from harness.base.documents.document import Document, Text, table
from harness.base.errors import MachineError
from harness.cli.console.present import Note, Rows, block_parts, present, save, save_rows, show

ROWS = Rows(("job", "seconds"), [("sort", 2)])


def test_is_parts_for_people(capsys):
    """
    Lines, tables and files on stdout, notes on stderr, and nothing that a terminal obeys.
    """
    present({"jobs": 1}, ["one \x1bjob", ROWS, Path("a.csv"), Note("next")], as_json=False)

    out, err = capsys.readouterr()
    assert out.split() == ["one", "\\x1bjob", "job", "seconds", "\u2500" * 16, "sort", "2", "a.csv"]
    assert err == "next\n"


def test_is_one_document_for_programs(capsys):
    """
    Parts are not even made; an answer that takes long is made only then.
    """
    present(lambda: {"jobs": ROWS.records()}, (1 / 0 for _ in "x"), as_json=True)

    document = json.loads(capsys.readouterr().out)
    assert document == {"schema_version": 1, "jobs": [{"job": "sort", "seconds": 2}]}


@pytest.mark.parametrize("as_json", [False, True])
def test_a_report_is_an_answer(as_json, capsys):
    """
    People get its first screen, programs what report.json has.
    """
    present(Document("n", "q", "It is near.", ()), as_json=as_json)

    out = capsys.readouterr().out
    assert ("It is near." in out, out.startswith("{")) == (True, as_json)


def test_blocks_of_a_report_are_parts(capsys):
    """
    Texts, and open tables with their notes; what is folded or empty is left out.
    """
    shown = table("c", ("a",), "l", [("x",)], note="why")
    folded = table("c", ("b",), "l", [("y",)], folded=True)

    show(*block_parts([Text("first"), shown, folded, table("c", ("d",), "l", [])]))

    assert capsys.readouterr().out.split() == ["first", "a", "\u2500" * 3, "x", "why"]


def test_rows_are_written_as_csv(tmp_path):
    """
    What is nested has dotted names; a file without a row has its columns; no name, no file.
    """
    save_rows(tmp_path / "a.csv", [{"job": "sort", "times": {"job_s": 2.5}}])
    save_rows(tmp_path / "b.csv", [], ("job", "times"))
    save_rows(None, [])

    texts = [path.read_text() for path in sorted(tmp_path.iterdir())]
    assert texts == ["job,times.job_s\nsort,2.5\n", "job,times\n"]


def test_a_full_disk_keeps_the_older_file(tmp_path):
    """
    It is an error of the machine, which names that file.
    """
    path = tmp_path / "a.csv"
    path.write_text("older")

    def fill_disk(file):
        file.write_text("n")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(MachineError, match="no space left on device") as caught:
        save(path, fill_disk)

    assert (caught.value.where, path.read_text()) == (str(path), "older")


def test_a_file_that_cannot_be_written_is_an_error_of_the_machine(tmp_path):
    """
    It says where.
    """
    path = tmp_path / "none" / "a.txt"

    with pytest.raises(MachineError, match="no such file or directory"):
        save(path, lambda file: file.write_text("text"))
