"""
Discovery of a cluster that is not ours: its configuration, its active masters, what it can hold.

Nothing is changed, here or there.
"""

from __future__ import annotations

import getpass
import os
import re
import time

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.errors import ClusterError, ParseError, SpecError
from harness.hadoop import given, site
from harness.hadoop.site import read_properties
from harness.hadoop.slots import effective
from harness.providers.existing import rest
from harness.records.trial import ClusterSpec
from harness.text import excerpt

ACTIVE_LIMIT_S, _POLL_S = 60.0, 0.2
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._@-]{0,63}", re.ASCII)
_MOST_CONF = 16 * 2**20


@dataclass(frozen=True, slots=True)
class Discovery:
    """
    A cluster that answers: its configuration *files*, addresses of its active *services*.

    The services are ``nn``, ``rm`` and ``jhs``; *nodes* are those that run, as the ResourceManager
    lists them.
    """

    files: dict[str, dict[str, str]]
    services: dict[str, str]
    nodes: list[dict[str, Any]]
    version: str

    def __str__(self) -> str:
        return f"Hadoop {self.version}, {len(self.nodes)} nodes, at {self.services['rm']}"


def discover(overrides: Mapping[str, str], limit_s: float = ACTIVE_LIMIT_S) -> Discovery:
    """
    The cluster of ``HADOOP_CONF_DIR`` with the properties *overrides*, which have the last word.

    `HarnessError` where they lead to none that answers and that we can speak with.  Where no master
    is active yet, it is waited for *limit_s* seconds at most.
    """
    files = read_conf()
    configured = given.services({**site.merged(files), **overrides})
    managers, role = configured.resourcemanagers, "ResourceManager"
    services = {
        "nn": _find_active(configured.namenodes, _namenode_state, "NameNode", limit_s),
        "rm": _find_active(managers, _resourcemanager_state, role, limit_s),
        "jhs": configured.historyserver,
    }
    info = inner(rest.get_json(services["rm"], "/ws/v1/cluster/info"), "clusterInfo")
    version = excerpt(info.get("hadoopVersion", "unknown"), 40)
    return Discovery(files, services, running_nodes(services["rm"]), version)


def read_conf() -> dict[str, dict[str, str]]:
    """Properties in the files of ``HADOOP_CONF_DIR``; none where it is not set."""
    folder = os.environ.get("HADOOP_CONF_DIR")
    if not folder:
        return {}
    files = {}
    for file_name in given.FILES:
        file_path = Path(folder, file_name)
        try:
            with file_path.open("rb") as stream:
                files[file_name] = read_properties(stream.read(_MOST_CONF), str(file_path))
        except FileNotFoundError:
            continue
        except OSError as error:
            raise _conf_error(file_path, error.strerror) from error
        except ParseError as error:
            raise _conf_error(error.where, error.what) from error
    if not files:
        missing = "it has no core-site.xml or other file of Hadoop's configuration"
        raise _conf_error(folder, missing if Path(folder).is_dir() else "no such folder")
    return files


def _conf_error(path: Path | str, reason: str | None) -> SpecError:
    return SpecError(
        f"the cluster's configuration cannot be read: {reason}",
        where=f"{path} (HADOOP_CONF_DIR)",
        fix="set HADOOP_CONF_DIR to the folder that its clients use",
    )


def user_name() -> str:
    """The user of the cluster: ``HADOOP_USER_NAME``, or this process's; `SpecError` if invalid."""
    user = os.environ.get("HADOOP_USER_NAME") or getpass.getuser()
    if not _USER.fullmatch(user):
        raise SpecError(
            f"{user!r:.80} is not a valid name of a user",
            where="HADOOP_USER_NAME",
            fix="use letters, digits, and . _ - @",
        )
    return user


def inner(answer: Any, key: str) -> dict[str, Any]:
    """The object *key* of a REST answer; empty where there is none."""
    value = answer.get(key) if isinstance(answer, dict) else None
    return value if isinstance(value, dict) else {}


def _find_active(
    addresses: Sequence[str], state_of: Callable[[str], str], kind: str, limit_s: float
) -> str:
    """
    The one of several services that is active; `ClusterError` with the state of each.

    As long as one of them answers it is waited for, *limit_s* seconds at most: a service that was
    just started, or takes the place of another, becomes active in a moment.
    """
    deadline = time.monotonic() + limit_s
    while True:
        states, has_answered = list[str](), False
        for address in addresses:
            try:
                service_state = state_of(address)
            except ClusterError as error:
                states.append(error.what)
            else:
                if service_state.lower() == "active":
                    return address
                has_answered = True
                states.append(f"{address} is {excerpt(service_state, 40) or 'in an unknown state'}")
        if not has_answered or time.monotonic() > deadline:
            break
        time.sleep(_POLL_S)
    raise ClusterError(
        f"no {kind} is active: {'; '.join(states)}",
        where="existing cluster",
        fix="see whether the cluster runs, and whether HADOOP_CONF_DIR is its configuration",
    )


def _namenode_state(address: str) -> str:
    """What a NameNode reports of itself: ``active`` or ``standby``."""
    url_path = "/jmx?qry=Hadoop:service=NameNode,name=NameNodeStatus"
    beans = rest.elements(rest.get_json(address, url_path), "beans")
    return str(beans[0].get("State", "")) if beans else ""


def _resourcemanager_state(address: str) -> str:
    """What a ResourceManager reports of itself: ``ACTIVE`` or ``STANDBY``."""
    info = inner(rest.get_json(address, "/ws/v1/cluster/info"), "clusterInfo")
    return str(info.get("haState", ""))


def running_nodes(resourcemanager: str) -> list[dict[str, Any]]:
    """The nodes that run, as the ResourceManager lists them."""
    answer = rest.get_json(resourcemanager, "/ws/v1/cluster/nodes?states=RUNNING")
    return rest.elements(answer, "nodes", "node")


def refuse(spec: ClusterSpec, nodes: Sequence[Mapping[str, Any]], where: str) -> None:
    """`ClusterError` for what the cluster cannot hold: Hadoop itself would wait for ever."""
    if len(nodes) != spec.workers:
        raise ClusterError(
            f"{len(nodes)} nodes run there, and cluster.workers is {spec.workers}",
            where=where,
            fix=f"set cluster.workers to {len(nodes)}",
        )
    least_gpus = min(map(gpus, nodes), default=0)
    if least_gpus < spec.node.gpus:
        raise ClusterError(
            f"a node offers {least_gpus or 'no'} GPUs ({site.GPU}), and cluster.node.gpus is"
            f" {spec.node.gpus}",
            where=where,
            fix="request no more than each node has, or have its administrator offer them",
        )
    # offered to containers, whoever uses it now
    keys = ("availMemoryMB", "usedMemoryMB")
    sizes_mb = [sum(whole(node.get(key)) for key in keys) for node in nodes]
    task_mb, slots = site.container_mb(spec.node.task_memory_bytes), effective(spec, {})
    at_once = max(slots.map_slots, slots.reduce_slots)
    room = sum(size // task_mb for size in sizes_mb) - 1  # the application master takes one
    if room < at_once:
        raise ClusterError(
            f"{at_once} tasks of {task_mb} MiB at once beside their master, and there is room for"
            f" {max(room, 0)}: its nodes offer {', '.join(map(str, sizes_mb[:8]))} MiB",
            where=where,
            fix="lower cluster.node.task_memory or the slots",
        )


def gpus(node: Mapping[str, Any]) -> int:
    """GPUs that a node offers to containers, whoever uses them now."""
    keys = ("totalResource", "resourceInformations", "resourceInformation")
    offered = {str(each.get("name")): each.get("value") for each in rest.elements(node, *keys)}
    return whole(offered.get(site.GPU))


def whole(value: Any) -> int:
    """A whole number of a REST answer; 0 for anything else."""
    return value if isinstance(value, int) else 0
