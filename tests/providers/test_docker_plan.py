"""
Tests for `harness.clusters.docker.nodes`: what nodes in containers are given.
"""

import ipaddress
import json

from itertools import product
from xml.etree import ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st

from harness.base.records.trial import ClusterSpec, NodeSpec
from harness.clusters.docker import nodes

SUBNET = "198.18.70.0/24"


def given_to(name, workers=2, **spec):
    """
    The files of one node, texts by their paths.
    """
    layout = nodes.make_layout(workers, SUBNET)
    member = next(m for m in layout.members if m.name == name)
    cluster = ClusterSpec(provider="docker", workers=workers, **spec)
    return {
        k.removeprefix("/cluster/"): v.decode()
        for k, v in nodes.files(cluster, layout, member, "0" * 64).items()
    }


@given(st.lists(st.integers(0, 2**14 - 1), max_size=30), st.integers(20, 28))
def test_free_networks_overlap_none_that_is_taken(hosts, prefix):
    """
    Whatever networks an engine has, those that are offered are free, of the block, and apart.
    """
    first = int(nodes.POOL.network_address)
    used = {str(ipaddress.ip_network((first + h, prefix), strict=False)) for h in hosts}

    free = [ipaddress.ip_network(subnet) for subnet in nodes.free_subnets(used)]

    taken = map(ipaddress.ip_network, used)
    assert [pair for pair in product(free, taken) if pair[0].overlaps(pair[1])] == []
    assert all(subnet.subnet_of(nodes.POOL) for subnet in free)
    assert len(set(free)) == len(free)


def test_a_large_cluster_fits_its_network():
    """
    Two hundred workers and their master have addresses of one network, none of them the engine's.
    """
    addresses = [ipaddress.ip_address(m.address) for m in nodes.make_layout(200, SUBNET).members]

    assert len(set(addresses)) == 201
    assert all(a in ipaddress.ip_network(SUBNET) for a in addresses)
    assert ipaddress.ip_address("198.18.70.1") not in addresses


def test_each_node_starts_its_own_daemons():
    """
    The master's and the workers' daemons; the history server waits for its moment.
    """
    started = {
        name: {d["key"]: d["at_once"] for d in json.loads(given_to(name)["plan.json"])["daemons"]}
        for name in ("master", "worker2")
    }

    assert started == {
        "master": {
            "namenode-master": True, "resourcemanager-master": True, "historyserver-master": False,
        },
        "worker2": {"datanode-worker2": True, "nodemanager-worker2": True},
    }  # fmt: skip


def test_nothing_names_a_folder_of_this_machine():
    """
    Command lines and configuration speak of the image's folders and the node's own.
    """
    files = given_to("worker1", node=NodeSpec(map_slots=3))
    values = []
    for name, text in files.items():
        if name.endswith(".xml"):
            values += [element.text or "" for element in ET.fromstring(text).iter("value")]
    paths = [value for value in values if value.startswith(("/", "file:/"))]
    argv = json.loads(files["plan.json"])["daemons"][0]["argv"]

    allowed = ("/cluster/", "file:///cluster/", "/opt/hadoop/", "/staging", "/history/")
    assert [path for path in paths if not path.startswith(allowed)] == []
    assert argv[0] == "/opt/java/bin/java"
    assert (
        "/opt/hadoop/path.jar:/cluster/conf/worker1:/opt/hadoop/etc:/opt/hadoop/fence.jar" in argv
    )
