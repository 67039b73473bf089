"""
Finding a cluster that is not ours: its configuration, its active masters, what it can hold.

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
from harness.hadoop.slots import effective
from harness.parsing.jobconf import read_properties
from harness.providers.existing import served
from harness.providers.host import printable
from harness.records.trial import ClusterSpec

ACTIVE_LIMIT_S, _POLL_S = 60.0, 0.2
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._@-]{0,63}", re.ASCII)
_MOST_CONF = 16 * 2**20


@dataclass(frozen=True, slots=True)
class Found:
    """
    A cluster that answers: its configuration *files*, where its active *services* are, what it is.

    The services are ``nn``, ``rm`` and ``jhs``; *nodes* are those that run, as the ResourceManager
    lists them.
    """

    files: dict[str, dict[str, str]]
    services: dict[str, str]
    nodes: list[dict[str, Any]]
    version: str

    def __str__(self) -> str:
        return f"Hadoop {self.version}, {len(self.nodes)} nodes, at {self.services['rm']}"


def find(more: Mapping[str, str], limit_s: float = ACTIVE_LIMIT_S) -> Found:
    """
    The cluster of ``HADOOP_CONF_DIR`` and of the properties *more*, which have the last word.

    `HarnessError` where they lead to none that answers and that we can speak with.  For masters of
    which none is active it is waited *limit_s* seconds at most.
    """
    files = read_conf()
    asked = given.services({**site.merged(files), **more})
    active = {
        "nn": _active(asked.namenodes, _namenode_state, "NameNode", limit_s),
        "rm": _active(asked.resourcemanagers, _resourcemanager_state, "ResourceManager", limit_s),
        "jhs": asked.historyserver,
    }
    info = inner(served.get_json(active["rm"], "/ws/v1/cluster/info"), "clusterInfo")
    version = printable(str(info.get("hadoopVersion", "unknown")))[:40]
    return Found(files, active, nodes(active["rm"]), version)


def look() -> str:
    """What ``HADOOP_CONF_DIR`` leads to, in words; empty where it is not set."""
    return str(find({}, limit_s=0.0)) if os.environ.get("HADOOP_CONF_DIR") else ""


def read_conf() -> dict[str, dict[str, str]]:
    """Properties in the files of ``HADOOP_CONF_DIR``; none where it is not set."""
    chosen, found = os.environ.get("HADOOP_CONF_DIR"), {}
    for name in given.FILES if chosen else ():
        path = Path(chosen or "", name)
        try:
            with path.open("rb") as file:
                text = file.read(_MOST_CONF)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise _unreadable(path, error.strerror) from error
        try:
            found[name] = read_properties(text, str(path))
        except ParseError as error:
            raise _unreadable(error.where, error.what) from error
    if chosen and not found:
        lacking = "no core-site.xml, nor any other of Hadoop's files, is in it"
        raise _unreadable(Path(chosen), lacking if Path(chosen).is_dir() else "no such folder")
    return found


def _unreadable(path: Path | str, why: str | None) -> SpecError:
    return SpecError(
        f"the cluster's configuration cannot be read: {why}",
        where=f"{path} (HADOOP_CONF_DIR)",
        fix="set HADOOP_CONF_DIR to the folder that its clients use",
    )


def user_name() -> str:
    """In whose name a cluster is asked; `SpecError` for what is no name of a user."""
    user = os.environ.get("HADOOP_USER_NAME") or getpass.getuser()
    if not _USER.fullmatch(user):
        raise SpecError(
            f"{user!r:.80} is no name of a user",
            where="HADOOP_USER_NAME",
            fix="use letters, digits, and . _ - @",
        )
    return user


def inner(answer: Any, name: str) -> dict[str, Any]:
    """The object *name* in a REST answer; empty where there is none."""
    found = answer.get(name) if isinstance(answer, dict) else None
    return found if isinstance(found, dict) else {}


def _active(
    addresses: Sequence[str],
    state: Callable[[str], str],
    what: str,
    limit_s: float,
) -> str:
    """
    The one of several services that is active; `ClusterError` with what each said.

    As long as one of them answers it is waited for, *limit_s* seconds at most: a service that was
    just started, or takes the place of another, becomes active in a moment.
    """
    deadline = time.monotonic() + limit_s
    while True:
        said, heard = list[str](), False
        for address in addresses:
            try:
                told = state(address)
            except ClusterError as error:
                said.append(error.what)
            else:
                if told.lower() == "active":
                    return address
                heard = True
                said.append(f"{address} is {printable(told)[:40] or 'silent about its state'}")
        if not heard or time.monotonic() > deadline:
            break
        time.sleep(_POLL_S)
    raise ClusterError(
        f"no {what} is active: {'; '.join(said)}",
        where="existing cluster",
        fix="see whether the cluster runs, and whether HADOOP_CONF_DIR is its configuration",
    )


def _namenode_state(address: str) -> str:
    """What a NameNode says of itself: ``active`` or ``standby``."""
    path = "/jmx?qry=Hadoop:service=NameNode,name=NameNodeStatus"
    beans = served.elements(served.get_json(address, path), "beans")
    return str(beans[0].get("State", "")) if beans else ""


def _resourcemanager_state(address: str) -> str:
    """What a ResourceManager says of itself: ``ACTIVE`` or ``STANDBY``."""
    info = inner(served.get_json(address, "/ws/v1/cluster/info"), "clusterInfo")
    return str(info.get("haState", ""))


def nodes(resourcemanager: str) -> list[dict[str, Any]]:
    """The nodes that run, as the ResourceManager lists them."""
    answer = served.get_json(resourcemanager, "/ws/v1/cluster/nodes?states=RUNNING")
    return served.elements(answer, "nodes", "node")


def refuse(spec: ClusterSpec, running: Sequence[Mapping[str, Any]], where: str) -> None:
    """`ClusterError` for what the cluster cannot hold: Hadoop itself would wait for ever."""
    if len(running) != spec.workers:
        raise ClusterError(
            f"{len(running)} nodes run there, and cluster.workers is {spec.workers}",
            where=where,
            fix=f"set cluster.workers to {len(running)}",
        )
    _refuse_gpus(spec, running, where)
    sizes = [_memory_mb(node) for node in running]
    task, slots = site.container_mb(spec.node.task_memory_bytes), effective(spec, {})
    at_once = max(slots.map_slots, slots.reduce_slots)
    room = sum(size // task for size in sizes) - 1  # the application master takes one
    if room < at_once:
        raise ClusterError(
            f"{at_once} tasks of {task} MiB at once beside their master, and there is room for"
            f" {max(room, 0)}: its nodes offer {', '.join(map(str, sizes[:8]))} MiB",
            where=where,
            fix="lower cluster.node.task_memory or the slots",
        )


def _refuse_gpus(spec: ClusterSpec, running: Sequence[Mapping[str, Any]], where: str) -> None:
    least = min(map(gpus, running), default=0)
    if least < spec.node.gpus:
        raise ClusterError(
            f"a node offers {least or 'no'} GPUs ({site.GPU}), and cluster.node.gpus is"
            f" {spec.node.gpus}",
            where=where,
            fix="ask for no more than each node has, or have its administrator offer them",
        )


def gpus(node: Mapping[str, Any]) -> int:
    """GPUs that a node offers to containers, whoever uses them now."""
    path = ("totalResource", "resourceInformations", "resourceInformation")
    offered = {str(r.get("name")): r.get("value") for r in served.elements(node, *path)}
    return whole(offered.get(site.GPU))


def _memory_mb(node: Mapping[str, Any]) -> int:
    """Memory that a node offers to containers, whoever uses it now."""
    parts = (node.get("availMemoryMB"), node.get("usedMemoryMB"))
    return sum(whole(part) for part in parts)


def whole(value: Any) -> int:
    """A number of a REST answer; 0 for what is none."""
    return value if isinstance(value, int) else 0
