"""
Tests for `harness.clusters.masters` and the program at its other end, `harness.clusters.node.hdfs`.

A small WebHDFS on the loopback address stands for the cluster.
"""

import contextlib
import http.server
import json
import os
import threading
import time

from pathlib import Path
from types import SimpleNamespace

import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.base.errors import ClusterError
from harness.clusters import archives
from harness.clusters import masters as module
from harness.clusters.host import LocalHost
from harness.clusters.masters import Hdfs, RefusedError
from tests.fake_webhdfs import FakeWebHdfs
from tests.node_agent import node_agent

pytestmark = pytest.mark.process


@pytest.fixture
def fake():
    """
    The class of a running fake, with its files.
    """
    handler = type("Handler", (FakeWebHdfs,), {"files": {}, "cut": 0})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}).start()
    handler.port = server.server_port
    yield handler
    server.shutdown()
    server.server_close()


@pytest.fixture
def hdfs(fake, tmp_path):
    """
    A file system whose connection leads to the fake.
    """
    gateway = LocalHost("here", "127.0.0.1", str(tmp_path), list, {})
    address = f"127.0.0.1:{fake.port}"
    services = json.dumps({"nn": address, "rm": address, "user": "root"})
    agent_command = node_agent("hdfs", services)
    return Hdfs(lambda: gateway, lambda arguments: [*agent_command, *arguments])


NAMES = ["/f", "/a b", "/ü/%20?x=1&y", '/\'; echo "$HOME"']


class TestFiles:
    @pytest.mark.parametrize("path", NAMES)
    @pytest.mark.parametrize("content", [b"", b"x", bytes(3 * 2**20 + 7)], ids=len)
    def test_a_file_is_read_as_it_was_written(self, hdfs, fake, path, content):
        """
        Any name, any length, whatever pieces it is written in.
        """
        pieces = [content[i : i + 1_000_000] for i in range(0, len(content), 1_000_000)]
        hdfs.put(path, pieces)

        assert fake.files == {path: content}
        assert b"".join(hdfs.open(path)) == content

    def test_several_files_by_one_process(self, hdfs, fake):
        """
        Each with its path, in the order asked for, even where the caller skips some.
        """
        fake.files.update({f"/{i}": bytes([i]) * i * 1000 for i in range(5)})
        paths = sorted(fake.files, reverse=True)
        read = {
            path: b"".join(pieces)
            for path, pieces in hdfs.open_many(paths)
            if path != "/3"
        }  # fmt: skip

        assert read == {p: c for p, c in fake.files.items() if p != "/3"}

    def test_no_files(self, hdfs):
        """
        Nothing asked, nothing started.
        """
        assert list(hdfs.open_many([])) == []

    def test_listing_is_sorted(self, hdfs, fake):
        """
        Name, bytes and kind of each entry.
        """
        fake.files.update({"/d/b": b"12", "/d/a": b""})

        assert hdfs.list("/d") == [("a", 0, False), ("b", 2, False)]

    def test_rename_and_delete(self, hdfs, fake):
        """
        A file moves; a file that is gone can be deleted again.
        """
        fake.files["/a"] = b"1"
        hdfs.rename("/a", "/b")
        renamed_files = dict(fake.files)
        hdfs.delete("/b")
        hdfs.delete("/b")
        hdfs.make("/d")

        assert (renamed_files, fake.files) == ({"/b": b"1"}, {})

    def test_web_services(self, hdfs):
        """
        What a daemon answers comes back unchanged.
        """
        assert json.loads(hdfs.call("get", "rm", "/ws/v1/cluster/info")) == {
            "clusterInfo": {"state": "STARTED"}
        }


class TestRefusals:
    def test_a_missing_file_has_hadoops_own_error(self, hdfs):
        """
        One line of them, and what was asked.
        """
        with pytest.raises(ClusterError, match=r"(?s)^File /no does not exist\.\n.*read /no"):
            list(hdfs.open("/no"))
        with pytest.raises(ClusterError, match="does not exist"):
            hdfs.list("/no")

    def test_rename_to_an_existing_target_is_refused(self, hdfs, fake):
        """
        Nothing is overwritten by a rename.
        """
        fake.files.update({"/a": b"1", "/b": b"2"})

        with pytest.raises(ClusterError, match="/a cannot become /b"):
            hdfs.rename("/a", "/b")

    def test_a_relative_path_is_refused(self, hdfs):
        """
        There is no working folder.
        """
        with pytest.raises(ClusterError, match="not an absolute path"):
            hdfs.list("x")

    def test_a_file_that_ends_early(self, hdfs, fake):
        """
        Missing bytes are an error, never a short file.
        """
        fake.files["/a"] = b"1234"
        fake.cut = 1

        with pytest.raises(ClusterError, match=r"missing|early|IncompleteRead"):
            list(hdfs.open("/a"))

    def test_a_dead_namenode(self, hdfs, fake):
        """
        Nobody listens: an error with the reason.
        """
        agent_command = hdfs._command
        hdfs._command = lambda a: [x.replace(str(fake.port), "1") for x in agent_command(a)]

        with pytest.raises(ClusterError, match="ConnectionRefused"):
            hdfs.list("/")

    def test_put_to_a_dead_namenode(self, hdfs, fake):
        """
        The writer hears why, not that a pipe is broken.
        """
        agent_command = hdfs._command
        hdfs._command = lambda a: [x.replace(str(fake.port), "1") for x in agent_command(a)]

        with pytest.raises(ClusterError, match="ConnectionRefused"):
            hdfs.put("/x", (bytes(2**20) for _ in range(64)))

    @pytest.mark.parametrize(
        ("full", "message"),
        [("The quota of /x is exceeded.\nat x.Y", "^The quota of /x is exceeded\\.\n"),
         ("", r"^127\.0\.0\.1:\d+ has hung up while it was sent a file")],
        ids=["refused", "silent"],
    )  # fmt: skip
    def test_put_where_there_is_no_room(self, hdfs, fake, full, message):
        """
        A DataNode that hangs up in the middle is heard first; the file counts as not written.
        """
        fake.full = full

        with pytest.raises(ClusterError, match=message) as caught:
            hdfs.put("/x", (bytes(2**20) for _ in range(64)))
        assert isinstance(caught.value, RefusedError) == bool(full)


@pytest.mark.parametrize(
    "answer", ["", "7", "[" * 50_000, '{"bytes": "x"}', '{"bytes": 1e999}', '{"name": []}']
)
def test_invalid_answers_are_errors(tmp_path, answer):
    """
    Listings and headers that are none of ours are an error of the cluster, and no bug.
    """
    (tmp_path / "answer").write_text(f"{answer}\n")
    gateway = LocalHost("here", "127.0.0.1", str(tmp_path), list, {"PATH": os.environ["PATH"]})
    liar = Hdfs(lambda: gateway, lambda arguments: ["cat", str(tmp_path / "answer")])

    for operation in (liar.list, lambda path: list(liar.open(path))):
        with pytest.raises(ClusterError, match="does not have the form of the node agent's"):
            operation("/f")


@pytest.mark.parametrize(
    "script",
    [r"yes | tr -d '\n'", r"exec 3>&2 >&-; yes | tr -d '\n' >&3"],
    ids=["as an answer", "as an error"],
)
def test_an_endless_answer_is_an_error(tmp_path, script):
    """
    It is left after some KiB: neither a header nor words of an error are read to their end.
    """
    gateway = LocalHost("here", "127.0.0.1", str(tmp_path), list, {"PATH": os.environ["PATH"]})
    liar = Hdfs(lambda: gateway, lambda arguments: ["sh", "-c", script])

    with pytest.raises(ClusterError) as caught:
        list(liar.open("/f"))
    assert len(caught.value.what) < 2**17


@pytest.mark.parametrize(
    "say", ["", """echo '{"bytes": 5}'; printf abc; """], ids=["nothing", "a part"]
)
def test_a_host_that_stops_answering_is_an_error(tmp_path, monkeypatch, say):
    """
    It is waited for so long and no longer.
    """
    monkeypatch.setattr(module, "LIMIT_S", 0.4)
    gateway = LocalHost("here", "127.0.0.1", str(tmp_path), list, {"PATH": os.environ["PATH"]})
    mute_hdfs = Hdfs(lambda: gateway, lambda arguments: ["sh", "-c", f"{say}exec sleep 60"])

    with pytest.raises(ClusterError, match=r"no answer after 0\.4 s"):
        list(mute_hdfs.open("/f"))


@given(
    st.lists(st.tuples(st.integers(1, 2**17), st.integers(0, 9)), max_size=30),
    st.sampled_from([float("inf"), 150.0]),
)
def test_a_stream_has_a_total_limit(pieces, most_s):
    """
    Two minutes, a second for each 64 KiB that have come, and the most that there is: what comes by
    then comes whole, and what does not is an error.
    """
    clock = [0.0]

    def come():
        for size, pause_s in pieces:
            clock[0] += pause_s
            yield bytes(size)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(archives, "time", SimpleNamespace(monotonic=lambda: clock[0]))
        taken = 0
        waited_s = 0
        is_late = False
        for size, pause_s in pieces:
            taken = taken + size
            waited_s = waited_s + pause_s
            is_late |= waited_s > min(most_s, 120 + taken / 2**16)
        with pytest.raises(archives.RefusedArchiveError) if is_late else contextlib.nullcontext():
            received = b"".join(archives.in_time(come(), "here", most_s))
            assert len(received) == taken


def test_a_slow_caller_is_not_timed_out(hdfs, fake, monkeypatch):
    """
    Only waits for the cluster are counted.
    """
    monkeypatch.setattr(module, "LIMIT_S", 2.0)
    fake.files["/big"] = bytes(2**21)
    pieces = hdfs.open("/big")
    first = len(next(pieces))
    time.sleep(2.2)

    assert first + sum(map(len, pieces)) == 2**21


def children():
    """
    Processes that this one has started and that have not been collected.
    """
    processes = []
    for entry in Path("/proc").iterdir():
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except (OSError, NotADirectoryError):
            continue
        if fields[1] == str(os.getpid()):
            processes.append(int(entry.name))
    return processes


def test_a_reader_that_stops_leaves_no_process(hdfs, fake):
    """
    Neither running nor waiting to be collected.
    """
    fake.files["/big"] = bytes(32 * 2**20)
    before = children()
    reader = hdfs.open("/big")
    first = len(next(reader))
    during = len(children()) - len(before)
    reader.close()

    assert (first, during, children()) == (2**20, 1, before)


def test_a_slow_reader_gets_everything(hdfs, fake):
    """
    Pipes fill up and empty again.
    """
    fake.files["/big"] = bytes(5 * 2**20)
    size = 0
    for piece in hdfs.open("/big"):
        size += len(piece)
        time.sleep(0.01)

    assert size == 5 * 2**20
