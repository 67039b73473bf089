"""
The table of faults, held against the tests: every test that it names is there.
"""

import ast
import re

from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]
PAGE = (PROJECT / "docs" / "faults.md").read_text(encoding="utf-8")
NAMED = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`(?: \((long)\))?", PAGE)


@pytest.mark.parametrize(("file", "name", "mark"), sorted(set(NAMED)))
def test_named_test_exists(file, name, mark):
    """
    A promise without a test is none; one that takes long says so.
    """
    tree = ast.parse((PROJECT / file).read_text(encoding="utf-8"))
    functions = [f for f in ast.walk(tree) if isinstance(f, ast.FunctionDef) and f.name == name]

    assert len(functions) >= 1
    if mark:
        assert any("long" in ast.unparse(d) for f in functions for d in f.decorator_list)


def test_every_fault_has_a_test():
    """
    A row names a test, or the row that does.
    """
    table = PAGE.partition("| fault |")[2].partition("\n\n")[0].splitlines()[2:]

    assert [row for row in table if "`tests/" not in row and "as above" not in row] == []
