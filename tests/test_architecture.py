"""
The rules of the whole package, checked on its syntax trees and on its table of commands.
"""

import ast
import re
import tomllib

from functools import cache
from pathlib import Path

import click
import pytest

from harness.cli import COMMANDS
from harness.cli.entry import group

PROJECT = Path(__file__).resolve().parent.parent
ROOT = PROJECT / "harness"

# What touches no file and starts no process: the modules of the contract in `pyproject.toml`.
PURE = tuple(
    name.removeprefix("harness.").replace(".", "/")
    for contract in tomllib.loads((PROJECT / "pyproject.toml").read_text())["tool"]["importlinter"][
        "contracts"
    ]
    if contract["name"] == "pure modules never touch the world"
    for name in contract["source_modules"]
)
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
PURE_MODULES = [
    module
    for module in MODULES
    for name in PURE
    if f"{module.relative_to(ROOT).with_suffix('')}/".startswith(f"{name}/")
]


def name_of(path):
    """
    Give parametrised tests the path inside the project.
    """
    return str(path.relative_to(PROJECT))


@cache
def syntax_nodes(path):
    """
    All nodes of a module's syntax tree.
    """
    return list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


@pytest.fixture(scope="module", autouse=True)
def _forget_syntax_nodes():
    """
    Millions of them: all that comes later in this process would be slower.
    """
    yield
    syntax_nodes.cache_clear()


def imported(path):
    """
    Yield the dotted name of everything that the module at *path* imports.
    """
    for node in syntax_nodes(path):
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
    for node in syntax_nodes(path):
        if isinstance(node, ast.Call):
            called = getattr(node.func, "id", getattr(node.func, "attr", ""))
            if called in forbidden:
                yield f"line {node.lineno}: {ast.unparse(node.func)}"


@pytest.mark.process
def test_pure_layers_import_nothing_of_the_world():
    """
    No process, no socket, no folder: what a pure module knows was handed to it.
    """
    offenders = [
        f"{name_of(path)}: {name}"
        for path in PURE_MODULES
        for name in imported(path)
        if name.split(".")[0] in WORLD and not any(name.startswith(h) for h in HARMLESS)
    ]

    assert offenders == []


def test_pure_layers_open_no_file():
    """
    Text comes in as an argument; only the package's own data is read, as package resources.
    """
    assert [f"{name_of(p)}: {call}" for p in PURE_MODULES for call in touching_calls(p)] == []


# Who opens a file that is none of a stored run: what a trial leaves while it runs is ours, and so
# is what a person names on the command line.
NOT_STORED = {
    "harness/cli/entry.py": {"open", "os.open"},  # /dev/null
    "harness/cli/commands/init.py": {"output.open"},  # a new experiment, written
    "harness/cli/commands/compare.py": {"budgets.read_text"},
    "harness/cli/commands/table.py": {"self.path.read_text"},  # CSV of a user's own
    "harness/cli/console/completion.py": {"schema_file.read_text"},  # of the package
    "harness/publish/command.py": {"authors.read_text"},
    "harness/tracer/command.py": {"gzip.open"},  # -o FILE, written
    "harness/cli/commands/models.py": {"Path(name).read_text"},  # vectors
    "harness/core/run/manifest.py": {"Path(file.locate()).read_bytes"},  # of an installed package
    "harness/nightly/columns.py": {"path.open"},  # CSV of a user's own
    "harness/core/evaluate/contract.py": {  # of the package
        "files('harness.core.evaluate').joinpath('example-profile.json').read_text"
    },
    # What a user named, and the state folder.
    "harness/core/evaluate/own_code.py": {"path.read_bytes", "_kept_path(code).read_bytes"},
    "harness/core/evaluate/own_model.py": {"os.fdopen"},  # the pipe of its own process
    "harness/core/evaluate/provenance.py": {"Path(sys.modules[module].__file__ or '').read_bytes"},
    "harness/clusters/monitor/machine.py": {
        "file.open", "self.path.open", "source.open", "target.open", "Path(path).read_text",
    },
    "harness/clusters/monitor/probe.py": {"self.log.open"},
    "harness/clusters/monitor/watch.py": {
        "self.host.open", "self.speed_log.open", "self.load_log.open",
    },
    "harness/catalog/histories.py": {"source.open"},  # by the opener of its folder
    "harness/core/run/jobs.py": {
        "log.read_bytes", "history.open", "path.open", "configuration.read_bytes"
    },
    "harness/core/run/secrets.py": {"path.open", "path.read_bytes"},
    "harness/core/run/experiment_file.py": {"path.read_text"},  # the experiment file
    "harness/base/documents/drawing.py": {  # of the package
        "files('harness.base.documents').joinpath('templates/report.css').read_text"
    },
    "harness/base/documents/formats/html.py": {  # of the package
        "files('harness.base.documents').joinpath('templates/report.css').read_text"
    },
    # Written, locked or packed, by whoever has the lock of a run that has no links.
    "harness/core/store/evidence.py": {"os.open", "os.fdopen"},
    "harness/nightly/history.py": {"os.open", "os.fdopen"},
    "harness/observe/storage/files.py": {
        "os.open", "os.fdopen", "Path(root, name).open", "temporary.open",
    },
    "harness/core/store/trials.py": {"log_path.open", "log_path.with_name(f'{log_name}.gz').open"},
    "harness/core/store/extract.py": {"archive.open", "path.open", "tarfile.open"},  # foreign
    "harness/core/store/packed.py": {"archive.open", "sum_file.open"},  # hashed, and its sum
}  # fmt: skip
OPENERS = ("opener", "self.opener", "self._opener", "raw", "self._raw", "run.raw(trial_id)")
OPEN_CALLS = {"open", "fdopen", "read_text", "read_bytes", "memory_map", "OSFile", "loadtxt"}


@pytest.mark.process
def test_one_opener_of_stored_files():
    """
    What reads a run goes through `harness/observe/storage/opener.py`: no other module opens a file
    below it.
    """
    offenders = []
    rooms = (
        "core/store", "core/evaluate", "core/run", "core/reports", "observe/storage",
        "clusters/monitor", "cli/", "nightly", "hardware", "past", "tuning",
    )  # fmt: skip
    for path in MODULES:
        name = name_of(path)
        if not name.startswith(tuple(f"harness/{room}" for room in rooms)):
            continue
        for node in syntax_nodes(path):
            function = getattr(node, "func", None)
            if getattr(function, "id", getattr(function, "attr", "")) not in OPEN_CALLS:
                continue
            called = ast.unparse(function)
            opener = called.rpartition(".")[0]
            if opener not in OPENERS and called not in NOT_STORED.get(name, ()):
                offenders.append(f"{name}:{node.lineno}: {called}")

    offenders = [
        each for each in offenders if not each.startswith("harness/observe/storage/opener.py")
    ]
    assert offenders == []


def test_libraries_are_imported_by_statements():
    """
    The contracts of `pyproject.toml` see no library whose name is a text.
    """
    offenders = [
        f"{name_of(path)}:{node.lineno}: {ast.unparse(node)}"
        for path in MODULES
        for node in syntax_nodes(path)
        if isinstance(node, ast.Call)
        and getattr(node.func, "id", getattr(node.func, "attr", "")) == "import_module"
        and isinstance(node.args[0], ast.Constant)
    ]

    assert offenders == []


def test_no_fix_asks_to_remove_results():
    """
    What was measured is not thrown away because a message said so.
    """
    offenders = []
    for path in MODULES:
        if not name_of(path).startswith(
            ("harness/core/store", "harness/core/evaluate", "harness/core/run")
        ):
            continue
        texts = [n for n in syntax_nodes(path) if isinstance(n, ast.Constant)]
        offenders += [
            f"{name_of(path)}:{node.lineno}: {node.value}"
            for node in texts
            if isinstance(node.value, str)
            and re.search(r"\b(rm -r|(remove|delete) (it|this|the|that))", node.value)
            and "\n" not in node.value.strip()
        ]

    assert offenders == []


def test_functions_are_one_thought():
    """
    A function of more than 80 lines is two thoughts.
    """
    offenders = [
        f"{name_of(path)}: {node.name}"
        for path in MODULES
        for node in syntax_nodes(path)
        if isinstance(node, ast.FunctionDef)
        and node.end_lineno - (node.body[1:] or node.body)[0].lineno >= 80
    ]

    assert offenders == []


def sources():
    """
    Everything that somebody wrote: not what Maven, Python or the harness made.
    """
    made = {"target", "home", "__pycache__", "SHA256SUMS"}
    for folder in ("harness", "workloads", "experiments", "docs", "scripts", "bench", ".ci"):
        for path in sorted((PROJECT / folder).rglob("*")):
            if path.is_file() and not made & set(path.relative_to(PROJECT).parts):
                yield path


def test_refers_to_nothing_outside_the_project():
    """
    No file names the place where this checkout happens to stand, or a folder beside it.
    """
    outside = re.compile(rf"{re.escape(str(PROJECT))}/|\.\./[s]hared\b|(?<![\w.-])[s]hared/")
    texts = ((path, path.read_bytes().decode("utf-8", "replace")) for path in sources())

    assert [name_of(path) for path, text in texts if outside.search(text)] == []


def commands(name, command):
    """
    A command and, of a group, all commands below it, by their full names.
    """
    yield name, command
    for sub in getattr(command, "commands", {}).values():
        # One that its group means, and that is hidden, has no name of its own.
        yield from commands(name if sub.hidden else f"{name} {sub.name}", sub)


def test_commands_are_documented():
    """
    Every command says what it does; where it does something itself, its help has an example on a
    line of its own.
    """
    undocumented = [name for name, row in COMMANDS.items() if not row.summary.endswith(".")]
    for top in COMMANDS:
        for name, command in commands(top, group.get_command(None, top)):
            shown = command.get_help(click.Context(command, info_name=name)).splitlines()
            examples = [line for line in shown if line.lstrip().startswith(f"harness {name}")]
            if not command.get_short_help_str():
                undocumented.append(name)
            if not examples and not isinstance(command, click.Group):
                undocumented.append(f"{name}: no example")

    assert undocumented == []
