"""
What a bundle discloses of a stored run: `harness.publish.system`.
"""

import copy
import gzip
import json
import re
import shutil

from types import SimpleNamespace

import pytest

from harness.base.records.manifest import Manifest
from harness.base.records.trial import Cell, ClusterSpec, NodeSpec, Versions, WorkloadSpec
from harness.clusters.node.system import system_facts
from harness.core.evaluate.resolved import resolve_cell
from harness.core.store import Run
from harness.publish import system as module
from harness.publish.system import FIELDS, disclosure, system_document, undisclosed
from tests.evaluate.test_flow import scored

CONF = """<?xml version="1.0" encoding="UTF-8" standalone="no"?><configuration>
<property><name>yarn.admin.acl</name><value>*</value><final>false</final>\
<source>yarn-default.xml</source></property>
<property><name>mapreduce.map.java.opts</name>\
<value>-Xmx409m -XX:+UseSerialGC &lt;LOG_DIR&gt;</value><final>false</final>\
<source>mapred-site.xml</source><source>job.xml</source></property>
<property><name>mapreduce.task.io.sort.factor</name><value>{factor}</value><final>false</final>\
<source>from command line</source><source>job.xml</source></property>
<property><name>mapreduce.job.dir</name><value>/staging/{trial}</value><final>false</final>\
<source>programmatically</source></property>
<property><name>hadoop.tmp.dir</name><value>/c/run-{run}-0123abcd/x</value><final>false</final>\
<source>core-site.xml</source></property>
<property><name>harness.seal</name><value>0f</value><final>false</final>\
<source>from command line</source></property>
</configuration>"""
JAVA = dict.fromkeys(FIELDS["nodes"]["*"]["java"].split(", "), "17")
FACTS = system_facts({"hdfs": "/", "local": "/proc"}) | {"java": JAVA}
NODES = {"master": FACTS, "worker1": "master", "worker2": {**FACTS, "os": "Another 1"}}


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """
    A scored run with what this harness writes down of a system; not to be changed.
    """
    run = scored(tmp_path_factory.mktemp("results"))
    for trial in run.read_plan():
        if run.trials()[trial.id].state == "done":
            factor = trial.cell.configuration["mapreduce.task.io.sort.factor"]
            text = CONF.format(factor=factor, trial=trial.id, run=run.id).encode()
            raw = run.trial_dir(trial.id) / "raw"
            (raw / "job-0-conf.xml.gz").write_bytes(gzip.compress(text))
    run.update_manifest(
        systems=NODES, daemon_options={"datanode": "-XX:+UseG1GC"}, packages={"numpy 2.0": "0f"},
        harness="0.1.0", commit="abc", python="3.12.1", nodes={"java": "17"},
        versions=Versions(hadoop="3.5.0", java="17", jars={"a.jar": "0f" * 32}),
        machine={"cores_usable": 4, "cores": 4, "cpu": "a", "architecture": "x", "os": "o",
                 "kernel": "k", "memory_bytes": 1, "id": "secret", "load": 2.5},
    )  # fmt: skip
    return run


@pytest.fixture
def changed(stored, tmp_path):
    """
    The same run, to be changed.
    """
    return Run(shutil.copytree(stored.path, tmp_path / stored.path.name))


def described(run):
    """
    What its system document says of the one experiment.
    """
    return system_document([run])["experiments"]["recorded"]


def test_nodes_that_are_alike_are_told_once(stored):
    """
    As the manifest has them; the nodes' own machine stands beside that of the harness.
    """
    facts = described(stored)

    assert facts["nodes"]["worker1"] == "the same as master"
    assert facts["nodes"]["master"] == json.loads(json.dumps(FACTS))
    assert facts["nodes"]["worker2"]["os"] == "Another 1"
    assert not {"id", "load"} & facts["client"].keys()


def test_a_full_disclosure_lacks_nothing(stored):
    """
    But for what a machine need not say.
    """
    assert undisclosed(system_document([stored])) == []


def test_clusters_say_slots_and_tasks_per_core(stored):
    """
    Offered and in force, of all cells at once where they are the same.
    """
    (entry,) = described(stored)["clusters"].values()

    assert entry["slots offered by a worker"] == {"map": 1, "reduce": 1}
    assert entry["slots effective"] == {"map": 2, "reduce": 2}
    assert entry["tasks per core"] == {"map": 0.5, "reduce": 0.5}
    assert (entry["block_bytes"], entry["replication"]) == (2 * 2**20, "2")
    assert entry["hardware"] == "local, 2 workers"


@pytest.mark.parametrize(
    ("cluster", "machines", "per_core"),
    [
        (ClusterSpec(workers=2, node=NodeSpec(cores=0.5)), {}, {"map": 2.0, "reduce": 2.0}),
        (
            ClusterSpec(provider="ansible", workers=2),
            {"a": 8, "b": 8},
            {"map": 0.125, "reduce": 0.125},
        ),
        (
            ClusterSpec(provider="ansible", workers=2),
            {},
            "not known: the cores of the nodes are not",
        ),
        (
            ClusterSpec(provider="existing", workers=2),
            {"a": 8},
            "not known: the cluster is not ours",
        ),
    ],
    ids=["limited", "hosts", "hosts that were not watched", "existing"],
)
def test_cores_are_those_of_the_nodes(cluster, machines, per_core):
    """
    Of the limit, where there is one; of all machines that were monitored; or not known.
    """
    cell = Cell(cluster=cluster, workload=WorkloadSpec(name="terasort", input_bytes=1000))
    watched = {name: {"nodes": [name], "cores": cores} for name, cores in machines.items()}
    manifest = Manifest(run="r", created_s=1, experiment_id="0", experiment={}, machines=watched)
    evaluation = SimpleNamespace(
        cells={"id": cell}, resolved={"id": resolve_cell(cell)}, labels={"id": "label"}
    )

    entry = module.cluster_facts(evaluation, manifest)["all cells"]["tasks per core"]
    assert entry.startswith(per_core) if isinstance(per_core, str) else entry == per_core


def test_properties_are_those_that_are_not_defaults(stored):
    """
    By job: what all have once, what a cell has under its label, and no value of a single trial.
    """
    hadoop = described(stored)["hadoop"]
    of_cells = hadoop["properties of a cell's jobs"]

    assert hadoop["properties of all jobs"] == {
        "hadoop.tmp.dir": "/c/CLUSTER/x",
        "mapreduce.job.dir": "(another in each trial)",
        "mapreduce.map.java.opts": "-Xmx409m -XX:+UseSerialGC <LOG_DIR>",
    }
    assert of_cells["terasort sort.factor=5"] == {"mapreduce.task.io.sort.factor": "5"}
    assert of_cells["wordcount sort.factor=3"].startswith("not known: ")


def test_jvms_say_heap_and_collector(stored):
    """
    By their options; what those leave to the JVM is not known.
    """
    jvm = described(stored)["jvm"]
    tasks = jvm["tasks"]["map"]

    assert (tasks["heap"], tasks["collector"]) == ("409m", "Serial")
    assert jvm["daemons"]["datanode"]["collector"] == "G1"
    assert jvm["daemons"]["datanode"]["heap"].startswith("not known: ")


def test_packages_are_those_of_the_measurement(stored, changed):
    """
    Or of now, and then that is said.
    """
    changed.update_manifest(packages={})
    harness = [described(run)["harness"] for run in (stored, changed)]

    assert harness[0]["packages"] == {"numpy 2.0": "0f"}
    assert [each["packages read"] for each in harness] == ["when measured", "when published"]
    assert any(name.startswith("pydantic ") for name in harness[1]["packages"])


def test_a_run_of_an_older_harness_says_that_it_was_not_asked(changed):
    """
    Each field stands there with the reason, and no rule takes it for a full disclosure.
    """
    changed.update_manifest(systems={}, daemon_options={})
    document = system_document([changed])
    (node,) = document["experiments"]["recorded"]["nodes"].values()

    assert node.keys() == FIELDS["nodes"]["*"].keys()
    assert node["kernel"]["command_line"] == module._NOT_ASKED
    assert document["experiments"]["recorded"]["jvm"]["daemons"] == module._NOT_ASKED
    assert "experiments.recorded.nodes.every node.processor.model" in undisclosed(document)


def test_nodes_without_a_connection_are_not_known(changed):
    """
    Each with all its fields, and the reason in them.
    """
    why = "not known: the nodes of an existing cluster have no connection"
    changed.update_manifest(systems={"a": why, "b": why})

    assert described(changed)["nodes"]["b"]["memory"]["swappiness"] == why


def test_what_a_node_leaves_out_is_not_known(changed):
    """
    A part, or a field of one.
    """
    changed.update_manifest(systems={"a": {"kernel": {"release": "6"}, "memory": "?"}})
    node = described(changed)["nodes"]["a"]

    assert (node["kernel"]["release"], node["kernel"]["clock_source"], node["os"]) == (
        "6", "not known: the node did not say", "not known: the node did not say",
    )  # fmt: skip
    assert set(node["memory"].values()) == {"not known: the node did not say"}


@pytest.mark.parametrize(
    ("place", "missed"),
    [
        (("nodes",), [""]), (("jvm",), [".tasks.map.heap", ".daemons"]), (("measured",), [".gpus"]),
        (("hadoop",), [".jars"]), (("hadoop", "jars"), [""]), (("gpus", "found"), [""]),
        (("client", "cpu"), [""]), (("harness", "packages"), [""]), (("measured", "rates"), [""]),
        (("clusters",), [""]), (("clusters", "all cells", "slots effective"), [""]),
        (("jvm", "tasks", "reduce", "collector"), [""]), (("nodes", "master", "os"), [""]),
        (("nodes", "master", "processor"), [".model", ".caches"]),
        (("nodes", "worker2", "kernel", "command_line"), [""]),
        (("nodes", "worker2", "java", "implementor"), [""]),
        (("nodes", "worker2", "disks", "local", "model"), [""]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("emptied", [False, True], ids=["taken out", "emptied"])
def test_what_is_taken_out_is_missed(stored, place, missed, emptied):
    """
    A document that leaves something out, or has nothing in its place, is no full disclosure.
    """
    document = copy.deepcopy(system_document([stored]))
    above = document["experiments"]["recorded"]
    for name in place[:-1]:
        above = above[name]
    above[place[-1]] = {}
    if not emptied:
        del above[place[-1]]
    name = ".".join(("experiments", "recorded", *place))
    named = undisclosed(document)

    assert {name + end for end in missed} <= {*named}
    assert all(each.startswith(name) for each in named)


def test_a_text_is_no_section(stored):
    """
    Nor does a part count as that of another node, and nothing is no disclosure.
    """
    document = system_document([stored])
    document["experiments"]["recorded"]["hadoop"] = "the same as before"

    assert "experiments.recorded.hadoop.version" in undisclosed(document)
    assert undisclosed({}) != []


def test_two_runs_of_an_experiment_are_both_there(stored):
    """
    Under names of their own, and none of them in an id of a run.
    """
    document = system_document([stored, stored])

    assert [*document["experiments"]] == ["recorded", "recorded again"]
    assert stored.id not in json.dumps(document)


def test_a_disclosure_says_how_it_was_measured(stored):
    """
    Order, seed, warm-up, repeats, noise; which models can be told apart; what its inputs are.
    """
    text = disclosure([stored])

    assert [line[4:] for line in text.splitlines() if line.startswith("### ")] == [
        "Models compared", "Errors per cell", "The machine", "How it was measured",
        "Failed trials", "Attempts that do not count", "Threats to validity",
        "Inputs and their licences",
    ]  # fmt: skip
    for words in (
        "in an order shuffled with seed 7 and repeats interleaved", "| predict.order | blind |",
        "| warmup | 1 |", "| repeat | 3 |", "| commit | abc |", "whatif-mr2",
        "Those of terasort are made by TeraGen of Hadoop", "All nodes are of one machine",
        "What the verdict rests on:", "Profiling trials come first", "| Noise |", "Taken on trust",
        "All trials ran on one start",
    ):  # fmt: skip
        assert words in text.replace("\\", "")


def test_each_trial_that_was_dropped_is_named_with_its_reason(changed):
    """
    Failed ones, and attempts that did not count; text of a log stays text.
    """
    failed, *_ = [each for each in changed.trials().values() if each.state == "failed"]
    done, *_ = [each for each in changed.trials().values() if each.state == "done"]
    for kind, reason, disturbed in (
        ("retried", "<b>no | room</b>", ""), ("warmup", "", ""), ("disturbed", "", "steal"),
    ):  # fmt: skip
        folder = changed.path / kind / f"{done.trial.id}-1"
        folder.mkdir(parents=True)
        update = {"reason": reason, "disturbed": disturbed}
        (folder / "trial.json").write_text(done.model_copy(update=update).model_dump_json())
    changed.update_manifest(reused={done.trial.id: "another-run"})
    text = disclosure([changed])

    assert re.search(rf"\| {failed.trial.id} \|.*\| the client ended with status 1 \|", text)
    assert f"retried: trial {done.trial.id}, \\<b\\>no \\| room\\</b\\>." in text
    assert f"warmup: trial {done.trial.id}, done." in text
    assert f"disturbed: trial {done.trial.id}, steal." in text
    assert f"Trial {done.trial.id} was measured by run another-run." in text


def test_the_same_run_gives_the_same_text(stored):
    """
    Twice.
    """
    assert disclosure([stored]) == disclosure([Run(stored.path)])
    assert system_document([stored]) == system_document([Run(stored.path)])
