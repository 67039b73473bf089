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
import select
import subprocess
import sys

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from harness.clusters import gate, namespace, threads
from harness.clusters import state as states
from harness.clusters.files import ClusterFiles, application_name
from harness.clusters.gpus import find_devices, here
from harness.clusters.hdfs import Hdfs
from harness.clusters.home import HadoopHome
from harness.clusters.host import LocalHost, last_lines
from harness.clusters.interrupts import Postponed
from harness.clusters.state import ClusterState, Process
from harness.errors import ClusterError, SpecError
from harness.hadoop import daemons, site
from harness.hadoop.tracing import task_properties
from harness.records.trial import ClusterSpec, Tracing

INSIDE = Path(__file__).parent / "inside"
UP_LIMIT_S = 180.0
_MADE_LIMIT_S = 60.0

# Holders that this process started: somebody must collect them when they end.
_started: dict[int, subprocess.Popen[bytes]] = {}


class LocalCluster:
    """Hadoop in namespaces of this machine; use it as a context manager."""

    provider = "local"
    description = "all nodes on this machine, a network namespace each; for root and other users"

    def __init__(
        self, name: str, spec: ClusterSpec, home: HadoopHome, *, recording: bool = False
    ) -> None:
        """*recording* lets every JVM list its classes, for the class-data archive."""
        self.name, self.spec, self.home = name, spec, home
        self.folder = states.cluster_folder(name)
        self.files = ClusterFiles(self.folder, spec, home, recording)
        self._state: ClusterState | None = None
        self.hdfs = Hdfs(lambda operation: self._inside("door.py", *operation), _environment())

    @classmethod
    def attach(cls, name: str) -> LocalCluster:
        """
        The cluster of that name, started by whichever process.

        `down` works whatever is left of it; all else raises `ClusterError` unless it `is_up`.
        """
        state = ClusterState.load(states.cluster_folder(name))
        if state is None:
            return cls(name, ClusterSpec(), HadoopHome.find())
        spec = ClusterSpec.model_validate(state.spec)
        cluster = cls(name, spec, HadoopHome.find(Path(state.home)))
        cluster._state = state
        return cluster

    @staticmethod
    def names() -> list[str]:
        """Names of the clusters that are up, or left something behind."""
        return states.known_names()

    @staticmethod
    def remove(name: str) -> bool:
        """Take a cluster down and remove all of it; `False`: there was none.  Safe to repeat."""
        folder = states.cluster_folder(name)
        with states.exclusive():
            return _remove(folder)

    @staticmethod
    def gpus_per_node(workers: int) -> int:
        """GPUs of each of so many workers: nodes on one machine share its devices evenly."""
        return len(find_devices(here).names) // workers

    def is_up(self) -> bool:
        """Whether the cluster's first process runs and can be entered."""
        return self._state is not None and self._state.alive() and self._state.inner is not None

    def __enter__(self) -> Self:
        self.up()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.down()

    # life

    def up(self, limit_s: float = UP_LIMIT_S) -> None:
        """
        Start everything and return when it is healthy.

        `ClusterError` says who is silent or has died, with the last lines of its log; whatever was
        started is removed then.
        """
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
                    fix=f"harness cluster down --name {self.name}, or choose another name",
                )
            _remove(self.folder)
            try:
                self.files.write()
                self._state = self._start_holder()
            except BaseException:
                _remove(self.folder)
                raise

    def _start_holder(self) -> ClusterState:
        as_root = os.geteuid() == 0
        plan = str(self.folder / "plan.json")
        argv = [sys.executable, "-I", "-S", str(INSIDE / "holder.py"), plan]
        with (self.folder / "holder.log").open("wb") as log:
            holder = subprocess.Popen(
                namespace.make_argv(argv, as_root=as_root), start_new_session=True, cwd="/",
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, bufsize=0,
                env=_environment(),
            )  # fmt: skip
        _started[holder.pid] = holder
        try:
            state = ClusterState(
                self.name, self.spec.model_dump(mode="json"), str(self.home.path),
                user_namespace=not as_root, outer=Process.of(holder.pid),
            )  # fmt: skip
            state.save(self.folder)
            doors = self._let_go(holder)
            first = Process.of(states.child_of(holder.pid))
        except ProcessLookupError:
            raise self._not_made() from None
        finally:
            _collect_if_ended(holder)
        state = dataclasses.replace(state, inner=first, doors=tuple(doors))
        state.save(self.folder)
        return state

    def _let_go(self, holder: subprocess.Popen[bytes]) -> list[dict[str, int]]:
        """Tell the holder that it is written down who it is; answers the doors to its nodes."""
        assert holder.stdin is not None
        assert holder.stdout is not None
        with holder.stdin as stdin, holder.stdout as stdout:
            with suppress(BrokenPipeError):  # it has ended: then nothing is to be read either
                stdin.write(b"go\n")
            ready, _, _ = select.select([stdout], [], [], _MADE_LIMIT_S)
            line = stdout.readline() if ready else b""
        if not line:
            raise ProcessLookupError(holder.pid)
        doors: list[dict[str, int]] = json.loads(line)
        return doors

    def _not_made(self) -> Exception:
        said = last_lines(self.folder / "holder.log", 8)
        return namespace.refusal(said) or ClusterError(
            f"the cluster's network was not made: {said or 'no message'}",
            where=self._where,
            fix="the last lines above name the command that failed",
        )

    def _await_healthy(self, limit_s: float) -> None:
        layout = self.files.layout
        question = {
            **self._question(limit_s),
            "workers": [m.name for m in layout.workers],
            "control": str(self.files.control),
            "start": daemons.Daemon("historyserver", layout.master).key,
        }
        gate.await_healthy(
            self._ask, question, where=self._where, log=lambda name: self.daemon_logs()[name]
        )

    # doors

    @property
    def _known(self) -> ClusterState:
        if self._state is None:
            raise ClusterError(
                f"cluster {self.name!r} is not up",
                where=self._where,
                fix=f"harness cluster up --name {self.name}",
            )
        return self._state

    @property
    def _where(self) -> str:
        return f"local cluster {self.name!r}"

    def _enter(self, node: int) -> Callable[[Sequence[str]], list[str]]:
        return lambda argv: namespace.enter_argv(self._known, node, argv)

    def _inside(self, program: str, *arguments: str) -> list[str]:
        script = [sys.executable, "-I", "-S", str(INSIDE / program), *arguments]
        return self._enter(0)(script)

    def _question(self, limit_s: float) -> dict[str, Any]:
        return {
            "master": self.files.layout.master.name,
            "limit_s": limit_s,
            "deaths": str(self.files.deaths),
        }

    def _ask(self, question: dict[str, Any]) -> dict[str, Any]:
        """Put a question to the waiter inside; an empty answer when the cluster is gone."""
        try:
            done = subprocess.run(
                self._inside("waiter.py"), check=False, input=json.dumps(question), text=True,
                capture_output=True, env=_environment(), timeout=question["limit_s"] + 60,
                process_group=0,
            )  # fmt: skip
            answer: dict[str, Any] = json.loads(done.stdout)
        except (subprocess.TimeoutExpired, ValueError):
            return {}
        return answer

    @property
    def hosts(self) -> tuple[LocalHost, ...]:
        """The nodes, master first."""
        layout = self.files.layout
        return tuple(
            LocalHost(
                m.name, m.address, Path(layout.data(m)), self._enter(n), self.files.environment(m)
            )
            for n, m in enumerate(layout.members)
        )

    @property
    def endpoints(self) -> dict[str, str]:
        """Addresses, as the nodes know them."""
        master = self.files.layout.master
        return {
            "hdfs": f"hdfs://{master.name}:8020",
            "namenode": f"http://{master.address}:9870",
            "resourcemanager": f"http://{master.address}:8088",
            "historyserver": f"http://{master.address}:19888",
        }

    # work

    def client(
        self, main_class: str, args: Sequence[str], *, log: Path, jars: Sequence[Path] = ()
    ) -> subprocess.Popen[bytes]:
        """
        Start a client JVM on the master, its output into *log*; *jars* join its class path.

        The caller polls it, limits its time, and may kill it: the JVM inside ends with it.
        """
        java, more = self.home.java.launcher, [str(j) for j in jars]
        argv = daemons.client_argv(java, self.files.layout, main_class, args, more)
        return self.hosts[0].start(argv, log)

    def http_json(self, url_path: str, service: str = "rm") -> Any:
        """JSON that a daemon of the master answers: *service* is rm, nn or jhs."""
        return json.loads(self.hdfs.call("get", service, url_path))

    def kill_application(self, application_id: str) -> None:
        """Ask the ResourceManager to end an application."""
        path = f"/ws/v1/cluster/apps/{application_name(application_id)}/state?user.name=root"
        self.hdfs.call("put", "rm", path, body=b'{"state": "KILLED"}')

    def await_idle(self, timeout_s: float = 60.0) -> None:
        """Return when no application runs or holds a container; `ClusterError` at the time-out."""
        gate.await_idle(self._ask, self._question(timeout_s), where=self._where)

    def site_properties(self) -> dict[str, str]:
        """The cluster-wide properties in force, as a client on the master sees them."""
        layout = self.files.layout
        return site.merged(site.site_files(self.spec, layout, layout.master))

    def trace_properties(
        self, tracing: Tracing, configuration: Mapping[str, str]
    ) -> dict[str, str]:
        """Properties to add to a job's own, *configuration*, so that its tasks are traced."""
        archive = self.home.tasks_archive
        return task_properties(
            tracing.mode, self.files.layout, self.spec, configuration,
            archive=str(archive) if archive else None, unit=tracing.unit_records,
        )  # fmt: skip

    # evidence

    def dead_daemons(self) -> list[str]:
        """Daemons that have ended (``datanode on worker2``): no process is started to ask."""
        if not self._known.alive():
            return [d.name for d in self.files.all_daemons]
        return self.files.dead()

    def daemon_pids(self) -> dict[str, int]:
        """Process id on this machine of each running daemon (``datanode on worker2``)."""
        spaces = states.namespace_processes(namespace.entrance(self._known))
        outside = {inside: outside for outside, inside in spaces.items()}
        return {n: outside[i] for n, i in self.files.pids_inside().items() if i in outside}

    def daemon_logs(self, lines: int = 20) -> dict[str, str]:
        """The last lines of every daemon's log, by its name (``datanode on worker2``)."""
        return self.files.tails(lines)

    def thread_dumps(self, into: Path) -> list[Path]:
        """
        Have every JVM of the cluster say what its threads do; one file each in the folder *into*.

        Takes three seconds at most; a JVM that does not answer has no file.
        """
        known = {pid: name.replace(" on ", "-") for name, pid in self.daemon_pids().items()}
        inside = states.namespace_processes(namespace.entrance(self._known))
        return threads.dump(threads.jvms(inside, known), into)

    def container_logs(self, application_id: str, into: Path) -> list[Path]:
        """Copy an application's logs of all nodes to ``into/<node>/<container>/<file>``."""
        return self.files.container_logs(application_id, into)


def _collect_if_ended(holder: subprocess.Popen[bytes]) -> None:
    for pipe in (holder.stdin, holder.stdout):
        if pipe is not None:
            pipe.close()
    if holder.poll() is not None:
        _started.pop(holder.pid, None)


def _environment() -> dict[str, str]:
    """All that our own programs inside need."""
    return {"PATH": namespace.search_path()}


def _remove(folder: Path) -> bool:
    """End the processes of the cluster in *folder*, and remove it; `False`: there was none."""
    if not folder.exists():
        return False
    with Postponed():  # it takes a second at most, and what was begun is better ended
        _end_processes(folder)
        states.remove_tree(folder)
    return True


def _end_processes(folder: Path) -> None:
    state = ClusterState.load(folder)
    if state is not None:
        states.end_processes(state)
    else:
        for process in states.holders(folder / "plan.json"):
            process.kill()
    for pid, holder in list(_started.items()):
        if holder.poll() is not None:
            del _started[pid]
