"""
Tests for `harness.cli.commands.list`.
"""

import json

import pytest

from harness.cli import main
from harness.cli.commands.list import KINDS
from harness.clusters.workloads.base import Parameter


class Described:
    """
    A thing.
    """

    description = "Sorts records."


def documented():
    """
    Says more.

    And more still.
    """


@pytest.fixture
def known(monkeypatch):
    """
    Make ``harness list models`` list three things of different make.
    """
    entries = {"a": Described(), "b": documented, "c": Described}
    monkeypatch.setitem(KINDS, "models", lambda: entries)


def listed(capsys, kind):
    """
    What ``harness list KIND --json`` prints.
    """
    assert main(["list", kind, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_json_is_a_list_of_objects(known, capsys):
    """
    Each has its name, and the description it gives of itself or the first line of its docstring.
    """
    assert listed(capsys, "models") == [
        {"name": "a", "description": "Sorts records."},
        {"name": "b", "description": "Says more."},
        {"name": "c", "description": "Sorts records."},
    ]


def test_table_is_for_people(known, capsys):
    """
    The same, a row for each.
    """
    assert main(["list", "models"]) == 0

    last = capsys.readouterr().out.split()[-6:]
    assert last == ["b", "Says", "more.", "c", "Sorts", "records."]


def test_unknown_kind_is_a_usage_error(capsys):
    """
    The message names the kinds that there are.
    """
    assert main(["list", "planets"]) == 2
    assert "providers" in capsys.readouterr().err


class Sorted(Described):
    """
    A workload with sizes and arguments.
    """

    scales = {"tiny": 2**20, "huge": 2**40}  # noqa: RUF012
    parameters = {  # noqa: RUF012
        "mode": Parameter("fast", "how it sorts", choices=("fast", "slow")),
        "rounds": Parameter(3, "how often", least=1),
        "share": Parameter(0.5, "how much of it", least=0, most=1),
    }


@pytest.fixture
def workloads(monkeypatch):
    """
    Make ``harness list workloads`` list one with arguments, and one without.
    """
    bare = Described()
    bare.scales, bare.parameters = {"small": 5_000_000}, {}
    monkeypatch.setitem(KINDS, "workloads", lambda: {"sorted": Sorted(), "bare": bare})


def test_workloads_say_their_sizes_and_arguments(workloads, capsys):
    """
    Scripts get bytes, defaults, meanings and bounds; what has no bound says so.
    """
    first, second = listed(capsys, "workloads")
    mode, rounds, share = first["parameters"]

    assert first["scales"] == {"tiny": 2**20, "huge": 2**40}
    assert mode == {
        "name": "mode", "default": "fast", "meaning": "how it sorts",
        "choices": ["fast", "slow"], "least": None, "most": None, "step": 1,
    }  # fmt: skip
    assert (rounds["default"], rounds["least"], rounds["most"]) == (3, 1, None)
    assert (share["default"], share["least"], share["most"]) == (0.5, 0, 1)
    assert (second["scales"], second["parameters"]) == ({"small": 5_000_000}, [])


def test_people_see_them_too(workloads, capsys):
    """
    A table of sizes, in which a name that a workload lacks is empty, and one of arguments.
    """
    assert main(["list", "workloads"]) == 0

    out = capsys.readouterr().out
    rows = [" ".join(line.split()) for line in out.splitlines()]
    assert "name tiny huge small" in rows
    assert "sorted 1 MiB 1 TiB" in rows
    assert "sorted mode fast fast, slow how it sorts" in rows
    assert "sorted rounds 3 from 1 how often" in rows
    assert "sorted share 0.5 from 0 to 1 how much of it" in rows


@pytest.mark.parametrize("kind", list(KINDS))
def test_everything_is_described(kind, capsys):
    """
    Whatever has a name in the harness is listed under it, with a line that says what it is.
    """
    rows = listed(capsys, kind)

    assert [row["name"] for row in rows] == list(KINDS[kind]())
    assert rows
    assert all(row["description"] for row in rows)
