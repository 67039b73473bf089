"""
What keeps others out of a cluster, in its site files.
"""

import json

import pytest

from harness.base.hadoop import fence, site
from harness.base.hadoop.daemons import (
    Daemon,
    Layout,
    container_options,
    daemon_argv,
    make_flat_members,
    make_members,
    supervisor_plan,
)
from harness.base.records.trial import ClusterSpec

APART = Layout(make_members(2), "/c", "/h")
FLAT = Layout(make_flat_members(2, 20_000), "/c", "/h")
PROVIDER = "-Djava.nio.channels.spi.SelectorProvider=mapreduce.harness.fence.OwnPeers"


def files(layout):
    """
    Site files of its master.
    """
    return site.site_files(ClusterSpec(workers=2), layout, layout.master)


def test_rpc_answers_the_hosts_of_the_cluster():
    """
    By the file that Hadoop reads for it; a node calls itself by its loopback address, too.
    """
    hosts = files(APART)["hadoop-policy.xml"]["security.service.authorization.default.hosts"]

    assert hosts == "127.0.0.1,198.18.0.1,198.18.0.2,198.18.0.3"


def test_tasks_are_known_by_their_tokens_and_all_others_by_name():
    """
    An application master is called after its attempt, a task after its job.
    """
    policy = files(APART)["hadoop-policy.xml"]
    open_protocols = [name for name, users in policy.items() if users == "*"]

    assert policy["security.service.authorization.default.acl"] == "hadoop"
    assert open_protocols == [
        "security.applicationmaster.protocol.acl", "security.containermanagement.protocol.acl",
        "security.job.task.protocol.acl", "security.resourcelocalizer.protocol.acl",
    ]  # fmt: skip


def test_nodes_of_one_address_accept_their_own_users_connections():
    """
    Daemons and application masters; where nodes have a network of their own nothing is added.
    """
    options = {
        layout: [
            PROVIDER in daemon_argv("java", layout, Daemon("datanode", layout.workers[0])),
            PROVIDER in files(layout)["mapred-site.xml"].get(fence.ACCEPT, ""),
        ]
        for layout in (APART, FLAT)
    }

    assert options == {APART: [False, False], FLAT: [True, True]}


def test_every_jvm_finds_the_classes():
    """
    Containers with a class-data archive have a class path of their own.
    """
    archived = Layout(make_members(2), "/c", "/h", archive="/h/classes.jsa")
    properties = site.merged(files(APART))

    assert ":/h/fence.jar:" in container_options(archived, 512)
    assert properties["mapreduce.application.classpath"] == "/h/path.jar,/h/fence.jar"


def test_an_experiment_cannot_open_it():
    """
    The line that says who reaches the cluster would not be true.
    """
    opened = {"hadoop.security.authorization": "false", "dfs.permissions.enabled": "false"}
    refused = site.refused_overrides(ClusterSpec(site=opened))

    assert sorted(refused) == [
        "cluster.site.dfs.permissions.enabled keeps others out of the cluster",
        "cluster.site.hadoop.security.authorization keeps others out of the cluster",
    ]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("security.applicationclient.protocol.hosts", "*"),
        ("security.client.protocol.hosts", "*"),
        ("dfs.namenode.rpc-bind-host", "0.0.0.0"),
        ("dfs.namenode.http-bind-host", "0.0.0.0"),
        ("mapreduce.jobhistory.bind-host", "0.0.0.0"),
        ("hadoop.proxyuser.me.hosts", "*"),
        ("dfs.permissions.superusergroup", "users"),
        ("hadoop.security.impersonation.provider.class", "evil.All"),
    ],
)
def test_no_property_of_a_site_lets_others_in(name, value):
    """
    Lists of hosts, addresses to listen at, who may act as whom: each is refused by its name.
    """
    (refused,) = site.refused_overrides(ClusterSpec(site={name: value}))
    assert refused.startswith(f"cluster.site.{name} ")


def test_the_secret_stands_in_one_file():
    """
    In no property, and in nothing that the supervisor starts.
    """
    texts = site.conf_texts(files(APART), "0123456789abcdef")
    plan = supervisor_plan(APART, APART.members, "java", lambda _: {}, at_once=True)

    assert [name for name, text in texts.items() if "0123456789abcdef" in text] == ["secret"]
    assert texts["secret"] == "X-Harness-Secret: 0123456789abcdef\n"
    assert "0123456789abcdef" not in json.dumps(plan)
