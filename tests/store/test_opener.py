"""
Tests for the one opener: no file of a run leads out of it, blocks a reader, or fills its memory.
"""

import gzip
import json
import os
import shutil

from contextlib import suppress

import pytest

from harness.base.errors import DataError, MachineError
from harness.base.records.score import ScoreBook
from harness.base.records.trace import JobTrace
from harness.base.records.trial import OLDEST_READ, SCHEMA_VERSION
from harness.core.run.reproduce import reproduce
from harness.core.store import Run
from harness.observe.storage import opener
from tests.hostile.targets import made_run
from tests.store.test_damage import READERS, whole

__all__ = ["whole"]  # a fixture


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """
    A finished run, as its commands leave it; not to be changed.
    """
    return made_run(tmp_path_factory.mktemp("results"))


@pytest.fixture
def copy(finished, tmp_path):
    """
    The same run, to be changed.
    """
    return Run(shutil.copytree(finished.path, tmp_path / "run"))


def refused(run, pattern, path, change):
    """
    What reading the file *pattern* says after *change* of *path*, which is restored.
    """
    aside = run.path.with_name("aside")
    (trial,) = run.trial_ids()
    path.rename(aside)
    try:
        change(path, aside)
        with pytest.raises(DataError) as caught:
            READERS[pattern](run, trial)
        return caught.value
    finally:
        path.unlink()
        aside.rename(path)


@pytest.mark.parametrize("pattern", READERS)
def test_no_link_is_followed(whole, pattern):
    """
    Whichever part of a file's path is a link to an equal one elsewhere, reading it names the part.
    """
    (path,) = whole.path.glob(pattern)
    parts = [path, *(p for p in path.parents if whole.path in p.parents)]
    for part in parts:
        error = refused(whole, pattern, part, lambda path, aside: path.symlink_to(aside))
        assert error.what.startswith(f"{part.name} is not a plain f"), error


@pytest.mark.parametrize("pattern", READERS)
def test_pipes_do_not_block_and_sizes_are_bounded(whole, pattern):
    """
    A named pipe in the place of a file is refused at once, and a file of more than any run has is
    named with its size, whoever reads it.
    """
    (path,) = whole.path.glob(pattern)
    error = refused(whole, pattern, path, lambda path, _: os.mkfifo(path))
    assert (error.what, error.where) == (f"{path.name} is not a plain file or folder", str(path))
    assert "restore it from a copy" in error.fix

    error = refused(whole, pattern, path, grown)
    assert (error.what[: len(path.name) + 10], error.where) == (f"{path.name} has 1 TiB", str(path))


def grown(path, _):
    """
    A file of a tebibyte that takes no room.
    """
    with path.open("wb") as stream:
        stream.truncate(2**40)


@pytest.mark.parametrize("name", ["raw/job-0-history.jhist.gz", "raw", "trace", "trial.json", ""])
def test_evidence_is_not_taken_from_elsewhere(whole, name):
    """
    A link to an equal file is no evidence, and neither is one that was added.
    """
    (trial,) = whole.trial_ids()
    path = whole.trial_dir(trial) / (name or "raw/added")
    if name and path.exists():
        path.rename(whole.path.with_name("aside"))
    path.symlink_to(whole.path.with_name("aside"))

    with pytest.raises(DataError, match=f"{path.name} is not a plain|were not|is missing"):
        whole.check_evidence()


def test_a_log_that_unpacks_without_end(whole, monkeypatch):
    """
    A compressed log is read to a bound, not to its end.
    """
    monkeypatch.setattr("harness.core.store.trials._MOST_LOG_BYTES", 2**20)
    (trial,) = whole.trial_ids()
    (log,) = whole.path.glob("trials/*/raw/containers/c_1/syslog.gz")
    log.write_bytes(gzip.compress(b"line\n" * 2**20))
    lines = whole.raw(trial).open("containers/c_1/syslog")
    with lines, pytest.raises(DataError, match="unpacks to more than"):
        list(lines)


@pytest.mark.parametrize("name", ["lock", "trials.jsonl", "incoming", "scores", "predictions", "x"])
def test_nothing_is_written_through_a_link(copy, tmp_path, name):
    """
    A run with a link anywhere is written by nobody: what the link leads to stays as it is.
    """
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "file").write_text("kept")
    path = copy.path / name
    with suppress(FileNotFoundError):
        path.rename(tmp_path / "aside")
    path.symlink_to(elsewhere / "file" if name in ("lock", "trials.jsonl") else elsewhere)

    with pytest.raises((DataError, MachineError)) as caught, copy.lock():
        copy.write_scores(ScoreBook())

    assert caught.value.where == str(path)
    assert (elsewhere / "file").read_text() == "kept"
    assert [*elsewhere.iterdir()] == [elsewhere / "file"]


def test_links_of_our_own_are_followed(copy, tmp_path):
    """
    `reproduce` reads the run that it links to, and no link that this run has.
    """
    trial_id = next(t.id for t in copy.read_plan() if copy.has_trace(t.id))
    assert all(not differs for _, differs in reproduce(copy, tmp_path / "again", "raw"))

    log = copy.trial_dir(trial_id) / "raw" / "job-0-history.jhist.gz"
    log.rename(tmp_path / "history")
    log.symlink_to(tmp_path / "history")
    with pytest.raises(DataError, match=r"job-0-history\.jhist\.gz is not a plain file"):
        list(reproduce(copy, tmp_path / "once more", "raw"))


def test_a_missing_root_is_a_missing_file(tmp_path):
    """
    A run that is not there has no manifest.
    """
    with pytest.raises(DataError, match=r"manifest\.json is missing"):
        Run(tmp_path / "none").read_manifest()


def test_a_file_that_may_not_be_read_is_named_whole(run, monkeypatch):
    """
    What the operating system refuses has its whole path, and what else can be done.
    """

    def denied(*args, **kwargs):
        raise PermissionError(13, "Permission denied", "manifest.json")

    monkeypatch.setattr(opener.os, "open", denied)
    with pytest.raises(MachineError, match="permission denied") as caught:
        run.read_manifest()

    assert caught.value.where == str(run.path / "manifest.json")


class TestNewer:
    @pytest.mark.parametrize(
        ("name", "read"),
        [
            ("manifest.json", lambda run: run.read_manifest()),
            ("trials/*/trial.json", lambda run: run.trials()),
            ("plan.jsonl", lambda run: run.read_plan()),
            ("trials.jsonl", lambda run: run.check_evidence()),
            ("trials/*/evidence.json", lambda run: run.check_evidence()),
            ("trials/*/trace/job.json", lambda run: [run.read_trace(t) for t in run.trial_ids()]),
            ("profiles/*.json", lambda run: run.read_profiles()),
            ("predictions/whatif.jsonl", lambda run: run.read_predictions()),
            ("predictions/sealed.json", lambda run: run.seal.check()),
            ("scores/scores.json", lambda run: run.read_scores()),
        ],
    )  # fmt: skip
    @pytest.mark.parametrize("change", ["version 99", "a field"])
    def test_is_named_with_its_harness(self, run, make, name, read, change):
        """
        A record of another shape says who wrote it, whichever file it is in, and asks for no
        measurement to be removed.
        """
        run.update_manifest(harness="7.8.9")
        run.write_plan(make.trials())
        trial = make.trials()[0]
        make.commit(run, trial)
        run.write_trace(trial.id, [JobTrace("j", "n", "u", "SUCCEEDED", 0.0, 0.5, 3.0, 1, 0, ())])
        run.write_profile(make.profile())
        run.write_predictions("whatif", [make.prediction()])
        run.seal.add()
        run.write_scores(ScoreBook())
        (path,) = run.path.glob(name)
        lines = path.read_text().splitlines() if name.endswith("l") else [path.read_text()]
        document = json.loads(lines[0])
        inner = document["jobs"][0] if name.endswith("job.json") else document
        inner |= {"shape": 4} if change == "a field" else {}
        document |= {"schema_version": 99} if change == "version 99" else {}
        path.write_text("\n".join([json.dumps(document), *lines[1:]]) + "\n")

        with pytest.raises(DataError, match=r"written by a newer harness \(7\.8\.9\): ") as caught:
            read(run)

        assert ("99 is newer" if change == "version 99" else "'shape' is not kn") in str(
            caught.value
        )
        assert path.name in caught.value.where
        assert "use the harness that wrote it" in caught.value.fix

    def test_columns_are_named_as_well(self, run, make):
        """
        A table with one column more.
        """
        from pyarrow import array, parquet

        trial = make.trials()[0]
        make.commit(run, trial)
        run.write_trace(trial.id, [JobTrace("j", "n", "u", "SUCCEEDED", 0.0, 0.5, 3.0, 1, 0, ())])
        path = run.trial_dir(trial.id) / "trace" / "attempts.parquet"
        table = parquet.read_table(path)
        parquet.write_table(table.append_column("speed", array([], "double")), path)

        with pytest.raises(DataError, match="newer harness: the column 'speed' is not known here"):
            run.read_trace(trial.id)

    def test_an_older_field_is_left_out(self, run):
        """
        What an earlier version wrote besides does not concern this one; what it lacks is named with
        its version.
        """
        path = run.path / "manifest.json"
        document = json.loads(path.read_text()) | {"schema_version": 2}
        path.write_text(json.dumps({**document, "once": 1}))
        assert run.read_manifest().run == run.id

        del document["run"]
        path.write_text(json.dumps(document))
        with pytest.raises(
            DataError, match=f"schema_version {OLDEST_READ}, and {SCHEMA_VERSION} is written now"
        ):
            run.read_manifest()
