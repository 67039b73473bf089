"""
The table of faults, held against the tests that it names: each exists, and runs where it says.
"""

import re

from collections import defaultdict
from pathlib import Path

import pytest

from harness.clusters import PROVIDERS
from tests.conftest import COLLECTED

PROJECT = Path(__file__).resolve().parent.parent
PAGE = PROJECT / "docs" / "faults.md"
RINGS = ("long", "live", "process")  # a test with several of these marks runs in the first of them
LEAST_LIVE = 10
# `tests/file.py::test` (RING, RING on PROVIDER, PROVIDER): where the kind of cluster is a fake one,
# no provider stands there.
NAMED = re.compile(r"`(tests/[\w/]+\.py)::([\w:]+)` \(([a-z, ]+?)(?: on ([a-z, ]+))?\)")
WORDS = re.compile(r"[a-z]+")


def table():
    """
    The cells of each row: fault, where, what is seen, how long, what is lost, tests.
    """
    text = PAGE.read_text(encoding="utf-8").partition("\n## The table\n")[2].partition("\n## ")[0]
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[1:]]


class Collected:
    """
    A plugin of a collection within this one: its tests, and what could not be collected.
    """

    def __init__(self):
        self.items, self.errors = [], []

    def pytest_collectreport(self, report):
        """
        A file that cannot be imported has no tests: its error says why, and not the page.
        """
        if report.failed:
            self.errors.append(f"{report.nodeid}: {report.longreprtext}")

    def pytest_collection_finish(self, session):
        """
        Keep the tests.
        """
        self.items = session.items


def collected_here(request, files):
    """
    The tests of the *files*, where this very session has collected all of them; else nothing.
    """
    items = [item for item in request.session.stash[COLLECTED] if item.path in files]
    is_whole = not any("::" in argument for argument in request.config.args)
    return items if is_whole and {item.path for item in items} == files else []


def collected_anew(files):
    """
    The tests of the *files*, whatever is asked of this session.
    """
    collected = Collected()
    quiet = "-n 0 -p no:cacheprovider -p no:terminal"
    options = f"--collect-only -o addopts=--import-mode=importlib {quiet}"
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("PYTEST_ADDOPTS", raising=False)
        arguments = [*options.split(), f"--rootdir={PROJECT}", *sorted(map(str, files))]
        pytest.main(arguments, plugins=[collected])
    assert collected.errors == []
    return collected.items


@pytest.fixture(scope="module")
def rings(request):
    """
    The rings of all tests of the files that the page names, by file and name.
    """
    paths = {path for path, *_ in NAMED.findall(PAGE.read_text(encoding="utf-8"))}
    files = {PROJECT / path for path in paths if (PROJECT / path).exists()}
    rings = defaultdict(set)
    for item in collected_here(request, files) or collected_anew(files):
        marks = {mark.name for mark in item.iter_markers()}
        ring = next((ring for ring in RINGS if ring in marks), "fast")
        path, *parts = item.nodeid.partition("[")[0].split("::")
        for name in {"::".join(parts), parts[-1]}:
            rings[path, name].add(ring)
    return rings


def test_rows_have_six_cells():
    """
    A row that was merged badly shows here.
    """
    assert [row[0] for row in table() if len(row) != 6] == []


def test_each_row_says_where_it_holds():
    """
    By providers, or `all` where no provider is asked.
    """
    unknown = {row[0]: set(WORDS.findall(row[1])) - {*PROVIDERS, "all"} for row in table()}

    assert {fault: words for fault, words in unknown.items() if words} == {}
    assert [row[0] for row in table() if not row[1]] == []


def test_each_row_has_a_test_that_exists_in_its_ring(rings):
    """
    The ring that stands behind a test is the one that its marks give it.
    """
    wrong = []
    for fault, *_, tests in table():
        named = NAMED.findall(tests)
        if not named or len(named) != tests.count("`") // 2:
            wrong.append(f"{fault}: a test lacks its ring, or there is none")
        for path, name, stated, _ in named:
            if rings.get((path, name), set()) != set(WORDS.findall(stated)):
                actual = sorted(rings.get((path, name), ())) or "no such test"
                wrong.append(f"{path}::{name} ({stated}): {actual}")

    assert wrong == []


def test_real_clusters_of_each_provider_meet_faults_in_make_test():
    """
    Ten rows at least are tried in the live ring, some of them on each provider.
    """
    by_row = [
        {word for *_, stated, on in NAMED.findall(row[-1]) if "live" in stated for word in [on]}
        for row in table()
    ]
    tried = {word for row in by_row for on in row for word in WORDS.findall(on)}

    assert sum(bool(row) for row in by_row) >= LEAST_LIVE
    assert {"ansible", "docker", "existing", "local"} <= tried <= set(PROVIDERS)
