"""
Bare hosts before anything is put there: asked all at once, and refused with reasons.

The questions are one small program (`harness.node.facts`) that writes
nothing; what a host answers is checked like any text of somebody else's.
"""

from __future__ import annotations

import json
import re
import socket
import time

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from harness.errors import ClusterError, SpecError
from harness.hadoop.layout import Member
from harness.hadoop_home.java import OLDEST
from harness.node import facts as node_facts
from harness.providers.host import printable
from harness.providers.ssh.connection import Access, Connection
from harness.providers.ssh.host import SshHost
from harness.records.trial import Record, SshAccess

MOST_CLOCK_S = 1.0  # phases of a job on two hosts are compared by their clocks
ROOM_BYTES = 3 * 2**29  # beside what is copied; a DataNode wants 1 GiB free for any block
ARCHIVES_BYTES = 2**28
MASTER_PORTS = (8020, 9870, 8030, 8031, 8032, 8033, 8088, 10020, 10033, 19888)
WORKER_PORTS = (9864, 9866, 9867, 8040, 8041, 8042, 13562)
HOSTNAME = r"[A-Za-z0-9]([A-Za-z0-9.-]{0,250}[A-Za-z0-9])?"
_MOST_ANSWER = 2**16
_PLAIN = r"/[A-Za-z0-9._/+@=,-]{1,300}"

_T = TypeVar("_T")
_R = TypeVar("_R")


class JavaThere(Record):
    """A Java of a host; *build* is another one when it is."""

    home: str
    version: str
    build: str

    @property
    def fits(self) -> bool:
        """Whether Hadoop runs on it, and its path can stand in a script."""
        major = re.match(r"(?:1\.)?(\d{1,4})", self.version)
        return bool(major and int(major[1]) >= OLDEST and re.fullmatch(_PLAIN, self.home))


class Facts(Record):
    """
    What a host says of itself; *clock_s* is how far its clock is ahead of ours.

    *marks* say what was put there before, and wholly; *gpus_lack* why it has not the GPUs that it
    is to offer, empty where it has.
    """

    python: str
    user: str
    root: bool
    home: str
    base: str
    machine: str
    kernel: str
    cores: int
    memory_bytes: int
    java: tuple[JavaThere, ...]
    marks: tuple[str, ...]
    free_bytes: int
    writable: bool
    taken: tuple[int, ...]
    unnamed: tuple[str, ...]
    hostname: str
    sudo: str
    systemd: bool
    owner: str
    gpus_lack: str
    time: float
    clock_s: float = 0.0

    @property
    def fit_java(self) -> str:
        """Folder of a Java that fits, empty where there is none."""
        return next((java.home for java in self.java if java.fits), "")

    @property
    def build(self) -> str:
        """Which build that Java is, empty where there is none."""
        return next((java.build for java in self.java if java.fits), "")


def at_once(work: Callable[[_T], _R], items: Sequence[_T]) -> list[_R]:
    """*work* done on all *items* beside each other; `ClusterError` says all that went wrong."""
    with ThreadPoolExecutor(min(32, max(1, len(items)))) as pool:
        futures = [pool.submit(work, item) for item in items]
    errors = [e for future in futures if isinstance(e := future.exception(), ClusterError)]
    if len(errors) > 1:
        raise ClusterError(
            "; ".join(f"{error.what} ({error.where})" for error in errors),
            where=f"{len(errors)} hosts of {len(items)}",
            fix="; ".join(dict.fromkeys(error.fix for error in errors)),
        )
    return [future.result() for future in futures]


def address_of(host: str) -> str:
    """Address of a host; `ClusterError` for a name that stands for none."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError as error:
        raise ClusterError(
            f"no such host: {printable(host)}",
            where="cluster.hosts",
            fix="write its address, or have its name resolved (/etc/hosts)",
        ) from error
    return str(found[0][4][0])


def access_of(ssh: SshAccess | None) -> Access:
    """How the hosts of a specification are reached."""
    ssh = ssh or SshAccess()
    return Access(ssh.user, ssh.port, Path(ssh.key).expanduser() if ssh.key else None)


def ask(
    member: Member, connection: Connection, cluster: str, names: Mapping[str, str], gpus: int = 0
) -> Facts:
    """
    The facts of one host; `ClusterError` where it cannot be reached or has no Python.

    A worker is to offer so many *gpus*.
    """
    master = member.name == "master"
    question = {
        "base": "",
        "cluster": cluster,
        "ports": MASTER_PORTS if master else WORKER_PORTS,
        "names": dict(names),
        "gpus": 0 if master else gpus,
    }
    host = SshHost(member.name, member.address, "/", connection)
    where = f"{member.name} ({connection.where})"
    program = Path(node_facts.__file__).read_text()
    argv = ["python3", "-I", "-c", program, "preflight"]
    begin = time.time()
    done = host.run(argv, 60, json.dumps(question).encode())
    end = time.time()
    if done.status in (126, 127):
        raise ClusterError(
            f"no Python on the host: {printable(done.err.strip())[:200]}",
            where=where,
            fix="on the host: apt-get install -y python3  (3.9 or newer, not python3-minimal)",
        )
    try:
        # cut off, what is too long is no answer: parts of it are told in messages
        facts = Facts.model_validate_json(done.out[:_MOST_ANSWER])
    except ValidationError as error:
        last = printable(done.err.strip().splitlines()[-1])[:200] if done.err.strip() else ""
        raise ClusterError(
            f"the host's Python cannot say what the host is: {last or 'no sensible answer'}",
            where=where,
            fix="on the host: apt-get install -y python3  (3.9 or newer, not python3-minimal)",
        ) from error
    # what the way took may have been spent before the clock was read, or after
    early, late = facts.time - end, facts.time - begin
    clock = 0.0 if early <= 0 <= late else min(early, late, key=abs)
    return facts.model_copy(update={"clock_s": clock})


def refuse(
    facts: Mapping[str, Facts], ssh: SshAccess | None, owner: str, room: Mapping[str, int]
) -> None:
    """
    `ClusterError` that names every host on which the cluster cannot be, with why.

    *facts* and *room* (bytes that are copied there) are by node; *owner* is who asks.
    """
    problems = [
        (name, what, fix)
        for name, found in facts.items()
        for what, fix in _problems(found, ssh or SshAccess(), owner, room[name])
    ]
    if problems:
        raise ClusterError(
            "; ".join(f"{name}: {what}" for name, what, _ in problems),
            where="hosts of the cluster",
            fix="; ".join(dict.fromkeys(fix for _, _, fix in problems)),
        )
    if len({found.machine for found in facts.values()}) > 1:
        kinds = ", ".join(f"{name} {found.machine}" for name, found in facts.items())
        raise SpecError(
            f"hosts of several kinds: {kinds}", where="cluster.hosts", fix="take hosts of one kind"
        )


def _problems(found: Facts, ssh: SshAccess, owner: str, room: int) -> list[tuple[str, str]]:
    said = []
    if found.owner and found.owner != owner:
        said.append(
            (
                f"holds the cluster of another harness ({printable(found.owner)[:120]})",
                "take that one down first, or choose another --name",
            )
        )
    elif found.taken:
        ports = ", ".join(map(str, found.taken))
        fix = "end what listens there: another Hadoop, or another harness's cluster"
        said.append((f"ports {ports} are taken", fix))
    if not re.fullmatch(_PLAIN, found.base):
        fix = "take a user with a home folder of plain letters"
        said.append((f"the folder {printable(found.base)[:120]!r} holds odd characters", fix))
    elif not found.writable:
        fix = "take a user that has a home folder"
        said.append((f"{found.user} cannot write to {found.base}", fix))
    if found.hostname and not re.fullmatch(HOSTNAME, found.hostname):
        fix = "give the host a name of letters and digits, and have it resolved"
        said.append((f"its own name {printable(found.hostname)[:80]!r} stands for no address", fix))
    if found.free_bytes < room:
        what = f"{found.free_bytes // 2**20} MiB are free where {room // 2**20} MiB are needed"
        said.append((f"the disk is too full: {what}", f"make room below {found.home}"))
    if found.gpus_lack:
        fix = "lower cluster.node.gpus; or get nvidia-smi to work on the host: the driver first"
        said.append((f"the GPUs do not work: {printable(found.gpus_lack)[:200]}", fix))
    if abs(found.clock_s) > MOST_CLOCK_S:
        side = "ahead of" if found.clock_s > 0 else "behind"
        what = f"its clock is {abs(found.clock_s):.0f} s {side} ours"
        said.append((what, "have the clocks kept: timedatectl set-ntp true"))
    if (found.unnamed or found.hostname) and not found.root:
        said += _unnamed(found, ssh)
    return said


def _unnamed(found: Facts, ssh: SshAccess) -> list[tuple[str, str]]:
    """Names of nodes must be known on all: nobody may write them to /etc/hosts here."""
    names = ", ".join([*found.unnamed, *([printable(found.hostname)] if found.hostname else [])])
    if not ssh.become:
        fix = "cluster.ssh: {become: true} lets sudo write /etc/hosts; or write it by hand"
        return [(f"does not know {names}, and {found.user} may not name them", fix)]
    if found.sudo:
        fix = f"let {found.user} use sudo without a password, or connect as root"
        return [(f"does not know {names}, and {printable(found.sudo)[:120]}", fix)]
    return []
