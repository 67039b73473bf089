"""
Provider ansible without any host: what Ansible is told, what its events mean, what is refused.
"""

import base64
import io
import json
import subprocess
import sys
import tarfile

import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.errors import ClusterError
from harness.providers.ansible import run as ansible_run
from harness.providers.ansible.archives import node_archive
from harness.providers.ansible.hosts import Facts, JavaThere, at_once, refuse
from harness.providers.ansible.run import Played
from harness.providers.ansible.state import HostsState, claim, cluster_base, inventory_of, remove
from harness.providers.state import Process, cluster_folder
from harness.records.trial import ClusterSpec, SshAccess
from tests.node_agent import node_agent

TEMPLATE = "{{ lookup('pipe', 'id') }}"


def facts(**more):
    """
    What a fit host says.
    """
    fit = {
        "python": "/usr/bin/python3", "user": "root", "root": True, "home": "/root",
        "base": "/root/.mapreduce-harness", "machine": "x86_64", "kernel": "6.1", "cores": 2,
        "memory_bytes": 2**32, "marks": (),
        "java": (JavaThere(home="/usr/lib/jvm/java-17", version="17.0.1", build="b"),),
        "free_bytes": 2**34, "writable": True, "taken": (), "unnamed": (), "hostname": "",
        "sudo": "", "systemd": False, "owner": "", "gpus_lack": "", "time": 0.0,
    }  # fmt: skip
    return Facts(**fit | more)


def state(**more):
    """
    The state of a cluster of two hosts.
    """
    access = SshAccess(user="hadoop", key="/keys/a", port=2222)
    spec = ClusterSpec(provider="ansible", workers=1, hosts=("a", "b"), ssh=access)
    both = ("master", "worker1")
    return HostsState(
        spec.model_dump(mode="json"), ["10.0.0.1", "10.0.0.2"],
        base="/home/h/x", home="/home/h/x/y",
        java=dict.fromkeys(both, "/j"), python=dict.fromkeys(both, "/p"),
        units=dict.fromkeys(both, ""), **more,
    )  # fmt: skip


def texts(value):
    """
    All texts in an inventory that Ansible would take for templates.
    """
    if isinstance(value, dict):
        if set(value) == {"__ansible_unsafe"}:
            return []
        return [text for v in value.values() for text in texts(v)]
    return [value] if isinstance(value, str) else []


class TestInventory:
    def test_what_came_from_elsewhere_is_no_template(self):
        """
        Whatever a user or a host wrote, wherever it got in.
        """
        told = state(named={"master": TEMPLATE})
        told.base = told.home = told.java["master"] = told.python["worker1"] = TEMPLATE

        assert [t for t in texts(inventory_of("x", told)) if "{" in t] == []

    def test_hosts_and_access(self):
        """
        Names of ours, addresses as they were written, the key as a file.
        """
        inventory = inventory_of("x", state())["all"]

        reached = {name: h["ansible_host"] for name, h in inventory["hosts"].items()}
        assert reached == {
            "master": {"__ansible_unsafe": "a"},
            "worker1": {"__ansible_unsafe": "b"},
        }
        assert inventory["vars"]["ansible_port"] == 2222
        assert inventory["vars"]["ansible_ssh_private_key_file"] == {"__ansible_unsafe": "/keys/a"}

    def test_names_are_written_where_they_lack(self):
        """
        A host whose own name stands for nothing gets that, too.
        """
        hosts = inventory_of("x", state(named={"worker1": "node-b"}))["all"]["hosts"]

        assert hosts["master"]["harness_names"] == ""
        assert hosts["worker1"]["harness_names"] == {
            "__ansible_unsafe": "10.0.0.1 master\n10.0.0.2 worker1 node-b"
        }

    def test_folder_is_named_after_the_cluster(self):
        """
        Several clusters share what is copied.
        """
        assert cluster_base("x", state()) == "/home/h/x/clusters/x"


class TestState:
    def test_comes_back_from_its_file(self, tmp_path):
        """
        What one process wrote another reads.
        """
        state(touched=True).save(tmp_path)

        assert HostsState.load(tmp_path) == state(touched=True)

    def test_name_is_claimed_once(self, tmp_path, monkeypatch):
        """
        Neither start nor end while another process makes the cluster; one that was killed is none.
        """
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
        folder = cluster_folder("x")
        with subprocess.Popen(["sleep", "600"]) as other:
            claimed = claim("x", folder, "ansible")
            claimed.maker = Process.of(other.pid)
            claimed.save(folder)
            for act in (lambda: claim("x", folder, "ansible"), lambda: remove("x", folder)):
                with pytest.raises(ClusterError, match=f"being started by process {other.pid}"):
                    act()
            other.kill()

        assert (claim("x", folder, "ansible").up, remove("x", folder), remove("x", folder)) == (
            False, True, False,
        )  # fmt: skip

    @given(st.binary(max_size=60))
    def test_any_file_is_read_or_none(self, tmp_path_factory, content):
        """
        A damaged file is no state.
        """
        folder = tmp_path_factory.mktemp("state")
        (folder / "state.json").write_bytes(content)

        assert HostsState.load(folder) is None


class TestHosts:
    def test_fit_hosts_pass(self):
        """
        Nothing is said of them.
        """
        refuse({"master": facts(), "worker1": facts(clock_s=-0.9)}, None, "me", ROOM)

    @pytest.mark.parametrize(
        ("more", "said"),
        [
            ({"clock_s": -7200.0}, "worker1: its clock is 7200 s behind ours"),
            ({"free_bytes": 2**20}, "worker1: the disk is too full: 1 MiB are free"),
            ({"taken": (8041, 9866)}, "worker1: ports 8041, 9866 are taken"),
            ({"owner": "them\x1b[2J"}, "worker1: holds the cluster of another harness (them\ufffd"),
            ({"writable": False}, "worker1: root cannot write to /root/.mapreduce-harness"),
            ({"base": "/home/a b/x"}, "worker1: the folder '/home/a b/x' holds odd characters"),
            ({"gpus_lack": "no tool\x1b"}, "worker1: the GPUs do not work: no tool\ufffd"),
            ({"hostname": "a\nb"}, "stands for no address"),
            ({"unnamed": ("master",), "root": False}, "does not know master, and root may not"),
        ],
    )
    def test_unfit_host_is_named_with_all_that_lacks(self, more, said):
        """
        Each lack beside its host.
        """
        with pytest.raises(ClusterError) as error:
            refuse({"master": facts(), "worker1": facts(**more)}, None, "me", ROOM)

        assert said in error.value.what

    def test_our_own_cluster_is_no_hindrance(self):
        """
        What an interrupted start left is taken over: its ports may be taken by it.
        """
        refuse({"master": facts(owner="me")}, None, "me", ROOM)

    @pytest.mark.parametrize(
        ("version", "fits"), [("17", True), ("21.0.2", True), ("11.0.1", False), ("1.8.0", False)]
    )
    def test_java_that_fits(self, version, fits):
        """
        Hadoop 3.5 needs 17.
        """
        assert JavaThere(home="/usr/lib/jvm/x", version=version, build="b").fits is fits

    def test_several_errors_are_told_together(self):
        """
        Who mends one host should know of the next.
        """

        def work(name):
            raise ClusterError(f"{name} is bad", where=name, fix="mend it")

        with pytest.raises(ClusterError, match=r"a is bad \(a\); b is bad \(b\)"):
            at_once(work, ["a", "b"])


ROOM = dict.fromkeys(("master", "worker1"), 2**30)


def played(*events):
    """
    What is kept of events.
    """
    kept = Played()
    for kind, data in events:
        ansible_run._note(kept, {"event": kind, **data}, None)
    return kept


def event(kind, host="worker1", task="Unpack", **result):
    """
    An event of a task.
    """
    return kind, {"event_data": {"host": host, "task": task, "res": result}}


class TestEvents:
    def test_failure_names_host_task_and_reason(self):
        """
        Escapes of the host do not reach the terminal.
        """
        kept = played(event("runner_on_failed", msg="no \x1b[2Jroom"), ("playbook_on_stats", {}))

        with pytest.raises(ClusterError, match="worker1 failed at 'Unpack': no \ufffd"):
            ansible_run._require_good(kept, "failed", "site.yml", 1)

    def test_ignored_failure_is_none(self):
        """
        A task may try.
        """
        kind, data = event("runner_on_failed", msg="no")
        data["event_data"]["ignore_errors"] = True

        assert played((kind, data)).failed == []

    def test_unreachable_host_is_a_failure(self):
        """
        Whatever the runner's status is.
        """
        kept = played(event("runner_on_unreachable", msg="gone"), ("playbook_on_stats", {}))

        with pytest.raises(ClusterError, match="unreachable: gone"):
            ansible_run._require_good(kept, "successful", "site.yml", 1)

    def test_run_without_an_end_is_no_success(self):
        """
        A playbook that could not be parsed has no failed task.
        """
        kept = played(("verbose", {"stdout": "ERROR! bad yaml"}))

        with pytest.raises(ClusterError, match="was not run: ERROR! bad yaml"):
            ansible_run._require_good(kept, "failed", "site.yml", 1)

    def test_changes_are_counted_by_host(self):
        """
        A second run has none.
        """
        kept = played(event("runner_on_ok", changed=True), event("runner_on_ok", host="master"))

        assert (kept.changed, kept.ok) == ({"worker1": 1}, {"worker1": 1, "master": 1})


class TestArchives:
    def test_equal_content_gives_equal_bytes(self, tmp_path):
        """
        Else every start would unpack again.
        """
        for name in "ab":
            digest = node_archive(tmp_path / name, {"conf/x": b"1"}, ["logs"], None)

        assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
        packed = io.BytesIO(base64.b64decode((tmp_path / "a").read_bytes()))
        with tarfile.open(fileobj=packed) as archive:
            assert archive.getnames()[-1] == f"made-{digest}"


class TestStarter:
    def test_starts_once_and_stops_all(self, tmp_path):
        """
        A daemon that runs is left alone; the end of the cluster is the end of every process of it.
        """
        for name in ("logs", "daemons"):
            (tmp_path / name).mkdir()
        (tmp_path / "plan.json").write_text(json.dumps(plan(tmp_path)))

        said = [starter(tmp_path, "start", "napper"), starter(tmp_path, "start", "napper")]
        ended = starter(tmp_path, "stop"), starter(tmp_path, "stop")

        assert said == ["started napper-master\n", ""]
        assert ended == ("stopped 2\n", "")


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
