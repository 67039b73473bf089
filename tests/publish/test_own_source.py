"""
A model of the owner's in a bundle: its source travels, or the bundle says that it does not.
"""

import hashlib
import json

import pytest

from harness.base.errors import SpecError
from harness.cli import main
from harness.core.evaluate.own_code import read_own
from harness.core.experiment.file import read_experiment
from harness.core.store import ledger
from harness.core.store.ledger import Registered
from harness.publish import crate, verify
from harness.publish.bundle import others_sealed, others_sentences
from harness.publish.publication import Publication
from tests.evaluate import test_flow
from tests.publish.test_whole_bundle import nothing_is_drawn  # noqa: F401  (a fixture)

SOURCE = """\
class Mine:
    def predict(self, profile, configuration, cluster, job_input):
        return {"body_s": 20.0}
"""
SHA256 = hashlib.sha256(SOURCE.encode()).hexdigest()
SAYS_NO = "its source is not here: nobody else can make its numbers again"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """
    A scored run with a model of the owner's; not to be changed.
    """
    file = tmp_path_factory.mktemp("own") / "mine.py"
    file.write_text(SOURCE)
    code = {"mine": read_own(f"{file}:Mine").code}

    def read_with_own(*given):
        experiment = read_experiment(*given)
        predict = experiment.predict.model_copy(update={"code": code})
        return experiment.model_copy(update={"predict": predict})

    text = test_flow.EXPERIMENT.replace("models: [whatif, whatif-mr2]", "models: [mine, whatif]")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(test_flow, "read_experiment", read_with_own)
        made = test_flow.evaluation(test_flow.fill(tmp_path_factory.mktemp("results"), text))
    made.profile()
    made.predict()
    made.score()
    made.run.finish()
    return made.run


@pytest.mark.process
def test_a_source_goes_public_and_is_said_to(run, tmp_path, capsys):
    """
    With its name in the bundle; the same bytes are made again.
    """
    folder = tmp_path / "bundle"
    assert main(["publish", str(run.path), "-o", str(folder)]) == 0
    path = f"runs/{run.id}/code/{SHA256}.py"
    assert (folder / path).read_text() == SOURCE
    said = capsys.readouterr().err
    assert f"mine is its owner's own: its source is `{path}`, which was mine.py." in said
    assert "--without-source leaves it out" in said
    page = (folder / "README.md").read_text()
    assert f"<!-- /claim -->\n\nmine is its owner's own: its source is `{path}`" in page
    assert main(["reproduce", str(folder)]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "made again: everything is equal"


@pytest.mark.process
def test_a_source_that_stays_is_said_to(run, tmp_path, capsys):
    """
    Beside the claim, in the report, and in what programs are told.
    """
    folder = tmp_path / "bundle"
    words = ["publish", str(run.path), "-o", str(folder), "--without-source", "--json"]
    assert main(words) == 0
    (source,) = json.loads(capsys.readouterr().out)["sources"]
    assert source == {"name": "mine", "file": "mine.py", "path": ""}
    assert not [*folder.rglob("code")]
    assert (
        f"<!-- /claim -->\n\nmine is its owner's own, and {SAYS_NO}."
        in (folder / "README.md").read_text()
    )
    assert "The source of mine" in (folder / "report.md").read_text()
    assert verify.check(folder)


@pytest.mark.process
def test_it_can_be_left_out_when_published_again(run, tmp_path):
    """
    Of a bundle that had it.
    """
    first = tmp_path / "first"
    second = tmp_path / "second"
    assert main(["publish", str(run.path), "-o", str(first)]) == 0
    assert main(["publish", "--again", str(first), "-o", str(second), "--without-source"]) == 0
    assert [*first.rglob("code")]
    assert not [*second.rglob("code")]
    assert SAYS_NO in (second / "README.md").read_text()


def test_how_many_others_were_sealed_is_counted_apart(monkeypatch):
    """
    Those in a bundle, and those in none; not the published run itself, nor another experiment.
    """

    class Published:
        id = "own"

        def experiment(self):
            return type("Experiment", (), {"name": "quick"})

    entries = [
        Registered(run, experiment, "ab", 1.0, 1.0, finished=True, published=published)
        for run, experiment, published in (
            ("own", "quick", ""), ("a", "quick", "cd"), ("b", "quick", "cd"), ("c", "quick", ""),
            ("d", "slow", ""),
        )
    ]  # fmt: skip
    monkeypatch.setattr(ledger, "registered", lambda: entries)
    sealed = others_sealed([Published()], is_unpublished=False)
    unpublished = others_sealed([Published()], is_unpublished=True)
    assert (sealed, unpublished) == ({"quick": 3}, {"quick": 1})
    publication = Publication(level="scores", sealed=sealed, unpublished=unpublished)
    assert [*others_sentences(publication)] == [
        (
            "Of quick the ledger of the machine that published it knew 3 other sealed runs at that"
            " moment, of which 1 is in no bundle."
        )
    ]


@pytest.mark.parametrize(
    "licence",
    ["", "CC-BY-4.0", "CC-BY-NC-SA-4.0", "CC0-1.0", "ODbL-1.0", "Apache-2.0", "MIT", "BSD-3-Clause",
     "GPL-3.0-or-later", "LicenseRef-Acme.1"],
)  # fmt: skip
def test_a_licence_of_spdx_is_one(licence):
    """
    Nothing is none.
    """
    crate.check_licence(licence)


@pytest.mark.parametrize(
    "licence", ["CC-BY", "cc-by-4.0", "Apache", "mine", "MIT licence", "CC-BY-x"]
)
def test_a_licence_that_is_none_is_refused(licence):
    """
    With some that are.
    """
    with pytest.raises(SpecError, match="is not a licence's identifier") as caught:
        crate.check_licence(licence)
    assert "CC-BY-4.0, CC0-1.0, ODbL-1.0 or Apache-2.0" in caught.value.fix
