"""
`harness tune`: what it prints, writes and refuses.
"""

import json
import xml.etree.ElementTree as ET

import pytest

from harness.base.units import MIB, parse_bytes
from harness.cli import main
from harness.core.experiment.file import read_experiment
from harness.core.experiment.grid import expand
from harness.tuning import proposals as evaluate_tune
from tests.evaluate.test_flow import stored  # noqa: F401 - a fixture


@pytest.fixture
def tune(stored, capsys):  # noqa: F811
    """
    The command on the stored run: its status and what it printed.
    """

    def run(name, *words):
        words = (str(stored.path), *words)
        status = main([name, *words] if name == "tune" else ["tune", name, *words])
        printed = capsys.readouterr()
        return status, printed.out, printed.err

    return run


def test_the_best_properties_are_a_job_xml_that_hadoop_reads(tune, tmp_path):
    """
    The same as in the JSON document.
    """
    path = tmp_path / "job.xml"
    status, out, _ = tune("tune", "--json", "-o", str(path))
    best = json.loads(out)["proposals"][0]["properties"]

    assert status == 0
    read = {each.findtext("name"): each.findtext("value")
            for each in ET.parse(path).getroot()}  # fmt: skip
    assert read == best


def test_each_property_is_printed_with_its_reason(tune):
    """
    And all of them as arguments of a job.
    """
    status, out, _ = tune("tune", "--optimizer", "rules")

    assert status == 0
    assert "a map writes" in out
    assert "-D mapreduce.task.io.sort.mb=" in out


def test_where_nothing_is_faster_no_file_is_written(tune, tmp_path, monkeypatch):
    """
    The job's own settings are the best that is known.
    """
    made = evaluate_tune.proposals

    def slower(*given, **more):
        proposals, refused = made(*given, **more)
        return [each._replace(saved=-0.01) for each in proposals], refused

    monkeypatch.setattr(evaluate_tune, "proposals", slower)
    path = tmp_path / "job.xml"
    status, out, _ = tune("tune", "-o", str(path))

    assert status == 0
    assert "keep them" in out
    assert "-D" not in out
    assert not path.exists()


def test_a_job_is_tuned_for_an_input_that_never_ran(tune):
    """
    The base has it, and what no profiled job had is named.
    """
    status, out, _ = tune("tune", "--optimizer", "search", "--setting", "input=600 MB", "--json")
    document = json.loads(out)

    assert status == 0
    assert document["base"].endswith(", with input=600 MB")
    (proposal,) = document["proposals"]
    assert any(text.startswith("input bytes ") for text in proposal["never_profiled"])
    assert (
        "never profiled: " in tune("tune", "--optimizer", "search", "--setting", "input=600 MB")[1]
    )


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (("tune", "--judge", "whatiff"), "there is no model 'whatiff'"),
        (("tune", "--model", "nobody"), "there is no model 'nobody'"),
        (("tune", "--workload", "terasortt"), "no profile is of workload 'terasortt'"),
        (("tune", "--judge", "ptc-wave"), "ptc-wave cannot judge: the profile lacks copy_s_per_by"),
        (("tune", "-o", "nowhere/job.xml"), "its folder is not there"),
        (("tune", "--setting", "inputt=1 MiB"), "there is no setting 'inputt'"),
        (("tune", "--try", "2", "--optimizer", "rules"), "--try proposes by MRTuner's factors"),
        (("cluster", "--weight", "terasort=many"), "'terasort=many' is no weight"),
        (("cluster", "--memory", "much"), "much"),
    ],
)
def test_what_is_not_there_is_refused_by_name(tune, words, what):
    """
    With a status of its own, and nothing is recommended.
    """
    status, out, err = tune(*words)

    assert status in (2, 3, 7)
    assert what in err
    assert "-D" not in out


def test_a_cluster_is_a_block_for_an_experiment(tune):
    """
    The shortest mix first.
    """
    status, out, _ = tune("cluster", "--cores", "2", "--json")
    plans = json.loads(out)["plans"]

    assert status == 0
    totals = [plan["total_s"] for plan in plans]
    assert totals == sorted(totals)
    assert plans[0]["map_slots"] in ("1", "2")


def test_the_block_is_read_as_it_is_printed(tune):
    """
    Also where a task has a memory that is no whole number of GiB.
    """
    status, out, _ = tune("cluster", "--cores", "2", "--memory", "4099 MiB")
    block = out[out.index("cluster:") :]
    text = (
        f"schema: 1\nname: a\nquestion: b\nworkloads: [{{name: wordcount, input: 1 MiB}}]\n{block}"
    )

    assert status == 0
    (cell,) = expand(read_experiment(text, "a.yaml", ()))
    node = cell.cluster.node
    assert node.task_memory_bytes == 4099 // (node.map_slots + node.reduce_slots) * MIB


def test_a_cluster_is_parts_of_site_files(tune, tmp_path):
    """
    With what the best plan has, and no address or folder of any machine; nothing is overwritten.
    """
    folder = tmp_path / "site"
    status, out, _ = tune("cluster", "--cores", "2", "-o", str(folder), "--json")
    best = json.loads(out)["plans"][0]
    properties = {
        each.findtext("name"): each.findtext("value")
        for path in folder.iterdir() for each in ET.parse(path).getroot()
    }  # fmt: skip

    assert status == 0
    assert {path.name for path in folder.iterdir()} == {
        "capacity-scheduler.xml", "hdfs-site.xml", "mapred-site.xml", "resource-types.xml",
        "yarn-site.xml",
    }  # fmt: skip
    assert properties["yarn.nodemanager.resource-type.map-slot"] == best["map_slots"]
    assert int(properties["dfs.blocksize"]) == parse_bytes(best["dfs.blocksize"])
    assert not [text for text in properties.values() if "/" in text or ":" in text]
    status, _, err = tune("cluster", "--cores", "2", "-o", str(folder))
    assert status == 3
    assert "exists" in err


def test_a_past_job_cannot_be_tried_from_here(tmp_path, capsys):
    """
    Its cluster is not ours; and a catalog that is not there is said.
    """
    assert main(["tune", "job_1_0001", "--try", "1"]) == 2
    assert "its cluster cannot be started from here" in capsys.readouterr().err
    assert main(["tune", "job_1_0001", "--catalog", str(tmp_path / "none")]) == 7
    assert "there is no catalog yet" in capsys.readouterr().err


def test_what_a_choice_is_worth_is_a_table_and_a_document(tune):
    """
    Of each input the models, and who knows nothing.
    """
    status, out, _ = tune("regret", "--json")
    rows = json.loads(out)["regrets"]
    shown = tune("regret")[1]

    assert status == 0
    assert {row["model"] for row in rows} == {"whatif", "whatif-mr2", "at random"}
    assert "at random" in shown
    assert "mean regret: " in shown
