"""
What bare hosts become: what is where on each, and the archives by which it is brought there.

The last member of an archive is an empty file, ``complete``: what was cut off while it was unpacked
is unpacked again.
"""

from __future__ import annotations

import base64
import fcntl
import hashlib
import io
import json
import os
import secrets
import socket

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import Field

from harness.base.errors import MachineError
from harness.base.hadoop import daemons, site
from harness.base.hadoop.daemons import Layout, Member, make_members
from harness.base.records.trial import SshAccess
from harness.clusters import archives
from harness.clusters.ansible.hosts import Facts, can_be_root
from harness.clusters.ansible.playbook import unsafe
from harness.clusters.archives import Entries
from harness.clusters.hadoop_home.home import (
    CLASS_LIST,
    TASK_LIST,
    HadoopHome,
    Java,
    file_digest,
    instrumented_digest,
    sums_digest,
)
from harness.clusters.node import NAME, agent_bytes, clear, fence
from harness.clusters.node import archive as class_data
from harness.clusters.state import (
    Process,
    StateFile,
    agent_file,
    cluster_folder,
    clusters_folder,
)

_ENVIRONMENT = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
_FORMAT = 1
_LEFT_OUT = ("src.zip", "jmods", "man", "demo", "include", "docs")


def new_owner() -> str:
    """The owner of a cluster that is about to start: machine, user, state folder, and a token."""
    file = Path("/etc/machine-id")
    machine = file.read_text().strip()[:32] if file.is_file() else "-"
    token = secrets.token_hex(8)
    return f"{socket.gethostname()} {machine} {os.getuid()} {clusters_folder()} {token}"


class HostsState(StateFile):
    """
    The state of a cluster on bare hosts, with all that `remove` needs to know of them.

    *base* is our folder on every host, *home* that of Hadoop; *java*, *python* and *units* are by
    node.  *touched*: something was put on the hosts; *up*: they were made ready.  *named*: the
    nodes whose /etc/hosts is written, each with a further name of its own, or none.  *shared*: JVMs
    use class-data archives.  *maker* is the process that is making the hosts ready.  *user* is the
    account of daemons and tasks; *rooted* are the nodes where root's work is done, *fenced* those
    with a packet filter.  *owner* is this start, for others that share the hosts.
    """

    addresses: list[str] = Field(default_factory=list)
    maker: Process | None = None
    base: str = ""
    home: str = ""
    java: dict[str, str] = Field(default_factory=dict)
    python: dict[str, str] = Field(default_factory=dict)
    units: dict[str, str] = Field(default_factory=dict)
    named: dict[str, str] = Field(default_factory=dict)
    user: str = ""
    rooted: list[str] = Field(default_factory=list)
    fenced: list[str] = Field(default_factory=list)
    secret: str = Field(default_factory=lambda: secrets.token_hex(32))
    owner: str = ""
    shared: bool = False
    touched: bool = False
    up: bool = False

    @property
    def access(self) -> SshAccess:
        """How the hosts are reached."""
        return self.spec.ssh or SshAccess()

    @property
    def members(self) -> tuple[Member, ...]:
        """The nodes: our names, and the addresses of the hosts."""
        named = make_members(len(self.addresses) - 1)
        pairs = zip(named, self.addresses, strict=True)
        return tuple(Member(member.name, address) for member, address in pairs)

    @property
    def layout(self) -> Layout:
        """Where the nodes find Hadoop, their configuration and their data."""
        archive = f"{self.home}/classes.jsa" if self.shared else None
        return Layout(self.members, f"{self.base}/clusters/{self.name}", self.home, archive)

    def environment(self, member: Member) -> dict[str, str]:
        """Environment of a JVM on *member*: nothing of this machine's gets in."""
        return daemons.environment(_ENVIRONMENT, self.java[member.name], self.layout, member)

    def removal(self, member: Member, *, adopt: bool = False) -> dict[str, Any]:
        """
        What `harness.clusters.node.clear` undoes on a host.

        *adopt*: also another's, but for Hadoop, which is counted on already.
        """
        return {
            "cluster": self.name,
            "folder": self.layout.base,
            "base": self.base,
            "owner": "" if adopt else self.owner,
            "unit": self.units[member.name],
            "keep": self.access.keep or adopt,
            "user": self.user if member.name in self.rooted else "",
        }

    def inventory(self, *, adopt: bool = False) -> dict[str, Any]:
        """The inventory of all playbooks; with *adopt*, what is another's is removed, too."""
        hosts = {}
        for member, address in zip(self.members, self.spec.hosts, strict=True):
            names = self._host_names(member)
            removal = json.dumps(self.removal(member, adopt=adopt)).encode()
            hosts[member.name] = {
                "ansible_host": unsafe(address),
                "ansible_python_interpreter": unsafe(self.python[member.name]),
                "harness_member": member.name,
                "harness_python": unsafe(self.python[member.name]),
                "harness_java_home": unsafe(self.java[member.name]),
                "harness_unit": self.units[member.name],
                "harness_become": self.user != fence.ACCOUNT and member.name in self.rooted,
                "harness_removal": base64.b64encode(removal).decode(),
                "harness_names": unsafe(names) if names else "",
            }
        variables = {
            "ansible_user": unsafe(self.access.user),
            "ansible_port": self.access.port,
            "ansible_remote_tmp": unsafe(f"{self.base}/scratch"),
            "harness_clear": str(clear.__file__),
            "harness_cluster": unsafe(self.name),
            "harness_base": unsafe(self.base),
            "harness_folder": unsafe(self.layout.base),
            "harness_home": unsafe(self.home),
        }
        if self.access.key is not None:
            key = str(Path(self.access.key).expanduser())
            variables["ansible_ssh_private_key_file"] = unsafe(key)
            variables["ansible_ssh_common_args"] = "-o IdentitiesOnly=yes"  # an agent may have many
        return {"all": {"hosts": hosts, "vars": variables}}

    def _host_names(self, member: Member) -> str:
        """Lines for /etc/hosts of *member*: all nodes, and its own further name; empty if none."""
        if member.name not in self.named:
            return ""
        lines = []
        for node in self.members:
            further_name = f" {self.named[node.name]}" if node == member else ""
            lines.append(f"{node.address} {node.name}{further_name}".rstrip())
        return "\n".join(lines)

    def decide(self, home: HadoopHome, facts: Mapping[str, Facts]) -> None:
        """Set what is where: the same on each host, but for Java and Python."""
        self.base = next(iter(facts.values())).base
        self.home = f"{self.base}/hadoop-{home_digest(home)}"
        brought_java = f"{self.base}/java-{java_digest(home.java)}"
        for node_name, host in facts.items():
            self.python[node_name] = host.python
            self.java[node_name] = host.fit_java.home if host.fit_java else brought_java
            self._decide_rights(node_name, host)
            if host.unnamed or host.hostname:
                self.named[node_name] = host.hostname
        # All hosts or none: tasks of a job have the same options on each node.
        archived = all(self._archives(home, host) <= {*host.copied} for host in facts.values())
        self.shared = archived or self.access.keep

    def _decide_rights(self, node_name: str, host: Facts) -> None:
        """Set who runs daemons on a host, and what of root's work can be done there."""
        self.user = fence.ACCOUNT if host.root else host.user
        is_rooted = can_be_root(host, self.access)
        if is_rooted:
            self.rooted.append(node_name)
        if is_rooted and not host.filter:
            self.fenced.append(node_name)
        unit = f"mapreduce-harness-{self.name}.service"
        self.units[node_name] = unit if is_rooted and host.systemd else ""

    def site_inventory(
        self, home: HadoopHome, facts: Mapping[str, Facts], hadoop: Path, java: Path | None
    ) -> dict[str, Any]:
        """What ``site.yml`` is given; the nodes' bundles are written to the cluster's folder."""
        folder = cluster_folder(self.name) / "archives"
        folder.mkdir(parents=True, exist_ok=True)
        fresh: dict[str, dict[str, str]] = {}
        inventory = self.inventory()
        for member in self.members:
            host_facts = facts[member.name]
            bundle = folder / f"{member.name}.tar.base64"
            inventory["all"]["hosts"][member.name] |= {
                "harness_home_archive": str(hadoop),
                "harness_java_archive": "" if host_facts.fit_java else str(java),
                "harness_node_archive": str(bundle),
                "harness_node_digest": self._write_bundle(home, bundle, member),
                "harness_archive_key": _java_build(home, host_facts) if self.shared else "",
                "harness_traced": home.trace_path_jar is not None,
                "harness_gpus": self.spec.node.gpus if member.name != "master" else 0,
            }
            needed = {f"{Path(self.home).name}/complete"}
            if host_facts.fit_java is None:
                needed.add(f"java-{java_digest(home.java)}/complete")
            if self.shared:
                needed |= self._archives(home, host_facts)
            if not needed <= {*host_facts.copied}:
                fresh[member.name] = {}
        inventory["all"]["children"] = {"harness_fresh": {"hosts": fresh}}
        return inventory

    def _archives(self, home: HadoopHome, host_facts: Facts) -> set[str]:
        """Marks of the class-data archives of a host's Java."""
        names = ("classes", "tasks") if home.trace_path_jar is not None else ("classes",)
        build = _java_build(home, host_facts)
        return {f"{Path(self.home).name}/{archive_name}-{build}" for archive_name in names}

    def _write_bundle(self, home: HadoopHome, file: Path, member: Member) -> str:
        """
        Write all that a node needs to *file*, as the base64 of an archive; its digest.

        The last entry is named after it: ``made-DIGEST``.
        """
        layout = self.layout
        java = f"{self.java[member.name]}/bin/java"
        plan = daemons.supervisor_plan(layout, [member], java, self.environment, at_once=False)
        addresses = [*self.addresses] if member.name in self.fenced else []
        plan |= {**self.removal(member), "member": member.name, "addresses": addresses}
        plan["nonce"] = fence.nonce_of(self.secret)
        plan["clear"] = True
        conf = f"conf/{member.name}"
        site_files = site.site_files(self.spec, layout, member)
        files = {
            f"{conf}/{name}": text.encode()
            for name, text in site.conf_texts(site_files, self.secret).items()
        }
        files["plan.json"] = json.dumps(plan, indent=1).encode()
        files["owner"] = f"{self.owner}\n".encode()
        files["deaths"] = b""
        files[NAME] = agent_bytes()
        if member == layout.master and home.formatted is not None:
            for path in sorted(home.formatted.rglob("*")):
                if path.is_file():
                    inner_path = path.relative_to(home.formatted)
                    files[f"nodes/master/name/{inner_path}"] = path.read_bytes()
        folders = ["daemons", "logs", f"nodes/{member.name}/jtmp"]
        digests = sorted((name, hashlib.sha256(data).hexdigest()) for name, data in files.items())
        digest = _short_digest([digests, folders])
        packed = io.BytesIO()
        archives.pack({**dict.fromkeys(folders), **files, f"made-{digest}": b""}, packed)
        file.write_bytes(base64.encodebytes(packed.getvalue()))
        return digest


def home_digest(home: HadoopHome) -> str:
    """A short hash that names a Hadoop home on hosts, by all that is in it."""
    lists = [(name, file_digest(class_list)) for name, class_list in _class_lists().items()]
    # hosts run one verb of the agent that is beside Hadoop: other changes bring no jars again
    lists.append((NAME, file_digest(Path(class_data.__file__))))
    lists.append(("fence.jar", file_digest(home.path / "fence.jar")))
    return _short_digest([sums_digest(home.sums), instrumented_digest(home), lists, _FORMAT])


def home_bundle(home: HadoopHome) -> Path:
    """The Hadoop home as one archive: jars, the folders of web applications, lists of classes."""
    file_names = [*sorted(home.sums), "path.jar", "fence.jar", "etc"]
    if home.trace_path_jar is not None:
        file_names += ["lib-trace", "path-trace.jar"]

    def entries() -> Entries:
        return {NAME: agent_file(), **_class_lists(), **_tree(home.path, file_names, "")}

    return _bundle(f"hadoop-{home_digest(home)}.tar", entries)


def java_digest(java: Java) -> str:
    """A short hash that names our Java on hosts."""
    return _short_digest([java.version, os.uname().machine, _FORMAT])


def _java_build(home: HadoopHome, facts: Facts) -> str:
    """The build of the Java that a host uses: a class-data archive fits one build only."""
    return facts.fit_java.build if facts.fit_java else java_digest(home.java)


def java_bundle(java: Java) -> Path:
    """This machine's Java as one archive with the folder ``java-DIGEST``, links followed."""
    folder_name = f"java-{java_digest(java)}"
    file_names = sorted(entry.name for entry in java.home.iterdir() if entry.name not in _LEFT_OUT)
    return _bundle(f"{folder_name}.tar", lambda: _tree(java.home, file_names, f"{folder_name}/"))


def _short_digest(facts: object) -> str:
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:12]


def _class_lists() -> dict[str, Path]:
    """The lists that class-data archives are made of, by their names in the bundle."""
    named = {"classes.lst": CLASS_LIST, "tasks.lst": TASK_LIST}
    named |= {file.name: file for file in sorted(CLASS_LIST.parent.glob("lambdas-*.lst"))}
    return {f"lists/{name}": file for name, file in named.items() if file.is_file()}


def _bundle(name: str, entries: Callable[[], Entries]) -> Path:
    """The archive of that name, kept from one start to the next; written in one step."""
    bundles_folder = clusters_folder().parent / "archives"
    bundles_folder.mkdir(mode=0o700, exist_ok=True)
    bundle = bundles_folder / name
    if bundle.is_file():
        return bundle
    # of one name: what a killed harness left of it is written anew
    partial_file = bundle.with_name(f"{name}.partial")
    try:
        with partial_file.open("ab") as packed:
            fcntl.flock(packed, fcntl.LOCK_EX)
            if not bundle.is_file():
                packed.seek(0)
                packed.truncate()
                archives.pack(entries(), packed)
                partial_file.replace(bundle)
    except OSError as error:
        raise MachineError(
            f"the archive {name} cannot be made: {error.strerror}",
            where=str(error.filename or bundles_folder),
            fix="free some space, or let this user read it",
        ) from error
    finally:
        partial_file.unlink(missing_ok=True)
    return bundle


def _tree(root: Path, names: Iterable[str], prefix: str) -> Entries:
    """All below *names* by its name in the archive, links followed; and ``complete`` at the end."""
    paths = []
    for name in names:
        paths.append(root / name)
        for parent, folders, files in os.walk(root / name, followlinks=True):
            folders.sort()
            below = (Path(parent, entry_name) for entry_name in sorted([*folders, *files]))
            paths += [path for path in below if path.exists()]  # a packager's link may lead nowhere
    entries: dict[str, Path | bytes | None] = {}
    for path in paths:
        entries[f"{prefix}{path.relative_to(root)}"] = None if path.is_dir() else path
    entries[f"{prefix}complete"] = b""
    return entries
