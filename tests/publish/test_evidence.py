"""
What can be made again of the run of a bundle at each level, and the hashes of what was measured.
"""

import gzip
import json
import shutil

import pytest

from harness.base.errors import DataError, EvidenceError
from harness.core.evaluate.provenance import blind_refusals
from harness.core.run.reproduce import reproduce
from harness.core.store import Run, trials
from harness.core.store.evidence import Chain
from harness.core.store.published import ORIGINALS
from harness.core.store.traces import remake_all_traces
from harness.observe.storage import opener
from harness.pseudonyms.names import Pseudonyms
from harness.publish.evidence import copy_run
from tests.evaluate.test_flow import scored
from tests.publish.planted import planted_run

STAGES = ["trace", "profiles", "predictions", "scores"]
LEVELS = {"scores": STAGES[2:], "traces": STAGES[1:], "raw": STAGES}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """
    A run on somebody's hosts; not to be changed.
    """
    return planted_run(tmp_path_factory.mktemp("results"))


@pytest.fixture(scope="module")
def copies(run, tmp_path_factory):
    """
    It at each level, with pseudonyms; not to be changed.
    """
    folder = tmp_path_factory.mktemp("copies")
    for level in LEVELS:
        copy_run(run, folder / level, level, Pseudonyms.of([run], level=level))
    return {level: Run(folder / level) for level in LEVELS}


@pytest.fixture
def own(run, tmp_path):
    """
    The run, to be changed.
    """
    return Run(shutil.copytree(run.path, tmp_path / run.path.name))


def originals(copy):
    """
    What is known of the files as they were measured.
    """
    return json.loads((copy.path / ORIGINALS).read_text())


def files(folder):
    """
    Contents of all files of a folder, by name.
    """
    return {str(path.relative_to(folder)): path.read_bytes()
            for path in folder.rglob("*") if path.is_file()}  # fmt: skip


@pytest.mark.parametrize("level", LEVELS)
def test_a_copy_is_a_run(run, copies, level):
    """
    Its evidence and seal hold, it is blind as the run is, and its chain has the same moments.
    """
    copy = copies[level]
    lines = {Chain(each.opener).path: Chain(each.opener).lines().values() for each in (run, copy)}
    moments, others = ([(line.name, line.stored_s) for line in each] for each in lines.values())

    assert copy.check_evidence()
    copy.seal.check()
    assert blind_refusals(copy, copy.trials().values()) == []
    is_lean = level == "scores"
    assert others == [each for each in moments if not (is_lean and each[0].endswith("/trace"))]
    assert copy.finished


@pytest.mark.parametrize("level", LEVELS)
def test_what_it_allows_comes_out_equal(copies, tmp_path, level):
    """
    Tables of foreign hosts as well: byte by byte.
    """
    stages = reproduce(copies[level], tmp_path / "again", "raw", is_lean=True)

    assert dict(stages) == {stage: [] for stage in LEVELS[level]}


@pytest.mark.parametrize("level", LEVELS)
def test_what_hadoop_says_of_each_job_is_there(copies, level):
    """
    Its history with all traces; its configuration at each level, as it names the seal.
    """
    copy = copies[level]
    of_job = {"job-0-history.jhist", "job-0-conf.xml"}

    for trial in copy.trial_ids():
        assert of_job & {*copy.raw(trial).names()} == (
            {"job-0-conf.xml"} if level == "scores" else of_job
        )


def test_tables_are_not_made_without_recordings(copies, tmp_path):
    """
    The history alone would give tables without spans, in the place of those that are there.
    """
    copy = Run(shutil.copytree(copies["traces"].path, tmp_path / "copy"))

    with pytest.raises(DataError, match="published with its traces, and without its raw logs"):
        remake_all_traces(copy)
    assert files(copy.path) == files(copies["traces"].path)


@pytest.mark.parametrize("level", LEVELS)
def test_it_says_the_same(run, copies, level):
    """
    Predictions and scores of the same trials, by the new ids of cells that name their hosts.
    """
    copy, ids = copies[level], originals(copies[level])["ids"]

    assert copy.trial_ids() == run.trial_ids()
    assert {each.cell.id for each in (trial for trial in copy.read_plan())} <= ids.keys()
    before, after = ({(each.trial, each.raw_s["job_s"]) for each in one.read_scores().measurements}
                     for one in (run, copy))  # fmt: skip
    assert before == after
    answers = {(p.model, ids[p.cell], p.job_s) for several in copy.read_predictions().values()
               for p in several}  # fmt: skip
    assert answers == {(p.model, p.cell, p.job_s) for several in run.read_predictions().values()
                       for p in several}  # fmt: skip


@pytest.mark.parametrize("level", LEVELS)
def test_hashes_as_measured_are_kept(run, copies, level):
    """
    Of each file under its new name, and of the chain: the owner can show the originals.
    """
    known = originals(copies[level])
    measured = {run.opener.sha256(run.path / name) for name in files(run.path)}

    assert set(known["files"].values()) <= measured
    packed = {name.removesuffix(".gz") for name in files(copies[level].path) if "raw/" not in name}
    assert packed - {ORIGINALS} <= known["files"].keys()
    assert known["chain"] == (run.path / "finished").read_text()
    assert known["level"] == level
    assert any(name.startswith("trials/*/raw") for name in known["left_out"]) == (level != "raw")


@pytest.mark.process
def test_nothing_changes_where_no_name_is(tmp_path):
    """
    The same bytes, so the same hashes and chain; of failed trials, too.
    """
    run = scored(tmp_path / "results")
    run.finish()
    pseudonyms = Pseudonyms.of([run], keep=("hosts", "users", "queues", "paths"))
    copy_run(run, tmp_path / "copy", "raw", pseudonyms)

    after = files(tmp_path / "copy")
    known = json.loads(after.pop(ORIGINALS))
    assert [after == files(run.path), known["ids"], known["left_out"]] == [True, {}, {}]


@pytest.mark.process
def test_twice_gives_equal_bytes(run, copies, tmp_path):
    """
    Of every file.
    """
    for level in LEVELS:
        copy_run(run, tmp_path / level, level, Pseudonyms.of([run], level=level))

    assert {level: files(tmp_path / level) == files(copies[level].path) for level in LEVELS} == (
        dict.fromkeys(LEVELS, True)
    )


def test_what_nobody_can_look_into_is_left_out(run, copies):
    """
    A packed file among the logs of a task, of each trial; and it is counted.
    """
    left_out = originals(copies["raw"])["left_out"]

    assert sum(count for what, count in left_out.items() if "packed" in what) == 8
    assert not [name for name in files(copies["raw"].path) if name.endswith("core.gz.gz")]


def log_of(run):
    """
    A log that is published at each level but `scores`.
    """
    return next(run.path.glob("trials/*/raw/speed-*"))


@pytest.mark.parametrize(
    ("damage", "what"),
    [
        (lambda run: log_of(run).write_bytes(gzip.compress(b"x" * 10**7)), "unpacks to more than"),
        (lambda run: log_of(run).write_bytes(gzip.compress(b"x")[:9]), "is damaged"),
        (
            lambda run: next(run.path.glob("trials/*/trace/spans.parquet")).write_bytes(b"PAR1"),
            "a damaged file",
        ),
        (
            lambda run: (run.path / "scores/scores.json").write_bytes(b"{}"),
            "schema_version None is not a version",
        ),
    ],
    ids=["bomb", "cut", "table", "record"],
)
def test_a_damaged_run_is_one_error(own, tmp_path, monkeypatch, damage, what):
    """
    That says what and where: a log that unpacks to no end, a file that is cut.
    """
    damage(own)
    monkeypatch.setattr(trials, "_MOST_LOG_BYTES", 10**6)

    with pytest.raises(DataError, match=what) as refused:
        copy_run(own, tmp_path / "copy", "raw", Pseudonyms.of([own], level="scores"))
    assert refused.value.where


@pytest.mark.parametrize("level", ["scores", "traces"])
def test_a_changed_prediction_is_found(copies, tmp_path, level):
    """
    It is packed, and sealed by what it holds.
    """
    copy = Run(shutil.copytree(copies[level].path, tmp_path / copies[level].path.name))
    path = copy.path / "predictions" / "whatif.jsonl.gz"
    path.write_bytes(gzip.compress(gzip.decompress(path.read_bytes()).replace(b"1", b"2", 1)))

    with pytest.raises(EvidenceError, match=r"predictions/whatif\.jsonl was changed"):
        copy.seal.check()


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (gzip.compress(b" " * 10**5, mtime=0), "unpacks to more than"),
        (gzip.compress(b"{}", mtime=0)[:-4], "is damaged"),
        (b"no gzip", "is damaged"),
    ],
    ids=["bomb", "cut", "other"],
)
def test_packed_records_are_bounded(copies, tmp_path, monkeypatch, content, what):
    """
    A bundle comes from anybody.
    """
    copy = Run(shutil.copytree(copies["scores"].path, tmp_path / "copy"))
    (copy.path / "scores" / "scores.json.gz").write_bytes(content)
    monkeypatch.setattr(opener, "MOST_WHOLE_BYTES", 10**4)

    with pytest.raises(DataError, match=what) as refused:
        copy.read_scores()
    assert refused.value.where.endswith("scores.json.gz")
