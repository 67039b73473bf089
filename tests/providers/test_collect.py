"""
Files of hosts, as processes of this machine: all of the wanted ones arrive, and nothing else.
"""

import io
import os
import sys
import tarfile
import time

from contextlib import suppress

import pytest

from hypothesis import given, settings
from hypothesis import strategies as st

from harness.base.errors import ClusterError
from harness.clusters import archives
from harness.clusters import collect as module
from harness.clusters.archives import RefusedArchiveError
from harness.clusters.collect import Source, collect
from harness.clusters.host import LocalHost
from harness.clusters.node import transport
from tests.node_agent import node_agent

pytestmark = pytest.mark.process
ALL = r"[^.].*"


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """
    No pauses between tries.
    """
    monkeypatch.setattr(module, "_PAUSE_S", 0.0)
    monkeypatch.setattr(module, "_LAST_WORDS_S", 0.1)


def host(name="node", kind=LocalHost):
    """
    A host that is this machine.
    """
    return kind(name, "127.0.0.1", "/", list, {"PATH": os.environ["PATH"]})


def packer(_host):
    """
    The command that sends.
    """
    return node_agent("pack")


def fill(folder, files):
    """
    Make files by their names; the folder.
    """
    for name, content in files.items():
        path = folder / name
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


def archive(*names, end=True):
    """
    The bytes of an archive of small files, without what ends it if so wanted.
    """
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name in names:
            member = tarfile.TarInfo(name)
            member.size = len(name)
            tar.addfile(member, io.BytesIO(name.encode()))
    return buffer.getvalue()[: None if end else 1024 * len(names)]


def collected(folder, stream, *, status=0):
    """
    What arrives of a host that sends *stream*, whatever it was asked for.
    """
    (folder / "stream").write_bytes(stream)
    command = ["sh", "-c", f"cat {folder}/stream; exit {status}", "sh"]
    source = Source(host("liar"), "/logs", folder / "into")
    collect([source], lambda _: command, r"c\d/.*")
    return contents(folder / "into")


def test_files_of_several_hosts_arrive_as_they_are(tmp_path):
    """
    Large and small, empty, of long names: each host's into its own folder.
    """
    random = os.urandom(1_500_000)
    long_name = f"c1/{'n' * 120}"
    first = fill(tmp_path / "a", {"c1/syslog": random, "c1/stderr": b"", long_name: b"long"})
    second = fill(tmp_path / "b", {"c3/syslog": b"b"})
    sources = [
        Source(host(name), str(folder), tmp_path / "into" / name)
        for name, folder in [("x", first), ("y", second)]
    ]

    paths = collect(sources, packer, ALL)

    assert contents(tmp_path / "into") == {
        "x/c1/stderr": b"", "x/c1/syslog": random, f"x/{long_name}": b"long", "y/c3/syslog": b"b",
    }  # fmt: skip
    assert sorted(contents(tmp_path / "into")) == sorted(
        str(path.relative_to(tmp_path / "into")) for path in paths
    )


def test_links_pipes_and_unwanted_names_stay_on_the_host(tmp_path):
    """
    Only plain files with plain names that match the whole pattern are sent.
    """
    files = {"c1/syslog": b"1", "d/x": b"3", "c1/.hidden": b"4", "c1/a b": b"5", "x/c1/y": b"6"}
    folder = fill(tmp_path / "a", files)
    (folder / "c1" / "link").symlink_to("/etc/passwd")
    (folder / "c2").symlink_to("/etc")
    os.mkfifo(folder / "c1" / "pipe")

    collect([Source(host(), str(folder), tmp_path / "into")], packer, r"c\d/.*")

    assert contents(tmp_path / "into") == {"c1/syslog": b"1"}


def test_folder_that_is_not_there_has_no_files(tmp_path):
    """
    A node that ran no container of a job is no error.
    """
    source = Source(host(), str(tmp_path / "none"), tmp_path / "into")

    assert collect([source], packer, ALL) == []
    assert not (tmp_path / "into").exists()


class CutStream:
    """
    A stream that ends early.
    """

    def __init__(self, stream, left):
        self.stream = stream
        self.left = left

    def read(self, size):
        content = self.stream.read(min(size, self.left))
        self.left -= len(content)
        return content

    def close(self):
        self.stream.close()


@settings(max_examples=10)
@given(cuts=st.lists(st.integers(1, 400_000), max_size=3))
def test_streams_that_are_cut_are_started_again(tmp_path_factory, cuts):
    """
    Wherever that happens, the files are those of the host.
    """
    folder = tmp_path_factory.mktemp("cut")
    files = {"c/a": os.urandom(200_000), "c/b": b"x" * 1_000_000, "c/c": b""}
    source = fill(folder / "a", files)

    class CutHost(LocalHost):
        def open(self, argv):
            running = super().open(argv)
            if cuts:
                running.stdout = CutStream(running.stdout, cuts.pop())
            return running

    collect([Source(host(kind=CutHost), str(source), folder / "into")], packer, ALL)

    assert contents(folder / "into") == files


def test_host_without_python_is_named(tmp_path):
    """
    The error has what the host said.
    """
    source = Source(host("worker7"), str(tmp_path), tmp_path / "into")

    with pytest.raises(ClusterError, match=r"worker7 end early: there is \\x1b none"):
        collect(
            [source], lambda _: ["sh", "-c", r"printf 'there is \033 none\n' >&2; exit 127"], ALL
        )


def test_packer_that_fails_behind_its_last_file_is_an_error(tmp_path):
    """
    An archive that ends between two files looks whole; the status says that it is not.
    """
    with pytest.raises(ClusterError, match="liar end early: status 3"):
        collected(tmp_path, archive("c1/a", end=False), status=3)
    assert collected(tmp_path, archive("c1/a", end=False)) == {"c1/a": b"c1/a"}


def test_file_that_shrinks_while_it_is_sent_ends_in_an_error(tmp_path):
    """
    Its announced size does not come.
    """
    with pytest.raises(ClusterError, match="liar end early: the archive is broken"):
        collected(tmp_path, archive("c1/a")[:514])
    assert contents(tmp_path / "into") == {}


@pytest.mark.parametrize(
    ("limit", "bound", "what"), [("MOST_FILES", 2, "2 files"), ("MOST_BYTES", 9, "9 bytes")]
)
def test_endless_output_is_refused_once(tmp_path, limit, bound, what, monkeypatch):
    """
    It is not tried again.
    """
    monkeypatch.setattr(module.time, "sleep", lambda _: pytest.fail("tried again"))
    monkeypatch.setattr(archives, limit, bound)

    with pytest.raises(RefusedArchiveError, match=f"more than {what}"):
        collected(tmp_path, archive(*(f"c1/{n}" for n in range(9))))


@given(st.binary(max_size=300), st.integers(0, 200))
def test_any_bytes_end_in_an_error_of_ours(tmp_path_factory, noise, place):
    """
    A stream with noise in it is an error, or brings files of wanted names; nothing else.
    """
    folder = tmp_path_factory.mktemp("noise")
    good = archive("c1/a")
    with suppress(ClusterError):
        collected(folder, good[:place] + noise + good[place:])

    assert {path.name for path in folder.iterdir()} <= {"stream", "into"}


TRICKLE = """
import sys, tarfile, time
log = tarfile.TarInfo("c1/syslog")
log.size = 2**20
sys.stdout.buffer.write(log.tobuf())
while True:
    sys.stdout.buffer.write(bytes(512))
    sys.stdout.buffer.flush()
    time.sleep(0.05)
"""


def test_host_that_trickles_is_given_up(tmp_path, monkeypatch):
    """
    Each piece comes in time, all of them do not: the error names the host, its bytes and the limit,
    and nothing is tried again.
    """
    monkeypatch.setattr(module.time, "sleep", lambda _: pytest.fail("tried again"))
    monkeypatch.setattr(transport, "START_S", 0.3)
    monkeypatch.setattr(module, "CHUNK_BYTES", 512)
    source = Source(host("slow"), "/logs", tmp_path / "into")

    with pytest.raises(
        RefusedArchiveError, match=r"B have come in 0\.\d+ s, beyond the limit of 0\."
    ) as e:
        collect([source], lambda _: [sys.executable, "-c", TRICKLE], r"c\d/.*")
    assert e.value.where == "slow: /logs"
    assert contents(tmp_path / "into") == {}


def test_silent_host_is_given_up(tmp_path, monkeypatch):
    """
    The error says for how long nothing came.
    """
    monkeypatch.setattr(module, "IDLE_S", 0.2)
    start = time.monotonic()
    source = Source(host(), str(tmp_path), tmp_path / "into")

    with pytest.raises(ClusterError, match=r"end early: nothing came for 0\.2 s"):
        collect([source], lambda _: ["sh", "-c", "sleep 60"], ALL)
    assert time.monotonic() - start < 20
