"""
Tests for `harness.clusters.local` without Hadoop: a fake first process, and a fake waiter.

The fake holder does what the real one does as far as it is seen from outside: it waits for its
word, prints the connections, and stays.
"""

import json
import os
import subprocess
import sys

from functools import partial
from pathlib import Path

import pytest

from harness.base.errors import ClusterError, MachineError, SpecError
from harness.base.hadoop import daemons
from harness.base.records.trial import ClusterSpec, Limit, NodeSpec
from harness.clusters import base, masters, state
from harness.clusters.hadoop_home import home as homes
from harness.clusters.hadoop_home.home import HadoopHome, Java
from harness.clusters.local import cluster as local
from harness.clusters.local import namespace, supervisor
from harness.clusters.local.cluster import LocalCluster
from harness.clusters.survey import Devices, Gpu

pytestmark = pytest.mark.process

SUPERVISOR = """
import subprocess, sys, time
if sys.stdin.readline() != "go\\n":
    sys.exit()
inner = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", sys.argv[1]])
print('[{"net": 3, "uts": 4}]', flush=True)
time.sleep(600)
"""
HALF = Limit(requested=0.5, setting=0.5, measured=0.49)
HEALTHY = {"ok": True, "seconds": 0.1}


@pytest.fixture
def home(tmp_path, monkeypatch):
    """
    A home of one empty jar.
    """
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    path = tmp_path / "home"
    (path / "name" / "current").mkdir(parents=True)
    (path / "name" / "current" / "VERSION").touch()
    hadoop_home = HadoopHome(
        path, Java(Path("/j"), "17"), {"lib/hadoop-common-3.5.0.jar": "0" * 64}
    )
    monkeypatch.setattr(homes.HadoopHome, "find", classmethod(lambda cls, path=None: hadoop_home))
    return hadoop_home


@pytest.fixture
def cluster(home, monkeypatch, tmp_path):
    """
    A function that makes a cluster whose holder runs *program* and whose waiter says *answer*.
    """
    monkeypatch.setattr(namespace, "require_tools", lambda *_: None)
    monkeypatch.setattr(
        namespace, "loopback_reason", lambda: ""
    )  # it would ask, and remember, a fake
    clusters = []

    def make(answer=HEALTHY, program=SUPERVISOR, name="c", **spec):
        monkeypatch.setattr(
            namespace, "make_argv", lambda argv: [sys.executable, "-c", program, mark()]
        )
        monkeypatch.setattr(
            supervisor.ClusterState,
            "node_argv",
            lambda state, node, argv: [sys.executable, "-c", f"print({json.dumps(answer)!r})"],
        )
        clusters.append(LocalCluster(name, ClusterSpec(workers=1, **spec), home))
        return clusters[-1]

    yield make
    for made_cluster in clusters:
        made_cluster.down()


def mark():
    """
    What the command lines of this test's fakes hold.
    """
    return os.environ["XDG_STATE_HOME"] + "/mark"


def processes():
    """
    Process ids of the fake holder and its child; other tests may run fakes of their own.
    """
    process_ids = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and mark().encode() in (entry / "cmdline").read_bytes():
                process_ids.append(int(entry.name))
        except OSError:
            continue
    return process_ids


def remains():
    """
    What is left of clusters: files and processes.
    """
    return list(state.clusters_folder().iterdir()), processes()


class TestLife:
    def test_up_and_down(self, cluster):
        """
        Inside the context it is up, outside nothing is left.
        """
        with cluster() as local_cluster:
            up = local_cluster.is_up(), LocalCluster.names(), len(processes())

        assert up == (True, ["c"], 2)
        assert remains() == ([], [])

    def test_down_twice_and_from_elsewhere(self, cluster):
        """
        Another object, as in another process, takes it down; a second time nothing happens.
        """
        cluster().up()
        attached_cluster = LocalCluster.attach("c")
        facts_when_up = attached_cluster.is_up(), attached_cluster.spec.workers
        attached_cluster.down()
        attached_cluster.down()

        assert (facts_when_up, LocalCluster.remove("c"), remains()) == ((True, 1), False, ([], []))

    def test_attach_to_nothing(self, home, tmp_path):
        """
        What is not up can be taken down, and nothing else.
        """
        nothing = LocalCluster.attach("nothing")
        nothing.down()

        assert not nothing.is_up()
        with pytest.raises(ClusterError, match="'nothing' is not up"):
            nothing.client("Main", [], log=tmp_path / "log")

    @pytest.mark.parametrize(
        ("devices", "workers", "device_share"), [(5, 2, 2), (1, 3, 0), (0, 1, 0)]
    )
    def test_workers_share_the_devices_of_the_machine(
        self, monkeypatch, devices, workers, device_share
    ):
        """
        Evenly, rounded down: no device is counted twice.
        """
        devices_here = Devices((Gpu("H100"),) * devices, "/lib/libcuda.so.1")
        monkeypatch.setattr(local, "find_devices", lambda run: devices_here)

        assert LocalCluster.gpus_per_node(workers) == device_share

    def test_a_name_is_taken_once(self, cluster):
        """
        The running cluster is not touched by a second start of its name.
        """
        cluster().up()

        with pytest.raises(ClusterError, match="'c' is up already"):
            cluster().up()
        assert LocalCluster.attach("c").is_up()

    def test_a_dead_one_makes_room(self, cluster):
        """
        What a killed cluster left is removed by the next of its name.
        """
        first = cluster()
        first.up()
        (first.folder / "old").touch()
        first._state.end_processes()
        second = cluster()
        second.up()

        assert (second.is_up(), (second.folder / "old").exists()) == (True, False)

    @pytest.mark.parametrize("text", ["", '{"of": "another version"}'])
    def test_a_damaged_state_file_hides_nobody(self, cluster, home, text):
        """
        Processes are known by their command lines too: none outlives its folder.
        """
        local_cluster = cluster()
        local_cluster.up()
        plan = str(local_cluster.folder / "plan.json")
        with subprocess.Popen(
            [sys.executable, "-c", "import time; time.sleep(600)", mark(), plan]
        ) as lost:
            local_cluster._state.end_processes()
            (local_cluster.folder / "state.json").write_text(text)
            local_cluster.down()

            assert lost.wait(timeout=60) == -9
        assert remains() == ([], [])

    def test_starter_killed_before_it_wrote_anything(self, cluster, home):
        """
        The holder that gets no word ends by itself.
        """
        with subprocess.Popen(
            [sys.executable, "-c", SUPERVISOR, mark()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as supervisor_process:
            supervisor_process.stdin.close()

            assert supervisor_process.wait(timeout=60) == 0


class TestFailures:
    @pytest.mark.parametrize(
        ("answer", "message"),
        [
            ({"ok": False, "missing": ["datanode on worker1"]}, "no datanode on worker1 after"),
            ({"ok": False, "died": {"namenode-master": "died"}}, "namenode on master died at st"),
            ({}, "the cluster was gone after"),
        ],
        ids=["missing", "died", "gone"],
    )
    def test_unhealthy_leaves_nothing(self, cluster, answer, message):
        """
        The error says who; everything that was started is gone.
        """
        with pytest.raises(ClusterError, match=message), cluster(answer):
            pytest.fail("the body must not run")

        assert remains() == ([], [])

    @pytest.mark.parametrize(
        ("program", "error", "message"),
        [
            (
                "import sys; sys.exit('unshare: unshare failed: Operation not permitted')",
                MachineError,
                "refuses namespaces",
            ),
            ("import sys; sys.exit('ip: no such device')", ClusterError, "ip: no such device"),
            (
                "import sys; sys.stdin.readline(); sys.exit('ip: no such device')",
                ClusterError,
                "ip: no such device",
            ),
        ],
        ids=["refused", "at once", "later"],
    )
    def test_no_namespaces(self, cluster, program, error, message):
        """
        The system's message is passed on, and nothing is left.
        """
        with pytest.raises(error, match=message):
            cluster(program=program).up()

        assert (remains(), supervisor._started) == (([], []), [])

    def test_interrupted_start_leaves_nothing(self, cluster, monkeypatch):
        """
        Ctrl-C while the cluster comes up takes it down.
        """

        def interrupt(*arguments, **more):
            raise KeyboardInterrupt

        monkeypatch.setattr(masters, "await_healthy", interrupt)
        with pytest.raises(KeyboardInterrupt):
            cluster().up()

        assert remains() == ([], [])

    def test_what_belongs_to_the_provider(self, cluster):
        """
        An override that would take the cluster apart is refused before anything is started.
        """
        with pytest.raises(SpecError, match=r"cluster\.site\.fs\.defaultFS"):
            cluster(site={"fs.defaultFS": "file:///"}).up()

        assert remains() == ([], [])

    def test_unformatted_home(self, cluster, home):
        """
        A home of an interrupted setup is named with its fix.
        """
        (home.path / "name" / "current" / "VERSION").unlink()

        with pytest.raises(MachineError, match="no formatted name space") as raised:
            cluster().up()
        assert (raised.value.fix, remains()) == ("make setup", ([], []))


class TestLimits:
    @pytest.fixture
    def limited(self, cluster, monkeypatch):
        """
        A cluster of one node, which is measured by saying so.
        """
        monkeypatch.setattr(local.limits, "require", lambda *_, **__: None)
        monkeypatch.setattr(local.limits, "make", lambda *_: {})
        monkeypatch.setattr(local.limits, "group_files", lambda *_: [])
        monkeypatch.setattr(base, "adjust", lambda *_, **__: {"worker1": {"cores": HALF}})
        return cluster(node=NodeSpec(cores=0.5))

    def test_daemons_are_started_when_the_node_is_measured(self, limited, monkeypatch):
        """
        None before; other processes read what the node is.
        """
        heard = []
        reader = partial(os.open, flags=os.O_RDONLY | os.O_NONBLOCK)

        def measure(*_, **__):
            heard.append(reader(limited.control))
            assert LocalCluster.attach("c").limits == {}
            return {"worker1": {"cores": HALF}}

        monkeypatch.setattr(base, "adjust", measure)
        limited.up()

        message = os.read(heard[0], 4096).decode()
        os.close(heard[0])
        assert [line for line in message.splitlines() if line != "renew 60"] == [
            f"start {d.key}" for d in daemons.daemons(limited.layout) if d.kind != "historyserver"
        ]
        assert not any(d["at_once"] for d in limited.plan({})["daemons"])
        assert LocalCluster.attach("c").limits == {"worker1": {"cores": HALF}}

    def test_a_holder_that_has_ended_is_not_waited_for(self, limited):
        """
        Nobody reads the pipe: the start fails at once, and nothing is left.
        """
        with pytest.raises(ClusterError, match="the cluster's supervisor has ended"):
            limited.up()

        assert not limited.folder.exists()

    def test_what_cannot_be_measured_leaves_nothing(self, limited, monkeypatch):
        """
        The error is that of the measurement.
        """

        def fail(*_, **__):
            raise ClusterError("worker1 cannot be made so")

        monkeypatch.setattr(base, "adjust", fail)

        with pytest.raises(ClusterError, match="worker1 cannot be made so"):
            limited.up()
        assert not limited.folder.exists()


class TestEvidence:
    def test_dead_daemons_are_those_that_the_holder_saw_end(self, cluster):
        """
        Names for people, in the order of their deaths; all of them when the cluster is gone.
        """
        with cluster() as local_cluster:
            before = local_cluster.dead_daemons()
            local_cluster.deaths.write_text(
                '{"key": "nodemanager-worker1", "status": -9}\n'
                '{"key": "namenode-master", "unanswered_s": 15}\n'
            )
            some = local_cluster.dead_daemons()
            local_cluster._running.inner.kill()
            everything = local_cluster.dead_daemons()

        assert before == {}
        assert some == {
            "nodemanager on worker1": "died", "namenode on master": "has not answered for 15 s",
        }  # fmt: skip
        assert len(everything) == 5

    def test_logs_are_safe_to_print(self, cluster):
        """
        The last lines, without what moves a terminal's cursor.
        """
        with cluster() as local_cluster:
            log = local_cluster.folder / "logs" / "namenode-master.log"
            log.write_bytes(b"first\n" * 50 + b"\x1b[2J\xff last\n")

            assert (
                local_cluster.daemon_logs(2)["namenode on master"] == "first\n\\x1b[2J\ufffd last"
            )

    def test_container_logs(self, cluster, tmp_path):
        """
        Files of real containers are copied; links and odd names are left.
        """
        application = "application_1700000000000_0001"
        with cluster() as local_cluster:
            logs = local_cluster.folder / "nodes" / "worker1" / "userlogs" / application
            for name in ("container_1700000000000_0001_01_000001", "other", "container_x;y"):
                (logs / name).mkdir(parents=True)
                (logs / name / "syslog").write_text(name)
            container = logs / "container_1700000000000_0001_01_000001"
            (container / "secret").symlink_to("/etc/passwd")
            (container / "-rf").touch()
            (logs / "container_2").symlink_to("/etc")
            copied = local_cluster.container_logs(application, tmp_path / "into")

        assert [str(p.relative_to(tmp_path / "into")) for p in copied] == [
            "worker1/container_1700000000000_0001_01_000001/syslog"
        ]

    @pytest.mark.parametrize("name", ["..", "application_1_2/../..", "", "application_1_2\n"])
    def test_ids_are_ids(self, cluster, tmp_path, name):
        """
        No other text becomes part of a path or an address.
        """
        local_cluster = cluster()

        with pytest.raises(ClusterError, match="not the id of an application"):
            local_cluster.container_logs(name, tmp_path)
        with pytest.raises(ClusterError, match="not the id of an application"):
            local_cluster.kill_application(name)

    def test_site_properties_are_what_the_files_say(self, cluster):
        """
        A client's view, overrides included.
        """
        local_cluster = cluster(site={"dfs.replication": "1"})

        assert local_cluster.site_properties()["dfs.replication"] == "1"
        assert local_cluster.site_properties()["mapreduce.framework.name"] == "yarn"

    def test_plan_starts_everything_but_the_history_server(self, cluster):
        """
        It waits for HDFS; all the others start at once.
        """
        planned = cluster().plan({})["daemons"]

        assert [d["key"] for d in planned if not d["at_once"]] == ["historyserver-master"]
        assert len(planned) == 5

    def test_secrets_of_the_caller_stay_out_of_the_plan(self, cluster, monkeypatch):
        """
        The plan is a file.
        """
        monkeypatch.setenv("SOME_TOKEN", "hunter2")

        assert "hunter2" not in json.dumps(cluster().plan({}))

    def test_hosts_are_the_nodes(self, cluster):
        """
        Master first, each with its address.
        """
        hosts = cluster().hosts

        assert [(h.name, h.address) for h in hosts] == [
            ("master", "198.18.0.1"),
            ("worker1", "198.18.0.2"),
        ]


class TestHost:
    @pytest.fixture
    def host(self, tmp_path):
        """
        A node that is this machine.
        """
        return local.LocalHost("n", "198.18.0.1", str(tmp_path), list, {"PATH": os.environ["PATH"]})

    def test_run(self, host):
        """
        Arguments arrive unchanged; status and both outputs come back.
        """
        program = "import sys; print(sys.argv[1]); sys.stderr.write('e'); sys.exit(3)"
        done = host.run([sys.executable, "-c", program, "$HOME; ls 'x"])

        assert (done.status, done.out, done.err) == (3, "$HOME; ls 'x\n", "e")

    def test_run_has_an_end(self, host):
        """
        A command that takes too long is ended, and named.
        """
        with pytest.raises(ClusterError, match=r"has not ended after 0\.2 s"):
            host.run([sys.executable, "-c", "import time; time.sleep(60)"], timeout=0.2)

    def test_start_and_put(self, host, tmp_path):
        """
        Output goes to the log; files go to the node's folder.
        """
        process = host.start([sys.executable, "-c", "print('said')"], tmp_path / "log")
        process.wait()
        (tmp_path / "here").write_text("x")
        host.put(tmp_path / "here", "there")

        assert ((tmp_path / "log").read_text(), (tmp_path / "there").read_text()) == ("said\n", "x")
