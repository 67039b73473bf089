"""
Tests for `harness.monitor.nodes`, with the program at its other end,
`harness.node.watch`, and with hosts that answer something else.
"""

import json
import os
import sys
import time

from types import SimpleNamespace

import pytest

from harness.hadoop_home.java import find_java
from harness.monitor import nodes as module
from harness.monitor.nodes import greet_all
from harness.parsing.samples import read_machine, read_speed
from harness.providers.host import LocalHost
from tests.node_agent import node_agent

LIMIT_S = 60  # for what takes a second on an idle machine
HELLO = '{"machine": "there", "cores": 3}'
SAMPLE = json.dumps({
    "at_s": 1.0, "busy": 0.5, "steal": 0, "iowait": 0, "runnable": 1, "available_bytes": 9,
    "memory_pressure": None,
})  # fmt: skip


@pytest.fixture
def greeted(tmp_path):
    """
    A function that greets hosts, by their names, each with what stands in the place of our program
    (`None`: itself); the machines found, all ended with the test, and what was lacking.
    """
    started = []

    def greet(**programs):
        def host(name, program):
            says = [sys.executable, "-c", program or ""]
            enter = list if program is None else lambda argv: says
            environment = {**os.environ, "JAVA_HOME": str(find_java().home)}
            return LocalHost(name, "127.0.0.1", str(tmp_path), enter, environment)

        cluster = SimpleNamespace(
            host_path=lambda host, path: str(path),
            agent=lambda host, *arguments: node_agent(*arguments),
        )
        lacking = []
        hosts = [host(name, program) for name, program in programs.items()]
        found = greet_all(cluster, hosts, tmp_path, lacking.append)
        started.extend(found)
        return found, lacking

    yield greet
    for machine in started:
        machine.end()


def host_that(*lines, hello=HELLO, then="sys.stdin.read()"):
    """
    A program that tells what it is, and after the question these lines.
    """
    told = [f"print({line!r}, flush=True)" for line in lines]
    return "\n".join(["import sys", f"print({hello!r}, flush=True)", "input()", *told, then])


def until(what):
    """
    Wait until *what* is true.
    """
    deadline = time.monotonic() + LIMIT_S
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def read(path, reader):
    """
    The samples in a file.
    """
    with path.open("rb") as lines:
        return list(reader(lines, path.name))


def test_nodes_of_one_machine_are_watched_once(greeted):
    """
    Through the first of them.
    """
    (machine,), lacking = greeted(master=None, worker1=None, worker2=None)

    assert (machine.door.name, machine.nodes) == ("master", ["master", "worker1", "worker2"])
    assert (machine.cores, lacking) == (os.cpu_count(), [])


def test_speed_and_load_are_told(greeted):
    """
    A sample a second of each core, and two a second of the whole; none any more in the end.
    """
    (machine,), _ = greeted(worker1=None)
    machine.begin(speed=True)
    machine.await_warm()
    until(lambda: machine.speed.exists() and machine.speed.stat().st_size > 0)
    until(lambda: machine.load.stat().st_size > 0)

    speeds, loads = read(machine.speed, read_speed), read(machine.load, read_machine)
    assert machine.failure == ""
    assert {s.thread for s in speeds} <= set(range(len(os.sched_getaffinity(0))))
    assert all(1 <= s.units <= 10 and s.cpu_s > 0 for s in speeds)
    assert all(0 <= s.busy <= 1 and s.available_bytes > 0 for s in loads)

    machine.end()
    assert machine.failure


def test_load_alone_starts_no_probe(greeted):
    """
    A machine without tasks is sampled, and has no speed.
    """
    (machine,), _ = greeted(master=None)
    machine.begin(speed=False)
    machine.await_warm()
    until(lambda: machine.load.stat().st_size > 0)

    assert machine.speed.read_bytes() == b""
    assert machine.failure == ""


def test_a_watching_that_was_ended_begins_again(greeted):
    """
    The memory killer may take it; the samples go on in the same files.
    """
    (machine,), _ = greeted(worker1=None)
    machine.begin(speed=False)
    machine.await_warm()
    machine._process.kill()
    until(lambda: machine.failure)
    before = machine.load.stat().st_size

    machine.again()
    until(lambda: machine.load.stat().st_size > before)
    assert machine.failure == ""


def test_hosts_apart_are_watched_apart(greeted):
    """
    Another identity is another machine; one that says nothing is named, and none of its samples.
    """
    found, lacking = greeted(
        worker1=host_that(),
        worker2=host_that(hello='{"machine": "elsewhere", "cores": 8}'),
        worker3="print('\x1b[2Jhallo')",
        worker4=host_that(hello='{"machine": "x", "cores": 1e300}'),
    )

    assert [(m.door.name, m.cores) for m in found] == [("worker1", 3), ("worker2", 8)]
    assert lacking == [
        "speed and load of worker3 are not measured: it does not tell what it is: \ufffd[2Jhallo",
        "speed and load of worker4 are not measured: it tells of 1e+300 cores",
    ]


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        (["failed no \x1b[31mjava"], "no \ufffd[31mjava"),
        (["speed 1 2 3"], "not a sample of the speed probe: '1 2 3'"),
        (["load {}"], "not a sample of the machine"),
        (["../../etc/passwd"], "../../etc/passwd"),
        (["load " + "9" * 5000], "a line of it has no end"),
    ],
)
def test_what_is_no_sample_ends_the_watching(greeted, lines, why):
    """
    With what it was; what came before is kept, and a trial can go on.
    """
    (machine,), _ = greeted(worker1=host_that(f"load {SAMPLE}", *lines))
    machine.begin(speed=False)
    until(lambda: machine.failure)

    assert why in machine.failure
    assert "\x1b" not in machine.failure
    assert [s.busy for s in read(machine.load, read_machine)] == [0.5]


def test_endless_samples_end_the_watching(greeted, monkeypatch):
    """
    No host fills this machine's disk.
    """
    monkeypatch.setattr(module, "_BURST", 10_000)
    endless = f"while True: print('load ' + {SAMPLE!r})"
    (machine,), _ = greeted(worker1=host_that(then=endless))
    machine.begin(speed=False)
    until(lambda: machine.failure)

    assert machine.failure == "it tells more than a machine has to tell"
    assert machine.load.stat().st_size < 10 * module._MOST_BPS


def test_a_probe_that_tells_nothing_is_no_trap(greeted, monkeypatch):
    """
    It is waited for a while, and then named.
    """
    (machine,), _ = greeted(worker1=host_that())
    monkeypatch.setattr(module, "START_LIMIT_S", 0.2)
    machine.begin(speed=True)
    machine.await_warm()

    assert machine.failure == "no sample after 0.2 s"


def test_no_java_is_told(greeted):
    """
    The host's own words.
    """
    (machine,), _ = greeted(worker1=None)
    machine.door.environment["JAVA_HOME"] = "/no/java"
    machine.probed = True
    machine.again()

    assert machine.failure == "/no/java/bin/java: No such file or directory"
