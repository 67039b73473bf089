"""
Hosts in an experiment file.
"""

import pytest

from harness.base.errors import SpecError
from harness.base.records.trial import SshAccess
from harness.core.experiment.file import KnownNames, read_experiment
from harness.core.experiment.grid import expand

KNOWN = KnownNames(
    ("wordcount",),
    (),
    ("local", "ansible"),
    extra_fields={"local": (), "ansible": ("exposed", "hosts", "ssh")},
    required_fields={"ansible": ("hosts",)},
)
HOSTS = "{provider: ansible, hosts: [10.0.0.1, node2.example.org, 10.0.0.3]}"


def experiment(cluster):
    """
    An experiment on that cluster.
    """
    text = f"""\
schema: 1
name: x
question: why?
cluster: {cluster}
workloads: [{{name: wordcount, input: 1 MiB}}]
"""
    return read_experiment(text, "x.yaml", known=KNOWN)


def test_hosts_say_how_many_workers_there_are():
    """
    The first is the master.
    """
    axes = experiment(HOSTS).cluster

    assert (axes.workers, axes.hosts) == ((2,), ("10.0.0.1", "node2.example.org", "10.0.0.3"))


def test_cells_know_hosts_and_access():
    """
    What the file says of SSH reaches the cluster that is started.
    """
    cells = expand(
        experiment(HOSTS.replace("}", ", ssh: {user: hadoop, key: ~/k, port: 2222, keep: true}}"))
    )

    access = SshAccess(user="hadoop", key="~/k", port=2222, keep=True)
    assert {cell.cluster.ssh for cell in cells} == {access}


@pytest.mark.parametrize(
    ("cluster", "what"),
    [
        ("{provider: ansible}", "provider ansible needs cluster.hosts"),
        ("{hosts: [a, b]}", "provider local does not take cluster.hosts"),
        ("{ssh: {user: x}}", "provider local does not take cluster.ssh"),
        ("{exposed: true}", "provider local does not take cluster.exposed"),
        ("{provider: ansible, hosts: [a, b], exposed: yes}", "write true or false"),
        ("{provider: ansible, hosts: [a]}", "1 hosts are not 2 to 200"),
        ("{provider: ansible, hosts: [a, b, c], workers: 3}", "a master and 2 workers, not 3"),
        ("{provider: ansible, hosts: [a, a]}", "given twice"),
        (
            "{provider: ansible, hosts: [a, '{{ lookup(1) }}']}",
            "is not a valid name or IPv4 address",
        ),
        (
            "{provider: ansible, hosts: [a, -oProxyCommand=x]}",
            "is not a valid name or IPv4 address",
        ),
        (
            "{provider: ansible, hosts: [a, 'fe80::1']}",
            "'fe80::1' is not a valid name or IPv4 address",
        ),
        ("{provider: ansible, hosts: [a, b], ssh: {user: '-x'}}", "is not a valid name of a user"),
        ("{provider: ansible, hosts: [a, b], ssh: {key: 'a b'}}", "is not a valid path of a key"),
        (
            "{provider: ansible, hosts: [a, b], ssh: {port: 0}}",
            "whole number from 1 to 65535",
        ),
        ("{provider: ansible, hosts: [a, b], ssh: {become: 1}}", "write true or false"),
        ("{provider: ansible, hosts: [a, b], ssh: {password: x}}", "unknown key 'password'"),
    ],
)
def test_what_is_refused(cluster, what):
    """
    Each with its place in the file.
    """
    with pytest.raises(SpecError, match=what) as refused:
        experiment(cluster)

    assert "x.yaml:4:" in str(refused.value)
