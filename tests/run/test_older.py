"""
Runs that earlier versions measured: read by every command, or refused once, with a way that works.

`tests/store/older` has a run of three trials for each shape, made with the first version that
had it: `shape-2.tar.gz` has files of `schema_version` 2.  Shapes 5 and 7 are bundles.
"""

import shutil

from pathlib import Path

import pytest

from harness.base.records.trial import OLDEST_READ, SCHEMA_VERSION
from harness.cli import main
from harness.core.reports import REPORTS
from harness.core.store.run import Run
from tests.run.test_readers import typed

pytestmark = pytest.mark.process

PROJECT = Path(__file__).resolve().parents[2]
OLDER = PROJECT / "tests/store/older"
PUBLISHED = {5: "tests/store/older/quick", 7: "results/published/half-cores"}

# What is typed about RUN, with its exit status; --strict is for runs that were predicted blind.
COMMANDS = {
    "show RUN": 0,
    "report RUN": 0,
    "score RUN": 0,
    "predict RUN": 0,
    "predict RUN --models whatif,nearest": 0,
    "profile RUN": 0,
    "plot RUN": 0,
    "export RUN -o export": 0,
    "ask RUN --workload terasort --setting mapreduce.job.reduces=2": 0,
    "tune RUN --workload terasort --optimizer rules": 0,
    "reproduce RUN --given predictions": 0,
}
SLOW_THERE = ("predict", "ask", "export", "reproduce", "score")
WITH_LOGS = {
    "collect RUN": 0,
    "report RUN -o report": 0,
    "catalog add RUN --catalog catalog": 0,
    "import RUN -o imported": 0,
    "runs": 0,
    "gc": 0,
}


@pytest.fixture(scope="module", autouse=True)
def nothing_is_drawn():
    """
    Figures take long, and know no shapes.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(REPORTS, "html", REPORTS["markdown"])
        yield


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    """
    Commands are typed in an empty folder, with a cache of its own.
    """
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


def read_by_all(lines, run):
    """
    Those of *lines* that end otherwise than they should, typed about the *run*.
    """
    ended = {line: main(typed(line, run)) for line in lines}
    return {line: status for line, status in ended.items() if status != lines[line]}


def unpacked(shape):
    """
    Path of the run of a *shape*, as somebody unpacks it who got it.
    """
    assert main(["unpack", str(OLDER / f"shape-{shape}.tar.gz")]) == 0
    (manifest,) = Path("results").glob("*/*/manifest.json")
    return manifest.parent


def shapes_kept():
    """
    Shapes of which a run is kept.
    """
    return sorted(int(path.name[6:-7]) for path in OLDER.glob("shape-*.tar.gz"))


def test_each_shape_but_the_present_one_is_kept():
    """
    Who raises the version keeps a run of the one before, made with its last commit.
    """
    older = {*shapes_kept(), *PUBLISHED}
    assert older == {*range(1, SCHEMA_VERSION)}


@pytest.mark.parametrize("shape", [shape for shape in shapes_kept() if shape >= OLDEST_READ])
def test_every_command_reads_an_older_run(shape):
    """
    As one of the present shape.
    """
    run = unpacked(shape)
    lines = COMMANDS | WITH_LOGS
    if shape >= 10:  # its question names both
        lines = {line.replace(",nearest", ",whatif-mr2"): status for line, status in lines.items()}
    if shape >= 12:  # its smallest experiment has one workload
        lines = {line.replace("terasort", "wordcount"): status for line, status in lines.items()}
    assert read_by_all(lines, run) == {}


@pytest.mark.parametrize("shape", PUBLISHED)
def test_every_command_reads_an_older_bundle(shape):
    """
    As far as its level of evidence goes.
    """
    bundle = PROJECT / PUBLISHED[shape]
    lines = COMMANDS
    if shape == 7:  # its predictions are drawn for another machine, and take a minute
        lines = {line: COMMANDS[line] for line in COMMANDS if not line.startswith(SLOW_THERE)}
    assert read_by_all(lines, bundle) == {}


def test_what_is_too_old_says_so_once(capsys):
    """
    Whatever is asked of it; and what the fix says works.
    """
    packed = OLDER / "shape-1.tar.gz"
    shutil.unpack_archive(packed, "results/tiny")
    (run,) = (path.parent for path in Path("results").glob("*/*/manifest.json"))
    asked = dict.fromkeys(COMMANDS, 7) | {"collect RUN": 7}
    assert read_by_all(asked, run) == {}
    errors = capsys.readouterr().err
    assert errors.count("error: this run is older than any that is read") == len(asked)
    assert f"fix: harness import {run} -o RUN makes a run of its job histories" in errors
    assert main(["unpack", str(packed), "--results-dir", "elsewhere"]) == 7
    assert "older than any that is read" in capsys.readouterr().err

    assert main(["import", str(run), "-o", "imported"]) == 0
    assert main(["backtest", "imported", "--model", "nearest"]) == 0
    assert Run(Path("imported")).read_manifest().schema_version == SCHEMA_VERSION
