"""
Provider ansible without any host: what Ansible is given, what its events mean, what is refused.
"""

import base64
import io
import json
import os
import subprocess
import sys
import tarfile

from itertools import chain

import pytest

from harness.base.errors import ClusterError, SpecError
from harness.base.records.trial import ClusterSpec, SshAccess
from harness.clusters.ansible.cluster import AnsibleCluster
from harness.clusters.ansible.hosts import Facts, InstalledJava, require_fit, require_java
from harness.clusters.ansible.nodes import HostsState
from harness.clusters.ansible.playbook import Outcome
from harness.clusters.hadoop_home.home import HadoopHome
from harness.clusters.host import at_once
from harness.clusters.state import Process, cluster_folder
from tests.node_agent import node_agent

TEMPLATE = "{{ lookup('pipe', 'id') }}"
MACHINE = os.uname().machine


def facts(**more):
    """
    What a fit host says of itself.
    """
    fit = {
        "python": "/usr/bin/python3", "user": "root", "root": True, "home": "/root",
        "base": "/root/.mapreduce-harness", "machine": "x86_64", "copied": (),
        "java": (InstalledJava(home="/usr/lib/jvm/java-17", version="17.0.1", build="b"),),
        "free_bytes": 2**34, "writable": True, "taken": (), "unnamed": (), "hostname": "",
        "sudo": "", "systemd": False, "lacking": (), "filter": "", "public": (), "left": False,
        "owners": {}, "gpus_lack": "", "time": 0.0,
    }  # fmt: skip
    return Facts(**fit | more)


def state(**more):
    """
    The state of a cluster of two hosts.
    """
    access = SshAccess(user="hadoop", key="/keys/a", port=2222)
    node_names = ("master", "worker1")
    return HostsState(
        name="x", spec=ClusterSpec(provider="ansible", workers=1, hosts=("a", "b"), ssh=access),
        addresses=["10.0.0.1", "10.0.0.2"], base="/home/h/x", home="/home/h/x/y",
        java=dict.fromkeys(node_names, "/j"), python=dict.fromkeys(node_names, "/p"),
        units=dict.fromkeys(node_names, ""), **more,
    )  # fmt: skip


def texts(value):
    """
    All texts in an inventory that Ansible would take for templates.
    """
    if isinstance(value, dict):
        if set(value) == {"__ansible_unsafe"}:
            return []
        return [*chain.from_iterable(map(texts, value.values()))]
    return [value] if isinstance(value, str) else []


class TestInventory:
    def test_foreign_text_is_not_a_template(self):
        """
        Whatever a user or a host wrote, wherever it got in.
        """
        given_state = state(named={"master": TEMPLATE})
        given_state.base = given_state.home = TEMPLATE
        given_state.java["master"] = given_state.python["worker1"] = TEMPLATE

        assert [text for text in texts(given_state.inventory()) if "{" in text] == []

    def test_hosts_and_access(self):
        """
        Our names, addresses as they were written, the key as a file.
        """
        inventory = state().inventory()["all"]

        assert {name: host["ansible_host"] for name, host in inventory["hosts"].items()} == {
            "master": {"__ansible_unsafe": "a"},
            "worker1": {"__ansible_unsafe": "b"},
        }
        assert inventory["vars"]["ansible_port"] == 2222
        assert inventory["vars"]["ansible_ssh_private_key_file"] == {"__ansible_unsafe": "/keys/a"}

    def test_names_are_written_where_they_are_missing(self):
        """
        A host whose own name stands for nothing gets that as well.
        """
        hosts = state(named={"worker1": "node-b"}).inventory()["all"]["hosts"]

        assert hosts["master"]["harness_names"] == ""
        assert hosts["worker1"]["harness_names"] == {
            "__ansible_unsafe": "10.0.0.1 master\n10.0.0.2 worker1 node-b"
        }

    def test_folder_is_named_after_the_cluster(self):
        """
        Several clusters share what is copied.
        """
        assert state().layout.base == "/home/h/x/clusters/x"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """
    The folder of cluster `x`, in a state folder of the test's own; it is not made.
    """
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return cluster_folder("x")


class TestState:
    def test_another_process_reads_what_one_wrote(self, folder):
        """
        All of it.
        """
        folder.mkdir()
        written = state(touched=True, maker=Process(1, 2, "boot"))
        written.save()

        assert HostsState.load("x") == written

    @pytest.fixture
    def start(self, folder, monkeypatch):
        """
        A function that starts the cluster, but for all that concerns its hosts.
        """
        monkeypatch.setattr(HadoopHome, "find", lambda: None)
        monkeypatch.setattr(AnsibleCluster, "_prepare", lambda cluster, hosts_state: None)
        spec = ClusterSpec(provider="ansible", hosts=("a", "b"), workers=1)

        def start():
            cluster = AnsibleCluster("x", spec, None)
            cluster._start()
            return cluster._state

        return start

    @pytest.mark.process
    def test_name_is_claimed_once(self, folder, start):
        """
        Neither start nor end while another process makes the cluster, as long as that lives.
        """
        with subprocess.Popen(["sleep", "600"]) as starter:
            claimed = start()
            claimed.maker = Process.of(starter.pid)
            claimed.save()
            for act in (start, lambda: AnsibleCluster.remove("x")):
                with pytest.raises(ClusterError, match=f"being started by process {starter.pid}"):
                    act()
            starter.kill()

        ends = [start().up, AnsibleCluster.remove("x"), AnsibleCluster.remove("x")]
        assert ends == [False, True, False]
        assert not folder.exists()

    def test_cluster_that_is_up_is_not_claimed(self, folder, start):
        """
        The error names the command that ends it.
        """
        folder.mkdir()
        state(up=True).save()

        with pytest.raises(ClusterError, match=r"is up already(.|\n)*cluster down --name x"):
            start()

    def test_damaged_file_is_no_state(self, folder):
        """
        The cluster can be removed all the same.
        """
        folder.mkdir()
        (folder / "state.json").write_bytes(b'{"name": "x", "up": \xff')

        assert HostsState.load("x") is None
        assert (AnsibleCluster.remove("x"), folder.exists()) == (True, False)


def require(ssh=None, *, exposed=False, **hosts):
    """
    Check hosts of these facts, with room for 1 GiB.
    """
    require_fit(hosts, ClusterSpec(ssh=ssh, exposed=exposed), "me", 2**30)


class TestHosts:
    def test_fit_hosts_pass(self):
        """
        Clocks differ a little everywhere.
        """
        require(master=facts(), worker1=facts(clock_s=-0.9))

    @pytest.mark.parametrize(
        ("more", "problem"),
        [
            ({"clock_s": -7200.0}, "worker1: its clock is 7200 s behind ours"),
            ({"free_bytes": 2**20}, "worker1: the disk is too full: 1 MiB are free"),
            ({"taken": (8041, 9866)}, "worker1: ports 8041, 9866 are taken"),
            (
                {"owners": {"y": "them\x1b[2J", "x": "me"}},
                "worker1: holds the cluster y of another (them\\x1b[2J)",
            ),
            ({"lacking": ("setpriv", "x\x1b")}, "worker1: setpriv, x\\x1b missing, or closed to"),
            ({"python": ""}, "worker1: python3 missing, or closed to other users than root"),
            ({"filter": "nft is missing"}, "worker1: nft is missing"),
            ({"filter": "no\x1b"}, "worker1: no packet filter can be set: no\\x1b"),
            ({"root": False, "user": "h"}, "worker1: h may set no packet filter"),
            ({"public": ("8.8.8.8", "\x1b")}, "worker1: has public addresses: 8.8.8.8, \\x1b"),
            ({"writable": False}, "worker1: root cannot write to /root/.mapreduce-harness"),
            ({"base": "/home/a b/x"}, "worker1: the folder '/home/a b/x' has special characters"),
            ({"gpus_lack": "no tool\x1b"}, "worker1: the GPUs do not work: no tool\\x1b"),
            ({"hostname": "a\nb"}, "does not resolve to an address"),
            ({"unnamed": ("master",), "root": False}, "does not know master, and root may not"),
            (
                {"java": (), "home": "/x", "free_bytes": 0},
                "0 MiB are free where 1024 MiB are needed",
            ),
        ],
    )
    def test_unfit_host_is_named_with_the_problem(self, more, problem):
        """
        What a host says of itself is safe to print.
        """
        with pytest.raises(ClusterError) as error:
            require(master=facts(), worker1=facts(**more))

        assert problem in error.value.what

    def test_all_problems_of_all_hosts_are_named(self):
        """
        Each beside its host, and each repair once.
        """
        with pytest.raises(ClusterError) as error:
            require(master=facts(writable=False), worker1=facts(writable=False, clock_s=2.0))

        assert error.value.what.count("root cannot write to") == 2
        assert "worker1: its clock is 2 s ahead of ours" in error.value.what
        assert error.value.fix.count("use an account with a home folder") == 1

    @pytest.mark.parametrize(
        ("sudo", "problem"), [("", None), ("a password is required", "a password is required")]
    )
    def test_names_are_written_with_sudo(self, sudo, problem):
        """
        Where it is allowed, and needs no password.
        """
        host = facts(unnamed=("worker1",), root=False, sudo=sudo)
        if problem is None:
            require(SshAccess(become=True), master=host)
        else:
            with pytest.raises(ClusterError, match=f"does not know worker1, and {problem}"):
                require(SshAccess(become=True), exposed=True, master=host)

    @pytest.mark.parametrize(
        "more", [{"root": False}, {"filter": "nft is missing"}, {"public": ("8.8.8.8",)}]
    )
    def test_risk_that_is_named_is_taken(self, more):
        """
        With ``cluster.exposed``, which every refusal names.
        """
        require(exposed=True, master=facts(**more))
        with pytest.raises(ClusterError) as error:
            require(master=facts(**more))

        assert "cluster.exposed: true" in error.value.fix

    @pytest.mark.parametrize(
        ("more", "problem"),
        [({"machine": "arm64"}, "several kinds"), ({"base": "/home/x"}, "home folders differ")],
    )
    def test_hosts_that_do_not_go_together(self, more, problem):
        """
        What is brought is the same for all.
        """
        with pytest.raises(SpecError, match=problem):
            require(master=facts(), worker1=facts(**more))

    def test_our_own_cluster_is_not_in_the_way(self):
        """
        What an interrupted start left, or one whose supervisor is gone, is taken over: its ports
        may be taken by it.
        """
        require(master=facts(owners={"x": "me"}), worker1=facts(left=True, taken=(9866,)))

    def test_java_is_brought_where_it_is_missing(self):
        """
        Ours runs on processors of its own kind alone.
        """
        foreign = facts(java=(), machine="pdp11")

        assert not require_java({"master": facts()})
        assert require_java({"master": facts(java=(), machine=MACHINE)})
        with pytest.raises(ClusterError, match="worker1: no Java 17 or newer"):
            require_java({"master": facts(), "worker1": foreign})

    @pytest.mark.parametrize(
        ("version", "fits"), [("17", True), ("21.0.2", True), ("11.0.1", False), ("1.8.0", False)]
    )
    def test_java_that_fits(self, version, fits):
        """
        Hadoop 3.5 needs 17.
        """
        assert InstalledJava(home="/usr/lib/jvm/x", version=version, build="b").fits is fits

    def test_errors_of_several_hosts_are_one_error(self):
        """
        Whoever repairs one host should know of the next.
        """

        def work(name):
            raise ClusterError(f"{name} is bad", where=name, fix="repair it")

        with pytest.raises(ClusterError, match=r"a is bad \(a\); b is bad \(b\)"):
            at_once(work, ["a", "b"])


def outcome(*events):
    """
    What is kept of events.
    """
    kept = Outcome()
    for kind, data in events:
        kept.note({"event": kind, **data})
    return kept


def event(kind, host="worker1", task="Unpack", **result):
    """
    An event of a task.
    """
    return kind, {"event_data": {"host": host, "task": task, "res": result}}


class TestEvents:
    def test_failure_names_host_task_and_reason(self):
        """
        Escapes of the host do not reach the terminal; other hosts are named.
        """
        kept = outcome(
            event("runner_on_failed", msg="no \x1b[2Jroom", stderr="full", stdout="full"),
            event("runner_on_failed", host="worker2", msg="no"), ("playbook_on_stats", {}),
        )  # fmt: skip

        with pytest.raises(ClusterError) as error:
            kept.require_success("failed", "site.yml")
        assert error.value.what == (
            "worker1 failed at 'Unpack': no \\x1b[2Jroom\nfull\n(and worker2)"
        )

    def test_long_reason_is_cut_in_the_middle(self):
        """
        The start says what was done, the end why it failed.
        """
        kept = outcome(event("runner_on_failed", msg="a" * 1000 + "b" * 1000))

        assert kept.failed == [("worker1", "Unpack", f"{'a' * 200} ... {'b' * 400}")]

    def test_ignored_failure_is_none(self):
        """
        A task may try.
        """
        kind, data = event("runner_on_failed", msg="no")
        data["event_data"]["ignore_errors"] = True

        assert outcome((kind, data)).failed == []

    def test_unreachable_host_is_a_failure(self):
        """
        Whatever the runner's status is.
        """
        kept = outcome(event("runner_on_unreachable", msg="gone"), ("playbook_on_stats", {}))

        with pytest.raises(ClusterError, match="unreachable: gone"):
            kept.require_success("successful", "site.yml")

    def test_run_without_an_end_is_a_failure(self):
        """
        A playbook that could not be parsed has no failed task.
        """
        kept = outcome(("verbose", {"stdout": "ERROR! bad yaml"}))

        with pytest.raises(ClusterError, match="was not run: ERROR! bad yaml"):
            kept.require_success("failed", "site.yml")

    def test_run_that_takes_too_long_is_a_failure(self):
        """
        The error gives the limit.
        """
        with pytest.raises(ClusterError, match="the hosts are not ready after 1800 s"):
            outcome().require_success("timeout", "site.yml")

    def test_changes_are_counted_by_host(self):
        """
        A second run has none.
        """
        kept = outcome(
            event("runner_on_ok", changed=True), event("runner_on_ok", host="master"),
            ("playbook_on_stats", {}),
        )  # fmt: skip
        kept.require_success("successful", "site.yml")

        assert kept.changed == {"worker1": 1}

    def test_progress_names_tasks(self):
        """
        For people who wait.
        """
        tasks = []
        kind, data = event("playbook_on_task_start")
        Outcome().note({"event": kind, **data}, tasks.append)

        assert tasks == ["Unpack"]


class TestBundles:
    def test_equal_content_gives_equal_bytes(self, tmp_path, monkeypatch):
        """
        Else every start would unpack again.
        """
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
        hosts_state = state()
        for name in "ab":
            digest = hosts_state._write_bundle(None, tmp_path / name, hosts_state.members[1])

        assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
        packed = io.BytesIO(base64.b64decode((tmp_path / "a").read_bytes()))
        with tarfile.open(fileobj=packed) as archive:
            assert archive.getnames()[-1] == f"made-{digest}"


class TestStarter:
    @pytest.mark.process
    def test_starts_once(self, tmp_path):
        """
        A daemon that runs is left alone.
        """
        folder = tmp_path / "clusters" / "x"
        for name in ("logs", "daemons"):
            (folder / name).mkdir(parents=True)
        (folder / "plan.json").write_text(json.dumps(plan(folder)))

        answers = [starter(folder, "start", "napper"), starter(folder, "start", "napper")]

        assert answers == ["started napper-master\n", ""]
        assert starter(folder, "clear") == "cleared\n"


def plan(folder):
    """
    A plan of one daemon, whose command line names the cluster's folder.
    """
    nap = [sys.executable, "-c", "import time; time.sleep(600)", f"{folder}/conf"]
    daemon = {
        "key": "napper-master", "argv": nap, "env": {}, "cwd": "/", "at_once": False,
        "log": f"{folder}/logs/napper",
    }  # fmt: skip
    return {
        "member": "master", "folder": str(folder), "unit": "", "control": f"{folder}/control",
        "cluster": "test-x", "base": str(folder.parents[1]), "owner": "me", "user": "",
        "keep": False, "addresses": [],
        "deaths": f"{folder}/deaths", "daemons_folder": f"{folder}/daemons", "daemons": [daemon],
    }  # fmt: skip


def starter(folder, *words):
    """
    What the starter prints.
    """
    argv = node_agent(words[0], folder / "plan.json", *words[1:])
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_what_is_adopted_leaves_hadoop_where_it_is():
    """
    The hosts have said that it is there, so that it is not brought again.
    """
    hosts_state = state(owner="me")
    removals = [hosts_state.removal(hosts_state.members[0], adopt=adopt) for adopt in (False, True)]

    assert [(removal["owner"], removal["keep"]) for removal in removals] == [
        ("me", False),
        ("", True),
    ]
