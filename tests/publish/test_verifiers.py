"""
Tests for `harness.publish.verifiers`: which program checks a bundle, and which one never runs.
"""

import hashlib
import json
import shutil
import subprocess
import sys
import tarfile

from pathlib import Path

import pytest

from harness.cli import main
from harness.core.store.packed import opened
from harness.core.store.sums import write_sums
from harness.publish.verifiers import FORMER_TEXTS, former_verifiers, present_verifier

ROOT = Path(__file__).parents[2]
BUNDLE = ROOT / "results/published/quick"
OLDER = ROOT / "tests/store/older/quick"
PLANTED = """\
from pathlib import Path
Path(__file__).with_name("ran").touch()
print("prophet is nearest by job_s, 0.4 % off")
"""


@pytest.fixture
def forged(tmp_path):
    """
    A published bundle with another verifier in it, and the right sums.
    """
    folder = tmp_path / "bundle"
    shutil.copytree(opened(BUNDLE), folder)
    (folder / "verify.py").write_text(PLANTED)
    write_sums(folder)
    return folder


def test_the_texts_are_those_of_the_list():
    """
    Each former verifier is kept, and none beside them.
    """
    with tarfile.open(FORMER_TEXTS) as archive:
        assert {name[:-3] for name in archive.getnames()} == former_verifiers().keys()
    for sha256, verifier in former_verifiers().items():
        assert hashlib.sha256(verifier.text()).hexdigest() == sha256


def test_the_present_one_is_no_former_one():
    """
    Who changes verify.py after a bundle was published keeps the former one.
    """
    assert present_verifier().sha256 not in former_verifiers()


@pytest.mark.process
def test_the_page_has_what_it_is_made_of():
    """
    docs/verifiers.md is what scripts/verifiers prints.
    """
    printed = subprocess.run(
        [sys.executable, ROOT / "scripts/verifiers"], check=True, capture_output=True, text=True
    ).stdout
    assert (ROOT / "docs/verifiers.md").read_text(encoding="utf-8") == printed


@pytest.mark.process
@pytest.mark.parametrize(("bundle", "is_present"), [(BUNDLE, True), (OLDER, False)])
def test_a_bundle_is_checked_by_the_rules_of_its_version(bundle, is_present, capsys):
    """
    That of an earlier one, too, and it is said whose they are.
    """
    assert main(["verify", str(bundle), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["is_borne_out"]
    assert (answer["verifier"]["sha256"] == present_verifier().sha256) == is_present
    assert answer["lines"][-1].startswith("verified: ")


@pytest.mark.process
def test_what_does_not_follow_is_not_borne_out(tmp_path, capsys):
    """
    With right sums, and exit status 1.
    """
    folder = tmp_path / "bundle"
    shutil.copytree(opened(BUNDLE), folder)
    readme = folder / "README.md"
    readme.write_text(readme.read_text().replace("errs least", "errs most"))
    write_sums(folder)
    assert main(["verify", str(folder)]) == 1
    assert "the bundle is not borne out by its own tables" in capsys.readouterr().out


@pytest.mark.process
@pytest.mark.parametrize("command", [["verify"], ["publish", "--check"], ["reproduce"]])
def test_a_planted_verifier_is_refused_and_never_run(forged, command, capsys):
    """
    Whatever it would print, and although all sums are right.
    """
    assert main([*command, str(forged)]) == 7
    assert "the verifier in the bundle is none of ours" in capsys.readouterr().err
    assert not (forged / "ran").exists()
