"""
The folder of a local cluster: what is written before its start, and what is read back later.

    conf/<node>/   nodes/<node>/   configuration and data of each node
    etc/hosts      names of the nodes, put in the place of the machine's
    logs/          one log per daemon, by its key (``datanode-worker2.log``)
    daemons/       process ids, as seen inside;  deaths: who has ended
    plan.json      what `harness.node.local` starts;  control: what more it is told
    limits.json    what limited nodes are;  <node>.disk: the disk that one has of its own
    state.json     who holds the cluster (`harness.providers.state`)
"""

from __future__ import annotations

import json
import os
import shutil

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

from harness.errors import MachineError
from harness.hadoop import daemons, site
from harness.hadoop.layout import Layout, Member, make_flat_members, make_members
from harness.hadoop_home.home import HadoopHome
from harness.providers.host import last_lines
from harness.providers.ids import CONTAINER, LOG, application_name
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
    def limits(self) -> Path:
        """The file that holds what limited nodes were asked to be, and what they are."""
        return self.folder / "limits.json"

    @property
    def control(self) -> Path:
        """The pipe through which the first process inside is told to start a daemon."""
        return self.folder / "control"

    # before the start

    def write(self) -> None:
        """Fill the folder, which must be new."""
        make_folder(self.folder, "local")
        for name in ("logs", "daemons", "classes"):
            (self.folder / name).mkdir()
        for member in self.layout.members:
            _write_conf(
                Path(self.layout.conf(member)), site.site_files(self.spec, self.layout, member)
            )
            (Path(self.layout.data(member)) / "jtmp").mkdir(parents=True)
        names = "".join(f"{m.address} {m.name}\n" for m in self.layout.members)
        (self.folder / "etc").mkdir()
        (self.folder / "etc" / "hosts").write_text(f"127.0.0.1 localhost\n{names}")
        os.mkfifo(self.control, 0o600)
        self._copy_name_space()

    def _copy_name_space(self) -> None:
        """An empty name space for the NameNode: formatting one anew would take a second or two."""
        if self.home.formatted is None:
            raise MachineError(
                "the Hadoop home has no formatted name space that this user can read",
                where=f"{self.home.path}/name",
                fix="make setup",
            )
        shutil.copytree(self.home.formatted, Path(self.layout.data(self.layout.master)) / "name")

    def write_plan(self, hardware: Mapping[str, Mapping[str, Any]]) -> None:
        """Write down what the first process inside is to do; *hardware* is what limits workers."""
        (self.folder / "plan.json").write_text(json.dumps(self.plan(hardware), indent=1))

    def link(self, number: int) -> str:
        """The bridge's end of the link of node *number*."""
        return f"node{number}"

    def plan(
        self, hardware: Mapping[str, Mapping[str, Any]] = MappingProxyType({})
    ) -> dict[str, Any]:
        """What the first process inside is to make and to start."""
        nodes = [
            {
                "name": m.name, "address": f"{m.address}/15", "link": self.link(number),
                **hardware.get(m.name, {}),
            }
            for number, m in enumerate(self.layout.members)
        ]  # fmt: skip
        return {
            "flat": bool(self.first_port),
            "nodes": nodes,
            "etc": str(self.folder / "etc"),
            "control": str(self.control),
            "deaths": str(self.deaths),
            "daemons_folder": str(self.folder / "daemons"),
            "daemons": [self._planned(d) for d in self.all_daemons],
        }

    def _planned(self, daemon: daemons.Daemon) -> dict[str, Any]:
        return {
            "key": daemon.key,
            "node": self.layout.members.index(daemon.member),
            "argv": daemons.daemon_argv(self.home.java.launcher, self.layout, daemon),
            "env": self.environment(daemon.member),
            "cwd": self.layout.data(daemon.member),
            "log": str(self.log(daemon)),
            # it waits 10 s between its looks at HDFS: the waiter has it started at the right moment
            # a limited node is measured before anything runs on it
            "at_once": daemon.kind != "historyserver" and not self.spec.limited,
        }

    def environment(self, member: Member) -> dict[str, str]:
        """Environment of a JVM on *member*."""
        inherited = {**os.environ, "PATH": namespace.search_path()}
        return daemons.environment(inherited, str(self.home.java.home), self.layout, member)

    # while it runs

    def log(self, daemon: daemons.Daemon) -> Path:
        """Log of one daemon."""
        return self.folder / "logs" / f"{daemon.key}.log"

    def tails(self, lines: int) -> dict[str, str]:
        """The last lines of every daemon's log, by its name (``datanode on worker2``)."""
        return {d.name: last_lines(self.log(d), lines) for d in self.all_daemons}

    def dead(self) -> list[str]:
        """Names of the daemons that have ended."""
        names = {d.key: d.name for d in self.all_daemons}
        try:
            lines = self.deaths.read_text().splitlines()
        except FileNotFoundError:
            return []
        return [names[json.loads(line)["key"]] for line in lines]

    def pids_inside(self) -> dict[str, int]:
        """Process id, as seen inside, of each running daemon by its name."""
        found = {}
        for daemon in self.all_daemons:
            try:
                found[daemon.name] = int((self.folder / "daemons" / daemon.key).read_text())
            except FileNotFoundError:
                continue
        return found

    def container_logs(self, application_id: str, into: Path) -> list[Path]:
        """Copy an application's logs of all nodes to ``into/<node>/<container>/<file>``."""
        application, copied = application_name(application_id), []
        for member in self.layout.workers:
            logs = Path(self.layout.data(member)) / "userlogs" / application
            for folder in _container_folders(logs):
                copied += _copy_logs(folder, into / member.name / folder.name)
        return copied


def _write_conf(folder: Path, files: site.SiteFiles) -> None:
    folder.mkdir(parents=True)
    for name, properties in files.items():
        (folder / name).write_text(site.render_xml(properties))
    (folder / "log4j.properties").write_text(site.LOG4J)


def _container_folders(logs: Path) -> list[Path]:
    """Folders of containers, real ones only: a task may have left anything there."""
    if not logs.is_dir():
        return []
    return [
        p
        for p in sorted(logs.iterdir())
        if CONTAINER.fullmatch(p.name) and p.is_dir() and not p.is_symlink()
    ]


def _copy_logs(source: Path, target: Path) -> list[Path]:
    copied = []
    target.mkdir(parents=True, exist_ok=True)
    for file in sorted(source.iterdir()):
        if LOG.fullmatch(file.name) and file.is_file() and not file.is_symlink():
            shutil.copyfile(file, target / file.name)
            copied.append(target / file.name)
    return copied
