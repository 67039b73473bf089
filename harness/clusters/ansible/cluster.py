"""
Provider `ansible`: bare hosts that are reached by SSH.

Playbooks prepare the hosts and start the daemons.  All of it is in one folder there, but for what
root does: the account of daemons and tasks, a packet filter, the nodes' names in /etc/hosts and a
unit of systemd.
"""

from __future__ import annotations

import os
import re
import sys

from contextlib import suppress

from harness.base.errors import ClusterError, HarnessError, MachineError, SpecError
from harness.base.hadoop import daemons
from harness.base.hadoop.daemons import Layout
from harness.base.records.trial import ClusterSpec, SshAccess
from harness.clusters import state as states
from harness.clusters.ansible import hosts as bare
from harness.clusters.ansible.nodes import HostsState, home_bundle, java_bundle, new_owner
from harness.clusters.ansible.playbook import play, require_tools
from harness.clusters.base import Cluster
from harness.clusters.hadoop_home.home import HadoopHome
from harness.clusters.host import LOOK_S, Host, Running, at_once
from harness.clusters.node import NAME
from harness.clusters.node.fence import ACCOUNT
from harness.clusters.node.health import describe_ending
from harness.clusters.ssh.connection import Connection
from harness.clusters.ssh.host import SshHost
from harness.clusters.survey import Finding

_NOT_SHARED = (
    "daemons and tasks start about a second slower than on other clusters: class-data archives are"
    " only made on hosts that keep Hadoop (cluster.ssh.keep)"
)
_MOST_DEATHS = 2**20  # bytes of a host's record of deaths
_DEATH = re.compile(r'^\{"key": "([a-z0-9-]+)"(?:, "unanswered_s": (\d{1,4}))?', re.MULTILINE)


class AnsibleCluster(Cluster):
    """Hadoop on hosts that are there already; use it as a context manager."""

    provider = "ansible"
    own_need = "ssh"
    needs = (*Cluster.needs, own_need)
    libraries = ("ansible", "ansible_runner", "paramiko")
    extra_fields = frozenset({"hosts", "ssh", "exposed"})
    required_fields = frozenset({"hosts"})
    description = "hosts that are reached by SSH, prepared by Ansible; systemd or plain processes"
    health_sees_all = False
    state_class = HostsState
    _state: HostsState | None

    def __init__(self, name: str, spec: ClusterSpec, home: HadoopHome) -> None:
        """*home* is this machine's: it is copied to the hosts."""
        super().__init__(name, spec, home)
        self._connections: dict[str, Connection] = {}
        self._followers: dict[str, Running] = {}

    @classmethod
    def reach(cls, spec: ClusterSpec) -> str:
        """Who can reach what of the requested cluster, in one sentence."""
        if spec.exposed:
            return "whoever reaches its hosts, where no packet filter can be set (cluster.exposed)"
        return (
            "root and the daemons' own account on its hosts alone, by a packet filter on each;"
            " this machine by SSH"
        )

    @classmethod
    def _end(cls, name: str) -> None:
        """End the daemons, and remove all that was put on the hosts."""
        hosts_state = HostsState.load(name)
        folder = states.cluster_folder(name)
        if hosts_state is None or not hosts_state.touched:
            return
        try:
            play("teardown.yml", hosts_state.inventory(), folder / "ansible")
        except ClusterError as error:
            raise ClusterError(
                f"cluster {name!r} is not completely removed: {error.what}",
                where=error.where,
                fix=f"harness cluster down --name {name}, when the host is back;"
                f" if it is gone for good: rm -r {folder}",
            ) from error

    @classmethod
    def remove(cls, name: str, token: str = "") -> bool:
        """
        Take a cluster of that *token* down and remove it; `False`: there is none.

        Other clusters may be started meanwhile, as that takes a while.  `ClusterError` where
        something is left on a host: then the state stays, so that it can be repeated.
        """
        folder = states.cluster_folder(name)
        with states.exclusive():
            if not folder.exists():
                return False
            states.require_ours(name, token)
            hosts_state = HostsState.load(name)
            maker = hosts_state.maker if hosts_state is not None else None
            if maker is not None and maker.pid != os.getpid() and maker.alive():
                raise _busy_error(name, f"process {maker.pid}")
        cls._end(name)
        with states.exclusive():
            states.remove_folder(name)
        return True

    @staticmethod
    def doctor_check() -> Finding:
        """Whether playbooks can be run from this machine."""
        try:
            AnsibleCluster.require_libraries()
            require_tools()
        except MachineError as error:
            return Finding("ssh", "note", error.what, error.fix)
        return Finding("ssh", "ok", "ansible-runner and ssh, for bare hosts")

    @staticmethod
    def gpus_per_node(workers: int) -> int:
        """`SpecError`: the hosts are not known yet, so how many GPUs they have must be written."""
        raise SpecError(
            f"the GPUs of {workers} hosts cannot be detected",
            where="cluster.node.gpus",
            fix="write how many each worker has; the start checks it with nvidia-smi",
        )

    @property
    def limitations(self) -> tuple[str, ...]:
        """What daemons and tasks do without on hosts where Hadoop is removed after each cluster."""
        shared = self._state is not None and self._state.shared
        return () if shared else (_NOT_SHARED,)

    def is_up(self) -> bool:
        """Whether the hosts were made ready; says nothing of their health."""
        return self._state is not None and self._state.up

    def down(self) -> None:
        """End every process and remove all that was put on the hosts; safe to call twice."""
        try:
            super().down()
        finally:
            for connection in self._connections.values():
                connection.close()
            self._connections.clear()
            self._copied.clear()
            self._followers.clear()

    def _start(self) -> None:
        spec = self.spec
        if len(spec.hosts) < 2 or len(spec.hosts) != spec.workers + 1:
            raise SpecError(
                f"{len(spec.hosts)} hosts for a master and {spec.workers} workers",
                where="cluster.hosts",
                fix="name a master and the workers in an experiment file: hosts: [A, B, ...]",
            )
        with states.exclusive():
            self._require_free()
        self.remove(self.name)  # it takes a while, and keeps nobody out
        with states.exclusive():
            self._require_free()
            if self.folder.exists():
                raise _busy_error(self.name, "another process")
            self._make_folder()
            self._state = HostsState(
                name=self.name, spec=spec, owner=new_owner(), maker=states.Process.of(os.getpid())
            )
            self._state.save()
        try:
            self._prepare(self._state)
        except BaseException:
            with suppress(HarnessError):  # the first error says more
                self.remove(self.name)
            self._state = None
            raise

    def _prepare(self, hosts_state: HostsState) -> None:
        """Query the hosts, write what they need, have Ansible bring it and start the daemons."""
        spec = self.spec
        hosts_state.addresses = [bare.address_of(host) for host in spec.hosts]
        names = {member.name: member.address for member in hosts_state.members}
        connections = [(member, self._connection(member.name)) for member in hosts_state.members]

        def query_all() -> dict[str, bare.Facts]:
            answers = at_once(
                lambda pair: bare.query(*pair, self.name, names, spec.node.gpus), connections
            )
            return dict(zip(names, answers, strict=True))

        facts = query_all()
        hadoop = home_bundle(self.home)
        java = java_bundle(self.home.java) if bare.require_java(facts) else None
        copied_bytes = hadoop.stat().st_size + (java.stat().st_size if java else 0)
        room = bare.ROOM_BYTES + 2 * copied_bytes + bare.ARCHIVES_BYTES
        bare.require_fit(facts, spec, hosts_state.owner, room)
        hosts_state.decide(self.home, facts)
        hosts_state.touched = True
        hosts_state.save()
        if any(host.left for host in facts.values()):  # by one whose supervisor is gone
            play("teardown.yml", hosts_state.inventory(adopt=True), self.folder / "ansible")
            facts = query_all()  # the names in /etc/hosts were its own
            hosts_state.decide(self.home, facts)
            hosts_state.save()
        inventory = hosts_state.site_inventory(self.home, facts, hadoop, java)

        def show(task: str) -> None:
            if sys.stderr.isatty():
                sys.stderr.write(f"ansible: {task}\n")

        play("site.yml", inventory, self.folder / "ansible", progress=show)
        hosts_state.up = True
        hosts_state.maker = None
        hosts_state.save()

    @property
    def _known(self) -> HostsState:
        """The state of a cluster that was started."""
        if self._state is None:
            raise self.not_up_error()
        return self._state

    def _connection(self, name: str) -> Connection:
        if name not in self._connections:
            number = 0 if name == "master" else int(name.removeprefix("worker"))
            host = self.spec.hosts[number]
            self._connections[name] = Connection(host, self.spec.ssh or SshAccess())
        return self._connections[name]

    @property
    def hosts(self) -> tuple[Host, ...]:
        """The nodes, master first."""
        hosts_state = self._known
        layout = self.layout
        # where we are no root there, commands run as the user who connects
        account = ACCOUNT if hosts_state.user == ACCOUNT else ""
        return tuple(
            SshHost(
                member.name,
                member.address,
                layout.data(member),
                self._connection(member.name),
                hosts_state.environment(member),
                account,
            )
            for member in layout.members
        )

    @property
    def layout(self) -> Layout:
        """Where the nodes find Hadoop, their configuration and their data."""
        return self._known.layout

    @property
    def tasks_archive(self) -> str | None:
        """The class-data archive of traced tasks on the hosts."""
        shared = self._known.shared and self.home.trace_path_jar is not None
        return f"{self._known.home}/tasks.jsa" if shared else None

    def python_on(self, host: Host) -> str:
        """Python of that host."""
        return self._known.python[host.name]

    def agent_path(self, host: Host) -> str:
        """The node agent, in the cluster's folder on each host."""
        return f"{self.layout.base}/{NAME}"

    def java_on(self, host: Host) -> str:
        """The ``java`` command of that host."""
        return f"{self._known.java[host.name]}/bin/java"

    @property
    def exec_prefix(self) -> str:
        """The command that leads to the master."""
        ssh = self.spec.ssh or SshAccess()
        return f"ssh -p {ssh.port} {ssh.user}@{self.spec.hosts[0]}"

    def dead_daemons(self) -> dict[str, str]:
        """Daemons that have ended or hang, by each host's own record; all of one that is away."""
        dead: dict[str, str] = {}
        for host in self.hosts:
            daemon_names = {
                daemon.key: daemon.name
                for daemon in daemons.daemons(self.layout)
                if daemon.member.name == host.name
            }
            try:
                record = self._follow_deaths(host)
            except ClusterError:
                self._followers.pop(host.name, None)
                dead |= dict.fromkeys(daemon_names.values(), "died")
                continue
            for daemon_key, unanswered_s in _DEATH.findall(record):
                if daemon_key in daemon_names:
                    dead[daemon_names[daemon_key]] = describe_ending(unanswered_s)
        return dead

    def _follow_deaths(self, host: Host) -> str:
        """The host's record of deaths, by a copy here to which a command on the host adds."""
        record = f"{self.layout.base}/deaths"
        local_copy = self.folder / f"deaths-{host.name}"
        follower = self._followers.get(host.name)
        if follower is None or follower.poll() is not None:
            # what is there already counts at once, before the follower has started
            answer = host.run(["head", "-c", str(_MOST_DEATHS), record], LOOK_S)
            earlier_deaths = answer.out.encode()
            local_copy.write_bytes(earlier_deaths)
            command = ["tail", "-c", f"+{len(earlier_deaths) + 1}", "-F", record]
            self._followers[host.name] = host.start(command, local_copy)
        return local_copy.read_text(errors="replace")


def _busy_error(name: str, starter: str) -> ClusterError:
    """The error for a cluster that another process makes."""
    return ClusterError(
        f"cluster {name!r} is being started by {starter}",
        where=str(states.cluster_folder(name)),
        fix="wait for it to end, or stop it: Ctrl-C undoes what it has done",
    )
