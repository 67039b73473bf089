"""
Tests for `harness.base.hadoop.given`.
"""

import pytest

from hypothesis import given as every
from hypothesis import strategies as st

from harness.base.errors import SpecError
from harness.base.hadoop import given, site
from harness.base.hadoop.daemons import Layout, Member
from harness.base.records.trial import ClusterSpec, NodeSpec

SIMPLE = {"fs.defaultFS": "hdfs://nn:9000/", "yarn.resourcemanager.hostname": "rm"}
BOTH_TWICE = {
    "fs.defaultFS": "hdfs://mycluster",
    "dfs.nameservices": "mycluster",
    "dfs.ha.namenodes.mycluster": "a, b",
    "dfs.namenode.http-address.mycluster.a": "nn1:9870",
    "dfs.namenode.http-address.mycluster.b": "${second}:9871",
    "second": "nn2",
    "yarn.resourcemanager.ha.enabled": "true",
    "yarn.resourcemanager.ha.rm-ids": "rm1,rm2",
    "yarn.resourcemanager.hostname.rm1": "h1",
    "yarn.resourcemanager.webapp.address.rm2": "h2:18088",
    "mapreduce.jobhistory.webapp.address": "history:19889",
}


class TestServices:
    def test_hosts_alone_mean_hadoops_ports(self):
        """
        The history server is where the ResourceManager is, unless told otherwise.
        """
        assert given.services(SIMPLE) == given.Services(("nn:9870",), ("rm:8088",), "rm:19888")

    def test_of_several_all_are_named(self):
        """
        Which one is active has to be asked; references are resolved.
        """
        assert given.services(BOTH_TWICE) == given.Services(
            ("nn1:9870", "nn2:9871"), ("h1:8088", "h2:18088"), "history:19889"
        )

    def test_where_a_server_listens_is_no_address_of_it(self):
        """
        Its port is, though.
        """
        result = given.services(
            {
                **SIMPLE,
                "dfs.namenode.http-address": "0.0.0.0:50070",
                "mapreduce.jobhistory.webapp.address": "0.0.0.0:19888",
                "mapreduce.jobhistory.address": "jhs:10020",
            }
        )

        assert (result.namenodes, result.historyserver) == (("nn:50070",), "jhs:19888")

    @pytest.mark.parametrize(
        ("wrong", "reported"),
        [
            ({"fs.defaultFS": "file:///"}, r"fs\.defaultFS = 'file:///' does not name an HDFS"),
            ({"fs.defaultFS": ""}, "does not name an HDFS"),
            ({"yarn.resourcemanager.hostname": "0.0.0.0"}, r"yarn\.resourcemanager\.hostname = "),
            ({"yarn.resourcemanager.webapp.address": "rm:8088/x?y"}, "is not the address"),
            ({"yarn.resourcemanager.ha.enabled": "true"}, "names no ResourceManager"),
            ({"yarn.resourcemanager.webapp.address": "rm:99999"}, "is not the address"),
            ({"hadoop.security.authentication": "kerberos"}, "'kerberos': only simple"),
            ({"dfs.http.policy": "HTTPS_ONLY"}, "only HTTP is supported"),
        ],
    )
    def test_what_cannot_be_reached_is_named_with_its_property(self, wrong, reported):
        """
        Before anything is asked.
        """
        with pytest.raises(SpecError, match=reported) as caught:
            given.services({**SIMPLE, **wrong})
        assert caught.value.fix

    @every(st.dictionaries(st.sampled_from(sorted(BOTH_TWICE)), st.text(max_size=40)))
    def test_any_properties_give_addresses_or_an_error(self, changed):
        """
        What comes out is a host and a port.
        """
        try:
            result = given.services({**BOTH_TWICE, **changed})
        except SpecError:
            return
        every_one = [*result.namenodes, *result.resourcemanagers, result.historyserver]
        assert all(given._ADDRESS.fullmatch(address) for address in every_one)


class TestExpanded:
    def test_references_that_turn_in_circles_end(self):
        """
        As Hadoop's own do.
        """
        assert "${" in given.expanded({"a": "${b}", "b": "${a}"}, "a")

    def test_an_unknown_reference_stays(self):
        """
        It is somebody else's.
        """
        assert given.expanded({"a": "${env.X}/y"}, "a") == "${env.X}/y"


class TestClientFiles:
    @pytest.fixture
    def written(self):
        """
        The configuration of a client of a cluster that sets little itself.
        """
        others = {
            "core-site.xml": {"fs.defaultFS": "hdfs://nn:9000"},
            "mapred-site.xml": {
                "mapreduce.application.classpath": "/opt/hadoop/*",
                "yarn.app.mapreduce.am.staging-dir": "/user",
                "mapreduce.map.memory.mb": "4096",
            },
            "yarn-site.xml": {"mapreduce.map.memory.mb": "8192"},
        }
        spec = ClusterSpec(
            provider="existing",
            workers=2,
            node=NodeSpec(map_slots=2),
            site={"dfs.blocksize": "64 MiB"},
        )
        layout = Layout((Member("rm", "rm"),), "/base", "/home", "/home/classes.jsa")
        return given.client_files(others, spec, layout, "/user/me/mapreduce-harness-x")

    def test_the_cluster_keeps_what_is_its_own(self, written):
        """
        Addresses and class paths; nothing of ours lies on its nodes.
        """
        reported = str(written)

        assert written["core-site.xml"]["fs.defaultFS"] == "hdfs://nn:9000"
        assert written["mapred-site.xml"]["mapreduce.application.classpath"] == "/opt/hadoop/*"
        assert not any(text in reported for text in ("/home", "map-slot", "-cp "))

    def test_jobs_are_those_of_every_provider(self, written):
        """
        Memory and slots as the experiment asks, in one place, whatever the cluster's default.
        """
        merged = site.merged(written)

        assert merged["mapreduce.map.memory.mb"] == "512"
        assert "mapreduce.map.memory.mb" not in written["yarn-site.xml"]
        assert merged["mapreduce.job.running.map.limit"] == "4"
        assert merged["dfs.blocksize"] == str(64 * 2**20)

    def test_masters_of_an_older_hadoop_may_reach_into_a_newer_java(self, written):
        """
        An older Java ignores what it does not know.
        """
        options = written["mapred-site.xml"]["yarn.app.mapreduce.am.command-opts"].split()

        assert options[0] == "-XX:+IgnoreUnrecognizedVMOptions"
        assert "--add-opens=java.base/java.lang=ALL-UNNAMED" in options
        assert "-Xmx409m" in options

    def test_what_jobs_write_lies_in_our_folder(self, written):
        """
        And the history server finds them where it always did.
        """
        merged = site.merged(written)

        assert merged[given.STAGING] == "/user/me/mapreduce-harness-x/staging"
        assert merged[given.INTERMEDIATE] == "/user/history/done_intermediate"
        assert merged[given.TAGS] == "mapreduce-harness-x"


def test_what_only_daemons_read_is_told():
    """
    An address is how we find them.
    """
    names = ("dfs.blocksize", "yarn.nodemanager.vmem-check-enabled", "dfs.namenode.rpc-address")
    spec = ClusterSpec(provider="existing", site=dict.fromkeys(names, "1"))

    assert given.daemon_properties(spec) == ["yarn.nodemanager.vmem-check-enabled"]
