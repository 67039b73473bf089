"""
Tests for `harness.clusters.workloads.resolved`: what a workload sets itself.
"""

import pytest

from harness.base.errors import SpecError
from harness.base.records.trial import Cell, ClusterSpec, WorkloadSpec
from harness.clusters.workloads import WORKLOADS
from harness.clusters.workloads.base import JOBS, JobCommand
from harness.clusters.workloads.terasort import TeraSort
from harness.core.evaluate.resolved import resolve_cell
from harness.core.run.plan import refuse_cells
from harness.core.run.preflight import Preflight

REDUCES = "mapreduce.job.reduces"


class MapOnly(TeraSort):
    """
    A workload whose job has no reduces, whatever it is asked for.
    """

    name = "maponly"

    def properties(self, spec):
        return {REDUCES: "0"}


@pytest.fixture(autouse=True)
def workload(monkeypatch):
    """
    It is there beside the others.
    """
    monkeypatch.setitem(WORKLOADS, "maponly", MapOnly())


def cell(name="maponly", **configuration):
    """
    A cell of 6 MB.
    """
    spec = WorkloadSpec(name=name, input_bytes=6_000_000)
    properties = {key.replace("_", "."): value for key, value in configuration.items()}
    return Cell(cluster=ClusterSpec(), workload=spec, configuration=properties)


def test_a_workload_has_the_last_word():
    """
    What it sets itself stands over the configuration; the rest of that stays.
    """
    given = cell(mapreduce_job_reduces="4", other="1")

    assert resolve_cell(given).configuration == {REDUCES: "0", "other": "1"}


class OurOwn(MapOnly):
    """
    A workload whose jobs are in jars of ours.
    """

    def submit(self, spec, input_uri, output_uri):
        return (JobCommand("Main", (input_uri, output_uri), jar="ours.jar"),)


def test_jars_are_those_of_jobs_and_generators(monkeypatch):
    """
    Hadoop's own need no name.
    """
    monkeypatch.setitem(WORKLOADS, "maponly", OurOwn())

    small = cell("terasort")
    spec = small.workload.model_copy(update={"input_bytes": 600_000_000})
    large = small.model_copy(update={"workload": spec})

    assert sorted(resolve_cell(cell()).required_jars()) == [JOBS, "ours.jar"]
    assert list(resolve_cell(small).required_jars()) == [JOBS]
    assert list(resolve_cell(large).required_jars()) == []


@pytest.mark.parametrize(
    ("given", "warnings"),
    [
        (cell(mapreduce_job_reduces="4"), ["maponly sets mapreduce.job.reduces to 0, whatever"]),
        (cell(mapreduce_job_reduces="0"), []),
        (cell(), []),
        (cell("terasort"), []),
    ],
)
def test_an_overridden_property_is_a_warning(given, warnings):
    """
    The same value, or none, is not overridden.
    """
    preflight = Preflight(None, [resolve_cell(given)], "e.yaml", None, None)

    lines = preflight.overridden_properties()

    assert [line[: len(text)] for line, text in zip(lines, warnings, strict=True)] == warnings


def test_models_are_told_of_a_map_only_job():
    """
    The question says 0 reduces, although the configuration asks for 4.
    """
    config, _, _ = resolve_cell(cell(mapreduce_job_reduces="4")).model_inputs

    assert config.num_reduces == 0


def test_a_cluster_is_asked_for_what_the_workload_sets():
    """
    What a cluster cannot hold is refused by the properties that the job will have.
    """
    given_properties = []

    def refusals(_, properties):
        given_properties.append(properties)
        return ["no"]

    with pytest.raises(SpecError, match="no"):
        refuse_cells([resolve_cell(cell(mapreduce_job_reduces="4"))], refusals, "file")
    assert given_properties == [{REDUCES: "0"}]
