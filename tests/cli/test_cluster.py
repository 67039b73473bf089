"""
Tests for `harness.cli.commands.cluster` on a provider that starts nothing.
"""

import json
import os
import re

from types import SimpleNamespace

import pytest

from click.testing import CliRunner

from harness import clusters as providers
from harness.base.errors import ClusterError, SpecError
from harness.base.records.trial import ClusterSpec, Hardware, Limit, NodeSpec
from harness.cli.commands.cluster import cluster as command
from harness.clusters import survey
from harness.clusters.hadoop_home import home
from harness.clusters.host import LocalHost
from harness.clusters.local import namespace
from harness.clusters.local.cluster import LocalCluster
from harness.clusters.survey import Devices, Gpu
from tests.node_agent import node_agent

FILE = """
schema: 1
name: small
question: Does it start?
cluster:
  workers: [2, 4]
  node: {map_slots: 2, task_memory: 640 MiB}
  site: {dfs.blocksize: 64 MiB}
workloads:
  - {name: wordcount, input: 1 MiB}
"""


class FakeCluster:
    """
    A provider whose clusters are names.
    """

    provider = "local"
    limits = {"worker1": {"cores": Limit(requested=0.5, setting=0.5, measured=0.49)}}  # noqa: RUF012

    def __init__(self, name, spec, home):
        self.name, self.spec, self.folder = name, spec, "/state/" + name
        self.exec_prefix = "docker exec c1-master"
        self.services = {"secret": "/conf/secret"}
        self.endpoints = {"resourcemanager": "http://198.18.0.1:8088"}

    @classmethod
    def require_libraries(cls):
        """It needs none."""

    def up(self, lifetime_s):
        self.lifetime_s = lifetime_s
        self.there[self.name] = self

    def is_up(self):
        return self.name in self.there

    @classmethod
    def attach(cls, name):
        return cls.there.get(name) or cls(name, ClusterSpec(), None)

    @classmethod
    def remove(cls, name):
        return cls.there.pop(name, None) is not None

    limitations = ()
    traces, limitable = LocalCluster.traces, LocalCluster.limitable
    extra_fields, required_fields = LocalCluster.extra_fields, LocalCluster.required_fields
    sets_site, survey, reach = LocalCluster.sets_site, LocalCluster.survey, LocalCluster.reach

    @property
    def hosts(self):
        return [LocalHost("master", "198.18.0.1", "/", list, dict(os.environ))]

    def agent(self, host, *arguments):
        return node_agent(*arguments)

    def java_on(self, host):
        return "/no/java"

    @property
    def hdfs(self):
        return self

    def get_json(self, service, url_path):
        node = {"id": "worker1:8041", "state": "RUNNING", "numContainers": 2, "version": "3.5.0"}
        return {"nodes": {"node": node | {"usedMemoryMB": 512, "availMemoryMB": 1024}}}

    def dead_daemons(self):
        return {"datanode on worker1": "died"}

    def missing_daemons(self):
        return ["resourcemanager on master"]

    def daemon_pids(self):
        return {"namenode on master": 7}

    def daemon_names(self):
        return [*self.daemon_logs()]

    def daemon_logs(self, lines=20):
        return {
            "namenode on master": f"{lines} lines",
            "datanode on worker1": "other",
            "resourcemanager on master": "hangs",
        }


@pytest.fixture
def harness(monkeypatch, tmp_path):
    """
    A function that runs `harness cluster` with some arguments.
    """
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    fake = type("Fake", (FakeCluster,), {"there": {}})
    monkeypatch.setattr(providers, "PROVIDERS", {"local": fake}, raising=False)
    monkeypatch.setattr(providers.state, "known_names", lambda: sorted(fake.there))
    monkeypatch.setattr(namespace, "kernel_refusal", lambda: "")
    monkeypatch.setattr(home, "HadoopHome", SimpleNamespace(find=lambda: None))

    def run(*arguments):
        done = CliRunner().invoke(command, arguments)
        return SimpleNamespace(
            out=done.stdout, err=done.stderr, status=done.exit_code, error=done.exception,
            there=fake.there,
        )  # fmt: skip

    return run


def test_up_tells_where_and_how_to_go_on(harness):
    """
    An address stands in the command that reaches it; the next commands are talk.
    """
    done = harness("up", "--workers", "2", "--name", "mine")

    command = "docker exec c1-master curl -H @/conf/secret http://198.18.0.1:8088"
    assert done.out == f"resourcemanager  {command}\n"
    assert "harness cluster down --name mine" in done.err
    assert "(it is removed after 8 h 00 min)" in done.err
    assert (done.there["mine"].spec.workers, done.there["mine"].lifetime_s) == (2, 8 * 3600)


@pytest.mark.parametrize("lifetime", ["soon", "59 s", "31 h 5", "1000 h"])
def test_a_lifetime_is_a_duration_of_some_length(harness, lifetime):
    """
    Between a minute and 30 days.
    """
    done = harness("up", "--lifetime", lifetime)

    assert (done.status, done.there) == (2, {})


def test_up_with_a_file(harness, tmp_path):
    """
    The first cluster of the grid is taken; an option wins over the file.
    """
    (tmp_path / "e.yaml").write_text(FILE)
    harness("up", str(tmp_path / "e.yaml"), "--name", "a")
    done = harness("up", str(tmp_path / "e.yaml"), "--name", "b", "--workers", "7")
    a, b = (done.there[n].spec for n in "ab")

    assert (a.workers, b.workers, a.site) == (2, 7, {"dfs.blocksize": str(2**26)})
    assert a.node == NodeSpec(map_slots=2, task_memory_bytes=640 * 2**20)


@pytest.mark.parametrize(
    ("arguments", "reported"),
    [
        (["up", "--provider", "moon"], r"(?s)'moon' is not one of 'local'"),
        (["up", "/no/file.yaml"], r"(?s)cannot be read.*/no/file\.yaml"),
    ],
)
def test_up_refuses(harness, arguments, reported):
    """
    What does not exist is said before anything is started.
    """
    done = harness(*arguments)

    assert re.search(reported, f"{done.err}{done.error}")
    assert done.there == {}


@pytest.mark.process
def test_status_as_json(harness):
    """
    One document, with every daemon and whether it runs.
    """
    harness("up")
    reported = json.loads(harness("status", "--json").out)

    assert (reported["schema_version"], reported["name"], reported["workers"]) == (1, "default", 3)
    daemons = reported["daemons"]
    assert [(d["name"], d["running"], d["answers"], d["pid"]) for d in daemons] == [
        ("namenode on master", True, True, 7),
        ("datanode on worker1", False, True, None),
        ("resourcemanager on master", True, False, None),
    ]


@pytest.mark.process
def test_status_for_people(harness):
    """
    The same as lines.
    """
    harness("up")

    shown = harness("status").out

    assert "  datanode on worker1          not running\n" in shown
    assert "  resourcemanager on master    runs, does not answer\n" in shown


@pytest.mark.process
@pytest.mark.parametrize(
    "node",
    [
        {
            "id": "\x1b]0;owned\x07w1",
            "version": "[link=file:///x]3\x1b[2J",
            "usedMemoryMB": "9" * 99,
        },
        {"id": {}, "state": ["x" * 10**6], "numContainers": True, "availMemoryMB": 10**400},
        {"id": None, "usedMemoryMB": -5, "availMemoryMB": float("nan"), "version": "\u202e"},
    ],
)
def test_status_of_a_hostile_resourcemanager(harness, monkeypatch, node):
    """
    What it tells steers no terminal, fills none, and is no bug of ours.
    """
    harness("up", "--name", "a")
    monkeypatch.setattr(FakeCluster, "get_json", lambda *_: {"nodes": {"node": [node, 7]}})

    shown, reported = harness("status"), harness("status", "--json")

    assert (shown.status, reported.status) == (0, 0)
    assert not set(shown.out) & {"\x1b", "\x07", "\u202e"}
    assert len(shown.out) < 20_000
    assert all(type(n["memory_mb"]) is int for n in json.loads(reported.out)["nodes"])


@pytest.mark.process
def test_status_has_what_limited_nodes_are(harness):
    """
    What was asked and what was measured.
    """
    harness("up")
    reported = json.loads(harness("status", "--json").out)

    assert reported["limits"] == {
        "worker1": {"cores": {"requested": 0.5, "setting": 0.5, "measured": 0.49}}
    }
    assert "  cores of worker1             0.5 cores requested, 0.49 cores measured\n" in (
        harness("status").out
    )


def test_a_file_limits_nodes_of_a_cluster_by_hand(harness, tmp_path):
    """
    The first of several values, as for everything else.
    """
    file = tmp_path / "e.yaml"
    limited = "node: {disk: [5 MiB/s, unlimited]}\n  nodes: {worker2: {cores: 0.5}}"
    file.write_text(FILE.replace("node: {map_slots: 2, task_memory: 640 MiB}", limited))

    spec = harness("up", str(file)).there["default"].spec

    assert spec.node == NodeSpec(disk_bytes_per_s=5 * 2**20)
    assert {name: node.limits() for name, node in spec.nodes.items()} == {
        "worker2": Hardware(cores=0.5).limits()
    }


@pytest.mark.process
def test_status_tells_of_hosts_and_nodes(harness):
    """
    Clock, disk and versions of each host; what YARN says of its nodes.
    """
    harness("up")
    reported = json.loads(harness("status", "--json").out)
    (host,), (node,) = reported["hosts"], reported["nodes"]
    shown = harness("status").out

    assert (host["name"], host["error"], reported["hadoop"]) == ("master", "", "3.5.0")
    assert host["disk_free_bytes"] > 0
    assert abs(host["clock_s"]) < 60
    assert (node["id"], node["containers"], node["memory_mb"]) == ("worker1:8041", 2, 1536)
    assert "1 map and 1 reduce slots each, Hadoop 3.5.0" in shown
    assert re.search(r"worker1:8041 +RUNNING +2 +512 +1536 +3\.5\.0", shown)


@pytest.mark.process
def test_status_tells_of_gpus(harness, monkeypatch):
    """
    Where a host has some: what they are, and what the driver's tool says of lost ones.
    """
    gpus = Gpu("NVIDIA H100", 80 * 2**30, "550.54"), Gpu("\x1b[2Jnvidia1")
    observed = Devices(gpus, "/lib/libcuda.so.1", "GPU is lost")
    monkeypatch.setattr(survey, "find_on", lambda host: observed)
    harness("up")
    (host,) = json.loads(harness("status", "--json").out)["hosts"]
    shown = harness("status").out

    assert host["gpus"]["devices"][0]["memory_bytes"] == 80 * 2**30
    line = "GPU of master +NVIDIA H100, 80 GiB, driver 550.54"
    assert re.search(line, shown)
    assert "note: nvidia-smi on master: GPU is lost" in shown
    assert "\x1b" not in shown


def test_nothing_is_up(harness):
    """
    Status and logs have nothing to speak about: exit 4 with the command that starts one.
    """
    for verb in ("status", "logs"):
        with pytest.raises(ClusterError, match=r"(?s)no cluster 'default'.*harness cluster up"):
            raise harness(verb).error


def test_logs_of_some_daemons(harness):
    """
    Part of a name chooses; an unknown one is an error.
    """
    harness("up")

    assert harness("logs", "namenode", "--lines", "5").out == (
        "==> namenode on master <==\n5 lines\n\n"
    )
    with pytest.raises(SpecError, match="'moon'"):
        raise harness("logs", "moon").error


@pytest.mark.process
def test_the_only_cluster_needs_no_name(harness):
    """
    With two of them the command asks which.
    """
    harness("up", "--name", "a")
    alone = harness("status").status
    harness("up", "--name", "b")

    assert alone == 0
    with pytest.raises(SpecError, match=r"(?s)a, b.*--name a"):
        raise harness("status").error


def test_down_and_down_again(harness):
    """
    Both end well; only the first had something to do.
    """
    harness("up", "--name", "a")
    first, second = harness("down"), harness("down")

    assert (first.status, first.err, second.status, second.err) == (
        0,
        "cluster 'a' is down\n",
        0,
        "no cluster is up\n",
    )


def test_programs_are_told_what_a_command_did(harness):
    """
    Addresses and lifetime of what was started, and what was removed.
    """
    started = json.loads(harness("up", "--name", "a", "--lifetime", "2 h", "--json").out)
    removed = [json.loads(harness("down", "--json").out)["removed"] for _ in range(2)]

    assert (started["name"], started["lifetime_s"]) == ("a", 7200)
    assert started["endpoints"]
    assert removed == [["a"], []]


def test_down_all(harness):
    """
    Every cluster of this user; the second time it says that there is none.
    """
    harness("up", "--name", "a")
    harness("up", "--name", "b")

    assert harness("down", "--all").there == {}
    assert harness("down", "--all").err == "no cluster is up\n"


def test_down_all_goes_on_behind_one_that_cannot_be_removed(harness, monkeypatch):
    """
    A host or an engine that is away keeps no other cluster up; each of them is told.
    """
    plain = providers.remove

    def remove(name):
        if name in ("a", "c"):
            raise ClusterError(f"no way to {name}", fix="repeat")
        return plain(name)

    for name in "abcd":
        harness("up", "--name", name)
    monkeypatch.setattr(providers, "remove", remove)
    done = harness("down", "--all")

    assert list(done.there) == ["a", "c"]
    assert "no way to a" in done.err
    assert done.error.what == "no way to c"


@pytest.mark.process
def test_what_a_cluster_cannot_show_is_told(harness, monkeypatch):
    """
    At its start, when it can still be left, and whenever it is looked at.
    """
    monkeypatch.setattr(FakeCluster, "limitations", ("no namespaces: \x1b[2J",))
    up, status = harness("up"), harness("status")

    assert "warning: no namespaces" in up.err
    assert "note: no namespaces" in status.out
    assert "\x1b" not in up.err + status.out


def test_a_name_that_is_not_there(harness):
    """
    Nothing is stopped by it, and the names that are there are told.
    """
    harness("up", "--name", "morning")
    down, status = harness("down", "--name", "mornign"), harness("status", "--name", "mornign")

    assert down.err == "no cluster 'mornign' is up; there are: morning\n"
    assert status.error.fix == "did you mean morning?"
    assert list(down.there) == ["morning"]


def test_a_file_is_held_to_what_every_command_asks_of_it(harness, tmp_path):
    """
    A misspelled property would start a cluster that is not the one that was meant.
    """
    (tmp_path / "e.yaml").write_text(FILE.replace("dfs.blocksize", "dfs.blokcsize"))
    done = harness("up", str(tmp_path / "e.yaml"))

    assert (done.there, done.error.fix.partition("?")[0]) == ({}, "did you mean dfs.blocksize")
