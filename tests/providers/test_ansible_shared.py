"""
Class-data archives on bare hosts, without any host: who gets them, and how they are made.
"""

import base64
import io
import subprocess
import tarfile

from pathlib import Path

import pytest

from harness.base.records.trial import ClusterSpec, SshAccess
from harness.clusters.ansible.nodes import HostsState, home_digest
from harness.clusters.hadoop_home.home import HadoopHome, Java
from tests.node_agent import node_agent
from tests.providers.test_ansible import facts

BOTH = ("master", "worker1")


@pytest.fixture
def home(tmp_path, monkeypatch):
    """
    A Hadoop home without a tracer.
    """
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "fence.jar").write_bytes(b"fence")
    return HadoopHome(tmp_path / "home", Java(tmp_path, "17.0.15+6"), {})


def nodes(home, *, keep, copied=((), ())):
    """
    State and inventory of a cluster of two hosts, on which these files are already.
    """
    access = SshAccess(keep=keep)
    spec = ClusterSpec(provider="ansible", workers=1, hosts=("a", "b"), ssh=access)
    state = HostsState(name="x", spec=spec, addresses=["10.0.0.1", "10.0.0.2"])
    by_host = {
        name: facts(copied=host_files) for name, host_files in zip(BOTH, copied, strict=True)
    }
    state.decide(home, by_host)
    return state, state.site_inventory(home, by_host, Path("/h.tar"), None)["all"]


def there(home, *names):
    """
    Files below the folder of the Hadoop home.
    """
    return tuple(f"hadoop-{home_digest(home)}/{name}" for name in names)


class TestWhoGetsThem:
    @pytest.mark.parametrize("keep", [True, False])
    def test_hosts_that_keep_hadoop(self, home, tmp_path, keep):
        """
        They take half a minute to make, which one start does not bring back.
        """
        state, inventory = nodes(home, keep=keep)

        keys = {host["harness_archive_key"] for host in inventory["hosts"].values()}
        assert (state.shared, keys) == (keep, {"b" if keep else ""})
        assert (state.layout.archive is not None) is keep

    def test_those_that_are_there_are_used_by_all_or_none(self, home, tmp_path):
        """
        Tasks of a job have the same options on each node.
        """
        whole = there(home, "complete", "classes-b")
        alike = nodes(home, keep=False, copied=(whole, whole))[0].shared
        mixed = nodes(home, keep=False, copied=(whole, whole[:1]))[0].shared

        assert (alike, mixed) == (True, False)

    @pytest.mark.parametrize(
        ("copied", "fresh"),
        [
            (("complete", "classes-b"), []),
            (("complete", "classes-older"), ["worker1"]),
            (("classes-b",), ["worker1"]),
        ],
    )
    def test_only_hosts_that_lack_something_are_prepared(self, home, tmp_path, copied, fresh):
        """
        Hadoop, or an archive for the Java that the host has by now.
        """
        whole = there(home, "complete", "classes-b")
        inventory = nodes(home, keep=True, copied=(whole, there(home, *copied)))[1]

        assert sorted(inventory["children"]["harness_fresh"]["hosts"]) == fresh


JAVA = """#!/bin/sh
for word in "$@"; do case $word in
    -XX:SharedClassListFile=*) list=${word#*=} ;;
    -XX:SharedArchiveFile=*) archive=${word#*=} ;;
esac; done
if grep -q "$REFUSED" "$list"; then exit 1; fi
cp "$list" "$archive"
"""


def test_the_record_of_deaths_is_the_users_own(home, tmp_path):
    """
    It is there before root starts a unit: to what root made, the supervisor could not write.
    """
    host = nodes(home, keep=False)[1]["hosts"]["worker1"]
    packed = io.BytesIO(base64.b64decode(Path(host["harness_node_archive"]).read_bytes()))

    with tarfile.open(fileobj=packed) as archive:
        assert archive.getmember("deaths").size == 0


def archived(folder, refused, key="k2"):
    """
    What the archiver says with a Java that refuses lists with that text, and what lies there then.
    """
    (folder / "lists").mkdir()
    (folder / "lists" / "classes.lst").write_text("a/B\n")
    (folder / "lists" / "lambdas-17.lst").write_text("@lambda-proxy a/B x\n@lambda-proxy c/D x\n")
    (folder / "bin").mkdir()
    (folder / "bin" / "java").write_text(JAVA.replace("$REFUSED", refused))
    (folder / "bin" / "java").chmod(0o755)
    (folder / "release").write_text('JAVA_VERSION="17.0.15"\n')
    (folder / "classes-k1").touch()
    (folder / "classes.jsa").write_text("older")
    argv = node_agent("archive")
    done = subprocess.run(
        [*argv, folder, folder, "classes", "path.jar", key],
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    archive = folder / "classes.jsa"
    left = sorted(p.name for p in folder.iterdir() if p.is_file() and p.name != "release")
    return done.stdout, archive.read_text() if archive.exists() else None, left


@pytest.mark.process
class TestArchiver:
    def test_with_the_lambdas_of_its_classes(self, tmp_path):
        """
        The mark of another Java goes.
        """
        archive_facts = archived(tmp_path, "nothing")

        text = "a/B\n@lambda-proxy a/B x\n"
        assert archive_facts == ("made\n", text, ["classes-k2", "classes.jsa"])

    def test_without_lambdas_where_they_are_refused(self, tmp_path):
        """
        Their form is that of one version of the JVM.
        """
        assert archived(tmp_path, "lambda")[:2] == ("made\n", "a/B\n")

    def test_java_that_makes_none(self, tmp_path):
        """
        An older one is no use to it; it is not tried again at each start.
        """
        assert archived(tmp_path, "a/B") == ("none\n", None, ["classes-k2"])
