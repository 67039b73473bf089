"""
The bundles that are committed: what a stranger would do with them, and the page about them.
"""

import subprocess
import sys

from pathlib import Path

import pytest

from harness.cli import main
from harness.core.evaluate.predict import in_sample_miss
from harness.core.store.packed import ARCHIVE, opened

ROOT = Path(__file__).parents[2]
BUNDLES = ["half-cores", "papers", "prophet", "quick", "slow-disks", "slow-worker", "tuning"]
# The papers' grids have 138 trials, and moved profiles have draws.  The grid of tuning has 96 cells
# of eight models.
MOST_BYTES = {
    "half-cores": 1_400_000,
    "papers": 2_300_000,
    "prophet": 16_000_000,  # with the traces of its 122 trials
    "quick": 4_000_000,  # with the traces of its jobs
    "slow-disks": 1_400_000,
    "slow-worker": 1_400_000,
    "tuning": 3_000_000,
}
MOST_FILES = 60


def folder(name):
    """
    A packed bundle in the checkout.
    """
    return ROOT / "results/published" / name


@pytest.fixture(scope="session", autouse=True)
def cache(tmp_path_factory):
    """
    A cache of these tests, in which each bundle is unpacked once.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(autouse=True)
def misses_are_known(monkeypatch):
    """
    What other tests leave out is in these bundles: by how much models miss what they learnt from.
    """
    monkeypatch.setattr("harness.core.evaluate.predict.in_sample_miss", in_sample_miss)


# What takes a minute each to be made again, and is of a kind with another one.
SLOW = ("prophet", "slow-disks", "slow-worker", "tuning")
IN_RINGS = [pytest.param(name, marks=[pytest.mark.long] * (name in SLOW)) for name in BUNDLES]


@pytest.mark.process
@pytest.mark.parametrize("name", IN_RINGS)
def test_a_published_bundle_is_borne_out_by_its_own_files(name):
    """
    verify.py, the rules of its division, and all that its evidence allows to make again.
    """
    verify = [sys.executable, "-I", "-S", opened(folder(name)) / "verify.py"]
    assert subprocess.run(verify, check=False, capture_output=True).returncode == 0
    assert main(["publish", "--check", str(folder(name))]) == 0
    assert main(["reproduce", str(folder(name))]) == 0


@pytest.mark.parametrize("name", BUNDLES)
def test_a_published_bundle_is_lean(name):
    """
    All files together.
    """
    files = [path for path in folder(name).rglob("*") if path.is_file()]
    assert (folder(name) / f"{ARCHIVE}.sha256") in files
    assert sum(path.stat().st_size for path in files) <= MOST_BYTES[name]


def test_published_bundles_are_few_files():
    """
    A clone is for those who read the code, too.
    """
    assert sorted(path.name for path in folder("").iterdir()) == BUNDLES
    assert sum(path.is_file() for path in folder("").rglob("*")) <= MOST_FILES


@pytest.mark.process
def test_the_page_of_the_published_bundles_says_what_they_say():
    """
    docs/published.md is what scripts/published prints.
    """
    printed = subprocess.run(
        [sys.executable, ROOT / "scripts/published"], check=True, capture_output=True, text=True
    ).stdout
    assert (ROOT / "docs/published.md").read_text(encoding="utf-8") == printed


@pytest.mark.process
def test_runs_of_lean_bundles_are_compared(capsys):
    """
    By their scored cells, whose times are in the scores; what is not there is named.
    """
    runs = [
        next((opened(folder(name)) / "runs").iterdir()) for name in ("half-cores", "slow-disks")
    ]
    assert main(["compare", *map(str, runs)]) == 0

    out, err = capsys.readouterr()
    assert f" in run {runs[1].name}: cores unlimited there, 0.5 here; disk " in out.splitlines()[0]
    for run in runs:
        assert f"not compared: {run.name} was published with its scores alone: " in err
