"""
A packed bundle: made, checked, made and measured again, and compared, as a folder is.
"""

import gzip
import hashlib
import json
import shutil
import subprocess

import pytest

from harness.base.errors import DataError, EvidenceError
from harness.cli import main
from harness.core.evaluate.flow import Evaluation
from harness.core.store.packed import ARCHIVE, UNPACKED, evidence_of, opened
from harness.publish.again import publish_again
from harness.publish.bundle import publish
from harness.publish.compare import replicate, replicated, side_by_side
from harness.publish.pack import check_copies, pack
from tests.evaluate.test_flow import scored
from tests.publish.test_bundle import files_of

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """
    A scored run that has come to its end; not to be changed.
    """
    run = scored(tmp_path_factory.mktemp("results"))
    run.finish()
    return run


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory):
    """
    A cache of these tests alone.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def bundle(run, tmp_path_factory):
    """
    The bundle of the run, not packed; not to be changed.
    """
    folder = tmp_path_factory.mktemp("bundles") / "bundle"
    publish([run], folder)
    return folder


@pytest.fixture
def packed(bundle, tmp_path):
    """
    The same, packed.
    """
    return pack(bundle, tmp_path / "packed")


def test_publish_packs_what_it_would_have_made(run, bundle, tmp_path, capsys):
    """
    The same files with the same bytes, for tar as well; beside them a sum, page, rules, a figure.
    """
    folder = tmp_path / "packed"

    assert main(["publish", str(run.path), "-o", str(folder), "--pack"]) in (0, 1)
    assert f"check it: harness verify {folder}" in capsys.readouterr().err
    assert files_of(opened(folder)) == files_of(bundle)
    evidence = evidence_of(run.id)
    for name in (ARCHIVE, evidence):
        subprocess.run(["tar", "xzf", folder / name, "-C", tmp_path], check=True)
    assert files_of(tmp_path / "bundle") == files_of(bundle)
    subprocess.run(["sha256sum", "-c", "--quiet", f"{ARCHIVE}.sha256"], cwd=folder, check=True)
    figures = [path.name for path in (bundle / "figures").glob("predicted*.svg")]
    names = ["README.md", ARCHIVE, f"{ARCHIVE}.sha256", evidence, "rules.json"]
    assert sorted(files_of(folder)) == sorted([*names, *(f"figures/{name}" for name in figures)])
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_twice_it_has_the_same_bytes(bundle, packed, tmp_path):
    """
    Whenever it is packed, and wherever to.
    """
    copy = shutil.copytree(bundle, tmp_path / "copy", copy_function=shutil.copyfile)

    assert files_of(pack(copy, tmp_path / "again")) == files_of(packed)


def test_commands_take_it_where_they_take_a_folder(bundle, packed, capsys):
    """
    What they say is the same but for the name, and nothing in it or beside it changes.
    """
    before = files_of(packed)
    unpacked = files_of(opened(packed))
    for words in (["publish", "--check"], ["reproduce"], ["profile"], ["compare"]):
        answers = set()
        for name in (bundle, packed, packed / ARCHIVE):
            status = main([*words, str(name), "--json"])
            answers.add((status, capsys.readouterr().out.replace(str(name), "NAME")))
        assert len(answers) == 1
    assert files_of(packed) == before
    assert files_of(opened(packed)) == unpacked == files_of(bundle)


def test_both_forms_are_set_side_by_side(bundle, packed):
    """
    Under the names that were given.
    """
    both = side_by_side([bundle, packed])

    assert (both.bundles, both.head, both.not_ranked) == ([str(bundle), str(packed)], {}, "")


def with_sums(folder, *names):
    """
    Write the sums of these archives in *folder*.
    """
    sums = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in names}
    lines = "".join(f"{sha256}  {name}\n" for name, sha256 in sums.items())
    (folder / f"{ARCHIVE}.sha256").write_text(lines)


def test_evidence_is_packed_once(run, packed, tmp_path):
    """
    A bundle that is published again has the same archive of it, whoever wrote that, and how.
    """
    evidence = packed / evidence_of(run.id)
    evidence.write_bytes(gzip.compress(gzip.decompress(evidence.read_bytes()), 1, mtime=7))
    with_sums(packed, ARCHIVE, evidence_of(run.id))

    publish_again(packed, tmp_path / "again", questions={}, is_packed=True)

    assert (tmp_path / "again" / evidence_of(run.id)).read_bytes() == evidence.read_bytes()
    before, after = (files_of(opened(folder)) for folder in (packed, tmp_path / "again"))
    trials = {name for name in before if f"runs/{run.id}/trials/" in name}
    assert len(trials) > len(run.trial_ids())
    assert {name: before[name] for name in trials} == {name: after[name] for name in trials}
    assert main(["publish", "--check", str(tmp_path / "again")]) == 0
    assert main(["reproduce", str(tmp_path / "again")]) == 0


def damaged(folder, name, damage):
    """
    The bundle in *folder* with *damage* done to its evidence, which is called *name*.
    """
    if damage == "other":
        other = gzip.decompress((folder / name).read_bytes()).replace(b'"done"', b'"DONE"')
        (folder / name).write_bytes(gzip.compress(other))
        with_sums(folder, ARCHIVE, name)
    elif damage == "changed":
        (folder / name).write_bytes(b"x")
    else:
        (folder / name).unlink()
    if damage == "lost":
        (folder / f"{ARCHIVE}.sha256").unlink()


REFUSALS = {
    "missing": (DataError, "a part of the bundle is missing"),
    "lost": (DataError, "a part of the bundle is missing"),
    "changed": (EvidenceError, "its SHA-256 is .*, and bundle"),
    "other": (EvidenceError, r"(?s)not as it was published:.*trial\.json was changed"),
}


@pytest.mark.parametrize("damage", REFUSALS)
def test_other_evidence_is_refused(run, packed, monkeypatch, damage):
    """
    Also where its sum was made right: the bundle has that of each file.  Nothing is made of it.
    """
    folder = packed.parent
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
    damaged(packed, evidence_of(run.id), damage)
    place = packed if damage == "other" else packed / evidence_of(run.id)
    error, what = REFUSALS[damage]

    for use in (opened, lambda path: publish_again(path, folder / "again", questions={})):
        with pytest.raises(error, match=what) as refused:
            use(packed)
        assert refused.value.where == str(place)
        assert "evidence/" in refused.value.fix
    assert not (folder / "again").exists()
    assert [*(folder / "cache" / "mapreduce-harness" / UNPACKED).glob("[!.]*")] == []


@pytest.mark.parametrize("name", ["README.md", "rules.json"])
def test_a_copy_that_is_none_is_named(packed, name):
    """
    A reader sees it first, and nothing else has its sum.
    """
    check_copies(packed, opened(packed))
    (packed / name).write_text("all is well\n")

    with pytest.raises(EvidenceError, match="it is not as bundle") as caught:
        check_copies(packed, opened(packed))
    assert caught.value.where == str(packed / name)
    assert main(["publish", "--check", str(packed)]) == 7


def test_what_is_measured_again_lies_beside_it(packed):
    """
    The archive stays as it is, and the record counts for this bundle alone.
    """
    before = files_of(packed)

    replication = replicate(packed / ARCHIVE, Evaluation.of)

    record = f"replications/{replication.runs[0]}/replication.json"
    assert files_of(packed).keys() - before.keys() == {
        record,
        record.replace("replication.json", "system.json"),
    }
    assert files_of(packed).items() >= before.items()
    document = json.loads((packed / record).read_text())
    assert (document["conclusions"], replicated(packed)) == ([], set())  # the grid is too small
    (run,) = (opened(packed) / "runs").iterdir()
    what = {"run": run.name, "what": "whatif", "published": "1", "measured": "1"}
    document["conclusions"] = [{**what, "outcome": "holds", "kind": "bias"}]
    (packed / record).write_text(json.dumps(document))
    assert replicated(packed) == {*replication.runs}
    (packed / record).write_text(json.dumps({**document, "bundle": "0" * 64}))
    assert replicated(packed) == set()
