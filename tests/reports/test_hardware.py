"""
What reports say of hardware made on purpose.
"""

import dataclasses

import pytest

from harness.experiment.model import ClusterAxes, Node, NodeLimits
from harness.records.hardware import Limit, LimitedCluster
from harness.records.trial import Hardware
from harness.reports import REPORTS
from harness.reports.hardware import disks_table, hardware_table, hardware_texts
from harness.reports.method import manifest_table, setup_table

MIB = 2**20
SLOW = Limit(requested=5 * MIB, setting=5.5 * MIB, measured=4.9 * MIB, buffered_write=5.2 * MIB)
FAST = Limit(requested=5 * MIB, setting=5 * MIB, measured=5 * MIB, buffered_write=900 * MIB)
SHARE = Limit(requested=0.5, setting=0.52, measured=0.49)


def limited(data, *, disk=SLOW, cluster="c0"):
    """
    The same run, on nodes one of which was limited.
    """
    start = LimitedCluster(
        cluster=cluster, measured_s=1.0,
        nodes={"worker1": {"cores": SHARE, "disk_write": disk}},
    )  # fmt: skip
    entry = start.model_dump(mode="json", exclude_none=True)
    return dataclasses.replace(data, manifest={**data.manifest, "limits": [entry]})


def rows(table):
    """
    Cells of a table as text.
    """
    return [[value.text for value in row] for row in table.rows]


def test_every_limit_has_both_figures(whole):
    """
    What was asked and what was measured, and the setting between them.
    """
    assert [row[1:] for row in rows(hardware_table(limited(whole)))] == [
        ["worker1", "processors", "0.5 cores", "0.49 cores", "0.52 cores", ""],
        ["worker1", "disk, written", "5 MiB/s", "4.9 MiB/s", "5.5 MiB/s", "unwaited 5.2 MiB/s"],
    ]


def test_the_cluster_is_told_by_what_was_asked_of_it(whole):
    """
    One that no cell names is told by its id.
    """
    (cell, _), *_ = whole.cells.values()
    node = cell.cluster.node.model_copy(update={"disk_bytes_per_s": 5 * MIB, "cores": 0.5})
    spec = cell.cluster.model_copy(update={"node": node, "nodes": {"worker2": Hardware(cores=1)}})
    cells = {"x": (cell.model_copy(update={"cluster": spec}), "x")}
    known = dataclasses.replace(limited(whole, cluster=spec.id), cells=cells)

    assert rows(hardware_table(known))[0][0] == "1: cores 0.5, disk 5 MiB/s, worker2 different"
    assert rows(hardware_table(limited(whole)))[0][0] == "1: c0"


def test_what_is_not_felt_is_said(whole):
    """
    In the table and in words; what is felt needs none.
    """
    unfelt = limited(whole, disk=FAST)

    assert rows(hardware_table(unfelt))[1][-1] == "not felt: 900 MiB/s unwaited"
    assert "hardly feel it" in hardware_texts(unfelt)[-1]
    assert len(hardware_texts(limited(whole))) == 1


@pytest.mark.parametrize("entry", [None, "fast", [1], [{"cluster": "c"}], {"worker1": {}}])
def test_an_entry_of_others_is_as_good_as_none(whole, entry):
    """
    A manifest may have been written by anybody.
    """
    strange = dataclasses.replace(whole, manifest={**whole.manifest, "limits": entry})

    assert (hardware_table(strange), hardware_texts(strange)) == (None, [])


@pytest.mark.parametrize("name", ["html", "markdown"])
def test_reports_show_it(whole, name):
    """
    Reports for people have the table, and do not repeat it in the manifest.
    """
    text = REPORTS[name].render(limited(whole))

    assert "Hardware made on purpose" in text
    assert not [row for row in rows(manifest_table(limited(whole))) if row[0].startswith("limits")]


def test_the_set_up_has_what_was_asked(whole):
    """
    Axes of all nodes, and workers that differ.
    """
    node = Node(disk_bytes_per_s=(5 * MIB, None))
    nodes = {"worker2": NodeLimits(cores=0.5, network_bytes_per_s=125_000)}
    asked = whole.experiment.model_copy(update={"cluster": ClusterAxes(node=node, nodes=nodes)})

    found = dict(rows(setup_table(dataclasses.replace(whole, experiment=asked))))

    assert found["disk of a node"] == "5 MiB/s, unlimited"
    assert found["worker2 alone"] == "cores 0.5, network 1 Mbit/s"


def passed(data, read, *, disk=5 * MIB):
    """
    The same run, whose trials had limited disks from which they read that part of their input.
    """
    cells = {}

    def on_disks(r):
        cell = r.trial.cell
        node = cell.cluster.node.model_copy(update={"disk_bytes_per_s": disk})
        cell = cell.model_copy(update={"cluster": cell.cluster.model_copy(update={"node": node})})
        cells[cell.id] = (cell, f"{cell.workload.name} on disks")
        size = int(read * cell.workload.input_bytes / 2)
        each = {"read": size, "written": 3 * MIB}
        trial = r.trial.model_copy(update={"cell": cell})
        disks = {"worker1": each, "worker2": each}
        return r.model_copy(update={"trial": trial, "disk_bytes": disks})

    trials = [on_disks(r) for r in data.trials if r.state == "done"][:1]
    return dataclasses.replace(limited(data), trials=trials, cells=cells)


def test_what_went_through_disks_is_counted(whole):
    """
    All nodes of a trial together, beside the input.
    """
    (row,) = rows(disks_table(passed(whole, read=1.0)))

    assert row[1] == "1"
    assert row[3:] == [row[2], "6 MiB"]
    assert disks_table(whole) is None


@pytest.mark.parametrize(("read", "told"), [(1.0, False), (0.6, False), (0.1, True)])
def test_input_from_memory_is_said(whole, read, told):
    """
    A limit of reading that a job did not feel is shown to be none.
    """
    texts = hardware_texts(passed(whole, read=read))

    assert any("reading hardly felt the limit" in text for text in texts) is told
