"""
The section of hardware that was limited on purpose.
"""

import dataclasses

import pytest

from harness.base.documents.document import Table, Text
from harness.base.records.trial import Hardware, Limit, LimitedCluster, MachineLoad
from harness.core.experiment.model import ClusterAxes, Node, NodeLimits
from harness.core.reports import REPORTS
from harness.core.reports.sections import machine, make_document, method
from harness.core.reports.sections.trials import trial_table

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


def blocks(data, kind):
    """
    Tables or texts of the section.
    """
    return [block for block in machine.hardware_section(data).shown() if isinstance(block, kind)]


def limits_rows(data):
    """
    Rows of the table of limits.
    """
    return blocks(data, Table)[0].texts()


def texts(data):
    """
    Paragraphs of the section.
    """
    return [block.text for block in blocks(data, Text)]


def method_rows(data):
    """
    Rows of all tables of how it was measured.
    """
    tables = (block for block in method.section(data).shown() if isinstance(block, Table))
    return [row for table in tables for row in table.texts()]


def test_every_limit_has_both_figures(whole):
    """
    What was asked and what was measured, and the setting between them.
    """
    assert [row[1:] for row in limits_rows(limited(whole))] == [
        ["worker1", "processors", "0.5 cores", "0.49 cores", "0.52 cores", ""],
        [
            "worker1",
            "disk, written",
            "5 MiB/s",
            "4.9 MiB/s",
            "5.5 MiB/s",
            "buffered writes 5.2 MiB/s",
        ],
    ]


def test_the_cluster_is_named_by_what_was_requested_of_it(whole):
    """
    One that no cell names has its id.
    """
    (cell, _), *_ = whole.cells.values()
    node = cell.cluster.node.model_copy(update={"disk_bytes_per_s": 5 * MIB, "cores": 0.5})
    spec = cell.cluster.model_copy(update={"node": node, "nodes": {"worker2": Hardware(cores=1)}})
    cells = {"x": (cell.model_copy(update={"cluster": spec}), "x")}
    known = dataclasses.replace(limited(whole, cluster=spec.id), cells=cells)

    assert limits_rows(known)[0][0] == "1: cores 0.5, disk 5 MiB/s, worker2 different"
    assert limits_rows(limited(whole))[0][0] == "1: c0"


def test_a_limit_that_is_not_enforced_is_named(whole):
    """
    In the table; what that means stands above it.
    """
    buffered = limited(whole, disk=FAST)

    assert limits_rows(buffered)[1][-1] == "not enforced: 900 MiB/s for buffered writes"
    assert "applies to synced writes alone" in texts(buffered)[0]


def test_a_run_without_limits_has_no_section(whole):
    """
    Its nodes were as fast as their machine.
    """
    assert machine.hardware_section(whole).shown() == []


def test_reports_show_the_limits_once(whole):
    """
    Reports have the table, and do not repeat it in the manifest.
    """
    text = REPORTS["markdown"].render(make_document(limited(whole)))

    assert "## Hardware limited on purpose" in text
    assert not [row for row in method_rows(limited(whole)) if row[0].startswith("limits")]


def test_the_set_up_has_what_was_asked(whole):
    """
    Axes of all nodes, and workers that differ.
    """
    node = Node(disk_bytes_per_s=(5 * MIB, None))
    nodes = {"worker2": NodeLimits(cores=0.5, network_bytes_per_s=125_000)}
    changed = whole.experiment.model_copy(update={"cluster": ClusterAxes(node=node, nodes=nodes)})

    shown = dict(row[:2] for row in method_rows(dataclasses.replace(whole, experiment=changed)))

    assert shown["cluster.node.disk_bytes_per_s"] == "5 MiB/s, unlimited"
    assert shown["cluster.nodes.worker2.cores"] == "0.5"
    assert "cluster.node.cores" not in shown


def test_load_of_the_machine_stands_with_its_trial(whole):
    """
    What the rules of disturbed trials use, too: the most of all machines; unknown where one is.
    """
    loads = {
        "a": MachineLoad(busy=0.8, steal=0.0, others=0.02, swap_bytes_per_s=0.0),
        "b": MachineLoad(busy=0.4, steal=0.01, others=None, swap_bytes_per_s=2 * MIB),
    }
    trials = [whole.trials[0].model_copy(update={"loads": loads})]
    shown = trial_table(dataclasses.replace(whole, trials=trials))
    values = dict(zip(shown.columns, *shown.texts(), strict=True))

    assert (values["Busy"], values["Steal"], values["Swap"]) == ("80 %", "1.0 %", "2 MiB/s")
    assert "Others" not in values


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
    (row,) = blocks(passed(whole, read=1.0), Table)[1].texts()

    assert row[1] == "1"
    assert row[3:] == [row[2], "6 MiB"]
    assert len(blocks(limited(whole), Table)) == 1


@pytest.mark.parametrize(("read", "expected"), [(1.0, False), (0.6, False), (0.1, True)])
def test_input_from_memory_is_said(whole, read, expected):
    """
    A limit of reading that did not limit a job is shown to be none.
    """
    sentences = texts(passed(whole, read=read))

    assert any("reading was hardly limited" in text for text in sentences) is expected
