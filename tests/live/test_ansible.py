"""
Bare hosts as a cluster: real sshd, real Ansible, real Hadoop, and hosts on which it cannot be.

The hosts are namespaces of this machine with file systems of their own: what is put on them, and
what is left of it, is seen by comparing all their files.
"""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

from dataclasses import replace
from pathlib import Path

import pytest

from harness.base.errors import ClusterError
from harness.base.records.trial import ClusterSpec, NodeSpec, SshAccess
from harness.clusters import state
from harness.clusters.ansible.cluster import AnsibleCluster
from harness.clusters.ansible.nodes import HostsState
from harness.clusters.ansible.playbook import play
from harness.clusters.hadoop_home.home import HadoopHome
from harness.clusters.ssh import connection as ssh_connection
from harness.clusters.ssh.connection import trust
from harness.core.experiment.model import Experiment, WorkloadAxes
from harness.core.run.rates import record_gpus
from harness.core.store import Store
from tests.live.agent import agent
from tests.live.bare_hosts import SYSTEMD, BareHosts, await_listening
from tests.live.packages import unpacked

pytestmark = [pytest.mark.live, pytest.mark.usefixtures("can_make_hosts")]
long = pytest.mark.long

PROJECT = Path(__file__).parents[2]
LIMIT_S = 600
CLOCK = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>
int clock_gettime(clockid_t which, struct timespec *now) {
  static int (*real)(clockid_t, struct timespec *);
  if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
  int answer = real(which, now);
  if (which == CLOCK_REALTIME) now->tv_sec += 3600;
  return answer;
}
"""


@pytest.fixture(autouse=True)
def settings(tmp_path_factory, monkeypatch):
    """
    A state folder of the test's own; hosts that do not answer are given up soon.
    """
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    monkeypatch.setattr(ssh_connection, "CONNECT_S", 3.0)


@pytest.fixture(scope="module")
def place():
    """
    A place for hosts, with three fit ones in it.
    """
    with BareHosts() as made:
        for _ in range(3):
            made.add(wait=False)
        for host in made.hosts:
            await_listening(host)
        yield made


def cluster(place, hosts, name="bare", **access):
    """
    A cluster of these hosts, all of them trusted.
    """
    for host in hosts:
        trust(host.address, host.fingerprint, access.get("port", 22))
    return AnsibleCluster(name, cluster_spec(place, hosts, **access), HadoopHome.find())


def cluster_spec(place, hosts, **access):
    """
    The specification of a cluster of these hosts, the master first.
    """
    return ClusterSpec(
        provider="ansible",
        workers=len(hosts) - 1,
        hosts=tuple(host.address for host in hosts),
        ssh=SshAccess(**{"key": str(place.key), **access}),
    )


def program(line):
    """
    What gives a host another ``python3``, which does *line*.
    """
    path = "usr/local/bin/python3"
    return rf"printf '#!/bin/sh\n{line}\n' > {path}; chmod +x {path}"


def program_that_fails(name, message):
    """
    What gives a host another tool of root's, which fails with that message.
    """
    path = f"usr/local/sbin/{name}"
    return rf"printf '#!/bin/sh\necho {message} >&2; exit 1\n' > {path}; chmod +x {path}"


def sudo(how=""):
    """
    What lets a host's user become root, by a sudo that the host is given.
    """
    file = "etc/sudoers.d/worker"
    return f"{unpacked('sudo')}; echo 'worker ALL=(ALL) {how} ALL' > {file}; chmod 440 {file}"


def refused(made):
    """
    The error of a cluster that does not come up; nothing of it is left here.
    """
    with pytest.raises(ClusterError) as error:
        made.up(LIMIT_S)
    assert state.known_names() == []
    return f"{error.value}"


def files(hosts):
    """
    All that lies on hosts.
    """
    return [host.written() for host in hosts]


def appeared(hosts, before):
    """
    What lies on hosts and did not *before*; files of an earlier test may have gone meanwhile.
    """
    return [
        line
        for now, then in zip(files(hosts), before, strict=True)
        for line in {*now.splitlines()} - {*then.splitlines()}
    ]


def masters():
    """
    Connections of this test's Ansible that are open: there may be others on the same machine.
    """
    variable, connections = f"XDG_STATE_HOME={os.environ['XDG_STATE_HOME']}".encode(), []
    for process in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            master = process.name.isdigit() and b"/tmp/mrh-" in (process / "cmdline").read_bytes()
            if master and variable in (process / "environ").read_bytes().split(b"\0"):
                connections.append(process.name)
    return connections


class TestLife:
    @long
    def test_whole_life(self, place, tmp_path):
        """
        From bare hosts to a job and back: a check changes nothing, a second run neither, nobody
        else reaches a port, a dead daemon is noticed, another process takes the cluster down, and
        every file is as before.
        """
        made, before = cluster(place, place.hosts[:3]), files(place.hosts[:3])
        seen = {}
        try:
            made.up(LIMIT_S)
            inventory = json.loads(
                (made.folder / "ansible" / "inventory" / "hosts.json").read_text()
            )
            again = play("site.yml", inventory, tmp_path / "again")
            check = play("site.yml", inventory, tmp_path / "check", check=True)
            seen["changed"] = again.changed, check.changed
            seen["pi"] = pi(made, tmp_path)
            seen["errors"] = [host.error for host in made.survey()]
            count, seen["reached"] = reached(place.hosts[:3])
            seen["dead"] = list(made.dead_daemons())
            place.hosts[2].execute("pkill", "-9", "-f", "proc_nodemanager")
            seen["died"] = list(awaited(made.dead_daemons))
        finally:
            program = "import sys; from harness.cli import main; sys.exit(main())"
            down = [sys.executable, "-c", program, "cluster", "down", "--name", "bare"]
            seen["down"] = [subprocess.run(down, check=False).returncode for _ in range(2)]
            made.down()

        assert seen == {
            "changed": ({}, {}),
            "pi": (0, True),
            "errors": ["", "", ""],
            "reached": [],
            "dead": [],
            "died": ["nodemanager on worker2"],
            "down": [0, 0],
        }
        assert (files(place.hosts[:3]), count >= 15) == (before, True)
        assert (state.known_names(), masters()) == ([], [])

    @long
    def test_check_on_bare_hosts_puts_nothing_there(self, place, tmp_path):
        """
        ``--check`` says what would be done.
        """
        made, before = cluster(place, place.hosts[:2], "checked"), files(place.hosts[:2])
        inventory = prepared(made)
        checked = play("site.yml", inventory, tmp_path / "check", check=True)

        shutil.rmtree(made.folder)

        assert (files(place.hosts[:2]), set(checked.changed)) == (before, {"master", "worker1"})


@long
def test_ordinary_user_another_port_and_an_agent(place, tmp_path, monkeypatch):
    """
    All three at once, on hosts that let no root in and whose root has named them all: a job is
    done, by daemons of that user alone, and every file is as before.
    """
    first, known = len(place.hosts) + 1, "rm -f usr/bin/sudo"
    for number, name in enumerate(("master", "worker1", "worker2"), first):
        known += f"; echo '{place.net}.{number} {name} host{number}' >> etc/hosts"
    settings = "Port 2222\nPermitRootLogin no"
    hosts = [place.add(sshd=settings, prepare=known, wait=False) for _ in range(3)]
    for host in hosts:
        await_listening(host, 2222)
    made = cluster(place, hosts, "common", user="worker", port=2222, key=None)
    made.spec = made.spec.model_copy(update={"exposed": True})
    before = files(hosts)
    try:
        with agent(place.key, monkeypatch):
            made.up(LIMIT_S)
            users = [host.execute(*OWNERS).split() for host in hosts]
            done = pi(made, tmp_path)
            made.down()
    finally:
        made.down()

    assert users == [["worker"] * 3, ["worker"] * 2, ["worker"] * 2]
    assert (done, files(hosts), state.known_names()) == ((0, True), before, [])


@long
def test_hosts_that_keep_hadoop_have_class_data_archives(place):
    """
    Made once and used by every daemon; made anew for a Java that has changed, and for it alone.
    """
    hosts = [place.add(size="6g"), place.add(size="6g")]
    made, seen = cluster(place, hosts, "kept", keep=True), []
    for change in ("true", "true", "touch $(dirname $(readlink -f /usr/bin/java))/../lib/modules"):
        hosts[1].execute("sh", "-c", change)
        made.up(LIMIT_S)
        users = [host.execute("sh", "-c", USERS).split() for host in hosts]
        archives = [host.execute("sh", "-c", ARCHIVES) for host in hosts]
        made.down()
        seen.append((users, archives))
    first, second, third = seen

    assert [users for users, _ in seen] == [[["3"], ["2"]]] * 3
    assert (first[1], first[1][0]) == (second[1], third[1][0])
    assert first[1][1] != third[1][1]


@pytest.mark.skipif(not Path(SYSTEMD).exists(), reason="apt-get install -y systemd")
class TestSystemd:
    @long
    def test_daemons_are_a_service(self, place, tmp_path):
        """
        Started, seen to die, not started twice; its unit goes with the cluster.
        """
        hosts = [place.add(systemd=True), place.add(systemd=True)]
        made, before = cluster(place, hosts, "unit"), files(hosts)
        unit, seen = "mapreduce-harness-unit.service", {}
        try:
            made.up(LIMIT_S)
            inventory_file = made.folder / "ansible" / "inventory" / "hosts.json"
            seen["changed"] = play(
                "site.yml", json.loads(inventory_file.read_text()), tmp_path / "a"
            ).changed
            seen["state"] = [h.execute("systemctl", "is-active", unit) for h in hosts]
            hosts[1].execute("pkill", "-9", "-f", "proc_nodemanager")
            seen["died"] = list(awaited(made.dead_daemons))
        finally:
            made.down()

        known = [h.execute("systemctl", "list-units", "--all", "mapreduce*") for h in hosts]
        assert seen == {
            "changed": {}, "state": ["active\n"] * 2, "died": ["nodemanager on worker1"],
        }  # fmt: skip
        assert ([unit in text for text in known], files(hosts)) == ([False, False], before)

    @long
    def test_ordinary_user_with_sudo(self, place):
        """
        Names and unit are root's work, the daemons the user's own; the death of one is noticed, and
        ends no other.
        """
        hosts = [place.add(systemd=True, prepare=sudo("NOPASSWD:")) for _ in "ab"]
        made, before = cluster(place, hosts, "lent", user="worker", become=True), files(hosts)
        counted = ["pgrep", "-u", "worker", "-fc", "--", "-Dproc_"]
        try:
            made.up(LIMIT_S)
            counts = [h.execute(*counted) for h in hosts]
            hosts[1].execute("pkill", "-9", "-f", "proc_nodemanager")
            died = list(awaited(made.dead_daemons))
            counts.append(hosts[1].execute(*counted))
        finally:
            made.down()

        assert (counts, files(hosts)) == (["3\n", "2\n", "1\n"], before)
        assert died == ["nodemanager on worker1"]

    @long
    def test_sudo_that_asks_for_a_password(self, place):
        """
        Nobody is there to type it.
        """
        hosts = [place.add(prepare=sudo()) for _ in "ab"]

        message = refused(cluster(place, hosts, "asked", user="worker", become=True))

        assert re.search(
            r"worker1: does not know master, .*and sudo: a password is required", message
        )


OWNERS = ["sh", "-c", "ps -o user:20= -p $(pgrep -d, -f -- '-Dproc[_]')"]
USERS = "grep -ls /classes.jsa /proc/[0-9]*/maps | wc -l"
ARCHIVES = (
    "cd /var/lib/mapreduce-harness-node/hadoop-*;"
    " stat -c %i classes.jsa tasks.jsa; ls *-????????????"
)


def prepared(made):
    """
    The inventory of a cluster that is not started.
    """
    inventories = []

    class Stopped(Exception):  # noqa: N818 - it ends the preparation
        pass

    def instead(_playbook, inventory, *_rest, **_more):
        inventories.append(inventory)
        raise Stopped

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("harness.clusters.ansible.cluster.play", instead)
        patch.setattr("harness.clusters.ansible.cluster.AnsibleCluster.remove", lambda *_: False)
        with pytest.raises(Stopped):
            made.up()
    return inventories[0]


def pi(made, folder):
    """
    How a small job ends, and whether its containers' logs of both nodes are here.
    """
    log = folder / "pi.log"
    example = "org.apache.hadoop.examples.ExampleDriver"
    status = made.client(example, ["pi", "2", "10"], log=log).wait(LIMIT_S)
    assert status == 0, log.read_text()[-3000:] + made.daemon_logs(30)["datanode on worker1"]
    made.await_idle(120)
    (app,) = listed(made.hdfs.get_json("rm", "/ws/v1/cluster/apps")["apps"]["app"])
    copied = made.container_logs(app["id"], folder / "logs")
    return status, len({p.parent for p in copied if p.name == "syslog"}) >= 3


CONNECT = """
import json, socket, sys
reached = []
for address, port in json.load(sys.stdin):
    try:
        socket.create_connection((address, port), 0.3).close()
        reached.append(f"{address} {port}")
    except OSError:
        pass
print(json.dumps(reached))
"""


def reached(hosts):
    """
    How many ports daemons listen to, and which of them somebody else can connect to: this machine,
    which is no host of the cluster, and another user of each host, by all addresses.
    """
    ports, answers = [], []
    for host in hosts:
        lines = host.execute("ss", "-ltnH").splitlines()
        numbers = sorted({int(line.split()[3].rpartition(":")[2]) for line in lines} - {22})
        ports += [(host.address, number) for number in numbers]
    program = [sys.executable, "-c", CONNECT]
    here = subprocess.run(
        program, input=json.dumps(ports), text=True, check=True, capture_output=True
    )
    answers += json.loads(here.stdout)
    script = 'echo "$0" | setpriv --reuid 1234 --regid 1234 --clear-groups python3 -c "$1"'
    for host in hosts:
        own = [
            (name, port)
            for name in ("127.0.0.1", "::1")
            for at, port in ports
            if at == host.address
        ]
        given = json.dumps([*ports, *own])
        answers += json.loads(host.execute("sh", "-c", script, given, CONNECT))
    return len(ports), answers


def listed(value):
    """
    A list of one comes as its element.
    """
    return value if isinstance(value, list) else [value]


def awaited(look):
    """
    What *look* finds, when it finds something.
    """
    deadline = time.monotonic() + 180
    while not (result := look()):
        assert time.monotonic() < deadline
        time.sleep(0.2)
    return result


@long
def test_gpus_of_hosts_are_described_by_the_hosts(place, tmp_path):
    """
    By what the driver's tool says there; copies are measured there, too, and as there is no device
    behind the tool, the manifest says why there are no rates.
    """
    line = "0, NVIDIA L4, 23034, 550.54.15"
    tool = "usr/local/bin/nvidia-smi"
    prepare = rf"printf '#!/bin/sh\necho {line}\n' > {tool}; chmod +x {tool}"
    made = cluster(place, [place.hosts[0], place.add(prepare=prepare)])
    made.spec = made.spec.model_copy(update={"node": NodeSpec(gpus=1)})
    axes = WorkloadAxes(name="terasort", input_bytes=(1000,))
    run = Store(tmp_path).open_run(Experiment(name="g", question="q", workloads=(axes,)), "")

    with made:
        message = record_gpus(run, made.spec, made)
        shown = {host.name: host.gpus for host in made.survey()}

    (result,) = run.read_manifest().gpus_found.items()
    assert (message, result[0], result[1].devices[0]["driver"]) == ([], "worker1", "550.54.15")
    assert "; at: " in result[1].rates_missing  # the measuring class itself says so
    assert shown["master"] == {}
    assert tuple(shown["worker1"]["devices"]) == result[1].devices


class TestFaults:
    def test_unreachable_host_is_named(self, place):
        """
        Nothing is put on the others.  The kernel gives up on its address after 3 s, too.
        """
        good, before = place.hosts[0], files(place.hosts[:1])
        nobody = replace(good, address=f"{place.net}.201")
        trust(good.address, good.fingerprint)
        made = AnsibleCluster("bare", cluster_spec(place, [good, nobody]), HadoopHome.find())

        text = refused(made)

        answers = re.escape(f"\n  at:  {nobody.address}, port 22")
        assert re.search(f"(no answer within 3 s|No route to host){answers}", text)
        assert files(place.hosts[:1]) == before

    @long
    @pytest.mark.parametrize(
        ("prepare", "message"),
        [
            ("rm -f usr/bin/python3*", "no Python on the host"),
            ("ln -sf /bin/false usr/local/bin/python3", "cannot say what the host is"),
            (program(r"echo \"\033[2J{}\""), "cannot say what the host is"),
        ],
    )  # fmt: skip
    def test_host_without_a_python_that_works(self, place, prepare, message):
        """
        The error names the host and the package; escapes stay with the host.
        """
        text = refused(cluster(place, [place.hosts[0], place.add(prepare=prepare)]))

        assert message in text
        assert "worker1" in text
        assert "\033" not in text

    def test_endless_answer(self, place, monkeypatch):
        """
        A host that answers without an end is left.
        """
        monkeypatch.setattr("harness.clusters.host.MOST_OUTPUT", 2**20)
        endless = place.add(prepare=program("exec yes"))

        text = refused(cluster(place, [place.hosts[0], endless]))

        assert "has written more than" in text

    @long
    def test_host_whose_gpus_do_not_work(self, place):
        """
        It is known before anything is brought there.
        """
        hosts, before = place.hosts[:2], files(place.hosts[:2])
        made = cluster(place, hosts)
        made.spec = made.spec.model_copy(update={"node": NodeSpec(gpus=1)})

        text = refused(made)

        assert "worker1: the GPUs do not work: 1 to be offered, none found: env: " in text
        assert "master:" not in text
        assert files(hosts) == before

    def test_full_disk(self, place):
        """
        The error says how much is free, and how much is needed.
        """
        text = refused(cluster(place, [place.hosts[0], place.add(size="100m")]))

        assert "worker1: the disk is too full: " in text
        assert "MiB are needed" in text

    def test_clocks_an_hour_apart(self, place):
        """
        The error says by how much, and which way.
        """
        if shutil.which("gcc") is None:
            pytest.skip("no gcc to make a host's clock wrong: apt-get install -y gcc")
        source = place.folder / "clock.c"
        source.write_text(CLOCK)
        library = place.folder / "clock.so"
        subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
        prepare = f"cp {library} mnt/clock.so"
        late = place.add(sshd="SetEnv LD_PRELOAD=/mnt/clock.so", prepare=prepare)

        text = refused(cluster(place, [place.hosts[0], late]))

        assert "worker1: its clock is 3600 s ahead of ours" in text

    @long
    @pytest.mark.parametrize(
        ("become", "message"),
        [(False, "worker may not name them"), (True, "sudo is missing")],
    )
    def test_names_need_root(self, place, become, message):
        """
        The error says who could write /etc/hosts, and what is missing.
        """
        hosts = [place.add(prepare="rm -f usr/bin/sudo") for _ in "ab"]
        made = cluster(place, hosts, user="worker", become=become)

        assert message in refused(made)

    def test_cluster_of_another_harness(self, place):
        """
        Its folder is left alone, and the error names its owner; a supervisor reads its pipe.
        """
        folder = "/var/lib/mapreduce-harness-node/clusters/theirs"
        other = place.add(prepare=f"mkdir -p .{folder}; echo 'elsewhere 0 /x' > .{folder}/owner")
        supervisor = f"mkfifo {folder}/control; sleep 600 <> {folder}/control > /dev/null 2>&1 &"
        other.execute("sh", "-c", supervisor)

        text = refused(cluster(place, [place.hosts[0], other]))

        assert "worker1: holds the cluster theirs of another (elsewhere 0 /x)" in text
        assert other.execute("cat", f"{folder}/owner") == "elsewhere 0 /x\n"

    @pytest.mark.parametrize(
        ("prepare", "message"),
        [
            ("rm usr/sbin/nft", "worker1: nft is missing"),
            (program_that_fails("nft", "not permitted"), "no packet filter can be set: not"),
            ("rm usr/bin/setpriv", "worker1: setpriv missing"),
        ],
    )  # fmt: skip
    def test_host_without_a_packet_filter(self, place, prepare, message):
        """
        Known before anything is put anywhere.
        """
        hosts = [place.hosts[0], place.add(prepare=prepare)]
        before = files(hosts[:1])

        assert message in refused(cluster(place, hosts))
        assert files(hosts[:1]) == before

    def test_host_with_a_public_address(self, place):
        """
        It may be on an interface that the cluster does not use.
        """
        host = place.add()
        host.execute("ip", "addr", "add", "8.8.8.8/32", "dev", "eth0")

        text = refused(cluster(place, [place.hosts[0], host]))

        assert "worker1: has public addresses: 8.8.8.8" in text
        assert "cluster.exposed: true" in text

    def test_port_that_is_taken(self, place):
        """
        Another Hadoop on the host is not disturbed.
        """
        listen = "import socket, time; s = socket.create_server(('', 9866)); time.sleep(600)"
        busy = place.add()
        host = busy.execute("sh", "-c", f'python3 -c "{listen}" > /dev/null 2>&1 & echo on')
        assert host == "on\n"

        assert "worker1: ports 9866 are taken" in refused(cluster(place, [place.hosts[0], busy]))

    def test_host_that_is_lost_while_the_cluster_is_up(self, place, monkeypatch):
        """
        A daemon's death is seen at once; of a host that has gone all daemons count as dead.
        """
        monkeypatch.setattr(ssh_connection, "UNACKNOWLEDGED_MS", 2000)
        hosts = [place.hosts[0], place.add()]
        made = cluster(place, hosts, "lost")
        both = ("master", "worker1")
        made._state = HostsState(
            name="lost", spec=made.spec, addresses=[host.address for host in hosts], base="/root",
            home="/root", java=dict.fromkeys(both, "/j"), python=dict.fromkeys(both, "/p"), up=True,
        )  # fmt: skip
        made.folder.mkdir()
        made._state.save()
        for host in hosts:
            host.execute("mkdir", "-p", "/root/clusters/lost")
            host.execute("touch", "/root/clusters/lost/deaths")
        seen = [list(made.dead_daemons())]
        line = '{"key": "nodemanager-worker1", "status": -9}'
        hosts[1].execute("sh", "-c", f"echo '{line}' >> /root/clusters/lost/deaths")
        seen.append(list(awaited(made.dead_daemons)))
        attached = AnsibleCluster.attach("lost")
        seen.append(list(attached.dead_daemons()))
        hosts[1].stop()
        seen.append(awaited(lambda: [d for d in [list(made.dead_daemons())] if len(d) > 1]))
        hosts[0].execute("rm", "-r", "/root/clusters")
        for each in (attached, made):
            each.down()

        lost = ["datanode on worker1", "nodemanager on worker1"]
        assert seen == [[], ["nodemanager on worker1"], ["nodemanager on worker1"], [lost]]

    @long
    def test_interrupt_while_hosts_are_prepared(self, place, tmp_path):
        """
        Ctrl-C takes back what was put there: no file, no process, no open connection.
        """
        hosts = place.hosts[:2]
        for host in hosts:
            trust(host.address, host.fingerprint)
        before = files(hosts)
        experiment = tmp_path / "x.yaml"
        experiment.write_text(
            "schema: 1\nname: x\nquestion: why?\n"
            "workloads: [{name: wordcount, input: 1 MiB}]\n"
            f"cluster: {{provider: ansible, hosts: [{hosts[0].address}, {hosts[1].address}],"
            f" ssh: {{key: {place.key}}}}}\n"
        )
        program = "import sys; from harness.cli import main; sys.exit(main())"
        run = subprocess.Popen(
            [sys.executable, "-c", program, "cluster", "up", "--name", "cut", str(experiment)],
            env={**os.environ, "PYTHONPATH": str(PROJECT)}, stderr=subprocess.PIPE, text=True,
            process_group=0,
        )  # fmt: skip
        jars = "/var/lib/mapreduce-harness-node/hadoop-*/lib"
        awaited(lambda: hosts[1].execute("sh", "-c", f"ls -d {jars} 2>/dev/null || true"))
        opened = len(masters())
        run.send_signal(signal.SIGINT)
        message = run.communicate(timeout=LIMIT_S)[1]

        assert (run.returncode, state.known_names(), masters()) == (130, [], []), message
        assert (opened, files(hosts)) == (2, before)


class TestLease:
    """
    What a harness that is gone for ever leaves on hosts.
    """

    @long
    def test_hosts_clear_themselves_when_their_lease_ends(self, place):
        """
        Each by its own supervisor, every process and file of the cluster; and the harness, should
        it come back, finds nothing to remove, and takes nothing of another's.
        """
        hosts, before = place.hosts[:2], files(place.hosts[:2])
        made = cluster(place, hosts, "leased")
        folder = "/var/lib/mapreduce-harness-node/clusters/leased"
        try:
            made.up(LIMIT_S)
            for host in hosts:
                host.execute("sh", "-c", f"echo renew 1 > {folder}/control")
            started_s = time.monotonic()
            awaited(lambda: not appeared(hosts, before))
            took_s = time.monotonic() - started_s
            left = [host.execute("ps", "-eo", "args").count("mapreduce-harness") for host in hosts]
            script = f"mkdir -p {folder}; echo them > {folder}/owner"
            hosts[1].execute("sh", "-c", script)
        finally:
            made.down()
        kept = hosts[1].execute("cat", f"{folder}/owner")
        hosts[1].execute("rm", "-r", "/var/lib/mapreduce-harness-node")

        assert (left, took_s < 30, kept) == ([0, 0], True, "them\n")

    @long
    def test_what_a_dead_job_left_is_taken_over(self, place, tmp_path, monkeypatch):
        """
        A job of another machine was killed with its supervisors; its daemons run on.  The next one,
        with a state folder of its own, removes them and starts.
        """
        hosts, before = place.hosts[:2], files(place.hosts[:2])
        dead = cluster(place, hosts, "job")
        dead.up(LIMIT_S)
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another"))
        heir = cluster(place, hosts, "job")
        refusal = ""
        try:
            with pytest.raises(ClusterError) as error:
                heir.up(LIMIT_S)
            refusal = str(error.value)
            for host in hosts:
                host.execute("pkill", "-9", "-f", "node.pyz supervise ")
            time.sleep(60)  # it may be about to start no longer
            heir.up(LIMIT_S)
            users = hosts[1].execute(*OWNERS).split()
        finally:
            heir.down()

        assert "master: holds the cluster job of another (" in refusal
        assert (users, files(hosts)) == (["mapreduce-harness"] * 2, before)
