"""
Tests for bundles in one file: read as folders, unpacked once, refused where they are unsound.
"""

import hashlib
import io
import tarfile

import pytest

from harness.base.errors import DataError, EvidenceError, MachineError, SpecError
from harness.core.store import Run, Store
from harness.core.store import extract as extracting
from harness.core.store.packed import ARCHIVE, UNPACKED, home_of, is_bundle, opened
from harness.core.store.sums import SUMS

RUN = "20261121T032309Z-4f26"
OTHER = "20261122T032309Z-4f26"


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """
    The folder of unpacked bundles, which does not exist yet.
    """
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "mapreduce-harness" / UNPACKED


def files(*runs):
    """
    Contents of a bundle with these runs, by their names.
    """
    contents = {SUMS: b"", "data/scores.csv": b"run\n"}
    return contents | {f"runs/{run}/manifest.json": b"{}" for run in runs}


def packed(archive, contents, top="bundle/", mode="w:gz"):
    """
    The *archive* of *contents*, below the folder *top*.
    """
    archive.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(archive, mode) as tar:
        for name, data in contents.items():
            member = tarfile.TarInfo(f"{top}{name}")
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return archive


def content(folder):
    """
    Every file below *folder*, by its name there.
    """
    paths = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


@pytest.fixture
def published(tmp_path):
    """
    A folder with a packed bundle of one run, as they are published.
    """
    packed(tmp_path / "quick" / ARCHIVE, files(RUN))
    return tmp_path / "quick"


class TestOpened:
    @pytest.mark.parametrize("top", ["", "bundle/", "./a/b/"])
    @pytest.mark.parametrize(("name", "mode"), [("a.tar", "w:"), ("a.tgz", "w:gz")])
    def test_an_archive_is_what_was_packed(self, tmp_path, cache, top, name, mode):
        """
        Whatever folder is around it, in a folder that its SHA-256 names.
        """
        archive = packed(tmp_path / name, files(RUN), top, mode)

        folder = opened(archive)

        assert folder == cache / hashlib.sha256(archive.read_bytes()).hexdigest()
        assert content(folder) == files(RUN)
        assert [path.name for path in cache.iterdir() if path.name != ".lock"] == [folder.name]

    def test_the_folder_around_it_and_what_is_in_it_lead_there(self, published):
        """
        As if nothing had been packed.
        """
        folder = opened(published / ARCHIVE)

        assert opened(published) == folder
        assert opened(published / "runs" / RUN) == folder / "runs" / RUN
        assert opened(published / ARCHIVE / "runs") == folder / "runs"
        assert (is_bundle(published), is_bundle(published / ARCHIVE)) == (True, True)
        assert (home_of(published), home_of(published / ARCHIVE)) == (published, published)

    def test_it_is_unpacked_once(self, published, monkeypatch):
        """
        The second command reads what the first one unpacked.
        """
        first = opened(published)
        monkeypatch.setattr(extracting, "extract", None)

        assert opened(published) == first

    def test_all_else_is_itself(self, tmp_path, cache):
        """
        The folder of a bundle, any other folder, a file, and what is not there.
        """
        (tmp_path / "bundle").mkdir()
        (tmp_path / "bundle" / SUMS).write_text("")
        packed(tmp_path / "bundle" / ARCHIVE, files(RUN))
        (tmp_path / "a.yaml").write_text("")
        for name in ("bundle", "bundle/runs", "a.yaml", "none.tar.gz", ".", "none/at/all"):
            assert opened(tmp_path / name) == tmp_path / name
        assert (is_bundle(tmp_path / "bundle"), is_bundle(tmp_path / "a.yaml")) == (True, False)
        assert home_of(tmp_path / "bundle" / SUMS) == tmp_path / "bundle" / SUMS
        assert not cache.exists()

    def test_an_archive_above_what_is_there_hides_nothing(self, tmp_path, cache):
        """
        A run that lies below a folder with an archive is the run, however its path is written.
        """
        packed(tmp_path / ARCHIVE, files(OTHER))
        run = tmp_path / "results" / "quick" / RUN
        run.mkdir(parents=True)

        assert opened(run) == run
        assert opened(run / ".." / RUN) == run / ".." / RUN
        assert not cache.exists()

    def test_the_folder_of_the_shell_is_no_part_of_a_name(self, published, monkeypatch, cache):
        """
        An id is looked up among the results, although a bundle lies here; a dot names it.
        """
        monkeypatch.chdir(published)

        assert opened(type(published)(RUN)) == type(published)(RUN)
        assert not cache.exists()
        assert opened(type(published)()).parent == cache


class TestRefused:
    def test_another_sum_than_that_beside_it(self, published, cache):
        """
        Both are named, and nothing is unpacked.
        """
        sum_file = published / f"{ARCHIVE}.sha256"
        sha256 = hashlib.sha256((published / ARCHIVE).read_bytes()).hexdigest()
        sum_file.write_text(f"{sha256}  {ARCHIVE}\n")
        opened(published)
        sum_file.write_text(f"{'0' * 64}  {ARCHIVE}\n")

        with pytest.raises(EvidenceError, match=f"its SHA-256 is {sha256}") as caught:
            opened(published)
        assert f"states {'0' * 64}" in caught.value.what
        assert caught.value.where == str(published / ARCHIVE)

    @pytest.mark.parametrize("text", ["", "abc", "0" * 65, "\x1b[2J"])
    def test_a_sum_that_is_none(self, published, text):
        """
        The file is named, and what it holds is shown as text.
        """
        (published / f"{ARCHIVE}.sha256").write_text(text)

        with pytest.raises(DataError, match="this is not the sum of a file") as caught:
            opened(published)
        assert caught.value.where.endswith(".sha256")
        assert "\x1b" not in caught.value.what

    @pytest.mark.parametrize("name", ["../x", "/etc/x", ".bashrc", SUMS, SUMS.lower()])
    def test_a_name_that_no_bundle_has(self, tmp_path, cache, name):
        """
        One that leads elsewhere, is hidden, or is there already.
        """
        archive = tmp_path / "a.tgz"
        with tarfile.open(archive, "w:gz") as tar:
            for member in (SUMS, name):
                tar.addfile(tarfile.TarInfo(member), io.BytesIO())

        with pytest.raises(DataError, match="the archive is refused: ") as caught:
            opened(archive)
        assert caught.value.where == str(archive)
        assert [path.name for path in cache.iterdir()] == [".lock"]

    def test_a_link(self, tmp_path):
        """
        Wherever it leads.
        """
        archive = tmp_path / "a.tgz"
        member = tarfile.TarInfo(SUMS)
        member.type = tarfile.SYMTYPE
        member.linkname = "/etc/passwd"
        with tarfile.open(archive, "w:gz") as tar:
            tar.addfile(member)

        with pytest.raises(DataError, match="is a link"):
            opened(archive)

    def test_a_packed_run(self, tmp_path, cache):
        """
        It is no bundle; the message says which command takes it in.
        """
        archive = packed(tmp_path / "a.tgz", {"manifest.json": b"{}"}, f"{RUN}/")

        with pytest.raises(DataError, match="this is not a bundle") as caught:
            opened(archive)
        assert "harness unpack" in caught.value.fix
        assert [path.name for path in cache.iterdir()] == [".lock"]

    @pytest.mark.parametrize("keep", [0, 1, 100])
    def test_a_part_of_an_archive(self, published, keep):
        """
        A download that was cut off.
        """
        data = (published / ARCHIVE).read_bytes()
        (published / ARCHIVE).write_bytes(data[:keep])

        with pytest.raises(DataError, match=r"it is broken|not a bundle"):
            opened(published)

    def test_a_cache_without_room(self, published, cache, monkeypatch):
        """
        The disk is to blame, and not the archive.
        """
        monkeypatch.setattr(extracting, "free_bytes", lambda path: extracting.LEAST_FREE_BYTES + 3)

        with pytest.raises(
            MachineError, match=r"no space left for what bundle\.tar\.gz holds"
        ) as caught:
            opened(published)
        assert caught.value.where.startswith(str(cache))
        assert "XDG_CACHE_HOME" in caught.value.fix

    def test_a_cache_that_cannot_be_made(self, published, tmp_path, monkeypatch):
        """
        The message names the variable that moves it.
        """
        (tmp_path / "file").write_text("")
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))

        with pytest.raises(MachineError, match="cannot be unpacked there") as caught:
            opened(published)
        assert "XDG_CACHE_HOME" in caught.value.fix

    def test_a_relative_cache_counts_as_none(self, published, tmp_path, monkeypatch):
        """
        The home folder has one.
        """
        monkeypatch.setenv("XDG_CACHE_HOME", "cache")
        monkeypatch.setenv("HOME", str(tmp_path / "home"))

        assert opened(published).is_relative_to(tmp_path / "home/.cache")


class TestRunOfABundle:
    def test_is_found_by_the_name_of_the_bundle(self, published, tmp_path):
        """
        Packed or not; by the whole path, too.
        """
        store = Store(tmp_path / "results")
        folder = opened(published)

        assert store.find(str(published)).path == folder / "runs" / RUN
        assert store.find(str(published / "runs" / RUN)).path == folder / "runs" / RUN
        assert store.find(str(folder)).path == folder / "runs" / RUN

    def test_of_several_one_is_to_be_named(self, tmp_path):
        """
        The message has the names, as they are to be given.
        """
        packed(tmp_path / "papers" / ARCHIVE, files(RUN, OTHER))

        with pytest.raises(SpecError, match="the bundle has 2 runs") as caught:
            Store(tmp_path).find(str(tmp_path / "papers"))
        name = caught.value.fix.rpartition(" ")[2]
        assert name == f"{tmp_path}/papers/runs/{OTHER}"
        assert Store(tmp_path).find(name).id == OTHER

    def test_of_none(self, tmp_path):
        """
        It is no bundle of ours.
        """
        archive = packed(tmp_path / "a.tar.gz", files())

        with pytest.raises(DataError, match="the bundle has no runs"):
            Store(tmp_path).find(str(archive))

    def test_stays_as_it_was_published(self, published, tmp_path):
        """
        It is not locked to be written; what is made of it is kept among the results.
        """
        run = Store(tmp_path / "results").find(str(published))
        before = content(opened(published))

        with pytest.raises(DataError, match="stays as it was published") as caught, run.lock():
            pass
        with run.output_lock():
            run.write_report("report.md", "what it says")
        assert "name the copy" in caught.value.fix
        assert run.place == published / "runs" / RUN
        (report,) = (tmp_path / "results/readings").rglob("report.md")
        assert report.parent == run.output
        assert content(opened(published)) == before
        Run(tmp_path / "run").require_own()
