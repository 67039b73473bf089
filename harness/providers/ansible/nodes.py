"""What bare hosts become: what is where on each, and what is brought there."""

from __future__ import annotations

import json

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.hadoop import daemons, site
from harness.hadoop.daemons import Member
from harness.hadoop_home.home import HadoopHome
from harness.node import NAME
from harness.providers.ansible.bundles import home_digest, java_digest, write_node_bundle
from harness.providers.ansible.hosts import Facts
from harness.providers.ansible.state import HostsState

_NAME_SPACE = "/jmx?qry=Hadoop:service=NameNode,name=FSNamesystemState"


@dataclass(frozen=True, slots=True)
class Nodes:
    """The nodes of a cluster to be made; *owner* is written on each host."""

    state: HostsState
    home: HadoopHome
    owner: str

    def decide(self, facts: Mapping[str, Facts]) -> None:
        """Write to the state what is where: the same on each host, but for Java and Python."""
        hosts_state = self.state
        hosts_state.base = next(iter(facts.values())).base
        hosts_state.home = f"{hosts_state.base}/hadoop-{home_digest(self.home)}"
        brought_java = f"{hosts_state.base}/java-{java_digest(self.home.java)}"
        for node_name, host in facts.items():
            can_be_root = host.root or (hosts_state.access.become and not host.sudo)
            unit = f"mapreduce-harness-{hosts_state.name}.service"
            hosts_state.python[node_name] = host.python
            hosts_state.java[node_name] = host.fit_java.home if host.fit_java else brought_java
            hosts_state.units[node_name] = unit if host.systemd and can_be_root else ""
            if host.unnamed or host.hostname:
                hosts_state.named[node_name] = host.hostname
        # All hosts or none: tasks of a job have the same options on each node.
        archived = all(self._archives(host) <= {*host.copied} for host in facts.values())
        hosts_state.shared = archived or hosts_state.access.keep

    def inventory(
        self, facts: Mapping[str, Facts], folder: Path, hadoop: Path, java: Path | None
    ) -> dict[str, Any]:
        """What ``site.yml`` is given; the nodes' bundles are written to *folder*."""
        folder.mkdir(exist_ok=True)
        hosts_state = self.state
        fresh: dict[str, dict[str, str]] = {}
        inventory = hosts_state.inventory()
        for member in hosts_state.members:
            host_facts, bundle = facts[member.name], folder / f"{member.name}.tar.base64"
            inventory["all"]["hosts"][member.name] |= {
                "harness_home_archive": str(hadoop),
                "harness_java_archive": "" if host_facts.fit_java else str(java),
                "harness_node_archive": str(bundle),
                "harness_node_digest": self._write_bundle(bundle, member),
                "harness_archive_key": self._java_build(host_facts) if hosts_state.shared else "",
                "harness_traced": self.home.trace_path_jar is not None,
                "harness_gpus": hosts_state.spec.node.gpus if member.name != "master" else 0,
            }
            needed = {f"{Path(hosts_state.home).name}/complete"}
            if host_facts.fit_java is None:
                needed.add(f"java-{java_digest(self.home.java)}/complete")
            if hosts_state.shared:
                needed |= self._archives(host_facts)
            if not needed <= {*host_facts.copied}:
                fresh[member.name] = {}
        inventory["all"]["children"] = {"harness_fresh": {"hosts": fresh}}
        return inventory

    def _archives(self, host_facts: Facts) -> set[str]:
        """Marks of the class-data archives of a host's Java."""
        names = ("classes", "tasks") if self.home.trace_path_jar is not None else ("classes",)
        build = self._java_build(host_facts)
        return {f"{Path(self.state.home).name}/{archive_name}-{build}" for archive_name in names}

    def _java_build(self, host_facts: Facts) -> str:
        return host_facts.fit_java.build if host_facts.fit_java else java_digest(self.home.java)

    def _write_bundle(self, file: Path, member: Member) -> str:
        """Write configuration, plan of the daemons, programs and folders of a node; the digest."""
        hosts_state, layout = self.state, self.state.layout
        cluster_folder, python = layout.base, hosts_state.python[member.name]
        java = f"{hosts_state.java[member.name]}/bin/java"
        planned = []
        for daemon in daemons.daemons(layout):
            if daemon.member != member:
                continue
            command = daemons.daemon_argv(java, layout, daemon)
            if daemon.kind == "historyserver":
                # started before HDFS answers, it sleeps 10 s between its tries
                url = f"http://{layout.master.at('namenode_http')}{_NAME_SPACE}"
                waiting = ["await", f"{cluster_folder}/plan.json", url, "Operational"]
                command = [python, "-I", "-S", f"{cluster_folder}/{NAME}", *waiting, *command]
            planned.append({
                "key": daemon.key,
                "argv": command,
                "env": hosts_state.environment(member),
                "cwd": layout.data(member),
                "log": f"{cluster_folder}/logs/{daemon.key}.log",
                "at_once": False,
            })  # fmt: skip
        plan = {
            "member": member.name,
            "folder": cluster_folder,
            "unit": hosts_state.units[member.name],
            "control": f"{cluster_folder}/control",
            "deaths": f"{cluster_folder}/deaths",
            "daemons_folder": f"{cluster_folder}/daemons",
            "daemons": planned,
        }
        conf = f"conf/{member.name}"
        files = {
            f"{conf}/{name}": site.render_xml(properties).encode()
            for name, properties in site.site_files(hosts_state.spec, layout, member).items()
        }
        files[f"{conf}/log4j.properties"] = site.LOG4J.encode()
        files["plan.json"] = json.dumps(plan, indent=1).encode()
        files["owner"] = f"{self.owner}\n".encode()
        # made by root, who starts units, it would be closed to the user's supervisor
        files["deaths"] = b""
        folders = ["logs", "daemons", f"nodes/{member.name}/jtmp"]
        name_space = self.home.formatted if member == layout.master else None
        return write_node_bundle(file, files, folders, name_space)
