"""
The table of faults, held against the tests: every test that it names is there.
"""

import ast
import re

from functools import cache
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
PAGE = (PROJECT / "docs" / "faults.md").read_text(encoding="utf-8")
NAMED = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`(?: \((long)\))?", PAGE)


@cache
def functions_of(file):
    """
    The functions and methods of a file, as syntax.
    """
    tree = ast.parse((PROJECT / file).read_text(encoding="utf-8"))
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]


def decorators(file, name):
    """
    Text of the decorators of the tests called *name*; `None` where *file* has no such test.
    """
    functions = [function for function in functions_of(file) if function.name == name]
    texts = [ast.unparse(d) for f in functions for d in f.decorator_list]
    return " ".join(texts) if functions else None


def test_every_named_test_exists():
    """
    A promise without a test is none; one that takes long says so.
    """
    marked = {(file, name, mark): decorators(file, name) for file, name, mark in NAMED}

    assert [key for key, text in marked.items() if text is None or key[2] not in text] == []


def test_every_fault_has_a_test():
    """
    A row names a test, or the row that does.
    """
    table = PAGE.partition("| fault |")[2].partition("\n\n")[0].splitlines()[2:]

    assert [row for row in table if "`tests/" not in row and "as above" not in row] == []
