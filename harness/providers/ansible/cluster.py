"""
Provider `ansible`: bare hosts that are reached by SSH.

Playbooks prepare the hosts and start the daemons; during trials commands go through
`harness.providers.ssh`.  The hosts need sshd and Python 3.9; Hadoop is brought, and Java where
there is none.  All of it lies in one folder of the user there, but for the nodes' names in
/etc/hosts and a unit of systemd where root is at hand; `remove` takes all of that away again.
"""

from __future__ import annotations

import os
import re
import socket
import sys

from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from harness.errors import ClusterError, HarnessError, SpecError
from harness.hadoop import daemons
from harness.hadoop.layout import Layout
from harness.hadoop_home.home import HadoopHome
from harness.providers import state as states
from harness.providers.ansible import archives
from harness.providers.ansible import hosts as bare
from harness.providers.ansible.archives import AGENT
from harness.providers.ansible.nodes import Nodes, lack_java
from harness.providers.ansible.run import play
from harness.providers.ansible.state import (
    HostsState,
    claim,
    environment_of,
    layout_of,
    remove,
    site_members,
)
from harness.providers.base import Cluster
from harness.providers.host import Host, Running, printable
from harness.providers.ids import application_name
from harness.providers.ssh.collect import Source, collect
from harness.providers.ssh.connection import Connection
from harness.providers.ssh.host import SshHost
from harness.records.trial import ClusterSpec, SshAccess

_WANTED = r"container_[0-9e_]{1,80}/[A-Za-z0-9][A-Za-z0-9._-]{0,120}"
_NOT_SHARED = (
    "daemons and tasks start about a second slower than on other clusters: class-data archives are"
    " only made on hosts that keep Hadoop (cluster.ssh.keep)"
)
_MOST_DEATHS = 2**20  # bytes of a host's record of deaths


class AnsibleCluster(Cluster):
    """Hadoop on hosts that are there already; use it as a context manager."""

    provider = "ansible"
    needs = (*Cluster.needs, "ssh")
    extra_fields, required_fields = frozenset({"hosts", "ssh"}), frozenset({"hosts"})
    description = "hosts that are reached by SSH, prepared by Ansible; systemd or plain processes"
    waiter_sees_all = False

    def __init__(self, name: str, spec: ClusterSpec, home: HadoopHome) -> None:
        """*home* is this machine's: it is copied to the hosts."""
        super().__init__(name, spec, home)
        self._state: HostsState | None = None
        self._connections: dict[str, Connection] = {}
        self._mourners: dict[str, Running] = {}

    @classmethod
    def attach(cls, name: str) -> Self:
        """The cluster of that name, started by whichever process."""
        state = HostsState.load(states.cluster_folder(name))
        spec = ClusterSpec.model_validate(state.spec) if state is not None else ClusterSpec()
        cluster = cls(name, spec, HadoopHome.find())
        cluster._state = state
        return cluster

    @staticmethod
    def remove(name: str) -> bool:
        """Take a cluster down and remove all of it; `False`: there was none.  Safe to repeat."""
        return remove(name, states.cluster_folder(name))

    @staticmethod
    def gpus_per_node(workers: int) -> int:
        """Not known before the hosts are named: `SpecError`."""
        raise SpecError(
            f"the GPUs of {workers} hosts are not looked for",
            where="cluster.node.gpus",
            fix="write how many each worker has; the start checks it with nvidia-smi",
        )

    @property
    def losses(self) -> tuple[str, ...]:
        """What hosts do without that keep nothing."""
        shared = self._state is not None and self._state.shared
        return () if shared else (_NOT_SHARED,)

    def is_up(self) -> bool:
        """Whether the hosts were made ready; says nothing of their health."""
        return self._state is not None and self._state.up

    # life

    def down(self) -> None:
        """End every process and remove all that was put on the hosts; safe to call twice."""
        try:
            super().down()
        finally:
            for connection in self._connections.values():
                connection.close()
            self._state = None
            self._connections.clear()
            self._brought.clear()
            self._mourners.clear()

    def _start(self) -> None:
        spec = self.spec
        if len(spec.hosts) < 2 or len(spec.hosts) != spec.workers + 1:
            raise SpecError(
                f"{len(spec.hosts)} hosts for a master and {spec.workers} workers",
                where="cluster.hosts",
                fix="name a master and the workers in an experiment file: hosts: [A, B, ...]",
            )
        self._state = claim(self.name, self.folder, self.provider)
        try:
            self._prepare()
        except BaseException:
            with suppress(HarnessError):  # the first error says more
                remove(self.name, self.folder)
            self._state = None
            raise

    def _prepare(self) -> None:
        """Ask the hosts, write what they need, have Ansible bring it and start the daemons."""
        assert self._state is not None
        self._state.addresses = [bare.address_of(host) for host in self.spec.hosts]
        self._state.spec = self.spec.model_dump(mode="json")
        members = site_members(self._state)
        names = {m.name: m.address for m in members}
        ways = [(m, self._connection(m.name)) for m in members]
        gpus = self.spec.node.gpus
        asked = bare.at_once(lambda way: bare.ask(*way, self.name, names, gpus), ways)
        facts = {m.name: found for m, found in zip(members, asked, strict=True)}
        hadoop = archives.home_archive(self.home)
        java = archives.java_archive(self.home.java) if lack_java(facts) else None
        copied = hadoop.stat().st_size + (java.stat().st_size if java else 0)
        room = dict.fromkeys(facts, bare.ROOM_BYTES + 2 * copied + bare.ARCHIVES_BYTES)
        bare.refuse(facts, self.spec.ssh, self._owner, room)
        nodes = Nodes(self.name, self.spec, self.home, self._state, self._owner)
        nodes.decide(facts)
        self._state.save(self.folder)
        inventory = nodes.inventory(facts, self.folder / "archives", hadoop, java)
        self._state.touched = True
        self._state.save(self.folder)
        play("site.yml", inventory, self.folder / "ansible", progress=_progress)
        self._state.up, self._state.maker = True, None
        self._state.save(self.folder)

    # doors

    @property
    def _ssh(self) -> SshAccess:
        return self.spec.ssh or SshAccess()

    @property
    def _owner(self) -> str:
        """Who we are to other harnesses: machine, user and folder."""
        return f"{socket.gethostname()} {os.getuid()} {self.folder}"

    @property
    def _known(self) -> HostsState:
        if self._state is None:
            raise self.not_up()
        return self._state

    def _connection(self, name: str) -> Connection:
        if name not in self._connections:
            number = 0 if name == "master" else int(name.removeprefix("worker"))
            host = self.spec.hosts[number]
            self._connections[name] = Connection(host, bare.access_of(self.spec.ssh))
        return self._connections[name]

    @property
    def hosts(self) -> tuple[Host, ...]:
        """The nodes, master first."""
        layout = self.layout
        return tuple(
            SshHost(
                m.name,
                m.address,
                layout.data(m),
                self._connection(m.name),
                environment_of(self.name, self._known, m),
            )
            for m in layout.members
        )

    @property
    def layout(self) -> Layout:
        """Where the nodes find Hadoop, their configuration and their data."""
        return layout_of(self.name, self._known)

    @property
    def java(self) -> str:
        """The ``java`` command of the master."""
        return self.java_on(self.gateway)

    @property
    def tasks_archive(self) -> str | None:
        """The class-data archive of traced tasks on the hosts."""
        known = self._known
        shared = known.shared and self.home.trace_path_jar is not None
        return f"{known.home}/tasks.jsa" if shared else None

    @property
    def python(self) -> str:
        """Python of the master."""
        return self._known.python["master"]

    def python_on(self, host: Host) -> str:
        """Python of that host."""
        return self._known.python[host.name]

    def agent_path(self, host: Host) -> str:
        """The node agent lies in the cluster's folder on each host."""
        del host
        return f"{self.layout.base}/{AGENT}"

    def java_on(self, host: Host) -> str:
        """The ``java`` command of that host."""
        return f"{self._known.java[host.name]}/bin/java"

    @property
    def way_in(self) -> str:
        """The command that leads to the master."""
        return f"ssh -p {self._ssh.port} {self._ssh.user}@{self.spec.hosts[0]}"

    def _supervision(self) -> dict[str, Any]:
        return {"deaths": f"{self.layout.base}/deaths"}

    # evidence

    @cached_property
    def _daemons(self) -> tuple[daemons.Daemon, ...]:
        return daemons.daemons(self.layout)

    def dead_daemons(self) -> list[str]:
        """
        Daemons that have ended (``datanode on worker2``); all of a host that cannot be reached.

        Each host's own record of deaths is followed: nothing runs there when this is asked.
        """
        dead: list[str] = []
        for host in self.hosts:
            own = {d.key: d.name for d in self._daemons if d.member.name == host.name}
            log = self.folder / f"deaths-{host.name}"
            if not self._followed(host, log):
                dead += own.values()
                continue
            for line in log.read_text(errors="replace").splitlines():
                match = re.match(r'\{"key": "([a-z0-9-]+)"', line)
                dead += [own[match[1]]] if match and match[1] in own else []
        return list(dict.fromkeys(dead))

    def _followed(self, host: Host, log: Path) -> bool:
        """Have the host's record of deaths copied to *log*; `False`: it cannot be reached."""
        mourner = self._mourners.get(host.name)
        with suppress(ClusterError):
            if mourner is not None and mourner.poll() is None:
                return True
            deaths = f"{self.layout.base}/deaths"
            known = host.run(["head", "-c", str(_MOST_DEATHS), deaths], 20).out.encode()
            log.write_bytes(known)  # who has just come is told at once, too
            argv = ["tail", "-c", f"+{len(known) + 1}", "-F", deaths]
            self._mourners[host.name] = host.start(argv, log)
            return True
        self._mourners.pop(host.name, None)
        return False

    def daemon_logs(self, lines: int = 20) -> dict[str, str]:
        """The last lines of every daemon's log, by its name; safe to print."""
        base = self.layout.base

        def of_host(host: Host) -> dict[str, str]:
            found = {}
            for daemon in (d for d in self._daemons if d.member.name == host.name):
                argv = ["tail", "-c", str(400 * lines), f"{base}/logs/{daemon.key}.log"]
                try:
                    text = host.run(argv, 20).out
                except ClusterError as error:
                    text = error.what
                found[daemon.name] = printable("\n".join(text.splitlines()[-lines:]))
            return found

        known: dict[str, str] = {}
        for found in bare.at_once(of_host, self.hosts):
            known |= found
        return {daemon.name: known[daemon.name] for daemon in self._daemons}

    def container_logs(self, application_id: str, into: Path) -> list[Path]:
        """Copy an application's logs of all nodes to ``into/<node>/<container>/<file>``."""
        application = application_name(application_id)
        sources = [
            Source(host, f"{host.folder}/userlogs/{application}", into / host.name)
            for host in self.hosts[1:]
        ]
        copied = collect(
            sources,
            lambda host: self.agent(host, "pack"),
            wanted=_WANTED,
        )
        for source in sources:
            with suppress(OSError):  # a node without containers of the job
                source.into.rmdir()
        return copied


def _progress(task: str) -> None:
    """A line for people who wait."""
    if sys.stderr.isatty():
        sys.stderr.write(f"ansible: {task}\n")
        sys.stderr.flush()
