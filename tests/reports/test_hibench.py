"""
Tests for `harness.base.documents.formats.hibench`.
"""

import pytest

from harness.base.documents.document import Document
from harness.base.documents.formats.hibench import (
    DFSIO_MODE,
    HIBENCH_WORKLOADS,
    hibench_name,
    render_hibench,
)
from harness.base.records.trial import Cell, ClusterSpec, Trial, TrialRecord, Versions, WorkloadSpec
from harness.clusters.workloads import WORKLOADS

# Printed by HiBench's own shell functions (printf and bc) for a job of 21.227 s on 3 nodes.
PRINTED = (
    "Type         Date       Time     Input_data_size      Duration(s)          "
    "Throughput(bytes/s)  Throughput/node     \n"
    "HadoopTerasort 2020-11-02 22:30:27 35154                21.227               "
    "1656                 552                 \n"
)
ENDED = 1604356227.9


def record(name="terasort", *, client_s=21.2279, size=35_154, ended=ENDED, **rest):
    """
    A done trial on three workers.
    """
    spec = WorkloadSpec(name=name, input_bytes=40_000, parameters=rest.pop("parameters", {}))
    cell = Cell(cluster=ClusterSpec(workers=3), workload=spec)
    values = {
        "state": "done",
        "started_s": ended - 30,
        "finished_s": ended,
        "versions": Versions(hadoop="3", java="17"),
        "input_bytes": size,
        "harness_s": {"client_s": client_s} if client_s is not None else {},
    }
    return TrialRecord(trial=Trial(id=f"t{ended}", cell=cell, repetition=0), **(values | rest))


def rendered(*records):
    """
    The lines of a report with these trials.
    """
    return render_hibench(Document("e", "q", "h", (), trials=records))


def lines(*records):
    """
    Fields of the lines below the header.
    """
    return [line.split() for line in rendered(*records).splitlines()[1:]]


def test_is_what_hibench_prints():
    """
    To the byte: widths, cut decimals, rates as whole numbers.
    """
    assert rendered(record()) == PRINTED


def test_only_what_was_done_has_a_line():
    """
    Neither failures nor trials whose client was not timed; the order is that of their ends.
    """
    matched = lines(
        record(ended=ENDED + 60),
        record(state="failed", reason="r"),
        record(),
        record(client_s=None),
    )

    assert [fields[2] for fields in matched] == ["22:30:27", "22:31:27"]


@pytest.mark.parametrize(
    ("name", "parameters", "expected", "size"),
    [
        ("terasort", {}, "HadoopTerasort", "35154"),
        ("pagerank", {}, "HarnessPagerank", "35154"),
        ("sleep", {}, "HarnessSleep", "0"),
        ("dfsio", {"mode": "read"}, "HarnessDfsio-read", "40000"),
        ("dfsio", {"mode": "write"}, "HarnessDfsio-write", "40000"),
        ("dfsio", {}, "HarnessDfsio-read", "40000"),
        ("gpu-sbs", {}, "HarnessGpuSbs", "35154"),
    ],
)
def test_names_and_sizes(name, parameters, expected, size):
    """
    HiBench's only where all is; a sleeping job has no input, a test of HDFS what it moves.
    """
    ((kind, _, _, printed, *_),) = lines(record(name, parameters=parameters))

    assert (kind, printed) == (expected, size)
    assert kind == hibench_name(record(name, parameters=parameters).trial.cell.workload)


def test_types_of_hibench_are_those_of_its_work():
    """
    A workload has HiBench's type where nothing of its input and jobs differs: TeraSort always,
    others where that was asked for.
    """
    same = {name for name, workload in WORKLOADS.items() if not workload.unlike_hibench}
    types = [
        hibench_name(WorkloadSpec(name="wordcount", input_bytes=1, parameters={"hibench": form}))
        for form in ("true", "false")
    ]

    # The others have HiBench's form, and jobs of our own.
    assert same == {*HIBENCH_WORKLOADS, "pagerank", "kmeans"}
    assert types == ["HadoopWordcount", "HarnessWordcount"]


def test_a_mode_that_is_not_given_is_the_workload_s():
    """
    What an experiment leaves out is what ran.
    """
    assert WORKLOADS["dfsio"].parameters["mode"].default == DFSIO_MODE


@pytest.mark.parametrize(
    ("client_s", "expected"),
    [(0.5, [".500", "70308"]), (0.0, ["0", "0"]), (2.0, ["2.000", "17577"])],
)
def test_short_times(client_s, expected):
    """
    No 0 before the point, as bc writes it; no time is no rate.
    """
    ((*_, seconds, rate, _),) = lines(record(client_s=client_s))

    assert [seconds, rate] == expected


def test_an_input_of_unknown_size_is_what_was_asked():
    """
    An older trial did not note it.
    """
    ((_, _, _, size, *_),) = lines(record(size=None))

    assert size == "40000"
