"""
Tests for `harness.clusters.ansibles`: what hosts say of themselves.
"""

import json
import time

import pytest

from harness.clusters.ansible import hosts as ansible_hosts
from harness.clusters.ansible.hosts import JavaThere, ask
from harness.clusters.host import Completed
from harness.clusters.inside import preflight
from harness.clusters.ssh.connection import Access, Connection
from harness.errors import ClusterError
from harness.hadoop.layout import Member

SAID = {
    "python": "3.11.2", "user": "hadoop", "root": False, "home": "/home/hadoop", "base": "/b",
    "machine": "x86_64", "kernel": "6.1", "cores": 2, "memory_bytes": 2**32, "java": [],
    "marks": [], "free_bytes": 2**34, "writable": True, "taken": [], "unnamed": [],
    "hostname": "", "sudo": "", "systemd": False, "owner": "",
}  # fmt: skip


def asked(monkeypatch, text):
    """
    The facts of a host whose program says *text*.
    """
    monkeypatch.setattr(
        ansible_hosts.SshHost, "run", lambda self, argv, *_: Completed(tuple(argv), 0, text, "")
    )
    there = Connection("198.18.0.9", Access("hadoop"))
    return ask(Member("worker1", "198.18.0.9"), there, "c", {})


def test_what_it_says_is_read(monkeypatch):
    """
    A clock as ours is no clock ahead.
    """
    facts = asked(monkeypatch, json.dumps(SAID | {"time": time.time()}))

    assert (facts.user, facts.cores, round(facts.clock_s)) == ("hadoop", 2, 0)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\x1b[2J",
        "[" * 60_000,
        json.dumps(SAID),
        json.dumps(SAID | {"time": 0.0, "user": "x" * 10**6}),
        json.dumps(SAID | {"time": 0.0, "taken": list(range(10**5))}),
        json.dumps(SAID | {"time": 0.0, "java": "../../bin"}),
    ],
    ids=["nothing", "escapes", "nested", "no time", "long name", "many ports", "no list"],
)
def test_what_makes_no_sense_is_refused(monkeypatch, text):
    """
    The host is named, and what it said stays short.
    """
    with pytest.raises(ClusterError) as caught:
        asked(monkeypatch, text)

    assert caught.value.what.startswith("the host's Python cannot say what the host is")
    assert "worker1" in caught.value.where
    assert len(str(caught.value)) < 1000


def test_a_python_that_is_too_old_says_so(monkeypatch):
    """
    Before anything of ours fails there for want of it.
    """
    monkeypatch.setattr(preflight, "OLDEST_PYTHON", (99, 0))

    with pytest.raises(SystemExit, match=r"Python 3\.\d+\.\d+ is too old"):
        preflight.main()


@pytest.mark.parametrize(
    ("version", "fits"),
    [("17.0.15", True), ("1.8.0", False), ("21", True), ("9" * 5000, True), ("x", False)],
)
def test_which_java_fits(version, fits):
    """
    A version that is no number, or one without end, is no bug of ours.
    """
    assert JavaThere(home="/usr/lib/jvm/a", version=version, build="").fits is fits
