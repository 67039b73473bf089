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


def test_costs_differ_where_their_intervals_are_apart(tmp_path, capsys):
    """
    Of two machines; else nothing is said of them.
    """
    one, other = written(tmp_path), written(tmp_path, "b.json", value=6.0, low=4.0, high=8.0)

    assert main(["hardware", "compare", one, other, "--json"]) == 0
    (cost,) = json.loads(capsys.readouterr().out)["costs"]
    assert (cost["ratio"], cost["verdict"]) == (3.0, "differs")
    assert main(["hardware", "compare", one, one, "--json"]) == 0
    (cost,) = json.loads(capsys.readouterr().out)["costs"]
    assert cost["verdict"] == "within their intervals"


@pytest.mark.process
def test_a_page_has_what_the_terminal_has_and_the_jobs(tmp_path, capsys):
    """
    Of one machine, and of two side by side; facts are texts, whatever they hold.
    """
    file = written(tmp_path, group=["network_s_per_segment"])
    document = json.loads(Path(file).read_text())
    document["conditions"] = {"machine.cpu": "<b>fast</b>"}
    document["chosen"] = [{"trial": "t1", "reason": "sort: gain 2", "seconds": 12.0}]
    Path(file).write_text(json.dumps(document))
    page, other = tmp_path / "a.html", written(tmp_path, "b.json")

    assert main(["hardware", "show", file, "-o", str(page)]) == 0
    text = page.read_text()
    assert "not told apart from network_s_per_segment" in text
    assert "sort: gain 2" in text
    assert "&lt;b&gt;fast" in text
    assert main(["hardware", "show", file]) == 0
    assert "not told apart from network_s_per_segment" in capsys.readouterr().out
    assert main(["hardware", "compare", file, other, "-o", str(page)]) == 0
    assert "within their intervals" in page.read_text()
    assert main(["hardware", "compare", file, other]) == 0
    shown = capsys.readouterr().out
    assert "within their intervals" in shown
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
