"""
The bundles that are committed: what a stranger would do with them, and the page about them.
"""

import subprocess
import sys

from pathlib import Path

import pytest

from harness.cli import main

ROOT = Path(__file__).parents[2]
BUNDLES = ["half-cores", "papers", "quick", "slow-disks", "slow-worker", "tuning"]
# Of 60 trials no more than 2 MB; the papers' grids have 138, and moved profiles have draws.  The
# grid of tuning has 96 cells of eight models.
MOST_BYTES = {"half-cores": 2_700_000, "papers": 5_200_000, "quick": 2_000_000,
              "slow-disks": 2_800_000, "slow-worker": 2_800_000, "tuning": 7_700_000}  # fmt: skip


def folder(name):
    """
    A bundle in the checkout.
    """
    return ROOT / "results/published" / name


@pytest.mark.process
@pytest.mark.parametrize("name", BUNDLES)
def test_a_published_bundle_is_borne_out_by_its_own_files(name):
    """
    verify.py, the rules of its division, and all that its evidence allows to make again.
    """
    verify = [sys.executable, "-I", "-S", folder(name) / "verify.py"]
    assert subprocess.run(verify, check=False, capture_output=True).returncode == 0
    assert main(["publish", "--check", str(folder(name))]) == 0
    assert main(["reproduce", str(folder(name))]) == 0


@pytest.mark.parametrize("name", BUNDLES)
def test_a_published_bundle_is_lean(name):
    """
    All files together.
    """
    files = [path for path in folder(name).rglob("*") if path.is_file()]
    assert files
    assert sum(path.stat().st_size for path in files) <= MOST_BYTES[name]


@pytest.mark.process
def test_the_page_of_the_published_bundles_says_what_they_say():
    """
    docs/published.md is what scripts/published prints.
    """
    printed = subprocess.run(
        [sys.executable, ROOT / "scripts/published"], check=True, capture_output=True, text=True
    ).stdout
    assert (ROOT / "docs/published.md").read_text(encoding="utf-8") == printed
