"""
Local provider: every node of the cluster in its own namespaces, on this machine.

Needs: Linux with namespaces (an ordinary user's too, where the kernel allows it), iproute2, a JDK
and a Hadoop home.  Leaves behind: nothing.  All of a cluster hangs on one process outside; the
kernel ends everything with it, network and mounts included.  Nothing listens on this machine's own
addresses.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
import select
import shutil
import subprocess
import sys

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from harness.clusters import gate, namespace
from harness.clusters import state as states
from harness.clusters.hdfs import Hdfs
from harness.clusters.home import HadoopHome
from harness.clusters.host import LocalHost, last_lines
from harness.clusters.state import ClusterState, Process
from harness.errors import ClusterError, SpecError
from harness.hadoop import daemons, site
from harness.records.trial import ClusterSpec

INSIDE = Path(__file__).parent / "inside"
UP_LIMIT_S = 180.0
_MADE_LIMIT_S = 60.0
_APPLICATION = re.compile(r"application_\d+_\d+")
_CONTAINER = re.compile(r"container_[0-9e_]+")
_LOG = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")

# Holders that this process started: somebody must collect them when they end.
_started: dict[int, subprocess.Popen[bytes]] = {}


class LocalCluster:
    """A cluster of namespaces on this machine; use it as a context manager."""

    provider = "local"

    def __init__(
        self, name: str, spec: ClusterSpec, home: HadoopHome, *, recording: bool = False
    ) -> None:
        """*recording* lets every JVM list its classes, for the class-data archive."""
        self.name, self.spec, self.home, self._recording = name, spec, home, recording
        self.folder = states.cluster_folder(name)
        self._state: ClusterState | None = None
        self.hdfs = Hdfs(lambda operation: self._inside("door.py", *operation), _door_environment())

    @classmethod
    def attach(cls, name: str) -> LocalCluster:
        """
        The cluster of that name, started by whichever process.

        `down` works whatever is left of it; all else raises `ClusterError` unless it `is_up`.
        """
        state = ClusterState.load(states.cluster_folder(name))
        if state is None:
            return cls(name, ClusterSpec(), HadoopHome.find())
        cluster = cls(
            name, ClusterSpec.model_validate(state.spec), HadoopHome.find(Path(state.home))
        )
        cluster._state = state
        return cluster

    @staticmethod
    def names() -> list[str]:
        """Names of the clusters that are up, or left something behind."""
        return states.known_names()

    @staticmethod
    def remove(name: str) -> bool:
        """Take a cluster down and remove all of it; was there anything?  Safe to repeat."""
        folder = states.cluster_folder(name)
        with states.exclusive():
            return _remove(folder)

    def is_up(self) -> bool:
        """Whether the cluster's first process runs and can be entered."""
        return self._state is not None and self._state.alive() and self._state.inner is not None

    def __enter__(self) -> Self:
        self.up()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.down()

    # life cycle

    def up(self, limit_s: float = UP_LIMIT_S) -> None:
        """Start everything and return when it is healthy; a failure removes what was started."""
        refused = site.refused_overrides(self.spec)
        if refused:
            raise SpecError("; ".join(refused), where="cluster.site", fix="leave them out")
        namespace.require_tools()
        self._claim()
        try:
            self._await_healthy(limit_s)
        except BaseException:
            self.down()
            raise

    def down(self) -> None:
        """End every process and remove every file of this cluster; safe to call twice."""
        self.remove(self.name)
        self._state = None

    def _claim(self) -> None:
        """Take the name, write the files, start the first process: all or nothing."""
        with states.exclusive():
            state = ClusterState.load(self.folder)
            if state is not None and state.alive():
                raise ClusterError(
                    f"cluster {self.name!r} is up already",
                    where=str(self.folder),
                    fix=f"harness cluster down --name {self.name}, or choose another --name",
                )
            _remove(self.folder)
            try:
                self.folder.mkdir(mode=0o700)
                self._write_files()
                self._state = self._start_holder()
            except BaseException:
                _remove(self.folder)
                raise

    def _await_healthy(self, limit_s: float) -> None:
        members = self.layout.workers
        question = {
            "master": self.layout.master.name,
            "workers": [m.name for m in members],
            "limit_s": limit_s,
            "deaths": str(self.folder / "deaths"),
            "control": str(self.folder / "control"),
            "start": daemons.Daemon("historyserver", self.layout.master).key,
        }
        gate.await_healthy(self._ask, question, where=self._where, log=self._last_lines)
        self._state = dataclasses.replace(self._known, ready=True)
        self._state.save(self.folder)

    def _start_holder(self) -> ClusterState:
        as_root = os.geteuid() == 0
        argv = [
            sys.executable,
            "-I",
            "-S",
            str(INSIDE / "holder.py"),
            str(self.folder / "plan.json"),
        ]
        with (self.folder / "holder.log").open("wb") as log:
            holder = subprocess.Popen(
                namespace.make_argv(argv, as_root=as_root), start_new_session=True, cwd="/",
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
                env=_door_environment(),
            )  # fmt: skip
        _started[holder.pid] = holder
        state = ClusterState(
            self.name, self.spec.model_dump(mode="json"), str(self.home.path),
            self.layout.archive, user_namespace=not as_root, outer=Process.of(holder.pid),
        )  # fmt: skip
        state.save(self.folder)
        doors = self._let_go(holder)
        first = states.child_of(holder.pid)
        if first is None:
            raise self._not_made()
        state = dataclasses.replace(state, inner=Process.of(first), doors=tuple(doors))
        state.save(self.folder)
        return state

    def _let_go(self, holder: subprocess.Popen[bytes]) -> list[dict[str, int]]:
        """Tell the holder that it is written down who it is; answers the doors to its nodes."""
        assert holder.stdin is not None
        assert holder.stdout is not None
        with holder.stdin as stdin, holder.stdout as stdout:
            try:
                stdin.write(b"go\n")
                stdin.flush()
            except BrokenPipeError:
                raise self._not_made() from None
            select.select([stdout], [], [], _MADE_LIMIT_S)
            os.set_blocking(stdout.fileno(), False)
            line = stdout.readline()
            if not line:
                raise self._not_made()
            doors: list[dict[str, int]] = json.loads(line)
            return doors

    def _not_made(self) -> Exception:
        said = last_lines(self.folder / "holder.log", 8)
        return namespace.refusal(said) or ClusterError(
            f"the cluster's network was not made: {said or 'no message'}",
            where=self._where,
            fix="look above for the command that failed",
        )

    # files

    @cached_property
    def layout(self) -> site.Layout:
        """Nodes and folders."""
        archive = self.home.archive
        return site.Layout(
            site.members(self.spec.workers), str(self.folder), str(self.home.path),
            str(archive) if archive else None,
            f"{self.folder}/classes" if self._recording else None,
        )  # fmt: skip

    def _write_files(self) -> None:
        layout = self.layout
        for folder in ("logs", "daemons", "classes"):
            (self.folder / folder).mkdir()
        for member in layout.members:
            _write_conf(Path(layout.conf(member)), site.site_files(self.spec, layout, member))
            (Path(layout.data(member)) / "jtmp").mkdir(parents=True)
        names = "".join(f"{m.address} {m.name}\n" for m in layout.members)
        (self.folder / "hosts").write_text(f"127.0.0.1 localhost\n{names}")
        os.mkfifo(self.folder / "control", 0o600)
        self._format()
        (self.folder / "plan.json").write_text(json.dumps(self._plan(), indent=1))

    def _format(self) -> None:
        """An empty name space: a copy of the home's."""
        if self.home.formatted is None:
            raise ClusterError(
                "the Hadoop home has no formatted name space",
                where=str(self.home.path),
                fix="make setup",
            )
        shutil.copytree(self.home.formatted, Path(self.layout.data(self.layout.master)) / "name")

    def _plan(self) -> dict[str, Any]:
        layout = self.layout
        nodes = [
            {"name": m.name, "address": f"{m.address}/15", "link": f"node{number}"}
            for number, m in enumerate(layout.members)
        ]
        return {
            "nodes": nodes,
            "hosts": str(self.folder / "hosts"),
            "control": str(self.folder / "control"),
            "deaths": str(self.folder / "deaths"),
            "daemons_folder": str(self.folder / "daemons"),
            "daemons": [self._planned(d) for d in daemons.daemons(layout)],
        }

    def _planned(self, daemon: daemons.Daemon) -> dict[str, Any]:
        return {
            "key": daemon.key,
            "node": self.layout.members.index(daemon.member),
            "argv": daemons.daemon_argv(self.home.java.launcher, self.layout, daemon),
            "env": self._environment(daemon.member),
            "cwd": self.layout.data(daemon.member),
            "log": str(self._log(daemon.key)),
            "at_once": daemon.kind != "historyserver",
        }

    def _environment(self, member: site.Member) -> dict[str, str]:
        inherited = {**os.environ, "PATH": namespace.search_path()}
        return daemons.environment(inherited, str(self.home.java.home), self.layout, member)

    def _log(self, key: str) -> Path:
        return self.folder / "logs" / f"{key}.log"

    # doors

    @property
    def _known(self) -> ClusterState:
        if self._state is None:
            raise ClusterError(
                f"cluster {self.name!r} is not up", where=self._where, fix="harness cluster up"
            )
        return self._state

    @property
    def _where(self) -> str:
        return f"local cluster {self.name!r}"

    def _enter(self, node: int) -> Callable[[Sequence[str]], list[str]]:
        return lambda argv: namespace.enter_argv(self._known, node, argv)

    def _inside(self, program: str, *arguments: str) -> list[str]:
        script = [sys.executable, "-I", "-S", str(INSIDE / program), *arguments]
        return namespace.enter_argv(self._known, 0, script)

    def _ask(self, question: dict[str, Any]) -> dict[str, Any]:
        """Put a question to the waiter inside; an empty answer when the cluster is gone."""
        try:
            done = subprocess.run(
                self._inside("waiter.py"), check=False, input=json.dumps(question), text=True,
                capture_output=True, env=_door_environment(), timeout=question["limit_s"] + 60,
            )  # fmt: skip
            answer: dict[str, Any] = json.loads(done.stdout)
        except (subprocess.TimeoutExpired, ValueError):
            return {}
        return answer

    @property
    def hosts(self) -> tuple[LocalHost, ...]:
        """The nodes, master first."""
        return tuple(
            LocalHost(
                m.name, m.address, Path(self.layout.data(m)), self._enter(n), self._environment(m)
            )
            for n, m in enumerate(self.layout.members)
        )

    @property
    def endpoints(self) -> dict[str, str]:
        """Addresses, as the nodes know them."""
        master = self.layout.master.address
        return {
            "hdfs": f"hdfs://{self.layout.master.name}:8020",
            "namenode": f"http://{master}:9870",
            "resourcemanager": f"http://{master}:8088",
            "historyserver": f"http://{master}:19888",
        }

    # work

    def client(
        self, main_class: str, args: Sequence[str], *, log: Path, jars: Sequence[Path] = ()
    ) -> subprocess.Popen[bytes]:
        """
        Start a client JVM on the master, its output into *log*; *jars* join its class path.

        The caller polls it, limits its time, and may kill it: the JVM inside ends with it.
        """
        argv = daemons.client_argv(
            self.home.java.launcher, self.layout, main_class, args, [str(j) for j in jars]
        )
        return self.hosts[0].start(argv, log)

    def http_json(self, url_path: str, service: str = "rm") -> Any:
        """JSON that a daemon of the master answers: *service* is rm, nn or jhs."""
        return json.loads(self.hdfs.call("get", service, url_path))

    def kill_application(self, application_id: str) -> None:
        """Ask the ResourceManager to end an application."""
        path = f"/ws/v1/cluster/apps/{_checked(_APPLICATION, application_id)}/state?user.name=root"
        self.hdfs.call("put", "rm", path, body=b'{"state": "KILLED"}')

    def await_idle(self, timeout_s: float = 60.0) -> None:
        """Return when no application runs or holds a container; `ClusterError` at the time-out."""
        question = {
            "master": self.layout.master.name,
            "limit_s": timeout_s,
            "deaths": str(self.folder / "deaths"),
        }
        gate.await_idle(self._ask, question, where=self._where)

    def site_properties(self) -> dict[str, str]:
        """The cluster-wide properties in force, as a client on the master sees them."""
        return site.merged(site.site_files(self.spec, self.layout, self.layout.master))

    # evidence

    def dead_daemons(self) -> list[str]:
        """Daemons that have ended (``datanode on worker2``): no process is started to ask."""
        all_names = {d.key: d.name for d in daemons.daemons(self.layout)}
        if not self._known.alive():
            return list(all_names.values())
        try:
            lines = (self.folder / "deaths").read_text().splitlines()
        except FileNotFoundError:
            return []
        return [all_names[json.loads(line)["key"]] for line in lines]

    def daemon_pids(self) -> dict[str, int]:
        """Process id on this machine of each running daemon (``datanode on worker2``)."""
        inside = {
            i: o for o, i in states.namespace_processes(namespace.entrance(self._known)).items()
        }
        found = {}
        for daemon in daemons.daemons(self.layout):
            try:
                pid = inside.get(int((self.folder / "daemons" / daemon.key).read_text()))
            except (OSError, ValueError):
                continue
            if pid is not None:
                found[daemon.name] = pid
        return found

    def daemon_logs(self, lines: int = 20) -> dict[str, str]:
        """The last lines of every daemon's log, by its name (``datanode on worker2``)."""
        return {d.name: last_lines(self._log(d.key), lines) for d in daemons.daemons(self.layout)}

    def log_files(self) -> dict[str, Path]:
        """The log of every daemon, by its name."""
        return {d.name: self._log(d.key) for d in daemons.daemons(self.layout)}

    def _last_lines(self, name: str) -> str:
        return self.daemon_logs().get(name, "")

    def container_logs(self, application_id: str, into: Path) -> list[Path]:
        """Copy an application's logs of all nodes to ``into/<node>/<container>/<file>``."""
        application, copied = _checked(_APPLICATION, application_id), []
        for member in self.layout.workers:
            logs = Path(self.layout.data(member)) / "userlogs" / application
            for folder in _folders(logs):
                copied += _copy_logs(folder, into / member.name / folder.name)
        return copied


def _door_environment() -> dict[str, str]:
    return {"PATH": namespace.search_path()}


def _remove(folder: Path) -> bool:
    """End the processes of the cluster in *folder*, and remove it; `False`: there was none."""
    if not folder.exists():
        return False
    state = ClusterState.load(folder)
    if state is not None:
        states.end_processes(state)
        holder = _started.pop(state.outer.pid, None)
        if holder is not None:
            holder.wait()
    states.remove_tree(folder)
    return True


def _write_conf(folder: Path, files: site.SiteFiles) -> None:
    folder.mkdir(parents=True)
    for name, properties in files.items():
        (folder / name).write_text(site.render_xml(properties))
    (folder / "log4j.properties").write_text(site.LOG4J)


def _checked(pattern: re.Pattern[str], text: str) -> str:
    if not pattern.fullmatch(text):
        raise ClusterError(
            f"{text!r} is no Hadoop id", where="application", fix="ask for its own id"
        )
    return text


def _folders(logs: Path) -> list[Path]:
    """Container folders, real ones only: a task may have left anything there."""
    if not logs.is_dir():
        return []
    return sorted(
        p for p in logs.iterdir()
        if _CONTAINER.fullmatch(p.name) and p.is_dir() and not p.is_symlink()
    )  # fmt: skip


def _copy_logs(source: Path, target: Path) -> list[Path]:
    copied = []
    target.mkdir(parents=True, exist_ok=True)
    for file in sorted(source.iterdir()):
        if _LOG.fullmatch(file.name) and file.is_file() and not file.is_symlink():
            shutil.copyfile(file, target / file.name)
            copied.append(target / file.name)
    return copied
