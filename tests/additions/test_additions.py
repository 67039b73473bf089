"""
What the design says of additions: a patch for each kind applies, touches no more than it may, and
goes without a trace; with all of them in, the contracts of each kind pass and know it by its name.

A patch that no longer applies is made anew: apply what is left of it by hand, then
``git diff -U1 > tests/additions/KIND.patch`` (new files by ``git add -N``), and take it back.
"""

import os
import re
import subprocess
import sys

from pathlib import Path

import pytest

pytestmark = pytest.mark.process

PROJECT = Path(__file__).parents[2]
HERE = PROJECT / "tests/additions"
# Most files of harness/ that each may touch: its own, and its registry, where these are two.
MOST = {
    "statistic": 2,
    "metric": 1,
    "section": 2,
    "command": 2,
    "format": 2,
    "setting": 1,
    "rule": 1,
    "cause": 1,
    "model": 2,
    "workload": 2,
    "provider": 2,
    "log-source": 1,
}
# Pages that a script writes are in no patch: who adds something runs the script, as we do.
MADE = {"scripts/commands": "docs/commands.md", "scripts/statistics": "docs/statistics.md"}
# Contracts of all kinds, those of docs/design.md, as far as they are about what was added.
CONTRACTS = (
    "tests/additions/added.py",
    "tests/records/test_statistics.py",
    "tests/scoring/test_metrics.py",
    "tests/reports/test_document.py",
    "tests/reports/test_texts.py",
    "tests/cli/test_reference.py",
    "tests/test_docs.py",
    "tests/test_architecture.py",
    "tests/publish/test_rules.py",
    "tests/evaluate/test_alarms.py",
    "tests/contracts/test_models.py",
    "tests/contracts/test_workloads.py",
    "tests/hostile/test_mutations.py",
)
CHOSEN = (
    "added or combine_cpu_s_per_spill or table_says or row_is_used or has_a_row or median_error"
    " or ids_are_unique or every_format or what_the_commands_say or has_an_example"
    " or has_every_command or architecture or R18 or good_bundle or has_each_rule"
    " or is_broken_by_a_bundle or phase or constant or copy or gc_log"
)


def git(folder, *arguments):
    """
    Run git in a *folder* that belongs to no repository.
    """
    variables = {**os.environ, "GIT_CEILING_DIRECTORIES": str(folder.parent)}
    done = subprocess.run(
        ["git", *arguments], cwd=folder, env=variables, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def python(folder, *arguments):
    """
    What Python prints of a script of the *folder*, with the package that lies there.
    """
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-1000:]
    return done.stdout


def make_copy(folder):
    """
    A copy of all files that are tracked.
    """
    for name in git(PROJECT, "ls-files", "-z").split("\0"):
        if name and (PROJECT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes((PROJECT / name).read_bytes())
    return folder


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """
    A copy in which additions come and go.
    """
    return make_copy(tmp_path_factory.mktemp("additions") / "copy")


@pytest.fixture(scope="module")
def grown(tmp_path_factory):
    """
    A copy with all additions in, and the pages that scripts make of them.
    """
    folder = make_copy(tmp_path_factory.mktemp("additions") / "grown")
    for kind in MOST:
        git(folder, "apply", patch_of(kind))
    for script, page in MADE.items():
        (folder / page).write_text(python(folder, script))
    return folder


def tree(folder):
    """
    All files of a *folder* with what is in them.
    """
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def patch_of(kind):
    """
    The patch that adds something of a *kind*.
    """
    return str(HERE / f"{kind}.patch")


def test_there_is_a_patch_for_each_kind_of_the_design():
    """
    The table of the design links to each, and there are no others.
    """
    page = (PROJECT / "docs/design.md").read_text(encoding="utf-8")
    linked = re.findall(r"\]\(\.\./tests/additions/([a-z-]+)\.patch\)", page)

    assert sorted(linked) == sorted(MOST) == sorted(path.stem for path in HERE.glob("*.patch"))


@pytest.mark.parametrize("kind", MOST)
def test_an_addition_is_its_own_files_and_one_line(kind, copy):
    """
    Alone it applies, within its files; taken back, everything is as it was.
    """
    before = tree(copy)
    touched = re.findall(r"^\+\+\+ b/(harness/.*)$", Path(patch_of(kind)).read_text(), re.MULTILINE)

    git(copy, "apply", patch_of(kind))
    after = tree(copy)
    git(copy, "apply", "-R", patch_of(kind))

    changed = [path for path in after if after[path] != before.get(path)]
    in_harness = {
        str(path.relative_to(copy)) for path in changed if copy / "harness" in path.parents
    }
    assert in_harness == {*touched}
    assert 0 < len(in_harness) <= MOST[kind]
    assert tree(copy) == before


def test_all_additions_keep_the_contracts(grown):
    """
    Each is known by its name, and the tests of its kind find it.
    """
    options = ["-q", "-p", "no:cacheprovider", "-m", "not live", "-k", CHOSEN]
    python(grown, "-m", "pytest", *options, *CONTRACTS)


@pytest.mark.long
def test_no_test_of_the_fast_ring_counts_what_there_is(grown):
    """
    All of it passes with all additions in: what is added has no other place to be named in.
    """
    marks = "not process and not live and not long"
    python(grown, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", marks)
