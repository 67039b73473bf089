"""
Tests for `harness.clusters.archives`: what nodes send is read with suspicion.
"""

import io
import re
import shutil
import tarfile

from contextlib import suppress

import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.base.errors import ClusterError
from harness.clusters import archives
from harness.clusters.archives import RefusedArchiveError, unpack

WANTED = re.compile(r"logs/(c\d(?:/.*)?)")


def member(name, content=b"", **fields):
    """
    One member of an archive: a file, or whatever *fields* make of it.
    """
    info = tarfile.TarInfo(name)
    info.size = len(content)
    for field, value in fields.items():
        setattr(info, field, value)
    return info, content


def packed(*members, tar_format=tarfile.PAX_FORMAT):
    """
    The bytes of an archive.
    """
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tar_format) as archive:
        for info, content in members:
            archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def in_pieces(content, size=700):
    """
    The same bytes as they may come.
    """
    return [content[start : start + size] for start in range(0, len(content), size)]


def unpacked(folder, *members):
    """
    What of an archive arrives in *folder*, by its path there.
    """
    into = folder / "into"
    written = unpack(in_pieces(packed(*members)), WANTED, into, "worker1")
    arrived = {str(p.relative_to(into)): p.read_bytes() for p in into.rglob("*") if p.is_file()}
    assert sorted(into / name for name in arrived) == sorted(written)
    return arrived


class TestPack:
    def test_files_belong_to_the_nodes_user(self):
        """
        Folders and files bear the number that the node knows them by.
        """
        target = io.BytesIO()
        archives.pack({"a": None, "a/b": b"x"}, target, owner=10_000)

        with tarfile.open(fileobj=io.BytesIO(target.getvalue())) as archive:
            assert [(m.name, m.isdir(), m.uid, m.gid, m.mode) for m in archive] == [
                ("a", True, 10000, 10000, 0o755),
                ("a/b", False, 10000, 10000, 0o644),
            ]

    @given(content=st.binary(max_size=3000), executable=st.booleans())
    def test_a_file_keeps_its_content(self, tmp_path_factory, content, executable):
        """
        Whether it is a program is kept, too.
        """
        source = tmp_path_factory.mktemp("file") / "here"
        target = io.BytesIO()
        source.write_bytes(content)
        source.chmod(0o700 if executable else 0o600)
        archives.pack({"there": source}, target)

        with tarfile.open(fileobj=io.BytesIO(target.getvalue())) as archive:
            (entry,) = archive
            assert (entry.mode, archive.extractfile(entry).read()) == (
                0o755 if executable else 0o644,
                content,
            )


def test_wanted_files_arrive_under_the_name_of_the_first_group(tmp_path):
    """
    Folders and other files are left behind.
    """
    arrived = unpacked(
        tmp_path,
        member("logs", type=tarfile.DIRTYPE),
        member("logs/c1/syslog", b"one"),
        member("logs/other", b"x"),
        member("logs/c2/gc.log", b"two" * 10_000),
    )

    assert arrived == {"c1/syslog": b"one", "c2/gc.log": b"two" * 10_000}


@pytest.mark.parametrize(
    "hostile",
    [
        member("logs/c1/../../../out", b"x"),
        member("logs/c1//etc/passwd", b"x"),
        member("/etc/passwd", b"x"),
        member("../c1/syslog", b"x"),
        member("logs/c1/.hidden", b"x"),
        member("logs/c1/a\x1b[2Jb", b"x"),
        member("logs/c1/" + "n" * 300, b"x"),
        member("logs/c1/syslog\n", b"x"),
        member("logs/c1/syslog", type=tarfile.SYMTYPE, linkname="/etc/passwd"),
        member("logs/c1/syslog", type=tarfile.LNKTYPE, linkname="/etc/passwd"),
        member("logs/c1/syslog", type=tarfile.FIFOTYPE),
        member("logs/c1/syslog", type=tarfile.CHRTYPE, devmajor=1, devminor=5),
        member("logs/c1", type=tarfile.SYMTYPE, linkname="/tmp"),
        member("logs/c1/sparse", b"0\n", pax_headers={
            "GNU.sparse.major": "1", "GNU.sparse.minor": "0",
            "GNU.sparse.name": "logs/c1/sparse", "GNU.sparse.realsize": "4096",
        }),
    ],
    ids=lambda hostile: repr(hostile[0].name[-30:]) + hostile[0].type.decode(),
)  # fmt: skip
def test_what_is_no_plain_file_with_a_plain_name_is_left_behind(tmp_path, hostile):
    """
    Nothing is written outside, and the file beside it is read.
    """
    arrived = unpacked(tmp_path, hostile, member("logs/c1/stdout", b"fine"))

    assert arrived == {"c1/stdout": b"fine"}
    assert [path.name for path in tmp_path.iterdir()] == ["into"]


@pytest.mark.parametrize(
    ("members", "what"),
    [
        (["logs/c1/a", "logs/c1/a"], "the file c1/a twice"),
        (["logs/c1", "logs/c1/a"], "c1/a, as a file and as a folder"),
        (["logs/c1/a", "logs/c1"], "c1, as a file and as a folder"),
    ],
)
def test_file_in_the_place_of_another_is_refused(tmp_path, members, what):
    """
    What has arrived is not overwritten; the error names the node.
    """
    contents = [member(name, str(number).encode()) for number, name in enumerate(members)]

    with pytest.raises(RefusedArchiveError, match=rf"sends {what}(.|\n)*worker1"):
        unpacked(tmp_path, *contents)
    assert [p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()] == [b"0"]


@pytest.mark.parametrize(
    ("limit", "bound", "what"), [("MOST_FILES", 2, "2 files"), ("MOST_BYTES", 150, "150 bytes")]
)
def test_endless_archives_are_stopped(tmp_path, monkeypatch, limit, bound, what):
    """
    Members that nobody wants count as well.
    """
    members = [member(f"other/{number}", bytes(60)) for number in range(3)]
    monkeypatch.setattr(archives, limit, bound)

    with pytest.raises(RefusedArchiveError, match=f"more than {what}"):
        unpacked(tmp_path, *members)


def test_disk_is_not_filled(tmp_path, monkeypatch):
    """
    The size that is announced is compared with the room before anything is written.
    """
    usage = shutil.disk_usage(tmp_path)._replace(free=2**28 + 10)
    monkeypatch.setattr(archives.shutil, "disk_usage", lambda _: usage)

    with pytest.raises(RefusedArchiveError, match="no room for a file of 11 bytes"):
        unpacked(tmp_path, member("logs/c1/a", bytes(10)), member("logs/c1/b", bytes(11)))
    assert [p.name for p in tmp_path.rglob("*") if p.is_file()] == ["a"]


def test_header_without_an_end_is_not_kept_in_memory(tmp_path):
    """
    A long name of gigabytes ends in an error.
    """
    info = tarfile.TarInfo("././@LongLink")
    info.type = tarfile.GNUTYPE_LONGNAME
    info.size = 2**32
    served = []

    def endless():
        yield info.tobuf()
        while True:
            served.append(2**16)
            yield bytes(2**16)

    with pytest.raises(ClusterError, match="broken: a header without an end"):
        unpack(endless(), WANTED, tmp_path, "worker1")
    assert sum(served) < 2**22


def test_nested_headers_are_an_error(tmp_path):
    """
    However deep an archive nests its headers.
    """
    info = tarfile.TarInfo("pax")
    info.type = tarfile.XHDTYPE
    info.size = 10
    header = info.tobuf() + b"10 path=a\n".ljust(512, b"\0")

    with pytest.raises(ClusterError, match="broken"):
        unpack([header * 1000], WANTED, tmp_path, "worker1")


def test_archive_that_is_cut_off_is_an_error(tmp_path):
    """
    The node is named, and no half file stays.
    """
    pieces = in_pieces(packed(member("logs/c1/syslog", bytes(5000))))[:3]

    with pytest.raises(ClusterError, match=r"broken(.|\n)*worker1"):
        unpack(pieces, WANTED, tmp_path, "worker1")
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == []


@given(noise=st.binary(max_size=600), start=st.integers(0, 6000), length=st.integers(0, 600))
def test_any_bytes_give_files_or_an_error_of_ours(tmp_path_factory, noise, start, length):
    """
    Noise anywhere in an archive: nothing else is raised, and nothing is written elsewhere.
    """
    folder = tmp_path_factory.mktemp("noise")
    good = packed(
        member("logs/c1/" + "n" * 120, b"1" * 700),
        member("logs/c2/b", b"2", pax_headers={"path": "logs/c3/long"}),
        tar_format=tarfile.PAX_FORMAT if start % 2 else tarfile.GNU_FORMAT,
    )
    content = good[:start] + noise + good[start + length :]
    with suppress(ClusterError):
        unpack(in_pieces(content), WANTED, folder / "into", "worker1")

    assert {path.name for path in folder.iterdir()} <= {"into"}


def test_pieces_are_closed(tmp_path):
    """
    The connection that they come from does not stay open, whatever happens.
    """
    closed = []

    def pieces():
        try:
            yield b"no archive"
        finally:
            closed.append(True)

    with suppress(ClusterError):
        unpack(pieces(), WANTED, tmp_path, "worker1")

    assert closed == [True]
