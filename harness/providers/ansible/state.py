"""
What is known between processes of a cluster on bare hosts, what Ansible is told of it, and its end.

Text that a user or a host wrote is wrapped wherever Ansible reads it: no template in it is
evaluated.
"""

from __future__ import annotations

import json
import os

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from harness.errors import ClusterError
from harness.hadoop import daemons
from harness.hadoop.layout import Layout, Member, make_members
from harness.providers import state as states
from harness.providers.ansible import hosts as bare
from harness.providers.ansible.run import play, unsafe
from harness.providers.state import Process
from harness.records.trial import ClusterSpec, SshAccess

_ENVIRONMENT = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}


@dataclass
class HostsState:
    """
    The state file: all that `remove` and other processes need to know.

    *java*, *python* and *units* are by node; *touched* says that something was put on the hosts,
    *up* that they were made ready.  *named*: the nodes whose file of names is written to, each with
    its own further name, where that is to be written, too.  *shared*: JVMs use class-data archives.
    *maker* is the process that is making them ready.
    """

    spec: dict[str, Any]
    addresses: list[str]
    maker: Process | None = None
    base: str = ""
    home: str = ""
    java: dict[str, str] = field(default_factory=dict)
    python: dict[str, str] = field(default_factory=dict)
    units: dict[str, str] = field(default_factory=dict)
    named: dict[str, str] = field(default_factory=dict)
    shared: bool = False
    touched: bool = False
    up: bool = False

    def save(self, folder: Path) -> None:
        """Write the file in one step."""
        part = folder / "state.part"
        part.write_text(json.dumps(asdict(self), indent=1))
        part.replace(folder / "state.json")

    @classmethod
    def load(cls, folder: Path) -> HostsState | None:
        """The state in *folder*, `None` where there is none (or none that can be read)."""
        try:
            fields = json.loads((folder / "state.json").read_text())
            maker = Process(**fields.pop("maker")) if fields["maker"] else fields.pop("maker")
            return cls(**fields, maker=maker)
        except (OSError, ValueError, TypeError, KeyError):
            return None


def claim(name: str, folder: Path, provider: str) -> HostsState:
    """
    Take the name of a cluster, for this process; what a killed one left is removed first.

    `ClusterError` where the cluster is up, or another process makes or removes it.
    """
    with states.claiming(name, provider):
        old = HostsState.load(folder)
    if old is not None and old.up:
        raise ClusterError(
            f"cluster {name!r} is up already",
            where=str(folder),
            fix=f"harness cluster down --name {name}, or choose another name",
        )
    remove(name, folder)
    with states.claiming(name, provider):
        if folder.exists():
            raise _busy(name, folder, "another process")
        states.make_folder(folder, provider)
        state = HostsState({}, [], Process.of(os.getpid()))
        state.save(folder)
    return state


def _busy(name: str, folder: Path, who: str) -> ClusterError:
    return ClusterError(
        f"cluster {name!r} is being started by {who}",
        where=str(folder),
        fix="wait for its end, or end it: Ctrl-C takes back what it has done",
    )


def site_members(state: HostsState) -> tuple[Member, ...]:
    """The nodes: names of ours, addresses of theirs."""
    named = make_members(len(state.addresses) - 1)
    return tuple(Member(m.name, address) for m, address in zip(named, state.addresses, strict=True))


def cluster_base(name: str, state: HostsState) -> str:
    """Folder of a cluster on each of its hosts."""
    return f"{state.base}/clusters/{name}"


def layout_of(name: str, state: HostsState) -> Layout:
    """Where the nodes find Hadoop, their configuration and their data."""
    archive = f"{state.home}/classes.jsa" if state.shared else None
    return Layout(site_members(state), cluster_base(name, state), state.home, archive)


def environment_of(name: str, state: HostsState, member: Member) -> dict[str, str]:
    """Environment of a JVM on *member*: nothing of this machine's gets in."""
    return daemons.environment(
        _ENVIRONMENT, state.java[member.name], layout_of(name, state), member
    )


def inventory_of(name: str, state: HostsState) -> dict[str, Any]:
    """What every playbook is told of the hosts; text that a user wrote is no template."""
    spec = ClusterSpec.model_validate(state.spec)
    ssh, access = spec.ssh or SshAccess(), bare.access_of(spec.ssh)
    members = site_members(state)

    def names(own: Member) -> str:
        further = {own.name: f" {state.named[own.name]}".rstrip()}
        return "\n".join(f"{m.address} {m.name}{further.get(m.name, '')}" for m in members)

    hosts = {
        m.name: {
            "ansible_host": unsafe(host),
            "ansible_python_interpreter": unsafe(state.python[m.name]),
            "harness_member": m.name,
            "harness_python": unsafe(state.python[m.name]),
            "harness_java_home": unsafe(state.java[m.name]),
            "harness_unit": state.units[m.name],
            "harness_names": unsafe(names(m)) if m.name in state.named else "",
        }
        for m, host in zip(members, spec.hosts, strict=True)
    }
    shared = {
        "ansible_user": unsafe(ssh.user),
        "ansible_port": ssh.port,
        "ansible_remote_tmp": unsafe(f"{state.base}/scratch"),
        "harness_user": unsafe(ssh.user),
        "harness_cluster": unsafe(name),
        "harness_base": unsafe(state.base),
        "harness_folder": unsafe(cluster_base(name, state)),
        "harness_home": unsafe(state.home),
        "harness_master": members[0].name,
        "harness_become": ssh.become,
        "harness_keep": ssh.keep,
    }
    if access.key is not None:
        shared["ansible_ssh_private_key_file"] = unsafe(str(access.key))
        shared["ansible_ssh_common_args"] = "-o IdentitiesOnly=yes"  # an agent may have many keys
    return {"all": {"hosts": hosts, "vars": shared}}


def remove(name: str, folder: Path) -> bool:
    """Tear down what the state in *folder* names, and remove it; `False`: there was none."""
    with states.exclusive():
        if not folder.exists():
            return False
        state = HostsState.load(folder)
        maker = state.maker if state is not None else None
        if maker is not None and maker.pid != os.getpid() and maker.alive():
            raise _busy(name, folder, f"process {maker.pid}")
    if state is not None and state.touched:  # takes a while: others may start theirs meanwhile
        teardown(name, folder, state)
    with states.exclusive():
        states.remove_tree(folder)
    return True


def teardown(name: str, folder: Path, state: HostsState) -> None:
    """Have Ansible end the cluster's processes and remove its files; `ClusterError` where not."""
    try:
        play("teardown.yml", inventory_of(name, state), folder / "ansible")
    except ClusterError as error:
        raise ClusterError(
            f"cluster {name!r} is not wholly removed: {error.what}",
            where=error.where,
            fix=f"harness cluster down --name {name}, when the host is back;"
            f" if it is gone for good: rm -r {folder}",
        ) from error
