"""
Tests for `harness.core.run.preflight`, and for inputs that a workload refuses.
"""

import pytest

from harness.base.errors import MachineError, SpecError
from harness.base.records.trial import Cell, ClusterSpec, WorkloadSpec
from harness.clusters.local.cluster import LocalCluster
from harness.clusters.workloads import WORKLOADS
from harness.clusters.workloads.base import Parameter
from harness.clusters.workloads.terasort import TeraSort
from harness.core.evaluate.resolved import resolve_cell
from harness.core.run.plan import refuse_inputs
from harness.core.run.preflight import Preflight, argument_refusal, known_names


class Rounded(TeraSort):
    """
    A workload with an argument.
    """

    name = "rounded"
    parameters = {"rounds": Parameter(3, "how often", least=1, most=9)}  # noqa: RUF012


@pytest.fixture(autouse=True)
def workload(monkeypatch):
    """
    It is there beside the others.
    """
    monkeypatch.setitem(WORKLOADS, "rounded", Rounded())


def test_workloads_give_their_arguments_and_sizes():
    """
    What `harness list workloads` shows is what an experiment may say, and `hibench` of any.
    """
    known = known_names()

    assert known.parameters["rounded"] == ("rounds", "hibench")
    assert known.scales["wordcount"]["tiny"] == WORKLOADS["wordcount"].scales["tiny"]


@pytest.mark.parametrize(
    ("value", "what"),
    [(3, None), (10, "rounds of rounded is '10': it must be from 1 to 9"),
     ("x", "rounds of rounded is 'x': it must be a whole number")],
)  # fmt: skip
def test_values_are_judged_by_the_workload(value, what):
    """
    What is wrong, and an example of what is right.
    """
    expected = None if what is None else (what, "write, for example, rounds: 3")

    assert argument_refusal("rounded", "rounds", value) == expected


@pytest.mark.parametrize(("name", "argument"), [("nowhere", "rounds"), ("rounded", "other")])
def test_unknown_names_are_left_to_the_reader(name, argument):
    """
    They are reported elsewhere, once.
    """
    assert argument_refusal(name, argument, 1) is None


@pytest.mark.parametrize("asking", [LocalCluster, WORKLOADS["terasort"]])
def test_a_missing_library_is_said_before_anything_starts(asking, monkeypatch):
    """
    One of the provider, or of what proves an output; it is said first.
    """
    monkeypatch.setattr(asking, "libraries", ("no_such_library",), raising=False)
    cell = Cell(cluster=ClusterSpec(), workload=WorkloadSpec(name="terasort", input_bytes=2**20))
    preflight = Preflight(None, [resolve_cell(cell)], "mine.yaml", None, None)

    with pytest.raises(MachineError, match="no_such_library is not installed: it comes with"):
        preflight.check_libraries()
    assert preflight.checks[0] == preflight.check_libraries


TEXT = """\
schema: 1
workloads:
  - {name: wordcount, input: 1 MiB}
  - name: terasort
    input: 150
"""


def test_an_input_that_cannot_be_made_is_refused_at_its_workload():
    """
    Before anything is started, with the place of the workload in the file.
    """
    spec = WorkloadSpec(name="terasort", input_bytes=150)
    cell = resolve_cell(Cell(cluster=ClusterSpec(), workload=spec))

    with pytest.raises(
        SpecError, match="150 bytes is not within 1 % of 1 or more whole rec"
    ) as caught:
        refuse_inputs([cell, cell], "e.yaml", TEXT)
    assert caught.value.where == "e.yaml:4:5"
