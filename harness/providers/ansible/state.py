"""
What processes know of a cluster on bare hosts, what Ansible is given of it, and its end.

Text that a user or a host wrote is wrapped wherever Ansible reads it: no template in it is
evaluated.
"""

from __future__ import annotations

import os

from pathlib import Path
from typing import Any

from pydantic import Field

from harness.errors import ClusterError
from harness.hadoop import daemons
from harness.hadoop.daemons import Layout, Member, make_members
from harness.providers import state as states
from harness.providers.ansible.playbook import play, unsafe
from harness.providers.state import Process, StateFile
from harness.records.trial import SshAccess

_ENVIRONMENT = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}


class HostsState(StateFile):
    """
    Also all that `remove` needs to know of the hosts.

    *base* is our folder on every host, *home* that of Hadoop; *java*, *python* and *units* are by
    node.  *touched*: something was put on the hosts; *up*: they were made ready.  *named*: the
    nodes whose /etc/hosts is written, each with a further name of its own, or none.  *shared*: JVMs
    use class-data archives.  *maker* is the process that is making the hosts ready.
    """

    addresses: list[str] = Field(default_factory=list)
    maker: Process | None = None
    base: str = ""
    home: str = ""
    java: dict[str, str] = Field(default_factory=dict)
    python: dict[str, str] = Field(default_factory=dict)
    units: dict[str, str] = Field(default_factory=dict)
    named: dict[str, str] = Field(default_factory=dict)
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

    def inventory(self) -> dict[str, Any]:
        """What every playbook is given of the hosts."""
        hosts = {}
        for member, address in zip(self.members, self.spec.hosts, strict=True):
            names = ""
            if member.name in self.named:
                lines = [f"{other.address} {other.name}" for other in self.members]
                own = self.members.index(member)
                lines[own] = f"{lines[own]} {self.named[member.name]}".rstrip()
                names = "\n".join(lines)
            hosts[member.name] = {
                "ansible_host": unsafe(address),
                "ansible_python_interpreter": unsafe(self.python[member.name]),
                "harness_member": member.name,
                "harness_python": unsafe(self.python[member.name]),
                "harness_java_home": unsafe(self.java[member.name]),
                "harness_unit": self.units[member.name],
                "harness_names": unsafe(names) if names else "",
            }
        variables = {
            "ansible_user": unsafe(self.access.user),
            "ansible_port": self.access.port,
            "ansible_remote_tmp": unsafe(f"{self.base}/scratch"),
            "harness_user": unsafe(self.access.user),
            "harness_cluster": unsafe(self.name),
            "harness_base": unsafe(self.base),
            "harness_folder": unsafe(self.layout.base),
            "harness_home": unsafe(self.home),
            "harness_master": self.members[0].name,
            "harness_become": self.access.become,
            "harness_keep": self.access.keep,
        }
        if self.access.key is not None:
            key = str(Path(self.access.key).expanduser())
            variables["ansible_ssh_private_key_file"] = unsafe(key)
            variables["ansible_ssh_common_args"] = "-o IdentitiesOnly=yes"  # an agent may have many
        return {"all": {"hosts": hosts, "vars": variables}}


def remove(name: str) -> bool:
    """
    Take a cluster down and remove all of it; `False`: there was none.  Safe to repeat.

    `ClusterError` where a host keeps something: then the state stays, to try again.
    """
    cluster_folder = states.cluster_folder(name)
    with states.exclusive():
        if not cluster_folder.exists():
            return False
        hosts_state = HostsState.load(name)
        maker = hosts_state.maker if hosts_state is not None else None
        if maker is not None and maker.pid != os.getpid() and maker.alive():
            raise busy_error(name, f"process {maker.pid}")
    # It takes a while, and is not exclusive: other clusters may be started meanwhile.
    if hosts_state is not None and hosts_state.touched:
        try:
            play("teardown.yml", hosts_state.inventory(), cluster_folder / "ansible")
        except ClusterError as error:
            raise ClusterError(
                f"cluster {name!r} is not completely removed: {error.what}",
                where=error.where,
                fix=f"harness cluster down --name {name}, when the host is back;"
                f" if it is gone for good: rm -r {cluster_folder}",
            ) from error
    with states.exclusive():
        states.remove_tree(cluster_folder)
    return True


def busy_error(name: str, starter: str) -> ClusterError:
    """The error for a cluster that another process makes."""
    return ClusterError(
        f"cluster {name!r} is being started by {starter}",
        where=str(states.cluster_folder(name)),
        fix="wait for it to end, or stop it: Ctrl-C undoes what it has done",
    )
