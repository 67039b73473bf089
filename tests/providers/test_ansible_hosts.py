"""
Tests for `harness.clusters.ansible.hosts`: what hosts say of themselves.
"""

import json
import os
import time

import pytest

from harness.base.errors import ClusterError
from harness.base.hadoop.daemons import Member
from harness.base.records.trial import SshAccess
from harness.clusters.ansible import hosts as ansible_hosts
from harness.clusters.ansible.hosts import InstalledJava, query
from harness.clusters.host import Completed
from harness.clusters.node import facts as node_facts
from harness.clusters.ssh.connection import Connection

ANSWER = {
    "python": "3.11.2", "user": "hadoop", "root": False, "home": "/home/hadoop", "base": "/b",
    "machine": "x86_64", "java": [],
    "copied": [], "free_bytes": 2**34, "writable": True, "taken": [], "unnamed": [],
    "hostname": "", "sudo": "", "systemd": False, "lacking": [], "filter": "",
    "public": [], "left": False, "owners": {},
}  # fmt: skip


def queried(monkeypatch, text):
    """
    The facts of a host whose program prints *text*.
    """
    monkeypatch.setattr(
        ansible_hosts.SshHost, "run", lambda self, argv, *_: Completed(tuple(argv), 0, text, "")
    )
    connection = Connection("198.18.0.9", SshAccess(user="hadoop"))
    return query(Member("worker1", "198.18.0.9"), connection, "c", {})


def test_answer_is_read(monkeypatch):
    """
    A clock that agrees with ours is not ahead.
    """
    facts = queried(monkeypatch, json.dumps(ANSWER | {"time": time.time()}))

    assert (facts.user, round(facts.clock_s)) == ("hadoop", 0)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\x1b[2J",
        "[" * 60_000,
        json.dumps(ANSWER),
        json.dumps(ANSWER | {"time": 0.0, "user": "x" * 10**6}),
        json.dumps(ANSWER | {"time": 0.0, "taken": list(range(10**5))}),
        json.dumps(ANSWER | {"time": 0.0, "java": "../../bin"}),
    ],
    ids=["nothing", "escapes", "nested", "no time", "long name", "many ports", "no list"],
)
def test_answer_without_sense_is_refused(monkeypatch, text):
    """
    The host is named, and the message stays short.
    """
    with pytest.raises(ClusterError) as caught:
        queried(monkeypatch, text)

    assert caught.value.what.startswith("the host's Python cannot say what the host is")
    assert "worker1" in caught.value.where
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize("status", [126, 127])
def test_host_without_python_is_named(monkeypatch, status):
    """
    The error names the package.
    """
    run = lambda self, argv, *_: Completed(tuple(argv), status, "", "sh: no python3\x1b\n")  # noqa: E731
    monkeypatch.setattr(ansible_hosts.SshHost, "run", run)

    with pytest.raises(ClusterError, match=r"no Python on the host: sh: no python3\\x1b") as caught:
        query(Member("worker1", "198.18.0.9"), Connection("198.18.0.9", SshAccess()), "c", {})
    assert "apt-get install -y python3" in caught.value.fix


@pytest.mark.parametrize(("ahead_s", "expected"), [(3600, 3600), (-3600, -3600), (0, 0)])
def test_clock_is_compared_with_ours(monkeypatch, ahead_s, expected):
    """
    In seconds by which the host's is ahead; what the answer took on its way does not count.
    """
    answer = json.dumps(ANSWER | {"time": time.time() + ahead_s})

    assert round(queried(monkeypatch, answer).clock_s) == expected


def test_a_python_that_is_too_old_says_so(monkeypatch):
    """
    Before anything of ours fails there for want of it.
    """
    monkeypatch.setattr(node_facts, "_OLDEST_PYTHON", (99, 0))

    with pytest.raises(SystemExit, match=r"Python 3\.\d+\.\d+ is too old"):
        node_facts.main(["preflight"])


DEVICE = "{}, L4, 23034, 550.54, 4, 1, 16, 8"


@pytest.mark.parametrize(
    ("status", "lines", "wanted", "lack"),
    [
        (0, [DEVICE.format(0), DEVICE.format(1)], 2, ""),
        (0, [DEVICE.format(0)], 2, "2 to be offered, 1 found"),
        (0, [DEVICE.format(0), "Unable"], 2, "2 to be offered, 1 found: Unable"),
        (0, [], 1, "1 to be offered, none found"),
        (9, ["no driver"], 1, "1 to be offered, none found: no driver"),
        (9, ["no driver"], 0, ""),
    ],
    ids=["all", "fewer", "one is lost", "none", "no driver", "not asked"],
)
def test_gpus_that_do_not_work(monkeypatch, status, lines, wanted, lack):
    """
    Known before anything is copied; the tool is asked on workers alone, and only where GPUs are to
    be offered.  A device file without a driver that works is none.
    """
    commands = []

    def run(self, argv, *_):
        commands.append((self.name, argv[0]))
        answers = {
            "python3": (0, json.dumps(ANSWER | {"time": time.time()})),
            "ldconfig": (0, "libcuda.so.1 (libc6,x86-64) => /usr/lib/libcuda.so.1"),
            "find": (0, "/dev/nvidia0\n"),
            "nvidia-smi": (status, "\n".join(lines)),
        }
        return Completed(tuple(argv), *answers[argv[0]], "")

    monkeypatch.setattr(ansible_hosts.SshHost, "run", run)
    connection = Connection("198.18.0.9", SshAccess(user="hadoop"))
    lacks = [
        query(Member(name, "198.18.0.9"), connection, "c", {}, wanted).gpus_lack
        for name in ("master", "worker1")
    ]

    assert lacks == ["", lack]
    assert ("worker1" in {n for n, program in commands if program == "nvidia-smi"}) == bool(wanted)
    assert "nvidia-smi" not in {program for name, program in commands if name == "master"}


@pytest.mark.parametrize(
    ("version", "fits"),
    [("17.0.15", True), ("1.8.0", False), ("21", True), ("9" * 5000, True), ("x", False)],
)
def test_which_java_fits(version, fits):
    """
    Versions that are not numbers, or have no end, do no harm.
    """
    assert InstalledJava(home="/usr/lib/jvm/a", version=version, build="").fits is fits


@pytest.mark.process
class TestOwners:
    @pytest.fixture
    def folder(self, tmp_path, monkeypatch):
        """
        A cluster's folder with an owner, who is no longer about to start it.
        """
        (tmp_path / "x").mkdir()
        (tmp_path / "x" / "owner").write_text("them\n")
        monkeypatch.setattr(node_facts, "_YOUNG_S", 0.0)
        return tmp_path / "x"

    def test_cluster_whose_supervisor_lives(self, folder):
        """
        It reads its pipe.
        """
        os.mkfifo(folder / "control")
        reader = os.open(folder / "control", os.O_RDWR)
        owners = node_facts.living_owners(folder.parent)
        os.close(reader)

        assert (owners, node_facts.living_owners(folder.parent)) == ({"x": "them"}, {})

    def test_cluster_that_is_about_to_start(self, folder, monkeypatch):
        """
        Its supervisor comes last, within a minute.
        """
        before = node_facts.living_owners(folder.parent)
        monkeypatch.setattr(node_facts, "_YOUNG_S", 60.0)

        assert (before, node_facts.living_owners(folder.parent)) == ({}, {"x": "them"})


@pytest.mark.process
def test_packet_filter_that_cannot_be_set(tmp_path, monkeypatch):
    """
    The tool is missing, or says why: its first line.
    """
    monkeypatch.setattr(node_facts.os, "geteuid", lambda: 0)
    monkeypatch.setattr(node_facts, "find_tool", lambda _: "")
    obstacles = [node_facts.filter_obstacle("")]
    tool = tmp_path / "nft"
    monkeypatch.setattr(node_facts, "find_tool", lambda _: str(tool))
    for script in ("echo not permitted >&2; echo here >&2; exit 1", "grep -q rules", "sleep 9"):
        tool.write_text(f"#!/bin/sh\n{script}\n")
        tool.chmod(0o755)
        monkeypatch.setattr(node_facts, "_TOOL_LIMIT_S", 9.0 if "sleep" not in script else 0.1)
        obstacles.append(node_facts.filter_obstacle("rules"))

    assert obstacles[:3] == ["nft is missing", "not permitted", ""]
    assert "timed out" in obstacles[3]
