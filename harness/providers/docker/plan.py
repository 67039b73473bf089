"""
What a cluster in containers looks like: addresses, and the files that each node is given. Pure.

    /cluster/conf/<node>   /cluster/nodes/<node>    configuration and data
    /cluster/logs          one log per daemon       /cluster/daemons   process ids
    /cluster/plan.json     what `harness.node.supervise` starts;  deaths, control: its own
    /cluster/node.pyz      the node agent
"""

from __future__ import annotations

import ipaddress
import json

from collections.abc import Iterable, Mapping
from typing import Any

from harness.hadoop import daemons, site
from harness.hadoop.layout import Layout, Member, make_members
from harness.providers.docker.image import ARCHIVE, HOME, JAVA
from harness.records.trial import ClusterSpec

BASE = "/cluster"
PLAN, DEATHS, CONTROL = f"{BASE}/plan.json", f"{BASE}/deaths", f"{BASE}/control"
LOGS, PIDS = f"{BASE}/logs", f"{BASE}/daemons"
LAUNCHER = f"{JAVA}/bin/java"
# of the block kept for benchmarks (RFC 2544); namespaces of the local provider use its lower part
POOL = ipaddress.ip_network("198.18.64.0/18")
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def subnets(taken: Iterable[str]) -> list[str]:
    """
    Networks of 253 nodes that overlap none of those *taken*, in order.

    >>> subnets(["198.18.64.0/23", "172.17.0.0/16", "fd00::/64"])[0]
    '198.18.66.0/24'
    """
    others = [n for n in map(ipaddress.ip_network, taken) if n.version == 4]
    return [str(n) for n in POOL.subnets(new_prefix=24) if not any(n.overlaps(o) for o in others)]


def members(workers: int, subnet: str) -> tuple[Member, ...]:
    """
    Master and *workers*, with addresses of *subnet*, whose first is the engine's own.

    >>> [f"{m.name} {m.address}" for m in members(2, "198.18.64.0/24")]
    ['master 198.18.64.2', 'worker1 198.18.64.3', 'worker2 198.18.64.4']
    """
    first = ipaddress.ip_network(subnet).network_address + 2
    names = [m.name for m in make_members(workers)]
    return tuple(Member(name, str(first + n)) for n, name in enumerate(names))


def layout(workers: int, subnet: str) -> Layout:
    """Where nodes find everything."""
    return Layout(members(workers, subnet), BASE, HOME, ARCHIVE)


def environment(where: Layout, member: Member) -> dict[str, str]:
    """Environment of all that runs on *member*."""
    plain = {"PATH": _PATH, "LANG": "C.UTF-8", "HOME": BASE}
    return daemons.environment(plain, JAVA, where, member)


def folders(where: Layout, member: Member) -> list[str]:
    """Folders of *member* below `BASE`, parents first."""
    data, conf = where.data(member), where.conf(member)
    made = [f"{BASE}/nodes", data, f"{data}/jtmp", f"{BASE}/conf", conf, LOGS, PIDS]
    return [path.removeprefix(f"{BASE}/") for path in made]


def files(
    spec: ClusterSpec, where: Layout, member: Member, more: Mapping[str, bytes]
) -> dict[str, bytes]:
    """Path below `BASE` -> content of what *member* is given, and *more* with it."""
    conf = where.conf(member).removeprefix(f"{BASE}/")
    found = {
        f"{conf}/{name}": site.render_xml(properties).encode()
        for name, properties in site.site_files(spec, where, member).items()
    }
    found[f"{conf}/log4j.properties"] = site.LOG4J.encode()
    found["plan.json"] = json.dumps(plan(where, member, waits=spec.limited), indent=1).encode()
    return found | dict(more)


def daemons_of(where: Layout, member: Member) -> list[daemons.Daemon]:
    """Daemons of one node, in the order of their start."""
    return [d for d in daemons.daemons(where) if d.member == member]


def is_first(daemon: daemons.Daemon) -> bool:
    """
    Whether a daemon starts with its node.

    The history server waits 10 s between its looks at HDFS: the gate's waiter has it started at the
    right moment.
    """
    return daemon.kind != "historyserver"


def plan(where: Layout, member: Member, *, waits: bool = False) -> dict[str, Any]:
    """What the first process of *member* is to start; one that *waits* starts what it is told."""
    return {
        "control": CONTROL,
        "deaths": DEATHS,
        "daemons_folder": PIDS,
        "daemons": [_planned(where, d, waits=waits) for d in daemons_of(where, member)],
    }


def _planned(where: Layout, daemon: daemons.Daemon, *, waits: bool) -> dict[str, Any]:
    return {
        "key": daemon.key,
        "argv": daemons.daemon_argv(LAUNCHER, where, daemon),
        "env": environment(where, daemon.member),
        "cwd": where.data(daemon.member),
        "log": f"{LOGS}/{daemon.key}.log",
        "at_once": not waits and is_first(daemon),
    }
