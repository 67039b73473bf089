"""Bare hosts before anything is put there: queried all at once, and refused with reasons."""

from __future__ import annotations

import json
import os
import re
import socket
import time

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError

from harness.base.errors import ClusterError, SpecError
from harness.base.hadoop.daemons import MASTER_PORTS, WORKER_PORTS, Member
from harness.base.records.trace import MOST_CLOCK_S
from harness.base.records.trial import ClusterSpec, Record, SshAccess
from harness.base.text import excerpt
from harness.clusters.hadoop_home.home import OLDEST
from harness.clusters.node import facts as node_facts
from harness.clusters.node import fence
from harness.clusters.ssh.connection import Connection
from harness.clusters.ssh.host import SshHost
from harness.clusters.survey import find_on

ROOM_BYTES = 3 * 2**29  # beside what is copied; a DataNode wants 1 GiB free for any block
ARCHIVES_BYTES = 2**28
_HOSTNAME = r"[A-Za-z0-9]([A-Za-z0-9.-]{0,250}[A-Za-z0-9])?"
_MOST_ANSWER = 2**16
_NO_PROGRAM = (126, 127)  # statuses by which a shell says that a command cannot be run
_PLAIN_PATH = r"/[A-Za-z0-9._/+@=,-]{1,300}"


class InstalledJava(Record):
    """A Java of a host; *build* changes with it."""

    home: str
    version: str
    build: str

    @property
    def fits(self) -> bool:
        """Whether Hadoop runs on it, and its path can stand in a script."""
        major = re.match(r"(?:1\.)?(\d{1,4})", self.version)
        return bool(major and int(major[1]) >= OLDEST and re.fullmatch(_PLAIN_PATH, self.home))


class Facts(Record):
    """
    What a host says of itself; *clock_s* is how far its clock is ahead of ours.

    *copied* are files that say what was put there before, and wholly; *gpus_lack* says why it does
    not have the GPUs that it is to offer, empty where it has; the others are as in
    `harness.clusters.node.facts`.
    """

    python: str
    user: str
    root: bool
    home: str
    base: str
    machine: str
    java: tuple[InstalledJava, ...]
    copied: tuple[str, ...]
    free_bytes: int
    writable: bool
    taken: tuple[int, ...]
    unnamed: tuple[str, ...]
    hostname: str
    sudo: str
    systemd: bool
    lacking: tuple[str, ...]
    filter: str
    public: tuple[str, ...]
    left: bool
    owners: dict[str, str]
    gpus_lack: str = ""
    time: float
    clock_s: float = 0.0

    @property
    def fit_java(self) -> InstalledJava | None:
        """The first Java of the host on which Hadoop runs; `None` where it has none."""
        return next((java for java in self.java if java.fits), None)


class Problem(NamedTuple):
    """*what* is in the way on a host, and the *remedy*."""

    what: str
    remedy: str


def address_of(host: str) -> str:
    """IPv4 address of a host; `ClusterError` for a name without one."""
    try:
        addresses = socket.getaddrinfo(host, None, socket.AF_INET, socket.SOCK_STREAM)
    except OSError as error:
        raise ClusterError(
            f"no such host, or none with an IPv4 address: {excerpt(host, 300)}",
            where="cluster.hosts",
            fix="write its address, or have its name resolved (/etc/hosts)",
        ) from error
    return str(addresses[0][4][0])


def query(
    member: Member, connection: Connection, cluster: str, names: Mapping[str, str], gpus: int = 0
) -> Facts:
    """
    The facts of one host; `ClusterError` where it cannot be reached or has no Python.

    *names* are all nodes with their addresses; a worker is to offer so many *gpus*.
    """
    is_master = member.name == "master"
    ports = MASTER_PORTS if is_master else WORKER_PORTS
    request = {
        "cluster": cluster,
        "ports": [*ports.values()],
        "names": dict(names),
        "rules": fence.rules(cluster, 1, names.values(), 1),
    }
    host = SshHost(member.name, member.address, "/", connection)
    program = Path(node_facts.__file__).read_text()  # the host does not have the agent yet
    argv = ["python3", "-I", "-c", program, "preflight"]
    sent_at = time.time()
    completed = host.run(argv, 60, json.dumps(request).encode())
    received_at = time.time()
    try:
        # an answer that is too long is cut, and then it is not JSON
        facts = Facts.model_validate_json(completed.out[:_MOST_ANSWER])
    except ValidationError as error:
        last_line = excerpt("\n".join(completed.err.strip().splitlines()[-1:]), 200)
        what = f"the host's Python cannot say what the host is: {last_line or 'no answer'}"
        if completed.status in _NO_PROGRAM:
            what = f"no Python on the host: {last_line}"
        raise ClusterError(
            what,
            where=host.where,
            fix="on the host: apt-get install -y python3  (3.9 or newer, not python3-minimal)",
        ) from error
    # the clock was read at any moment between: only what lies outside of that is an offset
    earliest = facts.time - received_at
    latest = facts.time - sent_at
    clock_s = 0.0 if earliest <= 0 <= latest else min(earliest, latest, key=abs)
    gpus_lack = "" if is_master else _gpus_lack(host, gpus)
    return facts.model_copy(update={"clock_s": clock_s, "gpus_lack": gpus_lack})


def _gpus_lack(host: SshHost, gpus: int) -> str:
    """Why *host* does not have so many *gpus* to offer; empty where it has."""
    if not gpus:
        return ""
    devices = find_on(host)
    working = [device for device in devices.gpus if device.driver]  # which its tool reports
    if len(working) >= gpus:
        return ""
    lack = f"{gpus} to be offered, {len(working) or 'none'} found: {devices.message}"
    return lack.removesuffix(": ")


def can_be_root(facts: Facts, ssh: SshAccess) -> bool:
    """Whether root's work can be done on a host."""
    return facts.root or (ssh.become and not facts.sudo)


def require_fit(facts: Mapping[str, Facts], spec: ClusterSpec, owner: str, room_bytes: int) -> None:
    """
    `ClusterError` that names every host on which the cluster cannot be, with all reasons.

    *owner* is us, *room_bytes* what has to be free on each.
    """
    ssh = spec.ssh or SshAccess()
    problems: list[Problem] = []
    for node_name, host_facts in facts.items():
        host_problems = _problems(host_facts, ssh, owner, room_bytes)
        if not spec.exposed:
            host_problems += _exposures(host_facts, ssh)
        problems += [Problem(f"{node_name}: {what}", remedy) for what, remedy in host_problems]
    if problems:
        raise ClusterError(
            "; ".join(problem.what for problem in problems),
            where="hosts of the cluster",
            # one remedy may help several hosts
            fix="; ".join(dict.fromkeys(problem.remedy for problem in problems)),
        )
    _require_alike(facts)


def _require_alike(facts: Mapping[str, Facts]) -> None:
    """`SpecError` for hosts that one bundle cannot serve: of several kinds, or home folders."""
    if len({host_facts.machine for host_facts in facts.values()}) > 1:
        machines = ", ".join(f"{name} {excerpt(host.machine)}" for name, host in facts.items())
        raise SpecError(
            f"hosts of several kinds: {machines}",
            where="cluster.hosts",
            fix="use hosts of one kind",
        )
    if len(bases := {host_facts.base for host_facts in facts.values()}) > 1:
        raise SpecError(
            f"the user's home folders differ: {', '.join(sorted(bases))}",
            where="cluster.hosts",
            fix="use an account with the same home folder on every host",
        )


def require_java(facts: Mapping[str, Facts]) -> bool:
    """Whether a host needs our Java; `ClusterError` where ours would not run there."""
    lacking = [node_name for node_name, host_facts in facts.items() if host_facts.fit_java is None]
    foreign = [node_name for node_name in lacking if facts[node_name].machine != os.uname().machine]
    if foreign:
        raise ClusterError(
            f"{', '.join(foreign)}: no Java 17 or newer, and ours is for another processor",
            where="hosts of the cluster",
            fix="on the hosts: apt-get install -y openjdk-17-jre-headless",
        )
    return bool(lacking)


def _exposures(facts: Facts, ssh: SshAccess) -> list[Problem]:
    """Why whoever reaches a host could use the cluster there, and how to prevent it."""
    risk = "or accept that others can use the cluster: cluster.exposed: true"
    exposures = []
    if not can_be_root(facts, ssh):
        problem = f"{excerpt(facts.user)} may set no packet filter"
        if ssh.become:
            problem += f": {excerpt(facts.sudo, 120)}"
        remedy = "connect as root, or let sudo do root's work: cluster.ssh: {become: true}"
        exposures.append(Problem(problem, f"{remedy}; {risk}"))
    elif facts.filter == "nft is missing":
        remedy = "on the host: apt-get install -y nftables"
        exposures.append(Problem(facts.filter, f"{remedy}; {risk}"))
    elif facts.filter:
        problem = f"no packet filter can be set: {excerpt(facts.filter, 200)}"
        remedy = "a container needs NET_ADMIN, a kernel nf_tables and nf_conntrack"
        exposures.append(Problem(problem, f"{remedy}; {risk}"))
    if facts.public:
        problem = f"has public addresses: {excerpt(', '.join(facts.public), 200)}"
        exposures.append(Problem(problem, f"use hosts of a private network; {risk}"))
    return exposures


def _problems(facts: Facts, ssh: SshAccess, owner: str, room_bytes: int) -> list[Problem]:
    """What is in the way on one host, and how to repair it."""
    return [
        *_occupation_problems(facts, owner),
        *_system_problems(facts),
        *_resource_problems(facts, room_bytes),
        *_naming_problems(facts, ssh),
    ]


def _occupation_problems(facts: Facts, owner: str) -> list[Problem]:
    """Another's cluster on a host, or other programs at its ports."""
    problems = []
    foreign = {
        cluster: cluster_owner
        for cluster, cluster_owner in facts.owners.items()
        if cluster_owner != owner
    }
    for cluster, cluster_owner in foreign.items():
        name = excerpt(cluster, 80)
        folder = f"{excerpt(facts.base, 300)}/clusters/{name}"
        remedy = "take that one down, or wait until its lease ends; or clear the host, as its user:"
        problems.append(
            Problem(
                f"holds the cluster {name} of another ({excerpt(cluster_owner, 160)})",
                f"{remedy} python3 {folder}/node.pyz clear {folder}/plan.json",
            )
        )
    # ports of a cluster that is another's, or was left, are taken by it
    if facts.taken and not foreign and not facts.left:
        problem = f"ports {', '.join(map(str, facts.taken))} are taken"
        remedy = "stop what listens there: another Hadoop, or another harness's cluster"
        problems.append(Problem(problem, remedy))
    return problems


def _system_problems(facts: Facts) -> list[Problem]:
    """Programs that a host lacks, a home folder or a name that cannot be used."""
    problems = []
    if lacking := [*facts.lacking, *([] if facts.python else ["python3"])]:
        packages = {"setpriv": "util-linux", "useradd": "passwd", "python3": "python3"}
        names = ", ".join(packages[program] for program in lacking if program in packages)
        problem = f"{excerpt(', '.join(lacking), 80)} missing, or closed to other users than root"
        problems.append(Problem(problem, f"on the host: apt-get install -y {names}"))
    if not re.fullmatch(_PLAIN_PATH, facts.base):
        problem = f"the folder '{excerpt(facts.base, 120)}' has special characters"
        problems.append(Problem(problem, "use an account whose home folder has a plain name"))
    elif not facts.writable:
        problem = f"{excerpt(facts.user)} cannot write to {facts.base}"
        problems.append(Problem(problem, "use an account with a home folder"))
    if facts.hostname and not re.fullmatch(_HOSTNAME, facts.hostname):
        problem = f"its own name '{excerpt(facts.hostname, 80)}' does not resolve to an address"
        remedy = "give the host a name of plain letters, and have it resolved"
        problems.append(Problem(problem, remedy))
    return problems


def _resource_problems(facts: Facts, room_bytes: int) -> list[Problem]:
    """A disk that is too full, GPUs that do not work, a clock that is far off."""
    problems = []
    if facts.free_bytes < room_bytes:
        free_mib = facts.free_bytes // 2**20
        needed_mib = room_bytes // 2**20
        problem = f"the disk is too full: {free_mib} MiB are free where {needed_mib} MiB are needed"
        problems.append(Problem(problem, f"free some space below {excerpt(facts.home, 300)}"))
    if facts.gpus_lack:
        problem = f"the GPUs do not work: {excerpt(facts.gpus_lack, 200)}"
        remedy = "lower cluster.node.gpus; or get nvidia-smi to work on the host: the driver first"
        problems.append(Problem(problem, remedy))
    if abs(facts.clock_s) > MOST_CLOCK_S:
        direction = "ahead of" if facts.clock_s > 0 else "behind"
        problem = f"its clock is {abs(facts.clock_s):.0f} s {direction} ours"
        problems.append(Problem(problem, "synchronise the clocks: timedatectl set-ntp true"))
    return problems


def _naming_problems(facts: Facts, ssh: SshAccess) -> list[Problem]:
    """Names that a host does not know, where we may not write them to its /etc/hosts."""
    if facts.root or not (facts.unnamed or facts.hostname):
        return []
    names = excerpt(", ".join(filter(None, [*facts.unnamed, facts.hostname])), 200)
    user = excerpt(facts.user)
    if not ssh.become:
        problem = f"does not know {names}, and {user} may not name them"
        remedy = "cluster.ssh: {become: true} lets sudo write /etc/hosts; or write it by hand"
        return [Problem(problem, remedy)]
    if facts.sudo:
        problem = f"does not know {names}, and {excerpt(facts.sudo, 120)}"
        remedy = f"let {user} use sudo without a password, or connect as root"
        return [Problem(problem, remedy)]
    return []
