"""``harness trace selftest``: what it prints, and how it ends."""

import json

from contextlib import nullcontext
from pathlib import Path

import pytest

from click.testing import CliRunner

from harness.base.errors import MachineError
from harness.clusters.hadoop_home.home import HadoopHome
from harness.tracer import selftest
from harness.tracer.checks import Check
from harness.tracer.command import trace as command

GOOD = Check("sleep", "map: slept in reader", "2.000 s within 2 %", "2.001 s", ok=True)
BAD = Check("sleep", "map: spills", "3", "2", ok=False)


@pytest.fixture
def run(monkeypatch):
    """
    Runs the command where the self-test's checks are those given; gives its result.
    """

    def start(*results, arguments=()):
        monkeypatch.setattr(HadoopHome, "find", lambda: None)
        monkeypatch.setattr(selftest, "cluster_for", lambda *_: nullcontext("cluster"))
        monkeypatch.setattr(selftest, "run_selftest", lambda *_: list(results))
        return CliRunner().invoke(command, ["selftest", *arguments])

    return start


def test_each_check_is_a_line(run):
    """
    What was expected, what was observed, and whether that is right; status 1 for a failed check.
    """
    result = run(GOOD, BAD)

    words = [line.split() for line in result.stdout.splitlines() if "sleep" in line]
    assert [last for *_, last in words] == ["ok", "WRONG"]
    assert result.stderr.splitlines() == [
        "1 of 2 checks failed",
        "sleep, map: spills: expected 3; 2",
    ]
    assert result.exit_code == 1


def test_all_good(run):
    """
    Exit status 0.
    """
    assert run(GOOD).exit_code == 0


def test_one_document(run):
    """
    With --json stdout holds that alone.
    """
    document = json.loads(run(GOOD, BAD, arguments=["--json"]).stdout)

    assert document["ok"] is False
    assert [check["ok"] for check in document["checks"]] == [True, False]
    assert document["checks"][0]["found"] == "2.001 s"


class Home:
    """A Hadoop home that has everything but what a test takes away."""

    path = "home"
    trace_path_jar = tasks_archive = Path(__file__)


@pytest.mark.parametrize(
    ("lack", "what"),
    [
        ("trace_path_jar", "Hadoop's classes with the tracer's hooks are missing"),
        ("tasks_archive", "the class-data archive of traced tasks is missing"),
        ("jar", "the jar of our own jobs is missing"),
    ],
)
def test_what_is_not_built_is_named_before_any_job(monkeypatch, lack, what):
    """
    And the command that builds it.
    """
    monkeypatch.setattr(selftest, "JOBS_JAR", Path("nowhere" if lack == "jar" else __file__))
    home = Home()
    setattr(home, lack, None)

    with pytest.raises(MachineError, match=what) as refused:
        selftest.require_traced(home)
    assert refused.value.fix == "make setup"


def test_what_is_built_is_enough(monkeypatch):
    """
    Nothing is refused where nothing lacks.
    """
    monkeypatch.setattr(selftest, "JOBS_JAR", Path(__file__))

    selftest.require_traced(Home())
