"""
A whole bundle whose figures are not drawn: what is in it, and what follows from it.
"""

import hashlib
import json
import re
import shutil
import sys

from pathlib import Path

import pytest

from ruamel.yaml import YAML

from harness.base.errors import DataError, EvidenceError, SpecError, UnmetError
from harness.base.records.score import Ranking
from harness.base.version import __version__
from harness.cli import main
from harness.core.experiment.file import read_experiment
from harness.core.experiment.grid import expand, order
from harness.core.reports import REPORTS
from harness.core.store import Store, new_analysis
from harness.core.store.packed import ARCHIVE, opened
from harness.core.store.sums import write_sums
from harness.pseudonyms.names import Pseudonyms
from harness.publish import bundle as bundle_module
from harness.publish import paper, verify
from harness.publish.bundle import publish, require_complete
from harness.publish.compare import bundled_runs, replicate, reproduce_bundle, side_by_side
from harness.publish.data import in_present_words, make_claim, nearest_sentence
from harness.publish.pack import check_copies, pack
from harness.publish.rules import BundledRun, check
from tests.evaluate.test_flow import EXPERIMENT, evaluation, scored, scored_once
from tests.run.fakes import VERSIONS

ROOT = Path(__file__).parents[2]
NEEDS = "give one or more RUN and -o DIR, or --again BUNDLE -o DIR, or --check BUNDLE"
AUTHORS = ({"family-names": "Doe", "given-names": "Jo", "orcid": "https://orcid.org/0000-0001"},)


@pytest.fixture(scope="module", autouse=True)
def nothing_is_drawn():
    """
    A figure is the word for its kind, the report for a browser one in Markdown, and there is no
    PDF.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(REPORTS, "html", REPORTS["markdown"])
        patch.setattr(paper, "_drawn", lambda _figure, kind: kind.encode())
        patch.setitem(sys.modules, "typst", None)
        yield


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """
    A scored run that has come to its end; not to be changed.
    """
    run = scored(tmp_path_factory.mktemp("results"))
    run.finish()
    return run


@pytest.fixture(scope="module")
def made(run, tmp_path_factory):
    """
    What was published, and its folder; not to be changed.
    """
    folder = tmp_path_factory.mktemp("bundles") / "bundle"
    published = publish([run], folder, level="scores", licence="CC-BY-4.0", authors=AUTHORS)
    return published, folder


@pytest.fixture
def bundle(made):
    """
    The folder of the bundle; not to be changed.
    """
    return made[1]


@pytest.fixture
def copy(bundle, tmp_path):
    """
    The same, to be changed.
    """
    return shutil.copytree(bundle, tmp_path / "copy")


def names(folder):
    """
    Names of all files below a folder.
    """
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def differing(bundle, folder):
    """
    What comes out otherwise where a bundle is made again, by its stage.
    """
    stages = reproduce_bundle(bundle, folder, "predictions")
    return {stage: [difference.name for difference in found] for stage, found in stages if found}


class TestOnce:
    def test_noise_of_cells_measured_once_follows_from_the_bundle(self, tmp_path):
        """
        With traces and without: it has the times of the profiling trials, and both agree.
        """
        run = scored_once(tmp_path / "results")
        run.finish()
        for level in ("scores", "traces"):
            folder = tmp_path / level
            publish([run], folder, level=level, licence="CC-BY-4.0", authors=AUTHORS)

            verify.check(folder)
            assert differing(folder, tmp_path / f"again-{level}") == {}
            (found,) = bundled_runs(folder)
            assert found.read_scores().profiling


class TestFiles:
    def test_are_the_claim_its_data_and_its_proof(self, bundle, run):
        """
        And nothing else beside the run itself.
        """
        found = names(bundle)
        outside = {name for name in found if not name.startswith(("runs/", "figures/", "tables/"))}

        assert outside == {
            "CITATION.cff", "README.md", "SHA256SUMS", "disclosure.md", "paper.tex", "report.html",
            "publication.json", "report.md", "ro-crate-metadata.json", "rules.json", "system.json",
            "verify.py",
            *(f"data/{name}.csv" for name in verify.TABLES),
        }  # fmt: skip
        assert {name.split("/")[1] for name in found if name.startswith("runs/")} == {run.id}
        figures = {name for name in found if name.startswith("figures/")}
        assert {name.rpartition(".")[2] for name in figures} == {"svg", "pdf"}
        assert {name.removesuffix(".svg") + ".pdf" for name in figures if ".svg" in name} == {
            name for name in figures if ".pdf" in name
        }
        assert (bundle / min(figures)).read_text() in ("svg", "pdf")

    def test_of_the_run_are_those_of_its_level(self, bundle, run):
        """
        What scores are made of, and hashes of all else.
        """
        copied = bundle / "runs" / run.id
        kinds = {name.split("/")[0] for name in names(copied)}
        trial = run.trial_ids()[0]

        assert kinds == {
            "manifest.json", "experiment.yaml", "plan.jsonl", "profiles", "predictions", "scores",
            "trials", "trials.jsonl", "finished", "originals.json",
        }  # fmt: skip
        assert {path.name for path in (copied / "trials" / trial).iterdir()} >= {"trial.json"}
        assert not (copied / "trials" / trial / "trace").exists()

    def test_are_listed_with_their_hashes(self, bundle):
        """
        All but the list itself.
        """
        lines = (bundle / "SHA256SUMS").read_text().splitlines()

        assert {line[66:] for line in lines} == names(bundle) - {"SHA256SUMS"}
        assert all(re.fullmatch(r"[0-9a-f]{64}  \S+", line) for line in lines)

    def test_of_what_is_missing_say_how_it_was(self, bundle, run):
        """
        By the names and hashes that the files had, and how many of which kind were left out.
        """
        originals = json.loads((bundle / "runs" / run.id / "originals.json").read_text())

        assert originals["level"] == "scores"
        assert originals["files"]["plan.jsonl"] == run.opener.sha256(run.path / "plan.jsonl")
        assert originals["ids"] == {}
        left_out = originals["left_out"]
        assert left_out["trials/*/raw"] > 10
        assert left_out["trials/*/trace"] > 10
        assert "scores" not in left_out
        assert originals["chain"] == (run.path / "finished").read_text()


class TestReadme:
    def test_has_the_claim_between_its_marks(self, made):
        """
        Line by line.
        """
        published, folder = made
        text = (folder / "README.md").read_text()

        claim = "\n".join(published.claim.lines)
        assert f"<!-- claim -->\n{claim}\n<!-- /claim -->" in text
        assert text.startswith(f"# {published.claim.title}\n")
        assert f"`harness` is mapreduce-harness {__version__}." in text
        assert "Evidence: `scores`." in text
        assert "Licence of the data: CC-BY-4.0." in text
        unmet = ", ".join(published.check.unmet)
        assert f" Not met of the closed division: {unmet}." in text

    def test_of_nobody_reserves_all_rights(self, run, tmp_path):
        """
        Where no licence is given.
        """
        publish([run], tmp_path / "b")

        text = (tmp_path / "b/README.md").read_text()
        assert "Licence of the data: none is stated, so all rights are reserved." in text

    def test_says_of_one_run_what_it_rests_on(self, made, run):
        """
        Four lines: the answer, trials and noise, the order, and how far it reaches.
        """
        published, _ = made
        first, basis, order, reach = published.claim.lines

        assert first.startswith(f"- recorded ({run.id}): ")
        assert first == (
            f"- recorded ({run.id}): Of 2 models whatif-mr2 errs least: off by 67.0 % on average"
            " (cells: 67.0 % to 67.0 %) over 2 cells, at worst by 67.0 %; a perfect model would be"
            " off by 0.0 %. It cannot be told apart from whatif."
        )
        assert basis == (
            "  It rests on 12 trials of 4 scored cells, of which 0 are disturbed and 6 failed;"
            " the noise of a cell's mean is 0.0 % (median)."
        )
        assert order == (
            "  The predictions were sealed after the measurement: their models could have been"
            " chosen by it."
        )
        assert reach == (
            "  It holds for local, 2 workers and these inputs; nothing is said of other systems."
        )
        assert published.claim.title == (
            "Performance models of Hadoop MapReduce compared: recorded"
        )
        assert published.claim.abstract.startswith(f"Labels: not blind. recorded ({run.id}): ")
        assert published.without_pdf.startswith("there is no report.pdf: ")


class TestCitation:
    def test_is_one_of_a_data_set(self, made):
        """
        With its authors, its licence and the program.
        """
        published, folder = made
        document = YAML(typ="safe").load((folder / "CITATION.cff").read_text())

        assert document == {
            "cff-version": "1.2.0",
            "message": "If you quote this comparison, please cite it as below.",
            "type": "dataset",
            "title": published.claim.title,
            "abstract": published.claim.abstract,
            "date-released": document["date-released"],
            "authors": [dict(AUTHORS[0])],
            "keywords": ["Hadoop", "MapReduce", "performance model", "prediction", "validation"],
            "references": [
                {
                    "type": "software",
                    "title": "mapreduce-harness",
                    "version": __version__,
                    "authors": [{"name": "The mapreduce-harness authors"}],
                }
            ],
            "license": "CC-BY-4.0",
        }
        assert str(document["date-released"]) == published.claim.date

    def test_of_nobody_has_no_licence(self, run, tmp_path):
        """
        And an author all the same.
        """
        publish([run], tmp_path / "b")

        document = YAML(typ="safe").load((tmp_path / "b/CITATION.cff").read_text())
        assert document["authors"] == [{"name": "The authors of this bundle"}]
        assert "license" not in document
        graph = json.loads((tmp_path / "b/ro-crate-metadata.json").read_text())["@graph"]
        nodes = {node["@id"]: node for node in graph}
        assert nodes["#author-1"] == {
            "@id": "#author-1",
            "@type": "Organization",
            "name": "The authors of this bundle",
        }
        assert nodes["#no-licence"]["name"] == ("no licence is stated: all rights are reserved")
        assert nodes["./"]["license"] == {"@id": "#no-licence"}


class TestCrate:
    @pytest.fixture
    def nodes(self, bundle):
        """
        Nodes of the crate by their ids.
        """
        document = json.loads((bundle / "ro-crate-metadata.json").read_text())
        assert document["@context"] == "https://w3id.org/ro/crate/1.1/context"
        return {node["@id"]: node for node in document["@graph"]}

    def test_says_what_it_is_of(self, nodes, made):
        """
        The bundle, who made it, when and by what.
        """
        published, _ = made
        rights = "https://spdx.org/licenses/CC-BY-4.0"

        assert nodes["ro-crate-metadata.json"] == {
            "@id": "ro-crate-metadata.json",
            "@type": "CreativeWork",
            "about": {"@id": "./"},
            "conformsTo": {"@id": "https://w3id.org/ro/crate/1.1"},
        }
        whole = dict(nodes["./"])
        parts = whole.pop("hasPart")
        assert whole == {
            "@id": "./",
            "@type": "Dataset",
            "name": published.claim.title,
            "description": published.claim.abstract,
            "datePublished": published.claim.date,
            "license": {"@id": rights},
            "author": [{"@id": "https://orcid.org/0000-0001"}],
        }
        assert {part["@id"] for part in parts} == nodes.keys() - {
            "ro-crate-metadata.json", "./", rights, "#made", "#harness",
            "https://orcid.org/0000-0001",
        }  # fmt: skip
        assert nodes["https://orcid.org/0000-0001"] == {
            "@id": "https://orcid.org/0000-0001",
            "@type": "Person",
            "name": "Jo Doe",
        }
        assert nodes[rights]["name"] == "CC-BY-4.0"
        assert nodes["#made"] == {
            "@id": "#made",
            "@type": "CreateAction",
            "endTime": published.claim.date,
            "name": "measured, predicted, scored and published",
            "instrument": {"@id": "#harness"},
            "result": {"@id": "./"},
        }
        assert nodes["#harness"] == {
            "@id": "#harness",
            "@type": "SoftwareApplication",
            "name": "mapreduce-harness",
            "softwareVersion": __version__,
        }

    def test_lists_files_with_hash_kind_and_size(self, nodes, bundle, run):
        """
        And each run as one.
        """
        sums = dict(
            line.split("  ")[::-1] for line in (bundle / "SHA256SUMS").read_text().splitlines()
        )
        for name, kind in (
            ("data/runs.csv", "text/csv"),
            ("README.md", "text/markdown"),
            ("rules.json", "application/json"),
            ("CITATION.cff", "application/octet-stream"),
        ):
            assert nodes[name] == {
                "@id": name,
                "@type": "File",
                "name": name,
                "sha256": sums[name],
                "encodingFormat": kind,
                "contentSize": str((bundle / name).stat().st_size),
            }
        assert nodes[f"runs/{run.id}/"] == {
            "@id": f"runs/{run.id}/",
            "@type": "Dataset",
            "name": f"runs/{run.id}",
            "description": "A run: its files have their hashes in SHA256SUMS.",
        }
        assert not [
            name for name in nodes if name.startswith(f"runs/{run.id}/") and name[-1] != "/"
        ]


class TestProof:
    def test_every_number_follows(self, bundle, made, run):
        """
        From the tables, by the program that lies beside them.
        """
        published, _ = made
        shown = verify.check(bundle)

        assert shown[0].startswith(f"recorded ({run.id}): mean relative error by job_s")
        assert published.claim.lines[0].startswith(f"- recorded ({run.id}): ")

    def test_all_comes_out_equal(self, bundle, tmp_path):
        """
        Stage by stage, then the tables and the claim.
        """
        stages = [stage for stage, _ in reproduce_bundle(bundle, tmp_path / "again", "predictions")]

        assert differing(bundle, tmp_path / "more") == {}
        assert stages[0].startswith("scores of ")
        assert stages[1:] == ["pages", "data", "figures", "tables"]

    def test_rules_are_decided_as_they_say(self, bundle, made):
        """
        The open division, with each rule that is not met.
        """
        published, _ = made
        decided = check(bundle)

        assert (decided.claimed, decided.is_met) == ("open", True)
        assert decided.unmet == published.check.unmet
        assert set(decided.unmet) >= {"R01", "R03", "R04", "R05"}
        assert [answer.outcome for answer in decided.answers if answer.rule == "R12"] == ["passed"]

    def test_a_bundle_without_a_run_is_refused(self, copy):
        """
        With where it would be.
        """
        shutil.rmtree(copy / "runs")
        write_sums(copy)
        with pytest.raises(DataError) as caught:
            bundled_runs(copy)
        assert caught.value.what == "the bundle has no run"
        assert caught.value.where == str(copy / "runs")

    def test_a_changed_number_and_a_changed_line_are_named(self, copy, tmp_path):
        """
        By table, row and column; of the claim by its line.
        """
        path = copy / "data/scores.csv"
        header, first, *rest = path.read_text().splitlines()
        fields = first.split(",")
        place = header.split(",").index("predicted")
        fields[place] = "123.0"
        path.write_text("\n".join([header, ",".join(fields), *rest]) + "\n")
        readme = (copy / "README.md").read_text()
        (copy / "README.md").write_text(readme.replace("It rests on 12", "It rests on 13"))
        write_sums(copy)

        found = differing(copy, tmp_path / "again")
        assert found.keys() == {"data", "pages"}
        assert found["data"] == ["data/scores.csv:2"]
        (line,) = (name for name in found["pages"] if name.startswith("README.md:"))
        assert readme.splitlines()[int(line.partition(":")[2]) - 1].startswith("  It rests on 12")


class TestSideBySide:
    def test_equal_bundles_differ_in_nothing(self, bundle, copy):
        """
        Their rows are in the order of errors, and each can be quoted.
        """
        result = side_by_side([bundle, copy])

        assert result.bundles == [str(bundle), str(copy)]
        assert result.head == {}
        assert result.not_ranked == ""
        errors = [row.error for row in result.rows]
        assert errors == sorted(errors)
        assert {row.bundle for row in result.rows} == {str(bundle), str(copy)}
        assert {row.model for row in result.rows} == {"whatif", "whatif-mr2"}
        assert result.why_open.keys() == {str(bundle), str(copy)}
        sentences, footnote = result.quotes[str(bundle)]
        assert len(sentences) == 1
        assert "open division" in footnote

    def test_another_system_stands_in_the_head(self, bundle, copy):
        """
        And nothing is ranked then.
        """
        path = copy / "system.json"
        path.write_text(path.read_text().replace('"replication": "2"', '"replication": "3"'))
        write_sums(copy)

        result = side_by_side([bundle, copy])
        (name,) = result.head
        assert name.startswith("system: ")
        assert result.head[name] == ["2", "3"]
        assert result.not_ranked
        assert [row[:4] for row in result.rows] == sorted(row[:4] for row in result.rows)


class TestPacked:
    @pytest.fixture
    def packed(self, bundle, tmp_path, monkeypatch):
        """
        The bundle in one file, with its copies.
        """
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        return pack(bundle, tmp_path / "packed")

    def test_has_its_page_its_rules_and_a_figure_beside_it(self, packed, bundle):
        """
        And its sum; the archive has every file.
        """
        figure = min(path.name for path in (bundle / "figures").glob("predicted*.svg"))
        assert names(packed) == {
            "README.md", "rules.json", f"figures/{figure}", ARCHIVE, f"{ARCHIVE}.sha256"
        }  # fmt: skip
        sha256 = hashlib.sha256((packed / ARCHIVE).read_bytes()).hexdigest()
        assert (packed / f"{ARCHIVE}.sha256").read_text() == f"{sha256}  {ARCHIVE}\n"
        readme = (packed / "README.md").read_text()
        assert readme.startswith(f"> A packed bundle: `tar xzf {ARCHIVE}` unpacks it into")
        assert readme.endswith((bundle / "README.md").read_text())
        folder = opened(packed)
        assert names(folder) == names(bundle)
        assert all(
            (folder / name).read_bytes() == (bundle / name).read_bytes() for name in names(bundle)
        )

    def test_a_copy_that_is_none_is_named(self, packed):
        """
        Each of them; one that is not there is none.
        """
        folder = opened(packed)
        check_copies(packed, folder)
        (packed / "rules.json").unlink()
        check_copies(packed, folder)
        for name in ("README.md", "rules.json"):
            (packed / name).write_text("other")
            with pytest.raises(EvidenceError) as caught:
                check_copies(packed, folder)
            assert caught.value.what == f"it is not as {ARCHIVE} beside it has it"
            assert caught.value.where == str(packed / name)
            assert caught.value.fix == ("believe what is in the archive, or get both again")
            (packed / name).unlink()

    def test_is_compared_and_made_again_like_a_folder(self, packed, bundle, tmp_path):
        """
        By its own name.
        """
        assert differing(packed, tmp_path / "again") == {}
        result = side_by_side([bundle, packed])
        assert (result.bundles, result.head) == ([str(bundle), str(packed)], {})

    def test_is_measured_again_beside_the_archive(self, packed, run):
        """
        What is measured the same holds, and no fact differs; the archive is not touched.
        """
        before = (packed / ARCHIVE).read_bytes()
        replication = replicate(packed, lambda _: evaluation(run))

        assert replication.runs == (run.id,)
        assert {conclusion.outcome for conclusion in replication.conclusions} <= {"holds"}
        assert replication.differences == {}
        folder = packed / "replications" / run.id
        assert names(folder) == {"replication.json", "system.json"}
        stored = json.loads((folder / "replication.json").read_text())
        assert stored["runs"] == [run.id]
        sums = hashlib.sha256((opened(packed) / "SHA256SUMS").read_bytes()).hexdigest()
        assert stored["bundle"] == sums
        assert (packed / ARCHIVE).read_bytes() == before

    def test_is_what_publish_makes_of_a_run(self, run, tmp_path, monkeypatch, capsys):
        """
        Where it is asked to pack it.
        """
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        folder = tmp_path / "b"
        assert main(["publish", str(run.path), "-o", str(folder), "--pack"]) == 0

        assert f"check it: harness verify {folder}" in capsys.readouterr().err
        assert (folder / ARCHIVE).exists()
        assert main(["publish", "--check", str(folder)]) == 0


class TestRulesFile:
    def test_says_how_each_rule_was_decided(self, made):
        """
        And the division that is claimed.
        """
        published, folder = made
        document = json.loads((folder / "rules.json").read_text())

        assert document["division"] == "open"
        assert [*document["answers"]] == [*BundledRun.RULES]
        for answer in published.check.answers:
            assert document["answers"][answer.rule] == answer.model_dump(mode="json")
        assert document["release"]["harness"] == __version__
        assert not {"claimed", "differing"} & document.keys()


class TestData:
    def test_has_the_columns_that_are_documented(self, bundle):
        """
        Each table those of its kind.
        """
        heads = {
            path.stem: path.read_text().splitlines()[0] for path in (bundle / "data").iterdir()
        }

        assert heads == {
            "runs": "run,id,experiment,hardware,blind,level,asks,scope,extrapolate,asked,read_at,"
            "drift,drift_low,drift_high,schema,sealed,order,started_s,ended_s",
            "cells": "run,cell,label,workload,input,input_bytes,hardware,use,range,settings",
            "trials": "run,trial,cell,use,repetition,state,reason,disturbed,started_s,finished_s,"
            "start,seal",
            "measurements": "run,cell,workload,hardware,trial,quantity,speed,value,disturbed",
            "predictions": heads["predictions"],
            "scores": "run,cell,model,rung,quantity,speed,predicted,measured,trials,floor,"
            "signed_error,relative_error,i_accu,covered_80,covered_90",
            "comparisons": heads["comparisons"],
            "intervals": heads["intervals"],
        }
        assert heads["predictions"].startswith("run,cell,model,")
        page = (ROOT / "docs/publish.md").read_text(encoding="utf-8")
        rows = dict(re.findall(r"^\| `(\w+)\.csv` \| (.*) \|$", page, re.MULTILINE))
        for name, head in heads.items():
            # What a column means stands in brackets after it, or after a semicolon at the end.
            told = re.sub(r" \([^)]*\)", "", rows[name]).partition(";")[0]
            assert told.split(", ") == head.split(","), name


class TestPrivate:
    def test_a_name_that_would_become_public_is_named(self, run, tmp_path, monkeypatch):
        """
        And nothing is published.
        """
        monkeypatch.setattr(
            Pseudonyms, "found_in", lambda *_: [(f"f{number}", "a name") for number in range(20)]
        )
        with pytest.raises(DataError) as caught:
            publish([run], tmp_path / "b")
        first, *rest = caught.value.what.splitlines()
        assert first == "names or secrets would become public:"
        assert rest == [f"  f{number}: a name" for number in range(12)]
        assert caught.value.where == "b"
        assert caught.value.fix.startswith("nothing was published: take what it names out")
        assert list(tmp_path.iterdir()) == []

    def test_what_is_disclosed_ends_with_what_is_trusted(self, bundle):
        """
        For people.
        """
        text = (bundle / "disclosure.md").read_text()

        assert (
            "Taken on trust: Hadoop's counters, the nodes' clocks, that no run was left out."
            in text
        )
        assert "All nodes are of one machine: they share its processors" in text


class TestPaper:
    def test_includes_all_tables_and_figures(self, bundle):
        """
        Each of its files once, each section with its text.
        """
        text = (bundle / "paper.tex").read_text()
        tables = {path.stem for path in (bundle / "tables").iterdir()}
        figures = {path.stem for path in (bundle / "figures").iterdir()}

        assert re.findall(r"\\section\{(.*)\}", text) == [
            "Question",
            "Method",
            "Results",
            "Threats to validity",
            "How to check",
        ]
        assert "Does the model know the recorded jobs?" in text
        assert {name[len("tables/") :] for name in re.findall(r"\\input\{(.*)\}", text)} == tables
        assert set(re.findall(r"\{figures/(.*)\.pdf\}", text)) == figures
        assert tables >= {"cells", "scores", "costs0"}


class TestRefused:
    def test_a_folder_that_is_there(self, run, tmp_path):
        """
        It is left as it is.
        """
        with pytest.raises(SpecError) as caught:
            publish([run], tmp_path)
        assert caught.value.what == "the folder is there already"
        assert caught.value.where == str(tmp_path)
        assert caught.value.fix == (
            "name a folder that is not there: a bundle is made at once, or not at all"
        )

    def test_a_run_that_is_named_twice(self, run, tmp_path):
        """
        By its name.
        """
        with pytest.raises(SpecError) as caught:
            publish([run, run], tmp_path / "b")
        assert (caught.value.what, caught.value.where) == (
            "a run is named twice",
            f"{run.id} {run.id}",
        )

    def test_a_division_that_is_not_met(self, run, tmp_path):
        """
        Each rule is named, and nothing is left behind.
        """
        with pytest.raises(UnmetError) as caught:
            publish([run], tmp_path / "b", division="closed")
        first, *unmet = caught.value.what.splitlines()
        assert first == "the closed division is not met:"
        assert unmet[0].startswith("  R01 failed: experiment recorded, digest ")
        assert caught.value.where == "b"
        assert caught.value.fix.startswith("measure again what a machine decides (R08 to R10), or")
        assert list(tmp_path.iterdir()) == []

    def test_an_analysis(self, run):
        """
        Of a run that could be published itself.
        """
        with new_analysis(run, run.experiment(), run.read_plan(), "1") as analysis:
            with pytest.raises(DataError) as caught:
                require_complete(analysis)
            assert caught.value.what == "this is an analysis of a run"
            assert caught.value.fix == "publish the run itself"

    def test_a_run_that_has_not_ended(self, run, tmp_path):
        """
        It is to go on first.
        """
        copied = type(run)(shutil.copytree(run.path, tmp_path / run.id))
        (copied.path / "finished").unlink()

        with pytest.raises(DataError) as caught:
            require_complete(copied)
        assert caught.value.what == "it has not ended"
        assert caught.value.where == str(copied.path)
        assert caught.value.fix == "go on with it (harness all FILE), then publish again"

    def test_a_run_without_evidence_or_scores(self, run, tmp_path):
        """
        The first is measured again, the second scored.
        """
        copied = type(run)(shutil.copytree(run.path, tmp_path / run.id))
        for path in [copied.path / "trials.jsonl", *copied.path.glob("trials/*/evidence.json")]:
            path.unlink()
        (copied.path / "finished").write_text("")

        with pytest.raises(DataError) as caught:
            require_complete(copied)
        assert (caught.value.what, caught.value.fix) == ("it has no evidence", "measure it again")

    def test_a_run_that_lacks_trials(self, tmp_path):
        """
        Of which the first three are named.
        """
        experiment = read_experiment(EXPERIMENT, "recorded.yaml", ())
        bare = Store(tmp_path).open_run(experiment, EXPERIMENT)
        trials = order(experiment, expand(experiment), VERSIONS)
        bare.write_plan(trials)

        with pytest.raises(DataError) as caught:
            require_complete(bare)
        named = ", ".join(trial.id for trial in trials[:3])
        assert caught.value.what == f"24 of 24 planned trials are missing, {named} among them"
        assert caught.value.fix == "go on with it (harness all FILE), then publish again"


@pytest.mark.parametrize(
    ("earlier", "now"),
    [
        (
            "  It rests on 1 trials of 1 scored cells, of which 1 are disturbed and 1 failed;",
            "  It rests on 1 trial of 1 scored cell, of which 1 is disturbed and 1 failed;",
        ),
        ("8.1 % off on average over 1 cells.", "8.1 % off on average over 1 cell."),
        ("on average over 11 cells.", "on average over 11 cells."),
        ("the noise is not known (median).", "the noise is not known."),
        (" 0.1 % (median).", " 0.1 % (median)."),
    ],
)
def test_what_an_earlier_release_wrote_is_the_same_claim(earlier, now):
    """
    It gave one the plural; bundles from then are made again as they are.
    """
    assert in_present_words(earlier) == in_present_words(now) == now


class TestNearest:
    def ranked(self, *nearest, **fields):
        """
        A ranking of three models by the time of jobs, these being nearest.
        """
        return Ranking(
            quantity="job_s", speed="raw", cells=6, models=("a", "b", "c"),
            errors=(0.1, 0.125, 0.3), nearest=nearest, **fields,
        )  # fmt: skip

    def test_is_one_model_or_several(self):
        """
        With its mean error, or with the least and the largest of theirs.
        """
        assert nearest_sentence(self.ranked("a")) == (
            "a is nearest by job_s, 10.0 % off on average over 6 cells."
        )
        assert nearest_sentence(self.ranked("a", "b", "c")) == (
            "no model is nearest by job_s: a, b and c, 10.0 % to 30.0 % off on average over 6"
            " cells, cannot be told apart."
        )


class TestCommand:
    def test_says_what_was_made_and_how_to_check_it(self, run, tmp_path, capsys):
        """
        The claim, the division, and a command.
        """
        folder = tmp_path / "b"
        assert main(["publish", str(run.path), "-o", str(folder)]) == 0

        out, err = capsys.readouterr()
        claim = make_claim([evaluation(run)])
        assert out.splitlines() == list(claim.lines)
        unmet = ", ".join(check(folder).unmet)
        assert f"division: open (not met of the closed one: {unmet})" in err
        assert f"bundle: {folder}" in err
        assert f"check it: harness verify {folder}" in err
        assert "there is no report.pdf: " in err

    def test_is_a_document_too(self, run, tmp_path, capsys):
        """
        With how the rules were decided.
        """
        folder = tmp_path / "b"
        assert main(["publish", str(run.path), "-o", str(folder), "--json"]) == 0

        document = json.loads(capsys.readouterr().out)
        assert document["bundle"] == str(folder)
        assert document["claim"] == list(make_claim([evaluation(run)]).lines)
        assert document["check"]["claimed"] == "open"

    def test_checks_rule_by_rule(self, bundle, capsys):
        """
        Each with its file and value; the verdict comes last.
        """
        assert main(["publish", "--check", str(bundle)]) == 0

        lines = [line for line in capsys.readouterr().out.splitlines() if line.strip(" \u2500")]
        assert lines[0].strip() == "The rules of the closed division"
        heads = "rule what it asks for outcome file value"
        assert " ".join(lines[1].split()) == heads
        assert " ".join(lines[2].split()).startswith("R01 a ready-made experiment failed ")
        count = len(BundledRun.RULES)
        assert [line.split()[0] for line in lines[2 : count + 2]] == [*BundledRun.RULES]
        assert lines[-2].startswith("the claimed division, open, is met (it asks for no rule,")
        assert lines[-1] == f"numbers were not recomputed: harness verify {bundle}"

    @pytest.mark.parametrize(
        ("words", "text"),
        [
            (["publish"], NEEDS),
            (["publish", "x", "-o", "b", "--again", "c"], NEEDS),
            (["publish", "x", "--check", "c"], NEEDS),
            (["publish", "--again", "b", "--check", "c"], NEEDS),
            (["publish", "x"], "give the folder of the bundle: -o DIR"),
            (["publish", "--again", "b"], "give the folder of the bundle: -o DIR"),
            (
                ["publish", "x", "-o", "b", "--licence", "a b"],
                "'a b' is not a licence's identifier",
            ),
        ],
    )
    def test_says_what_it_needs(self, words, text, capsys, tmp_path, monkeypatch):
        """
        Before it reads anything.
        """
        monkeypatch.chdir(tmp_path)
        assert main(words) == 2
        assert text in capsys.readouterr().err

    def test_a_moment_that_is_none_is_refused(self, run, tmp_path, capsys, monkeypatch):
        """
        Of all dates.
        """
        monkeypatch.setenv("SOURCE_DATE_EPOCH", "now")
        assert main(["publish", str(run.path), "-o", str(tmp_path / "b")]) == 2
        err = capsys.readouterr().err
        assert "'now' is not a moment" in err
        assert "give seconds since 1970, or unset it" in err
        monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
        assert bundle_module.publish([run], tmp_path / "b").claim.date == "1970-01-02"
