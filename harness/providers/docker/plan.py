"""
What a cluster in containers looks like: addresses, folders, and the files that each node is given.

    /opt/hadoop, /opt/java the Hadoop home and Java, from the image
    /cluster/conf/<node>   /cluster/nodes/<node>    configuration and data
    /cluster/logs          one log per daemon       /cluster/daemons   process ids
    /cluster/plan.json     what the node's supervisor starts;  deaths, control: its own
    /cluster/node.pyz      the node agent
"""

from __future__ import annotations

import io
import ipaddress
import json
import tarfile

from collections.abc import Iterable, Iterator, Mapping
from typing import IO, Any

from harness.hadoop import daemons, site
from harness.hadoop.daemons import Layout, Member, make_members
from harness.records.trial import ClusterSpec

HOME, JAVA = "/opt/hadoop", "/opt/java"
JAVA_COMMAND = f"{JAVA}/bin/java"
ARCHIVE, TASKS_ARCHIVE = f"{HOME}/classes.jsa", f"{HOME}/tasks.jsa"
BASE = "/cluster"
DEATHS, CONTROL = f"{BASE}/deaths", f"{BASE}/control"
LOGS, PIDS = f"{BASE}/logs", f"{BASE}/daemons"
AGENT = f"{BASE}/node.pyz"
AGENT_COMMAND = ("python3", "-I", "-S", AGENT)
USER = 10_000  # the plain user of the image, who owns what nodes are given
# of the block kept for benchmarks (RFC 2544); namespaces of the local provider use its lower part
POOL = ipaddress.ip_network("198.18.64.0/18")
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_CHUNK = 2**20
_TIME = 1_767_225_600  # 2026-01-01: equal files make equal archives


def free_subnets(used: Iterable[str]) -> list[str]:
    """
    Networks of 253 nodes that overlap none of those *used*, in order.

    >>> free_subnets(["198.18.64.0/23", "172.17.0.0/16", "fd00::/64"])[0]
    '198.18.66.0/24'
    """
    others = [network for network in map(ipaddress.ip_network, used) if network.version == 4]
    return [
        str(network)
        for network in POOL.subnets(new_prefix=24)
        if not any(network.overlaps(other) for other in others)
    ]


def make_layout(workers: int, subnet: str) -> Layout:
    """
    Master and *workers* with addresses of *subnet*, whose first is the engine's own.

    >>> [f"{node.name} {node.address}" for node in make_layout(2, "198.18.64.0/24").members]
    ['master 198.18.64.2', 'worker1 198.18.64.3', 'worker2 198.18.64.4']
    """
    first = ipaddress.ip_network(subnet).network_address + 2
    members = tuple(
        Member(member.name, str(first + number))
        for number, member in enumerate(make_members(workers))
    )
    return Layout(members, BASE, HOME, ARCHIVE)


def environment(layout: Layout, member: Member) -> dict[str, str]:
    """Environment of all that runs on *member*."""
    plain = {"PATH": _PATH, "LANG": "C.UTF-8", "HOME": BASE}
    return daemons.environment(plain, JAVA, layout, member)


def folders(layout: Layout, member: Member) -> list[str]:
    """Folders of *member* below `BASE`, parents first."""
    data, conf = layout.data(member), layout.conf(member)
    paths = [f"{BASE}/nodes", data, f"{data}/jtmp", f"{BASE}/conf", conf, LOGS, PIDS]
    return [relative_path.removeprefix(f"{BASE}/") for relative_path in paths]


def files(spec: ClusterSpec, layout: Layout, member: Member) -> dict[str, bytes]:
    """Content of each file that *member* is given, by its path below `BASE`."""
    conf = layout.conf(member).removeprefix(f"{BASE}/")
    texts = {
        f"{conf}/{file_name}": site.render_xml(properties)
        for file_name, properties in site.site_files(spec, layout, member).items()
    }
    texts[f"{conf}/log4j.properties"] = site.LOG4J
    plan = {
        "control": CONTROL,
        "deaths": DEATHS,
        "daemons_folder": PIDS,
        "daemons": [
            {
                "key": daemon.key,
                "argv": daemons.daemon_argv(JAVA_COMMAND, layout, daemon),
                "env": environment(layout, member),
                "cwd": layout.data(member),
                "log": f"{LOGS}/{daemon.key}.log",
                # daemons of limited nodes start when the limits are set
                "at_once": not spec.limited and daemon in first_daemons(layout, member),
            }
            for daemon in daemons.daemons(layout)
            if daemon.member == member
        ],
    }
    texts["plan.json"] = json.dumps(plan, indent=1)
    return {relative_path: text.encode() for relative_path, text in texts.items()}


def first_daemons(layout: Layout, member: Member) -> list[daemons.Daemon]:
    """Daemons that start with their node; the health check starts the history server in time."""
    return [
        daemon
        for daemon in daemons.daemons(layout)
        if daemon.member == member and daemon.kind != "historyserver"
    ]


def pack(files: Mapping[str, bytes], folders: Iterable[str] = ()) -> bytes:
    """An archive of *folders* and *files* (path -> content), owned by the image's user."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for relative_path in folders:
            archive.addfile(_entry(relative_path, 0, mode=0o755, kind=tarfile.DIRTYPE))
        for relative_path, content in files.items():
            archive.addfile(_entry(relative_path, len(content)), io.BytesIO(content))
    return buffer.getvalue()


def pack_file(file_name: str, stream: IO[bytes], size: int, *, executable: bool) -> Iterator[bytes]:
    """An archive, in pieces, of one file of *size* bytes; a file that shrinks is an `OSError`."""
    yield _entry(file_name, size, mode=0o755 if executable else 0o644).tobuf()
    missing = size
    while missing:
        piece = stream.read(min(_CHUNK, missing))
        if not piece:
            raise OSError(f"{file_name} has become shorter while it was read")
        missing -= len(piece)
        yield piece
    yield bytes(-size % tarfile.BLOCKSIZE + 2 * tarfile.BLOCKSIZE)


def _entry(path: str, size: int, *, mode: int = 0o644, kind: bytes = tarfile.REGTYPE) -> Any:
    entry = tarfile.TarInfo(path)
    entry.size, entry.type, entry.mode, entry.mtime = size, kind, mode, _TIME
    entry.uid = entry.gid = USER
    return entry
