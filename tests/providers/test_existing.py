"""
Tests for `harness.clusters.existing` with small web services in the place of a cluster.
"""

import http.server
import json
import shutil
import signal
import subprocess
import threading

from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from harness.base.errors import ClusterError, SpecError
from harness.base.hadoop import site
from harness.base.hadoop.secrets import SECRETS
from harness.base.records.trial import ClusterSpec, NodeSpec
from harness.clusters.existing import cluster as existing
from harness.clusters.existing import discovery
from harness.clusters.existing.cluster import ExistingCluster
from harness.clusters.hadoop_home import home
from harness.clusters.hadoop_home.home import HadoopHome, Java
from tests.fake_webhdfs import FakeWebHdfs

APP = "application_1700000000000_0001"


class FakeMasters(FakeWebHdfs):
    """
    The masters of a cluster of two nodes, at one address.
    """

    def do_GET(self):  # noqa: N802 - the library's name
        url = urlsplit(self.path)
        if url.path == "/ws/v1/cluster/apps":
            states = parse_qs(url.query).get("states", [""])[0].split(",")
            apps = [a for a in self.apps if "" in states or a["state"] in states]
            return self.json({"apps": {"app": apps} if apps else None})
        page = self.pages.get(url.path)
        return super().do_GET() if page is None else self.json(page)

    def json(self, value):
        return self.answer(200, json.dumps(value).encode())


def node(number, memory=4096, gpus=None):
    """
    A node as the ResourceManager lists it.
    """
    listed = {"id": f"w{number}:8041", "availMemoryMB": memory - 512, "usedMemoryMB": 512}
    kinds = [{"name": "memory-mb", "value": memory}, {"name": "yarn.io/gpu", "value": gpus}]
    total = {"resourceInformations": {"resourceInformation": kinds}}
    return listed if gpus is None else listed | {"totalResource": total}


@pytest.fixture
def masters(monkeypatch, tmp_path):
    """
    A cluster that runs, its configuration, and a user of it.
    """
    pages = {
        "/jmx": {"beans": [{"State": "active"}]},
        "/ws/v1/cluster/info": {"clusterInfo": {"haState": "ACTIVE", "hadoopVersion": "3.4.3"}},
        "/ws/v1/cluster/nodes": {"nodes": {"node": [node(1), node(2)]}},
    }
    handler = type("Handler", (FakeMasters,), {"files": {}, "cut": 0, "apps": [], "pages": pages})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}).start()
    handler.address = f"127.0.0.1:{server.server_port}"
    conf = tmp_path / "conf"
    conf.mkdir()
    core = {"fs.defaultFS": "hdfs://127.0.0.1:9000", "dfs.namenode.http-address": handler.address}
    (conf / "core-site.xml").write_text(site.render_xml(core))
    addresses = {
        "yarn.resourcemanager.webapp.address": handler.address,
        "mapreduce.jobhistory.webapp.address": handler.address,
    }
    (conf / "yarn-site.xml").write_text(site.render_xml(addresses))
    monkeypatch.setenv("HADOOP_CONF_DIR", str(conf))
    monkeypatch.setenv("HADOOP_USER_NAME", "me")
    find = discovery._find_active
    monkeypatch.setattr(
        discovery, "_find_active", lambda *arguments: find(*arguments[:-1], limit_s=0.0)
    )
    handler.conf = conf
    yield handler
    server.shutdown()
    server.server_close()


@pytest.fixture
def cluster(masters, monkeypatch, tmp_path):
    """
    A function that describes the cluster; it is healthy, and what is killed is written down.
    """
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    sums = {"lib/hadoop-common-3.5.0.jar": "0" * 64, "lib/hadoop-mapreduce-examples-3.jar": "1"}
    hadoop_home = HadoopHome(tmp_path / "home", Java(Path("/j"), "17"), sums)
    monkeypatch.setattr(home.HadoopHome, "find", classmethod(lambda cls, path=None: hadoop_home))
    monkeypatch.setattr("harness.clusters.masters.await_healthy", lambda *_, **__: None)
    masters.killed = []
    monkeypatch.setattr(
        ExistingCluster, "kill_application", lambda self, name: masters.killed.append(name)
    )
    described = []

    def describe(name="c", **spec):
        wanted = ClusterSpec(provider="existing", **{"workers": 2, **spec})
        described.append(ExistingCluster(name, wanted, hadoop_home))
        return described[-1]

    yield describe
    # else its lease is renewed while later tests run, and its watchdog stays
    for described_cluster in described:
        if described_cluster._lease is not None:
            described_cluster._lease.stop()
            shutil.rmtree(described_cluster.folder, ignore_errors=True)
            described_cluster._lease.end()


def app(cluster, state="RUNNING", containers=1, **more):
    """
    An application of ours as the ResourceManager lists it.
    """
    tags = f"{cluster.root.rpartition('/')[2]},others"
    return {
        "id": APP, "state": state, "runningContainers": containers, "applicationTags": tags, **more,
    }  # fmt: skip


@pytest.mark.process
def test_secrets_of_its_clients_are_in_no_state(masters, cluster):
    """
    The client's own configuration has them, closed to others; the state, and what goes into
    results, has digests.
    """
    properties = {"fs.s3a.secret.key": "CANARY-client-7", "a.pin": "CANARY-pin-8"}
    more = {"hadoop.security.sensitive-config-keys": "pin$", **properties}
    (masters.conf / "mapred-site.xml").write_text(site.render_xml(more))
    with cluster() as up:
        conf = Path(up.layout.conf(up.layout.master))
        state_text = (up.folder / "state.json").read_text(), str(up.site_properties())
        written = (conf / "mapred-site.xml").read_text()
        mode = up.folder.stat().st_mode & 0o777

    assert [text for text in state_text if "CANARY" in text] == []
    assert (written.count("CANARY"), mode) == (2, 0o700)
    assert SECRETS.clean("x CANARY-pin-8 y").startswith("x secret:")


@pytest.mark.process
class TestLife:
    def test_finds_it_and_leaves_nothing(self, cluster, masters):
        """
        Another process, too: it ends our jobs, no others, and removes our folders.
        """
        found_cluster = cluster()
        found_cluster.up()
        masters.files[f"{found_cluster.root}/output/part"] = b"1"
        masters.files["/user/me/own"] = b"2"
        masters.apps += [
            app(found_cluster),
            app(found_cluster, id="application_1_0002", applicationTags="others"),
        ]
        attached_cluster = ExistingCluster.attach("c")
        facts_when_up = (
            attached_cluster.is_up(),
            attached_cluster.root,
            attached_cluster.limitations[0],
        )
        took = ExistingCluster.remove("c"), ExistingCluster.remove("c")

        assert facts_when_up == (True, found_cluster.root, found_cluster.limitations[0])
        assert "Hadoop 3.4.3 runs there, as trials say; the client is 3.5.0" in facts_when_up[2]
        assert (took, masters.killed, found_cluster.folder.exists()) == (
            (True, False),
            [APP],
            False,
        )

    def test_clients_of_a_killed_harness_end_with_it(self, cluster):
        """
        One that waits for a ResourceManager would go on for minutes.
        """
        found_cluster = cluster()
        found_cluster.up()
        variables = {"HADOOP_CONF_DIR": found_cluster.layout.conf(found_cluster.layout.master)}
        with subprocess.Popen(["/bin/sleep", "60"], env=variables) as client:
            ExistingCluster.remove("c")

        assert client.returncode == -signal.SIGKILL

    def test_our_folder_bears_no_name_that_another_could_have(self, cluster):
        """
        Two machines may give a cluster the same name.
        """
        first_cluster = cluster("a")
        second_cluster = cluster("b")
        first_cluster.up()
        second_cluster.up()
        second_cluster.name = "a"

        assert first_cluster.root != second_cluster.root

    def test_a_cluster_that_does_not_answer_is_not_forgotten(self, cluster, masters):
        """
        What lies there is removed the next time.
        """
        found_cluster = cluster()
        found_cluster.up()
        pages = masters.pages
        masters.pages = {}
        cluster_state = found_cluster._state
        broken = json.loads((found_cluster.folder / "state.json").read_text())
        broken["services"]["rm"] = "127.0.0.1:1"
        (found_cluster.folder / "state.json").write_text(json.dumps(broken))
        with pytest.raises(ClusterError, match=r"are still there: .*Connection refused"):
            ExistingCluster.remove("c")
        masters.pages = pages
        cluster_state.save()

        assert ExistingCluster.remove("c")

    def test_a_name_is_taken_once(self, cluster):
        """
        The first one's folder is not touched.
        """
        cluster().up()

        with pytest.raises(ClusterError, match="'c' is up already"):
            cluster().up()
        assert ExistingCluster.attach("c").is_up()

    def test_a_folder_that_cannot_be_made_leaves_nothing(self, cluster, masters, monkeypatch):
        """
        A user without a home in HDFS.
        """

        def refuse(handler):
            handler.refuse(403, "Permission denied: user=me")

        monkeypatch.setattr(masters, "do_PUT", refuse)
        found_cluster = cluster()
        with pytest.raises(ClusterError, match="Permission denied: user=me"):
            found_cluster.up()

        assert not found_cluster.folder.exists()


def check():
    """
    State and text of the finding of `harness doctor`.
    """
    finding = ExistingCluster.doctor_check()
    return finding.state, finding.what


class TestLook:
    def test_the_doctor_reports_the_cluster(self, masters):
        """
        Its version and its size.
        """
        assert check() == ("ok", f"Hadoop 3.4.3, 2 nodes, at {masters.address}")

    def test_a_plan_is_compared_with_the_cluster(self, masters):
        """
        It is described where it can hold the plan, and refused as at a start where it cannot.
        """
        fits = ExistingCluster.look(ClusterSpec(provider="existing", workers=2))

        assert fits == f"Hadoop 3.4.3, 2 nodes, at {masters.address}"
        with pytest.raises(ClusterError, match="2 nodes run there, and"):
            ExistingCluster.look(ClusterSpec(provider="existing", workers=3))
        assert masters.files == {}

    def test_the_doctor_notes_that_there_is_none(self, monkeypatch):
        """
        Without ``HADOOP_CONF_DIR`` nothing is looked for.
        """
        monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)

        assert check() == ("note", "none: HADOOP_CONF_DIR is not set")


class TestGpus:
    def test_are_what_the_least_node_offers(self, masters, monkeypatch):
        """
        By YARN's own count; without a cluster it is an error.
        """
        masters.pages["/ws/v1/cluster/nodes"] = {
            "nodes": {"node": [node(1, gpus=4), node(2, gpus=2)]}
        }
        gpus = ExistingCluster.gpus_per_node(2)
        fits = ExistingCluster.look(ClusterSpec(workers=2, node=NodeSpec(gpus=2)))

        assert (gpus, fits.partition(",")[0]) == (2, "Hadoop 3.4.3")
        with pytest.raises(ClusterError, match="a node offers 2 GPUs"):
            ExistingCluster.look(ClusterSpec(workers=2, node=NodeSpec(gpus=3)))
        monkeypatch.delenv("HADOOP_CONF_DIR")
        with pytest.raises(SpecError, match="only be detected by HADOOP_CONF_DIR"):
            ExistingCluster.gpus_per_node(2)


class TestRefusals:
    @pytest.mark.parametrize(
        ("spec", "reason", "fix"),
        [
            ({"workers": 3}, "2 nodes run there, and cluster.workers is 3", "cluster.workers to 2"),
            (
                {"node": NodeSpec(task_memory_bytes=3 * 2**30)},
                r"2 tasks of 3072 MiB at once beside their master, and there is room for 1",
                "task_memory",
            ),
            ({"node": NodeSpec(gpus=1)}, "a node offers no GPUs .yarn.io/gpu., and", "no more"),
        ],
    )
    def test_what_it_cannot_hold(self, cluster, spec, reason, fix):
        """
        With both numbers, before anything is written there.
        """
        found_cluster = cluster(**spec)
        with pytest.raises(ClusterError, match=reason) as caught:
            found_cluster.up()

        assert fix in caught.value.fix
        assert not found_cluster.folder.exists()

    def test_masters_that_are_not_active(self, cluster, masters):
        """
        Each with its state.
        """
        masters.pages["/ws/v1/cluster/info"] = {"clusterInfo": {"haState": "STANDBY"}}

        with pytest.raises(ClusterError, match=r"no ResourceManager is active: 127.*STANDBY"):
            cluster().up()

    def test_an_unusable_configuration_folder(self, cluster, masters):
        """
        An empty folder is not taken for a cluster, and none for an empty one; entities are refused.
        """
        (masters.conf / "core-site.xml").write_text(
            '<!DOCTYPE x [<!ENTITY a "b">]><configuration/>'
        )
        with pytest.raises(SpecError, match="document type"):
            cluster().up()
        for file in masters.conf.iterdir():
            file.unlink()
        with pytest.raises(SpecError, match=r"no core-site\.xml"):
            cluster().up()
        masters.conf.rmdir()
        with pytest.raises(SpecError, match="no such folder"):
            cluster().up()

    @pytest.mark.process
    def test_addresses_in_the_experiment(self, cluster, masters, monkeypatch):
        """
        Instead of a folder.
        """
        monkeypatch.delenv("HADOOP_CONF_DIR")
        found_cluster = cluster(
            site={
                "fs.defaultFS": "hdfs://127.0.0.1:9000",
                "dfs.namenode.http-address": masters.address,
                "yarn.resourcemanager.webapp.address": masters.address,
                "mapreduce.jobhistory.webapp.address": masters.address,
            }
        )
        found_cluster.up()

        assert found_cluster.services == dict.fromkeys(("nn", "rm", "jhs"), masters.address)
        assert found_cluster.site_properties()["fs.defaultFS"] == "hdfs://127.0.0.1:9000"

    def test_neither_folder_nor_addresses(self, cluster, monkeypatch):
        """
        The error says what to set.
        """
        monkeypatch.delenv("HADOOP_CONF_DIR")

        with pytest.raises(SpecError, match="does not name an HDFS") as caught:
            cluster().up()
        assert "HADOOP_CONF_DIR" in caught.value.fix

    @pytest.mark.parametrize(
        ("text", "reason"),
        [
            ("<configuration>", "not XML: no element found"),
            ("<!DOCTYPE x []><configuration/>", "a document type declaration"),
            ("<html/>", "the root element is 'html'"),
        ],
    )
    def test_a_file_that_is_no_configuration(self, cluster, tmp_path, monkeypatch, text, reason):
        """
        File, line where there is one, and which variable has led there.
        """
        (tmp_path / "core-site.xml").write_text(text)
        monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))

        with pytest.raises(SpecError, match=reason) as caught:
            cluster().up()

        line = ":1" * reason.startswith("not XML")
        assert caught.value.where == f"{tmp_path}/core-site.xml{line} (HADOOP_CONF_DIR)"
        assert caught.value.fix.startswith("set HADOOP_CONF_DIR")

    def test_an_invalid_user(self, cluster, monkeypatch):
        """
        The name becomes part of paths.
        """
        monkeypatch.setenv("HADOOP_USER_NAME", "../root")

        with pytest.raises(SpecError, match="not a valid name of a user"):
            cluster().up()


@pytest.mark.process
class TestWork:
    def test_idle_is_about_our_own(self, cluster, masters):
        """
        Others' jobs are not waited for; a master that still holds its container is.
        """
        found_cluster = cluster()
        found_cluster.up()
        masters.apps += [app(found_cluster, id="application_1_0002", applicationTags="others")]
        found_cluster.await_idle(timeout_s=0.0)
        masters.apps += [app(found_cluster, state="FINISHED")]

        with pytest.raises(ClusterError, match=f"our own {APP} still runs"):
            found_cluster.await_idle(timeout_s=0.0)
        masters.apps[-1]["runningContainers"] = -1
        found_cluster.await_idle(timeout_s=0.0)

    def test_a_lost_node_is_named(self, cluster, masters, monkeypatch):
        """
        It ran when the cluster was discovered; nodes are listed every few seconds only.
        """
        monkeypatch.setattr(existing, "_NODES_POLL_S", 0.0)
        found_cluster = cluster()
        found_cluster.up()
        before = found_cluster.dead_daemons()
        masters.pages["/ws/v1/cluster/nodes"] = {"nodes": {"node": node(2)}}
        lost = found_cluster.dead_daemons()
        monkeypatch.setattr(existing, "_NODES_POLL_S", 600.0)
        masters.pages["/ws/v1/cluster/nodes"] = {"nodes": None}

        assert (before, lost) == ({}, {"nodemanager on w1:8041": "died"})
        assert found_cluster.dead_daemons() == lost

    def test_client_runs_here_as_the_user(self, cluster, tmp_path):
        """
        With the configuration of our own making.
        """
        found_cluster = cluster()
        found_cluster.up()
        (host,) = found_cluster.hosts
        output = host.run(["sh", "-c", "echo $HADOOP_USER_NAME; ls $HADOOP_CONF_DIR"]).out.split()

        assert output[0] == "me"
        assert {"core-site.xml", "mapred-site.xml", "log4j.properties"} <= set(output)

    def test_history_is_read_where_its_owner_may(self, cluster):
        """
        In the staging folder of the job.
        """
        found_cluster = cluster()
        found_cluster.up()

        assert found_cluster.history_folders("job_1_0001") == [
            f"{found_cluster.root}/staging/me/.staging/job_1_0001"
        ]
