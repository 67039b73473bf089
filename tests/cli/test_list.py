"""
Tests for `harness.cli.list`.
"""

import json
import sys
import types

from importlib import import_module

import pytest

from harness.cli import main
from harness.cli.list import KINDS


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
    module = types.ModuleType("made_for_a_test")
    module.MODELS = {"a": Described(), "b": documented, "c": Described}
    monkeypatch.setitem(sys.modules, "made_for_a_test", module)
    monkeypatch.setitem(KINDS, "models", ("made_for_a_test", "MODELS"))


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


@pytest.mark.parametrize("kind", list(KINDS))
def test_everything_is_described(kind, capsys):
    """
    Whatever has a name in the harness is listed under it, with a line that says what it is.
    """
    module, attribute = KINDS[kind]

    rows = listed(capsys, kind)

    assert [row["name"] for row in rows] == list(getattr(import_module(module), attribute))
    assert rows
    assert all(row["description"] for row in rows)
