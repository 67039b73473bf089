"""
A bundle from a run and back: made, checked, made again, set beside another.
"""

import json
import shutil
import subprocess
import sys

from pathlib import Path

import pytest

from harness.base.errors import DataError, EvidenceError, SpecError, UnmetError
from harness.cli import main
from harness.core.store import Run
from harness.core.store.sums import SUMS, check_sums, write_sums
from harness.publish import crate
from harness.publish.bundle import publish
from harness.publish.compare import side_by_side
from harness.publish.data import Claim
from tests.evaluate.test_flow import scored

ROOT = Path(__file__).parents[2]
READERS = ROOT / ".cache/readers/bin"  # scripts/peer readers
AUTHORS = "- {family-names: Doe, given-names: Jo, orcid: https://orcid.org/0000-0001-2345-6789}\n"
CLAIM = Claim("A title", "2026-11-25", ("- demo (1): no model can be ranked.", "  It rests."))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """
    A scored run that has come to its end; not to be changed.
    """
    run = scored(tmp_path_factory.mktemp("results"))
    run.finish()
    return run


def files_of(folder):
    """
    Content of every file below *folder*, by its name there.
    """
    paths = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


@pytest.fixture(scope="module")
def bundle(run, tmp_path_factory):
    """
    The lean bundle of the run; not to be changed.
    """
    folder = tmp_path_factory.mktemp("bundles") / "bundle"
    publish([run], folder, licence="CC-BY-4.0", authors=crate.read_authors(AUTHORS, ""))
    return folder


@pytest.fixture
def copy(bundle, tmp_path):
    """
    The same, to be changed.
    """
    return shutil.copytree(bundle, tmp_path / "copy")


class TestAuthors:
    def test_are_read_as_a_citation_has_them(self):
        """
        A list with the field names of CFF.
        """
        assert crate.read_authors(AUTHORS, "a.yaml")[0]["given-names"] == "Jo"

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "a: b",
            "- Jo",
            "- {given-names: Jo}",
            "- {name: 1}",
            "- {name: a, age: b}",
            "[",
            "[]",
            3000 * "[",
        ],
    )
    def test_anything_else_is_refused(self, text):
        """
        With the file's name and an example.
        """
        with pytest.raises(SpecError, match=r"at:  a\.yaml\n  fix: write a list"):
            crate.read_authors(text, "a.yaml")

    def test_a_licence_is_an_identifier(self):
        """
        Of SPDX; none is none.
        """
        crate.check_licence("")
        crate.check_licence("CC-BY-4.0")
        with pytest.raises(SpecError, match="is not a licence's identifier"):
            crate.check_licence("free for all")


@pytest.mark.process
class TestBundle:
    def test_twice_it_has_the_same_bytes(self, run, bundle, tmp_path):
        """
        Every file, and no more of them.
        """
        again = tmp_path / "again"
        publish([run], again, licence="CC-BY-4.0", authors=crate.read_authors(AUTHORS, ""))

        assert files_of(again) == files_of(bundle)

    def test_is_borne_out_by_all_that_checks_it(self, bundle):
        """
        sha256sum, verify.py on a bare Python, the rules of what it claims, and what is made again.
        """
        commands = (
            ["sha256sum", "-c", "--quiet", SUMS],
            [sys.executable, "-I", "-S", "verify.py"],
        )
        statuses = [subprocess.run(command, cwd=bundle, check=False) for command in commands]

        assert [done.returncode for done in statuses] == [0, 0]
        assert main(["publish", "--check", str(bundle)]) == 0
        assert main(["reproduce", str(bundle)]) == 0

    @pytest.mark.parametrize("level", ["traces", "raw"])
    def test_more_evidence_makes_more_again(self, run, tmp_path, level, capsys):
        """
        Profiles from traces, and traces from logs.
        """
        publish([run], tmp_path / "bundle", level=level)
        status = main(["reproduce", str(tmp_path / "bundle"), "--json"])

        stages = {each["stage"].split(" ")[0]: each for each in
                  json.loads(capsys.readouterr().out)["stages"]}  # fmt: skip
        assert (status, all(each["equal"] for each in stages.values())) == (0, True)
        assert ("trace" in stages, "profiles" in stages) == (level == "raw", True)

    def test_a_digit_is_named_although_the_sums_are_right(self, copy, capsys):
        """
        By verify.py and by what is made again, with file, row and column.
        """
        path = copy / "data/scores.csv"
        header, line, *lines = path.read_text().splitlines()
        values = line.split(",")
        at = header.split(",").index("predicted")
        values[at] = repr(float(values[at]) * 1.001)
        path.write_text("\n".join([header, ",".join(values), *lines]) + "\n")
        write_sums(copy)
        verified = subprocess.run(
            [sys.executable, "-I", "-S", copy / "verify.py"], capture_output=True, check=False,
        )  # fmt: skip

        assert (verified.returncode, main(["reproduce", str(copy)])) == (1, 1)
        assert b"scores.csv" in verified.stdout + verified.stderr
        assert "data/scores.csv:" in capsys.readouterr().out

    def test_a_changed_file_is_named(self, copy):
        """
        So is one that is missing, or was added; what was added as a replication is none of it.
        """
        (copy / "report.md").write_text("other")
        (copy / "system.json").unlink()
        (copy / "more.txt").write_text("new")
        (copy / "replications").mkdir()
        (copy / "replications/one.json").write_text("{}")

        with pytest.raises(EvidenceError) as error:
            check_sums(copy)
        assert error.value.what.splitlines()[1:] == [
            "  more.txt was added",
            "  report.md was changed",
            "  system.json is missing",
        ]

    def test_a_link_is_no_part_of_it(self, copy):
        """
        Nothing behind it is read.
        """
        (copy / "data/more.csv").symlink_to("/etc/passwd")

        with pytest.raises(DataError, match="not a plain file"):
            check_sums(copy)

    def test_the_same_twice_is_ranked_and_quoted(self, bundle, copy):
        """
        Nothing differs between a bundle and its copy.
        """
        both = side_by_side([bundle, copy])

        assert (both.head, both.not_ranked) == ({}, "")
        (sentence,), footnote = both.quotes[str(copy)]
        assert "Of 2 models whatif-mr2 errs least: off by 67.0 % on average " in sentence
        assert " It cannot be told apart from whatif. It rests on " in sentence
        assert sentence.endswith("these inputs; nothing is said of other systems.")
        assert footnote.endswith("open division, 1970-01-01; recomputed. Labels: not blind.")

    def test_on_another_system_nothing_is_ranked(self, bundle, copy):
        """
        What differs stands in the head.
        """
        path = copy / "system.json"
        system = json.loads(path.read_text())
        path.write_text(json.dumps({**system, "more": "2"}))
        write_sums(copy)
        both = side_by_side([bundle, copy])

        assert both.head == {"system: more": ["", "2"]}
        assert both.not_ranked == "not ranked: they were measured on different systems"

    def test_by_other_rules_nothing_is_ranked(self, bundle, copy):
        """
        Each bundle stands under the version of the rules that it claims.
        """
        path = copy / "rules.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), "version": "1.0"}))
        write_sums(copy)
        both = side_by_side([bundle, copy])

        assert both.head == {"rules": ["3.0", "1.0"]}
        assert both.not_ranked == "not ranked: they differ in rules"
        assert ", rules 1.0, open division, " in both.quotes[str(copy)][1]

    @pytest.mark.skipif(not READERS.exists(), reason="cffconvert is not here: scripts/peer readers")
    def test_others_read_its_citation_and_its_crate(self, bundle):
        """
        Cffconvert validates the one, the package rocrate reads the other: every file is in it, and
        each run as a whole.
        """
        program = "from rocrate.rocrate import ROCrate as C; c = C('.');"
        program += " print(len(c.data_entities), c.name)"
        cited = subprocess.run([READERS / "cffconvert", "--validate"], cwd=bundle, check=False)
        crated = subprocess.run(
            [READERS / "python", "-c", program], cwd=bundle, capture_output=True, text=True,
            check=False,
        )  # fmt: skip

        assert cited.returncode == 0
        assert crated.stdout.split(" ", 1) == [
            # Without the sums and what describes it itself, and with one run.
            str(len([name for name in files_of(bundle) if not name.startswith("runs/")]) - 2 + 1),
            "Performance models of Hadoop MapReduce compared: recorded\n",
        ]


@pytest.mark.process
def test_the_second_of_two_at_once_is_refused(run, tmp_path, monkeypatch):
    """
    What the first one made stays, and nothing is left of the other.
    """
    folder = tmp_path / "b"

    def meanwhile(scratch):
        folder.mkdir()
        write_sums(scratch)

    monkeypatch.setattr("harness.publish.bundle.write_sums", meanwhile)

    with pytest.raises(SpecError, match="the folder is there already"):
        publish([run], folder)
    assert [*tmp_path.iterdir()] == [folder]


@pytest.mark.process
def test_a_division_that_is_not_met_is_not_claimed(run, tmp_path):
    """
    Each rule that is in the way is named, and nothing is left.
    """
    with pytest.raises(UnmetError, match=r"closed division is not met:\n  R01 failed: ") as error:
        publish([run], tmp_path / "b", division="closed")
    assert "R03 failed: blind: false" in error.value.what
    assert not [*tmp_path.iterdir()]


class TestRefused:
    def test_a_folder_that_is_there(self, run, tmp_path):
        """
        It stays as it is.
        """
        with pytest.raises(SpecError, match="the folder is there already"):
            publish([run], tmp_path)

    def test_a_run_named_twice(self, run, tmp_path):
        """
        A bundle has each run once.
        """
        with pytest.raises(SpecError, match="named twice"):
            publish([run, run], tmp_path / "b")

    def test_a_run_that_has_not_ended(self, tmp_path):
        """
        Nothing is left of the bundle.
        """
        with pytest.raises(DataError, match="it has not ended"):
            publish([scored(tmp_path / "results")], tmp_path / "b")
        assert [path.name for path in tmp_path.iterdir()] == ["results"]

    def test_a_run_that_was_changed(self, run, tmp_path):
        """
        By the evidence of the run itself.
        """
        copy = shutil.copytree(run.path, tmp_path / run.id)
        trial = next((copy / "trials").iterdir())
        (trial / "trial.json").write_text((trial / "trial.json").read_text().replace("1.0", "1.5"))

        with pytest.raises(EvidenceError):
            publish([Run(copy)], tmp_path / "b")

    def test_a_moment_that_is_none(self, run, tmp_path, monkeypatch, capsys):
        """
        Before anything is made.
        """
        monkeypatch.setenv("SOURCE_DATE_EPOCH", "abc")

        assert main(["publish", str(run.path), "-o", str(tmp_path / "b")]) == 2
        assert "'abc' is not a moment" in capsys.readouterr().err

    @pytest.mark.parametrize("content", [b"\x7fELF\0\n\xff", b"abc  name\n", b"0" * 64 + b"  name"])
    def test_sums_that_are_none(self, tmp_path, content):
        """
        Whatever the file holds, it is named and not shown.
        """
        (tmp_path / SUMS).write_bytes(content)

        with pytest.raises(DataError, match="is not a list of sums"):
            check_sums(tmp_path)

    def test_a_bundle_beside_a_run(self, run, tmp_path, capsys):
        """
        They are different things.
        """
        (tmp_path / SUMS).write_text("")

        assert main(["compare", str(tmp_path), str(run.path)]) == 2
        assert "bundles with bundles" in capsys.readouterr().err

    def test_an_analysis(self, run, tmp_path):
        """
        What was asked afterwards is no measurement.
        """
        folder = shutil.copytree(run.path, tmp_path / run.id)
        analysis = folder / "analyses/20261125T000000Z-0000"
        for name in ("manifest.json", "plan.jsonl"):
            analysis.mkdir(parents=True, exist_ok=True)
            (analysis / name).write_bytes((folder / name).read_bytes())

        with pytest.raises(DataError, match="an analysis of a run"):
            publish([Run(analysis)], tmp_path / "b")


def test_a_citation_is_of_the_claim():
    """
    Title, date and abstract are its.
    """
    text = crate.citation(CLAIM, crate.NOBODY, "")

    assert "title: A title\nabstract: 'demo (1): no model can be ranked. It rests.'\n" in text
    assert "license" not in text
