"""
Tests for the node agent as a whole: one file, for Python 3.6 and newer.
"""

import ast
import io
import shutil
import subprocess
import sys
import zipfile

from pathlib import Path

import pytest

from harness.clusters import node
from harness.clusters.node import agent_bytes
from harness.clusters.node.__main__ import VERBS
from tests.node_agent import node_agent, node_agent_path

MODULES = sorted(Path(node.__file__).parent.glob("*.py"))
PARTS = [module for module in MODULES if module.stem != "__init__"]  # which is empty in the agent
# what the standard library has learned after 3.6
NEWER_NAMES = {
    "annotations", "dataclass", "dataclasses", "capture_output", "text", "missing_ok",
    "warn_on_full_buffer", "waitstatus_to_exitcode", "removeprefix", "removesuffix",
    "create_server", "readlink", "is_relative_to", "pidfd_open", "memfd_create", "file_digest",
    "isascii", "run_coroutine_threadsafe", "cache", "cached_property", "Protocol", "Literal",
}  # fmt: skip


def test_equal_modules_make_equal_bytes():
    """
    It is copied to a host once per content, and imports nothing of the harness there.
    """
    with zipfile.ZipFile(io.BytesIO(agent_bytes())) as archive:
        dates = {info.date_time for info in archive.infolist()}
        names = set(archive.namelist())

    assert dates == {(1980, 1, 1, 0, 0, 0)}
    assert names == {"__main__.py"} | {f"node/{p.name}" for p in MODULES}


@pytest.mark.parametrize("module", PARTS, ids=lambda p: p.stem)
def test_modules_run_on_python_3_6(module):
    """
    Their syntax, and the names of the standard library that a search finds.
    """
    tree = ast.parse(module.read_text(), feature_version=(3, 6))
    names = {
        getattr(each, "attr", None) or getattr(each, "arg", None)
        for each in ast.walk(tree)
        if isinstance(each, (ast.Attribute, ast.keyword))
    }
    imported = {
        (each.module or "") if each.level == 0 else "."
        for each in ast.walk(tree)
        if isinstance(each, ast.ImportFrom)
    }

    allowed = {"readlink"} if "os.readlink" in module.read_text() else set()
    assert names & NEWER_NAMES - allowed == set()
    assert not {name for name in imported if name.partition(".")[0] in {"harness", "__future__"}}


@pytest.mark.process
@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_can_be_imported(verb):
    """
    On this Python, and on one of 3.6 where there is one; without arguments most of them fail then.
    """
    done = subprocess.run(
        node_agent(verb), input="", capture_output=True, text=True, check=False, timeout=60
    )

    assert "ImportError" not in done.stderr
    assert "SyntaxError" not in done.stderr


@pytest.mark.process
def test_runs_on_the_oldest_python_here():
    """
    All modules are compiled and imported by it.
    """
    candidates = [shutil.which(f"python3.{minor}") for minor in range(6, 11)]
    program = "import sys; sys.path.insert(0, sys.argv[1]); " + "; ".join(
        f"import node.{p.stem}" for p in PARTS if p.stem != "__main__"
    )
    runs = {
        python: subprocess.run(
            [python, "-I", "-c", program, node_agent_path()],
            capture_output=True, text=True, check=False, timeout=60,
        ).stderr
        for python in [*filter(None, candidates), sys.executable]
    }  # fmt: skip

    # a shim without its Python says that it is not there
    assert {p: err for p, err in runs.items() if err and "command not found" not in err} == {}
