"""``harness doctor`` on the command line."""

import json

import pytest

from harness.cli.entry import main

pytestmark = pytest.mark.process


@pytest.fixture
def no_java(tmp_path, monkeypatch):
    """
    A machine whose JAVA_HOME is an empty folder.
    """
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)


def test_document(no_java, capsys):
    """
    One JSON document: the machine, the findings, and who is ready; status 3 without Java.
    """
    status = main(["doctor", "--json"])
    document = json.loads(capsys.readouterr().out)

    assert status == 3
    assert document["schema_version"] == 1
    assert document["machine"]["cores"] >= 1
    java = next(f for f in document["findings"] if f["name"] == "java")
    assert java["state"] == "lacking"
    assert next(r for r in document["ready"] if r["name"] == "local")["ready"] is False


def test_lines(no_java, capsys):
    """
    A line for each finding, the cure below a lack, and at the end who is ready.
    """
    main(["doctor"])
    lines = capsys.readouterr().out.splitlines()

    lack = next(n for n, line in enumerate(lines) if line.split()[:2] == ["LACKING", "java"])
    assert lines[lack + 1].split()[:3] == ["fix:", "unset", "JAVA_HOME,"]
    assert any(line.startswith("local: lacks ") and "java" in line for line in lines)
