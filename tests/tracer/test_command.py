"""``harness trace selftest``: what it prints, and how it ends."""

import json

from contextlib import nullcontext
from pathlib import Path

import pytest

from click.testing import CliRunner

from harness.cli.trace import command
from harness.errors import MachineError
from harness.hadoop_home.home import HadoopHome
from harness.tracer import overhead as selftest_overhead
from harness.tracer import selftest
from harness.tracer.checks import Check
from harness.tracer.effects import Effect

GOOD = Check("sleep", "map: slept in reader", "2.000 s within 2 %", "2.001 s", ok=True)
BAD = Check("sleep", "map: spills", "3", "2", ok=False)
EFFECT = Effect("wordcount", "spans", 0.004, -0.01, 0.02, 90, 91, 0.05, 6.0)


@pytest.fixture
def run(monkeypatch, tmp_path):
    """
    Runs the command where the self-test's checks are those given; gives its result.
    """

    def start(*found, arguments=()):
        minutes = []

        def measure(cluster, folder, asked, talk):
            minutes.append(asked)
            return [EFFECT], tmp_path / "overhead.json"

        monkeypatch.setattr(HadoopHome, "find", lambda: None)
        monkeypatch.setattr(selftest, "cluster_for", lambda *_: nullcontext("cluster"))
        monkeypatch.setattr(selftest, "selftest", lambda *_: list(found))
        monkeypatch.setattr(selftest_overhead, "measure", measure)
        result = CliRunner().invoke(command, ["selftest", *arguments])
        return result, minutes

    return start


def test_each_check_is_a_line(run):
    """
    What was expected, what was found, and whether that is right; a failed check fails the gate.
    """
    result, minutes = run(GOOD, BAD)

    told = [line.split() for line in result.stdout.splitlines() if "sleep" in line]
    assert [words[0] for words in told] == ["ok", "WRONG"]
    assert "1 of 2 checks failed" in result.stderr
    assert (result.exit_code, minutes) == (1, [])


def test_all_good(run):
    """
    Exit status 0.
    """
    assert run(GOOD)[0].exit_code == 0


def test_one_document(run):
    """
    With --json stdout holds that alone; --overhead adds what was measured.
    """
    result, minutes = run(GOOD, BAD, arguments=("--json", "--overhead", "5"))
    document = json.loads(result.stdout)

    assert (document["ok"], minutes) == (False, [5.0])
    assert [check["ok"] for check in document["checks"]] == [True, False]
    told = {name: document["overhead"][0][name] for name in ("kind", "share", "spread", "needed")}
    assert told == {"kind": "map", "share": 0.004, "spread": 0.05, "needed": 193}


def test_overhead_is_a_table(run):
    """
    Each mode with its interval.
    """
    result, _ = run(GOOD, arguments=("--overhead", "5"))

    assert "+0.4% (-1.0% to +2.0%)" in result.stdout
    assert "kept in" in result.stderr


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
