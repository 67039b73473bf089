"""Whether nodes ran out of memory: what the kernel counts of each container."""

from __future__ import annotations

import re

from harness.errors import ClusterError
from harness.node.supervise import MEMORY_EVENTS
from harness.providers.docker.host import DockerHost, state_of
from harness.units import format_bytes

_KILLS = re.compile(r"^oom_kill (\d{1,18})$", re.MULTILINE)


def kills_of(host: DockerHost) -> int:
    """How many processes of a node the kernel has ended for want of memory, since its start."""
    try:
        told = host.run(["cat", *MEMORY_EVENTS]).out  # one of the files is there
    except ClusterError:  # with its first process, of which no count is left
        return int("OOMKilled" in state_of(host.engine, host.container))
    return sum(map(int, _KILLS.findall(told)))


def said(node: str, kills: int, limit_bytes: int | None) -> str:
    """
    What is said of a node in which the kernel has ended so many processes.

    >>> said("worker1", 2, 3 * 2**30)
    'the kernel ended 2 processes of worker1, which may use 3 GiB of memory (cluster.node.memory)'
    """
    processes = "a process" if kills == 1 else f"{kills} processes"
    if limit_bytes is None:
        return f"the kernel ended {processes} of {node}: its machine ran out of memory"
    room = format_bytes(limit_bytes)
    return (
        f"the kernel ended {processes} of {node}, which may use {room} of memory"
        " (cluster.node.memory)"
    )
