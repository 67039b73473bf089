"""
Hosts of the cluster as an experiment file names them, and how they are reached.

    hosts: [10.0.0.1, node2.example.org, 10.0.0.3]        # the first is the master
    ssh: {user: hadoop, key: ~/.ssh/cluster, port: 22, become: false, keep: false}
"""

from __future__ import annotations

import re

from typing import Any

from harness.experiment.model import Experiment
from harness.experiment.shapes import Key, Keys, Listed, Schema, Value
from harness.experiment.yamltree import Entries, Problems, Scalar, shown

MOST_HOSTS = 200
_HOST = r"[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?|[0-9A-Fa-f:]{2,45}"
_USER = r"[a-z_][a-z0-9_-]{0,31}"
_FILE = r"[A-Za-z0-9._/~@+-]{1,400}"


def keys() -> dict[str, Key]:
    """Keys of ``cluster`` that speak of hosts which are there already."""
    return {
        "hosts": Key(
            Listed(_matched(_HOST, "name or address of a host", "10.0.0.7"), bare=False),
            "hosts",
            "hosts that are reached by SSH, the master first",
        ),
        "ssh": Key(
            Keys(
                {
                    "user": Key(_matched(_USER, "name of a user", "hadoop"), "user", "who (root)"),
                    "key": Key(
                        _matched(_FILE, "path of a key", "~/.ssh/id_ed25519"),
                        "key",
                        "file of the private key (those of the agent)",
                    ),
                    "port": Key(_PORT, "port", "of the hosts' sshd (22)"),
                    "become": Key(_FLAG, "become", "use sudo where root is needed (false)"),
                    "keep": Key(
                        _FLAG, "keep", "leave Hadoop on the hosts for the next start (false)"
                    ),
                }
            ),
            "ssh",
            "how the hosts are reached",
        ),
    }


def count_workers(values: dict[str, Any]) -> None:
    """Let the hosts say how many workers there are, where the file does not."""
    cluster = values.get("cluster", {})
    if cluster.get("hosts") and "workers" not in cluster:
        cluster["workers"] = (max(1, len(cluster["hosts"]) - 1),)


def check_hosts(experiment: Experiment, tree: Entries, problems: Problems) -> None:
    """Note hosts that are too few, too many, or not those of the workers; and missing ones."""
    cluster, node = experiment.cluster, tree.entries.get("cluster")
    if not isinstance(node, Entries):
        return
    where, count = node.keys.get("hosts", node.at), len(cluster.hosts)
    if (cluster.provider == "ansible") != bool(count):
        what = "needs cluster.hosts" if not count else "does not take cluster.hosts"
        fix = "add hosts: [MASTER, WORKER, ...]" if not count else "write provider: ansible"
        problems.add(where, f"provider {cluster.provider} {what}", fix)
    elif not count and "ssh" in node.keys:
        what = f"provider {cluster.provider} does not take cluster.ssh"
        problems.add(node.keys["ssh"], what, "write provider: ansible, or remove the line")
    elif count and not 2 <= count <= MOST_HOSTS:
        fix = "name a master and at least one worker"
        problems.add(where, f"{count} hosts are not 2 to {MOST_HOSTS}", fix)
    elif count and cluster.workers != (count - 1,):
        written = ", ".join(map(str, cluster.workers))
        what = f"{count} hosts are a master and {count - 1} workers, not {written}"
        problems.add(node.keys.get("workers", where), what, f"write workers: {count - 1}")


def _matched(pattern: str, what: str, example: str) -> Value:
    def read(node: Scalar) -> str:
        if not re.fullmatch(pattern, node.text, re.ASCII):
            raise ValueError(f"'{shown(node.text)}' is no {what}; write one such as {example}")
        return node.text

    schema: Schema = {"type": "string", "pattern": f"^({pattern})$", "examples": [example]}
    return Value(read, schema)


def _flag(node: Scalar) -> bool:
    if not isinstance(node.value, bool):
        raise ValueError(f"'{shown(node.text)}' is neither; write true or false")
    return node.value


def _port(node: Scalar) -> int:
    value = node.value
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value < 65536:
        raise ValueError(f"'{shown(node.text)}' is no port; write a number from 1 to 65535")
    return value


_FLAG = Value(_flag, {"type": "boolean"})
_PORT = Value(_port, {"type": "integer", "minimum": 1, "maximum": 65535})
