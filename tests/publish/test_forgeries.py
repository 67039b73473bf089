"""
Attacks on a bundle whose owner makes all sums anew: each is named, with the page or the record.
"""

import json
import shutil

import pytest

from harness.base.errors import DataError, EvidenceError, SpecError
from harness.cli import main
from harness.core.run.reproduce import reproduce
from harness.core.store.sums import REPLICATIONS, SUMS, check_sums, write_sums
from harness.observe.storage.opener import Opener
from harness.publish import verify
from harness.publish.bundle import publish, published_evaluations
from harness.publish.compare import (
    Conclusion,
    Replication,
    compare_tables,
    replicated,
    reproduce_bundle,
    side_by_side,
    stated_claim,
)
from harness.publish.data import make_claim, write_tables
from harness.publish.publication import PUBLICATION
from harness.publish.remade import page_differences
from harness.publish.verifiers import former_verifiers
from tests.evaluate.test_flow import EXPERIMENT, evaluation, fill, scored
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


def exchange_predictions(run):
    """
    Each of two models has predicted what the other has.
    """
    answers = run.read_predictions()
    for name, other in (("whatif", "whatif-mr2"), ("whatif-mr2", "whatif")):
        given = [each.model_copy(update={"model": name}) for each in answers[other]]
        run.write_predictions(name, given)


def fit_predictions(run):
    """
    A model has predicted what was measured, but 0.4 %.
    """
    measured = {each.cell: each.raw_s for each in run.read_scores().measurements}
    answers = []
    for each in run.read_predictions()["whatif"]:
        times_s = measured.get(each.cell, {})
        fitted = {
            name: 1.004 * seconds for name, seconds in times_s.items() if getattr(each, name, None)
        }
        if each.body_s is not None:
            fitted["body_s"] = 1.004 * times_s["attempts_s"]
        answers.append(each.model_copy(update=fitted))
    run.write_predictions("whatif", answers)


def sealed_anew(folder, forge):
    """
    A finished run whose predictions are other ones; seal, chain, scores and end agree with them.
    """
    run = scored(folder)
    forge(run)
    run.seal.add()
    evaluation(run).score()
    run.update_manifest(machine={"cores": 2, "memory_bytes": 2**34})
    run.finish()
    run.seal.check()
    assert run.check_evidence()
    return run


@pytest.mark.parametrize(
    ("forge", "models"),
    [(exchange_predictions, {"whatif", "whatif-mr2"}), (fit_predictions, {"whatif"})],
    ids=lambda part: getattr(part, "__name__", None),
)
def test_predictions_that_no_model_makes_are_named(tmp_path, forge, models):
    """
    By model and cell, from the run and from its bundle: the models predict again.
    """
    run = sealed_anew(tmp_path / "results", forge)
    bundle = tmp_path / "bundle"
    publish([run], bundle, level="traces")
    verify.check(bundle)  # it alone cannot see it

    for again in (
        reproduce(run, tmp_path / "of the run", "profiles"),
        reproduce_bundle(bundle, tmp_path / "of the bundle", ""),
    ):
        (differences,) = (found for stage, found in again if stage.startswith("predictions"))
        assert {each.model for each in differences if not each.is_equal} == models


def test_a_run_whose_evidence_was_taken_away_is_not_published(tmp_path):
    """
    It is like those of earlier versions, which nobody can check.
    """
    run = scored(tmp_path / "results")
    run.finish()
    for path in [run.path / "trials.jsonl", *run.path.glob("trials/*/evidence.json")]:
        path.unlink()

    with pytest.raises(DataError, match="it has no evidence"):
        publish([run], tmp_path / "bundle", level="traces")
    assert not (tmp_path / "bundle").exists()


def test_an_experiment_of_a_bundle_that_does_more_is_not_measured(tmp_path, monkeypatch, capsys):
    """
    Whoever measures it again runs nothing of a stranger's that he has not allowed by name.
    """
    code = "mapreduce.map.env: LD_PRELOAD=/tmp/x.so"
    text = EXPERIMENT.replace("configuration:\n", f"configuration:\n  {code}\n")
    run = fill(tmp_path / "results", text)
    made = evaluation(run)
    made.profile()
    made.predict()
    made.score()
    run.finish()
    publish([run], tmp_path / "bundle", level="scores")
    monkeypatch.setattr("harness.cli.commands.steps.measure", None)
    measure = ["reproduce", str(tmp_path / "bundle"), "--measure"]

    assert main([*measure, "--results-dir", str(tmp_path / "anew")]) == SpecError.exit_status
    said = capsys.readouterr().err
    assert "mapreduce.map.env loads code or runs a command" in said
    assert "--allow mapreduce.map.env" in said


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


def scribble(bundle):
    """
    Another winner on the page that people read first.
    """
    path = bundle / "README.md"
    path.write_text(path.read_text().replace("## Check it", "Prophet is 0.4 % off.\n\n## Check it"))


def change_json(path, change):
    """
    A document on disk, after *change*.
    """
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document, indent=2, sort_keys=True))


def take_publication_away(bundle):
    """
    As though an earlier version had made it, which did not say how.
    """
    scribble(bundle)
    (bundle / PUBLICATION).unlink()


def take_it_away_and_date_back(bundle):
    """
    The same, with an older schema in the records that say one.
    """
    take_publication_away(bundle)
    for name in ("manifest.json", "originals.json"):
        (path,) = bundle.glob(f"runs/*/{name}")
        change_json(path, lambda document: document.update(schema_version=13))


def put_in(commit):
    """
    A weaker verifier of ours, by the commit that had it.
    """

    def put_in_a_former_verifier(bundle):
        (former,) = (one for one in former_verifiers().values() if one.release.endswith(commit))
        scribble(bundle)
        (bundle / "verify.py").write_bytes(former.text())

    return put_in_a_former_verifier


def change_level(bundle):
    """
    As though there was less to make again.
    """
    (path,) = bundle.glob("runs/*/originals.json")
    change_json(path, lambda document: document.update(level="scores"))


def change_both_levels(bundle):
    """
    The same, wherever it stands.
    """
    change_level(bundle)
    change_json(bundle / PUBLICATION, lambda document: document.update(level="scores"))


def claim_traces(bundle):
    """
    More evidence than there is.
    """
    for path in bundle.glob("runs/*/trials/*/trace"):
        shutil.rmtree(path)


def plant_a_source(bundle):
    """
    A file in the place of the source of a model, which it is not.
    """
    (run,) = (bundle / "runs").iterdir()
    (run / "code").mkdir()
    (run / f"code/{'5ad0' * 16}.py").write_text("class Mine: ...\n")


def plant_a_page(bundle):
    """
    A report beside the runs, which nothing makes again.
    """
    (bundle / "runs/report.html").write_text("<h1>Mine is nearest</h1>")


def write_between_the_lines(bundle):
    """
    A heading in the place of a licence.
    """
    more = {"licence": "CC0-1.0\n\n# Independent review: mine is nearest"}
    change_json(bundle / PUBLICATION, lambda document: document.update(more))


def name_nobody(bundle):
    """
    Authors without a name.
    """
    change_json(bundle / PUBLICATION, lambda document: document.update(authors=[{}]))


REFUSED = [
    (plant_a_page, "report.html lies beside the runs"),
    (write_between_the_lines, "its licence or its authors are none that harness publish"),
    (name_nobody, "its licence or its authors are none that harness publish"),
    (take_publication_away, "publication.json is missing: runs of schema 14"),
    (take_it_away_and_date_back, "publication.json is missing: runs of schema 14"),
    (put_in("cb7404c6"), "commit cb7404c6, and the bundle is made by this release"),
    (put_in("3fdadb6f"), "commit 3fdadb6f, and the bundle is made by this release"),
    (change_level, "the run is of level 'scores', and publication.json says 'traces'"),
    (change_both_levels, "a run of level 'scores' does not have this file: trials/"),
    (claim_traces, "the run says that it is of level 'traces', and no trial of it has a trace"),
    (plant_a_source, f"a run of level 'traces' does not have this file: code/{'5ad0' * 16}.py"),
]


@pytest.mark.parametrize("command", [["verify"], ["publish", "--check"], ["reproduce"]])
@pytest.mark.parametrize(("forge", "says"), REFUSED)
def test_every_command_refuses_by_name(forged, forge, says, command, capsys):
    """
    Although all sums are right.
    """
    forge(forged)
    write_sums(forged)
    assert main([*command, str(forged)]) == EvidenceError.exit_status
    assert says in capsys.readouterr().err


def test_it_is_not_published_again(forged, tmp_path, capsys):
    """
    What is refused is not made anew, either.
    """
    take_publication_away(forged)
    write_sums(forged)
    anew = tmp_path / "anew"
    assert main(["publish", "--again", str(forged), "-o", str(anew)]) == EvidenceError.exit_status
    assert "publication.json is missing" in capsys.readouterr().err
    assert not anew.exists()


def test_a_weaker_verifier_is_refused_of_another_release_too(forged, capsys):
    """
    Where nobody here knows which one that had, it is one of its schema at least.
    """
    put_in("cb7404c6")(forged)
    change_json(forged / PUBLICATION, lambda document: document["release"].update(sources="0" * 64))
    write_sums(forged)
    assert main(["verify", str(forged)]) == EvidenceError.exit_status
    assert "made by a release that writes schema 14" in capsys.readouterr().err


def made_again(bundle, capsys):
    """
    The exit status of `harness reproduce`, and its last line.
    """
    status = main(["reproduce", str(bundle)])
    return status, capsys.readouterr().out.splitlines()[-1]


def test_what_is_made_again_in_full_says_so(made, capsys):
    """
    In its last line.
    """
    assert made_again(made, capsys) == (0, "made again: everything is equal")


def test_profiles_without_traces_are_taken_as_published(tmp_path, capsys):
    """
    That is said last: nothing here shows what they were fitted to.
    """
    run = scored(tmp_path / "results")
    run.update_manifest(machine={"cores": 2, "memory_bytes": 2**34})
    run.finish()
    lean = tmp_path / "lean"
    publish([run], lean, level="scores")
    status, last = made_again(lean, capsys)
    assert status == 0
    assert f"; profiles of {run.id}, taken as published, as its traces are not here" in last


def test_pages_of_another_release_are_said_not_to_be_compared(forged, capsys):
    """
    Whoever names one has his pages believed by nobody; quotations say so, too.
    """
    scribble(forged)
    change_json(forged / PUBLICATION, lambda document: document["release"].update(sources="0" * 64))
    write_sums(forged)
    status, last = made_again(forged, capsys)
    assert status == 0
    assert last == (
        "made again: all that was compared is equal; pages, which another release made"
        " (sources 0000000000000000): not compared"
    )
    (_, footnote) = side_by_side([forged]).quotes[str(forged)]
    assert footnote.endswith("; numbers recomputed, pages not compared. Labels: not blind.")


def name_other_packages(bundle):
    """
    So that digits may differ, and pictures.
    """
    change_json(
        bundle / PUBLICATION, lambda document: document["release"]["packages"].update(numpy="0.1")
    )


def test_pictures_of_other_packages_are_said_not_to_be_compared(forged, capsys):
    """
    Those alone: words are.
    """
    name_other_packages(forged)
    (picture, *_) = forged.glob("figures/*.svg")
    picture.write_text("another")
    write_sums(forged)
    status, last = made_again(forged, capsys)
    assert status == 0
    assert last.startswith("made again: all that was compared is equal; pictures, drawn with other")
    assert "(numpy 0.1 there, " in last
    assert last.endswith(": not compared")


@pytest.mark.parametrize("name", ["README.md", "report.html", "report.md", "disclosure.md"])
def test_words_are_compared_whatever_packages_are_named(forged, tmp_path, name):
    """
    Those of the page for a browser, too.
    """
    name_other_packages(forged)
    path = forged / name
    path.write_text(path.read_text().replace("e", "i", 1))
    write_sums(forged)
    assert differing(forged, tmp_path / "scratch") == {name}


def test_a_picture_in_a_page_hides_no_words(made, tmp_path):
    """
    One more than there was is a difference, and so is a word behind it.
    """
    for number, page in enumerate((b"<p>1<svg>2</svg>", b"<p>1", b"<p>2<svg>1</svg>")):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "report.html").write_bytes(page)
    openers = [Opener(tmp_path / str(number)) for number in range(3)]
    for other in openers[1:]:
        assert [*page_differences(openers[0], other, "report.html", is_exact=False)]
    (tmp_path / "1/report.html").write_bytes(b"<p>1<svg>3</svg>")
    assert not [*page_differences(*openers[:2], "report.html", is_exact=False)]


@pytest.mark.parametrize(
    "more",
    [
        b"<style>p {display: none}</style>",
        b"<foreignObject><h1>Mine is nearest</h1></foreignObject>",
        b"<script>alert(1)</script>",
        b'<path onload="alert(1)"/>',
        b'<use href="https://elsewhere.example/x.svg#y"/>',
        b"<!-- --><h1>Mine</h1>",
    ],
)
def test_a_picture_that_does_more_than_draw_is_compared(tmp_path, more):
    """
    It could hide the words of the page, or add others.
    """
    for number, inner in enumerate((b'<path d="M 1 1"/>', b'<path d="M 2 2"/>' + more)):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "report.html").write_bytes(b"<p>1<svg>" + inner + b"</svg>")
    openers = [Opener(tmp_path / str(number)) for number in range(2)]
    assert [*page_differences(*openers, "report.html", is_exact=False)]


@pytest.mark.parametrize("number", ["1e999", "9" * 400])
def test_a_number_without_end_is_a_difference(tmp_path, number):
    """
    It is not near to anything.
    """
    for folder, text in (("0", "off by 67.0 %"), ("1", f"off by {number} %")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "report.md").write_text(text)
    for order in ("01", "10"):
        openers = [Opener(tmp_path / folder) for folder in order]
        assert [*page_differences(*openers, "report.md", is_exact=False)]


def test_columns_are_missed_but_of_an_earlier_version(forged, made):
    """
    That of this version has them all.
    """
    path = forged / "data/intervals.csv"
    lines = [line.rpartition(",")[0] for line in path.read_text().splitlines()]
    path.write_text("".join(f"{line}\r\n" for line in lines))
    openers = Opener(forged), Opener(made)
    assert [*compare_tables(*openers, "intervals")]
    assert not [*compare_tables(*openers, "intervals", may_lack=True)]


@pytest.mark.parametrize("content", ["[]", "[" * 300 + "]" * 300, "no JSON", '{"a": [[1, 2]]}'])
def test_facts_of_a_system_that_are_none(forged, content, capsys):
    """
    One error, and no bug of ours.
    """
    (forged / "system.json").write_text(content)
    write_sums(forged)
    assert main(["compare", str(forged)]) == EvidenceError.exit_status
    assert "  fix: get the bundle again" in capsys.readouterr().err


def test_rules_that_are_none_are_not_quoted(forged, capsys):
    """
    A quotation has the division by which a bundle was checked.
    """
    (forged / "rules.json").write_text("[]")
    write_sums(forged)
    assert main(["compare", str(forged)]) == EvidenceError.exit_status
    assert "rules.json" in capsys.readouterr().err


@pytest.mark.parametrize("content", [None, "{}", "not JSON", '{"schema_version": 14}', "other"])
def test_a_folder_is_no_replication(forged, content):
    """
    Nor is a record that cannot be read, or one about another bundle.
    """
    folder = forged / REPLICATIONS / "20260101T000000Z-0000"
    folder.mkdir(parents=True)
    if content == "other":
        record = Replication(bundle="0" * 64, runs=(), conclusions=(), differences={})
        content = record.model_dump_json()
    if content is not None:
        (folder / "replication.json").write_text(content)
    assert replicated(forged) == set()


def write_replication(bundle, *conclusions):
    """
    A record about *bundle*, as anybody may write one.
    """
    folder = bundle / REPLICATIONS / "20260101T000000Z-0000"
    folder.mkdir(parents=True)
    sums = Opener(bundle).sha256(bundle / SUMS)
    record = Replication(bundle=sums, runs=(), conclusions=conclusions, differences={})
    (folder / "replication.json").write_text(record.model_dump_json())
    return folder


def conclusion_of(run):
    """
    That an error holds.
    """
    return Conclusion(
        run=run, what="mean error of whatif", published="1", measured="1", outcome="holds"
    )


def test_a_record_about_this_bundle_is_one(forged):
    """
    It counts, where it lies in the folder that is made for it, and concludes something.
    """
    (run,) = (forged / "runs").iterdir()
    folder = write_replication(forged, conclusion_of(run.name))
    assert replicated(forged) == {folder.name}


@pytest.mark.parametrize("conclusions", [(), (conclusion_of("another"),)])
def test_a_record_that_concludes_nothing_of_it_is_none(forged, conclusions):
    """
    It says nothing, or something of another run.
    """
    write_replication(forged, *conclusions)
    assert replicated(forged) == set()


def test_a_record_takes_nothing_away(forged):
    """
    A bundle is recomputed whatever somebody wrote beside it, and a false page is seen.
    """
    (run,) = (forged / "runs").iterdir()
    scribble(forged)
    write_sums(forged)
    write_replication(forged, conclusion_of(run.name))
    (_, footnote) = side_by_side([forged]).quotes[str(forged)]
    assert footnote.endswith(
        "; unverified; 1 record lies beside it that says it was measured again, which anybody"
        " can write. Labels: not blind."
    )


@pytest.mark.parametrize(
    "name", [f"{REPLICATIONS}-evil/x", f"{REPLICATIONS}", f"{SUMS}-evil", f"{SUMS}2/x"]
)
def test_what_looks_like_a_replication_is_in_the_sums(forged, name):
    """
    A folder with a longer name is none, nor is a file.
    """
    path = forged / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("more")
    with pytest.raises(EvidenceError, match=f"{name} was added"):
        check_sums(forged)
    with pytest.raises(ValueError, match=f"{name}: SHA256SUMS lacks it"):
        verify.check(forged)


def test_pages_follow_from_what_was_measured_and_not_from_its_file(forged, tmp_path):
    """
    Another experiment.yaml changes no table and no claim; the chain has its hash, too.
    """
    (path,) = forged.glob("runs/*/experiment.yaml")
    path.write_text(path.read_text().replace("whatif-mr2", "prophet"))
    write_sums(forged)
    evaluations = published_evaluations(forged, {})
    write_tables(evaluations, tmp_path / "data", str)
    for table in (forged / "data").iterdir():
        assert (tmp_path / "data" / table.name).read_bytes() == table.read_bytes()
    assert list(make_claim(evaluations).lines) == stated_claim(Opener(forged))
    with pytest.raises(EvidenceError, match=r"experiment\.yaml was changed"):
        differing(forged, tmp_path / "scratch")


@pytest.mark.parametrize(
    ("forge", "says"),
    [
        (change_system, "system.json: recorded: client.cores is 1000"),
        (change_report, "report.md: no report answers"),
        (claim_an_anchor, "anchors/seal.json"),
        (take_publication_away, "publication.json: it is missing"),
        (change_level, "originals.json level: stored 'scores', and"),
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
