"""
Messages name what is there: nothing of a clone where the harness was installed by pip.
"""

import ast
import re

from pathlib import Path

import pytest

from harness.base import installed

PACKAGE = Path(installed.__file__).parents[1]
OF_A_CLONE = re.compile(
    r"\bmake (setup|cuda|demo)\b|\bgit (pull|checkout)\b|\b(docs|scripts|experiments)/\w|Makefile"
    r"|'\.\[\w+\]'"
)
# These run in a clone alone: they make what a wheel does not have.
OF_SETUP = ("clusters/hadoop_home/setup.py", "clusters/hadoop_home/__main__.py")
OF_FORMS = "base/installed.py"  # it looks for what only a clone has


def docstrings(tree):
    """
    Nodes of the texts that are said of modules, classes and functions.
    """
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    bodies = [node.body for node in ast.walk(tree) if isinstance(node, kinds) and node.body]
    return {id(body[0].value) for body in bodies if isinstance(body[0], ast.Expr)}


def in_clone(tree):
    """
    Nodes of the texts that are shown in a clone alone: the first argument of `by_form`.
    """
    nodes = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "by_form":
            nodes |= {id(inner) for inner in ast.walk(node.args[0])}
    return nodes


def texts_of_a_clone(source):
    """
    Texts of *source* that name what only a clone has, and are shown everywhere.
    """
    tree = ast.parse(source)
    left_out = docstrings(tree) | in_clone(tree)
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and id(node) not in left_out
        and OF_A_CLONE.search(node.value)
    ]


@pytest.mark.process
def test_no_text_names_what_only_a_clone_has():
    """
    Each has another text for an installation: harness/base/installed.py.
    """
    left_out = (*OF_SETUP, OF_FORMS)
    files = [file for file in PACKAGE.rglob("*.py") if not str(file).endswith(left_out)]
    found = {str(file): texts_of_a_clone(file.read_text()) for file in files}
    assert {file: texts for file, texts in found.items() if texts} == {}


def test_a_text_of_a_clone_is_found():
    """
    In whatever it stands but a docstring, and not where it has another form.
    """
    source = 'def f():\n    "docs/a.md"\n    raise E(f"see docs/{x}", fix="run: make setup")\n'
    assert texts_of_a_clone(source) == ["run: make setup"]
    assert texts_of_a_clone('fix = by_form("make setup", "docs/b.md")') == ["docs/b.md"]


@pytest.fixture
def wheel(monkeypatch, tmp_path):
    """
    The package, as it lies where pip puts it.
    """
    monkeypatch.setattr(installed, "_CLONE", tmp_path)


FIXES = {
    "setup": installed.setup_fix,
    "cuda": lambda: installed.setup_fix("cuda"),
    "extra": lambda: installed.extra_fix("clusters"),
    "example": lambda: f"name {installed.example()}",
    "page": lambda: "remove it" + installed.see("hibench.md", "names others"),
}


@pytest.mark.parametrize("name", FIXES)
def test_a_fix_of_an_installation_names_no_file(wheel, name):
    """
    And is not empty.
    """
    fix = FIXES[name]()
    assert fix
    assert not OF_A_CLONE.search(fix)


def test_a_fix_of_a_clone_names_what_is_there():
    """
    These tests run in one.
    """
    assert installed.is_clone()
    assert FIXES["setup"]() == "make setup"
    assert (PACKAGE.parent / FIXES["example"]().removeprefix("name ")).is_file()
    assert FIXES["page"]() == "remove it; docs/hibench.md names others"


def test_extras_are_named_as_pip_knows_them(wheel):
    """
    By the project's name, where there is no folder to install from.
    """
    assert FIXES["extra"]() == "pip install 'mapreduce-harness[clusters]'"
