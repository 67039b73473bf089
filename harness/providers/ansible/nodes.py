"""What bare hosts become: what lies where on each, and what is brought there."""

from __future__ import annotations

import json
import os

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.errors import ClusterError, SpecError
from harness.hadoop import daemons, site
from harness.hadoop.layout import Layout, Member
from harness.hadoop_home.home import HadoopHome
from harness.providers.ansible import archives
from harness.providers.ansible.hosts import Facts
from harness.providers.ansible.state import HostsState, environment_of, inventory_of, layout_of
from harness.providers.host import printable
from harness.records.trial import ClusterSpec, SshAccess


def lack_java(facts: Mapping[str, Facts]) -> bool:
    """Whether a host needs our Java; `ClusterError` where ours would not run there."""
    lacking = [name for name, found in facts.items() if not found.fit_java]
    foreign = [name for name in lacking if facts[name].machine != os.uname().machine]
    if foreign:
        raise ClusterError(
            f"{', '.join(foreign)}: no Java 17 or newer, and ours is for another processor",
            where="hosts of the cluster",
            fix="on the hosts: apt-get install -y openjdk-17-jre-headless",
        )
    return bool(lacking)


@dataclass(frozen=True, slots=True)
class Nodes:
    """The nodes of a cluster to be made; *owner* is written on each host."""

    name: str
    spec: ClusterSpec
    home: HadoopHome
    state: HostsState
    owner: str

    def decide(self, facts: Mapping[str, Facts]) -> None:
        """Write to the state what lies where: the same on each host, but for Java and Python."""
        bases = {found.base for found in facts.values()}
        if len(bases) > 1:
            raise SpecError(
                f"the user's home folders differ: {', '.join(sorted(map(printable, bases)))}",
                where="cluster.hosts",
                fix="take a user with the same home folder on every host",
            )
        state, become = self.state, (self.spec.ssh or SshAccess()).become
        state.base = bases.pop()
        state.home = f"{state.base}/hadoop-{archives.home_digest(self.home)}"
        brought = f"{state.base}/java-{archives.java_digest(self.home.java)}"
        unit = f"mapreduce-harness-{self.name}.service"
        for name, found in facts.items():
            able = found.root or (become and not found.sudo)
            state.python[name] = found.python
            state.java[name] = found.fit_java or brought
            state.units[name] = unit if found.systemd and able else ""
            if found.unnamed or found.hostname:
                state.named[name] = found.hostname
        archived = all(self._archives(found) <= {*found.marks} for found in facts.values())
        state.shared = archived or (self.spec.ssh or SshAccess()).keep

    def _archives(self, found: Facts) -> set[str]:
        """Marks of the class-data archives of a host's Java."""
        names = ("classes", "tasks") if self.home.trace_path_jar is not None else ("classes",)
        return {f"{Path(self.state.home).name}/{name}-{self._key(found)}" for name in names}

    def _key(self, found: Facts) -> str:
        return found.build or archives.java_digest(self.home.java)

    def _lacks(self, found: Facts) -> bool:
        """Whether anything has to be brought to a host but its configuration."""
        wanted = {f"{Path(self.state.home).name}/complete"}
        if not found.fit_java:
            wanted.add(f"java-{archives.java_digest(self.home.java)}/complete")
        if self.state.shared:
            wanted |= self._archives(found)
        return not wanted <= {*found.marks}

    def inventory(
        self, facts: Mapping[str, Facts], folder: Path, hadoop: Path, java: Path | None
    ) -> dict[str, Any]:
        """What ``site.yml`` is told; the nodes' archives are written to *folder*."""
        folder.mkdir(exist_ok=True)
        inventory = inventory_of(self.name, self.state)
        for member in layout_of(self.name, self.state).members:
            file = folder / f"{member.name}.tar.base64"
            found = facts[member.name]
            inventory["all"]["hosts"][member.name] |= {
                "harness_home_archive": str(hadoop),
                "harness_java_archive": "" if found.fit_java else str(java),
                "harness_node_archive": str(file),
                "harness_node_digest": self._write_node(file, member),
                "harness_archive_key": self._key(found) if self.state.shared else "",
                "harness_traced": self.home.trace_path_jar is not None,
                "harness_gpus": self.spec.node.gpus if member.name != "master" else 0,
            }
        fresh: dict[str, Any] = {name: {} for name, found in facts.items() if self._lacks(found)}
        inventory["all"]["children"] = {"harness_fresh": {"hosts": fresh}}
        return inventory

    def _write_node(self, file: Path, member: Member) -> str:
        """The archive of one node: configuration, plan of its daemons, programs, empty folders."""
        layout = layout_of(self.name, self.state)
        files = {
            f"conf/{member.name}/{name}": site.render_xml(properties).encode()
            for name, properties in site.site_files(self.spec, layout, member).items()
        }
        files[f"conf/{member.name}/log4j.properties"] = site.LOG4J.encode()
        files["plan.json"] = json.dumps(self._plan(layout, member), indent=1).encode()
        files["owner"] = f"{self.owner}\n".encode()
        files["deaths"] = b""  # made by root, who starts units, it would be closed to the keeper
        folders = ["logs", "daemons", f"nodes/{member.name}/jtmp"]
        master = member == layout.master
        return archives.node_archive(file, files, folders, self.home.formatted if master else None)

    def _plan(self, layout: Layout, member: Member) -> dict[str, Any]:
        base = layout.base
        return {
            "member": member.name,
            "folder": base,
            "unit": self.state.units[member.name],
            "control": f"{base}/control",
            "deaths": f"{base}/deaths",
            "daemons_folder": f"{base}/daemons",
            "daemons": [
                {
                    "key": daemon.key,
                    "argv": self._argv(layout, daemon),
                    "env": environment_of(self.name, self.state, member),
                    "cwd": layout.data(member),
                    "log": f"{base}/logs/{daemon.key}.log",
                    "at_once": False,
                }
                for daemon in daemons.daemons(layout)
                if daemon.member == member
            ],
        }

    def _argv(self, layout: Layout, daemon: daemons.Daemon) -> list[str]:
        """The daemon's command; the history server's begins when HDFS answers."""
        node, base = daemon.member.name, layout.base
        argv = daemons.daemon_argv(f"{self.state.java[node]}/bin/java", layout, daemon)
        if daemon.kind != "historyserver":
            return argv
        # started before HDFS answers, it sleeps 10 s between its tries
        url = f"http://{layout.master.at('namenode_http')}{_NAME_SPACE}"
        agent = [f"{base}/{archives.AGENT}", "await", f"{base}/plan.json", url, "Operational"]
        return [self.state.python[node], "-I", "-S", *agent, *argv]


_NAME_SPACE = "/jmx?qry=Hadoop:service=NameNode,name=FSNamesystemState"
