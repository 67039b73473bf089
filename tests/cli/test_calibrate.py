"""
`harness calibrate` and `harness hardware`, as far as no cluster is needed.
"""

import json

from pathlib import Path

import pytest

from harness.cli import main
from harness.core.experiment.file import cluster_text, read_experiment
from harness.hardware.calibrate import TEXT

COST = {"value": 2.0, "low": 1.0, "high": 3.0, "unit": "s", "source": "fit of copy_s"}
MACHINE = {"schema_version": 2, "measured_s": 1.0, "costs": {"network_s_per_byte": COST}}


def written(folder, name="a.json", **costs):
    """
    A file of costs: that of the network with other fields.
    """
    document = {**MACHINE, "costs": {"network_s_per_byte": {**COST, **costs}}}
    path = folder / name
    path.write_text(json.dumps(document))
    return str(path)


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"value": -1.0}, "costs.network_s_per_byte.value"),
        ({"high": 1.5}, "lacks its value"),
        ({"unit": None}, "costs.network_s_per_byte.unit"),
        ({"low": None}, "one end"),
        ({"more": 1}, "costs.network_s_per_byte.more"),
    ],
)
def test_a_file_that_was_edited_is_refused_with_the_field(tmp_path, capsys, wrong, field):
    """
    Status 7, and what is wrong where.
    """
    assert main(["hardware", "show", written(tmp_path, **wrong)]) == 7
    assert field in capsys.readouterr().err


def test_a_file_of_another_version_is_refused(tmp_path, capsys):
    """
    Nothing in it is guessed.
    """
    path = tmp_path / "a.json"
    path.write_text(json.dumps({**MACHINE, "schema_version": 99}))

    assert main(["hardware", "show", str(path)]) == 7
    assert "schema_version" in capsys.readouterr().err


def test_costs_differ_where_the_interval_of_their_ratio_leaves_out_1(tmp_path, capsys):
    """
    Of two machines; one that is as dear as it was is within its interval.
    """
    one = written(tmp_path, low=1.5, high=2.5)
    other = written(tmp_path, "b.json", value=6.0, low=4.0, high=8.0)

    assert main(["hardware", "compare", one, other, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    (cost,) = answer["costs"]
    assert (cost["name"], cost["ratio"], cost["verdict"]) == ("network_s_per_byte", 3.0, "differs")
    assert 1 < cost["low"] < 3 < cost["high"]
    assert answer["says"].startswith(
        "b.json beside a.json: its network copies 3.00 times as slow ("
    )
    assert "nothing was scored here" in answer["says"]
    assert (answer["judge"], answer["judge_error"]) == (None, None)
    assert main(["hardware", "compare", one, one, "--json"]) == 0
    (cost,) = json.loads(capsys.readouterr().out)["costs"]
    assert cost["verdict"] == "within their intervals"


@pytest.mark.parametrize(
    ("value", "verdict", "said"),
    [
        (54.0, "differs", "its network copies 27.0 times as slow (at least 9.00)"),
        (2.0 / 27, "differs", "its network copies 27.0 times as fast (at least 9.00)"),
        (5.0, "cannot tell", "1 cost cannot be told: less than a factor of 3 would not show"),
    ],
)
def test_a_cost_without_an_interval_differs_beyond_a_factor(tmp_path, capsys, value, verdict, said):
    """
    Too few jobs for an interval: 27 times as dear is a difference all the same.
    """
    one = written(tmp_path, low=None, high=None)
    other = written(tmp_path, "b.json", value=value, low=None, high=None)

    assert main(["hardware", "compare", one, other, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert [cost["verdict"] for cost in answer["costs"]] == [verdict]
    assert said in answer["says"]


@pytest.mark.process
def test_a_page_has_what_the_terminal_has_and_the_jobs(tmp_path, capsys):
    """
    Of one machine, and of two side by side; facts are texts, whatever they hold.
    """
    file = written(tmp_path, group=["network_s_per_segment"])
    document = json.loads(Path(file).read_text())
    segments = {**COST, "unit": "s", "group": ["network_s_per_byte"]}
    document["costs"]["network_s_per_segment"] = segments
    document["conditions"] = {"machine.cpu": "<b>fast</b>"}
    document["chosen"] = [{"trial": "t1", "reason": "sort: gain 2", "seconds": 12.0}]
    Path(file).write_text(json.dumps(document))
    page, other = tmp_path / "a.html", written(tmp_path, "b.json")

    assert main(["hardware", "show", file, "-o", str(page)]) == 0
    text = page.read_text()
    assert "network_s_per_{byte,segment}" in text
    assert "not told apart" in text
    assert "sort: gain 2" in text
    assert "&lt;b&gt;fast" in text
    assert main(["hardware", "show", file]) == 0
    assert "network_s_per_{byte,segment}" in capsys.readouterr().out
    assert main(["hardware", "compare", file, other, "-o", str(page)]) == 0
    assert "cannot tell" in page.read_text()
    assert main(["hardware", "compare", file, other]) == 0
    shown = capsys.readouterr().out
    assert "cannot tell" in shown
    assert "<b>fast</b>" in shown


def test_a_budget_without_a_unit_is_refused(capsys):
    """
    As every time.
    """
    assert main(["calibrate", "--budget", "10", "-o", "a.json"]) == 2
    assert "no unit" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["demo", "quick", "smoke"])
def test_the_cluster_is_that_of_an_experiment(name):
    """
    Its numbers are numbers there too.
    """
    file = Path("experiments", f"{name}.yaml")
    text = file.read_text()
    experiment = read_experiment(text, str(file))

    calibrated = read_experiment(TEXT.format(cluster=cluster_text(text, str(file))), str(file))

    assert calibrated.cluster == experiment.cluster
