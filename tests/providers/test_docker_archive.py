"""
Tests for `harness.providers.docker.archive`: what comes out of a container is read with suspicion.
"""

import io
import tarfile

import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.errors import ClusterError
from harness.providers.docker import archive as archives

APPLICATION = "application_1700000000000_0001"
CONTAINER = "container_1700000000000_0001_01_000002"
LOG = f"{APPLICATION}/{CONTAINER}/syslog"


def entry(name, content=b"", **how):
    """
    One member of an archive: a file, or whatever *how* makes of it.
    """
    info = tarfile.TarInfo(name)
    info.size = len(content)
    for key, value in how.items():
        setattr(info, key, value)
    return info, content


def archive(*entries):
    """
    An archive, in small pieces.
    """
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for info, content in entries:
            tar.addfile(info, io.BytesIO(content))
    whole = buffer.getvalue()
    return [whole[i : i + 700] for i in range(0, len(whole), 700)]


def unpacked(folder, *entries, **how):
    """
    What of an archive arrives in *folder*, by its path there.
    """
    into = folder / "logs"
    written = archives.unpack_logs(archive(*entries), APPLICATION, into, "worker1", **how)
    found = {str(p.relative_to(into)): p.read_bytes() for p in into.rglob("*") if p.is_file()}
    assert sorted(into / name for name in found) == sorted(written)
    return found


class TestUnpackLogs:
    def test_keeps_containers_apart(self, tmp_path):
        """
        Each file comes to the folder of its container.
        """
        other = CONTAINER.replace("02", "03")

        found = unpacked(
            tmp_path,
            entry(APPLICATION, type=tarfile.DIRTYPE),
            entry(LOG, b"one"),
            entry(f"{APPLICATION}/{other}/gc.log", b"two"),
        )

        assert found == {f"{CONTAINER}/syslog": b"one", f"{other}/gc.log": b"two"}

    @pytest.mark.parametrize(
        "hostile",
        [
            entry(f"{APPLICATION}/{CONTAINER}/../../../out", b"x"),
            entry(f"{APPLICATION}/../{CONTAINER}/syslog", b"x"),
            entry("/etc/passwd", b"x"),
            entry(f"../{CONTAINER}/syslog", b"x"),
            entry(f"{APPLICATION}/{CONTAINER}/.hidden", b"x"),
            entry(f"{APPLICATION}/{CONTAINER}/a\x1b[2Jb", b"x"),
            entry(f"{APPLICATION}/{CONTAINER}/deep/file", b"x"),
            entry(f"{APPLICATION}/elsewhere/syslog", b"x"),
            entry(LOG, type=tarfile.SYMTYPE, linkname="/etc/passwd"),
            entry(LOG, type=tarfile.LNKTYPE, linkname="/etc/passwd"),
            entry(LOG, type=tarfile.FIFOTYPE),
            entry(LOG, type=tarfile.CHRTYPE, devmajor=1, devminor=5),
            entry(f"{APPLICATION}/{CONTAINER}", type=tarfile.SYMTYPE, linkname="/tmp"),
        ],
        ids=lambda e: repr(e[0].name[-30:]) + e[0].type.decode(),
    )
    def test_leaves_what_is_no_plain_log(self, tmp_path, hostile):
        """
        Names that climb, links and devices stay where they are; the logs beside them are read.
        """
        found = unpacked(tmp_path, hostile, entry(LOG.replace("syslog", "stdout"), b"fine"))

        assert found == {f"{CONTAINER}/stdout": b"fine"}
        assert [p.name for p in tmp_path.iterdir()] == ["logs"]

    def test_endless_logs_end(self, tmp_path):
        """
        More than the limit is an error that names the node.
        """
        with pytest.raises(ClusterError, match=r"more logs than anybody wrote(.|\n)*worker1"):
            unpacked(tmp_path, entry(LOG, bytes(100)), entry(f"{LOG}.1", bytes(100)), limit=150)

    @given(junk=st.binary(max_size=2000))
    def test_any_bytes_give_logs_or_an_error(self, tmp_path_factory, junk):
        """
        Nothing else leaves, whatever comes.
        """
        try:
            written = archives.unpack_logs([junk], APPLICATION, tmp_path_factory.mktemp("x"), "w")
        except ClusterError:
            written = []

        assert written == []

    def test_an_archive_that_is_cut_off_is_an_error(self, tmp_path):
        """
        A connection that ends in a file is told, with the node.
        """
        pieces = archive(entry(LOG, bytes(5000)))[:3]

        with pytest.raises(ClusterError, match=r"broken(.|\n)*worker1"):
            archives.unpack_logs(pieces, APPLICATION, tmp_path, "worker1")


def test_texts_are_plain_files_of_one_folder(tmp_path):
    """
    Other names, links and deeper folders are left behind.
    """
    pieces = archive(
        entry("threads", type=tarfile.DIRTYPE),
        entry("threads/datanode-worker1.txt", b"dump"),
        entry("threads/../out.txt", b"x"),
        entry("threads/link.txt", type=tarfile.SYMTYPE, linkname="/etc/passwd"),
        entry("threads/program", b"x"),
        entry("threads/deep/a.txt", b"x"),
    )

    written = archives.unpack_texts(pieces, tmp_path / "into", "worker1")

    assert written == [tmp_path / "into" / "datanode-worker1.txt"]
    assert [p.name for p in tmp_path.rglob("*") if p.is_file()] == ["datanode-worker1.txt"]


class TestOneFile:
    @given(st.binary(max_size=3000))
    def test_comes_back_as_it_went(self, tmp_path_factory, content):
        """
        What is packed is unpacked, of any size.
        """
        target = tmp_path_factory.mktemp("file") / "there"

        pieces = archives.packed_file("here", io.BytesIO(content), len(content))
        archives.unpack_file(pieces, target, "worker1")

        assert target.read_bytes() == content

    @pytest.mark.parametrize(
        "entries",
        [[], [entry("x", type=tarfile.SYMTYPE, linkname="/etc/passwd")]],
        ids=["nothing", "link"],
    )
    def test_is_to_be_a_file(self, tmp_path, entries):
        """
        A link in the place of a file is not followed.
        """
        with pytest.raises(ClusterError, match="not a plain file"):
            archives.unpack_file(archive(*entries), tmp_path / "there", "worker1")

        assert list(tmp_path.iterdir()) == []

    def test_is_to_stay_as_long_as_it_was(self):
        """
        A file that has become shorter meanwhile makes no archive of another length.
        """
        with pytest.raises(OSError, match="shorter"):
            list(archives.packed_file("x", io.BytesIO(b"abc"), 4))


def test_packed_files_belong_to_the_nodes_user():
    """
    Folders and files bear the number of the image's plain user.
    """
    content = archives.packed({"a/b": b"x"}, ["a"])

    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        found = [(m.name, m.isdir(), m.uid, m.gid, m.mode) for m in tar]

    assert found == [("a", True, 10000, 10000, 0o755), ("a/b", False, 10000, 10000, 0o644)]


def test_last_lines_are_safe_to_print():
    """
    The end of each log, by its name; nothing in it moves a cursor.
    """
    text = "".join(f"line {n}\n" for n in range(1000)) + "\x1b[2Jend\n"

    found = archives.last_lines(archive(entry("logs/a.log", text.encode())), 2, "worker1")

    assert found == {"a.log": "line 999\n\ufffd[2Jend"}
