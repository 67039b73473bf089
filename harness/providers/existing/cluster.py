"""
A cluster that runs already and is not ours: what a user may do, and no more.

Needs: its configuration (``HADOOP_CONF_DIR``, or addresses in ``cluster.site``), a way to its
services from this machine, simple authentication, and a home folder in its HDFS.  Jobs go to a
queue (``mapreduce.job.queuename``); histories, logs and counters come back over HDFS and HTTP.
Leaves behind: nothing.  All that is written there lies in one folder of our own, and jobs carry a
tag, by which `down` finds those that still run.  Nothing is started, stopped or changed but our own
jobs.
"""

from __future__ import annotations

import json
import os
import time

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from harness.errors import ClusterError, SpecError
from harness.hadoop import daemons, given, site
from harness.hadoop.layout import Layout, Member
from harness.hadoop_home.home import HadoopHome
from harness.parsing.history import read_history
from harness.providers import state as states
from harness.providers.base import Cluster
from harness.providers.existing import finding, served
from harness.providers.host import Host, LocalHost
from harness.providers.ids import application_name
from harness.providers.interrupts import Postponed
from harness.providers.versions import RanOn
from harness.records.trial import ClusterSpec

_KILL = "org.apache.hadoop.yarn.client.cli.ApplicationCLI"
_RUNNING = "NEW,NEW_SAVING,SUBMITTED,ACCEPTED,RUNNING"
_CLIENT_LIMIT_S, _POLL_S, _LOOK_S = 120.0, 0.2, 5.0
_GATHERING, _GATHER_LIMIT_S = ("NOT_START", "RUNNING", "RUNNING_WITH_FAILURE"), 60.0
LOSSES = (
    "its nodes are not ours to look into: models that ask for rates of disks and memory do without",
    "tasks are not traced: their parts come from Hadoop's own logs, single records have no times",
    "speed and load of its nodes are not measured: times at reference speed are the raw ones",
    "it counts no slots: a job is held to so many tasks at once, spread as the cluster likes",
    "other users' jobs may have run at the same time",
)


class ExistingCluster(Cluster):
    """Somebody else's Hadoop; use it as a context manager."""

    provider = "existing"
    needs = ("system", "java", "hadoop home", "speed probe", "existing cluster")
    sets_site = False
    description = "a cluster that runs already: its HADOOP_CONF_DIR, or addresses in cluster.site"
    traces = frozenset({"logs", "off"})

    def __init__(self, name: str, spec: ClusterSpec, home: HadoopHome) -> None:
        """Describe what is to be found; nothing is asked yet."""
        super().__init__(name, spec, home)
        self._known: dict[str, Any] = {}
        self._looked, self._dead = 0.0, list[str]()

    @classmethod
    def attach(cls, name: str) -> Self:
        """The cluster of that name, as whichever process found it."""
        known = _load(states.cluster_folder(name))
        spec = ClusterSpec.model_validate(known["spec"]) if known else ClusterSpec()
        cluster = cls(name, spec, HadoopHome.find())
        cluster._known = known
        return cluster

    @staticmethod
    def remove(name: str) -> bool:
        """
        End our jobs that still run, and remove our folder there and here; `False`: there was none.

        `ClusterError` where the cluster does not answer: then our folder here stays, for the next
        time.
        """
        folder = states.cluster_folder(name)
        if not folder.exists():
            return False
        with Postponed(), states.exclusive():
            cluster = ExistingCluster.attach(name)
            try:
                cluster.leave()
            except ClusterError as error:
                raise ClusterError(
                    f"our folder {cluster.root} and our jobs are still there: {error.what}",
                    where=error.where,
                    fix=f"harness cluster down --name {name}, when the cluster answers again;"
                    f" if it is gone for good: rm -r {folder}",
                ) from error
            states.remove_tree(folder)
        return True

    @classmethod
    def look(cls, spec: ClusterSpec) -> str:
        """Version, nodes and address of the cluster; an error where it cannot hold *spec*."""
        finding.user_name()
        found = finding.find(spec.site)
        finding.refuse(spec, found.nodes, f"existing cluster: {found}")
        return f"{found}"

    @staticmethod
    def gpus_per_node(workers: int) -> int:
        """GPUs that each node of the cluster of ``HADOOP_CONF_DIR`` offers, by YARN's own count."""
        if not os.environ.get("HADOOP_CONF_DIR"):
            raise SpecError(
                f"the GPUs of {workers} nodes are looked for where HADOOP_CONF_DIR leads",
                where="cluster.node.gpus",
                fix="set HADOOP_CONF_DIR, or write how many each node has",
            )
        return min(map(finding.gpus, finding.find({}).nodes), default=0)

    def is_up(self) -> bool:
        """Whether it was found, and not yet left."""
        return bool(self._known) and bool(_load(self.folder))

    def down(self) -> None:
        """Leave nothing of ours there; safe to call twice."""
        super().down()
        self._known = {}

    # what was found

    def _start(self) -> None:
        """Look whether the cluster can hold what is asked, then make our folders."""
        user, found = finding.user_name(), finding.find(self.spec.site)
        finding.refuse(self.spec, found.nodes, self.where)
        with states.claiming(self.name, self.provider):
            if self.folder.exists():
                if _load(self.folder):
                    raise ClusterError(
                        f"cluster {self.name!r} is up already",
                        where=str(self.folder),
                        fix=f"harness cluster down --name {self.name}, or choose another name",
                    )
                states.remove_tree(self.folder)
            states.make_folder(self.folder, self.provider)
            self._known = {
                "spec": self.spec.model_dump(mode="json"),
                "files": found.files,
                "services": found.services,
                "user": user,
                "token": os.urandom(4).hex(),
                "nodes": sorted(str(n.get("id")) for n in found.nodes),
                "version": found.version,
            }
            (self.folder / "state.json").write_text(json.dumps(self._known, indent=1))
        try:
            self._write_conf()
            self.hdfs.make(self.root)
        except BaseException:
            self.down()
            raise

    def _write_conf(self) -> None:
        layout, master = self.layout, self.layout.master
        conf = Path(layout.conf(master))
        conf.mkdir(parents=True, exist_ok=True)
        files = given.client_files(self._known["files"], self.spec, layout, self.root)
        for name, properties in files.items():
            (conf / name).write_text(site.render_xml(properties))
        (conf / "log4j.properties").write_text(site.LOG4J)
        (Path(layout.data(master)) / "jtmp").mkdir(parents=True, exist_ok=True)

    def leave(self) -> None:
        """End our jobs that still run, and remove our folder there."""
        if not self._known:
            return
        for application in self._own_applications(_RUNNING):
            self.kill_application(application)
        self.hdfs.delete(self.root)

    @property
    def _found(self) -> dict[str, Any]:
        if not self._known:
            raise self.not_up()
        return self._known

    @property
    def user(self) -> str:  # type: ignore[override]
        """In whose name the cluster is asked: ``HADOOP_USER_NAME``, or who runs this."""
        return str(self._found["user"])

    @property
    def root(self) -> str:  # type: ignore[override]
        """Our folder in HDFS, below the user's own."""
        return f"/user/{self.user}/{self._tag}"

    @property
    def _tag(self) -> str:
        """Of our jobs, and of nobody else's; YARN keeps tags in lower case."""
        return f"mapreduce-harness-{self.name.lower()}-{self._found['token']}"

    @property
    def services(self) -> dict[str, str]:
        """Where the masters answer."""
        return dict(self._found["services"])

    @property
    def endpoints(self) -> dict[str, str]:
        """Web addresses of the masters."""
        names = {"nn": "namenode", "rm": "resourcemanager", "jhs": "historyserver"}
        return {names[short]: f"http://{address}" for short, address in self.services.items()}

    @property
    def losses(self) -> tuple[str, ...]:
        """What such a cluster cannot show."""
        said = []
        client, there = self.home.versions().hadoop, str(self._found["version"])
        if client != there:
            said.append(f"Hadoop {there} runs there, as trials say; the client is {client}")
        if theirs := given.not_ours(self.spec):
            said.append(f"what daemons read is the cluster's own, not {', '.join(theirs)}")
        return (*said, *LOSSES)

    # doors

    @property
    def layout(self) -> Layout:
        """Our client's folders here; the nodes' own are not known."""
        host = self.services["rm"].rpartition(":")[0] if self._known else "master"
        archive = self.home.archive
        return Layout(
            (Member(host, host),), str(self.folder), str(self.home.path),
            str(archive) if archive else None,
        )  # fmt: skip

    @property
    def hosts(self) -> tuple[Host, ...]:
        """This machine, on which clients run: the nodes have no door."""
        layout = self.layout
        environment = daemons.environment(
            os.environ, str(self.home.java.home), layout, layout.master
        )
        if self._known:
            environment["HADOOP_USER_NAME"] = self.user
        data = layout.data(layout.master)
        return (LocalHost("gateway", "127.0.0.1", data, self._enter, environment),)

    @property
    def watched(self) -> tuple[Host, ...]:
        """None: what this machine does says nothing of the nodes."""
        return ()

    def _enter(self, argv: Sequence[str]) -> list[str]:
        return list(argv) if self._found else []

    @property
    def java(self) -> str:
        """The ``java`` command of this machine."""
        return self.home.java.launcher

    def host_path(self, host: Host, path: Path) -> str:
        """The same path: the client runs here."""
        del host
        return str(path)

    def _expected(self) -> dict[str, dict[str, str]]:
        """The nodes that ran when the cluster was found; where blocks lie is its own affair."""
        return {node: {"nodemanager": node} for node in self._found["nodes"]}

    # work

    def site_properties(self) -> dict[str, str]:
        """The properties of our client."""
        found = self._found["files"]
        return site.merged(given.client_files(found, self.spec, self.layout, self.root))

    def history_folders(self, job: str) -> list[str]:
        """The job's staging folder, which it keeps: the history server's may be closed to users."""
        return [f"{self.root}/staging/{self.user}/.staging/{job}"]

    def kill_application(self, application_id: str) -> None:
        """End one of our applications, as a user does."""
        log = self.folder / "kill.log"
        argv = ["application", "-kill", application_name(application_id)]
        self.client(_KILL, argv, log=log).wait(timeout=_CLIENT_LIMIT_S)

    def await_idle(self, timeout_s: float = 60.0) -> None:
        """Return when none of our own applications runs; others' are not ours to wait for."""
        deadline = time.monotonic() + timeout_s
        while left := self._busy():
            if time.monotonic() > deadline:
                raise ClusterError(
                    f"our own {', '.join(left)} still runs after {timeout_s:g} s",
                    where=self.where,
                    fix=f"harness cluster down --name {self.name}",
                )
            time.sleep(_POLL_S)

    def _busy(self) -> list[str]:
        """Our applications that run, or whose masters still hold their containers."""
        every, running = self._own_applications(), set(self._own_applications(_RUNNING))
        held = (a for a, containers in every.items() if a in running or containers > 0)
        return list(held)

    def _own_applications(self, states_asked: str = "") -> dict[str, int]:
        """Containers (below 0: none) of each of our applications, of those in some states alone."""
        asked = f"&states={states_asked}" if states_asked else ""
        path = f"/ws/v1/cluster/apps?applicationTags={self._tag}{asked}"
        apps = served.elements(served.get_json(self.services["rm"], path), "apps", "app")
        own = [app for app in apps if self._tag in str(app.get("applicationTags"))]
        return {str(app.get("id")): finding.whole(app.get("runningContainers")) for app in own}

    def _await_gathered(self, application: str) -> None:
        """Return when a job's logs lie where they stay: on its nodes, or gathered in HDFS."""
        deadline = time.monotonic() + _GATHER_LIMIT_S
        while time.monotonic() < deadline:
            answer = served.get_json(self.services["rm"], f"/ws/v1/cluster/apps/{application}")
            if finding.inner(answer, "app").get("logAggregationStatus") not in _GATHERING:
                return
            time.sleep(_POLL_S)

    def ran_on(self) -> dict[str, RanOn]:
        """What tasks run on, by the node's name: the nodes' JVMs are asked over HTTP."""
        known = served.servers(finding.nodes(self.services["rm"]))
        there = str(self._found["version"])
        return {server.host: served.ran_on(server, there) for server in known}

    # evidence

    def dead_daemons(self) -> list[str]:
        """Nodes that ran at first and do not now; asked at most each five seconds."""
        now = time.monotonic()
        if now - self._looked < _LOOK_S and self._looked:
            return self._dead
        self._looked = now
        host = self.layout.master.name
        try:
            running = {str(n.get("id")) for n in finding.nodes(self.services["rm"])}
        except ClusterError:
            self._dead = [f"resourcemanager on {host}"]
        else:
            lost = [n for n in self._found["nodes"] if n not in running]
            self._dead = [f"nodemanager on {node}" for node in lost]
        return self._dead

    def daemon_logs(self, lines: int = 20) -> dict[str, str]:
        """Where the daemons' logs can be asked for: they are not ours to read."""
        del lines
        host = self.layout.master.name
        masters = {kind: f"see {address}/logs/" for kind, address in self.endpoints.items()}
        found = {f"{kind} on {host}": text for kind, text in masters.items()}
        return found | {f"nodemanager on {n}": "not ours to read" for n in self._found["nodes"]}

    def container_logs(self, application_id: str, into: Path) -> list[Path]:
        """Fetch the logs of a job's tasks and of its application masters, over HTTP."""
        application = application_name(application_id)
        job = application.replace("application", "job", 1)
        self._await_gathered(application)
        known = served.servers(finding.nodes(self.services["rm"]))
        wanted = [*self._masters(application), *self._tasks(job)]
        return served.copy_logs(wanted, known, self.services["jhs"], into)

    def _masters(self, application: str) -> list[served.Container]:
        """Containers of the application masters that a job had, one after the other."""
        path = f"/ws/v1/cluster/apps/{application}/appattempts"
        answer = served.get_json(self.services["rm"], path)
        attempts = served.elements(answer, "appAttempts", "appAttempt")
        return [
            served.Container(str(a.get("containerId")), str(a.get("nodeId")).rpartition(":")[0])
            for a in attempts
        ]

    def _tasks(self, job: str) -> list[served.Container]:
        """Containers of a job's tasks, from its history; none where it left none."""
        try:
            (folder,) = self.history_folders(job)
            names = [name for name, _, _ in self.hdfs.list(folder) if name.endswith(".jhist")]
        except ClusterError:
            return []
        if not names:
            return []
        trace = read_history(self.hdfs.open(f"{folder}/{names[-1]}"), names[-1])
        hosts = {a.container_id: a.host for a in trace.attempts if a.container_id}
        return [served.Container(container, host) for container, host in hosts.items()]


def _load(folder: Path) -> dict[str, Any]:
    try:
        known: dict[str, Any] = json.loads((folder / "state.json").read_text())
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) and "services" in known else {}
