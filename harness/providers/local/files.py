"""
The folder of a local cluster: what is written before its start, and what is read back later.

    conf/<node>/   nodes/<node>/   configuration and data of each node
    etc/hosts      names of the nodes, put in the place of the machine's
    logs/          one log per daemon, by its key (``datanode-worker2.log``)
    daemons/       process ids, as seen in the cluster;  deaths: daemons that have ended
    plan.json      what the supervisor starts (`harness.node.local`);  control: its pipe
    limits.json    limits of nodes, as measured;  <node>.disk: the disk that one has of its own
    state.json     the cluster's first processes (`harness.providers.local.supervisor`)
"""

from __future__ import annotations

import os
import shutil

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from harness.hadoop import daemons, site
from harness.hadoop.layout import Layout, Member, make_flat_members, make_members
from harness.hadoop_home.home import HadoopHome
from harness.node.health import dead_daemons
from harness.providers.host import CONTAINER, LOG, application_name
from harness.providers.local import namespace
from harness.providers.state import make_folder
from harness.records.trial import ClusterSpec


@dataclass(frozen=True)
class ClusterFiles:
    """
    Everything on disk of the cluster *spec* in *folder*.

    *first_port* is that of a cluster without namespaces (`harness.providers.local.loopback`).
    """

    folder: Path
    spec: ClusterSpec
    home: HadoopHome
    recording: bool = False
    first_port: int = 0

    @cached_property
    def layout(self) -> Layout:
        """Nodes and folders."""
        archive = self.home.archive
        workers, first = self.spec.workers, self.first_port
        members = make_flat_members(workers, first) if first else make_members(workers)
        return Layout(
            members, str(self.folder), str(self.home.path),
            str(archive) if archive else None,
            str(self.folder / "classes") if self.recording else None,
        )  # fmt: skip

    @property
    def all_daemons(self) -> tuple[daemons.Daemon, ...]:
        """All daemons, in order of their start."""
        return daemons.daemons(self.layout)

    @property
    def deaths(self) -> Path:
        """The file that names the daemons that have ended."""
        return self.folder / "deaths"

    @property
    def control(self) -> Path:
        """The pipe whose lines make the supervisor start daemons."""
        return self.folder / "control"

    # before the start

    def write(self) -> None:
        """Fill the folder, which must be new."""
        make_folder(self.folder, "local")
        for entry_name in ("logs", "daemons", "classes", "etc"):
            (self.folder / entry_name).mkdir()
        for member in self.layout.members:
            conf_folder = Path(self.layout.conf(member))
            conf_folder.mkdir(parents=True)
            for entry_name, properties in site.site_files(self.spec, self.layout, member).items():
                (conf_folder / entry_name).write_text(site.render_xml(properties))
            (conf_folder / "log4j.properties").write_text(site.LOG4J)
            (Path(self.layout.data(member)) / "jtmp").mkdir(parents=True)
        names = "".join(f"{member.address} {member.name}\n" for member in self.layout.members)
        (self.folder / "etc" / "hosts").write_text(f"127.0.0.1 localhost\n{names}")
        os.mkfifo(self.control, 0o600)
        # a name space formatted beforehand: formatting one anew would take a second or two
        name_space = self.home.require_formatted()
        shutil.copytree(name_space, Path(self.layout.data(self.layout.master)) / "name")

    def link(self, number: int) -> str:
        """The bridge's end of the link of node *number*."""
        return f"node{number}"

    def plan(self, hardware: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
        """What the supervisor makes and starts; *hardware* limits workers, by their names."""
        members = self.layout.members
        return {
            "flat": bool(self.first_port),
            "nodes": [
                {
                    "name": member.name, "address": f"{member.address}/15",
                    "link": self.link(number), **hardware.get(member.name, {}),
                }
                for number, member in enumerate(members)
            ],
            "etc": str(self.folder / "etc"),
            "control": str(self.control),
            "deaths": str(self.deaths),
            "daemons_folder": str(self.folder / "daemons"),
            "daemons": [
                {
                    "key": daemon.key,
                    "node": members.index(daemon.member),
                    "argv": daemons.daemon_argv(self.home.java.launcher, self.layout, daemon),
                    "env": self.environment(daemon.member),
                    "cwd": self.layout.data(daemon.member),
                    "log": str(self.log(daemon)),
                    # The history server would sleep 10 s between its looks at HDFS: the health
                    # check has it started in time.  A limited node is measured before all else.
                    "at_once": daemon.kind != "historyserver" and not self.spec.limited,
                }
                for daemon in self.all_daemons
            ],
        }  # fmt: skip

    def environment(self, member: Member) -> dict[str, str]:
        """Environment of a JVM on *member*."""
        inherited = {**os.environ, "PATH": namespace.search_path()}
        return daemons.environment(inherited, str(self.home.java.home), self.layout, member)

    # while it runs

    def log(self, daemon: daemons.Daemon) -> Path:
        """Log of one daemon."""
        return self.folder / "logs" / f"{daemon.key}.log"

    def dead(self) -> list[str]:
        """Names of the daemons that have ended."""
        names = {daemon.key: daemon.name for daemon in self.all_daemons}
        return [names[key] for key in dead_daemons(str(self.deaths))]

    def pids(self) -> dict[str, int]:
        """Process id, as seen in the cluster, of each running daemon by its name."""
        pids = {}
        for daemon in self.all_daemons:
            with suppress(FileNotFoundError):
                pids[daemon.name] = int((self.folder / "daemons" / daemon.key).read_text())
        return pids

    def container_logs(self, application_id: str, into: Path) -> list[Path]:
        """Copy an application's logs to ``into/<node>/<container>/<file>``: real files alone."""
        application, copies = application_name(application_id), []
        for member in self.layout.workers:
            logs = Path(self.layout.data(member)) / "userlogs" / application
            for container in _real_entries(logs):
                if CONTAINER.fullmatch(container.name) and container.is_dir():
                    target = into / member.name / container.name
                    target.mkdir(parents=True, exist_ok=True)
                    copies += [
                        shutil.copyfile(log_file, target / log_file.name)
                        for log_file in _real_entries(container)
                        if LOG.fullmatch(log_file.name) and log_file.is_file()
                    ]
        return copies


def _real_entries(folder: Path) -> list[Path]:
    """Entries of a folder that are not links; none where there is no folder."""
    entries = folder.iterdir() if folder.is_dir() else ()
    return sorted(entry for entry in entries if not entry.is_symlink())
