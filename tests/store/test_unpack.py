"""
Tests for `harness unpack`: a run that somebody packed is taken in whole, checked, or not at all.
"""

import io
import json
import os
import shutil
import tarfile

import pytest

from harness.base.errors import DataError, EvidenceError, MachineError
from harness.cli import main
from harness.core.store import Store
from harness.core.store import extract as extracting
from harness.core.store.unpack import unpack
from harness.observe.storage.files import exclusive_lock


@pytest.fixture
def into(tmp_path):
    """
    Another folder of results, which does not exist yet.
    """
    return tmp_path / "elsewhere"


def packed(run, target, mode="w:gz", name=None):
    """
    The archive *target* of a run, as tar makes it.
    """
    with tarfile.open(target, mode) as tar:
        tar.add(run.path, name if name is not None else run.id)
    return target


def zstd(run, target):
    """
    A tar file, compressed by zstd.
    """
    from pyarrow import CompressedOutputStream

    plain = packed(run, target.with_name("plain.tar"), "w:")
    with CompressedOutputStream(str(target), "zstd") as stream:
        stream.write(plain.read_bytes())
    return target


FORMS = {
    "tar": lambda run, folder: packed(run, folder / "a.tar", "w:"),
    "tar.gz": lambda run, folder: packed(run, folder / "a.tgz"),
    "pax": lambda run, folder: packed(run, folder / "a.tgz", name=f"./x/y/{run.id}"),
    "no folder": lambda run, folder: packed(run, folder / "a.tgz", name="."),
    "tar.zst": lambda run, folder: zstd(run, folder / "a.tar.zst"),
}


def content(folder):
    """
    Every file below a folder but the lock.
    """
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != "lock")
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.mark.parametrize("form", FORMS)
def test_a_run_is_taken_in(measured, tmp_path, into, form):
    """
    Whatever form it was packed in: under its experiment and its name, byte for byte, and ours.
    """
    archive = FORMS[form](measured, tmp_path)
    measured.path.chmod(0o700)

    taken, has_evidence, unchecked = unpack(type(into)(archive), into)

    assert taken.path == into / "small" / measured.id
    assert (has_evidence, unchecked) == (True, [])
    assert content(taken.path) == content(measured.path)
    assert {path.stat().st_uid for path in taken.path.rglob("*")} == {os.geteuid()}
    assert [path.name for path in into.iterdir() if path.is_dir()] == ["small"]
    assert Store(into).latest("small").path == taken.path


def test_it_is_not_taken_in_twice(measured, tmp_path, into):
    """
    The run that is there stays as it is, and the message says where it could go.
    """
    archive = packed(measured, tmp_path / "a.tgz")
    taken, *_ = unpack(archive, into)
    (taken.path / "note").write_text("mine")

    with pytest.raises(DataError, match=f"run {measured.id} is there already") as caught:
        unpack(archive, into)

    assert "--results-dir" in caught.value.fix
    assert (taken.path / "note").read_text() == "mine"


def test_two_at_once(measured, tmp_path, into):
    """
    The second is refused by the process that unpacks.
    """
    archive = packed(measured, tmp_path / "a.tgz")
    with (
        exclusive_lock(into / ".unpack.lock", "x"),
        pytest.raises(MachineError, match=f"in use by process {os.getpid()} since"),
    ):
        unpack(archive, into)


@pytest.mark.parametrize("name", ["x.pyc", "incoming/x", "trials/x.pyc", "predictions/x.py"])
def test_a_file_that_no_hash_is_about(measured, tmp_path, into, name):
    """
    Neither the chain nor a seal could have it: it is named, and nothing is taken in.
    """
    path = measured.path / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"x")

    with pytest.raises(DataError, match="no run has a file") as caught:
        unpack(packed(measured, tmp_path / "a.tgz"), into)

    assert name in caught.value.what
    assert not (into / "small").exists()


def test_the_lock_of_another_machine(measured, tmp_path, into):
    """
    It is not taken in.
    """
    (measured.path / "lock").write_text("process 1")

    taken, *_ = unpack(packed(measured, tmp_path / "a.tgz"), into)

    assert not (taken.path / "lock").exists()


def member(name, data=b"x", **fields):
    """
    A member of an archive, and what it contains.
    """
    info = tarfile.TarInfo(name)
    info.size = len(data)
    for field, value in fields.items():
        setattr(info, field, value)
    return info, io.BytesIO(data)


LINK = {"type": tarfile.SYMTYPE, "linkname": "/etc/passwd"}
HOSTILE = {
    "a name that climbs": ([member("RUN/../../x")], "'RUN/../../x' is not a name of results"),
    "an absolute name": ([member("/etc/x")], "'/etc/x' is not a name of results"),
    "a hidden name": ([member("RUN/.bashrc")], "is not a name of results"),
    "a name that steers": ([member("RUN/a\x1b[2J")], "is not a name of results"),
    "a deep name": ([member("RUN/" + "a/" * 20 + "b")], "is not a name of results"),
    "a link": ([member("RUN/trials", b"", **LINK)], "'RUN/trials' is a link"),
    "a hard link": ([member("RUN/x", b"", type=tarfile.LNKTYPE, linkname="RUN/lock")], "a link"),
    "a device": ([member("RUN/x", b"", type=tarfile.CHRTYPE, devmajor=1, devminor=5)], "device"),
    "a pipe": ([member("RUN/x", b"", type=tarfile.FIFOTYPE)], "is a link, a device or the like"),
    "twice the same": ([member("RUN/x"), member("RUN/x")], "'RUN/x' is there twice"),
    "the same but its case": ([member("RUN/x"), member("RUN/X")], "'RUN/X' is there twice"),
    "a file and a folder": ([member("RUN/x"), member("RUN/x/y")], "'RUN/x/y' is there twice"),
    "folders but their case": ([member("RUN/x/a"), member("RUN/X/b")], "'RUN/X/b' is there twice"),
    "two runs": ([member("manifest/x"), member("other/manifest.json")], "this is not one run"),
    "no run": ([member("RUN/x")], "there is no manifest.json"),
    "nothing": ([], "there is no manifest.json"),
}


@pytest.mark.parametrize("hostile", HOSTILE)
def test_what_no_run_has_is_refused(tmp_path, into, hostile):
    """
    The archive is named, what it has is, and how to pack a run; nothing is left, here or elsewhere.
    """
    members, what = HOSTILE[hostile]
    archive = tmp_path / "given.tgz"
    with tarfile.open(archive, "w:gz") as tar:
        for info, data in members:
            tar.addfile(info, data)

    with pytest.raises(DataError) as caught:
        unpack(archive, into)

    assert what in caught.value.what
    assert str(archive) in caught.value.where
    assert "tar czf" in caught.value.fix
    assert [path for path in into.iterdir() if path.name != ".unpack.lock"] == []


def test_what_is_not_a_tar_file_is_refused(measured, tmp_path, into):
    """
    A run in an archive of another form, or a file that is none.
    """
    other = shutil.make_archive(tmp_path / "a", "zip", measured.path.parent, measured.id)
    for archive in (other, measured.path / "manifest.json"):
        with pytest.raises(DataError, match="it is broken, or not a tar file") as caught:
            unpack(type(into)(archive), into)
        assert "tar czf" in caught.value.fix


def test_sizes_are_bounded(measured, tmp_path, into, monkeypatch):
    """
    Members and bytes have a limit, whatever fits on the disk; what a member claims is enough.
    """
    archive = packed(measured, tmp_path / "a.tgz")
    for name, most in (("MOST_MEMBERS", 5), ("MOST_BYTES", 1000)):
        with monkeypatch.context() as patch:
            patch.setattr(extracting, name, most)
            with pytest.raises(DataError, match="the archive is refused: it has more than"):
                unpack(archive, into)
    huge, _ = member("RUN/x")
    huge.size = 2**50
    with tarfile.open(archive, "w:gz") as tar:
        tar.fileobj.write(huge.tobuf())
    with pytest.raises(DataError, match="it has more than"):
        unpack(archive, into)


def test_a_small_archive_of_much(tmp_path, into, monkeypatch):
    """
    Zeros pack a thousandfold, results do not: such an archive is refused before it fills a disk.
    """
    monkeypatch.setattr(extracting, "_SMALL_BYTES", 2**20)
    archive = tmp_path / "a.tgz"
    with tarfile.open(archive, "w:gz") as tar:
        for number in range(4):
            info, data = member(f"RUN/{number}", bytes(2**20))
            tar.addfile(info, data)
    with pytest.raises(DataError, match="1 MiB, the most for its size"):
        unpack(archive, into)


def test_a_header_without_an_end(tmp_path, into):
    """
    What `tarfile` reads into memory at once is bounded.
    """
    archive = tmp_path / "a.tgz"
    with tarfile.open(archive, "w:gz") as tar:
        info, _ = member("././@LongLink", b"", type=tarfile.GNUTYPE_LONGNAME)
        info.size = 2**28
        tar.fileobj.write(info.tobuf())
        tar.fileobj.write(bytes(2**23))
    with pytest.raises(DataError, match=r"it is broken, or not a tar file \(a header without an"):
        unpack(archive, into)


@pytest.mark.parametrize("keep", [0, 1, 100, 0.5, 0.99])
@pytest.mark.parametrize("form", ["tar.gz", "tar.zst"])
def test_a_part_of_an_archive(measured, tmp_path, into, form, keep):
    """
    A download that was cut off is broken, wherever it ends.
    """
    archive = type(into)(FORMS[form](measured, tmp_path))
    data = archive.read_bytes()
    archive.write_bytes(data[: keep if isinstance(keep, int) else int(len(data) * keep)])

    with pytest.raises(DataError, match=r"it is broken|no manifest|not as they were stored"):
        unpack(archive, into)

    assert not (into / ".unpack").exists()
    assert not (into / "small").exists()


class TestEvidence:
    def test_a_run_that_was_changed(self, measured, tmp_path, into):
        """
        Its files are named, by their places in the archive, and it is not taken in.
        """
        trial = min((measured.path / "trials").iterdir())
        (trial / "raw/containers/c_1/syslog.gz").write_bytes(b"other")

        with pytest.raises(EvidenceError, match=r"c_1/syslog\.gz was changed") as caught:
            unpack(packed(measured, tmp_path / "a.tgz"), into)

        assert caught.value.where == f"{tmp_path}/a.tgz: {measured.id}"
        assert not (into / "small").exists()

    def test_half_a_run(self, measured, tmp_path, into):
        """
        A copy that was interrupted lacks files, and each is named.
        """
        shutil.rmtree(min((measured.path / "trials").iterdir()) / "raw")

        with pytest.raises(EvidenceError, match=r"syslog\.gz is missing"):
            unpack(packed(measured, tmp_path / "a.tgz"), into)

    def test_a_changed_prediction(self, measured, tmp_path, into):
        """
        The seal is checked as well.
        """
        path = measured.path / "predictions" / "whatif.jsonl"
        path.write_text(path.read_text().replace("12.5", "12.4"))

        with pytest.raises(EvidenceError, match=r"the seal does not hold: .* was changed"):
            unpack(packed(measured, tmp_path / "a.tgz"), into)

    def test_a_record_of_version_99(self, measured, tmp_path, into):
        """
        It is named with the harness that wrote it.
        """
        path = measured.path / "manifest.json"
        document = json.loads(path.read_text()) | {"schema_version": 99, "harness": "9.9"}
        path.write_text(json.dumps(document))

        with pytest.raises(DataError, match=r"newer harness \(9\.9\): schema_version 99") as caught:
            unpack(packed(measured, tmp_path / "a.tgz"), into)

        assert caught.value.where == f"{tmp_path}/a.tgz: {measured.id}/manifest.json"

    @pytest.mark.parametrize("name", ["..", "x", "20261121T032309Z-4f26/.."])
    def test_a_name_that_is_none(self, measured, tmp_path, into, name):
        """
        The manifest says where the run goes, and cannot send it elsewhere.
        """
        path = measured.path / "manifest.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {"run": name}))
        (measured.path / "trials.jsonl").unlink()
        for evidence in measured.path.glob("trials/*/evidence.json"):
            evidence.unlink()

        with pytest.raises(DataError, match="cannot be the name of a run"):
            unpack(packed(measured, tmp_path / "a.tgz"), into)


class TestCommand:
    def test_says_what_it_is_and_what_was_checked(self, measured, tmp_path, into, capsys):
        """
        And what was not.
        """
        measured.write_report("report.html", "<p>")
        archive = packed(measured, tmp_path / "a.tgz")

        assert main(["unpack", str(archive), "--results-dir", str(into)]) == 0

        out = capsys.readouterr().out
        assert f"run {into}/small/{measured.id}: 2 trials, 2 done" in out
        assert "every file is as the chain and the seals have it" in out
        assert "not checked, as no hash is about them: report.html" in out

    def test_a_run_without_evidence(self, measured, tmp_path, into, capsys):
        """
        It is taken in, and said to be unchecked; and, as both of its trials have one job, to lie.
        """
        (measured.path / "trials.jsonl").unlink()
        for evidence in measured.path.glob("trials/*/evidence.json"):
            evidence.unlink()
        archive = packed(measured, tmp_path / "a.tgz")

        assert main(["unpack", str(archive), "--results-dir", str(into), "--json"]) == 0

        document = json.loads(capsys.readouterr().out)
        assert "job_1_0001 is a job of 2 trials" in document.pop("broken_laws")[0]
        assert document == {
            "schema_version": 1, "run": f"{into}/small/{measured.id}", "trials": 2, "done": 2,
            "has_evidence": False, "unchecked": [],
        }  # fmt: skip

    def test_no_such_archive(self, tmp_path, into, capsys):
        """
        As other data that are missing: 7, and nothing is made.
        """
        archive = tmp_path / "run.tar.gz"

        assert main(["unpack", str(archive), "--results-dir", str(into)]) == 7
        assert capsys.readouterr().err.splitlines()[:2] == [
            "error: there is no such file",
            f"  at:  {archive}",
        ]
        assert not into.exists()
