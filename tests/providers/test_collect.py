"""
Logs of hosts, as processes of this machine and as liars: all comes, once, and nothing else.
"""

import io
import json
import os
import time
import zlib

from contextlib import suppress

import pytest

from hypothesis import given, settings
from hypothesis import strategies as st

from harness.errors import ClusterError, DataError
from harness.providers.host import LocalHost
from harness.providers.ssh import collect as module
from harness.providers.ssh.collect import Limits, Source, collect
from tests.node_agent import node_agent


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """
    No pauses between tries.
    """
    monkeypatch.setattr(module, "_PAUSE_S", 0.0)
    monkeypatch.setattr(module, "_LAST_WORDS_S", 0.1)


def host(name="node"):
    """
    A host that is this machine.
    """
    return LocalHost(name, "127.0.0.1", "/", list, {"PATH": os.environ["PATH"]})


def packer(_host):
    """
    The program that sends.
    """
    return node_agent("pack")


def filled(folder, **files):
    """
    A folder with files, by names in which `__` stands for a slash.
    """
    for name, content in files.items():
        path = folder / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder


def contents(folder):
    """
    All files below a folder, by name.
    """
    return {
        str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()
    }


def frame(kind, content=b""):
    """
    One frame.
    """
    return kind + len(content).to_bytes(4, "big") + content


def file(name, *pieces, start=0, checksum=None):
    """
    The frames of a file.
    """
    checksum = checksum or f"{zlib.crc32(b''.join(pieces)):08x}"
    begin = frame(b"F", json.dumps({"name": name, "from": start}).encode())
    return begin + b"".join(frame(b"R", p) for p in pieces) + frame(b"E", checksum.encode())


END = frame(b"Z", b"{}")
STARTS = (5, -1, -(2**70), "x", None, [])  # of a file of which nothing is here


class Liar:
    """
    A host that answers with prepared bytes, a list of them for one stream each.
    """

    name, address, folder = "liar", "198.18.0.9", "/"

    def __init__(self, *streams):
        self.streams, self.requests = list(streams), []

    def open(self, argv):
        return Stream(self.streams.pop(0) if self.streams else b"", self.requests)


class Stream:
    """
    A command that has written all it will.
    """

    returncode = 0

    def __init__(self, content, requests):
        self.stdin, self.stdout, self.stderr = Kept(requests), io.BytesIO(content), io.BytesIO()

    def wait(self, timeout=None):
        return 0

    def kill(self):
        pass


class Kept(io.BytesIO):
    """
    What is written to a command.
    """

    def __init__(self, requests):
        super().__init__()
        self.requests = requests

    def close(self):
        if not self.closed:
            self.requests.append(json.loads(self.getvalue()))
        super().close()


def told(tmp_path, *streams, **options):
    """
    What a liar brings about: the files that are here then.
    """
    into = tmp_path / "into"
    collect([Source(Liar(*streams), "/logs", into)], packer, **options)
    return contents(into)


def test_files_of_several_hosts_arrive_as_they_are(tmp_path):
    """
    Big and small, empty, compressible or not, each host's into its own folder.
    """
    random, text = os.urandom(1_500_000), b"2026-01-01 INFO a line of a log\n" * 90_000
    a = filled(tmp_path / "a", c1__syslog=text, c1__stderr=b"", c2__syslog=random)
    b = filled(tmp_path / "b", c3__syslog=b"b")
    sources = [Source(host(n), str(f), tmp_path / "into" / n) for n, f in [("x", a), ("y", b)]]

    paths = collect(sources, packer)

    assert contents(tmp_path / "into") == {
        "x/c1/stderr": b"", "x/c1/syslog": text, "x/c2/syslog": random, "y/c3/syslog": b"b",
    }  # fmt: skip
    assert [str(p.relative_to(tmp_path / "into")) for p in paths] == sorted(
        contents(tmp_path / "into")
    )


def test_links_pipes_and_strange_names_stay_where_they_are(tmp_path):
    """
    Only plain files with plain names of the depth and the pattern that was asked for are sent.
    """
    folder = filled(
        tmp_path / "a", c1__syslog=b"1", c1__sub__deep=b"2", d__x=b"3", **{"c1__.hidden": b"4"}
    )
    (folder / "c1" / "link").symlink_to("/etc/passwd")
    (folder / "c2").symlink_to("/etc")
    (folder / "c1" / "a b").write_bytes(b"5")
    os.mkfifo(folder / "c1" / "pipe")

    collect([Source(host(), str(folder), tmp_path / "into")], packer, wanted=r"c\d/.*")

    assert contents(tmp_path / "into") == {"c1/syslog": b"1"}


def test_folder_that_is_not_there_has_no_files(tmp_path):
    """
    A node that ran no container of a job is no error.
    """
    assert collect([Source(host(), str(tmp_path / "none"), tmp_path / "into")], packer) == []


def test_cut_stream_is_resumed_where_it_was_cut(tmp_path):
    """
    What is here is not asked for again, and the file is whole.
    """
    first = file("c/a", b"1") + file("c/b", b"22", b"33")[:-5]
    checksum = f"{zlib.crc32(b'223344'):08x}"
    liar = Liar(first, file("c/b", b"44", start=4, checksum=checksum) + END)

    collect([Source(liar, "/logs", tmp_path / "into")], packer)

    asked = [(r["done"], r["begun"]) for r in liar.requests]
    assert asked == [([], {}), (["c/a"], {"c/b": 4})]
    assert contents(tmp_path / "into") == {"c/a": b"1", "c/b": b"223344"}


class Short:
    """
    A stream that ends early.
    """

    def __init__(self, stream, left):
        self.stream, self.left = stream, left

    def read(self, size):
        content = self.stream.read(min(size, self.left))
        self.left -= len(content)
        return content

    def close(self):
        self.stream.close()


@settings(max_examples=15)
@given(cuts=st.lists(st.integers(1, 400_000), max_size=3))
def test_any_cuts_give_the_same_files(tmp_path_factory, cuts):
    """
    Wherever streams of the real program are cut, the files are those of the host.
    """
    folder = tmp_path_factory.mktemp("cut")
    source = filled(folder / "a", c__a=os.urandom(200_000), c__b=b"x" * 2_000_000, c__c=b"")

    class Cut(LocalHost):
        def open(self, argv):
            running = super().open(argv)
            if cuts:
                running.stdout = Short(running.stdout, cuts.pop())
            return running

    cut = Cut("n", "127.0.0.1", "/", list, {"PATH": os.environ["PATH"]})
    collect([Source(cut, str(source), folder / "into")], packer)

    assert contents(folder / "into") == contents(source)


def test_file_that_became_shorter_is_begun_anew(tmp_path):
    """
    A log that was begun anew between two tries is the new one.
    """
    cut = file("c/a", b"old old old")[:-5]

    assert told(tmp_path, cut, file("c/a", b"new") + END) == {"c/a": b"new"}


def test_damaged_file_is_fetched_again(tmp_path):
    """
    A hash that is not that of the bytes does not get in.
    """
    damaged = file("c/a", b"1", checksum="0" * 8)

    assert told(tmp_path, damaged, file("c/a", b"1") + END) == {"c/a": b"1"}


def test_file_that_stays_damaged_is_an_error(tmp_path):
    """
    After some tries that brought nothing.
    """
    with pytest.raises(ClusterError, match="c/a arrived damaged"):
        told(tmp_path, *[file("c/a", b"1", checksum="0" * 8)] * 9)


def test_host_without_python_is_named(tmp_path):
    """
    The error says what the host said.
    """
    source = Source(host("worker7"), str(tmp_path), tmp_path / "into")

    with pytest.raises(ClusterError, match=r"worker7 end early: .*there is none"):
        collect([source], lambda _: ["sh", "-c", "echo there is none >&2; exit 127"])


@pytest.mark.parametrize(
    "name",
    ["../a", "/etc/passwd", "a/../../b", "c/.part", ".part", "a\\b/..", "c/\x1b[2J", "", "a/b/c", 7,
     None, "c/a\n", "x" * 300],
)  # fmt: skip
def test_name_that_climbs_out_ends_the_collection(tmp_path, name):
    """
    Nothing is written, and the error shows the name without its escapes.
    """
    with pytest.raises(DataError, match="liar sends the name") as refused:
        told(tmp_path, file(name, b"1") + END)

    assert contents(tmp_path) == {}
    assert "\x1b" not in str(refused.value)


@pytest.mark.parametrize(
    ("stream", "what"),
    [
        (file("c/a", b"1") * 2, "twice"),
        (frame(b"R", b"x"), "a piece of no file"),
        (frame(b"X"), "a frame of kind"),
        (frame(b"E", b"0" * 64), "the end of no file"),
        (b"R" + b"\xff" * 4, "a frame of 4294967295 bytes"),
        (frame(b"F", b"[]"), "a file without a name"),
        *(
            (file("c/a", b"1", start=s), "a file from byte")
            for s in (5, -1, -(2**70), "x", None, [])
        ),
        (file("c", b"1") + file("c/a", b"1"), "c/a, as a file and as a folder"),
        (file("c/a", b"1") + file("c", b"1"), "c, as a file and as a folder"),
        (file("c/a")[:-13] + frame(b"C", zlib.compress(bytes(2**22))), "grows beyond its limit"),
        (file("c/a")[:-13] + frame(b"C", b"no"), "what is not compressed"),
        (file("c/a", checksum="\x1b" * 8), "a file without its checksum"),
    ],
)
def test_lies_are_told_apart(tmp_path, stream, what):
    """
    Whatever a host sends, nothing of a broken stream is kept beside whole files.
    """
    with pytest.raises(DataError, match=what):
        told(tmp_path, stream + END)

    assert set(contents(tmp_path)) <= {"into/c/a", "into/c"}


@pytest.mark.parametrize("limits", [Limits(files=2), Limits(bytes=2)])
def test_endless_output_is_stopped(tmp_path, limits):
    """
    Files and bytes are counted.
    """
    stream = b"".join(file(f"c/{n}", b"1") for n in range(9))

    with pytest.raises(DataError, match="more than 2"):
        told(tmp_path, stream + END, limits=limits)


@given(st.binary(max_size=300), st.integers(0, 200))
def test_any_bytes_end_in_an_error_of_ours(tmp_path_factory, noise, place):
    """
    A stream with noise in it brings whole files or a `HarnessError`, and writes nowhere else.
    """
    folder = tmp_path_factory.mktemp("noise")
    good = file("c/a", b"1", b"2") + END
    stream = good[:place] + noise + good[place:]
    with suppress(ClusterError, DataError):
        told(folder, stream)

    assert contents(folder) in ({}, {"into/c/a": b"12"})


def test_silent_host_is_left(tmp_path):
    """
    A host that says nothing does not hold us for ever.
    """
    begin = time.monotonic()
    source = Source(host(), str(tmp_path), tmp_path / "into")

    with pytest.raises(ClusterError, match="end early"):
        collect([source], lambda _: ["sleep", "60"], limits=Limits(silence_s=0.2))
    assert time.monotonic() - begin < 20
