"""
The rules of the whole package, checked on its syntax trees and on its table of commands.
"""

import ast
import re

from importlib import import_module
from pathlib import Path

import click
import pytest

from harness.cli import COMMANDS

PROJECT = Path(__file__).resolve().parent.parent
ROOT = PROJECT / "harness"

# Bottom first.  A package may import from rows below its own, and from itself.
LAYERS = [
    {"errors"},
    {"units"},
    {"records"},
    {"sim", "stats"},
    {"hadoop"},
    {"parsing", "models", "scoring", "workloads", "reports"},
    {"profiling", "tuning"},
    {"clusters", "store"},
    {"running"},
    {"cli"},
]
LEVEL = {name: level for level, row in enumerate(LAYERS) for name in row}
PURE = set().union(*LAYERS[:7])
WORLD = {
    "asyncio", "ctypes", "docker", "fcntl", "glob", "http", "multiprocessing", "os", "paramiko",
    "pathlib", "requests", "shutil", "signal", "socket", "subprocess", "tempfile", "threading",
    "urllib",
}  # fmt: skip
# Pure paths are names; logarithms of URLs are text: neither touches anything.
HARMLESS = {"pathlib.PurePath", "pathlib.PurePosixPath", "urllib.parse"}
TOUCHES = {"open", "write_text", "write_bytes", "unlink", "mkdir", "touch", "rename", "rmdir"}
READS = {"read_text", "read_bytes"}

MODULES = sorted(ROOT.rglob("*.py"))
PURE_MODULES = [m for m in MODULES if m.relative_to(ROOT).parts[0].removesuffix(".py") in PURE]


def name_of(path):
    """
    Give parametrised tests the path inside the project.
    """
    return str(path.relative_to(PROJECT))


def tree(path):
    """
    The syntax tree of a module.
    """
    return ast.parse(path.read_text(encoding="utf-8"))


def imported(path):
    """
    Yield the dotted name of everything that the module at *path* imports.
    """
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = path.relative_to(PROJECT).with_suffix("").parts[: -node.level or None]
            head = ".".join(base) if node.level else ""
            module = ".".join(part for part in (head, node.module) if part)
            yield from (f"{module}.{alias.name}" for alias in node.names)


def touching_calls(path):
    """
    Yield the calls in a module that open, read or change a file.
    """
    reads_package_data = any(name.startswith("importlib.resources") for name in imported(path))
    forbidden = TOUCHES if reads_package_data else TOUCHES | READS
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Call):
            called = getattr(node.func, "id", getattr(node.func, "attr", ""))
            if called in forbidden:
                yield f"line {node.lineno}: {ast.unparse(node.func)}"


def test_every_package_has_a_layer():
    """
    A new package must be placed before its imports mean anything.
    """
    packages = {m.relative_to(ROOT).parts[0].removesuffix(".py") for m in MODULES}

    assert packages - {"__init__", "__main__"} <= set(LEVEL)


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_imports_point_down(path):
    """
    A module imports only from its own package and from lower layers.
    """
    own = path.relative_to(ROOT).parts[0].removesuffix(".py")
    others = {name.split(".")[1] for name in imported(path) if name.startswith("harness.")}

    upward = {o for o in others & set(LEVEL) if o != own and LEVEL[o] >= LEVEL.get(own, 99)}

    assert upward == set()


@pytest.mark.parametrize("path", PURE_MODULES, ids=name_of)
def test_pure_layers_import_nothing_of_the_world(path):
    """
    No process, no socket, no folder: what a pure module knows was handed to it.
    """
    world = {name for name in imported(path) if name.split(".")[0] in WORLD}

    assert {w for w in world if not any(w.startswith(h) for h in HARMLESS)} == set()


@pytest.mark.parametrize("path", PURE_MODULES, ids=name_of)
def test_pure_layers_open_no_file(path):
    """
    Text comes in as an argument; only the package's own data is read, as package resources.
    """
    assert list(touching_calls(path)) == []


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_modules_and_functions_are_short(path):
    """
    A function of more than 60 lines, or a module of more than 500, is two things.
    """
    functions = (
        node for node in ast.walk(tree(path)) if isinstance(node, ast.FunctionDef | ast.ClassDef)
    )
    long = [
        f"{f.name}: {f.end_lineno - f.lineno + 1} lines"
        for f in functions
        if isinstance(f, ast.FunctionDef) and f.end_lineno - f.body[0].lineno >= 60
    ]

    assert long == []
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 500


def sources():
    """
    Everything that somebody wrote: not what Maven, Python or the harness made.
    """
    made = {"target", "home", "__pycache__"}
    for folder in ("harness", "workloads", "experiments", "docs", "scripts", "bench", ".ci"):
        for path in sorted((PROJECT / folder).rglob("*")):
            if path.is_file() and not made & set(path.relative_to(PROJECT).parts):
                yield path


@pytest.mark.parametrize("path", list(sources()), ids=name_of)
def test_refers_to_nothing_outside_the_project(path):
    """
    No file names the place where this checkout happens to stand, or a folder beside it.
    """
    text = path.read_bytes().decode("utf-8", "replace")

    assert str(PROJECT) not in text
    assert re.findall(r"\.\./[s]hared\b|(?<![\w.-])[s]hared/", text) == []


def commands(name, command):
    """
    A command and, of a group, all commands below it, by their full names.
    """
    yield name, command
    for sub in getattr(command, "commands", {}).values():
        yield from commands(f"{name} {sub.name}", sub)


@pytest.mark.parametrize("name", list(COMMANDS))
def test_commands_are_documented(name):
    """
    Every command says what it does; where it does something itself, its help has an example on a
    line of its own.
    """
    assert COMMANDS[name][1].endswith(".")
    for full_name, command in commands(name, import_module(COMMANDS[name][0]).command):
        shown = command.get_help(click.Context(command, info_name=full_name)).splitlines()
        examples = [line for line in shown if line.lstrip().startswith(f"harness {full_name}")]

        assert command.get_short_help_str(), full_name
        assert examples or isinstance(command, click.Group), full_name
