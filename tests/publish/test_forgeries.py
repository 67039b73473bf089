"""
Attacks on a bundle whose owner makes all sums anew: each is named, with the page or the record.
"""

import json
import shutil

import pytest

from harness.base.errors import EvidenceError
from harness.core.store.sums import REPLICATIONS, write_sums
from harness.observe.storage.opener import Opener
from harness.publish import verify
from harness.publish.bundle import publish
from harness.publish.compare import reproduce_bundle
from harness.publish.publication import PUBLICATION
from tests.evaluate.test_flow import scored
from tests.publish.test_whole_bundle import nothing_is_drawn  # noqa: F401  (a fixture)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """
    A bundle as it was made; not to be changed.
    """
    run = scored(tmp_path_factory.mktemp("results"))
    run.update_manifest(machine={"cores": 2, "memory_bytes": 2**34})
    run.finish()
    folder = tmp_path_factory.mktemp("bundles") / "bundle"
    publish([run], folder, level="traces")
    return folder


@pytest.fixture
def forged(made, tmp_path):
    """
    A copy of it, to be changed.
    """
    return shutil.copytree(made, tmp_path / "bundle")


def differing(bundle, scratch):
    """
    Names of all that `harness reproduce` finds to be other than it was.
    """
    scratch.mkdir()
    stages = reproduce_bundle(bundle, scratch, "")
    return {
        difference.name.partition(":")[0]
        for _, differences in stages
        for difference in differences or ()
        if not difference.is_equal
    }


def test_all_of_it_is_made_again(made, tmp_path):
    """
    Every byte of every page, from its runs.
    """
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    stages = dict(reproduce_bundle(made, scratch, ""))
    assert {stage: found for stage, found in stages.items() if found} == {}
    assert {"pages", "data", "tables", "figures"} <= stages.keys()


def test_every_page_that_was_changed_is_named(forged, tmp_path):
    """
    One letter in each, and all sums anew.
    """
    opener = Opener(forged)
    tops = ("runs", REPLICATIONS, "verify.py", PUBLICATION, "SHA256SUMS")
    pages = [name for name in opener.names(forged) if name.partition("/")[0] not in tops]
    for name in pages:
        path = forged / name
        path.write_bytes(path.read_bytes().replace(b"e", b"i", 1) + b" ")
    write_sums(forged)
    assert set(pages) <= differing(forged, tmp_path / "scratch")


def change_system(bundle):
    """
    A thousand nodes of many cores.
    """
    path = bundle / "system.json"
    document = json.loads(path.read_text())
    (system,) = document["experiments"].values()
    system["client"]["cores"] = 1000
    path.write_text(json.dumps(document))


def change_report(bundle):
    """
    Another answer where people read it.
    """
    path = bundle / "report.md"
    lines = path.read_text().splitlines()
    place = next(number for number, line in enumerate(lines) if line.startswith("**"))
    lines[place] = "**prophet is nearest, 0.4 % off.**"
    path.write_text("\n".join(lines))


def claim_an_anchor(bundle):
    """
    A run that nobody outside has seen says that somebody had.
    """
    claimed = "blind, anchored by a notary"
    for path, text in ((bundle / "data/runs.csv", f'"{claimed}"'), (bundle / "README.md", claimed)):
        path.write_text(path.read_text().replace("blind by the owner's word", text))


@pytest.mark.parametrize(
    ("forge", "says"),
    [
        (change_system, "system.json: recorded: client.cores is 1000"),
        (change_report, "report.md: no report answers"),
        (claim_an_anchor, "anchors/seal.json"),
    ],
    ids=lambda part: getattr(part, "__name__", None),
)
def test_the_verifier_alone_sees(forged, forge, says):
    """
    Without our package, and with right sums.
    """
    forge(forged)
    write_sums(forged)
    with pytest.raises((EvidenceError, ValueError, OSError), match=says):
        verify.check(forged)
