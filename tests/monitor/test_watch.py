"""
Tests for `harness.clusters.monitor.watch`: which machines are sampled, with the program at the
other end, `harness.clusters.node.sample`, and with hosts that answer something else.
"""

import json
import os
import sys
import time

from types import SimpleNamespace

import pytest

from harness.base.records.manifest import MonitoredMachine
from harness.clusters.hadoop_home.home import find_java
from harness.clusters.host import LocalHost
from harness.clusters.monitor import watch as module
from harness.clusters.monitor.machine import find_disturbance
from harness.clusters.monitor.watch import connect_machines, monitor_cluster
from harness.clusters.node.sample import identity
from harness.observe.parsing.lines import read_machine, read_speed
from tests.node_agent import node_agent
from tests.run.fakes import FakeProbe

pytestmark = pytest.mark.process

LIMIT_S = 60  # for what takes a second on an idle machine
HELLO = '{"machine": "there", "view": "all", "cores": 3}'
SAMPLE = json.dumps({
    "at_s": 1.0, "busy": 0.5, "steal": 0, "iowait": 0, "runnable": 1, "available_bytes": 9,
    "memory_pressure": None,
})  # fmt: skip


@pytest.fixture
def connected(tmp_path):
    """
    A function that greets hosts, by their names, each with what stands in the place of our program
    (`None`: itself); the machines machines, all ended with the test, and what was limitations.
    """
    started = []

    def connect(**programs):
        def host(name, program):
            argv = [sys.executable, "-c", program or ""]
            exec_prefix = list if program is None else lambda _: argv
            environment = {**os.environ, "JAVA_HOME": str(find_java().home)}
            return LocalHost(name, "127.0.0.1", str(tmp_path), exec_prefix, environment)

        cluster = SimpleNamespace(
            host_path=lambda host, path: str(path),
            agent=lambda host, *arguments: node_agent(*arguments),
        )
        limitations = []
        hosts = [host(name, program) for name, program in programs.items()]
        machines = connect_machines(cluster, hosts, tmp_path, limitations.append)
        started.extend(machines)
        return machines, limitations

    yield connect
    for machine in started:
        machine.stop()


def host_that(*lines, hello=HELLO, then="sys.stdin.read()"):
    """
    A program that tells what it is, and after the question these lines.
    """
    prints = [f"print({line!r}, flush=True)" for line in lines]
    return "\n".join(["import sys", f"print({hello!r}, flush=True)", "input()", *prints, then])


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


def test_nodes_of_one_machine_are_sampled_once(connected):
    """
    Through the first of them.
    """
    (machine,), limitations = connected(master=None, worker1=None, worker2=None)

    assert (machine.host.name, machine.nodes) == ("master", ["master", "worker1", "worker2"])
    assert (machine.cores, limitations) == (os.cpu_count(), [])


def test_speed_and_load_are_sampled(connected):
    """
    A sample a second of each core, and two a second of the whole; none any more in the end.
    """
    (machine,), _ = connected(worker1=None)
    machine.start(with_speed=True)
    machine.await_first_sample()
    until(lambda: machine.speed_log.exists() and machine.speed_log.stat().st_size > 0)
    until(lambda: machine.load_log.stat().st_size > 0)

    speeds, loads = read(machine.speed_log, read_speed), read(machine.load_log, read_machine)
    assert machine.failure == ""
    assert {s.thread for s in speeds} <= set(range(len(os.sched_getaffinity(0))))
    assert all(1 <= s.units <= 10 and s.cpu_s > 0 for s in speeds)
    assert all(0 <= s.busy <= 1 and s.available_bytes > 0 for s in loads)

    machine.stop()
    assert machine.failure


def test_load_alone_starts_no_probe(connected):
    """
    A machine without tasks is sampled, and has no speed.
    """
    (machine,), _ = connected(master=None)
    machine.start(with_speed=False)
    machine.await_first_sample()
    until(lambda: machine.load_log.stat().st_size > 0)

    assert machine.speed_log.read_bytes() == b""
    assert machine.failure == ""


def test_sampling_that_was_killed_is_started_again(connected):
    """
    The memory killer may take it; the samples go on in the same files.
    """
    (machine,), _ = connected(worker1=None)
    machine.start(with_speed=False)
    machine.await_first_sample()
    machine._process.kill()
    until(lambda: machine.failure)
    before = machine.load_log.stat().st_size

    machine.restart()
    until(lambda: machine.load_log.stat().st_size > before)
    assert machine.failure == ""


def test_machines_apart_are_sampled_apart(connected):
    """
    Another identity is another machine; one that says nothing is named, and none of its samples.
    """
    machines, limitations = connected(
        worker1=host_that(),
        worker2=host_that(hello='{"machine": "elsewhere", "view": "all", "cores": 8}'),
        worker3="print('\x1b[2Jhallo')",
        worker4=host_that(hello='{"machine": "x", "view": "", "cores": 1e300}'),
    )

    cores = [(machine.host.name, machine.cores) for machine in machines]
    assert cores == [("worker1", 3), ("worker2", 8)]
    assert limitations == [
        "speed and load of worker3 are not measured: it does not say what it is: \\x1b[2Jhallo",
        "speed and load of worker4 are not measured: it claims 1e+300 cores",
    ]


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        (["failed no \x1b[31mjava"], "no \\x1b[31mjava"),
        (["speed 1 2 3"], "not a sample of the speed probe: '1 2 3'"),
        (["load {}"], "not a sample of the machine"),
        (["../../etc/passwd"], "../../etc/passwd"),
        (["load " + "9" * 5000], "one of its lines has no end"),
    ],
)
def test_a_line_that_is_not_a_sample_ends_the_sampling(connected, lines, why):
    """
    With what it was; what came before is kept, and a trial can go on.
    """
    (machine,), _ = connected(worker1=host_that(f"load {SAMPLE}", *lines))
    machine.start(with_speed=False)
    until(lambda: machine.failure)

    assert why in machine.failure
    assert "\x1b" not in machine.failure
    assert [s.busy for s in read(machine.load_log, read_machine)] == [0.5]


def test_endless_samples_end_the_sampling(connected, monkeypatch):
    """
    No host fills this machine's disk.
    """
    monkeypatch.setattr(module, "_BURST", 10_000)
    endless = f"while True: print('load ' + {SAMPLE!r})"
    (machine,), _ = connected(worker1=host_that(then=endless))
    machine.start(with_speed=False)
    until(lambda: machine.failure)

    assert machine.failure == "it writes more than a machine has to report"
    assert machine.load_log.stat().st_size < 10 * module._MOST_BPS


def test_a_probe_without_samples_is_given_up(connected, monkeypatch):
    """
    It is waited for a while, and then named.
    """
    (machine,), _ = connected(worker1=host_that())
    monkeypatch.setattr(module, "START_LIMIT_S", 0.2)
    machine.start(with_speed=True)
    machine.await_first_sample()

    assert machine.failure == "no sample after 0.2 s"


def test_a_missing_java_is_reported(connected):
    """
    The host's own words.
    """
    (machine,), _ = connected(worker1=None)
    machine.host.environment["JAVA_HOME"] = "/no/java"
    machine.has_probe = True
    machine.restart()

    assert machine.failure == "/no/java/bin/java: No such file or directory"


BUSY = {
    "at_s": 1.0, "busy": 0.5, "steal": 0.5, "iowait": 0, "runnable": 1, "available_bytes": 2**40,
    "memory_pressure": None, "own": 0.2, "swapped_bytes": 0,
}  # fmt: skip
# What a machine tells once it has been asked; behind a slash stands what it sees.
NODE = """
import json, sys
machine, _, view = sys.argv[1].partition("/")
print(json.dumps({"machine": machine, "view": view, "cores": 2}), flush=True)
kind = input()
print("failed of memory" if kind == "speed" and sys.argv[1] == "broken" else "load " + sys.argv[2])
if kind == "speed": print("speed 1000 0 10 5000000")
sys.stdout.flush()
sys.stdin.read()
"""


@pytest.fixture
def cluster(tmp_path):
    """
    A function that makes a cluster whose hosts lie on these machines, master first.
    """

    def make(*machines):
        def host(number, machine):
            argv = [sys.executable, "-c", NODE, machine, json.dumps(BUSY)]
            name = f"worker{number}" if number else "master"
            return LocalHost(name, "127.0.0.1", str(tmp_path), lambda _: argv, dict(os.environ))

        return SimpleNamespace(
            watched=tuple(host(n, m) for n, m in enumerate(machines)),
            host_path=lambda host, path: str(path),
            agent=lambda host, *arguments: node_agent(*arguments),
        )

    return make


@pytest.fixture
def folders(tmp_path):
    """
    A folder for the run, and one for the trial.
    """
    made = tmp_path / "scratch", tmp_path / "raw"
    for folder in made:
        folder.mkdir()
    return made


def monitored(cluster, folders, trial=lambda monitor: None):
    """
    What one trial leaves: names of files with how many bytes, marks, what was messages and lacked.
    """
    scratch, raw = folders
    messages, limitations = [], []
    with monitor_cluster(cluster, scratch, messages.append, limitations.append) as monitor:
        with monitor.sample(raw):
            trial(monitor)
        mark = find_disturbance(monitor.loads(raw))
    return {p.name: p.stat().st_size for p in raw.iterdir()}, mark, messages, limitations


def more(monitor):
    """
    A trial during which each machine tells something.
    """
    for machine in (one for first in monitor.sampled for one in (first, *first.views)):
        with machine.load_log.open("a") as load, machine.speed_log.open("a") as speed:
            load.write(json.dumps(BUSY) + "\n")
            speed.write("2000 0 10 5000000\n")


def test_a_file_for_each_machine(cluster, folders):
    """
    Named after its first node; a machine without tasks has no speed.
    """
    files, _, messages, limitations = monitored(cluster("a", "b", "c", "b"), folders, more)

    assert sorted(files) == [
        "machine-master.jsonl", "machine-worker1.jsonl", "machine-worker2.jsonl",
        "speed-worker1.txt", "speed-worker2.txt",
    ]  # fmt: skip
    assert (messages, limitations) == ([], [])


def test_machines_are_described(cluster, folders):
    """
    By the names that their samples bear: which nodes are on each, and its cores.
    """
    with monitor_cluster(cluster("a", "b", "a"), folders[0], print, print) as monitor:
        machines = monitor.machines

    assert machines == {
        "master": MonitoredMachine(nodes=("master", "worker2"), cores=2),
        "worker1": MonitoredMachine(nodes=("worker1",), cores=2),
    }


def test_a_trial_has_the_samples_of_its_time(cluster, folders):
    """
    Not what was told before it began.
    """
    files, _, _, _ = monitored(cluster("a", "a"), folders, more)

    assert files["speed-master.txt"] == len("2000 0 10 5000000\n")


def test_a_disturbance_names_the_machine(cluster, folders):
    """
    By the rules that hold for this machine, with the cores of that one.
    """
    _, mark, _, _ = monitored(cluster("a", "b"), folders, more)

    assert mark == (
        "master: others used 30.0% of the processors, above 3%;"
        " worker1: others used 30.0% of the processors, above 3%"
    )


def test_processes_that_the_first_node_does_not_see(cluster, folders):
    """
    Of the containers of one machine each is sampled for its own; where two see the same, one is.
    Of a machine that is this one, the harness's own processes are, too, unless a node sees them.
    """
    here = identity()
    seen = f"{here['machine']}/{here['view']}"
    unseen = f"{here['machine']}/elsewhere"
    apart, _, _, _ = monitored(cluster("a/1", "a/2", "a/2", "b/1"), folders, more)
    assert sorted(name for name in apart if name.endswith("jsonl")) == [
        "machine-master.jsonl", "machine-worker3.jsonl", "processes-worker1.jsonl",
    ]  # fmt: skip

    raw = folders[1]
    for machine, expected in ((seen, False), (unseen, True)):
        monitored(cluster(machine), folders, more)
        assert (raw / "processes-harness.jsonl").exists() == expected


def test_loads_of_views_are_added(cluster, folders):
    """
    What the machine did, less what both of its containers did.
    """
    scratch, raw = folders
    with monitor_cluster(cluster("a/1", "a/2"), scratch, print, print) as monitor:
        with monitor.sample(raw):
            more(monitor)
        (load,) = monitor.loads(raw).values()

    assert load.others == pytest.approx(BUSY["busy"] - 2 * BUSY["own"])


def test_what_cannot_be_measured_is_a_limitation(cluster, folders):
    """
    With its nodes; the others are measured.
    """
    files, _, _, limitations = monitored(cluster("a", "b", "broken", "broken"), folders)

    assert limitations == ["speed and load of worker2, worker3 are not measured: of memory"]
    assert "speed-worker1.txt" in files
    assert "speed-worker2.txt" not in files


def test_ended_sampling_is_started_again_before_a_trial(cluster, folders):
    """
    Before the next trial, with a word about it.
    """
    scratch, raw = folders
    messages = []
    with monitor_cluster(cluster("a", "b"), scratch, messages.append, messages.append) as monitor:
        _, worker = monitor.sampled
        worker._process.kill()
        worker._reader.join()
        with monitor.sample(raw):
            assert worker.failure == ""

    assert messages == ["the sampling of worker1 has ended (it has ended): starting it again"]


def test_nodes_that_cannot_be_reached_have_no_samples(cluster, folders):
    """
    What this machine does says nothing of them.
    """
    assert monitored(cluster(), folders) == ({}, "", [], [])


def test_nodes_on_this_machine_are_sampled_from_here(folders, monkeypatch):
    """
    Outside of the nodes and their limits.
    """
    monkeypatch.setattr(module, "SpeedProbe", FakeProbe)
    files, _, _, _ = monitored(SimpleNamespace(watched=None), folders)

    assert sorted(files) == ["machine.jsonl", "speed.txt"]
