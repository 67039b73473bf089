"""
Tests for `harness.base.hadoop.site`.
"""

from xml.etree import ElementTree as ET

import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.base.errors import SpecError
from harness.base.hadoop import site
from harness.base.hadoop.daemons import Layout, make_members
from harness.base.records.trial import ClusterSpec, NodeSpec
from harness.base.units import MIB

nodes = st.builds(
    NodeSpec,
    map_slots=st.integers(1, 64),
    reduce_slots=st.integers(1, 64),
    task_memory_bytes=st.integers(1, 2**40),
)
# What XML 1.0 can hold, less the carriage return that every XML reader turns into a line end.
texts = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff")
)


def files(member="worker1", *, archive=None, recording=None, **spec):
    """
    Site files of one node of a cluster of two workers.
    """
    layout = Layout(make_members(2), "/c", "/h", archive, recording)
    node = next(m for m in layout.members if m.name == member)
    return site.site_files(ClusterSpec(workers=2, **spec), layout, node)


class TestSiteFiles:
    @pytest.mark.parametrize(
        ("gpus", "types", "count"),
        [(0, "map-slot,reduce-slot", None), (2, "map-slot,reduce-slot,yarn.io/gpu", "2")],
    )
    def test_gpus_are_a_countable_resource(self, gpus, types, count):
        """
        Declared with their number where a node has any, else not at all.
        """
        made = files(node=NodeSpec(gpus=gpus))

        assert made["resource-types.xml"] == {"yarn.resource-types": types}
        assert made["yarn-site.xml"].get("yarn.nodemanager.resource-type.yarn.io/gpu") == count

    @pytest.mark.parametrize(
        ("name", "file"),
        [
            ("mapreduce.task.io.sort.mb", "mapred-site.xml"),
            ("yarn.app.mapreduce.am.resource.mb", "mapred-site.xml"),
            ("yarn.nm.liveness-monitor.expiry-interval-ms", "yarn-site.xml"),
            ("yarn.scheduler.capacity.node-locality-delay", "capacity-scheduler.xml"),
            ("dfs.blocksize", "hdfs-site.xml"),
            ("io.file.buffer.size", "core-site.xml"),
        ],
    )
    def test_an_override_goes_where_hadoop_reads_it(self, name, file):
        """
        A property of the experiment replaces ours, in the file of its prefix only.
        """
        made = files(site={name: "77"})

        assert [f for f, properties in made.items() if properties.get(name) == "77"] == [file]

    def test_sizes_are_written_as_bytes(self):
        """
        Hadoop reads no binary units.
        """
        made = files(site={"dfs.blocksize": "1.5 MiB"})

        assert made["hdfs-site.xml"]["dfs.blocksize"] == "1572864"

    def test_digits_of_other_scripts_are_no_size(self):
        """
        Hadoop gets them as they are written, and says what it thinks of them.
        """
        assert site.plain_value("\u0661\u0662 MiB") == "\u0661\u0662 MiB"

    def test_a_node_binds_to_its_own_name(self):
        """
        DataNode and NodeManager of one node carry one name, or no map would be local.
        """
        made = files("worker2")

        assert (
            made["hdfs-site.xml"]["dfs.datanode.hostname"],
            made["yarn-site.xml"]["yarn.nodemanager.hostname"],
        ) == ("worker2", "worker2")

    def test_slots_are_counted_and_limited(self):
        """
        Slots are resources of a node, and limits of a job in the whole cluster.
        """
        made = files(node=NodeSpec(map_slots=3, reduce_slots=2))
        yarn = made["yarn-site.xml"]
        mapred = made["mapred-site.xml"]

        assert (
            yarn["yarn.nodemanager.resource-type.map-slot"],
            yarn["yarn.nodemanager.resource-type.reduce-slot"],
            mapred["mapreduce.job.running.map.limit"],
            mapred["mapreduce.job.running.reduce.limit"],
        ) == ("3", "2", "6", "4")

    def test_everything_lies_below_the_cluster(self):
        """
        No path of a setting is outside the cluster's folder, the home, or HDFS.
        """
        paths = [
            value.removeprefix("file://")
            for properties in files().values()
            for name, value in properties.items()
            if name.endswith((".dir", "-dir", "-dirs")) and "history" not in name
        ]

        assert [p for p in paths if not p.startswith("/c/nodes/worker1/")] == ["/staging"]

    @given(nodes)
    def test_a_node_has_room_for_all_its_slots_and_a_master(self, node):
        """
        Memory never leaves a slot empty, whatever YARN rounds up to.
        """
        slots = (node.map_slots + node.reduce_slots) * site.container_mb(node.task_memory_bytes)

        assert site.node_memory_mb(node) - slots >= site.AM_MEMORY_MB
        assert site.container_mb(node.task_memory_bytes) * MIB >= node.task_memory_bytes


class TestContainerOptions:
    def test_archive_needs_its_own_class_path(self):
        """
        With an archive the class path begins with the jar that it was made from.
        """
        options = files(archive="/h/a.jsa")["mapred-site.xml"]["mapreduce.map.java.opts"].split()

        assert "-XX:SharedArchiveFile=/h/a.jsa" in options
        assert options[options.index("-cp") + 1].startswith("/h/path.jar:$HADOOP_CONF_DIR:")

    def test_without_archive_the_class_path_is_the_containers(self):
        """
        Nothing is said of class paths and archives where there is none.
        """
        options = files()["mapred-site.xml"]["mapreduce.reduce.java.opts"]

        assert ("-cp" in options, "Archive" in options) == (False, False)

    def test_recording_lists_classes(self):
        """
        A cluster that records classes writes lists and uses no archive.
        """
        options = files(archive="/h/a.jsa", recording="/r")["mapred-site.xml"]
        made = options["yarn.app.mapreduce.am.command-opts"]

        assert ("-XX:DumpLoadedClassList=<LOG_DIR>/classes.lst" in made, "a.jsa" in made) == (
            True,
            False,
        )

    def test_every_container_logs_its_collections(self):
        """
        Maps, reduces and the application master write a GC log beside their other logs.
        """
        mapred = files()["mapred-site.xml"]
        names = ("mapreduce.map.java.opts", "mapreduce.reduce.java.opts")
        options = [mapred[n] for n in (*names, "yarn.app.mapreduce.am.command-opts")]

        assert ["-Xlog:gc:<LOG_DIR>/gc.log" in o for o in options] == [True] * 3


@pytest.mark.parametrize(
    "name",
    [
        "fs.defaultFS", "hadoop.tmp.dir", "dfs.namenode.rpc-address", "dfs.datanode.data.dir",
        "yarn.resourcemanager.hostname", "yarn.nodemanager.local-dirs",
        "yarn.nodemanager.resource-type.map-slot", "mapreduce.jobhistory.address",
        "mapreduce.map.resource.map-slot",
    ],
)  # fmt: skip
def test_what_belongs_to_the_provider_is_refused(name):
    """
    Addresses, folders and slots are not for experiments.
    """
    refused = site.refused_overrides(ClusterSpec(site={name: "x"}))

    assert len(refused) == 1
    assert name in refused[0]


def test_other_properties_are_welcome():
    """
    What the provider sets for speed alone may be set otherwise.
    """
    names = ["dfs.replication", "yarn.resourcemanager.nodemanagers.heartbeat-interval-ms"]

    assert site.refused_overrides(ClusterSpec(site=dict.fromkeys(names, "1"))) == []


class TestRenderXml:
    @given(st.dictionaries(texts, texts))
    def test_any_text_comes_back(self, properties):
        """
        An XML reader finds the names and values that were written.
        """
        root = ET.fromstring(site.render_xml(properties).encode())

        assert {p[0].text or "": p[1].text or "" for p in root} == properties

    def test_control_characters_are_refused(self):
        """
        XML cannot hold them; the error shows which.
        """
        with pytest.raises(SpecError, match=r"'\\x1b'"):
            site.render_xml({"a": "\x1b[2J"})


class TestBlockBytes:
    @pytest.mark.parametrize(
        ("value", "size"),
        [("32 MiB", 2**25), ("33554432", 2**25), ("64m", 2**26), ("1g", 2**30), ("128k", 2**17)],
    )
    def test_reads_what_hadoop_reads(self, value, size):
        """
        Bytes, Hadoop's one-letter units, and ours.
        """
        assert site.block_bytes(ClusterSpec(site={"dfs.blocksize": value})) == size

    @pytest.mark.parametrize("value", ["", "many", "1000000", "512", "-1", "1.5m"])
    def test_refuses_what_is_no_block(self, value):
        """
        Too small, no multiple of a checksum's piece, or no number.
        """
        with pytest.raises(SpecError, match=r"dfs\.blocksize"):
            site.block_bytes(ClusterSpec(site={"dfs.blocksize": value}))

    def test_default_is_what_the_site_file_says(self):
        """
        Models and cluster agree on the size of a block.
        """
        properties = site.client_properties(ClusterSpec())

        assert site.block_bytes(ClusterSpec()) == int(properties["dfs.blocksize"])
