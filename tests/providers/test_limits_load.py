"""
Tests for `NodeLoad` with its real loads, on this machine as it is: no limit is set here.
"""

import json
import os
import sys

import pytest

from harness.base.errors import ClusterError
from harness.clusters.adjust import NodeLoad
from harness.clusters.host import LocalHost
from harness.clusters.kernel import shape_argv
from harness.clusters.node import load as loads
from tests.node_agent import node_agent_path

SHORT = "import sys; sys.path.insert(0, sys.argv.pop(1)); from node import load; load.SECONDS = 0.1; load._WARM_UP_S = 0.01; load.main(sys.argv[1:])"  # noqa: E501
MIB = 2**20
pytestmark = pytest.mark.process


def host(name, folder):
    """
    A node that is this machine.
    """
    (folder / name / "data").mkdir(parents=True)
    return LocalHost(name, "127.0.0.1", str(folder / name), list, {"PATH": "/usr/bin:/bin"})


@pytest.fixture
def hosts(tmp_path):
    """
    A master and two workers.
    """
    return [host(name, tmp_path) for name in ("master", "worker1", "worker2")]


def load_on(hosts, program=SHORT):
    """
    The loads, shortened.
    """
    return NodeLoad(
        hosts, lambda _: [sys.executable, "-I", "-c", program, str(node_agent_path())], disk="data"
    )


def test_cores_are_measured_on_all_nodes_at_once(hosts):
    """
    Each node gets some processor time, and no more than it has processes for.
    """
    measured = load_on(hosts).measure(
        "cores", {"worker1": {"cores": 1.0}, "worker2": {"cores": 0.5}}
    )

    assert {name: 0 < rates["cores"] <= 2.1 for name, rates in measured.items()} == {
        "worker1": True,
        "worker2": True,
    }


def test_a_disk_is_measured_in_three_ways(hosts, tmp_path):
    """
    Written with waiting, read, written without waiting; the files are gone afterwards.
    """
    requested = {"worker2": {"disk_write": 8.0 * MIB, "disk_read": 8.0 * MIB}}

    measured = load_on(hosts).measure("disk_bytes_per_s", requested)
    buffered = load_on(hosts).measure_buffered(requested)

    assert measured["worker2"].keys() == {"disk_write", "disk_read"}
    assert buffered["worker2"] > 0
    assert list((tmp_path / "worker2" / "data").iterdir()) == []


def test_the_network_is_measured_between_nodes_and_master(hosts):
    """
    In both directions.
    """
    requested = {name: {"network_out": 1e6, "network_in": 1e6} for name in ("worker1", "worker2")}

    measured = load_on(hosts).measure("network_bytes_per_s", requested)

    assert {name: sorted(rates) for name, rates in measured.items()} == {
        "worker1": ["network_in", "network_out"],
        "worker2": ["network_in", "network_out"],
    }
    assert all(min(rates.values()) > 1e5 for rates in measured.values())


@pytest.mark.parametrize("taken_up", [0, 40 * MIB], ids=["at once", "after a while"])
def test_a_writer_that_is_stopped_now_and_then(tmp_path, monkeypatch, taken_up):
    """
    The kernel takes twelve pieces at twice the rate, and then lets the writer wait for them: it is
    the rate over several such waits that is measured, whatever memory took up before.
    """
    clock_s = 0.0
    pieces = 0

    def write(_handle, content):
        nonlocal clock_s, pieces
        pieces += 1
        piece_s = len(content) / (8 * MIB)
        if pieces * len(content) <= taken_up:
            clock_s += piece_s / 100
        else:
            clock_s += piece_s / 2 if pieces % 12 else 6.5 * piece_s
        return len(content)

    monkeypatch.setattr(loads.os, "write", write)
    monkeypatch.setattr(loads.time, "monotonic", lambda: clock_s)

    measured = loads.measure_buffered(str(tmp_path), 8.0 * MIB)

    assert measured["buffered_write"] == pytest.approx(8 * MIB, rel=0.15)


@pytest.mark.parametrize(
    ("program", "reported"),
    [
        ("import sys; sys.exit('no room')", "worker1 achieves cannot be measured: no room"),
        ("print('[1]')", "no message"),
        ("print('{\"cores\": 0}')", r"it measured \{'cores': 0.0\}"),
        ("print('{\"cores\": 1e999}')", r"it measured \{'cores': inf\}"),
        ("print('\\x1b[2J', file=__import__('sys').stderr)", r"\\x1b\[2J"),
    ],
)
def test_a_load_that_fails_is_an_error(hosts, program, reported):
    """
    The error names the node; its message cannot move a terminal's cursor.
    """
    with pytest.raises(ClusterError, match=reported):
        load_on(hosts, program).measure("cores", {"worker1": {"cores": 1.0}})


def test_a_server_that_does_not_start_is_an_error_of_the_master(hosts):
    """
    Before any node sends.
    """
    with pytest.raises(ClusterError, match="what master achieves cannot be measured: nothing"):
        load_on(hosts, "import sys; sys.exit('nothing')").measure(
            "network_bytes_per_s", {"worker1": {"network_out": 1e6, "network_in": 1e6}}
        )


@pytest.mark.parametrize("line", ["[]", "{}", '{"port": []}', "nonsense", "1" * 5000])
def test_a_server_that_names_no_port(hosts, line):
    """
    Its output is in the message.
    """
    with pytest.raises(ClusterError, match="what master achieves cannot be measured: no port: "):
        load_on(hosts, f"print({line!r}, flush=True)").measure(
            "network_bytes_per_s", {"worker1": {"network_out": 1e6, "network_in": 1e6}}
        )


def test_a_share_is_that_of_all_processes(capsys):
    """
    The answer is one line of JSON.
    """
    loads.main(["cores", "1", "0.1"])

    assert 0 < json.loads(capsys.readouterr().out)["cores"] <= 1.1


def test_a_bucket_holds_what_passes_between_two_ticks():
    """
    A rate is never limited by its bucket: 10 Gbit/s at 250 ticks per second are 5 MB each.
    """
    argv = shape_argv("eth0", 1.25e9)

    assert argv[argv.index("burst") + 1] == "5000000b"


def test_a_file_is_unchanged_when_its_page_cache_is_dropped(tmp_path, monkeypatch):
    """
    Files keep what is in them; links, and files that are gone, are left alone.
    """
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "block").write_bytes(b"x" * 5000)
    (tmp_path / "link").symlink_to("/etc/passwd")
    requested = []
    monkeypatch.setattr("os.posix_fadvise", lambda handle, *rest: requested.append(rest))

    loads.drop_cache([str(tmp_path), str(tmp_path / "nowhere")])

    assert requested == [(0, 0, os.POSIX_FADV_DONTNEED)]
    assert (tmp_path / "below" / "block").read_bytes() == b"x" * 5000
